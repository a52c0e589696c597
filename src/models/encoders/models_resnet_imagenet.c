/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ResNets (He et al. 2016) of full size: 7x7 stem at stride 2, 3x3 max-pool at stride 2, stages of
 * basic or bottleneck blocks, head. torchvision's and timm's files tell their architecture by their
 * tensors (timm's config.json must say one of it: others have the same tensors and other operations);
 * those of transformers by config.json, and have names of their own:
 *
 *   torchvision, timm                    transformers ("resnet." in front, but for the head)
 *   conv1, bn1                           embedder.embedder.convolution, .normalization
 *   layer2.0.conv1, .bn1                 encoder.stages.1.layers.0.layer.0.convolution, ...
 *   layer2.0.downsample.0, .1            encoder.stages.1.layers.0.shortcut.convolution, ...
 *   fc                                   classifier.1
 *
 * The stride of a bottleneck lies in its 3x3 convolution ("v1.5"); transformers' config.json may put
 * it into the first 1x1.
 */
#include "models/encoders/models_timm.h"
#include "models/encoders/models_transformers.h"
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

enum { MAX_STAGES = 8, MAX_DEPTH = 256, MAX_WIDTH = 65536 };

typedef struct resnet {
    int32_t stem, stages;
    int32_t depth[MAX_STAGES];
    int32_t inner[MAX_STAGES]; /* channels of the 3x3 convolutions */
    int32_t width[MAX_STAGES]; /* of the stage's result */
    int32_t classes;           /* 0: no head */
    bool bottleneck;
    bool halve_first; /* stage 1 halves too */
    bool stride_in_1x1;
    bool hf; /* transformers' names */
} resnet;

/* ---- building -------------------------------------------------------------------------------- */

/* Convolution number k of a block, counted from 1. */
static lw_val numbered(lw_builder *b, const resnet *a, lw_val x, int k, int32_t o, int kernel,
                       int stride)
{
    char conv[32], norm[32];
    snprintf(conv, sizeof conv, a->hf ? "layer.%d.convolution" : "conv%d", a->hf ? k - 1 : k);
    snprintf(norm, sizeof norm, a->hf ? "layer.%d.normalization" : "bn%d", a->hf ? k - 1 : k);
    return lw_conv_bn(b, conv, norm, x, o, kernel, stride);
}

static lw_val block(lw_builder *b, const resnet *a, lw_val x, int s, int stride)
{
    lw_graph *g = b->g;
    int32_t o = a->width[s], inner = a->inner[s], c = lw_type_last(lw_val_type(g, x));
    lw_val h = x;
    if (a->bottleneck) {
        int first = a->stride_in_1x1 ? stride : 1;
        h = lw_relu(g, numbered(b, a, h, 1, inner, 1, first));
        h = lw_relu(g, numbered(b, a, h, 2, inner, 3, stride / first));
        h = numbered(b, a, h, 3, o, 1, 1);
    } else {
        h = lw_relu(g, numbered(b, a, h, 1, o, 3, stride));
        h = numbered(b, a, h, 2, o, 3, 1);
    }
    if (stride != 1 || c != o)
        x = lw_conv_bn(b, a->hf ? "shortcut.convolution" : "downsample.0",
                       a->hf ? "shortcut.normalization" : "downsample.1", x, o, 1, stride);
    return lw_relu(g, lw_add(g, h, x));
}

static lw_val stem(lw_builder *b, const resnet *a, lw_val x)
{
    x = lw_conv_bn(b, a->hf ? "embedder.embedder.convolution" : "conv1",
                   a->hf ? "embedder.embedder.normalization" : "bn1", x, a->stem, 7, 2);
    return lw_pool2d(b->g, lw_relu(b->g, x), 3, 2, 1, true);
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const resnet *a = arch;
    lw_val map[1 + MAX_STAGES];
    map[0] = stem(b, a, in.x);
    for (int s = 0; s < a->stages; s++) {
        lw_val x = map[s];
        for (int32_t i = 0; i < a->depth[s] && lw_val_ok(x); i++) {
            const char *up = a->hf ? lw_scope_pushf(b->g, "encoder.stages.%d.layers.%d", s, (int)i)
                                   : lw_scope_pushf(b->g, "layer%d.%d", s + 1, (int)i);
            lw_val y = block(b, a, x, s, i == 0 && (s > 0 || a->halve_first) ? 2 : 1);
            x = lw_layer_done(b, "", x, y);
            lw_scope_set(b->g, up);
        }
        map[s + 1] = x;
    }
    lw_val pooled = lw_mean(b->g, map[a->stages], LW_OVER_MIDDLE);
    if (a->classes > 0)
        lw_tap_add(out, "logits",
                   lw_linear(b, a->hf ? "classifier.1" : "fc",
                             lw_layer_done(b, "head", LW_NOVAL, pooled), a->classes, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, a->stages + 1);
}

/* ---- torchvision's and timm's tensors -------------------------------------------------------- */

/* A rank-4 tensor layer<s + 1>.<i>.<name>.weight, or NULL. */
static const lw_st_tensor *find(const lw_st_file *f, int s, int i, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "layer%d.%d.%s.weight", s + 1, i, name);
    const lw_st_tensor *t = lw_st_find_model(f, full);
    return t && t->rank == 4 && t->shape[0] >= 1 && t->shape[0] <= MAX_WIDTH ? t : NULL;
}

static bool read_stage(const lw_st_file *f, int s, resnet *a)
{
    const lw_st_tensor *conv = find(f, s, 0, a->bottleneck ? "conv2" : "conv1"),
                       *last = find(f, s, 0, a->bottleneck ? "conv3" : "conv2");
    if (!conv || !last || conv->shape[2] != 3 || conv->shape[3] != 3)
        return false;
    a->inner[s] = (int32_t)conv->shape[0];
    a->width[s] = (int32_t)last->shape[0];
    while (a->depth[s] < MAX_DEPTH && find(f, s, a->depth[s], "conv1"))
        a->depth[s]++;
    return true;
}

static bool of_torchvision(const lw_st_file *f, resnet *a)
{
    const lw_st_tensor *first = lw_st_find_model(f, "conv1.weight"),
                       *head = lw_st_find_model(f, "fc.weight");
    if (!first || first->rank != 4 || first->shape[2] != 7 || first->shape[0] > MAX_WIDTH)
        return false;
    a->stem = (int32_t)first->shape[0];
    a->bottleneck = find(f, 0, 0, "conv3") != NULL;
    while (a->stages < 4 && read_stage(f, a->stages, a))
        a->stages++;
    if (head && head->rank == 2 && head->shape[0] <= INT32_MAX)
        a->classes = (int32_t)head->shape[0];
    return a->stages == 4;
}

/* ---- transformers' config.json --------------------------------------------------------------- */

static int read_widths(const json_t *j, const char *where, resnet *a)
{
    int n = 0, n_depth = 0;
    LW_TRY(lw_json_get_i32s(j, where, "hidden_sizes", MAX_STAGES, a->width, &n));
    LW_TRY(lw_json_get_i32s(j, where, "depths", MAX_STAGES, a->depth, &n_depth));
    if (n < 1 || n != n_depth)
        return lw_fail(LW_EFORMAT, "%s: 'hidden_sizes' has %d entries, 'depths' has %d", where, n,
                       n_depth);
    a->stages = n;
    for (int s = 0; s < n; s++) {
        if (a->width[s] < 4 || a->width[s] > MAX_WIDTH || a->depth[s] < 1 ||
            a->depth[s] > MAX_DEPTH)
            return lw_fail(LW_EFORMAT, "%s: stage %d has %d channels and %d blocks", where, s,
                           (int)a->width[s], (int)a->depth[s]);
        a->inner[s] = a->bottleneck ? a->width[s] / 4 : a->width[s];
    }
    return 0;
}

static const char *const keys[] = {"depths",       "downsample_in_bottleneck",
                                   "hidden_act",   "downsample_in_first_stage",
                                   "hidden_sizes", "embedding_size",
                                   "layer_type",   "num_channels",
                                   "out_features", "out_indices", /* what a caller is given */
                                   "stage_names",  NULL};

/* Others have these tensors and other operations. */
static const char *const timm[] = {
    "resnet18",        "resnet26",         "resnet34",    "resnet50",     "resnet101",
    "resnet152",       "tv_resnet34",      "tv_resnet50", "tv_resnet101", "tv_resnet152",
    "wide_resnet50_2", "wide_resnet101_2", NULL};
/* Arguments that the tensors say too. */
static const char *const timm_args[] = {"layers", "channels", "base_width", NULL};

static int read(const json_t *j, const char *where, void *arch)
{
    resnet *a = arch;
    const char *layer = "bottleneck";
    if (lw_timm_is(j))
        return lw_timm_plain(j, where, timm, timm_args);
    a->hf = true;
    LW_TRY(lw_transformers_check(j, where, keys));
    LW_TRY(lw_json_opt_str(j, where, "layer_type", &layer));
    LW_TRY(lw_transformers_act_is(j, where, "relu"));
    LW_TRY(lw_json_get_i32_in(j, where, "embedding_size", 1, MAX_WIDTH, &a->stem));
    LW_TRY(lw_json_opt_bool(j, where, "downsample_in_first_stage", &a->halve_first));
    LW_TRY(lw_json_opt_bool(j, where, "downsample_in_bottleneck", &a->stride_in_1x1));
    a->bottleneck = strcmp(layer, "bottleneck") == 0;
    if (!a->bottleneck && strcmp(layer, "basic") != 0)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: 'layer_type' is %s, only basic and bottleneck are "
                       "built here",
                       where, layer);
    return read_widths(j, where, a);
}

static const lw_name_rule head_alone[] = {
    {.file = "classifier.1.*", .store = "classifier.1.*", .bare = true}, {0}};
static const lw_naming namings[] = {
    {.name = "torchvision, timm, or transformers without a head"},
    {.name = "transformers", .prefix = "resnet.", .rules = head_alone},
    {0}};

/* Of a folder whose config.json was read: what it does not say. */
static bool recognise(const lw_st_file *f, void *arch)
{
    resnet *a = arch;
    if (!a->hf)
        return of_torchvision(f, a);
    const lw_st_tensor *head = lw_naming_find(namings, f, "classifier.1.weight");
    if (head && head->rank == 2 && head->shape[0] <= INT32_MAX)
        a->classes = (int32_t)head->shape[0];
    return true;
}

/* ---- other libraries' folders ---------------------------------------------------------------- */

static json_t *integers(const int32_t *v, int n, int32_t divisor)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_integer(v[i] / divisor));
    return a;
}

/* timm counts the channels of the 3x3 convolutions at a base width of 64: of a bottleneck a quarter
 * of the result. What that width
 * is, the same in all stages; 0: in none of timm's ways. */
static int32_t base_width(const resnet *a)
{
    int32_t quarter = a->bottleneck ? 4 : 1, planes = a->width[0] / quarter;
    int32_t base = planes > 0 ? a->inner[0] * 64 / planes : 0;
    for (int s = 0; s < a->stages; s++)
        if (a->width[s] % quarter != 0 || a->width[s] / quarter * base != a->inner[s] * 64)
            return 0;
    return base;
}

static int write_timm(const lw_network *n, const resnet *a, json_t *config)
{
    static const int32_t usual[] = {64, 128, 256, 512};
    int32_t quarter = a->bottleneck ? 4 : 1, base = base_width(a);
    bool own_depth = lw_str_eq(n->name, n->def->name), own_width = false; /* not registered */
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_TIMM, a->stages == 4 && base > 0 && a->stem == 64,
                                "this number of stages or channels"));
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_TIMM, !a->halve_first && !a->stride_in_1x1,
                                "'downsample_in_first_stage' or 'downsample_in_bottleneck'"));
    for (int s = 0; s < 4; s++)
        own_width = own_width || a->width[s] != usual[s] * quarter;
    json_t *args = json_object();
    if (own_depth)
        json_object_set_new(args, "layers", integers(a->depth, 4, 1));
    if (own_width)
        json_object_set_new(args, "channels", integers(a->width, 4, quarter));
    if (base != 64)
        json_object_set_new(args, "base_width", json_integer(base));
    const char *nearest = a->bottleneck ? "resnet50" : "resnet18";
    json_object_set_new(config, "architecture", json_string(own_depth ? nearest : n->name));
    json_object_set_new(config, "num_classes", json_integer(a->classes));
    json_object_set_new(config, "num_features", json_integer(a->width[3]));
    json_object_set_new(config, "global_pool", json_string("avg"));
    json_object_set_new(config, "model_args", args);
    return 0;
}

static int write_transformers(const lw_network *n, const resnet *a, json_t *config)
{
    const char *class_name = a->classes ? "ResNetForImageClassification" : "ResNetModel";
    bool quarters = true;
    for (int s = 0; s < a->stages; s++)
        quarters = quarters && a->inner[s] == a->width[s] / (a->bottleneck ? 4 : 1);
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_HF, quarters, "a wide ResNet"));
    json_object_set_new(config, "model_type", json_string("resnet"));
    json_object_set_new(config, "architectures", json_pack("[s]", class_name));
    json_object_set_new(config, "embedding_size", json_integer(a->stem));
    json_object_set_new(config, "hidden_sizes", integers(a->width, a->stages, 1));
    json_object_set_new(config, "depths", integers(a->depth, a->stages, 1));
    json_object_set_new(config, "layer_type", json_string(a->bottleneck ? "bottleneck" : "basic"));
    json_object_set_new(config, "hidden_act", json_string("relu"));
    json_object_set_new(config, "downsample_in_first_stage", json_boolean(a->halve_first));
    json_object_set_new(config, "downsample_in_bottleneck", json_boolean(a->stride_in_1x1));
    if (a->classes)
        json_object_set_new(config, "num_labels", json_integer(a->classes));
    return 0;
}

static int write(const lw_network *n, lw_library to, lw_network_form *out)
{
    const resnet *a = n->arch;
    bool hf = to == LW_LIBRARY_HF;
    LW_TRY(lw_network_form_only(n, to, to != LW_LIBRARY_OPEN_CLIP, "a ResNet of this kind"));
    out->naming = &namings[hf && a->classes > 0];
    if (a->hf != hf) {
        resnet *there = out->arch = lw_calloc(1, sizeof *there);
        if (!there)
            return LW_ENOMEM;
        *there = *a;
        there->hf = hf;
        out->by_place = true;
    }
    return hf ? write_transformers(n, a, out->config) : write_timm(n, a, out->config);
}

/* ---- the record ------------------------------------------------------------------------------ */

static void describe(lw_network *n)
{
    static const struct {
        int32_t depth[4];
        bool bottleneck;
        const char *name;
    } known[] = {{{2, 2, 2, 2}, false, "resnet18"},  {{3, 4, 6, 3}, false, "resnet34"},
                 {{3, 4, 6, 3}, true, "resnet50"},   {{3, 4, 23, 3}, true, "resnet101"},
                 {{3, 8, 36, 3}, true, "resnet152"}, {{2, 2, 2, 2}, true, "resnet26"}};
    const resnet *a = n->arch;
    for (size_t i = 0; i < LW_COUNT(known); i++)
        if (a->stages == 4 && known[i].bottleneck == a->bottleneck &&
            memcmp(known[i].depth, a->depth, sizeof known[i].depth) == 0)
            n->name = known[i].name;
}

const lw_network_def lw_network_def_resnet = {
    .name = "resnet",
    .objective = "classify",
    .trained_on = "imagenet",
    .kind = "encoder",
    .class_name = "**resnet** **resnext**",
    .arch_bytes = sizeof(resnet),
    .read = read,
    .write = write,
    .recognise = recognise,
    .tensors = "a ResNet of torchvision, timm or transformers (7x7 stem, four stages)",
    .describe = describe,
    .namings = namings,
    .stem = "conv1.weight embedder.embedder.convolution.weight",
    .preparation = &lw_preparation_imagenet,
    .build = build,
};
