/* SPDX-License-Identifier: Apache-2.0 */
/* The published masked autoencoder against PyTorch: names and shapes, reconstruction, loss, maps, every gradient; its
 * published sizes; its 86 feature keys. */
#include <math.h>

#include "golden/golden.h"

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

enum { BATCH = 2 };

typedef struct net {
    const char *name;
    lw_mae_config c;
    lw_store *s;
    lw_plan *plan;
    lw_exec *e;
    lw_st_file *file;
    lw_taps maps; /* of pictures where nothing is hidden: names only */
    int32_t side, channels;
} net;

static void net_open(net *n, const char *name)
{
    char file[64];
    *n = (net){.name = name};
    snprintf(file, sizeof file, "mae_unet_%s", name);
    n->file = golden_open(file);
    json_t *j = golden_config(n->file, name);
    assert_ok(lw_mae_from_json(j, name, &n->c));
    json_t *again = lw_mae_to_json(&n->c);
    assert_null(lw_json_difference(j, again));
    lw_json_drop(&again);
    lw_json_drop(&j);
    n->side = n->c.image_size / n->c.patchify;
    n->channels = n->c.channels * n->c.patchify * n->c.patchify;
    assert_ok(lw_store_new(false, &n->s));
    assert_ok(lw_mae_declare(&n->c, n->s));
    golden_fill_store(n->s);
}

/* sum over maps of mean(map * formula), whose gradient to the picture a drift loss needs. */
static lw_val build_pull(net *n, lw_graph *g, lw_val clear, lw_builder *b)
{
    lw_val pull = LW_NOVAL;
    lw_taps taps = {0};
    lw_mae_net(b, &n->c, lw_mae_places(g, &n->c, clear), &taps);
    for (int32_t i = 0; i < taps.n; i++) {
        lw_val v = taps.tap[i].val;
        char name[32];
        if (lw_val_type(g, v).rank != 4)
            continue;
        lw_graph_output_add(g, taps.tap[i].name, v, LW_NOVAL);
        lw_tap_add(&n->maps, taps.tap[i].name, v);
        snprintf(name, sizeof name, "by.%s", taps.tap[i].name);
        lw_val m = lw_mean(g, lw_mul(g, v, lw_input(g, name, lw_val_type(g, v))), LW_OVER_ALL);
        pull = lw_val_ok(pull) ? lw_add(g, pull, m) : m;
    }
    return pull;
}

static void net_compile(net *n, lw_device *dev, int opt)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps = {0};
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(n->s)};
    lw_type image = lw_type_of(LW_F32, 4, BATCH, n->c.image_size, n->c.image_size, n->c.channels);
    lw_val x = lw_input(g, "x", image), clear = lw_input(g, "clear", image), gx = LW_NOVAL,
           mask = lw_input(g, "mask", lw_type_of(LW_F32, 4, BATCH, n->side, n->side, 1)),
           labels = lw_input(g, "labels", lw_type_of(LW_I32, 1, BATCH)),
           seen = lw_mae_places(g, &n->c, x);
    lw_mae_net(&b, &n->c, lw_mae_hide(g, seen, mask), &taps);
    lw_val rec = lw_mae_decode(&b, &n->c, &taps), err = lw_mae_loss(g, rec, seen, mask),
           logits = lw_tap_find(&taps, "logits"), ce = lw_cross_entropy(g, logits, labels),
           loss = lw_mean(g, lw_add(g, lw_scale(g, err, 0.9f), lw_scale(g, ce, 0.1f)), LW_OVER_ALL),
           one = lw_const_f32(g, 1.0f), pull = build_pull(n, g, clear, &b);
    lw_graph_output_add(g, "rec", rec, LW_NOVAL);
    lw_graph_output_add(g, "err", err, LW_NOVAL);
    lw_graph_output_add(g, "logits", logits, LW_NOVAL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    lw_grad(g, &pull, &one, 1, &clear, &gx, 1);
    lw_graph_output_add(g, "gx", gx, LW_NOVAL);
    assert_ok(lw_grad_params(g, loss, one));
    assert_ok(lw_compile(g, dev, &(lw_compile_opts){.opt = opt}, &n->plan));
    assert_ok(lw_exec_new(n->plan, LW_SLAB_PARAM, &n->e));
}

static const char *named(const net *n, const char *what, char name[64])
{
    snprintf(name, 64, "mae_unet.%s.%s", n->name, what);
    return name;
}

static int32_t map_channels(const net *n, int32_t i)
{
    return n->maps.tap[i].name[0] == 'c' ? n->c.width
                                         : n->c.width << (n->maps.tap[i].name[5] - '1');
}

static int64_t map_places(const net *n, int32_t i)
{
    int32_t halved = n->maps.tap[i].name[0] == 'c' ? 0 : n->maps.tap[i].name[5] - '1';
    return (int64_t)(n->side >> halved) * (n->side >> halved);
}

static void put(const net *n, const char *tag, const char *input, int64_t c, int64_t hw)
{
    char name[64];
    int64_t count = BATCH * c * hw;
    float *nchw = malloc(sizeof *nchw * (size_t)count);
    golden_unit(named(n, tag, name), count, nchw);
    golden_to_nhwc(nchw, BATCH, c, hw, lw_exec_write(n->e, input));
    free(nchw);
}

static void net_run(net *n)
{
    char name[64];
    int32_t half = n->side / 2, per = half * half;
    int64_t pixels = (int64_t)n->c.image_size * n->c.image_size;
    float *cells = malloc(sizeof *cells * (size_t)(BATCH * per)),
          *mask = lw_exec_write(n->e, "mask");
    golden_fill(named(n, "mask", name), 0, 1, BATCH * per, cells);
    for (int32_t b = 0; b < BATCH; b++)
        for (int32_t y = 0; y < n->side; y++)
            for (int32_t x = 0; x < n->side; x++)
                *mask++ = cells[b * per + y / 2 * half + x / 2] < 0.0f ? 1.0f : 0.0f;
    free(cells);
    put(n, "x", "x", n->c.channels, pixels);
    put(n, "x", "clear", n->c.channels, pixels);
    golden_integers(named(n, "labels", name), BATCH, n->c.classes, lw_exec_write(n->e, "labels"));
    for (int32_t i = 0; i < n->maps.n; i++) {
        char input[32];
        snprintf(input, sizeof input, "by.%s", n->maps.tap[i].name);
        put(n, n->maps.tap[i].name, input, map_channels(n, i), map_places(n, i));
    }
    assert_ok(lw_exec_run(n->e, &(lw_tick){0}));
}

static double sketch_error(const net *n, const char *output, int64_t c, int64_t hw)
{
    char key[64];
    snprintf(key, sizeof key, "sketch.%s", output);
    double *want = golden_get(n->file, key, NULL);
    float *nchw = malloc(sizeof *nchw * (size_t)(BATCH * c * hw));
    golden_to_nchw(lw_exec_read(n->e, output), BATCH, c, hw, nchw);
    double err = golden_sketch_error(output, nchw, BATCH * c * hw, want, 0.0);
    free(nchw);
    free(want);
    return err;
}

static double small_error(const net *n, const char *output)
{
    int64_t count = 0;
    double *want = golden_get(n->file, output, &count),
           err = golden_relative(lw_exec_read(n->e, output), want, count, 0.0);
    free(want);
    return err;
}

static void check_gradients(const net *n, double tol)
{
    double *norm = golden_get(n->file, "grad_norm", NULL), worst = 0.0;
    const char *where = "";
    for (int32_t i = 0; i < lw_store_count(n->s); i++) {
        const lw_store_entry *e = lw_store_at(n->s, i);
        golden_part p = golden_part_of(e, 0);
        char key[200];
        snprintf(key, sizeof key, "grad.%s", p.name);
        double *want = golden_get(n->file, key, NULL);
        float *have = malloc(sizeof *have * (size_t)p.count);
        golden_part_get(e, 0, lw_store_data(n->s, i, LW_SLAB_GRAD), have);
        double err = golden_sketch_error(p.name, have, p.count, want, 1e-4 * norm[0]);
        golden_check(p.name, err, tol);
        if (err > worst)
            worst = err, where = e->name;
        free(have);
        free(want);
    }
    free(norm);
    printf("  %d gradients, worst %.2e (%s)\n", (int)lw_store_count(n->s), worst, where);
}

/* PyTorch's own f32 is up to 1.1e-4 from double in a gradient, 4e-5 in gx: norms of a few numbers. */
static void check_net(const char *name, lw_isa isa, int opt, int threads)
{
    net n;
    net_open(&n, name);
    lw_device *dev = golden_device(isa, threads);
    net_compile(&n, dev, opt);
    net_run(&n);
    double rec = sketch_error(&n, "rec", n.channels, (int64_t)n.side * n.side),
           gx = sketch_error(&n, "gx", n.c.channels, (int64_t)n.c.image_size * n.c.image_size);
    printf("%s %s opt %d: reconstruction %.2e, gx %.2e, loss %.2e\n", name, lw_isa_name(isa), opt,
           rec, gx, small_error(&n, "loss"));
    assert_int_equal(n.maps.n, 12);
    for (int32_t i = 0; i < n.maps.n; i++)
        golden_check(n.maps.tap[i].name,
                     sketch_error(&n, n.maps.tap[i].name, map_channels(&n, i), map_places(&n, i)),
                     1e-4);
    golden_check("rec", rec, 1e-4);
    golden_check("gx", gx, 3e-4);
    golden_check("err", small_error(&n, "err"), 1e-5);
    golden_check("logits", small_error(&n, "logits"), 1e-4);
    golden_check("loss", small_error(&n, "loss"), 1e-5);
    check_gradients(&n, 3e-3);
    lw_exec_free(&n.e);
    lw_plan_free(&n.plan);
    lw_backend_close(&dev);
    lw_store_free(&n.s);
    lw_st_close(&n.file);
}

static void test_configs(void **state)
{
    static const char *const names[] = {"latent", "pixels"};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(names); i++) {
        check_net(names[i], LW_ISA_REF, 0, 1);
        check_net(names[i], lw_isa_best(), 1, 2);
    }
}

/* A graph of the published shape, without memory for its weights. */
static int64_t count(lw_mae_config c)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_taps taps = {0};
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, c.image_size, c.image_size, c.channels));
    lw_mae_net(&b, &c, lw_mae_places(g, &c, x), &taps);
    if (c.decoder)
        lw_mae_decode(&b, &c, &taps);
    assert_ok(lw_graph_error(g));
    return lw_store_param_count(s);
}

/* 85 M, 340 M, 765 M, 1.36 B and 2.126 B, of pixels 2.127 B; the decoder and the head beside them. */
static void test_counts(void **state)
{
    static const struct {
        lw_mae_config c;
        int64_t parameters;
    } published[] = {
        {{32, 4, 128, 1, 0, false}, 85075456},     {{32, 4, 256, 1, 0, false}, 340216832},
        {{32, 4, 384, 1, 0, false}, 765424128},    {{32, 4, 512, 1, 0, false}, 1360697344},
        {{32, 4, 640, 1, 0, false}, 2126036480},   {{256, 3, 640, 8, 0, false}, 2127119360},
        {{32, 4, 256, 1, 1000, true}, 431354348LL}};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(published); i++)
        assert_int_equal(count(published[i].c), published[i].parameters);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void keys_of(lw_mae_config c, const char *list, lw_feature_set *out)
{
    lw_store *s = NULL;
    assert_ok(lw_store_new(true, &s));
    lw_network n = lw_network_of(&lw_network_def_mae, &c, s);
    assert_ok(lw_mae_declare(&c, s));
    assert_ok(lw_features_parse(list, &n, c.image_size, c.channels, out));
    lw_store_free(&s);
}

static const lw_feature_key *key(const lw_feature_set *s, const char *name)
{
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->key[i].name, name) == 0)
            return &s->key[i];
    fail_msg("no key '%s'", name);
    return NULL;
}

/* 86 keys of 6,734 slots and 9,650 C0 + 4,100 numbers a picture. */
static void test_keys(void **state)
{
    static const struct {
        const char *name;
        int32_t slots, wide; /* c = wide C0 */
    } some[] = {{"conv1", 1024, 1},           {"layer1_std_2", 256, 1},
                {"layer2_blk4_mean", 1, 2},   {"layer3_blk6", 64, 4},
                {"layer3_blk6_mean_4", 4, 4}, {"layer4_blk2", 16, 8},
                {"layer4_std_4", 1, 8},       {"layer4", 16, 8}};
    const int32_t c0 = 8;
    lw_feature_set s;
    int64_t slots = 0;
    (void)state;
    keys_of((lw_mae_config){32, 4, c0, 1, 0, false}, "maps", &s);
    assert_int_equal(s.n, 86);
    for (int32_t i = 0; i < s.n; i++)
        slots += s.key[i].slots;
    assert_int_equal(slots, 6734);
    assert_int_equal(lw_features_floats(&s), 9650 * c0 + 4100);
    assert_int_equal(key(&s, "global")->c, 4096);
    assert_int_equal(key(&s, "norm_x")->c, 4);
    for (size_t i = 0; i < LW_COUNT(some); i++) {
        assert_int_equal(key(&s, some[i].name)->slots, some[i].slots);
        assert_int_equal(key(&s, some[i].name)->c, some[i].wide * c0);
    }
    keys_of((lw_mae_config){256, 3, c0, 8, 0, false}, "maps", &s); /* pixels, patchified */
    assert_int_equal(s.n, 86);
    assert_int_equal(key(&s, "global")->c, 196608);
    assert_int_equal(key(&s, "norm_x")->c, 192);
    assert_int_equal(key(&s, "layer3_blk6")->slots, 64);
    keys_of((lw_mae_config){32, 4, c0, 1, 0, false}, "layer3_blk6_mean_4,pix,norm_x", &s);
    assert_int_equal(s.n, 3);
}

/* What is no such network is refused, by the field's name. */
static void test_refused(void **state)
{
    static const struct {
        const char *key, *value, *says;
    } bad[] = {{"base_channels", "0", "base_channels"},
               {"image_size", "36", "no multiple of 8"},
               {"input_patchify_size", "3", "no multiple of 24"},
               {"decoder", "1", "decoder"},
               {"stages", "3", "stages"}};
    lw_mae_config c = {32, 4, 8, 1, 0, false}, out;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        json_t *j = lw_mae_to_json(&c), *value = NULL;
        assert_ok(lw_json_parse("value", bad[i].value, strlen(bad[i].value), &value));
        json_object_set_new(j, bad[i].key, value);
        assert_true(lw_mae_from_json(j, "config.json", &out) < 0);
        if (!strstr(lw_errmsg(), bad[i].says))
            fail_msg("%s: '%s'", bad[i].key, lw_errmsg());
        lw_json_drop(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
