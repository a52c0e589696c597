/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison: open both, sample, score, time, write. */
#include "recipes/recipe_compare_parts.h"

#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/base.h"
#include "recipes/recipe_device.h"

/* ---- progress: one bar over everything, in network evaluations or what takes as long ------- */

enum { SCORE_UNITS = 2, CONTROL_UNITS = 2000 }; /* of a scored picture; of one control */

void lw_compare_progress(const comparing *w, int64_t part_done, const char *note)
{
    lw_observe_progress(w->obs, "compare", w->done + part_done, w->total, note);
}

/* What will be done, in the same units as it is counted. */
static int64_t total_units(const comparing *w)
{
    const lw_compare_config *c = w->c;
    int64_t n = c->n_ddpm ? c->n_ddpm : c->n_fid, evaluations = c->ddim_steps[0], sets = 1;
    for (int i = 0; i < c->n_score_steps; i++)
        if (c->score_steps[i] != c->ddim_steps[0]) {
            evaluations += c->score_steps[i];
            sets++;
        }
    sets += n < c->n_fid ? 2 : 0;
    return 2 * c->n_fid + n * evaluations + SCORE_UNITS * (3 * c->n_fid + sets * n) +
           (int64_t)LW_CONTROLS * CONTROL_UNITS + lw_compare_latency_units(w);
}

typedef struct sampling_part {
    const comparing *w;
    const char *what;
    int64_t evaluations;
} sampling_part;

static void on_sampled(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    const sampling_part *p = self;
    (void)what;
    (void)total;
    (void)note;
    lw_compare_progress(p->w, done * p->evaluations, p->what);
}

static void on_control(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    (void)what;
    (void)total;
    (void)note;
    lw_compare_progress(self, done * CONTROL_UNITS, "scoring controls");
}

static bool on_stop_part(void *self)
{
    return lw_observe_stop(((const sampling_part *)self)->w->obs);
}
static bool on_stop_control(void *self)
{
    return lw_observe_stop(((const comparing *)self)->obs);
}

/* ---- opening ---------------------------------------------------------------------------- */

static int check_pair(const comparing *w)
{
    const lw_unet_config *a = &w->drift->net, *b = &w->ddpm->net;
    LW_TRY(lw_precision_check(w->c->precision, w->drift->quant, w->c->drift));
    LW_TRY(lw_precision_check(w->c->precision, w->ddpm->quant, w->c->ddpm));
    if (w->drift->method != LW_METHOD_DRIFT)
        return lw_fail(LW_EUSAGE, "--drift %s: is a DDPM", w->c->drift);
    if (w->ddpm->method != LW_METHOD_DDPM)
        return lw_fail(LW_EUSAGE, "--ddpm %s: is a drifting generator", w->c->ddpm);
    if (a->image_size != b->image_size)
        return lw_fail(
            LW_ESHAPE, "%s makes pictures of %dx%d, %s of %dx%d: there is nothing to compare",
            w->c->drift, a->image_size, a->image_size, w->c->ddpm, b->image_size, b->image_size);
    return 0;
}

/* Data, rows and encoder that nobody named come from the drift run's own configuration. */
static int choose_data(comparing *w)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *own = NULL;
    lw_path_join(&path, w->c->drift, "config.yaml");
    if (lw_path_exists(lw_str_c(&path))) {
        LW_TRY(lw_yaml_load(lw_str_c(&path), &w->drift_yaml));
        LW_TRY(lw_json_opt_i64(w->drift_yaml, lw_str_c(&path), "limit", &w->limit));
        LW_TRY(lw_json_opt_str(w->drift_yaml, lw_str_c(&path), "encoder", &own));
    }
    w->limit = w->c->limit ? w->c->limit : w->limit;
    w->data = w->c->data ? w->c->data
                         : json_string_value(json_object_get(w->drift->config, "leeway_data"));
    if (!w->data)
        return lw_fail(LW_EUSAGE, "%s does not say what it was trained on: give --data",
                       w->c->drift);
    w->encoder = w->c->encoder;
    if (!w->encoder && !w->c->judge && !w->c->reader && own && !lw_str_eq(own, "none")) {
        w->encoder = own;
        w->encoder_of_drift = true;
        lw_log(LW_LOG_WARN, "compare",
               "distances are measured in %s, which drift was trained with: that favours "
               "drift. Give --judge or --encoder",
               own);
    }
    return 0;
}

static int open_all(comparing *w)
{
    const lw_compare_config *c = w->c;
    LW_TRY(lw_source_open(c->drift, c->ema, &w->drift));
    LW_TRY(lw_source_open(c->ddpm, c->ema, &w->ddpm));
    LW_TRY(check_pair(w));
    LW_TRY(choose_data(w));
    LW_TRY(lw_recipe_device_with(c->threads, c->conv, &w->dev));
    lw_recipe_device_watch(w->dev, w->obs);
    w->side = w->drift->net.image_size;
    const lw_scorer_opts o = {.data = w->data,
                              .image_size = w->side,
                              .limit = w->limit,
                              .judge = c->judge,
                              .reader = c->reader,
                              .encoder = w->encoder,
                              .n = c->n_fid,
                              .seed = (uint64_t)c->seed,
                              .threads = c->threads};
    LW_TRY(lw_scorer_new(w->dev, &o, &w->scorer));
    w->classes = lw_scorer_classes(w->scorer);
    return 0;
}

/* ---- sampling and scoring --------------------------------------------------------------- */

static int new_set(const comparing *w, int64_t n, int32_t classes, compare_set *s)
{
    s->n = n;
    s->x = lw_calloc((size_t)(n * w->side * w->side * 3), sizeof *s->x);
    s->classes = classes ? lw_calloc((size_t)n, sizeof *s->classes) : NULL;
    for (int64_t i = 0; s->classes && i < n; i++)
        s->classes[i] = (int32_t)(i % classes);
    return s->x && (s->classes || !classes) ? 0 : LW_ENOMEM;
}

static void clear_set(compare_set *s)
{
    lw_free(&s->x);
    lw_free(&s->classes);
}

lw_sampler_opts lw_compare_sampler(const comparing *w, const lw_source *from, int32_t steps,
                                   int64_t batch)
{
    return (lw_sampler_opts){.method = from->method,
                             .diffusion = from->diffusion,
                             .steps = from->method == LW_METHOD_DDPM ? steps : 0,
                             .keep_eps = !w->c->use_clipped_model_output,
                             .batch = (int32_t)batch,
                             .seed = (uint64_t)w->c->seed,
                             .weights = LW_SLAB_PARAM,
                             .precision = w->c->precision,
                             .calibration = lw_quantization_ranges(from->quant)};
}

static int sample(comparing *w, const lw_source *from, const lw_store *store, int32_t steps,
                  const char *what, compare_set *s)
{
    LW_CLEANUP(lw_sampler_free) lw_sampler *sampler = NULL;
    sampling_part p = {w, what, 1};
    const lw_observer obs = {.self = &p, .progress = on_sampled, .should_stop = on_stop_part};
    const lw_sampler_opts o = lw_compare_sampler(w, from, steps, LW_MIN(s->n, 64));
    LW_TRY(lw_sampler_new(w->dev, &from->net, store, &o, &sampler));
    p.evaluations = lw_sampler_evaluations(sampler);
    LW_TRY(lw_sampler_run(sampler, 0, s->n, s->classes, &obs, s->x));
    w->done += s->n * p.evaluations;
    return 0;
}

static int score(comparing *w, compare_kind kind, int32_t evaluations, const char *name,
                 const compare_set *s, int64_t n)
{
    LW_ASSERT(w->n_entries < COMPARE_ENTRIES, "%d scores", w->n_entries);
    compare_entry *e = &w->entry[w->n_entries];
    *e = (compare_entry){.kind = kind, .evaluations = evaluations};
    lw_compare_progress(w, 0, name);
    LW_TRY(lw_scorer_score(w->scorer, name, s->x, s->classes, n, &e->score));
    w->n_entries++;
    w->done += SCORE_UNITS * n;
    return lw_observe_stop(w->obs) ? lw_fail(LW_ESTOPPED, "stopped while scoring") : 0;
}

static int score_real(comparing *w)
{
    compare_set *s = &w->real_set;
    LW_TRY(new_set(w, w->c->n_fid, w->classes ? w->classes : 1, s));
    s->n = lw_scorer_reals(w->scorer, w->c->n_fid, s->x, s->classes);
    if (!w->classes)
        lw_free(&s->classes);
    LW_TRY(score(w, COMPARE_REAL, 0, "real pictures, held out", s, s->n));
    w->out->real = w->entry[w->n_entries - 1].score;
    return 0;
}

static int score_drift(comparing *w)
{
    LW_TRY(new_set(w, w->c->n_fid, w->drift->net.classes, &w->drift_set));
    LW_TRY(sample(w, w->drift, w->drift->store, 0, "sampling drift", &w->drift_set));
    LW_TRY(score(w, COMPARE_DRIFT, 1, "drift, 1 evaluation", &w->drift_set, w->drift_set.n));
    w->out->drift = w->entry[w->n_entries - 1].score;
    return 0;
}

static int score_ddpm(comparing *w)
{
    const lw_compare_config *c = w->c;
    int64_t n = c->n_ddpm ? c->n_ddpm : c->n_fid;
    char name[64];
    LW_TRY(new_set(w, n, w->ddpm->net.classes, &w->ddpm_set));
    LW_TRY(sample(w, w->ddpm, w->ddpm->store, c->ddim_steps[0], "sampling DDPM", &w->ddpm_set));
    snprintf(name, sizeof name, "DDPM, %d evaluations", c->ddim_steps[0]);
    LW_TRY(score(w, COMPARE_DDPM, c->ddim_steps[0], name, &w->ddpm_set, n));
    w->out->ddpm = w->entry[w->n_entries - 1].score;
    w->out->floor_ddpm = w->out->real.fd.value;
    w->out->drift_few = w->out->drift;
    if (n >= c->n_fid)
        return 0;
    snprintf(name, sizeof name, "drift, its first %lld", (long long)n);
    LW_TRY(score(w, COMPARE_OTHER, 1, name, &w->drift_set, n));
    w->out->drift_few = w->entry[w->n_entries - 1].score;
    snprintf(name, sizeof name, "real pictures, %lld of them", (long long)n);
    LW_TRY(score(w, COMPARE_OTHER, 0, name, &w->real_set, n));
    w->out->floor_ddpm = w->entry[w->n_entries - 1].score.fd.value;
    return 0;
}

/* DDPM with other numbers of evaluations, and a drifting generator with its first
 * random weights. */
static int score_others(comparing *w)
{
    const lw_compare_config *c = w->c;
    char name[64], what[64];
    compare_set s = {0};
    LW_CLEANUP(lw_store_free) lw_store *fresh = NULL;
    int rc = new_set(w, w->ddpm_set.n, w->ddpm->net.classes, &s);
    for (int i = 0; rc == 0 && i < c->n_score_steps; i++) {
        if (c->score_steps[i] == c->ddim_steps[0])
            continue;
        snprintf(what, sizeof what, "sampling DDPM, %d evaluation%s", c->score_steps[i],
                 c->score_steps[i] > 1 ? "s" : "");
        rc = sample(w, w->ddpm, w->ddpm->store, c->score_steps[i], what, &s);
        snprintf(name, sizeof name, "DDPM, %d evaluation%s", c->score_steps[i],
                 c->score_steps[i] > 1 ? "s" : "");
        if (rc == 0)
            rc = score(w, COMPARE_DDPM, c->score_steps[i], name, &s, s.n);
    }
    clear_set(&s);
    LW_TRY(rc);
    LW_TRY(lw_store_new(true, &fresh));
    LW_TRY(lw_unet_declare(&w->drift->net, fresh));
    lw_store_init(fresh, (uint64_t)c->seed);
    rc = new_set(w, c->n_fid, w->drift->net.classes, &s);
    if (rc == 0)
        rc = sample(w, w->drift, fresh, 0, "sampling an untrained generator", &s);
    if (rc == 0)
        rc = score(w, COMPARE_OTHER, 1, "drift, untrained", &s, s.n);
    if (rc == 0)
        w->out->untrained_fd = w->entry[w->n_entries - 1].score.fd.value;
    clear_set(&s);
    return rc;
}

static int score_controls(comparing *w)
{
    lw_score s[LW_CONTROLS];
    const lw_observer obs = {.self = w, .progress = on_control, .should_stop = on_stop_control};
    LW_TRY(lw_scorer_controls(w->scorer, LW_MIN(w->c->n_fid, 1000), &obs, s));
    w->done += (int64_t)LW_CONTROLS * CONTROL_UNITS;
    for (int i = 0; i < LW_CONTROLS; i++)
        w->entry[w->n_entries++] = (compare_entry){.kind = COMPARE_CONTROL, .score = s[i]};
    w->out->judged = lw_scorer_has_judge(w->scorer);
    if (w->out->judged)
        w->out->exam = lw_judge_examine(&w->out->real, s);
    return 0;
}

/* Every row against the bar: real pictures must pass it, controls must not. */
static void check_all(comparing *w)
{
    lw_compare_result *out = w->out;
    for (int i = 0; i < w->n_entries; i++) {
        compare_entry *e = &w->entry[i];
        e->failed = lw_score_check(&e->score, w->classes, &out->exam, e->bar);
        if (e->kind == COMPARE_CONTROL) {
            out->controls++;
            out->controls_passed += e->failed == 0;
        }
    }
    out->real_passes = w->entry[0].failed == 0;
    const compare_entry *d = lw_compare_find(w, COMPARE_DRIFT, 1);
    LW_ASSERT(d, "%d scores without drift's", w->n_entries);
    memcpy(out->bar, d->bar, sizeof out->bar);
    out->bar_failed = d->failed;
}

const compare_entry *lw_compare_find(const comparing *w, compare_kind kind, int32_t evaluations)
{
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == kind && w->entry[i].evaluations == evaluations)
            return &w->entry[i];
    return NULL;
}

/* ---- all of it -------------------------------------------------------------------------- */

static int run(comparing *w)
{
    w->total = total_units(w);
    LW_TRY(open_all(w));
    lw_compare_work_of(w);
    LW_TRY(score_real(w));
    LW_TRY(score_drift(w));
    LW_TRY(score_ddpm(w));
    LW_TRY(score_others(w));
    LW_TRY(score_controls(w));
    check_all(w);
    LW_TRY(lw_compare_paired(w));
    LW_TRY(lw_compare_latency(w));
    LW_TRY(lw_new_dir_begin(&w->dir, w->c->output_dir, false));
    LW_TRY(lw_compare_files(w));
    LW_TRY(lw_compare_page(w));
    LW_TRY(lw_new_dir_finish(&w->dir));
    w->done = w->total;
    lw_compare_progress(w, 0, w->out->report);
    return 0;
}

static int check_config(const lw_compare_config *c)
{
    if (c->n_ddim_steps < 1)
        return lw_fail(LW_EUSAGE, "--ddim-steps: name at least one number of evaluations");
    if (c->n_fid < 50 || (c->n_ddpm && c->n_ddpm < 50))
        return lw_fail(LW_EUSAGE, "--n-fid, --n-ddpm: at least 50 pictures, fewer say nothing");
    return 0;
}

int lw_recipe_compare(const lw_compare_config *c, const lw_observer *obs, lw_compare_result *out)
{
    lw_compare_result result = {0};
    comparing w = {.c = c, .obs = obs, .out = &result, .started = lw_now()};
    LW_TRY(check_config(c));
    int rc = run(&w);
    lw_new_dir_drop(&w.dir);
    clear_set(&w.real_set);
    clear_set(&w.drift_set);
    clear_set(&w.ddpm_set);
    lw_scorer_free(&w.scorer);
    lw_source_close(&w.drift);
    lw_source_close(&w.ddpm);
    lw_cpu_close(&w.dev);
    lw_json_drop(&w.drift_yaml);
    if (rc == 0)
        *out = result;
    return rc;
}
