/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvNeXt (Liu et al., arXiv 2201.03545) and ConvNeXt-V2 (Woo et al., arXiv 2301.00808):
 *
 *   pictures -4x4 convolution of stride 4-> norm -> s0;  stage: norm, 2x2 of stride 2 (but the first),
 *   blocks;  pooled: the norm of the mean;  norms over the channels of a pixel
 *   block    x + scale fc2(respond(gelu(fc1(norm(7x7 depthwise(x))))))
 *
 * V1 has a scale for every channel, V2 instead responds globally between the layers:
 *
 *   respond(x) = x + weight x n + bias,   n[c] = |x[c]| / (mean over c of |x[c]| + 1e-6)
 *
 * |x[c]| is the length of channel c over all pixels of a picture. Widths, depths and which of the two
 * it is are read from the tensors. Names here are timm's.
 */
#include <stdio.h>
#include <string.h>

#include "models/encoders/models_timm.h"
#include "models/encoders/models_transformers.h"
#include "models/models_private.h"

enum { MAX_STAGES = 8, MAX_DEPTH = 256, MAX_WIDTH = 65536, KERNEL = 7 };

typedef struct convnext {
    int32_t patch, stages;
    int32_t depth[MAX_STAGES], width[MAX_STAGES];
    int32_t classes; /* 0: no head */
    float last_eps;  /* of the norm behind the mean; all others have 1e-6 */
    bool scaled;     /* V1 */
    bool responds;   /* V2 */
} convnext;

/* ---- building -------------------------------------------------------------------------------- */

/* The length of each channel, [B,C]; its gradient is 0 where all of it is 0, as torch's is. */
static lw_val lengths(lw_graph *g, lw_val x)
{
    lw_val sum = lw_sum(g, lw_sqr(g, x), LW_OVER_MIDDLE);
    return lw_ew1(g, LW_EW_sqrt, lw_ew2(g, LW_EW_max, sum, lw_const_f32(g, 1e-30f)));
}

static lw_val respond(lw_builder *b, lw_val x)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(x))
        return x;
    lw_type t = lw_val_type(g, x), one = lw_type_of(LW_F32, 1, lw_type_last(t));
    const char *up = lw_scope_push(g, "mlp.grn");
    lw_val weight = lw_param(b, "weight", one, (lw_init){0});
    lw_val bias = lw_param(b, "bias", one, (lw_init){0});
    lw_scope_set(g, up);
    lw_val length = lengths(g, x), mean = lw_mean(g, length, LW_OVER_LAST);
    lw_val n = lw_div(g, length, lw_add_f32(g, mean, 1e-6f));
    lw_val factor = lw_add_f32(g, lw_mul(g, n, weight), 1.0f); /* [B,C] */
    factor = lw_reshape(g, factor, lw_type_of(LW_F32, 4, t.dim[0], 1, 1, t.dim[3]));
    return lw_add(g, lw_mul(g, x, factor), bias);
}

static lw_val scale(lw_builder *b, lw_val x)
{
    lw_type one = lw_type_of(LW_F32, 1, lw_type_last(lw_val_type(b->g, x)));
    return lw_mul(b->g, x, lw_param(b, "gamma", one, (lw_init){LW_INIT_ONES, 0}));
}

static lw_val block(lw_builder *b, const convnext *a, lw_val x)
{
    if (!lw_val_ok(x))
        return x;
    int32_t c = lw_type_last(lw_val_type(b->g, x));
    lw_val h = lw_conv_bn_as(b, "conv_dw", NULL, x, c,
                             (lw_conv_bn_opts){.kernel = KERNEL, .stride = 1, .depthwise = true});
    h = lw_layer_norm(b, "norm", h, 1e-6f, LW_NOVAL);
    h = lw_ew1(b->g, LW_EW_gelu, lw_linear(b, "mlp.fc1", h, 4 * c, true));
    if (a->responds)
        h = respond(b, h);
    h = lw_linear(b, "mlp.fc2", h, c, true);
    if (a->scaled && lw_val_ok(h))
        h = scale(b, h);
    return lw_add(b->g, h, x);
}

static lw_val stage(lw_builder *b, const convnext *a, int s, int32_t width, lw_val x)
{
    const char *up = lw_scope_pushf(b->g, "stages.%d", s);
    if (s > 0) {
        x = lw_layer_norm(b, "downsample.0", x, 1e-6f, LW_NOVAL);
        x = lw_conv2d(b, "downsample.1", x, width, (lw_conv_opts){.kernel = 2, .stride = 2});
    }
    for (int32_t i = 0; i < a->depth[s]; i++) {
        const char *out = lw_scope_pushf(b->g, "blocks.%d", (int)i);
        x = lw_layer_done(b, "", x, block(b, a, x));
        lw_scope_set(b->g, out);
    }
    lw_scope_set(b->g, up);
    return x;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const convnext *a = arch;
    lw_val map[1 + MAX_STAGES];
    lw_val x = lw_conv2d(b, "stem.0", in.x, a->width[0],
                         (lw_conv_opts){.kernel = a->patch, .stride = a->patch});
    map[0] = lw_layer_norm(b, "stem.1", x, 1e-6f, LW_NOVAL);
    for (int s = 0; s < a->stages; s++)
        map[s + 1] = stage(b, a, s, a->width[s], map[s]);
    lw_val pooled = lw_mean(b->g, map[a->stages], LW_OVER_MIDDLE);
    pooled = lw_layer_norm(b, "head.norm", pooled, a->last_eps, LW_NOVAL);
    if (a->classes > 0)
        lw_tap_add(
            out, "logits",
            lw_linear(b, "head.fc", lw_layer_done(b, "head", LW_NOVAL, pooled), a->classes, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, a->stages + 1);
}

/* ---- names ----------------------------------------------------------------------------------- */

#define BLOCK "stages.*.blocks.*."

static const lw_name_rule of_transformers[] = {
    {.file = "embeddings.patch_embeddings.*", .store = "stem.0.*"},
    {.file = "embeddings.layernorm.*", .store = "stem.1.*"},
    {.file = "encoder.stages.*.downsampling_layer.*.*", .store = "stages.*.downsample.*.*"},
    {.file = "encoder.stages.*.layers.*.dwconv.*", .store = BLOCK "conv_dw.*"},
    {.file = "encoder.stages.*.layers.*.layernorm.*", .store = BLOCK "norm.*"},
    {.file = "encoder.stages.*.layers.*.pwconv1.*", .store = BLOCK "mlp.fc1.*"},
    {.file = "encoder.stages.*.layers.*.grn.*", .store = BLOCK "mlp.grn.*", .ones = 3},
    {.file = "encoder.stages.*.layers.*.pwconv2.*", .store = BLOCK "mlp.fc2.*"},
    {.file = "encoder.stages.*.layers.*.layer_scale_parameter", .store = BLOCK "gamma"},
    {.file = "layernorm.*", .store = "head.norm.*"},
    {.file = "classifier.*", .store = "head.fc.*", .bare = true},
    {0}};

static const lw_name_rule of_authors[] = {
    {.file = "downsample_layers.0.0.*", .store = "stem.0.*"},
    {.file = "downsample_layers.0.1.*", .store = "stem.1.*"},
    {.file = "downsample_layers.*.*.*", .store = "stages.*.downsample.*.*"},
    {.file = "stages.*.*.dwconv.*", .store = BLOCK "conv_dw.*"},
    {.file = "stages.*.*.norm.*", .store = BLOCK "norm.*"},
    {.file = "stages.*.*.pwconv1.*", .store = BLOCK "mlp.fc1.*"},
    {.file = "stages.*.*.grn.gamma", .store = BLOCK "mlp.grn.weight", .ones = 3},
    {.file = "stages.*.*.grn.beta", .store = BLOCK "mlp.grn.bias", .ones = 3},
    {.file = "stages.*.*.pwconv2.*", .store = BLOCK "mlp.fc2.*"},
    {.file = "stages.*.*.gamma", .store = BLOCK "gamma"},
    {.file = "norm.*", .store = "head.norm.*"},
    {.file = "head.*", .store = "head.fc.*"},
    {0}};

/* Stages are features 1, 3, 5 and 7, what halves before them 2, 4 and 6. */
#define OF_TORCHVISION(s, f)                                                                \
    {.file = "features." f ".*.block.0.*", .store = "stages." s ".blocks.*.conv_dw.*"},     \
        {.file = "features." f ".*.block.2.*", .store = "stages." s ".blocks.*.norm.*"},    \
        {.file = "features." f ".*.block.3.*", .store = "stages." s ".blocks.*.mlp.fc1.*"}, \
        {.file = "features." f ".*.block.5.*", .store = "stages." s ".blocks.*.mlp.fc2.*"}, \
    {                                                                                       \
        .file = "features." f ".*.layer_scale", .store = "stages." s ".blocks.*.gamma"      \
    }
static const lw_name_rule of_torchvision[] = {
    {.file = "features.0.0.*", .store = "stem.0.*"},
    {.file = "features.0.1.*", .store = "stem.1.*"},
    {.file = "features.2.*.*", .store = "stages.1.downsample.*.*"},
    {.file = "features.4.*.*", .store = "stages.2.downsample.*.*"},
    {.file = "features.6.*.*", .store = "stages.3.downsample.*.*"},
    OF_TORCHVISION("0", "1"),
    OF_TORCHVISION("1", "3"),
    OF_TORCHVISION("2", "5"),
    OF_TORCHVISION("3", "7"),
    {.file = "classifier.0.*", .store = "head.norm.*"},
    {.file = "classifier.2.*", .store = "head.fc.*"},
    {0}};

static const lw_naming namings[] = {
    {.name = "timm"},
    {.name = "transformers", .prefix = "convnextv2.", .rules = of_transformers},
    {.name = "transformers, V1", .prefix = "convnext.", .rules = of_transformers},
    {.name = "transformers, without a head", .rules = of_transformers},
    {.name = "the authors'", .rules = of_authors},
    {.name = "torchvision", .rules = of_torchvision},
    {0}};

/* ---- which files ----------------------------------------------------------------------------- */

/* The channels of a depthwise convolution; 0: there is no such block. */
static int32_t width_of(const lw_st_file *f, int s, int i)
{
    char name[64];
    snprintf(name, sizeof name, "stages.%d.blocks.%d.conv_dw.weight", s, i);
    const lw_st_tensor *t = lw_naming_find(namings, f, name);
    return t && t->rank == 4 && t->shape[0] >= 1 && t->shape[0] <= MAX_WIDTH && t->shape[1] == 1 &&
                   t->shape[2] == KERNEL && t->shape[3] == KERNEL
               ? (int32_t)t->shape[0]
               : 0;
}

static bool recognise(const lw_st_file *f, void *arch)
{
    convnext *a = arch;
    const lw_st_tensor *stem = lw_naming_find(namings, f, "stem.0.weight"),
                       *head = lw_naming_find(namings, f, "head.fc.weight");
    if (!stem || stem->rank != 4 || stem->shape[2] != stem->shape[3] || stem->shape[2] < 2 ||
        stem->shape[2] > 64 || !lw_naming_find(namings, f, "head.norm.weight"))
        return false;
    a->patch = (int32_t)stem->shape[2];
    while (a->stages < MAX_STAGES && (a->width[a->stages] = width_of(f, a->stages, 0)) > 0) {
        int32_t *n = &a->depth[a->stages];
        while (*n < MAX_DEPTH && width_of(f, a->stages, *n) == a->width[a->stages])
            ++*n;
        a->stages++;
    }
    a->scaled = lw_naming_find(namings, f, "stages.0.blocks.0.gamma") != NULL;
    a->responds = lw_naming_find(namings, f, "stages.0.blocks.0.mlp.grn.weight") != NULL;
    if (head && head->rank >= 2 && head->shape[0] <= INT32_MAX)
        a->classes = (int32_t)head->shape[0];
    a->last_eps = a->last_eps > 0.0f ? a->last_eps : 1e-6f;
    return a->stages > 0;
}

/* Those of its registrations that differ in widths and depths alone. */
static const char *const timm[] = {"convnext_atto",
                                   "convnext_femto",
                                   "convnext_pico",
                                   "convnext_nano",
                                   "convnext_tiny",
                                   "convnext_small",
                                   "convnext_base",
                                   "convnext_large",
                                   "convnext_xlarge",
                                   "convnextv2_atto",
                                   "convnextv2_femto",
                                   "convnextv2_pico",
                                   "convnextv2_nano",
                                   "convnextv2_tiny",
                                   "convnextv2_small",
                                   "convnextv2_base",
                                   "convnextv2_large",
                                   "convnextv2_huge",
                                   NULL};

static const char *const keys[] = {"depths", /* the tensors have them */
                                   "drop_path_rate", "hidden_act",
                                   "hidden_sizes",   "image_size",
                                   "layer_norm_eps", "layer_scale_init_value",
                                   "num_channels",   "num_stages",
                                   "out_features", /* what a caller is given */
                                   "out_indices",    "patch_size",
                                   "stage_names",    NULL};

static int read(const json_t *j, const char *where, void *arch)
{
    convnext *a = arch;
    double eps = 1e-12;
    if (lw_timm_is(j))
        return lw_timm_plain(j, where, timm, NULL);
    LW_TRY(lw_transformers_check(j, where, keys));
    LW_TRY(lw_transformers_act_is(j, where, "gelu"));
    LW_TRY(lw_json_opt_f64(j, where, "layer_norm_eps", &eps));
    if (!(eps > 0.0 && eps < 1.0))
        return lw_fail(LW_EFORMAT, "%s: 'layer_norm_eps' is %g", where, eps);
    a->last_eps = (float)eps;
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

/* timm's; transformers' folders say theirs. */
static const lw_preparation preparation = {.fit = LW_FIT_SHORTEST,
                                           .form = LW_RESAMPLE_PILLOW,
                                           .filter = LW_FILTER_BICUBIC,
                                           .resize_h = 256,
                                           .resize_w = 256,
                                           .height = 224,
                                           .width = 224,
                                           .half_to_even = true,
                                           LW_NUMBERS_IMAGENET};

static void describe(lw_network *n)
{
    n->name = ((const convnext *)n->arch)->responds ? "convnext_v2" : "convnext";
}

const lw_network_def lw_network_def_convnext = {
    .name = "convnext",
    .objective = "classify",
    .trained_on = "imagenet",
    .kind = "encoder",
    .class_name = "convnext** ConvNext**",
    .arch_bytes = sizeof(convnext),
    .read = read,
    .recognise = recognise,
    .tensors =
        "a ConvNeXt of timm, transformers, torchvision or its authors (7x7 depthwise blocks)",
    .describe = describe,
    .namings = namings,
    .stem = "stem.0.weight",
    .preparation = &preparation,
    .build = build,
};
