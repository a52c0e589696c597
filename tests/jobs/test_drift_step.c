/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A drift step in parts: chunks of classes, the queue of real rows, strengths of guidance. Whatever the chunk, and
 * whether stopped and resumed, the bits are the same.
 */
#include "jobs/train_fixture.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "data/data.h"
#include "jobs/drift/drift_alpha.h"

#define STEP                                                                                      \
    "train drift --groups 4 --negatives-per-group 4 --positives-per-group 6 "                     \
    "--unconditional-per-group 2 --noise-shape 4x4 --feature-keys pix,pix.mean,pix.p4 --dropout " \
    "0.2" TINY_NET

/* ---- chunks ---------------------------------------------------------------------------------- */

/* 1, 2 and all groups at a time, and what --memory-limit chooses: the same bits; and with one leaf those
 * of a step that is not cut. Leaves by themselves would have other scales. */
static void test_chunks(void **state)
{
    (void)state;
    lab_expect(0, STEP " --class-chunk 1 --steps 2 --log-every 1 --threads 1 --output-dir chunk_1");
    for (int chunk = 2; chunk <= 8; chunk *= 2) {
        char run[32], how[64];
        snprintf(run, sizeof run, "chunk_%d", chunk);
        snprintf(how, sizeof how, chunk > 4 ? "--memory-limit 1" : "--class-chunk %d", chunk);
        lab_expect(0, STEP " %s --steps 2 --log-every 1 --output-dir %s", how, run);
        lab_same_checkpoint("chunk_1", run);
        lab_same_logs("chunk_1", run);
    }
    lab_expect(0, STEP " --steps 2 --log-every 1 --output-dir at_once");
    lab_expect(0, STEP
               " --class-chunk 2 --leaf-size 16 --steps 2 --log-every 1 --output-dir one_leaf");
    lab_same_checkpoint("at_once", "one_leaf");
    lab_same_logs("at_once", "one_leaf");
    lab_expect(0, STEP " --leaf-size 4 --steps 1 --log-every 1 --output-dir own_scale");
    static const char *const columns[] = {"loss", "S", "raw_drift_0.2", "grad_norm",
                                          "scale/pix.p4"};
    for (size_t i = 0; i < LW_COUNT(columns); i++) {
        double want = lab_metric("at_once", columns[i], -1),
               own = lab_metric("own_scale", columns[i], -1);
        if (!(fabs(own - want) > 1e-4 * want)) /* negative control */
            fail_msg("%s of a leaf's own scale is no other: %.9g", columns[i], own);
    }
}

/* A scale of each slot: another step than that of the key's, with the same bits in parts. */
static void test_scales_of_slots(void **state)
{
    (void)state;
    static const char own[] = STEP " --disable-shared-location-normalization --leaf-size 16 "
                                   "--steps 2 --log-every 1";
    lab_expect(0, "%s --threads 1 --output-dir slots_whole", own);
    lab_expect(0, "%s --threads 3 --class-chunk 1 --output-dir slots_cut", own);
    lab_same_checkpoint("slots_whole", "slots_cut");
    lab_same_logs("slots_whole", "slots_cut");
    lab_expect(0, STEP " --steps 1 --log-every 1 --output-dir slots_shared");
    double shared = lab_metric("slots_shared", "raw_drift_0.2", -1),
           apart = lab_metric("slots_whole", "raw_drift_0.2", -1);
    if (!(fabs(shared - apart) > 1e-4 * shared))
        fail_msg("scales of slots leave no trace: %.9g", apart);
}

/* Temperatures that come down: 4, 2, 1, 1 times their own. The first step is that of four times the
 * temperatures, and the bits are the same in parts and resumed. */
static void test_anneal(void **state)
{
    (void)state;
    static const char fall[] = STEP " --temperature-anneal 4 --leaf-size 16 --log-every 1";
    lab_expect(0, "%s --steps 4 --save-every 1 --threads 1 --output-dir fall", fall);
    lab_expect(0, "%s --steps 4 --threads 3 --class-chunk 1 --output-dir fall_cut", fall);
    lab_same_checkpoint("fall", "fall_cut");
    lab_same_logs("fall", "fall_cut");
    lab_expect(0,
               "%s --steps 4 --resume-from fall/checkpoints/step_0000001 --output-dir fall_parts",
               fall);
    lab_same_checkpoint("fall", "fall_parts");
    lab_expect(0, STEP " --feature-temperatures 0.08,0.2,0.8 --leaf-size 16 --log-every 1 "
                       "--steps 1 --output-dir high");
    static const double scale[] = {4, 2, 1, 1};
    for (int i = 0; i < 4; i++)
        assert_true(lab_metric("fall", "temperature_scale", 3 - i) == scale[i]);
    assert_true(lab_metric("fall", "loss", -1) == lab_metric("high", "loss", -1));
    assert_true(lab_metric("fall", "raw_drift_0.2", -1) == lab_metric("high", "raw_drift_0.8", -1));
    lab_expect(0, "%s --steps 2 --output-dir fall_short", fall);
    lab_expect(2, "%s --steps 4 --resume --output-dir fall_short", fall);
    assert_non_null(strstr(lab_err, "--reschedule"));
    lab_expect(0, "%s --class-chunk 1 --steps 4 --dry-run --output-dir no", fall);
}

/* The last steps follow a Frechet distance, which falls; in parts and resumed the bits are the same. */
static void test_finish(void **state)
{
    (void)state;
    static const char half[] = STEP " --finish-frechet 0.5 --leaf-size 4 --log-every 1";
    lab_expect(0, "%s --steps 4 --save-every 1 --threads 1 --output-dir end", half);
    lab_expect(0, "%s --steps 4 --class-chunk 1 --feature-cache 0 --threads 3 --output-dir end_cut",
               half);
    lab_same_checkpoint("end", "end_cut");
    lab_same_logs("end", "end_cut");
    lab_expect(0, "%s --steps 4 --resume-from end/checkpoints/step_0000003 --output-dir end_parts",
               half);
    lab_same_checkpoint("end", "end_parts");
    assert_true(lab_metric("end", "S", -1) > 0);
    assert_true(lab_metric("end", "finish_frechet", 0) == lab_metric("end", "loss", 0));
    lab_expect(0,
               STEP " --negatives-per-group 32 --feature-keys pix.mean,pix.std --feature-type bf16 "
                    "--finish-frechet 1 --steps 30 --log-every 1 --output-dir falls");
    double before = lab_metric_mean("falls", "loss", 0, 3),
           after = lab_metric_mean("falls", "loss", 27, 30);
    if (!(after < 0.7 * before))
        fail_msg("the Frechet distance of 32 pictures went from %g to %g", before, after);
    lab_expect(2, STEP " --feature-keys pix.p4 --finish-frechet 0.1 --steps 2 --output-dir no");
    assert_non_null(strstr(lab_err, "none of the feature keys is one vector"));
    lab_expect(2, STEP " --use-queue --finish-frechet 0.1 --steps 2 --output-dir no");
    assert_non_null(strstr(lab_err, "--use-queue"));
    lab_expect(0, "%s --steps 4 --dry-run --output-dir no", half);
}

static void test_leaves_of_a_chunk(void **state)
{
    (void)state;
    lab_expect(0, STEP " --leaf-size 8 --class-chunk 2 --steps 2 --log-every 1 --output-dir two_2");
    lab_expect(0, STEP " --leaf-size 8 --class-chunk 4 --steps 2 --log-every 1 --output-dir two_4");
    lab_same_checkpoint("two_2", "two_4");
    lab_expect(0,
               STEP " --leaf-size 2 --class-chunk 1 --steps 2 --log-every 1 --output-dir half_1");
    lab_expect(0,
               STEP " --leaf-size 2 --class-chunk 4 --steps 2 --log-every 1 --output-dir half_4");
    lab_same_checkpoint("half_1", "half_4");
}

/* Real features that no cache has are made once for all passes; bf16 ones likewise. */
static void test_features_made_in_the_step(void **state)
{
    (void)state;
    lab_expect(0, STEP " --class-chunk 1 --feature-cache 0 --steps 2 --output-dir made");
    lab_expect(0, STEP " --class-chunk 1 --steps 2 --output-dir found");
    lab_same_checkpoint("found", "made");
    lab_expect(0, STEP " --class-chunk 2 --feature-cache 0 --feature-type bf16 --steps 2 "
                       "--output-dir made_low");
    lab_expect(0, STEP " --class-chunk 4 --feature-type bf16 --steps 2 --output-dir found_low");
    lab_same_checkpoint("found_low", "made_low");
}

#define LARGE                                                                              \
    "train drift --class-conditional no --negatives-per-group 64 --positives-per-group 8 " \
    "--noise-shape 4x4 --feature-keys pix,pix.mean,pix.p4 --steps 2 --log-every 1" TINY_NET

/* A group that is larger than a leaf, with features in memory and in a file. */
static void test_large_group(void **state)
{
    (void)state;
    lab_expect(0, LARGE " --output-dir large");
    lab_expect(0, LARGE " --class-chunk 1 --leaf-size 64 --output-dir large_cut");
    lab_same_checkpoint("large", "large_cut");
    lab_same_logs("large", "large_cut");
    lab_expect(0, LARGE " --class-chunk 1 --dry-run --json --output-dir no");
    LW_CLEANUP(lw_json_drop) json_t *said = json_loads(lab_out, 0, NULL);
    double bytes = 0, features = 64 * 4 * (768 + 3 + 768);
    static const char *const parts[] = {"bytes_parameters", "bytes_activations", "bytes_packed",
                                        "bytes_features", "bytes_frozen"};
    for (size_t i = 0; i < LW_COUNT(parts); i++)
        bytes += json_number_value(json_object_get(said, parts[i]));
    lab_expect(0, LARGE " --class-chunk 1 --output-dir large_32");
    lab_expect(0, LARGE " --memory-limit %.9g --output-dir large_file",
               (bytes - features / 2) / 1073741824.0);
    assert_non_null(strstr(lab_err, "of it features in a file"));
    lab_same_checkpoint("large_32", "large_file");
}

static void test_limits(void **state)
{
    (void)state;
    lab_expect(2, STEP " --class-chunk 3 --steps 1 --output-dir no");
    assert_non_null(strstr(lab_err, "--class-chunk 3: does not divide the 4 groups"));
    lab_expect(2, STEP " --memory-limit 0.0001 --steps 1 --output-dir no");
    assert_non_null(strstr(lab_err, "--groups, --negatives-per-group, --positives-per-group, "
                                    "the number of --feature-keys, that of "
                                    "--feature-temperatures"));
    lab_expect(0, STEP " --class-chunk 1 --steps 1 --dry-run --output-dir no");
    assert_non_null(strstr(lab_err, "16 pictures in leaves of 4, the field of 1 of 4 groups"));
    assert_non_null(strstr(lab_out, "phase of a step"));
    assert_non_null(strstr(lab_out, "1.037e+04 affinities")); /* 4 x 4 (6 + 4 + 2) x 18 x 3 */
    assert_false(lw_path_exists("no"));
}

/* More than any memory, cut without being asked; and where leaves have scales of their own, refused. */
static void test_cut_by_itself(void **state)
{
    (void)state;
    if (lw_memory_total() > 45e9)
        skip();
    lab_expect(0, STEP " --groups 2048 --negatives-per-group 64 --feature-keys pix.mean --steps 1 "
                       "--dry-run --output-dir no");
    assert_non_null(strstr(lab_err, "it is made in parts"));
    assert_non_null(strstr(lab_err, "131072 pictures in leaves of 32"));
    lab_expect(2, STEP " --groups 2048 --negatives-per-group 64 --grad-accum-steps 2 "
                       "--feature-keys pix.mean --steps 1 --dry-run --output-dir no");
    assert_non_null(strstr(lab_err, "--class-chunk 1"));
}

/* ---- guidance and the queue in a training ---------------------------------------------------- */

#define QUEUED                                                                              \
    STEP                                                                                    \
        " --use-queue --queue-per-class-capacity 8 --queue-global-capacity 20 "             \
        "--queue-push-batch 3 --queue-prime-samples 5 --alpha-dist mixture_point_powerlaw " \
        "--class-rule frequency --class-chunk 2 --flip --log-every 1 --save-every 2 --output-dir "

static void test_resume(void **state)
{
    (void)state;
    lab_expect(0, QUEUED "queue_whole --steps 4");
    lab_expect(0, QUEUED "queue_parts --steps 2");
    lab_expect(0, QUEUED "queue_parts --steps 4 --resume --threads 3");
    lab_same_checkpoint("queue_whole", "queue_parts");
    lab_same_logs("queue_whole", "queue_parts");
    assert_true(lab_metric("queue_whole", "missing_labels", 0) > 0);
    assert_true(lab_metric("queue_whole", "missing_labels", 0) ==
                lab_metric("queue_whole", "backfilled_samples", 0));
    assert_true(lab_metric("queue_whole", "alpha_max", 0) <= 4.0);
    lab_expect(0, "sample queue_whole --n 4 --alpha 1 --output one.npy");
    lab_expect(0, "sample queue_whole --n 4 --output none.npy");
    lab_expect(0, "sample queue_whole --n 4 --alpha 3 --output three.npy");
    char *text[3];
    size_t n[3];
    static const char *const files[] = {"one.npy", "none.npy", "three.npy"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(lw_file_read(files[i], 0, &text[i], &n[i]), 0);
    assert_memory_equal(text[0], text[1], n[0]);
    assert_memory_not_equal(text[0], text[2], n[0]);
    for (int i = 0; i < 3; i++)
        lw_free(&text[i]);
    lab_expect(2, "sample queue_whole --n 4 --alpha 5 --output no.npy");
    lab_expect(2, "sample chunk_1 --n 4 --alpha 2 --output no.npy");
}

/* Killed at any moment, as often as it takes: what is there at the end has the bits of one run. */
static void test_killed(void **state)
{
    (void)state;
    static const char args[] = QUEUED "killed --steps 5 --save-every 1 --resume";
    int rc = 1000, killed = 0;
    const double began = lw_now();
    lab_expect(0, QUEUED "alive --steps 5 --save-every 1");
    const double whole = lw_now() - began;
    for (int i = 0; i < 40 && rc != 0; i++) {
        const double most = killed > 0 ? 0.8 : 0.3; /* the first must not be too late */
        rc = lab_run_until(whole * (0.1 + most * lab_uniform()) * (1 + i / 4), SIGKILL, args);
        killed += rc == 1000 + SIGKILL;
        if (rc != 0 && rc != 1000 + SIGKILL)
            fail_msg("exit code %d: %s", rc, lab_err);
    }
    assert_int_equal(rc, 0);
    assert_true(killed > 0);
    lab_same_checkpoint("alive", "killed");
    lab_same_logs("alive", "killed");
}

/* Fields that published trainers have, in the summary and in each row of its logs; those that mean something here are not
 * null. */
static const char summary_fields[] =
    "device seed config_hash resolved_config_hash resume_step env_fingerprint model_config "
    "train_config compile logs alpha_stats real_batch_provider queue_warmup_report "
    "queue_underflow_totals queue_report_level real_provider_sanity_report perf "
    "generated_images_per_sec max_peak_rss_mb ";
static const char step_fields[] =
    "loss mean_drift_norm groups negatives_per_group alpha_mean alpha_min alpha_max grad_norm "
    "mean_unconditional_weight mean_unconditional_negative_fraction loss_term_count "
    "feature_keys vector_count mean_feature_scale mean_drift_scale temp_0.02_drift_norm "
    "temp_0.2_drift_scale feature_loss lr step_time_s generated_images_per_sec "
    "queue_underflow_backfilled queue_underflow_missing_labels queue_global_count "
    "queue_covered_classes ";

/* Each word of names is a field that is there. */
static void has_fields(const json_t *j, const char *names)
{
    char name[64];
    for (int n; sscanf(names, "%63s%n", name, &n) == 1; names += n)
        if (!json_object_get(j, name) || json_is_null(json_object_get(j, name)))
            fail_msg("no %s", name);
}

static void has_queue(const json_t *j, const json_t *row)
{
    /* 4 groups x (5 primed rows at most) hold what was pushed */
    const json_t *warm = json_object_get(j, "queue_warmup_report"),
                 *totals = json_object_get(j, "queue_underflow_totals");
    assert_int_equal(json_integer_value(json_object_get(warm, "samples_pushed")), 5);
    double sum = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(warm, "counts")); i++)
        sum += json_number_value(json_array_get(json_object_get(warm, "counts"), i));
    assert_true(sum == 5);
    assert_true(json_integer_value(json_object_get(totals, "missing_labels")) ==
                (json_int_t)lab_metric("summed", "missing_labels", 0));
    double weight = json_number_value(json_object_get(row, "mean_unconditional_weight")),
           mean = json_number_value(json_object_get(row, "alpha_mean"));
    assert_true(fabs(weight - (mean - 1.0) * 3.0 / 2.0) < 1e-6); /* (alpha - 1)(N - 1) / U */
}

static void test_summary(void **state)
{
    static const char *const files[] = {"RUN.md", "env_snapshot.json", "env_fingerprint.json",
                                        "codebase_fingerprint.json"};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    (void)state;
    lab_expect(0, QUEUED "summed --steps 3 --queue-report-level full");
    assert_int_equal(lw_json_load("summed/pixel_summary.json", &j), 0);
    const json_t *logs = json_object_get(j, "logs"), *row = json_array_get(logs, 2);
    has_fields(j, summary_fields);
    has_fields(row, step_fields);
    assert_int_equal(json_array_size(logs), 3);
    assert_true(json_is_null(json_object_get(j, "loss_scale")));
    assert_true(json_is_null(json_object_get(json_object_get(j, "perf"), "max_peak_cuda_mem_mb")));
    has_queue(j, row);
    for (size_t i = 0; i < LW_COUNT(files); i++) {
        char path[64];
        snprintf(path, sizeof path, "summed/%s", files[i]);
        assert_true(lw_path_exists(path));
    }
}

/* By phase: generator, the field of each key, the optimiser; in parts, too. */
static void test_profile(void **state)
{
    (void)state;
    static const char *const parts[] = {"generator", "field pix.p4", "optimiser"};
    for (int cut = 0; cut < 2; cut++) {
        lab_expect(0, STEP " %s --profile 1 --output-dir no", cut ? "--class-chunk 1" : "");
        for (size_t i = 0; i < LW_COUNT(parts); i++)
            if (!strstr(lab_out, parts[i]))
                fail_msg("no %s in: %s", parts[i], lab_out);
    }
}

/* A transformer is told its strength, too; strengths of pictures may differ. */
static void test_transformer_told(void **state)
{
    (void)state;
    lab_expect(0, "train drift --generator dit --hidden-dim 32 --depth 1 --num-heads 2 "
                  "--register-tokens 2 --style-token-count 2 --style-vocab-size 4 --groups 2 "
                  "--negatives-per-group 4 --positives-per-group 4 --unconditional-per-group 2 "
                  "--alpha-dist uniform --feature-keys pix --data synth:16 --limit 256 --steps 3 "
                  "--learning-rate 1e-2 --class-chunk 1 --output-dir told");
    lab_expect(0, "sample told --weights model --n 4 --alpha 3 --output told_3.npy");
    lab_expect(0, "sample told --weights model --n 4 --output told_1.npy");
    lab_expect(0, "sample told --weights model --n 4 --batch-size 3 --alpha-schedule linear "
                  "--alpha-end 3 --output told_line.npy");
    lab_expect(0, "sample told --weights model --n 4 --alpha-schedule list --alpha-values 1,3 "
                  "--output told_list.npy");
    static const char *const files[] = {"told_1.npy", "told_3.npy", "told_line.npy",
                                        "told_list.npy"};
    char *text[4];
    size_t n[4], row = 16 * 16 * 3 * sizeof(float);
    for (int i = 0; i < 4; i++)
        assert_int_equal(lw_file_read(files[i], 0, &text[i], &n[i]), 0);
    const char *one = text[0] + n[0] - 4 * row, *three = text[1] + n[1] - 4 * row,
               *line = text[2] + n[2] - 4 * row, *list = text[3] + n[3] - 4 * row;
    assert_memory_not_equal(one, three, row);
    assert_memory_equal(line, one, row);
    assert_memory_not_equal(line + row, one + row, row);
    assert_memory_equal(line + 3 * row, three + 3 * row, row);
    assert_memory_equal(list, one, row);
    assert_memory_equal(list + row, three + row, row);
    assert_memory_equal(list + 2 * row, one + 2 * row, row);
    for (int i = 0; i < 4; i++)
        lw_free(&text[i]);
    lab_expect(2, "sample told --n 4 --alpha-schedule list --output no.npy");
    lab_expect(2, "sample told --n 4 --alpha-schedule linear --alpha-end 9 --output no.npy");
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *args, *says;
    } wrong[] = {
        {"--alpha-fixed 0.5", "--alpha-fixed 0.5: at least 1"},
        {"--alpha-dist uniform --alpha-min 3 --alpha-max 2", "--alpha-max 2 is below"},
        {"--alpha-dist uniform --unconditional-per-group 0", "--unconditional-per-group"},
        {"--alpha-dist uniform --alpha-fixed 2", "one of the two"},
        {"--use-queue --queue-strict-without-replacement --queue-per-class-capacity 5",
         "--queue-per-class-capacity"},
    };
    for (size_t i = 0; i < LW_COUNT(wrong); i++) {
        lab_expect(2, STEP " %s --steps 1 --output-dir no", wrong[i].args);
        if (!strstr(lab_err, wrong[i].says))
            fail_msg("no \"%s\" in: %s", wrong[i].says, lab_err);
    }
}

/* alpha 1 is none: weight 0, while the pictures stay in the softmax; and w = (alpha - 1)(N - 1) / U. */
static void test_fixed(void **state)
{
    (void)state;
    lab_expect(0, STEP " --alpha-fixed 1 --steps 2 --log-every 1 --output-dir fixed_1");
    lab_expect(0, STEP " --uncond-weight 0 --steps 2 --log-every 1 --output-dir weight_0");
    lab_same_checkpoint("fixed_1", "weight_0");
    lab_expect(0, STEP " --alpha-fixed 2.5 --steps 2 --log-every 1 --output-dir fixed_2");
    lab_expect(0, STEP " --uncond-weight 2.25 --steps 2 --log-every 1 --output-dir weight_2");
    lab_same_checkpoint("fixed_2", "weight_2");
}

/* ---- what is drawn --------------------------------------------------------------------------- */

static double share_below(const lw_alpha_config *c, double x, double *mean)
{
    enum { N = 20000 };
    int n = 0;
    *mean = 0;
    for (int i = 0; i < N; i++) {
        double a = lw_alpha_draw(c, 7, i / 8, i % 8);
        assert_true(a >= 1.0 && a <= 4.0);
        n += a <= x;
        *mean += a / N;
    }
    return (double)n / N;
}

/* Of power 3 on [1, 4]: P(alpha <= x) = (1 - x^-2) / (1 - 1/16), mean 1.6. */
static void test_alpha(void **state)
{
    (void)state;
    lw_alpha_config c = {
        .dist = LW_ALPHA_POWERLAW, .min = 1, .max = 4, .power = 3, .point = 1, .point_prob = 0.25};
    double mean;
    assert_true(fabs(share_below(&c, 2, &mean) - 0.8) < 0.01);
    assert_true(fabs(mean - 1.6) < 0.02);
    c.dist = LW_ALPHA_UNIFORM;
    assert_true(fabs(share_below(&c, 2, &mean) - 1.0 / 3) < 0.01);
    c.dist = LW_ALPHA_MIXTURE;
    assert_true(fabs(share_below(&c, 1, &mean) - 0.25) < 0.01);
    c.dist = LW_ALPHA_TABLE8;
    assert_true(fabs(share_below(&c, 1, &mean) - 0.5) < 0.01);
    assert_true(fabs(share_below(&c, 2, &mean) - 0.9) < 0.01);
    assert_true(fabs(lw_alpha_power(1, 4, 1.0, 0.5) - 2.0) < 1e-12);
    assert_true(lw_alpha_weight(1.0, 16, 8) == 0.0 && lw_alpha_weight(3.0, 17, 8) == 4.0);
}

/* ---- the queue ------------------------------------------------------------------------------- */

enum { GROUPS = 3, POS = 4, UNC = 5 };

typedef struct drawn {
    int32_t classes[GROUPS + 1]; /* no padding behind them */
    int64_t pos[GROUPS * POS], unc[GROUPS * UNC];
} drawn;

static lw_class_opts class_opts(void)
{
    return (lw_class_opts){.seed = 3, .groups = GROUPS, .positives = POS, .unconditional = UNC};
}

/* Rows are of the group's class. Returns how many a group has more than once. */
static int check_draw(const lw_dataset *d, const drawn *x)
{
    int twice = 0;
    for (int g = 0; g < GROUPS; g++)
        for (int p = 0; p < POS; p++) {
            int64_t row = x->pos[g * POS + p];
            assert_true(row >= 0 && row < 2 * d->n);
            assert_int_equal(d->labels[row % d->n], x->classes[g]);
            for (int q = 0; q < p; q++)
                twice += row == x->pos[g * POS + q];
        }
    return twice;
}

static void test_queue(void **state)
{
    (void)state;
    lw_dataset *d = NULL;
    lw_queue *q = NULL, *other = NULL;
    const lw_class_opts o = class_opts();
    const lw_data_opts data = {.count = 300};
    int twice[2] = {0, 0};
    lw_queue_opts opts = {.per_class = 6, .global = 16, .push = 2, .refill_every = 1, .flip = true};
    assert_int_equal(lw_data_open("synth:16", &data, &d), 0);
    for (int strict = 0; strict < 2; strict++) {
        drawn x = {0}, y = {0};
        int64_t missing = 0, mirrored = 0;
        opts.strict = strict;
        assert_int_equal(lw_queue_new(d, &o, &opts, &q), 0);
        assert_int_equal(lw_queue_new(d, &o, &opts, &other), 0);
        for (int step = 0; step < 40; step++) {
            assert_int_equal(lw_queue_draw(q, step, x.classes, x.pos, x.unc), 0);
            twice[strict] += check_draw(d, &x);
            lw_queue_counts now = lw_queue_step_counts(q), all = lw_queue_totals(q);
            missing += now.missing_labels;
            assert_int_equal(all.missing_labels, missing);
            assert_int_equal(all.backfilled_samples, missing);
            for (int i = 0; i < GROUPS * POS; i++)
                mirrored += x.pos[i] >= d->n;
        }
        /* nothing was primed: the first classes were empty; later ones are not */
        assert_true(missing >= GROUPS && missing < 40);
        assert_true(mirrored > 40 && mirrored < 40 * GROUPS * POS - 40);
        assert_int_equal(lw_queue_held(q), 16);
        /* at step 39 at once, and from there back to 5 and on again */
        assert_int_equal(lw_queue_draw(other, 39, y.classes, y.pos, y.unc), 0);
        assert_memory_equal(&x, &y, sizeof x);
        assert_int_equal(lw_queue_draw(other, 5, y.classes, y.pos, y.unc), 0);
        assert_int_equal(lw_queue_draw(other, 39, y.classes, y.pos, y.unc), 0);
        assert_memory_equal(&x, &y, sizeof x);
        lw_queue_free(&q);
        lw_queue_free(&other);
    }
    assert_true(twice[1] * 4 < twice[0]);
    lw_data_close(&d);
}

/* Balanced: each class has its share before the first step. Too small a class is named. */
static void test_warmup(void **state)
{
    (void)state;
    lw_dataset *d = NULL;
    lw_queue *q = NULL;
    const lw_class_opts o = class_opts();
    const lw_data_opts data = {.count = 300};
    lw_queue_opts opts = {.per_class = 64,
                          .global = 500,
                          .prime = 200,
                          .refill_every = 4,
                          .refill = LW_QUEUE_EVERY_N,
                          .push = 1,
                          .warmup = LW_QUEUE_BALANCED,
                          .min_per_class = 3};
    drawn x;
    assert_int_equal(lw_data_open("synth:16", &data, &d), 0);
    assert_int_equal(lw_queue_new(d, &o, &opts, &q), 0);
    assert_int_equal(lw_queue_covered(q), d->classes);
    assert_int_equal(lw_queue_held(q), 200);
    for (int step = 0; step < 8; step++)
        assert_int_equal(lw_queue_draw(q, step, x.classes, x.pos, x.unc), 0);
    assert_int_equal(lw_queue_held(q), 202);
    assert_int_equal(lw_queue_totals(q).missing_labels, 0);
    lw_queue_free(&q);
    opts.min_per_class = 60;
    assert_int_equal(lw_queue_new(d, &o, &opts, &q), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "--queue-warmup-min-per-class: class '"));
    lw_errclear();
    lw_data_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chunks),
                                       cmocka_unit_test(test_scales_of_slots),
                                       cmocka_unit_test(test_anneal),
                                       cmocka_unit_test(test_finish),
                                       cmocka_unit_test(test_leaves_of_a_chunk),
                                       cmocka_unit_test(test_features_made_in_the_step),
                                       cmocka_unit_test(test_large_group),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_cut_by_itself),
                                       cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_killed),
                                       cmocka_unit_test(test_transformer_told),
                                       cmocka_unit_test(test_summary),
                                       cmocka_unit_test(test_profile),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_fixed),
                                       cmocka_unit_test(test_alpha),
                                       cmocka_unit_test(test_queue),
                                       cmocka_unit_test(test_warmup)};
    return cmocka_run_group_tests(tests, lab_enter, lab_leave);
}
