/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs to safetensors. */
#include "store/store_private.h"

#include <string.h>

/* Does an earlier piece give rows of the same tensor? */
static bool is_first(const store_pieces *p, size_t i)
{
    for (size_t k = 0; p->of[i].rule->file_rows.of > 0 && k < i; k++)
        if (strcmp(p->of[k].name, p->of[i].name) == 0)
            return false;
    return true;
}

static int write_header(const store_pieces *p, const char *prefix, lw_st_writer *w)
{
    LW_CLEANUP(lw_str_clear) lw_str full = {0};
    for (size_t i = 0; i < p->n; i++) {
        const store_piece *q = &p->of[i];
        if (!is_first(p, i))
            continue;
        full.len = 0;
        lw_str_addf(&full, "%s%s", prefix, q->name);
        if (full.failed)
            return LW_ENOMEM;
        LW_TRY(lw_st_writer_add(w, lw_str_c(&full), LW_ELEM_F32, q->rank, q->shape));
    }
    return 0;
}

static int64_t values_of(const store_piece *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->rank; i++)
        n *= p->shape[i];
    return n;
}

/* One tensor of the file, of all the pieces that have its name; buf NULL: are they all of it? */
static int join(const store_pieces *p, size_t first, const float *data, float *buf)
{
    int64_t left = values_of(&p->of[first]);
    for (size_t i = first; i < p->n; i++) {
        const store_piece *q = &p->of[i];
        bool same = i == first ||
                    (q->rule->file_rows.of > 0 && strcmp(q->name, p->of[first].name) == 0);
        if (!same)
            continue;
        left -= q->count;
        if (q->rule->values == LW_VALUES_CENTRE)
            left = -1;
        if (buf)
            lw_store_piece_write(q, data + q->entry->offset, buf);
    }
    return left == 0 ? 0
                     : lw_fail(LW_EUNSUPPORTED, "tensor '%s' cannot be made from this model",
                               p->of[first].name);
}

static int check(const store_pieces *p, int64_t *largest)
{
    *largest = 1;
    for (size_t i = 0; i < p->n; i++) {
        if (is_first(p, i))
            LW_TRY(join(p, i, NULL, NULL));
        *largest = LW_MAX(*largest, values_of(&p->of[i]));
    }
    return 0;
}

static int write_data(const lw_store *s, lw_slab slab, const store_pieces *p, lw_st_writer *w)
{
    int64_t largest;
    LW_TRY(check(p, &largest));
    LW_CLEANUP(lw_free) float *buf = lw_calloc((size_t)largest, sizeof *buf);
    if (!buf)
        return LW_ENOMEM;
    const float *data = lw_store_host(s, slab);
    for (size_t i = 0; i < p->n; i++) {
        if (!is_first(p, i))
            continue;
        LW_TRY(join(p, i, data, buf));
        LW_TRY(lw_st_writer_put(w, buf, sizeof(float) * (size_t)values_of(&p->of[i])));
    }
    return 0;
}

int lw_store_write_header(const lw_store *s, const char *prefix, lw_st_writer *w)
{
    LW_CLEANUP(lw_store_pieces_clear) store_pieces p = {0};
    LW_TRY(lw_store_pieces_of(s, NULL, &p));
    return write_header(&p, prefix, w);
}

int lw_store_write_data(const lw_store *s, lw_slab slab, lw_st_writer *w)
{
    LW_CLEANUP(lw_store_pieces_clear) store_pieces p = {0};
    LW_TRY(lw_store_pieces_of(s, NULL, &p));
    return write_data(s, slab, &p, w);
}

int lw_store_save_as(const lw_store *s, lw_slab slab, const char *path, const lw_naming *naming,
                     const char *const *meta, size_t n_meta)
{
    LW_CLEANUP(lw_store_pieces_clear) store_pieces p = {0};
    LW_CLEANUP(lw_st_writer_free) lw_st_writer *w = NULL;
    int64_t largest;
    if (!s->slab[slab])
        return lw_fail(LW_EUSAGE, "%s: this store has no such slab", path);
    LW_TRY(lw_store_pieces_of(s, naming, &p));
    if (check(&p, &largest) < 0)
        return lw_fail(LW_EUNSUPPORTED, "%s: %s in the names of %s", path, lw_errmsg(),
                       naming->name);
    LW_TRY(lw_st_writer_new(path, &w));
    LW_TRY(lw_st_writer_meta(w, "format", "pt"));
    for (size_t i = 0; i < n_meta; i++)
        LW_TRY(lw_st_writer_meta(w, meta[2 * i], meta[2 * i + 1]));
    LW_TRY(write_header(&p, "", w));
    LW_TRY(write_data(s, slab, &p, w));
    return lw_st_writer_finish(w);
}

int lw_store_save(const lw_store *s, lw_slab slab, const char *path, const char *const *meta,
                  size_t n_meta)
{
    return lw_store_save_as(s, slab, path, NULL, meta, n_meta);
}
