/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of activations and the choice of a scale. */
#include "jobs/quantize/quantize_ranges.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { HALF = LW_RANGE_BINS / 2 };

/* ---- collecting ------------------------------------------------------------------------------ */

/* Twice the width: neighbours share a bin. Zero stays a border, so the halves fold inwards. */
static void fold(lw_ranges *r)
{
    int64_t folded[LW_RANGE_BINS] = {0};
    for (int k = 0; k < LW_RANGE_BINS; k++) {
        int from_zero = k - HALF;
        folded[HALF + (from_zero >= 0 ? from_zero / 2 : (from_zero - 1) / 2)] += r->bin[k];
    }
    memcpy(r->bin, folded, sizeof folded);
    r->width *= 2.0;
}

static void widen(lw_ranges *r, float lo, float hi)
{
    double most = fmax(fabs((double)lo), fabs((double)hi));
    if (r->width == 0.0 && most > 0.0) /* room to double before the first fold */
        r->width = exp2(ceil(log2(most))) * 2.0 / HALF;
    while (r->width > 0.0 && most >= r->width * (HALF - 1))
        fold(r);
    r->lo = fminf(r->lo, lo);
    r->hi = fmaxf(r->hi, hi);
}

/* Neighbours often fall into one bin: in turn, they need not wait for each other's count. */
enum { LANES = 4, PART = 1 << 30 };

typedef struct counts {
    uint32_t bin[LANES][LW_RANGE_BINS + 1]; /* the last: values that are not finite */
} counts;

/* Bin of x; the width is a power of two, so that the product is exact. */
static inline int bin_of(float x, double inverse)
{
    double v = (double)x * inverse;
    if (!(fabs(v) < HALF))
        return LW_RANGE_BINS;
    int k = (int)v;
    return HALF + k - (v < k);
}

static void count(counts *c, const float *x, int64_t n, double inverse)
{
    int64_t i = 0;
    memset(c, 0, sizeof *c);
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            c->bin[lane][bin_of(x[i + lane], inverse)]++;
    for (; i < n; i++)
        c->bin[0][bin_of(x[i], inverse)]++;
}

static inline void reach(float x, float *lo, float *hi)
{
    float v = fabsf(x) <= FLT_MAX ? x : 0.0f;
    *lo = v < *lo ? v : *lo;
    *hi = v > *hi ? v : *hi;
}

/* Of the finite ones, and 0. */
static void find_ends(const float *x, int64_t n, float *lo, float *hi)
{
    float least[LANES] = {0}, most[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            reach(x[i + lane], &least[lane], &most[lane]);
    for (; i < n; i++)
        reach(x[i], &least[0], &most[0]);
    for (int lane = 0; lane < LANES; lane++) {
        *lo = fminf(*lo, least[lane]);
        *hi = fmaxf(*hi, most[lane]);
    }
}

void lw_ranges_add(lw_ranges *r, const float *x, int64_t n)
{
    float lo = 0.0f, hi = 0.0f;
    counts c;
    find_ends(x, n, &lo, &hi);
    widen(r, lo, hi);
    double inverse = r->width > 0.0 ? 1.0 / r->width : 0.0;
    for (int64_t at = 0; at < n; at += PART) {
        int64_t all = LW_MIN(n - at, (int64_t)PART);
        count(&c, x + at, all, inverse);
        for (int lane = 0; lane < LANES; lane++) {
            for (int k = 0; k < LW_RANGE_BINS; k++)
                r->bin[k] += c.bin[lane][k];
            all -= c.bin[lane][LW_RANGE_BINS];
            r->not_finite += c.bin[lane][LW_RANGE_BINS];
        }
        r->n += all;
    }
}

/* ---- choosing -------------------------------------------------------------------------------- */

static double centre(const lw_ranges *r, int k)
{
    return ((double)(k - HALF) + 0.5) * r->width;
}

/* Mean squared error of u8 over [lo, hi]: rounding inside, clipping outside. */
static double clip_error(const lw_ranges *r, double lo, double hi)
{
    double step = (hi - lo) / 255.0, sum = 0.0;
    for (int k = 0; k < LW_RANGE_BINS; k++) {
        double c = centre(r, k), out = c < lo ? lo - c : c > hi ? c - hi : 0.0;
        sum += (double)r->bin[k] * (step * step / 12.0 + out * out);
    }
    return r->n ? sum / (double)r->n : 0.0;
}

/* Shrinks one end at a time to where the error is least. */
static void least_error(const lw_ranges *r, double *lo, double *hi)
{
    enum { TRIES = 64, ROUNDS = 2 };
    for (int round = 0; round < ROUNDS; round++)
        for (int end = 0; end < 2; end++) {
            double full = end ? *lo : *hi, best = full, least = clip_error(r, *lo, *hi);
            for (int k = 1; k < TRIES; k++) {
                double at = full * k / TRIES,
                       e = end ? clip_error(r, at, *hi) : clip_error(r, *lo, at);
                if (e < least && (end ? *hi > at : at > *lo)) {
                    least = e;
                    best = at;
                }
            }
            *(end ? lo : hi) = best;
        }
}

/* The value with this share of all below it (or above, from the top). */
static double percentile(const lw_ranges *r, double share, bool top)
{
    double limit = share * (double)r->n, seen = 0.0;
    for (int i = 0; i < LW_RANGE_BINS; i++) {
        int k = top ? LW_RANGE_BINS - 1 - i : i;
        seen += (double)r->bin[k];
        if (seen > limit)
            return centre(r, k) + (top ? 0.5 : -0.5) * r->width;
    }
    return 0.0;
}

void lw_ranges_choose(const lw_ranges *r, lw_range_rule rule, double share, lw_edge_seen *out)
{
    double lo = (double)r->lo, hi = (double)r->hi, square = 0.0;
    if (rule == LW_RANGE_PERCENTILE) {
        lo = fmin(fmax(percentile(r, share, false), lo), 0.0);
        hi = fmax(fmin(percentile(r, share, true), hi), 0.0);
    } else if (rule == LW_RANGE_MSE) {
        least_error(r, &lo, &hi);
    }
    if (!(hi - lo > 1e-30)) /* nothing but zeros: any scale says so */
        hi = lo + 1.0;
    for (int k = 0; k < LW_RANGE_BINS; k++)
        square += (double)r->bin[k] * centre(r, k) * centre(r, k);
    out->lo = r->lo;
    out->hi = r->hi;
    out->scale = (float)((hi - lo) / 255.0);
    out->zero = (int32_t)fmin(fmax(nearbyint(-lo / ((hi - lo) / 255.0)), 0.0), 255.0);
    out->error = square > 0.0 ? sqrt(clip_error(r, lo, hi) * (double)r->n / square) : 0.0;
}
