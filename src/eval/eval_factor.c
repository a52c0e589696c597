/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky with complete pivoting, in blocks (Higham, Accuracy and Stability, 10.3; Hammarling,
 * Higham and Lucas 2007): P^T C P = U^T U, each next row that of the largest diagonal left. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "eval/eval_dense.h"

enum { BLOCK = 64 };

typedef struct factoring {
    double *c;      /* [d][d]: rows of U above, the upper triangle of what is left below */
    double *left;   /* [d] diagonal of what is left */
    double *row;    /* [d] */
    int32_t *order; /* [d] feature in place i */
    int64_t d;
} factoring;

static void factoring_clear(factoring *f)
{
    lw_free(&f->left);
    lw_free(&f->row);
    lw_free(&f->order);
}

static void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

/* Places j < p change, in rows of U and in the upper triangle of what is left. */
static void change_places(factoring *f, int64_t j, int64_t p)
{
    int64_t d = f->d;
    double *c = f->c;
    int32_t feature = f->order[j];
    f->order[j] = f->order[p];
    f->order[p] = feature;
    swap(&f->left[j], &f->left[p]);
    swap(&c[j * d + j], &c[p * d + p]);
    for (int64_t t = 0; t < j; t++)
        swap(&c[t * d + j], &c[t * d + p]);
    for (int64_t k = j + 1; k < p; k++)
        swap(&c[j * d + k], &c[k * d + p]);
    for (int64_t k = p + 1; k < d; k++)
        swap(&c[j * d + k], &c[p * d + k]);
}

/* Row j of U from what is left, whose rows j0.. lack the block's earlier rows. */
static void next_row(factoring *f, const lw_dense *dense, int64_t j0, int64_t j)
{
    int64_t d = f->d, n = d - j - 1;
    double *u = f->c + j * d;
    for (int64_t t = j0; t < j; t++)
        dense->more(u + j + 1, -f->c[t * d + j], f->c + t * d + j + 1, n);
    u[j] = sqrt(f->left[j]);
    for (int64_t k = j + 1; k < d; k++) {
        u[k] /= u[j];
        f->left[k] -= u[k] * u[k];
    }
}

/* What is left from place `from` on, less the block's `done` rows; its diagonal too. */
static int subtract_block(lw_pool *pool, factoring *f, int64_t from, int64_t done)
{
    int64_t d = f->d, left = d - from;
    lw_operand u = LW_COLUMNS(f->c + (from - done) * d + from, d);
    LW_TRY(lw_gemm(pool, f->c + from * d + from, d, -1, u, left, u, left, done, true));
    for (int64_t i = from; i < d; i++)
        f->left[i] = f->c[i * d + i];
    return 0;
}

/* What is left must be zero but for rounding: an indefinite matrix leaves more. */
static int check_rest(const factoring *f, int64_t from, double top)
{
    for (int64_t i = from; i < f->d; i++)
        for (int64_t k = i; k < f->d; k++)
            if (fabs(f->c[i * f->d + k]) > 1e-6 * top)
                return lw_fail(LW_ENUMERIC,
                               "Frechet distance: a covariance is not positive semidefinite "
                               "(features %d and %d leave %g of %g)",
                               f->order[i], f->order[k], f->c[i * f->d + k], top);
    return 0;
}

/* Rows of U back in the order of features. */
static void restore_order(factoring *f, int64_t rank)
{
    for (int64_t t = 0; t < rank; t++) {
        double *u = f->c + t * f->d;
        memset(f->row, 0, (size_t)f->d * sizeof *f->row);
        for (int64_t k = t; k < f->d; k++)
            f->row[f->order[k]] = u[k];
        memcpy(u, f->row, (size_t)f->d * sizeof *u);
    }
}

int lw_factor(lw_pool *pool, double *c, int32_t d, int32_t *rank)
{
    const lw_dense *dense = lw_dense_best();
    size_t n = (size_t)d;
    LW_CLEANUP(factoring_clear) factoring f = {.c = c, .d = d};
    f.left = lw_calloc(n, sizeof *f.left);
    f.row = lw_calloc(n, sizeof *f.row);
    f.order = lw_calloc(n, sizeof *f.order);
    if (!f.left || !f.row || !f.order)
        return LW_ENOMEM;
    double top = 0;
    for (int32_t i = 0; i < d; i++) {
        f.order[i] = i;
        f.left[i] = c[(size_t)i * n + (size_t)i];
        top = LW_MAX(top, fabs(f.left[i]));
    }
    int64_t j = 0, j0 = 0;
    for (; j < d; j++) {
        if (j - j0 == BLOCK) {
            LW_TRY(subtract_block(pool, &f, j, BLOCK));
            j0 = j;
        }
        int64_t p = j;
        for (int64_t k = j + 1; k < d; k++)
            p = f.left[k] > f.left[p] ? k : p;
        if (f.left[p] <= (double)d * DBL_EPSILON * top)
            break;
        if (p != j)
            change_places(&f, j, p);
        next_row(&f, dense, j0, j);
    }
    LW_TRY(subtract_block(pool, &f, j, j - j0));
    LW_TRY(check_rest(&f, j, top));
    restore_order(&f, j);
    *rank = (int32_t)j;
    return 0;
}
