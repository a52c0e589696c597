/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a drift step at the published size does beside its generator: the masked autoencoder's 86 feature keys of latents,
 * their gradient to the latents, and the fields of all keys with their gradient to the autoencoder's maps (statistics
 * included).
 */
#include "bench/suites/bench_op.h"

#include <stdio.h>

enum { SIDE = 32, LATENT = 4 };

/* Keys and the shapes of the maps they are made of, from a network without weights. */
typedef struct keys {
    lw_mae_config c;
    lw_feature_set set;
} keys;

static int find_keys(int32_t width, keys *k)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    k->c = (lw_mae_config){SIDE, LATENT, width, 1, 0, false};
    LW_TRY(lw_store_new(true, &s));
    lw_network n = lw_network_of(&lw_network_def_mae, &k->c, s);
    return lw_features_parse("maps", &n, SIDE, LATENT, &k->set);
}

static void build_keys(lw_builder *b, const keys *k, lw_val x, lw_val *out)
{
    lw_taps taps = {0};
    lw_mae_net(b, &k->c, x, &taps);
    lw_features_build(b->g, &k->set, x, &taps, out);
}

static lw_val latents(lw_graph *g, const char *name, int32_t batch)
{
    return lw_input(g, name, lw_type_of(LW_F32, 4, batch, SIDE, SIDE, LATENT));
}

/* p: width, B */
static int build_forward(lw_builder *b, const void *what)
{
    const lw_bench_op *op = what;
    lw_val v[LW_MAX_FEATURE_KEYS];
    keys k;
    LW_TRY(find_keys(op->p[0], &k));
    build_keys(b, &k, latents(b->g, "x", op->p[1]), v);
    for (int32_t i = 0; i < k.set.n; i++)
        lw_graph_output_add(b->g, k.set.key[i].name, v[i], LW_NOVAL);
    return lw_graph_error(b->g);
}

/* The same keys' gradient to x, from cotangents that are inputs. */
static int build_gradient(lw_builder *b, const void *what)
{
    const lw_bench_op *op = what;
    lw_graph *g = b->g;
    lw_val v[LW_MAX_FEATURE_KEYS], dv[LW_MAX_FEATURE_KEYS], x = latents(g, "x", op->p[1]), dx;
    keys k;
    LW_TRY(find_keys(op->p[0], &k));
    build_keys(b, &k, x, v);
    LW_TRY(lw_graph_error(g));
    for (int32_t i = 0; i < k.set.n; i++) {
        char name[40];
        snprintf(name, sizeof name, "by/%s", k.set.key[i].name);
        dv[i] = lw_input(g, name, lw_val_type(g, v[i]));
    }
    lw_grad(g, v, dv, k.set.n, &x, &dx, 1);
    lw_graph_output_add(g, "dx", dx, LW_NOVAL);
    return lw_graph_error(g);
}

/* Keys of pictures whose maps are inputs; maps: as the network's taps, whose own values are of another graph. */
static void keys_of_maps(lw_graph *g, const keys *k, const char *who, int32_t batch,
                         const lw_taps *maps, const lw_type *types, lw_taps *in, lw_val *x,
                         lw_val *out)
{
    char name[40];
    *in = (lw_taps){0};
    snprintf(name, sizeof name, "%s/x", who);
    *x = latents(g, name, batch);
    for (int32_t i = 0; i < maps->n; i++) {
        lw_type t = types[i];
        t.dim[0] = batch;
        snprintf(name, sizeof name, "%s/%s", who, maps->tap[i].name);
        lw_tap_add(in, maps->tap[i].name, lw_input(g, name, t));
    }
    lw_features_build(g, &k->set, *x, in, out);
}

static int map_types(const keys *k, lw_taps *maps, lw_type *types)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_TRY(lw_store_new(true, &s));
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    *maps = (lw_taps){0};
    lw_mae_net(&b, &k->c, latents(g, "x", 1), maps);
    for (int32_t i = 0; i < maps->n; i++)
        types[i] = lw_val_type(g, maps->tap[i].val);
    return lw_graph_error(g);
}

/* p: width, groups, generated, positive, unconditional; three temperatures. Gradients to the generated pictures and
 * their maps. */
static int build_fields(lw_builder *b, const void *what)
{
    static const char *const who[] = {"gen", "pos", "unc"};
    const lw_bench_op *op = what;
    lw_graph *g = b->g;
    LW_CLEANUP(lw_free) lw_val(*v)[LW_MAX_FEATURE_KEYS] = lw_calloc(3, sizeof *v);
    lw_taps maps, in[3];
    lw_type types[LW_MAX_TAPS];
    lw_val x[3], loss = LW_NOVAL, one = lw_const_f32(g, 1.0f), wrt[1 + LW_MAX_TAPS],
                 din[1 + LW_MAX_TAPS];
    int32_t groups = op->p[1], n = 0;
    keys k;
    if (!v)
        return LW_ENOMEM;
    LW_TRY(find_keys(op->p[0], &k));
    LW_TRY(map_types(&k, &maps, types));
    for (int i = 0; i < 3; i++)
        keys_of_maps(g, &k, who[i], groups * op->p[2 + i], &maps, types, &in[i], &x[i], v[i]);
    lw_val weight = lw_broadcast(g, one, lw_type_of(LW_F32, 1, groups));
    for (int32_t i = 0; i < k.set.n; i++) {
        const lw_attr_drift a = {.groups = groups,
                                 .n = op->p[2],
                                 .np = op->p[3],
                                 .nu = op->p[4],
                                 .slots = k.set.key[i].slots,
                                 .c = k.set.key[i].c,
                                 .n_tau = 3,
                                 .tau = {0.02, 0.05, 0.2},
                                 .normalize_over_x = true};
        lw_val l = lw_drift_field(g, v[0][i], v[1][i], v[2][i], weight, &a).loss;
        loss = lw_val_ok(loss) ? lw_add(g, loss, l) : l;
    }
    LW_TRY(lw_graph_error(g));
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    wrt[n++] = x[0];
    for (int32_t i = 0; i < in[0].n; i++)
        if (lw_val_type(g, in[0].tap[i].val).rank == 4)
            wrt[n++] = in[0].tap[i].val;
    lw_grad(g, &loss, &one, 1, wrt, din, n);
    for (int32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", (int)i);
        lw_graph_output_add(g, name, din[i], LW_NOVAL);
    }
    return lw_graph_error(g);
}

static const lw_bench_op cases[] = {
    {"mae_keys_w64_b16", build_forward, {64, 16}},
    {"mae_keys_gradient_w64_b16", build_gradient, {64, 16}},
    {"mae_fields_w64_8x16x32x8", build_fields, {64, 8, 16, 32, 8}},
    {"mae_keys_w40_b2", build_forward, {40, 2}},
    {"mae_keys_gradient_w40_b2", build_gradient, {40, 2}},
    {"mae_fields_w40_2x4x4x2", build_fields, {40, 2, 4, 4, 2}},
};

int lw_bench_suite_mae(lw_bench_run *r)
{
    return lw_bench_run_ops(r, cases, LW_COUNT(cases));
}
