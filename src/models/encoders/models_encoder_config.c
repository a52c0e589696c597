/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's configuration and its config.json. */
#include "models/models.h"

#include <stdio.h>
#include <string.h>

lw_encoder_config lw_encoder_default(int32_t image_size)
{
    return (lw_encoder_config){.image_size = image_size,
                               .channels = 3,
                               .width = 16,
                               .stages = 3,
                               .blocks = 1,
                               .norm_groups = 8};
}

static int in_range(const char *what, int32_t v, int32_t lo, int32_t hi)
{
    if (v < lo || v > hi)
        return lw_fail(LW_EUSAGE, "encoder: %s is %d, must be %d to %d", what, v, lo, hi);
    return 0;
}

int lw_encoder_check(const lw_encoder_config *c)
{
    LW_TRY(in_range("image size", c->image_size, 1, 4096));
    LW_TRY(in_range("channels", c->channels, 1, LW_MAX_CHANNELS));
    LW_TRY(in_range("width", c->width, 1, 4096));
    LW_TRY(in_range("stages", c->stages, 1, LW_MAX_STAGES));
    LW_TRY(in_range("blocks per stage", c->blocks, 1, 64));
    LW_TRY(in_range("norm groups", c->norm_groups, 1, 4096));
    LW_TRY(in_range("classes", c->classes, 0, 1 << 20));
    LW_TRY(in_range("projection", c->projection, 0, 1 << 16));
    if (c->image_size % (1 << (c->stages - 1)))
        return lw_fail(LW_EUSAGE, "encoder: image size %d cannot be halved %d times", c->image_size,
                       c->stages - 1);
    return 0;
}

/* [{"from": "pooled" or "s2", "width": 64}, ...] */
static json_t *predicted_to_json(const lw_encoder_config *c)
{
    json_t *all = json_array();
    for (int32_t i = 0; i < c->n_predicted; i++) {
        char from[16] = "pooled";
        if (c->predicted[i].stage >= 0)
            snprintf(from, sizeof from, "s%d", (int)c->predicted[i].stage);
        json_array_append_new(
            all, json_pack("{s:s, s:i}", "from", from, "width", (int)c->predicted[i].width));
    }
    return all;
}

static int predicted_from_json(const json_t *all, const char *where, lw_encoder_config *c)
{
    char from[16];
    size_t n = json_array_size(all);
    if (!json_is_array(all) || n > LW_MAX_PREDICTED)
        return lw_fail(LW_EFORMAT, "%s: 'leeway_predicts' is no list of at most %d", where,
                       LW_MAX_PREDICTED);
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(all, i);
        const char *name;
        lw_predicted *p = &c->predicted[i];
        LW_TRY(lw_json_get_str(j, where, "from", &name));
        LW_TRY(lw_json_get_i32_in(j, where, "width", 1, 1 << 20, &p->width));
        p->stage = -1;
        for (int32_t s = 0; s <= c->stages; s++) {
            snprintf(from, sizeof from, "s%d", (int)s);
            p->stage = lw_str_eq(name, from) ? s : p->stage;
        }
        if (p->stage < 0 && !lw_str_eq(name, "pooled"))
            return lw_fail(LW_EFORMAT, "%s: 'leeway_predicts' from '%s', which it does not have",
                           where, name);
    }
    c->n_predicted = (int32_t)n;
    return 0;
}

json_t *lw_encoder_to_json(const lw_encoder_config *c)
{
    json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "_class_name",
                          "LeewayEncoder", "image_size", c->image_size, "width", c->width, "stages",
                          c->stages, "blocks_per_stage", c->blocks, "norm_num_groups",
                          c->norm_groups, "num_classes", c->classes, "decoder", c->decoder);
    if (c->channels != 3 && json_object_set_new(j, "in_channels", json_integer(c->channels)) < 0)
        lw_json_drop(&j);
    if (c->batch_norm && json_object_set_new(j, "norm_type", json_string("batch_norm")) < 0)
        lw_json_drop(&j);
    if (c->judged && json_object_set_new(j, "leeway_judged_classes", json_integer(c->judged)) < 0)
        lw_json_drop(&j);
    if (c->projection &&
        json_object_set_new(j, "leeway_projection", json_integer(c->projection)) < 0)
        lw_json_drop(&j);
    if (c->n_predicted &&
        (!j || json_object_set_new(j, "leeway_predicts", predicted_to_json(c)) < 0))
        lw_json_drop(&j);
    return j;
}

int lw_encoder_from_json(const json_t *j, const char *where, lw_encoder_config *out)
{
    lw_encoder_config c = {.channels = 3};
    static const char *const keys[] = {
        "_class_name",     "image_size",        "width",
        "stages",          "blocks_per_stage",  "norm_num_groups",
        "num_classes",     "decoder",           "leeway_judged_classes",
        "leeway_predicts", "leeway_projection", "in_channels",
        "norm_type",       "leeway_latents",    NULL};
    const char *const *const known[] = {keys, NULL};
    const char *class_name, *norm = "group_norm";
    LW_TRY(lw_json_get_str(j, where, "_class_name", &class_name));
    if (strcmp(class_name, "LeewayEncoder") != 0)
        return lw_fail(
            LW_EFORMAT,
            "%s: this is a %s; known are LeewayEncoder, ResNet and UNet2DModel (a generator)",
            where, class_name);
    LW_TRY(lw_json_check_known(j, where, known, NULL));
    LW_TRY(lw_json_get_i32_in(j, where, "image_size", 1, 4096, &c.image_size));
    LW_TRY(lw_json_get_i32_in(j, where, "width", 1, 4096, &c.width));
    LW_TRY(lw_json_get_i32_in(j, where, "stages", 1, LW_MAX_STAGES, &c.stages));
    LW_TRY(lw_json_get_i32_in(j, where, "blocks_per_stage", 1, 64, &c.blocks));
    LW_TRY(lw_json_get_i32_in(j, where, "norm_num_groups", 1, 4096, &c.norm_groups));
    LW_TRY(lw_json_get_i32_in(j, where, "num_classes", 0, 1 << 20, &c.classes));
    LW_TRY(lw_json_get_bool(j, where, "decoder", &c.decoder));
    if (json_object_get(j, "in_channels"))
        LW_TRY(lw_json_get_i32_in(j, where, "in_channels", 1, LW_MAX_CHANNELS, &c.channels));
    if (json_object_get(j, "norm_type"))
        LW_TRY(lw_json_get_str(j, where, "norm_type", &norm));
    c.batch_norm = lw_str_eq(norm, "batch_norm");
    if (!c.batch_norm && !lw_str_eq(norm, "group_norm"))
        return lw_fail(LW_EFORMAT, "%s: 'norm_type' is '%s'; known are group_norm and batch_norm",
                       where, norm);
    if (json_object_get(j, "leeway_judged_classes"))
        LW_TRY(lw_json_get_i32_in(j, where, "leeway_judged_classes", 0, c.classes, &c.judged));
    if (json_object_get(j, "leeway_predicts"))
        LW_TRY(predicted_from_json(json_object_get(j, "leeway_predicts"), where, &c));
    if (json_object_get(j, "leeway_projection"))
        LW_TRY(lw_json_get_i32_in(j, where, "leeway_projection", 1, 1 << 16, &c.projection));
    if (lw_encoder_check(&c) < 0)
        return lw_fail(LW_EFORMAT, "%s: %s", where, lw_errmsg());
    *out = c;
    return 0;
}

int lw_encoder_declare(const lw_encoder_config *c, lw_store *s)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps = {0};
    LW_TRY(lw_encoder_check(c));
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_encoder_net(
        &b, c,
        lw_input(g, "x", lw_type_of(LW_F32, 4, 1, c->image_size, c->image_size, c->channels)),
        &taps);
    if (c->decoder)
        lw_encoder_decode(&b, c, &taps);
    for (int32_t i = 0; i < c->n_predicted; i++)
        lw_encoder_predict(&b, c, &taps, i);
    if (c->projection)
        lw_encoder_project(&b, c, &taps);
    LW_TRY(lw_graph_error(g));
    return lw_store_fix(s);
}

/* ---- the record ------------------------------------------------------------------------------ */

static int read(const json_t *j, const char *where, void *arch)
{
    return lw_encoder_from_json(j, where, arch);
}

static void describe(lw_network *n)
{
    const lw_encoder_config *c = n->arch;
    n->image_size = c->image_size;
    n->channels = c->channels;
    n->judged = c->judged;
}

/* The decoder, the predictions and the projection stand in the file, and nobody asks a frozen encoder for them. */
static int declare(const void *arch, lw_store *s)
{
    return lw_encoder_declare(arch, s);
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_encoder_net(b, arch, in.x, out);
}

const lw_network_def lw_network_def_leeway = {
    .name = "leeway",
    .kind = "encoder",
    .class_name = "LeewayEncoder",
    .arch_bytes = sizeof(lw_encoder_config),
    .read = read,
    .describe = describe,
    .declare = declare,
    .build = build,
};
