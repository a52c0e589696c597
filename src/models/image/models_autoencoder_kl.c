/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diffusers' AutoencoderKL (Kingma and Welling 2014; Rombach et al. 2022), one record for each half.
 *
 *   encode  picture [B,h,w,3] in [-1,1] ──encoder──► moments ──quant_conv──► mean | logvar
 *           latent = (mean - shift_factor) scaling_factor
 *           sampled = the same of mean + exp(logvar / 2) noise, where row ids are given
 *   decode  latent / scaling_factor + shift_factor ──post_quant_conv──► decoder ──► y in [-1,1]
 *
 * The maps s0, s1, ... are the levels of the encoder before they are halved. Sides must be multiples
 * of the 8 (of four levels) that a latent stands for: diffusers cuts off what is over.
 */
#include "models/image/models_autoencoder.h"

#include <math.h>

#include "models/image/models_unet_blocks.h"
#include "models/models.h"

enum { MAX_LEVELS = 6, MAX_BLOCKS = 16, MAX_WIDTH = 65536 };

typedef struct autoencoder {
    int32_t in_channels, out_channels, latent;
    int32_t levels, width[MAX_LEVELS];
    int32_t blocks;
    int32_t norm_groups;
    bool attention, quant, post_quant;
    lw_latent_scale scale;
} autoencoder;

/* ---- building -------------------------------------------------------------------------------- */

static lw_block_style style_of(const autoencoder *a)
{
    return (lw_block_style){
        .norm_groups = a->norm_groups, .norm_eps = 1e-6f, .heads = 1, .pad_end = true};
}

static lw_val conv(lw_builder *b, const char *name, lw_val x, int32_t o, int kernel)
{
    return lw_conv2d(b, name, x, o, (lw_conv_opts){.kernel = kernel, .pad = kernel / 2});
}

/* The last of the levels, before it would be halved. */
static lw_val go_down(lw_builder *b, const autoencoder *a, lw_val x, lw_val *map)
{
    lw_block_style s = style_of(a);
    for (int i = 0; i < a->levels; i++) {
        const char *up = lw_scope_pushf(b->g, "down_blocks.%d", i);
        for (int j = 0; j < a->blocks; j++)
            x = lw_block_res(b, &s, j, x, a->width[i]);
        map[i] = x;
        if (i + 1 < a->levels)
            x = lw_block_down(b, &s, x, a->width[i]);
        lw_scope_set(b->g, up);
    }
    return x;
}

static lw_val moments(lw_builder *b, const autoencoder *a, lw_val x, lw_val *map)
{
    lw_block_style s = style_of(a);
    const char *up = lw_scope_push(b->g, "encoder");
    x = go_down(b, a, conv(b, "conv_in", x, a->width[0], 3), map);
    x = lw_block_middle(b, &s, x, a->attention, 0.0f);
    x = lw_block_norm(b, &s, "conv_norm_out", x, LW_ACT_SILU);
    x = conv(b, "conv_out", x, 2 * a->latent, 3);
    lw_scope_set(b->g, up);
    return a->quant ? conv(b, "quant_conv", x, 2 * a->latent, 1) : x;
}

/* Noise by row id: the same row, the same latent. */
static lw_val sample(lw_graph *g, lw_val mean, lw_val logvar, lw_val rows)
{
    if (!lw_val_ok(mean))
        return mean;
    lw_val noise = lw_random(g, "autoencoder.noise", LW_RANDOM_NORMAL, 0, lw_val_type(g, mean),
                             rows);
    return lw_add(g, mean, lw_mul(g, lw_ew1(g, LW_EW_exp, lw_scale(g, logvar, 0.5f)), noise));
}

static void build_encoder(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const autoencoder *a = arch;
    lw_graph *g = b->g;
    lw_val map[MAX_LEVELS];
    if (lw_latent_sides(g, in.x, 1 << (a->levels - 1)) < 0)
        return;
    lw_val m = moments(b, a, in.x, map), mean = lw_slice(g, m, 3, 0, a->latent);
    lw_val logvar = lw_slice(g, m, 3, a->latent, 2 * a->latent);
    logvar = lw_ew2(g, LW_EW_max, logvar, lw_const_f32(g, -30.0f)); /* as diffusers bounds it */
    logvar = lw_ew2(g, LW_EW_min, logvar, lw_const_f32(g, 20.0f));
    lw_tap_add(out, "latent", lw_latent_of(g, &a->scale, mean));
    if (lw_val_ok(in.rows))
        lw_tap_add(out, "sampled", lw_latent_of(g, &a->scale, sample(g, mean, logvar, in.rows)));
    lw_tap_add(out, "mean", mean);
    lw_tap_add(out, "logvar", logvar);
    lw_tap_add_maps(out, map, a->levels);
}

static lw_val go_up(lw_builder *b, const autoencoder *a, lw_val x)
{
    lw_block_style s = style_of(a);
    for (int i = 0; i < a->levels; i++) {
        int32_t width = a->width[a->levels - 1 - i];
        const char *up = lw_scope_pushf(b->g, "up_blocks.%d", i);
        for (int j = 0; j <= a->blocks; j++)
            x = lw_block_res(b, &s, j, x, width);
        if (i + 1 < a->levels)
            x = lw_block_up(b, x, width);
        lw_scope_set(b->g, up);
    }
    return x;
}

static void build_decoder(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const autoencoder *a = arch;
    lw_block_style s = style_of(a);
    lw_val x = lw_latent_raw(b->g, &a->scale, in.x);
    if (a->post_quant)
        x = conv(b, "post_quant_conv", x, a->latent, 1);
    const char *up = lw_scope_push(b->g, "decoder");
    x = conv(b, "conv_in", x, a->width[a->levels - 1], 3);
    x = go_up(b, a, lw_block_middle(b, &s, x, a->attention, 0.0f));
    x = lw_block_norm(b, &s, "conv_norm_out", x, LW_ACT_SILU);
    lw_tap_add(out, "y", conv(b, "conv_out", x, a->out_channels, 3));
    lw_scope_set(b->g, up);
}

/* ---- config.json ----------------------------------------------------------------------------- */

static const char *const honoured[] = {"in_channels",
                                       "out_channels",
                                       "down_block_types",
                                       "up_block_types",
                                       "block_out_channels",
                                       "layers_per_block",
                                       "latent_channels",
                                       "norm_num_groups",
                                       "scaling_factor",
                                       "shift_factor",
                                       "use_quant_conv",
                                       "use_post_quant_conv",
                                       "mid_block_add_attention",
                                       NULL};
/* The side of the pictures it was trained on; half precision. */
static const char *const without_effect[] = {"sample_size", "force_upcast", NULL};
static const char *const *const known[] = {honoured, without_effect, NULL};
static const lw_json_only only[] = {{"act_fn", "\"silu\""},
                                    {"act_fn", "\"swish\""},
                                    {"latents_mean", "null"},
                                    {"latents_std", "null"},
                                    {0}};

/* Every level's type must be the one that is built. */
static int check_types(const json_t *j, const char *where, const char *key, const char *want,
                       int32_t levels)
{
    const json_t *list;
    LW_TRY(lw_json_get_array(j, where, key, &list));
    if (json_array_size(list) != (size_t)levels)
        return lw_fail(LW_EFORMAT, "%s: '%s' has %zu entries, 'block_out_channels' has %d", where,
                       key, json_array_size(list), (int)levels);
    for (size_t i = 0; i < (size_t)levels; i++)
        if (!lw_str_eq(json_string_value(json_array_get(list, i)), want))
            return lw_fail(LW_EUNSUPPORTED, "%s: '%s' holds others than %s", where, key, want);
    return 0;
}

static int read_levels(const json_t *j, const char *where, autoencoder *a)
{
    int n = 0;
    LW_TRY(lw_json_get_i32s(j, where, "block_out_channels", MAX_LEVELS, a->width, &n));
    a->levels = n;
    if (n < 1)
        return lw_fail(LW_EFORMAT, "%s: 'block_out_channels' is empty", where);
    for (int i = 0; i < n; i++)
        if (a->width[i] < 1 || a->width[i] > MAX_WIDTH || a->width[i] % a->norm_groups)
            return lw_fail(LW_EFORMAT,
                           "%s: %d channels cannot be split into %d groups ('norm_num_groups')",
                           where, (int)a->width[i], (int)a->norm_groups);
    LW_TRY(check_types(j, where, "down_block_types", "DownEncoderBlock2D", n));
    return check_types(j, where, "up_block_types", "UpDecoderBlock2D", n);
}

static int count(const json_t *j, const char *where, const char *key, int32_t most, int32_t *out)
{
    return json_object_get(j, key) ? lw_json_get_i32_in(j, where, key, 1, most, out) : 0;
}

static int read(const json_t *j, const char *where, void *arch)
{
    autoencoder *a = arch;
    *a = (autoencoder){.in_channels = 3,
                       .out_channels = 3,
                       .latent = 4,
                       .blocks = 1,
                       .norm_groups = 32,
                       .attention = true,
                       .quant = true,
                       .post_quant = true,
                       .scale = {.factor = 0.18215}};
    LW_TRY(lw_json_check_known(j, where, known, only));
    LW_TRY(count(j, where, "in_channels", 1024, &a->in_channels));
    LW_TRY(count(j, where, "out_channels", 1024, &a->out_channels));
    LW_TRY(count(j, where, "latent_channels", 1024, &a->latent));
    LW_TRY(count(j, where, "layers_per_block", MAX_BLOCKS, &a->blocks));
    LW_TRY(count(j, where, "norm_num_groups", MAX_WIDTH, &a->norm_groups));
    LW_TRY(lw_json_opt_bool(j, where, "use_quant_conv", &a->quant));
    LW_TRY(lw_json_opt_bool(j, where, "use_post_quant_conv", &a->post_quant));
    LW_TRY(lw_json_opt_bool(j, where, "mid_block_add_attention", &a->attention));
    LW_TRY(lw_latent_scale_read(j, where, &a->scale));
    return read_levels(j, where, a);
}

/* ---- the records ----------------------------------------------------------------------------- */

static void describe_encoder(lw_network *n)
{
    const autoencoder *a = n->arch;
    n->channels = a->in_channels;
    n->multiple = 1 << (a->levels - 1);
}

static void describe_decoder(lw_network *n)
{
    n->channels = ((const autoencoder *)n->arch)->latent;
}

static const char *const decoder_names[] = {"decoder.**", "post_quant_conv.*", NULL};
static const char *const encoder_names[] = {"encoder.**", "quant_conv.*", NULL};
static const lw_naming of_encoder[] = {
    {.name = "diffusers", .ignored = decoder_names},
    {.name = "diffusers before 0.15", .rules = lw_block_older_names, .ignored = decoder_names},
    {0}};
static const lw_naming of_decoder[] = {
    {.name = "diffusers", .ignored = encoder_names},
    {.name = "diffusers before 0.15", .rules = lw_block_older_names, .ignored = encoder_names},
    {0}};

const lw_network_def lw_network_def_autoencoder_kl = {
    .name = "AutoencoderKL",
    .kind = "encoder",
    .class_name = "AutoencoderKL",
    .arch_bytes = sizeof(autoencoder),
    .read = read,
    .tensors = "an AutoencoderKL of diffusers",
    .describe = describe_encoder,
    .namings = of_encoder,
    .build = build_encoder,
};

const lw_network_def lw_network_def_autoencoder_kl_decoder = {
    .name = "AutoencoderKL's decoder",
    .kind = "decoder",
    .decoder = true,
    .class_name = "AutoencoderKL",
    .arch_bytes = sizeof(autoencoder),
    .read = read,
    .tensors = "an AutoencoderKL of diffusers",
    .describe = describe_decoder,
    .namings = of_decoder,
    .build = build_decoder,
};
