/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove trace: the shortest proof of one query, readable and as Prolog. */
#include "base/base.h"
#include "cli/prove/cmd_prove.h"

enum { TRACE_TEXT, TRACE_PROLOG };

static const lw_option trace_options[] = {
    {LW_OPT(lw_prove_cli, query), .name = "query", .positional = true, .required = true,
     .help = "pred(a,b), or an open one: pred(a,X)"},
    {LW_OPT(lw_prove_cli, format), .name = "format", .choices = "text|prolog", .fallback = "text",
     .group = "Output", .help = "a tree of atoms, or a Prolog program with the proof as a term"},
    {.name = NULL}};

static json_t *node_json(const lw_kb *kb, const lw_trace_node *x)
{
    LW_CLEANUP(lw_str_clear) lw_str atom = {0}, rule = {0};
    lw_kb_print_atom(kb, x->atom, &atom);
    if (x->origin >= 0)
        return json_pack("{s:s, s:i, s:b}", "atom", lw_str_c(&atom), "parent", (int)x->parent,
                         "fact", 1);
    lw_kb_print_rule(kb, ~x->origin, &rule);
    return json_pack("{s:s, s:i, s:i, s:s}", "atom", lw_str_c(&atom), "parent", (int)x->parent,
                     "rule", (int)~x->origin + 1, "clause", lw_str_c(&rule));
}

static json_t *report_json(const lw_prove_cli *o, const lw_kb *kb, const lw_search_result *r,
                           const lw_trace *t)
{
    json_t *j = json_pack("{s:s, s:b, s:i, s:s, s:I, s:I, s:I}", "query", o->query, "proved",
                          r->depth > 0, "depth", (int)r->depth, "end", lw_search_end_name(r->end),
                          "steps", (json_int_t)r->expanded, "states", (json_int_t)r->states,
                          "atoms_cut", (json_int_t)r->atoms_cut);
    if (r->depth <= 0)
        return j;
    LW_CLEANUP(lw_str_clear) lw_str text = {0}, prolog = {0};
    json_t *nodes = json_array();
    for (int32_t i = 0; i < t->n; i++)
        json_array_append_new(nodes, node_json(kb, &t->node[i]));
    lw_trace_print(kb, t, &text);
    lw_trace_prolog(kb, t, &prolog);
    json_object_set_new(j, "proof", nodes);
    json_object_set_new(j, "text", json_string(lw_str_c(&text)));
    json_object_set_new(j, "prolog", json_string(lw_str_c(&prolog)));
    return j;
}

/* The answer of an open query with the shortest proof, the first of equals. */
static int shortest(const lw_cli *cli, const lw_prove_cli *o, const lw_kb *kb, lw_atom goal,
                    lw_atom *out)
{
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    lw_cli_observer_open(&obs, cli);
    LW_CLEANUP(lw_prove_least_clear) lw_prove_least m = {0};
    LW_CLEANUP(lw_answers_clear) lw_answers a = {0};
    const lw_answer *best = NULL;
    if (o->max_fact_pairs > 0)
        return lw_fail(LW_EUSAGE, "an open query is answered from all facts: --max-fact-pairs 0");
    LW_TRY(lw_prove_open_least(o, kb, o->max_depth, &obs.calls, &m));
    LW_TRY(lw_prove_need_least(o, &m));
    LW_TRY(lw_answers_find(m.model, goal, &obs.calls, &a));
    for (int64_t i = 0; i < a.n; i++)
        if (a.of[i].depth >= 0 && (!best || a.of[i].depth < best->depth))
            best = &a.of[i];
    if (!best)
        return lw_fail(LW_EFAILED, "%s: no answer has a proof of at most %d steps", o->query,
                       o->max_depth);
    *out = best->atom;
    return 0;
}

/* Steps of the shortest proof by the least model, -1: none of at most --max-depth; LW_DEPTH_UNKNOWN: it does not
 * fit. */
static int ask_least(const lw_cli *cli, const lw_prove_cli *o, const lw_kb *kb, lw_atom query,
                     int32_t *depth)
{
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    lw_cli_observer_open(&obs, cli);
    LW_CLEANUP(lw_prove_least_clear) lw_prove_least m = {0};
    LW_CLEANUP(lw_least_asker_free) lw_least_asker *asker = NULL;
    *depth = LW_DEPTH_UNKNOWN;
    LW_TRY(lw_prove_open_least(o, kb, o->max_depth, &obs.calls, &m));
    if (!m.model)
        return 0;
    LW_TRY(lw_least_asker_new(m.model, &asker));
    return lw_least_ask(asker, query, depth);
}

static int search(const lw_kb *kb, const lw_search_options *so, lw_atom query, lw_search_result *r,
                  lw_search **s)
{
    lw_search_free(s);
    LW_TRY(lw_search_new(kb, so, s));
    return lw_search_run(*s, query, r);
}

/* A search that met a limit decides nothing, but the least model may: there is no proof, or one of so many steps,
 * for which states may be as long as they can be. */
static int decide(const lw_cli *cli, const lw_prove_cli *o, const lw_kb *kb, lw_atom query,
                  lw_search_options so, lw_search_result *r, lw_search **s)
{
    int32_t depth;
    LW_TRY(ask_least(cli, o, kb, query, &depth));
    if (depth == LW_DEPTH_UNKNOWN)
        return 0;
    r->by_model = true;
    if (depth < 0) {
        r->end = LW_SEARCH_DEPTH;
        return 0;
    }
    so.max_atoms = LW_PROOF_MOST_ATOMS;
    so.max_depth = depth;
    LW_TRY(search(kb, &so, query, r, s));
    r->by_model = true;
    if (r->depth > 0)
        lw_log(LW_LOG_WARN, "prove", "%s: its proof of %d steps passes --padding-atoms %d",
               o->query, (int)r->depth, (int)o->padding_atoms);
    return 0;
}

static int find(const lw_cli *cli, const lw_prove_cli *o, const lw_kb *kb, lw_search_result *r,
                lw_trace *t)
{
    LW_CLEANUP(lw_search_free) lw_search *s = NULL;
    LW_CLEANUP(lw_free) lw_proof_origin *origin = NULL;
    lw_search_options so = lw_prove_search(o);
    lw_atom query;
    bool open;
    LW_TRY(lw_kb_goal(kb, o->query, &query, &open));
    if (open)
        LW_TRY(shortest(cli, o, kb, query, &query));
    so.memory = (size_t)LW_MIN(o->query_memory, o->memory_limit) << 20;
    LW_TRY(search(kb, &so, query, r, &s));
    if (r->depth < 0 && r->end != LW_SEARCH_NONE && r->end != LW_SEARCH_DEPTH)
        LW_TRY(decide(cli, o, kb, query, so, r, &s));
    if (r->depth < 0)
        return 0;
    origin = lw_calloc((size_t)r->depth, sizeof *origin);
    if (!origin)
        return LW_ENOMEM;
    lw_search_proof(s, origin);
    return lw_trace_build(kb, query, origin, r->depth, t);
}

static int no_proof(const lw_prove_cli *o, const lw_search_result *r)
{
    if (r->end == LW_SEARCH_NONE)
        return lw_fail(LW_EFAILED, "%s has no proof: all %lld states were searched", o->query,
                       (long long)r->states);
    if (r->by_model && r->end != LW_SEARCH_DEPTH)
        return lw_fail(
            LW_EFAILED,
            "%s has a proof by the least model, but none was found among %lld states: raise "
            "--max-states, --query-memory",
            o->query, (long long)r->states);
    if (r->end == LW_SEARCH_CUT && r->atoms_cut > 0)
        return lw_fail(LW_EFAILED,
                       "%s: no proof with at most %d goals (--padding-atoms); undecided beyond",
                       o->query, o->padding_atoms);
    if (r->end == LW_SEARCH_CUT)
        return lw_fail(LW_EFAILED,
                       "%s: no proof by the first %d facts of each predicate (--max-fact-pairs); "
                       "undecided beyond",
                       o->query, o->max_fact_pairs);
    if (r->end == LW_SEARCH_DEPTH)
        return lw_fail(LW_EFAILED, "%s: no proof of at most %d steps (--max-depth)", o->query,
                       o->max_depth);
    return lw_fail(LW_EFAILED, "%s: no proof among the %lld states within the limit (--%s)",
                   o->query, (long long)r->states,
                   r->end == LW_SEARCH_STATES ? "max-states" : "query-memory");
}

static void print_trace(const lw_prove_cli *o, const lw_kb *kb, const lw_trace *t)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (o->format == TRACE_PROLOG) {
        lw_trace_prolog(kb, t, &text);
    } else {
        lw_str_addf(&text, "proved in %d step%s\n", t->steps, t->steps == 1 ? "" : "s");
        lw_trace_print(kb, t, &text);
    }
    lw_cli_print("%s", lw_str_c(&text));
}

static int trace(const lw_cli *cli, const lw_prove_cli *o, lw_problems *problems, lw_trace *t)
{
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    lw_search_result r = {0};
    LW_TRY(lw_prove_open(o, problems, &kb));
    lw_prove_warn(problems);
    LW_TRY(find(cli, o, kb, &r, t));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *j = report_json(o, kb, &r, t);
        lw_cli_print_json(j);
    } else if (r.depth > 0) {
        print_trace(o, kb, t);
    }
    return r.depth > 0 ? 0 : no_proof(o, &r);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_problems problems = {0};
    lw_trace t = {0};
    int rc = trace(cli, config, &problems, &t);
    lw_trace_clear(&t);
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_trace = {
    .name = "prove trace",
    .summary = "the shortest proof of one query, readable and as Prolog",
    .usage = "DATASET QUERY [options]",
    .notes =
        "Exit code 1 when no proof is found within the limits. Of an open query, pred(a,X), the "
        "answer with the shortest proof is traced; `prove answers` lists all.",
    .examples = "leeway prove trace data/countries_s3 'locatedInCR(bulgaria,europe)'\n"
                "leeway prove trace data/family 'aunt(5,76)' --format prolog",
    .options = {lw_prove_data_options, trace_options, lw_prove_search_options,
                lw_prove_least_options},
    .config_size = sizeof(lw_prove_cli),
    .run = run,
};
