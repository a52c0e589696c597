/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `prove train` on a small family: it learns to rank every query first, its bits are the same for
 * any number of threads and when a run is stopped and resumed, and bad options say what is wrong.
 */
#include "logic/logic.h"
#include "jobs/train_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TRAIN                                                                                    \
    "prove train kb --n-envs 16 --n-steps 24 --batch-size 128 --padding-states 24 "              \
    "--atom-embedding-size 16 --hidden-dim 24 --num-layers 2 --learning-rate 3e-3 --n-epochs 3 " \
    "--ent-coef-init 0.02 --ent-coef-final 0.001 --n-eval-queries 0 --eval-neg-samples 0 "

/* A tree of parents. Grandparents are queries; two of three rules about them lead nowhere. */
static int make_family(void **state)
{
    static const char rules[] = "a:1:friend(x,z), friend(z,y) -> grand(x,y)\n"
                                "b:1:parent(x,z), parent(z,y) -> grand(x,y)\n"
                                "c:1:friend(x,z), parent(z,y) -> grand(x,y)\n";
    LW_CLEANUP(lw_str_clear) lw_str facts = {0}, valid = {0};
    if (lab_enter(state) < 0 || lw_mkdirs("kb") < 0)
        return -1;
    for (int i = 0; i < 63; i++)
        for (int k = 1; k < 3; k++) {
            lw_str_addf(&facts, "parent(p%d,p%d).\nfriend(p%d,p%d).\n", i, 2 * i + k, i,
                        63 + (i * 5 + 3 * k) % 64);
            if (i > 0)
                lw_str_addf(i % 4 ? &facts : &valid, "grand(p%d,p%d).\n", (i - 1) / 2, 2 * i + k);
        }
    /* the test split only says what is true: a name that nobody knows does no harm */
    static const char test[] = "grand(p0,p3).\ngrand(p0,stranger).\n";
    if (lw_file_write("kb/rules.txt", rules, strlen(rules)) < 0 ||
        lw_file_write("kb/test.txt", test, strlen(test)) < 0 ||
        lw_file_write("kb/train.txt", lw_str_c(&facts), facts.len) < 0)
        return -1;
    return lw_file_write("kb/valid.txt", lw_str_c(&valid), valid.len);
}

static void test_positives(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    LW_CLEANUP(lw_problems_clear) lw_problems problems = {0};
    LW_CLEANUP(lw_positives_clear) lw_positives known = {0};
    lw_queries none = {0};
    assert_int_equal(lw_kb_open(&(lw_kb_options){.dir = "kb"}, &problems, &kb), 0);
    assert_int_equal(lw_positives_open(kb, &known), 0);
    assert_true(known.set[LW_QUERIES_TRAIN]->n > 0 && known.set[LW_QUERIES_VALID]->n > 0);
    assert_int_equal(known.set[LW_QUERIES_TEST]->n, 1);
    assert_int_equal(known.set[LW_QUERIES_TEST]->unknown, 1);
    lw_query_options o = {.split = "nobody"};
    assert_int_equal(lw_queries_open(kb, &o, &problems, &none), LW_EIO);
    o.optional = true;
    assert_int_equal(lw_queries_open(kb, &o, &problems, &none), 0);
    assert_int_equal(none.n, 0);
}

static void test_learns(void **state)
{
    (void)state;
    lab_expect(0, TRAIN "--dropout-prob 0.1 --steps 80 --eval-every 20 --output-dir learns");
    double before = lab_metric_mean("learns", "proved_positive", 0, 1),
           after = lab_metric_mean("learns", "proved_positive", 70, 80);
    print_message("true queries proved: %.3f, then %.3f; validation MRR %.3f\n", before, after,
                  lab_metric("learns", "valid_mrr", 0));
    assert_true(before < 0.6 && after > 0.95);
    assert_true(lab_metric("learns", "valid_mrr_untrained", 0) < 0.5);
    assert_true(lab_metric("learns", "valid_mrr", 0) > 0.999);
    lab_expect(0, "prove eval kb --split valid --policy learns/best --padding-states 24 "
                  "--n-corruptions 0 --json");
    assert_non_null(strstr(lab_out, "MRR"));
}

static const char *const variants[] = {"",
                                       "--use-l2-norm=false --sqrt-scale --reward-type 5 "
                                       "--dropout-prob 0.1 --normalize-advantage "
                                       "--train-neg-ratio 3 --skip-unary-actions "
                                       "--clip-range-vf 0 --corruption-modes tail ",
                                       "--constants roles --curriculum 0.7 --hard-negatives 0.5 ",
                                       "--constants shared ",
                                       "--constants frozen ",
                                       "--constants none --atom-embedder rotate "};

static void test_threads(void **state)
{
    (void)state;
    char one[32], many[32];
    for (size_t v = 0; v < LW_COUNT(variants); v++) {
        snprintf(one, sizeof one, "one_%d", (int)v);
        lab_expect(0, TRAIN "%s --steps 3 --eval-every 2 --threads 1 --output-dir %s", variants[v],
                   one);
        for (int t = 2; t <= 5; t += 3) {
            snprintf(many, sizeof many, "many_%d_%d", (int)v, t);
            lab_expect(0, TRAIN "%s --steps 3 --eval-every 2 --threads %d --output-dir %s",
                       variants[v], t, many);
            lab_same_checkpoint(one, many);
            lab_same_logs(one, many);
        }
    }
}

static void same_text(const char *a, const char *b)
{
    LW_CLEANUP(lw_free) char *x = NULL;
    LW_CLEANUP(lw_free) char *y = NULL;
    size_t n, m;
    assert_int_equal(lw_file_read(a, 0, &x, &n), 0);
    assert_int_equal(lw_file_read(b, 0, &y, &m), 0);
    assert_true(n > 100);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

/* A network that sees the query keeps states by query: scores are the same whatever is kept. */
static void test_scores_of_what_is_kept(void **state)
{
    (void)state;
    static const char *const constants[] = {"shared", "roles"};
    for (size_t k = 0; k < LW_COUNT(constants); k++) {
        lab_expect(0, TRAIN "--constants %s --steps 2 --eval-every 0 --output-dir seen_%d",
                   constants[k], (int)k);
        for (int i = 0; i < 2; i++)
            lab_expect(
                0,
                "prove eval kb --split valid --policy seen_%d --padding-states 24 "
                "--n-corruptions 0 --threads %d --fixed-batch-size %d --rows %d --cache-memory %d "
                "--save-scores scores_%d.csv",
                (int)k, i ? 3 : 1, i ? 7 : 512, i ? 16 : 1024, i ? 0 : 64, i);
        same_text("scores_0.csv", "scores_1.csv");
    }
}

static void test_resume(void **state)
{
    (void)state;
    char whole[32], parts[32];
    for (size_t v = 0; v < LW_COUNT(variants); v++) {
        LW_CLEANUP(lw_str_clear) lw_str path = {0};
        snprintf(whole, sizeof whole, "whole_%d", (int)v);
        snprintf(parts, sizeof parts, "parts_%d", (int)v);
        for (int i = 0; i < 2; i++)
            lab_expect(0, TRAIN "%s --steps 7 --save-every 3 --eval-every 2 --output-dir %s",
                       variants[v], i ? parts : whole);
        for (int i = 6; i <= 7; i++) { /* as if it had been killed behind step 3 */
            char name[48];
            snprintf(name, sizeof name, "checkpoints/step_%07d", i);
            assert_int_equal(lw_remove_tree(lw_path_join(&path, parts, name)), 0);
        }
        assert_int_equal(lab_last_step(parts), 3);
        lab_expect(
            0,
            TRAIN "%s --steps 7 --save-every 3 --eval-every 2 --resume --threads 3 --output-dir %s",
            variants[v], parts);
        lab_same_checkpoint(whole, parts);
        lab_same_logs(whole, parts);
    }
}

static void test_how_long(void **state)
{
    (void)state;
    lab_expect(0, TRAIN "--timesteps-train 1000 --output-dir choices");
    assert_int_equal(lab_last_step("choices"), 3); /* of 384 choices */
    lab_expect(0, TRAIN "--minutes 0.02 --eval-every 0 --output-dir minutes");
    /* On a machine that became slower it ended before its number: then it goes on. */
    lab_expect(0, "prove train --config minutes/config.yaml --resume");
    int steps = (int)lab_last_step("minutes");
    assert_true(steps >= 1);
    /* What was measured before does not show: the same steps asked for give the same bits. */
    lab_expect(0, TRAIN "--steps %d --eval-every 0 --output-dir steps", steps);
    lab_same_checkpoint("minutes", "steps");
    lab_expect(0, TRAIN "--steps 5 --dry-run --output-dir dry");
    assert_false(lw_path_exists("dry"));
}

static void expect_said(int code, const char *args, const char *part)
{
    lab_expect(code, TRAIN "%s --output-dir bad", args);
    if (!strstr(lab_err, part) || !lab_one_line())
        fail_msg("%s: %s", args, lab_err);
}

static void test_bad_options(void **state)
{
    (void)state;
    expect_said(2, "--steps 2 --reward-type 6", "reward-type");
    expect_said(2, "--steps 2 --constants frozen --weight-decay 0.1", "--weight-decay");
    expect_said(2, "--steps 2 --constants many", "--constants");
    expect_said(2, "--steps 2 --corruption-modes tails", "corruption-modes");
    expect_said(2, "--steps 2 --max-total-vars 5000", "max-total-vars");
    expect_said(2, "--steps 2 --train-depth 1,2", "train_depths.txt");
    expect_said(2, "--steps 2 --domains yes", "domain");
    expect_said(2, "", "--steps");
    lab_expect(2, "prove train kb --n-envs 100000 --n-steps 100000 --steps 1 --output-dir bad");
    assert_non_null(strstr(lab_err, "2^24"));
    lab_expect(2, "prove train kb --batch-size 65536 --padding-states 65536 --steps 1 "
                  "--output-dir bad");
    assert_non_null(strstr(lab_err, "padding-states"));
    lab_expect(4, "prove train nowhere --steps 1 --output-dir bad");
    assert_non_null(strstr(lab_err, "nowhere"));
}

/* A batch of more choices than there are takes no more memory or time than all of them. */
static void test_batch(void **state)
{
    (void)state;
    LW_CLEANUP(lw_free) char *all = NULL;
    for (int i = 0; i < 2; i++) {
        lab_expect(0, TRAIN "--steps 2 --batch-size %d --dry-run --json --output-dir dry",
                   i ? 65536 : 16 * 24);
        char *seconds = strstr(lab_out, "\"predicted_seconds");
        assert_non_null(seconds);
        *seconds = '\0';
        if (i)
            assert_string_equal(all, lab_out);
        lw_free(&all);
        all = lw_strdup(lab_out);
        assert_non_null(all);
    }
}

/* Steps of such a size have no finite weights: nothing is saved. */
static void test_not_finite(void **state)
{
    (void)state;
    int rc = lab_run(TRAIN "--steps 6 --learning-rate 10 --max-grad-norm 0 --vf-coef 1000 "
                           "--clip-range-vf 0 --target-kl 0 --lr-warmup 0 --adam-eps 0 "
                           "--adam-beta1 0 --adam-beta2 0 --use-l2-norm=false --temperature 1e-30 "
                           "--eval-every 0 --output-dir huge");
    print_message("exit code %d: %s", rc, lab_err);
    assert_int_equal(rc, 7);
    assert_non_null(strstr(lab_err, "not finite"));
    assert_int_equal(lab_last_step("huge"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores_of_what_is_kept),
        cmocka_unit_test(test_positives),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_how_long),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests_name("prove_train", tests, make_family, lab_leave);
}
