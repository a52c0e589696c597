/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of one op each. */
#include "bench/suites/bench_op.h"

#include "bench/bench_reference.h"

static const lw_init small_random = {LW_INIT_NORMAL, 0.05f};

static lw_type images(int32_t b, int32_t side, int32_t c)
{
    return lw_type_of(LW_F32, 4, b, side, side, c);
}

static int give(lw_graph *g, lw_val y)
{
    lw_graph_output_add(g, "y", y, LW_NOVAL);
    return 0;
}

/* The gradient of y (for a random one of its own) with respect to one value, as an output. */
static int give_gradient(lw_graph *g, lw_val y, lw_val wrt, const char *name)
{
    lw_val dy = lw_input(g, "dy", lw_val_type(g, y)), dx = LW_NOVAL;
    lw_grad(g, &y, &dy, 1, &wrt, &dx, 1);
    lw_graph_output_add(g, name, dx, LW_NOVAL);
    return 0;
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct conv_vals {
    lw_val x, w, y;
} conv_vals;

static conv_vals conv_of(lw_builder *b, lw_val x, const int32_t *p, bool weight_is_input)
{
    lw_type tw = lw_type_of(LW_F32, 4, p[1], p[3], p[3], p[0]);
    conv_vals v = {.x = x};
    v.w = weight_is_input ? lw_input(b->g, "w", tw) : lw_param(b, "w", tw, small_random);
    lw_val bias = lw_param(b, "bias", lw_type_of(LW_F32, 1, p[1]), small_random);
    v.y = lw_conv2d_op(b->g, v.x, v.w, bias, p[4], p[3] / 2);
    return v;
}

static conv_vals conv(lw_builder *b, const int32_t *p, bool weight_is_input)
{
    return conv_of(b, lw_input(b->g, "x", images(p[5], p[2], p[0])), p, weight_is_input);
}

int lw_bench_build_upsampled_conv(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    lw_val x = lw_input(b->g, "x", images(p[5], p[2] / 2, p[0]));
    return give(b->g, conv_of(b, lw_upsample(b->g, x, 2), p, false).y);
}

int lw_bench_build_conv_row(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    const lw_val x = lw_input(b->g, "x", images(p[5], p[2], p[0])),
                 w = lw_param(b, "w", lw_type_of(LW_F32, 4, p[1], 1, p[3], p[0]), small_random);
    const int pad[4] = {0, p[3] / 2, 0, p[3] / 2};
    return give(b->g, lw_conv2d_pad(b->g, x, w, LW_NOVAL, p[4], pad));
}

int lw_bench_build_conv(lw_builder *b, const void *what)
{
    return give(b->g, conv(b, ((const lw_bench_op *)what)->p, false).y);
}

int lw_bench_build_conv_dx(lw_builder *b, const void *what)
{
    conv_vals v = conv(b, ((const lw_bench_op *)what)->p, false);
    return give_gradient(b->g, v.y, v.x, "dx");
}

int lw_bench_build_conv_dw(lw_builder *b, const void *what)
{
    conv_vals v = conv(b, ((const lw_bench_op *)what)->p, true);
    return give_gradient(b->g, v.y, v.w, "dw");
}

static conv_vals linear(lw_builder *b, const int32_t *p, bool weight_is_input)
{
    lw_type tw = lw_type_of(LW_F32, 2, p[1], p[2]);
    conv_vals v = {.x = lw_input(b->g, "x", lw_type_of(LW_F32, 2, p[0], p[2]))};
    v.w = weight_is_input ? lw_input(b->g, "w", tw) : lw_param(b, "w", tw, small_random);
    lw_val bias = lw_param(b, "bias", lw_type_of(LW_F32, 1, p[1]), small_random);
    v.y = lw_linear_op(b->g, v.x, v.w, bias);
    return v;
}

int lw_bench_build_linear(lw_builder *b, const void *what)
{
    return give(b->g, linear(b, ((const lw_bench_op *)what)->p, false).y);
}

int lw_bench_build_linear_dropout(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    const lw_val rows = lw_input(b->g, "rows", lw_type_of(LW_I64, 1, p[0]));
    return give(b->g, lw_dropout(b->g, linear(b, p, false).y, rows, .1f));
}

int lw_bench_build_linear_dx(lw_builder *b, const void *what)
{
    conv_vals v = linear(b, ((const lw_bench_op *)what)->p, false);
    return give_gradient(b->g, v.y, v.x, "dx");
}

int lw_bench_build_linear_dw(lw_builder *b, const void *what)
{
    conv_vals v = linear(b, ((const lw_bench_op *)what)->p, true);
    return give_gradient(b->g, v.y, v.w, "dw");
}

/* ---- attention and norms --------------------------------------------------------------------- */

int lw_bench_build_attention(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    lw_val qkv = lw_input(b->g, "qkv", lw_type_of(LW_F32, 3, p[0], p[1], 3 * p[2]));
    return give(b->g, lw_attention(b->g, qkv, p[3]));
}

int lw_bench_build_attention_train(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    lw_val qkv = lw_input(b->g, "qkv", lw_type_of(LW_F32, 3, p[0], p[1], 3 * p[2]));
    lw_val y = lw_attention(b->g, qkv, p[3]);
    give(b->g, y);
    return give_gradient(b->g, y, qkv, "dqkv");
}

static conv_vals norm(lw_builder *b, const int32_t *p)
{
    lw_graph *g = b->g;
    lw_type c = lw_type_of(LW_F32, 1, p[2]), bc = lw_type_of(LW_F32, 2, p[0], p[2]);
    conv_vals v = {.x = lw_input(g, "x", images(p[0], p[1], p[2]))};
    v.w = lw_param(b, "weight", c, small_random);
    v.y = lw_group_norm_op(g, v.x, v.w, lw_param(b, "bias", c, small_random),
                           lw_input(g, "scale", bc), lw_input(g, "shift", bc), p[3], 1e-5f,
                           LW_ACT_SILU);
    return v;
}

int lw_bench_build_norm(lw_builder *b, const void *what)
{
    return give(b->g, norm(b, ((const lw_bench_op *)what)->p).y);
}

int lw_bench_build_norm_train(lw_builder *b, const void *what)
{
    conv_vals v = norm(b, ((const lw_bench_op *)what)->p);
    give(b->g, v.y);
    return give_gradient(b->g, v.y, v.x, "dx");
}

/* ---- everything that memory bounds ----------------------------------------------------------- */

static lw_val pictures(lw_builder *b, const void *what, const char *name)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    return lw_input(b->g, name, images(p[0], p[1], p[2]));
}

int lw_bench_build_silu(lw_builder *b, const void *what)
{
    return give(b->g, lw_silu(b->g, pictures(b, what, "x")));
}

int lw_bench_build_add(lw_builder *b, const void *what)
{
    return give(b->g, lw_add(b->g, pictures(b, what, "x"), pictures(b, what, "z")));
}

int lw_bench_build_upsample(lw_builder *b, const void *what)
{
    return give(b->g, lw_upsample(b->g, pictures(b, what, "x"), 2));
}

int lw_bench_build_avg_pool(lw_builder *b, const void *what)
{
    return give(b->g, lw_pool2d(b->g, pictures(b, what, "x"), 2, 2, 0, false));
}

int lw_bench_build_resize(lw_builder *b, const void *what)
{
    int32_t side = 2 * ((const lw_bench_op *)what)->p[1];
    lw_val x = pictures(b, what, "x");
    return give(b->g, lw_resize(b->g, x,
                                (lw_attr_resize){.h = side,
                                                 .w = side,
                                                 .form = LW_RESAMPLE_TORCH,
                                                 .filter = LW_FILTER_BILINEAR}));
}

int lw_bench_build_stats(lw_builder *b, const void *what)
{
    static const char *const name[LW_STATS] = {"mean", "std", "mean2", "std2", "mean4", "std4"};
    lw_val out[LW_STATS];
    lw_feature_stats(b->g, pictures(b, what, "x"), out);
    for (int i = 0; i < LW_STATS; i++)
        lw_graph_output_add(b->g, name[i], out[i], LW_NOVAL);
    return 0;
}

int lw_bench_build_mean(lw_builder *b, const void *what)
{
    return give(b->g, lw_mean(b->g, pictures(b, what, "x"), LW_OVER_MIDDLE));
}

static lw_val rows_of(lw_builder *b, const void *what)
{
    return lw_input(b->g, "rows", lw_type_of(LW_I64, 1, ((const lw_bench_op *)what)->p[0]));
}

int lw_bench_build_normal(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    return give(b->g, lw_random(b->g, "noise", LW_RANDOM_NORMAL, 0, images(p[0], p[1], p[2]),
                                rows_of(b, what)));
}

int lw_bench_build_dropout(lw_builder *b, const void *what)
{
    return give(b->g, lw_dropout(b->g, pictures(b, what, "x"), rows_of(b, what), 0.1f));
}

int lw_bench_build_softmax(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    return give(b->g, lw_softmax(b->g, lw_input(b->g, "x", lw_type_of(LW_F32, 2, p[0], p[1]))));
}

int lw_bench_build_cross_entropy(lw_builder *b, const void *what)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    lw_val x = lw_input(b->g, "x", lw_type_of(LW_F32, 2, p[0], p[1]));
    return give(b->g,
                lw_cross_entropy(b->g, x, lw_input(b->g, "labels", lw_type_of(LW_I32, 1, p[0]))));
}

static lw_val pairs(lw_builder *b, const int32_t *p, lw_val *x)
{
    *x = lw_input(b->g, "x", lw_type_of(LW_F32, 2, p[0], p[2]));
    lw_val y = lw_input(b->g, "rows", lw_type_of(LW_F32, 2, p[1], p[2]));
    return lw_pair_distance(b->g, *x, y, (lw_distance)p[3]);
}

int lw_bench_build_pairs(lw_builder *b, const void *what)
{
    lw_val x;
    return give(b->g, pairs(b, ((const lw_bench_op *)what)->p, &x));
}

int lw_bench_build_pairs_train(lw_builder *b, const void *what)
{
    lw_val x, d = pairs(b, ((const lw_bench_op *)what)->p, &x);
    give(b->g, d);
    return give_gradient(b->g, d, x, "dx");
}

static int build_field(lw_builder *b, const void *what, lw_drift_products products)
{
    const int32_t *p = ((const lw_bench_op *)what)->p;
    lw_graph *g = b->g;
    lw_attr_drift a = {.groups = p[0],
                       .n = p[1],
                       .np = p[2],
                       .nu = p[3],
                       .slots = p[4],
                       .c = p[5],
                       .n_tau = 3,
                       .tau = {0.02, 0.05, 0.2},
                       .normalize_over_x = 1,
                       .products = products};
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 3, a.groups * a.n, a.slots, a.c));
    lw_val pos = lw_input(g, "p", lw_type_of(LW_F32, 3, a.groups * a.np, a.slots, a.c));
    lw_val unc = LW_NOVAL, w = LW_NOVAL;
    if (a.nu > 0) {
        float *one = lw_arena_alloc(lw_graph_arena(g), (size_t)a.groups * sizeof *one);
        for (int32_t i = 0; one && i < a.groups; i++)
            one[i] = 1.0f;
        unc = lw_input(g, "u", lw_type_of(LW_F32, 3, a.groups * a.nu, a.slots, a.c));
        w = one ? lw_const(g, lw_type_of(LW_F32, 1, a.groups), one) : LW_NOVAL;
    }
    lw_drift_out o = lw_drift_field(g, x, pos, unc, w, &a);
    lw_graph_output_add(g, "dx", o.dx, LW_NOVAL);
    lw_graph_output_add(g, "stats", o.stats, LW_NOVAL);
    return 0;
}

int lw_bench_build_field(lw_builder *b, const void *what)
{
    return build_field(b, what, LW_DRIFT_F32);
}

int lw_bench_build_field_bf16(lw_builder *b, const void *what)
{
    return build_field(b, what, LW_DRIFT_BF16);
}

/* ---- as cases -------------------------------------------------------------------------------- */

int lw_bench_run_ops(lw_bench_run *r, const lw_bench_op *op, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const lw_workload_spec spec = {.build = op[i].build,
                                       .what = &op[i],
                                       .opts = {.opt = 1},
                                       .limit = lw_bench_memory_limit(r)};
        if (lw_bench_wants(r, op[i].name))
            LW_TRY(lw_bench_workload(r, NULL, &spec, op[i].name, 0));
    }
    return 0;
}
