/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks that exist as code alone: their answers beside PyTorch's (tools/golden/rehearsal.py) with
 * the formula's weights at width 16, and how many parameters they have at the widths that were
 * published.
 */
#include "golden/golden.h"

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"

enum { SIDE = 32, BATCH = 2 };

static void fill(lw_exec *e, const char *name)
{
    lw_type t = lw_exec_type(e, name);
    int64_t n = lw_type_count(t);
    float *v = malloc(sizeof *v * (size_t)n);
    golden_fill(name, 0.0, 1.0, n, v);
    golden_to_nhwc(v, BATCH, t.dim[3], SIDE * SIDE, lw_exec_write(e, name));
    free(v);
}

static double error_on(lw_device *dev, const lw_network *net, const double *want)
{
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    static float have[BATCH * 3 * SIDE * SIDE];
    assert_ok(lw_graph_new(&g));
    assert_ok(lw_network_build(net, g, BATCH, SIDE, SIDE, NULL));
    assert_ok(lw_compile(g, dev, NULL, &plan));
    assert_ok(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    fill(e, "x");
    if (net->condition)
        fill(e, "condition");
    memcpy(lw_exec_write(e, "t"), (const float[]){10.0f, 40.0f}, BATCH * sizeof(float));
    assert_ok(lw_exec_run(e, &(lw_tick){0}));
    golden_to_nchw(lw_exec_read(e, "y"), BATCH, 3, SIDE * SIDE, have);
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_graph_free(&g);
    return golden_relative(have, want, LW_COUNT(have), 0);
}

static void test_as_pytorch(void **state)
{
    static const char *const specs[] = {"gpu-stress:16", "gpu-intensive-lsd:16",
                                        "gpu-intensive-lsd:12", "simple-optimized-unet:16"};
    lw_st_file *f = golden_open("rehearsal");
    /* the others' attention at every place takes minutes on an emulated GPU */
    const size_t n = golden_forward_only() ? 1 : LW_COUNT(specs);
    int n_isa;
    const lw_isa *isa = golden_isas(&n_isa);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        lw_network *net = NULL;
        int64_t count;
        double *want = golden_get(f, specs[i], &count);
        assert_int_equal(count, BATCH * 3 * SIDE * SIDE);
        for (int k = 0; k < n_isa; k++) {
            lw_device *dev = golden_device(isa[k], 2);
            assert_ok(lw_rehearsal_open(specs[i], SIDE, &net));
            golden_fill_store(net->store);
            double err = error_on(dev, net, want);
            printf("  %s %s %.1e\n", specs[i], dev->isa, err);
            golden_check(specs[i], err, 5e-6);
            lw_network_close(&net); /* its weights are the device's */
            lw_backend_close(&dev);
        }
        free(want);
    }
    lw_st_close(&f);
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* What the class of gpu-intensive-lsd declares, of the parts that its repair leaves alone, changes and
 * adds, and those that stand beside its U-Net: five blocks and two convolutions. */
static int64_t as_published(int64_t repaired, int64_t b)
{
    int64_t input = 3 * 9 * b, times = 4 * b * (b + 2 * b + 4 * b) + 7 * b,
            up = 16 * b * (4 * b * 2 + 2 * b), end = 2 * b + 27 * b;
    int64_t memory = 3 * (22 * 3 * 3 + 9 * 3),
            blend = 54 * b + b + 2 * (22 * b * b + 9 * b) + 9 * b;
    return repaired - input - times - up - end + memory + blend + 1;
}

static void test_parameters(void **state)
{
    static const struct {
        const char *spec;
        int64_t parameters, published; /* 0: runs as published */
        int32_t base;
    } rows[] = {
        {"gpu-stress:192", 880258653, 0, 192},
        {"gpu-stress:128", 391294109, 0, 128},
        {"gpu-stress:96", 220141245, 0, 96},
        {"simple-optimized-unet:96", 8508003, 0, 96},
        {"gpu-intensive-lsd:64", 68216259, 67628327, 64},
        {"gpu-intensive-lsd:96", 153430179, 152105575, 96},
        {"gpu-intensive-lsd:128", 272714627, 270358439, 128},
        {"gpu-intensive-lsd:160", 426069603, 422386919, 160},
        {"gpu-intensive-lsd:192", 613495107, 608191015, 192},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        lw_network *net = NULL;
        assert_ok(lw_rehearsal_open(rows[i].spec, 0, &net));
        assert_int_equal(net->parameters, rows[i].parameters);
        assert_int_equal(net->image_size, 64);
        if (rows[i].published)
            assert_int_equal(as_published(net->parameters, rows[i].base), rows[i].published);
        lw_network_close(&net);
    }
}

/* One evaluation of the largest in bf16 is planned and not run: the device has each of its steps. */
static void test_largest_is_planned(void **state)
{
    lw_device *dev = golden_device(lw_isa_best(), 1);
    lw_network *net = NULL;
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    (void)state;
    assert_ok(lw_rehearsal_open("gpu-stress:192", 0, &net));
    assert_ok(lw_graph_new(&g));
    assert_ok(lw_network_build(net, g, 1, 64, 64, NULL));
    assert_ok(lw_compile(g, dev, &(lw_compile_opts){.opt = 1, .precision = LW_NUM_BF16}, &plan));
    lw_plan_info i = lw_plan_get_info(plan);
    size_t weights = lw_store_bytes(net->store);
    printf(
        "  gpu-stress:192 in bf16 on %s: %d steps, %.1f GFLOP, weights %.3f GB, derived %.3f GB, "
        "values %.3f GB\n",
        dev->name, i.n_steps, i.flops * 1e-9, (double)weights * 1e-9,
        (double)i.derived_bytes * 1e-9, (double)i.frame_bytes * 1e-9);
    /* a parameter's four bytes, those of its packed copy, two where the machine multiplies bf16, and little else */
    const bool cpu = !golden_forward_only(); /* GPUs do */
    const size_t parameters = (size_t)net->parameters,
                 each = cpu && lw_isa_best() < LW_ISA_AVX512BF16 ? 8 : 6;
    assert_in_range(weights + i.derived_bytes + i.frame_bytes, each * parameters,
                    each * parameters + parameters / 2);
    lw_plan_free(&plan);
    lw_graph_free(&g);
    lw_network_close(&net);
    lw_backend_close(&dev);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"gpu-stress",    "gpu-stress:",       "gpu-stress:0",
                                      "gpu-stress:20", "gpu-stress:16x",    "gpu-stress:-16",
                                      "gpu-stres:16",  "gpu-stress:100000", ""};
    lw_network *net = NULL;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(bad); i++)
        assert_int_equal(lw_rehearsal_open(bad[i], 0, &net), LW_EUSAGE);
    assert_int_equal(lw_rehearsal_open("gpu-stress:16", 24, &net), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "multiples of 16"));
    assert_int_equal(lw_rehearsal_open("gpu-intensive-lsd:16", 4, &net), LW_EUSAGE);
    assert_int_equal(lw_rehearsal_check("gpu-stress:92", 0), LW_EUSAGE);
    assert_ok(lw_rehearsal_check("gpu-intensive-lsd:92", 0));
    assert_null(net);
    assert_true(lw_rehearsal_is("gpu-stress:16"));
    assert_false(lw_rehearsal_is("gpu-stres:16") || lw_rehearsal_is("runs/ddpm"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_pytorch),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_largest_is_planned),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("golden rehearsal", tests, NULL, NULL);
}
