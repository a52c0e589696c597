/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validity beside reliability: the share of pictures whose score rises when the picture is made worse
 * (data_degrade.h). A picture is disturbed by the same masks before and after, so that what differs is
 * the picture.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

int32_t lw_mc_score_count(const mc_model *m)
{
    return LW_PASS_SCORES + (m->one_pass ? LW_LAPLACE_SCORES : 0);
}

const char *lw_mc_score_name(int32_t score)
{
    return score < LW_PASS_SCORES ? lw_pass_score_name[score]
                                  : lw_laplace_score_name[score - LW_PASS_SCORES];
}

/* Behind those of passes. */
static int add_one_pass(const mc_model *m, double *out)
{
    LW_CLEANUP(lw_free)
    double(*scores)[LW_LAPLACE_SCORES] = lw_calloc((size_t)m->n, sizeof *scores);
    if (!scores)
        return LW_ENOMEM;
    LW_TRY(lw_mc_one_pass(m, scores));
    for (int s = 0; s < LW_LAPLACE_SCORES; s++)
        for (int64_t i = 0; i < m->n; i++)
            out[(LW_PASS_SCORES + s) * m->n + i] = scores[i][s];
    return 0;
}

int lw_mc_means(const mc_model *m, double *out)
{
    for (int s = 0; s < LW_PASS_SCORES; s++)
        for (int64_t i = 0; i < m->n; i++) {
            double sum = 0;
            for (int32_t k = 0; k < m->c->trials; k++)
                sum += mc_at(m, m->c->n_passes - 1, k)[i][s];
            out[s * m->n + i] = sum / m->c->trials;
        }
    return m->one_pass ? add_one_pass(m, out) : 0;
}

/* The model of other pictures: borrows all but these and their scores. */
typedef struct worse {
    mc_model m;
    lw_mc_model_result out;
} worse;

static void worse_clear(worse *w)
{
    lw_data_close(&w->m.data);
    lw_free(&w->m.scores);
}

static void worse_init(worse *w, const mc_model *m, const lw_degradation *d)
{
    w->m = *m;
    w->out = *m->out;
    w->m.out = &w->out;
    w->m.experiment = "validity";
    w->m.stem = d->name;
    w->m.data = NULL;
    w->m.scores = NULL;
    w->m.geometry = NULL;
    w->m.done = 0;
}

static int run_worse(const mc_model *m, const lw_degradation *d, double *means)
{
    size_t n = (size_t)m->c->n_passes * (size_t)m->c->trials * (size_t)m->n;
    LW_CLEANUP(worse_clear) worse w;
    worse_init(&w, m, d);
    w.m.scores = lw_calloc(n, sizeof *w.m.scores);
    if (!w.m.scores)
        return LW_ENOMEM;
    LW_TRY(lw_mc_pictures(m, d, &w.m.data));
    if (w.m.data->n != m->n)
        return lw_fail(LW_EFORMAT, "%s: %lld pictures under %s, %lld without", lw_str_c(&m->spec),
                       (long long)w.m.data->n, d->name, (long long)m->n);
    LW_TRY(lw_mc_state_read(&w.m));
    LW_TRY(lw_mc_trials(&w.m));
    return lw_mc_means(&w.m, means);
}

/* clean, after [scores][n] -> {SCORE: {rises, interval, ..}} */
static json_t *rises_json(const mc_model *m, const double *clean, const double *after)
{
    json_t *all = json_object();
    for (int32_t s = 0; s < lw_mc_score_count(m); s++) {
        const double *a = clean + s * m->n, *b = after + s * m->n;
        lw_interval share = lw_share_rising(a, b, m->n);
        json_object_set_new(all, lw_mc_score_name(s),
                            json_pack("{s:o, s:o, s:o, s:o}", "rises", lw_json_real(share.value),
                                      "interval", lw_mc_interval_json(share), "mean",
                                      lw_json_real(lw_mean_of(b, (size_t)m->n)), "clean_mean",
                                      lw_json_real(lw_mean_of(a, (size_t)m->n))));
    }
    return all;
}

static int add_scores(const mc_model *m, lw_npz *z, const char *of, const double *means)
{
    char name[64];
    for (int32_t s = 0; s < lw_mc_score_count(m); s++) {
        snprintf(name, sizeof name, "%s_%s", of, lw_mc_score_name(s));
        LW_TRY(lw_mc_add_f64(m, z, name, means + s * m->n));
    }
    return 0;
}

/* means [1 + LW_DEGRADATIONS][scores][n] */
static int write_all(const mc_model *m, const double *means)
{
    int64_t step = lw_mc_score_count(m) * m->n;
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = lw_mc_summary_json(m, "validity");
    json_t *all = json_object();
    json_object_set_new(j, "passes", json_integer(m->most)); /* the largest alone */
    json_object_set_new(j, "degradations", all);
    LW_TRY(lw_mc_add_paths(m, &z));
    LW_TRY(add_scores(m, &z, "clean", means));
    for (int d = 0; d < LW_DEGRADATIONS; d++) {
        LW_TRY(add_scores(m, &z, lw_degradations[d].name, means + (d + 1) * step));
        json_object_set_new(all, lw_degradations[d].name,
                            rises_json(m, means, means + (d + 1) * step));
    }
    LW_TRY(lw_mc_save(m, "validity", true, "validity.npz", &z));
    return lw_mc_save_json(m, "validity", true, "validity_summary.json", j);
}

int lw_mc_validity(mc_model *m)
{
    size_t step = (size_t)lw_mc_score_count(m) * (size_t)m->n;
    LW_CLEANUP(lw_free)
    double *means = lw_calloc((1 + LW_DEGRADATIONS) * step, sizeof *means);
    if (!means)
        return LW_ENOMEM;
    LW_TRY(lw_mc_means(m, means));
    for (int d = 0; d < LW_DEGRADATIONS; d++)
        LW_TRY(run_worse(m, &lw_degradations[d], means + (size_t)(d + 1) * step));
    LW_TRY(write_all(m, means));
    for (int d = 0; d < LW_DEGRADATIONS; d++) {
        worse w;
        worse_init(&w, m, &lw_degradations[d]);
        lw_mc_state_remove(&w.m);
    }
    return 0;
}
