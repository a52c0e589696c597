/* SPDX-License-Identifier: Apache-2.0 */
/* Vision transformers in the words of timm and open_clip: timm's registration that is nearest, and
 * the arguments in which it differs. What a registration means is what reading it says. */
#include "models/encoders/models_timm.h"

#include <string.h>

#include "models/models.h"

static const char *const architectures[] = {
    "vit_base_patch32_clip_224",
    "vit_base_patch32_clip_256",
    "vit_base_patch32_clip_384",
    "vit_base_patch32_clip_448",
    "vit_base_patch16_clip_224",
    "vit_base_patch16_clip_384",
    "vit_large_patch14_clip_224",
    "vit_large_patch14_clip_336",
    "vit_huge_patch14_clip_224",
    "vit_huge_patch14_clip_336",
    "vit_huge_patch14_clip_378",
    "vit_base_patch32_clip_quickgelu_224",
    "vit_base_patch16_clip_quickgelu_224",
    "vit_large_patch14_clip_quickgelu_224",
    "vit_large_patch14_clip_quickgelu_336",
    "vit_huge_patch14_clip_quickgelu_224",
    "vit_huge_patch14_clip_quickgelu_378",
    "vit_base_patch32_siglip_256",
    "vit_base_patch16_siglip_224",
    "vit_base_patch16_siglip_256",
    "vit_base_patch16_siglip_384",
    "vit_base_patch16_siglip_512",
    "vit_large_patch16_siglip_256",
    "vit_large_patch16_siglip_384",
    "vit_large_patch16_siglip_512",
    "vit_so400m_patch14_siglip_224",
    "vit_so400m_patch14_siglip_378",
    "vit_so400m_patch14_siglip_384",
    "vit_so400m_patch16_siglip_256",
    "vit_so400m_patch16_siglip_384",
    "vit_so400m_patch16_siglip_512",
    "vit_giantopt_patch16_siglip_256",
    "vit_giantopt_patch16_siglip_384",
    "vit_small_patch14_dinov2",
    "vit_base_patch14_dinov2",
    "vit_large_patch14_dinov2",
    "vit_giant_patch14_dinov2",
    "vit_small_patch14_reg4_dinov2",
    "vit_base_patch14_reg4_dinov2",
    "vit_large_patch14_reg4_dinov2",
    "vit_giant_patch14_reg4_dinov2",
};

/* ---- which registration ---------------------------------------------------------------------- */

/* In how many fields; -1: in one that no argument changes. */
static int difference(const lw_vit *a, const lw_vit *b)
{
    if (a->swiglu != b->swiglu || (a->registers > 0) != (b->registers > 0))
        return -1;
    return (a->width != b->width) + (a->hidden != b->hidden) + (a->depth != b->depth) +
           (a->heads != b->heads) + (a->image_size != b->image_size) + (a->patch != b->patch) +
           (a->registers != b->registers) + (a->no_qkv_bias != b->no_qkv_bias);
}

/* The one of fewest differences, equal activations before others; *least: how many. */
static const char *nearest(const lw_vit *v, const char *family, const lw_vit *usual, lw_vit *found,
                           int *least)
{
    const char *name = NULL;
    for (size_t i = 0; i < LW_COUNT(architectures); i++) {
        lw_vit w = *usual;
        if (!strstr(architectures[i], family) ||
            lw_timm_architecture(architectures[i], architectures[i], &w) < 0)
            continue;
        int d = difference(v, &w);
        bool nearer = !name || d < *least ||
                      (d == *least && found->act != v->act && w.act == v->act);
        if (d < 0 || !nearer)
            continue;
        name = architectures[i];
        *found = w;
        *least = d;
    }
    return name;
}

const char *lw_timm_find(const lw_vit *v, const char *family, const lw_vit *usual, lw_vit *found)
{
    int least = 0;
    const char *name = nearest(v, family, usual, found, &least);
    return least == 0 ? name : NULL;
}

/* ---- timm ------------------------------------------------------------------------------------ */

/* Of which the whole part times a is b. */
static double ratio(int32_t a, int32_t b)
{
    double r = (double)b / (double)a;
    return (int32_t)((double)a * r) == b ? r : ((double)b + 0.5) / (double)a;
}

static void put_args(const lw_vit *v, const lw_vit *base, json_t *args)
{
    const struct {
        const char *key;
        int32_t have, base;
    } counts[] = {{"patch_size", v->patch, base->patch},
                  {"embed_dim", v->width, base->width},
                  {"depth", v->depth, base->depth},
                  {"num_heads", v->heads, base->heads},
                  {"reg_tokens", v->registers, base->registers}};
    /* Said even where it is the registration's: timm takes that from a pretrained_cfg of its own
     * alone, and would make another table of positions. */
    json_object_set_new(args, "img_size", json_integer(v->image_size));
    for (size_t i = 0; i < LW_COUNT(counts); i++)
        if (counts[i].have != counts[i].base)
            json_object_set_new(args, counts[i].key, json_integer(counts[i].have));
    if (v->width != base->width || v->hidden != base->hidden) /* of the gated form both halves */
        json_object_set_new(args, "mlp_ratio",
                            lw_json_real(ratio(v->width, v->hidden * (v->swiglu ? 2 : 1))));
    if (v->act != base->act)
        json_object_set_new(args, "act_layer", json_string(lw_timm_act(v->act)));
    if (v->no_qkv_bias != base->no_qkv_bias)
        json_object_set_new(args, "qkv_bias", json_boolean(!v->no_qkv_bias));
    if (v->resize != LW_VIT_RESIZE_NONE)
        json_object_set_new(args, "dynamic_img_size", json_true());
}

int lw_timm_write(const lw_network *n, const lw_vit *v, const char *family, const lw_vit *usual,
                  json_t *config)
{
    lw_vit base = {0};
    int least = 0;
    const char *name = nearest(v, family, usual, &base, &least);
    LW_ASSERT(name, "a registration of %s", family);
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_TIMM, lw_timm_act(v->act), "this activation"));
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_TIMM, v->eps == usual->eps, "this 'layer_norm_eps'"));
    json_t *args = json_object();
    put_args(v, &base, args);
    json_object_set_new(config, "architecture", json_string(name));
    json_object_set_new(config, "num_features", json_integer(v->width));
    json_object_set_new(config, "model_args", args);
    return 0;
}

/* ---- open_clip ------------------------------------------------------------------------------- */

int lw_open_clip_write(const lw_network *n, const lw_vit *v, int32_t projection, json_t *config)
{
    bool quick = v->act == LW_EW_quick_gelu;
    json_t *tower = json_pack("{s:i, s:i, s:i, s:i, s:i}", "image_size", (int)v->image_size,
                              "layers", (int)v->depth, "width", (int)v->width, "head_width",
                              (int)(v->width / v->heads), "patch_size", (int)v->patch);
    if (v->hidden != 4 * v->width)
        json_object_set_new(tower, "mlp_ratio", lw_json_real(ratio(v->width, v->hidden)));
    if (v->eps != 1e-5f)
        json_object_set_new(tower, "norm_kwargs", json_pack("{s:o}", "eps", lw_json_float(v->eps)));
    json_object_set_new(config, "model_cfg",
                        json_pack("{s:i, s:b, s:o, s:{}}", "embed_dim", (int)projection,
                                  "quick_gelu", (int)quick, "vision_cfg", tower, "text_cfg"));
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_OPEN_CLIP, quick || v->act == LW_EW_gelu,
                                "this activation"));
    return lw_network_form_only(n, LW_LIBRARY_OPEN_CLIP, projection > 0,
                                "a network without a projection");
}
