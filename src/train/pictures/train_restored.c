/* SPDX-License-Identifier: Apache-2.0 */
/* Restored frames beside what filters make of them. */
#include "train/pictures/train_restored.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/eval.h"
#include "report/report.h"

enum { MAX_FRAMES = 32, FITTED = 4, GRID = 6, MAX_CROPS = 8 };

typedef enum filter { INPUT, UNSHARP, WIENER, FILTERS } filter;

/* A filter at its best setting. */
typedef struct setting {
    double sd, amount; /* unsharp */
    int32_t window;    /* Wiener with local statistics; 0: the linear one */
    double noise;
} setting;

struct lw_restored {
    lw_dataset *held;
    lw_clips *clips;
    lw_clip_opts o;
    lw_plane plane;
    int64_t frames;
    int32_t crops, crop_x[MAX_CROPS], crop_y[MAX_CROPS];
    uint8_t *worse; /* [frames] whole */
    setting best;
    lw_wiener wiener;
    double psnr[FILTERS];
    char words[256];
};

/* ---- crops ------------------------------------------------------------------------------------ */

/* As many as lie side by side, in the middle. */
static void place_crops(lw_restored *r)
{
    const int32_t side = r->o.side, across = r->plane.w / side, down = r->plane.h / side;
    for (int32_t i = 0; i < across * down && r->crops < MAX_CROPS; i++) {
        r->crop_x[r->crops] = (r->plane.w - across * side) / 2 + i % across * side;
        r->crop_y[r->crops++] = (r->plane.h - down * side) / 2 + i / across * side;
    }
}

static const uint8_t *pixel(const lw_restored *r, const uint8_t *frame, int32_t crop, int32_t y,
                            int32_t x)
{
    return frame +
           ((size_t)(r->crop_y[crop] + y) * (size_t)r->plane.w + (size_t)(r->crop_x[crop] + x)) * 3;
}

static void take(const lw_restored *r, const uint8_t *frame, int32_t crop, bool mirrored,
                 uint8_t *to)
{
    const int32_t side = r->o.side;
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++, to += 3)
            memcpy(to, pixel(r, frame, crop, y, mirrored ? side - 1 - x : x), 3);
}

static size_t frame_bytes(const lw_restored *r)
{
    return (size_t)lw_data_row_size(r->held);
}

/* Mean over the crops of a frame. */
static double psnr_of_frame(const lw_restored *r, const uint8_t *frame, const uint8_t *clean,
                            uint8_t *a, uint8_t *b)
{
    double sum = 0;
    for (int32_t k = 0; k < r->crops; k++) {
        take(r, frame, k, false, a);
        take(r, clean, k, false, b);
        sum += lw_psnr_u8(a, b, (int64_t)r->o.side * r->o.side * 3);
    }
    return sum / r->crops;
}

/* ---- filters ---------------------------------------------------------------------------------- */

static int apply(const lw_restored *r, filter f, const setting *s, const uint8_t *x, uint8_t *y)
{
    if (f == UNSHARP)
        return lw_unsharp_u8(x, r->plane, s->sd, s->amount, y);
    if (f == WIENER && s->window)
        lw_wiener_local_u8(x, r->plane, s->window, s->noise, y);
    else if (f == WIENER)
        lw_wiener_u8(&r->wiener, x, r->plane, y);
    else
        memcpy(y, x, frame_bytes(r));
    return 0;
}

/* Mean PSNR of n frames under a filter; damaged [n], clean [n]. */
static int score(const lw_restored *r, filter f, const setting *s, int64_t n,
                 const uint8_t *damaged, const uint8_t *const *clean, double *out)
{
    const size_t frame = frame_bytes(r), crop = (size_t)r->o.side * (size_t)r->o.side * 3;
    LW_CLEANUP(lw_free) uint8_t *y = lw_calloc(frame + 2 * crop, 1);
    if (!y)
        return LW_ENOMEM;
    *out = 0;
    for (int64_t i = 0; i < n; i++) {
        LW_TRY(apply(r, f, s, damaged + (size_t)i * frame, y));
        *out += psnr_of_frame(r, y, clean[i], y + frame, y + frame + crop) / (double)n;
    }
    return 0;
}

/* Training frames, spread evenly, and what became of them. */
typedef struct fitted {
    int64_t n;
    uint8_t *damaged;
    const uint8_t *clean[FITTED];
} fitted;

static int try_setting(lw_restored *r, filter f, const setting *s, const fitted *x, double *best)
{
    double psnr;
    LW_TRY(score(r, f, s, x->n, x->damaged, x->clean, &psnr));
    if (psnr <= *best)
        return 0;
    *best = psnr;
    if (f == UNSHARP) {
        r->best.sd = s->sd;
        r->best.amount = s->amount;
    } else {
        r->best.window = s->window;
        r->best.noise = s->noise;
    }
    return 0;
}

static int choose(lw_restored *r, const fitted *x)
{
    static const double sds[] = {0.5, 1, 2}, amounts[] = {0.25, 0.5, 1, 2},
                        noises[] = {4, 16, 64, 256, 1024};
    double best = -1;
    for (size_t i = 0; i < LW_COUNT(sds); i++)
        for (size_t j = 0; j < LW_COUNT(amounts); j++)
            LW_TRY(
                try_setting(r, UNSHARP, &(setting){.sd = sds[i], .amount = amounts[j]}, x, &best));
    best = -1;
    LW_TRY(try_setting(r, WIENER, &(setting){0}, x, &best));
    for (int32_t window = 3; window <= 5; window += 2)
        for (size_t i = 0; i < LW_COUNT(noises); i++)
            LW_TRY(
                try_setting(r, WIENER, &(setting){.window = window, .noise = noises[i]}, x, &best));
    return 0;
}

static int fit(lw_restored *r, const lw_dataset *train, const lw_clips *clips)
{
    const size_t frame = frame_bytes(r);
    fitted x = {.n = LW_MIN(train->n, FITTED)};
    LW_CLEANUP(lw_free) uint8_t *damaged = lw_calloc((size_t)x.n, frame);
    if (!damaged)
        return LW_ENOMEM;
    x.damaged = damaged;
    for (int64_t i = 0; i < x.n; i++) {
        LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
        int64_t row = (2 * i + 1) * train->n / (2 * x.n);
        LW_TRY(lw_clips_frame(clips, row, &im));
        memcpy(damaged + (size_t)i * frame, im.at, frame);
        x.clean[i] = train->pixels + (size_t)row * frame;
        lw_wiener_add(&r->wiener, im.at, x.clean[i], r->plane);
    }
    LW_TRY(lw_wiener_solve(&r->wiener));
    return choose(r, &x);
}

static int score_filters(lw_restored *r)
{
    const uint8_t *clean[MAX_FRAMES];
    int at = 0;
    for (int64_t i = 0; i < r->frames; i++)
        clean[i] = r->held->pixels + (size_t)i * frame_bytes(r);
    for (int f = 0; f < FILTERS; f++)
        LW_TRY(score(r, (filter)f, &r->best, r->frames, r->worse, clean, &r->psnr[f]));
    at += snprintf(r->words, sizeof r->words,
                   "input %.2f dB, unsharp mask %.2f (sd %g, amount %g), Wiener filter %.2f ",
                   r->psnr[INPUT], r->psnr[UNSHARP], r->best.sd, r->best.amount, r->psnr[WIENER]);
    if (r->best.window)
        snprintf(r->words + at, sizeof r->words - (size_t)at, "(local, %dx%d, noise variance %g)",
                 r->best.window, r->best.window, r->best.noise);
    else
        snprintf(r->words + at, sizeof r->words - (size_t)at, "(linear, %dx%d)", LW_WIENER_SIDE,
                 LW_WIENER_SIDE);
    return 0;
}

/* ---- opening ---------------------------------------------------------------------------------- */

static int open_held(lw_restored *r, const lw_dataset *train, const lw_observer *obs)
{
    const lw_data_opts o = {.whole = true,
                            .split = LW_SPLIT_HELDOUT,
                            .channels = train->channels,
                            .on_error = train->on_error,
                            .pool = r->o.pool,
                            .obs = obs};
    LW_TRY(lw_data_open(train->spec, &o, &r->held));
    if (r->held->n == 0)
        return lw_fail(LW_EUSAGE, "data '%s': too short to hold frames out", train->spec);
    r->plane = (lw_plane){r->held->h, r->held->w, 3};
    r->frames = LW_MIN(r->held->n, MAX_FRAMES);
    r->worse = lw_calloc((size_t)r->frames, frame_bytes(r));
    if (!r->worse)
        return LW_ENOMEM;
    LW_TRY(lw_clips_new(r->held, &r->o, &r->clips));
    for (int64_t i = 0; i < r->frames; i++) {
        LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
        LW_TRY(lw_clips_frame(r->clips, i, &im));
        memcpy(r->worse + (size_t)i * frame_bytes(r), im.at, frame_bytes(r));
    }
    return 0;
}

int lw_restored_new(const lw_dataset *train, const lw_clip_opts *o, const lw_observer *obs,
                    lw_restored **out)
{
    LW_CLEANUP(lw_restored_free) lw_restored *r = lw_calloc(1, sizeof *r);
    LW_CLEANUP(lw_clips_free) lw_clips *clips = NULL;
    if (!r)
        return LW_ENOMEM;
    r->o = *o;
    LW_TRY(open_held(r, train, obs));
    place_crops(r);
    LW_TRY(lw_clips_new(train, o, &clips));
    LW_TRY(fit(r, train, clips));
    LW_TRY(score_filters(r));
    *out = lw_steal(&r);
    return 0;
}

void lw_restored_free(lw_restored **pp)
{
    lw_restored *r = *pp;
    if (!r)
        return;
    lw_clips_free(&r->clips);
    lw_data_close(&r->held);
    lw_free(&r->worse);
    lw_free(pp);
}

int32_t lw_restored_crops(const lw_restored *r)
{
    return r->crops;
}

const char *lw_restored_filters(const lw_restored *r)
{
    return r->words;
}

/* ---- the network ------------------------------------------------------------------------------ */

/* Answers so far, of the crops: newest first. */
typedef struct history {
    float *at; /* [previous][crops][side][side][3] */
    size_t one;
} history;

static void push(const lw_restored *r, history *h, const float *y)
{
    if (!r->o.previous)
        return;
    memmove(h->at + h->one, h->at, (size_t)(r->o.previous - 1) * h->one * sizeof *h->at);
    memcpy(h->at, y, h->one * sizeof *y);
}

/* The condition of frame i: its crops, and what was answered before. */
static void put_condition(const lw_restored *r, int64_t i, bool mirrored, const history *h,
                          uint8_t *crop, float *to)
{
    const int32_t side = r->o.side, frame = r->o.frame ? 1 : 0, pitch = 3 * (frame + r->o.previous);
    const int64_t pixels = (int64_t)side * side;
    for (int32_t k = 0; k < r->crops; k++, to += pixels * pitch) {
        take(r, r->worse + (size_t)i * frame_bytes(r), k, mirrored, crop);
        for (int64_t p = 0; p < pixels; p++) {
            if (frame)
                lw_data_from_u8(crop + p * 3, 3, to + p * pitch);
            for (int32_t m = 0; m < r->o.previous; m++)
                memcpy(to + p * pitch + 3 * (frame + m),
                       h->at + (size_t)m * h->one + (size_t)((k * pixels + p) * 3), 3 * sizeof *to);
        }
    }
}

/* Frames 0 .. n - 1 through the network; after each `seen` gets its answers [crops][side][side][3]. */
typedef int answers_fn(void *self, const lw_restored *r, int64_t i, const uint8_t *rgb);
static int stream(lw_restored *r, lw_sampler *s, int64_t n, bool mirrored, const lw_observer *obs,
                  answers_fn *seen, void *self)
{
    const size_t values = (size_t)r->crops * (size_t)r->o.side * (size_t)r->o.side * 3;
    history h = {.one = values};
    LW_CLEANUP(lw_free) float *y = lw_calloc(values * (size_t)(1 + r->o.previous), sizeof *y);
    LW_CLEANUP(lw_free) uint8_t *rgb = lw_calloc(values, 1);
    if (!y || !rgb)
        return LW_ENOMEM;
    h.at = y + values;
    for (int64_t i = 0; i < n; i++) {
        put_condition(r, i, mirrored, &h, rgb, lw_sampler_condition(s));
        LW_TRY(lw_sampler_run(s, i * r->crops, r->crops, NULL, obs, y));
        lw_data_to_u8(y, (int64_t)values, rgb);
        push(r, &h, y);
        LW_TRY(seen(self, r, i, rgb));
        if (lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "measuring stopped after frame %lld", (long long)i);
    }
    return 0;
}

static int add_psnr(void *self, const lw_restored *r, int64_t i, const uint8_t *rgb)
{
    const size_t crop = (size_t)r->o.side * (size_t)r->o.side * 3;
    LW_CLEANUP(lw_free) uint8_t *clean = lw_calloc(crop, 1);
    if (!clean)
        return LW_ENOMEM;
    for (int32_t k = 0; k < r->crops; k++) {
        take(r, r->held->pixels + (size_t)i * frame_bytes(r), k, false, clean);
        *(double *)self += lw_psnr_u8(rgb + (size_t)k * crop, clean, (int64_t)crop) /
                           (double)(r->crops * r->frames);
    }
    return 0;
}

int lw_restored_run(lw_restored *r, lw_sampler *s, const lw_observer *obs, json_t *row)
{
    double psnr = 0, swapped = 0;
    LW_TRY(stream(r, s, r->frames, false, obs, add_psnr, &psnr));
    LW_TRY(stream(r, s, r->frames, true, obs, add_psnr, &swapped));
    json_object_set_new(row, "psnr", lw_json_real(psnr));
    json_object_set_new(row, "psnr_swapped", lw_json_real(swapped));
    json_object_set_new(row, "psnr_input", lw_json_real(r->psnr[INPUT]));
    json_object_set_new(row, "psnr_unsharp", lw_json_real(r->psnr[UNSHARP]));
    json_object_set_new(row, "psnr_wiener", lw_json_real(r->psnr[WIENER]));
    json_object_set_new(
        row, "psnr_best",
        lw_json_real(fmax(r->psnr[INPUT], fmax(r->psnr[UNSHARP], r->psnr[WIENER]))));
    return 0;
}

static int add_line(void *self, const lw_restored *r, int64_t i, const uint8_t *rgb)
{
    const size_t crop = (size_t)r->o.side * (size_t)r->o.side * 3;
    uint8_t *to = (uint8_t *)self + (size_t)i * 3 * crop;
    take(r, r->worse + (size_t)i * frame_bytes(r), 0, false, to);
    memcpy(to + crop, rgb, crop);
    take(r, r->held->pixels + (size_t)i * frame_bytes(r), 0, false, to + 2 * crop);
    return 0;
}

int32_t lw_restored_lines(const lw_restored *r)
{
    return (int32_t)LW_MIN(r->frames, GRID);
}

int lw_restored_grid(lw_restored *r, lw_sampler *s, const lw_observer *obs, lw_image *out)
{
    const int64_t n = lw_restored_lines(r);
    const int32_t side = r->o.side;
    const lw_grid grid = {.columns = 3, .padding = 1, .channels = 3, .scale = side <= 64 ? 2 : 1};
    LW_CLEANUP(lw_free) uint8_t *x = lw_calloc((size_t)n * 3, (size_t)side * (size_t)side * 3);
    if (!x)
        return LW_ENOMEM;
    LW_TRY(stream(r, s, n, false, obs, add_line, x));
    return lw_grid_u8(&grid, x, (int32_t)(3 * n), side, side, out);
}
