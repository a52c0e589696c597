/* SPDX-License-Identifier: Apache-2.0 */
/* The U-Net's config.json: diffusers' UNet2DModel keys, and what they cannot say under leeway_*. */
#include "models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

/* Channels per head where it is one number for every level with attention; else 0. */
static int32_t common_head_dim(const lw_unet_config *c)
{
    int32_t width = c->mid_attn ? c->channels[c->levels - 1] : 0;
    if (c->heads == 0)
        return c->head_dim;
    for (int32_t i = 0; i < c->levels; i++) {
        if (c->attn[i] && width && c->channels[i] != width)
            return 0;
        if (c->attn[i])
            width = c->channels[i];
    }
    return width / c->heads;
}

static json_t *block_types(const lw_unet_config *c, bool down)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < c->levels; i++) {
        bool attn = c->attn[down ? i : c->levels - 1 - i];
        json_array_append_new(a, json_string(down ? (attn ? "AttnDownBlock2D" : "DownBlock2D")
                                                  : (attn ? "AttnUpBlock2D" : "UpBlock2D")));
    }
    return a;
}

/* Keys that diffusers does not know; written only where they say something. */
static void put_extras(json_t *j, const lw_unet_config *c)
{
    if (common_head_dim(c) == 0)
        json_object_set_new(j, "leeway_attention_heads", json_integer(c->heads));
    if (c->latent_dim > 0)
        json_object_set_new(j, "leeway_latent_dim", json_integer(c->latent_dim));
    if (c->null_class)
        json_object_set_new(j, "leeway_null_class", json_integer(c->classes));
    if (c->alpha > 0)
        json_object_set_new(j, "leeway_alpha", lw_json_float(c->alpha));
    if (c->noise_h > 0)
        json_object_set_new(j, "leeway_noise_shape", json_pack("[i, i]", c->noise_h, c->noise_w));
    if (lw_unet_condition_channels(c) > 0)
        json_object_set_new(j, "leeway_condition",
                            json_pack("{s:b, s:i, s:b}", "frame", (int)c->frame, "previous",
                                      c->previous, "residual", (int)c->residual));
}

static void put_shape(json_t *j, const lw_unet_config *c)
{
    json_t *widths = json_array();
    int32_t head_dim = common_head_dim(c), last = c->channels[c->levels - 1];
    for (int32_t i = 0; i < c->levels; i++)
        json_array_append_new(widths, json_integer(c->channels[i]));
    if (!head_dim)
        head_dim = c->heads && last / c->heads ? last / c->heads : 1;
    json_object_set_new(j, "_class_name", json_string("UNet2DModel"));
    json_object_set_new(j, "sample_size", json_integer(c->image_size));
    json_object_set_new(j, "in_channels", json_integer(c->in_channels));
    json_object_set_new(j, "out_channels", json_integer(c->out_channels));
    json_object_set_new(j, "layers_per_block", json_integer(c->blocks));
    json_object_set_new(j, "block_out_channels", widths);
    json_object_set_new(j, "down_block_types", block_types(c, true));
    json_object_set_new(j, "up_block_types", block_types(c, false));
    json_object_set_new(j, "attention_head_dim", json_integer(head_dim));
    json_object_set_new(j, "num_class_embeds",
                        c->classes ? json_integer(lw_unet_class_rows(c)) : json_null());
}

static void put_semantics(json_t *j, const lw_unet_config *c)
{
    json_object_set_new(j, "norm_num_groups", json_integer(c->norm_groups));
    json_object_set_new(j, "attn_norm_num_groups", json_integer(c->norm_groups));
    json_object_set_new(j, "norm_eps", lw_json_float(c->norm_eps));
    json_object_set_new(j, "dropout", lw_json_float(c->dropout));
    json_object_set_new(j, "act_fn", json_string("silu"));
    json_object_set_new(j, "add_attention", json_boolean(c->mid_attn));
    json_object_set_new(j, "mid_block_scale_factor",
                        c->mid_scale == 0.0f || c->mid_scale == 1.0f ? json_integer(1)
                                                                     : lw_json_float(c->mid_scale));
    json_object_set_new(j, "mid_block_type", json_string("UNetMidBlock2D"));
    json_object_set_new(j, "center_input_sample", json_false());
    json_object_set_new(j, "time_embedding_type", json_string("positional"));
    json_object_set_new(j, "flip_sin_to_cos", json_boolean(!c->sin_first));
    json_object_set_new(j, "freq_shift", json_integer(c->freq_shift));
    json_object_set_new(j, "downsample_padding", json_integer(c->pad_end ? 0 : 1));
    json_object_set_new(j, "downsample_type", json_string("conv"));
    json_object_set_new(j, "upsample_type", json_string("conv"));
    json_object_set_new(j, "resnet_time_scale_shift",
                        json_string(c->shift_only ? "default" : "scale_shift"));
}

bool lw_unet_is_diffusers(const lw_unet_config *c)
{
    return c->latent_dim == 0 && c->alpha == 0.0f && common_head_dim(c) > 0 &&
           lw_unet_condition_channels(c) == 0;
}

json_t *lw_unet_to_json(const lw_unet_config *c)
{
    json_t *j = json_object();
    put_shape(j, c);
    put_semantics(j, c);
    put_extras(j, c);
    return j;
}
