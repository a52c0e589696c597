/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiments are run in rounds: those with the same pictures, models, passes and trials share them.
 * In a round models come in turn.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

typedef struct experiment {
    const char *name, *dir; /* dir: of its files */
} experiment;

/* In the order of the bits. Only the first LW_MC_OWN have settings of their own. */
static const experiment experiments[] = {
    {"exp0", "exp0_nested_mc"},     {"exp0b", "exp0b_norm_geometry"},
    {"exp4", "exp4_subset_recipe"}, {"exp5", "exp5_subset_ambiguity"},
    {"validity", "validity"},       {"errors", "errors"}};
enum { EXPERIMENTS = LW_COUNT(experiments) };

typedef struct mc_round {
    lw_mc_config c;
    unsigned experiments;
} mc_round;

/* ---- what is asked for ------------------------------------------------------------------------- */

static int find_experiments(const lw_mc_config *c, unsigned *out)
{
    *out = c->n_only ? 0 : MC_EXP0;
    for (int32_t i = 0; i < c->n_only; i++) {
        unsigned bit = 0;
        for (int k = 0; k < EXPERIMENTS; k++)
            bit |= lw_str_eq(c->only[i], experiments[k].name) ? 1u << k : 0;
        if (!bit)
            return lw_fail(LW_EUSAGE, "--only %s: experiments are " LW_MC_EXPERIMENTS, c->only[i]);
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

/* The settings of experiment k. */
static lw_mc_config settings(const lw_mc_config *c, int k)
{
    lw_mc_config s = *c;
    if (k >= LW_MC_OWN)
        return s;
    const lw_mc_own *own = &c->own[k];
    if (own->n_models) {
        memcpy(s.models, own->models, sizeof s.models);
        s.n_models = own->n_models;
    }
    if (own->n_passes) {
        memcpy(s.passes, own->passes, sizeof s.passes);
        s.n_passes = own->n_passes;
    }
    s.trials = own->trials ? own->trials : s.trials;
    if (own->num_images) {
        s.num_images = own->num_images;
        s.at_most = own->at_most;
    }
    return s;
}

static bool same(const lw_mc_config *a, const lw_mc_config *b)
{
    bool equal = a->n_models == b->n_models && a->n_passes == b->n_passes &&
                 a->trials == b->trials && a->num_images == b->num_images;
    for (int32_t i = 0; equal && i < a->n_models; i++)
        equal = lw_str_eq(a->models[i], b->models[i]);
    for (int32_t i = 0; equal && i < a->n_passes; i++)
        equal = a->passes[i] == b->passes[i];
    return equal;
}

static int plan_rounds(const lw_mc_config *c, mc_round round[EXPERIMENTS], int *n)
{
    unsigned wanted;
    LW_TRY(find_experiments(c, &wanted));
    *n = 0;
    for (int k = 0; k < EXPERIMENTS; k++) {
        if (!(wanted & 1u << k))
            continue;
        lw_mc_config s = settings(c, k);
        int at = 0;
        if (s.n_models == 0)
            return lw_fail(LW_EUSAGE, "%s has no models: --models SPEC,..", experiments[k].name);
        LW_TRY(check(&s));
        while (at < *n && !same(&round[at].c, &s))
            at++;
        if (at == *n)
            round[(*n)++] = (mc_round){.c = s};
        round[at].experiments |= 1u << k;
    }
    return 0;
}

/* ---- one model --------------------------------------------------------------------------------- */

/* Two models of one name would write the same files. */
static int check_names(const lw_mc_model_result *r, int32_t n)
{
    for (int32_t i = 0; i + 1 < n; i++)
        if (lw_str_eq(r[i].name, r[n - 1].name))
            return lw_fail(LW_EUSAGE, "--models: two are called %s; NAME=SOURCE gives names",
                           r[i].name);
    return 0;
}

/* OUTPUT/manifest_EXPERIMENT.json of every experiment: the pictures it uses. */
static int write_manifests(const mc_model *m)
{
    LW_CLEANUP(lw_json_drop) json_t *list = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_data_listing(m->data, &list));
    json_object_set_new(list, "data", json_string(lw_str_c(&m->spec)));
    for (int k = 0; k < EXPERIMENTS; k++) {
        path.len = 0;
        lw_str_addf(&path, "%s/manifest_%s.json", m->c->output_dir, experiments[k].name);
        if (m->experiments & 1u << k)
            LW_TRY(path.failed ? LW_ENOMEM : lw_json_save(lw_str_c(&path), list));
    }
    return 0;
}

/* What cannot work is said before the passes, which take long. */
static int check_inputs(mc_model *m)
{
    if (m->experiments & MC_EXP5)
        LW_TRY(lw_mc_zero_shot_check(m));
    return m->experiments & MC_ERRORS ? lw_mc_errors_open(m) : 0;
}

/* Refusals that come before leave no directory behind. */
static int lock_output(const mc_model *m)
{
    if (*m->lock >= 0)
        return 0;
    LW_TRY(lw_mkdirs(m->c->output_dir));
    return lw_dir_lock(m->c->output_dir, m->lock);
}

static int run_model(mc_model *m, const char *spec, const lw_mc_model_result *all, int32_t n)
{
    double begin = lw_now();
    LW_TRY(lw_mc_open(m, spec));
    LW_TRY(check_names(all, n));
    LW_TRY(check_inputs(m));
    if (m->c->dry_run)
        return lw_mc_forecast(m, lw_now() - begin);
    LW_TRY(lock_output(m));
    LW_TRY(lw_mc_state_read(m));
    LW_TRY(write_manifests(m));
    LW_TRY(lw_mc_trials(m));
    LW_TRY(lw_mc_write(m));
    if (mc_is_exp0(m))
        LW_TRY(lw_mc_sheets_write(m));
    if (m->one_pass && mc_is_exp0(m))
        LW_TRY(lw_mc_one_pass_write(m));
    if (m->experiments & MC_EXP5)
        LW_TRY(lw_mc_zero_shot(m));
    if (m->experiments & MC_ERRORS)
        LW_TRY(lw_mc_errors(m));
    if (m->experiments & MC_VALIDITY)
        LW_TRY(lw_mc_validity(m));
    lw_mc_state_remove(m);
    m->out->seconds = lw_now() - begin;
    return mc_is_exp0(m) ? lw_mc_record_write(m) : 0;
}

/* ---- a round ---------------------------------------------------------------------------------- */

/* Hours of passes are not lost to a page: files of other calls may lie beside theirs, damaged. */
static int write_page(const lw_mc_config *c, lw_mc_result *r)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    int rc = lw_job_mc_page(c->output_dir, &path, &r->answer);
    if (rc == LW_EFORMAT || rc == LW_EUSAGE)
        lw_log(LW_LOG_WARN, "mc", "no page: %s", lw_errmsg());
    else
        LW_TRY(rc);
    snprintf(r->page, sizeof r->page, "%s", rc == 0 ? lw_str_c(&path) : "");
    return 0;
}

static void name_experiments(unsigned set, char out[64])
{
    int len = 0;
    for (int k = 0; k < EXPERIMENTS; k++)
        if (set & 1u << k)
            len += snprintf(out + len, 64 - (size_t)len, "%s%s", len ? ", " : "",
                            experiments[k].name);
}

/* The trials of the first round are those of exp0, whatever was asked for. */
static int run_round(const mc_round *round, bool first, lw_device *dev, int *lock,
                     const lw_observer *obs, lw_mc_result *out)
{
    const lw_mc_config *c = &round->c;
    lw_mc_model_result *r = out->model + out->n;
    int home = 0;
    while (!first && !(round->experiments & 1u << home))
        home++;
    for (int32_t i = 0; i < c->n_models; i++) {
        LW_CLEANUP(lw_mc_close)
        mc_model m = {.c = c,
                      .obs = obs,
                      .out = &r[i],
                      .dev = dev,
                      .lock = lock,
                      .experiments = round->experiments,
                      .experiment = experiments[home].dir,
                      .stem = "exp0_trials"};
        name_experiments(round->experiments, r[i].experiments);
        out->n++;
        LW_TRY(run_model(&m, c->models[i], r, i + 1));
    }
    return c->dry_run ? 0 : lw_mc_write_overall(c, r, round->experiments, first);
}

void lw_mc_result_clear(lw_mc_result *r)
{
    for (int32_t i = 0; i < r->n; i++)
        lw_str_clear(&r->model[i].sites);
    lw_str_clear(&r->answer);
}

int lw_job_mc(const lw_mc_config *c, const lw_observer *obs, lw_mc_result *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_lock_drop) int lock = -1;
    mc_round round[EXPERIMENTS];
    int n;
    *out = (lw_mc_result){0};
    LW_TRY(plan_rounds(c, round, &n));
    /* before pictures are read and batches tried, where that leaves nothing behind */
    if (!c->dry_run && lw_path_is_dir(c->output_dir))
        LW_TRY(lw_dir_lock(c->output_dir, &lock));
    LW_TRY(lw_session_device_with(c->threads, c->conv, &dev));
    lw_pool_watch(dev->pool, obs);
    for (int i = 0; i < n; i++)
        LW_TRY(run_round(&round[i], i == 0, dev, &lock, obs, out));
    return c->dry_run ? 0 : write_page(c, out);
}
