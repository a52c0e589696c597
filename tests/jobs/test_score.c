/* SPDX-License-Identifier: Apache-2.0 */
/* Scores, controls, the judge's examination and the bar, with networks that learnt nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"
#include "base/base.h"
#include "formats/formats.h"
#include "store/store.h"
#include "data/data.h"
#include "models/models.h"
#include "jobs/compare/compare_score.h"

static char dir[64] = "/tmp/lw_score_XXXXXX";
static lw_device *dev;

/* A classifier of `outputs` classes that has its first random weights; judged > 0: a judge. */
static void save_net(const char *name, int32_t outputs, int32_t judged)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_encoder_config c = lw_encoder_default(16);
    c.width = 8;
    c.stages = 2;
    c.classes = outputs;
    LW_CLEANUP(lw_json_drop) json_t *config = lw_encoder_to_json(&c);
    if (judged)
        json_object_set_new(config, "leeway_judged_classes", json_integer(judged));
    assert_int_equal(lw_store_new(true, &s), 0);
    assert_int_equal(lw_encoder_declare(&c, s), 0);
    lw_store_init(s, (uint64_t)outputs);
    assert_int_equal(lw_model_folder_save(lw_path_join(&path, dir, name), s, LW_SLAB_PARAM, config,
                                          LW_WEIGHTS_HF),
                     0);
}

static int enter(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    setenv("LW_CACHE", dir, 1);
    save_net("judge", 11, 10);
    save_net("reader", 10, 0);
    save_net("few", 4, 3);
    return cpu_device(2, lw_isa_best(), &dev);
}

static int leave(void **state)
{
    (void)state;
    lw_backend_close(&dev);
    return lw_remove_tree(dir);
}

static int open_scorer(const char *judge, const char *reader, lw_scorer **out)
{
    LW_CLEANUP(lw_str_clear) lw_str a = {0}, b = {0};
    const lw_scorer_opts o = {.data = "synth:16",
                              .image_size = 16,
                              .limit = 1024,
                              .n = 300,
                              .judge = judge ? lw_path_join(&a, dir, judge) : NULL,
                              .reader = reader ? lw_path_join(&b, dir, reader) : NULL};
    return lw_scorer_new(dev, &o, out);
}

/* ---- measuring ------------------------------------------------------------------------------ */

enum { N = 300, FLOATS = 16 * 16 * 3 };

static void test_real_and_copies(void **state)
{
    (void)state;
    LW_CLEANUP(lw_scorer_free) lw_scorer *s = NULL;
    LW_CLEANUP(lw_data_close) lw_dataset *train = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)N * FLOATS, sizeof *x);
    int32_t c[N];
    lw_score real, copied;
    assert_int_equal(open_scorer(NULL, "reader", &s),
                     0); /* nobody predicts classes: those asked for count */
    assert_int_equal(lw_scorer_real(s, N, x, c), N);
    assert_int_equal(lw_scorer_score(s, "real", x, c, N, &real), 0);
    assert_false(real.judged);
    assert_true(fabs(real.diversity - 1.0) < 0.05);
    assert_true(real.colour < 0.05);
    assert_int_equal(real.copies, 0);
    assert_int_equal(real.duplicates, 0);
    assert_true(real.fd.low <= real.fd.value && real.fd.value <= real.fd.high);

    /* pictures of the training pool are copies of themselves; beyond its limit they are not */
    const lw_data_opts o = {.count = 2048};
    assert_int_equal(lw_data_open("synth:16", &o, &train), 0);
    lw_data_from_u8(train->pixels, (int64_t)N * FLOATS, x);
    assert_int_equal(lw_scorer_score(s, "copied", x, train->labels, N, &copied), 0);
    assert_int_equal(copied.copies, N);
    assert_true(copied.near_min == 0.0);
    LW_CLEANUP(lw_free) float *near = lw_calloc((size_t)N * FLOATS, sizeof *near);
    double distance[N];
    assert_int_equal(lw_scorer_nearest(s, x, N, near, distance), 0);
    assert_memory_equal(near, x, (size_t)N * FLOATS * sizeof *x);
    lw_data_from_u8(train->pixels + (int64_t)1024 * FLOATS, (int64_t)N * FLOATS, x);
    assert_int_equal(lw_scorer_score(s, "unseen", x, train->labels + 1024, N, &copied), 0);
    assert_int_equal(copied.copies, 0);
}

/* A folder's rows are sorted by class: what is measured with must still be of every class. */
static void test_sorted_classes(void **state)
{
    (void)state;
    enum { CLASSES = 3, EACH = 40, SIDE = 16, BYTES = SIDE * SIDE * 3 };
    LW_CLEANUP(lw_scorer_free) lw_scorer *s = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, reader = {0}, spec = {0};
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)EACH * BYTES, sizeof *x);
    uint8_t rgb[BYTES];
    int32_t c[EACH];
    int of_class[CLASSES] = {0};
    for (int i = 0; i < 2 * CLASSES * EACH; i++) {
        static const char *const splits[] = {"train", "test"};
        const int class = i / EACH % CLASSES;
        const lw_image im = {.width = SIDE, .height = SIDE, .rgb = rgb};
        lw_str_clear(&path);
        lw_str_addf(&path, "%s/sorted/%s/%d", dir, splits[i / EACH / CLASSES], class);
        assert_int_equal(lw_mkdirs(lw_str_c(&path)), 0);
        lw_str_addf(&path, "/%d.png", i);
        for (int k = 0; k < BYTES; k++)
            rgb[k] = (uint8_t)(80 * class + (i * 31 + k * k) % 64);
        assert_int_equal(lw_png_save(lw_str_c(&path), &im, NULL), 0);
    }
    lw_str_addf(&spec, "folder:%s/sorted", dir);
    const lw_scorer_opts o = {.data = lw_str_c(&spec),
                              .image_size = SIDE,
                              .n = EACH,
                              .encoder = lw_path_join(&reader, dir, "reader")};
    if (lw_scorer_new(dev, &o, &s) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(lw_scorer_real(s, EACH, x, c), EACH);
    for (int i = 0; i < EACH; i++)
        of_class[c[i]]++;
    for (int k = 0; k < CLASSES; k++)
        assert_in_range(of_class[k], EACH / CLASSES - 1, EACH / CLASSES + 2);
}

static void test_controls(void **state)
{
    (void)state;
    LW_CLEANUP(lw_scorer_free) lw_scorer *s = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)N * FLOATS, sizeof *x);
    int32_t c[N];
    lw_score real, control[LW_CONTROLS];
    assert_int_equal(open_scorer(NULL, "reader", &s), 0);
    assert_int_equal(lw_scorer_real(s, N, x, c), N);
    assert_int_equal(lw_scorer_score(s, "real", x, c, N, &real), 0);
    assert_int_equal(lw_scorer_controls(s, N, NULL, control), 0);
    for (int i = 0; i < LW_CONTROLS; i++) {
        assert_int_equal(control[i].n, N);
        assert_true(control[i].fd.value > 2.0 * real.fd.value);
        assert_true(control[i].colour > real.colour);
    }
    const lw_score *noise = &control[0], *means = &control[4], *repeated = &control[6];
    assert_true(noise->colour > 0.5);
    assert_true(means->diversity < 0.3);
    assert_true(repeated->diversity < 1e-9);
    assert_int_equal(repeated->duplicates, N);
    assert_int_equal(repeated->copies, 0); /* of held-out pictures, not of training ones */
}

/* The judge answers for acceptance, the reader for legibility; without a reader the judge does
 * both. */
static void test_two_opinions(void **state)
{
    (void)state;
    LW_CLEANUP(lw_scorer_free) lw_scorer *both = NULL;
    LW_CLEANUP(lw_scorer_free) lw_scorer *alone = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)N * FLOATS, sizeof *x);
    int32_t c[N];
    lw_score a, b;
    assert_int_equal(open_scorer("judge", "reader", &both), 0);
    assert_int_equal(lw_scorer_real(both, N, x, c), N);
    assert_int_equal(lw_scorer_score(both, "real", x, c, N, &a), 0);
    assert_int_equal(open_scorer("judge", NULL, &alone), 0);
    assert_int_equal(lw_scorer_score(alone, "real", x, c, N, &b), 0);
    assert_true(a.judged && b.judged);
    assert_int_equal(memcmp(&a.strict, &b.strict, sizeof a.strict), 0);
    assert_true(a.fd.value != b.fd.value); /* features of other networks */
    assert_true(a.plain.agreement < 0.5 && b.plain.agreement < 0.5);
}

static void test_refusals(void **state)
{
    (void)state;
    lw_scorer *s = NULL;
    assert_int_equal(open_scorer(NULL, NULL, &s), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "--judge"));
    assert_int_equal(open_scorer("few", NULL, &s), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "judges 3 classes"));
    assert_int_equal(open_scorer("judge", "few", &s), LW_EUSAGE);
    assert_int_equal(open_scorer("reader", NULL, &s), LW_EUSAGE); /* a classifier is no judge */
    assert_null(s);
}

/* ---- deciding -------------------------------------------------------------------------------- */

static lw_score good(void)
{
    return (lw_score){
        .n = 1000,
        .judged = true,
        .diversity = 0.9,
        .colour = 0.05,
        .strict = {.accepted = 0.95, .accepted_any = 0.95},
        .plain = {.accepted_any = 0.97, .agreement = 0.995, .class_min = 0.09, .class_max = 0.11}};
}

static void test_examination(void **state)
{
    (void)state;
    lw_score real = good(), control[LW_CONTROLS] = {0};
    assert_true(lw_judge_examine(&real, control).fit);
    control[4].strict.accepted_any = 0.11; /* class means */
    assert_false(lw_judge_examine(&real, control).fit);
    assert_true(lw_judge_examine(&real, control).accurate);
    control[4].strict.accepted_any = 0;
    control[3].strict.accepted_any = 0.11; /* blurred */
    assert_false(lw_judge_examine(&real, control).fit);
    control[3].strict.accepted_any = 0;
    real.strict.accepted = 0.89;
    assert_false(lw_judge_examine(&real, control).fit);
    real = good();
    real.plain.agreement = 0.98;
    assert_false(lw_judge_examine(&real, control).fit);
    assert_false(lw_judge_examine(&real, control).accurate);
}

static int failing(const lw_score *s, const lw_judge_exam *e, int *line)
{
    lw_bar_line l[LW_BAR_COUNT];
    int failed = lw_score_check(s, 10, e, l);
    for (int i = 0; i < LW_BAR_COUNT; i++)
        if (l[i].applies && !l[i].pass)
            *line = i;
    return failed;
}

static void test_bar(void **state)
{
    (void)state;
    const lw_judge_exam fit = {.fit = true, .accurate = true}, unfit = {.accurate = true},
                        none = {0};
    const double at[LW_BAR_COUNT] = {0.90, 0.95, 0.05, 0.80, 0.15, 0.40}; /* just enough */
    int line = -1;
    lw_score s = good();
    assert_int_equal(failing(&s, &fit, &line), 0);
    for (int i = 0; i < LW_BAR_COUNT; i++)
        for (int bad = 0; bad < 2; bad++) {
            double v = at[i] + (bad ? (i == LW_BAR_COLOUR ? 1e-6 : -1e-6) : 0.0);
            s = good();
            double *field[] = {&s.plain.accepted_any, &s.plain.agreement, &s.plain.class_min,
                               &s.diversity,          &s.colour,          &s.strict.accepted};
            *field[i] = v;
            assert_int_equal(failing(&s, &fit, &line), bad);
            assert_true(!bad || line == i);
        }
    s = good();
    s.plain.class_max = 0.21;
    assert_int_equal(failing(&s, &fit, &line), 1);
    assert_int_equal(line, LW_BAR_CLASSES);

    /* without a fit judge acceptance does not count, without an accurate one only pictures do */
    s = good();
    s.strict.accepted = 0.0;
    assert_int_equal(failing(&s, &unfit, &line), 0);
    s.plain.agreement = 0.0;
    assert_int_equal(failing(&s, &unfit, &line), 1);
    assert_int_equal(failing(&s, &none, &line), 0);
    s.diversity = 0.1;
    assert_int_equal(failing(&s, &none, &line), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_and_copies),
        cmocka_unit_test(test_sorted_classes),
        cmocka_unit_test(test_controls),
        cmocka_unit_test(test_two_opinions),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_examination),
        cmocka_unit_test(test_bar),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
