/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an output directory, read for its page. They may be of an earlier version, of another
 * call or damaged: nothing of them is trusted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/mc/mc_page.h"

/* ---- fields ------------------------------------------------------------------------------------ */

/* What no measurement is, is no number: sums and products of the others are finite. */
static double number_of(const json_t *j)
{
    double v = json_is_number(j) ? json_number_value(j) : (double)NAN;
    return fabs(v) < 1e30 ? v : (double)NAN;
}

double lw_mc_number(const json_t *j, const char *const *keys)
{
    for (; *keys; keys++)
        j = json_object_get(j, *keys);
    return number_of(j);
}

double lw_mc_entry(const json_t *a, size_t i)
{
    return number_of(json_array_get(a, i));
}

bool lw_mc_pair(const json_t *a, double out[2])
{
    for (size_t i = 0; i < 2; i++)
        out[i] = lw_mc_entry(a, i);
    return isfinite(out[0]) && isfinite(out[1]);
}

bool lw_mc_interval(const json_t *j, double out[2])
{
    return lw_mc_pair(json_object_get(j, "interval"), out);
}

const char *lw_mc_text(const json_t *j, const char *key, const char *otherwise)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s && *s ? s : otherwise;
}

const json_t *lw_mc_reliability_at(const mc_shown *m, int32_t t, const char *score)
{
    char key[24];
    snprintf(key, sizeof key, "T=%d", (int)m->passes[t]);
    const json_t *one = json_object_get(json_object_get(m->exp0, "results"), key);
    return json_object_get(json_object_get(one, "scores"), score);
}

/* ---- arrays ------------------------------------------------------------------------------------ */

static const char *array_name(int score)
{
    return score == LW_PASS_TRACE_PRE    ? "trial_pre"
           : score == LW_PASS_TRACE_POST ? "trial_post"
                                         : lw_pass_score_name[score];
}

/* Of scores [trials][n]; *n 0: it is not known yet. */
static int mean_of(const char *path, const char *name, lw_array *a, int64_t *n, double **out)
{
    if (a->rank != 2 || a->shape[0] < 1 || a->shape[1] < 1 || (*n && a->shape[1] != *n))
        return lw_fail(LW_EFORMAT, "%s: '%s' is no array of trials and pictures", path, name);
    LW_TRY(lw_array_make_f32(a));
    *n = a->shape[1];
    LW_CLEANUP(lw_free) double *mean = lw_calloc((size_t)*n, sizeof *mean);
    if (!mean)
        return LW_ENOMEM;
    for (int64_t i = 0; i < a->count; i++)
        mean[i % *n] += (double)((const float *)a->data)[i] / (double)a->shape[0];
    for (int64_t i = 0; i < *n; i++)
        if (!isfinite(mean[i]))
            return lw_fail(LW_EFORMAT, "%s: '%s' of picture %lld is not finite", path, name,
                           (long long)i);
    *out = lw_steal(&mean);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mc_named *)a)->name, ((const mc_named *)b)->name);
}

static int read_names(const char *path, lw_npz *z, mc_shown *m)
{
    const lw_array *a = lw_npz_find(z, "paths");
    if (!a || a->rank != 2 || a->shape[0] < 1)
        return lw_fail(LW_EFORMAT, "%s: no array 'paths'", path);
    size_t n = (size_t)a->shape[0];
    m->sorted = lw_calloc(n, sizeof *m->sorted);
    m->name = lw_calloc(n, sizeof *m->name);
    if (!m->sorted || !m->name)
        return LW_ENOMEM;
    m->n = a->shape[0];
    for (int64_t i = 0; i < m->n; i++) {
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        LW_TRY(lw_npz_text_at(a, i, &s));
        m->sorted[i] = (mc_named){lw_strdup(lw_str_c(&s)), i};
        m->name[i] = m->sorted[i].name;
        if (!m->name[i])
            return LW_ENOMEM;
    }
    qsort(m->sorted, n, sizeof *m->sorted, by_name);
    return 0;
}

typedef struct picked {
    const char *path;
    int64_t n;
    double *mean;
} picked;

static int pick_trace(void *arg, const char *name, lw_array *a)
{
    picked *p = arg;
    return p->mean ? 0 : mean_of(p->path, name, a, &p->n, &p->mean);
}

static const char *file_of(const mc_page *p, const mc_shown *m, const char *experiment,
                           const char *file, lw_str *path)
{
    path->len = 0;
    lw_str_addf(path, "%s/%s/%s/%s", p->dir, experiment, m->folder, file);
    return lw_str_c(path);
}

/* All scores of the most passes, trace_pre of the others. */
static int read_trials(const mc_page *p, mc_shown *m)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char file[64];
    for (int32_t t = m->n_passes - 1; t >= 0; t--) {
        LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
        snprintf(file, sizeof file, "exp0_trials_T%d.npz", (int)m->passes[t]);
        if (!lw_path_exists(file_of(p, m, "exp0_nested_mc", file, &path)))
            continue;
        if (t < m->n_passes - 1) {
            if (m->n == 0)
                continue;
            static const char *const names[] = {"trial_pre"};
            picked one = {.path = lw_str_c(&path), .n = m->n};
            int rc = lw_npz_pick(lw_str_c(&path), names, 1, true, pick_trace, &one);
            m->trace[t] = one.mean;
            LW_TRY(rc);
            continue;
        }
        LW_TRY(lw_npz_load(lw_str_c(&path), &z));
        LW_TRY(read_names(lw_str_c(&path), &z, m));
        for (int s = 0; s < LW_PASS_SCORES; s++) {
            lw_array *a = lw_npz_find(&z, array_name(s));
            if (a)
                LW_TRY(mean_of(lw_str_c(&path), array_name(s), a, &m->n, &m->mean[s]));
        }
    }
    return 0;
}

/* ---- models ------------------------------------------------------------------------------------ */

#define SUMMARY "_summary.json"
typedef struct subset {
    const char *dir, *prefix;
} subset;
static const subset exp4 = {"exp4_subset_recipe", "exp4_subset_"};
static const subset exp5 = {"exp5_subset_ambiguity", "exp5_subset_"};

static int load_file(const char *path, json_t **out)
{
    if (!lw_path_exists(path))
        return 0;
    LW_TRY(lw_json_load(path, out));
    return json_is_object(*out) ? 0 : lw_fail(LW_EFORMAT, "%s: no JSON object", path);
}

static int load(const mc_page *p, const mc_shown *m, const char *experiment, const char *file,
                json_t **out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    return load_file(file_of(p, m, experiment, file, &path), out);
}

static int read_passes(const mc_page *p, mc_shown *m)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    int n = 0;
    file_of(p, m, "exp0_nested_mc", "exp0_summary.json", &path);
    LW_TRY(lw_json_get_i32s(m->exp0, lw_str_c(&path), "passes", LW_MC_PASSES, m->passes, &n));
    LW_TRY(lw_json_get_i32_in(m->exp0, lw_str_c(&path), "trials", 1, 1 << 30, &m->trials));
    for (int i = 0; i < n; i++)
        if (m->passes[i] < 2 || (i && m->passes[i] <= m->passes[i - 1]))
            return lw_fail(LW_EFORMAT, "%s: 'passes' are no rising numbers", lw_str_c(&path));
    if (n < 1)
        return lw_fail(LW_EFORMAT, "%s: 'passes' has none", lw_str_c(&path));
    m->n_passes = n;
    return 0;
}

/* Of an experiment whose files have the model in their name. */
static int load_subset(const mc_page *p, const mc_shown *m, const subset *s, json_t **out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_str_addf(&path, "%s/%s/%s%s" SUMMARY, p->dir, s->dir, s->prefix, m->folder);
    return load_file(lw_str_c(&path), out);
}

/* Experiments that may have models of their own. */
static int read_own(const mc_page *p, mc_shown *m)
{
    LW_TRY(load(p, m, "exp0b_norm_geometry", "exp0b_summary.json", &m->exp0b));
    LW_TRY(load_subset(p, m, &exp4, &m->exp4));
    return load_subset(p, m, &exp5, &m->exp5);
}

static bool same_noise(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"model_hash", "sites", "perturb", "dropout", "layer"};
    a = json_object_get(a, "contract");
    b = json_object_get(b, "contract");
    for (size_t i = 0; a && b && i < LW_COUNT(keys); i++)
        if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
            return false;
    return true;
}

/* A later call may have made exp0 anew with other sites: what was measured before says nothing of these scores. */
static void leave_apart(mc_shown *m)
{
    struct {
        const char *name;
        json_t **tree;
    } parts[] = {{"exp0b", &m->exp0b},
                 {"exp4", &m->exp4},
                 {"exp5", &m->exp5},
                 {"validity", &m->validity},
                 {"errors", &m->errors}};
    for (size_t i = 0; i < LW_COUNT(parts); i++)
        if (!same_noise(m->exp0, *parts[i].tree)) {
            lw_str_addf(&m->apart, "%s%s", m->apart.len ? "," : "", parts[i].name);
            lw_json_drop(parts[i].tree);
        }
    if (!same_noise(m->exp0, m->laplace))
        json_object_del(m->laplace, "spearman_with_mc"); /* the rest has no noise in it */
}

static int read_model(const mc_page *p, mc_shown *m)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(read_own(p, m));
    if (!m->exp0)
        return 0;
    LW_TRY(read_passes(p, m));
    LW_TRY(load(p, m, "exp0_nested_mc", "exp0_run.json", &m->run));
    LW_TRY(load(p, m, "validity", "validity_summary.json", &m->validity));
    LW_TRY(load(p, m, "errors", "errors_summary.json", &m->errors));
    LW_TRY(load(p, m, "one_pass", "laplace_summary.json", &m->laplace));
    leave_apart(m);
    LW_TRY(read_trials(p, m));
    file_of(p, m, "exp0_nested_mc", "exp0_pictures.npz", &path);
    return lw_path_exists(lw_str_c(&path)) ? lw_npz_load(lw_str_c(&path), &m->pictures) : 0;
}

/* A model of some experiment that was finished, unless it is there already. */
static int add_model(mc_page *p, size_t *cap, const char *folder)
{
    LW_CLEANUP(lw_json_drop) json_t *exp0 = NULL;
    const mc_shown one = {.folder = (char *)folder};
    for (size_t i = 0; i < p->all; i++)
        if (lw_str_eq(p->model[i].folder, folder))
            return 0;
    LW_TRY(load(p, &one, "exp0_nested_mc", "exp0_summary.json", &exp0));
    LW_TRY(lw_grow(&p->model, cap, p->all + 1, sizeof *p->model));
    mc_shown *m = &p->model[p->all++];
    *m = (mc_shown){.folder = lw_strdup(folder), .exp0 = lw_steal(&exp0)};
    if (!m->folder)
        return LW_ENOMEM;
    lw_clean(m->label, sizeof m->label, folder);
    return read_model(p, m);
}

/* NAME of PREFIX NAME SUMMARY; of a folder of models (prefix NULL) the entry itself. "": none, or all
 * models together. */
static void name_in(const char *entry, const char *prefix, lw_str *out)
{
    out->len = 0;
    if (!prefix)
        lw_str_add(out, entry);
    else if (lw_str_starts(entry, prefix) && lw_str_ends(entry, SUMMARY) &&
             !lw_str_ends(entry, "_overall" SUMMARY) &&
             strlen(entry) > strlen(prefix) + strlen(SUMMARY))
        lw_str_add_n(out, entry + strlen(prefix), strlen(entry) - strlen(prefix) - strlen(SUMMARY));
}

/* Models of OUTPUT/dir. file: what one that was finished has in its folder. */
static int add_models(mc_page *p, size_t *cap, const char *dir, const char *prefix,
                      const char *file)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, name = {0}, done = {0};
    char **entry = NULL;
    size_t n = 0;
    int rc = 0;
    lw_path_join(&path, p->dir, dir);
    if (!lw_path_is_dir(lw_str_c(&path)))
        return 0;
    LW_TRY(lw_list_dir(lw_str_c(&path), &entry, &n));
    for (size_t i = 0; i < n && rc == 0; i++) {
        name_in(entry[i], prefix, &name);
        done.len = 0;
        lw_str_addf(&done, "%s/%s/%s", lw_str_c(&path), entry[i], file ? file : "");
        if (name.len && (!file || lw_path_exists(lw_str_c(&done))))
            rc = add_model(p, cap, lw_str_c(&name));
    }
    lw_list_free(&entry, n);
    return rc;
}

int lw_mc_page_read(const char *dir, mc_page *p)
{
    size_t cap = 0;
    *p = (mc_page){.dir = dir};
    if (!lw_path_is_dir(dir))
        return lw_fail(LW_EIO, "%s: no such directory", dir);
    LW_TRY(add_models(p, &cap, "exp0_nested_mc", NULL, "exp0_summary.json"));
    p->n = p->all;
    LW_TRY(add_models(p, &cap, "exp0b_norm_geometry", NULL, "exp0b_summary.json"));
    LW_TRY(add_models(p, &cap, exp4.dir, exp4.prefix, NULL));
    LW_TRY(add_models(p, &cap, exp5.dir, exp5.prefix, NULL));
    if (p->all == 0)
        return lw_fail(LW_EUSAGE,
                       "%s: no output of `leeway mc`: exp0_nested_mc/MODEL/exp0_summary.json is "
                       "not there; an interrupted call goes on with --resume",
                       dir);
    return 0;
}

static void clear_model(mc_shown *m)
{
    json_t **const trees[] = {&m->exp0,     &m->exp0b,  &m->exp4,    &m->exp5,
                              &m->validity, &m->errors, &m->laplace, &m->run};
    for (size_t i = 0; i < LW_COUNT(trees); i++)
        lw_json_drop(trees[i]);
    for (int64_t i = 0; m->sorted && i < m->n; i++)
        lw_free(&m->sorted[i].name);
    for (int s = 0; s < LW_PASS_SCORES; s++)
        lw_free(&m->mean[s]);
    for (int t = 0; t < LW_MC_PASSES; t++)
        lw_free(&m->trace[t]);
    lw_free(&m->sorted);
    lw_free(&m->name);
    lw_free(&m->folder);
    lw_str_clear(&m->apart);
    lw_npz_clear(&m->pictures);
}

void lw_mc_page_clear(mc_page *p)
{
    for (size_t i = 0; i < p->all; i++)
        clear_model(&p->model[i]);
    lw_free(&p->model);
    lw_html_free(&p->html);
}
