/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention in windows: each window of a picture of odd sides, whole or cut off, is attention over
 * its own places alone, at every level and type, for operands apart and in one; from 1,024 places on;
 * what it costs; that it has no gradient; and that networks take it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_util.h"
#include "base/base.h"

enum { BATCH = 2, H = 33, W = 37, C = 24, HEADS = 3, WINDOW = 7 };

/* Rows y0 .. and columns x0 .. of a picture's places [B,H W,c], as places. */
static lw_val piece(lw_graph *g, lw_val v, int y0, int x0)
{
    const int32_t c = lw_type_last(lw_val_type(g, v)), rows = LW_MIN(WINDOW, H - y0),
                  columns = LW_MIN(WINDOW, W - x0);
    v = lw_reshape(g, v, lw_type_of(LW_F32, 4, BATCH, H, W, c));
    v = lw_slice(g, lw_slice(g, v, 1, y0, y0 + rows), 2, x0, x0 + columns);
    return lw_reshape(g, v, lw_type_of(LW_F32, 3, BATCH, rows * columns, c));
}

static const lw_attr_attention windows = {.heads = HEADS, .window = WINDOW, .width = W};
static const int corner[][2] = {{0, 0}, {14, 21}, {0, 35}, {28, 7}, {28, 35}};

/* Windows of the whole as "got", and what attention over their places alone gives as "want". */
static void build(plan_lab *l, int n)
{
    static const char *const names[] = {"q", "k", "v"};
    lw_graph *g = l->g;
    lw_val x[3], y;
    char name[16];
    for (int i = 0; i < n; i++)
        x[i] = LAB_X(l, names[i], BATCH, H * W, i < n - 1 ? C : (4 - n) * C);
    y = lw_attention_places(g, x, n, &windows);
    for (size_t k = 0; k < LW_COUNT(corner); k++) {
        lw_val part[3];
        for (int i = 0; i < n; i++)
            part[i] = piece(g, x[i], corner[k][0], corner[k][1]);
        snprintf(name, sizeof name, "got%d", (int)k);
        lab_output(l, name, piece(g, y, corner[k][0], corner[k][1]));
        snprintf(name, sizeof name, "want%d", (int)k);
        lab_output(l, name, lw_attention_places(g, part, n, &(lw_attr_attention){.heads = HEADS}));
    }
}

static void check_level(lw_isa isa, int n, lw_num num, int threads)
{
    plan_lab l;
    lab_open(&l, threads, isa);
    build(&l, n);
    assert_int_equal(lw_store_fix(l.store), 0);
    const lw_compile_opts o = {.opt = isa != LW_ISA_REF, .precision = num};
    if (lw_compile(l.g, l.dev, &o, &l.plan) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(lw_exec_new(l.plan, LW_SLAB_PARAM, &l.exec), 0);
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    for (size_t k = 0; k < LW_COUNT(corner); k++) {
        char name[16];
        snprintf(name, sizeof name, "want%d", (int)k);
        const lw_type t = lw_exec_type(l.exec, name);
        const float *want = lw_exec_read(l.exec, name);
        snprintf(name, sizeof name, "got%d", (int)k);
        if (memcmp(lw_exec_read(l.exec, name), want, lw_type_bytes(t)) != 0)
            fail_msg("window %d, %d operands, level %d, type %d: other numbers", (int)k, n,
                     (int)isa, (int)num);
    }
    lab_close(&l);
}

static void test_alone(void **state)
{
    (void)state;
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int n = 1; n <= 3; n++) {
            check_level(isa, n, LW_NUM_F32, 1 + n);
            check_level(isa, n, LW_NUM_BF16, 1);
        }
}

static void test_from_1024_places(void **state)
{
    const lw_attr_attention a = {.heads = 1, .window = 8, .width = 32};
    plan_lab *l = *state;
    lw_val few = LAB_X(l, "few", 1, 31 * 32, 48), many = LAB_X(l, "many", 1, 32 * 32, 48), v;
    v = lw_attention_places(l->g, &few, 1, &a);
    assert_int_equal(((const lw_attr_attention *)lw_val_node(l->g, v)->attr)->window, 0);
    v = lw_attention_places(l->g, &many, 1, &a);
    assert_int_equal(((const lw_attr_attention *)lw_val_node(l->g, v)->attr)->window, 8);
    v = lw_attention_places(l->g, &many, 1,
                            &(lw_attr_attention){.heads = 1, .window = 32, .width = 32});
    assert_int_equal(((const lw_attr_attention *)lw_val_node(l->g, v)->attr)->window, 0);
    assert_int_equal(lw_graph_error(l->g), 0);
}

static void test_pairs(void **state)
{
    (void)state;
    double pairs = 0;
    for (int i = 0; i < H * W; i++)
        for (int j = 0; j < H * W; j++)
            pairs += i / W / WINDOW == j / W / WINDOW && i % W / WINDOW == j % W / WINDOW;
    assert_true(lw_attention_pairs(&windows, H * W, H * W) == pairs);
    assert_true(lw_attention_pairs(&(lw_attr_attention){.heads = 1}, 3, 5) == 15.0);
}

static void test_no_gradient(void **state)
{
    plan_lab *l = *state;
    lw_val x = lw_linear(&l->b, "qkv", LAB_X(l, "x", 1, H * W, 8), 3 * C, false);
    lw_val y = lw_mean(l->g, lw_attention_places(l->g, &x, 1, &windows), LW_OVER_ALL);
    lab_output(l, "loss", y);
    assert_int_equal(lw_grad_params(l->g, y, LW_NOVAL), LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "windows"));
}

static void test_not_whole_rows(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 1, 1025, 48);
    lw_attention_places(l->g, &x, 1, &(lw_attr_attention){.heads = 1, .window = 8, .width = 32});
    assert_int_equal(lw_graph_error(l->g), LW_ESHAPE);
}

/* Attention in a network: how many nodes stay in windows. */
static int windowed(const lw_graph *g)
{
    int n = 0;
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *node = lw_graph_node(g, i);
        n += node->op == LW_OP_ATTENTION && ((const lw_attr_attention *)node->attr)->window == 8;
    }
    return n;
}

static int windowed_in(const char *spec)
{
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps;
    assert_int_equal(lw_rehearsal_open(spec, 128, &net), 0);
    assert_int_equal(lw_graph_new(&g), 0);
    lw_network_in in = {.x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, 128, 128, 3)),
                        .t = lw_input(g, "t", lw_type_of(LW_F32, 1, 1))};
    net->window = 8;
    if (net->condition)
        in.condition = lw_input(g, "c", lw_type_of(LW_F32, 4, 1, 128, 128, net->condition));
    lw_network_append(net, g, in, &taps);
    assert_int_equal(lw_graph_error(g), 0);
    return windowed(g);
}

static void test_networks(void **state)
{
    plan_lab *l = *state;
    lw_unet_config c = lab_unet();
    c.attn[0] = true; /* at 32x32; the level below has 256 places */
    c.classes = c.latent_dim = c.noise_h = c.noise_w = 0;
    l->b.training = false;
    l->b.window = 8;
    lab_output(l, "y", lw_unet(&l->b, &c, (lw_network_in){.x = LAB_X(l, "x", 1, 32, 32, 3)}));
    if (lw_graph_error(l->g) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(windowed(l->g), c.blocks * 2 + 1);
    assert_int_equal(windowed_in("gpu-stress:16"), 2 + 2 + 1); /* 64, 32, twice; 128 */
    assert_int_equal(windowed_in("gpu-intensive-lsd:16"), 3 * 3 * 2);
    assert_int_equal(windowed_in("simple-optimized-unet:64"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone), LAB_CASE(test_from_1024_places), cmocka_unit_test(test_pairs),
        LAB_CASE(test_no_gradient),   LAB_CASE(test_not_whole_rows),   LAB_CASE(test_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
