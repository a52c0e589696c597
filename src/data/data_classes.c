/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by class, and the draws of a drift step over them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "data/data_classes.h"

struct lw_class_sampler {
    const lw_dataset *set;
    lw_class_opts opts;
    int32_t classes;  /* 1 when labels are ignored */
    int64_t *rows;    /* [n] sorted by class */
    int64_t *begin;   /* [classes + 1] into rows */
    int32_t *present; /* classes that have rows */
    int32_t n_present;
};

static int32_t class_of(const lw_class_sampler *s, int64_t row)
{
    return s->opts.ignore_labels ? 0 : s->set->labels[row];
}

/* Counting sort of the rows by class. */
static int sort_rows(lw_class_sampler *s)
{
    const lw_dataset *d = s->set;
    s->rows = lw_calloc((size_t)d->n, sizeof *s->rows);
    s->begin = lw_calloc((size_t)s->classes + 2, sizeof *s->begin);
    s->present = lw_calloc((size_t)s->classes, sizeof *s->present);
    if (!s->rows || !s->begin || !s->present)
        return LW_ENOMEM;
    for (int64_t i = 0; i < d->n; i++)
        s->begin[class_of(s, i) + 2]++;
    for (int32_t c = 0; c < s->classes; c++) {
        if (s->begin[c + 2] > 0)
            s->present[s->n_present++] = c;
        s->begin[c + 2] += s->begin[c + 1];
    }
    for (int64_t i = 0; i < d->n; i++)
        s->rows[s->begin[class_of(s, i) + 1]++] = i;
    return 0;
}

int lw_class_sampler_new(const lw_dataset *d, const lw_class_opts *o, lw_class_sampler **out)
{
    if (o->groups < 1 || o->positives < 1 || o->unconditional < 0)
        return lw_fail(LW_EUSAGE,
                       "classes of '%s': %d groups of %d positives and %d unconditional rows: need "
                       "1, 1 and 0 at least",
                       d->spec, o->groups, o->positives, o->unconditional);
    LW_CLEANUP(lw_class_sampler_free) lw_class_sampler *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->set = d;
    s->opts = *o;
    s->classes = o->ignore_labels ? 1 : d->classes;
    LW_TRY(sort_rows(s));
    *out = lw_steal(&s);
    return 0;
}

void lw_class_sampler_free(lw_class_sampler **pp)
{
    if (!*pp)
        return;
    lw_free(&(*pp)->rows);
    lw_free(&(*pp)->begin);
    lw_free(&(*pp)->present);
    lw_free(pp);
}

static lw_rng_key stream(const lw_class_sampler *s, const char *name, int64_t number)
{
    return lw_rng_key_of(s->opts.seed, lw_hash_name(name) + (uint64_t)number);
}

static int32_t draw_class(const lw_class_sampler *s, int64_t step, int32_t g)
{
    uint32_t when = (uint32_t)step;
    if (s->opts.rule == LW_CLASS_FREQUENCY) {
        uint64_t n = (uint64_t)s->set->n;
        return class_of(
            s, (int64_t)lw_rng_permute(stream(s, "data.classes", 0), when, n, (uint64_t)g % n));
    }
    uint64_t n = (uint64_t)s->n_present;
    lw_rng_key key = stream(s, "data.classes", g / s->n_present);
    return s->present[lw_rng_permute(key, when, n, (uint64_t)g % n)];
}

void lw_class_sampler_draw(const lw_class_sampler *s, int64_t step, int32_t *classes,
                           int64_t *positives, int64_t *unconditional)
{
    const lw_class_opts *o = &s->opts;
    for (int32_t g = 0; g < o->groups; g++) {
        int32_t c = draw_class(s, step, g);
        const int64_t *rows = s->rows + s->begin[c];
        uint64_t n = (uint64_t)(s->begin[c + 1] - s->begin[c]), all = (uint64_t)s->set->n;
        lw_rng_key key = stream(s, "data.positives", g), any = stream(s, "data.unconditional", g);
        if (classes)
            classes[g] = c;
        for (int32_t p = 0; positives && p < o->positives; p++)
            positives[(int64_t)g * o->positives + p] =
                rows[lw_rng_permute(key, (uint32_t)step, n, (uint64_t)p % n)];
        for (int32_t u = 0; unconditional && u < o->unconditional; u++)
            unconditional[(int64_t)g * o->unconditional + u] =
                (int64_t)lw_rng_permute(any, (uint32_t)step, all, (uint64_t)u % all);
    }
}

const int64_t *lw_class_sampler_rows(const lw_class_sampler *s, int32_t c, int64_t *n)
{
    *n = s->begin[c + 1] - s->begin[c];
    return s->rows + s->begin[c];
}

/* ---- samples of rows ------------------------------------------------------------------------- */

typedef struct placed {
    double at; /* in [0, 1): the k-th of a class of m rows somewhere in [k / m, (k + 1) / m) */
    int64_t row;
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->row > y->row) - (x->row < y->row);
}

int lw_data_drawn(const lw_dataset *d, int64_t **rows)
{
    const lw_rng_key key = lw_rng_key_of(0, lw_hash_name("data.drawn"));
    size_t n = (size_t)d->n, classes = (size_t)d->classes;
    LW_CLEANUP(lw_free) placed *p = lw_calloc(n, sizeof *p);
    LW_CLEANUP(lw_free) int64_t *in_class = lw_calloc(classes, sizeof *in_class);
    LW_CLEANUP(lw_free) int64_t *seen = lw_calloc(classes, sizeof *seen);
    LW_CLEANUP(lw_free) int64_t *out = lw_calloc(n, sizeof *out);
    if (!p || !in_class || !seen || !out)
        return LW_ENOMEM;
    for (size_t i = 0; i < n; i++)
        in_class[d->labels[i]]++;
    for (size_t i = 0; i < n; i++) {
        uint64_t row = lw_rng_permute(key, 0, n, i);
        int32_t c = d->labels[row];
        double k = (double)seen[c]++ + lw_rng_uniform(key, 0, row, 0);
        p[i] = (placed){k / (double)in_class[c], (int64_t)row};
    }
    qsort(p, n, sizeof *p, compare_placed);
    for (size_t i = 0; i < n; i++)
        out[i] = p[i].row;
    *rows = lw_steal(&out);
    return 0;
}
