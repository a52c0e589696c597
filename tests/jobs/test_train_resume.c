/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may change when a training goes on, and what may not: a refused resume names the options and
 * changes no file, whatever was trained; a changed schedule is asked for and noted.
 */
#include "jobs/train_fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* ---- a directory as it was ------------------------------------------------------------------- */

/* Names and contents of all files under a run, as one number. */
static uint64_t fingerprint(const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char **names = NULL;
    size_t n = 0;
    uint64_t h = 1;
    assert_int_equal(lw_list_dir(dir, &names, &n), 0);
    for (size_t i = 0; i < n; i++) {
        LW_CLEANUP(lw_free) char *text = NULL;
        size_t len = 0;
        lw_path_join(&path, dir, names[i]);
        h = h * 31 + lw_hash_name(names[i]);
        if (lw_path_is_dir(lw_str_c(&path)))
            h = h * 31 + fingerprint(lw_str_c(&path));
        else if (lw_file_read(lw_str_c(&path), 0, &text, &len) == 0)
            for (size_t k = 0; k < len; k++)
                h = (h ^ (uint8_t)text[k]) * 1099511628211u;
    }
    lw_list_free(&names, n);
    return h;
}

/* Refused with exit code 2, in one line that has `word`, and nothing was touched. */
static void refused(const char *run, const char *word, const char *args)
{
    uint64_t before = fingerprint(run);
    lab_expect(2, "%s", args);
    assert_true(lab_one_line());
    if (!strstr(lab_err, word))
        fail_msg("no \"%s\" in: %s", word, lab_err);
    if (fingerprint(run) != before)
        fail_msg("%s: changed by a refused `%s`", run, args);
}

static bool file_has(const char *path, const char *word)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n = 0;
    if (lw_file_read(path, 0, &text, &n) < 0)
        fail_msg("%s", lw_errmsg());
    return strstr(text, word) != NULL;
}

/* ---- every trainer --------------------------------------------------------------------------- */

#define KGE "prove kge kb --model rotate --embedding-dim 4 --batch-size 8 --negatives 4"
#define PPO                                                                              \
    "prove train kb --n-envs 4 --n-steps 8 --n-epochs 1 --batch-size 16 --hidden-dim 8 " \
    "--atom-embedding-size 8 --num-layers 1 --eval-every 0"

static const struct {
    const char *name, *args, *change, *says;
} trainers[] = {
    {"ddpm", TINY_DDPM, "--timesteps 20", "--timesteps 20 (was 1000)"},
    {"drift", TINY_DRIFT, "--feature-temperatures 0.1", "--feature-temperatures 0.1 (was 0.0"},
    {"encoder", TINY_ENCODER " --scheduler constant", "--mask-ratio 0.25",
     "--mask-ratio 0.25 (was 0.5)"},
    {"judge", TINY_ENCODER " --scheduler constant --objective judge", "--input-noise 0.5",
     "--input-noise 0.5 (was 0"},
    {"kge", KGE " --scheduler constant", "--gamma 5", "--gamma 5 (was 12"},
    {"ppo", PPO " --scheduler constant --lr-warmup 0 --ent-coef-final 0.15", "--reward-type 1",
     "--reward-type 1 (was 4)"},
};

static int make_kb(void **state)
{
    static const char facts[] = "parent(ann,bob).\nparent(bob,cid).\nparent(cid,dee).\n"
                                "grand(ann,cid).\ngrand(bob,dee).\n";
    static const char rules[] = "a:1:parent(x,z), parent(z,y) -> grand(x,y)\n";
    if (lab_enter(state) < 0 || lw_mkdirs("kb") < 0)
        return -1;
    return lw_file_write("kb/train.txt", facts, strlen(facts)) < 0 ||
                   lw_file_write("kb/rules.txt", rules, strlen(rules)) < 0
               ? -1
               : 0;
}

static double loss_of(const char *summary)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    if (lw_json_load(summary, &j) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(json_integer_value(json_object_get(j, "steps")), 3);
    return json_number_value(json_object_get(j, "final_loss"));
}

/* A process that ended behind its last step and before the rest was written: who goes on writes it. */
static void finished_later(const char *run, const char *args)
{
    static const char *const names[] = {"summary.json", "report.html", "checkpoints/last"};
    char path[LW_COUNT(names)][96];
    for (size_t i = 0; i < LW_COUNT(names); i++)
        snprintf(path[i], sizeof path[i], "%s/%s", run, names[i]);
    const double loss = loss_of(path[0]);
    for (size_t i = 0; i < LW_COUNT(names); i++)
        assert_int_equal(unlink(path[i]), 0);
    lab_expect(0, "%s", args);
    assert_non_null(strstr(lab_err, "what was not written behind the last one is now"));
    for (size_t i = 0; i < LW_COUNT(names); i++)
        if (!lw_path_exists(path[i]))
            fail_msg("%s is not there", path[i]);
    assert_true(loss_of(path[0]) == loss);
    lab_expect(0, "%s", args);
    assert_non_null(strstr(lab_err, "nothing left to do"));
}

static void check_trainer(size_t i)
{
    char run[64], args[1024];
    const char *name = trainers[i].name;
    snprintf(run, sizeof run, "run_%s", name);
    lab_expect(0, "%s --steps 3 --log-every 1 --save-every 1 --output-dir %s", trainers[i].args,
               run);
#define GO_ON(format, ...)                                                                     \
    (snprintf(args, sizeof args, "%s --output-dir %s --resume " format, trainers[i].args, run, \
              __VA_ARGS__),                                                                    \
     args)
    refused(run, "--steps 2: ", GO_ON("--steps %d", 2));
    refused(run, "has 3 steps done already", GO_ON("--steps %d --reschedule", 1));
    refused(run, trainers[i].says, GO_ON("--steps 5 %s", trainers[i].change));
    refused(run, "--seed 7 (was 0)", GO_ON("--steps 5 --seed %d", 7));
    refused(run, "--batch-size 4 (was ", GO_ON("--steps 5 --batch-size %d", 4));
    refused(run, "--reschedule", GO_ON("--steps 5 --learning-rate %g", 0.5));
    snprintf(args, sizeof args, "%s --steps 5 --resume-from %s --output-dir fresh %s",
             trainers[i].args, run, trainers[i].change);
    refused(run, trainers[i].says, args);
    assert_false(lw_path_exists("fresh"));
    uint64_t before = fingerprint(run);
    lab_expect(0, "%s", GO_ON("--steps %d", 3));
    assert_non_null(strstr(lab_err, "nothing left to do"));
    assert_true(fingerprint(run) == before);
    finished_later(run, GO_ON("--steps %d", 3));
    lab_expect(0, "%s", GO_ON("--steps %d --log-every 2 --save-every 2 --threads 2", 5));
    assert_int_equal(lab_last_step(run), 5);
#undef GO_ON
}

static void test_every_trainer(void **state)
{
    (void)state;
    for (size_t i = 0; i < LW_COUNT(trainers); i++)
        check_trainer(i);
}

/* ---- other data under the same name ---------------------------------------------------------- */

#define FOLDER                                                                              \
    "train encoder --data folder:pics --width 8 --stages 2 --norm-groups 4 --batch-size 8 " \
    "--scheduler constant --warmup-steps 4"

/* A fact, a rule, a picture's class or the weights of a frozen encoder that are others now. */
static void test_other_data(void **state)
{
    static const char fewer[] = "parent(ann,bob).\nparent(bob,cid).\nparent(cid,dee).\n"
                                "grand(ann,cid).\ngrand(dee,bob).\n",
                      other[] = "a:1:parent(x,z), parent(y,z) -> grand(x,y)\n";
    LW_CLEANUP(lw_free) char *facts = NULL, *rules = NULL;
    size_t n, m;
    (void)state;
    assert_int_equal(lw_file_read("kb/train.txt", 0, &facts, &n), 0);
    assert_int_equal(lw_file_read("kb/rules.txt", 0, &rules, &m), 0);
    lab_expect(0, KGE " --steps 2 --output-dir o_kge");
    lab_expect(0, PPO " --steps 2 --output-dir o_ppo");
    assert_int_equal(lw_file_write("kb/rules.txt", other, strlen(other)), 0);
    lab_expect(0, KGE " --steps 3 --reschedule --output-dir o_kge --resume");
    refused("o_ppo", "trained on other data",
            PPO " --steps 3 --reschedule --output-dir o_ppo --resume");
    assert_int_equal(lw_file_write("kb/rules.txt", rules, m), 0);
    assert_int_equal(lw_file_write("kb/train.txt", fewer, strlen(fewer)), 0);
    refused("o_kge", "trained on other data",
            KGE " --steps 4 --reschedule --output-dir o_kge --resume");
    assert_int_equal(lw_file_write("kb/train.txt", facts, n), 0);
    lab_expect(0, KGE " --steps 4 --reschedule --output-dir o_kge --resume");

    lab_expect(0, "data export synth:16 --num-images 60 --output pics");
    lab_expect(0, FOLDER " --steps 2 --output-dir o_net");
    lab_expect(0, TINY_DRIFT " --encoder o_net --steps 2 --output-dir o_drift");
    assert_int_equal(rename("pics/0", "pics/zero"), 0);
    refused("o_net", "trained on other data", FOLDER " --steps 3 --output-dir o_net --resume");
    assert_int_equal(rename("pics/zero", "pics/0"), 0);
    lab_expect(0, FOLDER " --steps 3 --output-dir o_net --resume");
    refused("o_drift", "another frozen encoder",
            TINY_DRIFT " --encoder o_net --steps 3 --output-dir o_drift --resume");
}

/* ---- the schedule ---------------------------------------------------------------------------- */

#define COSINE TINY_DDPM " --scheduler cosine --log-every 1 --output-dir "

/* A run stopped at 4 of 12 stays one of 12 whatever is asked for, until --reschedule. */
static void test_goal_of_a_cosine(void **state)
{
    (void)state;
    lab_expect(0, COSINE "cosine --steps 12 --save-every 4");
    assert_int_equal(lw_remove_tree("cosine/checkpoints/step_0000008"), 0);
    assert_int_equal(lw_remove_tree("cosine/checkpoints/step_0000012"), 0);
    refused("cosine", "--steps 2: ", COSINE "cosine --resume --steps 2");
    refused("cosine",
            "falls until step 12; to go on with one that falls until step 6 say "
            "--reschedule",
            COSINE "cosine --resume --steps 6");
    refused("cosine", "--steps 4: ", COSINE "cosine --resume --steps 4");
    refused("cosine", "only with --resume", COSINE "cosine --reschedule --steps 4");
    lab_expect(0, COSINE "branch --resume-from cosine --steps 6 --reschedule --save-every 1");
    lab_expect(0, COSINE "cosine --resume --steps 6 --reschedule");
    assert_non_null(strstr(lab_err, "rescheduled at step 4: --steps 6 (was 12)"));
    assert_true(file_has("cosine/config.yaml", "# rescheduled at step 4: --steps 6 (was 12)"));
    assert_true(
        file_has("cosine/checkpoints/last/state.json", "\"changed\": \"--steps 6 (was 12)\""));
    lab_same_checkpoint("cosine", "branch");
    /* From its middle on it is a run of 6 steps, with no more to ask for, and the same bits. */
    assert_int_equal(lw_remove_tree("branch/checkpoints/step_0000006"), 0);
    lab_expect(0, COSINE "branch --resume --steps 6");
    lab_same_checkpoint("cosine", "branch");
    assert_true(file_has("branch/checkpoints/last/state.json", "was 12"));
    /* The last rate is that of a cosine over 6. */
    assert_true(lab_metric("cosine", "lr", 0) < 0.07 * lab_metric("cosine", "lr", -1));
}

static void test_other_rate(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --steps 2 --log-every 1 --output-dir rate");
    lab_expect(0, TINY_DDPM " --steps 4 --log-every 1 --learning-rate 1e-3 --reschedule --resume "
                            "--output-dir rate");
    assert_true(file_has("rate/config.yaml", "at step 2: --learning-rate 0.001 (was 0.002)"));
    assert_true(lab_metric("rate", "lr", 0) == 1e-3 && lab_metric("rate", "lr", -1) == 2e-3);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void put_state(const char *from, const char *to)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    LW_CLEANUP(lw_str_clear) lw_str out = {0};
    static const char path[] = "told/checkpoints/step_0000002/state.json";
    size_t n = 0;
    assert_int_equal(lw_file_read(path, 0, &text, &n), 0);
    char *at = strstr(text, from);
    assert_non_null(at);
    lw_str_addf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_int_equal(lw_file_write(path, lw_str_c(&out), out.len), 0);
}

/* state.json is covered by no hash: what it says must fit the directory's name, and bounds. */
static void test_steps_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *good, *bad;
    } rows[] = {{"\"step\": 2", "\"step\": 4611686018427387904"},
                {"\"step\": 2", "\"step\": 3"},
                {"\"step\": 2", "\"step\": -2"},
                {"\"total_steps\": 2", "\"total_steps\": 1"},
                {"\"total_steps\": 2", "\"total_steps\": 4611686018427387904"},
                {"\"total_steps\": 2", "\"total_steps\": \"many\""}};
    lab_expect(0, TINY_DDPM " --steps 2 --log-every 1 --output-dir told");
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        put_state(rows[i].good, rows[i].bad);
        lab_expect(3, TINY_DDPM " --log-every 1 --resume --output-dir told");
        assert_true(lab_one_line());
        assert_non_null(strstr(lab_err, "state.json"));
        lab_expect(3, TINY_DDPM " --steps 9 --resume-from told/checkpoints/last --output-dir t");
        put_state(rows[i].bad, rows[i].good);
    }
    /* A checkpoint that was given another name is believed within bounds. */
    assert_int_equal(rename("told/checkpoints/step_0000002", "mine"), 0);
    lab_expect(0, TINY_DDPM " --steps 3 --resume-from mine --output-dir renamed");
}

/* A run is not inside of one whose name its own only begins with. */
static void test_names_that_begin_alike(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --steps 2 --output-dir alike_too");
    assert_int_equal(lw_mkdirs("alike"), 0);
    lab_expect(0, TINY_DDPM " --steps 2 --resume-from alike_too --output-dir alike");
    assert_false(lw_path_exists("alike/checkpoints")); /* nothing was left to do */
}

static void test_config_of_another_command(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --steps 1 --output-dir of_ddpm");
    lab_expect(2, "train drift --config of_ddpm/config.yaml --output-dir of_drift");
    assert_true(lab_one_line());
    assert_non_null(strstr(lab_err, "of `leeway train ddpm`, not of `leeway train drift`"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_trainer),
        cmocka_unit_test(test_other_data),
        cmocka_unit_test(test_goal_of_a_cosine),
        cmocka_unit_test(test_other_rate),
        cmocka_unit_test(test_steps_that_cannot_be),
        cmocka_unit_test(test_names_that_begin_alike),
        cmocka_unit_test(test_config_of_another_command),
    };
    return cmocka_run_group_tests_name("train_resume", tests, make_kb, lab_leave);
}
