/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What training promises besides its bits: it learns, accumulation is the mean, --minutes is
 * replayable, nothing is overwritten, damage gives one clear line, --dry-run touches nothing.
 */
#include "jobs/train_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "formats/formats.h"
#include "jobs/ddpm/ddpm_job.h"

/* ---- learning -------------------------------------------------------------------------------- */

static void assert_falls(const char *run, const char *key, size_t n, double to)
{
    double before = lab_metric_mean(run, key, 0, 5), after = lab_metric_mean(run, key, n - 5, n);
    print_message("%s: %s %.4g -> %.4g\n", run, key, before, after);
    if (!(after < to * before))
        fail_msg("%s: %s went from %.4g to %.4g", run, key, before, after);
}

static void test_losses_fall(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --steps 60 --log-every 1 --dropout 0 --output-dir learn_ddpm");
    assert_falls("learn_ddpm", "loss", 60, 0.6);
    lab_expect(0, TINY_ENCODER " --steps 60 --log-every 1 --output-dir learn_mae");
    assert_falls("learn_mae", "loss", 60, 0.7);
    lab_expect(0, TINY_ENCODER
               " --objective classify --steps 60 --log-every 1 --eval-every 60 --batch-size 32 "
               "--width 16 --stages 3 --ema-decay 0.9 --output-dir learn_class");
    assert_falls("learn_class", "loss", 60, 0.85);
    assert_true(lab_metric("learn_class", "heldout_accuracy", 0) > 0.3); /* of ten classes */
}

/* The drift loss cannot fall; the distance to held-out pictures does. */
static void test_drift_gets_closer(void **state)
{
    (void)state;
    lab_expect(0, TINY_DRIFT
               " --encoder learn_mae --steps 50 --log-every 50 --eval-every 10 --eval-samples 128 "
               "--ema-decay 0 --no-flip --negatives-per-group 16 --positives-per-group 32 "
               "--output-dir learn_drift");
    double first = lab_metric("learn_drift", "fd", -1), last = lab_metric("learn_drift", "fd", 0);
    print_message("learn_drift: fd %.4g -> %.4g (floor %.4g)\n", first, last,
                  lab_metric("learn_drift", "fd_floor", 0));
    assert_true(last < 0.5 * first && last > lab_metric("learn_drift", "fd_floor", 0));
    assert_non_null(strstr(lab_err, "flat by construction"));
}

static double first_step(const char *prediction, const char *how, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "one_%s_%zu", prediction, strlen(how));
    if (!lw_path_exists(name))
        lab_expect(0,
                   TINY_DDPM " --timesteps 1 --steps 1 --log-every 1 --dropout 0 --prediction %s"
                             " %s --output-dir %s",
                   prediction, how, name);
    return lab_metric(name, key, 0);
}

/* With one time the weight is a number, and v is the noise where there is hardly any, and the picture where there is
 * hardly anything else; the network's first answer is zero. */
static void test_weights_and_predictions(void **state)
{
    static const char *const predictions[] = {"epsilon", "sample", "v_prediction"};
    const double snr = 0.9999 / 0.0001, want[] = {5.0 / snr, 5.0, 5.0 / (snr + 1.0)};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(want); i++)
        for (int k = 0; k < 2; k++) {
            const char *p = predictions[i], *key = k ? "grad_norm" : "loss";
            double ratio = first_step(p, "--snr-gamma 5", key) / first_step(p, "", key);
            if (!(fabs(ratio / want[i] - 1.0) < 1e-4))
                fail_msg("%s: %s is weighed by %.9g, not by %.9g", p, key, ratio, want[i]);
        }
    double noise = first_step("epsilon", "", "loss"), picture = first_step("sample", "", "loss"),
           v = first_step("v_prediction", "", "loss"),
           late = first_step("v_prediction", "--beta-schedule cosine", "loss");
    assert_true(fabs(v / noise - 1.0) < 0.01 && fabs(noise - 1.0) < 0.1);
    assert_true(fabs(late / picture - 1.0) < 0.02 && fabs(noise / picture - 1.0) > 0.1);
}

/* Samplers answer as training asks: with the other sign of v in the loss pictures have other colours, at a distance of 1.2. */
static void test_v_is_sampled_as_trained(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --prediction v_prediction --beta-schedule cosine --snr-gamma 5 "
                            "--steps 100 --log-every 100 --eval-every 100 --eval-samples 256 "
                            "--ddim-steps 10 --ema-decay 0.9 --dropout 0 --output-dir learn_v");
    double fd = lab_metric("learn_v", "fd", 0);
    print_message("learn_v: fd %.4g (floor %.4g)\n", fd, lab_metric("learn_v", "fd_floor", 0));
    assert_true(fd < 0.4);
}

/* At the one time there is noise alone: the error is that of noise and picture, which do not hang together. */
static void test_flow_is_sampled_as_trained(void **state)
{
    (void)state;
    lab_expect(0, TINY_FLOW
               " --timesteps 1 --steps 1 --log-every 1 --dropout 0 --output-dir one_flow");
    double noise = first_step("epsilon", "", "loss"), picture = first_step("sample", "", "loss"),
           flow = lab_metric("one_flow", "loss", 0);
    if (!(fabs(flow / (noise + picture) - 1.0) < 0.02))
        fail_msg("loss %.6g, not %.6g + %.6g", flow, noise, picture);
    lab_expect(0, TINY_FLOW " --time-distribution logit_normal --steps 100 --log-every 1 "
                            "--eval-every 100 --eval-samples 256 --eval-steps 5 --ema-decay 0.9 "
                            "--dropout 0 --shift 1.5 --output-dir learn_flow");
    assert_falls("learn_flow", "loss", 100, 0.6);
    double fd = lab_metric("learn_flow", "fd", 0);
    print_message("learn_flow: fd %.4g (floor %.4g)\n", fd,
                  lab_metric("learn_flow", "fd_floor", 0));
    assert_true(fd < 0.4);
    lab_expect(0, "sample learn_flow --n 2 --steps 3 --sampler heun --output f.npy --json");
    assert_non_null(strstr(lab_out, "\"method\": \"flow\""));
    assert_non_null(strstr(lab_out, "\"evaluations\": 3"));
    lab_expect(2, "sample learn_flow --n 2 --sampler ancestral --output f.npy");
    assert_true(lab_one_line() && strstr(lab_err, "euler or heun"));
    lab_expect(2, "stream --input test:64x32@1 --model learn_flow");
    assert_true(lab_one_line() && strstr(lab_err, "this is a rectified flow"));
    lab_expect(2, TINY_DDPM " --steps 101 --resume-from learn_flow --output-dir never");
    assert_non_null(strstr(lab_err, "train flow`"));
    lab_expect(2, TINY_FLOW " --latent-dim 4 --steps 1 --output-dir never");
    assert_non_null(strstr(lab_err, "a rectified flow has no latent"));
}

/* ---- classes that are left out ------------------------------------------------------------------ */

static int64_t dropped(double prob, int64_t seed, int64_t first, int64_t n)
{
    lw_ddpm_config c = {.class_dropout_prob = prob};
    int64_t count = 0;
    c.train.seed = seed;
    for (int64_t i = first; i < first + n; i++)
        count += lw_ddpm_drops_class(&c, i);
    return count;
}

/* As often as asked for, by four standard deviations; other pictures and another seed leave out others. */
static void test_share_of_dropped_classes(void **state)
{
    enum { N = 100000 };
    static const double probs[] = {0.1, 0.5};
    int same = 0;
    (void)state;
    assert_int_equal(dropped(0.0, 0, 0, N), 0);
    for (size_t i = 0; i < LW_COUNT(probs); i++)
        for (int64_t seed = 0; seed < 3; seed++) {
            double p = probs[i], off = (double)dropped(p, seed, seed << 40, N) - p * N;
            if (!(fabs(off) < 4.0 * sqrt(p * (1.0 - p) * N)))
                fail_msg("%g, seed %d: %g more than its share", p, (int)seed, off);
        }
    for (int64_t i = 0; i < 1000; i++)
        same += dropped(0.5, 0, i, 1) == dropped(0.5, 1, i, 1);
    assert_true(same > 400 && same < 600);
}

/* Rows of classes that four steps gave a gradient (those before the last two find zeros on the way to them), and does that
 * of no class have one? */
static int trained_rows(const char *prob, bool *null_class)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    char run[32];
    int rows = 0;
    snprintf(run, sizeof run, "dropped_%s", prob);
    lab_expect(0, TINY_DDPM " --batch-size 16 --class-dropout-prob %s --steps 4 --output-dir %s",
               prob, run);
    assert_int_equal(
        lw_st_open(lw_path_join(&path, run, "checkpoints/last/optimizer.safetensors"), &f), 0);
    const lw_st_tensor *m = lw_st_find(f, "m.class_embedding.weight");
    assert_non_null(m);
    assert_int_equal(m->shape[0], 11);
    for (int64_t r = 0; r < 11; r++) {
        double size = 0.0;
        for (int64_t k = 0; k < m->shape[1]; k++)
            size += fabs((double)((const float *)m->data)[r * m->shape[1] + k]);
        *null_class = size > 0.0; /* the last says */
        rows += size > 0.0;
    }
    return rows - *null_class;
}

static void test_dropped_classes_are_the_null_class(void **state)
{
    LW_CLEANUP(lw_json_drop) json_t *config = NULL;
    bool null_class;
    (void)state;
    assert_true(trained_rows("1e-9", &null_class) > 5 && !null_class);
    assert_true(trained_rows("0.99", &null_class) < 4 && null_class);
    assert_int_equal(lw_json_load("dropped_0.99/checkpoints/last/ema/config.json", &config), 0);
    assert_int_equal(json_integer_value(json_object_get(config, "num_class_embeds")), 11);
    assert_int_equal(json_integer_value(json_object_get(config, "leeway_null_class")), 10);
    assert_int_equal(json_array_size(json_object_get(config, "leeway_class_names")), 10);
    lab_expect(2, TINY_DDPM
               " --class-conditional no --class-dropout-prob 0.1 --steps 1 --output-dir never");
    assert_true(lab_one_line() &&
                strstr(lab_err, "--class-dropout-prob: the network has no classes"));
    lab_expect(2, TINY_DDPM " --batch-size 16 --class-dropout-prob 0.5 --steps 5 --resume "
                            "--output-dir dropped_0.99");
    assert_non_null(strstr(lab_err, "class-dropout-prob"));
}

/* A shorter noise schedule is the model's own: samplers take it from its folder. */
static void test_schedule_travels_with_the_model(void **state)
{
    (void)state;
    lab_expect(0,
               TINY_DDPM " --steps 4 --timesteps 20 --sample-every 4 --output-dir short_schedule");
    lab_expect(0, "sample short_schedule --n 2 --sampler ancestral --output a.npy --json");
    assert_non_null(strstr(lab_out, "\"evaluations\": 20"));
    lab_expect(0, "sample short_schedule --n 2 --output b.npy --json");
    assert_non_null(strstr(lab_out, "\"evaluations\": 20"));
    lab_expect(2, "sample short_schedule --n 2 --steps 21 --output c.npy");
    lab_expect(0, TINY_DDPM " --steps 1 --output-dir long_schedule");
    lab_expect(0, "sample long_schedule --n 1 --output d.npy --json");
    assert_non_null(strstr(lab_out, "\"evaluations\": 50"));
}

/* ---- accumulation ---------------------------------------------------------------------------- */

/* Largest difference of the first moments (beta1 0.9: a tenth of the gradient) relative to the
 * tensor's size. */
static double gradient_distance(const char *run_a, const char *run_b)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_st_close) lw_st_file *a = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *b = NULL;
    double worst = 0.0;
    assert_int_equal(
        lw_st_open(lw_path_join(&path, run_a, "checkpoints/last/optimizer.safetensors"), &a), 0);
    assert_int_equal(
        lw_st_open(lw_path_join(&path, run_b, "checkpoints/last/optimizer.safetensors"), &b), 0);
    for (size_t i = 0; i < lw_st_count(a); i++) {
        const lw_st_tensor *x = lw_st_at(a, i), *y = lw_st_find(b, x->name);
        double size = 0.0, diff = 0.0;
        assert_non_null(y);
        if (!lw_str_starts(x->name, "m."))
            continue;
        for (int64_t k = 0; k < x->count; k++) {
            double u = (double)((const float *)x->data)[k], v = (double)((const float *)y->data)[k];
            size = fmax(size, fabs(u));
            diff = fmax(diff, fabs(u - v));
        }
        worst = fmax(worst, diff / fmax(size, 1e-6));
    }
    return worst;
}

static void test_accumulation_is_the_mean(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM
               " --batch-size 8 --grad-accum-steps 2 --grad-clip 0 --steps 1 --output-dir accum2");
    lab_expect(0, TINY_DDPM
               " --batch-size 4 --grad-accum-steps 4 --grad-clip 0 --steps 1 --output-dir accum4");
    lab_expect(0, TINY_DDPM " --batch-size 16 --grad-clip 0 --steps 1 --output-dir accum1");
    lab_expect(0, TINY_DDPM " --batch-size 8 --grad-clip 0 --steps 1 --output-dir half");
    assert_true(gradient_distance("accum1", "accum2") < 1e-5);
    assert_true(gradient_distance("accum1", "accum4") < 1e-5);
    assert_true(gradient_distance("accum1", "half") >
                1e-2); /* and it is not just half of the batch */
    assert_true(fabs(lab_metric("accum1", "loss", 0) - lab_metric("accum2", "loss", 0)) < 1e-6);
    assert_true(fabs(lab_metric("accum1", "grad_norm", 0) - lab_metric("accum4", "grad_norm", 0)) <
                1e-5);
}

/* The same samples in 1, 2 and 8 parts: the same leaves, the same bits. */
static void test_parts_have_the_same_bits(void **state)
{
    static const struct {
        const char *name, *args,
            *size; /* option that says how large a part is, of 8 leaves in all */
        int whole;
    } jobs[] = {
        {"ddpm",
         TINY_DDPM
         " --leaf-size 2 --flip --dropout 0.1 --class-dropout-prob 0.3 --scheduler cosine",
         "batch-size", 16},
        {"drift", TINY_DRIFT " --leaf-size 4 --flip --encoder none", "groups", 8},
        {"mae", TINY_ENCODER " --leaf-size 4", "batch-size", 32},
        {"classify", TINY_ENCODER " --leaf-size 3 --objective classify --input-noise 0.2",
         "batch-size", 24},
        {"judge", TINY_ENCODER " --leaf-size 4 --objective judge --input-noise 0.1", "batch-size",
         32},
    };
    static const int parts[] = {1, 2, 8};
    char one[64], many[64];
    (void)state;
    for (size_t j = 0; j < LW_COUNT(jobs); j++)
        for (int i = 0; i < 3; i++) {
            const int a = parts[i];
            snprintf(one, sizeof one, "%s_parts_1", jobs[j].name);
            snprintf(many, sizeof many, "%s_parts_%d", jobs[j].name, a);
            lab_expect(0,
                       "%s --%s %d --grad-accum-steps %d --steps 2 --log-every 1 --output-dir %s",
                       jobs[j].args, jobs[j].size, jobs[j].whole / a, a, many);
            lab_same_checkpoint(one, many);
            lab_same_logs(one, many);
        }
}

static double predicted(const char *key)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    assert_int_equal(lw_json_parse("stdout", lab_out, strlen(lab_out), &j), 0);
    return json_number_value(json_object_get(j, key));
}

/* Frames shrink with the leaf, gradients that wait are counted, arithmetic stays. */
static void test_leaves_are_predicted(void **state)
{
#define LEAVES TINY_DDPM " --batch-size 16"
    static const struct {
        const char *args;
        int slabs; /* weights, gradient, two moments, average, and gradients that wait */
    } rows[] = {
        {"", 5}, {" --leaf-size 16", 5}, {" --grad-accum-steps 3", 6}, {" --leaf-size 2", 8}};
    double bytes[LW_COUNT(rows)], frame[LW_COUNT(rows)], flops[LW_COUNT(rows)];
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        lab_expect(0, LEAVES "%s --steps 1 --dry-run --json --output-dir never", rows[i].args);
        bytes[i] = predicted("bytes_parameters");
        frame[i] = predicted("bytes_activations");
        flops[i] = predicted("flops_per_step");
        assert_true(bytes[i] * 5 == bytes[0] * rows[i].slabs);
    }
    assert_true(frame[2] == frame[0] && frame[3] < 0.2 * frame[0]);
    assert_true(flops[2] == 3 * flops[0] && fabs(flops[3] / flops[0] - 1.0) < 0.05);
}

static void test_leaf_sizes(void **state)
{
    static const char *const rows[][2] = {
        {LEAVES " --leaf-size 3", "--leaf-size 3: does not divide the 16 samples"},
        {LEAVES " --leaf-size 32", "--leaf-size 32: does not divide the 16 samples"},
        {TINY_DRIFT " --leaf-size 6", "--leaf-size 6: no multiple of the 4 samples of a group"},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        lab_expect(2, "%s --steps 1 --output-dir never", rows[i][0]);
        assert_true(lab_one_line());
        assert_non_null(strstr(lab_err, rows[i][1]));
        assert_false(lw_path_exists("never"));
    }
    /* What the steps were made with stays: by config.yaml, and by state.json where there is none. */
    lab_expect(0, LEAVES " --leaf-size 4 --steps 1 --output-dir leafy");
    lab_expect(2, LEAVES " --leaf-size 8 --steps 2 --resume --output-dir leafy");
    assert_non_null(strstr(lab_err, "--leaf-size 8 (was 4)"));
    assert_int_equal(rename("leafy/checkpoints/step_0000001", "leaf"), 0);
    lab_expect(2, LEAVES " --steps 2 --resume-from leaf --output-dir never");
    assert_non_null(strstr(lab_err, "leaf was trained with --leaf-size 4, not 16"));
    lab_expect(0, LEAVES " --leaf-size 4 --steps 2 --resume-from leaf --output-dir leafy2");
}

/* ---- configs --------------------------------------------------------------------------------- */

static void test_minutes_are_replayable(void **state)
{
    (void)state;
    lab_expect(0,
               TINY_DDPM " --minutes 0.01 --log-every 5 --scheduler cosine --output-dir minutes");
    int64_t steps = lab_last_step("minutes");
    assert_true(steps >= 1); /* one on a machine with better things to do */
    assert_non_null(strstr(lab_err, "minutes at"));
    lab_expect(0, "train ddpm --config minutes/config.yaml --output-dir replay");
    assert_int_equal(lab_last_step("replay"), steps);
    lab_same_checkpoint("minutes", "replay");
    lab_same_logs("minutes", "replay");
    /* A finished run that is resumed with the same words is still finished: --minutes is not
     * measured again. */
    lab_expect(0, TINY_DDPM
               " --minutes 0.01 --log-every 5 --scheduler cosine --resume --output-dir minutes");
    lab_same_checkpoint("minutes", "replay");
    lab_expect(0, "train ddpm --config minutes/config.yaml --output-dir replay2");
    lab_same_checkpoint("minutes", "replay2");
}

static void test_config_of_each_method(void **state)
{
    (void)state;
    static const char *const args[] = {TINY_ENCODER " --steps 4 --seed 7",
                                       TINY_DRIFT " --steps 4 --seed 7 --groups 3"};
    static const char *const names[] = {"train encoder", "train drift"};
    char a[32], b[32];
    for (int i = 0; i < 2; i++) {
        snprintf(a, sizeof a, "config_a%d", i);
        snprintf(b, sizeof b, "config_b%d", i);
        lab_expect(0, "%s --log-every 1 --output-dir %s", args[i], a);
        lab_expect(0, "%s --config %s/config.yaml --output-dir %s", names[i], a, b);
        lab_same_checkpoint(a, b);
        lab_same_logs(a, b);
    }
}

/* ---- files that are there already ------------------------------------------------------------ */

static void test_nothing_is_overwritten(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --steps 2 --log-every 1 --output-dir kept");
    lab_expect(0, "train ddpm --config kept/config.yaml --output-dir kept_twin");
    lab_expect(2, TINY_DDPM " --steps 3 --log-every 1 --output-dir kept");
    assert_true(lab_one_line());
    assert_non_null(strstr(lab_err, "--resume"));
    lab_same_checkpoint("kept", "kept_twin");
    lab_same_logs("kept", "kept_twin");
    /* Going on from another run's checkpoint is no reason to write over this one. */
    lab_expect(0, TINY_DDPM " --steps 1 --log-every 1 --output-dir other");
    lab_expect(2, TINY_DDPM " --steps 3 --log-every 1 --resume-from other --output-dir kept");
    lab_same_checkpoint("kept", "kept_twin");
    lab_same_logs("kept", "kept_twin");
}

static void test_resume_before_the_first_checkpoint(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --steps 4 --log-every 1 --output-dir early");
    lab_expect(0, TINY_DDPM " --steps 4 --log-every 1 --output-dir early_twin");
    assert_int_equal(lw_remove_tree("early/checkpoints"), 0);
    lab_expect(0, TINY_DDPM " --steps 4 --log-every 1 --resume --output-dir early");
    assert_non_null(strstr(lab_err, "no checkpoint yet"));
    lab_same_checkpoint("early", "early_twin");
    lab_same_logs("early", "early_twin");
}

static void truncate_to(const char *path, off_t n)
{
    if (truncate(path, n) != 0)
        fail_msg("%s cannot be cut", path);
}

static void flip_byte(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_END), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_END), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

static void test_damage_is_named(void **state)
{
    (void)state;
    static const char resume[] = TINY_DDPM " --steps 4 --resume --output-dir hurt";
    lab_expect(0, TINY_DDPM " --steps 2 --output-dir hurt");
    /* One bit of the optimizer's last number. */
    flip_byte("hurt/checkpoints/last/optimizer.safetensors", -2);
    lab_expect(3, "%s", resume);
    assert_true(lab_one_line());
    assert_non_null(strstr(lab_err, "damaged"));
    flip_byte("hurt/checkpoints/last/optimizer.safetensors", -2);
    /* Another seed: data and noise would be others. */
    lab_expect(2, "%s --seed 1", resume);
    assert_non_null(strstr(lab_err, "--seed 1 (was 0)"));
    /* The same network, trained by another method. */
    lab_expect(2, TINY_DRIFT
               " --steps 4 --noise-shape full --latent-dim 0 --resume --output-dir hurt");
    assert_non_null(strstr(lab_err, "train ddpm`"));
    /* A cut weights file. */
    truncate_to("hurt/checkpoints/last/diffusion_pytorch_model.safetensors", 3000);
    lab_expect(3, "%s", resume);
    assert_true(lab_one_line());
    assert_non_null(strstr(lab_err, "diffusion_pytorch_model.safetensors"));
    /* No state: not a whole checkpoint, and there is no older one. */
    assert_int_equal(unlink("hurt/checkpoints/step_0000002/state.json"), 0);
    lab_expect(3, "%s", resume);
    assert_true(lab_one_line());
    lab_expect(3, "%s --resume-from hurt/checkpoints/step_0000002", resume);
    assert_true(lab_one_line());
}

/* ---- dry runs and missing words -------------------------------------------------------------- */

static void test_dry_run_touches_nothing(void **state)
{
    (void)state;
    static const char *const args[] = {TINY_DDPM, TINY_ENCODER, TINY_DRIFT};
    assert_int_equal(lw_mkdirs("dry"), 0);
    assert_int_equal(chdir("dry"), 0);
    for (size_t i = 0; i < LW_COUNT(args); i++) {
        char **names = NULL;
        size_t n = 0;
        lab_expect(0, "%s --steps 10 --dry-run --output-dir run", args[i]);
        assert_non_null(strstr(lab_out, "parameters"));
        assert_non_null(strstr(lab_out, "memory"));
        assert_int_equal(lw_list_dir(".", &names, &n), 0);
        assert_int_equal(n, 2); /* stdout.txt, stderr.txt */
        lw_list_free(&names, n);
    }
    assert_int_equal(chdir(".."), 0);
}

/* Features that are not kept are work in every step, and the number said is the one that keeps
 * them. */
static void test_features_that_do_not_fit(void **state)
{
    (void)state;
    static const char run[] = TINY_DRIFT " --encoder features --no-flip --steps 2";
    lab_expect(0, TINY_ENCODER " --steps 1 --output-dir features");
    lab_expect(0, "%s --dry-run --json --feature-disk 0 --output-dir f", run);
    double bytes = predicted("bytes_features"), flops = predicted("flops_per_step");
    lab_expect(0, "%s --dry-run --json --feature-cache 1 --output-dir f", run);
    assert_true(bytes > 1048576.0 && predicted("bytes_features") < bytes);
    assert_true(predicted("flops_per_step") > 1.05 * flops);
    lab_expect(0, "%s --dry-run --feature-cache 1 --output-dir f", run);
    const char *at = strstr(lab_out, "; --feature-cache ");
    assert_non_null(at);
    int mib = atoi(at + strlen("; --feature-cache "));
    lab_expect(0, "%s --dry-run --feature-cache %d --output-dir f", run, mib);
    assert_non_null(strstr(lab_out, "pictures, kept"));
    lab_expect(0, "%s --dry-run --feature-cache %d --output-dir f", run, mib - 1);
    assert_non_null(strstr(lab_out, "encoded again in every step"));
    lab_expect(0, "%s --feature-cache 1 --output-dir not_kept", run);
    assert_non_null(strstr(lab_err, "real features: encoded again in every step"));
    lab_expect(0, "%s --output-dir kept_features", run);
    assert_non_null(strstr(lab_err, "pictures, kept"));
    lab_same_checkpoint("not_kept", "kept_features");
}

/* Features rounded to bf16 take half the memory; what is trained with them does not depend on
 * whether they are kept, and is near what f32 gives. */
static void test_features_in_bf16(void **state)
{
    (void)state;
    static const char run[] = TINY_DRIFT " --encoder features --no-flip --steps 2";
    lab_expect(0, "%s --dry-run --json --feature-disk 0 --output-dir f", run);
    double bytes = predicted("bytes_features");
    lab_expect(0, "%s --dry-run --json --feature-disk 0 --feature-type bf16 --output-dir f", run);
    assert_true(bytes > 0.0 && predicted("bytes_features") == bytes / 2.0);
    lab_expect(0, "%s --feature-type bf16 --output-dir narrow", run);
    lab_expect(0, "%s --feature-type bf16 --feature-cache 1 --output-dir narrow_again", run);
    lab_same_checkpoint("narrow", "narrow_again");
    lab_expect(2, "%s --resume --steps 3 --feature-type f32 --output-dir narrow", run);
    assert_non_null(strstr(lab_err, "--feature-type"));
}

static void test_how_long(void **state)
{
    (void)state;
    static const char *const trainers[] = {"ddpm", "drift", "encoder", "encoder --objective judge"};
    lab_expect(2, TINY_DDPM " --output-dir unsaid");
    assert_non_null(strstr(lab_err, "--steps"));
    assert_true(lab_one_line());
    /* Said before any data is looked for, and so is a directory that is taken. */
    assert_int_equal(lw_mkdirs("taken"), 0);
    assert_int_equal(lw_file_write("taken/metrics.jsonl", "", 0), 0);
    for (size_t i = 0; i < LW_COUNT(trainers); i++) {
        lab_expect(2, "train %s --data cifar10:nowhere --output-dir unsaid", trainers[i]);
        assert_non_null(strstr(lab_err, "say how long"));
        lab_expect(2, "train %s --data cifar10:nowhere --steps 1 --output-dir taken", trainers[i]);
        assert_non_null(strstr(lab_err, "already holds a run"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_fall),
        cmocka_unit_test(test_drift_gets_closer),
        cmocka_unit_test(test_weights_and_predictions),
        cmocka_unit_test(test_v_is_sampled_as_trained),
        cmocka_unit_test(test_flow_is_sampled_as_trained),
        cmocka_unit_test(test_share_of_dropped_classes),
        cmocka_unit_test(test_dropped_classes_are_the_null_class),
        cmocka_unit_test(test_schedule_travels_with_the_model),
        cmocka_unit_test(test_accumulation_is_the_mean),
        cmocka_unit_test(test_parts_have_the_same_bits),
        cmocka_unit_test(test_leaves_are_predicted),
        cmocka_unit_test(test_leaf_sizes),
        cmocka_unit_test(test_minutes_are_replayable),
        cmocka_unit_test(test_config_of_each_method),
        cmocka_unit_test(test_nothing_is_overwritten),
        cmocka_unit_test(test_resume_before_the_first_checkpoint),
        cmocka_unit_test(test_damage_is_named),
        cmocka_unit_test(test_dry_run_touches_nothing),
        cmocka_unit_test(test_features_that_do_not_fit),
        cmocka_unit_test(test_features_in_bf16),
        cmocka_unit_test(test_how_long),
    };
    return cmocka_run_group_tests_name("train_rules", tests, lab_enter, lab_leave);
}
