/* SPDX-License-Identifier: Apache-2.0 */
/* The U-Net that DDPM and drifting share: names and semantics of diffusers' UNet2DModel. */
#ifndef LW_MODELS_UNET_H
#define LW_MODELS_UNET_H

#include "models/models_network.h"

enum { LW_UNET_MAX_LEVELS = 8, LW_UNET_MAX_PREVIOUS = 16 };

typedef struct lw_unet_config {
    int32_t image_size;                           /* H = W */
    int32_t in_channels, out_channels;            /* in: those of x and of its condition */
    int32_t levels, channels[LW_UNET_MAX_LEVELS]; /* width per resolution; channels[0] is `base` */
    bool attn[LW_UNET_MAX_LEVELS];                /* attention behind every block of this level */
    bool mid_attn;
    int32_t blocks; /* residual blocks per level on the way down (one more on the way up) */
    int32_t heads;  /* attention heads at every level; or 0: channels / head_dim */
    int32_t head_dim;
    int32_t norm_groups;
    float norm_eps;
    float dropout;
    int32_t classes;    /* 0: unconditional */
    bool null_class;    /* one more row of class_embedding, number `classes`: no class is said */
    int32_t latent_dim; /* K of latent_embedding: Linear(K, 4 base), added to the time embedding; 0:
                           none */
    float alpha; /* greatest strength of guidance that it is told, in place of a time; 0: none */
    int32_t noise_h,
        noise_w; /* structured noise (nearest-upsampled to the image); 0: full resolution */
    /* Frames behind x along the channels, as many channels each: the current one, then `previous`
     * answers of the network, the newest first. */
    bool frame;
    int32_t previous; /* 0..LW_UNET_MAX_PREVIOUS */
    bool residual;    /* what the layers give is added to the current frame */
    /* Variants that published diffusers folders use; zero is ours. */
    bool shift_only; /* resnet_time_scale_shift "default": h + temb instead of h (1 + scale) + shift
                      */
    bool sin_first;  /* flip_sin_to_cos false */
    int32_t freq_shift;
    bool pad_end;    /* downsample_padding 0: one row and column of zeros at the end only */
    float mid_scale; /* mid_block_scale_factor: divides what leaves each block of the middle; 0: 1
                      */
    /* Initialisation. */
    bool default_out_init; /* conv_out by PyTorch's default instead of zero */
    bool default_res_init; /* resnets' conv2 and attentions' to_out.0 by PyTorch's default instead
                              of zero */
    float class_init;      /* standard deviation of class_embedding; 0: 0.5 */
} lw_unet_config;

/* base 128, mult 1,2,2,2, 2 blocks, attention at 16, 4 heads, 32 groups, dropout 0.1, 32x32:
 * 38,307,203 parameters; large: base 256, 3 blocks, attention at 16 and 8, 8 heads: 209,976,323. */
lw_unet_config lw_unet_small(void);
lw_unet_config lw_unet_large(void);
/* Sets image_size, levels, channels and attn from what users type; attention at resolutions
 * attn_at[n_attn]. LW_EUSAGE: a size that does not halve evenly, a resolution that no level has. */
int lw_unet_set_levels(lw_unet_config *c, int32_t image_size, int32_t base, const int32_t *mult,
                       int32_t n_mult, const int32_t *attn_at, int32_t n_attn);
/* LW_EUSAGE with the field and the bound that does not hold. */
int lw_unet_check(const lw_unet_config *c);

/* Channels of x alone, and of what is concatenated behind it (0: nothing). */
static inline int32_t lw_unet_picture_channels(const lw_unet_config *c)
{
    return c->in_channels / (1 + (c->frame ? 1 : 0) + c->previous);
}
static inline int32_t lw_unet_condition_channels(const lw_unet_config *c)
{
    return c->in_channels - lw_unet_picture_channels(c);
}

/* Rows of class_embedding. */
static inline int32_t lw_unet_class_rows(const lw_unet_config *c)
{
    return c->classes + (c->null_class ? 1 : 0);
}

/* Of attention at its least resolution. */
static inline int32_t lw_unet_heads(const lw_unet_config *c)
{
    return c->heads ? c->heads : LW_MAX(c->channels[c->levels - 1] / c->head_dim, 1);
}

/* f32[B,H,W,out_channels]; classes, latent and condition are required where the configuration has them, x may be
 * the small noise, which is upsampled inside. Dropout is live when b->training (and needs b->rows). */
lw_val lw_unet(lw_builder *b, const lw_unet_config *c, lw_network_in in);

/* config.json in diffusers' keys; what they cannot say is under leeway_* (docs/formats.md). New
 * reference. */
json_t *lw_unet_to_json(const lw_unet_config *c);
/* Does diffusers' UNet2DModel compute the same from config.json and weights? Not with a latent
 * vector, nor with one number of heads over several widths. */
bool lw_unet_is_diffusers(const lw_unet_config *c);
/* LW_EFORMAT: missing or wrong fields; LW_EUNSUPPORTED: a UNet2DModel variant that we do not build.
 * `where` names the file in messages. */
int lw_unet_from_json(const json_t *j, const char *where, lw_unet_config *out);
/* Declares every parameter in a fresh store (builds and drops a graph) and fixes it. */
int lw_unet_declare(const lw_unet_config *c, lw_store *s);

#endif
