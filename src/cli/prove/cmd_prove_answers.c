/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove answers: everything that makes an open query true, with the length of its shortest proof. */
#include "base/base.h"
#include "cli/prove/cmd_prove.h"

static const lw_option answers_options[] = {
    {LW_OPT(lw_prove_cli, query), .name = "query", .positional = true, .required = true,
     .help = "pred(a,X), pred(X,b), pred(X,Y), pred(X,X) or pred(a,b)"},
    {LW_OPT(lw_prove_cli, max_depth), .name = "max-depth", .fallback = "0", .max = 1000000,
     .unit = "steps", .group = "Search", .help = "only proofs of at most so many steps, 0: of any"},
    {LW_OPT(lw_prove_cli, least_model_memory), .name = "least-model-memory", .fallback = "1024",
     .min = 1, .max = 1 << 24, .unit = "MiB", .group = "Search",
     .help = "for everything that follows from facts and rules, of which the answers are a part"},
    {.name = NULL}};

/* A query and what was found. */
typedef struct asked {
    lw_kb *kb;
    lw_atom goal;
    lw_prove_least least;
    lw_answers answers;
} asked;

static void asked_clear(asked *a)
{
    lw_answers_clear(&a->answers);
    lw_prove_least_clear(&a->least);
    lw_kb_free(&a->kb);
}

static int ask(const lw_cli *cli, const lw_prove_cli *o, lw_problems *problems, asked *a)
{
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    bool open;
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_prove_open(o, problems, &a->kb));
    lw_prove_warn(problems);
    LW_TRY(lw_kb_goal(a->kb, o->query, &a->goal, &open));
    LW_TRY(lw_prove_open_least(o, a->kb, o->max_depth, &obs.calls, &a->least));
    LW_TRY(lw_prove_need_least(o, &a->least));
    return lw_answers_find(a->least.model, a->goal, &obs.calls, &a->answers);
}

static json_t *report_json(const lw_prove_cli *o, const asked *a)
{
    json_t *list = json_array();
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    for (int64_t i = 0; i < a->answers.n; i++) {
        const lw_answer *x = &a->answers.of[i];
        lw_str_clear(&text);
        lw_kb_print_atom(a->kb, x->atom, &text);
        json_array_append_new(list, json_pack("{s:s, s:i, s:b}", "atom", lw_str_c(&text), "depth",
                                              (int)x->depth, "fact", (int)x->fact));
    }
    return json_pack("{s:s, s:i, s:I, s:I, s:o, s:o}", "query", o->query, "max_depth",
                     (int)o->max_depth, "proved", (json_int_t)a->answers.proved, "facts",
                     (json_int_t)a->answers.facts, "least_model", lw_prove_least_json(&a->least),
                     "answers", list);
}

static void print_report(const asked *a)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    const lw_answers *found = &a->answers;
    lw_kb_print_atom(a->kb, a->goal, &text);
    lw_cli_print("%s: %lld answer%s, %lld proved, %lld known facts\n", lw_str_c(&text),
                 (long long)found->n, found->n == 1 ? "" : "s", (long long)found->proved,
                 (long long)found->facts);
    if (found->n > 0)
        lw_cli_print("%8s %6s  %s\n", "depth", "fact", "answer");
    for (int64_t i = 0; i < found->n; i++) {
        lw_str_clear(&text);
        lw_kb_print_atom(a->kb, found->of[i].atom, &text);
        lw_cli_print("%8d %6s  %s\n", (int)found->of[i].depth, found->of[i].fact ? "yes" : "-",
                     lw_str_c(&text));
    }
}

static int run(const lw_cli *cli, const void *config)
{
    LW_CLEANUP(asked_clear) asked a = {0};
    lw_problems problems = {0};
    int rc = ask(cli, config, &problems, &a);
    if (rc == 0 && cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *j = report_json(config, &a);
        lw_cli_print_json(j);
    } else if (rc == 0) {
        print_report(&a);
    }
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_answers = {
    .name = "prove answers",
    .summary = "all answers of an open query, each with the length of its shortest proof",
    .usage = "DATASET QUERY [options]",
    .notes =
        "An argument that begins with a capital or _ is a variable unless a constant has that "
        "name; "
        "quote it to make it a constant. depth: steps of the shortest proof that does not use the "
        "answer itself as a fact, -1: there is none (of at most --max-depth steps), it is only "
        "known.",
    .examples = "leeway prove answers data/family 'aunt(5,X)'\n"
                "leeway prove answers data/family 'aunt(X,Y)' --json\n"
                "leeway prove answers data/wn18rr 'hypernym(X,00001740)' --max-depth 2",
    .options = {lw_prove_data_options, answers_options},
    .config_size = sizeof(lw_prove_cli),
    .run = run,
};
