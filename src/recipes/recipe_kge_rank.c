/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of queries among all entities: a block of queries against the table, then counting. */
#include "recipes/recipe_kge_parts.h"

#include "recipes/recipe_device.h"

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
    int64_t n;
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
    int32_t *known = lw_exec_data(k->all, "known"), *relation = lw_exec_data(k->all, "relations");
    float *side = lw_exec_data(k->all, "side");
    for (int64_t i = 0; i < k->block; i++) {
        const lw_atom *q = &b->query[LW_MIN(i, b->n - 1)];
        bool turned = b->asked == 0 && k->config.inverse;
        known[i] = q->arg[!b->asked] - 1;
        relation[i] = q->p - 1 + (turned ? k->config.relations : 0);
        side[i] = b->asked || turned ? 1.0f : -1.0f;
    }
}

static int rank_block(lw_kge *k, block *b, lw_kge_ranks *out)
{
    fill(k, b);
    LW_TRY(lw_exec_run(k->all, NULL));
    b->scores = lw_exec_data(k->all, "scores");
    k->dev->parallel(k->dev->self, b->n, count_one, b);
    for (int64_t i = 0; i < b->n; i++) {
        if (b->rc[i] < 0)
            return lw_fail(b->rc[i], "the embedding scores entities with what is not a number");
        out->candidates += b->candidates[i];
        for (int rule = 0; rule < LW_RANK_RULES; rule++) {
            double rank = lw_rank_value(&b->rank[i], (lw_rank_rule)rule);
            lw_rank_sum_add(&out->sum[b->asked][rule], rank);
            lw_rank_sum_add(&out->both[rule], rank);
        }
    }
    return 0;
}

int lw_kge_rank(lw_kge *k, const lw_corruptor *pool, const lw_atom *queries, int64_t n,
                const lw_observer *obs, lw_kge_ranks *out)
{
    lw_kge_ranks r = {0};
    double started = lw_now();
    LW_TRY(lw_kge_open_all(k));
    LW_CLEANUP(lw_free) block *b = lw_calloc(1, sizeof *b);
    if (!b)
        return LW_ENOMEM;
    for (int64_t at = 0; at < n; at += k->block)
        for (int asked = 0; asked < 2; asked++) {
            b->k = k;
            b->pool = pool;
            b->query = queries + at;
            b->n = LW_MIN(n - at, k->block);
            b->asked = asked;
            LW_TRY(rank_block(k, b, &r));
            lw_observe_progress(obs, "ranks", at + asked * b->n, n, NULL);
            if (lw_observe_stop(obs))
                return lw_fail(LW_ESTOPPED, "stopped after %lld of %lld queries", (long long)at,
                               (long long)n);
        }
    r.bytes = (size_t)k->block * ((size_t)k->config.entities + 3) * sizeof(float);
    r.seconds = lw_now() - started;
    *out = r;
    return 0;
}

int lw_kge_rank_source(const char *source, const lw_kb *kb, const lw_corruptor *pool,
                       const lw_queries *queries, int threads, const lw_observer *obs,
                       lw_kge_ranks *out)
{
    LW_CLEANUP(lw_cpu_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_kge_close) lw_kge *k = NULL;
    LW_TRY(lw_recipe_device(threads, &dev));
    LW_TRY(lw_kge_open(source, true, kb, dev, &k));
    return lw_kge_rank(k, pool, queries->atom, queries->n, obs, out);
}
