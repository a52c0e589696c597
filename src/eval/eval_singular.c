/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sum of singular values: reflections make the matrix a band and that bidiagonal, implicit QR steps
 * make that diagonal (Golub and Van Loan, Matrix Computations, 5.4.8 and 8.6). Errors are of the
 * order of rounding in the largest value: nothing is squared.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "eval/eval_singular.h"

double lw_reflection(double *v, const double *x, int64_t n, double *out)
{
    double scale = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        scale = LW_MAX(scale, fabs(x[i]));
    memset(v, 0, (size_t)n * sizeof *v);
    v[0] = 1;
    *out = x[0];
    if (scale == 0)
        return 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] / scale * (x[i] / scale);
    *out = -copysign(scale * sqrt(sum), x[0]);
    for (int64_t i = 1; i < n; i++)
        v[i] = x[i] / (x[0] - *out);
    return (*out - x[0]) / *out;
}

/* The rotation (c, s) that takes (y, z) to (r, 0). */
static double rotation(double y, double z, double *c, double *s)
{
    double r = sqrt(y * y + z * z);
    *c = r > 0 ? y / r : 1;
    *s = r > 0 ? z / r : 0;
    return r;
}

/* One implicit QR step on places lo..hi with this shift of the squares. */
static void qr_step(double *d, double *e, int64_t lo, int64_t hi, double shift)
{
    double c, s, y = shift == 0 ? d[lo] : d[lo] * d[lo] - shift,
                 z = shift == 0 ? e[lo] : d[lo] * e[lo];
    for (int64_t k = lo; k < hi; k++) {
        double r = rotation(y, z, &c, &s);
        if (k > lo)
            e[k - 1] = r;
        y = c * d[k] + s * e[k];
        e[k] = c * e[k] - s * d[k];
        z = s * d[k + 1];
        d[k + 1] *= c;
        d[k] = rotation(y, z, &c, &s);
        y = c * e[k] + s * d[k + 1];
        d[k + 1] = c * d[k + 1] - s * e[k];
        if (k + 1 < hi) {
            z = s * e[k + 1];
            e[k + 1] *= c;
        }
    }
    e[hi - 1] = y;
}

/* The eigenvalue of the last 2x2 block of B^T B nearest to its last element. */
static double wilkinson_shift(const double *d, const double *e, int64_t lo, int64_t hi)
{
    double before = hi - 1 > lo ? e[hi - 2] : 0;
    double a = d[hi - 1] * d[hi - 1] + before * before, b = d[hi - 1] * e[hi - 1],
           c = d[hi] * d[hi] + e[hi - 1] * e[hi - 1], half = (a - c) / 2;
    double root = copysign(sqrt(half * half + b * b), half);
    return half + root != 0 ? c - b * b / (half + root) : c;
}

/* Makes d [n], e [n - 1] (largest entry 1) diagonal. */
static int diagonalise(double *d, double *e, int64_t n)
{
    const double small = DBL_EPSILON;
    int64_t steps = 0;
    for (int64_t hi = n - 1; hi > 0;) {
        if (fabs(e[hi - 1]) <= small) {
            hi--;
            continue;
        }
        int64_t lo = hi - 1;
        bool singular = fabs(d[hi]) <= small || fabs(d[lo]) <= small;
        for (; lo > 0 && fabs(e[lo - 1]) > small; lo--)
            singular |= fabs(d[lo - 1]) <= small;
        if (++steps > 60 * n)
            return lw_fail(LW_ENUMERIC,
                           "Frechet distance: singular values of a product of rank %lld not found",
                           (long long)n);
        /* A zero goes to the end, and off, in a step without shift. */
        qr_step(d, e, lo, hi, singular ? 0 : wilkinson_shift(d, e, lo, hi));
    }
    return 0;
}

/* [rows][columns] as [columns][rows]. */
static double *transposed(const double *a, int64_t rows, int64_t columns)
{
    double *t = lw_calloc((size_t)rows * (size_t)columns, sizeof *t);
    for (int64_t i = 0; t && i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            t[j * rows + i] = a[i * columns + j];
    return t;
}

int lw_nuclear_norm(lw_pool *pool, double *a, int32_t m, int32_t n, double *out)
{
    *out = 0;
    int64_t rows = LW_MAX(m, n), columns = LW_MIN(m, n);
    if (columns == 0)
        return 0;
    LW_CLEANUP(lw_free) double *turned = m < n ? transposed(a, m, n) : NULL;
    LW_CLEANUP(lw_free) double *d = lw_calloc(2 * (size_t)columns, sizeof *d);
    if ((m < n && !turned) || !d)
        return LW_ENOMEM;
    double *e = d + columns, *full = turned ? turned : a, top = 0, sum = 0;
    LW_TRY(lw_to_band(pool, full, rows, columns));
    LW_TRY(lw_band_to_bidiagonal(full, columns, d, e));
    for (int64_t i = 0; i < columns; i++)
        top = LW_MAX(top, LW_MAX(fabs(d[i]), fabs(e[i])));
    if (top == 0)
        return 0;
    for (int64_t i = 0; i < columns; i++) {
        d[i] /= top;
        e[i] /= top;
    }
    LW_TRY(diagonalise(d, e, columns));
    for (int64_t i = 0; i < columns; i++)
        sum += fabs(d[i]);
    *out = top * sum;
    return 0;
}
