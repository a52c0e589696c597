/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that others made: embeddings of texts, numbers of pictures; what a model's file holds beside
 * its weights. */
#include <math.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

/* Elements as doubles: f64 as they are. */
static int take(const char *path, lw_elem type, const void *data, int64_t n, double **out)
{
    LW_CLEANUP(lw_free) double *v = lw_calloc((size_t)n + 1, sizeof *v);
    size_t size = lw_elem_size(type);
    if (!v)
        return LW_ENOMEM;
    if (type == LW_ELEM_F64 && n > 0)
        memcpy(v, data, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        float f;
        if (type != LW_ELEM_F64) {
            lw_elem_to_f32(type, (const char *)data + (size_t)i * size, 1, &f);
            v[i] = (double)f;
        }
        if (!isfinite(v[i]))
            return lw_fail(LW_EFORMAT, "%s: element %lld is not finite", path, (long long)i);
    }
    *out = lw_steal(&v);
    return 0;
}

static int take_shape(const char *path, int rank, const int64_t *from, int *rank_out,
                      int64_t shape[3])
{
    char text[192];
    if (rank < 1 || rank > 3)
        return lw_fail(LW_EFORMAT, "%s: an array of shape %s: one to three dimensions are meant",
                       path, lw_shape_text(text, rank, from));
    *rank_out = rank;
    for (int i = 0; i < 3; i++)
        shape[i] = i < rank ? from[i] : 1;
    return 0;
}

/* Which of the names holds it: that of `word`, else the only one that is no logit_scale or bias. */
static bool beside(const char *name)
{
    return lw_str_eq(name, "logit_scale") || lw_str_eq(name, "logit_bias");
}

static int ambiguous(const char *path, const char *word, size_t n)
{
    return lw_fail(LW_EFORMAT, "%s: %zu arrays, none of them called '%s'", path, n, word);
}

static int read_npz(const char *path, const char *word, double **out, int *rank, int64_t shape[3])
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_TRY(lw_npz_load(path, &z));
    lw_array *a = lw_npz_find(&z, word);
    size_t n = 0;
    for (size_t i = 0; !lw_npz_find(&z, word) && i < z.n; i++)
        if (!beside(z.entries[i].name)) {
            a = &z.entries[i].array;
            n++;
        }
    if (!a || n > 1)
        return ambiguous(path, word, n);
    LW_TRY(take_shape(path, a->rank, a->shape, rank, shape));
    return take(path, a->type, a->data, a->count, out);
}

static int read_safetensors(const char *path, const char *word, double **out, int *rank,
                            int64_t shape[3])
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_st_open(path, &f));
    const lw_st_tensor *t = lw_st_find(f, word);
    size_t n = 0;
    for (size_t i = 0; !lw_st_find(f, word) && i < lw_st_count(f); i++)
        if (!beside(lw_st_at(f, i)->name)) {
            t = lw_st_at(f, i);
            n++;
        }
    if (!t || n > 1)
        return ambiguous(path, word, n);
    LW_TRY(take_shape(path, t->rank, t->shape, rank, shape));
    return take(path, t->type, t->data, t->count, out);
}

int lw_mc_read_array(const char *path, const char *word, double **out, int *rank, int64_t shape[3])
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    if (lw_str_ends(path, ".npz"))
        return read_npz(path, word, out, rank, shape);
    if (!lw_str_ends(path, ".npy"))
        return read_safetensors(path, word, out, rank, shape);
    LW_TRY(lw_npy_load(path, &a));
    LW_TRY(take_shape(path, a.rank, a.shape, rank, shape));
    return take(path, a.type, a.data, a.count, out);
}

/* ---- beside a model's weights ------------------------------------------------------------------ */

static int find_scalar(const lw_st_file *f, const char *name, double *out, bool *have)
{
    LW_CLEANUP(lw_free) double *v = NULL;
    const lw_st_tensor *t = lw_st_find(f, name);
    *have = t && t->count == 1;
    if (!*have)
        return 0;
    LW_TRY(take(lw_st_path(f), t->type, t->data, 1, &v));
    *out = v[0];
    return 0;
}

int lw_mc_model_scalar(const lw_network *n, const char *name, double *out, bool *have)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_place_kind kind;
    *have = false;
    LW_TRY(lw_place_look(n->dir, &kind));
    if (kind == LW_PLACE_RUN)
        return 0; /* of networks that were trained here: none has texts */
    if (kind == LW_PLACE_FILE)
        lw_str_add(&path, n->dir);
    else
        LW_TRY(lw_model_weights_find(n->dir, &path));
    LW_TRY(lw_st_open(lw_str_c(&path), &f));
    return find_scalar(f, name, out, have);
}
