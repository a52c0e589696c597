/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of features in .npz and .safetensors files. */
#include "formats/formats_moments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats_npy.h"
#include "formats/formats_safetensors.h"

enum { MAX_DIM = 16384, MAX_CONTRACT = 1 << 16 };

void lw_moments_clear(lw_moments *s)
{
    lw_free(&s->mean);
    lw_free(&s->cov);
    lw_free(&s->contract);
}

/* ---- what is believed ---- */

static int check_shapes(const char *path, const char *mu, int mu_rank, const int64_t *mu_shape,
                        const char *cov, int cov_rank, const int64_t *cov_shape)
{
    char a[192], b[192];
    if (mu_rank == 1 && cov_rank == 2 && mu_shape[0] >= 1 && mu_shape[0] <= MAX_DIM &&
        cov_shape[0] == mu_shape[0] && cov_shape[1] == mu_shape[0])
        return 0;
    return lw_fail(LW_EFORMAT,
                   "%s: %s has shape %s and %s %s: statistics of d features are [d] and [d,d], "
                   "d from 1 to %d",
                   path, mu, lw_shape_text(a, mu_rank, mu_shape), cov,
                   lw_shape_text(b, cov_rank, cov_shape), MAX_DIM);
}

/* Floating-point elements as doubles: f64 as they are. */
static int take(const char *path, const char *name, lw_elem type, const void *data, int64_t n,
                double **out)
{
    if (type != LW_ELEM_F64 && type != LW_ELEM_F32 && type != LW_ELEM_F16 && type != LW_ELEM_BF16)
        return lw_fail(LW_EFORMAT, "%s: %s is of type %s, not of floating-point numbers", path,
                       name, lw_elem_name(type));
    LW_CLEANUP(lw_free) double *v = lw_calloc((size_t)n, sizeof *v);
    if (!v)
        return LW_ENOMEM;
    if (type == LW_ELEM_F64)
        memcpy(v, data, (size_t)n * sizeof *v);
    size_t size = lw_elem_size(type);
    for (int64_t i = 0; i < n; i++) {
        float f;
        if (type != LW_ELEM_F64) {
            lw_elem_to_f32(type, (const char *)data + (size_t)i * size, 1, &f);
            v[i] = (double)f;
        }
        if (!isfinite(v[i]))
            return lw_fail(LW_EFORMAT, "%s: element %lld of %s is not finite", path, (long long)i,
                           name);
    }
    *out = lw_steal(&v);
    return 0;
}

/* Evens out what rounding leaves; more is no covariance. */
static int make_symmetric(const char *path, const char *name, int32_t d, double *cov)
{
    size_t n = (size_t)d;
    for (size_t i = 0; i < n; i++)
        if (cov[i * n + i] < 0)
            return lw_fail(LW_EFORMAT, "%s: the variance of feature %zu in %s is %g", path, i, name,
                           cov[i * n + i]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            double *a = &cov[i * n + j], *b = &cov[j * n + i];
            if (fabs(*a - *b) > 1e-5 * sqrt(cov[i * n + i]) * sqrt(cov[j * n + j]))
                return lw_fail(LW_EFORMAT,
                               "%s: %s is not symmetric: %g at [%zu,%zu], %g at [%zu,%zu]", path,
                               name, *a, i, j, *b, j, i);
            *a = *b = *a == *b ? *a : *a / 2 + *b / 2;
        }
    return 0;
}

/* ---- .npz ---- */

typedef struct npz_names {
    char mu[64], sigma[64];
    lw_array a_mu, a_sigma; /* headers, then data */
    lw_array count, contract;
    bool has_mu, has_sigma;
} npz_names;

static void npz_names_clear(npz_names *k)
{
    lw_array_clear(&k->a_mu);
    lw_array_clear(&k->a_sigma);
    lw_array_clear(&k->count);
    lw_array_clear(&k->contract);
}

static int see_header(void *arg, const char *name, lw_array *a)
{
    npz_names *k = arg;
    if (lw_str_eq(name, k->mu)) {
        k->a_mu = *a;
        k->has_mu = true;
    } else if (lw_str_eq(name, k->sigma)) {
        k->a_sigma = *a;
        k->has_sigma = true;
    }
    return 0;
}

static int keep_wanted(void *arg, const char *name, lw_array *a)
{
    npz_names *k = arg;
    lw_array *to = lw_str_eq(name, k->mu)        ? &k->a_mu
                   : lw_str_eq(name, k->sigma)   ? &k->a_sigma
                   : lw_str_eq(name, "count")    ? &k->count
                   : lw_str_eq(name, "contract") ? &k->contract
                                                 : NULL;
    if (to) {
        *to = *a;
        *a = (lw_array){0};
    }
    return 0;
}

/* What our own files say beside the numbers; other shapes are other people's. */
static int take_about(const npz_names *k, lw_moments *s)
{
    if (k->count.data && k->count.type == LW_ELEM_I64 && k->count.count == 1)
        memcpy(&s->count, k->count.data, sizeof s->count);
    s->count = LW_MAX(s->count, 0);
    if (!k->contract.data || k->contract.type != LW_ELEM_U8 || k->contract.bytes > MAX_CONTRACT)
        return 0;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_add_n(&text, k->contract.data, strnlen(k->contract.data, k->contract.bytes));
    s->contract = text.failed ? NULL : lw_strdup(lw_str_c(&text));
    return s->contract ? 0 : LW_ENOMEM;
}

static int load_npz(const char *path, const char *set, lw_moments *s)
{
    LW_CLEANUP(npz_names_clear) npz_names k = {0};
    snprintf(k.mu, sizeof k.mu, "mu%s%s", *set ? "_" : "", set);
    snprintf(k.sigma, sizeof k.sigma, "sigma%s%s", *set ? "_" : "", set);
    const char *names[] = {k.mu, k.sigma, "count", "contract"};
    LW_TRY(lw_npz_pick(path, names, 2, false, see_header, &k));
    if (!k.has_mu || !k.has_sigma)
        return lw_fail(LW_EFORMAT,
                       "%s: no statistics: array '%s' is missing ('%s' and '%s' are "
                       "the mean and covariance)",
                       path, k.has_mu ? k.sigma : k.mu, k.mu, k.sigma);
    LW_TRY(check_shapes(path, k.mu, k.a_mu.rank, k.a_mu.shape, k.sigma, k.a_sigma.rank,
                        k.a_sigma.shape));
    k.a_mu = k.a_sigma = (lw_array){0};
    LW_TRY(lw_npz_pick(path, names, LW_COUNT(names), true, keep_wanted, &k));
    LW_TRY(check_shapes(path, k.mu, k.a_mu.rank, k.a_mu.shape, k.sigma, k.a_sigma.rank,
                        k.a_sigma.shape)); /* a file may change between two looks */
    s->dim = (int32_t)k.a_mu.count;
    s->dtype = k.a_sigma.type;
    LW_TRY(take(path, k.mu, k.a_mu.type, k.a_mu.data, k.a_mu.count, &s->mean));
    LW_TRY(take(path, k.sigma, k.a_sigma.type, k.a_sigma.data, k.a_sigma.count, &s->cov));
    LW_TRY(take_about(&k, s));
    return make_symmetric(path, k.sigma, s->dim, s->cov);
}

static int add_array(lw_npz *z, const char *name, lw_elem type, int rank, const int64_t *shape,
                     const void *data)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_TRY(lw_array_init(&a, type, rank, shape));
    memcpy(a.data, data, a.bytes);
    return lw_npz_add(z, name, &a);
}

static int save_npz(const char *path, const lw_moments *s)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    int64_t shape[2] = {s->dim, s->dim}, length = s->contract ? (int64_t)strlen(s->contract) : 0;
    LW_TRY(add_array(&z, "mu", LW_ELEM_F64, 1, shape, s->mean));
    LW_TRY(add_array(&z, "sigma", LW_ELEM_F64, 2, shape, s->cov));
    LW_TRY(add_array(&z, "count", LW_ELEM_I64, 0, shape, &s->count));
    if (s->contract)
        LW_TRY(add_array(&z, "contract", LW_ELEM_U8, 1, &length, s->contract));
    return lw_npz_save(path, &z);
}

/* ---- .safetensors ---- */

/* The set's name, with its point: of the only one when none is given. */
static int find_set(const lw_st_file *f, const char *set, lw_str *prefix)
{
    LW_CLEANUP(lw_str_clear) lw_str found = {0};
    int n = 0;
    if (*set) {
        lw_str_addf(prefix, "%s.", set);
        return prefix->failed ? LW_ENOMEM : 0;
    }
    if (lw_st_find(f, "mu"))
        return 0;
    for (size_t i = 0; i < lw_st_count(f); i++) {
        const char *name = lw_st_at(f, i)->name;
        if (!lw_str_ends(name, ".mu"))
            continue;
        prefix->len = 0;
        lw_str_add_n(prefix, name, strlen(name) - 2);
        if (found.len < 200)
            lw_str_addf(&found, "%s%.*s", n++ ? ", " : "", (int)strlen(name) - 3, name);
    }
    if (n > 1)
        return lw_fail(LW_EFORMAT, "%s: several sets of statistics, name one of them: %s",
                       lw_st_path(f), lw_str_c(&found));
    return prefix->failed ? LW_ENOMEM : 0;
}

static int load_safetensors(const char *path, const char *set, lw_moments *s)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_CLEANUP(lw_str_clear) lw_str prefix = {0}, mu = {0}, cov = {0};
    const lw_st_tensor *m, *c;
    LW_TRY(lw_st_open(path, &f));
    LW_TRY(find_set(f, set, &prefix));
    lw_str_addf(&mu, "%smu", lw_str_c(&prefix));
    lw_str_addf(&cov, "%scov", lw_str_c(&prefix));
    if (mu.failed || cov.failed)
        return LW_ENOMEM;
    LW_TRY(lw_st_get(f, lw_str_c(&mu), &m));
    LW_TRY(lw_st_get(f, lw_str_c(&cov), &c));
    LW_TRY(check_shapes(path, m->name, m->rank, m->shape, c->name, c->rank, c->shape));
    s->dim = (int32_t)m->count;
    s->dtype = c->type;
    LW_TRY(take(path, m->name, m->type, m->data, m->count, &s->mean));
    LW_TRY(take(path, c->name, c->type, c->data, c->count, &s->cov));
    const char *contract = lw_st_meta(f, "contract"), *count = lw_st_meta(f, "count");
    long long rows;
    if (count && sscanf(count, "%18lld", &rows) == 1 && rows > 0)
        s->count = rows;
    if (contract && !(s->contract = lw_strdup(contract)))
        return LW_ENOMEM;
    return make_symmetric(path, c->name, s->dim, s->cov);
}

static int save_safetensors(const char *path, const lw_moments *s)
{
    char count[32];
    snprintf(count, sizeof count, "%lld", (long long)s->count);
    const char *meta[] = {"count", count, "contract", s->contract};
    lw_st_tensor t[2] = {
        {.name = "mu", .type = LW_ELEM_F64, .rank = 1, .shape = {s->dim}, .data = s->mean},
        {.name = "cov", .type = LW_ELEM_F64, .rank = 2, .shape = {s->dim, s->dim}, .data = s->cov}};
    return lw_st_save(path, t, 2, meta, s->contract ? 2 : 1);
}

/* ---- either ---- */

static int unknown_ending(const char *path)
{
    return lw_fail(LW_EUSAGE, "%s: statistics are in files that end in .npz or .safetensors", path);
}

int lw_moments_load(const char *path, const char *set, lw_moments *out)
{
    LW_CLEANUP(lw_moments_clear) lw_moments s = {0};
    bool npz = lw_str_ends(path, ".npz");
    set = set ? set : "";
    if (strlen(set) > 32)
        return lw_fail(LW_EUSAGE, "%s: the name of a set of statistics has 32 letters at most",
                       path);
    if (!npz && !lw_str_ends(path, ".safetensors"))
        return unknown_ending(path);
    LW_TRY(npz ? load_npz(path, set, &s) : load_safetensors(path, set, &s));
    *out = s;
    s = (lw_moments){0};
    return 0;
}

int lw_moments_save(const char *path, const lw_moments *s)
{
    if (lw_str_ends(path, ".npz"))
        return save_npz(path, s);
    return lw_str_ends(path, ".safetensors") ? save_safetensors(path, s) : unknown_ending(path);
}

bool lw_moments_is_mean(const char *path, const char *set, const char *name)
{
    const bool tensors = lw_str_ends(path, ".safetensors");
    const size_t n = strlen(name), m = set ? strlen(set) : 0;
    if (m == 0)
        return lw_str_eq(name, "mu") || (tensors && lw_str_ends(name, ".mu"));
    if (n != m + 3)
        return false;
    return tensors ? strncmp(name, set, m) == 0 && lw_str_ends(name, ".mu")
                   : lw_str_starts(name, "mu_") && lw_str_eq(name + 3, set);
}

/* ---- clean-fid's names ---- */

/* The last word of text [0, *n) after a '_', which it is shortened by; false: none, or too long. */
static bool last_word(const char *text, size_t *n, char *word, size_t size)
{
    size_t at = *n;
    while (at > 0 && text[at - 1] != '_')
        at--;
    if (at < 2 || at == *n || *n - at >= size)
        return false;
    memcpy(word, text + at, *n - at);
    word[*n - at] = '\0';
    *n = at - 1;
    return true;
}

int lw_clean_fid_parse(const char *path, lw_clean_fid_name *out)
{
    static const char *const modes[] = {"_clean", "_legacy_pytorch", "_legacy_tensorflow"};
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    lw_clean_fid_name name = {0};
    if (!lw_str_ends(base, ".npz"))
        return 0;
    size_t n = strlen(base) - strlen(".npz");
    if (!last_word(base, &n, name.resolution, sizeof name.resolution) ||
        !last_word(base, &n, name.split, sizeof name.split))
        return 0;
    if (strspn(name.resolution, "0123456789") != strlen(name.resolution) &&
        !lw_str_eq(name.resolution, "na"))
        return 0;
    for (size_t m = 0; m < LW_COUNT(modes); m++) {
        const char *at = strstr(base, modes[m]);
        size_t long_ = strlen(modes[m]), before = at ? (size_t)(at - base) : 0;
        if (!at || before == 0 || before + long_ > n || before >= sizeof name.name)
            continue;
        size_t rest = n - before - long_; /* "" or _MODEL */
        if (rest >= sizeof name.model || (rest > 0 && (at[long_] != '_' || rest == 1)))
            continue;
        memcpy(name.name, base, before);
        snprintf(name.mode, sizeof name.mode, "%s", modes[m] + 1);
        memcpy(name.model, at + long_ + 1, rest > 0 ? rest - 1 : 0);
        *out = name;
        return 1;
    }
    return 0;
}
