/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of timm and open_clip. */
#include "models/encoders/models_timm.h"

#include <stdlib.h>
#include <string.h>

enum { WIDEST = 1 << 16, LARGEST = 16384 };

bool lw_timm_is(const json_t *config)
{
    return json_is_string(json_object_get(config, "architecture"));
}

bool lw_open_clip_is(const json_t *config)
{
    return json_is_object(json_object_get(json_object_get(config, "model_cfg"), "vision_cfg"));
}

static int opt_count(const json_t *j, const char *where, const char *key, int32_t hi, int32_t *out)
{
    return json_object_get(j, key) ? lw_json_get_i32_in(j, where, key, 1, hi, out) : 0;
}

/* A number, or an array whose last two are equal: [518, 518], [3, 518, 518]. */
static int opt_side(const json_t *j, const char *where, const char *key, int32_t *out)
{
    int32_t side[3];
    int n;
    if (!json_is_array(json_object_get(j, key)))
        return opt_count(j, where, key, LARGEST, out);
    LW_TRY(lw_json_get_i32s(j, where, key, 3, side, &n));
    if (n < 2 || side[n - 1] != side[n - 2] || side[n - 1] < 1 || side[n - 1] > LARGEST)
        return lw_fail(LW_EUNSUPPORTED, "%s: '%s' must be a square of 1 to %d here", where, key,
                       LARGEST);
    *out = side[n - 1];
    return 0;
}

/* ---- arguments of any network of timm -------------------------------------------------------- */

int lw_timm_check_args(const json_t *config, const char *where, const char *const *said,
                       const lw_json_only *only)
{
    static const char *const twice[] = {"num_classes", "global_pool", NULL};
    static const char *const usual[] = {"in_chans", NULL}; /* lw_network_channels reads it */
    const char *const *const known[] = {usual, twice, said, NULL};
    const json_t *args = json_object_get(config, "model_args");
    if (!args || json_is_null(args))
        return 0;
    LW_TRY(lw_json_check_known(args, where, known, only));
    for (const char *const *key = twice; *key; key++) {
        const json_t *inner = json_object_get(args, *key), *outer = json_object_get(config, *key);
        LW_CLEANUP(lw_str_clear) lw_str have = {0}, want = {0};
        if (!inner || json_is_null(inner) || json_equal(inner, outer))
            continue;
        lw_json_dump(inner, 0, &have);
        if (outer)
            lw_json_dump(outer, 0, &want);
        return lw_fail(LW_EUNSUPPORTED, "%s: '%s' is %.80s in 'model_args' and %.80s beside it",
                       where, *key, lw_str_c(&have), outer ? lw_str_c(&want) : "not said");
    }
    return 0;
}

/* ---- timm's convolutional networks ----------------------------------------------------------- */

int lw_timm_plain(const json_t *config, const char *where, const char *const *built,
                  const char *const *said)
{
    static const char *const keys[] = {"architecture",   "num_classes", "num_features",
                                       "pretrained_cfg", "model_args",  NULL};
    static const char *const *const known[] = {keys, NULL};
    static const lw_json_only only[] = {{"global_pool", "\"avg\""}, {0}};
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    const char *name;
    LW_TRY(lw_json_get_str(config, where, "architecture", &name));
    LW_TRY(lw_json_check_known(config, where, known, only));
    LW_TRY(lw_timm_check_args(config, where, said, NULL));
    for (const char *const *b = built; *b; b++) {
        if (lw_str_eq(*b, name))
            return 0;
        lw_str_addf(&have, "%s%s", have.len ? ", " : "", *b);
    }
    return lw_fail(LW_EUNSUPPORTED,
                   "%s: 'architecture' is %s, whose operations are not built; of its kind are %s",
                   where, name, lw_str_c(&have));
}

/* ---- timm's vision transformers -------------------------------------------------------------- */

typedef struct registration {
    const char *size; /* of vit_SIZE_patchN_... */
    int32_t width, depth, heads, hidden;
} registration;

static const registration registrations[] = {
    {"small", 384, 12, 6, 1536},      {"huge", 1280, 32, 16, 5120},   {"base", 768, 12, 12, 3072},
    {"large", 1024, 24, 16, 4096},    {"so400m", 1152, 27, 16, 4304}, {"giant", 1536, 40, 24, 4096},
    {"giantopt", 1536, 40, 16, 6144},
};

/* timm registers most of SigLIP's with GELU's exact form, these with its tanh form. */
static const char *const tanh_forms[] = {"vit_base_patch32_siglip_", "vit_large_patch16_siglip_512",
                                         "vit_so400m_patch16_siglip_", "vit_giantopt_", NULL};

/* vit_SIZE_patchN_...[_regN]...[_SIDE] */
int lw_timm_architecture(const char *name, const char *where, lw_vit *out)
{
    const char *size = lw_str_starts(name, "vit_") ? name + 4 : "", *patch = strstr(size, "_patch");
    const registration *r = registrations;
    size_t n = patch ? (size_t)(patch - size) : 0;
    while (r < registrations + LW_COUNT(registrations) &&
           (strlen(r->size) != n || strncmp(r->size, size, n) != 0))
        r++;
    bool known = patch && r < registrations + LW_COUNT(registrations) && !strstr(name, "_gap_");
    if (!known || (lw_str_eq(r->size, "giant") && !strstr(name, "dinov2"))) /* CLIP's is another */
        return lw_fail(LW_EUNSUPPORTED, "%s: the architecture '%s' is not built here", where, name);
    out->width = r->width;
    out->depth = r->depth;
    out->heads = r->heads;
    out->hidden = r->hidden;
    out->swiglu = lw_str_eq(r->size, "giant");
    out->patch = (int32_t)LW_MIN(LW_MAX(strtol(patch + strlen("_patch"), NULL, 10), 1), LARGEST);
    long side = strtol(strrchr(name, '_') + 1, NULL, 10);
    if (side > 0 && side <= LARGEST)
        out->image_size = (int32_t)side;
    if (strstr(name, "_reg"))
        out->registers = (int32_t)LW_MIN(
            LW_MAX(strtol(strstr(name, "_reg") + strlen("_reg"), NULL, 10), 0), 1024);
    if (strstr(name, "_quickgelu"))
        out->act = LW_EW_quick_gelu;
    for (const char *const *t = tanh_forms; *t; t++)
        if (lw_str_starts(name, *t))
            out->act = LW_EW_gelu_tanh;
    return 0;
}

static const struct {
    const char *name;
    lw_ewop op;
} acts[] = {{"gelu", LW_EW_gelu},
            {"gelu_tanh", LW_EW_gelu_tanh},
            {"quick_gelu", LW_EW_quick_gelu},
            {"relu", LW_EW_relu},
            {"silu", LW_EW_silu}};

const char *lw_timm_act(lw_ewop op)
{
    for (size_t i = 0; i < LW_COUNT(acts); i++)
        if (acts[i].op == op)
            return acts[i].name;
    return NULL;
}

static int read_act(const json_t *j, const char *where, lw_vit *out)
{
    const char *name = NULL;
    LW_TRY(lw_json_opt_str(j, where, "act_layer", &name));
    for (size_t i = 0; name && i < LW_COUNT(acts); i++)
        if (lw_str_eq(acts[i].name, name)) {
            out->act = acts[i].op;
            return 0;
        }
    return name ? lw_fail(LW_EUNSUPPORTED,
                          "%s: 'act_layer' is %s, known are gelu, gelu_tanh, "
                          "quick_gelu, relu and silu",
                          where, name)
                : 0;
}

static int read_args(const json_t *config, const char *where, lw_vit *out)
{
    static const char *const keys[] = {"img_size",  "patch_size", "embed_dim",        "depth",
                                       "num_heads", "mlp_ratio",  "dynamic_img_size", "init_values",
                                       "act_layer", "qkv_bias",   "reg_tokens",       NULL};
    const json_t *j = json_object_get(config, "model_args");
    double ratio = 0;
    bool bias = true;
    if (!j || json_is_null(j))
        return 0;
    LW_TRY(lw_timm_check_args(config, where, keys, NULL));
    LW_TRY(opt_side(j, where, "img_size", &out->image_size));
    LW_TRY(opt_side(j, where, "patch_size", &out->patch));
    LW_TRY(opt_count(j, where, "embed_dim", WIDEST, &out->width));
    LW_TRY(opt_count(j, where, "depth", LW_VIT_MAX_DEPTH, &out->depth));
    LW_TRY(opt_count(j, where, "num_heads", 1024, &out->heads));
    LW_TRY(opt_count(j, where, "reg_tokens", 1024, &out->registers));
    LW_TRY(lw_json_opt_bool(j, where, "qkv_bias", &bias));
    LW_TRY(read_act(j, where, out));
    LW_TRY(lw_json_opt_f64(j, where, "mlp_ratio", &ratio));
    out->no_qkv_bias = !bias;
    if (json_object_get(j, "mlp_ratio") && !(ratio > 0 && ratio <= 64))
        return lw_fail(LW_EFORMAT, "%s: 'mlp_ratio' is %g", where, ratio);
    if (ratio > 0) /* of the gated form it counts both halves */
        out->hidden = (int32_t)((double)out->width * ratio) / (out->swiglu ? 2 : 1);
    return 0;
}

static int read_timm(const json_t *j, const char *where, const char *pool, lw_vit *out,
                     int32_t *classes)
{
    static const char *const keys[] = {"architecture", "num_features",   "num_classes",
                                       "model_args",   "pretrained_cfg", NULL};
    const char *const *const known[] = {keys, NULL};
    char word[64];
    snprintf(word, sizeof word, "\"%s\"", pool);
    const lw_json_only only[] = {{"global_pool", word}, {0}};
    const json_t *made_for = json_object_get(j, "pretrained_cfg");
    int32_t n = 0;
    LW_TRY(lw_json_check_known(j, where, known, only));
    LW_TRY(lw_timm_architecture(json_string_value(json_object_get(j, "architecture")), where, out));
    LW_TRY(opt_side(made_for, where, "input_size", &out->image_size));
    if (json_object_get(j, "num_classes"))
        LW_TRY(lw_json_get_i32_in(j, where, "num_classes", 0, WIDEST, &n));
    if (n > 0 && !classes)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'num_classes' is %d: its head is not built here",
                       where, (int)n);
    if (classes)
        *classes = n;
    return read_args(j, where, out);
}

/* ---- open_clip ------------------------------------------------------------------------------- */

/* Keys around a tower; *tower is its configuration. */
static int read_model(const json_t *j, const char *where, const json_t **tower)
{
    static const char *const outer[] = {"model_cfg", "preprocess_cfg", NULL};
    static const char *const keys[] = {"embed_dim",
                                       "vision_cfg",
                                       "text_cfg",
                                       "quick_gelu",
                                       "custom_text",
                                       "init_logit_scale",
                                       "init_logit_bias",
                                       "nonscalar_logit_scale",
                                       "output_dict",
                                       "cast_dtype",
                                       NULL};
    const char *const *const known_outer[] = {outer, NULL}, *const *const known[] = {keys, NULL};
    const json_t *model = json_object_get(j, "model_cfg");
    LW_TRY(lw_json_check_known(j, where, known_outer, NULL));
    LW_TRY(lw_json_check_known(model, where, known, NULL));
    return lw_json_get_object(model, where, "vision_cfg", tower);
}

static int read_trunk(const json_t *j, const char *where, const char *pool, lw_vit *out)
{
    static const char *const keys[] = {
        "image_size",     "timm_model_name", "timm_model_pretrained", "timm_drop",
        "timm_drop_path", "timm_proj_bias",  "patch_dropout",         NULL};
    const char *const *const known[] = {keys, NULL};
    char word[64];
    snprintf(word, sizeof word, "\"%s\"", pool);
    const lw_json_only only[] = {{"timm_pool", word}, {"timm_proj", "\"none\""}, {0}};
    const json_t *tower;
    const char *name;
    int32_t side = 0;
    LW_TRY(read_model(j, where, &tower));
    LW_TRY(lw_json_check_known(tower, where, known, only));
    LW_TRY(lw_json_get_str(tower, where, "timm_model_name", &name));
    LW_TRY(lw_timm_architecture(name, where, out));
    LW_TRY(opt_side(tower, where, "image_size", &side));
    return side == 0 || side == out->image_size
               ? 0
               : lw_fail(LW_EUNSUPPORTED, "%s: 'image_size' is %d, that of %s is %d", where,
                         (int)side, name, (int)out->image_size);
}

int lw_timm_vit(const json_t *config, const char *where, const char *pool, lw_vit *out,
                int32_t *classes)
{
    LW_TRY(lw_timm_is(config) ? read_timm(config, where, pool, out, classes)
                              : read_trunk(config, where, pool, out));
    return lw_vit_check(out, where);
}

static int read_norm(const json_t *j, const char *where, float *eps)
{
    static const char *const keys[] = {"eps", NULL};
    const char *const *const known[] = {keys, NULL};
    const json_t *norm = json_object_get(j, "norm_kwargs");
    double value = (double)*eps;
    if (!norm || json_is_null(norm))
        return 0;
    LW_TRY(lw_json_check_known(norm, where, known, NULL));
    LW_TRY(lw_json_opt_f64(norm, where, "eps", &value));
    *eps = (float)value;
    return *eps > 0 ? 0 : lw_fail(LW_EFORMAT, "%s: 'eps' is %g", where, value);
}

int lw_open_clip_vit(const json_t *config, const char *where, lw_vit *out, int32_t *projection)
{
    static const char *const keys[] = {
        "image_size",     "layers",        "width",       "patch_size",
        "head_width",     "mlp_ratio",     "norm_kwargs", "patch_dropout",
        "pos_embed_type", "output_tokens", NULL};
    static const lw_json_only only[] = {
        {"pool_type", "\"tok\""}, {"block_type", "\"default\""}, {"*", "false"}, {0}};
    const char *const *const known[] = {keys, NULL};
    const json_t *model = json_object_get(config, "model_cfg"), *j;
    bool quick = false;
    int32_t head = 64;
    double ratio = 4;
    LW_TRY(read_model(config, where, &j));
    LW_TRY(lw_json_check_known(j, where, known, only));
    LW_TRY(opt_side(j, where, "image_size", &out->image_size));
    LW_TRY(opt_side(j, where, "patch_size", &out->patch));
    LW_TRY(opt_count(j, where, "width", WIDEST, &out->width));
    LW_TRY(opt_count(j, where, "layers", LW_VIT_MAX_DEPTH, &out->depth));
    LW_TRY(opt_count(j, where, "head_width", WIDEST, &head));
    LW_TRY(lw_json_opt_f64(j, where, "mlp_ratio", &ratio));
    LW_TRY(read_norm(j, where, &out->eps));
    LW_TRY(lw_json_opt_bool(model, where, "quick_gelu", &quick));
    LW_TRY(lw_json_get_i32_in(model, where, "embed_dim", 1, WIDEST, projection));
    if (!(ratio > 0 && ratio <= 64))
        return lw_fail(LW_EFORMAT, "%s: 'mlp_ratio' is %g", where, ratio);
    out->hidden = (int32_t)((double)out->width * ratio);
    out->heads = LW_MAX(out->width / head, 1);
    out->act = quick ? LW_EW_quick_gelu : LW_EW_gelu;
    return lw_vit_check(out, where);
}
