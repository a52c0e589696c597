/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DINOv2, with and without registers: LayerScale behind attention and mlp, a norm behind the blocks
 * on all tokens; the feature is the class token. Takes pictures of any size. How its table of
 * positions follows them depends on whose files they are (lw_vit_resize):
 *
 *   transformers, dinov2                  SIZE         (its older versions: OFFSET)
 *   transformers, dinov2_with_registers   ANTIALIAS
 *   the authors' files                    OFFSET; with registers ANTIALIAS
 *   timm                                  ANTIALIAS
 */
#include "models/encoders/models_timm.h"
#include "models/encoders/models_transformers.h"
#include "models/encoders/models_vit.h"
#include "models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dinov2_arch {
    lw_vit vit;
    int32_t classes; /* of a linear head on class token and mean of patches; 0: none */
} dinov2_arch;

/* ---- config.json ----------------------------------------------------------------------------- */

static const char *const keys[] = {"apply_layernorm",
                                   "attention_probs_dropout_prob",
                                   "drop_path_rate",
                                   "hidden_act",
                                   "hidden_dropout_prob",
                                   "hidden_size",
                                   "image_size",
                                   "layer_norm_eps",
                                   "layerscale_value",
                                   "mlp_ratio",
                                   "num_attention_heads",
                                   "num_channels",
                                   "num_hidden_layers",
                                   "num_register_tokens",
                                   "out_features",
                                   "out_indices",
                                   "patch_size",
                                   "qkv_bias",
                                   "reshape_hidden_states",
                                   "stage_names",
                                   "use_mask_token",
                                   "use_swiglu_ffn",
                                   NULL};

/* Two thirds of the gated form's hidden layer, rounded up to a multiple of 8. */
static int32_t gated(int32_t hidden)
{
    return ((int32_t)((int64_t)hidden * 2 / 3) + 7) / 8 * 8;
}

static int read_classes(const json_t *j, const char *where, int32_t *out)
{
    const json_t *labels = json_object_get(j, "id2label");
    int32_t n = json_is_object(labels) ? (int32_t)json_object_size(labels) : 2;
    LW_TRY(lw_transformers_count(j, where, "num_labels", 1 << 20, &n));
    *out = n;
    return 0;
}

static const lw_vit timm_usual = {
    .image_size = 518, .act = LW_EW_gelu, .eps = 1e-6f, .resize = LW_VIT_RESIZE_ANTIALIAS};

/* Of timm, whose class token has its position in it where there are registers. */
static int read_timm(const json_t *j, const char *where, dinov2_arch *a)
{
    a->vit = timm_usual;
    LW_TRY(lw_timm_vit(j, where, "token", &a->vit, NULL));
    a->vit.class_unplaced = a->vit.registers > 0;
    return 0;
}

static int read(const json_t *j, const char *where, void *arch)
{
    const char *type = json_string_value(json_object_get(j, "model_type"));
    bool registers = type && lw_str_eq(type, "dinov2_with_registers");
    dinov2_arch a = {.vit = {.width = 768,
                             .depth = 12,
                             .heads = 12,
                             .image_size = 224,
                             .patch = registers ? 16 : 14,
                             .registers = registers ? 4 : 0,
                             .act = LW_EW_gelu,
                             .eps = 1e-6f,
                             .resize = registers ? LW_VIT_RESIZE_ANTIALIAS : LW_VIT_RESIZE_SIZE}};
    bool bias = true;
    int32_t ratio = 4;
    if (lw_timm_is(j))
        return read_timm(j, where, arch);
    LW_TRY(lw_transformers_check(j, where, keys));
    LW_TRY(lw_transformers_vit(j, where, &a.vit));
    LW_TRY(lw_transformers_count(j, where, "mlp_ratio", 64, &ratio));
    LW_TRY(lw_json_opt_bool(j, where, "qkv_bias", &bias));
    LW_TRY(lw_json_opt_bool(j, where, "use_swiglu_ffn", &a.vit.swiglu));
    if (registers)
        LW_TRY(lw_transformers_count(j, where, "num_register_tokens", 1024, &a.vit.registers));
    a.vit.no_qkv_bias = !bias;
    a.vit.hidden = a.vit.swiglu ? gated(ratio * a.vit.width) : ratio * a.vit.width;
    if (lw_transformers_class(j, "Dinov2ForImageClassification") ||
        lw_transformers_class(j, "Dinov2WithRegistersForImageClassification"))
        LW_TRY(read_classes(j, where, &a.classes));
    *(dinov2_arch *)arch = a;
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

#define NAMES(first, second)                                                                       \
    {                                                                                              \
        .patch = "embeddings.patch_embeddings.projection", .patch_bias = true,                     \
        .class_token = "embeddings.cls_token", .registers = "embeddings.register_tokens",          \
        .positions = "embeddings.position_embeddings", .batched = true, .blocks = "encoder.layer", \
        .norm1 = "norm1", .qkv = "attention.to_qkv", .out = "attention.output.dense",              \
        .scale1 = "layer_scale1.lambda1", .norm2 = "norm2", .fc1 = (first), .fc2 = (second),       \
        .scale2 = "layer_scale2.lambda1"                                                           \
    }
static const lw_vit_names plain = NAMES("mlp.fc1", "mlp.fc2");
static const lw_vit_names gated_names = NAMES("mlp.weights_in", "mlp.weights_out");

static const lw_name_rule transformers[] = {
    LW_QKV_RULES("**.attention.query.*", "**.attention.key.*", "**.attention.value.*"),
    {.file = "classifier.*", .store = "classifier.*", .bare = true},
    {0},
};
static const char *const unused[] = {"**.mask_token", "mask_token", NULL};

#define BLOCKS                                                                                 \
    {.file = "patch_embed.proj.*", .store = "embeddings.patch_embeddings.projection.*"},       \
        {.file = "pos_embed", .store = "embeddings.position_embeddings"},                      \
        {.file = "cls_token", .store = "embeddings.cls_token"},                                \
        {.file = "blocks.*.attn.qkv.*", .store = "encoder.layer.*.attention.to_qkv.*"},        \
        {.file = "blocks.*.attn.proj.*", .store = "encoder.layer.*.attention.output.dense.*"}, \
        {.file = "blocks.*.ls1.gamma", .store = "encoder.layer.*.layer_scale1.lambda1"},       \
        {.file = "blocks.*.ls2.gamma", .store = "encoder.layer.*.layer_scale2.lambda1"},       \
    {                                                                                          \
        .file = "norm.*", .store = "layernorm.*"                                               \
    }
static const lw_name_rule authors[] = {
    BLOCKS,
    {.file = "register_tokens", .store = "embeddings.register_tokens"},
    {.file = "blocks.*.mlp.w12.*", .store = "encoder.layer.*.mlp.weights_in.*"},
    {.file = "blocks.*.mlp.w3.*", .store = "encoder.layer.*.mlp.weights_out.*"},
    {.file = "blocks.*.*.*", .store = "encoder.layer.*.*.*"},
    {.file = "blocks.*.mlp.*.*", .store = "encoder.layer.*.mlp.*.*"},
    {0},
};
static const lw_name_rule timm[] = {
    BLOCKS,
    {.file = "reg_token", .store = "embeddings.register_tokens"},
    {.file = "blocks.*.mlp.fc1.*", .store = "encoder.layer.*.mlp.weights_in.*"},
    {.file = "blocks.*.mlp.fc2.*", .store = "encoder.layer.*.mlp.weights_out.*"},
    {.file = "blocks.*.*.*", .store = "encoder.layer.*.*.*"},
    {.file = "blocks.*.mlp.*.*", .store = "encoder.layer.*.mlp.*.*"},
    {0},
};

static const lw_naming namings[] = {
    {"transformers", NULL, transformers, unused},
    {"transformers", "dinov2.", transformers, unused},
    {"transformers", "dinov2_with_registers.", transformers, unused},
    {"facebookresearch", NULL, authors, unused},
    {"timm", NULL, timm, unused},
    {0},
};

/* ---- other libraries' folders ---------------------------------------------------------------- */

static float *values(lw_store *s, const char *name)
{
    return lw_store_edit(s, lw_store_find(s, name), LW_SLAB_PARAM);
}

/* Where there are registers, timm's class token has its position in it and its table begins with the
 * patches; back again its position is zero. */
static void place_class(const lw_network *n, lw_store *to)
{
    const lw_vit *v = &((const dinov2_arch *)n->arch)->vit;
    int32_t w = v->width;
    size_t patches = sizeof(float) * (size_t)v->grid * (size_t)v->grid * (size_t)w;
    const float *at = lw_store_data(n->store, lw_store_find(n->store, plain.positions),
                                    LW_SLAB_PARAM);
    float *dst = values(to, plain.positions), *token = values(to, plain.class_token);
    if (v->class_unplaced) {
        memcpy(dst + w, at, patches);
        return;
    }
    memcpy(dst, at + w, patches);
    for (int32_t i = 0; i < w; i++)
        token[i] += at[i];
}

static int write_transformers(const lw_network *n, const dinov2_arch *a, json_t *config)
{
    const lw_vit *v = &a->vit;
    bool registers = v->registers > 0;
    int32_t ratio = 1;
    while (ratio < 64 && (v->swiglu ? gated(ratio * v->width) : ratio * v->width) != v->hidden)
        ratio++;
    LW_TRY(lw_network_form_only(n, LW_LIBRARY_HF, ratio < 64, "this width of the mlp"));
    const char *name = registers ? "Dinov2WithRegisters" : "Dinov2";
    LW_CLEANUP(lw_str_clear) lw_str class_name = {0};
    lw_str_addf(&class_name, "%s%s", name, a->classes ? "ForImageClassification" : "Model");
    json_object_set_new(config, "model_type",
                        json_string(registers ? "dinov2_with_registers" : "dinov2"));
    json_object_set_new(config, "architectures", json_pack("[s]", lw_str_c(&class_name)));
    lw_transformers_put_vit(v, config);
    json_object_set_new(config, "mlp_ratio", json_integer(ratio));
    json_object_set_new(config, "qkv_bias", json_boolean(!v->no_qkv_bias));
    json_object_set_new(config, "use_swiglu_ffn", json_boolean(v->swiglu));
    if (registers)
        json_object_set_new(config, "num_register_tokens", json_integer(v->registers));
    if (a->classes)
        json_object_set_new(config, "num_labels", json_integer(a->classes));
    return 0;
}

static int note_resize(const lw_vit *v, lw_vit_resize there, lw_library to, lw_network_form *out)
{
    return v->resize == there
               ? 0
               : lw_network_form_note(out,
                                      "%s interpolates the table of positions in another way: "
                                      "features are the same at %dx%d, about 1e-3 apart at others",
                                      lw_library_name[to], (int)(v->grid * v->patch),
                                      (int)(v->grid * v->patch));
}

/* The same with the library's table of positions, without a classifier where it has none. */
static int rearrange(const lw_network *n, bool unplaced, bool keep_head, lw_network_form *out)
{
    const dinov2_arch *a = n->arch;
    if (unplaced == a->vit.class_unplaced && (keep_head || a->classes == 0))
        return 0;
    dinov2_arch *there = out->arch = lw_calloc(1, sizeof *there);
    if (!there)
        return LW_ENOMEM;
    *there = *a;
    there->vit.class_unplaced = unplaced;
    there->classes = keep_head ? a->classes : 0;
    if (unplaced == a->vit.class_unplaced)
        return 0;
    out->fill = place_class;
    return unplaced
               ? lw_network_form_note(out, "timm adds the class token's position to the token: "
                                           "on the way back that position is zero")
               : 0;
}

static int write(const lw_network *n, lw_library to, lw_network_form *out)
{
    const dinov2_arch *a = n->arch;
    bool registers = a->vit.registers > 0, hf = to == LW_LIBRARY_HF;
    LW_TRY(lw_network_form_only(n, to, to != LW_LIBRARY_OPEN_CLIP,
                                "DINOv2, which has no text tower,"));
    out->naming = hf ? &namings[a->classes == 0 ? 0 : registers ? 2 : 1] : &namings[4];
    LW_TRY(rearrange(n, registers && !hf, hf, out));
    LW_TRY(note_resize(&a->vit, hf && !registers ? LW_VIT_RESIZE_SIZE : LW_VIT_RESIZE_ANTIALIAS, to,
                       out));
    if (hf)
        return write_transformers(n, a, out->config);
    LW_TRY(lw_timm_write(n, &a->vit, "_dinov2", &timm_usual, out->config));
    json_object_set_new(out->config, "num_classes", json_integer(0));
    json_object_set_new(out->config, "global_pool", json_string("token"));
    return 0;
}

/* ---- weights alone --------------------------------------------------------------------------- */

static int32_t count_blocks(const lw_st_file *f)
{
    char name[64];
    int32_t n = 0;
    do
        snprintf(name, sizeof name, "encoder.layer.%d.norm1.weight", (int)n);
    while (lw_naming_find(namings, f, name) && ++n < LW_VIT_MAX_DEPTH);
    return n;
}

/* The side of a table of n positions; 0: n is no square. */
static int32_t side_of(int64_t n)
{
    int32_t side = 1;
    while (side < 1024 && (int64_t)side * side < n)
        side++;
    return (int64_t)side * side == n ? side : 0;
}

/* Whose names they are says how positions follow the picture. timm leaves the mask token out. */
static lw_vit_resize resize_of(const lw_st_file *f, bool registers)
{
    bool original = lw_st_find_model(f, "blocks.0.ls1.gamma");
    bool of_timm = original && !lw_st_find_model(f, "mask_token");
    if (registers || of_timm)
        return LW_VIT_RESIZE_ANTIALIAS;
    return original ? LW_VIT_RESIZE_OFFSET : LW_VIT_RESIZE_SIZE;
}

/* A dimension that a network may have; 0: it may not. */
static int32_t size_of(const lw_st_tensor *t, int rank, int at, int32_t most)
{
    return t && t->rank == rank && t->shape[at] <= most ? (int32_t)t->shape[at] : 0;
}

static lw_vit sizes_of(const lw_st_file *f)
{
    const lw_st_tensor *patch = lw_naming_find(namings, f,
                                               "embeddings.patch_embeddings.projection.weight");
    const lw_st_tensor *at = lw_naming_find(namings, f, "embeddings.position_embeddings");
    const lw_st_tensor *more = lw_naming_find(namings, f, "embeddings.register_tokens");
    const lw_st_tensor *fc1 = lw_naming_find(namings, f, "encoder.layer.0.mlp.fc1.weight");
    const lw_st_tensor *gate = lw_naming_find(namings, f, "encoder.layer.0.mlp.weights_in.weight");
    int32_t rows = size_of(at, 3, 1, 1 << 20);
    lw_vit v = {.width = size_of(patch, 4, 0, 1 << 16),
                .patch = size_of(patch, 4, 2, 1 << 14),
                .depth = count_blocks(f),
                .registers = size_of(more, 3, 1, 1024),
                .act = LW_EW_gelu,
                .eps = 1e-6f,
                .resize = resize_of(f, more != NULL),
                .class_unplaced = side_of(rows) > 0,
                .swiglu = !fc1}; /* timm's names of the gated form are those of the other */
    v.heads = v.width / 64;
    v.hidden = fc1 ? size_of(fc1, 2, 0, 1 << 20) : size_of(gate, 2, 0, 1 << 20) / 2;
    v.image_size = v.patch * side_of(rows - (v.class_unplaced ? 0 : 1));
    return v;
}

static bool recognise(const lw_st_file *f, void *arch)
{
    lw_vit *v = &((dinov2_arch *)arch)->vit;
    if (v->width > 0)
        return true; /* a configuration said it */
    *v = sizes_of(f);
    return v->width > 0 && v->width % 64 == 0 && v->patch > 0 && v->depth > 0 && v->hidden > 0 &&
           lw_naming_find(namings, f, "encoder.layer.0.layer_scale1.lambda1") &&
           lw_vit_check(v, lw_st_path(f)) == 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

/* On the class token beside the mean of the grid's tokens, all behind the norm. */
static lw_val classify(lw_builder *b, const dinov2_arch *a, lw_val tokens, lw_val cls)
{
    lw_graph *g = b->g;
    if (a->classes == 0 || !lw_val_ok(tokens))
        return LW_NOVAL;
    int32_t before = lw_vit_prefix(&a->vit, &plain), n = lw_val_type(g, tokens).dim[1];
    lw_val mean = lw_mean(g, lw_slice(g, tokens, 1, before, n), LW_OVER_MIDDLE);
    return lw_linear(b, "classifier", lw_concat(g, cls, mean, -1), a->classes, true);
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const dinov2_arch *a = arch;
    lw_val map[LW_MAX_MAPS] = {{0}};
    lw_val tokens = lw_vit_build(b, &a->vit, a->vit.swiglu ? &gated_names : &plain, in.x, map);
    tokens = lw_layer_norm(b, "layernorm", tokens, a->vit.eps, LW_NOVAL);
    lw_val cls = lw_vit_token(b->g, tokens, 0);
    lw_tap_add(out, "pooled", cls);
    lw_tap_add(out, "logits", classify(b, a, tokens, cls));
    lw_tap_add(out, "cls", cls);
    lw_tap_add(out, "tokens", tokens);
    lw_tap_add_maps(out, map, a->vit.depth + 1);
}

static const lw_preparation preparation = {.fit = LW_FIT_SHORTEST,
                                           .filter = LW_FILTER_BICUBIC,
                                           .resize_h = 256,
                                           .resize_w = 256,
                                           .height = 224,
                                           .width = 224,
                                           LW_NUMBERS_IMAGENET};

const lw_network_def lw_network_def_dinov2 = {
    .name = "dinov2",
    .objective = "self-distill",
    .trained_on = "lvd142m",
    .kind = "encoder",
    .class_name = "dinov2 dinov2_with_registers vit_*_dinov2",
    .arch_bytes = sizeof(dinov2_arch),
    .read = read,
    .write = write,
    .recognise = recognise,
    .tensors = "DINOv2 (LayerScale, a class token, heads of 64)",
    .namings = namings,
    .stem = "embeddings.patch_embeddings.projection.weight",
    .preparation = &preparation,
    .build = build,
};
