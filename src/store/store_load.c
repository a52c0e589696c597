/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors to slabs: names are matched first and everything is checked before a byte changes. */
#include "store/store_private.h"

#include <math.h>
#include <string.h>

enum { NAMED = 3 }; /* names listed in one message */

static const char *const wrappers[] = {"module.", "_orig_mod.", "ema_model."};

/* The file's name without what wrappers put in front. */
static const char *unwrap(const char *name)
{
    for (size_t i = 0; i < LW_COUNT(wrappers);) {
        if (lw_str_starts(name, wrappers[i])) {
            name += strlen(wrappers[i]);
            i = 0;
        } else {
            i++;
        }
    }
    return name;
}

const lw_st_tensor *lw_st_find_model(const lw_st_file *f, const char *name)
{
    const lw_st_tensor *t = lw_st_find(f, name);
    for (size_t i = 0; !t && i < lw_st_count(f); i++)
        if (strcmp(unwrap(lw_st_at(f, i)->name), name) == 0)
            t = lw_st_at(f, i);
    return t;
}

/* One source per part of every entry, and which tensors of the file were taken. */
typedef struct matching {
    lw_store *s;
    const lw_st_file *f;
    const lw_load_opts *opts;
    const char *prefix;
    char **name; /* the file's names as the store says them; NULL: not ours (other prefix) */
    bool *used;
    size_t n;
    const lw_st_tensor **source; /* 3 per entry */
} matching;

static void matching_clear(matching *m)
{
    for (size_t i = 0; m->name && i < m->n; i++)
        lw_free(&m->name[i]);
    lw_free(&m->name);
    lw_free(&m->used);
    lw_free(&m->source);
}

static char *replaced(const char *name, const char *const *pairs)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    for (; pairs && *pairs; pairs += 2) {
        const char *at = strstr(name, pairs[0]);
        if (!at)
            continue;
        lw_str_add_n(&s, name, (size_t)(at - name));
        lw_str_add(&s, pairs[1]);
        lw_str_add(&s, at + strlen(pairs[0]));
        return s.failed ? NULL : lw_strdup(lw_str_c(&s));
    }
    return lw_strdup(name);
}

static int matching_init(matching *m)
{
    m->n = lw_st_count(m->f);
    m->name = lw_calloc(m->n + 1, sizeof *m->name);
    m->used = lw_calloc(m->n + 1, sizeof *m->used);
    m->source = lw_calloc(3 * m->s->n + 1, sizeof *m->source);
    if (!m->name || !m->used || !m->source)
        return LW_ENOMEM;
    for (size_t i = 0; i < m->n; i++) {
        const char *name = lw_st_at(m->f, i)->name;
        if (!lw_str_starts(name, m->prefix))
            continue;
        name = unwrap(name + strlen(m->prefix));
        m->name[i] = replaced(name, m->opts ? m->opts->replace : NULL);
        if (!m->name[i])
            return LW_ENOMEM;
    }
    return 0;
}

static const lw_st_tensor *take(matching *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->name[i] && strcmp(m->name[i], name) == 0) {
            m->used[i] = true;
            return lw_st_at(m->f, i);
        }
    }
    return NULL;
}

static bool is_float(lw_elem e)
{
    return e == LW_ELEM_F32 || e == LW_ELEM_F16 || e == LW_ELEM_BF16 || e == LW_ELEM_F64;
}

static bool wants_crop(const matching *m, const lw_store_entry *e)
{
    return m->opts && m->opts->centre_crop && strcmp(m->opts->centre_crop, e->name) == 0;
}

/* Equal shapes, or a linear weight stored as a 1x1 convolution, or a kernel with a centre
 * to take. */
static bool shape_fits(const matching *m, const lw_store_entry *e, const store_disk *d,
                       const lw_st_tensor *t)
{
    bool crop = wants_crop(m, e);
    for (int i = 0; i < LW_MAX(t->rank, d->rank); i++) {
        int64_t have = i < t->rank ? t->shape[i] : 1, want = i < d->rank ? d->shape[i] : 1;
        bool larger = crop && i >= 2 && have >= want && (have - want) % 2 == 0;
        if (have != want && !larger)
            return false;
    }
    return t->rank >= d->rank;
}

static int check_source(const matching *m, const lw_store_entry *e, const store_disk *d,
                        const lw_st_tensor *t)
{
    char have[192], want[192];
    if (!is_float(t->type))
        return lw_fail(LW_EFORMAT, "%s: tensor '%s' is %s, weights must be F32, F16 or BF16",
                       lw_st_path(m->f), t->name, lw_elem_name(t->type));
    if (!shape_fits(m, e, d, t))
        return lw_fail(LW_ESHAPE, "%s: tensor '%s' has shape %s, this model wants %s",
                       lw_st_path(m->f), t->name, lw_shape_text(have, t->rank, t->shape),
                       lw_shape_text(want, d->rank, d->shape));
    return 0;
}

static int match_all(matching *m)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0}, missing = {0};
    size_t n_missing = 0;
    for (size_t i = 0; i < m->s->n; i++) {
        const lw_store_entry *e = &m->s->entry[i];
        store_disk d = lw_store_disk_of(e);
        for (int k = 0; k < d.parts; k++) {
            const char *want = lw_store_disk_name(&name, e, k);
            const lw_st_tensor *t = take(m, want);
            if (t)
                LW_TRY(check_source(m, e, &d, t));
            else if (n_missing++ < NAMED)
                lw_str_addf(&missing, "%s'%s%s'", n_missing > 1 ? ", " : "", m->prefix, want);
            m->source[3 * i + (size_t)k] = t;
        }
    }
    if (n_missing)
        return lw_fail(LW_EFORMAT, "%s: lacks %zu of this model's tensors: %s%s", lw_st_path(m->f),
                       n_missing, lw_str_c(&missing), n_missing > NAMED ? ", ..." : "");
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* tmp[O,C,h,w] <- the centre of src[O,C,H,W]. */
static void crop_centre(const store_disk *d, const lw_st_tensor *t, const float *src, float *tmp)
{
    int64_t h = d->shape[2], w = d->shape[3], sh = t->shape[2], sw = t->shape[3];
    int64_t top = (sh - h) / 2, left = (sw - w) / 2;
    for (int64_t p = 0; p < d->shape[0] * d->shape[1]; p++)
        for (int64_t y = 0; y < h; y++)
            memcpy(tmp + (p * h + y) * w, src + (p * sh + y + top) * sw + left,
                   sizeof(float) * (size_t)w);
}

static int64_t largest_source(const matching *m)
{
    int64_t most = 1;
    for (size_t i = 0; i < 3 * m->s->n; i++)
        if (m->source[i])
            most = LW_MAX(most, m->source[i]->count);
    return most;
}

static int check_finite(const matching *m, const lw_st_tensor *t, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return lw_fail(LW_EFORMAT, "%s: tensor '%s' holds values that are not finite",
                           lw_st_path(m->f), t->name);
    return 0;
}

static int fill(const matching *m, float *slab, float *wide, float *part)
{
    for (size_t i = 0; i < m->s->n; i++) {
        const lw_store_entry *e = &m->s->entry[i];
        store_disk d = lw_store_disk_of(e);
        for (int k = 0; k < d.parts; k++) {
            const lw_st_tensor *t = m->source[3 * i + (size_t)k];
            const float *src = wide;
            lw_elem_to_f32(t->type, t->data, t->count, wide);
            if (t->count != d.count) {
                crop_centre(&d, t, wide, part);
                src = part;
            }
            LW_TRY(check_finite(m, t, src, d.count));
            lw_store_from_disk(&d, src, slab + e->offset + k * d.count);
        }
    }
    return 0;
}

static int fill_slab(const matching *m, lw_slab slab)
{
    size_t bytes = sizeof(float) * (size_t)LW_MAX(m->s->floats, 16),
           most = (size_t)largest_source(m);
    LW_CLEANUP(lw_free) float *wide = lw_calloc(most, sizeof *wide);
    LW_CLEANUP(lw_free) float *part = lw_calloc(most, sizeof *part);
    float *fresh = lw_bulk_alloc(bytes); /* filled aside, so that a bad file changes nothing */
    int rc = wide && part && fresh ? fill(m, fresh, wide, part) : LW_ENOMEM;
    if (rc == 0) {
        memcpy(m->s->slab[slab], fresh, sizeof(float) * (size_t)m->s->floats);
        m->s->edited[slab] = true;
        lw_store_touch(m->s, slab);
    }
    lw_bulk_free(&fresh, bytes);
    return rc;
}

static bool ignored(const matching *m, const char *name)
{
    if (lw_str_ends(name, ".num_batches_tracked"))
        return true;
    const char *const *p = m->opts ? m->opts->ignore : NULL;
    for (; p && *p; p++)
        if (lw_str_starts(name, *p))
            return true;
    return false;
}

static void warn_unused(const matching *m)
{
    LW_CLEANUP(lw_str_clear) lw_str list = {0};
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->name[i] || m->used[i] || ignored(m, m->name[i]))
            continue;
        if (n++ < NAMED)
            lw_str_addf(&list, "%s'%s'", n > 1 ? ", " : "", lw_st_at(m->f, i)->name);
    }
    if (n)
        lw_log(LW_LOG_WARN, "store", "%s: %zu tensors are not used: %s%s", lw_st_path(m->f), n,
               lw_str_c(&list), n > NAMED ? ", ..." : "");
}

int lw_store_match(lw_store *s, const lw_st_file *f, const lw_load_opts *opts)
{
    LW_CLEANUP(matching_clear) matching m = {.s = s, .f = f, .opts = opts, .prefix = ""};
    LW_TRY(matching_init(&m));
    return match_all(&m);
}

void lw_store_expect(lw_store *s, const lw_st_file *f, const lw_load_opts *opts)
{
    LW_ASSERT(!s->fixed, "what a store is filled from is said before it is fixed");
    s->source = f;
    s->source_opts = opts;
}

int lw_store_read_slab(lw_store *s, lw_slab slab, const lw_st_file *f, const char *prefix,
                       const lw_load_opts *opts)
{
    LW_CLEANUP(matching_clear) matching m = {.s = s, .f = f, .opts = opts, .prefix = prefix};
    if (!s->slab[slab])
        return lw_fail(LW_EUSAGE, "%s: the store has no such slab", lw_st_path(f));
    LW_TRY(matching_init(&m));
    LW_TRY(match_all(&m));
    LW_TRY(fill_slab(&m, slab));
    warn_unused(&m);
    return 0;
}

int lw_store_load_from(lw_store *s, lw_slab slab, const lw_st_file *f, const lw_load_opts *opts)
{
    LW_TRY(lw_store_read_slab(s, slab, f, "", opts));
    if (slab == LW_SLAB_PARAM)
        lw_store_start_ema(s);
    return 0;
}

int lw_store_load(lw_store *s, lw_slab slab, const char *path, const lw_load_opts *opts)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_st_open(path, &f));
    return lw_store_load_from(s, slab, f, opts);
}
