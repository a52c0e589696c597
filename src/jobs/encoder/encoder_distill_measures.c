/* SPDX-License-Identifier: Apache-2.0 */
/* How near a student is to its teacher on held-out pictures: the loss, and neighbours. */
#include <string.h>

#include "jobs/encoder/encoder_distill_parts.h"

enum { BATCH = 64 };

/* ---- neighbours --------------------------------------------------------------------------------- */

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
    lw_unit_vectors(out, n, key->c);
    return 0;
}

static double shared(const lw_distill_measures *m)
{
    int64_t both = 0, n = m->near.queries;
    for (int64_t i = 0; i < n; i++)
        for (int a = 0; a < LW_NEIGHBOURS; a++)
            for (int b = 0; b < LW_NEIGHBOURS; b++)
                both += m->near.near[i * LW_NEIGHBOURS + a] == m->teachers[i * LW_NEIGHBOURS + b];
    return (double)both / (double)(n * LW_NEIGHBOURS);
}

/* ---- the student's --------------------------------------------------------------------------- */

/* A key of rows of a dataset. */
typedef struct source {
    const int64_t *rows;
    lw_real_features *real;
    int32_t key;
} source;

static int load_features(void *self, int64_t first, int64_t n, void *x)
{
    const source *s = self;
    void *dst[LW_MAX_FEATURE_KEYS] = {0};
    dst[s->key] = x;
    return lw_real_features_fetch(s->real, s->rows + first, n, dst);
}

static int32_t pooled_width(const lw_distill *d)
{
    return d->net->width << (d->net->stages - 1);
}

static int run_loss(lw_distill *d, double *out)
{
    lw_distill_measures *m = &d->m;
    lw_drawn drawn = {m->near.held.data, m->near.held.drawn};
    source s[LW_MAX_PREDICTED];
    char name[LW_MAX_PREDICTED][40];
    lw_feed feed[2 + LW_MAX_PREDICTED] = {{.name = "images", .fill = lw_drawn_fill, .self = &drawn},
                                          {.name = "loss", .out = m->loss}};
    for (int32_t k = 0; k < d->keys.n; k++) {
        s[k] = (source){drawn.rows, m->real, k};
        feed[2 + k] = (lw_feed){.name = lw_distill_name(name[k], "teacher", &d->keys.key[k]),
                                .fill = load_features,
                                .self = &s[k]};
    }
    LW_TRY(lw_forward_rows(m->student, "evaluate", m->near.queries, feed, 2 + d->keys.n, NULL));
    *out = 0.0;
    for (int64_t i = 0; i < m->near.queries; i++)
        *out += (double)m->loss[i] / (double)m->near.queries;
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

int lw_distill_measures_open(lw_distill *d, const int64_t *train_drawn)
{
    lw_distill_measures *m = &d->m;
    lw_neighbours *n = &m->near;
    LW_TRY(lw_neighbours_open(d->p, train_drawn, LW_MAX(d->keys.key[0].c, pooled_width(d)), n));
    LW_TRY(lw_distill_features(d, lw_picture_held_pictures(&n->held), false, &m->real));
    LW_TRY(lw_real_features_fill(m->real, d->p->obs));
    m->loss = lw_calloc((size_t)n->queries, sizeof *m->loss);
    m->teachers = lw_calloc((size_t)(n->queries * LW_NEIGHBOURS), sizeof *m->teachers);
    if (!m->loss || !m->teachers)
        return LW_ENOMEM;
    LW_TRY(compile_student(d));
    LW_TRY(teacher_vectors(d, d->real, n->train_drawn, n->among, n->base));
    LW_TRY(teacher_vectors(d, m->real, n->held.drawn, n->queries, n->query));
    LW_TRY(lw_neighbours_look(n, d->keys.key[0].c, m->teachers));
    return n->held.data->labelled ? lw_neighbours_vote(n, m->teachers, &m->teacher_accuracy) : 0;
}

void lw_distill_measures_clear(lw_distill *d)
{
    lw_distill_measures *m = &d->m;
    lw_forward_free(&m->student);
    lw_real_features_free(&m->real);
    lw_neighbours_clear(&m->near);
    lw_free(&m->loss);
    lw_free(&m->teachers);
}

/* ---- measuring ------------------------------------------------------------------------------- */

int lw_distill_evaluate(lw_distill *d, json_t *row)
{
    lw_distill_measures *m = &d->m;
    double loss, accuracy;
    LW_TRY(run_loss(d, &loss));
    LW_TRY(lw_neighbours_encode(&m->near, m->student, pooled_width(d)));
    LW_TRY(lw_neighbours_look(&m->near, pooled_width(d), m->near.near));
    json_object_set_new(row, "heldout_loss", lw_json_real(loss));
    json_object_set_new(row, "heldout_neighbours", lw_json_real(shared(m)));
    if (!m->near.held.data->labelled)
        return 0;
    LW_TRY(lw_neighbours_vote(&m->near, m->near.near, &accuracy));
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
