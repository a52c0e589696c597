/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times walks on a dataset: the first 100 test queries with 100 corruptions each, half heads, half
 * tails. An embedding policy by formula walks twice as far as the uniform one when it takes the
 * most probable choice; with sample=1 temperature=30 it walks as far.
 *
 *   bench_walks DATASET [rules=FILE] [policy=uniform|formula] [seed=0] [precision=f32|bf16]
 *               [threads=0] [batch=512] [rows=1024] [cache=16] [sample=0] [temperature=0]
 *               [queries=100] [corruptions=100]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "models/models.h"
#include "prove/prove_walks.h"

typedef struct crowd {
    const lw_kb *kb;
    lw_queries queries;
    int64_t at, n, each; /* walks: given, in all, of a query */
    lw_rng_key key;
    int64_t end[5];
    double log_prob; /* sum */
} crowd;

static bool next(void *self, lw_walk *out)
{
    crowd *c = self;
    if (c->at == c->n)
        return false;
    int64_t i = c->at++, k = i % c->each;
    *out = (lw_walk){.id = i, .query = c->queries.atom[i / c->each]};
    if (k > 0)
        out->query.arg[k % 2] = 1 + (int32_t)lw_rng_below(c->key, 1000, (uint64_t)i, 0,
                                                          (uint32_t)c->kb->n_constants);
    return true;
}

static int done(void *self, const lw_walk_result *r)
{
    crowd *c = self;
    c->end[r->end]++;
    c->log_prob += r->log_prob;
    return 0;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    size_t n = strlen(name);
    for (int i = 2; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    return otherwise;
}

static int number(int argc, char **argv, const char *name, const char *otherwise)
{
    return atoi(option(argc, argv, name, otherwise));
}

static void print(const crowd *c, const lw_walks *w)
{
    const lw_walks_counts *n = lw_walks_counted(w);
    double fill = n->plan_runs ? (double)n->states_scored / (double)n->plan_runs : 0;
    printf("ends: %lld proved, %lld failed, %lld gave up, %lld deep; sum of log-probabilities "
           "%.17g\n",
           (long long)c->end[1], (long long)c->end[2], (long long)c->end[3], (long long)c->end[4],
           c->log_prob);
#define C(field, what) printf("%12lld  %-16s %s\n", (long long)n->field, #field, what);
    LW_WALKS_COUNTS(C)
#undef C
    printf("%.1f rows a run; hits %.2f %%; %.1f MiB\n", fill,
           100.0 * (double)n->cache_hits / (double)(n->states_wanted ? n->states_wanted : 1),
           (double)lw_walks_bytes(w) / (1 << 20));
    printf("seconds: %.3f all, %.3f engine, %.3f look-up, %.3f network, %.3f choice\n", n->seconds,
           n->engine_seconds, n->lookup_seconds, n->network_seconds, n->choice_seconds);
}

static int measure(int argc, char **argv)
{
    LW_CLEANUP(lw_problems_clear) lw_problems problems = {0};
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    LW_CLEANUP(lw_cpu_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    crowd c = {.key = lw_rng_key_of(1, lw_hash_name("bench_walks"))};
    const lw_kb_options k = {.dir = argv[1], .rules_file = option(argc, argv, "rules", NULL)};
    LW_TRY(lw_kb_open(&k, &problems, &kb));
    const lw_query_options q = {.split = "test", .limit = number(argc, argv, "queries", "100")};
    LW_TRY(lw_queries_open(kb, &q, &problems, &c.queries));
    LW_TRY(lw_cpu_open(number(argc, argv, "threads", "0"), lw_isa_best(), &dev));
    lw_policy_config config = lw_policy_default(kb->n_constants, lw_kb_endf(kb));
    config.temperature = (float)atof(option(argc, argv, "temperature", "0"));
    lw_policy_source source = {NULL, NULL};
    if (lw_str_eq(option(argc, argv, "policy", "formula"), "formula")) {
        LW_TRY(lw_store_new(true, &store));
        LW_TRY(lw_policy_declare(&config, store));
        LW_TRY(lw_policy_formula(&config, (uint64_t)number(argc, argv, "seed", "0"), store));
        source = (lw_policy_source){&config, store};
    }
    lw_walks_options o = lw_walks_defaults();
    o.fixed_batch_size = number(argc, argv, "batch", "512");
    o.rows = number(argc, argv, "rows", "1024");
    o.cache_bytes = (size_t)number(argc, argv, "cache", "16") << 20;
    o.sample = number(argc, argv, "sample", "0");
    if (lw_str_eq(option(argc, argv, "precision", "f32"), "bf16"))
        o.precision = LW_NUM_BF16;
    c.kb = kb;
    c.each = 1 + number(argc, argv, "corruptions", "100");
    c.n = c.queries.n * c.each;
    LW_TRY(lw_walks_new(kb, dev, &source, &o, &w));
    LW_TRY(lw_walks_run(w, next, done, &c));
    print(&c, w);
    lw_queries_clear(&c.queries);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_walks DATASET [name=value ..]\n");
        return 2;
    }
    if (measure(argc, argv) < 0) {
        fprintf(stderr, "bench_walks: %s\n", lw_errmsg());
        return 1;
    }
    return 0;
}
