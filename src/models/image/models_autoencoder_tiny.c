/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TAESD and its kin (taef1, taef2), which diffusers calls AutoencoderTiny: a picture in [0,1] to a
 * latent of an eighth of its sides and back, one record for each half.
 *
 *   encode  conv ─► blocks ─► (conv of stride 2 ─► blocks) for every level ─► conv ─► latent
 *   decode  3 tanh(latent / 3) ─► conv, ReLU ─► (blocks ─► twice the sides ─► conv) ─► block ─► conv
 *   block   ReLU(conv(ReLU(conv(ReLU(conv(x))))) + x); one with a pool first adds
 *           conv1x1(ReLU(GroupNorm4(conv1x1(x)))) to x
 *
 * Parameters are called by their place in the sequence, where whatever has none counts as well; in
 * the authors' decoders the bound on the latent is the first. The maps s0, s1, ... are the levels of
 * the encoder.
 */
#include "models/image/models_autoencoder.h"

#include <stdio.h>
#include <string.h>

#include "models/models.h"

enum { MAX_LEVELS = LW_TINY_LEVELS, MAX_BLOCKS = 64, MAX_WIDTH = 65536 };

typedef struct sequence {
    int32_t first; /* place of the first convolution */
    int32_t channels, width, out;
    int32_t levels, blocks[MAX_LEVELS];
    bool pool[MAX_LEVELS]; /* blocks of this level have one */
} sequence;

typedef struct tiny {
    sequence half;
    /* What config.json says; levels 0: there is none. */
    struct {
        int32_t levels, blocks[MAX_LEVELS], width, latent;
    } said;
    lw_latent_scale scale;
} tiny;

/* ---- building -------------------------------------------------------------------------------- */

/* Parameters at place `at` of the sequence. */
static lw_val conv3(lw_builder *b, int at, lw_val x, int32_t o, int stride, bool bias)
{
    char name[16];
    snprintf(name, sizeof name, "%d", at);
    return lw_conv2d(b, name, x, o,
                     (lw_conv_opts){.kernel = 3, .pad = 1, .stride = stride, .no_bias = !bias});
}

static lw_val pool(lw_builder *b, lw_val x, int32_t width)
{
    const lw_conv_opts one = {.kernel = 1, .no_bias = true};
    const char *up = lw_scope_push(b->g, "pool");
    lw_val h = lw_conv2d(b, "0", x, 4 * width, one);
    h = lw_group_norm(b, "1", h, (lw_norm_opts){.groups = 4, .act = LW_ACT_RELU});
    h = lw_conv2d(b, "3", h, width, one);
    lw_scope_set(b->g, up);
    return lw_add(b->g, h, x);
}

static lw_val block(lw_builder *b, int at, lw_val x, int32_t width, bool pooled)
{
    const char *up = lw_scope_pushf(b->g, "%d", at);
    if (pooled)
        x = pool(b, x, width);
    const char *in = lw_scope_push(b->g, "conv");
    lw_val h = x;
    for (int i = 0; i < 3; i++)
        h = conv3(b, 2 * i, i ? lw_relu(b->g, h) : h, width, 1, true);
    lw_scope_set(b->g, in);
    lw_scope_set(b->g, up);
    return lw_relu(b->g, lw_add(b->g, h, x));
}

static lw_val blocks(lw_builder *b, const sequence *s, int level, int *at, lw_val x)
{
    for (int32_t i = 0; i < s->blocks[level]; i++)
        x = block(b, (*at)++, x, s->width, s->pool[level]);
    return x;
}

static void build_encoder(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const tiny *a = arch;
    const sequence *s = &a->half;
    lw_val map[MAX_LEVELS], x = in.x;
    int at = s->first;
    if (lw_latent_sides(b->g, x, 1 << (s->levels - 1)) < 0)
        return;
    x = lw_add_f32(b->g, lw_scale(b->g, x, 0.5f), 0.5f);
    for (int i = 0; i < s->levels; i++) {
        x = conv3(b, at++, x, s->width, i ? 2 : 1, i == 0);
        map[i] = x = blocks(b, s, i, &at, x);
    }
    lw_val raw = conv3(b, at, x, s->out, 1, true);
    lw_tap_add(out, "latent", lw_latent_of(b->g, &a->scale, raw));
    lw_tap_add_maps(out, map, s->levels);
}

static void build_decoder(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const tiny *a = arch;
    const sequence *s = &a->half;
    lw_graph *g = b->g;
    int at = s->first;
    lw_val x = lw_scale(g, lw_latent_raw(g, &a->scale, in.x), (float)(1.0 / 3.0));
    x = lw_scale(g, lw_ew1(g, LW_EW_tanh, x), 3.0f);
    x = lw_relu(g, conv3(b, at, x, s->width, 1, true));
    at += 2;
    for (int i = 0; i < s->levels; i++) {
        bool last = i + 1 == s->levels;
        x = blocks(b, s, i, &at, x);
        x = conv3(b, last ? at : at + 1, last ? x : lw_upsample(g, x, 2), last ? s->out : s->width,
                  1, last);
        at += 2;
    }
    lw_tap_add(out, "y", lw_add_f32(g, lw_scale(g, x, 2.0f), -1.0f));
}

/* ---- one to be trained ------------------------------------------------------------------------ */

int lw_tiny_check(const lw_tiny_config *c)
{
    if (c->levels < 2)
        return lw_fail(LW_EUSAGE, "--blocks: at least 2 levels, so that latents are smaller");
    for (int32_t i = 0; i < c->levels; i++)
        if (c->blocks[i] < 0 || c->blocks[i] >= MAX_BLOCKS)
            return lw_fail(LW_EUSAGE, "--blocks: %d in a level, at most %d", (int)c->blocks[i],
                           MAX_BLOCKS - 1);
    return 0;
}

int32_t lw_tiny_shrink(const lw_tiny_config *c)
{
    return 1 << (c->levels - 1);
}

static tiny half_of(const lw_tiny_config *c, bool decoder)
{
    tiny a = {.scale = {.factor = 1.0}};
    a.half = (sequence){.channels = decoder ? c->latent : 3,
                        .width = c->width,
                        .out = decoder ? 3 : c->latent,
                        .levels = c->levels};
    for (int32_t i = 0; i < c->levels; i++)
        a.half.blocks[i] = c->blocks[decoder ? c->levels - 1 - i : i];
    return a;
}

static lw_val build_half(lw_builder *b, const lw_tiny_config *c, bool decoder, lw_val x)
{
    const tiny a = half_of(c, decoder);
    const lw_network_in in = {.x = x};
    lw_taps taps = {0};
    const char *up = lw_scope_push(b->g, decoder ? "decoder" : "encoder"),
               *half = lw_scope_push(b->g, "layers");
    if (decoder)
        build_decoder(b, &a, in, &taps);
    else
        build_encoder(b, &a, in, &taps);
    lw_scope_set(b->g, half);
    lw_scope_set(b->g, up);
    return lw_tap_find(&taps, decoder ? "y" : "latent");
}

lw_val lw_tiny_encode(lw_builder *b, const lw_tiny_config *c, lw_val x)
{
    return build_half(b, c, false, x);
}

lw_val lw_tiny_decode(lw_builder *b, const lw_tiny_config *c, lw_val latent)
{
    return build_half(b, c, true, latent);
}

int lw_tiny_declare(const lw_tiny_config *c, lw_store *s)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const int32_t side = lw_tiny_shrink(c);
    LW_TRY(lw_tiny_check(c));
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, side, side, 3));
    lw_tiny_decode(&b, c, lw_tiny_encode(&b, c, x));
    LW_TRY(lw_graph_error(g));
    return lw_store_fix(s);
}

/* The usual numbers let the signal fade in every convolution. Those outside blocks keep it as it is (He
 * et al. 2015), and blocks begin by passing it on. */
void lw_tiny_init(lw_store *s, uint64_t seed)
{
    lw_store_init(s, seed);
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        const bool in_block = strstr(e->name, ".conv.") != NULL;
        if (!lw_str_ends(e->name, in_block ? ".conv.4.weight" : ".weight"))
            continue;
        float *w = lw_store_edit(s, i, LW_SLAB_PARAM);
        for (int64_t k = 0; k < e->count; k++)
            w[k] *= in_block ? 0.0f : 2.4494898f; /* sqrt(6) */
    }
    lw_store_touch(s, LW_SLAB_PARAM);
    lw_store_start_ema(s);
}

static json_t *numbers(const lw_tiny_config *c, bool width, bool decoder)
{
    const tiny a = half_of(c, decoder);
    json_t *all = json_array();
    for (int32_t i = 0; all && i < c->levels; i++)
        json_array_append_new(all, json_integer(width ? c->width : a.half.blocks[i]));
    return all;
}

json_t *lw_tiny_json(const lw_tiny_config *c)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:i, s:o, s:o, s:s, s:i, s:f, s:f, s:i, s:f, "
                     "s:b}",
                     "_class_name", "AutoencoderTiny", "act_fn", "relu", "in_channels", 3,
                     "out_channels", 3, "encoder_block_out_channels", numbers(c, true, false),
                     "decoder_block_out_channels", numbers(c, true, true), "latent_channels",
                     (int)c->latent, "num_encoder_blocks", numbers(c, false, false),
                     "num_decoder_blocks", numbers(c, false, true), "upsample_fn", "nearest",
                     "upsampling_scaling_factor", 2, "scaling_factor", 1.0, "shift_factor", 0.0,
                     "latent_magnitude", 3, "latent_shift", 0.5, "force_upcast", 0);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const lw_naming of_encoder[] = {{.name = "taesd"},
                                       {.name = "taesd, whole",
                                        .prefix = "encoder.",
                                        .ignored = (const char *const[]){"decoder.**", NULL}},
                                       {.name = "diffusers",
                                        .prefix = "encoder.layers.",
                                        .ignored = (const char *const[]){"decoder.**", NULL}},
                                       {0}};
static const lw_naming of_decoder[] = {{.name = "taesd"},
                                       {.name = "taesd, whole",
                                        .prefix = "decoder.",
                                        .ignored = (const char *const[]){"encoder.**", NULL}},
                                       {.name = "diffusers",
                                        .prefix = "decoder.layers.",
                                        .ignored = (const char *const[]){"encoder.**", NULL}},
                                       {0}};

typedef struct reading {
    const lw_st_file *f;
    const lw_naming *names;
    int at;
} reading;

static const lw_st_tensor *find(const reading *r, int at, const char *rest)
{
    char name[64];
    snprintf(name, sizeof name, "%d.%s", at, rest);
    return lw_naming_find(r->names, r->f, name);
}

/* The weight of a convolution at this place, or NULL. */
static const lw_st_tensor *conv_at(const reading *r, int at)
{
    const lw_st_tensor *t = find(r, at, "weight");
    return t && t->rank == 4 && t->shape[0] >= 1 && t->shape[0] <= MAX_WIDTH && t->shape[1] >= 1 &&
                   t->shape[1] <= MAX_WIDTH
               ? t
               : NULL;
}

/* The blocks of one level; false: some have a pool and some have none. */
static bool read_blocks(reading *r, sequence *s)
{
    int level = s->levels++;
    s->pool[level] = find(r, r->at, "pool.0.weight") != NULL;
    for (; s->blocks[level] < MAX_BLOCKS && find(r, r->at, "conv.0.weight"); r->at++) {
        if ((find(r, r->at, "pool.0.weight") != NULL) != s->pool[level])
            return false;
        s->blocks[level]++;
    }
    return true;
}

/* From the place of the first convolution on. decoder: a ReLU stands behind that, an upsampling
 * before those of the next levels. */
static bool read_sequence(reading *r, bool decoder, sequence *s)
{
    const lw_st_tensor *conv = conv_at(r, r->at);
    if (!conv || !find(r, r->at, "bias"))
        return false;
    *s = (sequence){
        .first = r->at, .channels = (int32_t)conv->shape[1], .width = (int32_t)conv->shape[0]};
    r->at += decoder ? 2 : 1;
    while (s->levels < MAX_LEVELS && read_blocks(r, s)) {
        int next = r->at;
        conv = conv_at(r, next);
        if (!conv && decoder)
            conv = conv_at(r, ++next);
        if (!conv)
            return false;
        s->out = (int32_t)conv->shape[0];
        if (find(r, next, "bias"))
            return true;
        r->at = next + 1;
    }
    return false;
}

/* Is the half as config.json says, where there is one? */
static bool as_said(const tiny *a, int32_t latent)
{
    return a->said.levels == 0 ||
           (a->said.levels == a->half.levels && a->said.width == a->half.width &&
            a->said.latent == latent &&
            memcmp(a->said.blocks, a->half.blocks, sizeof a->said.blocks) == 0);
}

static bool is_encoder(const lw_st_file *f, void *arch)
{
    tiny *a = arch;
    reading r = {f, of_encoder, 0};
    if (a->said.levels == 0)
        a->scale.factor = 1.0;
    return read_sequence(&r, false, &a->half) && a->half.levels > 1 && as_said(a, a->half.out);
}

static bool is_decoder(const lw_st_file *f, void *arch)
{
    tiny *a = arch;
    reading r = {f, of_decoder, 1};
    if (a->said.levels == 0)
        a->scale.factor = 1.0;
    if (!conv_at(&r, 1)) { /* without a place for the bound */
        r.at = 0;
        r.names = of_decoder + 2;
    }
    return read_sequence(&r, true, &a->half) && a->half.levels > 1 && as_said(a, a->half.channels);
}

/* ---- config.json ----------------------------------------------------------------------------- */

static const char *const honoured[] = {"in_channels",
                                       "out_channels",
                                       "encoder_block_out_channels",
                                       "decoder_block_out_channels",
                                       "latent_channels",
                                       "num_encoder_blocks",
                                       "num_decoder_blocks",
                                       "scaling_factor",
                                       "shift_factor",
                                       NULL};
/* The widths again; pictures of latents; half precision. */
static const char *const without_effect[] = {"block_out_channels", "latent_magnitude",
                                             "latent_shift", "force_upcast", NULL};
static const char *const *const known[] = {honoured, without_effect, NULL};
static const lw_json_only only[] = {{"act_fn", "\"relu\""},
                                    {"upsample_fn", "\"nearest\""},
                                    {"upsampling_scaling_factor", "2"},
                                    {0}};

static int read_half(const json_t *j, const char *where, bool decoder, tiny *a)
{
    const char *key = decoder ? "decoder_block_out_channels" : "encoder_block_out_channels";
    int32_t width[MAX_LEVELS];
    int n = 0, n_blocks = 0;
    LW_TRY(lw_json_get_i32s(j, where, key, MAX_LEVELS, width, &n));
    LW_TRY(lw_json_get_i32s(j, where, decoder ? "num_decoder_blocks" : "num_encoder_blocks",
                            MAX_LEVELS, a->said.blocks, &n_blocks));
    if (n < 2 || n != n_blocks)
        return lw_fail(LW_EFORMAT, "%s: '%s' has %d entries for %d levels of blocks", where, key, n,
                       n_blocks);
    for (int i = 1; i < n; i++)
        if (width[i] != width[0])
            return lw_fail(LW_EUNSUPPORTED, "%s: '%s' must be the same for all levels", where, key);
    a->said.levels = n;
    a->said.width = width[0];
    return lw_json_get_i32_in(j, where, "latent_channels", 1, 1024, &a->said.latent);
}

static int read(const json_t *j, const char *where, bool decoder, tiny *a)
{
    *a = (tiny){.scale = {.factor = 1.0}};
    LW_TRY(lw_json_check_known(j, where, known, only));
    LW_TRY(lw_latent_scale_read(j, where, &a->scale));
    return read_half(j, where, decoder, a);
}

static int read_encoder(const json_t *j, const char *where, void *arch)
{
    return read(j, where, false, arch);
}

static int read_decoder(const json_t *j, const char *where, void *arch)
{
    return read(j, where, true, arch);
}

/* ---- the records ----------------------------------------------------------------------------- */

static void describe(lw_network *n)
{
    const sequence *s = &((const tiny *)n->arch)->half;
    n->channels = s->channels;
    n->multiple = n->def->decoder ? 0 : 1 << (s->levels - 1);
}

const lw_network_def lw_network_def_taesd = {
    .name = "taesd",
    .kind = "encoder",
    .class_name = "AutoencoderTiny",
    .arch_bytes = sizeof(tiny),
    .read = read_encoder,
    .recognise = is_encoder,
    .tensors = "the encoder of a TAESD, as its config.json says where it has one",
    .describe = describe,
    .namings = of_encoder,
    .build = build_encoder,
};

const lw_network_def lw_network_def_taesd_decoder = {
    .name = "taesd_decoder",
    .kind = "decoder",
    .decoder = true,
    .class_name = "AutoencoderTiny",
    .arch_bytes = sizeof(tiny),
    .read = read_decoder,
    .recognise = is_decoder,
    .tensors = "the decoder of a TAESD, as its config.json says where it has one",
    .describe = describe,
    .namings = of_decoder,
    .build = build_decoder,
};
