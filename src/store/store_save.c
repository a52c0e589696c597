/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs to safetensors. */
#include "store/store_private.h"

int lw_store_write_header(const lw_store *s, const char *prefix, lw_st_writer *w)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0}, full = {0};
    for (size_t i = 0; i < s->n; i++) {
        store_disk d = lw_store_disk_of(&s->entry[i]);
        for (int k = 0; k < d.parts; k++) {
            full.len = 0;
            lw_str_addf(&full, "%s%s", prefix, lw_store_disk_name(&name, &s->entry[i], k));
            if (full.failed || name.failed)
                return LW_ENOMEM;
            LW_TRY(lw_st_writer_add(w, lw_str_c(&full), LW_ELEM_F32, d.rank, d.shape));
        }
    }
    return 0;
}

static int64_t largest_part(const lw_store *s)
{
    int64_t most = 1;
    for (size_t i = 0; i < s->n; i++)
        most = LW_MAX(most, lw_store_disk_of(&s->entry[i]).count);
    return most;
}

int lw_store_write_data(const lw_store *s, lw_slab slab, lw_st_writer *w)
{
    LW_CLEANUP(lw_free) float *buf = lw_calloc((size_t)largest_part(s), sizeof *buf);
    if (!buf)
        return LW_ENOMEM;
    const float *data = lw_store_host(s, slab);
    for (size_t i = 0; i < s->n; i++) {
        const lw_store_entry *e = &s->entry[i];
        store_disk d = lw_store_disk_of(e);
        for (int k = 0; k < d.parts; k++) {
            lw_store_to_disk(&d, data + e->offset + k * d.count, buf);
            LW_TRY(lw_st_writer_put(w, buf, sizeof(float) * (size_t)d.count));
        }
    }
    return 0;
}

int lw_store_save(const lw_store *s, lw_slab slab, const char *path, const char *const *meta,
                  size_t n_meta)
{
    if (!s->slab[slab])
        return lw_fail(LW_EUSAGE, "%s: this store has no such slab", path);
    LW_CLEANUP(lw_st_writer_free) lw_st_writer *w = NULL;
    LW_TRY(lw_st_writer_new(path, &w));
    LW_TRY(lw_st_writer_meta(w, "format", "pt"));
    for (size_t i = 0; i < n_meta; i++)
        LW_TRY(lw_st_writer_meta(w, meta[2 * i], meta[2 * i + 1]));
    LW_TRY(lw_store_write_header(s, "", w));
    LW_TRY(lw_store_write_data(s, slab, w));
    return lw_st_writer_finish(w);
}
