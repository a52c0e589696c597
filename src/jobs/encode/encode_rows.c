/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures are encoded, and how they are found again. */
#include "jobs/encode/encode_rows.h"

/* ---- opening --------------------------------------------------------------------------------- */

/* --data, --manifest, or a manifest of files below the folder of --data. */
static int make_spec(const lw_encode_config *c, lw_str *out)
{
    if (!c->data && !c->manifest)
        return lw_fail(LW_EUSAGE, "no pictures given: --data SPEC or --manifest FILE says which");
    if (c->manifest)
        return lw_data_listed(c->manifest, c->data, out);
    lw_str_add(out, c->data);
    return out->failed ? LW_ENOMEM : 0;
}

/* Rows of a split of `have`. */
static int expect_rows(const lw_encode_config *c, int64_t have, lw_encode_rows *r)
{
    int64_t most = c->limit ? c->limit : have;
    r->n = c->num_images ? c->num_images : most;
    return most <= have && r->n <= most
               ? 0
               : lw_fail(LW_EUSAGE, "data '%s': %lld pictures are asked for, there are %lld",
                         lw_str_c(&r->spec), (long long)LW_MAX(most, r->n),
                         (long long)LW_MIN(most, have));
}

static int open_data(const lw_encode_config *c, const lw_network *net, lw_pool *pool,
                     const lw_observer *obs, lw_encode_rows *r)
{
    lw_data_opts o = lw_network_data(net, c->image_size);
    const lw_preparation *p = o.preparation;
    bool guess = c->dry_run && p; /* prepared pictures are made for this call: one will do */
    o.split = (lw_split)c->split;
    o.count = guess ? 1 : c->limit;
    o.num_images = guess ? 0 : c->num_images;
    o.seed = c->seed;
    o.on_error = (lw_on_error)c->on_error;
    o.pool = pool;
    o.obs = obs;
    if (p && c->image_size)
        return lw_fail(LW_EUSAGE, "--image-size %d: %s says itself that its pictures are %dx%d",
                       (int)c->image_size, net->dir, (int)p->width, (int)p->height);
    LW_TRY(make_spec(c, &r->spec));
    LW_TRY(lw_data_open(lw_str_c(&r->spec), &o, &r->data));
    r->n = r->data->n;
    return guess ? expect_rows(c, r->data->split_rows, r) : 0;
}

/* ---- what is said of them -------------------------------------------------------------------- */

int lw_encode_rows_open(const lw_encode_config *c, const lw_network *net, lw_pool *pool,
                        const lw_observer *obs, lw_encode_rows *out)
{
    LW_TRY(open_data(c, net, pool, obs, out));
    out->hash = lw_data_rows_hash(out->data);
    return lw_data_listing(out->data, &out->list);
}

void lw_encode_rows_clear(lw_encode_rows *r)
{
    json_decref(r->list);
    lw_data_close(&r->data);
    lw_str_clear(&r->spec);
}

int lw_encode_rows_save(lw_encode_rows *r, const lw_encode_file *f)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_str_addf(&path, "%s.json", f->path);
    if (path.failed || json_object_set(r->list, "about", (json_t *)f->about) < 0 ||
        json_object_set_new(r->list, "device", json_string(f->device)) < 0)
        return LW_ENOMEM;
    return lw_json_save(lw_str_c(&path), r->list);
}
