/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a frozen encoder by what the user typed. */
#include "models/models.h"

#include <stdio.h>
#include <string.h>

/* ---- what kind of file is it? ---------------------------------------------------------------- */

/* Blocks per stage of a CIFAR ResNet in f, or 0: 16 channels in the first stage, linear head
 * of 64. */
static int32_t cifar_blocks(const lw_st_file *f)
{
    const lw_st_tensor *head = lw_st_find_model(f, "linear.weight");
    const lw_st_tensor *stem = lw_st_find_model(f, "conv1.weight");
    int32_t n = 0;
    char name[64];
    if (!head || head->rank != 2 || head->shape[1] != 64 || !stem || stem->rank != 4 ||
        stem->shape[0] != 16)
        return 0;
    do
        snprintf(name, sizeof name, "layer3.%d.conv1.weight", n);
    while (lw_st_find_model(f, name) && ++n < 64);
    return n;
}

static bool is_resnet18(const lw_st_file *f)
{
    const lw_st_tensor *stem = lw_st_find_model(f, "conv1.weight");
    const lw_st_tensor *first = lw_st_find_model(f, "layer1.0.conv1.weight");
    return stem && stem->rank == 4 && stem->shape[0] == 64 && stem->shape[2] == 7 && first &&
           first->rank == 4 && first->shape[1] == 64 && first->shape[2] == 3 &&
           lw_st_find_model(f, "layer2.0.downsample.0.weight");
}

/* ---- declaring and loading ------------------------------------------------------------------- */

void lw_encoder_build(const lw_encoder *e, lw_graph *g, lw_val x, lw_taps *out)
{
    *out = (lw_taps){0};
    lw_builder b = {.g = g, .params = e->store ? lw_store_params(e->store) : NULL};
    const char *up = lw_scope_set(g, ""); /* the frozen store has names of its own */
    switch (e->kind) {
    case LW_ENCODER_NONE:
        break;
    case LW_ENCODER_RESNET18:
        lw_resnet18_cut(&b, x, out);
        break;
    case LW_ENCODER_CIFAR:
        lw_resnet_cifar(&b, e->n, x, out);
        break;
    case LW_ENCODER_OWN:
        lw_encoder_net(&b, &e->own, x, out);
        break;
    }
    lw_scope_set(g, up);
}

/* Names and types of a ResNet, from a graph that is dropped again. */
static int declare_resnet(lw_encoder *e)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_encoder_build(e, g, lw_input(g, "x", lw_type_of(LW_F32, 4, 1, 32, 32, 3)), &taps);
    LW_TRY(lw_graph_error(g));
    return lw_store_fix(e->store);
}

static int open_resnet(lw_encoder *e, const lw_st_file *f)
{
    static const char *const beyond[] = {"layer3.", "layer4.", "fc.", NULL};
    static const lw_load_opts cut = {.centre_crop = "conv1.weight", .ignore = beyond};
    LW_TRY(lw_store_new(true, &e->store));
    LW_TRY(declare_resnet(e));
    return lw_store_load_from(e->store, LW_SLAB_PARAM, f,
                              e->kind == LW_ENCODER_RESNET18 ? &cut : NULL);
}

static int open_cifar(lw_encoder *e, const lw_st_file *f)
{
    static const struct {
        int32_t n;
        const char *name;
    } known[] = {
        {3, "resnet20"}, {5, "resnet32"}, {7, "resnet44"}, {9, "resnet56"}, {18, "resnet110"}};
    e->kind = LW_ENCODER_CIFAR;
    e->name = "resnet_cifar10";
    e->n = cifar_blocks(f);
    if (e->n < 1)
        return lw_fail(LW_EFORMAT,
                       "%s: not a CIFAR ResNet (16-channel stem, three stages, 'linear' head)",
                       lw_st_path(f));
    for (size_t i = 0; i < LW_COUNT(known); i++)
        if (known[i].n == e->n)
            e->name = known[i].name;
    e->feature_dim = 64;
    e->classes = 10;
    return open_resnet(e, f);
}

static int open_resnet18(lw_encoder *e, const lw_st_file *f)
{
    e->kind = LW_ENCODER_RESNET18;
    e->name = "resnet18";
    e->feature_dim = 128;
    if (!is_resnet18(f))
        return lw_fail(LW_EFORMAT,
                       "%s: not torchvision's ResNet-18 (conv1.weight [64,3,7,7], layer1, layer2)",
                       lw_st_path(f));
    return open_resnet(e, f);
}

static int open_own(lw_encoder *e, const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_json_load(lw_path_join(&path, dir, "config.json"), &j));
    LW_TRY(lw_encoder_from_json(j, lw_str_c(&path), &e->own));
    e->kind = LW_ENCODER_OWN;
    e->name = "leeway";
    e->feature_dim = e->own.width << (e->own.stages - 1);
    e->classes = e->own.classes;
    LW_TRY(lw_model_weights_find(dir, &path));
    LW_TRY(lw_st_open(lw_str_c(&path), &f));
    LW_TRY(lw_store_new(true, &e->store));
    lw_store_expect(e->store, f, NULL);
    LW_TRY(lw_encoder_declare(&e->own, e->store));
    return lw_store_load_from(e->store, LW_SLAB_PARAM, f, NULL);
}

/* ---- the spec -------------------------------------------------------------------------------- */

typedef int open_file_fn(lw_encoder *e, const lw_st_file *f);

static int open_any(lw_encoder *e, const lw_st_file *f)
{
    if (cifar_blocks(f) > 0)
        return open_cifar(e, f);
    if (is_resnet18(f))
        return open_resnet18(e, f);
    return lw_fail(LW_EFORMAT,
                   "%s: its tensors are of no encoder known here (ResNet-18, CIFAR ResNet), and no "
                   "config.json says what it is",
                   lw_st_path(f));
}

static int open_weights(lw_encoder *e, const char *path, open_file_fn *open)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    LW_TRY(lw_model_weights_find(path, &file));
    LW_TRY(lw_st_open(lw_str_c(&file), &f));
    return open(e, f);
}

/* ResNets carry no description of their own: the tensors say which one it is. */
static int open_place(lw_encoder *e, const lw_model_place *p)
{
    bool own = p->network && !lw_str_starts(p->network, "ResNet") &&
               !lw_str_starts(p->network, "resnet");
    e->source = lw_strdup(lw_str_c(&p->path));
    if (!e->source)
        return LW_ENOMEM;
    return own ? open_own(e, e->source) : open_weights(e, e->source, open_any);
}

static int open_path(lw_encoder *e, const char *path)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place p = {0};
    LW_TRY(lw_model_find(path, true, &p));
    return open_place(e, &p);
}

static const struct {
    const char *word;
    open_file_fn *open;
} words[] = {
    {"none", NULL}, {"resnet18", open_resnet18}, {"resnet_cifar10", open_cifar}, {"dinov2", NULL}};

static int unknown_word(const char *spec)
{
    const char *near = words[0].word;
    for (size_t i = 1; i < LW_COUNT(words); i++)
        if (lw_str_distance(spec, words[i].word) < lw_str_distance(spec, near))
            near = words[i].word;
    return lw_fail(
        LW_EUSAGE,
        "encoder '%s': no such file or folder, and no encoder of that name (did you mean '%s'?)",
        spec, near);
}

static int open_spec(lw_encoder *e, const char *spec)
{
    for (size_t i = 0; i < LW_COUNT(words); i++) {
        size_t n = strlen(words[i].word);
        if (!lw_str_starts(spec, words[i].word) || (spec[n] && spec[n] != ':'))
            continue;
        if (strcmp(words[i].word, "none") == 0)
            return spec[n] ? unknown_word(spec) : 0;
        if (!words[i].open)
            return lw_fail(LW_EUNSUPPORTED, "encoder '%s' is not built in yet", words[i].word);
        if (!spec[n] || !spec[n + 1])
            return lw_fail(LW_EUSAGE, "encoder %s needs its weights: %s:FILE.safetensors",
                           words[i].word, words[i].word);
        e->source = lw_strdup(spec + n + 1);
        return e->source ? open_weights(e, e->source, words[i].open) : LW_ENOMEM;
    }
    if (!lw_path_exists(spec))
        return unknown_word(spec);
    return open_path(e, spec);
}

/* One of spec and place. */
static int open_either(const char *spec, const lw_model_place *place, lw_encoder **out)
{
    LW_CLEANUP(lw_encoder_close) lw_encoder *e = lw_calloc(1, sizeof *e);
    if (!e)
        return LW_ENOMEM;
    e->name = "none";
    LW_TRY(place ? open_place(e, place) : open_spec(e, spec));
    uint64_t part[2] = {(uint64_t)e->kind, e->store ? lw_store_hash(e->store, LW_SLAB_PARAM) : 0};
    e->hash = lw_hash64(part, sizeof part);
    *out = lw_steal(&e);
    return 0;
}

int lw_encoder_open(const char *spec, lw_encoder **out)
{
    return open_either(spec, NULL, out);
}

int lw_encoder_open_at(const lw_model_place *place, lw_encoder **out)
{
    return open_either(NULL, place, out);
}

void lw_encoder_close(lw_encoder **pp)
{
    lw_encoder *e = *pp;
    if (!e)
        return;
    lw_store_free(&e->store);
    lw_free(&e->source);
    lw_free(pp);
}
