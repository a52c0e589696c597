/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison: open both, sample, score, time, write. */
#include "jobs/compare/compare_verdict.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "session/session_device.h"

/* ---- progress: one bar over everything, in network evaluations or what takes as long ------- */

void lw_compare_progress(const comparing *w, int64_t part_done, const char *note)
{
    lw_observe_progress(w->obs, "compare", w->done + part_done, w->total, note);
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
    lw_compare_progress(self, done * COMPARE_CONTROL_UNITS, "scoring controls");
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

/* Option and run are of the method they stand for. */
static int check_method(const char *option, const lw_source *s, lw_method wanted)
{
    static const char *const is[] = {[LW_METHOD_DDPM] = "a DDPM",
                                     [LW_METHOD_DRIFT] = "a drifting generator",
                                     [LW_METHOD_FLOW] = "a rectified flow"};
    return s->method == wanted ? 0
                               : lw_fail(LW_EUSAGE, "--%s %s: is %s (--%s)", option, s->name,
                                         is[s->method], lw_method_name(s->method));
}

static int check_side(const lw_source *a, const lw_source *b)
{
    int x = lw_picture_side(a->net), y = lw_picture_side(b->net);
    return x == y ? 0
                  : lw_fail(LW_ESHAPE,
                            "%s makes pictures of %dx%d, %s of %dx%d: there is nothing to compare",
                            a->name, x, x, b->name, y, y);
}

static int check_steps(const compare_other *o, bool solver, const char *what, const int32_t *steps,
                       int n)
{
    for (int i = 0; i < n; i++)
        LW_TRY((solver ? lw_solver_check_steps : lw_diffusion_check_steps)(o->source->diffusion,
                                                                           steps[i], what));
    return 0;
}

/* Before anything is made, and by the name that was typed. */
static int check_all_steps(const lw_compare_config *c, const compare_other *o)
{
    if (o->kind == COMPARE_FLOW)
        return check_steps(o, false, "--flow-steps", c->flow_steps, c->n_flow_steps);
    LW_TRY(check_steps(o, c->solver, "--ddim-steps", c->ddim_steps, 1));
    LW_TRY(check_steps(o, false, "--ddim-steps", c->ddim_steps, c->n_ddim_steps));
    for (int i = 1; i < c->n_ddim_steps; i++) { /* only timed: long ones from few evaluations */
        const int32_t timed = LW_MIN(c->ddim_steps[i], COMPARE_PROBE_STEPS);
        LW_TRY(check_steps(o, c->solver, "--ddim-steps", &timed, 1));
    }
    LW_TRY(check_steps(o, c->solver, "--score-steps", c->score_steps, c->n_score_steps));
    return check_steps(o, false, "--ancestral-steps", c->ancestral_steps, c->n_ancestral_steps);
}

/* What any of them must be, whatever it stands beside; gray: it makes such pictures. */
static int check_one(const comparing *w, const lw_source *s, bool *gray)
{
    LW_TRY(lw_precision_check(w->c->precision, s->quant, s->net, s->name));
    LW_TRY(lw_channels_check(s->name, lw_picture_channels(s->net), 3));
    *gray |= lw_picture_channels(s->net) == 1;
    return check_side(w->drift, s);
}

static int check_all_of(const comparing *w)
{
    bool gray = false;
    LW_TRY(lw_compare_check_rows(w));
    LW_TRY(check_method("drift", w->drift, LW_METHOD_DRIFT));
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(check_method(w->other[i].key, w->other[i].source,
                            w->other[i].kind == COMPARE_FLOW ? LW_METHOD_FLOW : LW_METHOD_DDPM));
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(check_all_steps(w->c, &w->other[i]));
    for (int i = 0; i < w->c->n_alpha; i++)
        LW_TRY(lw_sampler_alpha_check(w->drift->net, w->c->alpha[i]));
    for (int i = 0; i < w->n_others; i++)
        for (int k = 0; k < w->c->n_guidance_scale; k++)
            LW_TRY(lw_sampler_guidance_check(w->other[i].source->net, w->other[i].source->method,
                                             w->c->guidance_scale[k]));
    LW_TRY(check_one(w, w->drift, &gray));
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(check_one(w, w->other[i].source, &gray));
    if (gray)
        lw_observe_say(w->obs, "gray pictures are compared as RGB: networks see the channel three "
                               "times");
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

/* Pictures of a class are measured beside real ones of it. */
static int check_classes(const comparing *w, const lw_source *from)
{
    return from->net->classes > w->classes
               ? lw_fail(LW_EUSAGE, "%s makes %d classes, %s has %d", from->name,
                         from->net->classes, w->data, w->classes)
               : 0;
}

static int open_all(comparing *w)
{
    const lw_compare_config *c = w->c;
    LW_TRY(lw_source_open(c->drift, c->ema, &w->drift));
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(lw_source_open(w->other[i].run, c->ema, &w->other[i].source));
    LW_TRY(check_all_of(w));
    LW_TRY(choose_data(w));
    LW_TRY(lw_session_device_with(c->threads, c->conv, &w->dev));
    lw_pool_watch(w->dev->pool, w->obs);
    w->side = lw_picture_side(w->drift->net);
    const lw_scorer_opts o = {.data = w->data,
                              .data_of = w->data == c->data ? NULL : c->drift,
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
    LW_TRY(check_classes(w, w->drift));
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(check_classes(w, w->other[i].source));
    LW_TRY(lw_compare_verdict_open(w));
    return lw_compare_planted_open(w);
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
                             .steps = from->method == LW_METHOD_DRIFT ? 0
                                      : how.guidance_scale > 0.0      ? how.evaluations / 2
                                                                      : how.evaluations,
                             .keep_eps = !w->c->use_clipped_model_output,
                             .alpha = how.alpha,
                             .guidance_scale = how.guidance_scale,
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
        kind == COMPARE_FLOW || kind == COMPARE_UNTRAINED)
        LW_TRY(lw_compare_verdict_add(
            w, name, kind == COMPARE_UNTRAINED ? LW_VERDICT_CONTROL : LW_VERDICT_MADE, s->x,
            s->classes, n));
    w->n_entries++;
    w->done += COMPARE_SCORE_UNITS * n;
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

/* Keeps of s the first pictures, which the page shows. */
static int keep_first(const comparing *w, const compare_set *s, compare_set *first)
{
    int64_t floats = (int64_t)w->side * w->side * 3;
    int64_t n = LW_MIN(s->n, 8 * (int64_t)LW_MAX(w->classes, 8));
    LW_TRY(new_set(w, n, s->classes ? w->classes : 0, first));
    memcpy(first->x, s->x, (size_t)(n * floats) * sizeof *s->x);
    return 0;
}

static int score_drift(comparing *w)
{
    LW_TRY(new_set(w, w->c->n_fid, w->drift->net->classes, &w->drift_set));
    LW_TRY(sample(w, w->drift, w->drift->net->store, none, "sampling drift", &w->drift_set));
    LW_TRY(score(w, COMPARE_DRIFT, one_step, "drift, 1 evaluation", &w->drift_set, w->drift_set.n));
    w->out->drift = w->entry[w->n_entries - 1].score;
    return keep_first(w, &w->drift_set, &w->entry[w->n_entries - 1].first);
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

/* From here on drift is what it is at its best strength of guidance; its other rows stay beside it. */
static int choose_drift(comparing *w)
{
    if (!w->c->n_alpha)
        return 0;
    lw_compare_choose_drift(w);
    const lw_compare_setting best = {.evaluations = 1, .alpha = w->out->drift_alpha};
    return sample(w, w->drift, w->drift->net->store, best, "sampling drift at its best",
                  &w->drift_set);
}

/* Distances of different numbers of pictures do not compare: drift's first n, and n real ones. */
static int score_sized(comparing *w, int64_t n)
{
    const lw_compare_setting best = {.evaluations = 1, .alpha = w->out->drift_alpha};
    char name[64], alpha[32] = "";
    if (!lw_compare_sized(w, COMPARE_DRIFT, COMPARE_DRIFT_FEW, n)) {
        if (best.alpha > 0)
            snprintf(alpha, sizeof alpha, ", alpha %g", best.alpha);
        snprintf(name, sizeof name, "drift%s, its first %lld", alpha, (long long)n);
        LW_TRY(score(w, COMPARE_DRIFT_FEW, best, name, &w->drift_set, n));
    }
    if (n < w->real_set.n && !lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW, n)) {
        snprintf(name, sizeof name, "real pictures, %lld of them", (long long)n);
        LW_TRY(score(w, COMPARE_REAL_FEW, none, name, &w->real_set, n));
    }
    return 0;
}

static int score_setting(comparing *w, const compare_other *o, const compare_scored *p,
                         compare_set *s)
{
    char name[64], what[80];
    lw_compare_name(name, p->how);
    snprintf(what, sizeof what, "sampling %s", name);
    s->n = p->n;
    LW_TRY(sample(w, o->source, o->source->net->store, p->how, what, s));
    LW_TRY(score_sized(w, p->n));
    LW_TRY(score(w, o->kind, p->how, name, s, p->n));
    return keep_first(w, s, &w->entry[w->n_entries - 1].first);
}

static int score_other(comparing *w, compare_other *o, lw_compare_other *out)
{
    compare_scored how[COMPARE_SCORED_MAX];
    compare_set s = {0};
    int n = lw_compare_scored(w, o, how), rc;
    LW_TRY(new_set(w, how[0].n, o->source->net->classes, &o->set));
    LW_TRY(score_setting(w, o, &how[0], &o->set));
    out->name = o->name;
    out->evaluations = o->usual.evaluations;
    out->score = w->entry[w->n_entries - 1].score;
    rc = new_set(w, how[0].n, o->source->net->classes, &s);
    for (int i = 1; rc == 0 && i < n; i++)
        rc = score_setting(w, o, &how[i], &s);
    clear_set(&s);
    return rc;
}

/* Their sets have as many pictures each. */
static int score_others(comparing *w)
{
    lw_compare_result *out = w->out;
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(score_other(w, &w->other[i], &out->other[out->n_others++]));
    int64_t n = w->other[0].set.n;
    out->drift_few = *lw_compare_sized(w, COMPARE_DRIFT, COMPARE_DRIFT_FEW, n);
    snprintf(out->distance, sizeof out->distance, "%s", lw_scorer_distance(w->scorer));
    out->floor_few =
        lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW, LW_MIN(n, w->real_set.n))->fd.value;
    return 0;
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
    w->done += (int64_t)LW_CONTROLS * COMPARE_CONTROL_UNITS;
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

const compare_entry *lw_compare_find(const comparing *w, compare_kind kind)
{
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == kind)
            return &w->entry[i];
    return NULL;
}

const compare_entry *lw_compare_find_setting(const comparing *w, compare_kind kind,
                                             lw_compare_setting how)
{
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == kind && lw_compare_same(w->entry[i].how, how))
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

static int run(comparing *w)
{
    w->total = lw_compare_units(w);
    LW_TRY(open_all(w));
    if (w->c->dry_run)
        return lw_compare_forecast(w);
    lw_compare_work_of(w);
    LW_TRY(score_real(w));
    LW_TRY(score_controls(w));
    LW_TRY(score_drift(w));
    LW_TRY(score_alphas(w));
    LW_TRY(choose_drift(w));
    LW_TRY(score_others(w));
    LW_TRY(score_untrained(w));
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
    if (!c->ddpm && !c->flow)
        return lw_fail(LW_EUSAGE, "beside what? give --ddpm RUN, --flow RUN or both");
    if (c->flow && c->n_flow_steps < 1)
        return lw_fail(LW_EUSAGE, "--flow-steps: name at least one number of evaluations");
    if (c->ddpm && c->n_ddim_steps < 1)
        return lw_fail(LW_EUSAGE, "--ddim-steps: name at least one number of evaluations");
    if (c->n_fid < 50 || (c->n_ddpm && c->n_ddpm < 50))
        return lw_fail(LW_EUSAGE,
                       "--num-images, --n-ddpm: at least 50 pictures, fewer say nothing");
    if (c->n_slow && c->n_slow < 20)
        return lw_fail(LW_EUSAGE, "--n-slow: at least 20 pictures, fewer say nothing");
    return 0;
}

static void name_others(comparing *w)
{
    const lw_compare_config *c = w->c;
    if (c->ddpm)
        w->other[w->n_others++] = (compare_other){
            .kind = COMPARE_DDPM,
            .run = c->ddpm,
            .name = "DDPM",
            .title = "DDPM",
            .key = "ddpm",
            .usual = {.evaluations = c->ddim_steps[0],
                      .sampler = c->solver ? LW_SAMPLER_DPM_SOLVER : LW_SAMPLER_AUTO}};
    if (c->flow)
        w->other[w->n_others++] = (compare_other){
            .kind = COMPARE_FLOW,
            .run = c->flow,
            .name = "flow",
            .title = "Flow",
            .key = "flow",
            .usual = {.evaluations = c->flow_steps[c->n_flow_steps - 1],
                      .sampler = c->flow_sampler ? LW_SAMPLER_HEUN : LW_SAMPLER_EULER}};
}

static void close_others(comparing *w)
{
    for (int i = 0; i < w->n_others; i++) {
        clear_set(&w->other[i].set);
        lw_source_close(&w->other[i].source);
    }
}

int lw_job_compare(const lw_compare_config *c, const lw_observer *obs, lw_compare_result *out)
{
    lw_compare_result result = {0};
    comparing w = {.c = c, .obs = obs, .out = &result, .started = lw_now()};
    LW_TRY(check_config(c));
    name_others(&w);
    int rc = run(&w);
    lw_new_dir_drop(&w.dir);
    clear_set(&w.real_set);
    clear_set(&w.drift_set);
    for (int i = 0; i < w.n_entries; i++)
        clear_set(&w.entry[i].first);
    lw_compare_verdict_close(&w);
    lw_scorer_free(&w.scorer);
    lw_source_close(&w.drift);
    close_others(&w);
    lw_backend_close(&w.dev);
    lw_json_drop(&w.drift_yaml);
    lw_free(&w.own_encoder);
    if (rc == 0)
        *out = result;
    return rc;
}
