/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a comparison will have, known before it begins: how many, what they take, how long. */
#include "jobs/compare/compare_verdict.h"

static void add_setting(const lw_compare_config *c, const compare_other *o, lw_compare_setting how,
                        compare_scored *out, int *n)
{
    int64_t pictures = c->n_ddpm ? c->n_ddpm : c->n_fid;
    for (int i = 0; i < *n; i++)
        if (lw_compare_same(out[i].how, how))
            return;
    if (how.evaluations > o->usual.evaluations && c->n_slow)
        pictures = LW_MIN(pictures, c->n_slow);
    out[(*n)++] = (compare_scored){how, pictures};
}

int lw_compare_scored(const comparing *w, const compare_other *o,
                      compare_scored out[COMPARE_SCORED_MAX])
{
    const lw_compare_config *c = w->c;
    bool flow = o->kind == COMPARE_FLOW;
    const int32_t *steps = flow ? c->flow_steps : c->score_steps;
    int n = 0, n_steps = flow ? c->n_flow_steps : c->n_score_steps;
    add_setting(c, o, o->usual, out, &n);
    for (int i = 0; i < n_steps; i++)
        add_setting(c, o, lw_compare_usual(o, steps[i]), out, &n);
    for (int i = 0; !flow && i < c->n_ancestral_steps; i++)
        add_setting(c, o,
                    (lw_compare_setting){.evaluations = c->ancestral_steps[i],
                                         .sampler = LW_SAMPLER_ANCESTRAL},
                    out, &n);
    for (int k = 0; k < c->n_guidance_scale; k++) {
        if (c->guidance_scale[k] <= 1.0)
            continue;
        add_setting(c, o, lw_compare_guided(o, o->usual.evaluations, c->guidance_scale[k]), out,
                    &n);
        for (int i = 0; i < n_steps; i++)
            if (steps[i] <= o->usual.evaluations)
                add_setting(c, o, lw_compare_guided(o, steps[i], c->guidance_scale[k]), out, &n);
    }
    return n;
}

static int64_t units_of(const comparing *w, const compare_other *o)
{
    compare_scored s[COMPARE_SCORED_MAX];
    int n = lw_compare_scored(w, o, s);
    int64_t units = 0;
    for (int i = 0; i < n; i++) /* a size of its own is scored of drift and of real pictures, too */
        units += s[i].n * (s[i].how.evaluations + COMPARE_SCORE_UNITS) +
                 (i == 0 || s[i].n != s[i - 1].n ? 2 * COMPARE_SCORE_UNITS * s[i].n : 0);
    return units;
}

int64_t lw_compare_units(const comparing *w)
{
    int64_t units = 0;
    for (int i = 0; i < w->n_others; i++)
        units += units_of(w, &w->other[i]);
    return units + (2 + 3 * COMPARE_SCORE_UNITS) * w->c->n_fid +
           w->c->n_alpha * (1 + COMPARE_SCORE_UNITS) * w->c->n_fid +
           (w->c->n_alpha ? w->c->n_fid : 0) + (int64_t)LW_CONTROLS * COMPARE_CONTROL_UNITS +
           lw_compare_latency_units(w);
}

int lw_compare_check_rows(const comparing *w)
{
    compare_scored how[COMPARE_SCORED_MAX];
    int rows = 2 + w->c->n_alpha + LW_PLANTED;
    for (int i = 0; i < w->n_others; i++)
        rows += lw_compare_scored(w, &w->other[i], how);
    return rows <= LW_VERDICT_ROWS
               ? 0
               : lw_fail(LW_EUSAGE,
                         "%d rows would be scored, at most %d can be: ask for fewer of "
                         "--guidance-scale, --alpha or evaluations",
                         rows, LW_VERDICT_ROWS);
}

int lw_compare_forecast(comparing *w)
{
    compare_scored how[COMPARE_SCORED_MAX];
    lw_verdict_set rows[LW_VERDICT_ROWS] = {0};
    int r = 0;
    rows[r++].n = w->c->n_fid;
    for (int i = 0; i < w->c->n_alpha; i++)
        rows[r++].n = w->c->n_fid;
    for (int k = 0; k < w->n_others; k++)
        for (int i = 0, n = lw_compare_scored(w, &w->other[k], how); i < n; i++)
            rows[r++].n = how[i].n;
    rows[r++].n = w->c->n_fid;
    double planted;
    LW_TRY(lw_compare_planted_forecast(w, &planted));
    for (int i = 0; planted > 0 && i < LW_PLANTED; i++)
        rows[r++].n = LW_MIN(w->c->n_fid, (int64_t)LW_PLANTED_PICTURES);
    LW_TRY(lw_compare_verdict_forecast(w, rows, r, &w->out->verdict_seconds));
    w->out->verdict_seconds += planted;
    return 0;
}
