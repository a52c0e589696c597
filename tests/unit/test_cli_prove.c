/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables have the defaults of what they fill in; the environment's reaches every field. */
#include "cli/prove/cmd_prove.h"
#include "jobs/prove/ppo/ppo_job.h"
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

extern const lw_command lw_cmd_prove_train;

/* All but the network, which is another one than the published. */
static void training_options(void **state)
{
    (void)state;
    LW_CLEANUP(lw_arena_free) lw_arena *arena = NULL;
    lw_ppo_config a = {0}, b;
    ok(lw_arena_new(&arena));
    lw_opts opts = {.arena = arena};
    ok(lw_command_tables(&lw_cmd_prove_train, &opts, &a));
    lw_ppo_defaults(&b);
    same_env(a.env, b.env);
    assert_int_equal(a.n_envs, b.n_envs);
    assert_int_equal(a.n_steps, b.n_steps);
    assert_int_equal(a.n_epochs, b.n_epochs);
    assert_int_equal(a.reward_type, b.reward_type);
    assert_int_equal(a.train_neg_ratio, b.train_neg_ratio);
    assert_int_equal(a.least_model_memory, b.least_model_memory);
    assert_int_equal(a.n_eval_queries, b.n_eval_queries);
    assert_int_equal(a.eval_neg_samples, b.eval_neg_samples);
    assert_int_equal(a.train.batch_size, b.train.batch_size);
    assert_int_equal(a.train.scheduler, b.train.scheduler);
    assert_int_equal(a.train.log_every, b.train.log_every);
    assert_int_equal(a.n_corruption_modes, b.n_corruption_modes);
    for (int32_t i = 0; i < b.n_corruption_modes; i++)
        assert_string_equal(a.corruption_modes[i], b.corruption_modes[i]);
    const double numbers[][2] = {{a.constant_scale, b.constant_scale},
                                 {a.gamma, b.gamma},
                                 {a.gae_lambda, b.gae_lambda},
                                 {a.clip_range, b.clip_range},
                                 {a.clip_range_vf, b.clip_range_vf},
                                 {a.ent_coef_init, b.ent_coef_init},
                                 {a.ent_coef_final, b.ent_coef_final},
                                 {a.ent_coef_end, b.ent_coef_end},
                                 {a.vf_coef, b.vf_coef},
                                 {a.target_kl, b.target_kl},
                                 {a.lr_warmup, b.lr_warmup},
                                 {a.hard_negatives, b.hard_negatives},
                                 {a.curriculum, b.curriculum},
                                 {a.train.learning_rate, b.train.learning_rate},
                                 {a.train.lr_floor, b.train.lr_floor},
                                 {a.train.adam_beta1, b.train.adam_beta1},
                                 {a.train.adam_beta2, b.train.adam_beta2},
                                 {a.train.adam_eps, b.train.adam_eps},
                                 {a.train.weight_decay, b.train.weight_decay},
                                 {a.train.grad_clip, b.train.grad_clip}};
    for (size_t i = 0; i < LW_COUNT(numbers); i++)
        assert_true(numbers[i][0] == numbers[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(environment_options),
                                       cmocka_unit_test(training_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
