/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation set up within its memory, and run. */
#include "jobs/prove/rank/rank_job.h"

#include <unistd.h>

#include "jobs/prove/rank/prove_eval_parts.h"

lw_prove_eval_options lw_prove_eval_defaults(void)
{
    return (lw_prove_eval_options){.walks = lw_walks_defaults(),
                                   .corrupt = {.n = 100},
                                   .mode = {true, true, false},
                                   .penalty = 100,
                                   .kge = {.weight = 2, .bonus = 1, .penalty = 0.5}};
}

const char *lw_prove_end_name(lw_proof_end end)
{
    static const char *const name[] = {"open", "proved", "failed", "stopped", "deep", "abandoned"};
    return name[end];
}

static int make_lists(lw_prove_run *w)
{
    lw_prove_eval *e = w->e;
    e->n_queries = w->q->n;
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        if (w->o->mode[m])
            e->modes[e->n_modes++] = m;
    if (e->n_modes == 0)
        return lw_fail(LW_EUSAGE, "corruption-modes: none of head, tail, both");
    if (e->n_queries == 0)
        return lw_fail(LW_EUSAGE, "there is no query to rank");
    if ((int64_t)e->n_queries * e->n_modes > INT32_MAX)
        return lw_fail(LW_EUSAGE, "%d queries in %d modes are too many", e->n_queries, e->n_modes);
    e->n_lists = e->n_queries * e->n_modes;
    e->depths = w->o->walks.env.max_depth + 1;
    e->list = lw_calloc((size_t)e->n_lists, sizeof *e->list);
    lw_prove_ends *const ends[] = {&e->positives, &e->negatives};
    for (size_t i = 0; i < LW_COUNT(ends); i++) {
        ends[i]->at = lw_calloc((size_t)e->depths, sizeof(int64_t));
        ends[i]->proved = lw_calloc((size_t)e->depths, sizeof(int64_t));
        if (!ends[i]->at || !ends[i]->proved)
            return LW_ENOMEM;
    }
    if (!e->list)
        return LW_ENOMEM;
    for (int32_t i = 0; i < e->n_lists; i++) {
        e->list[i] = (lw_prove_list){
            .query = i % e->n_queries, .mode = e->modes[i / e->n_queries], .negatives = -1};
        w->expected += 1 + lw_prove_most(w, &e->list[i]);
    }
    w->queries_left = e->n_lists;
    return 0;
}

/* Bytes of everything here but the walks. */
static size_t own_bytes(const lw_prove_run *w)
{
    return sizeof *w + lw_corruptor_bytes(w->corruptor) +
           (w->least ? 2 * lw_least_model_bytes(w->least) : 0) +
           (size_t)w->e->n_lists * (sizeof(lw_prove_list) + 3 * sizeof(double)) +
           (size_t)w->most_waiting * sizeof *w->waiting;
}

/* The next smaller set-up, false: there is none. First the cache gives way, then the batch. */
static bool make_smaller(lw_walks_options *o, size_t too_much)
{
    enum { FEWEST_PROOFS = 16, FEWEST_ROWS = 64 };
    if (o->cache_bytes > 0) {
        o->cache_bytes = too_much < o->cache_bytes ? o->cache_bytes - too_much : 0;
        return true;
    }
    if (o->fixed_batch_size <= FEWEST_PROOFS && o->rows <= FEWEST_ROWS)
        return false;
    o->fixed_batch_size = LW_MAX(o->fixed_batch_size / 2,
                                 LW_MIN(o->fixed_batch_size, FEWEST_PROOFS));
    o->rows = LW_MAX(o->rows / 2, LW_MIN(o->rows, FEWEST_ROWS));
    return true;
}

/* Walks as large as asked for, or as the memory limit lets them be. What the process has held so
 * far counts. */
static int fit_walks(lw_prove_run *w, lw_device *dev, const lw_policy_source *policy)
{
    enum { SLACK = 4 << 20 }; /* heap, stacks, tables of the report */
    lw_walks_options o = w->o->walks;
    o.two_stage = w->two_stage;
    size_t limit = w->o->memory_limit, held = lw_peak_rss() + own_bytes(w) + SLACK;
    size_t room = limit == 0 ? SIZE_MAX : limit > held ? limit - held : 0;
    o.cache_bytes = LW_MIN(o.cache_bytes, room);
    for (;;) {
        LW_TRY(lw_walks_new(w->kb, dev, policy, &o, &w->walks));
        size_t bytes = lw_walks_bytes(w->walks);
        if (bytes <= room)
            break;
        lw_walks_free(&w->walks);
        if (!make_smaller(&o, bytes - room))
            return lw_fail(LW_ENOMEM,
                           "a memory limit of %zu MiB: dataset, policy and program hold %zu MiB, "
                           "the smallest evaluation takes %zu MiB more",
                           limit >> 20, (held >> 20) + 1, (bytes >> 20) + 1);
    }
    lw_walks_observe(w->walks, w->obs);
    w->e->used = o;
    w->e->bytes = own_bytes(w) + lw_walks_bytes(w->walks);
    return 0;
}

static int open_scores(lw_prove_run *w)
{
    const char *tmp = getenv("TMPDIR");
    LW_CLEANUP(lw_str_clear) lw_str beside = {0};
    size_t bytes = (size_t)(w->expected - w->e->n_lists) * sizeof(lw_prove_saved);
    if (!w->o->save_scores || bytes == 0)
        return 0;
    if (!lw_path_is_special(w->o->save_scores))
        return lw_map_scratch(&w->saved, w->o->save_scores, bytes);
    lw_path_join(&beside, tmp && *tmp ? tmp : "/tmp", "scores");
    return lw_map_scratch(&w->saved, lw_str_c(&beside), bytes);
}

/* What any prover could reach. */
static int open_ceiling(lw_prove_run *w)
{
    lw_least_options o = {.memory = w->o->least_model_memory, .obs = w->obs};
    const double began = lw_now();
    if (w->o->memory_limit > 0)
        o.memory = LW_MIN(o.memory, w->o->memory_limit / 4);
    if (o.memory == 0 || w->o->walks.env.max_fact_pairs > 0)
        return 0;
    int rc = lw_least_model_new(w->kb, &o, &w->least);
    if (rc == LW_ESTOPPED) { /* what has been ranked by then, which is nothing, is the result */
        w->stop = true;
        lw_errclear();
        return 0;
    }
    LW_TRY(rc);
    if (!w->least)
        return 0;
    LW_TRY(lw_least_asker_new(w->least, &w->asker));
    w->e->least_atoms = lw_least_model_atoms(w->least);
    for (int32_t i = 0; i < w->e->n_lists; i++)
        LW_TRY(lw_prove_provable(w, w->q->atom[w->e->list[i].query], &w->e->list[i].provable));
    w->e->least_seconds = lw_now() - began;
    return 0;
}

int lw_prove_provable(lw_prove_run *w, lw_atom a, bool *out)
{
    int32_t depth;
    LW_TRY(lw_least_ask(w->asker, a, &depth));
    *out = depth >= 0;
    return 0;
}

static int evaluate(lw_prove_run *w, const lw_queries *const *known, int32_t n_known,
                    lw_device *dev, const lw_policy_source *policy)
{
    enum { WAITING = 1 << 15 };
    lw_corrupt_options c = w->o->corrupt;
    if (w->o->memory_limit > 0)
        c.memory = w->o->memory_limit / 4;
    LW_TRY(lw_corruptor_new(w->kb, &c, known, n_known, &w->corruptor));
    LW_TRY(make_lists(w));
    LW_TRY(open_ceiling(w));
    w->most_waiting = w->o->most_waiting > 0 ? w->o->most_waiting : WAITING;
    w->most_waiting += (int64_t)w->o->walks.fixed_batch_size + LW_PROVE_PENDING + 1;
    w->waiting = lw_calloc((size_t)w->most_waiting, sizeof *w->waiting);
    if (!w->waiting)
        return LW_ENOMEM;
    w->most_again = w->o->walks.fixed_batch_size + LW_PROVE_PENDING + 1;
    w->again = lw_calloc((size_t)w->most_again, sizeof *w->again);
    if (!w->again)
        return LW_ENOMEM;
    LW_TRY(fit_walks(w, dev, policy));
    LW_TRY(open_scores(w));
    LW_TRY(lw_prove_run_all(w));
    return w->o->save_scores ? lw_prove_save_scores(w, w->o->save_scores) : 0;
}

/* All of it in f32. */
static int fall_back(const lw_kb *kb, const lw_queries *q, const lw_queries *const *known,
                     int32_t n_known, lw_device *dev, const lw_policy_source *policy,
                     const lw_prove_eval_options *o, const lw_observer *obs,
                     const lw_prove_two_stage *tried, lw_prove_eval *out)
{
    lw_prove_eval_options plain = *o;
    plain.two_stage = false;
    lw_log(LW_LOG_WARN, "prove",
           "two stages: bf16 differed from f32 by more than on the queries (logits by up to %.3g, "
           "trusted up "
           "to %.3g): all is walked again in f32",
           tried->most.logit, tried->margin.logit);
    LW_TRY(lw_prove_eval_run(kb, q, known, n_known, dev, policy, &plain, obs, out));
    out->two_stage = *tried;
    out->two_stage.fell_back = true;
    return 0;
}

int lw_prove_eval_run(const lw_kb *kb, const lw_queries *q, const lw_queries *const *known,
                      int32_t n_known, lw_device *dev, const lw_policy_source *policy,
                      const lw_prove_eval_options *o, const lw_observer *obs, lw_prove_eval *out)
{
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    lw_prove_run w = {.kb = kb,
                      .q = q,
                      .o = o,
                      .obs = obs,
                      .e = &e,
                      .two_stage = o->two_stage && policy && policy->config};
    double began = lw_now();
    if (o->rank_rule < 0 || o->rank_rule >= LW_RANK_RULES)
        return lw_fail(LW_EUSAGE, "there is no rank rule %d", o->rank_rule);
    if (o->two_stage && !o->ranks_only)
        return lw_fail(LW_EUSAGE, "two-stage finds ranks: it wants ranks-only");
    if (o->ranks_only && o->save_scores)
        return lw_fail(LW_EUSAGE, "save-scores wants whole walks, ranks-only ends them early");
    if (!(o->penalty >= 0 && o->kge.penalty >= 0 && o->kge.bonus >= 0))
        return lw_fail(LW_EUSAGE, "penalties and the bonus of a proof must not be negative");
    e.ranks_only = o->ranks_only;
    int rc = evaluate(&w, known, n_known, dev, policy);
    const bool fails = rc == 0 && lw_prove_margin_fails(&w);
    e.seconds = lw_now() - began;
    e.threads = lw_pool_size(dev->pool);
    lw_map_close(&w.saved);
    lw_walks_free(&w.walks);
    lw_corruptor_free(&w.corruptor);
    lw_least_asker_free(&w.asker);
    lw_least_model_free(&w.least);
    lw_free(&w.waiting);
    lw_free(&w.again);
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        lw_auc_pr_free(&w.auc[m]);
    LW_TRY(rc);
    if (fails && !e.interrupted)
        return fall_back(kb, q, known, n_known, dev, policy, o, obs, &e.two_stage, out);
    *out = e;
    e = (lw_prove_eval){0};
    return 0;
}

void lw_prove_eval_clear(lw_prove_eval *e)
{
    lw_free(&e->list);
    lw_free(&e->positives.at);
    lw_free(&e->positives.proved);
    lw_free(&e->negatives.at);
    lw_free(&e->negatives.proved);
    *e = (lw_prove_eval){0};
}
