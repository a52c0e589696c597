/* SPDX-License-Identifier: Apache-2.0 */
/* How near a student is to its teacher on held-out pictures: the loss, and neighbours. */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "jobs/encoder/encoder_distill_parts.h"

enum { BATCH = 64, NEIGHBOURS = 10, QUERIES = 2000, AMONG = 5000 };

/* ---- vectors of unit length ------------------------------------------------------------------ */

static void normalise(float *x, int64_t n, int32_t dim)
{
    for (int64_t i = 0; i < n; i++, x += dim) {
        double square = 0.0;
        for (int32_t c = 0; c < dim; c++)
            square += (double)x[c] * (double)x[c];
        double k = square > 0.0 ? 1.0 / sqrt(square) : 0.0;
        for (int32_t c = 0; c < dim; c++)
            x[c] = (float)((double)x[c] * k);
    }
}

/* The teacher's: the first key, averaged over its places. */
static int teacher_vectors(const lw_distill *d, lw_real_features *real, const int64_t *rows,
                           int64_t n, float *out)
{
    const lw_feature_key *key = &d->keys.key[0];
    size_t c = (size_t)key->c;
    LW_CLEANUP(lw_free) float *x = lw_calloc(BATCH * (size_t)key->slots * c, sizeof *x);
    void *dst[LW_MAX_FEATURE_KEYS] = {x};
    if (!x)
        return LW_ENOMEM;
    for (int64_t at = 0; at < n; at += BATCH) {
        int64_t m = LW_MIN(n - at, BATCH);
        LW_TRY(lw_real_features_fetch(real, rows + at, m, dst));
        for (int64_t i = 0; i < m; i++)
            for (size_t k = 0; k < c; k++) {
                double sum = 0.0;
                for (size_t s = 0; s < (size_t)key->slots; s++)
                    sum += (double)x[((size_t)i * (size_t)key->slots + s) * c + k];
                out[(size_t)(at + i) * c + k] = (float)(sum / key->slots);
            }
    }
    normalise(out, n, key->c);
    return 0;
}

/* The nearest training rows of every held-out one. */
static int look(lw_distill *d, int32_t dim, int64_t *near)
{
    lw_distill_measures *m = &d->m;
    LW_CLEANUP(lw_free)
    double *distance = lw_calloc((size_t)(m->queries * NEIGHBOURS), sizeof *distance);
    if (!distance)
        return LW_ENOMEM;
    return lw_nearest(d->p->dev->pool, m->query, m->queries, m->base, m->among, dim, NEIGHBOURS,
                      false, distance, near);
}

/* Share of held-out rows whose neighbours vote for their class; ties go to the nearest. */
static int vote(const lw_distill *d, const int64_t *near, double *out)
{
    const lw_distill_measures *m = &d->m;
    LW_CLEANUP(lw_free) int32_t *count = lw_calloc((size_t)m->held.data->classes, sizeof *count);
    int64_t right = 0;
    if (!count)
        return LW_ENOMEM;
    for (int64_t i = 0; i < m->queries; i++) {
        int32_t label[NEIGHBOURS], best = -1;
        for (int k = 0; k < NEIGHBOURS; k++) {
            label[k] = d->p->data->labels[m->train_drawn[near[i * NEIGHBOURS + k]]];
            count[label[k]]++;
        }
        for (int k = 0; k < NEIGHBOURS; k++)
            best = best < 0 || count[label[k]] > count[best] ? label[k] : best;
        for (int k = 0; k < NEIGHBOURS; k++)
            count[label[k]] = 0;
        right += best == m->held.data->labels[m->held.drawn[i]];
    }
    *out = (double)right / (double)m->queries;
    return 0;
}

static double shared(const lw_distill_measures *m)
{
    int64_t both = 0;
    for (int64_t i = 0; i < m->queries; i++)
        for (int a = 0; a < NEIGHBOURS; a++)
            for (int b = 0; b < NEIGHBOURS; b++)
                both += m->near[i * NEIGHBOURS + a] == m->teachers[i * NEIGHBOURS + b];
    return (double)both / (double)(m->queries * NEIGHBOURS);
}

/* ---- the student's --------------------------------------------------------------------------- */

/* Rows of a dataset through the student. */
typedef struct source {
    lw_distill *d;
    const lw_dataset *data;
    const int64_t *rows;
    lw_real_features *real;
    int32_t key;
} source;

static int load_images(void *self, int64_t first, int64_t n, void *images)
{
    const source *s = self;
    for (int64_t i = 0; i < n; i++)
        lw_data_get(s->data, s->rows[first + i], false,
                    (float *)images + i * lw_data_row_size(s->data));
    return 0;
}

static int load_features(void *self, int64_t first, int64_t n, void *x)
{
    const source *s = self;
    void *dst[LW_MAX_FEATURE_KEYS] = {0};
    dst[s->key] = x;
    return lw_real_features_fetch(s->real, s->rows + first, n, dst);
}

static int run_student(lw_distill *d, const lw_dataset *data, const int64_t *rows, int64_t n,
                       float *pooled)
{
    source s = {.d = d, .data = data, .rows = rows};
    const lw_feed feed[] = {{.name = "images", .fill = load_images, .self = &s},
                            {.name = "pooled", .out = pooled}};
    LW_TRY(lw_forward_rows(d->m.student, "evaluate", n, feed, 2, NULL));
    normalise(pooled, n, d->net->width << (d->net->stages - 1));
    return 0;
}

static int run_loss(lw_distill *d, double *out)
{
    lw_distill_measures *m = &d->m;
    source s[LW_MAX_PREDICTED];
    char name[LW_MAX_PREDICTED][40];
    lw_feed feed[2 + LW_MAX_PREDICTED] = {{.name = "images", .fill = load_images, .self = s},
                                          {.name = "loss", .out = m->loss}};
    for (int32_t k = 0; k < d->keys.n; k++) {
        s[k] = (source){d, m->held.data, m->held.drawn, m->real, k};
        feed[2 + k] = (lw_feed){.name = lw_distill_name(name[k], "teacher", &d->keys.key[k]),
                                .fill = load_features,
                                .self = &s[k]};
    }
    LW_TRY(lw_forward_rows(m->student, "evaluate", m->queries, feed, 2 + d->keys.n, NULL));
    *out = 0.0;
    for (int64_t i = 0; i < m->queries; i++)
        *out += (double)m->loss[i] / (double)m->queries;
    return 0;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int compile_student(lw_distill *d)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps = {0};
    char name[40];
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(d->p->store)};
    lw_val x =
        lw_input(g, "images",
                 lw_type_of(LW_F32, 4, BATCH, d->p->data->h, d->p->data->w, d->p->data->channels));
    lw_encoder_net(&b, d->net, x, &taps);
    lw_graph_output_add(g, "pooled", lw_tap_find(&taps, "pooled"), LW_NOVAL);
    lw_graph_output_add(g, "loss", lw_distill_loss(d, &b, &taps), LW_NOVAL);
    LW_TRY(lw_forward_of(d->p->dev, &g, NULL, LW_SLAB_EMA, "the student", &d->m.student));
    for (int32_t k = 0; k < d->keys.n; k++) {
        const lw_feature_key *key = &d->keys.key[k];
        size_t bytes = (size_t)key->c * sizeof(float);
        memcpy(lw_forward_input(d->m.student, lw_distill_name(name, "mean", key)), d->mean[k],
               bytes);
        memcpy(lw_forward_input(d->m.student, lw_distill_name(name, "scale", key)), d->scale[k],
               bytes);
    }
    return 0;
}

static int open_rows(lw_distill *d, const int64_t *train_drawn)
{
    lw_distill_measures *m = &d->m;
    LW_TRY(lw_picture_held_open(d->p, &m->held));
    m->queries = LW_MIN(m->held.data->n, QUERIES);
    m->among = LW_MIN(d->p->data->n, AMONG);
    if (m->among < NEIGHBOURS)
        return lw_fail(LW_EUSAGE,
                       "--eval-every: neighbours are looked for among %d training "
                       "pictures or more, there are %lld",
                       NEIGHBOURS, (long long)m->among);
    m->train_drawn = lw_calloc((size_t)m->among, sizeof *m->train_drawn);
    if (!m->train_drawn)
        return LW_ENOMEM;
    memcpy(m->train_drawn, train_drawn, (size_t)m->among * sizeof *train_drawn);
    LW_TRY(lw_distill_features(d, lw_picture_held_pictures(&m->held), false, &m->real));
    return lw_real_features_fill(m->real, d->p->obs);
}

static int make_room(lw_distill *d)
{
    lw_distill_measures *m = &d->m;
    size_t dim = (size_t)LW_MAX(d->keys.key[0].c, d->net->width << (d->net->stages - 1));
    m->loss = lw_calloc((size_t)m->queries, sizeof *m->loss);
    m->query = lw_calloc((size_t)m->queries * dim, sizeof *m->query);
    m->base = lw_calloc((size_t)m->among * dim, sizeof *m->base);
    m->near = lw_calloc((size_t)(m->queries * NEIGHBOURS), sizeof *m->near);
    m->teachers = lw_calloc((size_t)(m->queries * NEIGHBOURS), sizeof *m->teachers);
    return m->loss && m->query && m->base && m->near && m->teachers ? 0 : LW_ENOMEM;
}

int lw_distill_measures_open(lw_distill *d, const int64_t *train_drawn)
{
    lw_distill_measures *m = &d->m;
    LW_TRY(open_rows(d, train_drawn));
    LW_TRY(make_room(d));
    LW_TRY(compile_student(d));
    LW_TRY(teacher_vectors(d, d->real, m->train_drawn, m->among, m->base));
    LW_TRY(teacher_vectors(d, m->real, m->held.drawn, m->queries, m->query));
    LW_TRY(look(d, d->keys.key[0].c, m->teachers));
    return m->held.data->labelled ? vote(d, m->teachers, &m->teacher_accuracy) : 0;
}

void lw_distill_measures_clear(lw_distill *d)
{
    lw_distill_measures *m = &d->m;
    lw_forward_free(&m->student);
    lw_real_features_free(&m->real);
    lw_picture_held_clear(&m->held);
    lw_free(&m->train_drawn);
    lw_free(&m->loss);
    lw_free(&m->query);
    lw_free(&m->base);
    lw_free(&m->near);
    lw_free(&m->teachers);
}

/* ---- measuring ------------------------------------------------------------------------------- */

int lw_distill_evaluate(lw_distill *d, json_t *row)
{
    lw_distill_measures *m = &d->m;
    double loss, accuracy;
    LW_TRY(run_loss(d, &loss));
    LW_TRY(run_student(d, d->p->data, m->train_drawn, m->among, m->base));
    LW_TRY(run_student(d, m->held.data, m->held.drawn, m->queries, m->query));
    LW_TRY(look(d, d->net->width << (d->net->stages - 1), m->near));
    json_object_set_new(row, "heldout_loss", lw_json_real(loss));
    json_object_set_new(row, "heldout_neighbours", lw_json_real(shared(m)));
    if (!m->held.data->labelled)
        return 0;
    LW_TRY(vote(d, m->near, &accuracy));
    json_object_set_new(row, "heldout_knn", lw_json_real(accuracy));
    json_object_set_new(row, "teacher_knn", lw_json_real(m->teacher_accuracy));
    return 0;
}

void lw_distill_tell(const json_t *row, lw_str *out)
{
    const json_t *knn = json_object_get(row, "heldout_knn");
    if (!json_object_get(row, "heldout_loss"))
        return;
    lw_str_addf(out, "loss %.4g  neighbours shared %.1f %%",
                json_number_value(json_object_get(row, "heldout_loss")),
                100.0 * json_number_value(json_object_get(row, "heldout_neighbours")));
    if (knn)
        lw_str_addf(out, "  k-NN accuracy %.2f %% (teacher %.2f %%)",
                    100.0 * json_number_value(knn),
                    100.0 * json_number_value(json_object_get(row, "teacher_knn")));
}
