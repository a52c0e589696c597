/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held-out measures while generators train: both methods have them, they change no bit of training,
 * fresh noises differ where fixed ones do not, and --keep-best keeps what it says.
 */
#include "jobs/train_fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "formats/formats.h"

#define MEASURE " --eval-every 2 --eval-samples 128 --eval-encoder judge --log-every 1"

static const struct {
    const char *name, *args;
} methods[] = {{"ddpm", TINY_DDPM " --ddim-steps 2"},
               {"drift", TINY_DRIFT " --encoder judge --feature-keys pixels"},
               {"pixels", TINY_DRIFT " --encoder none"}};

static int make_judge(void **state)
{
    if (lab_enter(state) < 0)
        return -1;
    return lab_run(TINY_ENCODER " --objective classify --steps 4 --output-dir judge") == 0 ? 0 : -1;
}

static json_t *rows_of(const char *run)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    json_t *rows = NULL;
    if (lw_jsonl_load(lw_path_join(&path, run, "metrics.jsonl"), &rows) < 0)
        fail_msg("%s", lw_errmsg());
    return rows;
}

static double number(const json_t *row, const char *key)
{
    const json_t *v = json_object_get(row, key);
    if (!json_is_number(v))
        fail_msg("no number '%s' in %s", key, json_dumps(row, 0));
    return json_number_value(v);
}

static void test_no_bit_of_training(void **state)
{
    (void)state;
    char with[32], without[32];
    for (size_t m = 0; m < LW_COUNT(methods); m++) {
        snprintf(with, sizeof with, "with_%s", methods[m].name);
        snprintf(without, sizeof without, "without_%s", methods[m].name);
        lab_expect(0, "%s" MEASURE " --keep-best fd --steps 4 --output-dir %s", methods[m].args,
                   with);
        lab_expect(0, "%s --steps 4 --output-dir %s", methods[m].args, without);
        lab_same_checkpoint(with, without);
    }
}

/* Weights that do not move: only the noises of fd do. Its floor is below both. */
static void test_fresh_and_fixed(void **state)
{
    (void)state;
    static const char *const names[] = {"fd", "eval_fd"};
    char run[32], fixed[32], floor[32];
    for (size_t m = 0; m < LW_COUNT(methods); m++) {
        snprintf(run, sizeof run, "still_%s", methods[m].name);
        lab_expect(0, "%s" MEASURE " --learning-rate 0 --dropout 0 --steps 4 --output-dir %s",
                   methods[m].args, run);
        assert_non_null(strstr(lab_err, "step 2: held-out fd "));
        LW_CLEANUP(lw_json_drop) json_t *rows = rows_of(run);
        const json_t *a = json_array_get(rows, 1), *b = json_array_get(rows, 3);
        assert_null(json_object_get(json_array_get(rows, 0), "fd"));
        for (size_t i = 0; i < LW_COUNT(names); i++) {
            snprintf(fixed, sizeof fixed, "%s_fixed", names[i]);
            snprintf(floor, sizeof floor, "%s_floor", names[i]);
            assert_true(number(a, names[i]) != number(b, names[i]));
            assert_true(number(a, fixed) == number(b, fixed));
            assert_true(number(a, floor) == number(b, floor));
            assert_true(number(a, floor) < number(a, fixed));
            assert_true(number(a, floor) < number(a, names[i]));
        }
    }
}

/* Real pictures get the same distance as samples that are real pictures: the floor is taken from
 * as many as the distance. More of both lower both. */
static void test_floor_of_as_many(void **state)
{
    (void)state;
    lab_expect(0, TINY_DRIFT " --eval-every 1 --eval-samples 16 --steps 1 --output-dir few");
    lab_expect(0, TINY_DRIFT " --eval-every 1 --steps 1 --output-dir many");
    LW_CLEANUP(lw_json_drop) json_t *few = rows_of("few");
    LW_CLEANUP(lw_json_drop) json_t *many = rows_of("many");
    assert_true(number(json_array_get(few, 0), "fd_floor") >
                2.0 * number(json_array_get(many, 0), "fd_floor"));
}

/* The rows measured with are of all classes, although synth's classes take turns: real pictures are
 * near real ones, an untrained generator's are not, and both halves of --keep-best are of the same
 * kind. */
static void test_real_is_near_real(void **state)
{
    (void)state;
    lab_expect(0,
               "%s" MEASURE " --eval-samples 256 --keep-best eval_fd --steps 2 --output-dir near",
               methods[0].args);
    LW_CLEANUP(lw_json_drop) json_t *rows = rows_of("near");
    const json_t *row = json_array_get(rows, 1);
    double floor = number(row, "eval_fd_floor"), spoilt = number(row, "eval_fd"),
           halves = number(row, "eval_fd_choosing") / number(row, "eval_fd_reporting");
    print_message("real %.4g, untrained %.4g, halves %.4g\n", floor, spoilt, halves);
    assert_true(floor < 0.01 * spoilt);
    assert_true(halves > 0.9 && halves < 1.1);
}

/* ---- the best checkpoint --------------------------------------------------------------------- */

static int64_t best_step(const char *run)
{
    char path[64], target[64] = "";
    long long step = -1;
    snprintf(path, sizeof path, "%s/checkpoints/best", run);
    ssize_t n = readlink(path, target, sizeof target - 1);
    assert_true(n > 0 && sscanf(target, "step_%lld", &step) == 1);
    return step;
}

/* Where METRIC_choosing was least, by the logs. */
static int64_t least(const char *run, const char *key, double *reporting)
{
    LW_CLEANUP(lw_json_drop) json_t *rows = rows_of(run);
    const json_t *best = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (json_object_get(row, key) && (!best || number(row, key) < number(best, key)))
            best = row;
    }
    assert_non_null(best);
    *reporting = number(best, "eval_fd_reporting");
    return (int64_t)number(best, "step");
}

#define BEST MEASURE " --keep-best eval_fd --learning-rate 0.05 --keep-last-k-checkpoints 1"

static void check_best(const char *run)
{
    LW_CLEANUP(lw_json_drop) json_t *summary = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    double reporting;
    int64_t step = least(run, "eval_fd_choosing", &reporting);
    assert_int_equal(best_step(run), step);
    assert_int_equal(lw_json_load(lw_path_join(&path, run, "summary.json"), &summary), 0);
    const json_t *best = json_object_get(summary, "best");
    assert_int_equal((int64_t)number(best, "step"), step);
    assert_true(number(best, "reporting") == reporting);
    assert_true(number(best, "floor") > 0 && number(best, "floor") < reporting);
    assert_int_equal(lab_last_step(run), 8);
    lab_expect(0, "sample %s/checkpoints/best --n 1 --output best.npy", run);
}

static void test_keep_best(void **state)
{
    (void)state;
    char whole[32], parts[32];
    for (size_t m = 0; m < 2; m++) {
        snprintf(whole, sizeof whole, "best_%s", methods[m].name);
        snprintf(parts, sizeof parts, "parts_%s", methods[m].name);
        lab_expect(0, "%s" BEST " --steps 8 --output-dir %s", methods[m].args, whole);
        check_best(whole);
        /* In two parts the same; and a link that points elsewhere is put right. */
        lab_expect(0, "%s" BEST " --steps 4 --output-dir %s", methods[m].args, parts);
        lab_expect(0, "%s" BEST " --steps 8 --resume --output-dir %s", methods[m].args, parts);
        check_best(parts);
        assert_int_equal(best_step(whole), best_step(parts));
        lab_same_checkpoint(whole, parts);
        lab_same_logs(whole, parts);
    }
    lab_expect(0,
               "%s" MEASURE " --keep-best fd --learning-rate 0.05 --steps 10 --resume "
               "--output-dir parts_ddpm",
               methods[0].args);
    assert_non_null(strstr(lab_err, "--keep-best begins anew: it was another measure"));
    assert_int_equal(best_step("parts_ddpm"), 10);
}

static void test_bad_uses(void **state)
{
    (void)state;
    static const struct {
        const char *args, *says;
    } rows[] = {{"--keep-best fd", "--keep-best fd: needs --eval-every"},
                {"--keep-best eval_fd --eval-every 2", "needs --eval-encoder"},
                {"--eval-every 2 --eval-encoder none", "--eval-encoder none"}};
    for (size_t i = 0; i < LW_COUNT(rows); i++)
        for (size_t m = 0; m < 2; m++) {
            lab_expect(2, "%s %s --steps 2 --output-dir bad", methods[m].args, rows[i].args);
            assert_true(lab_one_line());
            assert_non_null(strstr(lab_err, rows[i].says));
            assert_false(lw_path_exists("bad"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_bit_of_training), cmocka_unit_test(test_fresh_and_fixed),
        cmocka_unit_test(test_floor_of_as_many),   cmocka_unit_test(test_real_is_near_real),
        cmocka_unit_test(test_keep_best),          cmocka_unit_test(test_bad_uses),
    };
    return cmocka_run_group_tests_name("heldout", tests, make_judge, lab_leave);
}
