/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as a function of the step, and a thread that is a few steps ahead. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "data/data_loader.h"

enum { DEFAULT_SLOTS = 3 };

static size_t image_bytes(const lw_batch *b)
{
    return (size_t)b->size * (size_t)lw_batch_row_size(b) * sizeof *b->images;
}

int lw_batch_init(lw_batch *out, int32_t size, int32_t h, int32_t w, int32_t channels)
{
    LW_CLEANUP(lw_batch_clear) lw_batch b = {.size = size, .h = h, .w = w, .channels = channels};
    size_t n = (size_t)size;
    b.images = lw_bulk_alloc(image_bytes(&b));
    b.labels = lw_calloc(n, sizeof *b.labels);
    b.rows = lw_calloc(n, sizeof *b.rows);
    b.index = lw_calloc(n, sizeof *b.index);
    b.flip = lw_calloc(n, sizeof *b.flip);
    if (!b.images || !b.labels || !b.rows || !b.index || !b.flip)
        return LW_ENOMEM;
    *out = b;
    b = (lw_batch){0};
    return 0;
}

void lw_batch_clear(lw_batch *b)
{
    lw_bulk_free(&b->images, image_bytes(b));
    lw_free(&b->labels);
    lw_free(&b->rows);
    lw_free(&b->index);
    lw_free(&b->flip);
    *b = (lw_batch){0};
}

/* Samples of an epoch: whole batches, or every row when there is less than one batch. */
static int64_t epoch_samples(const lw_dataset *d, const lw_loader_opts *o)
{
    return d->n >= o->batch_size ? d->n / o->batch_size * o->batch_size : d->n;
}

void lw_loader_place(const lw_dataset *d, const lw_loader_opts *o, int64_t g, int64_t *epoch,
                     int64_t *row)
{
    int64_t per_epoch = epoch_samples(d, o);
    lw_rng_key key = lw_rng_key_of(o->seed, lw_hash_name("data.order"));
    *epoch = g / per_epoch;
    *row = g % per_epoch;
    if (o->ordered)
        return;
    *row = (int64_t)lw_rng_permute(key, (uint32_t)*epoch, (uint64_t)d->n,
                                   (uint64_t)(g % per_epoch));
}

/* Picture [n] units of `size` floats, moved by d in place: unit k becomes unit k + d, and where that lies outside
 * its mirror image in the first or last unit. What was kept is moved first, then mirrored about its own edge. */
static void shift_line(float *line, int32_t n, int64_t size, int32_t d)
{
    const int32_t kept = n - abs(d), first = LW_MAX(-d, 0), last = first + kept - 1;
    const size_t bytes = sizeof *line * (size_t)size;
    memmove(line + first * size, line + LW_MAX(d, 0) * size, bytes * (size_t)kept);
    for (int32_t k = 0; k < first; k++)
        memcpy(line + k * size, line + (2 * first - k) * size, bytes);
    for (int32_t k = last + 1; k < n; k++)
        memcpy(line + k * size, line + (2 * last - k) * size, bytes);
}

/* Picture [h][w][c] becomes its own crop at (dy, dx) of a border that mirrors it, its edge not repeated. Black borders
 * would be other pictures than the network is used on: BatchNorm's statistics would be theirs. */
static void shift_picture(float *image, const lw_dataset *d, int32_t dy, int32_t dx)
{
    const int64_t line = (int64_t)d->w * d->channels;
    shift_line(image, d->h, line, dy);
    for (int32_t y = 0; y < d->h; y++)
        shift_line(image + y * line, d->w, d->channels, dx);
}

/* In [-limit, limit] from a random word. */
static int32_t shift_of(uint32_t word, int32_t limit)
{
    return (int32_t)(((uint64_t)word * (uint64_t)(2 * limit + 1)) >> 32) - limit;
}

void lw_loader_fill(const lw_dataset *d, const lw_loader_opts *o, int64_t step, lw_batch *dst)
{
    LW_ASSERT(dst->size == o->batch_size && dst->h == d->h && dst->w == d->w &&
                  dst->channels == d->channels,
              "batch of %d x %dx%dx%d for data of %d x %dx%dx%d", dst->size, dst->h, dst->w,
              dst->channels, o->batch_size, d->h, d->w, d->channels);
    lw_rng_key flips = lw_rng_key_of(o->seed, lw_hash_name("data.flip")),
               shifts = lw_rng_key_of(o->seed, lw_hash_name("data.shift"));
    dst->step = step;
    for (int32_t i = 0; i < dst->size; i++) {
        int64_t g = step * dst->size + i, epoch, row;
        lw_loader_place(d, o, g, &epoch, &row);
        bool flip = o->flip && (lw_rng_word(flips, (uint32_t)epoch, (uint64_t)row, 0) & 1);
        float *image = dst->images + i * lw_data_row_size(d);
        lw_data_get(d, row, flip, image);
        if (o->shift > 0)
            shift_picture(
                image, d,
                shift_of(lw_rng_word(shifts, (uint32_t)epoch, (uint64_t)row, 0), o->shift),
                shift_of(lw_rng_word(shifts, (uint32_t)epoch, (uint64_t)row, 1), o->shift));
        dst->labels[i] = d->labels[row];
        dst->rows[i] = g;
        dst->index[i] = row;
        dst->flip[i] = flip;
    }
}

struct lw_loader {
    const lw_dataset *set;
    lw_loader_opts opts;
    lw_ring *ring;
    lw_batch *slots; /* [opts.slots] */
};

static int fill_slot(void *arg, int slot, int64_t item)
{
    lw_loader *l = arg;
    int64_t step = l->opts.start_step + item;
    if (l->opts.end_step > 0 && step >= l->opts.end_step)
        return 1;
    lw_loader_fill(l->set, &l->opts, step, &l->slots[slot]);
    return 0;
}

int lw_loader_new(const lw_dataset *d, const lw_loader_opts *o, lw_loader **out)
{
    if (o->batch_size < 1 || o->start_step < 0 || o->slots < 0)
        return lw_fail(LW_EUSAGE,
                       "loader of '%s': batch size %d, first step %" PRId64
                       ", %d slots: out of range",
                       d->spec, o->batch_size, o->start_step, o->slots);
    LW_CLEANUP(lw_loader_free) lw_loader *l = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    l->set = d;
    l->opts = *o;
    l->opts.slots = o->slots ? LW_MAX(o->slots, 2) : DEFAULT_SLOTS; /* one is the consumer's */
    l->slots = lw_calloc((size_t)l->opts.slots, sizeof *l->slots);
    if (!l->slots)
        return LW_ENOMEM;
    for (int32_t i = 0; i < l->opts.slots; i++)
        LW_TRY(lw_batch_init(&l->slots[i], o->batch_size, d->h, d->w, d->channels));
    LW_TRY(lw_ring_new(l->opts.slots, fill_slot, l, &l->ring));
    *out = lw_steal(&l);
    return 0;
}

void lw_loader_free(lw_loader **pp)
{
    lw_loader *l = *pp;
    if (!l)
        return;
    lw_ring_free(&l->ring); /* first: its thread writes the slots */
    for (int32_t i = 0; l->slots && i < l->opts.slots; i++)
        lw_batch_clear(&l->slots[i]);
    lw_free(&l->slots);
    lw_free(pp);
}

int lw_loader_next(lw_loader *l, const lw_batch **out)
{
    int slot;
    int rc = lw_ring_next(l->ring, &slot);
    if (rc != 0)
        return rc;
    *out = &l->slots[slot];
    return 0;
}
