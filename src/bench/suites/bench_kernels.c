/* SPDX-License-Identifier: Apache-2.0 */
/* Every family of kernels at the shapes that the networks have, through plans of one op. */
#include "bench/suites/bench_op.h"

#define CONV(c, o, side, k, s, b)                                                               \
    {"conv" #k "x" #k "_" #c "_" #o "@" #side "_s" #s "_b" #b,                                  \
     lw_bench_build_conv,                                                                       \
     {c, o, side, k, s, b}},                                                                    \
        {"conv" #k "x" #k "_" #c "_" #o "@" #side "_s" #s "_b" #b "_dx",                        \
         lw_bench_build_conv_dx,                                                                \
         {c, o, side, k, s, b}},                                                                \
    {                                                                                           \
        "conv" #k "x" #k "_" #c "_" #o "@" #side "_s" #s "_b" #b "_dw", lw_bench_build_conv_dw, \
        {                                                                                       \
            c, o, side, k, s, b                                                                 \
        }                                                                                       \
    }
#define LINEAR(m, n, k)                                                          \
    {"linear_" #m "x" #n "x" #k, lw_bench_build_linear, {m, n, k}},              \
        {"linear_" #m "x" #n "x" #k "_dx", lw_bench_build_linear_dx, {m, n, k}}, \
    {                                                                            \
        "linear_" #m "x" #n "x" #k "_dw", lw_bench_build_linear_dw,              \
        {                                                                        \
            m, n, k                                                              \
        }                                                                        \
    }

static const lw_bench_op ops[] = {
    /* the shared U-Net's convolutions, one picture and eight */
    CONV(128, 128, 32, 3, 1, 1),
    CONV(128, 128, 32, 3, 1, 8),
    CONV(256, 256, 16, 3, 1, 1),
    CONV(256, 256, 16, 3, 1, 8),
    CONV(256, 256, 8, 3, 1, 8),
    CONV(256, 256, 4, 3, 1, 8),
    CONV(512, 256, 16, 3, 1, 1),
    CONV(3, 128, 32, 3, 1, 8),
    CONV(128, 3, 32, 3, 1, 8),
    CONV(128, 128, 32, 3, 2, 8),
    {"upsample2_conv3x3_256_256@32_b8", lw_bench_build_upsampled_conv, {256, 256, 32, 3, 1, 8}},
    CONV(256, 256, 16, 1, 1, 8),
    /* the demonstration's */
    CONV(16, 16, 16, 3, 1, 128),
    CONV(32, 32, 16, 3, 1, 128),
    /* linear layers: the embedding of times, q|k|v, the projection behind attention */
    LINEAR(8, 512, 512),
    LINEAR(256, 768, 256),
    LINEAR(2048, 768, 256),
    LINEAR(2048, 256, 256),
    LINEAR(1024, 1024, 1024),
    /* odd sizes */
    LINEAR(77, 131, 203),
    CONV(19, 23, 13, 3, 1, 3),
    /* norms, attention, softmax */
    {"norm_silu_128@32_b8", lw_bench_build_norm, {8, 32, 128, 32}},
    {"norm_silu_256@16_b1", lw_bench_build_norm, {1, 16, 256, 32}},
    {"norm_silu_128@32_b8_train", lw_bench_build_norm_train, {8, 32, 128, 32}},
    {"attention_256x256_h4_b8", lw_bench_build_attention, {8, 256, 256, 4}},
    {"attention_256x256_h4_b8_train", lw_bench_build_attention_train, {8, 256, 256, 4}},
    {"softmax_4096x256", lw_bench_build_softmax, {4096, 256}},
    {"cross_entropy_4096x100", lw_bench_build_cross_entropy, {4096, 100}},
    /* distances of all pairs of rows */
    {"pairs_l1_512x256x400", lw_bench_build_pairs, {512, 256, 400, LW_DISTANCE_L1}},
    {"pairs_modulus_512x256x400", lw_bench_build_pairs, {512, 256, 400, LW_DISTANCE_MODULUS}},
    {"pairs_modulus_512x256x400_train",
     lw_bench_build_pairs_train,
     {512, 256, 400, LW_DISTANCE_MODULUS}},
    /* what memory bounds */
    {"silu_128@32_b8", lw_bench_build_silu, {8, 32, 128}},
    {"add_128@32_b8", lw_bench_build_add, {8, 32, 128}},
    {"upsample2_256@16_b8", lw_bench_build_upsample, {8, 16, 256}},
    {"avg_pool2_128@32_b8", lw_bench_build_avg_pool, {8, 32, 128}},
    {"resize2_64@32_b8", lw_bench_build_resize, {8, 32, 64}},
    {"feature_stats_64@32_b8", lw_bench_build_stats, {8, 32, 64}},
    {"mean_pixels_128@32_b8", lw_bench_build_mean, {8, 32, 128}},
    {"normal_3@32_b128", lw_bench_build_normal, {128, 32, 3}},
    {"dropout_128@32_b8", lw_bench_build_dropout, {8, 32, 128}},
};

/* The optimiser's pass over the slabs: 16 numbers in and out for each parameter. */
typedef struct adamw_case {
    lw_device *dev;
    lw_update u;
} adamw_case;

static int adamw_call(void *self)
{
    adamw_case *c = self;
    double norm;
    c->u.t++;
    return c->dev->update(c->dev->self, &c->u, &norm);
}

static int measure_adamw(lw_bench_run *r)
{
    enum { N = 4 << 20 };
    const char *name = "adamw_ema_4M";
    const size_t bytes = (size_t)LW_SLABS * N * sizeof(float);
    if (!lw_bench_wants(r, name))
        return 0;
    float *slab = lw_bulk_alloc(bytes);
    int rc = slab ? 0 : LW_ENOMEM;
    if (rc == 0) {
        adamw_case c = {.dev = r->dev};
        c.u = (lw_update){.n = N,
                          .lr = 1e-3,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .eps = 1e-8,
                          .grad_scale = 1,
                          .max_norm = 1,
                          .ema_decay = 0.999};
        for (int i = 0; i < LW_SLABS; i++)
            c.u.slab[i] = slab + (size_t)i * N;
        for (int64_t i = 0; i < N; i++)
            c.u.slab[LW_SLAB_GRAD][i] = 1e-3f * (float)(i % 7 - 3);
        rc = lw_bench_measure(r,
                              &(lw_bench_work){.name = name,
                                               .method = "f32",
                                               .call = adamw_call,
                                               .self = &c,
                                               .bytes = 10.0 * sizeof(float) * N,
                                               .memory = bytes,
                                               .error = (double)__builtin_nan("")},
                              NULL);
    }
    lw_bulk_free(&slab, bytes);
    return rc;
}

int lw_bench_suite_kernels(lw_bench_run *r)
{
    LW_TRY(lw_bench_run_ops(r, ops, LW_COUNT(ops)));
    LW_TRY(lw_bench_resample(r));
    return measure_adamw(r);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Tokens by channels, in heads of 64 numbers: never more memory than its operands' order. */
static const lw_bench_op attentions[] = {
    {"attention_t64_c256", lw_bench_build_attention, {8, 64, 256, 4}},
    {"attention_t256_c256", lw_bench_build_attention, {8, 256, 256, 4}},
    {"attention_t1024_c256", lw_bench_build_attention, {2, 1024, 256, 4}},
    {"attention_t4096_c256", lw_bench_build_attention, {1, 4096, 256, 4}},
    {"attention_t257_c384", lw_bench_build_attention, {4, 257, 384, 6}},
    {"attention_t64_c256_train", lw_bench_build_attention_train, {8, 64, 256, 4}},
    {"attention_t256_c256_train", lw_bench_build_attention_train, {8, 256, 256, 4}},
    {"attention_t1024_c256_train", lw_bench_build_attention_train, {2, 1024, 256, 4}},
    {"attention_t4096_c256_train", lw_bench_build_attention_train, {1, 4096, 256, 4}},
};

int lw_bench_suite_attention(lw_bench_run *r)
{
    return lw_bench_run_ops(r, attentions, LW_COUNT(attentions));
}
