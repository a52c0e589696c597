/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SigLIP's vision tower, and SigLIP2's at its fixed sizes: no class token, a norm behind the blocks
 * on all tokens, then a head whose learned probe is the one query over them. No projection. The text
 * tower is not built.
 *
 * Files of transformers mean GELU's tanh form (hidden_act says it), timm's registrations of B/16 and
 * so400m/14 the exact one: their features are 1e-3 apart.
 */
#include "models/encoders/models_timm.h"
#include "models/encoders/models_transformers.h"
#include "models/encoders/models_vit.h"
#include "models/models.h"

typedef struct siglip_arch {
    lw_vit vit;
    bool no_head;
} siglip_arch;

/* ---- config.json ----------------------------------------------------------------------------- */

static const char *const vision_keys[] = {
    "attention_dropout", "hidden_act",     "hidden_size",     "image_size",
    "intermediate_size", "layer_norm_eps", "num_channels",    "num_attention_heads",
    "num_hidden_layers", "patch_size",     "vision_use_head", NULL};
static const char *const whole_keys[] = {"text_config", "vision_config", NULL};

static int read(const json_t *j, const char *where, void *arch)
{
    LW_CLEANUP(lw_str_clear) lw_str in = {0};
    siglip_arch a = {.vit = {.width = 768,
                             .hidden = 3072,
                             .depth = 12,
                             .heads = 12,
                             .image_size = 224,
                             .patch = 16,
                             .act = LW_EW_gelu_tanh,
                             .eps = 1e-6f}};
    bool head = true;
    if (lw_timm_is(j) || lw_open_clip_is(j)) {
        a.vit.act = LW_EW_gelu;
        LW_TRY(lw_timm_vit(j, where, "map", &a.vit, NULL));
        *(siglip_arch *)arch = a;
        return 0;
    }
    LW_TRY(lw_transformers_vision(&j, &where, whole_keys, &in));
    LW_TRY(lw_transformers_check(j, where, vision_keys));
    LW_TRY(lw_transformers_vit(j, where, &a.vit));
    LW_TRY(lw_json_opt_bool(j, where, "vision_use_head", &head));
    a.no_head = !head;
    *(siglip_arch *)arch = a;
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const lw_vit_names names = {
    .patch = "embeddings.patch_embedding",
    .patch_bias = true,
    .positions = "embeddings.position_embedding.weight",
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
    {.file = "head.attention.in_proj_*", .store = "head.attention.q.*", .file_rows = {0, 1, 3}},
    {.file = "head.attention.in_proj_*", .store = "head.attention.kv.*", .file_rows = {1, 2, 3}},
    {0},
};
static const char *const beside[] = {"text_model.**", "logit_scale", "logit_bias", NULL};

static const lw_name_rule timm[] = {
    LW_TIMM_TOWER_RULES,
    {.file = "attn_pool.latent", .store = "head.probe"},
    {.file = "attn_pool.proj.*", .store = "head.attention.out_proj.*"},
    {.file = "attn_pool.*.*", .store = "head.attention.*.*"},
    {.file = "attn_pool.norm.*", .store = "head.layernorm.*"},
    {.file = "attn_pool.mlp.*.*", .store = "head.mlp.*.*"},
    {0},
};
static const char *const beside_trunk[] = {"text.**", "logit_scale", "logit_bias", NULL};

static const lw_naming namings[] = {
    {"transformers", "vision_model.", transformers, beside},
    {"transformers", NULL, transformers, NULL}, /* the vision model saved alone */
    {"timm", NULL, timm, NULL},
    {"open_clip", "visual.trunk.", timm, beside_trunk},
    {0},
};
static const lw_naming *const naming_of[] = {[LW_LIBRARY_HF] = &namings[0],
                                             [LW_LIBRARY_TIMM] = &namings[2],
                                             [LW_LIBRARY_OPEN_CLIP] = &namings[3]};

/* ---- other libraries' folders ---------------------------------------------------------------- */

static const lw_vit timm_usual = {.act = LW_EW_gelu, .eps = 1e-6f};

static void write_transformers(const lw_vit *v, bool no_head, json_t *config)
{
    json_object_set_new(config, "model_type", json_string("siglip_vision_model"));
    json_object_set_new(config, "architectures", json_pack("[s]", "SiglipVisionModel"));
    lw_transformers_put_vit(v, config);
    json_object_set_new(config, "intermediate_size", json_integer(v->hidden));
    if (no_head)
        json_object_set_new(config, "vision_use_head", json_false());
}

/* open_clip builds what timm registers, by its name alone. */
static int write_open_clip(const lw_network *n, const lw_vit *v, lw_network_form *out)
{
    lw_vit found = {0};
    const char *name = lw_timm_find(v, "_siglip_", &timm_usual, &found);
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_OPEN_CLIP, name && v->eps == timm_usual.eps,
                                "a tower of sizes that timm does not register"));
    json_object_set_new(out->config, "model_cfg",
                        json_pack("{s:i, s:f, s:b, s:{s:i, s:s, s:b, s:s, s:s}, s:{}}", "embed_dim",
                                  (int)v->width, "init_logit_bias", -10.0, "custom_text", 1,
                                  "vision_cfg", "image_size", (int)v->image_size, "timm_model_name",
                                  name, "timm_model_pretrained", 0, "timm_pool", "map", "timm_proj",
                                  "none", "text_cfg"));
    if (found.act != v->act)
        LW_TRY(lw_network_form_note(out,
                                    "open_clip's %s computes GELU in the other form (%s) than "
                                    "these weights' configuration says: features are about 1e-3 "
                                    "apart",
                                    name, lw_timm_act(found.act)));
    return lw_network_form_note(out, "open_clip builds a text tower too, which is not in these "
                                     "files: load them into model.visual");
}

static int write(const lw_network *n, lw_library to, lw_network_form *out)
{
    const siglip_arch *a = n->arch;
    out->naming = naming_of[to];
    LW_TRY(lw_network_form_only(n, to, to == LW_LIBRARY_HF || !a->no_head,
                                "a network without a pooling head"));
    if (to == LW_LIBRARY_OPEN_CLIP)
        return write_open_clip(n, &a->vit, out);
    if (to == LW_LIBRARY_TIMM) {
        LW_TRY(lw_timm_write(n, &a->vit, "_siglip_", &timm_usual, out->config));
        json_object_set_new(out->config, "num_classes", json_integer(0));
        json_object_set_new(out->config, "global_pool", json_string("map"));
        return 0;
    }
    write_transformers(&a->vit, a->no_head, out->config);
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

/* The probe's attention over all tokens [B,T,C], then a block's second half: [B,C]. */
static lw_val pool(lw_builder *b, const lw_vit *c, lw_val tokens)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(tokens))
        return tokens;
    int32_t batch = lw_val_type(g, tokens).dim[0], w = c->width;
    lw_val probe = lw_param(b, "probe", lw_type_of(LW_F32, 3, 1, 1, w),
                            (lw_init){LW_INIT_NORMAL, 0.02f});
    lw_type rows = lw_type_of(LW_F32, 3, batch, 1, w);
    if (b->hook) /* which may treat the queries of pictures differently */
        probe = lw_broadcast(g, lw_reshape(g, probe, lw_type_of(LW_F32, 1, w)), rows);
    lw_val q = lw_linear(b, "attention.q", probe, w, true);
    if (!b->hook)
        q = lw_broadcast(g, lw_reshape(g, q, lw_type_of(LW_F32, 1, w)), rows);
    lw_val kv = lw_linear(b, "attention.kv", tokens, 2 * w, true);
    lw_val y = lw_cross_attention(g, q, kv, c->heads);
    y = lw_linear(b, "attention.out_proj", y, w, true);
    y = lw_layer_done(b, "proj_drop", LW_NOVAL, y);
    lw_val h = lw_layer_norm(b, "layernorm", y, c->eps, LW_NOVAL);
    y = lw_add(g, y, lw_vit_mlp(b, c, "mlp.fc1", "mlp.fc2", h));
    return lw_reshape(g, y, lw_type_of(LW_F32, 2, batch, w));
}

static void describe(lw_network *n)
{
    lw_network_square(n, ((const siglip_arch *)n->arch)->vit.image_size);
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const siglip_arch *a = arch;
    lw_val map[LW_MAX_MAPS] = {{0}};
    lw_val tokens = lw_vit_build(b, &a->vit, &names, in.x, map);
    tokens = lw_layer_norm(b, "post_layernorm", tokens, a->vit.eps, LW_NOVAL);
    if (!a->no_head) {
        const char *up = lw_scope_push(b->g, "head");
        lw_val pooled = pool(b, &a->vit, tokens);
        lw_scope_set(b->g, up);
        lw_tap_add(out, "pooled", lw_layer_done(b, "head_drop", LW_NOVAL, pooled));
    }
    lw_tap_add(out, "tokens", tokens);
    lw_tap_add_maps(out, map, a->vit.depth + 1);
}

/* As transformers' processor does by itself. SigLIP2's folders say bilinear. */
static const lw_preparation preparation = {
    .fit = LW_FIT_SQUASH, .filter = LW_FILTER_BICUBIC, LW_NUMBERS_HALF};

const lw_network_def lw_network_def_siglip = {
    .name = "siglip",
    .objective = "contrast text",
    .trained_on = "web pairs",
    .kind = "encoder",
    .class_name = "siglip siglip_vision_model vit_*_siglip_*",
    .arch_bytes = sizeof(siglip_arch),
    .read = read,
    .write = write,
    .describe = describe,
    .namings = namings,
    .stem = "embeddings.patch_embedding.weight",
    .preparation = &preparation,
    .build = build,
};
