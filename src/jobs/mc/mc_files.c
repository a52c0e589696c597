/* SPDX-License-Identifier: Apache-2.0 */
/* What is written of a model's trials: arrays and summaries under the names that users of this method
 * know (exp0_nested_mc, exp0b_norm_geometry, exp4_subset_recipe). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

/* ---- arrays ------------------------------------------------------------------------------------ */

int lw_mc_add_score(const mc_model *m, lw_npz *z, const char *name, int32_t p, lw_pass_score s,
                    int32_t trials)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    const int64_t shape[] = {trials, m->n};
    LW_TRY(lw_array_init(&a, LW_ELEM_F32, 2, shape));
    for (int64_t i = 0; i < a.count; i++)
        ((float *)a.data)[i] = (float)mc_at(m, p, 0)[i][s];
    return lw_npz_add(z, name, &a);
}

/* Of all trials. */
static int add_score(const mc_model *m, lw_npz *z, const char *name, int32_t p, lw_pass_score s)
{
    return lw_mc_add_score(m, z, name, p, s, m->c->trials);
}

int lw_mc_add_paths(const mc_model *m, lw_npz *z)
{
    return lw_npz_add_text(z, "paths", (const char *const *)m->name, m->n);
}

int lw_mc_add_f64(const mc_model *m, lw_npz *z, const char *name, const double *values)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_TRY(lw_array_init(&a, LW_ELEM_F64, 1, &m->n));
    memcpy(a.data, values, a.bytes);
    return lw_npz_add(z, name, &a);
}

int lw_mc_save(const mc_model *m, const char *experiment, bool by_model, const char *name,
               const lw_npz *z)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_TRY(lw_mkdirs(lw_mc_path(m, experiment, by_model, "", &dir)));
    lw_mc_path(m, experiment, by_model, name, &path);
    return path.failed ? LW_ENOMEM : lw_npz_save(lw_str_c(&path), z);
}

int lw_mc_save_json(const mc_model *m, const char *experiment, bool by_model, const char *name,
                    const json_t *j)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_mc_path(m, experiment, by_model, name, &path);
    return path.failed ? LW_ENOMEM : lw_json_save(lw_str_c(&path), j);
}

/* ---- summaries --------------------------------------------------------------------------------- */

json_t *lw_mc_reliability_json(const lw_reliability *r)
{
    return json_pack("{s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "num_trials",
                     (int)r->trials, "num_images", (json_int_t)r->n, "signal",
                     lw_json_real(r->signal), "noise", lw_json_real(r->noise), "snr",
                     lw_json_real(r->snr), "icc", lw_json_real(r->icc), "pairwise_spearman_median",
                     lw_json_real(r->rho_median), "pairwise_spearman_iqr", lw_json_real(r->rho_iqr),
                     "pairwise_spearman_q25", lw_json_real(r->rho_q25), "pairwise_spearman_q75",
                     lw_json_real(r->rho_q75), "status", lw_reliability_status(r));
}

json_t *lw_mc_interval_json(lw_interval v)
{
    return json_pack("[o, o]", lw_json_real(v.low), lw_json_real(v.high));
}

/* Of score s at T number p, of the first trials; *mean over pictures and trials. */
static int reliability(const mc_model *m, int32_t p, lw_pass_score s, int32_t trials,
                       lw_reliability *out, double *mean)
{
    int64_t n = trials * m->n;
    LW_CLEANUP(lw_free) double *v = lw_calloc((size_t)n, sizeof *v);
    if (!v)
        return LW_ENOMEM;
    *mean = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] = mc_at(m, p, 0)[i][s];
        *mean += v[i] / (double)n;
    }
    return lw_reliability_of(v, trials, m->n, out);
}

/* Of the trials that are done. */
int lw_mc_progress(const mc_model *m)
{
    static const lw_pass_score of[] = {LW_PASS_TRACE_PRE, LW_PASS_TRACE_POST};
    lw_reliability r[2];
    double mean;
    char name[64];
    for (int32_t p = 0; p < m->c->n_passes; p++) {
        for (int k = 0; k < 2; k++)
            LW_TRY(reliability(m, p, of[k], m->done, &r[k], &mean));
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack(
            "{s:s, s:s, s:i, s:i, s:i, s:I, s:o, s:o}", "experiment", "exp0_nested_mc", "model",
            m->out->name, "passes", (int)m->c->passes[p], "completed_trials", (int)m->done,
            "total_trials", (int)m->c->trials, "num_images", (json_int_t)m->n, "pre_norm",
            lw_mc_reliability_json(&r[0]), "post_norm", lw_mc_reliability_json(&r[1]));
        snprintf(name, sizeof name, "exp0_progress_T%d.json", (int)m->c->passes[p]);
        LW_TRY(lw_mc_save_json(m, "exp0_nested_mc", true, name, j));
    }
    return 0;
}

/* The sites, by name: what was disturbed must be said. */
static json_t *sites_json(const lw_sites *s)
{
    json_t *live = json_array(), *dead = json_array();
    for (int32_t i = 0; i < s->n; i++)
        json_array_append_new(s->of[i].live ? live : dead, json_string(s->of[i].module));
    return json_pack("{s:s, s:i, s:i, s:o, s:o}", "list", s->list, "sites", (int)s->n, "live",
                     (int)s->live, "live_modules", live, "dead_modules", dead);
}

/* {"T=4": {pre_norm, post_norm, scores: {..}}, ..} */
static int results_json(const mc_model *m, json_t **out)
{
    LW_CLEANUP(lw_json_drop) json_t *all = json_object();
    for (int32_t p = 0; p < m->c->n_passes; p++) {
        json_t *scores = json_object(), *one = json_object();
        char key[24];
        snprintf(key, sizeof key, "T=%d", (int)m->c->passes[p]);
        json_object_set_new(all, key, one);
        for (int s = 0; s < LW_PASS_SCORES; s++) {
            lw_reliability r;
            double mean;
            int rc = reliability(m, p, (lw_pass_score)s, m->c->trials, &r, &mean);
            if (rc < 0) {
                json_decref(scores);
                return rc;
            }
            json_t *j = lw_mc_reliability_json(&r);
            json_object_set_new(j, "mean", lw_json_real(mean));
            json_object_set_new(scores, lw_pass_score_name[s], j);
            if (s == LW_PASS_TRACE_PRE) {
                m->out->pre[p] = r;
                m->out->mean_pre[p] = mean;
                json_object_set_new(one, "pre_norm", lw_mc_reliability_json(&r));
            } else if (s == LW_PASS_TRACE_POST) {
                m->out->post[p] = r;
                m->out->mean_post[p] = mean;
                json_object_set_new(one, "post_norm", lw_mc_reliability_json(&r));
            }
        }
        json_object_set_new(one, "scores", scores);
    }
    *out = all;
    all = NULL;
    return *out ? 0 : LW_ENOMEM;
}

json_t *lw_mc_summary_json(const mc_model *m, const char *experiment)
{
    json_t *passes = json_array();
    for (int32_t i = 0; i < m->c->n_passes; i++)
        json_array_append_new(passes, json_integer(m->c->passes[i]));
    return json_pack("{s:s, s:s, s:f, s:o, s:i, s:o, s:I, s:i, s:b, s:o, s:O}", "experiment",
                     experiment, "model", m->out->name, "dropout", m->c->dropout, "stored_dropout",
                     json_string(m->out->stored_dropout), "trials", (int)m->c->trials, "passes",
                     passes, "num_images", (json_int_t)m->n, "injected_linear_dropout_wrappers",
                     (int)m->sites.n, "nested_extraction", 1, "sites", sites_json(&m->sites),
                     "contract", m->about);
}

/* ---- exp0: the same scores again? -------------------------------------------------------------- */

static int write_exp0(mc_model *m, json_t *results)
{
    char name[64];
    for (int32_t p = 0; p < m->c->n_passes; p++) {
        LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
        snprintf(name, sizeof name, "exp0_trials_T%d.npz", (int)m->c->passes[p]);
        LW_TRY(lw_mc_add_paths(m, &z));
        LW_TRY(add_score(m, &z, "trial_pre", p, LW_PASS_TRACE_PRE));
        LW_TRY(add_score(m, &z, "trial_post", p, LW_PASS_TRACE_POST));
        for (int s = LW_PASS_ANGULAR_VAR; s < LW_PASS_SCORES; s++)
            LW_TRY(add_score(m, &z, lw_pass_score_name[s], p, (lw_pass_score)s));
        LW_TRY(lw_mc_save(m, "exp0_nested_mc", true, name, &z));
    }
    LW_CLEANUP(lw_json_drop) json_t *j = lw_mc_summary_json(m, "exp0_nested_mc");
    json_object_set(j, "results", results);
    return lw_mc_save_json(m, "exp0_nested_mc", true, "exp0_summary.json", j);
}

/* ---- exp0b: the covariance's shape, before and behind normalisation ---------------------------- */

static int add_geometry(const mc_model *m, lw_npz *z, const char *name, int post, int field)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    const int64_t shape[] = {m->c->trials, m->n, LW_PASS_EIGS};
    LW_TRY(lw_array_init(&a, LW_ELEM_F64, field == 2 ? 3 : 2, shape));
    double *to = a.data;
    for (int64_t i = 0; i < m->c->trials * m->n; i++) {
        const lw_pass_geometry *g = &m->geometry[i][post];
        if (field < 2)
            to[i] = field ? g->offdiag : g->trace;
        else
            memcpy(to + i * LW_PASS_EIGS, g->eigs, sizeof g->eigs);
    }
    return lw_npz_add(z, name, &a);
}

/* Of values of pictures [n], which are sorted. */
static json_t *spread_json(double *v, int64_t n)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += (v[i] - mean) * (v[i] - mean) / (double)n;
    lw_sort(v, (size_t)n);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "mean", lw_json_real(mean), "std",
                     lw_json_real(sqrt(square)), "median",
                     lw_json_real(lw_quantile(v, (size_t)n, 0.5)), "p25",
                     lw_json_real(lw_quantile(v, (size_t)n, 0.25)), "p75",
                     lw_json_real(lw_quantile(v, (size_t)n, 0.75)));
}

/* Means over trials of the trace (0), the mass beside the diagonal (1), the angular variance (2). */
static void mean_over_trials(const mc_model *m, int post, int field, double *out)
{
    for (int64_t i = 0; i < m->n; i++) {
        out[i] = 0;
        for (int32_t k = 0; k < m->c->trials; k++) {
            const lw_pass_geometry *g = &m->geometry[k * m->n + i][post];
            double angular = mc_at(m, m->c->n_passes - 1, k)[i][LW_PASS_ANGULAR_VAR];
            out[i] += (field == 2 ? angular : field ? g->offdiag : g->trace) / m->c->trials;
        }
    }
}

static json_t *eigs_json(const mc_model *m, int post)
{
    json_t *a = json_array();
    double all = (double)(m->c->trials * m->n);
    for (int e = 0; e < LW_PASS_EIGS; e++) {
        double mean = 0;
        for (int64_t i = 0; i < m->c->trials * m->n; i++)
            mean += m->geometry[i][post].eigs[e] / all;
        json_array_append_new(a, lw_json_real(mean));
    }
    return a;
}

static int correlations_json(const mc_model *m, const double *pre, const double *post,
                             const double *angular, json_t *into)
{
    double a, b, c;
    LW_TRY(lw_spearman(pre, angular, m->n, &a));
    LW_TRY(lw_spearman(post, angular, m->n, &b));
    LW_TRY(lw_spearman(pre, post, m->n, &c));
    json_t *j = json_pack("{s:o, s:o, s:o}", "pre_angular", lw_json_real(a), "post_angular",
                          lw_json_real(b), "pre_post", lw_json_real(c));
    return json_object_set_new(into, "spearman", j) < 0 ? LW_ENOMEM : 0;
}

static int geometry_summary(const mc_model *m, json_t *j)
{
    size_t n = (size_t)m->n;
    LW_CLEANUP(lw_free) double *v = lw_calloc(5 * n, sizeof *v);
    if (!v)
        return LW_ENOMEM;
    for (int post = 0; post < 2; post++) {
        mean_over_trials(m, post, 0, v + (size_t)post * n);
        mean_over_trials(m, post, 1, v + (size_t)(3 + post) * n);
    }
    mean_over_trials(m, 0, 2, v + 2 * n);
    LW_TRY(correlations_json(m, v, v + n, v + 2 * n, j));
    for (int post = 0; post < 2; post++) {
        json_t *one = json_pack("{s:o, s:o, s:o}", "trace_per_dim",
                                spread_json(v + (size_t)post * n, m->n), "offdiag_mass_ratio",
                                spread_json(v + (size_t)(3 + post) * n, m->n), "eigs_top10_mean",
                                eigs_json(m, post));
        json_object_set_new(j, post ? "post_norm" : "pre_norm", one);
    }
    json_t *angular = json_pack("{s:o}", "angular_var", spread_json(v + 2 * n, m->n));
    return json_object_set_new(j, "angular", angular) < 0 ? LW_ENOMEM : 0;
}

static int write_exp0b(mc_model *m)
{
    static const struct {
        const char *name;
        int post, field;
    } arrays[] = {{"trace_pre", 0, 0},    {"trace_post", 1, 0}, {"offdiag_pre", 0, 1},
                  {"offdiag_post", 1, 1}, {"eigs_pre", 0, 2},   {"eigs_post", 1, 2}};
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_TRY(lw_mc_add_paths(m, &z));
    for (size_t i = 0; i < LW_COUNT(arrays); i++)
        LW_TRY(add_geometry(m, &z, arrays[i].name, arrays[i].post, arrays[i].field));
    LW_TRY(add_score(m, &z, "angular_var", m->c->n_passes - 1, LW_PASS_ANGULAR_VAR));
    LW_TRY(lw_mc_save(m, "exp0b_norm_geometry", true, "exp0b_geometry_trials.npz", &z));
    LW_CLEANUP(lw_json_drop) json_t *j = lw_mc_summary_json(m, "exp0b_norm_geometry");
    LW_TRY(geometry_summary(m, j));
    return lw_mc_save_json(m, "exp0b_norm_geometry", true, "exp0b_summary.json", j);
}

/* ---- exp4: trace and angle side by side -------------------------------------------------------- */

static int write_exp4(mc_model *m)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    char name[128];
    int32_t last = m->c->n_passes - 1;
    lw_reliability trace, angular;
    double means[2];
    LW_TRY(lw_mc_add_paths(m, &z));
    LW_TRY(add_score(m, &z, "trace_pre", last, LW_PASS_TRACE_PRE));
    LW_TRY(add_score(m, &z, "angular_var", last, LW_PASS_ANGULAR_VAR));
    snprintf(name, sizeof name, "exp4_subset_%s_trials.npz", m->out->name);
    LW_TRY(lw_mc_save(m, "exp4_subset_recipe", false, name, &z));
    LW_TRY(reliability(m, last, LW_PASS_TRACE_PRE, m->c->trials, &trace, &means[0]));
    LW_TRY(reliability(m, last, LW_PASS_ANGULAR_VAR, m->c->trials, &angular, &means[1]));
    LW_CLEANUP(lw_json_drop) json_t *j = lw_mc_summary_json(m, "exp4_subset_recipe");
    json_object_set_new(j, "trace_pre", lw_mc_reliability_json(&trace));
    json_object_set_new(j, "angular_var", lw_mc_reliability_json(&angular));
    json_object_set_new(j, "trace_mean", lw_json_real(means[0]));
    json_object_set_new(j, "angular_mean", lw_json_real(means[1]));
    snprintf(name, sizeof name, "exp4_subset_%s_summary.json", m->out->name);
    return lw_mc_save_json(m, "exp4_subset_recipe", false, name, j);
}

int lw_mc_write(mc_model *m)
{
    LW_CLEANUP(lw_json_drop) json_t *results = NULL;
    LW_TRY(results_json(m, &results));
    if (mc_is_exp0(m)) /* whatever was asked for */
        LW_TRY(write_exp0(m, results));
    if (m->experiments & MC_EXP0B)
        LW_TRY(write_exp0b(m));
    return m->experiments & MC_EXP4 ? write_exp4(m) : 0;
}
