/* SPDX-License-Identifier: Apache-2.0 */
/* Features of real pictures on disk: the bits that are computed, found again by later runs. */
#include "jobs/train_fixture.h"

#include "cpu_device.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN TINY_DRIFT " --encoder features --no-flip --steps 2"

static int count_files(void)
{
    char **names = NULL;
    size_t n = 0;
    int files = 0;
    assert_int_equal(lw_list_dir("cache", &names, &n), 0);
    for (size_t i = 0; i < n; i++)
        files += lw_str_starts(names[i], "features-") && lw_str_ends(names[i], ".data");
    lw_list_free(&names, n);
    return files;
}

/* Of the prediction in lab_out. */
static double features_bytes(void)
{
    const char *at = strstr(lab_out, "\"bytes_features\":");
    assert_non_null(at);
    return atof(at + strlen("\"bytes_features\":"));
}

static int enter(void **state)
{
    int rc = lab_enter(state);
    lab_env = "LW_CACHE=cache";
    lab_expect(0, TINY_ENCODER " --steps 2 --output-dir features");
    return rc;
}

/* Whether features are encoded in every step, kept in memory, written to disk or found there. */
static void test_found_again(void **state)
{
    (void)state;
    lab_expect(0, RUN " --dry-run --output-dir dry");
    assert_non_null(strstr(lab_out, "pictures, kept on disk as features-"));
    assert_non_null(strstr(lab_out, ".data, to be made ("));
    assert_non_null(strstr(lab_out, " free)"));
    assert_int_equal(count_files(), 0);
    lab_expect(0, RUN " --feature-cache 1 --output-dir each_step");
    lab_expect(0, RUN " --feature-disk 0 --output-dir memory");
    assert_non_null(strstr(lab_err, "pictures, kept in memory"));
    assert_int_equal(count_files(), 0);
    lab_expect(0, RUN " --output-dir first");
    assert_non_null(strstr(lab_err, "to be made"));
    assert_int_equal(count_files(), 1);
    lab_expect(0, RUN " --output-dir second --threads 1");
    assert_non_null(strstr(lab_err, "made before"));
    assert_int_equal(count_files(), 1);
    lab_same_checkpoint("each_step", "memory");
    lab_same_checkpoint("each_step", "first");
    lab_same_checkpoint("each_step", "second");
}

/* Other numbers are never taken for these. */
static void test_told_apart(void **state)
{
    (void)state;
    static const char *const other[] = {"--feature-keys s1.mean,pix",
                                        "--feature-keys pix,s1.mean",
                                        "--feature-type bf16",
                                        "--limit 255",
                                        "--encoder more",
                                        "--conv direct",
                                        "--precision bf16"};
    int files = count_files();
    lab_expect(0, TINY_ENCODER " --steps 3 --output-dir more");
    for (size_t i = 0; i < LW_COUNT(other); i++) {
        lab_expect(0, RUN " --dry-run --output-dir dry %s", other[i]);
        assert_non_null(strstr(lab_out, "to be made"));
    }
    lab_expect(0, RUN " --dry-run --output-dir dry --groups 1 --seed 9"); /* not of the features */
    assert_non_null(strstr(lab_out, "made before"));
    assert_int_equal(count_files(), files);
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(count_files(), 1);
    lab_expect(0, RUN " --feature-disk 1 --output-dir full");
    assert_non_null(strstr(lab_err, "pictures, kept in memory"));
    lab_expect(0, RUN " --feature-keys s1.loc,pix --feature-disk 3 --output-dir other");
    assert_int_equal(count_files(), 1); /* the first made room */
    lab_expect(0, RUN " --dry-run --output-dir dry");
    assert_non_null(strstr(lab_out, "to be made"));
    lab_same_checkpoint("full", "first");
}

/* An encoder whose preparation has another size than the data: in training and in measures. */
static void test_resized(void **state)
{
    static const char said[] = "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": "
                               "{\"height\": 24, \"width\": 24}, "
                               "\"resample\": 2}";
    static const char file[] = "large/checkpoints/step_0000002/ema/preprocessor_config.json";
    (void)state;
    lab_expect(0, TINY_ENCODER " --steps 2 --output-dir large");
    lab_expect(0, TINY_DRIFT " --encoder large --feature-disk 0 --dry-run --json --output-dir dry");
    double bytes = features_bytes();
    assert_int_equal(lw_file_write(file, said, sizeof said - 1), 0);
    lab_expect(0, TINY_DRIFT " --encoder large --feature-keys s1.loc --dry-run --output-dir dry");
    assert_non_null(strstr(lab_err, "for the encoder pictures are resized to 24x24 (bilinear)"));
    lab_expect(0, TINY_DRIFT " --encoder large --feature-disk 0 --dry-run --json --output-dir dry");
    assert_true(features_bytes() > 1.4 * bytes);
    lab_expect(0,
               TINY_DRIFT " --encoder large --encoder-size 20 --encoder-resize bicubic-antialias "
                          "--dry-run --output-dir dry");
    assert_non_null(strstr(lab_err, "resized to 20x20 (bicubic-antialias)"));
    lab_expect(0, TINY_DRIFT " --encoder large --eval-encoder large --steps 2 --eval-every 2 "
                             "--eval-samples 64 --output-dir resized");
    assert_true(lab_metric("resized", "eval_fd", 0) == lab_metric("resized", "fd", 0));
    lab_expect(0, TINY_DRIFT " --encoder large --eval-encoder large --steps 2 --eval-every 2 "
                             "--eval-samples 64 --feature-cache 0 --output-dir again");
    lab_same_checkpoint("resized", "again");
}

static double number_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* What a step costs, by part: each on its own line, together the whole; timed, nothing is written. */
static void test_parts(void **state)
{
    static const char *const names[] = {"generator", "encoder", "resize", "field s1.loc",
                                        "field pix"};
    (void)state;
    lab_expect(0, TINY_DRIFT " --encoder large --feature-keys s1.loc,pix --profile 2 --json "
                             "--output-dir profiled");
    assert_false(lw_path_exists("profiled"));
    json_t *all = json_loads(lab_out, 0, NULL), *part;
    const json_t *parts = json_object_get(all, "parts");
    double flops = 0.0;
    size_t i;
    json_array_foreach(parts, i, part)
    {
        flops += number_of(part, "forward_flops") + number_of(part, "backward_flops");
        assert_true(number_of(part, "forward_ms") + number_of(part, "backward_ms") > 0.0);
    }
    assert_true(fabs(flops - number_of(all, "flops_per_step")) <= 1e-9 * flops);
    for (size_t k = 0; k < LW_COUNT(names); k++) {
        bool found = false;
        json_array_foreach(parts, i, part)
        {
            const char *name = json_string_value(json_object_get(part, "name"));
            double back = number_of(part, "backward_flops");
            if (!lw_str_eq(name, names[k]))
                continue;
            found = true;
            /* a field gives its gradient with its value; resizing is counted in bytes */
            assert_true(k < 2 ? back > 0.0 : back == 0.0);
        }
        if (!found)
            fail_msg("no part %s in %s", names[k], lab_out);
    }
    json_decref(all);
    lab_expect(0, TINY_DRIFT " --encoder large --dry-run --output-dir profiled");
    assert_non_null(strstr(lab_out, "part of a step"));
    assert_non_null(strstr(lab_out, "\nfield s2.loc "));
    assert_non_null(strstr(lab_out, " of frozen networks"));
}

/* Listed and cleared with the decoded pictures. */
static void test_listed_and_cleared(void **state)
{
    (void)state;
    lab_expect(0, "data cache list");
    assert_non_null(strstr(lab_out, "features of synth:16 train pictures of 16x16 by leeway of "));
    assert_non_null(strstr(lab_out, ": s1.loc pix, of 256 pictures"));
    lab_expect(0, "data cache list --json");
    assert_non_null(strstr(lab_out, "features-"));
    assert_int_equal(lw_file_write("cache/features-00000000000000aa.data", "precious", 8), 0);
    lab_expect(0, "data cache clear");
    assert_int_equal(count_files(), 1); /* named so, and no such file */
    lab_expect(0, RUN " --dry-run --output-dir dry");
    assert_non_null(strstr(lab_out, "to be made"));
}

/* Rows behind the last are the mirror images, kept or encoded when asked for. */
static void test_mirrored(void **state)
{
    enum { N = 70, S = 8, ROW = S * S * 3 };
    static uint8_t pixels[N * ROW];
    static int32_t labels[N];
    static float got[2][5][ROW];
    const lw_dataset d = {.n = N,
                          .h = S,
                          .w = S,
                          .channels = 3,
                          .classes = 1,
                          .labels = labels,
                          .pixels = pixels,
                          .spec = "none",
                          .content = 5};
    const int64_t rows[] = {3, N + 3, 2 * N - 1, 0, N};
    lw_device *dev = NULL;
    lw_network *none = NULL;
    lw_feature_set keys;
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 31 + i / 7);
    assert_int_equal(cpu_device(2, lw_isa_best(), &dev), 0);
    assert_int_equal(lw_encoder_open("none", &none), 0);
    assert_int_equal(lw_features_parse("pix,pix.mean", none, S, 3, &keys), 0);
    for (int kept = 0; kept < 2; kept++) {
        lw_real_features_opts o = {.cache_bytes = kept << 20, .flip = true, .type = LW_F32};
        lw_real_features *r = NULL;
        assert_int_equal(lw_real_features_new(dev, &d, none, &keys, &o, &r), 0);
        lw_real_features_cost cost = lw_real_features_get_cost(r, 5);
        assert_true(cost.kept == kept && cost.bytes == 2 * N * (ROW + 3) * sizeof(float));
        assert_true(kept ? cost.held == cost.bytes : cost.held > 0);
        assert_int_equal(lw_real_features_fill(r, NULL), 0);
        assert_int_equal(lw_real_features_fetch(r, rows, 5, (void *[]){got[kept], NULL}), 0);
        lw_real_features_free(&r);
    }
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        float want[ROW];
        lw_data_get(&d, rows[i] % N, rows[i] >= N, want);
        assert_memory_equal(got[0][i], want, sizeof want);
        assert_memory_equal(got[1][i], want, sizeof want);
    }
    lw_network_close(&none);
    lw_backend_close(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_again), cmocka_unit_test(test_told_apart),
        cmocka_unit_test(test_limits),      cmocka_unit_test(test_resized),
        cmocka_unit_test(test_parts),       cmocka_unit_test(test_listed_and_cleared),
        cmocka_unit_test(test_mirrored),
    };
    return cmocka_run_group_tests(tests, enter, lab_leave);
}
