/* SPDX-License-Identifier: Apache-2.0 */
/* exp5: is a picture uncertain that lies between classes? Ambiguity against embeddings of texts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

enum { TEMPLATES = 64 };

typedef struct ambiguity {
    double *margin, *entropy, *sensitivity, *uncertainty;
    bool *low_margin, *high_entropy;
    int32_t *best, *want;
    double low, high; /* thresholds */
    bool labels;
} ambiguity;

void lw_mc_texts_clear(mc_texts *t)
{
    lw_free(&t->text);
}

static void ambiguity_clear(ambiguity *a)
{
    lw_free(&a->margin);
    lw_free(&a->entropy);
    lw_free(&a->sensitivity);
    lw_free(&a->uncertainty);
    lw_free(&a->low_margin);
    lw_free(&a->high_entropy);
    lw_free(&a->best);
    lw_free(&a->want);
}

/* ---- texts ------------------------------------------------------------------------------------- */

/* --templates: so many of the file's, or a name of each, '|' between them. */
static int count_templates(const mc_model *m, mc_texts *t)
{
    const char *said = m->c->templates;
    int64_t n = 1;
    t->z.templates = t->in_file;
    if (!said)
        return 0;
    bool names = lw_parse_i64(said, &n) < 0;
    lw_errclear();
    for (const char *p = said; names && *p; p++)
        n += *p == '|';
    if (n < 1 || (names ? n != t->in_file : n > t->in_file))
        return lw_fail(LW_EUSAGE, "--templates %s: %lld of them, %s has %d", said, (long long)n,
                       m->c->text_embeddings, (int)t->in_file);
    t->z.templates = (int32_t)n;
    return 0;
}

/* The model's own, else that of CLIP. */
static int find_scale(const mc_model *m, mc_texts *t)
{
    bool have;
    t->z.scale = log(100);
    LW_TRY(lw_mc_model_scalar(m->net, "logit_scale", &t->z.scale, &have));
    LW_TRY(lw_mc_model_scalar(m->net, "logit_bias", &t->z.bias, &t->sigmoid));
    t->scale = have ? "model" : "assumed";
    if (!have)
        lw_log(LW_LOG_WARN, "mc",
               "%s: no logit_scale in its file: 100, as CLIP's, is taken; margins and entropies "
               "follow it",
               m->out->name);
    return 0;
}

int lw_mc_texts_open(const mc_model *m, int32_t dim, mc_texts *t)
{
    const char *path = m->c->text_embeddings;
    int64_t shape[3];
    int rank;
    if (!path)
        return lw_fail(LW_EUSAGE, "--only exp5 compares pictures with texts: --text-embeddings F, "
                                  "[classes, D] or [templates, classes, D]");
    LW_TRY(lw_mc_read_array(path, "text_embeddings", &t->text, &rank, shape));
    if (rank < 2)
        return lw_fail(LW_EFORMAT, "%s: %lld numbers: rows of classes are meant", path,
                       (long long)shape[0]);
    int64_t width = shape[rank - 1], classes = shape[rank - 2], n = rank == 3 ? shape[0] : 1;
    if (width != dim)
        return lw_fail(
            LW_EFORMAT,
            "%s: embeddings of %lld numbers, '%s' of %s has %d: they are of another model", path,
            (long long)width, m->out->layer, m->out->name, (int)dim);
    if (classes < 2 || classes > INT32_MAX || n < 1 || n > TEMPLATES)
        return lw_fail(LW_EFORMAT, "%s: %lld templates of %lld classes: at most %d, of at least 2",
                       path, (long long)n, (long long)classes, (int)TEMPLATES);
    t->in_file = (int32_t)n;
    t->z = (lw_zero_shot){.dim = dim, .classes = (int32_t)classes, .text = t->text};
    LW_TRY(count_templates(m, t));
    return find_scale(m, t);
}

/* ---- ambiguity --------------------------------------------------------------------------------- */

static int ambiguity_init(const mc_model *m, ambiguity *a)
{
    size_t n = (size_t)m->n;
    a->margin = lw_calloc(n, sizeof *a->margin);
    a->entropy = lw_calloc(n, sizeof *a->entropy);
    a->sensitivity = lw_calloc(n, sizeof *a->sensitivity);
    a->uncertainty = lw_calloc((size_t)lw_mc_score_count(m) * n, sizeof *a->uncertainty);
    a->low_margin = lw_calloc(n, sizeof *a->low_margin);
    a->high_entropy = lw_calloc(n, sizeof *a->high_entropy);
    a->best = lw_calloc(n, sizeof *a->best);
    a->want = lw_calloc(n, sizeof *a->want);
    return a->margin && a->entropy && a->sensitivity && a->uncertainty && a->low_margin &&
                   a->high_entropy && a->best && a->want
               ? 0
               : LW_ENOMEM;
}

static int quantile(const double *v, int64_t n, double q, double *out)
{
    LW_CLEANUP(lw_free) double *sorted = lw_calloc((size_t)n, sizeof *sorted);
    if (!sorted)
        return LW_ENOMEM;
    memcpy(sorted, v, (size_t)n * sizeof *sorted);
    lw_sort(sorted, (size_t)n);
    *out = lw_quantile(sorted, (size_t)n, q);
    return 0;
}

static int measure(mc_model *m, const mc_texts *t, ambiguity *a)
{
    LW_CLEANUP(lw_free) float *features = NULL;
    int32_t width;
    LW_TRY(ambiguity_init(m, a));
    LW_TRY(lw_mc_labels(m, t->z.classes, a->want, &a->labels));
    LW_TRY(lw_mc_plain(m, m->out->layer, &features, &width));
    LW_TRY(lw_zero_shot_of(&t->z, features, m->n, a->margin, a->entropy, a->sensitivity, a->best));
    LW_TRY(quantile(a->margin, m->n, m->c->quantile, &a->low));
    LW_TRY(quantile(a->entropy, m->n, 1 - m->c->quantile, &a->high));
    for (int64_t i = 0; i < m->n; i++) {
        a->low_margin[i] = a->margin[i] <= a->low;
        a->high_entropy[i] = a->entropy[i] >= a->high;
    }
    return lw_mc_means(m, a->uncertainty);
}

/* ---- files ------------------------------------------------------------------------------------- */

static void put(json_t *values, json_t *intervals, const char *name, lw_interval v)
{
    json_object_set_new(values, name, lw_json_real(v.value));
    json_object_set_new(intervals, name, lw_mc_interval_json(v));
}

/* How one score goes with the ambiguity: numbers into `values`, their intervals beside them. */
static int compare(const mc_model *m, const ambiguity *a, const double *score, json_t *values,
                   json_t *intervals)
{
    const struct {
        const char *name;
        const double *with;
        bool negative;
    } rho[] = {{"rho_uncertainty_vs_negative_margin", a->margin, true},
               {"rho_uncertainty_vs_entropy", a->entropy, false},
               {"rho_uncertainty_vs_prompt_sensitivity", a->sensitivity, false}};
    LW_CLEANUP(lw_free) double *with = lw_calloc((size_t)m->n, sizeof *with);
    lw_interval v;
    if (!with)
        return LW_ENOMEM;
    for (size_t k = 0; k < LW_COUNT(rho); k++) {
        for (int64_t i = 0; i < m->n; i++)
            with[i] = rho[k].negative ? -rho[k].with[i] : rho[k].with[i];
        LW_TRY(lw_spearman_interval(score, with, m->n, m->c->seed, &v));
        put(values, intervals, rho[k].name, v);
    }
    LW_TRY(lw_auroc_interval(score, a->low_margin, m->n, m->c->seed, &v));
    put(values, intervals, "auroc_low_margin", v);
    LW_TRY(lw_auroc_interval(score, a->high_entropy, m->n, m->c->seed, &v));
    put(values, intervals, "auroc_high_entropy", v);
    return 0;
}

/* Of all scores; those of trace_pre are the ones that users of this experiment know. */
static int compare_all(const mc_model *m, const ambiguity *a, json_t *j)
{
    json_t *all = json_object();
    json_object_set_new(j, "scores", all);
    for (int32_t s = 0; s < lw_mc_score_count(m); s++) {
        json_t *values = json_object(), *intervals = json_object();
        json_object_set_new(all, lw_mc_score_name(s),
                            json_pack("{s:o, s:o}", "metrics", values, "intervals", intervals));
        LW_TRY(compare(m, a, a->uncertainty + s * m->n, values, intervals));
        if (s == LW_PASS_TRACE_PRE) {
            json_object_set(j, "metrics", values);
            json_object_set(j, "intervals", intervals);
        }
    }
    return 0;
}

static int add_i64s(const mc_model *m, lw_npz *z, const char *name, const bool *values)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_TRY(lw_array_init(&a, LW_ELEM_I64, 1, &m->n));
    for (int64_t i = 0; i < m->n; i++)
        ((int64_t *)a.data)[i] = values[i];
    return lw_npz_add(z, name, &a);
}

static int add_trials(const mc_model *m, lw_npz *z)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    const int64_t shape[] = {m->c->trials, m->n};
    LW_TRY(lw_array_init(&a, LW_ELEM_F64, 2, shape));
    for (int64_t i = 0; i < a.count; i++)
        ((double *)a.data)[i] = mc_at(m, m->c->n_passes - 1, 0)[i][LW_PASS_TRACE_PRE];
    return lw_npz_add(z, "uncertainty_trials", &a);
}

static int write_arrays(const mc_model *m, const ambiguity *a)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_TRY(lw_mc_add_paths(m, &z));
    LW_TRY(add_trials(m, &z));
    LW_TRY(lw_mc_add_f64(m, &z, "uncertainty", a->uncertainty + LW_PASS_TRACE_PRE * m->n));
    LW_TRY(lw_mc_add_f64(m, &z, "margin", a->margin));
    LW_TRY(lw_mc_add_f64(m, &z, "entropy", a->entropy));
    LW_TRY(lw_mc_add_f64(m, &z, "prompt_sensitivity", a->sensitivity));
    LW_TRY(add_i64s(m, &z, "low_margin", a->low_margin));
    LW_TRY(add_i64s(m, &z, "high_entropy", a->high_entropy));
    char name[128];
    snprintf(name, sizeof name, "exp5_subset_%s.npz", m->out->name);
    return lw_mc_save(m, "exp5_subset_ambiguity", false, name, &z);
}

static void add_facts(const mc_model *m, const mc_texts *t, const ambiguity *a, json_t *j)
{
    int64_t right = 0;
    for (int64_t i = 0; i < m->n; i++)
        right += a->best[i] == a->want[i];
    json_object_set_new(j, "passes", json_integer(m->most)); /* the largest alone */
    json_object_set_new(j, "text_embeddings", json_string(m->c->text_embeddings));
    json_object_set_new(j, "num_classes", json_integer(t->z.classes));
    json_object_set_new(j, "num_templates", json_integer(t->z.templates));
    if (m->c->templates)
        json_object_set_new(j, "templates", json_string(m->c->templates));
    json_object_set_new(j, "logit_scale", lw_json_real(t->z.scale));
    json_object_set_new(j, "logit_bias", lw_json_real(t->z.bias));
    json_object_set_new(j, "logit_scale_from", json_string(t->scale));
    json_object_set_new(j, "quantile", lw_json_real(m->c->quantile));
    json_object_set_new(j, "thresholds",
                        json_pack("{s:o, s:o}", "low_margin", lw_json_real(a->low), "high_entropy",
                                  lw_json_real(a->high)));
    if (a->labels)
        json_object_set_new(j, "accuracy", lw_json_real((double)right / (double)m->n));
}

int lw_mc_zero_shot_check(const mc_model *m)
{
    LW_CLEANUP(lw_mc_texts_clear) mc_texts t = {0};
    return lw_mc_texts_open(m, m->dim, &t);
}

int lw_mc_zero_shot(mc_model *m)
{
    LW_CLEANUP(lw_mc_texts_clear) mc_texts t = {0};
    LW_CLEANUP(ambiguity_clear) ambiguity a = {0};
    char name[128];
    LW_CLEANUP(lw_json_drop) json_t *j = lw_mc_summary_json(m, "exp5_subset_ambiguity");
    LW_TRY(lw_mc_texts_open(m, m->dim, &t));
    LW_TRY(measure(m, &t, &a));
    add_facts(m, &t, &a, j);
    LW_TRY(compare_all(m, &a, j));
    LW_TRY(write_arrays(m, &a));
    snprintf(name, sizeof name, "exp5_subset_%s_summary.json", m->out->name);
    return lw_mc_save_json(m, "exp5_subset_ambiguity", false, name, j);
}
