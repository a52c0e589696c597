/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest training pictures of held-out ones, and their vote. */
#include "jobs/encoder/encoder_neighbours.h"

#include <math.h>
#include <string.h>

#include "eval/eval.h"

enum { QUERIES = 2000, AMONG = 5000 };

int lw_neighbours_open(const lw_picture_run *p, const int64_t *train_drawn, int32_t dim,
                       lw_neighbours *n)
{
    n->p = p;
    LW_TRY(lw_picture_held_open(p, &n->held));
    n->queries = LW_MIN(n->held.data->n, QUERIES);
    n->among = LW_MIN(p->data->n, AMONG);
    if (n->among < LW_NEIGHBOURS)
        return lw_fail(LW_EUSAGE,
                       "--eval-every: neighbours are looked for among %d training "
                       "pictures or more, there are %lld",
                       LW_NEIGHBOURS, (long long)n->among);
    n->train_drawn = lw_calloc((size_t)n->among, sizeof *n->train_drawn);
    n->query = lw_calloc((size_t)(n->queries * dim), sizeof *n->query);
    n->base = lw_calloc((size_t)(n->among * dim), sizeof *n->base);
    n->near = lw_calloc((size_t)(n->queries * LW_NEIGHBOURS), sizeof *n->near);
    if (!n->train_drawn || !n->query || !n->base || !n->near)
        return LW_ENOMEM;
    memcpy(n->train_drawn, train_drawn, (size_t)n->among * sizeof *train_drawn);
    return 0;
}

void lw_neighbours_clear(lw_neighbours *n)
{
    lw_picture_held_clear(&n->held);
    lw_free(&n->train_drawn);
    lw_free(&n->query);
    lw_free(&n->base);
    lw_free(&n->near);
}

void lw_unit_vectors(float *x, int64_t n, int32_t dim)
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

int lw_drawn_fill(void *self, int64_t first, int64_t n, void *images)
{
    const lw_drawn *s = self;
    for (int64_t i = 0; i < n; i++)
        lw_data_get(s->data, s->rows[first + i], false,
                    (float *)images + i * lw_data_row_size(s->data));
    return 0;
}

static int encode(lw_forward *f, lw_drawn s, int64_t n, int32_t dim, float *out)
{
    const lw_feed feed[] = {{.name = "images", .fill = lw_drawn_fill, .self = &s},
                            {.name = "pooled", .out = out}};
    LW_TRY(lw_forward_rows(f, "evaluate", n, feed, 2, NULL));
    lw_unit_vectors(out, n, dim);
    return 0;
}

int lw_neighbours_encode(lw_neighbours *n, lw_forward *f, int32_t dim)
{
    LW_TRY(encode(f, (lw_drawn){n->p->data, n->train_drawn}, n->among, dim, n->base));
    return encode(f, (lw_drawn){n->held.data, n->held.drawn}, n->queries, dim, n->query);
}

int lw_neighbours_look(const lw_neighbours *n, int32_t dim, int64_t *near)
{
    LW_CLEANUP(lw_free)
    double *distance = lw_calloc((size_t)(n->queries * LW_NEIGHBOURS), sizeof *distance);
    if (!distance)
        return LW_ENOMEM;
    return lw_nearest(n->p->dev->pool, n->query, n->queries, n->base, n->among, dim, LW_NEIGHBOURS,
                      false, distance, near);
}

int lw_neighbours_vote(const lw_neighbours *n, const int64_t *near, double *out)
{
    LW_CLEANUP(lw_free) int32_t *count = lw_calloc((size_t)n->held.data->classes, sizeof *count);
    int64_t right = 0;
    if (!count)
        return LW_ENOMEM;
    for (int64_t i = 0; i < n->queries; i++) {
        int32_t label[LW_NEIGHBOURS], best = -1;
        for (int k = 0; k < LW_NEIGHBOURS; k++) {
            label[k] = n->p->data->labels[n->train_drawn[near[i * LW_NEIGHBOURS + k]]];
            count[label[k]]++;
        }
        for (int k = 0; k < LW_NEIGHBOURS; k++)
            best = best < 0 || count[label[k]] > count[best] ? label[k] : best;
        for (int k = 0; k < LW_NEIGHBOURS; k++)
            count[label[k]] = 0;
        right += best == n->held.data->labels[n->held.drawn[i]];
    }
    *out = (double)right / (double)n->queries;
    return 0;
}
