/* SPDX-License-Identifier: Apache-2.0 */
/* The scorer: reference, features, judge, neighbours. */
#include "jobs/compare/compare_score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "session/session.h"

enum { NEAR_MAX = 1000, REAL_MAX = 1000, REPLICATES = 60, TRAIN_BLOCK = 4096 };
static const double threshold = 0.9;

struct lw_scorer {
    lw_scorer_opts o;
    lw_pool *pool;
    lw_dataset *train, *held;
    lw_score_net *judge, *reader, *own; /* own: the named encoder */
    lw_score_net *features;             /* one of the three */
    int32_t side;
    int64_t floats; /* of a picture */
    lw_stats *reference;
    int64_t *drawn;    /* held-out rows, lw_data_drawn */
    int64_t held_used; /* of them in the reference; those after it are free */
    float *real;       /* [n_real][floats] of the reference, for diversity and colour */
    int32_t *real_class;
    int64_t n_real;
    double copy_radius;
    char feature_name[96], reference_name[64], distance_name[96];
};

/* ---- nearest training pictures ---------------------------------------------------------- */

int lw_scorer_nearest_of(const lw_scorer *s, const uint8_t *pixels, int64_t count, const float *x,
                         int64_t m, double *near, int64_t *row)
{
    int64_t block = LW_MIN(count, TRAIN_BLOCK);
    LW_CLEANUP(lw_free) float *rows = lw_calloc((size_t)(block * s->floats), sizeof *rows);
    LW_CLEANUP(lw_free) double *d = lw_calloc((size_t)m, sizeof *d);
    LW_CLEANUP(lw_free) int64_t *index = lw_calloc((size_t)m, sizeof *index);
    if (!rows || !d || !index)
        return LW_ENOMEM;
    for (int64_t at = 0; at < count; at += block) {
        int64_t n = LW_MIN(block, count - at);
        lw_data_from_u8(pixels + at * s->floats, n * s->floats, rows);
        LW_TRY(lw_nearest(s->pool, x, m, rows, n, (int32_t)s->floats, 1, false, d, index));
        for (int64_t i = 0; i < m; i++) {
            if (at > 0 && d[i] >= near[i])
                continue;
            near[i] = d[i];
            if (row)
                row[i] = at + index[i];
        }
    }
    for (int64_t i = 0; i < m; i++)
        near[i] /= sqrt((double)s->floats);
    return 0;
}

static int nearest_training(const lw_scorer *s, const float *x, int64_t m, double *near,
                            int64_t *row)
{
    return lw_scorer_nearest_of(s, s->train->pixels, s->train->n, x, m, near, row);
}

int lw_scorer_nearest(const lw_scorer *s, const float *x, int64_t n, float *near, double *distance)
{
    LW_CLEANUP(lw_free) int64_t *row = lw_calloc((size_t)n, sizeof *row);
    if (!row)
        return LW_ENOMEM;
    LW_TRY(nearest_training(s, x, n, distance, row));
    for (int64_t i = 0; i < n; i++)
        lw_data_from_u8(s->train->pixels + row[i] * s->floats, s->floats, near + i * s->floats);
    return 0;
}

static int score_near(const lw_scorer *s, const float *x, lw_score *out)
{
    int64_t m = LW_MIN(out->n, NEAR_MAX), pairs;
    LW_CLEANUP(lw_free) double *near = lw_calloc((size_t)m, sizeof *near);
    if (!near)
        return LW_ENOMEM;
    LW_TRY(nearest_training(s, x, m, near, NULL));
    lw_sort(near, (size_t)m);
    out->near_min = near[0];
    out->near_median = m % 2 ? near[m / 2] : 0.5 * (near[m / 2 - 1] + near[m / 2]);
    while (out->copies < m && near[out->copies] < s->copy_radius)
        out->copies++;
    return lw_close_pairs(s->pool, x, m, (int32_t)s->floats,
                          s->copy_radius * sqrt((double)s->floats), &pairs, &out->duplicates);
}

/* Half of what one in a hundred held-out pictures keeps from the training pictures: nearer is a
 * copy. */
static int measure_radius(lw_scorer *s)
{
    int64_t m = LW_MIN(s->n_real, 500);
    LW_CLEANUP(lw_free) double *near = lw_calloc((size_t)m, sizeof *near);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(m * s->floats), sizeof *x);
    LW_CLEANUP(lw_free) int32_t *c = lw_calloc((size_t)m, sizeof *c);
    if (!near || !x || !c)
        return LW_ENOMEM;
    m = lw_scorer_real(s, m, x, c);
    LW_TRY(nearest_training(s, x, m, near, NULL));
    lw_sort(near, (size_t)m);
    s->copy_radius = 0.5 * near[m / 100];
    return 0;
}

/* ---- the reference ---------------------------------------------------------------------- */

static const char *grouped(char buf[32], int64_t n)
{
    if (n >= 1000)
        snprintf(buf, 32, "%lld,%03d", (long long)(n / 1000), (int)(n % 1000));
    else
        snprintf(buf, 32, "%lld", (long long)n);
    return buf;
}

static void get_rows(const lw_dataset *d, const int64_t *rows, int64_t n, float *x,
                     int32_t *classes)
{
    int64_t floats = (int64_t)d->h * d->w * 3;
    for (int64_t i = 0; i < n; i++) {
        lw_data_get(d, rows[i], false, x + i * floats);
        if (classes)
            classes[i] = d->labels[rows[i]];
    }
}

/* Held-out pictures when enough are left over to measure the floor with; else training pictures, as
 * is usual. */
static int measure_reference(lw_scorer *s)
{
    bool held = s->held->n >= s->o.n + LW_MAX(s->o.n, 2000);
    const lw_dataset *d = held ? s->held : s->train;
    int64_t n = held ? LW_MIN(s->held->n - s->o.n, 5000) : LW_MIN(d->n, 50000), block = 256;
    LW_CLEANUP(lw_free) float *f = lw_calloc((size_t)(block * s->features->dim), sizeof *f);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(block * s->floats), sizeof *x);
    LW_CLEANUP(lw_free) int64_t *rows = NULL;
    LW_TRY(lw_data_drawn(d, &rows));
    s->n_real = LW_MIN(n, REAL_MAX);
    s->real = lw_calloc((size_t)(s->n_real * s->floats), sizeof *s->real);
    s->real_class = lw_calloc((size_t)s->n_real, sizeof *s->real_class);
    if (!f || !x || !s->real || !s->real_class)
        return LW_ENOMEM;
    LW_TRY(lw_stats_new(s->features->dim, &s->reference));
    for (int64_t at = 0; at < n; at += block) {
        int64_t m = LW_MIN(block, n - at);
        get_rows(d, rows + at, m, x, NULL);
        LW_TRY(lw_score_net_run(s->features, x, m, f, NULL));
        LW_TRY(lw_stats_add(s->pool, s->reference, f, m));
    }
    get_rows(d, rows, s->n_real, s->real, s->real_class);
    s->held_used = held ? n : 0;
    char count[32];
    snprintf(s->reference_name, sizeof s->reference_name, "%s %s pictures", grouped(count, n),
             held ? "held-out" : "training");
    return 0;
}

int64_t lw_scorer_real(const lw_scorer *s, int64_t n, float *x, int32_t *classes)
{
    n = LW_MIN(n, s->held->n - s->held_used);
    get_rows(s->held, s->drawn + s->held_used, n, x, classes);
    return n;
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Networks of the comparison are called by what they do in it, others by their own name. */
static void name_distance(lw_scorer *s)
{
    lw_contract c;
    lw_contract_of(s->features->encoder, LW_NUM_F32, s->side, s->side, &c);
    if (s->own)
        lw_contract_frechet(&c, s->distance_name);
    else
        snprintf(s->distance_name, sizeof s->distance_name, "Frechet distance, %s",
                 s->reader ? "plain classifier" : "judge");
}

static int open_nets(lw_scorer *s, lw_device *dev)
{
    const lw_scorer_opts *o = &s->o;
    if (o->judge)
        LW_TRY(lw_score_net_open(dev, o->judge, s->side, &s->judge));
    if (o->encoder)
        LW_TRY(lw_score_net_open(dev, o->encoder, s->side, &s->own));
    if (o->reader)
        LW_TRY(lw_score_net_open(dev, o->reader, s->side, &s->reader));
    s->features = s->own ? s->own : s->reader ? s->reader : s->judge;
    if (!s->features)
        return lw_fail(LW_EUSAGE,
                       "Frechet distances need features: give --judge RUN or --encoder SPEC");
    if (s->judge && s->judge->judged != s->train->classes)
        return lw_fail(LW_EUSAGE, "%s judges %d classes, %s has %d", o->judge, s->judge->judged,
                       o->data, s->train->classes);
    if (s->reader && s->reader->outputs != s->train->classes)
        return lw_fail(LW_EUSAGE, "%s reads %d classes, %s has %d", o->reader, s->reader->outputs,
                       o->data, s->train->classes);
    snprintf(s->feature_name, sizeof s->feature_name, "%s pooled features (%d numbers)",
             s->own      ? s->own->encoder->name
             : s->reader ? "the plain classifier's"
                         : "the judge's",
             s->features->dim);
    name_distance(s);
    return 0;
}

static int open_scorer(lw_scorer *s, lw_device *dev)
{
    const lw_on_error on_error = (lw_on_error)s->o.on_error;
    const lw_data_opts train = {.image_size = s->o.image_size,
                                .count = s->o.limit,
                                .on_error = on_error,
                                .pool = dev->pool,
                                .obs = s->o.obs},
                       held = {.image_size = s->o.image_size,
                               .split = LW_SPLIT_HELDOUT,
                               .on_error = on_error,
                               .pool = dev->pool,
                               .obs = s->o.obs};
    s->pool = dev->pool;
    int rc = lw_data_open(s->o.data, &train, &s->train);
    if (rc == LW_EIO && s->o.data_of)
        return lw_fail(
            rc,
            "%s; it is the data of %s, where a relative path is one from the folder that "
            "was trained in: start compare there, or give --data",
            lw_errmsg(), s->o.data_of);
    LW_TRY(rc);
    LW_TRY(lw_data_open(s->o.data, &held, &s->held));
    LW_TRY(lw_data_drawn(s->held, &s->drawn));
    s->side = s->train->h;
    s->floats = (int64_t)s->side * s->side * 3;
    if (s->held->n < 100)
        return lw_fail(LW_EUSAGE, "%s has %lld held-out pictures: too few to compare with",
                       s->o.data, (long long)s->held->n);
    LW_TRY(open_nets(s, dev));
    LW_TRY(measure_reference(s));
    return measure_radius(s);
}

int lw_scorer_new(lw_device *dev, const lw_scorer_opts *o, lw_scorer **out)
{
    LW_CLEANUP(lw_scorer_free) lw_scorer *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->o = *o;
    LW_TRY(open_scorer(s, dev));
    *out = lw_steal(&s);
    return 0;
}

void lw_scorer_free(lw_scorer **pp)
{
    lw_scorer *s = *pp;
    if (!s)
        return;
    lw_stats_free(&s->reference);
    lw_score_net_close(&s->judge);
    lw_score_net_close(&s->reader);
    lw_score_net_close(&s->own);
    lw_data_close(&s->train);
    lw_data_close(&s->held);
    lw_free(&s->real);
    lw_free(&s->drawn);
    lw_free(&s->real_class);
    lw_free(pp);
}

int32_t lw_scorer_side(const lw_scorer *s)
{
    return s->side;
}
int32_t lw_scorer_classes(const lw_scorer *s)
{
    return s->train->labelled ? s->train->classes : 0;
}
bool lw_scorer_has_judge(const lw_scorer *s)
{
    return s->judge != NULL;
}
const char *lw_scorer_features(const lw_scorer *s)
{
    return s->feature_name;
}
const char *lw_scorer_distance(const lw_scorer *s)
{
    return s->distance_name;
}

const char *lw_scorer_reference(const lw_scorer *s)
{
    return s->reference_name;
}
const lw_dataset *lw_scorer_heldout(const lw_scorer *s)
{
    return s->held;
}
const lw_dataset *lw_scorer_training(const lw_scorer *s)
{
    return s->train;
}

/* ---- one set ---------------------------------------------------------------------------- */

/* The judge's probabilities of real classes alone, so that they sum to 1. */
static void among_real(const float *p, int64_t n, int32_t outputs, int32_t k, float *q)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int32_t c = 0; c < k; c++)
            sum += (double)p[i * outputs + c];
        for (int32_t c = 0; c < k; c++) /* all on junk: no class is likelier than another */
            q[i * k + c] = sum > 1e-30 ? (float)((double)p[i * outputs + c] / sum)
                                       : 1.0f / (float)k;
    }
}

/* The judge's verdict and the reader's; predicted [n]: the reader's likeliest class. */
static int judge_set(lw_scorer *s, const float *x, const int32_t *asked, lw_score *out,
                     int32_t *predicted)
{
    int32_t k = s->judge->judged, outputs = s->judge->outputs;
    int64_t n = out->n;
    LW_CLEANUP(lw_free) float *p = lw_calloc((size_t)(n * outputs), sizeof *p);
    LW_CLEANUP(lw_free) float *q = lw_calloc((size_t)(n * k), sizeof *q);
    if (!p || !q)
        return LW_ENOMEM;
    LW_TRY(lw_score_net_run(s->judge, x, n, NULL, p));
    if (s->reader)
        LW_TRY(lw_score_net_run(s->reader, x, n, NULL, q));
    else
        among_real(p, n, outputs, k, q);
    for (int64_t i = 0; i < n; i++) {
        predicted[i] = 0;
        for (int32_t c = 1; c < k; c++)
            predicted[i] = q[i * k + c] > q[i * k + predicted[i]] ? c : predicted[i];
    }
    LW_TRY(lw_judge(p, n, outputs, k, asked, threshold, NULL, &out->strict));
    out->judged = true;
    return lw_judge(q, n, k, k, asked, threshold, NULL, &out->plain);
}

static int score_features(lw_scorer *s, const float *x, lw_score *out)
{
    LW_CLEANUP(lw_free) float *f = lw_calloc((size_t)(out->n * s->features->dim), sizeof *f);
    if (!f)
        return LW_ENOMEM;
    LW_TRY(lw_score_net_run(s->features, x, out->n, f, NULL));
    return lw_frechet_bootstrap(f, out->n, s->reference, REPLICATES, 0.95, s->o.seed, s->pool,
                                &out->fd);
}

int lw_scorer_score(lw_scorer *s, const char *name, const float *x, const int32_t *asked, int64_t n,
                    lw_score *out)
{
    lw_score r = {.n = n};
    LW_CLEANUP(lw_free) int32_t *predicted = lw_calloc((size_t)n, sizeof *predicted);
    const int32_t *group = asked;
    if (!predicted)
        return LW_ENOMEM;
    snprintf(r.name, sizeof r.name, "%s", name);
    if (s->judge) {
        LW_TRY(judge_set(s, x, asked, &r, predicted));
        group = predicted;
    }
    LW_TRY(score_features(s, x, &r));
    LW_TRY(lw_diversity(s->pool, x, n, group, s->real, s->n_real, group ? s->real_class : NULL,
                        (int32_t)s->floats, group ? s->train->classes : 0, &r.diversity));
    LW_TRY(lw_colour_distance(x, n, s->real, s->n_real, (int64_t)s->side * s->side, &r.colour));
    LW_TRY(score_near(s, x, &r));
    *out = r;
    return 0;
}

int lw_scorer_own(lw_scorer *s, const float *x, const int32_t *asked, int64_t n, float *own)
{
    LW_ASSERT(s->judge, "own probabilities of %lld pictures without a judge", (long long)n);
    int32_t outputs = s->judge->outputs;
    LW_CLEANUP(lw_free) float *p = lw_calloc((size_t)(n * outputs), sizeof *p);
    if (!p)
        return LW_ENOMEM;
    LW_TRY(lw_score_net_run(s->judge, x, n, NULL, p));
    for (int64_t i = 0; i < n; i++)
        own[i] = p[i * outputs + asked[i]];
    return 0;
}
