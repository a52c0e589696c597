/* SPDX-License-Identifier: Apache-2.0 */
/* Crops of clips: clean, made worse, and what was before. */
#include "data/data_clips.h"

#include <string.h>

#include "data/data_loader.h"
#include "kernels/kernels.h"

struct lw_clips {
    const lw_dataset *d;
    lw_clip_opts o;
    lw_degradation before, behind; /* steps up to the first noise, which are kept, and the others */
    lw_kernels kernels;
    size_t frame;   /* bytes */
    uint8_t *worse; /* [d->n][frame] */
    /* the filling going on */
    int64_t first;
    float *clean, *condition;
    int *rc; /* [tasks] */
    size_t tasks;
};

/* Everything of a sample. */
typedef struct sample {
    int64_t g, row;
    int32_t x, y;
    bool flip;
} sample;

/* ---- frames made worse ------------------------------------------------------------------------ */

static int copy_frame(const lw_clips *c, const uint8_t *src, lw_raster *out)
{
    LW_TRY(lw_raster_init(out, c->d->h, c->d->w, 3));
    memcpy(out->at, src, c->frame);
    return 0;
}

static int make_worse(lw_clips *c, int64_t i)
{
    LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
    LW_TRY(copy_frame(c, c->d->pixels + (size_t)i * c->frame, &im));
    LW_TRY(lw_degrade(&c->before, c->o.seed, i, &im));
    memcpy(c->worse + (size_t)i * c->frame, im.at, c->frame);
    return 0;
}

static void worse_task(void *arg, int64_t i, int worker)
{
    lw_clips *c = arg;
    (void)worker;
    c->rc[i] = make_worse(c, i);
}

static int grow_tasks(lw_clips *c, int64_t n)
{
    return lw_grow(&c->rc, &c->tasks, (size_t)n, sizeof *c->rc);
}

static int worst(const lw_clips *c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (c->rc[i] < 0)
            return lw_fail(c->rc[i], "data '%s': a frame could not be made worse", c->d->spec);
    return 0;
}

static void run(lw_clips *c, int64_t n, lw_pool_fn *task)
{
    if (c->o.pool)
        lw_pool_run(c->o.pool, n, task, c);
    for (int64_t i = 0; i < n && !c->o.pool; i++)
        task(c, i, 0);
}

static void split_at_noise(lw_clips *c)
{
    const lw_degradation *d = &c->o.degradation;
    int32_t at = 0;
    while (at < d->n && d->step[at].kind != LW_DEGRADE_NOISE)
        at++;
    c->before = c->behind = *d;
    c->before.n = at;
    c->behind.n = d->n - at;
    memmove(c->behind.step, c->behind.step + at, (size_t)(d->n - at) * sizeof c->behind.step[0]);
}

static int make_all_worse(lw_clips *c)
{
    c->worse = lw_bulk_alloc((size_t)c->d->n * c->frame);
    if (!c->worse)
        return LW_ENOMEM;
    LW_TRY(grow_tasks(c, c->d->n));
    run(c, c->d->n, worse_task);
    return worst(c, c->d->n);
}

int lw_clips_new(const lw_dataset *d, const lw_clip_opts *o, lw_clips **out)
{
    LW_CLEANUP(lw_clips_free) lw_clips *c = lw_calloc(1, sizeof *c);
    if (!c)
        return LW_ENOMEM;
    if (d->channels != 3)
        return lw_fail(LW_EUSAGE, "data '%s': --condition wants frames of RGB, not %d channels",
                       d->spec, d->channels);
    if (LW_MIN(d->h, d->w) < o->side)
        return lw_fail(LW_EUSAGE, "data '%s': frames of %dx%d hold no crop of %dx%d (--image-size)",
                       d->spec, d->w, d->h, o->side, o->side);
    c->d = d;
    c->o = *o;
    c->frame = (size_t)lw_data_row_size(d);
    split_at_noise(c);
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    lw_kernels_init(&c->kernels, isa);
    if (o->frame || o->previous > 0)
        LW_TRY(make_all_worse(c));
    *out = lw_steal(&c);
    return 0;
}

void lw_clips_free(lw_clips **pp)
{
    lw_clips *c = *pp;
    if (!c)
        return;
    if (c->worse)
        lw_bulk_free(&c->worse, (size_t)c->d->n * c->frame);
    lw_free(&c->rc);
    lw_free(pp);
}

static int frame_for(const lw_clips *c, int64_t row, int64_t noise, lw_raster *out)
{
    LW_TRY(copy_frame(c, c->worse + (size_t)row * c->frame, out));
    return lw_degrade(&c->behind, c->o.seed, noise, out);
}

int lw_clips_frame(const lw_clips *c, int64_t i, lw_raster *out)
{
    return frame_for(c, i, lw_data_row_number(c->d, i), out);
}

/* ---- samples ---------------------------------------------------------------------------------- */

static sample sample_of(const lw_clips *c, int64_t g)
{
    const lw_loader_opts o = {.batch_size = c->o.batch, .seed = c->o.seed};
    const lw_rng_key crop = lw_rng_key_of(c->o.seed, lw_hash_name("clip.crop")),
                     flip = lw_rng_key_of(c->o.seed, lw_hash_name("clip.flip"));
    int64_t epoch;
    sample s = {.g = g};
    lw_loader_place(c->d, &o, g, &epoch, &s.row);
    s.y = (int32_t)lw_rng_below(crop, 0, (uint64_t)g, 0, (uint32_t)(c->d->h - c->o.side + 1));
    s.x = (int32_t)lw_rng_below(crop, 0, (uint64_t)g, 1, (uint32_t)(c->d->w - c->o.side + 1));
    s.flip = c->o.flip && (lw_rng_word(flip, 0, (uint64_t)g, 0) & 1u);
    return s;
}

/* The sample's part of a frame, mirrored where it is: to [side][side][3]. */
static void crop(const lw_clips *c, const sample *s, const uint8_t *frame, uint8_t *to)
{
    const int32_t side = c->o.side;
    for (int32_t y = 0; y < side; y++) {
        const uint8_t *line = frame + ((size_t)(s->y + y) * (size_t)c->d->w + (size_t)s->x) * 3;
        for (int32_t x = 0; x < side; x++)
            memcpy(to + ((size_t)y * (size_t)side + (size_t)x) * 3,
                   line + (s->flip ? side - 1 - x : x) * 3, 3);
    }
}

/* Bytes as three of `pitch` channels, with `noise` (NULL: none) of `sd` levels. */
static void spread(const uint8_t *rgb, const float *noise, double sd, int64_t pixels, int32_t pitch,
                   float *to)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int k = 0; k < 3; k++) {
            double v = rgb[i * 3 + k] + (noise ? sd * (double)noise[i * 3 + k] : 0);
            to[i * pitch + k] = (float)(v / 127.5 - 1);
        }
}

/* Answer number k before the sample's frame: what a network could have made of it. */
static void previous(const lw_clips *c, const sample *s, int32_t k, uint8_t *rgb, float *noise,
                     float *to)
{
    const int32_t side = c->o.side, pitch = 3 * ((c->o.frame ? 1 : 0) + c->o.previous);
    const int64_t pixels = (int64_t)side * side, row = s->g;
    const lw_rng_key drawn = lw_rng_key_of(c->o.seed, lw_hash_name("clip.history")),
                     key = lw_rng_key_of(c->o.seed, lw_hash_name("clip.noise"));
    double blur = c->o.blur * lw_rng_uniform(drawn, 1, (uint64_t)row, (uint64_t)k),
           sd = c->o.noise * lw_rng_uniform(drawn, 2, (uint64_t)row, (uint64_t)k);
    if (s->row <= k || lw_rng_uniform(drawn, 0, (uint64_t)row, 0) < c->o.drop) {
        for (int64_t i = 0; i < pixels; i++)
            to[i * pitch] = to[i * pitch + 1] = to[i * pitch + 2] = 0.0f;
        return;
    }
    crop(c, s, c->d->pixels + (size_t)(s->row - k - 1) * c->frame, rgb);
    if (blur > 0.01)
        lw_blur_u8(rgb, (uint8_t *)noise, side, side, 3, (float)blur);
    if (sd > 0)
        c->kernels.random.normal(noise, pixels * 3, &row, key, (uint32_t)k, pixels * 3, 0,
                                 lw_random_blocks(pixels * 3));
    spread(rgb, sd > 0 ? noise : NULL, sd, pixels, pitch, to);
}

static int fill(const lw_clips *c, int64_t i)
{
    const sample s = sample_of(c, c->first + i);
    const int32_t side = c->o.side, pitch = 3 * ((c->o.frame ? 1 : 0) + c->o.previous);
    const int64_t pixels = (int64_t)side * side;
    float *condition = pitch ? c->condition + i * pixels * pitch : NULL;
    LW_CLEANUP(lw_raster_clear) lw_raster worse = {0};
    LW_CLEANUP(lw_free) uint8_t *rgb = lw_calloc((size_t)pixels, 3);
    LW_CLEANUP(lw_free) float *noise = lw_calloc((size_t)pixels, 3 * sizeof *noise);
    if (!rgb || !noise)
        return LW_ENOMEM;
    crop(c, &s, c->d->pixels + (size_t)s.row * c->frame, rgb);
    spread(rgb, NULL, 0, pixels, 3, c->clean + i * pixels * 3);
    if (c->o.frame) {
        if (c->behind.n)
            LW_TRY(frame_for(c, s.row, s.g, &worse));
        crop(c, &s, c->behind.n ? worse.at : c->worse + (size_t)s.row * c->frame, rgb);
        spread(rgb, NULL, 0, pixels, pitch, condition);
    }
    for (int32_t k = 0; k < c->o.previous; k++)
        previous(c, &s, k, rgb, noise, condition + 3 * ((c->o.frame ? 1 : 0) + k));
    return 0;
}

static void fill_task(void *arg, int64_t i, int worker)
{
    lw_clips *c = arg;
    (void)worker;
    c->rc[i] = fill(c, i);
}

int lw_clips_fill(lw_clips *c, int64_t first, int64_t n, float *clean, float *condition)
{
    LW_TRY(grow_tasks(c, n));
    c->first = first;
    c->clean = clean;
    c->condition = condition;
    run(c, n, fill_task);
    return worst(c, n);
}
