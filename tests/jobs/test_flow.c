/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rectified flows: moves as diffusers makes them, its scheduler_config.json key by key, the times that are trained, and
 * the order of the two samplers on a flow whose answer is known.
 */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "session/session_flow.h"
#include "session/session_unet.h"
#include "unit/config_keys.h"

/* ---- as diffusers ---------------------------------------------------------------------------- */

enum { N = 24 };

/* tools/golden/flow.py: data N(mu, s^2), answers off by bias mu. */
typedef struct known_flow {
    double *mu, *s, *start, bias;
} known_flow;

static void known_open(known_flow *m)
{
    int64_t n;
    lw_st_file *own = golden_open("sampler"), *f = golden_open("flow");
    double *bias = golden_get(f, "bias", &n);
    *m = (known_flow){golden_get(own, "mu", &n), golden_get(own, "s", &n),
                      golden_get(own, "xT", &n), bias[0]};
    free(bias);
    lw_st_close(&own);
    lw_st_close(&f);
}

static void known_close(known_flow *m)
{
    free(m->mu);
    free(m->s);
    free(m->start);
}

static double velocity(const known_flow *m, int i, double x, double q)
{
    double s2 = m->s[i] * m->s[i], off = x - (1.0 - q) * m->mu[i];
    return (q - (1.0 - q) * s2) * off / ((1.0 - q) * (1.0 - q) * s2 + q * q) - m->mu[i] +
           m->bias * m->mu[i];
}

typedef lw_diffusion_move move_maker(const lw_diffusion *, int32_t, int32_t);

/* One evaluation: x becomes what move k of n makes of it, `left` what the next one reads. */
static lw_diffusion_move evaluate(const known_flow *m, const lw_diffusion *d, move_maker *make,
                                  int32_t n, int32_t k, float x[N], float left[N])
{
    float y[N], v[N];
    lw_diffusion_move move = make(d, n, k), to_velocity = lw_velocity_move(&move);
    for (int i = 0; i < N; i++)
        y[i] = (float)velocity(m, i, (double)x[i], move.t / d->timesteps);
    memcpy(v, x, sizeof v);
    lw_diffusion_apply(&to_velocity, v, y, NULL, N);
    move.by.limit = (double)INFINITY; /* diffusers does not bound its last state */
    lw_diffusion_apply(&move, x, y, left, N);
    memcpy(left, v, sizeof v);
    return move;
}

static double follow(const lw_st_file *f, const char *name, const known_flow *m,
                     const lw_diffusion *d)
{
    char key[64];
    int64_t n, n_x;
    float x[N], left[N];
    double worst = 0.0;
    snprintf(key, sizeof key, "%s.t", name);
    double *t = golden_get(f, key, &n);
    snprintf(key, sizeof key, "%s.x", name);
    double *want = golden_get(f, key, &n_x);
    assert_int_equal(n_x, (n + 1) * N);
    assert_ok(lw_diffusion_check_steps(d, (int32_t)n, "--steps"));
    for (int i = 0; i < N; i++)
        x[i] = (float)m->start[i];
    for (int32_t k = 0; k < n; k++) {
        lw_diffusion_move move =
            evaluate(m, d, lw_str_starts(name, "heun") ? lw_heun_move : lw_euler_move, (int32_t)n,
                     k, x, left);
        if (!(fabs(move.t - t[k]) <= 1e-6 * t[k]))
            fail_msg("%s: time %d is %.9g, not %.9g", name, (int)k, move.t, t[k]);
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
    int followed = 0;
    lw_st_file *f = golden_open("flow");
    known_flow m;
    (void)state;
    known_open(&m);
    assert_ok(lw_json_load(GOLDEN "flow.json", &all));
    json_object_foreach(all, name, config)
    {
        assert_ok(lw_diffusion_from_json(config, name, &d));
        assert_true(lw_diffusion_flows(&d));
        d.spacing = strstr(name, "even") ? LW_SPACING_TRAILING : LW_SPACING_LINSPACE;
        double worst = follow(f, name, &m, &d);
        print_message("%s: %.2g\n", name, worst);
        assert_true(worst < 2e-6);
        followed++;
    }
    assert_int_equal(followed, 10);
    known_close(&m);
    lw_json_drop(&all);
    lw_st_close(&f);
}

/* ---- order ------------------------------------------------------------------------------------ */

/* Distance of what n evaluations make to the end of the line. */
static double distance(const known_flow *m, move_maker *make, int32_t n, const float *end)
{
    static lw_diffusion d;
    float x[N], left[N];
    double worst = 0.0;
    const lw_noise_schedule s = {.timesteps = 4000, .prediction = LW_PREDICT_FLOW};
    assert_ok(lw_diffusion_choose(&d, &s));
    for (int i = 0; i < N; i++)
        x[i] = (float)m->start[i];
    for (int32_t k = 0; k < n; k++)
        evaluate(m, &d, make, n, k, x, left);
    for (int i = 0; end && i < N; i++)
        worst = fmax(worst, fabs((double)(x[i] - end[i])));
    return worst;
}

/* x(q) - (1 - q) mu' of a Gaussian's flow keeps its multiple of the deviation: mu + s start is the end. */
static void test_order_of_convergence(void **state)
{
    known_flow m;
    float end[N];
    (void)state;
    known_open(&m);
    m.bias = 0.0;
    for (int i = 0; i < N; i++)
        end[i] = (float)(m.mu[i] + m.s[i] * m.start[i]);
    double e1 = distance(&m, lw_euler_move, 40, end), e2 = distance(&m, lw_euler_move, 80, end),
           h1 = distance(&m, lw_heun_move, 40, end), h2 = distance(&m, lw_heun_move, 80, end),
           odd = distance(&m, lw_heun_move, 39, end);
    print_message("euler %.2g %.2g, heun %.2g %.2g, of odd evaluations %.2g\n", e1, e2, h1, h2,
                  odd);
    assert_true(e1 / e2 > 1.8 && e1 / e2 < 2.2);
    assert_true(h1 / h2 > 3.2 && h1 / h2 < 4.8);
    assert_true(h1 < e1 / 4.0 && odd < e1);
    known_close(&m);
}

/* ---- times ------------------------------------------------------------------------------------ */

static void test_times(void **state)
{
    static lw_diffusion d;
    lw_noise_schedule s = {.timesteps = 1000, .prediction = LW_PREDICT_FLOW};
    double sum = 0.0, middle = 0.0, tail = 0.0, before = 0.0;
    (void)state;
    assert_ok(lw_diffusion_choose(&d, &s));
    assert_true(lw_flow_time(&d, 0, 0.0, 0.0) == 0.001 && lw_flow_time(&d, 999, 0.0, 0.0) == 1.0);
    for (int32_t k = 0; k < 1000; k++) {
        double t = lw_flow_time(&d, k, 0.5, 1.0), z = log(t / (1.0 - t)) - 0.5;
        assert_true(t > before && t < 1.0);
        before = t;
        sum += z;
        middle += fabs(z) < 1.0;
        tail += z > 1.959964;
    }
    /* Of a normal distribution: its mean, 68.27 % within one deviation, 2.5 % above 1.96. */
    assert_true(fabs(sum) < 1e-6 && fabs(middle / 1000.0 - 0.6827) < 0.002 && tail == 25.0);
    s.shift = 3.0;
    assert_ok(lw_diffusion_choose(&d, &s));
    assert_true(fabs(lw_flow_time(&d, 499, 0.0, 0.0) - 0.75) < 1e-12); /* 3 / 2 over 1 + 2 / 2 */
    assert_true(fabs(lw_euler_move(&d, 2, 1).t - 750.0) < 1e-9);
}

static void test_steps(void **state)
{
    static lw_diffusion d;
    (void)state;
    assert_ok(lw_diffusion_choose(
        &d, &(lw_noise_schedule){.timesteps = 20, .prediction = LW_PREDICT_FLOW}));
    assert_ok(lw_diffusion_check_steps(&d, 1, "--steps"));
    assert_ok(lw_diffusion_check_steps(&d, 20, "--steps"));
    assert_int_equal(lw_diffusion_check_steps(&d, 0, "--steps"), LW_EUSAGE);
    assert_int_equal(lw_diffusion_check_steps(&d, 21, "--steps"), LW_EUSAGE);
    d.spacing = LW_SPACING_LEADING;
    assert_int_equal(lw_diffusion_check_steps(&d, 4, "--steps"), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "noise alone"));
}

/* ---- key by key ------------------------------------------------------------------------------- */

static const config_row rows[] = {
    {"num_train_timesteps", "i", "400", KEPT},
    {"num_train_timesteps", "i", "0", REFUSED},
    {"num_train_timesteps", "i", "100000", REFUSED},
    {"shift", "in", "3", KEPT},
    {"shift", "in", "0", REFUSED},
    {"shift", "in", "-1", REFUSED},
    {"use_dynamic_shifting", "b", "true", REFUSED},
    {"base_shift", "in0", "0.9", NO_EFFECT}, /* of dynamic shifting, as the next four */
    {"max_shift", "in0", "2", NO_EFFECT},
    {"base_image_seq_len", "i0", "16", NO_EFFECT},
    {"max_image_seq_len", "i0", "64", NO_EFFECT},
    {"time_shift_type", "s", "\"linear\"", NO_EFFECT},
    {"invert_sigmas", "b", "true", REFUSED},
    {"shift_terminal", "in0", "0.02", REFUSED},
    {"use_karras_sigmas", "b0", "true", REFUSED},
    {"use_exponential_sigmas", "b0", "true", REFUSED},
    {"use_beta_sigmas", "b0", "true", REFUSED},
    {"stochastic_sampling", "b", "true", REFUSED},
};

static int read_into(const char *key, const char *value, lw_diffusion *d)
{
    json_t *j = json_pack("{s:s}", "_class_name", "FlowMatchEulerDiscreteScheduler"),
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

static void describe(const lw_diffusion *d, double out[8])
{
    for (int32_t k = 0; k < 4; k++) {
        lw_diffusion_move m = lw_heun_move(d, 4, k);
        out[2 * k] = m.t;
        out[2 * k + 1] = m.by.c1;
    }
}

static void test_values(void **state)
{
    static lw_diffusion plain, other;
    double before[8], after[8];
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
    check_types(read_changed, rows, LW_COUNT(rows));
    check_listed(rows, LW_COUNT(rows),
                 "FlowMatchEulerDiscreteScheduler FlowMatchHeunDiscreteScheduler");
}

/* What training writes is read as it was; where there is no scheduler_config.json config.json says it. */
static void test_own(void **state)
{
    static lw_diffusion ours, read;
    static const double shifts[] = {0.0, 1.0, 2.5};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(shifts); i++) {
        const lw_noise_schedule s = {
            .timesteps = 40, .prediction = LW_PREDICT_FLOW, .shift = shifts[i]};
        json_t *j = lw_diffusion_to_json(&s), *config = json_pack("{s:s}", "leeway_method", "flow");
        assert_ok(lw_diffusion_choose(&ours, &s));
        assert_ok(lw_diffusion_from_json(j, "scheduler_config.json", &read));
        assert_memory_equal(&ours, &read, sizeof ours);
        assert_ok(lw_diffusion_note(&s, true, config));
        assert_int_equal(json_object_size(config), 2 + (i == 2));
        assert_ok(lw_diffusion_find("/nowhere", config, &read));
        assert_memory_equal(&ours, &read, sizeof ours);
        json_object_set_new(config, "leeway_shift", json_real(-1.0));
        assert_int_equal(lw_diffusion_find("/nowhere", config, &read), LW_EFORMAT);
        json_decref(config);
        json_decref(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_diffusers), cmocka_unit_test(test_order_of_convergence),
        cmocka_unit_test(test_times),        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_own),
    };
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
