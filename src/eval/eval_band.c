/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matrix to a band by reflections in blocks, a band to two diagonals by chasing what sticks out
 * (Bischof and Van Loan, The WY representation, 1987; Lang, Parallel reduction of banded matrices
 * to bidiagonal form, 1996). Nearly all of the work is products of matrices.
 */
#include <string.h>

#include "base/base.h"
#include "eval/eval_singular.h"

enum { BAND = LW_BAND, CHUNK = 192 };

/* `count` reflections in one: I - V T V^T, rows of p are columns of V. */
typedef struct block {
    double *a;     /* the part it is applied to */
    int64_t lda;   /* pitch */
    int64_t m, n;  /* rows, columns of that part */
    int64_t count; /* reflections */
    double *p;     /* [BAND][length]; length: rows of the part, or columns when right */
    int64_t length;
    double tau[BAND], t[BAND * BAND];
    bool right;
    double *memory; /* [workers][each]: w, w2 of BAND x CHUNK, then that of a product */
    size_t each;
} block;

/* Reflects each row of p by those before it and makes its own; triangle [count][BAND]: what rows
 * become in front, `rows` of them. */
static void factor_panel(block *b, int64_t rows, double *v, double *triangle)
{
    const lw_dense *dense = lw_dense_best();
    int64_t length = b->length;
    b->count = LW_MIN(rows, length);
    for (int64_t j = 0; j < b->count; j++) {
        double *x = b->p + j * length + j, first;
        b->tau[j] = lw_reflection(v, x, length - j, &first);
        memcpy(x, v, (size_t)(length - j) * sizeof *x);
        for (int64_t i = j + 1; i < rows; i++) {
            double *y = b->p + i * length + j;
            dense->more(y, -b->tau[j] * dense->dot(y, v, length - j), v, length - j);
        }
        triangle[j * BAND + j] = first;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < LW_MIN(i, b->count); j++) {
            triangle[i * BAND + j] = b->p[i * length + j];
            if (i < b->count)
                b->p[i * length + j] = 0;
        }
}

/* T, upper triangular, from products of the reflections (Schreiber and Van Loan 1989). */
static void join_reflections(block *b)
{
    const lw_dense *dense = lw_dense_best();
    int64_t r = b->count;
    for (int64_t j = 0; j < r; j++) {
        double along[BAND];
        for (int64_t i = 0; i < j; i++)
            along[i] = dense->dot(b->p + i * b->length + j, b->p + j * b->length + j,
                                  b->length - j);
        for (int64_t i = 0; i < r; i++) {
            double sum = 0;
            for (int64_t k = i; k < j; k++)
                sum += b->t[i * BAND + k] * along[k];
            b->t[i * BAND + j] = i < j ? -b->tau[j] * sum : i == j ? b->tau[j] : 0;
        }
    }
}

/* Some columns: a -= V (T^T (V^T a)). */
static void left_task(void *arg, int64_t task, int worker)
{
    const lw_dense *dense = lw_dense_best();
    const block *b = arg;
    int64_t from = task * CHUNK, n = LW_MIN((int64_t)CHUNK, b->n - from), r = b->count;
    double *w = b->memory + (size_t)worker * b->each, *w2 = w + BAND * CHUNK,
           *pack = w2 + BAND * CHUNK, *a = b->a + from;
    lw_operand v = LW_ROWS(b->p, b->length), columns = LW_COLUMNS(a, b->lda),
               t = LW_COLUMNS(b->t, BAND), product = LW_COLUMNS(w, CHUNK),
               turned = LW_COLUMNS(w2, CHUNK), vt = LW_COLUMNS(b->p, b->length);
    memset(w, 0, 2 * sizeof *w * BAND * CHUNK);
    dense->gemm(w, CHUNK, 1, &v, r, &columns, n, b->m, pack);
    dense->gemm(w2, CHUNK, 1, &t, r, &product, n, r, pack);
    dense->gemm(a, b->lda, -1, &vt, b->m, &turned, n, r, pack);
}

/* Some rows: a -= ((a V) T) V^T. */
static void right_task(void *arg, int64_t task, int worker)
{
    const lw_dense *dense = lw_dense_best();
    const block *b = arg;
    int64_t from = task * CHUNK, m = LW_MIN((int64_t)CHUNK, b->m - from), r = b->count;
    double *w = b->memory + (size_t)worker * b->each, *w2 = w + BAND * CHUNK,
           *pack = w2 + BAND * CHUNK, *a = b->a + from * b->lda;
    lw_operand rows = LW_ROWS(a, b->lda), v = LW_ROWS(b->p, b->length), product = LW_ROWS(w, BAND),
               t = LW_COLUMNS(b->t, BAND), turned = LW_ROWS(w2, BAND),
               vt = LW_COLUMNS(b->p, b->length);
    memset(w, 0, 2 * sizeof *w * BAND * CHUNK);
    dense->gemm(w, BAND, 1, &rows, m, &v, r, b->n, pack);
    dense->gemm(w2, BAND, 1, &product, m, &t, r, r, pack);
    dense->gemm(a, b->lda, -1, &turned, m, &vt, b->n, r, pack);
}

static void apply(lw_pool *pool, block *b)
{
    int64_t tasks = LW_CEIL_DIV(b->right ? b->m : b->n, CHUNK);
    if (b->m > 0 && b->n > 0)
        lw_pool_run(pool, tasks, b->right ? right_task : left_task, b);
}

/* Columns k .. k + width - 1 of a [m][n] lose what is below the diagonal. */
static void reduce_columns(lw_pool *pool, block *b, double *a, int64_t m, int64_t n, int64_t k,
                           int64_t width, double *v, double *triangle)
{
    b->length = m - k;
    for (int64_t i = k; i < m; i++)
        for (int64_t j = 0; j < width; j++)
            b->p[j * b->length + i - k] = a[i * n + k + j];
    factor_panel(b, width, v, triangle);
    join_reflections(b);
    for (int64_t i = 0; i < width; i++)
        for (int64_t j = i; j < width; j++)
            a[(k + i) * n + k + j] = triangle[j * BAND + i];
    b->a = a + k * n + k + width;
    b->m = m - k;
    b->n = n - k - width;
    b->right = false;
    apply(pool, b);
}

/* Rows k .. k + width - 1 lose what is right of the band, whose last corner begins at column
 * k + width. */
static void reduce_rows(lw_pool *pool, block *b, double *a, int64_t m, int64_t n, int64_t k,
                        int64_t width, double *v, double *triangle)
{
    b->length = n - k - width;
    for (int64_t i = 0; i < width; i++)
        memcpy(b->p + i * b->length, a + (k + i) * n + k + width, (size_t)b->length * sizeof *b->p);
    factor_panel(b, width, v, triangle);
    join_reflections(b);
    for (int64_t i = 0; i < width; i++)
        for (int64_t j = 0; j <= LW_MIN(i, b->count - 1); j++)
            a[(k + i) * n + k + width + j] = triangle[i * BAND + j];
    b->a = a + (k + width) * n + k + width;
    b->m = m - k - width;
    b->n = b->length;
    b->right = true;
    apply(pool, b);
}

int lw_to_band(lw_pool *pool, double *a, int64_t m, int64_t n)
{
    size_t workers = pool ? (size_t)lw_pool_size(pool) : 1;
    LW_CLEANUP(lw_free) block *b = lw_calloc(1, sizeof *b);
    LW_CLEANUP(lw_free) double *p = lw_calloc((size_t)m * BAND, sizeof *p);
    LW_CLEANUP(lw_free) double *v = lw_calloc((size_t)m, sizeof *v);
    LW_CLEANUP(lw_free) double *triangle = lw_calloc(BAND * BAND, sizeof *triangle);
    size_t each = 2 * BAND * CHUNK + lw_gemm_doubles(m, n);
    LW_CLEANUP(lw_free) double *memory = lw_calloc(workers * each, sizeof *memory);
    if (!b || !p || !v || !triangle || !memory)
        return LW_ENOMEM;
    b->p = p;
    b->lda = n;
    b->memory = memory;
    b->each = each;
    for (int64_t k = 0; k < n; k += BAND) {
        int64_t width = LW_MIN((int64_t)BAND, n - k);
        reduce_columns(pool, b, a, m, n, k, width, v, triangle);
        if (k + width < n)
            reduce_rows(pool, b, a, m, n, k, width, v, triangle);
    }
    return 0;
}

/* ---- the band ---- */

/* Rows of the band with room for what sticks out: (r, c) at x[r pitch + c], c - r from 1 - BAND to
 * 2 BAND - 1. */
typedef struct band {
    const lw_dense *dense;
    double *x;
    int64_t pitch, n;
    double v[BAND];
} band;

/* Takes (row, from + 1 .. from + length - 1) to zero, from the right. */
static void chase_row(band *b, int64_t row, int64_t from, int64_t length)
{
    double *x = b->x + row * b->pitch + from, first;
    double tau = lw_reflection(b->v, x, length, &first);
    memset(x, 0, (size_t)length * sizeof *x);
    x[0] = first;
    b->dense->reflect_right(x + b->pitch, b->pitch, from + length - row - 1, length, b->v, tau);
}

/* Takes (at + 1 .. at + length - 1, at) to zero, from the left. */
static void chase_column(band *b, int64_t at, int64_t length)
{
    double *x = b->x + at * b->pitch + at, column[BAND], first;
    int64_t across = LW_MIN(length - 1 + BAND, b->n - at - 1);
    for (int64_t i = 0; i < length; i++)
        column[i] = x[i * b->pitch];
    double tau = lw_reflection(b->v, column, length, &first);
    for (int64_t i = 0; i < length; i++)
        x[i * b->pitch] = i == 0 ? first : 0;
    b->dense->reflect_left(x + 1, b->pitch, length, across, b->v, tau);
}

int lw_band_to_bidiagonal(const double *a, int64_t n, double *diagonal, double *above)
{
    size_t pitch = 3 * BAND;
    LW_CLEANUP(lw_free) double *rows = lw_calloc(((size_t)n + 1) * pitch, sizeof *rows);
    if (!rows)
        return LW_ENOMEM;
    band b = {.dense = lw_dense_best(), .x = rows + BAND - 1, .pitch = (int64_t)pitch - 1, .n = n};
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = r; c < n && c <= r + BAND; c++)
            b.x[r * b.pitch + c] = a[r * n + c];
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t row = i;
        for (int64_t from = i + 1; from < n; from += BAND) {
            int64_t length = LW_MIN((int64_t)BAND, n - from);
            chase_row(&b, row, from, length);
            chase_column(&b, from, length);
            row = from;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        diagonal[i] = b.x[i * b.pitch + i];
        above[i] = i + 1 < n ? b.x[i * b.pitch + i + 1] : 0;
    }
    return 0;
}
