/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures are encoded, and how they are found again. */
#include "jobs/encode/encode_rows.h"

#include <stdlib.h>

/* ---- opening --------------------------------------------------------------------------------- */

static int open_data(const lw_encode_config *c, const lw_network *net, lw_pool *pool,
                     const lw_observer *obs, lw_dataset **out)
{
    const lw_preparation *p = net->prepared && net->preparation.height > 0 ? &net->preparation
                                                                           : NULL;
    const lw_data_opts o = {.image_size = p               ? 0
                                          : c->image_size ? c->image_size
                                                          : net->image_size,
                            .preparation = p,
                            .split = (lw_split)c->split,
                            .count = c->limit,
                            .pool = pool,
                            .obs = obs};
    if (p && c->image_size)
        return lw_fail(LW_EUSAGE, "--image-size %d: %s says itself that its pictures are %dx%d",
                       (int)c->image_size, net->dir, (int)p->width, (int)p->height);
    return lw_data_open(c->data, &o, out);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void draw(const lw_encode_config *c, lw_encode_rows *r)
{
    lw_rng_key key = lw_rng_key_of(c->seed, lw_hash_name("encode.rows"));
    for (int64_t i = 0; i < r->n; i++)
        r->row[i] = c->num_images
                        ? (int64_t)lw_rng_permute(key, 0, (uint64_t)r->data->n, (uint64_t)i)
                        : i;
    qsort(r->row, (size_t)r->n, sizeof *r->row, ascending);
}

int lw_encode_rows_open(const lw_encode_config *c, const lw_network *net, lw_pool *pool,
                        const lw_observer *obs, lw_encode_rows *out)
{
    LW_TRY(open_data(c, net, pool, obs, &out->data));
    out->n = c->num_images ? c->num_images : out->data->n;
    if (out->n > out->data->n)
        return lw_fail(LW_EUSAGE, "--num-images %lld: %s has %lld %s pictures",
                       (long long)c->num_images, c->data, (long long)out->data->n,
                       lw_split_name((lw_split)c->split));
    out->row = lw_calloc((size_t)out->n, sizeof *out->row);
    out->label = lw_calloc((size_t)out->n, sizeof *out->label);
    if (!out->row || !out->label)
        return LW_ENOMEM;
    draw(c, out);
    for (int64_t i = 0; i < out->n; i++)
        out->label[i] = out->data->labels[out->row[i]];
    out->hash = lw_hash64(out->row, (size_t)out->n * sizeof *out->row);
    return 0;
}

void lw_encode_rows_clear(lw_encode_rows *r)
{
    lw_data_close(&r->data);
    lw_free(&r->row);
    lw_free(&r->label);
}

/* ---- OUTPUT.json ----------------------------------------------------------------------------- */

static json_t *list(const lw_encode_rows *r, bool labels)
{
    json_t *a = json_array();
    for (int64_t i = 0; i < r->n; i++)
        json_array_append_new(
            a, json_integer(labels ? r->label[i] : (json_int_t)(r->data->first + r->row[i])));
    return a;
}

int lw_encode_rows_save(const lw_encode_rows *r, const lw_encode_file *f)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    json_t *names = json_array();
    for (int32_t k = 0; k < r->data->classes; k++)
        json_array_append_new(names, json_string(r->data->class_names[k]));
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:I, s:o, s:o, s:o, s:O}", "num_images", (json_int_t)r->n, "rows",
                          list(r, false), "labels", list(r, true), "class_names", names, "about",
                          f->about);
    lw_str_addf(&path, "%s.json", f->path);
    return j && !path.failed ? lw_json_save(lw_str_c(&path), j) : LW_ENOMEM;
}
