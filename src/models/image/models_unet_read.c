/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a UNet2DModel's config.json and weights. */
#include "models/image/models_unet_blocks.h"
#include "models/models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where messages point, and the object they speak of. */
typedef struct reading {
    const json_t *j;
    const char *where;
} reading;

static int unsupported(const reading *r, const char *key, const char *have, const char *want)
{
    return lw_fail(LW_EUNSUPPORTED, "%s: '%s' is %s, only %s is built here", r->where, key, have,
                   want);
}

/* Every parameter of diffusers' UNet2DModel (a test compares the list with diffusers' own), then
 * ours. null stands only where it does there. */
static const lw_json_rule rules[] = {
    {"sample_size", LW_JSON_INT | LW_JSON_ARRAY},
    {"in_channels", LW_JSON_INT},
    {"out_channels", LW_JSON_INT},
    {"center_input_sample", LW_JSON_BOOL},
    {"time_embedding_type", LW_JSON_STRING},
    {"time_embedding_dim", LW_JSON_INT | LW_JSON_NULL},
    {"freq_shift", LW_JSON_INT},
    {"flip_sin_to_cos", LW_JSON_BOOL},
    {"down_block_types", LW_JSON_ARRAY},
    {"mid_block_type", LW_JSON_STRING | LW_JSON_NULL},
    {"up_block_types", LW_JSON_ARRAY},
    {"block_out_channels", LW_JSON_ARRAY},
    {"layers_per_block", LW_JSON_INT},
    {"mid_block_scale_factor", LW_JSON_NUMBER},
    {"downsample_padding", LW_JSON_INT},
    {"downsample_type", LW_JSON_STRING},
    {"upsample_type", LW_JSON_STRING},
    {"dropout", LW_JSON_NUMBER},
    {"act_fn", LW_JSON_STRING},
    {"attention_head_dim", LW_JSON_INT | LW_JSON_NULL},
    {"norm_num_groups", LW_JSON_INT},
    {"attn_norm_num_groups", LW_JSON_INT | LW_JSON_NULL},
    {"norm_eps", LW_JSON_NUMBER},
    {"resnet_time_scale_shift", LW_JSON_STRING},
    {"add_attention", LW_JSON_BOOL},
    {"class_embed_type", LW_JSON_STRING | LW_JSON_NULL},
    {"num_class_embeds", LW_JSON_INT | LW_JSON_NULL},
    {"num_train_timesteps", LW_JSON_INT | LW_JSON_NULL}, /* of learned time embeddings only */
    {"leeway_attention_heads", LW_JSON_INT},
    {"leeway_latent_dim", LW_JSON_INT},
    {"leeway_null_class", LW_JSON_INT},
    {"leeway_alpha", LW_JSON_NUMBER},
    {"leeway_noise_shape", LW_JSON_ARRAY},
    {"leeway_condition", LW_JSON_OBJECT},
    {"leeway_method", LW_JSON_STRING},
    {"leeway_timesteps", LW_JSON_INT},
    {"leeway_prediction", LW_JSON_STRING},
    {"leeway_beta_schedule", LW_JSON_STRING},
    {"leeway_shift", LW_JSON_NUMBER},
    {"leeway_class_names", LW_JSON_ARRAY},
    {"leeway_data", LW_JSON_STRING},
    {"leeway_latents", LW_JSON_OBJECT},
    {NULL, 0},
};

/* A key that must be absent or this word. */
static int only_word(const reading *r, const char *key, const char *want)
{
    const char *have = want;
    LW_TRY(lw_json_opt_str(r->j, r->where, key, &have));
    return strcmp(have, want) == 0 ? 0 : unsupported(r, key, have, want);
}

static int only_null(const reading *r, const char *key)
{
    const json_t *v = json_object_get(r->j, key);
    return !v || json_is_null(v) ? 0 : unsupported(r, key, "set", "null");
}

static int opt_i32(const reading *r, const char *key, int32_t lo, int32_t hi, int32_t *out)
{
    const json_t *v = json_object_get(r->j, key);
    return !v || json_is_null(v) ? 0 : lw_json_get_i32_in(r->j, r->where, key, lo, hi, out);
}

/* One number, or height and width, which must agree. */
static int read_size(const reading *r, lw_unet_config *c)
{
    int32_t side[2];
    int n;
    if (!json_is_array(json_object_get(r->j, "sample_size")))
        return lw_json_get_i32_in(r->j, r->where, "sample_size", 1, 4096, &c->image_size);
    LW_TRY(lw_json_get_i32s(r->j, r->where, "sample_size", 2, side, &n));
    if (n != 2 || side[0] != side[1] || side[0] < 1 || side[0] > 4096)
        return unsupported(r, "sample_size", "an array", "a square of 1 to 4096");
    c->image_size = side[0];
    return 0;
}

static int read_widths(const reading *r, lw_unet_config *c)
{
    int n = 0;
    LW_TRY(lw_json_get_i32s(r->j, r->where, "block_out_channels", LW_UNET_MAX_LEVELS, c->channels,
                            &n));
    c->levels = n;
    return n >= 1 ? 0 : lw_fail(LW_EFORMAT, "%s: 'block_out_channels' is empty", r->where);
}

/* Attention per level from one of the two lists of block types. */
static int read_blocks(const reading *r, const lw_unet_config *c, bool down,
                       bool attn[LW_UNET_MAX_LEVELS])
{
    const char *key = down ? "down_block_types" : "up_block_types";
    const char *plain = down ? "DownBlock2D" : "UpBlock2D",
               *with = down ? "AttnDownBlock2D" : "AttnUpBlock2D";
    const json_t *a;
    LW_TRY(lw_json_get_array(r->j, r->where, key, &a));
    if (json_array_size(a) != (size_t)c->levels)
        return lw_fail(LW_EFORMAT, "%s: '%s' has %zu entries, 'block_out_channels' has %d",
                       r->where, key, json_array_size(a), c->levels);
    for (int32_t i = 0; i < c->levels; i++) {
        const char *word = json_string_value(json_array_get(a, (size_t)i));
        if (!word || (strcmp(word, plain) != 0 && strcmp(word, with) != 0))
            return lw_fail(LW_EUNSUPPORTED, "%s: '%s' holds %s, only %s and %s are built here",
                           r->where, key, word ? word : "something that is no text", plain, with);
        attn[down ? i : c->levels - 1 - i] = strcmp(word, with) == 0;
    }
    return 0;
}

static int read_attention(const reading *r, lw_unet_config *c)
{
    bool up[LW_UNET_MAX_LEVELS] = {false};
    LW_TRY(read_blocks(r, c, true, c->attn));
    LW_TRY(read_blocks(r, c, false, up));
    if (memcmp(up, c->attn, sizeof up) != 0)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: attention on the way up must be at the levels of the way down",
                       r->where);
    c->mid_attn = true;
    LW_TRY(lw_json_opt_bool(r->j, r->where, "add_attention", &c->mid_attn));
    c->head_dim = 8; /* diffusers' default; null there means one head */
    const json_t *dim = json_object_get(r->j, "attention_head_dim");
    if (json_is_null(dim)) {
        c->head_dim = 0;
        c->heads = 1;
    }
    LW_TRY(opt_i32(r, "attention_head_dim", 1, 65536, &c->head_dim));
    if (json_object_get(r->j, "leeway_attention_heads")) {
        LW_TRY(opt_i32(r, "leeway_attention_heads", 1, 1024, &c->heads));
        c->head_dim = 0;
    }
    return 0;
}

/* diffusers divides the sum by it behind every block of the middle. */
static int read_middle(const reading *r, lw_unet_config *c)
{
    double scale = 1.0;
    if (json_is_null(json_object_get(r->j, "mid_block_type")))
        return unsupported(r, "mid_block_type", "null", "UNetMidBlock2D");
    LW_TRY(only_word(r, "mid_block_type", "UNetMidBlock2D"));
    LW_TRY(lw_json_opt_f64(r->j, r->where, "mid_block_scale_factor", &scale));
    c->mid_scale = (float)scale;
    return (float)scale != 0.0f && isfinite((float)scale)
               ? 0
               : lw_fail(LW_EFORMAT, "%s: 'mid_block_scale_factor' is %g", r->where, scale);
}

static int read_norms(const reading *r, lw_unet_config *c)
{
    double eps = 1e-5, dropout = 0.0;
    int32_t attn_groups;
    c->norm_groups = 32;
    LW_TRY(opt_i32(r, "norm_num_groups", 1, 65536, &c->norm_groups));
    attn_groups = c->norm_groups;
    LW_TRY(opt_i32(r, "attn_norm_num_groups", 1, 65536, &attn_groups));
    if (attn_groups != c->norm_groups)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'attn_norm_num_groups' must equal 'norm_num_groups'",
                       r->where);
    LW_TRY(lw_json_opt_f64(r->j, r->where, "norm_eps", &eps));
    LW_TRY(lw_json_opt_f64(r->j, r->where, "dropout", &dropout));
    c->norm_eps = (float)eps;
    c->dropout = (float)dropout;
    return 0;
}

static int read_time(const reading *r, lw_unet_config *c)
{
    const char *shift = "default";
    bool cos_first = true;
    int32_t pad = 1, dim = 0;
    LW_TRY(only_word(r, "time_embedding_type", "positional"));
    LW_TRY(opt_i32(r, "time_embedding_dim", 0, INT32_MAX, &dim));
    if (dim && dim != 4 * c->channels[0])
        return unsupported(r, "time_embedding_dim", "set", "four times the first width");
    LW_TRY(lw_json_opt_bool(r->j, r->where, "flip_sin_to_cos", &cos_first));
    LW_TRY(opt_i32(r, "freq_shift", 0, 1, &c->freq_shift));
    LW_TRY(opt_i32(r, "downsample_padding", 0, 1, &pad));
    LW_TRY(lw_json_opt_str(r->j, r->where, "resnet_time_scale_shift", &shift));
    if (strcmp(shift, "default") != 0 && strcmp(shift, "scale_shift") != 0)
        return unsupported(r, "resnet_time_scale_shift", shift, "default or scale_shift");
    c->sin_first = !cos_first;
    c->pad_end = pad == 0;
    c->shift_only = strcmp(shift, "default") == 0;
    /* There diffusers leaves the middle attention without a norm; we have none without. */
    if (!c->shift_only && c->mid_attn &&
        !json_is_integer(json_object_get(r->j, "attn_norm_num_groups")))
        return unsupported(r, "attn_norm_num_groups", "not set", "a number (with scale_shift)");
    return 0;
}

/* {"frame": true, "previous": K}: what in_channels holds beside x. */
static int read_condition(const reading *r, lw_unet_config *c)
{
    static const lw_json_rule keys[] = {
        {"frame", LW_JSON_BOOL}, {"previous", LW_JSON_INT}, {"residual", LW_JSON_BOOL}, {NULL, 0}};
    const json_t *j = json_object_get(r->j, "leeway_condition");
    if (!j)
        return 0;
    LW_TRY(lw_json_check_fields(j, r->where, keys, "leeway_"));
    LW_TRY(lw_json_opt_bool(j, r->where, "frame", &c->frame));
    LW_TRY(lw_json_opt_bool(j, r->where, "residual", &c->residual));
    if (json_object_get(j, "previous"))
        LW_TRY(lw_json_get_i32_in(j, r->where, "previous", 0, LW_UNET_MAX_PREVIOUS, &c->previous));
    return c->frame || c->previous > 0
               ? 0
               : lw_fail(LW_EFORMAT, "%s: 'leeway_condition' names neither frame nor previous",
                         r->where);
}

/* num_class_embeds counts rows; the last one is no class where leeway_null_class says so. */
static int read_classes(const reading *r, lw_unet_config *c)
{
    int32_t null_class = 0;
    LW_TRY(opt_i32(r, "num_class_embeds", 1, 1 << 24, &c->classes));
    LW_TRY(opt_i32(r, "leeway_null_class", 1, 1 << 24, &null_class));
    if (null_class == 0)
        return 0;
    if (null_class != c->classes - 1)
        return lw_fail(LW_EFORMAT,
                       "%s: 'leeway_null_class' is %d, must be the last of 'num_class_embeds', %d",
                       r->where, (int)null_class, (int)c->classes - 1);
    c->classes = null_class;
    c->null_class = true;
    return 0;
}

static int read_rest(const reading *r, lw_unet_config *c)
{
    bool centre = false;
    int n = 0;
    int32_t noise[2] = {0, 0};
    const json_t *act = json_object_get(r->j, "act_fn");
    if (!lw_str_eq(json_string_value(act), "swish")) /* the same under its other name */
        LW_TRY(only_word(r, "act_fn", "silu"));
    LW_TRY(only_word(r, "downsample_type", "conv"));
    LW_TRY(only_word(r, "upsample_type", "conv"));
    LW_TRY(only_null(r, "class_embed_type"));
    LW_TRY(lw_json_opt_bool(r->j, r->where, "center_input_sample", &centre));
    if (centre)
        return unsupported(r, "center_input_sample", "true", "false");
    LW_TRY(read_classes(r, c));
    LW_TRY(opt_i32(r, "leeway_latent_dim", 1, 1 << 20, &c->latent_dim));
    c->alpha = (float)json_number_value(json_object_get(r->j, "leeway_alpha"));
    if (json_object_get(r->j, "leeway_noise_shape")) {
        LW_TRY(lw_json_get_i32s(r->j, r->where, "leeway_noise_shape", 2, noise, &n));
        if (n != 2)
            return lw_fail(LW_EFORMAT, "%s: 'leeway_noise_shape' must be [height, width]",
                           r->where);
    }
    c->noise_h = noise[0];
    c->noise_w = noise[1];
    return read_condition(r, c);
}

int lw_unet_from_json(const json_t *j, const char *where, lw_unet_config *out)
{
    reading r = {j, where};
    lw_unet_config c = {.in_channels = 3, .out_channels = 3, .blocks = 2};
    const char *class_name;
    LW_TRY(lw_json_get_str(j, where, "_class_name", &class_name));
    if (strcmp(class_name, "UNet2DModel") != 0)
        return lw_fail(LW_EFORMAT, "%s: this is a %s, not a UNet2DModel", where, class_name);
    LW_TRY(lw_json_check_fields(j, where, rules, "leeway_"));
    LW_TRY(read_size(&r, &c));
    LW_TRY(opt_i32(&r, "in_channels", 1, 1024, &c.in_channels));
    LW_TRY(opt_i32(&r, "out_channels", 1, 1024, &c.out_channels));
    LW_TRY(opt_i32(&r, "layers_per_block", 1, 16, &c.blocks));
    LW_TRY(read_widths(&r, &c));
    LW_TRY(read_attention(&r, &c));
    LW_TRY(read_middle(&r, &c));
    LW_TRY(read_norms(&r, &c));
    LW_TRY(read_time(&r, &c));
    LW_TRY(read_rest(&r, &c));
    if (lw_unet_check(&c) < 0) /* the fields are well-formed, the network is not */
        return lw_fail(LW_EFORMAT, "%s: %s", where, lw_errmsg());
    *out = c;
    return 0;
}

static const lw_naming namings[] = {
    {.name = "diffusers"}, {.name = "diffusers before 0.15", .rules = lw_block_older_names}, {0}};

/* ---- the record ------------------------------------------------------------------------------ */

static int read(const json_t *j, const char *where, void *arch)
{
    return lw_unet_from_json(j, where, arch);
}

static void describe(lw_network *n)
{
    const lw_unet_config *c = n->arch;
    n->image_size = c->image_size;
    n->channels = lw_unet_picture_channels(c);
    n->condition = lw_unet_condition_channels(c);
    n->multiple = 1 << (c->levels - 1);
    n->classes = c->classes;
    n->null_class = c->null_class;
    n->latent = c->latent_dim;
    n->alpha = c->alpha;
    n->noise_size = c->noise_h;
    n->generator = true;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_tap_add(out, "y", lw_unet(b, arch, in));
}

const lw_network_def lw_network_def_unet = {
    .name = "UNet2DModel",
    .kind = "unet",
    .class_name = "UNet2DModel",
    .arch_bytes = sizeof(lw_unet_config),
    .read = read,
    .describe = describe,
    .namings = namings,
    .build = build,
};
