/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks by an embedding alone: among all entities a block of queries against the table, among drawn
 * ones triple by triple; then counting. */
#include "jobs/prove/kge/prove_kge_parts.h"

#include "session/session_device.h"
#include "kernels/kernels.h"

int32_t lw_kge_block(const lw_kge_config *c)
{
    int64_t fit = ((int64_t)64 << 20) / ((int64_t)sizeof(float) * c->entities);
    return (int32_t)LW_MAX(LW_MIN(fit, 256), 1);
}

/* One block: queries [at, at + n) with argument `asked` (0 head, 1 tail) to be found. */
typedef struct block {
    const lw_kge *k;
    const lw_corruptor *pool;
    const lw_atom *query;
    const float *scores;
    int64_t n, first; /* first: number of its first query */
    int asked;
    lw_rank rank[256];
    int64_t candidates[256];
    int rc[256];
} block;

static void count_one(void *arg, int64_t i, int worker)
{
    block *b = arg;
    const float *row = b->scores + i * b->k->config.entities;
    double answer = (double)row[b->query[i].arg[b->asked] - 1];
    lw_corruptions c;
    lw_atom a;
    (void)worker;
    b->rank[i] = (lw_rank){0};
    b->candidates[i] = 1;
    b->rc[i] = 0;
    lw_corruptions_begin(b->pool, b->query[i], b->asked ? LW_CORRUPT_TAIL : LW_CORRUPT_HEAD, &c);
    while (b->rc[i] == 0 && lw_corruptions_next(b->pool, &c, &a)) {
        b->rc[i] = lw_rank_add(&b->rank[i], answer, (double)row[a.arg[b->asked] - 1]);
        b->candidates[i]++;
    }
}

static void fill(lw_kge *k, const block *b)
{
    int32_t *known = lw_forward_input(k->all, "known"),
            *relation = lw_forward_input(k->all, "relations");
    float *side = lw_forward_input(k->all, "side");
    for (int64_t i = 0; i < k->block; i++) {
        const lw_atom *q = &b->query[LW_MIN(i, b->n - 1)];
        bool turned = b->asked == 0 && k->config.inverse;
        known[i] = q->arg[!b->asked] - 1;
        relation[i] = q->p - 1 + (turned ? k->config.relations : 0);
        side[i] = b->asked || turned ? 1.0f : -1.0f;
    }
}

/* Query i has its rank. */
static void put(lw_rank_lists *out, lw_corrupt_mode mode, int64_t i, const lw_rank *rank,
                double score)
{
    lw_rank_lists_add(out, mode, rank);
    if (!out->list[mode])
        return;
    out->list[mode][i] = *rank;
    out->score[mode][i] = score;
}

static int not_a_number(int rc)
{
    return lw_fail(rc, "the embedding scores entities with what is not a number");
}

static int rank_block(lw_kge *k, block *b, lw_rank_lists *out)
{
    fill(k, b);
    LW_TRY(lw_forward_run(k->all, NULL));
    b->scores = lw_forward_output(k->all, "scores");
    LW_TRY(lw_forward_failed(k->all));
    LW_TRY(lw_pool_run_asking(k->dev->pool, b->n, count_one, b));
    for (int64_t i = 0; i < b->n; i++) {
        if (b->rc[i] < 0)
            return not_a_number(b->rc[i]);
        out->candidates += b->candidates[i];
        const float *row = b->scores + i * k->config.entities;
        put(out, b->asked ? LW_CORRUPT_TAIL : LW_CORRUPT_HEAD, b->first + i, &b->rank[i],
            (double)row[b->query[i].arg[b->asked] - 1]);
    }
    return 0;
}

/* Shows progress; LW_ESTOPPED when the observer asks for it. */
static int look_up(const lw_observer *obs, int64_t done, int64_t total)
{
    lw_observe_progress(obs, "ranks", done, total, NULL);
    if (!lw_observe_stop(obs))
        return 0;
    return lw_fail(LW_ESTOPPED, "stopped after %lld of %lld lists", (long long)done,
                   (long long)total);
}

static int rank_blocks(lw_kge *k, const lw_kge_rank_options *o, const lw_atom *queries, int64_t n,
                       int asked, const lw_observer *obs, lw_rank_lists *out)
{
    LW_TRY(lw_kge_open_all(k));
    LW_CLEANUP(lw_free) block *b = lw_calloc(1, sizeof *b);
    if (!b)
        return LW_ENOMEM;
    out->bytes = (size_t)k->block * ((size_t)k->config.entities + 3) * sizeof(float);
    for (int64_t at = 0; at < n; at += k->block) {
        b->k = k;
        b->pool = o->pool;
        b->query = queries + at;
        b->first = at;
        b->n = LW_MIN(n - at, k->block);
        b->asked = asked;
        LW_TRY(rank_block(k, b, out));
        LW_TRY(look_up(obs, at + b->n, n));
    }
    return 0;
}

/* ---- one by one ------------------------------------------------------------------------------ */

enum { WAITING = 256 };

/* Triples wait until there is a batch of them; a list is its query, then its corruptions. */
typedef struct lists {
    lw_kge *k;
    lw_atom atom[WAITING];
    bool begins[WAITING]; /* a list */
    int32_t n;
    int64_t lists;   /* begun; the last one is open */
    double positive; /* score of its query */
    lw_rank rank;
    lw_corrupt_mode mode;
    lw_rank_lists *out;
    const lw_observer *obs;
    int64_t done, total; /* lists */
} lists;

static int flush(lists *l)
{
    float score[WAITING];
    LW_TRY(lw_kge_score(l->k, l->atom, l->n, score));
    for (int32_t i = 0; i < l->n; i++) {
        if (l->begins[i]) {
            if (l->lists > 0)
                put(l->out, l->mode, l->lists - 1, &l->rank, l->positive);
            l->rank = (lw_rank){0};
            l->positive = (double)score[i];
            l->lists++;
            continue;
        }
        int rc = lw_rank_add(&l->rank, l->positive, (double)score[i]);
        if (rc < 0)
            return not_a_number(rc);
    }
    l->out->candidates += l->n;
    l->n = 0;
    return 0;
}

static int push(lists *l, lw_atom a, bool begins)
{
    l->atom[l->n] = a;
    l->begins[l->n++] = begins;
    if (l->n < WAITING)
        return 0;
    LW_TRY(flush(l));
    return look_up(l->obs, l->done, l->total);
}

static int rank_lists(lw_kge *k, const lw_kge_rank_options *o, const lw_atom *queries, int64_t n,
                      lw_corrupt_mode mode, const lw_observer *obs, lw_rank_lists *out)
{
    lists l = {.k = k, .mode = mode, .out = out, .obs = obs, .total = n};
    for (int64_t i = 0; i < n; i++) {
        lw_corruptions c;
        lw_atom a;
        lw_corruptions_begin(o->pool, queries[i], mode, &c);
        LW_TRY(push(&l, queries[i], true));
        while (lw_corruptions_next(o->pool, &c, &a))
            LW_TRY(push(&l, a, false));
        l.done = i + 1;
    }
    LW_TRY(flush(&l));
    LW_TRY(look_up(obs, n, n));
    if (l.lists > 0)
        put(out, mode, l.lists - 1, &l.rank, l.positive);
    out->bytes = LW_MAX(out->bytes, sizeof l);
    return 0;
}

int lw_kge_rank(lw_kge *k, const lw_kge_rank_options *o, const lw_atom *queries, int64_t n,
                const lw_observer *obs, lw_rank_lists *out)
{
    LW_CLEANUP(lw_rank_lists_clear) lw_rank_lists r = {0};
    double started = lw_now();
    for (int mode = 0; mode < LW_CORRUPT_MODES; mode++) {
        if (!o->mode[mode])
            continue;
        if (o->keep)
            LW_TRY(lw_rank_lists_keep(&r, mode, (int32_t)n));
        if (o->drawn || mode == LW_CORRUPT_BOTH)
            LW_TRY(rank_lists(k, o, queries, n, (lw_corrupt_mode)mode, obs, &r));
        else
            LW_TRY(rank_blocks(k, o, queries, n, mode == LW_CORRUPT_TAIL, obs, &r));
    }
    r.seconds = lw_now() - started;
    *out = r;
    r = (lw_rank_lists){0};
    return 0;
}

int lw_kge_rank_source(const char *source, const lw_kb *kb, const lw_kge_rank_options *o,
                       const lw_queries *queries, int threads, const lw_observer *obs,
                       lw_rank_lists *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_kge_close) lw_kge *k = NULL;
    LW_TRY(lw_session_device(threads, &dev));
    lw_pool_watch(dev->pool, obs);
    LW_TRY(lw_kge_open(source, true, kb, dev, &k));
    return lw_kge_rank(k, o, queries->atom, queries->n, obs, out);
}
