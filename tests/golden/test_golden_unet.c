/* SPDX-License-Identifier: Apache-2.0 */
/* The U-Net against diffusers: names and shapes, forward, loss, EVERY gradient, gradient to the
 * image. */
#include "golden/golden.h"

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

typedef struct net {
    const char *name;
    int32_t batch;
    lw_unet_config c;
    lw_store *s;
    lw_graph *g;
    lw_plan *plan;
    lw_exec *e;
    lw_st_file *file;
} net;

static void net_open(net *n, const char *name, int32_t batch)
{
    char path[256];
    json_t *j = NULL;
    *n = (net){.name = name, .batch = batch};
    snprintf(path, sizeof path, GOLDEN "unet_%s_config.json", name);
    assert_ok(lw_json_load(path, &j));
    assert_ok(lw_unet_from_json(j, path, &n->c));
    lw_json_drop(&j);
    assert_ok(lw_store_new(false, &n->s));
    assert_ok(lw_unet_declare(&n->c, n->s));
    golden_fill_store(n->s);
    snprintf(path, sizeof path, "unet_%s", name);
    n->file = golden_open(path);
}

/* y, loss = mean((y - target)^2), gradients of every parameter and of x. */
static void net_compile(net *n, lw_device *dev, int opt)
{
    lw_type image = lw_type_of(LW_F32, 4, n->batch, n->c.image_size, n->c.image_size, 3);
    assert_ok(lw_graph_new(&n->g));
    lw_builder b = {.g = n->g, .params = lw_store_params(n->s)};
    lw_network_in in = {.x = lw_input(n->g, "x", image),
                        .t = lw_input(n->g, "t", lw_type_of(LW_F32, 1, n->batch))};
    if (n->c.classes)
        in.classes = lw_input(n->g, "classes", lw_type_of(LW_I32, 1, n->batch));
    lw_val target = lw_input(n->g, "target", image), y = lw_unet(&b, &n->c, in), gx = LW_NOVAL;
    lw_val loss = lw_mean(n->g, lw_sqr(n->g, lw_sub(n->g, y, target)), LW_OVER_ALL);
    lw_val one = lw_const_f32(n->g, 1.0f);
    lw_graph_output_add(n->g, "y", y, LW_NOVAL);
    lw_graph_output_add(n->g, "loss", loss, LW_NOVAL);
    lw_grad(n->g, &loss, &one, 1, &in.x, &gx, 1);
    lw_graph_output_add(n->g, "gx", gx, LW_NOVAL);
    assert_ok(lw_grad_params(n->g, loss, one));
    lw_compile_opts o = {.opt = opt};
    assert_ok(lw_compile(n->g, dev, &o, &n->plan));
    assert_ok(lw_exec_new(n->plan, LW_SLAB_PARAM, &n->e));
}

static void net_drop_plan(net *n)
{
    lw_exec_free(&n->e);
    lw_plan_free(&n->plan);
    lw_graph_free(&n->g);
}

static void net_close(net *n)
{
    lw_store_free(&n->s);
    lw_st_close(&n->file);
}

static void put_image(const net *n, const char *input)
{
    char name[64];
    int64_t hw = (int64_t)n->c.image_size * n->c.image_size, count = n->batch * 3 * hw;
    float *nchw = malloc(sizeof *nchw * (size_t)count);
    snprintf(name, sizeof name, "%s.%s", n->name, input);
    golden_unit(name, count, nchw);
    golden_to_nhwc(nchw, n->batch, 3, hw, lw_exec_write(n->e, input));
    free(nchw);
}

static void net_run(net *n)
{
    char name[64];
    int32_t t[16];
    put_image(n, "x");
    put_image(n, "target");
    snprintf(name, sizeof name, "%s.t", n->name);
    golden_integers(name, n->batch, 1000, t);
    for (int i = 0; i < n->batch; i++)
        ((float *)lw_exec_write(n->e, "t"))[i] = (float)t[i];
    snprintf(name, sizeof name, "%s.labels", n->name);
    if (n->c.classes)
        golden_integers(name, n->batch, n->c.classes, lw_exec_write(n->e, "classes"));
    assert_ok(lw_exec_run(n->e, &(lw_tick){0}));
}

static double image_error(const net *n, const char *output, const char *golden)
{
    int64_t count = 0, hw = (int64_t)n->c.image_size * n->c.image_size;
    double *want = golden_get(n->file, golden, &count);
    float *nchw = malloc(sizeof *nchw * (size_t)count);
    golden_to_nchw(lw_exec_read(n->e, output), n->batch, 3, hw, nchw);
    double err = golden_relative(nchw, want, count, 0.0);
    free(nchw);
    free(want);
    return err;
}

/* Error of one part of a gradient: whole where the file has it, by sketch everywhere. */
static double part_error(const net *n, const golden_part *p, const float *grad, double floor)
{
    char key[200];
    snprintf(key, sizeof key, "sketch.%s", p->name);
    double *sketch = golden_get(n->file, key, NULL), err;
    err = golden_sketch_error(p->name, grad, p->count, sketch, floor);
    free(sketch);
    snprintf(key, sizeof key, "grad.%s", p->name);
    if (golden_has(n->file, key)) {
        double *want = golden_get(n->file, key, NULL),
               whole = golden_relative(grad, want, p->count, floor);
        err = err > whole ? err : whole;
        free(want);
    }
    return err;
}

/* The key bias shifts every logit of a row alike: its gradient is zero but for rounding. */
static double gradient_tolerance(const char *name)
{
    return lw_str_ends(name, "to_k.bias") ? 1e-3 : 2e-5;
}

static void check_gradients(const net *n)
{
    double *norm = golden_get(n->file, "grad_norm", NULL), worst = 0.0;
    int checked = 0;
    char where[200] = "";
    for (int32_t i = 0; i < lw_store_count(n->s); i++) {
        const lw_store_entry *e = lw_store_at(n->s, i);
        float *tmp = malloc(sizeof *tmp * (size_t)e->count);
        for (int k = 0; k < golden_parts(e); k++, checked++) {
            golden_part p = golden_part_of(e, k);
            golden_part_get(e, k, lw_store_data(n->s, i, LW_SLAB_GRAD), tmp);
            double err = part_error(n, &p, tmp, 1e-5 * norm[0]);
            golden_check(p.name, err, gradient_tolerance(p.name));
            if (err > worst && !lw_str_ends(p.name, "to_k.bias"))
                worst = err, snprintf(where, sizeof where, "%s", p.name);
        }
        free(tmp);
    }
    free(norm);
    printf("  %d gradients, worst %.2e (%s)\n", checked, worst, where);
}

static void check_net(const char *name, int32_t batch, lw_isa isa, int opt, int threads)
{
    net n;
    net_open(&n, name, batch);
    lw_device *dev = golden_device(isa, threads);
    net_compile(&n, dev, opt);
    net_run(&n);
    double *loss = golden_get(n.file, "loss", NULL), ey = image_error(&n, "y", "y");
    double have = (double)*(float *)lw_exec_read(n.e, "loss");
    printf("%s %s opt %d: y %.2e, loss %.2e\n", name, lw_isa_name(isa), opt, ey,
           have / loss[0] - 1.0);
    golden_check("y", ey, 1e-5);
    golden_check("loss", have > loss[0] ? have / loss[0] - 1.0 : 1.0 - have / loss[0], 2e-6);
    if (golden_has(n.file, "gx"))
        golden_check("gx", image_error(&n, "gx", "gx"), 2e-5);
    check_gradients(&n);
    free(loss);
    net_drop_plan(&n);
    lw_backend_close(&dev);
    net_close(&n);
}

static void test_tiny(void **state)
{
    int n;
    const lw_isa *isa = golden_isas(&n);
    (void)state;
    check_net("tiny", 3, LW_ISA_REF, 0, 1);
    for (int i = 0; i < n; i++)
        check_net("tiny", 3, isa[i], 1, 2);
}

static void test_small(void **state)
{
    (void)state;
    check_net("small", 2, lw_isa_best(), 1, 2);
}

/* ---- variants of published folders: config.json as diffusers wrote it ---- */

/* Channels first .. first + n - 1 of [2][all][8][8] to [2][8][8][n]. */
static void put_channels(const float *nchw, int32_t all, int32_t first, int32_t n, float *nhwc)
{
    for (int32_t b = 0; b < 2; b++)
        for (int32_t p = 0; p < 64; p++)
            for (int32_t k = 0; k < n; k++)
                nhwc[(b * 64 + p) * n + k] = nchw[(b * all + first + k) * 64 + p];
}

static double variant_error(const lw_st_file *f, const char *name, const json_t *config)
{
    enum { BATCH = 2, PIXELS = 64, CHANNELS = 12 /* at most */ };
    lw_unet_config c;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    LW_CLEANUP(lw_exec_free) lw_exec *e = NULL;
    lw_device *dev = golden_device(LW_ISA_REF, 1);
    float nchw[BATCH * CHANNELS * PIXELS];
    int32_t t[BATCH];
    char key[64];
    assert_ok(lw_unet_from_json(config, name, &c));
    const int32_t n = c.out_channels, more = lw_unet_condition_channels(&c);
    assert_true(c.in_channels == n + more && c.in_channels <= CHANNELS);
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_unet_declare(&c, s));
    golden_fill_store(s);
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_network_in in = {.x = lw_input(g, "x", lw_type_of(LW_F32, 4, BATCH, 8, 8, n)),
                        .t = lw_input(g, "t", lw_type_of(LW_F32, 1, BATCH))};
    if (more)
        in.condition = lw_input(g, "condition", lw_type_of(LW_F32, 4, BATCH, 8, 8, more));
    lw_graph_output_add(g, "y", lw_unet(&b, &c, in), LW_NOVAL);
    assert_ok(lw_compile(g, dev, NULL, &plan));
    assert_ok(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    golden_unit("variants.x", (int64_t)BATCH * c.in_channels * PIXELS, nchw);
    put_channels(nchw, c.in_channels, 0, n, lw_exec_write(e, "x"));
    if (more)
        put_channels(nchw, c.in_channels, n, more, lw_exec_write(e, "condition"));
    golden_integers("variants.t", BATCH, 1000, t);
    for (int i = 0; i < BATCH; i++)
        ((float *)lw_exec_write(e, "t"))[i] = (float)t[i];
    assert_ok(lw_exec_run(e, &(lw_tick){0}));
    golden_to_nchw(lw_exec_read(e, "y"), BATCH, n, PIXELS, nchw);
    snprintf(key, sizeof key, "%s.y", name);
    double *want = golden_get(f, key, NULL),
           error = golden_relative(nchw, want, (int64_t)BATCH * n * PIXELS, 0.0);
    free(want);
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_backend_close(&dev);
    return error;
}

static void test_variants(void **state)
{
    json_t *all = NULL, *config;
    const char *name;
    lw_st_file *f = golden_open("unet_variants");
    (void)state;
    assert_ok(lw_json_load(GOLDEN "unet_variants.json", &all));
    json_object_foreach(all, name, config)
    {
        double error = variant_error(f, name, config);
        printf("%s: y %.2e\n", name, error);
        golden_check(name, error, 1e-5);
    }
    lw_json_drop(&all);
    lw_st_close(&f);
}

/* Every name and shape of the list, and no others. */
static void check_names(const char *config, const char *list)
{
    net n;
    char path[256], line[256], *text = NULL, *save = NULL;
    int lines = 0, parts = 0;
    net_open(&n, config, 1);
    snprintf(path, sizeof path, "tests/golden/%s", list);
    assert_ok(lw_file_read(path, 0, &text, NULL));
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save), lines++) {
        bool found = false;
        for (int32_t i = 0; i < lw_store_count(n.s) && !found; i++) {
            const lw_store_entry *e = lw_store_at(n.s, i);
            for (int k = 0; k < golden_parts(e) && !found; k++) {
                golden_part p = golden_part_of(e, k);
                int at = snprintf(line, sizeof line, "%s ", p.name);
                for (int d = 0; d < p.rank; d++)
                    at += snprintf(line + at, sizeof line - (size_t)at, "%s%lld", d ? "x" : "",
                                   (long long)p.shape[d]);
                found = strcmp(line, l) == 0;
            }
        }
        if (!found)
            fail_msg("%s: no parameter '%s'", config, l);
    }
    for (int32_t i = 0; i < lw_store_count(n.s); i++)
        parts += golden_parts(lw_store_at(n.s, i));
    assert_int_equal(parts, lines);
    lw_free(&text);
    net_close(&n);
}

static void test_names(void **state)
{
    (void)state;
    check_names("tiny", "unet_names.txt");
    check_names("small", "unet_names_small.txt");
}

/* ---- the formula itself ---- */

static void test_formula(void **state)
{
    lw_st_file *f = golden_open("formula");
    float have[16 * 27];
    double *want = golden_get(f, "formula.conv_in.weight.u", NULL);
    (void)state;
    golden_fill("conv_in.weight", 0, 1, 4, have);
    for (int i = 0; i < 4; i++)
        assert_true((double)have[i] == want[i]);
    free(want);
    want = golden_get(f, "formula.param.16x3x3x3", NULL);
    golden_parameter("conv_in.weight", 4, (const int64_t[]){16, 3, 3, 3}, have);
    for (int i = 0; i < 16 * 27; i++)
        assert_true((double)have[i] == want[i]);
    free(want);
    lw_st_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_tiny),     cmocka_unit_test(test_small),
        cmocka_unit_test(test_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
