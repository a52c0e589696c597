/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MobileNetV2 (Sandler et al., arXiv 1801.04381): a 3x3 stem at stride 2, seventeen inverted residual
 * blocks (1x1 expansion, 3x3 depthwise, 1x1 projection), a 1x1 head. All widths are read from the
 * tensors, so that every multiplier is one network. Four ways to name them:
 *
 *   folded (BatchNorm in weight and bias)   stem, block<n>.expand | depthwise | project, head
 *   torchvision                             features.0, features.<n>.conv.<i>, features.18
 *   transformers                            conv_stem.first_conv, layer.<n - 2>.expand_1x1, conv_1x1
 *   timm                                    conv_stem, blocks.<stage>.<i>.conv_pw, conv_head
 *
 * Padding is TensorFlow's SAME in folded files and, where tf_padding says so, in transformers': at
 * stride 2 an even side is padded behind only. torchvision and timm pad both sides alike.
 */
#include "models/encoders/models_transformers.h"
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

enum { STAGES = 7, BLOCKS = 17, MAX_WIDTH = 65536 };
static const int stage_blocks[STAGES] = {1, 2, 3, 4, 3, 3, 1};
static const int stage_stride[STAGES] = {1, 2, 2, 2, 1, 2, 1};

typedef enum naming { FOLDED, TORCHVISION, TRANSFORMERS, TIMM, NAMINGS } naming;

typedef struct mobilenet {
    naming names;
    bool said;                   /* by a config.json: names, padding and eps */
    bool prefix;                 /* transformers': "mobilenet_v2." before all but the classifier */
    bool same;                   /* TensorFlow's padding */
    float eps;                   /* of BatchNorm */
    int32_t stem, head, classes; /* classes 0: no classifier */
    int32_t inner[BLOCKS], width[BLOCKS]; /* channels of the depthwise convolution, of the result */
} mobilenet;

/* ---- names ----------------------------------------------------------------------------------- */

typedef enum part { STEM, EXPAND, DEPTHWISE, PROJECT, HEAD } part;
typedef struct part_name {
    char conv[64], norm[64]; /* norm empty: the convolution has a bias instead */
} part_name;

/* Number of block n (1 ..) in its stage, which *stage becomes. */
static int in_stage(int n, int *stage)
{
    int i = n - 1;
    for (*stage = 0; i >= stage_blocks[*stage]; ++*stage)
        i -= stage_blocks[*stage];
    return i;
}

static void name_folded(part_name *p, part what, int n)
{
    static const char *const word[] = {
        [EXPAND] = "expand", [DEPTHWISE] = "depthwise", [PROJECT] = "project"};
    if (what == STEM || what == HEAD)
        snprintf(p->conv, sizeof p->conv, "%s", what == STEM ? "stem" : "head");
    else
        snprintf(p->conv, sizeof p->conv, "block%d.%s", n, word[what]);
}

static void name_torchvision(part_name *p, part what, int n)
{
    if (what == STEM || what == HEAD) {
        snprintf(p->conv, sizeof p->conv, "features.%d.0", what == STEM ? 0 : BLOCKS + 1);
        snprintf(p->norm, sizeof p->norm, "features.%d.1", what == STEM ? 0 : BLOCKS + 1);
        return;
    }
    int at = (int)what - (n == 1 ? DEPTHWISE : EXPAND); /* the first block has no expansion */
    const char *pair = what == PROJECT ? "" : ".0";
    snprintf(p->conv, sizeof p->conv, "features.%d.conv.%d%s", n, at, pair);
    if (what == PROJECT)
        snprintf(p->norm, sizeof p->norm, "features.%d.conv.%d", n, at + 1);
    else
        snprintf(p->norm, sizeof p->norm, "features.%d.conv.%d.1", n, at);
}

static void name_transformers(part_name *p, part what, int n)
{
    static const char *const word[] = {[STEM] = "first_conv",
                                       [EXPAND] = "expand_1x1",
                                       [DEPTHWISE] = "conv_3x3",
                                       [PROJECT] = "reduce_1x1"};
    char scope[48];
    if (what == HEAD)
        snprintf(scope, sizeof scope, "conv_1x1");
    else if (what == STEM || n == 1)
        snprintf(scope, sizeof scope, "conv_stem.%s", word[what]);
    else
        snprintf(scope, sizeof scope, "layer.%d.%s", n - 2, word[what]);
    snprintf(p->conv, sizeof p->conv, "%s.convolution", scope);
    snprintf(p->norm, sizeof p->norm, "%s.normalization", scope);
}

static void name_timm(part_name *p, part what, int n)
{
    static const char *const word[] = {
        [EXPAND] = "conv_pw", [DEPTHWISE] = "conv_dw", [PROJECT] = "conv_pwl"};
    int stage, i;
    if (what == STEM || what == HEAD) {
        snprintf(p->conv, sizeof p->conv, what == STEM ? "conv_stem" : "conv_head");
        snprintf(p->norm, sizeof p->norm, what == STEM ? "bn1" : "bn2");
        return;
    }
    i = in_stage(n, &stage);
    bool first = n == 1; /* depthwise, then "conv_pw" */
    snprintf(p->conv, sizeof p->conv, "blocks.%d.%d.%s", stage, i,
             first && what == PROJECT ? "conv_pw" : word[what]);
    snprintf(p->norm, sizeof p->norm, "blocks.%d.%d.bn%d", stage, i,
             (int)what - (first ? DEPTHWISE : EXPAND) + 1);
}

static part_name name_of(naming names, part what, int n)
{
    static void (*const write[NAMINGS])(part_name *, part, int) = {name_folded, name_torchvision,
                                                                   name_transformers, name_timm};
    part_name p = {.norm = ""};
    write[names](&p, what, n);
    return p;
}

static const char *classifier(naming names)
{
    return names == TORCHVISION ? "classifier.1" : "classifier";
}

/* ---- building -------------------------------------------------------------------------------- */

static lw_val convolve(lw_builder *b, const mobilenet *a, part what, int n, lw_val x, int32_t o,
                       int stride)
{
    part_name p = name_of(a->names, what, n);
    lw_conv_bn_opts how = {.kernel = what == STEM || what == DEPTHWISE ? 3 : 1,
                           .stride = stride,
                           .same = a->same,
                           .depthwise = what == DEPTHWISE,
                           .eps = a->eps};
    x = lw_conv_bn_as(b, p.conv, p.norm[0] ? p.norm : NULL, x, o, how);
    return what == PROJECT ? x : lw_relu6(b->g, x);
}

static lw_val block(lw_builder *b, const mobilenet *a, int n, lw_val x, int stride)
{
    int32_t c = lw_val_ok(x) ? lw_type_last(lw_val_type(b->g, x)) : 0;
    int32_t inner = a->inner[n - 1], o = a->width[n - 1];
    lw_val h = n == 1 ? x : convolve(b, a, EXPAND, n, x, inner, 1);
    h = convolve(b, a, DEPTHWISE, n, h, inner, stride);
    h = convolve(b, a, PROJECT, n, h, o, 1);
    return stride == 1 && c == o ? lw_add(b->g, h, x) : h;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const mobilenet *a = arch;
    lw_val map[1 + STAGES];
    const char *top = a->prefix ? lw_scope_push(b->g, "mobilenet_v2") : NULL;
    lw_val x = map[0] = convolve(b, a, STEM, 0, in.x, a->stem, 2);
    for (int s = 0, n = 1; s < STAGES; s++) {
        for (int i = 0; i < stage_blocks[s]; i++, n++) {
            char name[24];
            snprintf(name, sizeof name, "block.%d", n);
            x = lw_layer_done(b, name, x, block(b, a, n, x, i == 0 ? stage_stride[s] : 1));
        }
        map[1 + s] = x;
    }
    x = convolve(b, a, HEAD, 0, x, a->head, 1);
    if (top)
        lw_scope_set(b->g, top);
    lw_val pooled = lw_mean(b->g, x, LW_OVER_MIDDLE);
    if (a->classes > 0)
        lw_tap_add(out, "logits",
                   lw_linear(b, classifier(a->names), lw_layer_done(b, "head", LW_NOVAL, pooled),
                             a->classes, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, 1 + STAGES);
}

/* ---- which files ----------------------------------------------------------------------------- */

/* The weight of a part, as itself or as bytes with scales; NULL: it is not there, or no convolution
 * with this kernel. */
static const lw_st_tensor *find(const lw_st_file *f, const mobilenet *a, part what, int n)
{
    part_name p = name_of(a->names, what, n);
    char name[96];
    int64_t side = what == STEM || what == DEPTHWISE ? 3 : 1;
    snprintf(name, sizeof name, "%s%s.weight%s", a->prefix ? "mobilenet_v2." : "", p.conv,
             a->names == FOLDED ? "_q" : "");
    const lw_st_tensor *t = lw_st_find_model(f, name);
    if (!t && a->names == FOLDED) {
        name[strlen(name) - 2] = '\0';
        t = lw_st_find_model(f, name);
    }
    return t && t->rank == 4 && t->shape[0] >= 1 && t->shape[0] <= MAX_WIDTH &&
                   t->shape[2] == side && t->shape[3] == side
               ? t
               : NULL;
}

static bool read_widths(const lw_st_file *f, mobilenet *a)
{
    const lw_st_tensor *stem = find(f, a, STEM, 0), *head = find(f, a, HEAD, 0);
    if (!stem || !head)
        return false;
    a->stem = (int32_t)stem->shape[0];
    a->head = (int32_t)head->shape[0];
    for (int n = 1; n <= BLOCKS; n++) {
        const lw_st_tensor *inner = find(f, a, DEPTHWISE, n), *out = find(f, a, PROJECT, n);
        if (!inner || !out || inner->shape[1] != 1)
            return false;
        a->inner[n - 1] = (int32_t)inner->shape[0];
        a->width[n - 1] = (int32_t)out->shape[0];
    }
    return true;
}

static int32_t read_classes(const lw_st_file *f, naming names)
{
    char name[48];
    snprintf(name, sizeof name, "%s.bias", classifier(names));
    const lw_st_tensor *t = lw_st_find_model(f, name);
    return t && t->rank == 1 && t->shape[0] <= MAX_WIDTH * 16 ? (int32_t)t->shape[0] : 0;
}

static bool recognise(const lw_st_file *f, void *arch)
{
    mobilenet *a = arch;
    bool read = a->said; /* which says no widths */
    for (int k = read ? (int)a->names : FOLDED; k < NAMINGS; k++) {
        mobilenet try = {.names = (naming)k, .same = k == FOLDED, .eps = 1e-5f};
        if (read)
            try = *a;
        else if (k == TRANSFORMERS)
            continue; /* epsilon and padding stand in its config.json alone */
        try.prefix = k == TRANSFORMERS &&
                     lw_st_find_model(f, "mobilenet_v2.conv_1x1.convolution.weight");
        if (read_widths(f, &try)) {
            try.classes = read_classes(f, try.names);
            *a = try;
            return true;
        }
        if (read)
            return false;
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

static int read_timm(const json_t *j, const char *where, mobilenet *a)
{
    static const char *const timm[] = {"architecture",   "num_classes", "num_features",
                                       "pretrained_cfg", "model_args",  NULL};
    static const char *const more[] = {"bn_eps", "in_chans", NULL};
    static const char *const *const known[] = {timm, NULL}, *const *const args[] = {more, NULL};
    static const lw_json_only only[] = {{"global_pool", "\"avg\""}, {0}};
    static const lw_json_only pads[] = {{"pad_type", "\"\""}, {"pad_type", "\"same\""}, {0}};
    const json_t *o = json_object_get(j, "model_args");
    const char *pad = "";
    double eps = 1e-5;
    LW_TRY(lw_json_check_known(j, where, known, only));
    if (json_is_object(o)) {
        LW_TRY(lw_json_check_known(o, where, args, pads));
        LW_TRY(lw_json_opt_f64(o, where, "bn_eps", &eps));
        LW_TRY(lw_json_opt_str(o, where, "pad_type", &pad));
    }
    *a =
        (mobilenet){.names = TIMM, .said = true, .same = lw_str_eq(pad, "same"), .eps = (float)eps};
    return 0;
}

static int read(const json_t *j, const char *where, void *arch)
{
    mobilenet *a = arch;
    int32_t output_stride = 32;
    bool first = true;
    double eps = 0.001;
    if (json_object_get(j, "architecture"))
        return read_timm(j, where, a);
    *a = (mobilenet){.names = TRANSFORMERS, .said = true, .same = true};
    LW_TRY(lw_transformers_check(j, where, keys));
    LW_TRY(lw_transformers_act_is(j, where, "relu6"));
    LW_TRY(lw_transformers_count(j, where, "output_stride", 1024, &output_stride));
    LW_TRY(lw_json_opt_bool(j, where, "tf_padding", &a->same));
    LW_TRY(lw_json_opt_bool(j, where, "first_layer_is_expansion", &first));
    LW_TRY(lw_json_opt_f64(j, where, "layer_norm_eps", &eps));
    a->eps = (float)eps;
    if (output_stride != 32)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'output_stride' is %d, only 32 is built here", where,
                       (int)output_stride);
    return first
               ? 0
               : lw_fail(LW_EUNSUPPORTED,
                         "%s: 'first_layer_is_expansion' is false, only true is built here", where);
}

/* ---- other libraries' folders ---------------------------------------------------------------- */

/* Channels at a multiplier, to a multiple of 8 that takes no more than a tenth away. */
static int32_t times(int32_t channels, double by)
{
    double want = channels * by;
    int32_t n = LW_MAX((int32_t)(want + 4) / 8 * 8, 8);
    return n < 0.9 * want ? n + 8 : n;
}

static bool has_widths(const mobilenet *a, double by)
{
    static const int32_t width[STAGES] = {16, 24, 32, 64, 96, 160, 320};
    int32_t c = times(32, by);
    if (a->stem != c || a->head != LW_MAX(times(1280, by), 1280))
        return false;
    for (int s = 0, n = 1; s < STAGES; s++)
        for (int i = 0; i < stage_blocks[s]; i++, n++) {
            if (a->inner[n - 1] != (n == 1 ? c : 6 * c) || a->width[n - 1] != times(width[s], by))
                return false;
            c = a->width[n - 1];
        }
    return true;
}

static void write_transformers(const mobilenet *a, double by, json_t *config)
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

static void write_timm(const mobilenet *a, double by, json_t *config)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    json_t *args = json_object();
    lw_str_addf(&name, "mobilenetv2_%03d", (int)(100 * by + 0.5));
    if (a->eps != 1e-5f)
        json_object_set_new(args, "bn_eps", lw_json_float(a->eps));
    if (a->same)
        json_object_set_new(args, "pad_type", json_string("same"));
    json_object_set_new(config, "architecture", json_string(lw_str_c(&name)));
    json_object_set_new(config, "num_classes", json_integer(a->classes));
    json_object_set_new(config, "num_features", json_integer(a->head));
    json_object_set_new(config, "global_pool", json_string("avg"));
    json_object_set_new(config, "model_args", args);
}

static int write(const lw_network *n, lw_library to, lw_network_form *out)
{
    static const double multipliers[] = {0.35, 0.5, 0.75, 1.0, 1.4};
    const mobilenet *a = n->arch;
    bool hf = to == LW_LIBRARY_HF;
    size_t i = 0;
    while (i < LW_COUNT(multipliers) && !has_widths(a, multipliers[i]))
        i++;
    LW_TRY(lw_network_form_only(n, to, to != LW_LIBRARY_OPEN_CLIP, "a MobileNetV2"));
    LW_TRY(lw_network_form_only(n, to, a->names != FOLDED, "a network with BatchNorm folded in"));
    LW_TRY(lw_network_form_only(n, to, i < LW_COUNT(multipliers), "a MobileNetV2 of these widths"));
    mobilenet *there = out->arch = lw_calloc(1, sizeof *there);
    if (!there)
        return LW_ENOMEM;
    *there = *a;
    there->names = hf ? TRANSFORMERS : TIMM;
    there->prefix = hf && a->classes > 0;
    out->by_place = true;
    if (hf)
        write_transformers(a, multipliers[i], out->config);
    else
        write_timm(a, multipliers[i], out->config);
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
    naming names = ((const mobilenet *)n->arch)->names;
    if (names == TORCHVISION || names == TIMM)
        return;
    n->preparation = inception;
    if (names == FOLDED)
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
