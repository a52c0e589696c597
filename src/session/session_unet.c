/* SPDX-License-Identifier: Apache-2.0 */
/* Options to U-Net or transformer, these to config.json. */
#include "session/session_unet.h"

#include <stdio.h>
#include <string.h>

#include "session/session_diffusion.h"

static const char *const methods[] = {"ddpm", "drift", "flow"};

const char *lw_method_name(lw_method m)
{
    return methods[m];
}

static int parse_noise_shape(const char *text, lw_unet_config *u)
{
    int h, w, used = 0;
    if (!text || strcmp(text, "full") == 0)
        return 0;
    if (sscanf(text, "%dx%d%n", &h, &w, &used) != 2 || text[used] || h < 1 || w < 1 ||
        u->image_size % h || u->image_size % w || h != w)
        return lw_fail(LW_EUSAGE,
                       "--noise-shape %s: 'full', or NxN with N dividing the image size %d", text,
                       u->image_size);
    u->noise_h = h;
    u->noise_w = w;
    return 0;
}

int lw_condition_parse(const char *text, bool *frame, int32_t *previous)
{
    static const char window[] = "previous:";
    LW_CLEANUP(lw_free) char *words = lw_strdup(text);
    int64_t k = 0;
    *frame = false;
    *previous = 0;
    if (!words)
        return LW_ENOMEM;
    for (char *word = words, *next; word; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        if (!*frame && strcmp(word, "frame") == 0)
            *frame = true;
        else if (!*previous && strcmp(word, "previous") == 0)
            *previous = 1;
        else if (!*previous && lw_str_starts(word, window) &&
                 lw_parse_i64(word + strlen(window), &k) == 0 && k >= 1 &&
                 k <= LW_UNET_MAX_PREVIOUS)
            *previous = (int32_t)k;
        else
            return lw_fail(LW_EUSAGE,
                           "--condition %s: frame, previous[:K] with K of 1 to %d, or both", text,
                           LW_UNET_MAX_PREVIOUS);
    }
    return 0;
}

/* Classes of the generator, 0: unconditional. */
static int choose_classes(const lw_net_config *c, const lw_dataset *d, int32_t *out)
{
    bool labels = c->class_conditional == LW_YES ||
                  (c->class_conditional == LW_AUTO && d->labelled);
    if (labels && !d->labelled)
        return lw_fail(LW_EUSAGE, "--class-conditional: %s has no labels", d->spec);
    *out = labels ? d->classes : 0;
    return 0;
}

int lw_net_dit(const lw_net_config *c, const lw_dataset *d, lw_dit_config *out)
{
    static const struct {
        int32_t hidden, depth, heads, patch;
    } sizes[] = {
        [LW_GENERATOR_DIT] = {192, 6, 3, 2},         [LW_GENERATOR_DIT_B2] = {768, 12, 12, 2},
        [LW_GENERATOR_DIT_L2] = {1024, 24, 16, 2},   [LW_GENERATOR_DIT_B16] = {768, 12, 12, 16},
        [LW_GENERATOR_DIT_L16] = {1024, 24, 16, 16},
    };
    lw_dit_config n = lw_dit_base();
    LW_TRY(choose_classes(c, d, &n.classes));
    n.image_size = d->h;
    n.channels = d->channels;
    n.patch = c->patch_size ? c->patch_size : sizes[c->generator].patch;
    n.hidden = c->hidden_dim ? c->hidden_dim : sizes[c->generator].hidden;
    n.depth = c->depth ? c->depth : sizes[c->generator].depth;
    n.heads = c->num_heads    ? c->num_heads
              : c->hidden_dim ? LW_MAX(c->hidden_dim / 64, 1)
                              : sizes[c->generator].heads;
    n.tokens = c->register_tokens;
    n.styles = c->style_count;
    n.style_words = c->style_words;
    n.rope = c->rope;
    n.alpha = c->alpha;
    n.no_qk_norm = c->qk_norm_mode == 1;
    LW_TRY(lw_dit_check(&n));
    *out = n;
    return 0;
}

/* lw_unet_check() refuses them too, without the names of options. */
static int check_groups(const lw_unet_config *u)
{
    for (int32_t i = 0; i < u->levels; i++)
        if (u->norm_groups > 0 && u->channels[i] % u->norm_groups)
            return lw_fail(LW_EUSAGE,
                           "U-Net: %d channels cannot be split into %d norm groups: choose "
                           "--norm-groups that divide them, or other --base-channels",
                           u->channels[i], u->norm_groups);
    return 0;
}

static int set_levels(const lw_net_config *c, int32_t side, lw_unet_config *u)
{
    static const int32_t large_at[] = {16, 8};
    *u = c->large ? lw_unet_large() : lw_unet_small();
    return lw_unet_set_levels(u, side, c->large ? 256 : c->base_channels, c->channel_mult,
                              c->n_channel_mult, c->large ? large_at : c->attn_resolutions,
                              c->large ? 2 : c->n_attn_resolutions);
}

int lw_net_check_side(const lw_net_config *c, int32_t side)
{
    lw_unet_config u;
    return set_levels(c, side, &u);
}

int lw_net_unet(const lw_net_config *c, const lw_dataset *d, lw_unet_config *out)
{
    lw_unet_config u;
    LW_TRY(set_levels(c, d->h, &u));
    LW_TRY(choose_classes(c, d, &u.classes));
    if (c->null_class && u.classes == 0)
        return lw_fail(
            LW_EUSAGE,
            "--class-dropout-prob: the network has no classes that could be left out (%s)",
            d->labelled ? "--class-conditional no" : "the data has no labels");
    u.null_class = c->null_class;
    if (!c->large) {
        u.blocks = c->num_res_blocks;
        u.heads = c->heads;
    }
    if (c->head_dim > 0) {
        u.head_dim = c->head_dim;
        u.heads = 0;
    }
    u.frame = c->frame;
    u.previous = c->previous;
    u.residual = c->residual;
    u.alpha = c->alpha;
    u.out_channels = d->channels;
    u.in_channels = d->channels * (1 + (c->frame ? 1 : 0) + c->previous);
    u.norm_groups = c->norm_groups;
    u.dropout = (float)c->dropout;
    u.latent_dim = c->latent_dim;
    u.default_out_init = !c->zero_init_output;
    LW_TRY(parse_noise_shape(c->noise_shape, &u));
    LW_TRY(check_groups(&u));
    LW_TRY(lw_unet_check(&u));
    *out = u;
    return 0;
}

json_t *lw_net_json(json_t *net, bool conditional, lw_method m, const lw_dataset *d)
{
    json_t *j = net, *names = json_array();
    if (!j || !names) {
        json_decref(j);
        json_decref(names);
        return NULL;
    }
    for (int32_t i = 0; conditional && i < d->classes; i++)
        json_array_append_new(names, json_string(d->class_names[i]));
    json_object_set_new(j, "leeway_method", json_string(lw_method_name(m)));
    json_object_set_new(j, "leeway_class_names", names);
    json_object_set_new(j, "leeway_data", json_string(d->spec));
    return j;
}

int lw_net_pipeline(const lw_unet_config *u, const lw_noise_schedule *s, json_t **out)
{
    if (!lw_unet_is_diffusers(u) || u->in_channels != u->out_channels || u->noise_h > 0)
        return 0;
    json_t *scheduler = lw_diffusion_to_json(s);
    json_t *j = json_pack("{s:{s:s, s:[s, s], s:[s, O]}, s:o}", "model_index.json", "_class_name",
                          "DDPMPipeline", "unet", "diffusers", "UNet2DModel", "scheduler",
                          "diffusers", json_object_get(scheduler, "_class_name"),
                          "scheduler_config.json", scheduler);
    if (!j)
        return lw_fail(LW_ENOMEM, "out of memory for scheduler_config.json");
    *out = j;
    return 0;
}

lw_method lw_net_method(const json_t *config)
{
    const char *name = json_string_value(json_object_get(config, "leeway_method"));
    for (size_t i = 0; name && i < LW_COUNT(methods); i++)
        if (strcmp(name, methods[i]) == 0)
            return (lw_method)i;
    return LW_METHOD_DDPM;
}
