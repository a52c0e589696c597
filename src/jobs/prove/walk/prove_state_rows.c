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
           sizeof(lw_state_slot) + sizeof(float) + 3 * sizeof(int32_t);
}

static int32_t count_slots(const lw_state_rows *r, const lw_state_rows_options *o)
{
    size_t n = LW_MAX(o->cache_bytes / slot_bytes(r), (size_t)o->in_use);
    return (int32_t)LW_MIN(n, (size_t)1 << 28);
}

static void free_table(lw_state_table *t)
{
    lw_bulk_free(&t->features, t->feature_bytes);
    lw_bulk_free(&t->atoms, t->atom_bytes);
    lw_free(&t->values);
    lw_free(&t->slot);
    lw_free(&t->queue);
    lw_free(&t->bucket);
}

/* Without links between slots: lw_state_rows_forget, or place. */
static int new_table(const lw_state_rows *r, int64_t n_slots, lw_state_table *t)
{
    size_t n = (size_t)n_slots, buckets = 1;
    while (buckets < n)
        buckets *= 2;
    *t = (lw_state_table){.n_slots = (int32_t)n_slots, .mask = buckets - 1};
    t->feature_bytes = n * (size_t)r->width * sizeof(float);
    t->atom_bytes = n * (size_t)r->most_atoms * sizeof(lw_atom);
    t->bytes = t->feature_bytes + t->atom_bytes +
               n * (sizeof *t->slot + sizeof *t->values + sizeof *t->queue) +
               buckets * sizeof *t->bucket;
    if (n_slots <= 1 << 30) {
        t->features = lw_bulk_alloc(t->feature_bytes);
        t->atoms = lw_bulk_alloc(t->atom_bytes);
        t->values = lw_calloc(n, sizeof *t->values);
        t->slot = lw_calloc(n, sizeof *t->slot);
        t->queue = lw_calloc(n, sizeof *t->queue);
        t->bucket = lw_calloc(buckets, sizeof *t->bucket);
    }
    if (t->features && t->atoms && t->values && t->slot && t->queue && t->bucket)
        return 0;
    free_table(t);
    return lw_fail(LW_ENOMEM, "no memory for the features of %lld states (%zu MiB)",
                   (long long)n_slots, t->bytes >> 20);
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
    r->training = o->training;
    r->sees_query = lw_policy_sees_query(config);
    r->dots = dev->kernels->reduce.dots;
    LW_TRY(new_table(r, count_slots(r, o), &r->table));
    LW_TRY(lw_state_rows_compile(r, store, o));
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
        lw_free(&r->worker[i].logit);
    }
    lw_plan_free(&r->network);
    lw_plan_free(&r->product);
    free_table(&r->table);
    lw_free(pp);
}

void lw_state_rows_forget(lw_state_rows *r)
{
    lw_state_table *t = &r->table;
    memset(t->bucket, 0xff, (t->mask + 1) * sizeof *t->bucket);
    memset(t->slot, 0, (size_t)t->n_slots * sizeof *t->slot);
    r->hand = 0;
    r->done = r->queued; /* tickets go on */
}

/* ---- looking up ------------------------------------------------------------------------------ */

void lw_state_rows_prefetch(const lw_state_rows *r, uint64_t hash)
{
    __builtin_prefetch(&r->table.bucket[hash & r->table.mask]);
}

static lw_atom *atoms_of(const lw_state_rows *r, int32_t slot)
{
    return r->table.atoms + (ptrdiff_t)slot * r->most_atoms;
}

/* What is looked up: goals, and of the query what the network sees in them. */
typedef struct lw_state_key {
    const lw_atom *atoms;
    int32_t n, query[2];
    uint64_t hash;
} lw_state_key;

/* Only arguments that occur: all other queries share the row. */
static lw_state_key key_of(const lw_state_rows *r, const lw_atom *atoms, int32_t n, uint64_t hash,
                           lw_atom query)
{
    lw_state_key k = {.atoms = atoms, .n = n, .hash = hash};
    for (int32_t i = 0; r->sees_query && i < n; i++)
        for (int side = 0; side < 2; side++)
            if (atoms[i].arg[0] == query.arg[side] || atoms[i].arg[1] == query.arg[side])
                k.query[side] = query.arg[side];
    return k;
}

static int32_t *bucket_of(const lw_state_table *t, uint64_t hash, const int32_t query[2])
{
    uint64_t seen = (uint64_t)(uint32_t)query[0] << 32 | (uint32_t)query[1];
    return &t->bucket[(hash ^ (seen * 0x9e3779b97f4a7c15u >> 20)) & t->mask];
}

static int32_t find(const lw_state_rows *r, const lw_state_key *k)
{
    const lw_state_table *t = &r->table;
    const lw_atom *atoms = k->atoms;
    int32_t i = *bucket_of(t, k->hash, k->query), n = k->n;
    for (; i >= 0; i = t->slot[i].next)
        if (t->slot[i].hash == k->hash && t->slot[i].n == n && t->slot[i].query[0] == k->query[0] &&
            t->slot[i].query[1] == k->query[1] &&
            memcmp(atoms_of(r, i), atoms, (size_t)n * sizeof *atoms) == 0)
            break;
    return i;
}

static void link_slot(lw_state_table *t, int32_t i)
{
    int32_t *bucket = bucket_of(t, t->slot[i].hash, t->slot[i].query);
    t->slot[i].next = *bucket;
    *bucket = i;
}

static void unlink_slot(lw_state_table *t, int32_t i)
{
    int32_t *at = bucket_of(t, t->slot[i].hash, t->slot[i].query);
    while (*at != i)
        at = &t->slot[*at].next;
    *at = t->slot[i].next;
}

/* A slot that nobody holds. The hand goes round: a state that was found since it last came by gets
 * another round, and a slot that is queued is held. */
static int32_t make_room(lw_state_rows *r)
{
    lw_state_table *t = &r->table;
    for (int64_t tries = 2 * (int64_t)t->n_slots; tries > 0; tries--) {
        int32_t i = r->hand < t->n_slots ? r->hand : 0;
        lw_state_slot *s = &t->slot[i];
        r->hand = i + 1;
        if (s->held > 0)
            continue;
        if (s->n == 0)
            return i;
        if (!s->again && s->ticket < r->done) {
            unlink_slot(t, i);
            r->counts.evicted++;
            return i;
        }
        s->again = false;
    }
    return -1;
}

static int32_t insert(lw_state_rows *r, const lw_state_key *k)
{
    int32_t n = k->n;
    LW_ASSERT(n > 0 && n <= r->most_atoms, "a state of %d goals, %d at most", n, r->most_atoms);
    lw_state_table *t = &r->table;
    int32_t i = make_room(r);
    if (i < 0)
        return -1;
    t->slot[i] = (lw_state_slot){
        .hash = k->hash, .ticket = r->queued, .n = n, .query = {k->query[0], k->query[1]}};
    link_slot(t, i);
    memcpy(atoms_of(r, i), k->atoms, (size_t)n * sizeof *k->atoms);
    t->queue[r->queued++ % t->n_slots] = i;
    return i;
}

int32_t lw_state_rows_hold(lw_state_rows *r, const lw_atom *atoms, int32_t n, uint64_t hash,
                           lw_atom query)
{
    const lw_state_key key = key_of(r, atoms, n, hash, query);
    int32_t i = find(r, &key);
    bool hit = i >= 0;
    if (!hit)
        i = insert(r, &key);
    if (i < 0)
        return -1;
    r->counts.wanted++;
    r->counts.hits += hit;
    r->table.slot[i].again = hit;
    r->table.slot[i].held++;
    return i;
}

int lw_state_rows_grow(lw_state_rows *r)
{
    lw_state_table old = r->table, *t = &r->table, more;
    const size_t n = (size_t)old.n_slots;
    LW_TRY(new_table(r, 2 * (int64_t)old.n_slots, &more));
    *t = more;
    memcpy(t->features, old.features, old.feature_bytes);
    memcpy(t->atoms, old.atoms, old.atom_bytes);
    memcpy(t->values, old.values, n * sizeof *t->values);
    memcpy(t->slot, old.slot, n * sizeof *t->slot);
    memset(t->bucket, 0xff, (t->mask + 1) * sizeof *t->bucket);
    for (int32_t i = 0; i < old.n_slots; i++)
        if (t->slot[i].n > 0)
            link_slot(t, i);
    for (int64_t k = r->done; k < r->queued; k++)
        t->queue[k % t->n_slots] = old.queue[k % old.n_slots];
    r->hand = old.n_slots;
    free_table(&old);
    return 0;
}

void lw_state_rows_hold_again(lw_state_rows *r, int32_t slot)
{
    r->table.slot[slot].held++;
}

void lw_state_rows_drop(lw_state_rows *r, int32_t slot)
{
    LW_ASSERT(r->table.slot[slot].held > 0, "slot %d is not held", slot);
    r->table.slot[slot].held--;
}

/* ---- looking --------------------------------------------------------------------------------- */

int64_t lw_state_rows_queued(const lw_state_rows *r)
{
    return r->queued - r->done;
}

int64_t lw_state_rows_ticket(const lw_state_rows *r, int32_t slot)
{
    return r->table.slot[slot].ticket;
}

int64_t lw_state_rows_done(const lw_state_rows *r)
{
    return r->done;
}

const float *lw_state_rows_values(const lw_state_rows *r)
{
    return r->table.values;
}

const lw_atom *lw_state_rows_atoms(const lw_state_rows *r, int32_t slot, int32_t *n, uint64_t *hash)
{
    *n = r->table.slot[slot].n;
    *hash = r->table.slot[slot].hash;
    return atoms_of(r, slot);
}

const lw_state_rows_counts *lw_state_rows_counted(const lw_state_rows *r)
{
    return &r->counts;
}

size_t lw_state_rows_bytes(const lw_state_rows *r)
{
    return r->bytes + r->table.bytes;
}
