/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and the weights they give an axis. */
#include "kernels/resample/resample_axis.h"

#include <math.h>
#include <string.h>

/* ---- filters: value at a distance ------------------------------------------------------------ */

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double triangle(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming(double x)
{
    x = fabs(x);
    if (x == 0.0)
        return 1.0;
    if (x >= 1.0)
        return 0.0;
    x *= M_PI;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x)); /* Pillow's constants are float */
}

/* Keys' cubic convolution. The order of operations is Pillow's. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

static double bicubic(double x)
{
    return cubic(x, -0.5);
}

static double sinc(double x)
{
    x *= M_PI;
    return x == 0.0 ? 1.0 : sin(x) / x;
}

static double lanczos(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

static const struct {
    double (*at)(double x);
    double support;
} filters[LW_FILTERS] = {
    [LW_FILTER_BOX] = {box, 0.5},         [LW_FILTER_BILINEAR] = {triangle, 1.0},
    [LW_FILTER_HAMMING] = {hamming, 1.0}, [LW_FILTER_BICUBIC] = {bicubic, 2.0},
    [LW_FILTER_LANCZOS] = {lanczos, 3.0},
};

/* ---- one output: its first input, how many, their weights ------------------------------------ */

typedef struct window {
    ptrdiff_t first, count;
    double *weight;
} window;

/* Inputs an output: the scale, inverted. */
static double stride_of(const lw_resample_axis_spec *s)
{
    return s->scale > 0.0 ? 1.0 / s->scale : (double)s->from / (double)s->to;
}

static void antialiased(window *w, const lw_resample_axis_spec *s, ptrdiff_t o)
{
    double (*filter)(double) = filters[s->filter].at;
    double scale = stride_of(s), wide = scale < 1.0 ? 1.0 : scale;
    double support = filters[s->filter].support * wide, narrow = 1.0 / wide, sum = 0.0;
    double centre = ((double)o + 0.5) * scale;
    ptrdiff_t first = (ptrdiff_t)(centre - support + 0.5);
    ptrdiff_t end = (ptrdiff_t)(centre + support + 0.5);
    w->first = LW_MAX(first, 0);
    w->count = LW_MIN(end, s->from) - w->first;
    for (ptrdiff_t j = 0; j < w->count; j++) {
        w->weight[j] = filter(((double)(j + w->first) - centre + 0.5) * narrow);
        sum += w->weight[j];
    }
    for (ptrdiff_t j = 0; j < w->count && sum != 0.0; j++)
        w->weight[j] /= sum;
}

/* Taps `reach` before and behind a coordinate; those beyond the border fall on the border. */
static void interpolated(window *w, double at, ptrdiff_t from, ptrdiff_t reach,
                         double (*filter)(double x, double a))
{
    ptrdiff_t below = (ptrdiff_t)floor(at), lo = below + 1 - reach, hi = below + reach;
    w->first = LW_MIN(LW_MAX(lo, 0), from - 1);
    w->count = LW_MIN(LW_MAX(hi, 0), from - 1) - w->first + 1;
    memset(w->weight, 0, (size_t)w->count * sizeof *w->weight);
    for (ptrdiff_t i = lo; i <= hi; i++)
        w->weight[LW_MIN(LW_MAX(i, 0), from - 1) - w->first] += filter((double)i - at, -0.75);
}

static double linear(double x, double a)
{
    (void)a;
    return triangle(x);
}

static void as_torch(window *w, const lw_resample_axis_spec *s, ptrdiff_t o)
{
    float stride = s->scale > 0.0 ? (float)(1.0 / s->scale) : (float)s->from / (float)s->to;
    float at = stride * ((float)o + 0.5f) - 0.5f;
    if (s->filter == LW_FILTER_BICUBIC)
        interpolated(w, (double)at, s->from, 2, cubic);
    else
        interpolated(w, at < 0.0f ? 0.0 : (double)at, s->from, 1, linear);
}

static void as_tf_inception(window *w, const lw_resample_axis_spec *s, ptrdiff_t o)
{
    double at = (double)o * stride_of(s);
    interpolated(w, LW_MIN(at, (double)(s->from - 1)), s->from, 1, linear);
}

/* ---- the axis -------------------------------------------------------------------------------- */

/* The most inputs an output can have. */
static ptrdiff_t most_taps(const lw_resample_axis_spec *s)
{
    ptrdiff_t most = 4;
    if (s->form != LW_RESAMPLE_TORCH && s->form != LW_RESAMPLE_TF_INCEPTION) {
        double scale = stride_of(s);
        most = (ptrdiff_t)ceil(filters[s->filter].support * (scale < 1.0 ? 1.0 : scale)) * 2 + 1;
    }
    return LW_MIN(most, s->from);
}

static void put(lw_resample_axis *a, ptrdiff_t o, const window *w)
{
    a->start[o] = (int32_t)w->first;
    a->count[o] = (int32_t)w->count;
    for (ptrdiff_t j = 0; j < w->count; j++) {
        double x = w->weight[j];
        if (a->fixed)
            a->fixed[o * a->taps + j] =
                (int32_t)((x < 0 ? -0.5 : 0.5) + x * (1 << LW_RESAMPLE_BITS));
        else
            a->weight[o * a->taps + j] = (float)x;
    }
}

static int allocate_windows(lw_resample_axis *a)
{
    a->start = lw_calloc((size_t)a->n, sizeof *a->start);
    a->count = lw_calloc((size_t)a->n, sizeof *a->count);
    return a->start && a->count ? 0 : LW_ENOMEM;
}

static int allocate_weights(lw_resample_axis *a, bool fixed)
{
    size_t weights;
    if (!lw_mul_size((size_t)a->n, (size_t)a->taps, &weights))
        weights = SIZE_MAX;
    if (fixed)
        a->fixed = lw_calloc(weights, sizeof *a->fixed);
    else
        a->weight = lw_calloc(weights, sizeof *a->weight);
    return a->fixed || a->weight ? 0 : LW_ENOMEM;
}

static int fill(lw_resample_axis *a, const lw_resample_axis_spec *s)
{
    LW_CLEANUP(lw_free) double *weight = lw_calloc((size_t)a->taps, sizeof *weight);
    if (!weight)
        return LW_ENOMEM;
    window w = {.weight = weight};
    for (ptrdiff_t o = 0; o < a->n; o++) {
        if (s->form == LW_RESAMPLE_TORCH)
            as_torch(&w, s, s->at + o);
        else if (s->form == LW_RESAMPLE_TF_INCEPTION)
            as_tf_inception(&w, s, s->at + o);
        else
            antialiased(&w, s, s->at + o);
        put(a, o, &w);
    }
    a->first = a->start[0];
    a->span = a->start[a->n - 1] + a->count[a->n - 1] - a->first;
    for (ptrdiff_t o = 0; o < a->n; o++)
        a->start[o] -= (int32_t)a->first;
    return 0;
}

static int take(lw_resample_axis *a, lw_resample_axis *made, int rc)
{
    if (rc < 0)
        lw_resample_axis_clear(made);
    else
        *a = *made;
    return rc;
}

int lw_resample_axis_init(lw_resample_axis *a, const lw_resample_axis_spec *s)
{
    if (!lw_resample_has(s->form, s->filter))
        return lw_fail(LW_EUNSUPPORTED, "resize '%s' has no filter '%s': use %s",
                       lw_resample_form_name[s->form], lw_filter_name[s->filter],
                       s->form == LW_RESAMPLE_TORCH ? "bilinear or bicubic" : "bilinear");
    bool scaled = s->scale > 0.0 && s->form == LW_RESAMPLE_TORCH && s->filter == LW_FILTER_BICUBIC;
    ptrdiff_t n = s->n ? s->n : s->to;
    lw_resample_axis made = {
        .n = n, .first = s->at, .span = n, .copy = s->from == s->to && !scaled};
    if (made.copy)
        return take(a, &made, 0);
    made.taps = most_taps(s);
    int rc = allocate_windows(&made);
    rc = rc < 0 ? rc : allocate_weights(&made, lw_resample_is_u8(s->form));
    return take(a, &made, rc < 0 ? rc : fill(&made, s));
}

static int fill_transpose(lw_resample_axis *t, const lw_resample_axis *a)
{
    LW_TRY(allocate_windows(t));
    t->taps = 1;
    for (ptrdiff_t o = 0; o < a->n; o++)
        for (ptrdiff_t j = 0; j < a->count[o]; j++) {
            ptrdiff_t i = a->first + a->start[o] + j;
            if (t->count[i]++ == 0)
                t->start[i] = (int32_t)o;
            t->taps = LW_MAX(t->taps, t->count[i]);
        }
    LW_TRY(allocate_weights(t, false));
    for (ptrdiff_t o = 0; o < a->n; o++)
        for (ptrdiff_t j = 0; j < a->count[o]; j++) {
            ptrdiff_t i = a->first + a->start[o] + j;
            t->weight[i * t->taps + o - t->start[i]] = a->weight[o * a->taps + j];
        }
    return 0;
}

int lw_resample_axis_transpose(lw_resample_axis *t, const lw_resample_axis *a, ptrdiff_t from)
{
    LW_ASSERT(!a->fixed, "the transpose of fixed weights");
    lw_resample_axis made = {.n = from, .span = a->n, .copy = a->copy};
    return take(t, &made, made.copy ? 0 : fill_transpose(&made, a));
}

void lw_resample_axis_clear(lw_resample_axis *a)
{
    lw_free(&a->start);
    lw_free(&a->count);
    lw_free(&a->fixed);
    lw_free(&a->weight);
}
