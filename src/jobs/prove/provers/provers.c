/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: each prover asked the same lists, seed by seed. */
#include "jobs/prove/provers/provers_job.h"

#include <math.h>
#include <string.h>

#include "jobs/prove/walk/prove_policy.h"
#include "session/session_device.h"

/* A comparison under way. */
typedef struct work {
    lw_provers *p;
    const lw_positives *known;
    const lw_provers_options *o;
    const lw_observer *obs;
    lw_device *dev;
    lw_prover ceiling; /* filled beside the first row */
} work;

static size_t lists_of(const lw_provers *p)
{
    return (size_t)p->n_modes * (size_t)p->queries->n;
}

static int add_row(work *w, const char *name, lw_prover **out)
{
    lw_provers *p = w->p;
    lw_prover *row = &p->row[p->n];
    *row = (lw_prover){.name = lw_strdup(name),
                       .rank = lw_calloc(lists_of(p) * (size_t)p->seeds, sizeof *row->rank),
                       .true_proved = (double)NAN,
                       .false_proved = (double)NAN};
    p->n++;
    *out = row;
    return row->name && row->rank ? 0 : LW_ENOMEM;
}

static uint64_t seed_of(const work *w, int32_t s)
{
    return w->o->eval.walks.seed + (uint64_t)s;
}

static int open_pool(const work *w, int32_t s, lw_corruptor **out)
{
    lw_corrupt_options c = w->o->eval.corrupt;
    c.seed = seed_of(w, s);
    return lw_corruptor_new(w->p->kb, &c, w->known->set, c.filtered ? LW_QUERIES_SPLITS : 0, out);
}

/* ---- walks ------------------------------------------------------------------------------------- */

/* Part k of "A+B+C", counted round; *text stays the caller's. */
static int part_of(const char *spec, int32_t k, lw_str *text)
{
    int32_t n = 1;
    for (const char *c = spec; *c; c++)
        n += *c == '+';
    for (k %= n; k > 0; k--)
        spec = strchr(spec, '+') + 1;
    lw_str_clear(text);
    lw_str_add_n(text, spec, strcspn(spec, "+"));
    return text->failed ? LW_ENOMEM : 0;
}

/* NULL: weights of a beginning, of the first policy's network where there is one. */
static int open_policy(const work *w, const char *spec, int32_t s, lw_prove_policy *out)
{
    LW_CLEANUP(lw_str_clear) lw_str part = {0}, formula = {0};
    const lw_env_options *env = &w->o->eval.walks.env;
    if (spec || w->o->n_policies > 0) {
        LW_TRY(part_of(spec ? spec : w->o->policy[0], s, &part));
        LW_TRY(lw_prove_policy_open(lw_str_c(&part), w->o->ema, w->p->kb, env, out));
        if (!spec && out->store)
            lw_policy_init(&out->config, seed_of(w, s), out->store);
        return 0;
    }
    lw_str_addf(&formula, "formula:%lld", (long long)seed_of(w, s));
    return lw_prove_policy_open(lw_str_c(&formula), true, w->p->kb, env, out);
}

static void take_ceiling(work *w, const lw_prove_eval *e, int32_t s)
{
    if (e->least_atoms == 0)
        return;
    w->p->provable = 0;
    for (int32_t i = 0; i < e->n_lists; i++) {
        w->ceiling.rank[(size_t)s * lists_of(w->p) + (size_t)i] = e->list[i].ceiling;
        w->p->provable += i < w->p->queries->n && e->list[i].provable;
    }
}

static void take_stages(const lw_prove_eval *e, lw_prover_stages *to)
{
    const lw_prove_two_stage *t = &e->two_stage;
    if (!t->on)
        return;
    to->n++;
    to->fell_back += t->fell_back;
    to->rows_bf16 += e->walks.first_scored;
    to->rows_f32 += e->walks.states_scored - e->walks.first_scored;
    to->again += t->again;
    to->most_of_margin = fmax(
        to->most_of_margin, fmax(t->most.logit / t->margin.logit, t->most.score / t->margin.score));
}

/* policy NULL: untrained. kge: with the embedding. */
static int walk(work *w, const char *policy, lw_kge *kge, lw_prover *row)
{
    double proved = 0, wrong = 0;
    for (int32_t s = 0; s < w->p->seeds; s++) {
        LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
        LW_CLEANUP(lw_prove_policy_close) lw_prove_policy opened = {0};
        lw_prove_eval_options eo = w->o->eval;
        eo.walks.seed = eo.corrupt.seed = seed_of(w, s);
        LW_TRY(open_policy(w, policy, s, &opened));
        if (kge)
            LW_TRY(lw_kge_plausibility(kge, &eo.kge));
        if (row != w->p->row &&
            !eo.ranks_only) /* the ceiling is known, and nothing is left out by it */
            eo.least_model_memory = 0;
        LW_TRY(lw_prove_eval_run(w->p->kb, w->p->queries, w->known->set,
                                 eo.corrupt.filtered ? LW_QUERIES_SPLITS : 0, w->dev,
                                 &opened.source, &eo, w->obs, &e));
        if (e.interrupted)
            return lw_fail(LW_ESTOPPED, "interrupted while %s was walked", row->name);
        for (int32_t i = 0; i < e.n_lists; i++)
            row->rank[(size_t)s * lists_of(w->p) + (size_t)i] = e.list[i].rank;
        if (row == w->p->row) {
            take_ceiling(w, &e, s);
            w->p->candidates = e.candidates;
            w->p->alone = 0;
            for (int32_t i = 0; i < e.n_lists; i++)
                w->p->alone += e.list[i].negatives == 0;
        }
        take_stages(&e, &row->stages);
        const lw_prove_means m = lw_prove_eval_means(&e, LW_RANK_REALISTIC, -1, NULL, NULL);
        proved += (double)m.positives_proved / (double)LW_MAX(m.lists, 1);
        wrong += m.false_proved;
        row->seconds += e.seconds;
    }
    row->true_proved = proved / w->p->seeds;
    row->false_proved = wrong / w->p->seeds;
    return 0;
}

/* ---- others ------------------------------------------------------------------------------------ */

static void take_lists(const work *w, const lw_rank_lists *r, int32_t s, lw_prover *row)
{
    lw_rank *to = row->rank + (size_t)s * lists_of(w->p);
    for (int32_t m = 0; m < w->p->n_modes; m++)
        memcpy(to + (size_t)m * (size_t)w->p->queries->n, r->list[w->p->modes[m]],
               (size_t)w->p->queries->n * sizeof *to);
    row->seconds += r->seconds;
}

static int by_rules(work *w, lw_prover *row)
{
    for (int32_t s = 0; s < w->p->seeds; s++) {
        LW_CLEANUP(lw_corruptor_free) lw_corruptor *pool = NULL;
        LW_CLEANUP(lw_rank_lists_clear) lw_rank_lists r = {0};
        LW_TRY(open_pool(w, s, &pool));
        lw_rules_rank_options o = {.kb = w->p->kb,
                                   .pool = pool,
                                   .drawn = w->o->eval.corrupt.n > 0,
                                   .score = w->o->rule_score};
        memcpy(o.mode, w->o->eval.mode, sizeof o.mode);
        LW_TRY(lw_rules_rank(&o, w->p->queries, w->o->threads, w->obs, &r));
        take_lists(w, &r, s, row);
    }
    return 0;
}

static int by_embedding(work *w, lw_kge *kge, lw_prover *row)
{
    for (int32_t s = 0; s < w->p->seeds; s++) {
        LW_CLEANUP(lw_corruptor_free) lw_corruptor *pool = NULL;
        LW_CLEANUP(lw_rank_lists_clear) lw_rank_lists r = {0};
        LW_TRY(open_pool(w, s, &pool));
        lw_kge_rank_options o = {.pool = pool, .drawn = w->o->eval.corrupt.n > 0, .keep = true};
        memcpy(o.mode, w->o->eval.mode, sizeof o.mode);
        LW_TRY(lw_kge_rank(kge, &o, w->p->queries->atom, w->p->queries->n, w->obs, &r));
        take_lists(w, &r, s, row);
    }
    return 0;
}

/* Facts of the predicate that have the argument, the query itself not among them. */
static int32_t links(const lw_kb *kb, lw_atom a, int side, lw_atom query)
{
    const lw_fact_range r = lw_facts_with(&kb->facts, a.p, side, a.arg[side]);
    return r.n - (a.arg[side] == query.arg[side] && lw_facts_find(&kb->facts, query) >= 0);
}

static int by_half_links(work *w, lw_prover *row)
{
    const lw_provers *p = w->p;
    const double began = lw_now();
    for (int32_t s = 0; s < p->seeds; s++) {
        LW_CLEANUP(lw_corruptor_free) lw_corruptor *pool = NULL;
        LW_TRY(open_pool(w, s, &pool));
        for (int32_t i = 0; i < (int32_t)lists_of(p); i++) {
            const lw_atom query = p->queries->atom[i % p->queries->n];
            lw_rank *rank = &row->rank[(size_t)s * lists_of(p) + (size_t)i];
            lw_corruptions c;
            lw_atom a;
            if (lw_observe_stop(w->obs))
                return lw_fail(LW_ESTOPPED, "interrupted while half links were counted");
            lw_corruptions_begin(pool, query, (lw_corrupt_mode)p->modes[i / p->queries->n], &c);
            while (lw_corruptions_next(pool, &c, &a)) {
                const int side = a.arg[1] != query.arg[1];
                LW_TRY(lw_rank_add(rank, links(p->kb, query, side, query),
                                   links(p->kb, a, side, query)));
            }
        }
    }
    row->seconds = lw_now() - began;
    return 0;
}

/* ---- queries ----------------------------------------------------------------------------------- */

static int find_depths(work *w)
{
    lw_provers *p = w->p;
    LW_CLEANUP(lw_least_model_free) lw_least_model *m = NULL;
    LW_CLEANUP(lw_least_asker_free) lw_least_asker *ask = NULL;
    const lw_least_options lo = {
        .depths = true, .memory = w->o->eval.least_model_memory, .obs = w->obs};
    if (lo.memory > 0)
        LW_TRY(lw_least_model_new(p->kb, &lo, &m));
    if (m)
        LW_TRY(lw_least_asker_new(m, &ask));
    for (int32_t i = 0; i < p->queries->n; i++) {
        p->depth[i] = p->queries->published ? p->queries->published[i] : LW_DEPTH_UNKNOWN;
        if (ask)
            LW_TRY(lw_least_ask(ask, p->queries->atom[i], &p->depth[i]));
    }
    return 0;
}

static void find_halves(const lw_provers *p)
{
    for (int32_t i = 0; i < (int32_t)lists_of(p); i++) {
        const lw_atom a = p->queries->atom[i % p->queries->n];
        const int side = p->modes[i / p->queries->n] == LW_CORRUPT_TAIL;
        p->half[i] = (uint8_t)((links(p->kb, a, side, a) > 0) | (links(p->kb, a, !side, a) > 0)
                                                                    << 1);
    }
}

/* ---- all --------------------------------------------------------------------------------------- */

static bool has_row(const lw_provers *p, const char *name)
{
    for (int32_t r = 0; r < p->n; r++)
        if (lw_str_eq(p->row[r].name, name))
            return true;
    return false;
}

/* "hybrid: A and 2 more" of "A+B+C", or all of it where a row has that name. */
static int named(const lw_provers *p, const char *what, const char *policies, lw_str *out)
{
    const size_t first = strcspn(policies, "+");
    int32_t more = 0;
    for (const char *c = policies + first; *c; c++)
        more += *c == '+';
    lw_str_clear(out);
    lw_str_addf(out, "%s%.*s", what, (int)first, policies);
    if (more > 0)
        lw_str_addf(out, " and %d more", more);
    if (!out->failed && has_row(p, lw_str_c(out))) {
        lw_str_clear(out);
        lw_str_addf(out, "%s%s", what, policies);
    }
    return out->failed ? LW_ENOMEM : 0;
}

/* Before anything is walked: what cannot be opened would cost the rows before it. */
static int try_policies(const work *w)
{
    for (int32_t i = 0; i < w->o->n_policies; i++) {
        const char *at = w->o->policy[i];
        for (bool more = true; more;) {
            LW_CLEANUP(lw_str_clear) lw_str part = {0};
            LW_CLEANUP(lw_prove_policy_close) lw_prove_policy opened = {0};
            const size_t n = strcspn(at, "+");
            if (n == 0)
                return lw_fail(LW_EUSAGE, "--policy '%s': a name between the %s is empty",
                               w->o->policy[i], w->o->policy[i][0] ? "pluses" : "commas");
            lw_str_add_n(&part, at, n);
            LW_TRY(lw_prove_policy_open(lw_str_c(&part), w->o->ema, w->p->kb, &w->o->eval.walks.env,
                                        &opened));
            more = at[n] == '+';
            at += n + 1;
        }
    }
    return 0;
}

static int run_policies(work *w, lw_kge *kge)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    lw_prover *row;
    for (int32_t i = 0; i < w->o->n_policies; i++) {
        LW_TRY(named(w->p, "", w->o->policy[i], &name));
        LW_TRY(add_row(w, lw_str_c(&name), &row));
        LW_TRY(walk(w, w->o->policy[i], NULL, row));
    }
    for (int32_t i = 0; i < w->o->n_policies && kge; i++) {
        LW_TRY(named(w->p, "hybrid: ", w->o->policy[i], &name));
        LW_TRY(add_row(w, lw_str_c(&name), &row));
        LW_TRY(walk(w, w->o->policy[i], kge, row));
    }
    return 0;
}

static int run_rows(work *w, lw_kge *kge)
{
    lw_prover *row;
    LW_TRY(add_row(w, "uniform", &row));
    w->ceiling.rank = lw_calloc(lists_of(w->p) * (size_t)w->p->seeds, sizeof *w->ceiling.rank);
    if (!w->ceiling.rank)
        return LW_ENOMEM;
    LW_TRY(walk(w, "uniform", NULL, row));
    LW_TRY(add_row(w, "untrained", &row));
    LW_TRY(walk(w, NULL, NULL, row));
    LW_TRY(run_policies(w, kge));
    w->p->half_row = w->p->n;
    LW_TRY(add_row(w, "half links", &row));
    LW_TRY(by_half_links(w, row));
    if (kge) {
        LW_TRY(add_row(w, "embedding", &row));
        LW_TRY(by_embedding(w, kge, row));
    }
    LW_TRY(add_row(w, "rules", &row));
    LW_TRY(by_rules(w, row));
    if (w->p->provable < 0)
        return 0;
    w->p->ceiling_row = w->p->n;
    LW_TRY(add_row(w, "ceiling", &row));
    lw_free(&row->rank);
    row->rank = lw_steal(&w->ceiling.rank);
    row->true_proved = (double)w->p->provable / (double)w->p->queries->n;
    return 0;
}

static int make(lw_provers *p, const lw_provers_options *o)
{
    enum { OTHERS = 8 };
    const size_t n = (size_t)p->queries->n;
    p->seeds = o->seeds;
    p->provable = p->ceiling_row = -1;
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        if (o->eval.mode[m])
            p->modes[p->n_modes++] = m;
    if (o->eval.mode[LW_CORRUPT_BOTH])
        return lw_fail(LW_EUSAGE, "prove compare wants corruption modes head and tail");
    p->row = lw_calloc((size_t)(OTHERS + 2 * o->n_policies), sizeof *p->row);
    p->depth = lw_calloc(n + 1, sizeof *p->depth);
    p->half = lw_calloc(lists_of(p) + 1, 1);
    return p->row && p->depth && p->half ? 0 : LW_ENOMEM;
}

int lw_provers_run(const lw_kb *kb, const lw_queries *q, const lw_positives *known,
                   const lw_provers_options *o, const lw_observer *obs, lw_provers *out)
{
    LW_CLEANUP(lw_provers_clear) lw_provers p = {.kb = kb, .queries = q};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_kge_close) lw_kge *kge = NULL;
    const double began = lw_now();
    LW_TRY(make(&p, o));
    LW_TRY(lw_session_device(o->threads, &dev));
    lw_pool_watch(dev->pool, obs);
    if (o->kge)
        LW_TRY(lw_kge_open(o->kge, o->ema, kb, dev, &kge));
    work w = {.p = &p, .known = known, .o = o, .obs = obs, .dev = dev};
    int rc = try_policies(&w);
    rc = rc == 0 ? find_depths(&w) : rc;
    find_halves(&p);
    rc = rc < 0 ? rc : run_rows(&w, kge);
    lw_free(&w.ceiling.rank);
    LW_TRY(rc);
    p.seconds = lw_now() - began;
    *out = p;
    p = (lw_provers){0};
    return 0;
}

void lw_provers_clear(lw_provers *p)
{
    for (int32_t i = 0; i < p->n; i++) {
        lw_free(&p->row[i].name);
        lw_free(&p->row[i].rank);
    }
    lw_free(&p->row);
    lw_free(&p->depth);
    lw_free(&p->half);
    *p = (lw_provers){0};
}
