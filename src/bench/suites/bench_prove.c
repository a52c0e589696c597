/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of proofs over a family drawn by lot, by no network and by one of the published size with
 * formula weights. `prove bench` has the figures of a dataset.
 */
#include <math.h>

#include "models/models.h"
#include "bench/bench_case.h"
#include "bench/bench_workload.h"
#include "jobs/prove/bench/prove_bench_job.h"
#include "session/session_quantization.h"

enum { PEOPLE = 600, WALKS = 512, COMPARED = 32 };

static const char rules[] = "uncle(X,Y) :- sibling(X,Z), parent(Z,Y).\n"
                            "uncle(X,Y) :- spouse(X,Z), uncle(Z,Y).\n"
                            "uncle(X,Y) :- uncle(X,Z), sibling(Z,Y).\n"
                            "sibling(X,Y) :- parent(Z,X), parent(Z,Y).\n"
                            "sibling(X,Y) :- sibling(Y,X).\n"
                            "sibling(X,Y) :- uncle(Z,X), uncle(Z,Y).\n"
                            "parent(X,Y) :- spouse(X,Z), parent(Z,Y).\n"
                            "parent(X,Y) :- parent(X,Z), sibling(Z,Y).\n"
                            "spouse(X,Y) :- parent(X,Z), parent(Y,Z).\n";

/* What is walked, and by what. */
typedef struct crowd {
    lw_kb *kb;
    lw_policy_config config;
    lw_store *store;
    lw_policy_source source;
    lw_walks *walks;
    lw_atom query[WALKS];
    float score[WALKS];
    int32_t at, n;
} crowd;

/* ---- the family ------------------------------------------------------------------------------ */

/* Every second person marries the next one; couples are the parents of those behind them. A fifth
 * of what is true is left out. */
static int make_family(crowd *c)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    LW_CLEANUP(lw_problems_clear) lw_problems problems = {0};
    const lw_rng_key key = lw_rng_key_of(1, lw_hash_name("bench family"));
    for (int i = 0; i + 1 < PEOPLE; i += 2) {
        int first = 2 * i + 2;
        lw_str_addf(&facts, "spouse(p%d,p%d).\n", i, i + 1);
        for (int k = 0; k < 4 && first + 3 < PEOPLE; k++) {
            uint32_t die = lw_rng_below(key, 0, (uint64_t)i, (uint32_t)k, 5);
            if (die > 0)
                lw_str_addf(&facts, "parent(p%d,p%d).\n", i + (int)(die % 2), first + k);
            if (die != 3)
                lw_str_addf(&facts, "sibling(p%d,p%d).\n", first + k, first + (k + 1) % 4);
        }
    }
    const lw_kb_texts t = {lw_span_of(lw_str_c(&facts)), lw_span_of(rules), {NULL, 0}};
    LW_TRY(lw_kb_parse(&t, &problems, &c->kb));
    for (int i = 0; i < WALKS; i++) {
        lw_atom *a = &c->query[i];
        a->p = 1 + (int32_t)lw_rng_below(key, 1, (uint64_t)i, 0, (uint32_t)c->kb->n_predicates);
        for (uint32_t j = 0; j < 2; j++)
            a->arg[j] = 1 + (int32_t)lw_rng_below(key, 2 + j, (uint64_t)i, 0,
                                                  (uint32_t)c->kb->n_constants);
    }
    return 0;
}

static int make_policy(crowd *c)
{
    c->config = lw_policy_default(c->kb->n_constants, lw_kb_endf(c->kb));
    LW_TRY(lw_store_new(true, &c->store));
    LW_TRY(lw_policy_declare(&c->config, c->store));
    LW_TRY(lw_policy_formula(&c->config, 0, c->store));
    c->source = (lw_policy_source){&c->config, c->store};
    return 0;
}

static void close_crowd(crowd *c)
{
    lw_walks_free(&c->walks);
    lw_store_free(&c->store);
    lw_kb_free(&c->kb);
}

/* ---- walking --------------------------------------------------------------------------------- */

static bool next_walk(void *self, lw_walk *out)
{
    crowd *c = self;
    if (c->at == c->n)
        return false;
    *out = (lw_walk){.id = c->at, .query = c->query[c->at]};
    c->at++;
    return true;
}

static int keep_score(void *self, const lw_walk_result *r)
{
    crowd *c = self;
    c->score[r->walk.id] = (float)r->log_prob;
    return 0;
}

/* All walks, with nothing known from the call before. */
static int walk_all(void *self)
{
    crowd *c = self;
    c->at = 0;
    if (c->store)
        lw_store_touch(c->store, LW_SLAB_PARAM);
    return lw_walks_run(c->walks, next_walk, keep_score, c);
}

static int open_walks(crowd *c, lw_device *dev, bool network, const lw_walks_options *o)
{
    lw_walks_free(&c->walks);
    return lw_walks_new(c->kb, dev, network ? &c->source : NULL, o, &c->walks);
}

/* First choices of a few walks beside those of the reference kernels: the probability of the most
 * probable successor is continuous, whichever that is. */
static int measure_error(lw_bench_run *r, crowd *c, const lw_walks_options *o, double *error)
{
    float fast[COMPARED];
    lw_walks_options one = *o;
    one.env.max_depth = 1;
    one.rows = 64;
    c->n = COMPARED;
    LW_TRY(open_walks(c, r->dev, true, &one));
    LW_TRY(walk_all(c));
    memcpy(fast, c->score, sizeof fast);
    one.precision = LW_NUM_F32;
    LW_TRY(open_walks(c, r->ref, true, &one));
    LW_TRY(walk_all(c));
    *error = lw_workload_error_of(fast, c->score, COMPARED, NULL);
    return 0;
}

static int measure(lw_bench_run *r, crowd *c, const char *name, bool network, lw_num precision)
{
    lw_walks_options o = lw_walks_defaults();
    lw_bench_work w = {.name = name,
                       .method = network ? lw_precision_name(precision) : "uniform",
                       .num = precision,
                       .call = walk_all,
                       .self = c,
                       .error = (double)NAN};
    if (!network && lw_str_starts(r->dev->name, "cuda"))
        return lw_bench_skip(r, name, w.method, 0, 0,
                             "without a policy nothing is left for a GPU: --device cpu");
    o.precision = (int32_t)precision;
    if (network && r->config->reference) {
        LW_TRY(measure_error(r, c, &o, &w.error));
        w.against = "ref";
    }
    c->n = WALKS;
    LW_TRY(open_walks(c, r->dev, network, &o));
    LW_TRY(walk_all(c));
    w.memory = lw_walks_bytes(c->walks);
    if (network)
        w.flops = lw_prove_bench_flops(&c->config, lw_walks_counted(c->walks));
    return lw_bench_measure(r, &w, NULL);
}

static const struct {
    const char *name;
    bool network;
    lw_num precision;
} cases[] = {{"walk_512_uniform", false, LW_NUM_F32},
             {"walk_512", true, LW_NUM_F32},
             {"walk_512_bf16", true, LW_NUM_BF16}};

static int run_cases(lw_bench_run *r, crowd *c)
{
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        if (!lw_bench_wants(r, cases[i].name))
            continue;
        if (!c->kb) {
            LW_TRY(make_family(c));
            LW_TRY(make_policy(c));
        }
        LW_TRY(measure(r, c, cases[i].name, cases[i].network, cases[i].precision));
    }
    return 0;
}

int lw_bench_suite_prove(lw_bench_run *r)
{
    LW_CLEANUP(lw_free) crowd *c = lw_calloc(1, sizeof *c);
    if (!c)
        return LW_ENOMEM;
    int rc = run_cases(r, c);
    close_crowd(c);
    return rc;
}
