/* SPDX-License-Identifier: Apache-2.0 */
/* The masked autoencoder of the published drifting generators. */
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

enum { STAGES = 4, HALVED = 1 << (STAGES - 1), GROUPS = 32 };
static const int32_t blocks[STAGES] = {3, 4, 6, 3};

static lw_val norm(lw_builder *b, const char *name, lw_val x, lw_act act)
{
    if (!lw_val_ok(x))
        return x;
    int32_t groups = lw_norm_groups(GROUPS, lw_type_last(lw_val_type(b->g, x)));
    return lw_group_norm(b, name, x, (lw_norm_opts){.groups = groups, .eps = 1e-6f, .act = act});
}

/* Of scopes conv<i> and norm<i>. */
static lw_val conv_norm(lw_builder *b, int i, lw_val x, int32_t o, int stride, lw_act act)
{
    char conv[16], gn[16];
    snprintf(conv, sizeof conv, "conv%d", i);
    snprintf(gn, sizeof gn, "norm%d", i);
    x = lw_conv2d(b, conv, x, o,
                  (lw_conv_opts){.kernel = 3, .stride = stride, .pad = 1, .no_bias = true});
    return norm(b, gn, x, act);
}

static lw_val block(lw_builder *b, lw_val x, int32_t o, int stride)
{
    if (!lw_val_ok(x))
        return x;
    bool changes = stride != 1 || lw_type_last(lw_val_type(b->g, x)) != o;
    lw_val h = conv_norm(b, 1, x, o, stride, LW_ACT_RELU);
    h = conv_norm(b, 2, h, o, 1, LW_ACT_NONE);
    if (changes) {
        x = lw_conv2d(b, "downsample.0", x, o,
                      (lw_conv_opts){.kernel = 1, .stride = stride, .no_bias = true});
        x = norm(b, "downsample.1", x, LW_ACT_NONE);
    }
    return lw_relu(b->g, lw_add(b->g, h, x));
}

/* Stage s from 1 on; every second block is a tap, and what the stage's norm gives. */
static lw_val stage(lw_builder *b, const lw_mae_config *c, int32_t s, lw_val h, lw_taps *out)
{
    lw_graph *g = b->g;
    char name[32];
    for (int32_t i = 0; i < blocks[s - 1]; i++) {
        const char *up = lw_scope_pushf(g, "layer%d.%d", s, i);
        h = lw_layer_done(b, "", h, block(b, h, c->width << (s - 1), i == 0 && s > 1 ? 2 : 1));
        lw_scope_set(g, up);
        snprintf(name, sizeof name, "layer%d_blk%d", s, i + 1);
        if (i % 2)
            lw_tap_add(out, name, h);
    }
    const char *up = lw_scope_pushf(g, "layer%d", s);
    h = norm(b, "norm", h, LW_ACT_NONE);
    lw_scope_set(g, up);
    snprintf(name, sizeof name, "layer%d", s);
    lw_tap_add(out, name, h);
    return h;
}

lw_val lw_mae_places(lw_graph *g, const lw_mae_config *c, lw_val images)
{
    if (!lw_val_ok(images))
        return images;
    lw_type t = lw_val_type(g, images);
    int32_t p = c->patchify, cell = HALVED * p;
    if (t.rank != 4 || t.dim[3] != c->channels || t.dim[1] % cell || t.dim[2] % cell)
        return lw_graph_fail(g, LW_ESHAPE,
                             "this encoder wants images [B,H,W,%d] with H and W multiples of %d",
                             (int)c->channels, (int)cell);
    if (p == 1)
        return images;
    return lw_reshape(
        g, lw_patches(g, images, p),
        lw_type_of(LW_F32, 4, t.dim[0], t.dim[1] / p, t.dim[2] / p, p * p * c->channels));
}

void lw_mae_net(lw_builder *b, const lw_mae_config *c, lw_val x, lw_taps *out)
{
    lw_graph *g = b->g;
    lw_taps maps = {0};
    if (!lw_val_ok(x))
        return;
    lw_val h = conv_norm(b, 1, x, c->width, 1, LW_ACT_RELU);
    lw_tap_add(&maps, "conv1", h);
    for (int32_t s = 1; s <= STAGES; s++)
        h = stage(b, c, s, h, &maps);
    lw_val pooled = lw_mean(g, h, LW_OVER_MIDDLE);
    if (c->classes > 0)
        lw_tap_add(
            out, "logits",
            lw_linear(b, "fc", lw_layer_done(b, "head", LW_NOVAL, pooled), c->classes, true));
    lw_tap_add(out, "pooled", pooled);
    for (int32_t i = 0; i < maps.n; i++)
        lw_tap_add(out, maps.tap[i].name, maps.tap[i].val);
}

/* h at the sides of `skip`, beside it. */
static lw_val beside(lw_graph *g, lw_val h, lw_val skip)
{
    if (!lw_val_ok(h) || !lw_val_ok(skip))
        return LW_NOVAL;
    lw_type t = lw_val_type(g, skip);
    if (lw_val_type(g, h).dim[1] != t.dim[1])
        h = lw_resize(g, h,
                      (lw_attr_resize){.h = t.dim[1],
                                       .w = t.dim[2],
                                       .form = LW_RESAMPLE_TORCH,
                                       .filter = LW_FILTER_BILINEAR});
    return lw_concat(g, h, skip, 3);
}

lw_val lw_mae_decode(lw_builder *b, const lw_mae_config *c, const lw_taps *taps)
{
    static const char *const skip[] = {"layer3", "layer2", "layer1", "conv1"};
    lw_graph *g = b->g;
    if (!c->decoder)
        return lw_graph_fail(g, LW_EUSAGE, "this encoder has no decoder");
    const char *up = lw_scope_push(g, "decoder.0");
    lw_val h = conv_norm(b, 1, lw_tap_find(taps, "layer4"), c->width * HALVED, 1, LW_ACT_RELU);
    lw_scope_set(g, up);
    for (int i = 0; i < STAGES; i++) {
        int32_t o = c->width * (i + 1 < STAGES ? HALVED >> (i + 1) : 1);
        up = lw_scope_pushf(g, "decoder.%d", i + 1);
        h = norm(b, "norm0", beside(g, h, lw_tap_find(taps, skip[i])), LW_ACT_NONE);
        h = conv_norm(b, 1, h, o, 1, LW_ACT_RELU);
        h = conv_norm(b, 2, h, o, 1, LW_ACT_RELU);
        lw_scope_set(g, up);
    }
    return lw_conv2d(b, "head", h, c->patchify * c->patchify * c->channels,
                     (lw_conv_opts){.kernel = 1});
}

/* ---- config.json ----------------------------------------------------------------------------- */

static int in_range(const char *what, int32_t v, int32_t lo, int32_t hi)
{
    if (v < lo || v > hi)
        return lw_fail(LW_EUSAGE, "encoder: %s is %d, must be %d to %d", what, (int)v, (int)lo,
                       (int)hi);
    return 0;
}

int lw_mae_check(const lw_mae_config *c)
{
    LW_TRY(in_range("image size", c->image_size, 1, 4096));
    LW_TRY(in_range("channels", c->channels, 1, LW_MAX_CHANNELS));
    LW_TRY(in_range("width", c->width, 1, 4096));
    LW_TRY(in_range("patchify size", c->patchify, 1, 64));
    LW_TRY(in_range("classes", c->classes, 0, 1 << 20));
    if (c->image_size % (HALVED * c->patchify))
        return lw_fail(LW_EUSAGE, "encoder: image size %d is no multiple of %d", (int)c->image_size,
                       (int)(HALVED * c->patchify));
    return 0;
}

json_t *lw_mae_to_json(const lw_mae_config *c)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:b}", "_class_name", "LeewayMAE",
                     "image_size", (int)c->image_size, "in_channels", (int)c->channels,
                     "base_channels", (int)c->width, "input_patchify_size", (int)c->patchify,
                     "num_classes", (int)c->classes, "decoder", (int)c->decoder);
}

int lw_mae_from_json(const json_t *j, const char *where, lw_mae_config *out)
{
    static const char *const keys[] = {"_class_name",   "image_size",          "in_channels",
                                       "base_channels", "input_patchify_size", "num_classes",
                                       "decoder",       "leeway_latents",      NULL};
    const char *const *const known[] = {keys, NULL};
    lw_mae_config c = {0};
    LW_TRY(lw_json_check_known(j, where, known, NULL));
    LW_TRY(lw_json_get_i32_in(j, where, "image_size", 1, 4096, &c.image_size));
    LW_TRY(lw_json_get_i32_in(j, where, "in_channels", 1, LW_MAX_CHANNELS, &c.channels));
    LW_TRY(lw_json_get_i32_in(j, where, "base_channels", 1, 4096, &c.width));
    LW_TRY(lw_json_get_i32_in(j, where, "input_patchify_size", 1, 64, &c.patchify));
    LW_TRY(lw_json_get_i32_in(j, where, "num_classes", 0, 1 << 20, &c.classes));
    LW_TRY(lw_json_get_bool(j, where, "decoder", &c.decoder));
    if (lw_mae_check(&c) < 0)
        return lw_fail(LW_EFORMAT, "%s: %s", where, lw_errmsg());
    *out = c;
    return 0;
}

int lw_mae_declare(const lw_mae_config *c, lw_store *s)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps = {0};
    LW_TRY(lw_mae_check(c));
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_val x = lw_input(g, "x",
                        lw_type_of(LW_F32, 4, 1, c->image_size, c->image_size, c->channels));
    lw_mae_net(&b, c, lw_mae_places(g, c, x), &taps);
    if (c->decoder)
        lw_mae_decode(&b, c, &taps);
    LW_TRY(lw_graph_error(g));
    return lw_store_fix(s);
}

/* ---- the record ------------------------------------------------------------------------------ */

static int read(const json_t *j, const char *where, void *arch)
{
    return lw_mae_from_json(j, where, arch);
}

static void describe(lw_network *n)
{
    const lw_mae_config *c = n->arch;
    n->image_size = c->image_size;
    n->channels = c->channels;
    n->multiple = HALVED * c->patchify;
}

/* The decoder stands in the file, and nobody asks a frozen encoder for it. */
static int declare(const void *arch, lw_store *s)
{
    return lw_mae_declare(arch, s);
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const lw_mae_config *c = arch;
    lw_val x = lw_mae_places(b->g, c, in.x);
    lw_mae_net(b, c, x, out);
    if (c->patchify > 1) /* else it is the picture's */
        lw_tap_add(out, "norm_x", lw_root_mean_square(b->g, x));
}

const lw_network_def lw_network_def_mae = {
    .name = "mae",
    .kind = "encoder",
    .class_name = "LeewayMAE",
    .keys = "maps",
    .arch_bytes = sizeof(lw_mae_config),
    .read = read,
    .describe = describe,
    .declare = declare,
    .build = build,
};
