/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of real rows: rings, warm-up, refill, backfill, draws. */
#include "data/data_queue.h"

#include <string.h>

#include "base/base.h"

typedef struct ring {
    int64_t *row; /* [capacity] */
    int32_t next, count;
} ring;

struct lw_queue {
    const lw_dataset *set;
    lw_class_opts o;
    lw_queue_opts q;
    lw_class_sampler *sampler;
    int32_t classes;
    int64_t *rows; /* of all rings */
    ring *of;      /* [classes] */
    ring all;
    int64_t *filled;  /* [classes] rows that backfilling and warm-up took of each */
    int64_t pushed;   /* rows of the passes so far */
    uint32_t *order;  /* of a shuffled pass (lw_rng_order_fill) */
    int64_t pass;     /* that it is of; -1: none */
    int64_t step;     /* drawn last, -1: none */
    int32_t *at_hand; /* [groups] classes of a step */
    lw_queue_counts now, total;
};

static lw_rng_key stream(const lw_queue *q, const char *name, int64_t number)
{
    return lw_rng_key_of(q->o.seed, lw_hash_name(name) + (uint64_t)number);
}

static void put(ring *r, int32_t capacity, int64_t row)
{
    r->row[r->next] = row;
    r->next = (r->next + 1) % capacity;
    r->count = LW_MIN(r->count + 1, capacity);
}

/* A row, mirrored by a word of its number in the order of pushes. */
static void push_row(lw_queue *q, int64_t row, int64_t number, const char *flips)
{
    bool mirrored = q->q.flip &&
                    (lw_rng_word(stream(q, flips, 0), 0, (uint64_t)number, 0) & 1u) != 0;
    int64_t entry = row + (mirrored ? q->set->n : 0);
    put(&q->of[q->o.ignore_labels ? 0 : q->set->labels[row]], q->q.per_class, entry);
    put(&q->all, q->q.global, entry);
}

static int64_t next_row(lw_queue *q)
{
    const int64_t n = q->set->n, pass = q->pushed / n, at = q->pushed % n;
    if (q->q.ordered)
        return at;
    if (q->pass != pass)
        lw_rng_order_fill(q->order, stream(q, "queue.rows", 0), (uint32_t)pass, (uint64_t)n);
    q->pass = pass;
    return (int64_t)lw_rng_order_at(q->order, (uint64_t)n, (uint64_t)at);
}

/* The next rows of the shuffled pass over the data. */
static void push_next(lw_queue *q, int64_t n)
{
    for (int64_t i = 0; i < n; i++, q->pushed++)
        push_row(q, next_row(q), q->pushed, "queue.flip");
}

/* Rows of one class, in a shuffled order of their own. */
static void push_of(lw_queue *q, int32_t c, int64_t n)
{
    int64_t size;
    const int64_t *rows = lw_class_sampler_rows(q->sampler, c, &size);
    for (int64_t i = 0; i < n; i++, q->filled[c]++)
        push_row(q,
                 rows[lw_rng_permute(stream(q, "queue.fill", c), (uint32_t)(q->filled[c] / size),
                                     (uint64_t)size, (uint64_t)(q->filled[c] % size))],
                 (int64_t)c << 40 | q->filled[c], "queue.fill_flip");
}

static int32_t needed(const lw_queue *q)
{
    return q->q.strict ? q->o.positives : 1;
}

static void begin(lw_queue *q)
{
    for (int32_t c = 0; c < q->classes; c++)
        q->of[c].next = q->of[c].count = 0;
    memset(q->filled, 0, (size_t)q->classes * sizeof *q->filled);
    q->all.next = q->all.count = 0;
    q->pushed = 0;
    q->step = -1;
    q->now = q->total = (lw_queue_counts){0, 0};
    int32_t each = LW_MAX(q->q.min_per_class, (q->q.prime + q->classes - 1) / q->classes);
    for (int32_t c = 0; q->q.warmup == LW_QUEUE_BALANCED && c < q->classes; c++) {
        int64_t size;
        lw_class_sampler_rows(q->sampler, c, &size);
        if (size > 0)
            push_of(q, c, each);
    }
    if (q->q.warmup == LW_QUEUE_RANDOM)
        push_next(q, q->q.prime);
    int32_t least = q->q.strict ? q->o.unconditional : LW_MIN(q->o.unconditional, 1);
    push_next(q, LW_MAX(least - q->all.count, 0));
}

/* One step: refill, classes, backfill. */
static void advance(lw_queue *q, int64_t step)
{
    int64_t every = q->q.refill == LW_QUEUE_EVERY_N ? q->q.refill_every : 1;
    if (step % every == 0)
        push_next(q, q->q.push);
    lw_class_sampler_draw(q->sampler, step, q->at_hand, NULL, NULL);
    q->now = (lw_queue_counts){0, 0};
    for (int32_t g = 0; g < q->o.groups; g++) {
        int32_t c = q->at_hand[g], lacks = needed(q) - q->of[c].count;
        if (lacks <= 0)
            continue;
        push_of(q, c, lacks);
        q->now.missing_labels++;
        q->now.backfilled_samples++;
    }
    q->total.missing_labels += q->now.missing_labels;
    q->total.backfilled_samples += q->now.backfilled_samples;
    q->step = step;
}

/* n rows of a ring: each once while there are enough, else drawn again and again. */
static void draw(const ring *r, lw_rng_key key, int64_t step, int32_t n, int64_t *to)
{
    uint32_t count = (uint32_t)r->count;
    for (int32_t i = 0; i < n; i++)
        to[i] = r->row[n <= r->count ? lw_rng_permute(key, (uint32_t)step, count, (uint64_t)i)
                                     : lw_rng_below(key, (uint32_t)step, (uint64_t)i, 0, count)];
}

int lw_queue_draw(lw_queue *q, int64_t step, int32_t *classes, int64_t *positives,
                  int64_t *unconditional)
{
    const lw_class_opts *o = &q->o;
    if (step < q->step)
        begin(q);
    while (q->step < step)
        advance(q, q->step + 1);
    for (int32_t g = 0; g < o->groups; g++) {
        classes[g] = q->at_hand[g];
        draw(&q->of[classes[g]], stream(q, "queue.positives", g), step, o->positives,
             positives + (int64_t)g * o->positives);
        if (o->unconditional)
            draw(&q->all, stream(q, "queue.unconditional", g), step, o->unconditional,
                 unconditional + (int64_t)g * o->unconditional);
    }
    return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int check_class(const lw_queue *q, int32_t c, int32_t least, const char *option)
{
    int64_t size;
    lw_class_sampler_rows(q->sampler, c, &size);
    if (size >= least || size == 0) /* classes without rows are never drawn */
        return 0;
    return lw_fail(LW_EUSAGE, "%s: class '%s' of '%s' has too few rows: %lld, and %d are needed",
                   option, q->set->class_names[c], q->set->spec, (long long)size, (int)least);
}

static int check(const lw_queue *q)
{
    bool strict = q->q.strict;
    if (strict && (q->q.per_class < q->o.positives || q->q.global < q->o.unconditional))
        return lw_fail(LW_EUSAGE,
                       "--queue-strict-without-replacement: rings of %d and %d rows cannot give %d "
                       "and %d different ones; raise --queue-per-class-capacity or "
                       "--queue-global-capacity",
                       (int)q->q.per_class, (int)q->q.global, (int)q->o.positives,
                       (int)q->o.unconditional);
    if (q->q.warmup == LW_QUEUE_BALANCED && q->q.min_per_class > q->q.per_class)
        return lw_fail(LW_EUSAGE, "--queue-warmup-min-per-class %d: a ring holds %d",
                       (int)q->q.min_per_class, (int)q->q.per_class);
    for (int32_t c = 0; c < q->classes; c++) {
        if (strict)
            LW_TRY(check_class(q, c, q->o.positives, "--queue-strict-without-replacement"));
        if (q->q.warmup == LW_QUEUE_BALANCED)
            LW_TRY(check_class(q, c, q->q.min_per_class, "--queue-warmup-min-per-class"));
    }
    return 0;
}

size_t lw_queue_bytes(const lw_queue *q)
{
    return ((size_t)q->classes * (size_t)q->q.per_class + (size_t)q->q.global) * sizeof *q->rows;
}

int lw_queue_new(const lw_dataset *d, const lw_class_opts *o, const lw_queue_opts *opts,
                 lw_queue **out)
{
    LW_CLEANUP(lw_queue_free) lw_queue *q = lw_calloc(1, sizeof *q);
    if (!q)
        return LW_ENOMEM;
    q->set = d;
    q->o = *o;
    q->q = *opts;
    q->classes = o->ignore_labels ? 1 : d->classes;
    LW_TRY(lw_class_sampler_new(d, o, &q->sampler));
    LW_TRY(check(q));
    q->pass = -1;
    q->order = lw_calloc(lw_rng_order_words((uint64_t)d->n),
                         sizeof *q->order); /* 40 KiB of a million rows */
    q->rows = lw_calloc(lw_queue_bytes(q), 1);
    q->of = lw_calloc((size_t)q->classes, sizeof *q->of);
    q->filled = lw_calloc((size_t)q->classes, sizeof *q->filled);
    q->at_hand = lw_calloc((size_t)o->groups, sizeof *q->at_hand);
    if (!q->order || !q->rows || !q->of || !q->filled || !q->at_hand)
        return LW_ENOMEM;
    for (int32_t c = 0; c < q->classes; c++)
        q->of[c].row = q->rows + (int64_t)c * opts->per_class;
    q->all.row = q->rows + (int64_t)q->classes * opts->per_class;
    begin(q);
    *out = lw_steal(&q);
    return 0;
}

void lw_queue_free(lw_queue **pp)
{
    if (!*pp)
        return;
    lw_class_sampler_free(&(*pp)->sampler);
    lw_free(&(*pp)->order);
    lw_free(&(*pp)->rows);
    lw_free(&(*pp)->of);
    lw_free(&(*pp)->filled);
    lw_free(&(*pp)->at_hand);
    lw_free(pp);
}

lw_queue_counts lw_queue_step_counts(const lw_queue *q)
{
    return q->now;
}

lw_queue_counts lw_queue_totals(const lw_queue *q)
{
    return q->total;
}

int64_t lw_queue_held(const lw_queue *q)
{
    return q->all.count;
}

int64_t lw_queue_pushed(const lw_queue *q)
{
    int64_t n = q->pushed;
    for (int32_t c = 0; c < q->classes; c++)
        n += q->filled[c];
    return n;
}

int32_t lw_queue_rings(const lw_queue *q)
{
    return q->classes;
}

int32_t lw_queue_held_of(const lw_queue *q, int32_t c)
{
    return q->of[c].count;
}

int32_t lw_queue_covered(const lw_queue *q)
{
    int32_t n = 0;
    for (int32_t c = 0; c < q->classes; c++)
        n += q->of[c].count > 0;
    return n;
}
