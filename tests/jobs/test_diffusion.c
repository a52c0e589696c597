/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noise schedules of folders: scheduler_config.json as diffusers writes it and moves as diffusers
 * makes them, key by key, and where the file is looked for.
 */
#include "golden/golden.h"

#include <math.h>
#include "session/session_diffusion.h"
#include "session/session_unet.h"
#include "unit/config_keys.h"
#include "base/base.h"

/* ---- as diffusers ---------------------------------------------------------------------------- */

enum { N = 24 };

/* The estimate of tools/golden/schedulers.py: of N(mu, s^2), off by bias mu, half too bright. */
typedef struct noisy_model {
    double *mu, *s, *start, *bias;
} noisy_model;

static void estimate(const noisy_model *m, const lw_diffusion *d, int32_t t, const float *x,
                     float *y)
{
    double a = d->alpha_bar[t];
    for (int i = 0; i < N; i++) {
        double s2 = m->s[i] * m->s[i], v = a * s2 + 1.0 - a,
               off = (double)x[i] - sqrt(a) * m->mu[i];
        double e = sqrt(1.0 - a) * off / v + m->bias[0] * m->mu[i],
               x0 = 1.5 * (m->mu[i] + sqrt(a) * s2 / v * off);
        y[i] = (float)(d->prediction == LW_PREDICT_EPSILON  ? e
                       : d->prediction == LW_PREDICT_SAMPLE ? x0
                                                            : sqrt(a) * e - sqrt(1.0 - a) * x0);
    }
}

static double *get(const lw_st_file *f, const char *name, const char *what, int64_t *n)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", name, what);
    return golden_get(f, key, n);
}

static void check_table(const lw_st_file *f, const char *name, const lw_diffusion *d)
{
    int64_t n;
    double *want = get(f, name, "alpha_bar", &n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(d->alpha_bar[29 * i] - want[i]) <= 1e-9 * want[i] + 1e-18))
            fail_msg("%s: alpha_bar[%d] is %.17g, not %.17g", name, (int)(29 * i),
                     d->alpha_bar[29 * i], want[i]);
    free(want);
}

/* Largest difference of a state of the whole trajectory. */
static double follow(const lw_st_file *f, const char *name, const noisy_model *m,
                     const lw_diffusion *d)
{
    int64_t n, n_x;
    float x[N], y[N], noise[N], before[N], picture[N];
    double worst = 0.0, *t = get(f, name, "t", &n), *want = get(f, name, "x", &n_x);
    assert_int_equal(n_x, (n + 1) * N);
    bool solver = lw_str_starts(name, "solver");
    assert_ok(
        (solver ? lw_solver_check_steps : lw_diffusion_check_steps)(d, (int32_t)n, "--steps"));
    for (int i = 0; i < N; i++)
        x[i] = (float)m->start[i];
    for (int32_t k = 0; k < n; k++) {
        char key[32];
        lw_diffusion_move move = (solver                        ? lw_solver_move
                                  : lw_str_starts(name, "ddpm") ? lw_ancestral_move
                                                                : lw_ddim_move)(d, (int32_t)n, k);
        assert_int_equal(move.t, (int)t[k]);
        estimate(m, d, (int32_t)move.t, x, y);
        snprintf(key, sizeof key, "ancestral.noise%d", (int)move.t);
        golden_unit(key, N, noise);
        memcpy(picture, x, sizeof x);
        lw_diffusion_move to_picture = lw_picture_move(&move);
        lw_diffusion_apply(&to_picture, picture, y, NULL, N);
        move.by.limit = (double)INFINITY; /* diffusers does not bound its last state */
        lw_diffusion_apply(&move, x, y, solver ? before : noise, N);
        memcpy(before, picture, sizeof before);
        for (int i = 0; i < N; i++)
            worst = fmax(worst, fabs((double)x[i] - want[(k + 1) * N + i]) /
                                    fmax(1.0, fabs(want[(k + 1) * N + i])));
    }
    free(t);
    free(want);
    return worst;
}

static void test_as_diffusers(void **state)
{
    static lw_diffusion d;
    json_t *all = NULL, *config;
    const char *name;
    int64_t n;
    int followed = 0;
    lw_st_file *f = golden_open("schedulers"), *own = golden_open("sampler");
    noisy_model m = {golden_get(own, "mu", &n), golden_get(own, "s", &n), golden_get(own, "xT", &n),
                     golden_get(f, "bias", &n)};
    (void)state;
    assert_ok(lw_json_load(GOLDEN "schedulers.json", &all));
    json_object_foreach(all, name, config)
    {
        assert_ok(lw_diffusion_from_json(config, name, &d));
        check_table(f, name, &d);
        double worst = follow(f, name, &m, &d);
        print_message("%s: %.2g\n", name, worst);
        assert_true(worst < 2e-5);
        followed++;
    }
    assert_true(followed >= 28);
    free(m.mu);
    free(m.s);
    free(m.start);
    free(m.bias);
    lw_json_drop(&all);
    lw_st_close(&f);
    lw_st_close(&own);
}

/* ---- key by key ------------------------------------------------------------------------------ */

static const config_row rows[] = {
    {"num_train_timesteps", "i", "400", KEPT},
    {"num_train_timesteps", "i", "0", REFUSED},
    {"num_train_timesteps", "i", "100000", REFUSED},
    {"beta_start", "n", "0.001", KEPT},
    {"beta_start", "n", "0", REFUSED},
    {"beta_end", "n", "0.03", KEPT},
    {"beta_end", "n", "1", REFUSED},
    {"beta_schedule", "s", "\"scaled_linear\"", KEPT},
    {"beta_schedule", "s", "\"squaredcos_cap_v2\"", KEPT},
    {"beta_schedule", "s", "\"sigmoid\"", KEPT},
    {"beta_schedule", "s", "\"laplace\"", REFUSED},
    {"trained_betas", "a0", "null", NO_EFFECT},
    {"trained_betas", "a0", "[0.1, 0.2]", REFUSED}, /* of 1000 */
    {"variance_type", "s", "\"fixed_small_log\"", NO_EFFECT},
    {"variance_type", "s", "\"fixed_large\"", KEPT},
    {"variance_type", "s", "\"fixed_large_log\"", REFUSED},
    {"variance_type", "s", "\"learned_range\"", REFUSED},
    {"variance_type", "s", "\"learned\"", REFUSED},
    {"clip_sample", "b", "false", KEPT},
    {"prediction_type", "s", "\"sample\"", KEPT},
    {"prediction_type", "s", "\"v_prediction\"", KEPT},
    {"prediction_type", "s", "\"flow_prediction\"", REFUSED},
    {"thresholding", "b", "true", REFUSED},
    {"dynamic_thresholding_ratio", "n", "0.9", NO_EFFECT}, /* of thresholding, as the next */
    {"sample_max_value", "n", "2", NO_EFFECT},
    {"clip_sample_range", "n", "2", KEPT},
    {"clip_sample_range", "n", "0", REFUSED},
    {"timestep_spacing", "s", "\"trailing\"", KEPT},
    {"timestep_spacing", "s", "\"linspace\"", KEPT},
    {"timestep_spacing", "s", "\"karras\"", REFUSED},
    {"steps_offset", "i", "1", KEPT},
    {"steps_offset", "i", "-1", REFUSED},
    {"rescale_betas_zero_snr", "b", "true", REFUSED}, /* with epsilon */
    {"set_alpha_to_one", "b", "false", KEPT},
};

static int read_into(const char *key, const char *value, lw_diffusion *d)
{
    json_t *j = json_pack("{s:s}", "_class_name", "DDPMScheduler"),
           *v = json_loads(value, JSON_DECODE_ANY, NULL);
    assert_non_null(v);
    json_object_set_new(j, key, v);
    int rc = lw_diffusion_from_json(j, "scheduler_config.json", d);
    json_decref(j);
    return rc;
}

static int read_changed(const char *key, const char *value)
{
    static lw_diffusion d;
    return read_into(key, value, &d);
}

/* Every move of both samplers, in numbers. */
static void describe(const lw_diffusion *d, double *out)
{
    for (int32_t k = 0; k < 10; k++)
        for (int s = 0; s < 2; s++) {
            lw_diffusion_move m = (s ? lw_ancestral_move : lw_ddim_move)(d, 10, k);
            const double all[] = {m.t,
                                  m.by.a,
                                  m.by.s,
                                  m.by.c0,
                                  m.by.c1,
                                  m.by.c2,
                                  m.by.c3,
                                  isinf(m.by.clip) ? -1.0 : m.by.clip,
                                  (double)m.prediction};
            memcpy(out, all, sizeof all);
            out += LW_COUNT(all);
        }
}

static void test_values(void **state)
{
    static lw_diffusion plain, other;
    static double before[180], after[180];
    (void)state;
    assert_ok(read_into("_diffusers_version", "\"0\"", &plain));
    describe(&plain, before);
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        const config_row *r = &rows[i];
        if (r->fate == REFUSED) {
            expect_refused(read_changed, r->key, r->other);
            continue;
        }
        if (read_into(r->key, r->other, &other) != 0)
            fail_msg("'%s': %s: %s", r->key, r->other, lw_errmsg());
        describe(&other, after);
        if ((memcmp(before, after, sizeof before) == 0) != (r->fate == NO_EFFECT))
            fail_msg("'%s': %s %s", r->key, r->other,
                     r->fate == NO_EFFECT ? "changes moves" : "is passed over");
    }
}

static void test_types(void **state)
{
    (void)state;
    check_types(read_changed, rows, LW_COUNT(rows));
    expect_refused(read_changed, "_class_name", "\"PNDMScheduler\"");
    expect_refused(read_changed, "_class_name", "null");
    expect_refused(read_changed, "leeway_eta", "1");
    assert_ok(read_changed("skip_prk_steps", "true")); /* of another scheduler: a warning */
}

static void test_all_of_diffusers(void **state)
{
    (void)state;
    check_listed(rows, LW_COUNT(rows), "DDPMScheduler DDIMScheduler");
}

/* ---- steps and folders ----------------------------------------------------------------------- */

static void test_steps(void **state)
{
    static lw_diffusion d;
    (void)state;
    assert_ok(lw_diffusion_init(&d, 1000));
    assert_ok(lw_diffusion_check_steps(&d, 1, "--steps"));
    assert_ok(lw_diffusion_check_steps(&d, 1000, "--steps"));
    assert_int_equal(lw_diffusion_check_steps(&d, 0, "--steps"), LW_EUSAGE);
    assert_int_equal(lw_diffusion_check_steps(&d, 1001, "--steps"), LW_EUSAGE);
    d.steps_offset = 1;
    assert_ok(lw_diffusion_check_steps(&d, 500, "--steps"));
    assert_int_equal(lw_diffusion_check_steps(&d, 1000, "--steps"), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "steps_offset"));
    d.spacing = LW_SPACING_TRAILING; /* which has no offset */
    assert_ok(lw_diffusion_check_steps(&d, 1000, "--steps"));
}

/* diffusers' trailing times: numpy's arange(1000, 0, -1000/48) counts by a step a rounding away from
 * 1000/48, so its halves round down. */
static void test_trailing_times(void **state)
{
    static const struct {
        int32_t n, k, t;
    } cases[] = {{48, 0, 999}, {48, 3, 936},   {48, 9, 811}, {48, 15, 686},
                 {48, 47, 20}, {1000, 999, 0}, {1, 0, 999},  {3, 1, 666}};
    static lw_diffusion d;
    (void)state;
    assert_ok(lw_diffusion_init(&d, 1000));
    d.spaced = true;
    d.spacing = LW_SPACING_TRAILING;
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        assert_int_equal((int)lw_ddim_move(&d, cases[i].n, cases[i].k).t, cases[i].t);
        assert_int_equal((int)lw_ancestral_move(&d, cases[i].n, cases[i].k).t, cases[i].t);
        assert_int_equal((int)lw_solver_move(&d, cases[i].n, cases[i].k).t, cases[i].t);
    }
}

/* DPM-Solver's times differ: its lines go through two of them. */
static void test_solver_steps(void **state)
{
    static lw_diffusion d;
    (void)state;
    assert_ok(lw_diffusion_init(&d, 1000));
    assert_ok(lw_solver_check_steps(&d, 1, "--steps"));
    assert_ok(lw_solver_check_steps(&d, 999, "--steps"));
    assert_int_equal(lw_solver_check_steps(&d, 0, "--steps"), LW_EUSAGE);
    assert_int_equal(lw_solver_check_steps(&d, 1000, "--steps"), LW_EUSAGE);
    assert_int_equal(lw_solver_check_steps(&d, 1001, "--steps"), LW_EUSAGE);
    d.spaced = true; /* leading, as lw_diffusion_init has it */
    assert_ok(lw_solver_check_steps(&d, 499, "--steps"));
    assert_ok(lw_solver_check_steps(&d, 999, "--steps"));
    assert_int_equal(lw_solver_check_steps(&d, 1000, "--steps"), LW_EUSAGE);
    d.steps_offset = 400;
    assert_int_equal(lw_solver_check_steps(&d, 2, "--steps"), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "steps_offset"));
    d.spacing = LW_SPACING_TRAILING;
    assert_ok(lw_solver_check_steps(&d, 1000, "--steps"));
}

static char scratch[64];

static int scratch_make(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/lw_diffusion_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int scratch_remove(void **state)
{
    (void)state;
    return lw_remove_tree(scratch);
}

static const char *in_scratch(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    assert_ok(lw_file_write(path, text, strlen(text)));
}

static void test_where_it_is_found(void **state)
{
    static lw_diffusion d;
    char at[256];
    json_t *none = json_object(), *ours = json_pack("{s:i}", "leeway_timesteps", 400);
    (void)state;
    assert_ok(lw_mkdirs(in_scratch("pipe/unet")));
    assert_ok(lw_mkdirs(in_scratch("pipe/scheduler")));
    snprintf(at, sizeof at, "%s", in_scratch("pipe/unet"));
    write_text(in_scratch("pipe/scheduler/scheduler_config.json"),
               "{\"_class_name\": \"DDIMScheduler\", \"num_train_timesteps\": 300}");
    assert_ok(lw_diffusion_find(at, none, &d)); /* not without model_index.json */
    assert_true(d.timesteps == 1000 && isinf(d.ancestral_clip) && !d.small_variance);
    assert_ok(lw_diffusion_find(at, ours, &d));
    assert_int_equal(d.timesteps, 400);
    write_text(in_scratch("pipe/model_index.json"), "{}");
    assert_ok(lw_diffusion_find(at, none, &d));
    assert_true(d.timesteps == 300 && d.ancestral_clip == 1.0 && d.small_variance);
    assert_int_equal(lw_diffusion_find(at, ours, &d), LW_EFORMAT); /* they disagree */
    write_text(in_scratch("pipe/unet/scheduler_config.json"),
               "{\"_class_name\": \"DDPMScheduler\", \"num_train_timesteps\": 400}");
    assert_ok(lw_diffusion_find(at, ours, &d)); /* the one beside it first */
    write_text(in_scratch("pipe/unet/scheduler_config.json"), "[]");
    assert_int_equal(lw_diffusion_find(at, none, &d), LW_EFORMAT);
    json_object_set_new(ours, "leeway_timesteps", json_integer(100000));
    assert_int_equal(lw_diffusion_find(at, ours, &d), LW_EFORMAT);
    json_decref(none);
    json_decref(ours);
}

/* What training writes beside its config.json means what it was trained with, and has one word for
 * the clipping of both samplers. */
static void test_own(void **state)
{
    static lw_diffusion ours, read;
    (void)state;
    for (int32_t n = 1, i = 0; n <= LW_DDPM_MAX_STEPS; n = n * 7 + 3, i++) {
        const lw_noise_schedule s = {.timesteps = n,
                                     .beta = (lw_beta_schedule)(i % 4),
                                     .prediction = (lw_prediction)(i % 3)};
        json_t *j = lw_diffusion_to_json(&s);
        assert_ok(lw_diffusion_choose(&ours, &s));
        assert_true(i > 0 || s.beta == LW_BETA_LINEAR);
        assert_ok(lw_diffusion_from_json(j, "scheduler_config.json", &read));
        ours.ancestral_clip = ours.ddim_clip;
        assert_int_equal(ours.prediction, read.prediction);
        assert_memory_equal(ours.beta, read.beta, (size_t)n * sizeof *ours.beta);
        assert_memory_equal(ours.alpha_bar, read.alpha_bar, (size_t)n * sizeof *ours.alpha_bar);
        for (int32_t k = 0; k < n; k++) {
            lw_diffusion_move a = lw_ddim_move(&ours, n, k), b = lw_ddim_move(&read, n, k);
            assert_true(a.t == b.t && memcmp(&a.by, &b.by, sizeof a.by) == 0);
            a = lw_ancestral_move(&ours, n, k);
            b = lw_ancestral_move(&read, n, k);
            assert_true(a.t == b.t && memcmp(&a.by, &b.by, sizeof a.by) == 0);
        }
        json_decref(j);
    }
}

/* And where there is no such file, config.json says it. */
static void test_noted(void **state)
{
    static lw_diffusion ours, read;
    (void)state;
    for (int i = 0; i < 12; i++) {
        const lw_noise_schedule s = {.timesteps = 40,
                                     .beta = (lw_beta_schedule)(i % 4),
                                     .prediction = (lw_prediction)(i % 3)};
        json_t *config = json_object();
        assert_ok(lw_diffusion_note(&s, true, config));
        assert_int_equal(json_object_size(config),
                         1 + (s.beta != LW_BETA_LINEAR) + (s.prediction != LW_PREDICT_EPSILON));
        assert_ok(lw_diffusion_choose(&ours, &s));
        assert_ok(lw_diffusion_find(in_scratch("nowhere"), config, &read));
        assert_int_equal(read.prediction, s.prediction);
        assert_memory_equal(ours.alpha_bar, read.alpha_bar, 40 * sizeof *ours.alpha_bar);
        json_object_set_new(config, "leeway_beta_schedule", json_string("cubic"));
        assert_int_equal(lw_diffusion_find(in_scratch("nowhere"), config, &read), LW_EUNSUPPORTED);
        json_decref(config);
    }
}

/* One weight of a picture's error, whatever is predicted: x0's error is eps' over snr and v's over snr + 1. */
static void test_weights(void **state)
{
    static lw_diffusion d;
    (void)state;
    for (int b = 0; b < 4; b++)
        for (int32_t t = 0; t < 1000; t += 37) {
            assert_ok(
                lw_diffusion_choose(&d, &(lw_noise_schedule){.timesteps = 1000,
                                                             .beta = (lw_beta_schedule)b,
                                                             .prediction = LW_PREDICT_SAMPLE}));
            double snr = d.alpha_bar[t] / (1.0 - d.alpha_bar[t]),
                   of_x0 = lw_diffusion_weight(&d, t, 5.0);
            assert_true(of_x0 == (snr < 5.0 ? snr : 5.0));
            d.prediction = LW_PREDICT_EPSILON;
            assert_true(fabs(lw_diffusion_weight(&d, t, 5.0) * snr / of_x0 - 1.0) < 1e-12);
            d.prediction = LW_PREDICT_VELOCITY;
            assert_true(fabs(lw_diffusion_weight(&d, t, 5.0) * (snr + 1.0) / of_x0 - 1.0) < 1e-12);
            assert_true(lw_diffusion_weight(&d, t, 0.0) == 1.0);
        }
}

/* Only what diffusers would compute alike has the files of a pipeline. */
static void test_pipeline(void **state)
{
    lw_unet_config u = lw_unet_small(), other;
    json_t *files = NULL, *none = NULL;
    (void)state;
    u.heads = 0;
    u.head_dim = 16;
    assert_ok(lw_net_pipeline(&u, &(lw_noise_schedule){.timesteps = 500}, &files));
    assert_int_equal(json_object_size(files), 2);
    assert_int_equal(json_integer_value(json_object_get(
                         json_object_get(files, "scheduler_config.json"), "num_train_timesteps")),
                     500);
    json_decref(files);
    other = u;
    other.latent_dim = 4;
    assert_false(lw_unet_is_diffusers(&other));
    assert_ok(lw_net_pipeline(&other, &(lw_noise_schedule){.timesteps = 500}, &none));
    other = u;
    other.head_dim = 0;
    other.heads = 4;
    other.channels[0] = 64; /* attention at two widths */
    other.attn[0] = true;
    assert_false(lw_unet_is_diffusers(&other));
    assert_ok(lw_net_pipeline(&other, &(lw_noise_schedule){.timesteps = 500}, &none));
    other = u;
    other.in_channels = 6;
    assert_ok(lw_net_pipeline(&other, &(lw_noise_schedule){.timesteps = 500}, &none));
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_diffusers), cmocka_unit_test(test_values),
        cmocka_unit_test(test_types),        cmocka_unit_test(test_all_of_diffusers),
        cmocka_unit_test(test_solver_steps), cmocka_unit_test(test_trailing_times),
        cmocka_unit_test(test_steps),        cmocka_unit_test(test_where_it_is_found),
        cmocka_unit_test(test_own),          cmocka_unit_test(test_noted),
        cmocka_unit_test(test_weights),      cmocka_unit_test(test_pipeline),
    };
    return cmocka_run_group_tests_name("diffusion", tests, scratch_make, scratch_remove);
}
