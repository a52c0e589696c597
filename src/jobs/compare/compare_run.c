/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison: open both, sample, score, time, write. */
#include "jobs/compare/compare_verdict.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "session/session_device.h"

/* ---- progress: one bar over everything, in network evaluations or what takes as long ------- */

enum { SCORE_UNITS = 2, CONTROL_UNITS = 2000 }; /* of a scored picture; of one control */

void lw_compare_progress(const comparing *w, int64_t part_done, const char *note)
{
    lw_observe_progress(w->obs, "compare", w->done + part_done, w->total, note);
}

/* ---- what DDPM is scored with ------------------------------------------------------------ */

typedef struct setting {
    lw_compare_setting how;
    int64_t n; /* pictures */
} setting;

enum { SETTINGS_MAX = 1 + 2 * LW_COMPARE_MAX_STEPS };

static void add_setting(const lw_compare_config *c, lw_compare_setting how, setting *out, int *n)
{
    int64_t pictures = c->n_ddpm ? c->n_ddpm : c->n_fid;
    for (int i = 0; i < *n; i++)
        if (lw_compare_same(out[i].how, how))
            return;
    if (how.evaluations > c->ddim_steps[0] && c->n_slow)
        pictures = LW_MIN(pictures, c->n_slow);
    out[(*n)++] = (setting){how, pictures};
}

/* The first of the timed ones, then all that are only scored. */
static int settings_of(const comparing *w, setting out[SETTINGS_MAX])
{
    const lw_compare_config *c = w->c;
    int n = 0;
    add_setting(c, lw_compare_usual(w, c->ddim_steps[0]), out, &n);
    for (int i = 0; i < c->n_score_steps; i++)
        add_setting(c, lw_compare_usual(w, c->score_steps[i]), out, &n);
    for (int i = 0; i < c->n_ancestral_steps; i++)
        add_setting(c,
                    (lw_compare_setting){.evaluations = c->ancestral_steps[i],
                                         .sampler = LW_SAMPLER_ANCESTRAL},
                    out, &n);
    return n;
}

/* What will be done, in the same units as it is counted. */
static int64_t total_units(const comparing *w)
{
    setting s[SETTINGS_MAX];
    int n = settings_of(w, s);
    int64_t units = 0;
    for (int i = 0; i < n; i++) /* a size of its own is scored of drift and of real pictures, too */
        units += s[i].n * (s[i].how.evaluations + SCORE_UNITS) +
                 (i == 0 || s[i].n != s[i - 1].n ? 2 * SCORE_UNITS * s[i].n : 0);
    return units + (2 + 3 * SCORE_UNITS) * w->c->n_fid +
           w->c->n_alpha * (1 + SCORE_UNITS) * w->c->n_fid + (int64_t)LW_CONTROLS * CONTROL_UNITS +
           lw_compare_latency_units(w);
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
    const lw_network *a = w->drift->net, *b = w->ddpm->net;
    LW_TRY(lw_precision_check(w->c->precision, w->drift->quant, w->c->drift));
    LW_TRY(lw_precision_check(w->c->precision, w->ddpm->quant, w->c->ddpm));
    if (w->drift->method != LW_METHOD_DRIFT)
        return lw_fail(LW_EUSAGE, "--drift %s: is a DDPM", w->c->drift);
    if (w->ddpm->method != LW_METHOD_DDPM)
        return lw_fail(LW_EUSAGE, "--ddpm %s: is a drifting generator", w->c->ddpm);
    for (int i = 0; i < w->c->n_alpha; i++)
        LW_TRY(lw_sampler_alpha_check(a, w->c->alpha[i]));
    LW_TRY(lw_channels_check(w->c->drift, lw_picture_channels(a), 3));
    LW_TRY(lw_channels_check(w->c->ddpm, lw_picture_channels(b), 3));
    if (lw_picture_channels(a) == 1 || lw_picture_channels(b) == 1)
        lw_observe_say(w->obs, "gray pictures are compared as RGB: networks see the channel three "
                               "times");
    const int32_t side[2] = {lw_picture_side(a), lw_picture_side(b)};
    if (side[0] != side[1])
        return lw_fail(
            LW_ESHAPE, "%s makes pictures of %dx%d, %s of %dx%d: there is nothing to compare",
            w->c->drift, (int)side[0], (int)side[0], w->c->ddpm, (int)side[1], (int)side[1]);
    return 0;
}

/* The first of the encoders that drift was trained with. */
static int choose_encoder(comparing *w, const char *own)
{
    char *spec[LW_ENCODERS_MOST];
    int32_t n;
    LW_TRY(lw_encoder_specs(own, spec, &n));
    w->own_encoder = lw_steal(&spec[0]);
    for (int32_t i = 1; i < n; i++)
        lw_free(&spec[i]);
    w->encoder = w->own_encoder;
    w->encoder_of_drift = true;
    lw_log(LW_LOG_WARN, "compare",
           "distances are measured in %s, which drift was trained with: that favours "
           "drift. Give --judge or --encoder",
           w->own_encoder);
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
                         : json_string_value(json_object_get(w->drift->net->config, "leeway_data"));
    if (!w->data)
        return lw_fail(LW_EUSAGE, "%s does not say what it was trained on: give --data",
                       w->c->drift);
    w->encoder = w->c->encoder;
    if (!w->encoder && !w->c->judge && !w->c->reader && own && !lw_str_eq(own, "none"))
        return choose_encoder(w, own);
    return 0;
}

static int open_all(comparing *w)
{
    const lw_compare_config *c = w->c;
    LW_TRY(lw_source_open(c->drift, c->ema, &w->drift));
    LW_TRY(lw_source_open(c->ddpm, c->ema, &w->ddpm));
    LW_TRY(check_pair(w));
    LW_TRY(choose_data(w));
    LW_TRY(lw_session_device_with(c->threads, c->conv, &w->dev));
    lw_pool_watch(w->dev->pool, w->obs);
    w->side = lw_picture_side(w->drift->net);
    const lw_scorer_opts o = {.data = w->data,
                              .image_size = w->side,
                              .limit = w->limit,
                              .judge = c->judge,
                              .reader = c->reader,
                              .encoder = w->encoder,
                              .on_error = c->on_error,
                              .n = c->n_fid,
                              .seed = (uint64_t)c->seed,
                              .obs = w->obs};
    LW_TRY(lw_scorer_new(w->dev, &o, &w->scorer));
    w->classes = lw_scorer_classes(w->scorer);
    return lw_compare_verdict_open(w);
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

lw_sampler_opts lw_compare_sampler(const comparing *w, const lw_source *from,
                                   lw_compare_setting how, int64_t batch)
{
    return (lw_sampler_opts){.method = from->method,
                             .diffusion = from->diffusion,
                             .kind = how.sampler,
                             .steps = from->method == LW_METHOD_DDPM ? how.evaluations : 0,
                             .keep_eps = !w->c->use_clipped_model_output,
                             .alpha = how.alpha,
                             .batch = (int32_t)batch,
                             .seed = (uint64_t)w->c->seed,
                             .weights = LW_SLAB_PARAM,
                             .precision = w->c->precision,
                             .calibration = lw_quantization_ranges(from->quant)};
}

static int sample(comparing *w, const lw_source *from, lw_store *store, lw_compare_setting how,
                  const char *what, compare_set *s)
{
    lw_network net = *from->net;
    LW_CLEANUP(lw_sampler_free) lw_sampler *sampler = NULL;
    sampling_part p = {w, what, 1};
    const lw_observer obs = {.self = &p, .progress = on_sampled, .should_stop = on_stop_part};
    const lw_sampler_opts o = lw_compare_sampler(w, from, how, LW_MIN(s->n, 64));
    net.store = store;
    LW_TRY(lw_sampler_new(w->dev, &net, &o, &sampler));
    p.evaluations = lw_sampler_evaluations(sampler);
    LW_TRY(lw_sampler_run(sampler, 0, s->n, s->classes, &obs, s->x));
    if (lw_picture_channels(&net) == 1)
        lw_gray_to_rgb(s->x, s->n * w->side * w->side);
    w->done += s->n * p.evaluations;
    return 0;
}

static int score(comparing *w, compare_kind kind, lw_compare_setting how, const char *name,
                 const compare_set *s, int64_t n)
{
    LW_ASSERT(w->n_entries < COMPARE_ENTRIES, "%d scores", w->n_entries);
    compare_entry *e = &w->entry[w->n_entries];
    *e = (compare_entry){.kind = kind, .how = how};
    lw_compare_progress(w, 0, name);
    LW_TRY(lw_scorer_score(w->scorer, name, s->x, s->classes, n, &e->score));
    if (kind == COMPARE_DRIFT || kind == COMPARE_GUIDED || kind == COMPARE_DDPM ||
        kind == COMPARE_UNTRAINED)
        LW_TRY(lw_compare_verdict_add(
            w, name, kind == COMPARE_UNTRAINED ? LW_VERDICT_CONTROL : LW_VERDICT_MADE, s->x,
            s->classes, n));
    w->n_entries++;
    w->done += SCORE_UNITS * n;
    return lw_observe_stop(w->obs) ? lw_fail(LW_ESTOPPED, "stopped while scoring") : 0;
}

static const lw_compare_setting none = {0}, one_step = {.evaluations = 1};

static int score_real(comparing *w)
{
    compare_set *s = &w->real_set;
    LW_TRY(new_set(w, w->c->n_fid, w->classes ? w->classes : 1, s));
    s->n = lw_scorer_real(w->scorer, w->c->n_fid, s->x, s->classes);
    if (!w->classes)
        lw_free(&s->classes);
    LW_TRY(score(w, COMPARE_REAL, none, "real pictures, held out", s, s->n));
    w->out->real = w->entry[w->n_entries - 1].score;
    return 0;
}

static int score_drift(comparing *w)
{
    LW_TRY(new_set(w, w->c->n_fid, w->drift->net->classes, &w->drift_set));
    LW_TRY(sample(w, w->drift, w->drift->net->store, none, "sampling drift", &w->drift_set));
    LW_TRY(score(w, COMPARE_DRIFT, one_step, "drift, 1 evaluation", &w->drift_set, w->drift_set.n));
    w->out->drift = w->entry[w->n_entries - 1].score;
    return 0;
}

/* Keeps of s the first pictures, which the page shows. */
static int keep_first(const comparing *w, const compare_set *s, compare_set *first)
{
    int64_t floats = (int64_t)w->side * w->side * 3;
    int64_t n = LW_MIN(s->n, 8 * (int64_t)LW_MAX(w->classes, 8));
    LW_TRY(new_set(w, n, s->classes ? w->classes : 0, first));
    memcpy(first->x, s->x, (size_t)(n * floats) * sizeof *s->x);
    return 0;
}

static int score_guided(comparing *w, compare_set *s, double alpha)
{
    const lw_compare_setting how = {.evaluations = 1, .alpha = alpha};
    char name[64];
    snprintf(name, sizeof name, "drift, alpha %g", alpha);
    LW_TRY(sample(w, w->drift, w->drift->net->store, how, "sampling drift, guided", s));
    LW_TRY(score(w, COMPARE_GUIDED, how, name, s, s->n));
    return keep_first(w, s, &w->entry[w->n_entries - 1].first);
}

static int score_alphas(comparing *w)
{
    compare_set s = {0};
    int rc = 0;
    if (w->c->n_alpha)
        rc = new_set(w, w->c->n_fid, w->drift->net->classes, &s);
    for (int i = 0; rc == 0 && i < w->c->n_alpha; i++)
        rc = score_guided(w, &s, w->c->alpha[i]);
    clear_set(&s);
    return rc;
}

/* Distances of different numbers of pictures do not compare: drift's first n, and n real ones. */
static int score_sized(comparing *w, int64_t n)
{
    char name[64];
    if (!lw_compare_sized(w, COMPARE_DRIFT, COMPARE_DRIFT_FEW, n)) {
        snprintf(name, sizeof name, "drift, its first %lld", (long long)n);
        LW_TRY(score(w, COMPARE_DRIFT_FEW, one_step, name, &w->drift_set, n));
    }
    if (n < w->real_set.n && !lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW, n)) {
        snprintf(name, sizeof name, "real pictures, %lld of them", (long long)n);
        LW_TRY(score(w, COMPARE_REAL_FEW, none, name, &w->real_set, n));
    }
    return 0;
}

static int score_setting(comparing *w, const setting *p, compare_set *s)
{
    char name[64], what[80];
    lw_compare_name(name, p->how);
    snprintf(what, sizeof what, "sampling %s", name);
    s->n = p->n;
    LW_TRY(sample(w, w->ddpm, w->ddpm->net->store, p->how, what, s));
    LW_TRY(score_sized(w, p->n));
    LW_TRY(score(w, COMPARE_DDPM, p->how, name, s, p->n));
    return keep_first(w, s, &w->entry[w->n_entries - 1].first);
}

static int score_ddpm(comparing *w)
{
    setting how[SETTINGS_MAX];
    compare_set s = {0};
    int n = settings_of(w, how), rc;
    LW_TRY(new_set(w, how[0].n, w->ddpm->net->classes, &w->ddpm_set));
    LW_TRY(score_setting(w, &how[0], &w->ddpm_set));
    w->out->ddpm = w->entry[w->n_entries - 1].score;
    w->out->drift_few = *lw_compare_sized(w, COMPARE_DRIFT, COMPARE_DRIFT_FEW, how[0].n);
    snprintf(w->out->distance, sizeof w->out->distance, "%s", lw_scorer_distance(w->scorer));
    w->out->floor_ddpm = lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW,
                                          LW_MIN(how[0].n, w->real_set.n))
                             ->fd.value;
    rc = new_set(w, how[0].n, w->ddpm->net->classes, &s);
    for (int i = 1; rc == 0 && i < n; i++)
        rc = score_setting(w, &how[i], &s);
    clear_set(&s);
    return rc;
}

/* A drifting generator with its first random weights. */
static int score_untrained(comparing *w)
{
    compare_set s = {0};
    LW_CLEANUP(lw_store_free) lw_store *fresh = NULL;
    LW_TRY(lw_store_new(true, &fresh));
    LW_TRY(lw_network_declare(w->drift->net, fresh));
    lw_store_init(fresh, (uint64_t)w->c->seed);
    int rc = new_set(w, w->c->n_fid, w->drift->net->classes, &s);
    if (rc == 0)
        rc = sample(w, w->drift, fresh, none, "sampling an untrained generator", &s);
    if (rc == 0)
        rc = score(w, COMPARE_UNTRAINED, one_step, "drift, untrained", &s, s.n);
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
    const compare_entry *d = lw_compare_find(w, COMPARE_DRIFT);
    LW_ASSERT(d, "%d scores without drift's", w->n_entries);
    memcpy(out->bar, d->bar, sizeof out->bar);
    out->bar_failed = d->failed;
}

bool lw_compare_same(lw_compare_setting a, lw_compare_setting b)
{
    return a.evaluations == b.evaluations && a.sampler == b.sampler;
}

const compare_entry *lw_compare_find(const comparing *w, compare_kind kind)
{
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == kind)
            return &w->entry[i];
    return NULL;
}

const compare_entry *lw_compare_find_ddpm(const comparing *w, lw_compare_setting how)
{
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_DDPM && lw_compare_same(w->entry[i].how, how))
            return &w->entry[i];
    return NULL;
}

const lw_score *lw_compare_sized(const comparing *w, compare_kind whole, compare_kind few,
                                 int64_t n)
{
    for (int i = 0; i < w->n_entries; i++)
        if ((w->entry[i].kind == whole || w->entry[i].kind == few) && w->entry[i].score.n == n)
            return &w->entry[i].score;
    return NULL;
}

/* ---- all of it -------------------------------------------------------------------------- */

/* The rows that a verdict will have: drift, DDPM's settings, the untrained generator, those planted. */
static int forecast(comparing *w)
{
    setting how[SETTINGS_MAX];
    lw_verdict_set rows[LW_VERDICT_ROWS] = {0};
    int n = settings_of(w, how), r = 0;
    rows[r++].n = w->c->n_fid;
    for (int i = 0; i < w->c->n_alpha; i++)
        rows[r++].n = w->c->n_fid;
    for (int i = 0; i < n; i++)
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

static int run(comparing *w)
{
    w->total = total_units(w);
    LW_TRY(open_all(w));
    if (w->c->dry_run)
        return forecast(w);
    lw_compare_work_of(w);
    LW_TRY(score_real(w));
    LW_TRY(score_drift(w));
    LW_TRY(score_alphas(w));
    LW_TRY(score_ddpm(w));
    LW_TRY(score_untrained(w));
    LW_TRY(score_controls(w));
    check_all(w);
    lw_compare_headline(w);
    LW_TRY(lw_compare_planted(w));
    LW_TRY(lw_compare_verdict_run(w));
    LW_TRY(lw_compare_paired(w));
    LW_TRY(lw_compare_latency(w));
    lw_compare_headline_say(w);
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
        return lw_fail(LW_EUSAGE,
                       "--num-images, --n-ddpm: at least 50 pictures, fewer say nothing");
    if (c->n_slow && c->n_slow < 20)
        return lw_fail(LW_EUSAGE, "--n-slow: at least 20 pictures, fewer say nothing");
    return 0;
}

int lw_job_compare(const lw_compare_config *c, const lw_observer *obs, lw_compare_result *out)
{
    lw_compare_result result = {0};
    comparing w = {.c = c, .obs = obs, .out = &result, .started = lw_now()};
    LW_TRY(check_config(c));
    int rc = run(&w);
    lw_new_dir_drop(&w.dir);
    clear_set(&w.real_set);
    clear_set(&w.drift_set);
    clear_set(&w.ddpm_set);
    for (int i = 0; i < w.n_entries; i++)
        clear_set(&w.entry[i].first);
    lw_compare_verdict_close(&w);
    lw_scorer_free(&w.scorer);
    lw_source_close(&w.drift);
    lw_source_close(&w.ddpm);
    lw_backend_close(&w.dev);
    lw_json_drop(&w.drift_yaml);
    lw_free(&w.own_encoder);
    if (rc == 0)
        *out = result;
    return rc;
}
