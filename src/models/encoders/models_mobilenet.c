/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MobileNetV2 (Sandler et al., arXiv 1801.04381): seventeen inverted residual blocks of 3x3
 * (models_inverted.h). Four ways to name its tensors:
 *
 *   folded (BatchNorm in weight and bias)   stem, block<n>.expand | depthwise | project, head
 *   torchvision                             features.0, features.<n>.conv.<i>, features.18
 *   transformers                            conv_stem.first_conv, layer.<n - 2>.expand_1x1, conv_1x1
 *   timm                                    conv_stem, blocks.<stage>.<i>.conv_pw, conv_head
 *
 * Padding is TensorFlow's SAME in folded files and, where tf_padding says so, in transformers'.
 * torchvision and timm pad both sides alike.
 */
#include "models/encoders/models_inverted.h"
#include "models/encoders/models_transformers.h"
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS = 17 };
static const lw_inverted usual = {.name = lw_inverted_name_timm,
                                  .classifier = "classifier",
                                  .eps = 1e-5f,
                                  .blocks = {1, 2, 3, 4, 3, 3, 1},
                                  .stride = {1, 2, 2, 2, 1, 2, 1},
                                  .kernel = {3, 3, 3, 3, 3, 3, 3}};

typedef struct mobilenet {
    lw_inverted net;
    bool said; /* by a config.json: names, padding and eps */
} mobilenet;

/* ---- names ----------------------------------------------------------------------------------- */

static void name_folded(lw_inverted_names *p, const lw_inverted *a, lw_inverted_part what, int n)
{
    static const char *const word[] = {[LW_INVERTED_EXPAND] = "expand",
                                       [LW_INVERTED_DEPTHWISE] = "depthwise",
                                       [LW_INVERTED_PROJECT] = "project"};
    (void)a;
    if (what == LW_INVERTED_STEM || what == LW_INVERTED_HEAD)
        snprintf(p->conv, sizeof p->conv, "%s", what == LW_INVERTED_STEM ? "stem" : "head");
    else
        snprintf(p->conv, sizeof p->conv, "block%d.%s", n, word[what]);
}

static void name_torchvision(lw_inverted_names *p, const lw_inverted *a, lw_inverted_part what,
                             int n)
{
    (void)a;
    if (what == LW_INVERTED_STEM || what == LW_INVERTED_HEAD) {
        int layer = what == LW_INVERTED_STEM ? 0 : BLOCKS + 1;
        snprintf(p->conv, sizeof p->conv, "features.%d.0", layer);
        snprintf(p->norm, sizeof p->norm, "features.%d.1", layer);
        return;
    }
    /* the first block has no expansion */
    int at = (int)what - (int)(n == 1 ? LW_INVERTED_DEPTHWISE : LW_INVERTED_EXPAND);
    const char *pair = what == LW_INVERTED_PROJECT ? "" : ".0";
    snprintf(p->conv, sizeof p->conv, "features.%d.conv.%d%s", n, at, pair);
    if (what == LW_INVERTED_PROJECT)
        snprintf(p->norm, sizeof p->norm, "features.%d.conv.%d", n, at + 1);
    else
        snprintf(p->norm, sizeof p->norm, "features.%d.conv.%d.1", n, at);
}

static void name_transformers(lw_inverted_names *p, const lw_inverted *a, lw_inverted_part what,
                              int n)
{
    static const char *const word[] = {[LW_INVERTED_STEM] = "first_conv",
                                       [LW_INVERTED_EXPAND] = "expand_1x1",
                                       [LW_INVERTED_DEPTHWISE] = "conv_3x3",
                                       [LW_INVERTED_PROJECT] = "reduce_1x1"};
    char scope[40];
    (void)a;
    if (what == LW_INVERTED_HEAD)
        snprintf(scope, sizeof scope, "conv_1x1");
    else if (what == LW_INVERTED_STEM || n == 1)
        snprintf(scope, sizeof scope, "conv_stem.%s", word[what]);
    else
        snprintf(scope, sizeof scope, "layer.%d.%s", n - 2, word[what]);
    snprintf(p->conv, sizeof p->conv, "%s.convolution", scope);
    snprintf(p->norm, sizeof p->norm, "%s.normalization", scope);
}

static void use_folded(lw_inverted *a)
{
    a->name = name_folded;
    a->quantized = a->same = true;
}

static void use_torchvision(lw_inverted *a)
{
    a->name = name_torchvision;
    a->classifier = "classifier.1";
}

static void use_transformers(lw_inverted *a, bool prefix)
{
    a->name = name_transformers;
    a->first_in_stem = true;
    a->prefix = prefix ? "mobilenet_v2" : NULL;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_inverted_build(b, &((const mobilenet *)arch)->net, in.x, out);
}

/* ---- which files ----------------------------------------------------------------------------- */

static bool recognise(const lw_st_file *f, void *arch)
{
    mobilenet *a = arch;
    if (a->said) { /* which says no widths */
        if (a->net.name == name_transformers)
            use_transformers(&a->net,
                             lw_st_find_model(f, "mobilenet_v2.conv_1x1.convolution.weight"));
        return lw_inverted_read(f, &a->net);
    }
    static void (*const use[])(lw_inverted *) = {use_folded, use_torchvision, NULL};
    for (size_t k = 0; k < LW_COUNT(use);
         k++) { /* not transformers': their config.json has epsilon and padding */
        a->net = usual;
        if (use[k])
            use[k](&a->net);
        if (lw_inverted_read(f, &a->net))
            return true;
    }
    return false;
}

static const char *const keys[] = {"classifier_dropout_prob",
                                   "depth_divisible_by", /* widths: the tensors have them */
                                   "depth_multiplier",
                                   "expand_ratio",
                                   "finegrained_output",
                                   "first_layer_is_expansion",
                                   "hidden_act",
                                   "image_size",
                                   "layer_norm_eps",
                                   "min_depth",
                                   "num_channels",
                                   "output_stride",
                                   "semantic_loss_ignore_index",
                                   "tf_padding",
                                   NULL};

static int read(const json_t *j, const char *where, void *arch)
{
    mobilenet *a = arch;
    int32_t output_stride = 32;
    bool first = true;
    double eps = 0.001;
    *a = (mobilenet){.net = usual, .said = true};
    if (json_object_get(j, "architecture"))
        return lw_inverted_read_timm(j, where, &a->net);
    use_transformers(&a->net, false);
    a->net.same = true;
    LW_TRY(lw_transformers_check(j, where, keys));
    LW_TRY(lw_transformers_act_is(j, where, "relu6"));
    LW_TRY(lw_transformers_count(j, where, "output_stride", 1024, &output_stride));
    LW_TRY(lw_json_opt_bool(j, where, "tf_padding", &a->net.same));
    LW_TRY(lw_json_opt_bool(j, where, "first_layer_is_expansion", &first));
    LW_TRY(lw_json_opt_f64(j, where, "layer_norm_eps", &eps));
    a->net.eps = (float)eps;
    if (output_stride != 32)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'output_stride' is %d, only 32 is built here", where,
                       (int)output_stride);
    return first
               ? 0
               : lw_fail(LW_EUNSUPPORTED,
                         "%s: 'first_layer_is_expansion' is false, only true is built here", where);
}

/* ---- other libraries' folders ---------------------------------------------------------------- */

static bool has_widths(const lw_inverted *a, double by)
{
    static const int32_t width[LW_INVERTED_STAGES] = {16, 24, 32, 64, 96, 160, 320};
    return a->stem == lw_inverted_times(32, by) &&
           a->head == LW_MAX(lw_inverted_times(1280, by), 1280) &&
           lw_inverted_has_widths(a, width, by);
}

static void write_transformers(const lw_inverted *a, double by, json_t *config)
{
    const char *class_name = a->classes ? "MobileNetV2ForImageClassification" : "MobileNetV2Model";
    json_object_set_new(config, "model_type", json_string("mobilenet_v2"));
    json_object_set_new(config, "architectures", json_pack("[s]", class_name));
    json_object_set_new(config, "depth_multiplier", json_real(by));
    json_object_set_new(config, "hidden_act", json_string("relu6"));
    json_object_set_new(config, "tf_padding", json_boolean(a->same));
    json_object_set_new(config, "layer_norm_eps", lw_json_float(a->eps));
    if (a->classes)
        json_object_set_new(config, "num_labels", json_integer(a->classes));
}

static int write(const lw_network *n, lw_library to, lw_network_form *out)
{
    static const double multipliers[] = {0.35, 0.5, 0.75, 1.0, 1.4};
    const lw_inverted *a = &((const mobilenet *)n->arch)->net;
    bool hf = to == LW_LIBRARY_HF;
    size_t i = 0;
    while (i < LW_COUNT(multipliers) && !has_widths(a, multipliers[i]))
        i++;
    LW_TRY(lw_network_form_only(n, to, to != LW_LIBRARY_OPEN_CLIP, "a MobileNetV2"));
    LW_TRY(lw_network_form_only(n, to, !a->quantized, "a network with BatchNorm folded in"));
    LW_TRY(lw_network_form_only(n, to, i < LW_COUNT(multipliers), "a MobileNetV2 of these widths"));
    mobilenet *there = out->arch = lw_calloc(1, sizeof *there);
    if (!there)
        return LW_ENOMEM;
    *there = *(const mobilenet *)n->arch;
    there->net.first_in_stem = false; /* alike with all multipliers above: their stems are wider */
    if (hf)
        use_transformers(&there->net, a->classes > 0);
    else
        there->net.name = lw_inverted_name_timm;
    there->net.prefix = hf ? there->net.prefix : NULL;
    there->net.classifier = "classifier";
    out->by_place = true;
    if (hf) {
        write_transformers(a, multipliers[i], out->config);
        return 0;
    }
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    lw_str_addf(&name, "mobilenetv2_%03d", (int)(100 * multipliers[i] + 0.5));
    lw_inverted_write_timm(a, lw_str_c(&name), &usual, out->config);
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

/* As transformers' processor does by itself. A folded file says nothing but the numbers: its
 * pictures are taken whole. */
static const lw_preparation inception = {.fit = LW_FIT_SHORTEST,
                                         .form = LW_RESAMPLE_PILLOW,
                                         .filter = LW_FILTER_BILINEAR,
                                         .resize_h = 256,
                                         .resize_w = 256,
                                         .height = 224,
                                         .width = 224,
                                         LW_NUMBERS_HALF};

static void describe(lw_network *n)
{
    const lw_inverted *a = &((const mobilenet *)n->arch)->net;
    if (!a->quantized && a->name != name_transformers)
        return;
    n->preparation = inception;
    if (a->quantized)
        n->preparation.resize_h = n->preparation.resize_w = n->preparation.height;
}

const lw_network_def lw_network_def_mobilenet_v2 = {
    .name = "mobilenet_v2",
    .objective = "classify",
    .trained_on = "imagenet",
    .kind = "encoder",
    .class_name = "mobilenet_v2 mobilenetv2_*",
    .arch_bytes = sizeof(mobilenet),
    .read = read,
    .write = write,
    .recognise = recognise,
    .tensors = "a MobileNetV2 of torchvision, timm or transformers, or with BatchNorm folded in",
    .describe = describe,
    .stem = "stem.weight_q stem.weight features.0.0.weight conv_stem.weight "
            "conv_stem.first_conv.convolution.weight "
            "mobilenet_v2.conv_stem.first_conv.convolution.weight",
    .preparation = &lw_preparation_imagenet,
    .build = build,
};
