/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLIP's vision tower: a norm before the blocks (its name is misspelt in the files), one behind them
 * on the class token, then a projection without bias where the folder has one. The text tower is
 * not built.
 */
#include "models/encoders/models_timm.h"
#include "models/encoders/models_transformers.h"
#include "models/encoders/models_vit.h"
#include "models/models.h"

typedef struct clip_arch {
    lw_vit vit;
    int32_t projection; /* width of pooled; 0: none, pooled is the class token */
    bool bias;          /* of the projection: timm has one */
} clip_arch;

/* ---- config.json ----------------------------------------------------------------------------- */

static const char *const vision_keys[] = {"attention_dropout",
                                          "dropout",
                                          "hidden_act",
                                          "hidden_size",
                                          "image_size",
                                          "intermediate_size",
                                          "layer_norm_eps",
                                          "num_attention_heads",
                                          "num_channels",
                                          "num_hidden_layers",
                                          "patch_size",
                                          "projection_dim",
                                          NULL};
static const char *const whole_keys[] = {
    "logit_scale_init_value", "projection_dim",     "text_config", "text_config_dict",
    "vision_config",          "vision_config_dict", NULL};

static int read(const json_t *whole, const char *file, void *arch)
{
    LW_CLEANUP(lw_str_clear) lw_str in = {0};
    const json_t *j = whole;
    const char *where = file;
    clip_arch a = {.vit = {.width = 768,
                           .hidden = 3072,
                           .depth = 12,
                           .heads = 12,
                           .image_size = 224,
                           .patch = 32,
                           .act = LW_EW_quick_gelu,
                           .eps = 1e-5f}};
    if (lw_open_clip_is(whole)) {
        LW_TRY(lw_open_clip_vit(whole, file, &a.vit, &a.projection));
        *(clip_arch *)arch = a;
        return 0;
    }
    if (lw_timm_is(whole)) {
        a.vit.act = LW_EW_gelu;
        a.bias = true;
        LW_TRY(lw_timm_vit(whole, file, "token", &a.vit, &a.projection));
        *(clip_arch *)arch = a;
        return 0;
    }
    LW_TRY(lw_transformers_vision(&j, &where, whole_keys, &in));
    LW_TRY(lw_transformers_check(j, where, vision_keys));
    LW_TRY(lw_transformers_vit(j, where, &a.vit));
    if (!lw_transformers_class(whole, "CLIPVisionModel")) {
        a.projection = 512;
        LW_TRY(lw_transformers_count(whole, file, "projection_dim", 1 << 16, &a.projection));
    }
    *(clip_arch *)arch = a;
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const lw_vit_names names = {
    .patch = "embeddings.patch_embedding",
    .class_token = "embeddings.class_embedding",
    .positions = "embeddings.position_embedding.weight",
    .norm = "pre_layrnorm",
    .blocks = "encoder.layers",
    .norm1 = "layer_norm1",
    .qkv = "self_attn.to_qkv",
    .out = "self_attn.out_proj",
    .norm2 = "layer_norm2",
    .fc1 = "mlp.fc1",
    .fc2 = "mlp.fc2",
};

static const lw_name_rule transformers[] = {
    LW_QKV_RULES("**.q_proj.*", "**.k_proj.*", "**.v_proj.*"),
    {.file = "visual_projection.*", .store = "visual_projection.*", .bare = true},
    {0},
};
static const char *const text[] = {"text_model.**", "text_projection.**", "logit_scale", NULL};

static const lw_name_rule open_clip[] = {
    {.file = "conv1.*", .store = "embeddings.patch_embedding.*"},
    {.file = "class_embedding", .store = "embeddings.class_embedding"},
    {.file = "positional_embedding", .store = "embeddings.position_embedding.weight"},
    {.file = "ln_pre.*", .store = "pre_layrnorm.*"},
    {.file = "transformer.resblocks.*.ln_1.*", .store = "encoder.layers.*.layer_norm1.*"},
    {.file = "transformer.resblocks.*.attn.in_proj_*",
     .store = "encoder.layers.*.self_attn.to_qkv.*"},
    {.file = "transformer.resblocks.*.attn.*.*", .store = "encoder.layers.*.self_attn.*.*"},
    {.file = "transformer.resblocks.*.ln_2.*", .store = "encoder.layers.*.layer_norm2.*"},
    {.file = "transformer.resblocks.*.mlp.c_fc.*", .store = "encoder.layers.*.mlp.fc1.*"},
    {.file = "transformer.resblocks.*.mlp.c_proj.*", .store = "encoder.layers.*.mlp.fc2.*"},
    {.file = "ln_post.*", .store = "post_layernorm.*"},
    {.file = "proj", .store = "visual_projection.weight", .values = LW_VALUES_TRANSPOSED},
    {0},
};
static const char *const text_open[] = {"text.**",     "transformer.**",  "token_embedding.weight",
                                        "ln_final.*",  "text_projection", "positional_embedding",
                                        "logit_scale", "logit_bias",      NULL};

static const lw_name_rule timm[] = {
    LW_TIMM_TOWER_RULES,
    {.file = "cls_token", .store = "embeddings.class_embedding", .ones = 2},
    {.file = "norm_pre.*", .store = "pre_layrnorm.*"},
    {.file = "head.*", .store = "visual_projection.*"},
    {0},
};

static const lw_naming namings[] = {
    {"transformers", "vision_model.", transformers, text},
    {"transformers", NULL, transformers, NULL}, /* the vision model saved alone */
    {"open_clip", "visual.", open_clip, text_open},
    {"timm", NULL, timm, NULL},
    {0},
};
static const lw_naming *const naming_of[] = {[LW_LIBRARY_HF] = &namings[0],
                                             [LW_LIBRARY_OPEN_CLIP] = &namings[2],
                                             [LW_LIBRARY_TIMM] = &namings[3]};

/* ---- other libraries' folders ---------------------------------------------------------------- */

static const lw_vit timm_usual = {.act = LW_EW_gelu, .eps = 1e-5f};

static bool is_zero(const lw_store *s, const char *name)
{
    int32_t k = lw_store_find(s, name);
    const float *v = k >= 0 ? lw_store_data(s, k, LW_SLAB_PARAM) : NULL;
    for (int64_t i = 0; v && i < lw_store_at(s, k)->count; i++)
        if (v[i] != 0)
            return false;
    return true;
}

static int write_transformers(const lw_network *n, const clip_arch *a, json_t *config)
{
    const char *class_name = a->projection ? "CLIPVisionModelWithProjection" : "CLIPVisionModel";
    json_object_set_new(config, "model_type", json_string("clip_vision_model"));
    json_object_set_new(config, "architectures", json_pack("[s]", class_name));
    lw_transformers_put_vit(&a->vit, config);
    json_object_set_new(config, "intermediate_size", json_integer(a->vit.hidden));
    json_object_set_new(config, "projection_dim",
                        json_integer(a->projection ? a->projection : a->vit.width));
    (void)n;
    return 0;
}

static int write_timm(const lw_network *n, const clip_arch *a, json_t *config)
{
    bool quick = a->vit.act == LW_EW_quick_gelu;
    LW_TRY(lw_timm_write(n, &a->vit, quick ? "_clip_quickgelu_" : "_clip_", &timm_usual, config));
    json_object_set_new(config, "num_classes", json_integer(a->projection));
    json_object_set_new(config, "global_pool", json_string("token"));
    return 0;
}

/* Only timm's projection has a bias, and weights of CLIP have zeros there. */
static int write(const lw_network *n, lw_library to, lw_network_form *out)
{
    const clip_arch *a = n->arch;
    bool bias = to == LW_LIBRARY_TIMM && a->projection;
    LW_TRY(lw_network_form_only(n, to, bias || is_zero(n->store, "visual_projection.bias"),
                                "a projection with a bias that is not zero"));
    out->naming = naming_of[to];
    if (bias != a->bias) {
        clip_arch *there = out->arch = lw_calloc(1, sizeof *there);
        if (!there)
            return LW_ENOMEM;
        *there = *a;
        there->bias = bias;
    }
    if (to == LW_LIBRARY_HF)
        return write_transformers(n, a, out->config);
    if (to == LW_LIBRARY_TIMM)
        return write_timm(n, a, out->config);
    LW_TRY(lw_open_clip_write(n, &a->vit, a->projection, out->config));
    return lw_network_form_note(out, "open_clip builds a text tower too, which is not in these "
                                     "files: load them into model.visual");
}

/* ---- the record ------------------------------------------------------------------------------ */

static void describe(lw_network *n)
{
    lw_network_square(n, ((const clip_arch *)n->arch)->vit.image_size);
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const clip_arch *a = arch;
    lw_val map[LW_MAX_MAPS] = {{0}};
    lw_val tokens = lw_vit_build(b, &a->vit, &names, in.x, map);
    lw_val cls = lw_vit_token(b->g, tokens, 0);
    cls = lw_layer_norm(b, "post_layernorm", cls, a->vit.eps, LW_NOVAL);
    cls = lw_layer_done(b, "head_drop", LW_NOVAL, cls);
    lw_tap_add(out, "pooled",
               a->projection ? lw_linear(b, "visual_projection", cls, a->projection, a->bias)
                             : cls);
    lw_tap_add(out, "cls", cls);
    lw_tap_add(out, "tokens", tokens);
    lw_tap_add_maps(out, map, a->vit.depth + 1);
}

static const lw_preparation preparation = {
    .fit = LW_FIT_SHORTEST, .filter = LW_FILTER_BICUBIC, LW_NUMBERS_CLIP};

const lw_network_def lw_network_def_clip = {
    .name = "clip",
    .objective = "contrast text",
    .trained_on = "web pairs",
    .kind = "encoder",
    .class_name = "clip clip_vision_model open_clip vit_*_clip_*",
    .arch_bytes = sizeof(clip_arch),
    .read = read,
    .write = write,
    .describe = describe,
    .namings = namings,
    .stem = "embeddings.patch_embedding.weight",
    .preparation = &preparation,
    .build = build,
};
