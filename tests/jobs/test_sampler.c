/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling: the reverse moves against a double implementation in closed form and against diffusers'
 * schedulers (tests/golden), a whole DDIM run against formulas written down here, and pictures
 * whose bits depend on (seed, number, class) only.
 */
#include "golden/golden.h"

#include <math.h>

#include "session/session_diffusion.h"
#include "session/session_sampler.h"
#include "cpu_device.h"

/* ---- moves, with a noise model in closed form ------------------------------------------------ */

enum { N = 24 };

typedef struct closed_form {
    double *mu, *s, *x0, *abar;
} closed_form;

static void model_read(const lw_st_file *f, closed_form *m)
{
    int64_t n;
    *m = (closed_form){golden_get(f, "mu", &n), golden_get(f, "s", &n), golden_get(f, "xT", &n),
                       golden_get(f, "alpha_bar", &n)};
    assert_int_equal(n, 1000);
}

static void model_free(closed_form *m)
{
    free(m->mu);
    free(m->s);
    free(m->x0);
    free(m->abar);
}

/* The best noise estimate for data N(mu, s^2) at time t. */
static void model_eps(const closed_form *m, const float *x, int32_t t, float *eps)
{
    double a = m->abar[t];
    for (int i = 0; i < N; i++)
        eps[i] = (float)(sqrt(1.0 - a) * ((double)x[i] - sqrt(a) * m->mu[i]) /
                         (a * m->s[i] * m->s[i] + 1.0 - a));
}

static void test_schedule(void **state)
{
    (void)state;
    static lw_diffusion d;
    closed_form m;
    lw_st_file *f = golden_open("sampler");
    model_read(f, &m);
    assert_ok(lw_diffusion_init(&d, 1000));
    for (int t = 0; t < 1000; t++)
        assert_true(fabs(d.alpha_bar[t] - m.abar[t]) <= 1e-12 * m.abar[t]);
    assert_int_equal(lw_diffusion_init(&d, 0), LW_EUSAGE);
    assert_int_equal(lw_diffusion_init(&d, LW_DDPM_MAX_STEPS + 1), LW_EUSAGE);
    model_free(&m);
    lw_st_close(&f);
}

static void test_ddim_moves(void **state)
{
    (void)state;
    static const int32_t counts[] = {50, 10, 7, 1};
    static lw_diffusion d;
    closed_form m;
    lw_st_file *f = golden_open("sampler");
    model_read(f, &m);
    assert_ok(lw_diffusion_init(&d, 1000));
    for (size_t c = 0; c < LW_COUNT(counts); c++) {
        char name[32];
        int64_t n, n_t;
        float x[N], eps[N];
        snprintf(name, sizeof name, "ddim%d.x", counts[c]);
        double *want = golden_get(f, name, &n);
        snprintf(name, sizeof name, "ddim%d.t", counts[c]);
        double *times = golden_get(f, name, &n_t);
        assert_int_equal(n, (counts[c] + 1) * N);
        assert_int_equal(n_t, counts[c]);
        for (int i = 0; i < N; i++)
            x[i] = (float)m.x0[i];
        for (int32_t k = 0; k < counts[c]; k++) {
            lw_diffusion_move move = lw_ddim_move(&d, counts[c], k);
            move.keep_eps = true; /* as tools/golden/sampler.py does */
            assert_int_equal(move.t, (int)times[k]);
            model_eps(&m, x, (int32_t)move.t, eps);
            lw_diffusion_apply(&move, x, eps, NULL, N);
            for (int i = 0; i < N; i++)
                assert_true(fabs((double)x[i] - want[(k + 1) * N + i]) < 3e-6);
        }
        free(want);
        free(times);
    }
    model_free(&m);
    lw_st_close(&f);
}

static void test_ancestral_moves(void **state)
{
    (void)state;
    static lw_diffusion d;
    closed_form m;
    int64_t n;
    float x[N], eps[N], noise[N];
    lw_st_file *f = golden_open("sampler");
    model_read(f, &m);
    double *want = golden_get(f, "ancestral.x", &n);
    assert_int_equal(n, 11 * N);
    assert_ok(lw_diffusion_init(&d, 1000));
    for (int i = 0; i < N; i++)
        x[i] = (float)m.x0[i];
    for (int32_t k = 0; k < 1000; k++) {
        char name[32];
        lw_diffusion_move move = lw_ancestral_move(&d, 1000, k);
        const int32_t t = (int32_t)move.t;
        double beta = d.beta[999 - k];
        assert_int_equal(t, 999 - k);
        /* Every time of the schedule takes its betas as they stand: no ratio's rounding. */
        assert_true(move.by.c3 == 1.0 / sqrt(1.0 - beta));
        assert_true(move.by.c1 == -beta / (sqrt(1.0 - d.alpha_bar[999 - k]) * sqrt(1.0 - beta)));
        if (t % 100 == 99)
            for (int i = 0; i < N; i++)
                assert_true(fabs((double)x[i] - want[(9 - t / 100) * N + i]) < 5e-5);
        snprintf(name, sizeof name, "ancestral.noise%d", (int)t);
        golden_unit(name, N, noise);
        model_eps(&m, x, t, eps);
        move.by.limit = (double)INFINITY; /* the reference does not bound its last state */
        lw_diffusion_apply(&move, x, eps, noise, N);
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)x[i] - want[10 * N + i]) < 5e-5);
    free(want);
    model_free(&m);
    lw_st_close(&f);
}

/* ---- moves, as diffusers makes them ---------------------------------------------------------- */

typedef lw_diffusion_move move_maker(const lw_diffusion *, int32_t, int32_t);

/* One trajectory of tools/golden/schedulers.py: NAME.N.t, the states NAME.N.x before moves
 * NAME.N.row and at the end. Returns the largest difference of a state. */
static double follow(const lw_st_file *f, const char *name, int32_t steps, move_maker *make_move,
                     bool keep_eps)
{
    static lw_diffusion d;
    closed_form m;
    char key[48], noise_name[32];
    int64_t n_t, n_rows, n_x, n_bias, n;
    float x[N], eps[N], noise[N];
    double worst = 0.0, *bias = golden_get(f, "bias", &n_bias);
    lw_st_file *own = golden_open("sampler");
    model_read(own, &m);
    snprintf(key, sizeof key, "%s.%d.t", name, (int)steps);
    double *t = golden_get(f, key, &n_t);
    snprintf(key, sizeof key, "%s.%d.row", name, (int)steps);
    double *row = golden_get(f, key, &n_rows);
    snprintf(key, sizeof key, "%s.%d.x", name, (int)steps);
    double *want = golden_get(f, key, &n_x), *mu = golden_get(own, "mu", &n);
    assert_int_equal(n_t, steps);
    assert_int_equal(n_x, n_rows * N);
    assert_ok(lw_diffusion_init(&d, 1000));
    for (int i = 0; i < N; i++)
        x[i] = (float)m.x0[i];
    for (int32_t k = 0, r = 0; k <= steps; k++) {
        if (k == (int32_t)row[r]) {
            for (int i = 0; i < N; i++)
                worst = fmax(worst, fabs((double)x[i] - want[r * N + i]));
            r++;
        }
        if (k == steps)
            break;
        lw_diffusion_move move = make_move(&d, steps, k);
        move.keep_eps = keep_eps;
        assert_int_equal(move.t, (int)t[k]);
        model_eps(&m, x, (int32_t)move.t, eps);
        for (int i = 0; i < N; i++)
            eps[i] += (float)(bias[0] * mu[i]);
        snprintf(noise_name, sizeof noise_name, "ancestral.noise%d", (int)move.t);
        golden_unit(noise_name, N, noise);
        move.by.limit = (double)INFINITY; /* the reference does not bound its last state */
        lw_diffusion_apply(&move, x, eps, noise, N);
    }
    free(bias);
    free(t);
    free(row);
    free(want);
    free(mu);
    model_free(&m);
    lw_st_close(&own);
    print_message("%s, %d: %.2g\n", name, (int)steps, worst);
    return worst;
}

static void test_ddim_as_diffusers(void **state)
{
    (void)state;
    static const int32_t counts[] = {1, 7, 10, 50};
    lw_st_file *f = golden_open("schedulers");
    for (size_t c = 0; c < LW_COUNT(counts); c++) {
        assert_true(follow(f, "ddim", counts[c], lw_ddim_move, false) < 5e-6);
        assert_true(follow(f, "ddim_kept", counts[c], lw_ddim_move, true) < 5e-6);
    }
    /* The two differ by far more than that, so that neither can stand for the other. */
    assert_true(follow(f, "ddim", 50, lw_ddim_move, true) > 0.01);
    lw_st_close(&f);
}

static void test_ancestral_as_diffusers(void **state)
{
    (void)state;
    static const int32_t counts[] = {1, 7, 10, 50, 250};
    lw_st_file *f = golden_open("schedulers");
    for (size_t c = 0; c < LW_COUNT(counts); c++)
        assert_true(follow(f, "ancestral", counts[c], lw_ancestral_move, false) < 5e-5);
    lw_st_close(&f);
}

/* ---- a network ------------------------------------------------------------------------------- */

typedef struct lab {
    lw_unet_config net;
    lw_network network; /* net on store */
    lw_store *store;
    lw_device *dev;
    double scale; /* of guidance; 0: none, and no null class */
} lab;

static void lab_open_guided(lab *l, lw_method method, int threads, double scale)
{
    const int32_t mult[] = {1, 2}, at[] = {4};
    l->net = lw_unet_small();
    assert_ok(lw_unet_set_levels(&l->net, 8, 8, mult, 2, at, 1));
    l->net.blocks = 1;
    l->net.heads = 2;
    l->net.norm_groups = 4;
    l->net.classes = 4;
    l->scale = scale;
    l->net.null_class = scale > 0.0;
    l->net.default_out_init = l->net.default_res_init = true;
    if (method == LW_METHOD_DRIFT) {
        l->net.latent_dim = 4;
        l->net.noise_h = l->net.noise_w = 2;
    }
    assert_ok(lw_unet_check(&l->net));
    assert_ok(lw_store_new(false, &l->store));
    assert_ok(lw_unet_declare(&l->net, l->store));
    lw_store_init(l->store, 11);
    l->network = lw_network_of(&lw_network_def_unet, &l->net, l->store);
    assert_ok(cpu_device(threads, lw_isa_best(), &l->dev));
}

static void lab_open(lab *l, lw_method method, int threads)
{
    lab_open_guided(l, method, threads, 0.0);
}

static void lab_close(lab *l)
{
    lw_store_free(&l->store);
    lw_backend_close(&l->dev);
}

enum { PIXELS = 8 * 8 * 3, MANY = 64 };

/* Pictures first .. first + n - 1 made `batch` at a time. */
static void make(const lab *l, lw_sampler_opts o, int32_t batch, int64_t first, int64_t n,
                 const int32_t *classes, float *out)
{
    LW_CLEANUP(lw_sampler_free) lw_sampler *s = NULL;
    o.batch = batch;
    o.weights = LW_SLAB_EMA;
    assert_ok(lw_sampler_new(l->dev, &l->network, &o, &s));
    assert_ok(lw_sampler_run(s, first, n, classes, NULL, out));
}

static void check_batches(lw_sampler_opts o)
{
    lab one, many;
    static float want[MANY * PIXELS], have[MANY * PIXELS];
    lab_open_guided(&one, o.method, 1, o.guidance_scale);
    lab_open_guided(&many, o.method, 3, o.guidance_scale);
    make(&one, o, 1, 0, MANY, NULL, want);
    for (int i = 0; i < MANY * PIXELS; i++)
        assert_true(isfinite(want[i]) && fabsf(want[i]) < 100.0f);
    static const int32_t batches[] = {7, 64};
    for (size_t i = 0; i < LW_COUNT(batches); i++) {
        make(&many, o, batches[i], 0, MANY, NULL, have);
        assert_memory_equal(want, have, sizeof want);
    }
    make(&many, o, 5, 13, 9, NULL, have); /* out of the middle */
    assert_memory_equal(want + 13 * PIXELS, have, 9 * PIXELS * sizeof *have);
    int32_t classes[MANY]; /* the classes that were the default, and others for half of them */
    for (int i = 0; i < MANY; i++)
        classes[i] = i % 4;
    for (int i = 0; i < MANY; i += 2)
        classes[i] = (i + 1) % 4;
    make(&many, o, 64, 0, MANY, classes, have);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(memcmp(want + i * PIXELS, have + i * PIXELS, PIXELS * sizeof *have) == 0,
                         i % 2);
    o.seed++;
    make(&many, o, 64, 0, MANY, NULL, have);
    for (int i = 0; i < MANY; i++)
        assert_memory_not_equal(want + i * PIXELS, have + i * PIXELS, PIXELS * sizeof *have);
    lab_close(&one);
    lab_close(&many);
}

static void test_one_step_batches(void **state)
{
    (void)state;
    check_batches((lw_sampler_opts){.method = LW_METHOD_DRIFT, .seed = 3});
}

static void test_ddim_batches(void **state)
{
    (void)state;
    check_batches((lw_sampler_opts){
        .method = LW_METHOD_DDPM, .kind = LW_SAMPLER_DDIM, .steps = 5, .seed = 3});
}

static void test_solver_batches(void **state)
{
    (void)state;
    check_batches((lw_sampler_opts){
        .method = LW_METHOD_DDPM, .kind = LW_SAMPLER_DPM_SOLVER, .steps = 5, .seed = 3});
}

static void test_flow_batches(void **state)
{
    (void)state;
    check_batches((lw_sampler_opts){
        .method = LW_METHOD_FLOW, .kind = LW_SAMPLER_HEUN, .steps = 5, .seed = 3});
}

static void test_ancestral_batches(void **state)
{
    (void)state;
    check_batches((lw_sampler_opts){
        .method = LW_METHOD_DDPM, .kind = LW_SAMPLER_ANCESTRAL, .timesteps = 12, .seed = 3});
    check_batches((lw_sampler_opts){.method = LW_METHOD_DDPM,
                                    .kind = LW_SAMPLER_ANCESTRAL,
                                    .timesteps = 12,
                                    .steps = 4,
                                    .seed = 3});
}

/* Evaluations are as many as asked for, and every number of them makes other pictures. */
static void test_ancestral_counts(void **state)
{
    (void)state;
    lab l;
    static float x[3][2 * PIXELS];
    static const int32_t asked[] = {5, 10, 0}, have[] = {5, 10, 20};
    lab_open(&l, LW_METHOD_DDPM, 1);
    for (size_t i = 0; i < LW_COUNT(asked); i++) {
        LW_CLEANUP(lw_sampler_free) lw_sampler *s = NULL;
        const lw_sampler_opts o = {.method = LW_METHOD_DDPM,
                                   .kind = LW_SAMPLER_ANCESTRAL,
                                   .timesteps = 20,
                                   .steps = asked[i],
                                   .batch = 2,
                                   .weights = LW_SLAB_EMA};
        assert_ok(lw_sampler_new(l.dev, &l.network, &o, &s));
        assert_int_equal(lw_sampler_evaluations(s), have[i]);
        assert_int_equal(lw_sampler_get_kind(s), LW_SAMPLER_ANCESTRAL);
        assert_ok(lw_sampler_run(s, 0, 2, NULL, NULL, x[i]));
    }
    assert_memory_not_equal(x[0], x[1], sizeof x[0]);
    assert_memory_not_equal(x[1], x[2], sizeof x[1]);
    lab_close(&l);
}

/* A network and the first noise from a plan without passes: what the oracles of a whole run stand
 * on. */
typedef struct oracle {
    lw_graph *g;
    lw_plan *plan;
    lw_exec *e;
    int32_t n; /* pictures */
    double scale;
    lw_tick tick;
} oracle;

static void oracle_open(oracle *o, const lab *l, int32_t n, uint64_t seed, double *x)
{
    *o = (oracle){.n = n, .scale = l->scale, .tick = {seed, 0}};
    assert_ok(lw_graph_new(&o->g));
    lw_builder b = {.g = o->g, .params = lw_store_params(l->store)};
    lw_type image = lw_type_of(LW_F32, 4, n, 8, 8, 3);
    lw_val rows = lw_input(o->g, "rows", lw_type_of(LW_I64, 1, n));
    lw_network_in in = {.x = lw_input(o->g, "x", image),
                        .t = lw_input(o->g, "t", lw_type_of(LW_F32, 1, n)),
                        .classes = lw_input(o->g, "classes", lw_type_of(LW_I32, 1, n))};
    lw_graph_output_add(o->g, "eps", lw_unet(&b, &l->net, in), LW_NOVAL);
    lw_graph_output_add(
        o->g, "noise", lw_random(o->g, "sample.noise", LW_RANDOM_NORMAL, 0, image, rows), LW_NOVAL);
    assert_ok(lw_compile(o->g, l->dev, &(lw_compile_opts){.opt = 0}, &o->plan));
    assert_ok(lw_exec_new(o->plan, LW_SLAB_EMA, &o->e));
    for (int32_t i = 0; i < n; i++)
        ((int64_t *)lw_exec_write(o->e, "rows"))[i] = i;
    lw_exec_run(o->e, &o->tick);
    for (int i = 0; i < n * PIXELS; i++)
        x[i] = (double)((const float *)lw_exec_read(o->e, "noise"))[i];
}

/* One run; without a class all are of the null class, number 4. */
static const float *oracle_run(oracle *o, const double *x, double t, bool classes)
{
    for (int i = 0; i < o->n * PIXELS; i++)
        ((float *)lw_exec_write(o->e, "x"))[i] = (float)x[i];
    for (int i = 0; i < o->n; i++) {
        ((float *)lw_exec_write(o->e, "t"))[i] = (float)t;
        ((int32_t *)lw_exec_write(o->e, "classes"))[i] = classes ? i % 4 : 4;
    }
    lw_exec_run(o->e, &o->tick);
    return lw_exec_read(o->e, "eps");
}

/* Guided: of two runs, w = scale - 1, (1 + w) with - w without, as Ho and Salimans (2022) write it. */
static const float *oracle_eps(oracle *o, const double *x, double t)
{
    static float with[6 * PIXELS];
    const size_t count = (size_t)o->n * PIXELS;
    const double w = o->scale - 1.0;
    if (o->scale == 0.0)
        return oracle_run(o, x, t, true);
    memcpy(with, oracle_run(o, x, t, true), count * sizeof *with);
    const float *without = oracle_run(o, x, t, false);
    for (size_t i = 0; i < count; i++)
        with[i] = (float)((1.0 + w) * (double)with[i] - w * (double)without[i]);
    return with;
}

static void oracle_close(oracle *o)
{
    lw_exec_free(&o->e);
    lw_plan_free(&o->plan);
    lw_graph_free(&o->g);
}

static double signal_left(int32_t t)
{
    double abar = 1.0;
    for (int32_t s = 0; s <= t; s++)
        abar *= 1.0 - (1e-4 + (0.02 - 1e-4) * s / 999.0);
    return abar;
}

/* DDIM in double from the paper. */
static void ddim_oracle(const lab *l, int32_t steps, bool keep_eps, int32_t n, uint64_t seed,
                        double *x)
{
    oracle o;
    oracle_open(&o, l, n, seed, x);
    for (int32_t k = steps; k-- > 0;) {
        int32_t t = k * (1000 / steps);
        double abar = signal_left(t), prev = k ? signal_left(t - 1000 / steps) : 1.0;
        const float *said = oracle_eps(&o, x, t);
        for (int i = 0; i < n * PIXELS; i++) {
            double eps = (double)said[i];
            double x0 = fmin(fmax((x[i] - sqrt(1.0 - abar) * eps) / sqrt(abar), -1.0), 1.0);
            if (!keep_eps)
                eps = (x[i] - sqrt(abar) * x0) / sqrt(1.0 - abar);
            x[i] = sqrt(prev) * x0 + sqrt(1.0 - prev) * eps;
            if (k == 0)
                x[i] = fmin(fmax(x[i], -1.0), 1.0);
        }
    }
    oracle_close(&o);
}

/* DPM-Solver++(2M) in double, as the paper's algorithm 2 is written: D = (1 + 1 / 2r) x0 - 1 / 2r
 * x0_before. */
static void solver_oracle(const lab *l, int32_t steps, int32_t n, uint64_t seed, double *x)
{
    oracle o;
    static double before[6 * PIXELS];
    double lambda_before = 0.0;
    oracle_open(&o, l, n, seed, x);
    for (int32_t k = 0; k < steps; k++) {
        int32_t t = (int32_t)rint((steps - k) * 999.0 / steps),
                to = (int32_t)rint((steps - k - 1) * 999.0 / steps);
        double abar = signal_left(t), next = k + 1 < steps ? signal_left(to) : 1.0;
        double lambda = 0.5 * log(abar / (1.0 - abar)), h = 0.5 * log(next / (1.0 - next)) - lambda;
        double r = (lambda - lambda_before) / h;
        const float *said = oracle_eps(&o, x, t);
        for (int i = 0; i < n * PIXELS; i++) {
            double x0 = (x[i] - sqrt(1.0 - abar) * (double)said[i]) / sqrt(abar), D;
            x0 = fmin(fmax(x0, -1.0), 1.0);
            D = k && k + 1 < steps ? (1.0 + 0.5 / r) * x0 - 0.5 / r * before[i] : x0;
            x[i] = sqrt(1.0 - next) / sqrt(1.0 - abar) * x[i] - sqrt(next) * expm1(-h) * D;
            before[i] = x0;
        }
        lambda_before = lambda;
    }
    oracle_close(&o);
}

/* An untrained network as noise estimate makes the process chaotic: a rounding grows to 0.2 in 50
 * steps. */
static void calm(lab *l)
{
    float *w = lw_store_edit(l->store, lw_store_find(l->store, "conv_out.weight"), LW_SLAB_EMA);
    for (int i = 0; i < 3 * 3 * 3 * 8; i++)
        w[i] *= 0.02f;
    lw_store_touch(l->store, LW_SLAB_EMA);
}

static void test_ddim_of_a_network(void **state)
{
    (void)state;
    lab l;
    static float have[6 * PIXELS];
    static double want[6 * PIXELS];
    lab_open(&l, LW_METHOD_DDPM, 1);
    calm(&l);
    static const int32_t counts[] = {1, 4, 50};
    for (size_t c = 0; c < 2 * LW_COUNT(counts); c++) {
        double worst = 0.0;
        lw_sampler_opts o = {.method = LW_METHOD_DDPM,
                             .kind = LW_SAMPLER_DDIM,
                             .steps = counts[c / 2],
                             .keep_eps = c % 2,
                             .seed = 9};
        make(&l, o, 6, 0, 6, NULL, have);
        ddim_oracle(&l, o.steps, o.keep_eps, 6, 9, want);
        for (int i = 0; i < 6 * PIXELS; i++)
            worst = fmax(worst, fabs((double)have[i] - want[i]));
        print_message("DDIM-%d%s against double: %.2g\n", (int)o.steps,
                      o.keep_eps ? ", eps kept," : "", worst);
        assert_true(worst < 2e-4);
    }
    lab_close(&l);
}

static void test_solver_of_a_network(void **state)
{
    (void)state;
    lab l;
    static float have[6 * PIXELS], ddim[6 * PIXELS];
    static double want[6 * PIXELS];
    static const int32_t counts[] = {1, 2, 3, 10, 40};
    lab_open(&l, LW_METHOD_DDPM, 1);
    calm(&l);
    for (size_t c = 0; c < LW_COUNT(counts); c++) {
        double worst = 0.0, apart = 0.0;
        lw_sampler_opts o = {
            .method = LW_METHOD_DDPM, .kind = LW_SAMPLER_DPM_SOLVER, .steps = counts[c], .seed = 9};
        make(&l, o, 6, 0, 6, NULL, have);
        solver_oracle(&l, o.steps, 6, 9, want);
        o.kind = LW_SAMPLER_DDIM;
        o.spacing = 1 + LW_SPACING_LINSPACE;
        make(&l, o, 6, 0, 6, NULL, ddim);
        for (int i = 0; i < 6 * PIXELS; i++) {
            worst = fmax(worst, fabs((double)have[i] - want[i]));
            apart = fmax(apart, fabs((double)have[i] - (double)ddim[i]));
        }
        print_message("DPM-Solver-%d against double: %.2g, against DDIM: %.2g\n", (int)o.steps,
                      worst, apart);
        assert_true(worst < 2e-4);
        assert_true(apart > 1e-3); /* nobody mistakes one for the other */
    }
    lab_close(&l);
}

/* Euler's and Heun's method in double, as textbooks have them, from q = 1 down to 0. */
static void flow_oracle(const lab *l, bool heun, int32_t evaluations, int32_t n, uint64_t seed,
                        double *x)
{
    oracle o;
    static double v[6 * PIXELS], ahead[6 * PIXELS];
    const int32_t steps = heun ? (evaluations + 1) / 2 : evaluations;
    oracle_open(&o, l, n, seed, x);
    for (int32_t k = 0, left = evaluations; k < steps; k++) {
        double q = 1.0 - (double)k / steps, h = -1.0 / steps;
        const float *said = oracle_eps(&o, x, 1000.0 * q);
        for (int i = 0; i < n * PIXELS; i++) {
            v[i] = (double)said[i];
            ahead[i] = x[i] + h * v[i];
        }
        if (heun && --left > 0) {
            said = oracle_eps(&o, ahead, 1000.0 * (q + h));
            for (int i = 0; i < n * PIXELS; i++)
                v[i] = 0.5 * (v[i] + (double)said[i]);
            left--;
        }
        for (int i = 0; i < n * PIXELS; i++)
            x[i] += h * v[i];
    }
    for (int i = 0; i < n * PIXELS; i++)
        x[i] = fmin(fmax(x[i], -1.0), 1.0);
    oracle_close(&o);
}

static void test_flow_of_a_network(void **state)
{
    (void)state;
    lab l;
    static float have[6 * PIXELS], euler[6 * PIXELS];
    static double want[6 * PIXELS];
    static const int32_t counts[] = {1, 2, 3, 4, 11, 40};
    lab_open(&l, LW_METHOD_FLOW, 1);
    for (int i = 0; i < 2 * (int)LW_COUNT(counts); i++) {
        double worst = 0.0, apart = 0.0;
        const bool heun = i % 2;
        lw_sampler_opts o = {.method = LW_METHOD_FLOW,
                             .kind = heun ? LW_SAMPLER_HEUN : LW_SAMPLER_AUTO,
                             .steps = counts[i / 2],
                             .seed = 9};
        make(&l, o, 6, 0, 6, NULL, have);
        flow_oracle(&l, heun, o.steps, 6, 9, want);
        for (int p = 0; p < 6 * PIXELS; p++) {
            worst = fmax(worst, fabs((double)have[p] - want[p]));
            apart = fmax(apart, fabs((double)(have[p] - euler[p])));
        }
        print_message("%s-%d against double: %.2g\n", heun ? "Heun" : "Euler", (int)o.steps, worst);
        assert_true(worst < 2e-4);
        assert_true(!heun || o.steps == 1 || apart > 1e-3); /* not taken for the other */
        memcpy(euler, have, sizeof euler);
    }
    lab_close(&l);
}

/* ---- guidance -------------------------------------------------------------------------------- */

static void test_guided_batches(void **state)
{
    (void)state;
    check_batches((lw_sampler_opts){.method = LW_METHOD_DDPM,
                                    .kind = LW_SAMPLER_DPM_SOLVER,
                                    .steps = 5,
                                    .guidance_scale = 2.5,
                                    .seed = 3});
    check_batches((lw_sampler_opts){.method = LW_METHOD_DDPM,
                                    .kind = LW_SAMPLER_ANCESTRAL,
                                    .timesteps = 12,
                                    .guidance_scale = 2.5,
                                    .seed = 3});
}

/* Every sampler without noise on the way, against two runs of the network whose answers are put together by hand. */
static void test_guided_by_two_runs(void **state)
{
    (void)state;
    static const lw_sampler_kind kinds[] = {LW_SAMPLER_DDIM, LW_SAMPLER_DPM_SOLVER,
                                            LW_SAMPLER_EULER, LW_SAMPLER_HEUN};
    static float have[6 * PIXELS], plain[6 * PIXELS];
    static double want[6 * PIXELS];
    enum { STEPS = 10 };
    for (size_t k = 0; k < LW_COUNT(kinds); k++) {
        const lw_method method = k < 2 ? LW_METHOD_DDPM : LW_METHOD_FLOW;
        lw_sampler_opts o = {.method = method, .kind = kinds[k], .steps = STEPS, .seed = 9};
        double worst = 0.0, apart = 0.0;
        lab l;
        lab_open_guided(&l, method, 1, 3.0);
        if (method == LW_METHOD_DDPM)
            calm(&l);
        make(&l, o, 6, 0, 6, NULL, plain);
        o.guidance_scale = l.scale;
        make(&l, o, 6, 0, 6, NULL, have);
        if (kinds[k] == LW_SAMPLER_DDIM)
            ddim_oracle(&l, STEPS, false, 6, 9, want);
        else if (kinds[k] == LW_SAMPLER_DPM_SOLVER)
            solver_oracle(&l, STEPS, 6, 9, want);
        else
            flow_oracle(&l, kinds[k] == LW_SAMPLER_HEUN, STEPS, 6, 9, want);
        for (int i = 0; i < 6 * PIXELS; i++) {
            worst = fmax(worst, fabs((double)have[i] - want[i]));
            apart = fmax(apart, fabs((double)(have[i] - plain[i])));
        }
        print_message("%s-%d, guided, against double: %.2g, against none: %.2g\n",
                      lw_sampler_kind_name(kinds[k]), STEPS, worst, apart);
        assert_true(worst < 2e-4);
        assert_true(apart > 1e-3);
        lab_close(&l);
    }
}

typedef struct seen_steps {
    int32_t n, done[4];
} seen_steps;

static int see_step(void *self, int64_t first, int64_t n, int32_t done, const float *y)
{
    seen_steps *s = self;
    (void)first;
    (void)n;
    (void)y;
    s->done[s->n++ % 4] = done;
    return 0;
}

/* A scale of 1 is none, to the bit; any other takes two evaluations a step. */
static void test_guided_counts(void **state)
{
    (void)state;
    static const double scales[] = {0.0, 1.0, 1.5};
    static float x[3][2 * PIXELS];
    lab l;
    lab_open_guided(&l, LW_METHOD_DDPM, 1, 1.5);
    for (size_t i = 0; i < LW_COUNT(scales); i++) {
        LW_CLEANUP(lw_sampler_free) lw_sampler *s = NULL;
        seen_steps seen = {0};
        const lw_sampler_opts o = {.method = LW_METHOD_DDPM,
                                   .steps = 3,
                                   .guidance_scale = scales[i],
                                   .batch = 2,
                                   .weights = LW_SLAB_EMA};
        assert_ok(lw_sampler_new(l.dev, &l.network, &o, &s));
        assert_int_equal(lw_sampler_evaluations(s), i == 2 ? 6 : 3);
        lw_sampler_watch(s, see_step, &seen);
        assert_ok(lw_sampler_run(s, 0, 2, NULL, NULL, x[i]));
        assert_int_equal(seen.n, 3);
        assert_int_equal(seen.done[0], i == 2 ? 2 : 1);
        assert_int_equal(seen.done[2], lw_sampler_evaluations(s));
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_not_equal(x[0], x[2], sizeof x[0]);
    lab_close(&l);
}

/* Where the class changes nothing, no scale does. */
static void test_guided_without_a_difference(void **state)
{
    (void)state;
    static float plain[6 * PIXELS], guided[6 * PIXELS];
    double worst = 0.0;
    lab l;
    lw_sampler_opts o = {.method = LW_METHOD_DDPM, .steps = 5, .seed = 9};
    lab_open_guided(&l, LW_METHOD_DDPM, 1, 5.0);
    calm(&l);
    float *rows = lw_store_edit(l.store, lw_store_find(l.store, "class_embedding.weight"),
                                LW_SLAB_EMA);
    for (int32_t r = 1; r < lw_unet_class_rows(&l.net); r++)
        memcpy(rows + r * 4 * l.net.channels[0], rows,
               sizeof *rows * 4 * (size_t)l.net.channels[0]);
    lw_store_touch(l.store, LW_SLAB_EMA);
    make(&l, o, 6, 0, 6, NULL, plain);
    o.guidance_scale = l.scale;
    make(&l, o, 6, 0, 6, NULL, guided);
    for (int i = 0; i < 6 * PIXELS; i++)
        worst = fmax(worst, fabs((double)(plain[i] - guided[i])));
    print_message("guided by no difference: %.2g\n", worst);
    assert_true(worst < 1e-5);
    lab_close(&l);
}

/* A spacing asked for stands in place of the schedule's. */
static void test_spacing(void **state)
{
    (void)state;
    lab l;
    static float x[3][2 * PIXELS];
    static lw_diffusion trailing;
    lw_sampler_opts o = {.method = LW_METHOD_DDPM, .kind = LW_SAMPLER_DDIM, .steps = 3};
    lab_open(&l, LW_METHOD_DDPM, 1);
    make(&l, o, 2, 0, 2, NULL, x[0]);
    o.spacing = 1 + LW_SPACING_TRAILING;
    make(&l, o, 2, 0, 2, NULL, x[1]);
    assert_ok(lw_diffusion_init(&trailing, 1000));
    trailing.spacing = LW_SPACING_TRAILING;
    o = (lw_sampler_opts){.method = LW_METHOD_DDPM, .steps = 3, .diffusion = &trailing};
    make(&l, o, 2, 0, 2, NULL, x[2]);
    assert_memory_not_equal(x[0], x[1], sizeof x[0]);
    assert_memory_equal(x[1], x[2], sizeof x[1]);
    o.spacing = 1 + LW_SPACING_LEADING;
    make(&l, o, 2, 0, 2, NULL, x[2]);
    assert_memory_equal(x[0], x[2], sizeof x[0]);
    lab_close(&l);
}

static void test_what_does_not_go_together(void **state)
{
    (void)state;
    lab l;
    lw_sampler *s = NULL;
    lab_open(&l, LW_METHOD_DDPM, 1);
    static const lw_sampler_opts bad[] = {
        {.method = LW_METHOD_DRIFT, .kind = LW_SAMPLER_DDIM, .batch = 1},
        {.method = LW_METHOD_DRIFT, .kind = LW_SAMPLER_ONE_STEP, .steps = 2, .batch = 1},
        {.method = LW_METHOD_DRIFT, .spacing = 1 + LW_SPACING_TRAILING, .batch = 1},
        {.method = LW_METHOD_DDPM, .kind = LW_SAMPLER_ONE_STEP, .batch = 1},
        {.method = LW_METHOD_DDPM, .kind = LW_SAMPLER_ANCESTRAL, .steps = 1001, .batch = 1},
        {.method = LW_METHOD_DDPM, .kind = LW_SAMPLER_ANCESTRAL, .steps = -1, .batch = 1},
        {.method = LW_METHOD_DRIFT, .kind = LW_SAMPLER_DPM_SOLVER, .batch = 1},
        {.method = LW_METHOD_DDPM, .kind = LW_SAMPLER_DPM_SOLVER, .steps = 1000, .batch = 1},
        {.method = LW_METHOD_DDPM, .steps = 1001, .batch = 1},
        {.method = LW_METHOD_DDPM, .steps = -1, .batch = 1},
        {.method = LW_METHOD_DDPM, .kind = LW_SAMPLER_EULER, .batch = 1},
        {.method = LW_METHOD_FLOW, .kind = LW_SAMPLER_DDIM, .batch = 1},
        {.method = LW_METHOD_FLOW, .kind = LW_SAMPLER_ONE_STEP, .batch = 1},
        {.method = LW_METHOD_FLOW, .steps = 1001, .batch = 1},
        {.method = LW_METHOD_FLOW, .spacing = 1 + LW_SPACING_LEADING, .batch = 1},
        {.method = LW_METHOD_FLOW, .guidance_scale = 2, .batch = 1}, /* no null class */
        {.method = LW_METHOD_DRIFT, .guidance_scale = 2, .batch = 1},
    };
    for (size_t i = 0; i < LW_COUNT(bad); i++)
        assert_int_equal(lw_sampler_new(l.dev, &l.network, &bad[i], &s), LW_EUSAGE);
    assert_null(s);
    lab_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_ddim_moves),
        cmocka_unit_test(test_ddim_as_diffusers),
        cmocka_unit_test(test_ancestral_as_diffusers),
        cmocka_unit_test(test_ancestral_counts),
        cmocka_unit_test(test_ancestral_moves),
        cmocka_unit_test(test_one_step_batches),
        cmocka_unit_test(test_ddim_batches),
        cmocka_unit_test(test_ancestral_batches),
        cmocka_unit_test(test_ddim_of_a_network),
        cmocka_unit_test(test_solver_batches),
        cmocka_unit_test(test_solver_of_a_network),
        cmocka_unit_test(test_flow_batches),
        cmocka_unit_test(test_flow_of_a_network),
        cmocka_unit_test(test_guided_batches),
        cmocka_unit_test(test_guided_by_two_runs),
        cmocka_unit_test(test_guided_counts),
        cmocka_unit_test(test_guided_without_a_difference),
        cmocka_unit_test(test_spacing),
        cmocka_unit_test(test_what_does_not_go_together),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
