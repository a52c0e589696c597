/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors to slabs: names are matched first and everything is checked before a byte changes. */
#include "store/store_private.h"

#include <math.h>
#include <string.h>

static int64_t largest_source(const store_match *m)
{
    int64_t most = 1;
    for (size_t i = 0; i < m->pieces.n; i++)
        most = LW_MAX(most, m->source[i].tensor->count);
    return most;
}

static int check_finite(const lw_st_file *f, const lw_st_tensor *t, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return lw_fail(LW_EFORMAT, "%s: tensor '%s' holds values that are not finite",
                           lw_st_path(f), t->name);
    return 0;
}

/* x[row][..] *= scale[row] */
static void scale_rows(const store_source *s, float *x)
{
    int64_t rows = s->tensor->shape[0], per_row = rows ? s->tensor->count / rows : 0;
    size_t size = lw_elem_size(s->scale->type);
    for (int64_t r = 0; r < rows; r++) {
        float by;
        lw_elem_to_f32(s->scale->type, (const char *)s->scale->data + (size_t)r * size, 1, &by);
        for (int64_t i = 0; i < per_row; i++)
            *x++ *= by;
    }
}

static int fill(const lw_st_file *f, const store_match *m, float *slab, float *wide)
{
    for (size_t i = 0; i < m->pieces.n; i++) {
        const store_piece *p = &m->pieces.of[i];
        const store_source *from = &m->source[i];
        float *dst = slab + p->entry->offset;
        lw_elem_to_f32(from->tensor->type, from->tensor->data, from->tensor->count, wide);
        if (from->scale)
            scale_rows(from, wide);
        lw_store_piece_read(p, from->tensor, wide, dst);
        LW_TRY(check_finite(f, from->tensor, dst + p->at, p->count));
    }
    return 0;
}

static int fill_slab(lw_store *s, lw_slab slab, const lw_st_file *f, const store_match *m)
{
    size_t bytes = lw_store_slab_bytes(s);
    LW_CLEANUP(lw_free) float *wide = lw_calloc((size_t)largest_source(m), sizeof *wide);
    float *fresh = lw_bulk_alloc(bytes); /* filled aside, so that a bad file changes nothing */
    int rc = wide && fresh ? fill(f, m, fresh, wide) : LW_ENOMEM;
    if (rc == 0) {
        memcpy(s->slab[slab], fresh, sizeof(float) * (size_t)s->floats);
        s->edited[slab] = true;
        lw_store_touch(s, slab);
    }
    lw_bulk_free(&fresh, bytes);
    return rc;
}

void lw_store_expect(lw_store *s, const lw_st_file *f, const lw_naming *namings)
{
    LW_ASSERT(!s->fixed, "what a store is filled from is said before it is fixed");
    s->source = f;
    s->source_namings = namings;
}

int lw_store_read_slab(lw_store *s, lw_slab slab, const lw_st_file *f, const char *prefix,
                       const lw_naming *namings)
{
    LW_CLEANUP(lw_store_match_clear) store_match m = {0};
    if (!s->slab[slab])
        return lw_fail(LW_EUSAGE, "%s: the store has no such slab", lw_st_path(f));
    LW_TRY(lw_store_match(s, f, prefix, namings, &m));
    return fill_slab(s, slab, f, &m);
}

int lw_store_load_from(lw_store *s, lw_slab slab, const lw_st_file *f, const lw_naming *namings)
{
    LW_TRY(lw_store_read_slab(s, slab, f, "", namings));
    if (slab == LW_SLAB_PARAM)
        lw_store_start_ema(s);
    return 0;
}

int lw_store_load(lw_store *s, lw_slab slab, const char *path, const lw_naming *namings)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_st_open(path, &f));
    return lw_store_load_from(s, slab, f, namings);
}
