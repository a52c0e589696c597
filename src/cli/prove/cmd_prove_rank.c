/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove rank: queries ranked among their corruptions by an embedding alone, or by rules. */
#include <stdio.h>

#include "eval/eval.h"
#include "jobs/prove/kge/kge_job.h"

#include "cli/prove/cmd_prove_candidates.h"

enum { BY_KGE, BY_RULES };

typedef struct rank_cli {
    lw_prove_cli data;
    lw_prove_candidates candidates;
    const char *kge, *confidence, *save_ranks;
    int32_t by, score;
} rank_cli;

static const lw_option options[] = {
    {LW_OPT(rank_cli, by), .name = "by", .choices = "kge|rules", .fallback = "kge",
     .group = "Model", .help = "what scores candidates: an embedding; the rules, applied once"},
    {LW_OPT(rank_cli, kge), .name = "kge", .path = LW_PATH_IN, .unit = "source", .group = "Model",
     .help = "run of `prove kge`, checkpoint or model folder"},
    {LW_OPT(rank_cli, confidence), .name = "confidence", .path = LW_PATH_IN, .unit = "file",
     .group = "Model",
     .help = "of rules: a number at the end of each line, in the rules' order, for the weights in "
             "their own file"},
    {LW_OPT(rank_cli, score), .name = "rule-score", .choices = LW_RULE_SCORE_CHOICES,
     .fallback = "max-plus", .group = "Model",
     .help =
         "of a candidate by its rules: highest confidence, ties by the next ones; highest only; "
         "1 - product(1 - confidence)"},
    {LW_OPT(rank_cli, data.split), .name = "split", .fallback = "test", .unit = "name",
     .group = "Queries", .help = "test, valid or train"},
    LW_PROVE_CANDIDATES_N(rank_cli, candidates, "all", "Candidates"),
    LW_PROVE_CANDIDATES_MODES(rank_cli, candidates, "Candidates"),
    LW_PROVE_CANDIDATES_FILTERED(rank_cli, candidates, "Candidates"),
    LW_PROVE_CANDIDATES_DOMAINS(rank_cli, candidates, "Candidates"),
    LW_PROVE_CANDIDATES_RULE(rank_cli, candidates, "Candidates"),
    {LW_OPT(rank_cli, save_ranks), .name = "save-ranks", .path = LW_PATH_OUT, .unit = "csv",
     .endings = ".csv", .group = "Output",
     .help = "of every query in every mode: its score, and candidates above, "
             "level with and below it"},
    {.name = NULL}};

/* Everything of one invocation. */
typedef struct ranking {
    lw_kb *kb;
    lw_corruptor *pool;
    lw_positives known;
    lw_queries queries;
    int64_t drawn; /* corruptions of a list, 0: all */
    double *confidence;
    lw_rank_lists ranks;
} ranking;

static void ranking_clear(ranking *r)
{
    lw_corruptor_free(&r->pool);
    lw_positives_clear(&r->known);
    lw_queries_clear(&r->queries);
    lw_rank_lists_clear(&r->ranks);
    lw_free(&r->confidence);
    lw_kb_free(&r->kb);
}

static int open_pool(const lw_corrupt_options *c, ranking *r)
{
    r->drawn = c->n;
    if (c->filtered)
        LW_TRY(lw_positives_open(r->kb, &r->known));
    return lw_corruptor_new(r->kb, c, r->known.set, c->filtered ? LW_QUERIES_SPLITS : 0, &r->pool);
}

static lw_kge_rank_options kge_options(const rank_cli *o, const ranking *r)
{
    lw_kge_rank_options k = {.pool = r->pool, .drawn = r->drawn > 0, .keep = o->save_ranks != NULL};
    lw_prove_modes(o->candidates.modes, o->candidates.n_modes, k.mode);
    return k;
}

static int check_options(const rank_cli *o)
{
    if (o->by == BY_KGE && !o->kge)
        return lw_fail(LW_EUSAGE, "prove rank wants --kge RUN, or --by rules");
    if (o->by == BY_RULES && o->kge)
        return lw_fail(LW_EUSAGE, "--by rules: the embedding of --kge has no say");
    if (o->by == BY_KGE && o->confidence)
        return lw_fail(LW_EUSAGE, "--confidence is for --by rules");
    return 0;
}

static int rank_by_rules(const rank_cli *o, int threads, const lw_observer *obs, ranking *r)
{
    lw_rules_rank_options ro = {
        .kb = r->kb, .pool = r->pool, .drawn = r->drawn > 0, .score = o->score};
    lw_prove_modes(o->candidates.modes, o->candidates.n_modes, ro.mode);
    if (o->confidence) {
        LW_CLEANUP(lw_free) char *text = NULL;
        size_t n;
        LW_TRY(lw_file_read(o->confidence, 0, &text, &n));
        r->confidence = lw_calloc((size_t)r->kb->n_rules + 1, sizeof *r->confidence);
        if (!r->confidence)
            return LW_ENOMEM;
        LW_TRY(lw_rule_confidences(r->kb, o->confidence, (lw_span){text, n}, r->confidence));
        ro.confidence = r->confidence;
    }
    return lw_rules_rank(&ro, &r->queries, threads, obs, &r->ranks);
}

static int work(const lw_cli *cli, const rank_cli *o, lw_problems *problems, ranking *r)
{
    LW_TRY(check_options(o));
    lw_corrupt_options corrupt;
    LW_TRY(lw_prove_corruption(cli, &o->candidates, &corrupt));
    LW_TRY(lw_prove_open_queries(&o->data, problems, &r->kb, &r->queries));
    LW_TRY(open_pool(&corrupt, r));
    if (lw_prove_dry_run(cli, "rank", &r->queries, (int64_t)r->queries.n * o->candidates.n_modes,
                         r->drawn))
        return 0;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    lw_cli_observer_open(&obs, cli);
    if (o->by == BY_RULES)
        return rank_by_rules(o, cli->global.threads, &obs.calls, r);
    const lw_kge_rank_options ro = kge_options(o, r);
    return lw_kge_rank_source(o->kge, r->kb, &ro, &r->queries, cli->global.threads, &obs.calls,
                              &r->ranks);
}

/* ---- what was found ---------------------------------------------------------------------------- */

static int save_ranks(const rank_cli *o, const ranking *r)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    if (!o->save_ranks)
        return 0;
    lw_str_add(&s, "query,mode,score,higher,ties,lower\n");
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        for (int32_t i = 0; i < r->queries.n && r->ranks.list[m]; i++) {
            const lw_rank *x = &r->ranks.list[m][i];
            const int64_t counted[3] = {x->higher, x->ties, x->lower};
            LW_CLEANUP(lw_str_clear) lw_str query = {0};
            char n[3][24], score[32];
            lw_kb_print_atom(r->kb, r->queries.atom[i], &query);
            snprintf(score, sizeof score, "%.9g", r->ranks.score[m][i]);
            for (int k = 0; k < 3; k++)
                snprintf(n[k], sizeof n[k], "%lld", (long long)counted[k]);
            const char *const mode = lw_corrupt_mode_name((lw_corrupt_mode)m),
                              *const cells[] = {lw_str_c(&query), mode, score, n[0], n[1], n[2]};
            lw_csv_row(&s, cells, LW_COUNT(cells));
        }
    return lw_file_write(o->save_ranks, lw_str_c(&s), s.len);
}

static json_t *metrics_json(const lw_rank_sum *sum)
{
    lw_rank_metrics m = lw_rank_sum_means(sum);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "MRR", lw_json_real(m.mrr), "Hits@1",
                     lw_json_real(m.hits[0]), "Hits@3", lw_json_real(m.hits[1]), "Hits@10",
                     lw_json_real(m.hits[2]), "mean_rank", lw_json_real(m.mean_rank));
}

static const char *const score_name[] = {"max-plus", "max", "noisy-or"};

static json_t *report_json(const rank_cli *o, const ranking *r)
{
    json_t *j = metrics_json(&r->ranks.all[o->candidates.rank_rule]), *modes = json_object(),
           *rules = json_object();
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        if (r->ranks.sum[m][0].n > 0)
            json_object_set_new(modes, lw_corrupt_mode_name((lw_corrupt_mode)m),
                                metrics_json(&r->ranks.sum[m][o->candidates.rank_rule]));
    for (int i = 0; i < LW_RANK_RULES; i++)
        json_object_set_new(rules, lw_rank_rule_name((lw_rank_rule)i),
                            metrics_json(&r->ranks.all[i]));
    json_object_set_new(j, "per_mode", modes);
    json_object_set_new(j, "per_rule", rules);
    json_object_set_new(j, "rank_rule",
                        json_string(lw_rank_rule_text((lw_rank_rule)o->candidates.rank_rule)));
    json_object_set_new(j, "queries", json_integer(r->queries.n));
    json_object_set_new(j, "n_corruptions", json_integer((json_int_t)r->drawn));
    json_object_set_new(j, "candidates", json_integer((json_int_t)r->ranks.candidates));
    json_object_set_new(j, "lists_without_corruptions", json_integer((json_int_t)r->ranks.alone));
    json_object_set_new(j, "by", json_string(o->by == BY_RULES ? "rules" : "kge"));
    if (o->by == BY_RULES) {
        json_object_set_new(j, "rule_score", json_string(score_name[o->score]));
        json_object_set_new(j, "rules", json_integer(r->kb->n_rules));
        json_object_set_new(j, "goals", json_integer((json_int_t)r->ranks.goals));
    }
    json_object_set_new(j, "filtered", json_boolean(o->candidates.filtered));
    json_object_set_new(j, "memory", json_integer((json_int_t)r->ranks.bytes));
    json_object_set_new(j, "seconds", json_real(r->ranks.seconds));
    return j;
}

static void print_heads(const char *first)
{
    lw_cli_print("%-12s %8s %8s %8s %8s %10s\n", first, "MRR", "Hits@1", "Hits@3", "Hits@10",
                 "mean rank");
}

static void print_row(const char *name, const lw_rank_sum *sum)
{
    lw_rank_metrics m = lw_rank_sum_means(sum);
    lw_cli_print("%-12s %8.4f %8.4f %8.4f %8.4f %10.2f\n", name, m.mrr, m.hits[0], m.hits[1],
                 m.hits[2], m.mean_rank);
}

static void print_report(const rank_cli *o, const ranking *r)
{
    lw_cli_print("%s, %s: %d queries, %lld candidates in %.3g s\n", o->data.dataset, o->data.split,
                 (int)r->queries.n, (long long)r->ranks.candidates, r->ranks.seconds);
    if (o->by == BY_RULES)
        lw_cli_print("by %d rules applied once to %d facts, %s: %lld goals\n", r->kb->n_rules,
                     r->kb->facts.n, score_name[o->score], (long long)r->ranks.goals);
    lw_cli_print("rank %s; ", lw_rank_rule_text((lw_rank_rule)o->candidates.rank_rule));
    if (r->drawn)
        lw_cli_print("%lld corruptions drawn for each list", (long long)r->drawn);
    else
        lw_cli_print("all corruptions");
    lw_cli_print("%s\n", o->candidates.filtered ? ", filtered" : "");
    print_heads("corrupted");
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        if (r->ranks.sum[m][0].n > 0)
            print_row(lw_corrupt_mode_name((lw_corrupt_mode)m),
                      &r->ranks.sum[m][o->candidates.rank_rule]);
    lw_cli_print("\n");
    print_heads("rank rule");
    for (int i = 0; i < LW_RANK_RULES; i++)
        print_row(lw_rank_rule_name((lw_rank_rule)i), &r->ranks.all[i]);
    if (r->ranks.alone > 0)
        lw_cli_print("warning: %lld of %lld are ranked against nothing\n",
                     (long long)r->ranks.alone, (long long)r->ranks.all[0].n);
}

static void report(const lw_cli *cli, const rank_cli *o, const ranking *r)
{
    if (!cli->global.json) {
        print_report(o, r);
        return;
    }
    LW_CLEANUP(lw_json_drop) json_t *j = report_json(o, r);
    lw_cli_print_result(j);
}

static int run(const lw_cli *cli, const void *config)
{
    const rank_cli *o = config;
    lw_problems problems = {0};
    ranking r = {0};
    int rc = work(cli, o, &problems, &r);
    if (!cli->global.dry_run) {
        rc = rc == 0 ? save_ranks(o, &r) : rc;
        if (rc == 0)
            report(cli, o, &r);
    }
    ranking_clear(&r);
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_rank = {
    .name = "prove rank",
    .dry_run = true,
    .summary = "rank queries among all or drawn corruptions by an embedding alone, or by rules",
    .usage = "DATASET --kge RUN | --by rules [options]",
    .notes =
        "With all corruptions, queries are scored in blocks against the whole table; memory does "
        "not grow with their number. `prove eval --kge RUN --kge-bonus 0 --fail-penalty 0` "
        "ranks the same drawn candidates, but walks proofs too. By rules each goal p(a,X) is "
        "answered once for all its candidates: every rule's body is matched with the facts, rules "
        "are not chained. Rules are read as AnyBURL and AMIE write them, too (--rules FILE).",
    .examples = "leeway prove rank data/family --kge runs/rotate\n"
                "leeway prove rank data/family --kge runs/rotate --n-corruptions 100 "
                "--corruption-modes both\n"
                "leeway prove rank data/wn18rr --kge runs/complex --split valid --json\n"
                "leeway prove rank data/wn18rr --by rules\n"
                "leeway prove rank data/family --by rules --rules mined/rules-100 --rule-score "
                "noisy-or",
    .options = {lw_prove_data_options, lw_prove_limit_options, options},
    .config_size = sizeof(rank_cli),
    .run = run,
};
