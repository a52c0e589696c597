/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of transformers against PyTorch, built as a user builds them: outputs, all gradients, in
 * f32 and bf16; outputs in int8. */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"

enum {
    BATCH = 2,
    TOKENS = 17,
    WIDTH = 32,
    HEADS = 2,
    HIDDEN = 64
}; /* as transformer.py has them */

static lw_val mlp(lw_builder *b, lw_val x, lw_ewop act)
{
    const char *up = lw_scope_push(b->g, "mlp");
    lw_val h = lw_ew1(b->g, act, lw_linear(b, "fc1", x, HIDDEN, true));
    h = lw_linear(b, "fc2", h, WIDTH, true);
    lw_scope_set(b->g, up);
    return h;
}

/* A LayerNorm of every head: [B,T,C] is [B,T,H,d]. */
static lw_val head_norm(lw_builder *b, const char *name, lw_val x)
{
    lw_type t = lw_val_type(b->g, x);
    x = lw_reshape(b->g, x, lw_type_of(LW_F32, 4, BATCH, TOKENS, HEADS, WIDTH / HEADS));
    return lw_reshape(b->g, lw_layer_norm(b, name, x, 1e-6f, LW_NOVAL), t);
}

static lw_val self_attention(lw_builder *b, lw_val x, bool norm)
{
    lw_graph *g = b->g;
    const char *up = lw_scope_push(g, "attn");
    lw_val y, qkv = lw_linear(b, "qkv", x, 3 * WIDTH, true);
    if (norm) {
        lw_val q = head_norm(b, "q_norm", lw_slice(g, qkv, -1, 0, WIDTH));
        lw_val k = head_norm(b, "k_norm", lw_slice(g, qkv, -1, WIDTH, 2 * WIDTH));
        y = lw_attention_qkv(g, q, k, lw_slice(g, qkv, -1, 2 * WIDTH, 3 * WIDTH), HEADS);
    } else {
        y = lw_attention(g, qkv, HEADS);
    }
    y = lw_linear(b, "proj", y, WIDTH, true);
    lw_scope_set(g, up);
    return y;
}

static lw_val block(lw_builder *b, lw_val x, bool norm)
{
    lw_val h = lw_layer_norm(b, "norm1", x, 1e-6f, LW_NOVAL);
    x = lw_add(b->g, x, self_attention(b, h, norm));
    h = lw_layer_norm(b, "norm2", x, 1e-6f, LW_NOVAL);
    return lw_add(b->g, x, mlp(b, h, LW_EW_gelu));
}

static lw_val b_vit(lw_builder *b, lw_val x)
{
    return block(b, x, false);
}

static lw_val b_qk_norm(lw_builder *b, lw_val x)
{
    return block(b, x, true);
}

/* Rows at .. at + n - 1 of the stacked projections of MultiheadAttention. */
static lw_val in_proj(lw_builder *b, lw_val x, int at, int n)
{
    lw_init init = {LW_INIT_UNIFORM, 0.1f};
    lw_val w = lw_param(b, "in_proj_weight", lw_type_of(LW_F32, 2, 3 * WIDTH, WIDTH), init);
    lw_val bias = lw_param(b, "in_proj_bias", lw_type_of(LW_F32, 1, 3 * WIDTH), init);
    return lw_linear_op(b->g, x, lw_slice(b->g, w, 0, at, at + n),
                        lw_slice(b->g, bias, 0, at, at + n));
}

static lw_val b_pool(lw_builder *b, lw_val x)
{
    lw_graph *g = b->g;
    lw_val probe = lw_param(b, "probe", lw_type_of(LW_F32, 3, 1, 1, WIDTH), (lw_init){0});
    const char *up = lw_scope_push(g, "attention");
    lw_val q = lw_reshape(g, in_proj(b, probe, 0, WIDTH), lw_type_of(LW_F32, 1, WIDTH));
    q = lw_broadcast(g, q, lw_type_of(LW_F32, 3, BATCH, 1, WIDTH));
    lw_val y = lw_cross_attention(g, q, in_proj(b, x, WIDTH, 2 * WIDTH), HEADS);
    y = lw_linear(b, "out_proj", y, WIDTH, true);
    lw_scope_set(g, up);
    return lw_add(g, y, mlp(b, lw_layer_norm(b, "layernorm", y, 0, LW_NOVAL), LW_EW_gelu_tanh));
}

typedef struct block_case {
    const char *name;
    lw_val (*build)(lw_builder *b, lw_val x);
    int32_t tokens; /* of the result */
} block_case;

static const block_case cases[] = {
    {"vit", b_vit, TOKENS}, {"qk_norm", b_qk_norm, TOKENS}, {"pool", b_pool, 1}};

/* ---- running a case -------------------------------------------------------------------------- */

/* What the products of a block read lies in these ranges. */
static const lw_edge_range edges[] = {{"attn.qkv.weight", 0.03f, 128},
                                      {"attn.proj.weight", 0.015f, 128},
                                      {"mlp.fc1.weight", 0.03f, 128},
                                      {"mlp.fc2.weight", 0.02f, 20}};
static const lw_calibration calibration = {edges, LW_COUNT(edges)};

/* Of int8 the forward pass alone. */
static int compile(const block_case *k, lw_store *s, lw_device *dev, lw_num precision,
                   lw_plan **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 3, BATCH, TOKENS, WIDTH)), gx;
    lw_val y = k->build(&b, x);
    LW_TRY(lw_graph_error(g));
    LW_TRY(lw_store_fix(s));
    lw_graph_output_add(g, "y", y, LW_NOVAL);
    if (precision != LW_NUM_S8) {
        lw_val gy = lw_input(g, "gy", lw_type_of(LW_F32, 3, BATCH, k->tokens, WIDTH));
        lw_grad(g, &y, &gy, 1, &x, &gx, 1);
        lw_graph_output_add(g, "gx", gx, LW_NOVAL);
        LW_TRY(lw_grad_params(g, lw_sum(g, lw_mul(g, y, gy), LW_OVER_ALL), LW_NOVAL));
    }
    const lw_compile_opts o = {.opt = 1, .precision = precision, .calibration = &calibration};
    return lw_compile(g, dev, &o, out);
}

/* |have - want| / |want|, or / 1 where that is less: the gradient of a key's bias is zero. */
static double error_of(const lw_st_file *f, const char *name, const char *kind, const char *what,
                       const float *have, int64_t n)
{
    char key[160];
    int64_t count;
    snprintf(key, sizeof key, "%s.%s%s", name, kind, what);
    double *want = golden_get(f, key, &count);
    assert_int_equal(count, n);
    double err = golden_relative(have, want, n, 1.0);
    free(want);
    return err;
}

static double output_error(const lw_st_file *f, const char *name, lw_exec *e, const char *what)
{
    return error_of(f, name, "", what, lw_exec_read(e, what), lw_type_count(lw_exec_type(e, what)));
}

static void put(const lw_st_file *f, const char *key, float *to)
{
    int64_t n;
    float *x = golden_get_f32(f, key, &n);
    memcpy(to, x, sizeof *x * (size_t)n);
    free(x);
}

/* The error of y; backward: the worst of it, gx and every parameter's gradient. */
static double run_case(const block_case *k, const lw_st_file *f, lw_device *dev, lw_num precision)
{
    char key[64];
    bool backward = precision != LW_NUM_S8;
    lw_store *s = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    assert_ok(lw_store_new(false, &s));
    assert_ok(compile(k, s, dev, precision, &plan));
    golden_fill_store(s);
    assert_ok(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    snprintf(key, sizeof key, "%s.gy", k->name);
    put(f, "x", lw_exec_write(e, "x"));
    if (backward)
        put(f, key, lw_exec_write(e, "gy"));
    assert_ok(lw_exec_run(e, &(lw_tick){0}));
    double worst = output_error(f, k->name, e, "y");
    if (backward)
        worst = fmax(worst, output_error(f, k->name, e, "gx"));
    for (int32_t i = 0; backward && i < lw_store_count(s); i++) {
        const lw_store_entry *p = lw_store_at(s, i);
        worst = fmax(worst, error_of(f, k->name, "grad.", p->name,
                                     lw_store_data(s, i, LW_SLAB_GRAD), p->count));
    }
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_store_free(&s);
    return worst;
}

static void test_blocks(void **state)
{
    lw_st_file *f = golden_open("transformer");
    int n;
    const lw_isa *isas = golden_isas(&n);
    (void)state;
    for (int i = 0; i < n; i++) {
        lw_device *dev = golden_device(isas[i], 2);
        for (size_t k = 0; k < LW_COUNT(cases); k++) {
            double f32 = run_case(&cases[k], f, dev, LW_NUM_F32);
            double bf16 = run_case(&cases[k], f, dev, LW_NUM_BF16);
            print_message("%-8s %-8s f32 %.1e, bf16 %.1e\n", lw_isa_name(isas[i]), cases[k].name,
                          f32, bf16);
            golden_check(cases[k].name, f32, 5e-6);
            golden_check(cases[k].name, bf16, 2e-2);
            assert_true(bf16 > 1e-4); /* products have narrow operands */
            if (cases[k].tokens == 1) /* the ranges are those of blocks */
                continue;
            double int8 = run_case(&cases[k], f, dev, LW_NUM_S8);
            print_message("%-8s %-8s int8 %.1e\n", lw_isa_name(isas[i]), cases[k].name, int8);
            golden_check(cases[k].name, int8, 3e-2);
            assert_true(int8 > 1e-3);
        }
        lw_backend_close(&dev);
    }
    lw_st_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
