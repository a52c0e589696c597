/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a score knows: does it tell the pictures that the undisturbed network is wrong about (area under
 * the ROC curve), and does it rank pictures as a number from elsewhere does (--reference), for example
 * the entropy of what people answered?
 */
#include <math.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

/* ---- errors ------------------------------------------------------------------------------------ */

static int find_errors(mc_model *m, bool *wrong, int64_t *n_wrong)
{
    LW_CLEANUP(lw_free) float *logits = NULL;
    int32_t width;
    LW_TRY(lw_mc_plain(m, "logits", &logits, &width));
    *n_wrong = 0;
    for (int64_t i = 0; i < m->n; i++) {
        wrong[i] = lw_argmax(logits + i * width, width) != m->right[i];
        *n_wrong += wrong[i];
    }
    return 0;
}

/* {SCORE: {auroc, interval, shuffled, shuffled_interval}} */
static int aurocs_json(const mc_model *m, const double *means, const bool *wrong, json_t *into)
{
    json_t *all = json_object();
    json_object_set_new(into, "scores", all);
    for (int32_t s = 0; s < lw_mc_score_count(m); s++) {
        lw_interval v, chance;
        LW_TRY(lw_auroc_interval(means + s * m->n, wrong, m->n, m->c->seed, &v));
        LW_TRY(lw_auroc_shuffled(means + s * m->n, wrong, m->n, m->c->seed, &chance));
        json_object_set_new(all, lw_mc_score_name(s),
                            json_pack("{s:o, s:o, s:o, s:o}", "auroc", lw_json_real(v.value),
                                      "interval", lw_mc_interval_json(v), "shuffled",
                                      lw_json_real(chance.value), "shuffled_interval",
                                      lw_mc_interval_json(chance)));
    }
    return 0;
}

static int add_errors(mc_model *m, const double *means, json_t *j)
{
    LW_CLEANUP(lw_free) bool *wrong = lw_calloc((size_t)m->n, sizeof *wrong);
    int64_t n_wrong;
    if (!wrong)
        return LW_ENOMEM;
    LW_TRY(find_errors(m, wrong, &n_wrong));
    lw_interval accuracy = lw_share_interval(m->n - n_wrong, m->n, LW_Z_95);
    json_object_set_new(j, "accuracy", lw_json_real(accuracy.value));
    json_object_set_new(j, "accuracy_interval", lw_mc_interval_json(accuracy));
    json_object_set_new(j, "errors", json_integer((json_int_t)n_wrong));
    return aurocs_json(m, means, wrong, j);
}

/* ---- a number from elsewhere ------------------------------------------------------------------- */

/* Of one row: the number itself, or the entropy of its counts. */
static int number_of(const char *path, double *row, int64_t width, int64_t at, double *out)
{
    double sum = 0;
    if (width == 1) {
        *out = row[0];
        return isfinite(*out)
                   ? 0
                   : lw_fail(LW_ENUMERIC, "%s: row %lld is no number", path, (long long)at);
    }
    for (int64_t k = 0; k < width; k++) {
        if (!(row[k] >= 0))
            return lw_fail(LW_EFORMAT, "%s: row %lld has a count of %g", path, (long long)at,
                           row[k]);
        sum += row[k];
    }
    if (!(sum > 0))
        return lw_fail(LW_EFORMAT, "%s: row %lld has no counts", path, (long long)at);
    for (int64_t k = 0; k < width; k++)
        row[k] /= sum;
    *out = lw_entropy_of(row, width);
    return 0;
}

/* One row for each picture, in their order, or for each of the split they were drawn from. */
static int read_reference(const mc_model *m, double *out)
{
    const char *path = m->c->reference;
    LW_CLEANUP(lw_free) double *x = NULL;
    int64_t shape[3];
    int rank;
    LW_TRY(lw_mc_read_array(path, "reference", &x, &rank, shape));
    int64_t rows = shape[0], width = rank == 1 ? 1 : shape[1];
    bool own = rows == m->n, split = rows == m->data->split_rows && m->c->split != LW_SPLIT_ALL;
    if (rank > 2 || (!own && !split))
        return lw_fail(
            LW_EFORMAT,
            "%s: %lld rows of rank %d for %lld pictures of %lld in the %s split: one row "
            "for each of either, a number or counts",
            path, (long long)rows, rank, (long long)m->n, (long long)m->data->split_rows,
            lw_split_name((lw_split)m->c->split));
    for (int64_t i = 0; i < m->n; i++) {
        int64_t at = own ? i : lw_data_row_number(m->data, i);
        LW_TRY(number_of(path, x + at * width, width, at, &out[i]));
    }
    return 0;
}

static int add_reference(const mc_model *m, const double *means, json_t *j)
{
    json_t *all = json_object();
    json_object_set_new(j, "reference",
                        json_pack("{s:s, s:o}", "file", m->c->reference, "scores", all));
    for (int32_t s = 0; s < lw_mc_score_count(m); s++) {
        lw_interval v;
        LW_TRY(lw_spearman_interval(means + s * m->n, m->reference, m->n, m->c->seed, &v));
        json_object_set_new(all, lw_mc_score_name(s),
                            json_pack("{s:o, s:o}", "spearman", lw_json_real(v.value), "interval",
                                      lw_mc_interval_json(v)));
    }
    return 0;
}

/* ---- both, before the passes ------------------------------------------------------------------- */

/* Whose errors cannot be known, for want of classes or labels, is compared with --reference alone. */
static int find_right(const mc_model *m, int32_t *right, bool *have)
{
    *have = false;
    if (m->net->classes == 0 && !m->c->reference)
        return lw_fail(LW_EUSAGE,
                       "--only errors: %s has no classes; --reference F compares its scores with a "
                       "number of each picture",
                       m->out->name);
    if (m->net->classes > 0)
        LW_TRY(lw_mc_labels(m, m->net->classes, right, have));
    if (*have || m->c->reference)
        return 0;
    return lw_fail(LW_EUSAGE,
                   "--only errors: %s has %d classes, %s has %d: --class-map F says which is which",
                   m->out->name, (int)m->net->classes, lw_str_c(&m->spec),
                   m->data->labelled ? (int)m->data->classes : 0);
}

int lw_mc_errors_open(mc_model *m)
{
    LW_CLEANUP(lw_free) int32_t *right = lw_calloc((size_t)m->n, sizeof *right);
    LW_CLEANUP(lw_free) double *reference = lw_calloc((size_t)m->n, sizeof *reference);
    bool have;
    if (!right || !reference)
        return LW_ENOMEM;
    LW_TRY(find_right(m, right, &have));
    if (m->c->reference)
        LW_TRY(read_reference(m, reference));
    m->right = have ? lw_steal(&right) : NULL;
    m->reference = m->c->reference ? lw_steal(&reference) : NULL;
    return 0;
}

/* ---- what is said ------------------------------------------------------------------------------ */

int lw_mc_errors(mc_model *m)
{
    LW_CLEANUP(lw_free)
    double *means = lw_calloc((size_t)lw_mc_score_count(m) * (size_t)m->n, sizeof *means);
    LW_CLEANUP(lw_json_drop) json_t *j = lw_mc_summary_json(m, "errors");
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    if (!means)
        return LW_ENOMEM;
    LW_TRY(lw_mc_means(m, means));
    json_object_set_new(j, "passes", json_integer(m->most)); /* the largest alone */
    if (m->right)
        LW_TRY(add_errors(m, means, j));
    if (m->reference)
        LW_TRY(add_reference(m, means, j));
    LW_TRY(lw_mkdirs(lw_mc_path(m, "errors", true, "", &dir)));
    return lw_mc_save_json(m, "errors", true, "errors_summary.json", j);
}
