/* SPDX-License-Identifier: Apache-2.0 */
/* The drifting transformer against PyTorch: names and shapes, forward, loss, every gradient; the sizes of
 * the published ones. */
#include <math.h>

#include "golden/golden.h"

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

enum { BATCH = 3 };

typedef struct net {
    const char *name;
    lw_dit_config c;
    lw_store *s;
    lw_plan *plan;
    lw_exec *e;
    lw_st_file *file;
} net;

static void net_open(net *n, const char *name)
{
    char file[64];
    *n = (net){.name = name};
    snprintf(file, sizeof file, "dit_%s", name);
    n->file = golden_open(file);
    json_t *j = golden_config(n->file, name);
    assert_ok(lw_dit_from_json(j, name, &n->c));
    json_t *again = lw_dit_to_json(&n->c); /* says the same as the release's keys */
    if (lw_json_difference(j, again))
        fail_msg("%s: '%s' is written otherwise", name, lw_json_difference(j, again));
    lw_json_drop(&again);
    lw_json_drop(&j);
    assert_ok(lw_store_new(false, &n->s));
    lw_network of = lw_network_of(&lw_network_def_dit, &n->c, n->s);
    assert_ok(lw_network_declare(&of, n->s));
    golden_fill_store(n->s);
}

/* y, loss = mean((y - target)^2), gradients of every parameter and of x. */
static void net_compile(net *n, lw_device *dev, int opt)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_type image = lw_type_of(LW_F32, 4, BATCH, n->c.image_size, n->c.image_size, n->c.channels);
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(n->s)};
    lw_network_in in = {.x = lw_input(g, "x", image),
                        .alpha = lw_input(g, "alpha", lw_type_of(LW_F32, 1, BATCH))};
    if (n->c.classes)
        in.classes = lw_input(g, "classes", lw_type_of(LW_I32, 1, BATCH));
    if (n->c.styles)
        in.styles = lw_input(g, "styles", lw_type_of(LW_I32, 2, BATCH, n->c.styles));
    lw_val target = lw_input(g, "target", image), y = lw_dit(&b, &n->c, in), gx = LW_NOVAL;
    lw_val loss = lw_mean(g, lw_sqr(g, lw_sub(g, y, target)), LW_OVER_ALL);
    lw_val one = lw_const_f32(g, 1.0f);
    lw_graph_output_add(g, "y", y, LW_NOVAL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    lw_grad(g, &loss, &one, 1, &in.x, &gx, 1);
    lw_graph_output_add(g, "gx", gx, LW_NOVAL);
    assert_ok(lw_grad_params(g, loss, one));
    assert_ok(lw_compile(g, dev, &(lw_compile_opts){.opt = opt}, &n->plan));
    assert_ok(lw_exec_new(n->plan, LW_SLAB_PARAM, &n->e));
}

static const char *named(const net *n, const char *what, char name[64])
{
    snprintf(name, 64, "dit.%s.%s", n->name, what);
    return name;
}

static int64_t pixels(const net *n)
{
    return (int64_t)n->c.image_size * n->c.image_size;
}

static void put_image(const net *n, const char *input)
{
    char name[64];
    int64_t count = BATCH * n->c.channels * pixels(n);
    float *nchw = malloc(sizeof *nchw * (size_t)count);
    golden_unit(named(n, input, name), count, nchw);
    golden_to_nhwc(nchw, BATCH, n->c.channels, pixels(n), lw_exec_write(n->e, input));
    free(nchw);
}

static void net_run(net *n)
{
    char name[64];
    put_image(n, "x");
    put_image(n, "target");
    golden_fill(named(n, "alpha", name), 2.5, 1.5, BATCH, lw_exec_write(n->e, "alpha"));
    if (n->c.classes)
        golden_integers(named(n, "labels", name), BATCH, n->c.classes,
                        lw_exec_write(n->e, "classes"));
    if (n->c.styles)
        golden_integers(named(n, "styles", name), BATCH * n->c.styles, n->c.style_words,
                        lw_exec_write(n->e, "styles"));
    assert_ok(lw_exec_run(n->e, &(lw_tick){0}));
}

static double image_error(const net *n, const char *output)
{
    int64_t count = 0;
    double *want = golden_get(n->file, output, &count);
    float *nchw = malloc(sizeof *nchw * (size_t)count);
    golden_to_nchw(lw_exec_read(n->e, output), BATCH, n->c.channels, pixels(n), nchw);
    double err = golden_relative(nchw, want, count, 0.0);
    free(nchw);
    free(want);
    return err;
}

static double gradient_error(const net *n, const lw_store_entry *e, const float *grad, double floor)
{
    char key[200];
    snprintf(key, sizeof key, "sketch.%s", e->name);
    double *sketch = golden_get(n->file, key, NULL);
    double err = golden_sketch_error(e->name, grad, e->count, sketch, floor);
    free(sketch);
    snprintf(key, sizeof key, "grad.%s", e->name);
    if (golden_has(n->file, key)) {
        double *want = golden_get(n->file, key, NULL),
               whole = golden_relative(grad, want, e->count, floor);
        err = err > whole ? err : whole;
        free(want);
    }
    return err;
}

static void check_gradients(const net *n)
{
    double *norm = golden_get(n->file, "grad_norm", NULL), worst = 0.0;
    const char *where = "";
    for (int32_t i = 0; i < lw_store_count(n->s); i++) {
        const lw_store_entry *e = lw_store_at(n->s, i);
        double err = gradient_error(n, e, lw_store_data(n->s, i, LW_SLAB_GRAD), 1e-4 * norm[0]);
        golden_check(e->name, err, 1e-5);
        if (err > worst)
            worst = err, where = e->name;
    }
    free(norm);
    printf("  %d gradients, worst %.2e (%s)\n", (int)lw_store_count(n->s), worst, where);
}

static void check_net(const char *name, lw_isa isa, int opt, int threads)
{
    net n;
    net_open(&n, name);
    lw_device *dev = golden_device(isa, threads);
    net_compile(&n, dev, opt);
    net_run(&n);
    double *loss = golden_get(n.file, "loss", NULL), ey = image_error(&n, "y");
    double have = (double)*(const float *)lw_exec_read(n.e, "loss");
    printf("%s %s opt %d: y %.2e, gx %.2e, loss %.2e\n", name, lw_isa_name(isa), opt, ey,
           image_error(&n, "gx"), have / loss[0] - 1.0);
    golden_check("y", ey, 1e-5);
    golden_check("loss", have > loss[0] ? have / loss[0] - 1.0 : 1.0 - have / loss[0], 2e-6);
    golden_check("gx", image_error(&n, "gx"), 1e-5);
    check_gradients(&n);
    free(loss);
    lw_exec_free(&n.e);
    lw_plan_free(&n.plan);
    lw_backend_close(&dev);
    lw_store_free(&n.s);
    lw_st_close(&n.file);
}

static void test_configs(void **state)
{
    static const char *const names[] = {"published", "axial", "bare"};
    int levels;
    const lw_isa *isa = golden_isas(&levels);
    (void)state;
    for (size_t i = 0; i < LW_COUNT(names); i++) {
        check_net(names[i], LW_ISA_REF, 0, 1);
        for (int k = 0; k < levels; k++)
            check_net(names[i], isa[k], 1, 2);
    }
}

/* The four published ones, without memory for their weights. */
static void test_counts(void **state)
{
    static const struct {
        int32_t side, channels, patch, hidden, depth, heads;
        int64_t parameters;
    } published[] = {{32, 4, 2, 768, 12, 12, 132708880},
                     {32, 4, 2, 1024, 24, 16, 462909456},
                     {256, 3, 16, 768, 12, 12, 133864704},
                     {256, 3, 16, 1024, 24, 16, 464450304}};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(published); i++) {
        LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
        LW_CLEANUP(lw_store_free) lw_store *s = NULL;
        lw_dit_config c = lw_dit_base();
        lw_network n;
        c.image_size = published[i].side;
        c.channels = published[i].channels;
        c.patch = published[i].patch;
        c.hidden = published[i].hidden;
        c.depth = published[i].depth;
        c.heads = published[i].heads;
        assert_ok(lw_store_new(true, &s));
        assert_ok(lw_graph_new(&g));
        n = lw_network_of(&lw_network_def_dit, &c, s);
        lw_taps taps;
        lw_network_in in = {
            .x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, c.image_size, c.image_size, c.channels)),
            .classes = lw_input(g, "class", lw_type_of(LW_I32, 1, 1)),
            .styles = lw_input(g, "styles", lw_type_of(LW_I32, 2, 1, c.styles))};
        lw_network_append(&n, g, in, &taps);
        assert_ok(lw_graph_error(g));
        assert_int_equal(lw_store_param_count(s), published[i].parameters);
    }
}

/* What is no DiT that can be built is refused, by the field's name. */
static void test_refused(void **state)
{
    static const struct {
        const char *key, *value, *says;
    } bad[] = {{"num_heads", "7", "heads"},
               {"hidden_size", "\"x\"", "hidden_size"},
               {"use_swiglu", "false", "use_swiglu"},
               {"use_rmsnorm", "false", "use_rmsnorm"},
               {"cond_dim", "32", "cond_dim"},
               {"patch_size", "3", "patches"},
               {"leeway_rope", "\"spiral\"", "leeway_rope"},
               {"dropout", "0.1", "dropout"}};
    lw_dit_config c = lw_dit_base(), out;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        json_t *j = lw_dit_to_json(&c), *value = NULL;
        assert_ok(lw_json_parse("value", bad[i].value, strlen(bad[i].value), &value));
        json_object_set_new(j, bad[i].key, value);
        assert_true(lw_dit_from_json(j, "config.json", &out) < 0);
        if (!strstr(lw_errmsg(), bad[i].says))
            fail_msg("%s: '%s'", bad[i].key, lw_errmsg());
        lw_json_drop(&j);
    }
}

/* Every published init: blocks and head are zero, so that the network is; places are of sines. */
static void test_init(void **state)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    lw_dit_config c = lw_dit_base();
    c.hidden = 16, c.depth = 1, c.heads = 2, c.image_size = 8;
    (void)state;
    assert_ok(lw_store_new(false, &s));
    lw_network n = lw_network_of(&lw_network_def_dit, &c, s);
    assert_ok(lw_network_declare(&n, s));
    lw_store_init(s, 1);
    const float *at = lw_store_data(s, lw_store_find(s, "LightningDiT_0.pos_embed"), LW_SLAB_PARAM);
    for (int token = 0; token < 16; token++)
        for (int k = 0; k < 4; k++) { /* column, then row; sines, then cosines */
            const int column = token % 4, row = token / 4;
            double f = pow(1e4, -k / 4.0), x = column * f, y = row * f;
            const double want[4] = {sin(x), cos(x), sin(y), cos(y)};
            for (int i = 0; i < 4; i++)
                assert_true(fabs((double)at[token * 16 + i * 4 + k] - want[i]) < 1e-6);
        }
    static const char *const zero[] = {"blocks_0.TorchLinear_0", "FinalLayer_0.TorchLinear_0",
                                       "FinalLayer_0.TorchLinear_1"};
    for (size_t i = 0; i < LW_COUNT(zero); i++) {
        char name[96];
        snprintf(name, sizeof name, "LightningDiT_0.%s.Dense_0.kernel", zero[i]);
        const int32_t entry = lw_store_find(s, name);
        assert_true(entry >= 0);
        for (int64_t k = 0; k < lw_store_at(s, entry)->count; k++)
            assert_true(lw_store_data(s, entry, LW_SLAB_PARAM)[k] == 0.0f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
