/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison's files besides the page: pictures, latency.csv, summary.json. */
#include <stdio.h>

#include "base/base.h"
#include "jobs/compare/compare_verdict.h"

/* ---- pictures --------------------------------------------------------------------------- */

/* Sets hold classes in turn (i mod classes): column k of row c is picture k * classes + c. Sets of
 * real pictures need not: their rows are looked for. */
static int64_t picture_of(const compare_set *s, int32_t c, int32_t column)
{
    int32_t seen = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (s->classes[i] == c && seen++ == column)
            return i;
    return -1;
}

int lw_compare_grid(const comparing *w, const compare_set *s, int32_t columns, int32_t scale,
                    bool page, lw_image *out)
{
    int32_t rows = s->classes ? LW_MIN(w->classes, 20) : columns;
    int64_t floats = (int64_t)w->side * w->side * 3;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(rows * columns * floats), sizeof *x);
    if (!x)
        return LW_ENOMEM;
    for (int32_t r = 0; r < rows; r++)
        for (int32_t k = 0; k < columns; k++) {
            int64_t i = s->classes ? picture_of(s, r, k) : (int64_t)r * columns + k;
            for (int64_t p = 0; i >= 0 && i < s->n && p < floats; p++)
                x[(r * columns + k) * floats + p] = s->x[i * floats + p];
        }
    const lw_grid g = {.columns = columns,
                       .padding = 1,
                       .scale = scale,
                       .background = {255, 255, 255},
                       .see_through = page};
    return lw_grid_f32(&g, x, rows * columns, w->side, w->side, out);
}

static json_t *notes(const comparing *w, const char *method, int32_t evaluations)
{
    char seed[32], count[16];
    snprintf(seed, sizeof seed, "%lld", (long long)w->c->seed);
    snprintf(count, sizeof count, "%d", evaluations);
    return json_pack("{s:s, s:s, s:s, s:s}", "Software", "leeway", "method", method, "evaluations",
                     count, "seed", seed);
}

static int32_t scale_of(const comparing *w)
{
    return w->side <= 16 ? 4 : w->side <= 32 ? 3 : w->side <= 64 ? 2 : 1;
}

static int save_grid(const comparing *w, const compare_set *s, const char *name, const char *method,
                     int32_t evaluations)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *texts = notes(w, method, evaluations);
    LW_TRY(lw_compare_grid(w, s, 10, scale_of(w), false, &im));
    return lw_png_save(lw_path_join(&path, lw_str_c(&w->dir.tmp), name), &im, texts);
}

/* "DDPM, 50 evaluations" */
static const char *usual_name(const compare_other *o, char buf[48])
{
    snprintf(buf, 48, "%s, %d evaluations", o->name, o->usual.evaluations);
    return buf;
}

static int save_beside(const comparing *w)
{
    enum { MOST = 2 + LW_COMPARE_OTHERS };
    lw_image grid[MOST] = {0};
    const lw_image *pictures[MOST];
    const char *titles[MOST] = {"real, held out", "drift, 1 evaluation"};
    char name[LW_COMPARE_OTHERS][48];
    LW_CLEANUP(lw_image_clear) lw_image all = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, what = {0};
    const compare_set *sets[MOST] = {&w->real_set, &w->drift_set};
    int n = 2 + w->n_others, rc = 0;
    lw_str_add(&what, "real | drift");
    for (int i = 0; i < w->n_others; i++) {
        sets[2 + i] = &w->other[i].set;
        titles[2 + i] = usual_name(&w->other[i], name[i]);
        lw_str_addf(&what, " | %s", w->other[i].key);
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = lw_compare_grid(w, sets[i], 8, scale_of(w), false, &grid[i]);
        pictures[i] = &grid[i];
    }
    if (rc == 0)
        rc = lw_image_beside(pictures, titles, n, 24, &all);
    for (int i = 0; i < n; i++)
        lw_image_clear(&grid[i]);
    LW_TRY(rc);
    LW_CLEANUP(lw_json_drop)
    json_t *texts = notes(w, lw_str_c(&what), w->other[0].usual.evaluations);
    return lw_png_save(lw_path_join(&path, lw_str_c(&w->dir.tmp), "side_by_side.png"), &all, texts);
}

/* ---- latency.csv ------------------------------------------------------------------------ */

static const char *latency_sampler(const lw_latency *l)
{
    return lw_str_eq(l->method, "drift") ? "one-step" : lw_compare_sampler_name(l->how);
}

/* What a cell's other columns do not say. */
static const char *latency_note(const lw_latency *l, char buf[96])
{
    const char *how = l->refused        ? LW_LATENCY_REFUSED
                      : l->extrapolated ? "extrapolated from ten evaluations"
                                        : "";
    if (l->how.guidance_scale > 0.0)
        snprintf(buf, 96, "guidance scale %g%s%s", l->how.guidance_scale, *how ? "; " : "", how);
    else
        snprintf(buf, 96, "%s", how);
    return buf;
}

static int save_latency(const comparing *w)
{
    char note[96];
    LW_CLEANUP(lw_str_clear) lw_str s = {0}, path = {0};
    lw_str_add(&s, "method,evaluations,batch,median_ms,p95_ms,p99_ms,ms_per_image,images_per_sec,"
                   "runs,extrapolated,memory_bytes,cpu_ms,times_drift,sampler,note\n");
    for (int i = 0; i < w->n_latencies; i++) {
        const lw_latency *l = &w->latency[i];
        const char *sampler = latency_sampler(l);
        if (l->refused) {
            lw_str_addf(&s, "%s,%d,%d,,,,,,%d,%d,%zu,,,%s,%s\n", l->method, l->how.evaluations,
                        l->batch, l->runs, l->extrapolated, l->bytes, sampler,
                        latency_note(l, note));
            continue;
        }
        lw_str_addf(&s, "%s,%d,%d,%.4f,%.4f,%.4f,%.4f,%.4f,%d,%d,%zu,%.4f,%.2f,%s,%s\n", l->method,
                    l->how.evaluations, l->batch, 1e3 * l->median, 1e3 * l->p95, 1e3 * l->p99,
                    1e3 * l->median / l->batch, l->batch / l->median, l->runs, l->extrapolated,
                    l->bytes, 1e3 * l->cpu, l->times_drift, sampler, latency_note(l, note));
    }
    return lw_file_write(lw_path_join(&path, lw_str_c(&w->dir.tmp), "latency.csv"), lw_str_c(&s),
                         s.len);
}

/* ---- summary.json ----------------------------------------------------------------------- */

static void set_real(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, lw_json_real(v));
}
static void set_int(json_t *o, const char *key, int64_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void set_guidance(json_t *o, lw_compare_setting how)
{
    if (how.guidance_scale > 0.0)
        set_real(o, "guidance_scale", how.guidance_scale);
}

static json_t *score_json(const compare_entry *e)
{
    static const char *const kinds[] = {
        [COMPARE_REAL] = "real",      [COMPARE_DRIFT] = "drift",     [COMPARE_GUIDED] = "drift",
        [COMPARE_DDPM] = "ddpm",      [COMPARE_FLOW] = "flow",       [COMPARE_DRIFT_FEW] = "other",
        [COMPARE_REAL_FEW] = "other", [COMPARE_UNTRAINED] = "other", [COMPARE_CONTROL] = "control"};
    const lw_score *s = &e->score;
    json_t *o = json_object(), *bar = json_array();
    json_object_set_new(o, "name", json_string(s->name));
    json_object_set_new(o, "kind", json_string(kinds[e->kind]));
    set_int(o, "n", s->n);
    if (e->how.evaluations)
        set_int(o, "evaluations", e->how.evaluations);
    if (e->how.alpha > 0)
        set_real(o, "alpha", e->how.alpha);
    set_guidance(o, e->how);
    if (e->kind == COMPARE_DDPM || e->kind == COMPARE_FLOW)
        json_object_set_new(o, "sampler", json_string(lw_compare_sampler_name(e->how)));
    set_real(o, "frechet", s->fd.value);
    set_real(o, "frechet_low", s->fd.low);
    set_real(o, "frechet_high", s->fd.high);
    set_real(o, "diversity", s->diversity);
    set_real(o, "colour_distance", s->colour);
    set_real(o, "nearest_training_median", s->near_median);
    set_real(o, "nearest_training_min", s->near_min);
    set_int(o, "copies_of_training", s->copies);
    set_int(o, "duplicates", s->duplicates);
    if (s->judged) {
        set_real(o, "accepted", s->strict.accepted);
        set_real(o, "agreement", s->plain.agreement);
        set_real(o, "legible", s->plain.accepted_any);
        set_real(o, "junk", s->strict.junk);
        set_real(o, "class_min", s->plain.class_min);
        set_real(o, "class_max", s->plain.class_max);
    }
    for (int i = 0; i < LW_BAR_COUNT; i++)
        if (e->bar[i].applies && !e->bar[i].pass)
            json_array_append_new(bar, json_string(e->bar[i].name));
    json_object_set_new(o, "fails", bar);
    return o;
}

static json_t *point_json(const lw_operating_point *p)
{
    static const char *const against[] = {"worse", "equal", "better"};
    if (!p->how.evaluations)
        return json_null();
    json_t *o = json_object();
    set_int(o, "evaluations", p->how.evaluations);
    json_object_set_new(o, "sampler", json_string(lw_compare_sampler_name(p->how)));
    set_guidance(o, p->how);
    set_int(o, "n", p->score.n);
    set_real(o, "frechet", p->score.fd.value);
    set_real(o, "frechet_drift", p->drift.fd.value);
    set_real(o, "frechet_floor", p->floor);
    json_object_set_new(o, "frechet_is", json_string(against[p->frechet + 1]));
    if (p->score.judged) {
        set_real(o, "accepted", p->score.strict.accepted);
        set_real(o, "accepted_drift", p->drift.strict.accepted);
        json_object_set_new(o, "accepted_is", json_string(against[p->accepted + 1]));
    }
    set_real(o, "times_drift", p->ratio);
    return o;
}

/* Its keys begin with `key` of the other: ddpm_at_its_best. */
static json_t *headline_json(const lw_headline *h, const char *key)
{
    char name[48];
    json_t *o = json_object();
    json_object_set_new(o, "text", json_string(h->text));
    set_int(o, "settings_scored", h->points);
    json_object_set_new(o, "by_acceptance", json_boolean(h->by_acceptance));
    snprintf(name, sizeof name, "%s_at_drifts_quality", key);
    json_object_set_new(o, name, point_json(&h->equal));
    snprintf(name, sizeof name, "%s_at_its_best", key);
    json_object_set_new(o, name, point_json(&h->best));
    return o;
}

static json_t *bar_json(const lw_compare_result *r)
{
    json_t *a = json_array();
    for (int i = 0; i < LW_BAR_COUNT; i++)
        if (r->bar[i].applies)
            json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:b}", "criterion", r->bar[i].name,
                                               "asked", r->bar[i].asked, "value", r->bar[i].value,
                                               "pass", r->bar[i].pass));
    return a;
}

static json_t *latency_json(const comparing *w)
{
    json_t *a = json_array();
    for (int i = 0; i < w->n_latencies; i++) {
        const lw_latency *l = &w->latency[i];
        json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:i, s:b, s:I}", "method", l->method, "sampler",
                              latency_sampler(l), "evaluations", l->how.evaluations, "batch",
                              l->batch, "runs", l->runs, "extrapolated", l->extrapolated,
                              "memory_bytes", (json_int_t)l->bytes);
        set_guidance(o, l->how);
        set_real(o, "median_ms", 1e3 * l->median);
        set_real(o, "p95_ms", 1e3 * l->p95);
        set_real(o, "p99_ms", 1e3 * l->p99);
        set_real(o, "images_per_sec", l->batch / l->median);
        set_real(o, "cpu_ms", 1e3 * l->cpu);
        set_real(o, "times_drift", l->times_drift);
        if (l->refused)
            json_object_set_new(o, "note", json_string(LW_LATENCY_REFUSED));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *kept_json(const lw_compare_kept *k)
{
    if (!k->metric[0])
        return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "metric", json_string(k->metric));
    set_int(o, "step", k->step);
    set_real(o, "reporting", k->value);
    set_real(o, "floor", k->floor);
    json_object_set_new(o, "compared", json_boolean(k->compared));
    return o;
}

static json_t *work_json(const lw_compare_work *w, const char *key)
{
    char name[32];
    json_t *o = json_object();
    set_real(o, "drift_wall_s", w->drift.wall);
    snprintf(name, sizeof name, "%s_wall_s", key);
    set_real(o, name, w->other.wall);
    set_real(o, "drift_cpu_s", w->drift.cpu);
    snprintf(name, sizeof name, "%s_cpu_s", key);
    set_real(o, name, w->other.cpu);
    set_real(o, "wall_percent_apart", w->wall_percent);
    set_real(o, "cpu_percent_apart", w->cpu_percent);
    json_object_set_new(o, "in_turns", json_boolean(w->in_turns));
    json_object_set_new(o, "equal", json_boolean(w->equal));
    return o;
}

/* What stands in the summary once for every other: of a DDPM under the plain name, of a flow under
 * that with "_flow". */
static void set_of_other(json_t *o, const compare_other *of, const char *name, json_t *value)
{
    char key[48];
    snprintf(key, sizeof key, "%s%s", name, of->kind == COMPARE_FLOW ? "_flow" : "");
    json_object_set_new(o, key, value);
}

static json_t *speedup_json(const lw_compare_other *found)
{
    return json_pack("{s:o, s:o, s:o}", "1", lw_json_real(found->speedup[0]), "8",
                     lw_json_real(found->speedup[1]), "64", lw_json_real(found->speedup[2]));
}

static void set_others(const comparing *w, json_t *o)
{
    char key[48];
    for (int i = 0; i < w->n_others; i++) {
        const compare_other *of = &w->other[i];
        const lw_compare_other *found = &w->out->other[i];
        json_object_set_new(o, of->key, json_string(of->run));
        set_of_other(o, of, "headline", headline_json(&found->headline, of->key));
        snprintf(key, sizeof key, "frechet_%s", of->key);
        set_real(o, key, found->score.fd.value);
        set_of_other(o, of, "work", work_json(&w->out->work[i], of->key));
        snprintf(key, sizeof key, "best_checkpoint_%s", of->key);
        json_object_set_new(o, key, kept_json(&w->out->work[i].kept_other));
        set_of_other(o, of, "speedup", speedup_json(found));
    }
}

static json_t *paired_json(const comparing *w)
{
    char key[48];
    const lw_paired *d = &w->out->paired_drift;
    json_t *o = json_object();
    set_int(o, "pictures", d->n);
    set_real(o, "rms_drift", d->rms);
    set_real(o, "worst_drift", d->worst);
    for (int i = 0; i < w->n_others; i++) {
        const lw_paired *p = &w->out->other[i].paired;
        snprintf(key, sizeof key, "rms_%s", w->other[i].key);
        set_real(o, key, p->rms);
        snprintf(key, sizeof key, "worst_%s", w->other[i].key);
        set_real(o, key, p->worst);
    }
    return o;
}

static int save_summary(const comparing *w)
{
    LW_CLEANUP(lw_json_drop) json_t *o = json_object();
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const lw_compare_result *r = w->out;
    json_t *scores = json_array();
    for (int i = 0; i < w->n_entries; i++)
        json_array_append_new(scores, score_json(&w->entry[i]));
    json_object_set_new(o, "drift", json_string(w->c->drift));
    json_object_set_new(o, "data", json_string(w->data));
    json_object_set_new(o, "distance", json_string(lw_scorer_distance(w->scorer)));
    json_object_set_new(o, "features", json_string(lw_scorer_features(w->scorer)));
    json_object_set_new(o, "reference", json_string(lw_scorer_reference(w->scorer)));
    set_int(o, "seed", w->c->seed);
    set_others(w, o);
    set_real(o, "drift_alpha", lw_compare_alpha(r->drift_alpha));
    set_real(o, "frechet_drift", r->drift.fd.value);
    set_real(o, "frechet_drift_few", r->drift_few.fd.value);
    set_real(o, "frechet_floor", r->real.fd.value);
    set_real(o, "frechet_floor_ddpm", r->floor_few);
    set_real(o, "frechet_untrained", r->untrained_fd);
    json_object_set_new(o, "best_checkpoint_drift", kept_json(&r->work[0].kept_drift));
    json_object_set_new(o, "latency_busy", json_boolean(r->busy));
    if (r->judged)
        json_object_set_new(
            o, "judge",
            json_pack("{s:f, s:f, s:f, s:f, s:b}", "accuracy", r->exam.accuracy, "reals_accepted",
                      r->exam.real_accepted, "class_means_accepted", r->exam.means_accepted,
                      "blurred_accepted", r->exam.blurred_accepted, "fit", r->exam.fit));
    json_object_set_new(o, "bar", bar_json(r));
    set_int(o, "bar_failed", r->bar_failed);
    set_int(o, "controls", r->controls);
    set_int(o, "controls_that_pass", r->controls_passed);
    json_object_set_new(o, "real_passes", json_boolean(r->real_passes));
    json_object_set_new(o, "scores", scores);
    if (w->verdict)
        json_object_set_new(o, "verdict", lw_compare_verdict_json(w));
    if (w->verdict)
        json_object_set_new(o, "planted", lw_compare_planted_json(w));
    json_object_set_new(o, "latency", latency_json(w));
    json_object_set_new(o, "precision", json_string(lw_precision_name(w->c->precision)));
    if (r->paired_drift.n)
        json_object_set_new(o, "paired", paired_json(w));
    set_real(o, "peak_rss_mb", (double)lw_peak_rss() / 1048576.0);
    json_object_set_new(o, "threads", json_integer(lw_pool_size(w->dev->pool)));
    json_object_set_new(o, "cpu", json_string(lw_machine_name()));
    json_object_set_new(o, "version", json_string(lw_build_version()));
    json_object_set_new(o, "commit", json_string(lw_build_commit()));
    return lw_json_save(lw_path_join(&path, lw_str_c(&w->dir.tmp), "summary.json"), o);
}

static const char *sampler_of_file(lw_compare_setting usual)
{
    return usual.sampler == LW_SAMPLER_DPM_SOLVER ? "dpm_solver"
           : usual.sampler == LW_SAMPLER_EULER    ? "euler"
           : usual.sampler == LW_SAMPLER_HEUN     ? "heun"
                                                  : "ddim";
}

int lw_compare_files(comparing *w)
{
    char name[48];
    LW_TRY(save_grid(w, &w->drift_set, "drift_samples_1nfe.png", "drift", 1));
    for (int i = 0; i < w->n_others; i++) {
        const compare_other *o = &w->other[i];
        snprintf(name, sizeof name, "%s_samples_%s%d.png", o->key, sampler_of_file(o->usual),
                 o->usual.evaluations);
        LW_TRY(save_grid(w, &o->set, name, o->key, o->usual.evaluations));
    }
    LW_TRY(save_beside(w));
    LW_TRY(save_latency(w));
    return save_summary(w);
}
