/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of each frame of a series, from sums of whole numbers. */
#include "eval/eval_series.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"

const char *const lw_series_names[LW_SERIES_NUMBERS] = {"variance",   "temporal", "colour",
                                                        "repetition", "detail",   "spread"};

struct lw_frame_series {
    ptrdiff_t w, h, n; /* n: values of a frame */
    int64_t frames;
    uint8_t *kept[LW_SERIES_WINDOW]; /* frame t in t mod 10 */
    double norm[LW_SERIES_WINDOW];   /* of them, centred */
    uint16_t *sum;                   /* of each value within the window */
    uint32_t *squares;
    double first[3]; /* mean bytes of frame 0 */
};

void lw_frame_series_free(lw_frame_series **pp)
{
    lw_frame_series *s = *pp;
    if (!s)
        return;
    for (int i = 0; i < LW_SERIES_WINDOW; i++)
        lw_free(&s->kept[i]);
    lw_free(&s->sum);
    lw_free(&s->squares);
    lw_free(pp);
}

int lw_frame_series_new(int32_t w, int32_t h, lw_frame_series **out)
{
    LW_CLEANUP(lw_frame_series_free) lw_frame_series *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->w = w;
    s->h = h;
    s->n = (ptrdiff_t)w * h * 3;
    bool whole = true;
    for (int i = 0; i < LW_SERIES_WINDOW; i++)
        whole = (s->kept[i] = lw_calloc((size_t)s->n, 1)) && whole;
    s->sum = lw_calloc((size_t)s->n, sizeof *s->sum);
    s->squares = lw_calloc((size_t)s->n, sizeof *s->squares);
    if (!whole || !s->sum || !s->squares)
        return LW_ENOMEM;
    *out = lw_steal(&s);
    return 0;
}

/* Sums and sums of squares of each channel. */
static void channel_sums(const lw_frame_series *s, const uint8_t *rgb, int64_t sum[3],
                         int64_t squares[3])
{
    memset(sum, 0, 3 * sizeof *sum);
    memset(squares, 0, 3 * sizeof *squares);
    for (ptrdiff_t i = 0; i < s->n; i += 3)
        for (int c = 0; c < 3; c++) {
            sum[c] += rgb[i + c];
            squares[c] += rgb[i + c] * rgb[i + c];
        }
}

static double variance_of(int64_t sum, int64_t squares, double n)
{
    const double mean = (double)sum / n;
    return fmax(((double)squares / n - mean * mean) / (127.5 * 127.5), 0);
}

/* Of each value within the window, this frame in it: the one that leaves is still in its place. */
static double temporal(lw_frame_series *s, const uint8_t *rgb)
{
    const uint8_t *old = s->kept[s->frames % LW_SERIES_WINDOW]; /* zeros at the start */
    const int64_t k = LW_MIN(s->frames + 1, LW_SERIES_WINDOW);
    int64_t all = 0;
    for (ptrdiff_t i = 0; i < s->n; i++) {
        const int32_t sum = s->sum[i] + rgb[i] - old[i];
        const uint32_t squares = s->squares[i] + (uint32_t)(rgb[i] * rgb[i] - old[i] * old[i]);
        s->sum[i] = (uint16_t)sum;
        s->squares[i] = squares;
        all += k * squares - (int64_t)sum * sum;
    }
    return (double)all / ((double)(k * k) * (double)s->n * 127.5 * 127.5);
}

/* Of 2 byte - 255, which is 255 v. */
static double product(const uint8_t *a, const uint8_t *b, ptrdiff_t n)
{
    int64_t all = 0;
    for (ptrdiff_t from = 0; from < n; from += 16384) { /* 255^2 of them fit 32 bits */
        const ptrdiff_t to = LW_MIN(from + 16384, n);
        int32_t part = 0;
        for (ptrdiff_t i = from; i < to; i++)
            part += (2 * a[i] - 255) * (2 * b[i] - 255);
        all += part;
    }
    return (double)all;
}

static double repetition(const lw_frame_series *s, const uint8_t *rgb, double norm)
{
    double most = -1;
    const int64_t before = LW_MIN(s->frames, LW_SERIES_BEFORE);
    for (int64_t k = 1; k <= before; k++) {
        const int at = (int)((s->frames - k) % LW_SERIES_WINDOW);
        most = fmax(most, product(rgb, s->kept[at], s->n) / (norm * s->norm[at]));
    }
    return before ? most : 0;
}

static double detail(const lw_frame_series *s, const uint8_t *rgb)
{
    const ptrdiff_t line = s->w * 3;
    int64_t across = 0, down = 0;
    for (ptrdiff_t y = 0; y < s->h; y++) {
        const uint8_t *p = rgb + y * line;
        for (ptrdiff_t i = 0; i < line - 3; i++)
            across += p[i] > p[i + 3] ? p[i] - p[i + 3] : p[i + 3] - p[i];
        for (ptrdiff_t i = 0; i < line && y < s->h - 1; i++)
            down += p[i] > p[i + line] ? p[i] - p[i + line] : p[i + line] - p[i];
    }
    const double n_across = (double)((s->w - 1) * s->h * 3), n_down = (double)((s->h - 1) * line);
    return ((n_across > 0 ? (double)across / n_across : 0) +
            (n_down > 0 ? (double)down / n_down : 0)) /
           2 / 127.5;
}

void lw_frame_series_add(lw_frame_series *s, const uint8_t *rgb, lw_frame_numbers *out)
{
    const int at = (int)(s->frames % LW_SERIES_WINDOW);
    const double pixels = (double)(s->w * s->h);
    int64_t sum[3], squares[3];
    double drift = 0, spread = 0;
    channel_sums(s, rgb, sum, squares);
    for (int c = 0; c < 3; c++) {
        const double mean = (double)sum[c] / pixels;
        if (s->frames == 0)
            s->first[c] = mean;
        drift += (mean - s->first[c]) * (mean - s->first[c]);
        spread += sqrt(variance_of(sum[c], squares[c], pixels)) / 3;
    }
    const double norm = sqrt(product(rgb, rgb, s->n)); /* never 0: 2 byte - 255 is odd */
    out->v[LW_SERIES_VARIANCE] = variance_of(sum[0] + sum[1] + sum[2],
                                             squares[0] + squares[1] + squares[2], (double)s->n);
    out->v[LW_SERIES_TEMPORAL] = temporal(s, rgb);
    out->v[LW_SERIES_COLOUR] = sqrt(drift) / 127.5;
    out->v[LW_SERIES_REPETITION] = repetition(s, rgb, norm);
    out->v[LW_SERIES_DETAIL] = detail(s, rgb);
    out->v[LW_SERIES_SPREAD] = spread;
    memcpy(s->kept[at], rgb, (size_t)s->n);
    s->norm[at] = norm;
    s->frames++;
}

/* Mean variance of the first and last tenth; what rounding to bytes hides counts as that much. */
static void ends(const lw_frame_numbers *frames, int64_t n, double *first, double *last)
{
    const double least = 1.0 / (12 * 127.5 * 127.5);
    const int64_t tenth = (n + 9) / 10;
    *first = *last = 0;
    for (int64_t i = 0; i < tenth; i++) {
        *first += frames[i].v[LW_SERIES_VARIANCE] / (double)tenth;
        *last += frames[n - 1 - i].v[LW_SERIES_VARIANCE] / (double)tenth;
    }
    *first = fmax(*first, least);
    *last = fmax(*last, least);
}

lw_series_verdict lw_series_judge(const lw_frame_numbers *frames, int64_t n,
                                  const lw_frame_numbers *in, int64_t n_in)
{
    double first, last, in_first, in_last;
    ends(frames, n, &first, &last);
    ends(in, n_in, &in_first, &in_last);
    lw_series_verdict v = {.ratio = last / first,
                           .input_ratio = in_last / in_first,
                           .deviation = sqrt(last),
                           .input_deviation = sqrt(in_last)};
    v.change = v.ratio / v.input_ratio;
    v.least = fmin(LW_SERIES_DEVIATION, sqrt(LW_SERIES_RATIO) * v.input_deviation);
    v.stable = v.change > LW_SERIES_RATIO && v.change < 1 / LW_SERIES_RATIO &&
               v.deviation > v.least;
    return v;
}
