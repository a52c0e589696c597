/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set that lies in a file of arrays. What it is follows from names and shapes:
 *
 *   mu [d], sigma [d,d]; mu, cov    statistics (formats_moments.h)
 *   arr_0, or the only one          pictures: u8 [N,H,W,3] (ADM) or [N,3,H,W]; floats in [-1,1]
 *                                   [N,3,H,W] (leeway sample); gray ones with 1 in the place of 3
 *   pooled, or the only one         features
 *
 * FILE#NAME says which of several: NAME of an array, or of a set of statistics.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/fid/fid_set.h"
#include "session/session_contract.h"

enum { NAMES_MAX = 64 };
static const double FAR_OUT = 16; /* no picture in [-1,1] reaches it, one in [0,255] does */

/* One array of the file, perhaps without its data. */
typedef struct entry {
    char name[64];
    lw_elem type;
    int rank;
    int64_t shape[LW_ARRAY_MAX_RANK];
} entry;

typedef struct contents {
    const char *path, *name; /* name: asked for, or NULL */
    entry e[NAMES_MAX];
    int n;
    const entry *pictures, *features; /* what there is of each */
    bool stats;
    const entry *wanted; /* the one to be loaded */
    lw_array array;
    json_t *about; /* what `leeway encode` says of its rows; NULL: nothing */
} contents;

static void contents_clear(contents *k)
{
    lw_array_clear(&k->array);
    lw_json_drop(&k->about);
}

/* ---- names and shapes ------------------------------------------------------------------------ */

static int add_entry(contents *k, const char *name, lw_elem type, int rank, const int64_t *shape)
{
    const bool asked = k->name &&
                       (lw_str_eq(name, k->name) || lw_moments_is_mean(k->path, k->name, name));
    if (k->n == NAMES_MAX && !asked)
        return 0; /* a file of other things */
    entry *e = &k->e[k->n < NAMES_MAX ? k->n++ : NAMES_MAX - 1];
    *e = (entry){.type = type, .rank = rank};
    snprintf(e->name, sizeof e->name, "%.63s", name);
    memcpy(e->shape, shape, (size_t)rank * sizeof *shape);
    return 0;
}

/* The array asked for; else that called `usual`; else the only one, or the only one beside labels:
 * files of weights have more. */
static const entry *chosen(const contents *k, const char *usual, int rank)
{
    const char *want = k->name ? k->name : usual;
    const entry *of_rank = NULL, *labels = NULL;
    for (int i = 0; i < k->n; i++) {
        if (k->e[i].rank == rank && lw_str_eq(k->e[i].name, want))
            return &k->e[i];
        if (k->e[i].rank == rank)
            of_rank = &k->e[i];
        if (k->e[i].rank == 1)
            labels = &k->e[i];
    }
    return !k->name && k->n == 1 + (labels != NULL) ? of_rank : NULL;
}

/* Is there a mean, of the set asked for or of any? */
static bool has_stats(const contents *k)
{
    for (int i = 0; i < k->n; i++)
        if (k->e[i].rank == 1 && lw_moments_is_mean(k->path, k->name, k->e[i].name))
            return true;
    return false;
}

static int look(contents *k)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    char shape[192];
    k->stats = has_stats(k);
    k->pictures = chosen(k, "arr_0", 4);
    k->features = k->pictures || k->stats ? NULL : chosen(k, "pooled", 2);
    if (k->features || k->pictures || k->stats)
        return 0;
    for (int i = 0; i < k->n && i < 8; i++)
        lw_str_addf(&have, "%s%s %s", i ? ", " : "", k->e[i].name,
                    lw_shape_text(shape, k->e[i].rank, k->e[i].shape));
    return lw_fail(LW_EFORMAT,
                   "%s%s%s: neither pictures (arr_0, or the only array, of rank 4), features "
                   "(pooled, or the only one, of rank 2) nor statistics (mu, sigma): there are %s",
                   k->path, k->name ? "#" : "", k->name ? k->name : "",
                   have.len ? lw_str_c(&have) : "no arrays");
}

/* ---- the three formats ----------------------------------------------------------------------- */

static int visit_header(void *arg, const char *name, lw_array *a)
{
    return add_entry(arg, name, a->type, a->rank, a->shape);
}

static int visit_data(void *arg, const char *name, lw_array *a)
{
    contents *k = arg;
    (void)name;
    k->array = *a;
    *a = (lw_array){0};
    return 0;
}

static int load_tensor(contents *k, const lw_st_file *f)
{
    const lw_st_tensor *t;
    LW_TRY(lw_st_get(f, k->wanted->name, &t));
    LW_TRY(lw_array_init(&k->array, t->type, t->rank, t->shape));
    memcpy(k->array.data, t->data, t->bytes);
    return 0;
}

static int read_about(contents *k, const lw_st_file *f)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    lw_str_addf(&path, "%s.json", k->path);
    if (f) {
        const char *contract = lw_st_meta(f, "contract"), *l2 = lw_st_meta(f, "l2_normalize");
        k->about = json_pack("{s:s*, s:s*}", "contract", contract, "l2_normalize", l2);
        return 0;
    }
    if (!lw_path_exists(lw_str_c(&path)))
        return 0;
    LW_TRY(lw_json_load(lw_str_c(&path), &j));
    k->about = json_incref(json_object_get(j, "about"));
    return 0;
}

/* Names and shapes, then the data of what is wanted. */
static int read_contents(contents *k)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    bool npy = lw_str_ends(k->path, ".npy");
    if (lw_str_ends(k->path, ".safetensors")) {
        LW_TRY(lw_st_open(k->path, &f));
        for (size_t i = 0; i < lw_st_count(f); i++) {
            const lw_st_tensor *t = lw_st_at(f, i);
            LW_TRY(add_entry(k, t->name, t->type, t->rank, t->shape));
        }
    } else if (npy) {
        LW_TRY(lw_npy_load(k->path, &k->array));
        LW_TRY(add_entry(k, "arr_0", k->array.type, k->array.rank, k->array.shape));
    } else {
        LW_TRY(lw_npz_each(k->path, false, visit_header, k));
    }
    LW_TRY(look(k));
    k->wanted = k->pictures ? k->pictures : k->features;
    if (k->wanted == k->features && k->features)
        LW_TRY(read_about(k, f));
    if (!k->wanted || npy)
        return 0;
    const char *const names[] = {k->wanted->name};
    return f ? load_tensor(k, f) : lw_npz_pick(k->path, names, 1, true, visit_data, k);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* One picture of floats, [n][h][w] in [-1,1], to bytes [h][w][n]. */
static int bytes_of(const fid_set *s, int64_t i, const float *x, int64_t n, float *turned,
                    uint8_t *out)
{
    int64_t plane = (int64_t)s->h * s->w;
    for (int64_t p = 0; p < plane; p++)
        for (int64_t c = 0; c < n; c++) {
            float v = x[c * plane + p];
            if (!isfinite(v))
                return lw_fail(LW_EFORMAT, "%c: %s: picture %lld has a number that is %s",
                               s->letter, s->source, (long long)i, lw_not_finite_text((double)v));
            if (fabs((double)v) > FAR_OUT)
                return lw_fail(LW_EFORMAT,
                               "%c: %s: picture %lld has a %g: pictures of floats are in [-1,1], "
                               "those of 0 to 255 are u8",
                               s->letter, s->source, (long long)i, (double)v);
            turned[p * n + c] = v;
        }
    lw_data_to_u8(turned, plane * n, out);
    return 0;
}

static int float_pictures(lw_array *a, int32_t channels, fid_set *s)
{
    const int64_t plane = (int64_t)s->h * s->w, row = plane * channels;
    LW_CLEANUP(lw_free) float *turned = lw_calloc((size_t)row, sizeof *turned);
    LW_CLEANUP(lw_free) uint8_t *bytes = lw_calloc((size_t)row, 1);
    LW_TRY(lw_array_make_f32(a));
    s->rgb = lw_calloc((size_t)s->n, (size_t)plane * 3);
    if (!turned || !bytes || !s->rgb)
        return LW_ENOMEM;
    for (int64_t i = 0; i < s->n; i++) {
        LW_TRY(bytes_of(s, i, (const float *)a->data + i * row, channels, turned, bytes));
        lw_channels_convert(bytes, plane, channels, 3, s->rgb + i * plane * 3);
    }
    return 0;
}

static int byte_pictures(lw_array *a, bool planes, int32_t channels, fid_set *s)
{
    const int64_t plane = (int64_t)s->h * s->w;
    if (!planes && channels == 3) {
        s->rgb = a->data;
        a->data = NULL;
        return 0;
    }
    const uint8_t *x = a->data;
    s->rgb = lw_calloc((size_t)s->n, (size_t)plane * 3);
    if (s->rgb && channels == 1)
        lw_channels_convert(x, s->n * plane, 1, 3, s->rgb);
    for (int64_t i = 0; s->rgb && channels == 3 && i < s->n; i++)
        for (int64_t p = 0; p < plane; p++)
            for (int64_t c = 0; c < 3; c++)
                s->rgb[(i * plane + p) * 3 + c] = x[(i * 3 + c) * plane + p];
    return s->rgb ? 0 : LW_ENOMEM;
}

static bool gray_or_rgb(int64_t channels)
{
    return channels == 1 || channels == 3;
}

static int take_pictures(contents *k, fid_set *s)
{
    const entry *e = k->pictures;
    bool u8 = e->type == LW_ELEM_U8, last = u8 && gray_or_rgb(e->shape[3]),
         planes = !last && gray_or_rgb(e->shape[1]);
    bool floats = e->type == LW_ELEM_F32 || e->type == LW_ELEM_F16 || e->type == LW_ELEM_F64 ||
                  e->type == LW_ELEM_BF16;
    char shape[192];
    const int64_t *side = e->shape + (planes ? 2 : 1);
    const int32_t channels = (int32_t)e->shape[planes ? 1 : 3];
    if (!(u8 ? planes || last : floats && planes) || e->shape[0] < 1 || side[0] < 1 ||
        side[1] < 1 || side[0] > 4096 || side[1] > 4096)
        return lw_fail(LW_EFORMAT,
                       "%s: %s of %s %s are no pictures: these are u8 [N,H,W,3] or [N,3,H,W], or "
                       "floats in [-1,1] [N,3,H,W], gray ones with a 1 for the 3, with sides up to "
                       "4096",
                       k->path, e->name, lw_elem_name(e->type),
                       lw_shape_text(shape, e->rank, e->shape));
    s->kind = FID_ARRAY;
    s->gray = channels == 1;
    s->n = e->shape[0];
    s->h = (int32_t)side[0];
    s->w = (int32_t)side[1];
    return u8 ? byte_pictures(&k->array, planes, channels, s)
              : float_pictures(&k->array, channels, s);
}

/* ---- features -------------------------------------------------------------------------------- */

static int take_contract(const contents *k, fid_set *s)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    const char *text = json_string_value(json_object_get(k->about, "contract"));
    const char *l2 = json_string_value(json_object_get(k->about, "l2_normalize"));
    if (!text)
        return 0;
    LW_TRY(lw_json_parse(k->path, text, strlen(text), &j));
    LW_TRY(lw_contract_parse(k->path, j, &s->contract));
    char layer[64];
    snprintf(layer, sizeof layer, "%.60s",
             lw_str_ends(k->path, ".npy") ? s->contract.value[LW_CONTRACT_LAYER]
                                          : k->features->name);
    snprintf(s->contract.value[LW_CONTRACT_LAYER], sizeof s->contract.value[0], "%s%s", layer,
             l2 && lw_str_eq(l2, "true") ? ", of length 1" : "");
    return 0;
}

static int take_features(contents *k, fid_set *s)
{
    const entry *e = k->features;
    char shape[192];
    if (e->shape[0] < 1 || e->shape[1] < 1 || e->shape[1] > 1 << 20)
        return lw_fail(LW_EFORMAT, "%s: %s %s are no features [N,d]", k->path, e->name,
                       lw_shape_text(shape, e->rank, e->shape));
    LW_TRY(lw_array_make_f32(&k->array));
    s->kind = FID_FEATURES;
    s->n = e->shape[0];
    s->dim = (int32_t)e->shape[1];
    s->rows = k->array.data;
    k->array.data = NULL;
    const int64_t i = lw_first_not_finite(s->rows, s->n * s->dim);
    if (i < s->n * s->dim)
        return lw_fail(LW_EFORMAT, "%s: feature %lld of row %lld is %s", k->path,
                       (long long)(i % s->dim), (long long)(i / s->dim),
                       lw_not_finite_text((double)s->rows[i]));
    return take_contract(k, s);
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Of the resizes that clean-fid's file names say. */
static const char *resize_of(const char *mode)
{
    if (lw_str_eq(mode, "legacy_tensorflow"))
        return lw_resample_form_name[LW_RESAMPLE_TF_INCEPTION];
    return lw_resample_form_name[lw_str_eq(mode, "clean") ? LW_RESAMPLE_FLOAT_AA
                                                          : LW_RESAMPLE_TORCH];
}

static int contract_of_stats(const char *path, const lw_moments *f, fid_set *s)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    lw_clean_fid_name named;
    if (f->contract) {
        LW_TRY(lw_json_parse(path, f->contract, strlen(f->contract), &j));
        return lw_contract_parse(path, j, &s->contract);
    }
    if (lw_clean_fid_parse(path, &named))
        snprintf(s->contract.value[LW_CONTRACT_RESIZE], sizeof s->contract.value[0], "%s",
                 resize_of(named.mode));
    return 0;
}

static int take_stats(const contents *k, fid_set *s)
{
    LW_CLEANUP(lw_moments_clear) lw_moments f = {0};
    LW_TRY(lw_moments_load(k->path, k->name, &f));
    const int64_t rows = LW_MAX(f.count, INT64_C(2)); /* of files that do not say: enough */
    LW_TRY(lw_stats_from(f.dim, rows, f.mean, f.cov, &s->stats));
    if (k->pictures)
        return 0; /* ADM's: of all pictures, of which the array has some */
    s->kind = FID_STATS;
    s->n = f.count;
    s->dim = f.dim;
    return contract_of_stats(k->path, &f, s);
}

int lw_fid_read(const char *path, const char *name, fid_set *s)
{
    LW_CLEANUP(contents_clear) contents k = {.path = path, .name = name};
    LW_TRY(read_contents(&k));
    if (k.stats)
        LW_TRY(take_stats(&k, s));
    if (k.pictures)
        return take_pictures(&k, s);
    return k.features ? take_features(&k, s) : 0;
}
