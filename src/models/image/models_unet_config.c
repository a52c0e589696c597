/* SPDX-License-Identifier: Apache-2.0 */
/* The U-Net's configuration: presets and checks. */
#include "models/models.h"

#include <math.h>
#include <string.h>

enum { MAX_BLOCKS = 16, MAX_WIDTH = 65536, MAX_SIZE = 4096 };

static lw_unet_config preset(int32_t base, int32_t blocks, int32_t heads, const int32_t *at,
                             int32_t n_at)
{
    lw_unet_config c = {.in_channels = 3,
                        .out_channels = 3,
                        .mid_attn = true,
                        .blocks = blocks,
                        .heads = heads,
                        .norm_groups = 32,
                        .norm_eps = 1e-5f,
                        .dropout = 0.1f};
    int rc = lw_unet_set_levels(&c, 32, base, (const int32_t[]){1, 2, 2, 2}, 4, at, n_at);
    LW_ASSERT(rc == 0, "%s", lw_errmsg());
    return c;
}

lw_unet_config lw_unet_small(void)
{
    return preset(128, 2, 4, (const int32_t[]){16}, 1);
}

lw_unet_config lw_unet_large(void)
{
    return preset(256, 3, 8, (const int32_t[]){16, 8}, 2);
}

static int fail_resolution(int32_t wanted, int32_t image_size, int32_t levels)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    for (int32_t i = 0; i < levels; i++)
        lw_str_addf(&have, "%s%d", i ? ", " : "", image_size >> i);
    return lw_fail(LW_EUSAGE,
                   "no level has resolution %d: %dx%d images have levels of %s: choose "
                   "--attn-resolutions among them, or another --image-size",
                   wanted, image_size, image_size, lw_str_c(&have));
}

int lw_unet_set_levels(lw_unet_config *c, int32_t image_size, int32_t base, const int32_t *mult,
                       int32_t n_mult, const int32_t *attn_at, int32_t n_attn)
{
    if (n_mult < 1 || n_mult > LW_UNET_MAX_LEVELS)
        return lw_fail(LW_EUSAGE, "a U-Net has 1 to %d levels, %d channel multipliers were given",
                       LW_UNET_MAX_LEVELS, n_mult);
    if (base < 1 || base > MAX_WIDTH || image_size < 1 || image_size > MAX_SIZE)
        return lw_fail(LW_EUSAGE, "base channels %d or image size %d out of range", base,
                       image_size);
    if (image_size % (1 << (n_mult - 1)))
        return lw_fail(LW_EUSAGE, "image size %d cannot be halved %d times", image_size,
                       n_mult - 1);
    lw_unet_config n = *c;
    memset(n.channels, 0, sizeof n.channels);
    memset(n.attn, 0, sizeof n.attn);
    n.image_size = image_size;
    n.levels = n_mult;
    for (int32_t i = 0; i < n_mult; i++) {
        if (mult[i] < 1 || mult[i] > MAX_WIDTH / base)
            return lw_fail(LW_EUSAGE, "channel multiplier %d out of range", mult[i]);
        n.channels[i] = base * mult[i];
    }
    for (int32_t k = 0; k < n_attn; k++) {
        int32_t level = 0;
        while (level < n_mult && image_size >> level != attn_at[k])
            level++;
        if (level == n_mult)
            return fail_resolution(attn_at[k], image_size, n_mult);
        n.attn[level] = true;
    }
    *c = n;
    return 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int in_range(const char *what, int64_t v, int64_t lo, int64_t hi)
{
    if (v < lo || v > hi)
        return lw_fail(LW_EUSAGE, "U-Net: %s is %lld, must be %lld to %lld", what, (long long)v,
                       (long long)lo, (long long)hi);
    return 0;
}

static int check_heads(const lw_unet_config *c, int32_t width)
{
    int32_t parts = c->heads > 0 ? c->heads : c->head_dim;
    if (width % parts)
        return lw_fail(LW_EUSAGE, "U-Net: %d channels cannot be split into %s of %d", width,
                       c->heads > 0 ? "heads" : "heads with dimension", parts);
    return 0;
}

static int check_level(const lw_unet_config *c, int32_t i)
{
    int32_t width = c->channels[i];
    LW_TRY(in_range("channels", width, 1, MAX_WIDTH));
    if (width % c->norm_groups)
        return lw_fail(LW_EUSAGE, "U-Net: %d channels cannot be split into %d norm groups", width,
                       c->norm_groups);
    if (c->attn[i] || (c->mid_attn && i == c->levels - 1))
        LW_TRY(check_heads(c, width));
    return 0;
}

static int check_noise(const lw_unet_config *c)
{
    if (c->noise_h == 0 && c->noise_w == 0)
        return 0;
    if (c->noise_h < 1 || c->noise_h != c->noise_w || c->image_size % c->noise_h)
        return lw_fail(LW_EUSAGE, "noise shape %dx%d: must be square and divide the image size %d",
                       c->noise_h, c->noise_w, c->image_size);
    return 0;
}

static int check_condition(const lw_unet_config *c)
{
    int32_t pictures = 1 + (c->frame ? 1 : 0) + c->previous;
    LW_TRY(in_range("previous frames", c->previous, 0, LW_UNET_MAX_PREVIOUS));
    if (c->in_channels % pictures)
        return lw_fail(LW_EUSAGE, "U-Net: %d input channels are not %d pictures of as many each",
                       c->in_channels, pictures);
    if (c->residual && (!c->frame || c->in_channels / pictures != c->out_channels))
        return lw_fail(LW_EUSAGE,
                       "U-Net: residual wants a frame with as many channels as the output");
    return 0;
}

int lw_unet_check(const lw_unet_config *c)
{
    LW_TRY(in_range("image size", c->image_size, 1, MAX_SIZE));
    LW_TRY(in_range("input channels", c->in_channels, 1, 1024));
    LW_TRY(in_range("output channels", c->out_channels, 1, 1024));
    LW_TRY(in_range("levels", c->levels, 1, LW_UNET_MAX_LEVELS));
    LW_TRY(in_range("blocks per level", c->blocks, 1, MAX_BLOCKS));
    LW_TRY(in_range("norm groups", c->norm_groups, 1, MAX_WIDTH));
    LW_TRY(in_range("classes", c->classes, 0, 1 << 24));
    if (c->null_class && c->classes == 0)
        return lw_fail(LW_EUSAGE, "U-Net: a null class, and no classes");
    LW_TRY(in_range("latent dimension", c->latent_dim, 0, 1 << 20));
    LW_TRY(in_range("attention heads", c->heads, 0, 1024));
    if (c->heads == 0)
        LW_TRY(in_range("attention head dimension", c->head_dim, 1, MAX_WIDTH));
    if (!(c->norm_eps > 0 && c->norm_eps < 1) || !(c->dropout >= 0 && c->dropout < 1))
        return lw_fail(LW_EUSAGE, "U-Net: norm epsilon %g and dropout %g must lie in [0, 1)",
                       (double)c->norm_eps, (double)c->dropout);
    if (c->alpha != 0.0f && !(c->alpha >= 1.0f && c->alpha <= 1000.0f))
        return lw_fail(LW_EUSAGE,
                       "U-Net: strengths of guidance go from 1 to %g, must end at 1 to 1000",
                       (double)c->alpha);
    if (!isfinite(c->mid_scale))
        return lw_fail(LW_EUSAGE, "U-Net: the middle is divided by %g", (double)c->mid_scale);
    if (c->image_size % (1 << (c->levels - 1)))
        return lw_fail(LW_EUSAGE, "image size %d cannot be halved %d times", c->image_size,
                       c->levels - 1);
    if (c->channels[0] % 2 || c->channels[0] / 2 <= c->freq_shift || c->freq_shift < 0)
        return lw_fail(LW_EUSAGE,
                       "U-Net: the time embedding needs an even number of base channels, got %d",
                       c->channels[0]);
    for (int32_t i = 0; i < c->levels; i++)
        LW_TRY(check_level(c, i));
    LW_TRY(check_condition(c));
    return check_noise(c);
}
