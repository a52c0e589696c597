/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding real pictures, and keeping what was encoded. */
#include "train/pictures/train_real_features.h"

#include <stdio.h>
#include <string.h>

struct lw_real_features {
    lw_device *dev;
    const lw_dataset *data;
    const lw_feature_set *keys;
    lw_real_features_opts o;
    lw_forward *encode;                    /* NULL: all are kept */
    lw_plan_info plan;                     /* of it */
    const void *kept[LW_MAX_FEATURE_KEYS]; /* [data->n][slots * c], or all NULL */
    int32_t batch;                         /* rows encoded at a time */
    int64_t n;                             /* rows, mirrored ones too */
    size_t bytes;                          /* of all features */
    bool keeps;
    /* where they are kept */
    lw_str title, path;
    uint64_t key;
    size_t row[LW_MAX_FEATURE_KEYS]; /* bytes of a picture's */
    lw_features_file file;
    const lw_observer *obs; /* of filling */
    /* the fetch or encoding going on */
    const int64_t *rows; /* NULL: all, in order */
    int64_t first;
    void *const *dst;
    float *images; /* of rows from `first` on */
};

static uint64_t key_of(const lw_real_features *r, const lw_network *e, const lw_graph *g)
{
    return lw_features_key(
        r->data,
        &(lw_features_made){.flip = r->o.flip,
                            .weights = e->store ? lw_store_hash(e->store, LW_SLAB_PARAM) : 0,
                            .graph = lw_graph_hash(g),
                            .precision = r->o.precision,
                            .conv = r->o.conv,
                            .isa = r->dev->isa});
}

static int describe(lw_real_features *r, const lw_network *e)
{
    const lw_dataset *d = r->data;
    char fit[64];
    lw_encoder_fit_text(e, d->h, d->w, fit);
    lw_str_addf(&r->title, "features of %s %s pictures of %dx%d%s%s by %s%s%s%s:", d->spec,
                lw_split_name(d->split), (int)d->h, (int)d->w, *fit ? " " : "", fit, e->name,
                e->dir ? " of " : "", e->dir ? e->dir : "", r->o.type == LW_F32 ? "" : " in bf16");
    for (int k = 0; k < r->keys->n; k++) {
        const lw_feature_key *key = &r->keys->key[k];
        lw_str_addf(&r->title, " %s", key->name);
        r->row[k] = (size_t)key->slots * (size_t)key->c * lw_dtype_size(r->o.type);
    }
    return r->title.failed ? lw_fail(LW_ENOMEM, "no memory for a name of features") : 0;
}

static lw_features_spec spec_of(const lw_real_features *r)
{
    return (lw_features_spec){.key = r->key,
                              .title = lw_str_c(&r->title),
                              .rows = r->n,
                              .row = r->row,
                              .arrays = r->keys->n,
                              .together = r->o.disk_bytes,
                              .pool = r->dev->pool,
                              .obs = r->obs};
}

static int build(lw_real_features *r, const lw_network *e)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_val x = lw_input(g, "images",
                        lw_type_of(LW_F32, 4, r->batch, r->data->h, r->data->w, r->data->channels));
    lw_taps taps;
    lw_val v[LW_MAX_FEATURE_KEYS];
    if (r->o.decoder) {
        lw_network_append(r->o.decoder, g, (lw_network_in){.x = x}, &taps);
        x = lw_tap_find(&taps, "y");
    }
    lw_network_append(e, g, (lw_network_in){.x = x}, &taps);
    lw_features_build(g, r->keys, x, &taps, v);
    for (int k = 0; k < r->keys->n; k++)
        lw_graph_output_add(g, r->keys->key[k].name,
                            r->o.type == LW_F32 ? v[k] : lw_cast(g, v[k], r->o.type, LW_NOVAL),
                            LW_NOVAL);
    LW_TRY(lw_graph_error(g));
    r->key = key_of(r, e, g);
    const lw_compile_opts o = {.opt = 1, .precision = (lw_num)r->o.precision};
    return lw_forward_of(r->dev, &g, &o, LW_SLAB_PARAM, e->name, &r->encode);
}

/* ---- encoding a batch of rows ---------------------------------------------------------------- */

static void load_task(void *arg, int64_t i, int worker)
{
    lw_real_features *r = arg;
    int64_t at = r->first + i, row = r->rows ? r->rows[at] : at, n = r->data->n;
    (void)worker;
    lw_data_get(r->data, row % n, row >= n, r->images + i * lw_data_row_size(r->data));
}

static int load(void *self, int64_t first, int64_t n, void *images)
{
    lw_real_features *r = self;
    r->first = first;
    r->images = images;
    lw_pool_run(r->dev->pool, n, load_task, r);
    return 0;
}

static int encode_all(lw_real_features *r, const int64_t *rows, int64_t n, void *const *dst,
                      const lw_observer *obs)
{
    lw_feed feed[1 + LW_MAX_FEATURE_KEYS] = {{.name = "images", .fill = load, .self = r}};
    for (int k = 0; k < r->keys->n; k++)
        feed[1 + k] = (lw_feed){.name = r->keys->key[k].name, .out = dst[k]};
    r->rows = rows;
    return lw_forward_rows(r->encode, "encode", n, feed, 1 + r->keys->n, obs);
}

/* ---- keeping --------------------------------------------------------------------------------- */

static int make_all(void *self, void *const *array)
{
    lw_real_features *r = self;
    return encode_all(r, NULL, r->n, array, r->obs);
}

int lw_real_features_fill(lw_real_features *r, const lw_observer *obs)
{
    r->obs = obs;
    const lw_features_spec spec = spec_of(r);
    if (!r->keeps)
        return 0;
    LW_TRY(lw_features_have(&spec, make_all, r, &r->file));
    memcpy(r->kept, r->file.array, (size_t)r->keys->n * sizeof r->kept[0]);
    lw_forward_free(&r->encode);
    return 0;
}

int lw_real_features_new(lw_device *dev, const lw_dataset *d, const lw_network *e,
                         const lw_feature_set *keys, const lw_real_features_opts *o,
                         lw_real_features **out)
{
    LW_CLEANUP(lw_real_features_free) lw_real_features *r = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    r->dev = dev;
    r->data = d;
    r->keys = keys;
    r->o = *o;
    int32_t h = e->fit.h > 0 ? e->fit.h : d->h, w = e->fit.w > 0 ? e->fit.w : d->w;
    r->batch = o->decoder ? 4 : h * w < 128 * 128 ? 64 : 16;
    LW_TRY(describe(r, e));
    LW_TRY(build(r, e));
    r->plan = lw_forward_info(r->encode);
    r->n = o->flip ? 2 * d->n : d->n;
    r->bytes = (size_t)(lw_features_floats(keys) * r->n) * lw_dtype_size(o->type);
    r->keeps = (int64_t)r->bytes <= o->cache_bytes;
    const lw_features_spec spec = spec_of(r);
    lw_features_path(&spec, &r->path);
    *out = lw_steal(&r);
    return 0;
}

void lw_real_features_free(lw_real_features **pp)
{
    lw_real_features *r = *pp;
    if (!r)
        return;
    lw_features_close(&r->file);
    lw_str_clear(&r->title);
    lw_str_clear(&r->path);
    lw_forward_free(&r->encode);
    lw_free(pp);
}

/* In a file of the cache directory, or NULL: in memory. */
static const char *file_of(const lw_real_features *r)
{
    const char *slash = strrchr(lw_str_c(&r->path), '/');
    return slash && r->o.disk_bytes >= (int64_t)r->bytes ? slash + 1 : NULL;
}

static void say_where(const lw_real_features *r, char *buf, size_t size)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    const char *path = lw_str_c(&r->path), *file = file_of(r);
    char left[32];
    uint64_t bytes;
    if (!file) {
        snprintf(buf, size, "in memory");
        return;
    }
    lw_path_parent(path, &dir);
    if (lw_path_exists(path))
        snprintf(buf, size, "on disk as %s, made before", file);
    else if (lw_disk_free(lw_str_c(&dir), &bytes) == 0)
        snprintf(buf, size, "on disk as %s, to be made (%s free)", file, lw_fmt_bytes(left, bytes));
    else
        snprintf(buf, size, "on disk as %s, to be made", file);
    lw_errclear();
}

lw_real_features_cost lw_real_features_get_cost(const lw_real_features *r, int64_t rows)
{
    int64_t batches = (rows + r->batch - 1) / r->batch;
    const size_t plan = r->plan.frame_bytes + r->plan.derived_bytes;
    lw_real_features_cost c = {.bytes = r->bytes,
                               .held = !r->keeps    ? plan
                                       : file_of(r) ? 0
                                                    : r->bytes,
                               .kept = r->keeps,
                               .flops = r->plan.flops * (double)batches};
    if (r->keeps)
        say_where(r, c.where, sizeof c.where);
    return c;
}

void lw_real_features_note(const lw_real_features *r, char note[LW_REAL_FEATURES_NOTE])
{
    const lw_real_features_cost c = lw_real_features_get_cost(r, 0);
    const char *mirrored = r->o.flip ? " and their mirror images" : "";
    char size[32];
    long long mib = (long long)((c.bytes + (1 << 20) - 1) >> 20);
    lw_fmt_bytes(size, c.bytes);
    if (c.kept)
        snprintf(note, LW_REAL_FEATURES_NOTE, "%s, of %lld pictures%s, kept %s", size,
                 (long long)r->data->n, mirrored, c.where);
    else
        snprintf(note, LW_REAL_FEATURES_NOTE,
                 "encoded again in every step, for %s of %lld pictures%s are not kept; "
                 "--feature-cache %lld would keep them%s",
                 size, (long long)r->data->n, mirrored, mib,
                 r->o.flip ? ", half of it with --no-flip" : "");
}

/* ---- fetching -------------------------------------------------------------------------------- */

static void copy_task(void *arg, int64_t i, int worker)
{
    lw_real_features *r = arg;
    (void)worker;
    for (int k = 0; k < r->keys->n; k++) {
        size_t row = r->row[k];
        if (!r->dst[k])
            continue;
        memcpy((char *)r->dst[k] + (size_t)i * row,
               (const char *)r->kept[k] + (size_t)r->rows[i] * row, row);
    }
}

int lw_real_features_fetch(lw_real_features *r, const int64_t *rows, int64_t n, void *const *dst)
{
    if (!r->keeps)
        return encode_all(r, rows, n, dst, NULL);
    r->rows = rows;
    r->dst = dst;
    lw_pool_run(r->dev->pool, n, copy_task, r);
    return 0;
}
