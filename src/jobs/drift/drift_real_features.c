/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding real pictures, and keeping what was encoded. */
#include "jobs/drift/drift_real_features.h"

#include <stdio.h>
#include <string.h>

struct lw_real_features {
    lw_device *dev;
    const lw_dataset *data;
    const lw_feature_set *keys;
    lw_real_features_opts o;
    lw_forward *encode;
    void *kept[LW_MAX_FEATURE_KEYS]; /* [data->n][slots * c], or all NULL */
    size_t bytes;                    /* of all features */
    bool keeps;
    /* the fetch or encoding going on */
    const int64_t *rows;
    int64_t first, step, draws; /* draws of the step before rows[0] */
    void *const *dst;
    float *images; /* of rows from `first` on */
};

/* Of one picture. */
static size_t row_bytes(const lw_real_features *r, int k)
{
    const lw_feature_key *key = &r->keys->key[k];
    return (size_t)key->slots * (size_t)key->c * lw_dtype_size(r->o.type);
}
static size_t key_bytes(const lw_real_features *r, int k)
{
    return (size_t)r->data->n * row_bytes(r, k);
}

static int build(lw_real_features *r, const lw_network *e)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_val x = lw_input(g, "images", lw_type_of(LW_F32, 4, r->o.batch, r->data->h, r->data->w, 3));
    lw_taps taps;
    lw_val v[LW_MAX_FEATURE_KEYS];
    lw_network_append(e, g, (lw_network_in){.x = x}, &taps);
    lw_features_build(g, r->keys, x, &taps, v);
    for (int k = 0; k < r->keys->n; k++)
        lw_graph_output_add(g, r->keys->key[k].name,
                            r->o.type == LW_F32 ? v[k] : lw_cast(g, v[k], r->o.type, LW_NOVAL),
                            LW_NOVAL);
    const lw_compile_opts o = {.opt = 1, .precision = (lw_num)r->o.precision};
    return lw_forward_of(r->dev, &g, &o, LW_SLAB_PARAM, e->name, &r->encode);
}

/* ---- encoding a batch of rows ---------------------------------------------------------------- */

static void load_task(void *arg, int64_t i, int worker)
{
    lw_real_features *r = arg;
    int64_t at = r->first + i, row = r->rows ? r->rows[at] : at;
    bool flip = r->o.flip && lw_rng_word(lw_rng_key_of(r->o.seed, lw_hash_name("drift.flip")),
                                         (uint32_t)r->step, (uint64_t)(r->draws + at), 0) &
                                 1u;
    (void)worker;
    lw_data_get(r->data, row, flip, r->images + i * r->data->h * r->data->w * 3);
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

int lw_real_features_fill(lw_real_features *r, const lw_observer *obs)
{
    for (int k = 0; k < r->keys->n && r->keeps; k++) {
        r->kept[k] = lw_bulk_alloc(key_bytes(r, k));
        if (!r->kept[k])
            return LW_ENOMEM;
    }
    return r->keeps ? encode_all(r, NULL, r->data->n, r->kept, obs) : 0;
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
    LW_TRY(build(r, e));
    r->bytes = (size_t)(lw_features_floats(keys) * d->n) * lw_dtype_size(o->type);
    r->keeps = !o->flip && (int64_t)r->bytes <= o->cache_bytes;
    *out = lw_steal(&r);
    return 0;
}

void lw_real_features_free(lw_real_features **pp)
{
    lw_real_features *r = *pp;
    if (!r)
        return;
    for (int k = 0; k < r->keys->n; k++)
        if (r->kept[k])
            lw_bulk_free(&r->kept[k], key_bytes(r, k));
    lw_forward_free(&r->encode);
    lw_free(pp);
}

lw_real_features_cost lw_real_features_get_cost(const lw_real_features *r, int64_t rows)
{
    int64_t batches = (rows + r->o.batch - 1) / r->o.batch;
    return (lw_real_features_cost){r->bytes, r->keeps,
                                   lw_forward_info(r->encode).flops * (double)batches};
}

/* ---- fetching -------------------------------------------------------------------------------- */

static void copy_task(void *arg, int64_t i, int worker)
{
    lw_real_features *r = arg;
    (void)worker;
    for (int k = 0; k < r->keys->n; k++) {
        size_t row = row_bytes(r, k);
        memcpy((char *)r->dst[k] + (size_t)i * row,
               (const char *)r->kept[k] + (size_t)r->rows[i] * row, row);
    }
}

int lw_real_features_fetch(lw_real_features *r, int64_t step, int64_t first, const int64_t *rows,
                           int64_t n, void *const *dst)
{
    r->step = step;
    r->draws = first;
    if (!r->keeps)
        return encode_all(r, rows, n, dst, NULL);
    r->rows = rows;
    r->dst = dst;
    lw_pool_run(r->dev->pool, n, copy_task, r);
    return 0;
}
