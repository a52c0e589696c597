/* SPDX-License-Identifier: Apache-2.0 */
/* Two views of each picture, and the loss that brings them together. */
#include "jobs/encoder/encoder_contrast.h"

#include <math.h>

#include "jobs/encoder/encoder_neighbours.h"

enum { BATCH = 64, HELD = 1024 };

struct lw_contrast {
    const lw_train_encoder_config *c;
    lw_picture_run *p;
    const lw_encoder_config *net;
    lw_view_opts view;
    /* measures */
    lw_neighbours near;
    lw_forward *test; /* averaged weights: images -> pooled, z */
    int64_t held;     /* pictures whose views are compared, whole leaves or all */
    float *z;         /* [2 held][projection] */
};

int lw_contrast_check(const lw_train_encoder_config *c, int64_t leaf)
{
    bool contrast = c->objective == LW_OBJECTIVE_CONTRASTIVE;
    if (!contrast)
        return 0;
    if (c->pictures.latents)
        return lw_fail(LW_EUSAGE, "--latents: --objective contrastive crops pictures and changes "
                                  "their colours; the others have it");
    if (leaf < 2)
        return lw_fail(LW_EUSAGE,
                       "--objective contrastive: a leaf of one picture has nothing to "
                       "tell it from; take --batch-size (and --leaf-size) of 2 at least");
    return 0;
}

int lw_contrast_open(const lw_train_encoder_config *c, lw_picture_run *p, lw_encoder_config *net,
                     lw_contrast **out)
{
    lw_contrast *k = lw_calloc(1, sizeof *k);
    if (!k)
        return LW_ENOMEM;
    k->c = c;
    k->p = p;
    k->net = net;
    k->view = (lw_view_opts){.least_area = c->least_area,
                             .colours = c->view_colours,
                             .mirror = p->pictures->flip && p->data->flip,
                             .seed = (uint64_t)c->train.seed,
                             .stream = lw_hash_name("encoder.views")};
    net->projection = c->projection;
    *out = k;
    return 0;
}

void lw_contrast_free(lw_contrast **pp)
{
    lw_contrast *k = *pp;
    if (!k)
        return;
    lw_neighbours_clear(&k->near);
    lw_forward_free(&k->test);
    lw_free(&k->z);
    lw_free(pp);
}

/* ---- the loss -------------------------------------------------------------------------------- */

lw_val lw_contrast_loss(lw_graph *g, lw_val z, double temperature)
{
    if (!lw_val_ok(z))
        return z;
    int32_t n = lw_val_type(g, z).dim[0];
    lw_val square = lw_add_f32(g, lw_sum(g, lw_sqr(g, z), LW_OVER_LAST), 1e-12f);
    lw_val unit = lw_mul(g, z, lw_ew1(g, LW_EW_rsqrt, square));
    lw_val s = lw_scale(g, lw_matmul(g, unit, unit, false, true), (float)(1.0 / temperature));
    s = lw_add(g, s, lw_input(g, "self", lw_type_of(LW_F32, 2, n, n)));
    return lw_cross_entropy(g, s, lw_input(g, "partner", lw_type_of(LW_I32, 1, n)));
}

void lw_contrast_pairs(float *self, int32_t *partner, int64_t pictures)
{
    int64_t n = 2 * pictures;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            self[i * n + j] = i == j ? -1e9f : 0.0f;
        partner[i] = (int32_t)((i + pictures) % n);
    }
}

static double cosine(const float *a, const float *b, int32_t dim)
{
    double ab = 0, aa = 1e-12, bb = 1e-12;
    for (int32_t c = 0; c < dim; c++) {
        ab += (double)a[c] * (double)b[c];
        aa += (double)a[c] * (double)a[c];
        bb += (double)b[c] * (double)b[c];
    }
    return ab / sqrt(aa * bb);
}

double lw_contrast_loss_of(const float *z, int64_t n, int32_t dim, double temperature)
{
    double loss = 0;
    for (int64_t i = 0; i < 2 * n; i++) {
        double sum = 0, pair = 0;
        for (int64_t j = 0; j < 2 * n; j++) {
            double s = j == i ? 0 : (cosine(z + i * dim, z + j * dim, dim) - 1.0) / temperature;
            sum += j == i ? 0 : exp(s);
            pair = j == (i + n) % (2 * n) ? s : pair;
        }
        loss += (log(sum) - pair) / (double)(2 * n);
    }
    return loss;
}

/* ---- a step ---------------------------------------------------------------------------------- */

typedef struct views {
    const lw_contrast *k;
    const lw_batch *b;
    int64_t first; /* number of the leaf's first picture among all that were ever drawn */
    float *to;     /* [2][pictures] of a picture's numbers */
} views;

static void make_views(void *self, int64_t i, int worker)
{
    const views *v = self;
    const lw_batch *b = v->b;
    int64_t floats = lw_batch_row_size(b);
    (void)worker;
    for (int64_t which = 0; which < 2; which++)
        lw_view_make(b->images + i * floats, b->h, b->w, b->channels, &v->k->view,
                     2 * (v->first + i) + which, v->to + (which * b->size + i) * floats);
}

int lw_contrast_feed(lw_contrast *k, int64_t leaf)
{
    lw_picture_run *p = k->p;
    int64_t n = p->leaves.size;
    views v = {.k = k, .first = leaf * n, .to = lw_exec_write(p->exec, "images")};
    LW_TRY(lw_picture_run_next(p, leaf, n, &v.b));
    lw_pool_run(p->dev->pool, n, make_views, &v);
    return 0;
}

/* ---- measures -------------------------------------------------------------------------------- */

static int compile_test(lw_contrast *k)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const lw_dataset *d = k->p->data;
    lw_taps taps = {0};
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(k->p->store)};
    lw_val x = lw_input(g, "images", lw_type_of(LW_F32, 4, BATCH, d->h, d->w, d->channels));
    lw_encoder_net(&b, k->net, x, &taps);
    lw_graph_output_add(g, "pooled", lw_tap_find(&taps, "pooled"), LW_NOVAL);
    lw_graph_output_add(g, "z", lw_encoder_project(&b, k->net, &taps), LW_NOVAL);
    return lw_forward_of(k->p->dev, &g, NULL, LW_SLAB_EMA, "the encoder", &k->test);
}

static int32_t pooled_width(const lw_contrast *k)
{
    return k->net->width << (k->net->stages - 1);
}

int lw_contrast_prepare(lw_contrast *k, bool evaluates)
{
    LW_CLEANUP(lw_free) int64_t *drawn = NULL;
    lw_exec *e = k->p->exec;
    int64_t leaf = k->p->leaves.size;
    lw_contrast_pairs(lw_exec_write(e, "self"), lw_exec_write(e, "partner"), leaf);
    if (!evaluates)
        return 0;
    LW_TRY(lw_data_drawn(k->p->data, &drawn));
    LW_TRY(lw_neighbours_open(k->p, drawn, pooled_width(k), &k->near));
    k->held = LW_MIN(k->near.queries, LW_MAX(HELD / leaf, 1) * leaf);
    k->held -= k->held > leaf ? k->held % leaf : 0;
    k->z = lw_calloc((size_t)(2 * k->held * k->net->projection), sizeof *k->z);
    return k->z ? compile_test(k) : LW_ENOMEM;
}

/* Row i: view i / held of held-out picture i % held. */
static int load_views(void *self, int64_t first, int64_t n, void *images)
{
    const lw_contrast *k = self;
    const lw_dataset *d = k->near.held.data;
    lw_view_opts o = k->view;
    int64_t floats = lw_data_row_size(d);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)floats, sizeof *x);
    o.stream = lw_hash_name("encoder.views.heldout");
    if (!x)
        return LW_ENOMEM;
    for (int64_t i = first; i < first + n; i++) {
        lw_data_get(d, k->near.held.drawn[i % k->held], false, x);
        lw_view_make(x, d->h, d->w, d->channels, &o, i, (float *)images + (i - first) * floats);
    }
    return 0;
}

/* Mean over groups of as many pictures as a leaf has. */
static int heldout_loss(lw_contrast *k, double *out)
{
    int32_t dim = k->net->projection;
    int64_t n = LW_MIN(k->p->leaves.size, k->held), groups = k->held / n;
    const lw_feed feed[] = {{.name = "images", .fill = load_views, .self = k},
                            {.name = "z", .out = k->z}};
    LW_CLEANUP(lw_free) float *z = lw_calloc((size_t)(2 * n * dim), sizeof *z);
    if (!z)
        return LW_ENOMEM;
    LW_TRY(lw_forward_rows(k->test, "evaluate", 2 * k->held, feed, 2, NULL));
    *out = 0;
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t which = 0; which < 2; which++)
            for (int64_t i = 0; i < n * dim; i++)
                z[which * n * dim + i] = k->z[(which * k->held + g * n) * dim + i];
        *out += lw_contrast_loss_of(z, n, dim, k->c->contrast_temperature) / (double)groups;
    }
    return 0;
}

int lw_contrast_evaluate(lw_contrast *k, json_t *row)
{
    double loss, accuracy;
    LW_TRY(heldout_loss(k, &loss));
    json_object_set_new(row, "heldout_loss", lw_json_real(loss));
    if (!k->near.held.data->labelled)
        return 0;
    LW_TRY(lw_neighbours_encode(&k->near, k->test, pooled_width(k)));
    LW_TRY(lw_neighbours_look(&k->near, pooled_width(k), k->near.near));
    LW_TRY(lw_neighbours_vote(&k->near, k->near.near, &accuracy));
    json_object_set_new(row, "heldout_knn", lw_json_real(accuracy));
    return 0;
}

void lw_contrast_tell(const json_t *row, lw_str *out)
{
    const json_t *loss = json_object_get(row, "heldout_loss"),
                 *knn = json_object_get(row, "heldout_knn");
    if (loss)
        lw_str_addf(out, "loss %.4g", json_number_value(loss));
    if (knn)
        lw_str_addf(out, "  k-NN accuracy %.2f %%", 100.0 * json_number_value(knn));
}
