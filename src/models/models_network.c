/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and building any network that has a record. */
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

static const lw_network_def *const defs[] = {
#define NETWORK(x) &lw_network_def_##x,
#include "models/networks.def"
#undef NETWORK
    NULL};

const lw_network_def lw_network_def_none = {.name = "none", .kind = "encoder"}; /* pixels alone */

/* ---- building -------------------------------------------------------------------------------- */

static void append(const lw_network *n, const lw_store *s, lw_graph *g, lw_network_in in,
                   lw_taps *out)
{
    lw_builder b = {.g = g,
                    .params = s ? lw_store_params(s) : NULL,
                    .training = n->training,
                    .rows = in.rows,
                    .hook = n->hook,
                    .window = n->window};
    const char *up = lw_scope_top(g); /* the frozen store has names of its own */
    *out = (lw_taps){0};
    in.x = lw_network_see(n, g, in.x);
    if (n->def->build)
        n->def->build(&b, n->arch, in, out);
    lw_scope_set(g, up);
}

void lw_network_append(const lw_network *n, lw_graph *g, lw_network_in in, lw_taps *out)
{
    append(n, n->store, g, in, out);
}

static lw_network_in inputs(const lw_network *n, lw_graph *g, int32_t batch, int32_t h, int32_t w)
{
    lw_network_in in = {.x = lw_input(g, "x", lw_type_of(LW_F32, 4, batch, h, w, n->channels))};
    if (n->generator && !n->timeless)
        in.t = lw_input(g, "t", lw_type_of(LW_F32, 1, batch));
    if (n->generator && n->classes > 0)
        in.classes = lw_input(g, "class", lw_type_of(LW_I32, 1, batch));
    if (n->latent > 0)
        in.latent = lw_input(g, "latent", lw_type_of(LW_F32, 2, batch, n->latent));
    if (n->styles > 0)
        in.styles = lw_input(g, "styles", lw_type_of(LW_I32, 2, batch, n->styles));
    if (n->condition > 0)
        in.condition =
            lw_input(g, "condition",
                     lw_type_of(LW_F32, 4, batch, n->image_size, n->image_size, n->condition));
    return in;
}

void lw_network_draw(const lw_network *n, lw_graph *g, const char *who, lw_val rows,
                     lw_network_in *in)
{
    char stream[32];
    int32_t batch = lw_val_type(g, rows).dim[0];
    snprintf(stream, sizeof stream, "%s.latent", who);
    if (n->latent > 0)
        in->latent = lw_random(g, stream, LW_RANDOM_NORMAL, 0,
                               lw_type_of(LW_F32, 2, batch, n->latent), rows);
    snprintf(stream, sizeof stream, "%s.style", who);
    if (n->styles > 0)
        in->styles = lw_random(g, stream, LW_RANDOM_BELOW, n->style_words,
                               lw_type_of(LW_I32, 2, batch, n->styles), rows);
}

void lw_network_square(lw_network *n, int32_t side)
{
    n->image_size = side;
    n->preparation.resize_h = n->preparation.resize_w = side;
    n->preparation.height = n->preparation.width = side;
}

int32_t lw_network_side(const lw_network *n, int32_t asked)
{
    int32_t usual = lw_network_sized(n) ? n->preparation.height : 32;
    int32_t own = n->image_size > 0 ? n->image_size : usual;
    return asked > 0 ? asked : own;
}

static int check_size(const lw_network *n, int32_t h, int32_t w)
{
    int32_t side = n->image_size, noise = n->noise_size;
    if (side == 0 || (h == side && w == side) || (noise > 0 && h == noise && w == noise))
        return 0;
    return noise == 0
               ? lw_fail(LW_ESHAPE, "%s: pictures of %dx%d, the model takes %dx%d", n->dir, (int)h,
                         (int)w, (int)side, (int)side)
               : lw_fail(LW_ESHAPE,
                         "%s: pictures of %dx%d, the model takes %dx%d or noise of %dx%d", n->dir,
                         (int)h, (int)w, (int)side, (int)side, (int)noise, (int)noise);
}

int lw_network_build(const lw_network *n, lw_graph *g, int32_t batch, int32_t h, int32_t w,
                     const char *want)
{
    lw_taps taps;
    LW_TRY(check_size(n, h, w));
    lw_network_in in = inputs(n, g, batch, h, w);
    if (n->training || n->hook)
        in.rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    append(n, n->store, g, in, &taps);
    LW_TRY(lw_graph_error(g));
    LW_TRY(lw_taps_offer(&taps, g, want, n->dir));
    return lw_graph_error(g);
}

/* ---- declaring and loading ------------------------------------------------------------------- */

static int32_t width_of(const lw_graph *g, const lw_taps *taps, const char *name, int32_t none)
{
    lw_val v = lw_tap_find(taps, name);
    return lw_val_ok(v) ? lw_type_last(lw_val_type(g, v)) : none;
}

int lw_network_declare(lw_network *n, lw_store *s)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    int32_t side = lw_network_side(n, 0);
    lw_taps taps;
    if (n->def->declare)
        LW_TRY(n->def->declare(n->arch, s));
    LW_TRY(lw_graph_new(&g));
    append(n, s, g, inputs(n, g, 1, side, side), &taps);
    LW_TRY(lw_graph_error(g));
    n->features = width_of(g, &taps, "pooled", 0);
    n->outputs = width_of(g, &taps, "y", 0);
    n->classes = width_of(g, &taps, "logits", n->classes);
    return n->def->declare ? 0 : lw_store_fix(s);
}

static void describe(lw_network *n)
{
    n->name = n->def->name;
    n->channels = 3;
    n->prepared = n->def->preparation != NULL;
    if (n->prepared)
        n->preparation = *n->def->preparation;
    if (n->def->describe)
        n->def->describe(n);
}

lw_network lw_network_of(const lw_network_def *def, void *arch, lw_store *s)
{
    lw_network n = {.def = def, .arch = arch, .store = s};
    describe(&n);
    return n;
}

static void count_parameters(lw_network *n)
{
    for (int32_t i = 0; i < lw_store_count(n->store); i++)
        if (!lw_str_ends(lw_store_at(n->store, i)->name, "running_mean") &&
            !lw_str_ends(lw_store_at(n->store, i)->name, "running_var"))
            n->parameters += lw_store_at(n->store, i)->count;
}

static int load(lw_network *n, const lw_st_file *f)
{
    LW_TRY(lw_store_new(true, &n->store));
    lw_store_expect(n->store, f, n->def->namings);
    LW_TRY(lw_network_declare(n, n->store));
    LW_TRY(lw_store_load_from(n->store, LW_SLAB_PARAM, f, n->def->namings));
    count_parameters(n);
    return 0;
}

int lw_network_train(lw_network *n)
{
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    if (!n->generator)
        return lw_fail(LW_EUSAGE, "%s: only generators have a training graph here", n->dir);
    LW_TRY(lw_store_new(false, &store));
    LW_TRY(lw_network_declare(n, store));
    lw_store_free(&n->store);
    n->store = lw_steal(&store);
    n->training = true;
    return 0;
}

/* ---- which network is it? -------------------------------------------------------------------- */

const char *lw_network_class(const json_t *config)
{
    const json_t *tower = json_object_get(json_object_get(config, "model_cfg"), "vision_cfg");
    const json_t *said[] = {
        json_object_get(config, "_class_name"), json_object_get(config, "architecture"),
        json_object_get(config, "model_type"), json_object_get(tower, "timm_model_name"),
        json_array_get(json_object_get(config, "architectures"), 0)};
    for (size_t i = 0; i < LW_COUNT(said); i++)
        if (json_is_string(said[i]))
            return json_string_value(said[i]);
    return json_is_object(tower) ? "open_clip" : NULL;
}

static bool is_of_class(const lw_network_def *d, const char *class_name)
{
    const char *rest = class_name ? d->class_name : NULL;
    size_t n;
    for (const char *word; (word = lw_str_word(&rest, ' ', &n));) {
        LW_CLEANUP(lw_str_clear) lw_str pattern = {0};
        lw_str_add_n(&pattern, word, n);
        if (lw_naming_fits(lw_str_c(&pattern), class_name))
            return true;
    }
    return false;
}

/* Which records a source may be of. */
typedef struct choice {
    const lw_network_def *def; /* this one; NULL: any */
    bool decoder;              /* those that decode; else, where records share files, the other */
} choice;

static const lw_network_def *def_of_class(const char *class_name, choice want)
{
    const lw_network_def *const *d = defs;
    if (want.def && is_of_class(want.def, class_name))
        return want.def;
    while (*d && !(is_of_class(*d, class_name) && (*d)->decoder == want.decoder))
        d++;
    return *d;
}

static int use(lw_network *n, const lw_network_def *def)
{
    lw_free(&n->arch);
    n->def = def;
    n->arch = lw_calloc(1, LW_MAX(def->arch_bytes, (size_t)1));
    return n->arch ? 0 : LW_ENOMEM;
}

static int unrecognised(const lw_st_file *f, choice want, const char *class_name)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    for (const lw_network_def *const *d = defs; *d; d++)
        if (((*d)->class_name || (*d)->recognise) && (*d)->decoder == want.decoder)
            lw_str_addf(&have, "%s%s", have.len ? ", " : "", (*d)->name);
    if (want.def)
        return lw_fail(LW_EFORMAT, "%s: not %s", lw_st_path(f), want.def->tensors);
    if (class_name)
        return lw_fail(LW_EUNSUPPORTED, "%s: its config.json says %s; %s are %s", lw_st_path(f),
                       class_name, want.decoder ? "those with a decoder" : "known",
                       lw_str_c(&have));
    return lw_fail(LW_EFORMAT,
                   "%s: its tensors are of no network known here (%s), and no config.json says "
                   "what it is",
                   lw_st_path(f), lw_str_c(&have));
}

static int recognise(lw_network *n, const lw_st_file *f, choice want, const char *class_name)
{
    for (const lw_network_def *const *d = defs; *d; d++) {
        if (!(*d)->recognise || (want.def && want.def != *d) || (want.decoder && !(*d)->decoder))
            continue;
        LW_TRY(use(n, *d));
        if ((*d)->recognise(f, n->arch))
            return 0;
    }
    return unrecognised(f, want, class_name);
}

int lw_network_of_config(const json_t *config, const char *where, lw_network **out)
{
    LW_CLEANUP(lw_network_close) lw_network *n = lw_calloc(1, sizeof *n);
    const char *class_name = lw_network_class(config);
    const lw_network_def *def = def_of_class(class_name, (choice){0});
    if (!n)
        return LW_ENOMEM;
    if (!def)
        return lw_fail(LW_EUNSUPPORTED, "%s: %s is no network known here", where,
                       class_name ? class_name : "it");
    LW_TRY(use(n, def));
    LW_TRY(def->read(config, where, n->arch));
    describe(n);
    n->config = json_deep_copy(config);
    LW_TRY(lw_network_channels(n, where, NULL));
    *out = lw_steal(&n);
    return 0;
}

int lw_network_blank(const lw_network_def *def, const void *arch, lw_network **out)
{
    LW_CLEANUP(lw_network_close) lw_network *n = lw_calloc(1, sizeof *n);
    if (!n)
        return LW_ENOMEM;
    LW_TRY(use(n, def));
    memcpy(n->arch, arch, def->arch_bytes);
    describe(n);
    n->dir = lw_strdup(n->name);
    if (!n->dir)
        return LW_ENOMEM;
    LW_TRY(lw_store_new(true, &n->store));
    LW_TRY(lw_network_declare(n, n->store));
    count_parameters(n);
    *out = lw_steal(&n);
    return 0;
}

/* What the files beside the weights say goes before the record's word. */
static int find_preparation(lw_network *n)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    bool said = lw_path_exists(lw_path_join(&path, n->dir, "preprocessor_config.json")) ||
                json_object_get(n->config, "pretrained_cfg") ||
                json_object_get(n->config, "preprocess_cfg");
    if (!said || n->generator)
        return 0;
    LW_TRY(lw_preparation_load(n->dir, &n->preparation));
    n->prepared = true;
    return 0;
}

static int open_place(lw_network *n, lw_model_place *p, choice want)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    const char *class_name = lw_network_class(p->config);
    const lw_network_def *def = def_of_class(class_name, want);
    n->dir = lw_strdup(lw_str_c(&p->path));
    if (!n->dir)
        return LW_ENOMEM;
    if (def && want.def && def != want.def)
        return lw_fail(LW_EFORMAT, "%s: this is a %s, not %s", n->dir, class_name,
                       want.def->tensors);
    if (def) {
        LW_TRY(use(n, def));
        LW_TRY(def->read(p->config, lw_str_c(&p->config_path), n->arch));
    }
    LW_TRY(lw_model_weights_find(n->dir, &path));
    LW_TRY(lw_st_open(lw_str_c(&path), &f));
    if (!def)
        LW_TRY(recognise(n, f, want, class_name));
    else if (def->recognise && !def->recognise(f, n->arch))
        return unrecognised(f, (choice){.def = def}, NULL);
    n->config = lw_steal(&p->config);
    describe(n);
    LW_TRY(find_preparation(n));
    LW_TRY(lw_network_channels(n, n->dir, f));
    return load(n, f);
}

/* A folder of diffusers has its autoencoder in vae/. */
static int open_source(const char *source, bool ema, choice want, lw_network **out)
{
    LW_CLEANUP(lw_str_clear) lw_str vae = {0};
    LW_CLEANUP(lw_model_place_clear) lw_model_place p = {0};
    LW_CLEANUP(lw_network_close) lw_network *n = lw_calloc(1, sizeof *n);
    lw_place_kind kind;
    if (!n)
        return LW_ENOMEM;
    LW_TRY(lw_place_look(source, &kind));
    if (want.decoder && kind == LW_PLACE_PIPELINE)
        source = lw_path_join(&vae, source, "vae");
    LW_TRY(lw_model_find(source, ema, &p));
    LW_TRY(open_place(n, &p, want));
    *out = lw_steal(&n);
    return 0;
}

void lw_network_close(lw_network **pp)
{
    lw_network *n = *pp;
    if (!n)
        return;
    lw_store_free(&n->store);
    lw_json_drop(&n->config);
    lw_free(&n->arch);
    lw_free(&n->dir);
    lw_free(pp);
}

/* ---- specs ----------------------------------------------------------------------------------- */

static bool is_word(const lw_network_def *d)
{
    return d->recognise || !d->class_name;
}

/* Does spec begin with a word, "decoder" or a record's? Then what it chooses, and where in spec the
 * word ends. */
static bool find_word(const char *spec, choice *want, size_t *end)
{
    static const char decoder[] = "decoder";
    size_t n = strcspn(spec, ":");
    *end = n;
    *want = (choice){.decoder = n == strlen(decoder) && strncmp(spec, decoder, n) == 0};
    for (const lw_network_def *const *d = defs; *d && !want->def; d++)
        if (is_word(*d) && strncmp(spec, (*d)->name, n) == 0 && !(*d)->name[n])
            want->def = *d;
    return want->def != NULL || want->decoder;
}

/* WORD:FILE */
static int open_word(const char *spec, size_t end, bool ema, choice want, lw_network **out)
{
    if (spec[end] && spec[end + 1])
        return open_source(spec + end + 1, ema, want, out);
    return lw_fail(LW_EUSAGE, "%.*s needs its weights: %.*s:FILE.safetensors, or a folder",
                   (int)end, spec, (int)end, spec);
}

int lw_network_open(const char *source, bool ema, lw_network **out)
{
    choice want;
    size_t end;
    if (find_word(source, &want, &end) && source[end] && want.def != &lw_network_def_none)
        return open_word(source, end, ema, want, out);
    return open_source(source, ema, (choice){0}, out);
}

static int open_none(lw_network **out)
{
    *out = lw_calloc(1, sizeof **out);
    if (!*out)
        return LW_ENOMEM;
    **out = lw_network_of(&lw_network_def_none, NULL, NULL);
    return 0;
}

static int unknown_word(const char *spec)
{
    LW_CLEANUP(lw_str_clear) lw_str names = {0};
    const char *near = NULL;
    int least = LW_MAX((int)strlen(spec) / 3, 2) + 1;
    for (const lw_network_def *const *d = defs; *d; d++) {
        if (!is_word(*d))
            continue;
        lw_str_addf(&names, "%s%s", names.len ? ", " : "", (*d)->name);
        int far = lw_str_distance(spec, (*d)->name);
        near = far < least ? (*d)->name : near;
        least = LW_MIN(least, far);
    }
    return lw_fail(LW_EUSAGE,
                   near ? "encoder '%s': no such file or folder, and no encoder of that name (did "
                          "you mean '%s'?)"
                        : "encoder '%s': no such file or folder, and no encoder of that name "
                          "(names: %s)",
                   spec, near ? near : lw_str_c(&names));
}

static int open_encoder(const char *spec, lw_network **out)
{
    choice want;
    size_t end;
    if (!find_word(spec, &want, &end))
        return lw_path_exists(spec) ? open_source(spec, true, want, out) : unknown_word(spec);
    if (want.def && !want.def->recognise)
        return spec[end] ? unknown_word(spec) : open_none(out);
    return open_word(spec, end, true, want, out);
}

int lw_network_encodes(const lw_network *n)
{
    if (n->generator || n->def->decoder || n->channels > LW_MAX_CHANNELS)
        return lw_fail(LW_EFORMAT, "%s: a %s is no encoder of pictures", n->dir, n->name);
    return 0;
}

int lw_network_measures(const lw_network *n, const char *spec)
{
    if (n->features == 0)
        return lw_fail(LW_EUSAGE, "encoder %s has no features to measure distances in", spec);
    return 0;
}

int lw_encoder_open(const char *spec, lw_network **out)
{
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    LW_TRY(open_encoder(spec, &n));
    LW_TRY(lw_network_encodes(n));
    if (n->prepared)
        lw_network_fit_own(n);
    *out = lw_steal(&n);
    return 0;
}

static int cut_specs(const char *list, char *spec[LW_ENCODERS_MOST], int32_t *n)
{
    for (const char *at = list;; at++) {
        LW_CLEANUP(lw_str_clear) lw_str one = {0};
        const size_t len = lw_path_exists(list) ? strlen(list) : strcspn(at, ",");
        if (len == 0)
            return lw_fail(LW_EUSAGE, "encoders '%s': one of them has no name", list);
        if (*n == LW_ENCODERS_MOST)
            return lw_fail(LW_EUSAGE, "encoders '%s': more than %d", list, (int)LW_ENCODERS_MOST);
        lw_str_add_n(&one, at, len);
        spec[*n] = lw_strdup(lw_str_c(&one));
        if (one.failed || !spec[*n])
            return LW_ENOMEM;
        *n += 1;
        at += len;
        if (!*at)
            return 0;
    }
}

int lw_encoder_specs(const char *list, char *spec[LW_ENCODERS_MOST], int32_t *n)
{
    *n = 0;
    memset(spec, 0, LW_ENCODERS_MOST * sizeof spec[0]);
    int rc = cut_specs(list, spec, n);
    for (int32_t i = 0; rc < 0 && i < LW_ENCODERS_MOST; i++)
        lw_free(&spec[i]);
    *n = rc < 0 ? 0 : *n;
    return rc;
}
