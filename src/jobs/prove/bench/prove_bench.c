/* SPDX-License-Identifier: Apache-2.0 */
/* Cases and steps of a bench of walks, timed. */
#include "jobs/prove/bench/prove_bench_job.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "models/models.h"

enum { FEWEST_OF_STEPS = 5 }; /* samples */

/* What a walk came to; compared between cases. */
typedef struct outcome {
    double log_prob;
    int32_t depth, end;
} outcome;

typedef struct bench_run {
    const lw_kb *kb;
    lw_device *dev;
    const lw_policy_source *policy;
    const lw_queries *q;
    const lw_prove_bench_config *c;
    const lw_observer *obs;
    lw_prove_bench *b;
    lw_atom *candidate;
    size_t cap;
    int64_t n, at, most; /* most: walks of this run, the first ones */
    outcome *now, *f32;  /* [n] */
    bool known;          /* f32 holds results */
    bool repeated;       /* every candidate is the first query */
    lw_prove_eval ranks; /* of f32; no lists: not yet */
    int64_t sample, samples;
} bench_run;

lw_prove_bench_config lw_prove_bench_defaults(void)
{
    return (lw_prove_bench_config){.walks = lw_walks_defaults(),
                                   .corrupt = {.n = 100},
                                   .mode = LW_CORRUPT_BOTH,
                                   .batch = {64, 128, 256, 512, 1024, 2048, 4096},
                                   .n_batch = 7,
                                   .samples = 3,
                                   .steps = true,
                                   .least_model_memory = (size_t)128 << 20};
}

/* ---- candidates ------------------------------------------------------------------------------ */

static int add_candidate(bench_run *r, lw_atom a)
{
    LW_TRY(lw_grow(&r->candidate, &r->cap, (size_t)r->n + 1, sizeof *r->candidate));
    r->candidate[r->n++] = a;
    return 0;
}

static int make_candidates(bench_run *r, const lw_queries *q)
{
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *corruptor = NULL;
    LW_TRY(lw_corruptor_new(r->kb, &r->c->corrupt, NULL, 0, &corruptor));
    for (int32_t i = 0; i < q->n; i++) {
        lw_corruptions stream;
        lw_atom a;
        LW_TRY(add_candidate(r, q->atom[i]));
        lw_corruptions_begin(corruptor, q->atom[i], (lw_corrupt_mode)r->c->mode, &stream);
        while (lw_corruptions_next(corruptor, &stream, &a))
            LW_TRY(add_candidate(r, a));
    }
    if (r->n == 0)
        return lw_fail(LW_EUSAGE, "there is no query to walk");
    r->now = lw_calloc((size_t)r->n, sizeof *r->now);
    r->f32 = lw_calloc((size_t)r->n, sizeof *r->f32);
    return r->now && r->f32 ? 0 : LW_ENOMEM;
}

static bool next_walk(void *self, lw_walk *out)
{
    bench_run *r = self;
    if (r->at == r->most)
        return false;
    *out = (lw_walk){.id = r->at, .query = r->candidate[r->repeated ? 0 : r->at]};
    r->at++;
    return true;
}

static int keep_outcome(void *self, const lw_walk_result *w)
{
    bench_run *r = self;
    r->now[w->walk.id] = (outcome){w->log_prob, w->depth, (int32_t)w->end};
    return 0;
}

/* ---- one sample ------------------------------------------------------------------------------ */

typedef struct sample {
    double set_up, run, cpu; /* ms */
    lw_walks_counts counts;
    size_t bytes;
} sample;

static lw_walks_counts less(lw_walks_counts a, const lw_walks_counts *b)
{
#define C(field, what) a.field -= b->field;
    LW_WALKS_COUNTS(C)
#undef C
#define C(field, what) a.env.field -= b->env.field;
    LW_ENV_COUNTS(C)
#undef C
    a.seconds -= b->seconds;
    a.engine_seconds -= b->engine_seconds;
    a.lookup_seconds -= b->lookup_seconds;
    a.network_seconds -= b->network_seconds;
    a.choice_seconds -= b->choice_seconds;
    return a;
}

static int walk(bench_run *r, lw_walks *w, int64_t most)
{
    r->at = 0;
    r->most = most;
    return lw_walks_run(w, next_walk, keep_outcome, r);
}

/* What samples of a kind are of. */
typedef struct kind {
    const char *name;
    const lw_policy_source *policy;
    lw_walks_options o;
    int64_t most;   /* walks */
    int32_t fewest; /* samples, however few are asked for */
    bool ranks, two_stage;
} kind;

static int expect_same_ranks(bench_run *r, lw_prove_eval *e, const char *name)
{
    for (int32_t i = 0; i < r->ranks.n_lists; i++) {
        const lw_prove_list *is = &e->list[i], *was = &r->ranks.list[i];
        if (is->score != was->score || memcmp(&is->rank, &was->rank, sizeof is->rank) != 0)
            return lw_fail(LW_EFAILED, "query %d: %s ranks it otherwise than f32",
                           (int)is->query + 1, name);
    }
    if (r->ranks.n_lists > 0)
        return 0;
    r->ranks = *e;
    *e = (lw_prove_eval){0};
    return 0;
}

static int rank_sample(bench_run *r, const kind *k, sample *out)
{
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    lw_prove_eval_options o = lw_prove_eval_defaults();
    const double cpu = lw_process_seconds();
    o.walks = k->o;
    o.corrupt = r->c->corrupt;
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        o.mode[m] = m == r->c->mode;
    o.ranks_only = true;
    o.two_stage = k->two_stage;
    o.least_model_memory = r->c->least_model_memory;
    LW_TRY(lw_prove_eval_run(r->kb, r->q, NULL, 0, r->dev, k->policy, &o, r->obs, &e));
    if (e.interrupted)
        return lw_fail(LW_ESTOPPED, "stopped");
    *out = (sample){.set_up = 1e3 * (e.seconds - e.walks.seconds),
                    .run = 1e3 * e.walks.seconds,
                    .cpu = 1e3 * (lw_process_seconds() - cpu),
                    .counts = e.walks,
                    .bytes = e.bytes};
    return expect_same_ranks(r, &e, k->name);
}

/* A new set-up, one candidate for what is prepared at the first run, then all `most`. */
static int take_sample(bench_run *r, const kind *k, sample *out)
{
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    double began = lw_now();
    LW_TRY(lw_walks_new(r->kb, r->dev, k->policy, &k->o, &w));
    lw_walks_observe(w, r->obs);
    LW_TRY(walk(r, w, 1));
    const lw_walks_counts before = *lw_walks_counted(w);
    double ready = lw_now();
    double cpu = lw_process_seconds();
    LW_TRY(walk(r, w, k->most));
    *out = (sample){.set_up = 1e3 * (ready - began),
                    .run = 1e3 * (lw_now() - ready),
                    .cpu = 1e3 * (lw_process_seconds() - cpu),
                    .counts = less(*lw_walks_counted(w), &before),
                    .bytes = lw_walks_bytes(w)};
    return lw_observe_stop(r->obs) ? lw_fail(LW_ESTOPPED, "stopped") : 0;
}

/* Samples of one kind, at most config->samples: the one of median time, and statistics. */
static int take_samples(bench_run *r, const kind *k, lw_summary *set_up, lw_summary *run,
                        sample *middle)
{
    const int32_t n = LW_MAX(r->c->samples, LW_MAX(k->fewest, 1));
    LW_CLEANUP(lw_free) sample *s = lw_calloc((size_t)n, sizeof *s);
    LW_CLEANUP(lw_free) double *ms = lw_calloc(2 * (size_t)n, sizeof *ms);
    double began = lw_now();
    int32_t taken = 0, best = 0;
    if (!s || !ms)
        return LW_ENOMEM;
    while (taken < n && (taken == 0 || r->c->seconds <= 0 || lw_now() - began < r->c->seconds)) {
        lw_observe_progress(r->obs, "bench", r->sample + taken, r->samples, k->name);
        LW_TRY(k->ranks ? rank_sample(r, k, &s[taken]) : take_sample(r, k, &s[taken]));
        ms[taken] = s[taken].run;
        ms[n + taken] = s[taken].set_up;
        taken++;
    }
    r->sample += n;
    *run = lw_summarize(ms, taken);
    *set_up = lw_summarize(ms + n, taken);
    for (int32_t i = 1; i < taken; i++)
        if (fabs(ms[i] - run->p50) < fabs(ms[best] - run->p50))
            best = i;
    *middle = s[best];
    return 0;
}

/* ---- cases ----------------------------------------------------------------------------------- */

double lw_prove_bench_flops(const struct lw_policy_config *c, const lw_walks_counts *n)
{
    double h = c->hidden, key = lw_policy_key_width(c);
    double row = 2 * h * h * (c->blocks + 1) + (c->l2_norm ? 2 * h * c->embed : 0);
    double query = c->l2_norm ? 0 : 2 * h * h;
    return row * (double)n->states_scored + query * (double)n->query_rows +
           2 * key * (double)n->states_wanted;
}

static double share_of(double flops, double seconds, double gflops)
{
    return seconds > 0 && gflops > 0 ? 1e-9 * flops / seconds / gflops : (double)NAN;
}

/* Equal results of all f32 cases, whatever batch and cache; the first query's each time it is walked again, unless
 * choices are drawn anew. */
static int expect_same(bench_run *r, const lw_prove_bench_case *k)
{
    if (!lw_str_eq(k->method, "f32") && !r->repeated)
        return 0;
    if (!r->known) {
        r->known = true;
        memcpy(r->f32, r->now, (size_t)r->n * sizeof *r->now);
        return 0;
    }
    for (int64_t i = 0; i < (r->repeated && r->c->walks.sample ? 1 : r->n); i++) {
        const outcome *is = &r->now[i], *was = &r->f32[r->repeated ? 0 : i];
        if (is->log_prob != was->log_prob || is->end != was->end || is->depth != was->depth)
            return lw_fail(LW_EFAILED, "candidate %lld: %s gives another result than %s",
                           (long long)i, k->name, r->b->cases[1].name);
    }
    return 0;
}

static int add_case(bench_run *r, const char *method, int32_t batch, size_t cache)
{
    lw_prove_bench_case *k = &r->b->cases[r->b->n_cases];
    const bool uniform = lw_str_eq(method, "uniform"), stages = lw_str_eq(method, "two stages"),
               ranks = stages || lw_str_eq(method, "ranks");
    kind of = {.name = k->name,
               .policy = uniform ? NULL : r->policy,
               .o = r->c->walks,
               .most = r->n,
               .ranks = ranks,
               .two_stage = stages};
    sample s;
    r->repeated = lw_str_eq(method, "repeated");
    of.o.fixed_batch_size = batch;
    of.o.cache_bytes = cache;
    of.o.precision = lw_str_eq(method, "bf16") ? LW_NUM_BF16 : LW_NUM_F32;
    *k = (lw_prove_bench_case){.method = method, .batch = batch};
    snprintf(k->name, sizeof k->name, "%s%s, batch %d%s",
             uniform ? ""
             : ranks ? "ranks, "
                     : "network ",
             r->repeated || (ranks && !stages) ? "f32" : method, batch,
             r->repeated              ? ", one query"
             : cache == 0 && !uniform ? ", nothing kept"
                                      : "");
    LW_TRY(take_samples(r, &of, &k->set_up, &k->run, &s));
    k->counts = s.counts;
    k->counts_ms = s.run;
    k->cpu_ms = s.cpu;
    k->fill = s.counts.plan_runs == 0
                  ? (double)NAN
                  : (double)s.counts.states_scored / ((double)s.counts.plan_runs * of.o.rows);
    k->bytes = s.bytes;
    k->flops = uniform ? 0 : lw_prove_bench_flops(r->policy->config, &s.counts);
    double peak = uniform || stages ? 0 : lw_machine_rate(&r->b->peak, (lw_num)of.o.precision);
    k->share = share_of(k->flops, 1e-3 * k->run.p50, peak);
    k->network_share = share_of(k->flops, s.counts.network_seconds, peak);
    r->b->n_cases++;
    return ranks ? 0 : expect_same(r, k);
}

static int run_cases(bench_run *r)
{
    const lw_prove_bench_config *c = r->c;
    int32_t usual = c->walks.fixed_batch_size;
    r->b->cases = lw_calloc((size_t)c->n_batch + 7, sizeof *r->b->cases);
    if (!r->b->cases)
        return LW_ENOMEM;
    LW_TRY(add_case(r, "uniform", usual, c->walks.cache_bytes));
    LW_TRY(add_case(r, "f32", usual, c->walks.cache_bytes));
    for (int32_t i = 0; i < c->n_batch; i++)
        if (c->batch[i] != usual)
            LW_TRY(add_case(r, "f32", c->batch[i], c->walks.cache_bytes));
    if (c->walks.cache_bytes > 0)
        LW_TRY(add_case(r, "f32", usual, 0));
    LW_TRY(add_case(r, "repeated", usual, c->walks.cache_bytes));
    LW_TRY(add_case(r, "bf16", usual, c->walks.cache_bytes));
    LW_TRY(add_case(r, "ranks", usual, c->walks.cache_bytes));
    return add_case(r, "two stages", usual, c->walks.cache_bytes);
}

/* ---- steps ----------------------------------------------------------------------------------- */

void lw_prove_bench_step_times(lw_prove_bench_step *s, int32_t n)
{
    for (int32_t d = n - 2; d >= 0; d--)
        s[d].all.min = LW_MIN(s[d].all.min, s[d + 1].all.min);
    for (int32_t d = 0; d < n; d++)
        s[d].ms = s[d].all.min - (d > 0 ? s[d - 1].all.min : 0);
}

/* Walks that may take one step longer each time. A step is the difference of two runs: disturb the first of them and
 * the step looks cheap, disturb the second and it is a spike, so a single sample would not do. */
static int run_steps(bench_run *r)
{
    lw_prove_bench *b = r->b;
    int64_t most = LW_MIN(r->n, r->c->walks.fixed_batch_size);
    b->step_batch = (int32_t)most;
    b->steps = lw_calloc((size_t)b->max_depth, sizeof *b->steps);
    if (!b->steps)
        return LW_ENOMEM;
    for (int32_t d = 0; d < b->max_depth; d++) {
        kind of = {.name = "steps",
                   .policy = r->policy,
                   .o = r->c->walks,
                   .most = most,
                   .fewest = FEWEST_OF_STEPS};
        lw_summary set_up, run;
        sample s;
        int64_t done = 0;
        for (int64_t i = 0; i < most; i++)
            done += r->f32[i].depth <= d;
        if (done == most)
            break;
        of.o.env.max_depth = d + 1;
        LW_TRY(take_samples(r, &of, &set_up, &run, &s));
        b->steps[b->n_steps++] = (lw_prove_bench_step){(double)done / (double)most, 0, run};
    }
    lw_prove_bench_step_times(b->steps, b->n_steps);
    return 0;
}

/* Batches in order, each of which takes as many steps as its longest proof. */
static int count_padding(bench_run *r)
{
    lw_prove_bench *b = r->b;
    int64_t batch = r->c->walks.fixed_batch_size;
    b->active = lw_calloc((size_t)b->max_depth + 1, sizeof *b->active);
    if (!b->active)
        return LW_ENOMEM;
    for (int64_t i = 0, longest = 0; i < r->n; i++) {
        const outcome *o = &r->f32[i];
        longest = LW_MAX(longest, o->depth);
        b->query_steps += o->depth;
        b->proved += o->end == LW_PROOF_PROVED;
        for (int32_t d = 0; d < o->depth; d++)
            b->active[d] += 1.0 / (double)r->n;
        if (i == r->n - 1 || i % batch == batch - 1) {
            b->padded_steps += (double)(longest * batch);
            longest = 0;
        }
    }
    b->padded_states = r->c->walks.env.padding_states + 1;
    return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int bench(bench_run *r, const lw_queries *q)
{
    lw_prove_bench *b = r->b;
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    LW_TRY(make_candidates(r, q));
    b->max_depth = r->c->walks.env.max_depth;
    b->candidates = r->n;
    b->queries = q->n;
    b->threads = lw_pool_size(r->dev->pool);
    b->machine = lw_machine_json(b->threads, isa);
    if (!b->machine)
        return lw_fail(LW_ENOMEM, "no memory for the machine's description");
    r->samples = r->c->samples * (int64_t)(r->c->n_batch + 6);
    if (r->c->steps)
        r->samples += LW_MAX(r->c->samples, FEWEST_OF_STEPS) * (int64_t)r->c->walks.env.max_depth;
    lw_observe_progress(r->obs, "bench", 0, r->samples, "what this machine can do");
    LW_TRY(lw_machine_measure(b->threads, isa, r->obs, &b->peak));
    LW_TRY(run_cases(r));
    LW_TRY(count_padding(r));
    return r->c->steps ? run_steps(r) : 0;
}

int lw_prove_bench_run(const lw_kb *kb, const lw_queries *q, lw_device *dev,
                       const lw_policy_source *policy, const lw_prove_bench_config *c,
                       const lw_observer *obs, lw_prove_bench *out)
{
    LW_CLEANUP(lw_prove_bench_clear) lw_prove_bench b = {0};
    bench_run r = {.kb = kb, .dev = dev, .policy = policy, .q = q, .c = c, .obs = obs, .b = &b};
    if (!policy || !policy->config)
        return lw_fail(LW_EUSAGE, "the uniform policy has no network to measure; take "
                                  "formula[:SEED] or a model folder");
    int rc = bench(&r, q);
    if (rc == LW_ESTOPPED)
        lw_fail(rc, "interrupted after %lld of %lld samples: nothing is written",
                (long long)r.sample, (long long)r.samples);
    lw_free(&r.candidate);
    lw_free(&r.now);
    lw_free(&r.f32);
    lw_prove_eval_clear(&r.ranks);
    if (rc == 0) {
        *out = b;
        b = (lw_prove_bench){0};
    }
    return rc;
}

void lw_prove_bench_clear(lw_prove_bench *b)
{
    lw_free(&b->cases);
    lw_free(&b->steps);
    lw_free(&b->active);
    lw_json_drop(&b->machine);
    b->n_cases = b->n_steps = 0;
}
