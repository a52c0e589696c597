/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EfficientNet-Lite (Tan and Le, arXiv 1905.11946, and its TensorFlow release of 2020): EfficientNet without squeeze and
 * excitation and with ReLU6, inverted residual blocks (models_inverted.h) of 3x3 and 5x5. lite0 to lite4 scale widths by
 * 1, 1, 1.1, 1.2, 1.4 and the five inner stages' depths by 1, 1.1, 1.2, 1.4, 1.8. Two ways to name tensors:
 *
 *   timm   conv_stem, blocks.<stage>.<i>.conv_pw, conv_head; with a config.json. Its tf_efficientnet_lite* have
 *          TensorFlow's padding and epsilon, its efficientnet_lite* PyTorch's
 *   flat   _conv_stem, _blocks.<n>._expand_conv, _conv_head, _fc: TensorFlow's weights as
 *          efficientnet_lite_pytorch names them, no config.json
 */
#include "models/encoders/models_inverted.h"
#include "models/encoders/models_timm.h"
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

static const struct lite {
    int blocks[LW_INVERTED_STAGES];
    double width;
    int32_t side; /* of TensorFlow's pictures */
} lites[] = {
    {{1, 2, 2, 3, 3, 4, 1}, 1.0, 224}, {{1, 3, 3, 4, 4, 5, 1}, 1.0, 240},
    {{1, 3, 3, 4, 4, 5, 1}, 1.1, 260}, {{1, 3, 3, 5, 5, 6, 1}, 1.2, 280},
    {{1, 4, 4, 6, 6, 8, 1}, 1.4, 300},
};

static const lw_inverted tensorflow = {.name = lw_inverted_name_timm,
                                       .classifier = "classifier",
                                       .same = true,
                                       .eps = 1e-3f,
                                       .stride = {1, 2, 2, 2, 1, 2, 1},
                                       .kernel = {3, 3, 5, 3, 5, 5, 3}};

typedef struct efficientnet {
    lw_inverted net;
    bool said; /* by a config.json */
} efficientnet;

static void name_flat(lw_inverted_names *p, const lw_inverted *a, lw_inverted_part what, int n)
{
    static const char *const word[] = {[LW_INVERTED_EXPAND] = "expand",
                                       [LW_INVERTED_DEPTHWISE] = "depthwise",
                                       [LW_INVERTED_PROJECT] = "project"};
    (void)a;
    if (what == LW_INVERTED_STEM || what == LW_INVERTED_HEAD) {
        snprintf(p->conv, sizeof p->conv, what == LW_INVERTED_STEM ? "_conv_stem" : "_conv_head");
        snprintf(p->norm, sizeof p->norm, what == LW_INVERTED_STEM ? "_bn0" : "_bn1");
        return;
    }
    snprintf(p->conv, sizeof p->conv, "_blocks.%d._%s_conv", n - 1, word[what]);
    snprintf(p->norm, sizeof p->norm, "_blocks.%d._bn%d", n - 1,
             (int)what - (int)LW_INVERTED_EXPAND);
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_inverted_build(b, &((const efficientnet *)arch)->net, in.x, out);
}

/* ---- which files ----------------------------------------------------------------------------- */

static const struct lite *lite_of(const lw_inverted *a)
{
    static const int32_t width[LW_INVERTED_STAGES] = {16, 24, 40, 80, 112, 192, 320};
    for (size_t i = 0; i < LW_COUNT(lites); i++)
        if (memcmp(a->blocks, lites[i].blocks, sizeof a->blocks) == 0 && a->stem == 32 &&
            a->head == 1280 && lw_inverted_has_widths(a, width, lites[i].width))
            return &lites[i];
    return NULL;
}

/* Squeeze and excitation would stand beside the same names. */
static bool has_squeeze(const lw_st_file *f)
{
    return lw_st_find_model(f, "_blocks.0._se_reduce.weight") ||
           lw_st_find_model(f, "blocks.0.0.se.conv_reduce.weight");
}

/* Depths go by the names alone, the deepest first: a shallower one would leave tensors over. */
static bool recognise(const lw_st_file *f, void *arch)
{
    efficientnet *a = arch;
    lw_inverted net = a->said ? a->net : tensorflow;
    if (!a->said) { /* timm's names alone do not say which padding */
        net.name = name_flat;
        net.classifier = "_fc";
    }
    for (size_t i = LW_COUNT(lites); i-- > 0 && !has_squeeze(f);) {
        a->net = net;
        memcpy(a->net.blocks, lites[i].blocks, sizeof a->net.blocks);
        if (lw_inverted_read(f, &a->net) && lite_of(&a->net))
            return true;
    }
    return false;
}

static int read(const json_t *j, const char *where, void *arch)
{
    efficientnet *a = arch;
    const char *name;
    *a = (efficientnet){.net = tensorflow, .said = true};
    LW_TRY(lw_json_get_str(j, where, "architecture", &name));
    if (!lw_str_starts(name, "tf_")) {
        a->net.same = false;
        a->net.eps = 1e-5f;
    }
    return lw_inverted_read_timm(j, where, &a->net);
}

/* ---- other libraries' folders ---------------------------------------------------------------- */

static int write(const lw_network *n, lw_library to, lw_network_form *out)
{
    const efficientnet *a = n->arch;
    const struct lite *lite = lite_of(&a->net);
    LW_TRY(lw_network_form_only(n, to, to == LW_LIBRARY_TIMM && lite, "an EfficientNet-Lite"));
    efficientnet *there = out->arch = lw_calloc(1, sizeof *there);
    if (!there)
        return LW_ENOMEM;
    *there = *a;
    there->net.name = lw_inverted_name_timm;
    there->net.classifier = "classifier";
    out->by_place = true;
    char name[40];
    snprintf(name, sizeof name, "tf_efficientnet_lite%d", (int)(lite - lites));
    lw_inverted_write_timm(&a->net, name, &tensorflow, out->config);
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

/* TensorFlow's: the middle of a picture, a margin of 16 left out on each side. */
static void describe(lw_network *n)
{
    const efficientnet *a = n->arch;
    const struct lite *lite = lite_of(&a->net);
    if (a->said || !lite)
        return;
    n->preparation = (lw_preparation){.fit = LW_FIT_SHORTEST,
                                      .form = LW_RESAMPLE_PILLOW,
                                      .filter = LW_FILTER_BICUBIC,
                                      .resize_h = lite->side + 32,
                                      .resize_w = lite->side + 32,
                                      .height = lite->side,
                                      .width = lite->side,
                                      LW_NUMBERS_HALF};
}

const lw_network_def lw_network_def_efficientnet_lite = {
    .name = "efficientnet_lite",
    .objective = "classify",
    .trained_on = "imagenet",
    .kind = "encoder",
    .class_name = "efficientnet_lite* tf_efficientnet_lite*",
    .arch_bytes = sizeof(efficientnet),
    .read = read,
    .write = write,
    .recognise = recognise,
    .tensors = "an EfficientNet-Lite of timm with its config.json, or of efficientnet_lite_pytorch",
    .describe = describe,
    .stem = "_conv_stem.weight conv_stem.weight",
    .preparation = &lw_preparation_imagenet,
    .build = build,
};
