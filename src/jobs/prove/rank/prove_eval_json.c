/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation as JSON, as text for a terminal, and query by query as CSV. */
#include <math.h>
#include <stdio.h>

#include "jobs/prove/rank/prove_eval_tables.h"

static void set_real(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, lw_json_real(v));
}

static void set_int(json_t *o, const char *key, int64_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

static double share(int64_t n, int64_t of)
{
    return of > 0 ? (double)n / (double)of : (double)NAN;
}

static void set_ranks(json_t *o, const lw_rank_metrics *m)
{
    static const char *const hits[] = {"Hits@1", "Hits@3", "Hits@10"};
    set_real(o, "MRR", m->mrr);
    for (int k = 0; k < LW_RANK_HITS; k++)
        set_real(o, hits[k], m->hits[k]);
    set_real(o, "mean_rank", m->mean_rank);
}

static void set_means(json_t *o, const lw_prove_means *m)
{
    set_ranks(o, &m->rank);
    set_int(o, "ranked", m->lists);
    set_real(o, "true_proved", share(m->positives_proved, m->lists));
    set_int(o, "corruptions", m->negatives);
    set_real(o, "false_proved", m->false_proved);
}

static json_t *ceiling_json(const lw_prove_eval *e, const lw_prove_means *m)
{
    if (e->least_atoms == 0)
        return json_null();
    json_t *o = json_object();
    set_ranks(o, &m->ceiling);
    set_real(o, "true_provable", share(m->positives_provable, m->lists));
    set_real(o, "false_provable", share(m->negatives_provable, m->negatives));
    set_int(o, "least_model_atoms", e->least_atoms);
    set_real(o, "seconds", e->least_seconds);
    return o;
}

static json_t *modes_json(const lw_prove_context *c, const lw_prove_eval *e)
{
    json_t *all = json_object();
    for (int32_t s = 0; s < e->n_modes; s++) {
        lw_prove_means m = lw_prove_eval_means(e, c->o->rank_rule, e->modes[s], NULL, NULL);
        json_t *one = json_object();
        set_means(one, &m);
        set_real(one, "AUC-PR", m.auc_pr);
        set_int(one, "known", m.known);
        set_int(one, "missing", m.missing);
        json_object_set_new(all, lw_corrupt_mode_name((lw_corrupt_mode)e->modes[s]), one);
    }
    return all;
}

static int set_groups(const lw_prove_context *c, const lw_prove_eval *e, lw_prove_by by,
                      const char *key, const char *name, json_t *o)
{
    LW_CLEANUP(lw_free) lw_prove_group *g = NULL;
    int32_t n;
    LW_TRY(lw_prove_groups(c, e, by, &g, &n));
    json_t *all = json_array();
    for (int32_t i = 0; i < n; i++) {
        json_t *one = json_pack("{s:s}", name, lw_prove_group_name(&g[i]));
        set_means(one, &g[i].m);
        json_array_append_new(all, one);
    }
    json_object_set_new(o, key, all);
    return 0;
}

static json_t *ends_json(const lw_prove_eval *e, const lw_prove_ends *ends)
{
    json_t *o = json_object(), *at = json_array(), *proved = json_array();
    set_int(o, "n", ends->n);
    for (int k = LW_PROOF_PROVED; k < LW_PROVE_ENDS; k++)
        set_int(o, lw_prove_end_name((lw_proof_end)k), ends->end[k]);
    for (int32_t d = 0; d < e->depths; d++) {
        json_array_append_new(at, json_integer((json_int_t)ends->at[d]));
        json_array_append_new(proved, json_integer((json_int_t)ends->proved[d]));
    }
    json_object_set_new(o, "ended_after", at);
    json_object_set_new(o, "proved_after", proved);
    return o;
}

static json_t *cuts_json(const lw_env_counts *c)
{
    json_t *o = json_object();
#define C(field, what) set_int(o, #field, c->field);
    LW_ENV_COUNTS(C)
#undef C
    return o;
}

static json_t *walks_json(const lw_prove_eval *e)
{
    json_t *o = json_object();
    const lw_walks_counts *w = &e->walks;
#define C(field, what) set_int(o, #field, w->field);
    LW_WALKS_COUNTS(C)
#undef C
    set_real(o, "seconds", w->seconds);
    set_real(o, "engine_seconds", w->engine_seconds);
    set_real(o, "lookup_seconds", w->lookup_seconds);
    set_real(o, "network_seconds", w->network_seconds);
    set_real(o, "choice_seconds", w->choice_seconds);
    return o;
}

static json_t *settings_json(const lw_prove_context *c, const lw_prove_eval *e)
{
    static const char *const numbering[] = {"canonical", "published", "parity"};
    const lw_env_options *v = &c->o->walks.env;
    json_t *o = json_object();
    set_int(o, "max_depth", v->max_depth);
    set_int(o, "padding_atoms", v->padding_atoms);
    set_int(o, "padding_states", v->padding_states);
    set_int(o, "max_fact_pairs", v->max_fact_pairs);
    set_int(o, "max_total_vars", v->max_total_vars);
    json_object_set_new(o, "memory_pruning", json_boolean(v->memory_pruning));
    json_object_set_new(o, "end_proof_action", json_boolean(v->end_proof_action));
    json_object_set_new(o, "skip_unary_actions", json_boolean(v->skip_unary_actions));
    json_object_set_new(o, "numbering", json_string(numbering[v->numbering]));
    set_int(o, "fixed_batch_size", e->used.fixed_batch_size);
    set_int(o, "rows", e->used.rows);
    set_int(o, "cache_bytes", (int64_t)e->used.cache_bytes);
    set_int(o, "evaluation_bytes", (int64_t)e->bytes);
    set_int(o, "threads", e->threads);
    return o;
}

static void set_what(json_t *o, const lw_prove_context *c, const lw_prove_eval *e)
{
    LW_CLEANUP(lw_str_clear) lw_str score = {0}, against = {0};
    lw_prove_score_rule(c->o, &score);
    lw_prove_candidates_rule(c, e, &against);
    json_object_set_new(o, "dataset", lw_json_name(c->dataset));
    json_object_set_new(o, "split", lw_json_name(c->split));
    json_object_set_new(o, "policy", lw_json_name(c->policy));
    json_object_set_new(o, "precision", json_string(c->precision));
    set_int(o, "queries", e->n_queries);
    json_object_set_new(o, "interrupted", json_boolean(e->interrupted));
    json_object_set_new(o, "ranks_only", json_boolean(e->ranks_only));
    set_int(o, "lists", e->n_lists);
    set_int(o, "lists_ranked", e->whole);
    set_int(o, "lists_without_corruptions", lw_prove_alone(e));
    json_object_set_new(o, "rank_rule",
                        json_string(lw_rank_rule_name((lw_rank_rule)c->o->rank_rule)));
    json_object_set_new(o, "rank_rule_text",
                        json_string(lw_rank_rule_text((lw_rank_rule)c->o->rank_rule)));
    json_object_set_new(o, "score_rule", json_string(lw_str_c(&score)));
    json_object_set_new(o, "ranked_against", json_string(lw_str_c(&against)));
}

/* null: not asked for. */
static json_t *two_stage_json(const lw_prove_eval *e)
{
    const lw_prove_two_stage *t = &e->two_stage;
    const int64_t first = e->walks.first_scored, all = e->walks.states_scored;
    json_t *o = t->on ? json_object() : json_null();
    if (!t->on)
        return o;
    json_object_set_new(o, "certified", json_false()); /* the margin is measured, not proven */
    json_object_set_new(o, "fell_back", json_boolean(t->fell_back));
    set_real(o, "logit_margin", t->margin.logit);
    set_real(o, "score_margin", t->margin.score);
    set_int(o, "measured_choices", t->measured.choices);
    set_int(o, "measured_logits", t->measured.logits);
    set_real(o, "most_logit_difference", t->most.logit);
    set_real(o, "most_score_difference", t->most.score);
    set_int(o, "contested_choices", e->walks.contested);
    set_int(o, "walked_again", t->again);
    set_int(o, "rows_bf16", first);
    set_int(o, "rows_f32", all - first);
    return o;
}

json_t *lw_prove_eval_json(const lw_prove_context *c, const lw_prove_eval *e)
{
    json_t *o = json_object();
    lw_prove_means m = lw_prove_eval_means(e, c->o->rank_rule, -1, NULL, NULL);
    set_what(o, c, e);
    if (c->device)
        json_object_set_new(o, "device", json_string(c->device));
    set_int(o, "candidates", e->candidates);
    set_int(o, "candidates_unwalked", e->unwalked);
    set_int(o, "query_steps", e->walks.query_steps);
    set_int(o, "states_offered", e->walks.states_offered);
    set_int(o, "states_scored", e->walks.states_scored);
    set_real(o, "cache_hit_rate", lw_prove_hit_rate(e));
    set_real(o, "seconds", e->seconds);
    set_real(o, "ms_per_candidate", 1e3 * e->seconds / (double)LW_MAX(e->candidates, 1));
    set_means(o, &m);
    set_real(o, "AUC-PR", m.auc_pr);
    set_int(o, "known", m.known);
    set_int(o, "missing", m.missing);
    json_object_set_new(o, "two_stage", two_stage_json(e));
    json_object_set_new(o, "ceiling", ceiling_json(e, &m));
    json_object_set_new(o, "per_mode", modes_json(c, e));
    if (set_groups(c, e, LW_PROVE_BY_PREDICATE, "by_predicate", "predicate", o) < 0 ||
        set_groups(c, e, LW_PROVE_BY_PUBLISHED, "by_published_depth", "depth", o) < 0 ||
        set_groups(c, e, LW_PROVE_BY_WALKED, "by_depth_walked", "depth", o) < 0)
        lw_log(LW_LOG_WARN, "prove", "no memory for the tables of groups");
    json_object_set_new(o, "true", ends_json(e, &e->positives));
    json_object_set_new(o, "false", ends_json(e, &e->negatives));
    json_object_set_new(o, "cuts", cuts_json(&e->walks.env));
    json_object_set_new(o, "counts", walks_json(e));
    json_object_set_new(o, "settings", settings_json(c, e));
    return o;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void add_two_stage(const lw_prove_eval *e, lw_str *out)
{
    const lw_prove_two_stage *t = &e->two_stage;
    const int64_t first = e->walks.first_scored, all = e->walks.states_scored;
    if (!t->on)
        return;
    if (t->fell_back)
        lw_str_add(out,
                   "two stages, given up: bf16 differed by more than it was trusted; all in f32\n");
    else
        lw_str_addf(out,
                    "two stages, margin measured and not proven: logits %.3g (differed by %.3g at "
                    "most), scores "
                    "%.3g (%.3g) for each sqrt(choice); %lld choices made and %lld corruptions "
                    "walked again in "
                    "f32; %lld rows in bf16, %lld (%.1f %%) in f32\n",
                    t->margin.logit, t->most.logit, t->margin.score, t->most.score,
                    (long long)e->walks.contested, (long long)t->again, (long long)first,
                    (long long)(all - first), 100 * (double)(all - first) / (double)LW_MAX(all, 1));
}

static void add_times(const lw_prove_eval *e, lw_str *out)
{
    char size[32];
    const lw_walks_counts *w = &e->walks;
    lw_str_addf(out,
                "%lld candidates, %lld choices (%.2f each), %lld successors, %lld states scored",
                (long long)e->candidates, (long long)w->query_steps,
                (double)w->query_steps / (double)LW_MAX(e->candidates, 1),
                (long long)w->states_offered, (long long)w->states_scored);
    if (e->ranks_only)
        lw_str_addf(out, "; ranks only: %lld walks ended early, %lld not begun",
                    (long long)e->negatives.end[LW_PROOF_ABANDONED], (long long)e->unwalked);
    if (w->states_wanted > 0)
        lw_str_addf(out, ", %.1f %% found in the cache", 100 * lw_prove_hit_rate(e));
    lw_str_addf(out, "\n%.3g s with %d thread%s, %.4g ms a candidate; batch %d, %s\n", e->seconds,
                e->threads, e->threads == 1 ? "" : "s",
                1e3 * e->seconds / (double)LW_MAX(e->candidates, 1), e->used.fixed_batch_size,
                lw_fmt_bytes(size, e->bytes));
}

int lw_prove_eval_text(const lw_prove_context *c, const lw_prove_eval *e, lw_str *out)
{
    enum { MOST_PREDICATES = 20 };
    LW_CLEANUP(lw_table_clear) lw_table modes = {0}, predicates = {0}, depths = {0}, cuts = {0};
    int64_t known = lw_prove_total(e, 0), missing = lw_prove_total(e, 1), alone = lw_prove_alone(e);
    int32_t of;
    if (e->interrupted)
        lw_str_addf(out, "PARTIAL: interrupted, %d of %d ranked\n", e->whole, e->n_lists);
    lw_str_addf(out, "%s, %s: %d queries by %s, ", c->dataset, c->split, e->n_queries, c->policy);
    lw_prove_candidates_rule(c, e, out);
    lw_str_addf(out, "\nrank %s; score: ", lw_rank_rule_text((lw_rank_rule)c->o->rank_rule));
    lw_prove_score_rule(c->o, out);
    lw_str_add(out, "\n\n");
    LW_TRY(lw_prove_mode_table(c, e, &modes));
    lw_table_text(&modes, out);
    LW_TRY(lw_prove_group_table(c, e, LW_PROVE_BY_PREDICATE, MOST_PREDICATES, &predicates, &of));
    lw_str_add(out, "\n");
    lw_table_text(&predicates, out);
    if (of > MOST_PREDICATES)
        lw_str_addf(out, "and %d more (--json has them all)\n", of - MOST_PREDICATES);
    if (c->queries->annotated > 0) {
        LW_TRY(lw_prove_group_table(c, e, LW_PROVE_BY_PUBLISHED, 0, &depths, &of));
        lw_str_add(out, "\n");
        lw_table_text(&depths, out);
    }
    lw_str_add(out, "\n");
    lw_prove_ceiling(c, e, out);
    if (known > 0)
        lw_str_addf(out, "passed over: %lld known positives\n", (long long)known);
    if (missing > 0)
        lw_str_addf(out, "missing: %lld corruptions: there are no more\n", (long long)missing);
    if (alone > 0)
        lw_str_addf(out, "warning: %lld of %d are ranked against nothing\n", (long long)alone,
                    e->whole);
    LW_TRY(lw_prove_cut_table(e, false, &cuts));
    if (lw_table_rows(&cuts) > 0) {
        lw_str_add(out, "limits met:\n");
        lw_table_text(&cuts, out);
    }
    add_two_stage(e, out);
    add_times(e, out);
    return out->failed ? LW_ENOMEM : 0;
}
