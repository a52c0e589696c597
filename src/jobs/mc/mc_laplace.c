/* SPDX-License-Identifier: Apache-2.0 */
/* --one-pass laplace: a distribution over the last layer's weights, from one sweep over calibration
 * pictures, and the same pictures' scores from one pass each (eval_laplace.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

enum { ROWS = 8 };

typedef struct mc_one_pass {
    lw_last_layer *layer;
    lw_laplace *laplace;
    lw_dataset *opened; /* calibration pictures of their own, until they are swept */
    lw_dataset *data;   /* calibration pictures */
    lw_mc_one_pass_result *out;
    bool fitted;
    const lw_dataset *own;             /* the model's pictures */
    double (*kept)[LW_LAPLACE_SCORES]; /* their scores, once they are known */
} mc_one_pass;

/* ---- opening ----------------------------------------------------------------------------------- */

/* A vector for each class: the mean over the templates of its texts, each of length 1. */
static int mean_texts(const lw_zero_shot *z, double **out)
{
    double *mean = lw_calloc((size_t)z->classes * (size_t)z->dim, sizeof *mean);
    *out = mean;
    if (!mean)
        return LW_ENOMEM;
    for (int64_t t = 0; t < (int64_t)z->templates * z->classes; t++) {
        const double *from = z->text + t * z->dim;
        double *to = mean + t % z->classes * z->dim, square = 0;
        for (int32_t d = 0; d < z->dim; d++)
            square += from[d] * from[d];
        for (int32_t d = 0; d < z->dim && square > 0; d++)
            to[d] += from[d] / sqrt(square);
    }
    return 0;
}

static int open_laplace(const mc_model *m, mc_one_pass *o)
{
    const lw_last_layer_info i = lw_last_layer_get_info(o->layer);
    LW_CLEANUP(lw_mc_texts_clear) mc_texts t = {0};
    LW_CLEANUP(lw_free) double *text = NULL;
    lw_laplace_opts l = {.in = i.in,
                         .out = i.out,
                         .bias = i.bias,
                         .squares = i.squares,
                         .prior = m->c->prior,
                         .pictures = (double)m->c->training_images};
    if (!lw_str_eq(i.output, "logits")) {
        if (!m->c->text_embeddings)
            return lw_fail(
                LW_EUSAGE,
                "--one-pass laplace: %s has no classifier: --text-embeddings F says what "
                "its pictures are compared with",
                m->net->dir);
        LW_TRY(lw_mc_texts_open(m, i.out, &t));
        LW_TRY(mean_texts(&t.z, &text));
        l.texts = t.z.classes;
        l.text = text;
        l.scale = exp(t.z.scale);
        l.shift = t.z.bias;
        l.sigmoid = t.sigmoid;
    }
    m->out->one_pass.texts = l.texts;
    m->out->one_pass.scale = l.scale;
    m->out->one_pass.sigmoid = l.sigmoid;
    return lw_laplace_new(&l, &o->laplace);
}

int lw_mc_one_pass_open(mc_model *m)
{
    lw_mc_one_pass_result *r = &m->out->one_pass;
    mc_one_pass *o = lw_calloc(1, sizeof *o);
    m->one_pass = o;
    if (!o)
        return LW_ENOMEM;
    o->out = r;
    LW_TRY(lw_last_layer_new(m->dev, m->net, m->data->h, m->data->w, ROWS, m->c->precision,
                             &o->layer));
    const lw_last_layer_info i = lw_last_layer_get_info(o->layer);
    snprintf(r->weight, sizeof r->weight, "%s", i.weight);
    r->in = i.in;
    r->out = i.out;
    r->bias = i.bias;
    LW_TRY(open_laplace(m, o));
    o->own = o->data = m->data;
    if (!m->c->calibration)
        return 0;
    lw_data_opts rows = lw_mc_data_opts(m);
    rows.num_images = m->c->calibration_images;
    LW_TRY(lw_mc_data_open(m->c->calibration, &rows, &o->opened));
    o->data = o->opened;
    return 0;
}

void lw_mc_one_pass_close(mc_one_pass **pp)
{
    mc_one_pass *o = *pp;
    if (!o)
        return;
    lw_laplace_free(&o->laplace);
    lw_last_layer_free(&o->layer);
    lw_data_close(&o->opened);
    lw_free(&o->kept);
    lw_free(pp);
}

/* ---- calibration ------------------------------------------------------------------------------- */

static int add_rows(void *self, int64_t first, int64_t n, const float *f, const float *y)
{
    const mc_model *m = self;
    int rc = lw_laplace_add(m->dev->pool, m->one_pass->laplace, f, y, n);
    return rc < 0 ? lw_fail_in(rc, "calibration pictures from %lld on: ", (long long)first) : 0;
}

static int calibrate(const mc_model *m)
{
    mc_one_pass *o = m->one_pass;
    mc_model with = *m; /* the calibration pictures */
    char what[96];
    double begin = lw_now();
    with.data = o->data;
    snprintf(what, sizeof what, "%s calibration", m->out->name);
    LW_TRY(
        lw_last_layer_rows(o->layer, o->data->n, lw_mc_fill, &with, add_rows, &with, what, m->obs));
    LW_TRY(lw_laplace_fit(m->dev->pool, o->laplace));
    lw_data_close(&o->opened);
    o->fitted = true;
    o->out->fit = lw_laplace_get_info(o->laplace);
    o->out->calibrate = lw_now() - begin;
    return 0;
}

/* ---- scores ------------------------------------------------------------------------------------ */

/* A batch whose pictures are scored side by side. */
typedef struct scoring {
    const mc_model *m;
    double (*scores)[LW_LAPLACE_SCORES];
    double *scratch; /* [workers][doubles] */
    size_t doubles;
    int64_t first;
    const float *f, *y;
} scoring;

static void scoring_clear(scoring *s)
{
    lw_free(&s->scratch);
}

static int score_task(void *arg, int64_t i, int worker)
{
    const scoring *s = arg;
    const lw_mc_one_pass_result *r = s->m->one_pass->out;
    int rc = lw_laplace_scores(s->m->one_pass->laplace, s->f + i * r->in, s->y + i * r->out,
                               s->scratch + (size_t)worker * s->doubles, s->scores[s->first + i]);
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    if (rc == 0)
        return 0;
    lw_data_row_name(s->m->data, s->first + i, &name);
    return lw_fail_in(rc, "%s: ", lw_str_c(&name));
}

static int score_rows(void *self, int64_t first, int64_t n, const float *f, const float *y)
{
    scoring *s = self;
    s->first = first;
    s->f = f;
    s->y = y;
    return lw_pool_try(s->m->dev->pool, n, score_task, s);
}

static int score_pictures(const mc_model *m, double (*scores)[LW_LAPLACE_SCORES])
{
    const mc_one_pass *o = m->one_pass;
    LW_CLEANUP(scoring_clear) scoring s = {.m = m, .scores = scores};
    char what[96];
    s.doubles = lw_laplace_doubles(o->laplace);
    s.scratch = lw_calloc((size_t)lw_pool_size(m->dev->pool) * s.doubles, sizeof *s.scratch);
    if (!s.scratch)
        return LW_ENOMEM;
    snprintf(what, sizeof what, "%s one pass", m->out->name);
    return lw_last_layer_rows(o->layer, m->n, lw_mc_fill, (void *)m, score_rows, &s, what, m->obs);
}

int lw_mc_one_pass(const mc_model *m, double (*scores)[LW_LAPLACE_SCORES])
{
    mc_one_pass *o = m->one_pass;
    size_t bytes = (size_t)m->n * sizeof *scores;
    if (!o->fitted)
        LW_TRY(calibrate(m));
    if (m->data != o->own)
        return score_pictures(m, scores);
    if (!o->kept) {
        LW_CLEANUP(lw_free) double(*kept)[LW_LAPLACE_SCORES] = lw_calloc(1, bytes);
        if (!kept)
            return LW_ENOMEM;
        LW_TRY(score_pictures(m, kept));
        o->kept = lw_steal(&kept);
    }
    memcpy(scores, o->kept, bytes);
    return 0;
}

/* ---- beside the many passes -------------------------------------------------------------------- */

typedef double one_scores[LW_LAPLACE_SCORES];

/* Means over trials of a score of T number p -> v [n]. */
static void mean_score(const mc_model *m, int32_t p, int score, double *v)
{
    for (int64_t i = 0; i < m->n; i++) {
        v[i] = 0;
        for (int32_t k = 0; k < m->c->trials; k++)
            v[i] += mc_at(m, p, k)[i][score] / m->c->trials;
    }
}

static int compare(mc_model *m, one_scores *scores)
{
    lw_mc_one_pass_result *r = &m->out->one_pass;
    LW_CLEANUP(lw_free) double *one = lw_calloc((size_t)m->n, sizeof *one);
    LW_CLEANUP(lw_free) double *many = lw_calloc((size_t)m->n, sizeof *many);
    if (!one || !many)
        return LW_ENOMEM;
    for (int s = 0; s < LW_LAPLACE_SCORES; s++) {
        r->mean[s] = 0;
        for (int64_t i = 0; i < m->n; i++) {
            one[i] = scores[i][s];
            r->mean[s] += one[i] / (double)m->n;
        }
        for (int32_t p = 0; p < m->c->n_passes; p++)
            for (int t = 0; t < LW_PASS_SCORES; t++) {
                mean_score(m, p, t, many);
                LW_TRY(lw_spearman(one, many, m->n, &r->rho[s][t][p]));
            }
    }
    return 0;
}

/* {SCORE of many passes: {"T=4": rho, ..}} */
static json_t *correlations_json(const mc_model *m, int s)
{
    json_t *all = json_object();
    for (int t = 0; t < LW_PASS_SCORES; t++) {
        json_t *one = json_object();
        for (int32_t p = 0; p < m->c->n_passes; p++) {
            char key[24];
            snprintf(key, sizeof key, "T=%d", (int)m->c->passes[p]);
            json_object_set_new(one, key, lw_json_real(m->out->one_pass.rho[s][t][p]));
        }
        json_object_set_new(all, lw_pass_score_name[t], one);
    }
    return all;
}

static json_t *summary_json(const mc_model *m)
{
    const lw_mc_one_pass_result *r = &m->out->one_pass;
    json_t *scores = json_object(), *all = json_object();
    for (int s = 0; s < LW_LAPLACE_SCORES; s++) {
        json_object_set_new(scores, lw_laplace_score_name[s],
                            json_pack("{s:o}", "mean", lw_json_real(r->mean[s])));
        json_object_set_new(all, lw_laplace_score_name[s], correlations_json(m, s));
    }
    json_t *seconds = json_pack("{s:f, s:f}", "calibrate", r->calibrate, "score", r->score);
    json_t *calibration = json_pack(
        "{s:s, s:I, s:I}", "data", m->c->calibration ? m->c->calibration : lw_str_c(&m->spec),
        "num_images", (json_int_t)r->fit.pictures, "stands_for",
        (json_int_t)(m->c->training_images ? m->c->training_images : r->fit.pictures));
    json_t *texts = r->texts ? json_pack("{s:i, s:f, s:b}", "num_classes", (int)r->texts, "scale",
                                         r->scale, "sigmoid", (int)r->sigmoid)
                             : NULL;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:I, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:O, s:o*}",
        "experiment", "one_pass", "method", "laplace", "model", m->out->name, "weight", r->weight,
        "in", (int)r->in, "out", (int)r->out, "bias", (int)r->bias, "num_images", (json_int_t)m->n,
        "calibration", calibration, "prior_chosen", m->c->prior == 0, "prior_precision",
        lw_json_real(r->fit.prior), "effective_weights", lw_json_real(r->fit.gamma), "seconds",
        seconds, "spearman_with_mc", all, "scores", scores, "contract", m->about, "texts", texts);
}

int lw_mc_one_pass_write(mc_model *m)
{
    LW_CLEANUP(lw_free) one_scores *scores = lw_calloc((size_t)m->n, sizeof *scores);
    LW_CLEANUP(lw_free) double *one = lw_calloc((size_t)m->n, sizeof *one);
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    if (!scores || !one)
        return LW_ENOMEM;
    double begin = lw_now() - m->out->one_pass.calibrate; /* 0, or another has needed it */
    LW_TRY(lw_mc_one_pass(m, scores));
    m->out->one_pass.score = lw_now() - begin - m->out->one_pass.calibrate;
    LW_TRY(compare(m, scores));
    LW_TRY(lw_mc_add_paths(m, &z));
    for (int s = 0; s < LW_LAPLACE_SCORES; s++) {
        for (int64_t i = 0; i < m->n; i++)
            one[i] = scores[i][s];
        LW_TRY(lw_mc_add_f64(m, &z, lw_laplace_score_name[s], one));
    }
    LW_TRY(lw_mc_save(m, "one_pass", true, "laplace.npz", &z));
    LW_CLEANUP(lw_json_drop) json_t *j = summary_json(m);
    m->out->one_pass.done = true;
    return j ? lw_mc_save_json(m, "one_pass", true, "laplace_summary.json", j) : LW_ENOMEM;
}
