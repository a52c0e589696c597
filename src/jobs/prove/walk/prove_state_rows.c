/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kept states: finding, queueing, making room. Running: prove_state_rows_run.c. */
#include "jobs/prove/walk/prove_state_rows.h"

#include <string.h>

#include "jobs/prove/walk/prove_state_rows_parts.h"

/* ---- making ---------------------------------------------------------------------------------- */

/* Bytes of one slot in all arrays. */
static size_t slot_bytes(const lw_state_rows *r)
{
    return (size_t)r->width * sizeof(float) + (size_t)r->most_atoms * sizeof(lw_atom) +
           sizeof *r->slot + sizeof *r->queue + 2 * sizeof *r->bucket;
}

static int32_t count_slots(const lw_state_rows *r, const lw_state_rows_options *o)
{
    size_t n = LW_MAX(o->cache_bytes / slot_bytes(r), (size_t)o->in_use);
    return (int32_t)LW_MIN(n, (size_t)1 << 28);
}

static int new_table(lw_state_rows *r, const lw_state_rows_options *o)
{
    r->n_slots = count_slots(r, o);
    size_t n = (size_t)r->n_slots, buckets = 1;
    while (buckets < n)
        buckets *= 2;
    r->mask = buckets - 1;
    r->feature_bytes = n * (size_t)r->width * sizeof(float);
    r->atom_bytes = n * (size_t)r->most_atoms * sizeof(lw_atom);
    r->features = lw_bulk_alloc(r->feature_bytes);
    r->atoms = lw_bulk_alloc(r->atom_bytes);
    r->slot = lw_calloc(n, sizeof *r->slot);
    r->queue = lw_calloc(n, sizeof *r->queue);
    r->bucket = lw_calloc(buckets, sizeof *r->bucket);
    if (!r->features || !r->atoms || !r->slot || !r->queue || !r->bucket)
        return lw_fail(LW_ENOMEM, "no memory for the features of %d states (%zu MiB)", r->n_slots,
                       (n * slot_bytes(r)) >> 20);
    r->bytes += r->feature_bytes + r->atom_bytes + n * (sizeof *r->slot + sizeof *r->queue) +
                buckets * sizeof *r->bucket;
    return 0;
}

/* Rows of a part: two parts a worker at least, tiles of 12 rows, a core's caches at most. */
static int32_t part_of(int32_t rows, int workers)
{
    int32_t part = LW_ROUND_UP(LW_CEIL_DIV(rows, 2 * workers), 12);
    return LW_MIN(rows, LW_MIN(part, (int32_t)LW_STATE_PART));
}

int lw_state_rows_new(lw_device *dev, const lw_policy_config *config, lw_store *store,
                      const lw_state_rows_options *o, lw_state_rows **out)
{
    LW_ASSERT(o->rows > 0 && o->in_use > 0, "%d rows, %d slots", o->rows, o->in_use);
    LW_CLEANUP(lw_state_rows_free) lw_state_rows *r = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    r->dev = dev;
    r->config = *config;
    r->rows = o->rows;
    r->part = part_of(o->rows, lw_pool_size(dev->pool));
    r->most_atoms = config->max_atoms;
    r->width = lw_policy_key_width(config);
    r->bytes = sizeof *r;
    LW_TRY(new_table(r, o));
    LW_TRY(lw_state_rows_compile(r, store, (lw_num)o->precision));
    lw_state_rows_forget(r);
    *out = lw_steal(&r);
    return 0;
}

void lw_state_rows_free(lw_state_rows **pp)
{
    lw_state_rows *r = *pp;
    if (!r)
        return;
    for (int i = r->workers; i-- > 0;) {
        lw_exec_free(&r->worker[i].exec);
        lw_exec_free(&r->worker[i].query);
    }
    lw_plan_free(&r->network);
    lw_plan_free(&r->product);
    lw_bulk_free(&r->features, r->feature_bytes);
    lw_bulk_free(&r->atoms, r->atom_bytes);
    lw_free(&r->slot);
    lw_free(&r->queue);
    lw_free(&r->bucket);
    lw_free(pp);
}

void lw_state_rows_forget(lw_state_rows *r)
{
    for (size_t i = 0; i <= r->mask; i++)
        r->bucket[i] = -1;
    memset(r->slot, 0, (size_t)r->n_slots * sizeof *r->slot);
    r->hand = 0;
    r->done = r->queued; /* tickets go on */
}

/* ---- looking up ------------------------------------------------------------------------------ */

void lw_state_rows_prefetch(const lw_state_rows *r, uint64_t hash)
{
    __builtin_prefetch(&r->bucket[hash & r->mask]);
}

static int32_t find(const lw_state_rows *r, const lw_atom *atoms, int32_t n, uint64_t hash)
{
    int32_t i = r->bucket[hash & r->mask];
    for (; i >= 0; i = r->slot[i].next)
        if (r->slot[i].hash == hash && r->slot[i].n == n &&
            memcmp(r->atoms + (ptrdiff_t)i * r->most_atoms, atoms, (size_t)n * sizeof *atoms) == 0)
            break;
    return i;
}

static void unlink_slot(lw_state_rows *r, int32_t i)
{
    int32_t *at = &r->bucket[r->slot[i].hash & r->mask];
    while (*at != i)
        at = &r->slot[*at].next;
    *at = r->slot[i].next;
}

/* A slot that nobody holds. The hand goes round: a state that was found since it last came by gets
 * another round, and a slot that is queued is held. */
static int32_t make_room(lw_state_rows *r)
{
    for (int64_t tries = 2 * (int64_t)r->n_slots; tries > 0; tries--) {
        int32_t i = r->hand++;
        lw_state_slot *s = &r->slot[i];
        if (r->hand == r->n_slots)
            r->hand = 0;
        if (s->held > 0)
            continue;
        if (s->n == 0)
            return i;
        if (!s->again && s->ticket < r->done) {
            unlink_slot(r, i);
            r->counts.evicted++;
            return i;
        }
        s->again = false;
    }
    return -1;
}

static int32_t insert(lw_state_rows *r, const lw_atom *atoms, int32_t n, uint64_t hash)
{
    LW_ASSERT(n > 0 && n <= r->most_atoms, "a state of %d goals, %d at most", n, r->most_atoms);
    int32_t i = make_room(r);
    if (i < 0)
        return -1;
    int32_t *bucket = &r->bucket[hash & r->mask];
    r->slot[i] = (lw_state_slot){.hash = hash, .ticket = r->queued, .next = *bucket, .n = n};
    *bucket = i;
    memcpy(r->atoms + (ptrdiff_t)i * r->most_atoms, atoms, (size_t)n * sizeof *atoms);
    r->queue[r->queued++ % r->n_slots] = i;
    return i;
}

int32_t lw_state_rows_hold(lw_state_rows *r, const lw_atom *atoms, int32_t n, uint64_t hash)
{
    int32_t i = find(r, atoms, n, hash);
    bool hit = i >= 0;
    if (!hit)
        i = insert(r, atoms, n, hash);
    if (i < 0)
        return -1;
    r->counts.wanted++;
    r->counts.hits += hit;
    r->slot[i].again = hit;
    r->slot[i].held++;
    return i;
}

void lw_state_rows_hold_again(lw_state_rows *r, int32_t slot)
{
    r->slot[slot].held++;
}

void lw_state_rows_drop(lw_state_rows *r, int32_t slot)
{
    LW_ASSERT(r->slot[slot].held > 0, "slot %d is not held", slot);
    r->slot[slot].held--;
}

/* ---- looking --------------------------------------------------------------------------------- */

int64_t lw_state_rows_queued(const lw_state_rows *r)
{
    return r->queued - r->done;
}

int64_t lw_state_rows_ticket(const lw_state_rows *r, int32_t slot)
{
    return r->slot[slot].ticket;
}

int64_t lw_state_rows_done(const lw_state_rows *r)
{
    return r->done;
}

const float *lw_state_rows_features(const lw_state_rows *r, int32_t *width)
{
    *width = r->width;
    return r->features;
}

const lw_atom *lw_state_rows_atoms(const lw_state_rows *r, int32_t slot, int32_t *n)
{
    *n = r->slot[slot].n;
    return r->atoms + (ptrdiff_t)slot * r->most_atoms;
}

const lw_state_rows_counts *lw_state_rows_counted(const lw_state_rows *r)
{
    return &r->counts;
}

size_t lw_state_rows_bytes(const lw_state_rows *r)
{
    return r->bytes;
}
