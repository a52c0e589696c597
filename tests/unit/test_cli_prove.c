/* SPDX-License-Identifier: Apache-2.0 */
/* The environment's option table has the environment's defaults, and reaches every field. */
#include "cli/prove/cmd_prove.h"
#include "test_proof_util.h"

static void same_env(lw_env_options a, lw_env_options b)
{
    assert_int_equal(a.max_depth, b.max_depth);
    assert_int_equal(a.padding_atoms, b.padding_atoms);
    assert_int_equal(a.padding_states, b.padding_states);
    assert_int_equal(a.max_fact_pairs, b.max_fact_pairs);
    assert_int_equal(a.max_total_vars, b.max_total_vars);
    assert_int_equal(a.numbering, b.numbering);
    assert_int_equal(a.memory_pruning, b.memory_pruning);
    assert_int_equal(a.end_proof_action, b.end_proof_action);
    assert_int_equal(a.skip_unary_actions, b.skip_unary_actions);
}

static void environment_options(void **state)
{
    (void)state;
    LW_CLEANUP(lw_arena_free) lw_arena *arena = NULL;
    lw_prove_cli c = {0};
    ok(lw_arena_new(&arena));
    lw_opts opts = {.arena = arena};
    ok(lw_opts_add(&opts, lw_prove_env_options, &c));
    same_env(lw_prove_env(&c), lw_env_defaults());
    lw_prove_cli searched = {0};
    lw_opts search = {.arena = arena};
    ok(lw_opts_add(&search, lw_prove_search_options, &searched));
    assert_int_equal(searched.padding_atoms, lw_env_defaults().padding_atoms); /* of every verb */
    char text[] = "x --max-depth 7 --max-atoms 5 --padding-states 9 --max-fact-pairs 11 "
                  "--max-total-vars 13 --no-memory-pruning --no-end-proof-action "
                  "--skip-unary-actions --parity";
    char *argv[32] = {0}, *save = NULL;
    int argc = 0;
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    assert_int_equal(lw_opts_parse(&opts, argc, argv, 1, true), argc);
    same_env(lw_prove_env(&c), (lw_env_options){.max_depth = 7,
                                                .padding_atoms = 5,
                                                .padding_states = 9,
                                                .max_fact_pairs = 11,
                                                .max_total_vars = 13,
                                                .numbering = LW_NUMBER_PARITY,
                                                .skip_unary_actions = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(environment_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
