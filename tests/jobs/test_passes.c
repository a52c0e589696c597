/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noise in frozen networks: which modules are sites by each library's list, what dropout at one of them
 * does to the output, and that a row's bits depend on its picture and its id alone.
 */
#include <math.h>

#include "jobs/frozen_fixture.h"
#include "session/session_passes.h"

enum { MOST = 16384 };

/* ---- lists ------------------------------------------------------------------------------------ */

/* Networks of two blocks: what a published one of L blocks has is the same with L for 2. */
static void test_lists(void **state)
{
    static const struct {
        const char *network, *list;
        int sites, live;
    } want[] = {
        {"network_clip", "", 12, 12}, /* transformers: q, k, v, out_proj, fc1, fc2 */
        {"network_clip", "hf", 12, 12},
        {"network_clip", "open_clip", 6, 6}, /* out_proj, c_fc, c_proj */
        {"network_clip", "open_clip-2.24", 6, 4},
        {"network_clip", "mlp-down", 2, 2},
        {"network_clip", "attention", 8, 8},
        {"network_clip", "mlp,last:1", 2, 2},
        {"network_clip", "blocks", 2, 2},
        {"network_siglip", "hf", 15, 14}, /* and the pool head: fc1, fc2, a dead out_proj */
        {"network_siglip", "open_clip", 13 + 11, 13 + 11},
        {"network_siglip_timm", "timm", 13 + 11,
         13 + 11}, /* its own: pos, 3 a block, 4 of the head */
        {"network_dinov2", "hf", 12, 12},
        {"network_mobilenet_torchvision", "", 17, 17},
        {"network_mobilenet_torchvision", "depth", 11, 11}, /* those that keep the shape */
        {"network_mobilenet_torchvision", "head", 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(want); i++) {
        lw_network *net = open_network(want[i].network);
        lw_sites s;
        assert_ok(lw_sites_find(net, want[i].list, &s));
        printf("%s %s: %d sites, %d live (%s ..)\n", want[i].network, s.list, (int)s.n, (int)s.live,
               s.of[0].module);
        assert_int_equal(s.n, want[i].sites);
        assert_int_equal(s.live, want[i].live);
        lw_sites_clear(&s);
        lw_network_close(&net);
    }
}

static void test_names(void **state)
{
    lw_network *net = open_network("network_clip");
    lw_sites s;
    (void)state;
    assert_ok(lw_sites_find(net, "open_clip,visual.transformer.resblocks.1.mlp.c_fc", &s));
    assert_int_equal(s.n, 1);
    assert_string_equal(s.of[0].layer, "encoder.layers.1.mlp.fc1");
    assert_int_equal(s.of[0].block, 1);
    lw_sites_clear(&s);
    assert_ok(lw_sites_find(net, "vision_model.encoder.layers.0.self_attn.k_proj", &s));
    assert_int_equal(s.of[0].part, 1);
    assert_int_equal(s.of[0].of, 3);
    lw_sites_clear(&s);
    assert_int_equal(lw_sites_find(net, "mlp-dow", &s), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "did you mean 'mlp-down'"));
    assert_int_equal(lw_sites_find(net, "vision_model.encoder.layers.0.mlp.fc3", &s), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "did you mean 'vision_model.encoder.layers.0.mlp.fc"));
    assert_int_equal(lw_sites_find(net, "hf,timm", &s), LW_EUSAGE);
    assert_int_equal(lw_sites_find(net, "mlp,attention", &s), LW_EUSAGE);
    lw_network_close(&net);
}

/* ---- passes ----------------------------------------------------------------------------------- */

typedef struct noisy {
    lw_network *net;
    lw_sites sites;
    lw_noise noise;
    lw_layer_hook hook;
    lw_passes *passes;
} noisy;

static int fill(void *self, int64_t first, int64_t n, float *dst)
{
    int32_t side = *(const int32_t *)self; /* a corner of the picture */
    for (int64_t i = 0; i < n; i++)
        for (int64_t y = 0; y < side; y++, dst += side * 3)
            memcpy(dst, picture[first + i] + y * SIDE * 3, sizeof *dst * (size_t)side * 3);
    return 0;
}

static void open_noisy_how(noisy *t, const char *network, const char *list, lw_noise noise,
                           lw_passes_opts how);

/* Both pictures are kept. */
static void open_noisy(noisy *t, const char *network, const char *list, lw_noise noise,
                       int pictures, int rows)
{
    open_noisy_how(t, network, list, noise, (lw_passes_opts){.pictures = pictures, .rows = rows});
}

static void open_noisy_how(noisy *t, const char *network, const char *list, lw_noise noise,
                           lw_passes_opts o)
{
    t->net = open_network(network);
    assert_ok(lw_sites_find(t->net, list, &t->sites));
    t->noise = noise;
    t->noise.sites = &t->sites;
    t->hook = lw_noise_hook(&t->noise);
    t->net->hook = &t->hook;
    int32_t side = lw_network_side(t->net, 0);
    side = LW_MIN(side, SIDE);
    o.height = o.width = side;
    o.output = "pooled";
    o.keep = 2;
    assert_ok(lw_passes_new(dev, t->net, &o, &t->passes));
    assert_ok(lw_passes_prefix(t->passes, 0, 2, fill, &side, NULL));
}

static void close_noisy(noisy *t)
{
    lw_passes_free(&t->passes);
    lw_sites_clear(&t->sites);
    lw_network_close(&t->net);
}

/* Passes 0 .. n - 1 of a place, so many rows at once. */
static void run(const noisy *t, int place, int n, int rows, float *out)
{
    const lw_tick tick = {.seed = 3, .step = 2};
    int dim = lw_passes_get_info(t->passes).dim;
    for (int at = 0; at < n; at += rows) {
        lw_pass_row row[64];
        int m = LW_MIN(rows, n - at);
        for (int i = 0; i < m; i++)
            row[i] = (lw_pass_row){place, 1000 * place + at + i};
        assert_ok(lw_passes_run(t->passes, row, m, &tick, out + (int64_t)at * dim));
    }
}

/* The last layer of SigLIP's head: pooled = y + dropout(f), so each number of a pass is y or
 * y + f / (1 - p), and its variance p / (1 - p) f^2. */
static void test_variance(void **state)
{
    enum { T = 2000 };
    const double p = 0.25;
    noisy t;
    (void)state;
    open_noisy(&t, "network_siglip", "vision_model.head.mlp.fc2", (lw_noise){.p = (float)p}, 1, 50);
    int dim = lw_passes_get_info(t.passes).dim, dropped = 0;
    float *x = malloc(sizeof *x * (size_t)(T * dim));
    double mean_ratio = 0;
    run(&t, 1, T, 50, x);
    for (int d = 0; d < dim; d++) {
        double low = (double)x[d], high = low, sum = 0, square = 0;
        for (int i = 0; i < T; i++) {
            low = fmin(low, (double)x[i * dim + d]);
            high = fmax(high, (double)x[i * dim + d]);
        }
        double middle = (low + high) / 2, f = (high - low) * (1 - p);
        for (int i = 0; i < T; i++) {
            double v = (double)x[i * dim + d];
            assert_true(fabs(v - low) < 1e-6 || fabs(v - high) < 1e-6); /* one of two values */
            sum += v - middle;
            square += (v - middle) * (v - middle);
        }
        double mean = sum / T, variance = square / T - mean * mean;
        mean_ratio += variance / (p / (1 - p) * f * f) / dim;
        dropped += mean < 0 ? 1 : 0;
    }
    printf("variance / (p / (1 - p) f^2), mean over %d numbers: %.4f\n", dim, mean_ratio);
    assert_true(fabs(mean_ratio - 1) < 0.02);
    assert_true(dropped > 0 && dropped < dim); /* f has both signs */
    free(x);
    close_noisy(&t);
}

/* The same bits for one row at a time and many, one picture in the prefix and two, alone and after
 * other rows, and for as many threads as one likes. */
static void check_bits(const char *network, const char *list, lw_noise noise)
{
    enum { T = 7 };
    static float one[MOST], many[MOST];
    noisy a, b;
    open_noisy(&a, network, list, noise, 1, 1);
    open_noisy(&b, network, list, noise, 2, 5);
    int dim = lw_passes_get_info(a.passes).dim;
    assert_true(T * dim <= MOST);
    for (int place = 0; place < 2; place++) {
        run(&a, place, T, 1, one);
        run(&b, place, T, 5, many);
        assert_memory_equal(one, many, sizeof *one * (size_t)(T * dim));
        assert_memory_not_equal(one, one + dim, sizeof *one * (size_t)dim);
    }
    close_noisy(&a);
    close_noisy(&b);
}

/* Another number of rows keeps what is kept; without the cut, and without fusion where no product is
 * fused with a curve, the bits are the same. */
static void test_other_plans(void **state)
{
    enum { T = 7 };
    static float want[MOST], got[MOST];
    const lw_noise noise = {.p = 0.1f};
    noisy a, b, c;
    (void)state;
    open_noisy(&a, "network_clip", "mlp-down,last:1", noise, 1, 3);
    open_noisy_how(&b, "network_clip", "mlp-down,last:1", noise,
                   (lw_passes_opts){.pictures = 1, .rows = 4, .whole = true});
    open_noisy_how(&c, "network_clip", "mlp-down,last:1", noise,
                   (lw_passes_opts){.pictures = 2, .rows = 2, .unfused = true});
    size_t bytes = sizeof *want * (size_t)(T * lw_passes_get_info(a.passes).dim);
    run(&a, 1, T, 3, want);
    for (int rows = 1; rows < 6; rows += 4) {
        assert_ok(lw_passes_set_rows(a.passes, rows));
        run(&a, 1, T, rows, got);
        assert_memory_equal(want, got, bytes);
    }
    run(&b, 1, T, 4, got);
    assert_memory_equal(want, got, bytes);
    run(&c, 1, T, 2, got);
    assert_memory_equal(want, got, bytes);
    lw_passes_info whole = lw_passes_get_info(b.passes), cut = lw_passes_get_info(a.passes);
    assert_true(whole.prefix == 0 && whole.suffix > 2 * cut.suffix);
    close_noisy(&a);
    close_noisy(&b);
    close_noisy(&c);
}

static void test_bits(void **state)
{
    (void)state;
    check_bits("network_clip", "hf", (lw_noise){.p = 0.1f});
    check_bits("network_clip", "vision_model.encoder.layers.0.self_attn.k_proj",
               (lw_noise){.p = 0.1f});
    check_bits("network_siglip_timm", "timm", (lw_noise){.p = 0.05f});
    check_bits("network_dinov2", "mlp-down", (lw_noise){LW_NOISE_GAUSSIAN, 0.1f, NULL});
    check_bits("network_clip", "last:1", (lw_noise){LW_NOISE_MULTIPLICATIVE, 0.1f, NULL});
    check_bits("network_mobilenet_torchvision", "depth", (lw_noise){LW_NOISE_DEPTH, 0.3f, NULL});
}

/* What is kept of a picture, and that late sites leave little to the passes. */
static void test_cut(void **state)
{
    noisy all, late;
    (void)state;
    open_noisy(&all, "network_clip", "hf", (lw_noise){.p = 0.1f}, 1, 4);
    open_noisy(&late, "network_clip", "mlp-down,last:1", (lw_noise){.p = 0.1f}, 1, 4);
    lw_passes_info a = lw_passes_get_info(all.passes), b = lw_passes_get_info(late.passes);
    printf("operations once and per pass: %.3g %.3g, of late sites %.3g %.3g\n", a.prefix, a.suffix,
           b.prefix, b.suffix);
    assert_true(b.suffix < 0.1 * a.suffix && b.prefix > a.prefix);
    close_noisy(&all);
    close_noisy(&late);
}

static void test_nothing_live(void **state)
{
    lw_network *net = open_network("network_siglip");
    lw_sites s;
    lw_passes *passes = NULL;
    (void)state;
    assert_ok(lw_sites_find(net, "vision_model.head.attention.out_proj", &s));
    assert_int_equal(s.live, 0);
    lw_noise noise = {.p = 0.1f, .sites = &s};
    lw_layer_hook hook = lw_noise_hook(&noise);
    net->hook = &hook;
    const lw_passes_opts o = {
        .height = 30, .width = 30, .output = "pooled", .pictures = 1, .rows = 1, .keep = 1};
    assert_int_equal(lw_passes_new(dev, net, &o, &passes), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "no live site"));
    lw_sites_clear(&s);
    lw_network_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_variance),    cmocka_unit_test(test_bits),
        cmocka_unit_test(test_cut),         cmocka_unit_test(test_nothing_live),
        cmocka_unit_test(test_other_plans),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
