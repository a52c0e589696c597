/* SPDX-License-Identifier: Apache-2.0 */
/* The drifting transformer's configuration, in the keys of the official release's model_config. */
#include "models/image/models_dit.h"

#include <math.h>
#include <string.h>

lw_dit_config lw_dit_base(void)
{
    return (lw_dit_config){.image_size = 32,
                           .channels = 4,
                           .patch = 2,
                           .hidden = 768,
                           .depth = 12,
                           .heads = 12,
                           .mlp_ratio = 4.0f,
                           .classes = 1000,
                           .styles = 32,
                           .style_words = 64,
                           .tokens = 16};
}

static int in_range(const char *what, int32_t v, int32_t lo, int32_t hi)
{
    return v >= lo && v <= hi ? 0
                              : lw_fail(LW_EUSAGE, "DiT: %s is %d, must be %d to %d", what, (int)v,
                                        (int)lo, (int)hi);
}

int lw_dit_check(const lw_dit_config *c)
{
    LW_TRY(in_range("image size", c->image_size, 1, 4096));
    LW_TRY(in_range("channels", c->channels, 1, 1024));
    LW_TRY(in_range("patch size", c->patch, 1, c->image_size));
    LW_TRY(in_range("hidden width", c->hidden, 4, 1 << 15));
    LW_TRY(in_range("depth", c->depth, 1, 1024));
    LW_TRY(in_range("heads", c->heads, 1, 1024));
    LW_TRY(in_range("classes", c->classes, 0, 1 << 24));
    LW_TRY(in_range("styles", c->styles, 0, 1024));
    LW_TRY(in_range("entries of a style's codebook", c->style_words, c->styles ? 1 : 0, 1 << 24));
    LW_TRY(in_range("in-context tokens", c->tokens, 0, 4096));
    if (!(c->mlp_ratio > 0 && c->mlp_ratio <= 64))
        return lw_fail(LW_EUSAGE, "DiT: the inner width's ratio is %g, must be over 0, at most 64",
                       (double)c->mlp_ratio);
    if (c->alpha != 0.0f && !(c->alpha >= 1.0f && c->alpha <= 1000.0f))
        return lw_fail(LW_EUSAGE, "DiT: the greatest strength of guidance is %g, must be 1 to 1000",
                       (double)c->alpha);
    if (c->image_size % c->patch)
        return lw_fail(LW_EUSAGE, "DiT: pictures of %d are no whole patches of %d",
                       (int)c->image_size, (int)c->patch);
    int32_t axes = c->rope == LW_DIT_ROPE_2D ? 2 : 1, place = c->rope == LW_DIT_ROPE_NONE ? 1 : 2;
    if (c->hidden % 4 || c->hidden % (c->heads * axes * place))
        return lw_fail(LW_EUSAGE,
                       "DiT: a width of %d is not %d heads of a multiple of %d channels, or no "
                       "multiple of 4 itself",
                       (int)c->hidden, (int)c->heads, (int)(axes * place));
    return 0;
}

/* ---- config.json ----------------------------------------------------------------------------- */

static const char *const ropes[] = {"1d_flat", "2d_axial"}; /* of lw_dit_rope */

json_t *lw_dit_to_json(const lw_dit_config *c)
{
    json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:i, s:i, s:i, s:i, "
                          "s:b, s:b, s:b, s:b}",
                          "_class_name", "LeewayDiT", "input_size", c->image_size, "in_channels",
                          c->channels, "out_channels", c->channels, "patch_size", c->patch,
                          "hidden_size", c->hidden, "cond_dim", c->hidden, "depth", c->depth,
                          "num_heads", c->heads, "mlp_ratio", lw_json_float(c->mlp_ratio),
                          "num_classes", c->classes, "noise_coords", c->styles, "noise_classes",
                          c->styles ? c->style_words : 0, "n_cls_tokens", c->tokens, "use_qknorm",
                          !c->no_qk_norm, "use_rope", c->rope != LW_DIT_ROPE_NONE, "use_rmsnorm",
                          true, "use_swiglu", true);
    if (j && c->rope == LW_DIT_ROPE_2D)
        json_object_set_new(j, "leeway_rope", json_string(ropes[c->rope]));
    if (j && c->alpha > 0.0f)
        json_object_set_new(j, "leeway_alpha", lw_json_float(c->alpha));
    return j;
}

static const char *const honoured[] = {
    "input_size",    "in_channels",  "out_channels", "patch_size",  "hidden_size",  "cond_dim",
    "depth",         "num_heads",    "mlp_ratio",    "num_classes", "use_qknorm",   "noise_coords",
    "noise_classes", "n_cls_tokens", "use_rope",     "leeway_rope", "leeway_alpha", NULL};
/* How it was computed while it trained; what runs say of themselves. */
static const char *const without_effect[] = {"use_bf16",       "attn_fp32",          "use_remat",
                                             "leeway_method",  "leeway_class_names", "leeway_data",
                                             "leeway_latents", "leeway_timesteps",   NULL};
static const char *const *const known[] = {honoured, without_effect, NULL};
static const lw_json_only only[] = {{"use_rmsnorm", "true"}, {"use_swiglu", "true"}, {0}};

static int opt_i32(const json_t *j, const char *where, const char *key, int32_t hi, int32_t *out)
{
    return json_object_get(j, key) ? lw_json_get_i32_in(j, where, key, 0, hi, out) : 0;
}

static int same(const json_t *j, const char *where, const char *key, int32_t want)
{
    int32_t have = want;
    LW_TRY(opt_i32(j, where, key, 1 << 24, &have));
    return have == want ? 0
                        : lw_fail(LW_EUNSUPPORTED, "%s: '%s' is %d, only %d is built here", where,
                                  key, (int)have, (int)want);
}

static int read_rope(const json_t *j, const char *where, lw_dit_config *c)
{
    bool used = false;
    const char *word = ropes[LW_DIT_ROPE_1D];
    LW_TRY(lw_json_opt_bool(j, where, "use_rope", &used));
    LW_TRY(lw_json_opt_str(j, where, "leeway_rope", &word));
    c->rope = used ? LW_DIT_ROPE_1D : LW_DIT_ROPE_NONE;
    if (used && strcmp(word, ropes[LW_DIT_ROPE_2D]) == 0)
        c->rope = LW_DIT_ROPE_2D;
    else if (strcmp(word, ropes[LW_DIT_ROPE_1D]) != 0)
        return lw_fail(LW_EFORMAT, "%s: 'leeway_rope' is %s, must be %s or, with use_rope, %s",
                       where, word, ropes[0], ropes[1]);
    return 0;
}

static int read_shape(const json_t *j, const char *where, lw_dit_config *c)
{
    LW_TRY(lw_json_get_i32_in(j, where, "input_size", 1, 4096, &c->image_size));
    LW_TRY(lw_json_get_i32_in(j, where, "in_channels", 1, 1024, &c->channels));
    LW_TRY(lw_json_get_i32_in(j, where, "patch_size", 1, 4096, &c->patch));
    LW_TRY(lw_json_get_i32_in(j, where, "hidden_size", 1, 1 << 15, &c->hidden));
    LW_TRY(lw_json_get_i32_in(j, where, "depth", 1, 1024, &c->depth));
    LW_TRY(lw_json_get_i32_in(j, where, "num_heads", 1, 1024, &c->heads));
    LW_TRY(lw_json_get_i32_in(j, where, "num_classes", 0, 1 << 24, &c->classes));
    LW_TRY(same(j, where, "out_channels", c->channels));
    return same(j, where, "cond_dim", c->hidden);
}

static int read_parts(const json_t *j, const char *where, lw_dit_config *c)
{
    double ratio = 4.0, alpha = 0.0;
    bool qk_norm = false, swiglu = false, rms = false;
    LW_TRY(lw_json_opt_f64(j, where, "mlp_ratio", &ratio));
    LW_TRY(lw_json_opt_f64(j, where, "leeway_alpha", &alpha));
    LW_TRY(lw_json_opt_bool(j, where, "use_qknorm", &qk_norm));
    LW_TRY(lw_json_opt_bool(j, where, "use_swiglu", &swiglu));
    LW_TRY(lw_json_opt_bool(j, where, "use_rmsnorm", &rms));
    LW_TRY(opt_i32(j, where, "n_cls_tokens", 4096, &c->tokens));
    LW_TRY(opt_i32(j, where, "noise_classes", 1 << 24, &c->style_words));
    LW_TRY(opt_i32(j, where, "noise_coords", 1024, &c->styles));
    if (!swiglu || !rms)
        return lw_fail(LW_EUNSUPPORTED, "%s: '%s' must be true, others are not built here", where,
                       swiglu ? "use_rmsnorm" : "use_swiglu");
    c->styles = c->style_words ? LW_MAX(c->styles, 1) : 0;
    c->mlp_ratio = (float)ratio;
    c->alpha = (float)alpha;
    c->no_qk_norm = !qk_norm;
    return 0;
}

int lw_dit_from_json(const json_t *j, const char *where, lw_dit_config *out)
{
    lw_dit_config c = {0};
    LW_TRY(lw_json_check_known(j, where, known, only));
    LW_TRY(read_shape(j, where, &c));
    LW_TRY(read_parts(j, where, &c));
    LW_TRY(read_rope(j, where, &c));
    if (lw_dit_check(&c) < 0) /* the fields are well-formed, the network is not */
        return lw_fail(LW_EFORMAT, "%s: %s", where, lw_errmsg());
    *out = c;
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

static int read(const json_t *j, const char *where, void *arch)
{
    return lw_dit_from_json(j, where, arch);
}

static void describe(lw_network *n)
{
    const lw_dit_config *c = n->arch;
    n->image_size = c->image_size;
    n->channels = c->channels;
    n->classes = c->classes;
    n->styles = c->styles;
    n->style_words = c->style_words;
    n->alpha = c->alpha;
    n->generator = true;
    n->timeless = true;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_tap_add(out, "y", lw_dit(b, arch, in));
}

const lw_network_def lw_network_def_dit = {
    .name = "LeewayDiT",
    .kind = "dit",
    .class_name = "LeewayDiT",
    .arch_bytes = sizeof(lw_dit_config),
    .read = read,
    .describe = describe,
    .build = build,
};
