/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of embeddings: the same for any number of threads, and when a run is stopped and
 * resumed; and, with LW_TEST_DATA, a few seconds on a published dataset. */
#include "jobs/train_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "formats/formats.h"
#include "store/store.h"

static const struct {
    const char *name, *args;
} runs[] = {
    {"transe", "--model transe --norm 2 --loss softplus --embedding-dim 19 --negatives 13"},
    {"rotate", "--model rotate --embedding-dim 24 --negatives 33 --grad-accum-steps 2"},
    {"complex", "--model complex --embedding-dim 17 --negatives 0 --inverse-relations "
                "--regularization 0.01 --regularization-relations 0.1 --eval-every 4 "
                "--keep-best mrr"},
    {"distmult", "--model distmult --embedding-dim 40 --loss nssa --negatives 0 --ema-decay 0.9 "
                 "--no-filter-negatives"},
};

#define TRAIN "prove kge graph --batch-size 21 --learning-rate 0.01 --log-every 2 --seed 7 "

/* A ring of 60 with steps of 1 and 7; some of the longer ones are valid queries. */
static int make_graph(void **state)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0}, valid = {0};
    if (lab_enter(state) < 0 || lw_mkdirs("graph") < 0)
        return -1;
    for (int i = 0; i < 60; i++) {
        lw_str_addf(&facts, "near(e%d,e%d).\njump(e%d,e%d).\n", i, (i + 1) % 60, i, (i + 7) % 60);
        lw_str_addf(i % 6 ? &facts : &valid, "far(e%d,e%d).\n", i, (i + 7) % 60);
    }
    if (lw_file_write("graph/train.txt", lw_str_c(&facts), facts.len) < 0 ||
        lw_file_write("graph/rules.txt", "jump(x,y) -> far(x,y)\n", 22) < 0)
        return -1;
    return lw_file_write("graph/valid.txt", lw_str_c(&valid), valid.len);
}

static void test_threads(void **state)
{
    static const int threads[] = {2, 3, 5};
    char one[64], many[64];
    (void)state;
    for (size_t m = 0; m < LW_COUNT(runs); m++) {
        snprintf(one, sizeof one, "%s_1", runs[m].name);
        lab_expect(0, TRAIN "%s --steps 8 --threads 1 --output-dir %s", runs[m].args, one);
        for (size_t t = 0; t < LW_COUNT(threads); t++) {
            snprintf(many, sizeof many, "%s_%d", runs[m].name, threads[t]);
            lab_expect(0, TRAIN "%s --steps 8 --threads %d --output-dir %s", runs[m].args,
                       threads[t], many);
            lab_same_checkpoint(one, many);
            lab_same_logs(one, many);
        }
    }
}

static void test_resume(void **state)
{
    char whole[64], parts[64];
    (void)state;
    for (size_t m = 0; m < LW_COUNT(runs); m++) {
        snprintf(whole, sizeof whole, "%s_whole", runs[m].name);
        snprintf(parts, sizeof parts, "%s_parts", runs[m].name);
        lab_expect(0, TRAIN "%s --steps 22 --scheduler constant --output-dir %s", runs[m].args,
                   whole);
        lab_expect(0, TRAIN "%s --steps 10 --scheduler constant --output-dir %s", runs[m].args,
                   parts);
        lab_expect(0,
                   TRAIN "%s --steps 22 --scheduler constant --resume --threads 3 --output-dir %s",
                   runs[m].args, parts);
        lab_same_checkpoint(whole, parts);
    }
}

/* Without an average a checkpoint has no ema/; one of earlier versions, which has it, goes on to the same bits. */
static void test_resume_earlier(void **state)
{
    static const char *const names[] = {"config.json", LW_WEIGHTS_HF};
    (void)state;
    lab_expect(0, TRAIN "--steps 9 --scheduler constant --output-dir now");
    lab_expect(0, TRAIN "--steps 4 --scheduler constant --output-dir earlier");
    assert_false(lw_path_exists("earlier/checkpoints/last/ema"));
    assert_int_equal(lw_mkdirs("earlier/checkpoints/last/ema"), 0);
    for (size_t i = 0; i < LW_COUNT(names); i++) {
        char from[96], to[96], *bytes = NULL;
        size_t n = 0;
        snprintf(from, sizeof from, "earlier/checkpoints/last/%s", names[i]);
        snprintf(to, sizeof to, "earlier/checkpoints/last/ema/%s", names[i]);
        assert_int_equal(lw_file_read(from, 0, &bytes, &n), 0);
        assert_int_equal(lw_file_write(to, bytes, n), 0);
        lw_free(&bytes);
    }
    lab_expect(0, TRAIN "--steps 9 --scheduler constant --resume --output-dir earlier");
    lab_same_checkpoint("now", "earlier");
}

/* The same queries in 1, 2, 4 and 8 parts: the same leaves, the same bits. */
static void test_parts(void **state)
{
    char many[64];
    (void)state;
    for (int a = 1; a <= 8; a *= 2) {
        snprintf(many, sizeof many, "parts_%d", a);
        lab_expect(0,
                   "prove kge graph --leaf-size 5 --batch-size %d --grad-accum-steps %d --steps 6 "
                   "--log-every 1 --embedding-dim 24 --negatives 33 --output-dir %s",
                   40 / a, a, many);
        lab_same_checkpoint("parts_1", many);
        lab_same_logs("parts_1", many);
    }
}

static double number_of(const char *key)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    double x = -1.0;
    if (lw_json_parse("stdout", lab_out, strlen(lab_out), &j) < 0 ||
        lw_json_get_f64(j, "stdout", key, &x) < 0)
        fail_msg("%s: %s", lw_errmsg(), lab_out);
    return x;
}

/* Ranks do not depend on threads, and bad uses say what is wrong. */
static void test_ranks(void **state)
{
    char first[sizeof lab_out];
    (void)state;
    lab_expect(0, TRAIN "--epochs 30 --embedding-dim 16 --negatives 32 --output-dir ranked");
    for (int threads = 1; threads <= 4; threads += 3) {
        lab_expect(0, "prove rank graph --kge ranked --split valid --threads %d --json", threads);
        char *seconds = strstr(lab_out, "\"seconds\"");
        assert_non_null(seconds);
        if (threads > 1)
            assert_memory_equal(first, lab_out, (size_t)(seconds - lab_out));
        memcpy(first, lab_out, sizeof first);
    }
    assert_true(number_of("queries") == 10.0);
    /* 60 entities, less the other answer that each argument of far() has: none */
    assert_true(number_of("candidates") == 10.0 * 2.0 * 60.0);
    lab_expect(0, "prove rank graph --kge ranked --split valid --n-corruptions 9 "
                  "--corruption-modes both --json");
    assert_true(number_of("candidates") == 10.0 * 10.0);
    lab_expect(2, "prove rank graph --kge ranked --n-corruptions some");
    lab_expect(2, "prove rank graph");
    lab_expect(2, TRAIN "--epochs 3 --steps 4 --output-dir never");
    assert_true(lab_one_line());
    assert_int_equal(lw_mkdirs("other"), 0);
    assert_int_equal(lw_file_write("other/train.txt", "near(a,b).\n", 11), 0);
    assert_int_equal(lw_file_write("other/test.txt", "near(b,a).\n", 11), 0);
    lab_expect(3, "prove rank other --kge ranked");
    assert_non_null(strstr(lab_err, "60 entities"));
}

/* Fused with proofs: without bonus and penalty it is the embedding alone, on the same candidates;
 * with jump(x,y) -> far(x,y) every query is proved, no other candidate is, and a bonus decides. */
static void test_fusion(void **state)
{
#define DRAWN " graph --kge fused --split valid --n-corruptions 20 --corruption-modes both --json"
    (void)state;
    lab_expect(0, TRAIN "--epochs 10 --embedding-dim 16 --negatives 32 --output-dir fused");
    lab_expect(0, "prove rank" DRAWN);
    double alone = number_of("MRR");
    assert_true(alone > 0.1 && alone < 1.0);
    lab_expect(0, "prove eval" DRAWN " --kge-bonus 0 --fail-penalty 0");
    assert_true(fabs(number_of("MRR") - alone) < 1e-9);
    lab_expect(0, "prove eval" DRAWN " --kge-weight 0.001 --kge-bonus 9");
    print_message("MRR alone %.3f, with proofs %.3f\n", alone, number_of("MRR"));
    assert_true(number_of("MRR") == 1.0);
    lab_expect(3, "prove eval" DRAWN " --kge graph");
}

/* The best checkpoint is that of the row with the least 1-MRR_choosing, stays when others are pruned, and has the
 * valid_MRR of that row, which is the mean over both halves. */
static void test_best(void **state)
{
#define BEST                                                                            \
    TRAIN "--model rotate --embedding-dim 16 --negatives 32 --steps 24 --eval-every 2 " \
          "--keep-best mrr --keep-last-k-checkpoints 1 --output-dir best"
    LW_CLEANUP(lw_json_drop) json_t *summary = NULL;
    double least = 2.0, mrr = -1.0;
    int step = -1;
    (void)state;
    lab_expect(0, BEST);
    for (int i = 1; i <= 12; i++) {
        double choosing = lab_metric("best", "1-MRR_choosing", 12 - i),
               reporting = lab_metric("best", "1-MRR_reporting", 12 - i),
               valid = lab_metric("best", "valid_MRR", 12 - i);
        assert_true(fabs((choosing + reporting) / 2.0 - (1.0 - valid)) < 1e-9);
        if (choosing >= least)
            continue;
        least = choosing;
        step = 2 * i;
        mrr = valid;
    }
    assert_true(step < 24 &&
                lab_last_step("best") == 24); /* such steps do not stay at their best */
    assert_int_equal(lw_json_load("best/summary.json", &summary), 0);
    const json_t *best = json_object_get(summary, "best");
    assert_int_equal(json_integer_value(json_object_get(best, "step")), step);
    assert_true(json_number_value(json_object_get(best, "choosing")) == least);
    lab_expect(0, "prove rank graph --kge best/checkpoints/best --split valid --json");
    assert_true(fabs(number_of("MRR") - mrr) < 1e-9);
    lab_expect(2, TRAIN "--steps 2 --keep-best mrr --output-dir never");
    assert_non_null(strstr(lab_err, "needs --eval-every"));
    lab_expect(2, TRAIN "--steps 2 --model rotate --regularization-relations 1 --output-dir never");
    assert_true(lab_one_line());
}

/* Random scores would have an MRR of about .02 among 271 entities. */
static void test_countries(void **state)
{
    static const char *const args[] = {
        "--model transe --embedding-dim 32 --gamma 6 --negatives 64",
        "--model rotate --embedding-dim 32 --gamma 6 --negatives 64",
        "--model complex --embedding-dim 32 --negatives 0 --regularization 0.005"};
    const char *data = getenv("LW_TEST_DATA");
    (void)state;
    if (!data) {
        print_message("skipped: LW_TEST_DATA is not set\n");
        return;
    }
    for (size_t i = 0; i < LW_COUNT(args); i++) {
        lab_expect(0,
                   "prove kge %s/kg/dprl/countries_s3 %s --batch-size 128 --learning-rate 0.01 "
                   "--epochs 60 --output-dir countries%zu",
                   data, args[i], i);
        lab_expect(0,
                   "prove rank %s/kg/dprl/countries_s3 --kge countries%zu --split train "
                   "--n-queries 200 --query-order first --json",
                   data, i);
        double known = number_of("MRR");
        lab_expect(0, "prove rank %s/kg/dprl/countries_s3 --kge countries%zu --json", data, i);
        print_message("countries_s3 %s: MRR %.3f of facts, %.3f of test queries\n", args[i], known,
                      number_of("MRR"));
        assert_true(known > 0.9);
        assert_true(number_of("MRR") > 0.2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_earlier), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_ranks),          cmocka_unit_test(test_fusion),
        cmocka_unit_test(test_best),           cmocka_unit_test(test_countries)};
    return cmocka_run_group_tests_name("kge_bits", tests, make_graph, lab_leave);
}
