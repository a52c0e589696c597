/* SPDX-License-Identifier: Apache-2.0 */
/* What the loss of a drift step is of: every option changes what it says and nothing else, in a step at once and in parts;
 * keys that the encoder lacks are refused. */
#include "jobs/train_fixture.h"

#include <math.h>
#include <string.h>

#define STEP TINY_DRIFT " --steps 2 --seed 3 --log-every 1"

static int keys_of(const char *run)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    char path[128];
    size_t size;
    int n = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    assert_true(lw_file_read(path, (size_t)1 << 24, &text, &size) >= 0);
    for (const char *at = text; (at = strstr(at, "\"scale/")) && at < strchr(text, '\n'); at++)
        n++;
    return n;
}

static void run(const char *name, const char *options)
{
    lab_expect(0, STEP " --output-dir %s %s", name, options);
}

/* The encoder's maps are s0, s1, s2; of pictures of 16 all keys have room. */
static void test_parts(void **state)
{
    static const struct {
        const char *options;
        int keys;
    } parts[] = {{"", 16},
                 {"--disable-per-location", 14},
                 {"--disable-global-stats", 12},
                 {"--disable-patch2-stats", 12},
                 {"--no-include-patch4-stats", 12},
                 {"--include-patch4-stats", 16},
                 {"--no-include-input-x2-mean", 15},
                 {"--feature-selected-stages 2", 9},
                 {"--feature-selected-stages s1", 9},
                 {"--feature-selected-stages 1,s2 --disable-patch2-stats", 12}};
    (void)state;
    lab_expect(0, TINY_ENCODER " --steps 2 --output-dir enc");
    for (size_t i = 0; i < LW_COUNT(parts); i++) {
        char name[16], options[160];
        snprintf(name, sizeof name, "p%zu", i);
        snprintf(options, sizeof options, "--encoder enc --feature-keys maps %s", parts[i].options);
        run(name, options);
        if (keys_of(name) != parts[i].keys)
            fail_msg("%s: %d keys instead of %d", parts[i].options, keys_of(name), parts[i].keys);
    }
    lab_same_checkpoint("p0", "p5"); /* the default says the same */
}

/* Loss of the first step, of whole steps and of steps in parts. */
static double loss(const char *name, const char *options)
{
    char parts[32], more[200];
    run(name, options);
    snprintf(parts, sizeof parts, "%s_parts", name);
    snprintf(more, sizeof more, "--class-chunk 1 %s", options);
    run(parts, more);
    double whole = lab_metric(name, "loss", -1), chunked = lab_metric(parts, "loss", -1);
    if (fabs(chunked / whole - 1.0) > 1e-5)
        fail_msg("%s: %.9g whole, %.9g in parts", options, whole, chunked);
    double gw = lab_metric(name, "grad_norm", -1), gc = lab_metric(parts, "grad_norm", -1);
    if (fabs(gc / gw - 1.0) > 1e-3)
        fail_msg("%s: gradient %.9g whole, %.9g in parts", options, gw, gc);
    return whole;
}

static double gradient(const char *name)
{
    return lab_metric(name, "grad_norm", -1);
}

static void near(double have, double want, double tol)
{
    if (!(fabs(have / want - 1.0) <= tol))
        fail_msg("%.9g, not %.9g", have, want);
}

static void test_sums(void **state)
{
    (void)state;
    double sum = loss("sum", "--encoder enc --feature-keys s1.mean,s2.loc");
    double mean = loss("mean", "--encoder enc --feature-keys s1.mean,s2.loc "
                               "--feature-loss-term-reduction mean");
    near(mean, sum / 2, 1e-6);
    near(gradient("mean"), gradient("sum") / 2, 1e-4);
    /* three temperatures, each of unit size: 3 a key; the gradient is that of the sum */
    near(loss("each", "--encoder enc --feature-keys s1.mean,s2.loc "
                      "--feature-temperature-aggregation per_temperature_mse"),
         6.0, 1e-5);
    near(gradient("each"), gradient("sum"), 1e-6);
    lab_same_checkpoint("each", "sum");
    /* the raw loss is that of the key pix, beside the others */
    double pix = loss("pix", "--encoder enc --feature-keys pix");
    near(
        loss("raw", "--encoder enc --feature-keys s1.mean,s2.loc --feature-include-raw-drift-loss"),
        sum + pix, 1e-6);
    near(loss("raw3", "--encoder enc --feature-keys s1.mean,s2.loc "
                      "--feature-include-raw-drift-loss --feature-raw-drift-loss-weight 3"),
         sum + 3 * pix, 1e-6);
    near(loss("pix2", "--encoder enc --feature-keys pix --feature-include-raw-drift-loss "
                      "--feature-raw-drift-loss-weight 2"),
         2 * pix, 1e-6); /* no second time */
    near(gradient("pix2"), 2 * gradient("pix"), 1e-4);
    /* --disable-normalize-over-x is another field */
    assert_true(fabs(loss("rows", "--encoder enc --feature-keys s1.mean,s2.loc "
                                  "--disable-normalize-over-x") /
                         sum -
                     1.0) > 1e-3);
    run("said", "--encoder enc --feature-keys s1.mean,s2.loc --use-feature-loss");
    lab_same_checkpoint("said", "sum");
}

/* The loss of two encoders is the sum of theirs, what keys of the picture say counts once, and is logged under the
 * encoder's number; the bits do not depend on threads, nor on an interruption, nor on what is kept. */
static void test_encoders(void **state)
{
    (void)state;
    lab_expect(0, TINY_ENCODER " --steps 2 --seed 9 --output-dir other");
    double a = loss("a", "--encoder enc --feature-keys s1.mean,s2.loc"),
           b = loss("b", "--encoder other --feature-keys s1.mean,s2.loc"),
           pix = loss("alone", "--encoder enc --feature-keys pix");
    assert_true(fabs(a / b - 1.0) > 1e-4);
    near(loss("ab", "--encoder enc,other --feature-keys s1.mean,s2.loc"), a + b, 1e-6);
    assert_int_equal(keys_of("ab"), 4);
    near(lab_metric("ab", "scale/1.s2.loc", -1), lab_metric("a", "scale/s2.loc", -1), 1e-6);
    near(lab_metric("ab", "scale/2.s2.loc", -1), lab_metric("b", "scale/s2.loc", -1), 1e-6);
    near(loss("ab_pix", "--encoder enc,other --feature-keys pix,s1.mean,s2.loc"), a + b + pix,
         1e-6);
    loss("twice", "--encoder enc,enc --feature-keys s1.mean,s2.loc");
    near(lab_metric("twice", "grad_norm", -1), 2 * lab_metric("a", "grad_norm", -1), 1e-4);
    run("one", "--encoder enc,other --feature-keys s1.mean,s2.loc --threads 1");
    lab_same_checkpoint("one", "ab");
    near(loss("parts", "--encoder enc,other --feature-keys s1.mean,2.s2.loc,1.pix"),
         loss("a1", "--encoder enc --feature-keys s1.mean,pix") + b, 1e-6);
    assert_int_equal(keys_of("parts"), 4);
    run("made", "--encoder enc,other --feature-keys s1.mean,s2.loc --feature-cache 0");
    lab_same_checkpoint("made", "ab");
    lab_expect(0, TINY_DRIFT " --seed 3 --log-every 1 --steps 1 --output-dir half "
                             "--encoder enc,other --feature-keys s1.mean,s2.loc");
    lab_expect(0, TINY_DRIFT " --seed 3 --log-every 1 --steps 2 --output-dir half --resume "
                             "--encoder enc,other --feature-keys s1.mean,s2.loc");
    lab_same_checkpoint("half", "ab");
}

static void test_refusals(void **state)
{
    static const struct {
        const char *options, *says;
    } bad[] = {{"--use-feature-loss", "--encoder"},
               {"--encoder enc --feature-selected-stages 3", "no key of '3' here; the keys are of "
                                                             "s1, s2"},
               {"--encoder enc --feature-selected-stages s2,layer4", "no key of 'layer4'"},
               {"--encoder enc --feature-keys s1.mean --disable-global-stats", "no feature keys"},
               {"--encoder enc --feature-keys layer3_blk6_mean_4", "unknown feature key"},
               {"--encoder enc,", "one of them has no name"},
               {"--encoder enc,enc,enc,enc,enc", "more than 4"},
               {"--encoder enc,other --feature-keys 1.pix,3.s1.mean", "there are 2 encoders"},
               {"--encoder enc,other --feature-keys 1.pix", "none is for other"},
               {"--encoder enc,other --feature-keys pix", "other adds no feature key"}};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        lab_expect(2, STEP " --output-dir no %s", bad[i].options);
        if (!strstr(lab_err, bad[i].says) || !lab_one_line())
            fail_msg("%s: '%s'", bad[i].options, lab_err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_encoders),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("drift_loss", tests, lab_enter, lab_leave);
}
