/* SPDX-License-Identifier: Apache-2.0 */
/* The same network without its noise, and which answers would be right. */
#include <string.h>

#include "jobs/mc/mc_parts.h"

enum { BATCH = 16 };

static int fill(void *self, int64_t first, int64_t n, void *dst)
{
    return lw_mc_fill(self, first, n, dst);
}

int lw_mc_plain(mc_model *m, const char *output, float **out, int32_t *width)
{
    LW_CLEANUP(lw_forward_free) lw_forward *f = NULL;
    const lw_network plain = lw_network_plain(m->net);
    const lw_forward_opts o = {.batch = (int32_t)LW_MIN(m->n, (int64_t)BATCH),
                               .height = m->data->h,
                               .width = m->data->w,
                               .output = output,
                               .precision = m->c->precision};
    LW_TRY(lw_forward_new(m->dev, &plain, &o, &f));
    const lw_port *p = lw_forward_port(f, lw_forward_count(f) - 1);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)m->n * (size_t)p->row, sizeof *x);
    if (!x)
        return LW_ENOMEM;
    const lw_feed feed[] = {{.name = "x", .fill = fill, .self = m}, {.name = p->name, .out = x}};
    LW_TRY(lw_forward_rows(f, m->out->name, m->n, feed, LW_COUNT(feed), m->obs));
    *width = (int32_t)p->row;
    *out = lw_steal(&x);
    return 0;
}

/* ---- classes ----------------------------------------------------------------------------------- */

/* The entry of --class-map for picture i: by its name, the file's, or its class. */
static const char *map_key(const mc_model *m, const json_t *map, int64_t i)
{
    const char *slash = strrchr(m->name[i], '/');
    const char *keys[] = {m->name[i], slash ? slash + 1 : m->name[i],
                          m->data->class_names[m->data->labels[i]]};
    for (size_t k = 0; k < LW_COUNT(keys); k++)
        if (json_object_get(map, keys[k]))
            return keys[k];
    return NULL;
}

static int by_map(const mc_model *m, int32_t outputs, int32_t *want)
{
    const char *path = m->c->class_map;
    LW_CLEANUP(lw_json_drop) json_t *map = NULL;
    LW_TRY(lw_json_load(path, &map));
    if (!json_is_object(map))
        return lw_fail(LW_EFORMAT, "%s: no JSON object {\"CLASS\": number, ..}", path);
    for (int64_t i = 0; i < m->n; i++) {
        const char *key = map_key(m, map, i);
        if (!key)
            return lw_fail(LW_EFORMAT,
                           "%s: no entry for '%s': neither its name nor its class '%s' is there",
                           path, m->name[i], m->data->class_names[m->data->labels[i]]);
        LW_TRY(lw_json_get_i32_in(map, path, key, 0, outputs - 1, &want[i]));
    }
    return 0;
}

int lw_mc_labels(const mc_model *m, int32_t outputs, int32_t *want, bool *have)
{
    *have = true;
    if (m->c->class_map)
        return by_map(m, outputs, want);
    *have = m->data->labelled && m->data->classes == outputs;
    for (int64_t i = 0; *have && i < m->n; i++)
        want[i] = m->data->labels[i];
    return 0;
}
