/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against a tiny Prolog on random programs: depths, provability, every move. */
#include "proof_naive.h"

#include "base/base.h"
#include "logic/logic.h"

enum { PROGRAMS = 400, DEEPEST = 4 };

static nprogram program; /* large */

static lw_atom engine_query(const lw_kb *kb, natom q, bool *known)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_atom a = {0};
    natom_text(q, &text);
    *known = lw_kb_atom(kb, lw_str_c(&text), &a) == 0; /* a predicate may be in no clause */
    return a;
}

/* With the depth as limit the proof is found at the last level, where only proofs are looked for;
 * with one less it is not. */
static void expect_at_the_limit(const lw_kb *kb, lw_atom query, lw_search_options o, int depth)
{
    for (int less = 0; less < 2 && depth - less > 0; less++) {
        LW_CLEANUP(lw_search_free) lw_search *s = NULL;
        lw_search_result r;
        o.max_depth = depth - less;
        ok(lw_search_new(kb, &o, &s));
        ok(lw_search_run(s, query, &r));
        assert_int_equal(r.depth, less ? -1 : depth);
    }
}

static void depths_are_those_of_the_resolver(void **state)
{
    (void)state;
    const lw_search_options o = {
        .max_depth = DEEPEST, .max_atoms = 20, .max_states = 1000000, .memory = 64 << 20};
    int by_depth[DEEPEST + 1] = {0};
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        random_program(&program, seed);
        LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
        LW_CLEANUP(lw_search_free) lw_search *s = NULL;
        ok(lw_search_new(kb, &o, &s));
        for (int q = 0; q < 6; q++) {
            bool known;
            program.query = (natom){q % NP, {(int)(seed + (uint64_t)q) % NC, q % NC}};
            lw_atom query = engine_query(kb, program.query, &known);
            if (!known)
                continue;
            lw_search_result r;
            ok(lw_search_run(s, query, &r));
            int want = n_depth(&program, DEEPEST);
            if (r.depth != want)
                print_error("program %d, query %s: depth %d, resolver %d\n", (int)seed,
                            text_of(kb, &query, 1), r.depth, want);
            assert_int_equal(r.depth, want);
            expect_at_the_limit(kb, query, o, want);
            by_depth[LW_MAX(want, 0)]++;
        }
    }
    for (int k = 0; k <= DEEPEST; k++) /* the programs are worth something */
        assert_true(by_depth[k] >= 10);
}

static void proofs_and_refusals_are_those_of_the_model(void **state)
{
    (void)state;
    const lw_search_options o = {
        .max_depth = 40, .max_atoms = 12, .max_states = 4000, .memory = 64 << 20};
    int proved = 0, refuted = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        random_program(&program, seed + 77777);
        LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
        LW_CLEANUP(lw_search_free) lw_search *s = NULL;
        ok(lw_search_new(kb, &o, &s));
        bool known;
        lw_atom query = engine_query(kb, program.query, &known);
        if (!known)
            continue;
        lw_search_result r;
        ok(lw_search_run(s, query, &r));
        if (r.depth > 0) {
            lw_proof_origin origin[40];
            lw_trace t = {0};
            assert_true(n_in_model(&program));
            lw_search_proof(s, origin);
            ok(lw_trace_build(kb, query, origin, r.depth, &t)); /* checks every unification */
            for (int32_t i = 0; i < t.n; i++) {
                assert_true(lw_state_next_var(kb, &t.node[i].atom, 1) == kb->n_constants + 1);
                if (t.node[i].origin >= 0)
                    assert_true(lw_atom_eq(kb->facts.atom[t.node[i].origin], t.node[i].atom) &&
                                !lw_atom_eq(t.node[i].atom, query));
            }
            lw_trace_clear(&t);
            proved++;
        } else if (r.end == LW_SEARCH_NONE) {
            assert_false(n_in_model(&program));
            refuted++;
        }
    }
    assert_true(proved > 50 && refuted > 50);
}

/* ---- the least model ----------------------------------------------------------------------- */

/* One query: proved or not as by forward chaining, its depth that of the search where it came to an end. */
static void expect_asked(lw_least_asker *with, lw_least_asker *without, lw_search *s, lw_atom query,
                         int counts[3])
{
    int32_t depth, proved;
    lw_search_result r;
    ok(lw_least_ask(with, query, &depth));
    ok(lw_least_ask(without, query, &proved));
    const bool wanted = n_in_model(&program);
    assert_int_equal(depth >= 0, wanted);
    assert_int_equal(proved, wanted ? 0 : -1);
    ok(lw_search_run(s, query, &r));
    if (r.depth >= 0 && r.atoms_cut == 0)
        assert_int_equal(depth, r.depth);
    else if (r.depth >= 0)
        assert_true(depth <= r.depth);
    counts[wanted]++;
    counts[2] += r.depth > 2 && r.atoms_cut == 0;
}

static void the_least_model_is_what_search_proves(void **state)
{
    (void)state;
    const lw_search_options o = {
        .max_depth = 40, .max_atoms = 12, .max_states = 3000, .memory = 64 << 20};
    int of_facts[3] = {0}, of_others[3] = {0};
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        random_program(&program, seed + 31415);
        LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
        LW_CLEANUP(lw_search_free) lw_search *s = NULL;
        LW_CLEANUP(lw_least_model_free) lw_least_model *m = NULL, *plain = NULL;
        LW_CLEANUP(lw_least_asker_free) lw_least_asker *with = NULL, *without = NULL;
        ok(lw_search_new(kb, &o, &s));
        ok(lw_least_model_new(kb, &(lw_least_options){.depths = true, .memory = 64 << 20}, &m));
        ok(lw_least_model_new(kb, &(lw_least_options){.memory = 64 << 20}, &plain));
        ok(lw_least_asker_new(m, &with));
        ok(lw_least_asker_new(plain, &without));
        for (int q = 0; q < NP * NC * NC; q++) {
            bool known;
            program.query = (natom){q % NP, {q / NP % NC, q / NP / NC}};
            lw_atom query = engine_query(kb, program.query, &known);
            if (known)
                expect_asked(with, without, s, query,
                             n_is_fact(&program, program.query) ? of_facts : of_others);
        }
    }
    for (int k = 0; k < 3; k++) /* refuted, proved, by three steps or more */
        assert_true(of_facts[k] > 100 && of_others[k] > 100);
}

/* ---- answers ------------------------------------------------------------------------------- */

static bool fits(const lw_kb *kb, lw_atom goal, lw_atom a)
{
    for (int i = 0; i < 2; i++)
        if (!lw_kb_is_var(kb, goal.arg[i]) && goal.arg[i] != a.arg[i])
            return false;
    return goal.arg[0] != goal.arg[1] || a.arg[0] == a.arg[1];
}

/* All atoms of the goal's predicate, asked one by one, are what the goal has for answers. */
static int expect_answers(const lw_kb *kb, const lw_least_model *m, lw_least_asker *ask,
                          lw_atom goal, int32_t most)
{
    LW_CLEANUP(lw_answers_clear) lw_answers got = {0};
    int64_t at = 0;
    ok(lw_answers_find(m, goal, NULL, &got));
    for (int32_t x = 1; x <= kb->n_constants; x++)
        for (int32_t y = 1; y <= kb->n_constants; y++) {
            const lw_atom a = {goal.p, {x, y}};
            const bool fact = lw_facts_find(&kb->facts, a) >= 0;
            int32_t depth;
            ok(lw_least_ask(ask, a, &depth));
            depth = most > 0 && depth > most ? -1 : depth;
            if (!fits(kb, goal, a) || (depth < 0 && !fact))
                continue;
            assert_true(at < got.n && lw_atom_eq(got.of[at].atom, a));
            assert_int_equal(got.of[at].depth, depth);
            assert_int_equal(got.of[at++].fact, fact);
        }
    assert_int_equal(at, got.n);
    return (int)got.proved;
}

static void answers_are_the_atoms_that_are_proved(void **state)
{
    (void)state;
    int proved = 0, shallow = 0;
    for (uint64_t seed = 0; seed < PROGRAMS / 4; seed++) {
        random_program(&program, seed + 2718);
        LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
        LW_CLEANUP(lw_least_model_free) lw_least_model *m = NULL, *bounded = NULL;
        LW_CLEANUP(lw_least_asker_free) lw_least_asker *ask = NULL;
        const int32_t v = kb->n_constants + 1;
        ok(lw_least_model_new(kb, &(lw_least_options){.depths = true, .memory = 64 << 20}, &m));
        ok(lw_least_model_new(
            kb, &(lw_least_options){.depths = true, .max_depth = 2, .memory = 64 << 20}, &bounded));
        ok(lw_least_asker_new(m, &ask));
        for (int32_t p = 1; p <= kb->n_predicates; p++) {
            const lw_atom goal[] = {
                {p, {1, v}}, {p, {v, 2}}, {p, {v, v + 1}}, {p, {v, v}}, {p, {1, 2}}};
            for (size_t i = 0; i < LW_COUNT(goal); i++) {
                proved += expect_answers(kb, m, ask, goal[i], 0);
                shallow += expect_answers(kb, bounded, ask, goal[i], 2);
            }
        }
    }
    assert_true(shallow > 500 && proved > shallow + 100);
}

static void a_model_that_does_not_fit_is_done_without(void **state)
{
    (void)state;
    random_program(&program, 7);
    LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
    LW_CLEANUP(lw_least_model_free) lw_least_model *m = NULL;
    ok(lw_least_model_new(kb, &(lw_least_options){.depths = true, .memory = 1000}, &m));
    assert_null(m);
}

/* ---- moves of the environment, as strings -------------------------------------------------- */

enum { MOST_MOVES = 64, TEXT = 400, ATOMS = 3, STATES = 7 };

/* One path walked twice: what was seen, as sorted goals. */
typedef struct walk {
    char seen[32][TEXT];
    int n_seen;
    char move[MOST_MOVES][TEXT], key[MOST_MOVES][TEXT];
    natom goal[MOST_MOVES][MOST_GOALS];
    int n_goals[MOST_MOVES];
    int n, derived;
    bool proved;
} walk;

static int text_order(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Variables by first appearance; `key`: the goals' texts sorted. */
static void n_text(const natom *goal, int n, char *text, char *key)
{
    char part[MOST_GOALS][64];
    int var[2 * MOST_GOALS], n_vars = 0;
    text[0] = key[0] = '\0';
    for (int i = 0; i < n; i++) {
        char arg[2][16];
        for (int j = 0; j < 2; j++) {
            int v = 0, x = goal[i].a[j];
            if (x < FIRST_VAR) {
                snprintf(arg[j], sizeof arg[j], "c%d", x);
                continue;
            }
            while (v < n_vars && var[v] != x)
                v++;
            if (v == n_vars)
                var[n_vars++] = x;
            snprintf(arg[j], sizeof arg[j], "V%d", v + 1);
        }
        snprintf(part[i], sizeof part[i], "p%d(%s,%s)", goal[i].p, arg[0], arg[1]);
    }
    for (int pass = 0; pass < 2; pass++) {
        char *out = pass ? key : text;
        for (int i = 0, at = 0; i < n; i++)
            at += snprintf(out + at, TEXT - (size_t)at, "%s%s", i ? ", " : "", part[i]);
        qsort(part, (size_t)n, sizeof *part, text_order);
    }
}

static bool n_move(nprogram *g, const natom *goal, int n, void *arg)
{
    walk *w = arg;
    (void)g;
    w->proved |= n == 0;
    if (w->proved || ++w->derived > STATES || n > ATOMS)
        return false;
    n_text(goal, n, w->move[w->n], w->key[w->n]);
    for (int i = 0; i < w->n_seen; i++)
        if (strcmp(w->seen[i], w->key[w->n]) == 0)
            return false;
    memcpy(w->goal[w->n], goal, (size_t)n * sizeof *goal);
    w->n_goals[w->n++] = n;
    return false;
}

/* A proof by a rule behind the last of the successors that count is not seen. */
static bool n_hidden(nprogram *g, const natom *goal, int n, void *arg)
{
    int *count = arg;
    (void)g;
    (void)goal;
    if (n == 0)
        return true;
    ++*count;
    return false;
}

static void n_moves(nprogram *g, const natom *goal, int n, walk *w)
{
    w->n = w->derived = 0;
    w->proved = false;
    int before = 0, rules = g->n_rules;
    g->n_rules = 0;
    bool by_fact = n_resolve(g, goal, n, n_hidden, &before);
    g->n_rules = rules;
    before = 0;
    bool any = n_resolve(g, goal, n, n_hidden, &before);
    w->proved = by_fact || (any && before < STATES);
    if (!w->proved) {
        n_resolve(g, goal, n, n_move, w);
        w->proved = false; /* a hidden one */
    }
}

static void expect_moves(const lw_kb *kb, const lw_moves *m, walk *w)
{
    int n = 0;
    if (w->proved) {
        strcpy(w->move[n++], "True");
    } else if (w->n == 0) {
        strcpy(w->move[n++], "False");
    } else {
        n = LW_MIN(w->n, STATES - 1); /* Endf needs a place */
        strcpy(w->move[n++], "Endf");
    }
    assert_int_equal(m->n, n);
    for (int k = 0; k < n; k++) {
        assert_string_equal(move_text(kb, m, k), w->move[k]);
        assert_true(m->hash[k] ==
                    lw_state_hash(m->atoms + m->first[k], m->first[k + 1] - m->first[k]));
    }
}

/* Goes to move k; the resolver's variables stay its own. Returns the number of goals. */
static int n_take(nprogram *g, walk *w, int k, natom goal[MOST_GOALS])
{
    g->n_vars = 0;
    for (int i = 0; i < w->n_goals[k]; i++)
        for (int j = 0; j < 2; j++)
            g->n_vars = LW_MAX(g->n_vars, w->goal[k][i].a[j] - FIRST_VAR + 1);
    memcpy(goal, w->goal[k], sizeof w->goal[k]);
    for (int i = 0; i < g->n_vars; i++)
        g->bind[i] = -1;
    strcpy(w->seen[w->n_seen++], w->key[k]);
    return w->n_goals[k];
}

static void moves_are_those_of_the_resolver(void **state)
{
    (void)state;
    static walk w;
    lw_env_options o = lw_env_defaults();
    o.padding_atoms = ATOMS;
    o.padding_states = STATES;
    o.max_depth = 9;
    lw_env_counts all = {0};
    for (uint64_t seed = 0; seed < 3 * PROGRAMS; seed++) {
        dice d = {lw_rng_key_of(seed, lw_hash_name("walk")), 0};
        random_program(&program, seed + 5000);
        LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
        LW_CLEANUP(lw_env_free) lw_env *e = NULL;
        LW_CLEANUP(lw_paths_free) lw_path *path = NULL;
        bool known;
        lw_atom query = engine_query(kb, program.query, &known);
        if (!known)
            continue;
        ok(lw_env_new(kb, &o, &e));
        ok(lw_paths_new(&o, 1, &path));
        lw_env_begin(e, path, query);
        natom goal[MOST_GOALS] = {program.query};
        int n = 1;
        char unused[TEXT];
        program.n_vars = 0;
        w.n_seen = 1;
        n_text(goal, 1, unused, w.seen[0]);
        while (path->end == LW_PROOF_OPEN) {
            lw_moves m;
            lw_env_moves(e, path, &m);
            n_moves(&program, goal, n, &w);
            expect_moves(kb, &m, &w);
            int32_t k = roll(&d, m.n);
            lw_env_take(e, path, &m, k);
            if (w.proved || k >= w.n || k == m.n - 1)
                break;
            n = n_take(&program, &w, k, goal);
        }
        lw_env_counts_add(&all, lw_env_counted(e));
    }
    /* Every limit was met, so every limit was compared. */
    assert_true(all.proofs > 0 && all.dead_ends > 0 && all.visited > 0);
    assert_true(all.states_cut > 0 && all.atoms_cut > 0 && all.end_cut > 0 && all.depth_cut > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(depths_are_those_of_the_resolver),
                                       cmocka_unit_test(proofs_and_refusals_are_those_of_the_model),
                                       cmocka_unit_test(the_least_model_is_what_search_proves),
                                       cmocka_unit_test(answers_are_the_atoms_that_are_proved),
                                       cmocka_unit_test(a_model_that_does_not_fit_is_done_without),
                                       cmocka_unit_test(moves_are_those_of_the_resolver)};
    return cmocka_run_group_tests_name("proof random", tests, NULL, NULL);
}
