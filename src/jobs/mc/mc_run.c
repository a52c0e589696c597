/* SPDX-License-Identifier: Apache-2.0 */
/* Models in turn, and what is said of all of them. */
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

static int find_experiments(const lw_mc_config *c, unsigned *out)
{
    static const struct {
        const char *name;
        unsigned bit;
    } known[] = {{"exp0", MC_EXP0}, {"exp0b", MC_EXP0B}, {"exp4", MC_EXP4}};
    *out = c->n_only ? 0 : MC_EXP0;
    for (int32_t i = 0; i < c->n_only; i++) {
        unsigned bit = 0;
        for (size_t k = 0; k < LW_COUNT(known); k++)
            bit |= lw_str_eq(c->only[i], known[k].name) ? known[k].bit : 0;
        if (!bit)
            return lw_fail(LW_EUSAGE, "--only %s: experiments are exp0, exp0b and exp4",
                           c->only[i]);
        *out |= bit;
    }
    return 0;
}

static int check(const lw_mc_config *c)
{
    for (int32_t i = 0; i < c->n_passes; i++)
        if (c->passes[i] < 2 || (i && c->passes[i] <= c->passes[i - 1]))
            return lw_fail(LW_EUSAGE, "--passes: numbers from 2 on, rising");
    if (c->passes[c->n_passes - 1] >= LW_MC_MAX_PASSES)
        return lw_fail(LW_EUSAGE, "--passes: fewer than %d", (int)LW_MC_MAX_PASSES);
    if (!(c->dropout > 0) || (c->perturb != LW_NOISE_GAUSSIAN &&
                              c->perturb != LW_NOISE_MULTIPLICATIVE && c->dropout >= 1))
        return lw_fail(LW_EUSAGE, "--dropout %g: a probability above 0 and below 1", c->dropout);
    return 0;
}

/* Two models of one name would write the same files. */
static int check_names(const lw_mc_result *r)
{
    for (int32_t i = 0; i + 1 < r->n; i++)
        if (lw_str_eq(r->model[i].name, r->model[r->n - 1].name))
            return lw_fail(LW_EUSAGE, "--models: two are called %s; NAME=SOURCE gives names",
                           r->model[i].name);
    return 0;
}

static int run_model(mc_model *m, const char *spec, const lw_mc_result *all)
{
    LW_TRY(lw_mc_open(m, spec));
    LW_TRY(check_names(all));
    if (m->c->dry_run)
        return lw_mc_forecast(m);
    double begin = lw_now();
    LW_TRY(lw_mc_state_read(m));
    LW_TRY(lw_mc_trials(m));
    LW_TRY(lw_mc_write(m));
    LW_TRY(lw_mc_sheets_write(m));
    if (m->one_pass)
        LW_TRY(lw_mc_one_pass_write(m));
    m->out->seconds = lw_now() - begin;
    return lw_mc_record_write(m);
}

static int write_overall(const lw_mc_config *c, const lw_mc_result *r)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *results = json_object();
    json_t *models = json_array(), *passes = json_array();
    for (int32_t p = 0; p < c->n_passes; p++)
        json_array_append_new(passes, json_integer(c->passes[p]));
    for (int32_t i = 0; i < r->n; i++) {
        const lw_mc_model_result *m = &r->model[i];
        json_t *one = json_object();
        json_array_append_new(models, json_string(m->name));
        json_object_set_new(results, m->name, one);
        for (int32_t p = 0; p < c->n_passes; p++) {
            char key[24];
            snprintf(key, sizeof key, "T=%d", (int)c->passes[p]);
            json_object_set_new(one, key,
                                json_pack("{s:o, s:o}", "pre_norm",
                                          lw_mc_reliability_json(&m->pre[p]), "post_norm",
                                          lw_mc_reliability_json(&m->post[p])));
        }
    }
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:s, s:o, s:o, s:f, s:i, s:I, s:O}", "experiment", "exp0_nested_mc",
                          "models", models, "passes", passes, "dropout", c->dropout, "trials",
                          (int)c->trials, "num_images",
                          (json_int_t)(r->n ? r->model[0].pictures : 0), "results", results);
    lw_str_addf(&path, "%s/exp0_nested_mc/exp0_overall_summary.json", c->output_dir);
    return path.failed || !j ? LW_ENOMEM : lw_json_save(lw_str_c(&path), j);
}

/* Hours of passes are not lost to a page: files of other calls may lie beside theirs, damaged. */
static int write_page(const lw_mc_config *c, lw_mc_result *r)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    int rc = lw_job_mc_page(c->output_dir, &path);
    if (rc == LW_EFORMAT || rc == LW_EUSAGE)
        lw_log(LW_LOG_WARN, "mc", "no page: %s", lw_errmsg());
    else
        LW_TRY(rc);
    snprintf(r->page, sizeof r->page, "%s", rc == 0 ? lw_str_c(&path) : "");
    return 0;
}

int lw_job_mc(const lw_mc_config *c, const lw_observer *obs, lw_mc_result *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    unsigned experiments;
    *out = (lw_mc_result){0};
    LW_TRY(check(c));
    LW_TRY(find_experiments(c, &experiments));
    LW_TRY(lw_session_device_with(c->threads, c->conv, &dev));
    lw_pool_watch(dev->pool, obs);
    for (int32_t i = 0; i < c->n_models; i++) {
        LW_CLEANUP(lw_mc_close)
        mc_model m = {.c = c,
                      .obs = obs,
                      .out = &out->model[out->n++],
                      .dev = dev,
                      .experiments = experiments};
        LW_TRY(run_model(&m, c->models[i], out));
    }
    if (c->dry_run)
        return 0;
    LW_TRY(write_overall(c, out));
    return write_page(c, out);
}
