/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs to safetensors. */
#include "store/store_private.h"

#include <math.h>
#include <string.h>

/* Does an earlier piece give rows of the same tensor? */
static bool is_first(const store_pieces *p, size_t i)
{
    for (size_t k = 0; p->of[i].rule->file_rows.of > 0 && k < i; k++)
        if (strcmp(p->of[k].name, p->of[i].name) == 0)
            return false;
    return true;
}

static int write_header(const store_pieces *p, const char *prefix, lw_elem as, lw_st_writer *w)
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
        LW_TRY(lw_st_writer_add(w, lw_str_c(&full), as, q->rank, q->shape));
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

/* largest: values of a tensor that must be put together in memory first; 1: none is. */
static int check(const store_pieces *p, int64_t *largest)
{
    *largest = 1;
    for (size_t i = 0; i < p->n; i++) {
        if (is_first(p, i))
            LW_TRY(join(p, i, NULL, NULL));
        if (!lw_store_piece_as_it_is(&p->of[i]))
            *largest = LW_MAX(*largest, values_of(&p->of[i]));
    }
    return 0;
}

/* Values as the file's type into `to`, which may be x. */
static int narrow(const store_piece *p, const float *x, int64_t n, lw_elem as, void *to)
{
    bool was = true, is = true;
    for (int64_t i = 0; i < n; i++)
        was = was && isfinite(x[i]);
    LW_TRY(lw_elem_from_f32(as, x, n, to));
    for (int64_t i = 0; i < n && was; i++) {
        float back;
        lw_elem_to_f32(as, (const char *)to + (size_t)i * lw_elem_size(as), 1, &back);
        is = is && isfinite(back);
    }
    return is ? 0
              : lw_fail(LW_EUNSUPPORTED, "tensor '%s' has values that do not fit into %s", p->name,
                        lw_elem_name(as));
}

static int write_data(const lw_store *s, lw_slab slab, const store_pieces *p, lw_elem as,
                      lw_st_writer *w)
{
    int64_t largest, narrowed = 1;
    LW_TRY(check(p, &largest));
    for (size_t i = 0; as != LW_ELEM_F32 && i < p->n; i++)
        narrowed = LW_MAX(narrowed, values_of(&p->of[i]));
    LW_CLEANUP(lw_free) float *buf = lw_calloc((size_t)largest, sizeof *buf);
    LW_CLEANUP(lw_free)
    void *other = as == LW_ELEM_F32 ? NULL : lw_calloc((size_t)narrowed, lw_elem_size(as));
    if (!buf || (as != LW_ELEM_F32 && !other))
        return LW_ENOMEM;
    const float *data = lw_store_host(s, slab);
    for (size_t i = 0; i < p->n; i++) {
        if (!is_first(p, i))
            continue;
        const store_piece *q = &p->of[i];
        const float *x = buf;
        int64_t n = values_of(q);
        if (lw_store_piece_as_it_is(q))
            x = data + q->entry->offset + q->at;
        else
            LW_TRY(join(p, i, data, buf));
        if (as == LW_ELEM_F32) {
            LW_TRY(lw_st_writer_put(w, x, sizeof *x * (size_t)n));
            continue;
        }
        LW_TRY(narrow(q, x, n, as, other));
        LW_TRY(lw_st_writer_put(w, other, lw_elem_size(as) * (size_t)n));
    }
    return 0;
}

/* ---- BatchNorm's counters ---------------------------------------------------------------------*/

/* torch keeps a number of batches beside every running variance, and libraries miss it where a file
 * has none. Nothing that is computed here reads it: it is 0. */
static int add_counters(const store_pieces *p, lw_st_writer *w, bool values)
{
    static const char variance[] = "running_var";
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    const int64_t none = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (!lw_str_ends(p->of[i].name, variance))
            continue;
        name.len = 0;
        lw_str_add_n(&name, p->of[i].name, strlen(p->of[i].name) - strlen(variance));
        lw_str_add(&name, "num_batches_tracked");
        if (name.failed)
            return LW_ENOMEM;
        LW_TRY(values ? lw_st_writer_put(w, &none, sizeof none)
                      : lw_st_writer_add(w, lw_str_c(&name), LW_ELEM_I64, 0, NULL));
    }
    return 0;
}

/* ---- whole files ----------------------------------------------------------------------------- */

int lw_store_write_header(const lw_store *s, const char *prefix, lw_st_writer *w)
{
    LW_CLEANUP(lw_store_pieces_clear) store_pieces p = {0};
    LW_TRY(lw_store_pieces_of(s, NULL, &p));
    return write_header(&p, prefix, LW_ELEM_F32, w);
}

int lw_store_write_data(const lw_store *s, lw_slab slab, lw_st_writer *w)
{
    LW_CLEANUP(lw_store_pieces_clear) store_pieces p = {0};
    LW_TRY(lw_store_pieces_of(s, NULL, &p));
    return write_data(s, slab, &p, LW_ELEM_F32, w);
}

int lw_store_save_as(const lw_store *s, lw_slab slab, const char *path, const lw_naming *naming,
                     lw_elem as, const char *const *meta, size_t n_meta)
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
    LW_TRY(write_header(&p, "", as, w));
    LW_TRY(add_counters(&p, w, false));
    LW_TRY(write_data(s, slab, &p, as, w));
    LW_TRY(add_counters(&p, w, true));
    return lw_st_writer_finish(w);
}

int lw_store_save(const lw_store *s, lw_slab slab, const char *path, const char *const *meta,
                  size_t n_meta)
{
    return lw_store_save_as(s, slab, path, NULL, LW_ELEM_F32, meta, n_meta);
}
