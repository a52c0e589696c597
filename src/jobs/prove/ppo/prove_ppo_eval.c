/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of a policy in training: mean reciprocal rank among corruptions, the best kept. */
#include "jobs/prove/ppo/prove_ppo_run.h"

#include <stdio.h>

#include "base/base.h"
#include "jobs/prove/rank/rank_job.h"

static int add(json_t *row, const char *key, double value)
{
    return json_object_set_new(row, key, lw_json_real(value))
               ? lw_fail(LW_ENOMEM, "out of memory for a log row")
               : 0;
}

static int keep_best(lw_ppo_run *r, int64_t step, double mrr)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    char than[64] = "";
    if (!(mrr >= r->best)) /* of equals the later, which is trained more */
        return 0;
    r->best = mrr;
    if (json_object_set_new(r->state, "best_mrr", json_real(mrr)))
        return lw_fail(LW_ENOMEM, "out of memory for a checkpoint");
    if (r->untrained > mrr)
        snprintf(than, sizeof than, " of those trained (untrained: %.4f)", r->untrained);
    lw_observe_say(r->obs, "step %lld: the best so far%s, kept in best/", (long long)step, than);
    lw_path_join(&dir, r->c->train.output_dir, "best");
    LW_TRY(lw_mkdir_own(lw_str_c(&dir)));
    return lw_policy_save(lw_str_c(&dir), &r->c->net, r->store, LW_SLAB_PARAM);
}

static int add_means(lw_ppo_run *r, int64_t step, const lw_prove_eval *e, json_t *row)
{
    const lw_prove_means m = lw_prove_eval_means(e, LW_RANK_REALISTIC, -1, NULL, NULL);
    LW_TRY(add(row, "valid_mrr", m.rank.mrr));
    LW_TRY(add(row, "valid_hits_1", m.rank.hits[0]));
    LW_TRY(add(row, "valid_hits_10", m.rank.hits[2]));
    LW_TRY(
        add(row, "valid_proved_positive", (double)m.positives_proved / (double)LW_MAX(m.lists, 1)));
    LW_TRY(add(row, "valid_proved_negative",
               (double)m.negatives_proved / (double)LW_MAX(m.negatives, 1)));
    lw_observe_say(r->obs,
                   "step %lld: validation MRR %.4f, Hits@1 %.4f, proved %lld of %lld true, "
                   "%lld of %lld corrupted (%.3g s)",
                   (long long)step, m.rank.mrr, m.rank.hits[0], (long long)m.positives_proved,
                   (long long)m.lists, (long long)m.negatives_proved, (long long)m.negatives,
                   e->seconds);
    return keep_best(r, step, m.rank.mrr);
}

static int rank(lw_ppo_run *r, lw_prove_eval *e)
{
    LW_CLEANUP(lw_queries_clear) lw_queries q = {0};
    const lw_ppo_config *c = r->c;
    const lw_policy_source policy = {&c->net, r->store};
    lw_prove_eval_options o = lw_prove_eval_defaults();
    o.walks.env = c->env;
    o.walks.precision = c->train.precision;
    o.walks.seed = o.corrupt.seed = (uint64_t)c->train.seed;
    o.corrupt.n = c->eval_neg_samples;
    o.corrupt.filtered = true;
    o.corrupt.domains = c->domains;
    for (int i = 0; i < LW_CORRUPT_MODES; i++)
        o.mode[i] = r->mode[i];
    LW_TRY(lw_queries_choose(&r->valid, c->n_eval_queries, LW_QUERY_SPACED, 0, &q));
    /* of the observer only the wish to stop: the bar is the trainer's */
    const lw_observer obs = {.self = r->obs ? r->obs->self : NULL,
                             .should_stop = r->obs ? r->obs->should_stop : NULL};
    LW_TRY(lw_prove_eval_run(r->kb, &q, r->known.set, LW_QUERIES_SPLITS, r->dev, &policy, &o, &obs,
                             e));
    if (!e->interrupted)
        return 0;
    lw_prove_eval_clear(e);
    return lw_fail(LW_ESTOPPED, "stopped within a validation");
}

int lw_ppo_evaluate(void *self, int64_t step, json_t *row)
{
    lw_ppo_run *r = self;
    lw_prove_eval e = {0};
    LW_TRY(rank(r, &e));
    int rc = add_means(r, step, &e, row);
    lw_prove_eval_clear(&e);
    if (rc == 0 && r->untrained >= 0.0)
        rc = add(row, "valid_mrr_untrained", r->untrained);
    return rc;
}

int lw_ppo_evaluate_untrained(lw_ppo_run *r)
{
    lw_prove_eval e = {0};
    LW_TRY(rank(r, &e));
    r->untrained = lw_prove_eval_means(&e, LW_RANK_REALISTIC, -1, NULL, NULL).rank.mrr;
    lw_observe_say(r->obs, "before training: validation MRR %.4f (%.3g s)", r->untrained,
                   e.seconds);
    lw_prove_eval_clear(&e);
    return 0;
}
