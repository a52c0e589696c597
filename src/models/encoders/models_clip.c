/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLIP's vision tower: a norm before the blocks (its name is misspelt in the files), one behind them
 * on the class token, then a projection without bias where the folder has one. The text tower is
 * not built.
 */
#include "models/encoders/models_transformers.h"
#include "models/encoders/models_vit.h"
#include "models/models.h"

typedef struct clip_arch {
    lw_vit vit;
    int32_t image_size;
    int32_t projection; /* width of pooled; 0: none, pooled is the class token */
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

static int read_vision(const json_t *j, const char *where, clip_arch *a)
{
    LW_TRY(lw_transformers_check(j, where, vision_keys));
    a->vit = (lw_vit){.width = 768,
                      .hidden = 3072,
                      .depth = 12,
                      .heads = 12,
                      .patch = 32,
                      .act = LW_EW_quick_gelu,
                      .eps = 1e-5f};
    a->image_size = 224;
    LW_TRY(lw_transformers_vit(j, where, &a->vit));
    LW_TRY(lw_transformers_side(j, where, "image_size", &a->image_size));
    a->vit.grid = a->image_size / a->vit.patch;
    return lw_vit_check(&a->vit, where);
}

/* A whole model's vision_config; where an old folder says it twice, vision_config_dict counts. */
static int read_whole(const json_t *j, const char *where, clip_arch *a)
{
    LW_CLEANUP(lw_str_clear) lw_str in = {0};
    const json_t *old = json_object_get(j, "vision_config_dict"), *v;
    const char *key = old && !json_is_null(old) ? "vision_config_dict" : "vision_config";
    LW_TRY(lw_transformers_check(j, where, whole_keys));
    LW_TRY(lw_json_get_object(j, where, key, &v));
    lw_str_addf(&in, "%s: %s", where, key);
    return in.failed ? LW_ENOMEM : read_vision(v, lw_str_c(&in), a);
}

static int read(const json_t *j, const char *where, void *arch)
{
    clip_arch *a = arch;
    bool whole = lw_str_eq(json_string_value(json_object_get(j, "model_type")), "clip");
    LW_TRY(whole ? read_whole(j, where, a) : read_vision(j, where, a));
    a->projection = 512;
    if (lw_transformers_class(j, "CLIPVisionModel"))
        a->projection = 0;
    else
        LW_TRY(lw_transformers_count(j, where, "projection_dim", 1 << 20, &a->projection));
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

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

static void describe(lw_network *n)
{
    const clip_arch *a = n->arch;
    n->image_size = a->image_size;
    n->preparation.resize_h = n->preparation.resize_w = a->image_size;
    n->preparation.height = n->preparation.width = a->image_size;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const clip_arch *a = arch;
    lw_val map[LW_MAX_MAPS] = {{0}};
    const char *up = lw_scope_push(b->g, "vision_model");
    lw_val tokens = lw_vit_build(b, &a->vit, &names, in.x, map);
    lw_val cls = lw_vit_token(b->g, tokens, 0);
    cls = lw_layer_norm(b, "post_layernorm", cls, a->vit.eps, LW_NOVAL);
    lw_scope_set(b->g, up);
    lw_tap_add(out, "pooled",
               a->projection ? lw_linear(b, "visual_projection", cls, a->projection, false) : cls);
    lw_tap_add(out, "cls", cls);
    lw_tap_add(out, "tokens", tokens);
    lw_tap_add_maps(out, map, a->vit.depth + 1);
}

static const lw_name_rule rules[] = {
    {.file = "**.q_proj.*", .store = "**.to_qkv.*", .store_rows = {0, 1, 3}},
    {.file = "**.k_proj.*", .store = "**.to_qkv.*", .store_rows = {1, 1, 3}},
    {.file = "**.v_proj.*", .store = "**.to_qkv.*", .store_rows = {2, 1, 3}},
    {0},
};
static const char *const text[] = {"text_model.**", "text_projection.**", "logit_scale", NULL};
static const lw_naming namings[] = {{.name = "transformers", .rules = rules, .ignored = text}, {0}};

static const lw_preparation preparation = {
    .fit = LW_FIT_SHORTEST, .filter = LW_FILTER_BICUBIC, LW_NUMBERS_CLIP};

const lw_network_def lw_network_def_clip = {
    .name = "clip",
    .kind = "encoder",
    .class_name = "clip",
    .arch_bytes = sizeof(clip_arch),
    .read = read,
    .describe = describe,
    .namings = namings,
    .preparation = &preparation,
    .build = build,
};
