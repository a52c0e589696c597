/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eigenvalues and eigenvectors of a symmetric matrix: Householder reflections make it tridiagonal,
 * implicit QR steps make that diagonal (Golub and Van Loan, Matrix Computations, 8.3). Errors are of
 * the order of rounding in the largest value.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "eval/eval_singular.h"

/* a less what the reflection I - tau v v^T on places from..n-1 takes on both sides; p [n] is lost. */
static void reflect(double *a, int64_t n, int64_t from, const double *v, double tau, double *p)
{
    const lw_dense *dense = lw_dense_best();
    int64_t m = n - from;
    double along = 0;
    for (int64_t i = 0; i < m; i++)
        p[i] = 0;
    for (int64_t i = 0; i < m; i++)
        dense->more(p, tau * v[i], a + (from + i) * n + from, m);
    for (int64_t i = 0; i < m; i++)
        along += p[i] * v[i];
    dense->more(p, -tau * along / 2, v, m);
    for (int64_t i = 0; i < m; i++) {
        double *row = a + (from + i) * n + from;
        dense->more(row, -v[i], p, m);
        dense->more(row, -p[i], v, m);
    }
}

/* a [n][n] to diagonal d and subdiagonal e; its rows become those of Q^T: Q T Q^T was a. */
static void tridiagonal(double *a, int64_t n, double *d, double *e, double *scratch)
{
    const lw_dense *dense = lw_dense_best();
    double *tau = scratch, *p = scratch + n;
    for (int64_t k = 0; k + 1 < n; k++) {
        double *v = a + k * n + k + 1; /* the row is the column */
        tau[k] = lw_reflection(p, v, n - k - 1, &e[k]);
        memcpy(v, p, (size_t)(n - k - 1) * sizeof *v);
        reflect(a, n, k + 1, v, tau[k], p);
    }
    for (int64_t k = 0; k < n; k++)
        d[k] = a[k * n + k];
    /* Q^T = H(n-2) .. H(0): rows of the identity, the last reflection last; what is right of the
     * diagonal in row k is v until its turn, which comes from below. */
    for (int64_t k = n - 1; k >= 0; k--) {
        double *v = p; /* of the reflection that mixes places k.. */
        double t = k > 0 ? tau[k - 1] : 0;
        if (k > 0)
            memcpy(v, a + (k - 1) * n + k, (size_t)(n - k) * sizeof *v);
        memset(a + k * n, 0, (size_t)n * sizeof *a);
        a[k * n + k] = 1;
        for (int64_t i = k + 1; i < n; i++)
            a[i * n + k] = 0;
        for (int64_t i = k; k > 0 && i < n; i++) { /* rows of Q^T: Q^T H, places k.. */
            double *row = a + i * n + k, along = 0;
            for (int64_t j = 0; j < n - k; j++)
                along += row[j] * v[j];
            dense->more(row, -t * along, v, n - k);
        }
    }
}

/* Rows x and y [n] turned by (c, s). */
static void turn(double *x, double *y, double c, double s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double xi = x[i], yi = y[i];
        x[i] = c * xi + s * yi;
        y[i] = c * yi - s * xi;
    }
}

/* One implicit QR step on places lo..hi. */
static void qr_step(double *d, double *e, double *rows, int64_t n, int64_t lo, int64_t hi)
{
    double half = (d[hi - 1] - d[hi]) / 2, b = e[hi - 1];
    double shift = d[hi] - b * b / (half + copysign(sqrt(half * half + b * b), half));
    double x = d[lo] - shift, z = e[lo];
    for (int64_t k = lo; k < hi; k++) {
        double r = sqrt(x * x + z * z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
        if (k > lo)
            e[k - 1] = r;
        double dk = d[k], dn = d[k + 1], ek = e[k];
        d[k] = c * c * dk + 2 * c * s * ek + s * s * dn;
        d[k + 1] = s * s * dk - 2 * c * s * ek + c * c * dn;
        e[k] = c * s * (dn - dk) + (c * c - s * s) * ek;
        x = e[k];
        if (k + 1 < hi) {
            z = s * e[k + 1];
            e[k + 1] *= c;
        }
        turn(rows + k * n, rows + (k + 1) * n, c, s, n);
    }
}

static int diagonalise(double *d, double *e, double *rows, int64_t n)
{
    double top = 0;
    for (int64_t i = 0; i < n; i++)
        top = LW_MAX(top, LW_MAX(fabs(d[i]), i + 1 < n ? fabs(e[i]) : 0));
    int64_t steps = 0;
    for (int64_t hi = n - 1; hi > 0;) {
        if (fabs(e[hi - 1]) <= DBL_EPSILON * top) {
            hi--;
            continue;
        }
        int64_t lo = hi - 1;
        while (lo > 0 && fabs(e[lo - 1]) > DBL_EPSILON * top)
            lo--;
        if (++steps > 60 * n)
            return lw_fail(LW_ENUMERIC, "eigenvalues of a matrix of %lld rows not found",
                           (long long)n);
        qr_step(d, e, rows, n, lo, hi);
    }
    return 0;
}

int lw_eigen(double *a, int32_t n, double *values)
{
    LW_CLEANUP(lw_free) double *scratch = lw_calloc(3u * (size_t)n, sizeof *scratch);
    if (!scratch)
        return LW_ENOMEM;
    for (int64_t i = 0; i < (int64_t)n * n; i++)
        if (!isfinite(a[i]))
            return lw_fail(LW_ENUMERIC, "eigenvalues of a matrix that is not finite at row %lld",
                           (long long)(i / n));
    tridiagonal(a, n, values, scratch, scratch + n);
    return diagonalise(values, scratch, a, n);
}
