/* SPDX-License-Identifier: Apache-2.0 */
/* Which real pictures a junk picture is made of, and the kinds that need noise or class means. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "data/data_junk.h"

#define PI 3.14159265358979323846

enum { REPEATED = 10, OTHER_CLASS_TRIES = 32 };

struct lw_junk {
    const lw_dataset *set;
    uint64_t seed;
    float *means; /* [classes][h][w][channels] */
    int64_t repeated[REPEATED];
    size_t row;     /* numbers of a picture */
    float *scratch; /* two pictures */
};

/* Names of random streams, one a kind. */
static const char *const names[LW_JUNK_COUNT] = {"average", "splice",   "blur",   "blur2",
                                                 "warp",    "tile",     "noise",  "noised",
                                                 "mean",    "repeated", "grained"};

static int class_means(lw_junk *j)
{
    const lw_dataset *d = j->set;
    size_t n = (size_t)d->classes * j->row;
    LW_CLEANUP(lw_free) double *sum = lw_calloc(n, sizeof *sum);
    LW_CLEANUP(lw_free) int64_t *count = lw_calloc((size_t)d->classes, sizeof *count);
    j->means = lw_calloc(n, sizeof *j->means);
    if (!sum || !count || !j->means)
        return LW_ENOMEM;
    for (int64_t i = 0; i < d->n; i++) {
        double *to = sum + (size_t)d->labels[i] * j->row;
        const uint8_t *src = d->pixels + (size_t)i * j->row;
        for (size_t k = 0; k < j->row; k++)
            to[k] += src[k];
        count[d->labels[i]]++;
    }
    for (size_t k = 0; k < n; k++) {
        int64_t rows = count[k / j->row];
        j->means[k] = rows ? (float)(sum[k] / (double)rows / 127.5 - 1) : 0;
    }
    return 0;
}

/* Ten rows in random order, a class not seen yet first. */
static void choose_repeated(lw_junk *j)
{
    const lw_dataset *d = j->set;
    lw_rng_key key = lw_rng_key_of(j->seed, lw_hash_name("junk.repeated"));
    int taken = 0;
    for (int pass = 0; pass < 2 && taken < REPEATED; pass++)
        for (int64_t i = 0; i < d->n && taken < REPEATED; i++) {
            int64_t row = (int64_t)lw_rng_permute(key, 0, (uint64_t)d->n, (uint64_t)i);
            bool new_row = true, new_class = true;
            for (int k = 0; k < taken; k++) {
                new_row &= j->repeated[k] != row;
                new_class &= d->labels[j->repeated[k]] != d->labels[row];
            }
            if (new_row && (new_class || pass == 1))
                j->repeated[taken++] = row;
        }
    for (int k = taken; k < REPEATED; k++) /* fewer than ten rows */
        j->repeated[k] = j->repeated[k % taken];
}

int lw_junk_new(const lw_dataset *d, uint64_t seed, lw_junk **out)
{
    LW_CLEANUP(lw_junk_free) lw_junk *j = lw_calloc(1, sizeof *j);
    if (!j)
        return LW_ENOMEM;
    *j = (lw_junk){.set = d, .seed = seed, .row = (size_t)lw_data_row_size(d)};
    LW_TRY(class_means(j));
    j->scratch = lw_calloc(2 * j->row, sizeof *j->scratch);
    if (!j->scratch)
        return LW_ENOMEM;
    choose_repeated(j);
    *out = lw_steal(&j);
    return 0;
}

void lw_junk_free(lw_junk **pp)
{
    if (!*pp)
        return;
    lw_free(&(*pp)->means);
    lw_free(&(*pp)->scratch);
    lw_free(pp);
}

static int64_t pick(const lw_junk *j, const char *name, int64_t index, uint64_t draw)
{
    lw_rng_key key = lw_rng_key_of(j->seed, lw_hash_name(name));
    return (int64_t)(lw_rng_uniform(key, 0, (uint64_t)index, draw) * (double)j->set->n);
}

/* A row of another class than `row` has, if a few tries find one. */
static int64_t pick_other(const lw_junk *j, const char *name, int64_t index, int64_t row)
{
    int64_t other = row;
    for (uint64_t t = 1; t <= OTHER_CLASS_TRIES; t++) {
        other = pick(j, name, index, t);
        if (j->set->labels[other] != j->set->labels[row])
            break;
    }
    return other;
}

/* Box-Muller over the words of one row, in double. */
static void add_noise(const lw_junk *j, const char *name, int64_t index, double sd, float *dst)
{
    lw_rng_key key = lw_rng_key_of(j->seed, lw_hash_name(name));
    for (size_t k = 0; k < j->row; k += 2) {
        double u = 1 - lw_rng_uniform(key, 1, (uint64_t)index, k),
               v = lw_rng_uniform(key, 1, (uint64_t)index, k + 1);
        double r = sd * sqrt(-2 * log(u));
        dst[k] += (float)(r * cos(2 * PI * v));
        if (k + 1 < j->row)
            dst[k + 1] += (float)(r * sin(2 * PI * v));
    }
    for (size_t k = 0; k < j->row; k++)
        dst[k] = LW_MIN(LW_MAX(dst[k], -1.0f), 1.0f);
}

static void pure_noise(const lw_junk *j, int64_t index, float *dst)
{
    lw_rng_key key = lw_rng_key_of(j->seed, lw_hash_name("junk.noise"));
    for (size_t k = 0; k < j->row; k++)
        dst[k] = (float)(lw_rng_word(key, 0, (uint64_t)index, k) >> 24) / 127.5f - 1;
}

/* Kinds made of a real picture a (and b of another class). */
static void from_pictures(lw_junk *j, lw_junk_kind kind, int64_t index, int64_t row, float *dst)
{
    const lw_dataset *d = j->set;
    float *a = j->scratch, *b = j->scratch + j->row;
    lw_data_get(d, row, false, a);
    if (kind == LW_JUNK_AVERAGE || kind == LW_JUNK_SPLICE)
        lw_data_get(d, pick_other(j, names[kind], index, row), false, b);
    switch (kind) {
    case LW_JUNK_AVERAGE:
        lw_junk_average(a, b, d->h, d->w, d->channels, dst);
        break;
    case LW_JUNK_SPLICE:
        lw_junk_splice(a, b, d->h, d->w, d->channels, index & 1, dst);
        break;
    case LW_JUNK_BLUR:
        lw_junk_blur(a, d->h, d->w, d->channels, LW_MAX(d->h / 4, 2), dst);
        break;
    case LW_JUNK_BLUR2:
        lw_junk_blur(a, d->h, d->w, d->channels, 2, dst);
        break;
    case LW_JUNK_WARP:
        lw_junk_warp(a, d->h, d->w, d->channels, j->seed, index, dst);
        break;
    case LW_JUNK_TILE:
        lw_junk_tile(a, d->h, d->w, d->channels, dst);
        break;
    default:
        memcpy(dst, a, j->row * sizeof *dst);
        break;
    }
}

int32_t lw_junk_make(lw_junk *j, lw_junk_kind kind, int64_t index, float *dst)
{
    const lw_dataset *d = j->set;
    int64_t row = pick(j, names[kind], index, 0);
    switch (kind) {
    case LW_JUNK_NOISE:
        pure_noise(j, index, dst);
        return (int32_t)(index % d->classes);
    case LW_JUNK_MEAN:
        memcpy(dst, j->means + (size_t)d->labels[row] * j->row, j->row * sizeof *dst);
        add_noise(j, names[kind], index, .05, dst);
        break;
    case LW_JUNK_REPEATED:
        row = j->repeated[index % REPEATED];
        lw_data_get(d, row, false, dst);
        break;
    case LW_JUNK_NOISED:
        lw_data_get(d, row, false, dst);
        add_noise(j, names[kind], index, .3, dst);
        break;
    case LW_JUNK_GRAINED:
        lw_data_get(d, row, false, dst);
        add_noise(j, names[kind], index, LW_JUNK_GRAIN, dst);
        break;
    default:
        from_pictures(j, kind, index, row, dst);
        break;
    }
    return d->labels[row];
}

int32_t lw_junk_any(lw_junk *j, int64_t index, float *dst)
{
    static const lw_junk_kind kinds[] = {LW_JUNK_AVERAGE, LW_JUNK_SPLICE, LW_JUNK_BLUR,
                                         LW_JUNK_WARP,    LW_JUNK_TILE,   LW_JUNK_NOISE};
    lw_rng_key key = lw_rng_key_of(j->seed, lw_hash_name("junk.any"));
    uint32_t which = lw_rng_below(key, 0, (uint64_t)index, 0, LW_COUNT(kinds));
    return lw_junk_make(j, kinds[which], index, dst);
}
