/* SPDX-License-Identifier: Apache-2.0 */
/* Networks as other libraries' folders. */
#include "models/models.h"

#include <stdarg.h>
#include <string.h>

static const lw_network_def *const defs[] = {
#define NETWORK(x) &lw_network_def_##x,
#include "models/networks.def"
#undef NETWORK
};

int lw_network_form_note(lw_network_form *f, const char *fmt, ...)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    va_list args;
    va_start(args, fmt);
    lw_str_addv(&text, fmt, args);
    va_end(args);
    return json_array_append_new(f->notes, json_string(lw_str_c(&text))) == 0 ? 0 : LW_ENOMEM;
}

int lw_network_form_only(const lw_network *n, lw_library to, bool same, const char *what)
{
    return same ? 0
                : lw_fail(LW_EUNSUPPORTED, "%s: %s cannot be said in a folder of %s", n->dir, what,
                          lw_library_name[to]);
}

/* ---- the library's store --------------------------------------------------------------------- */

static bool equal_types(const lw_store_entry *a, const lw_store_entry *b)
{
    return a->type.rank == b->type.rank && a->count == b->count &&
           memcmp(a->type.dim, b->type.dim, sizeof *a->type.dim * (size_t)a->type.rank) == 0;
}

/* Values of entries that both have, by name or by place. */
static void copy_store(const lw_network *n, const lw_network_form *f, lw_store *to)
{
    LW_ASSERT(!f->by_place || lw_store_count(n->store) == lw_store_count(to),
              "%s: as many tensors by other names", n->dir);
    for (int32_t i = 0; i < lw_store_count(to); i++) {
        const lw_store_entry *e = lw_store_at(to, i);
        int32_t k = f->by_place ? i : lw_store_find(n->store, e->name);
        if (k >= 0 && equal_types(e, lw_store_at(n->store, k)))
            memcpy(lw_store_edit(to, i, LW_SLAB_PARAM), lw_store_data(n->store, k, LW_SLAB_PARAM),
                   sizeof(float) * (size_t)e->count);
        else
            LW_ASSERT(!f->by_place, "%s: '%s' has another shape", n->dir, e->name);
    }
}

static int make_store(const lw_network *n, lw_network_form *f)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_TRY(lw_store_new(true, &s));
    lw_network there = lw_network_of(n->def, f->arch, s);
    there.channels = n->channels;
    there.preparation = n->preparation;
    LW_TRY(lw_network_declare(&there, s));
    copy_store(n, f, s);
    if (f->fill)
        f->fill(n, s);
    lw_store_touch(s, LW_SLAB_PARAM);
    f->store = lw_steal(&s);
    return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int unwritten(const lw_network *n)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    for (size_t i = 0; i < LW_COUNT(defs); i++)
        if (defs[i]->write)
            lw_str_addf(&have, "%s%s", have.len ? ", " : "", defs[i]->name);
    return lw_fail(LW_EUNSUPPORTED,
                   "%s: a %s has names in one library only and is not converted; families that "
                   "are: %s",
                   n->dir, n->def->name, lw_str_c(&have));
}

static int add_preparation(const lw_network *n, lw_library to, lw_network_form *f)
{
    json_t *o = NULL;
    LW_TRY(lw_preparation_json(&n->preparation, to, &o));
    if (to == LW_LIBRARY_HF)
        f->preprocessor = o;
    else
        json_object_set_new(f->config, to == LW_LIBRARY_TIMM ? "pretrained_cfg" : "preprocess_cfg",
                            o);
    return 0;
}

/* Each library's word for pictures that are not RGB. */
static int put_channels(const lw_network *n, lw_library to, json_t *config)
{
    json_t *args = json_object_get(config, "model_args");
    if (n->channels == 3)
        return 0;
    LW_TRY(lw_network_form_only(n, to, to != LW_LIBRARY_OPEN_CLIP, "pictures that are not RGB"));
    if (to == LW_LIBRARY_HF)
        return json_object_set_new(config, "num_channels", json_integer(n->channels));
    if (!args)
        json_object_set_new(config, "model_args", args = json_object());
    return json_object_set_new(args, "in_chans", json_integer(n->channels)) == 0 ? 0 : LW_ENOMEM;
}

int lw_network_form_of(const lw_network *n, lw_library to, lw_network_form *out)
{
    bool open_clip = to == LW_LIBRARY_OPEN_CLIP;
    *out = (lw_network_form){.config_name = open_clip ? "open_clip_config.json" : "config.json",
                             .weights_name = open_clip ? "open_clip_model.safetensors"
                                                       : LW_WEIGHTS_HF,
                             .config = json_object(),
                             .notes = json_array()};
    if (!out->config || !out->notes)
        return LW_ENOMEM;
    if (!n->def->write)
        return unwritten(n);
    LW_TRY(n->def->write(n, to, out));
    LW_TRY(put_channels(n, to, out->config));
    LW_TRY(add_preparation(n, to, out));
    return out->arch ? make_store(n, out) : 0;
}

void lw_network_form_clear(lw_network_form *f)
{
    lw_json_drop(&f->config);
    lw_json_drop(&f->preprocessor);
    lw_json_drop(&f->notes);
    lw_store_free(&f->store);
    lw_free(&f->arch);
}
