/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of a batch of queries against candidates that they share. */
#include "jobs/prove/kge/kge_job.h"

#include "models/models.h"

/* Added to scores of candidates that do not count: their share of a softmax is 0. */
#define FAR (-1e9f)

typedef struct parts {
    lw_graph *g;
    const lw_kge_step *s;
    lw_val positive;   /* [B,1] */
    lw_val candidates; /* [B,M] */
    lw_val allowed;    /* [B,M]: 1 or 0 */
    lw_val far;        /* [B,M]: 0 or FAR */
    lw_val cubes;      /* [B,1], weighed, or absent */
} parts;

static lw_val flip(lw_graph *g, lw_val x)
{
    return lw_ew1(g, LW_EW_neg, x);
}

/* With gradients of one value [B,K] whose cotangent is given. */
static int finish(const parts *p, lw_val loss, lw_val y, lw_val cotangent)
{
    float share = 1.0f / (float)p->s->batch;
    loss = lw_mean(p->g, loss, LW_OVER_ALL);
    if (lw_val_ok(p->cubes)) {
        lw_val by = lw_broadcast(p->g, lw_const_f32(p->g, share), lw_val_type(p->g, p->cubes));
        loss = lw_add(p->g, loss, lw_scale(p->g, lw_sum(p->g, p->cubes, LW_OVER_ALL), share));
        y = lw_concat(p->g, y, p->cubes, 1);
        cotangent = lw_concat(p->g, cotangent, by, 1);
    }
    lw_graph_output_add(p->g, "loss", loss, LW_NOVAL);
    return lw_grad_params(p->g, y, cotangent);
}

/* Weights of candidates are constants of the gradient, so its cotangents are written down:
 * d(positive) = -sigmoid(-s) / 2B, d(candidate) = w sigmoid(s) / 2B. */
static int sampled_loss(const parts *p)
{
    lw_graph *g = p->g;
    float heat = p->s->loss == LW_KGE_NSSA ? p->s->temperature : 0.0f;
    float half = 0.5f / (float)p->s->batch;
    lw_val w = lw_add(g, lw_scale(g, p->candidates, heat), p->far);
    w = lw_mul(g, lw_softmax(g, w), p->allowed);
    lw_val no = lw_mul(g, w, lw_ew1(g, LW_EW_softplus, p->candidates));
    lw_val loss = lw_add(g, lw_ew1(g, LW_EW_softplus, flip(g, p->positive)),
                         lw_sum(g, no, LW_OVER_LAST));
    lw_val d_yes = lw_scale(g, lw_ew1(g, LW_EW_sigmoid, flip(g, p->positive)), -half);
    lw_val d_no = lw_scale(g, lw_mul(g, w, lw_ew1(g, LW_EW_sigmoid, p->candidates)), half);
    return finish(p, lw_scale(g, loss, 0.5f), lw_concat(g, p->positive, p->candidates, 1),
                  lw_concat(g, d_yes, d_no, 1));
}

/* The answer is column 0, in front of the candidates. */
static int cross_entropy(const parts *p)
{
    lw_graph *g = p->g;
    int32_t batch = p->s->batch;
    lw_val label = lw_zeros(g, lw_type_of(LW_I32, 1, batch));
    lw_val all = lw_concat(g, p->positive, lw_add(g, p->candidates, p->far), 1);
    lw_val loss = lw_reshape(g, lw_cross_entropy(g, all, label), lw_type_of(LW_F32, 2, batch, 1));
    lw_val by = lw_broadcast(g, lw_const_f32(g, 1.0f / (float)batch), lw_val_type(g, loss));
    return finish(p, loss, loss, by);
}

/* N3 of a batch's rows, entities and relations by weights of their own (a distance's relations are
 * no factors). */
static lw_val cubes_of(lw_graph *g, const lw_kge_config *c, const float weight[2], lw_val known,
                       lw_val relation, lw_val answer)
{
    lw_val rows = LW_NOVAL, factor = LW_NOVAL;
    if (weight[0] > 0.0f)
        rows = lw_scale(g, lw_add(g, lw_kge_cubes(g, c, known), lw_kge_cubes(g, c, answer)),
                        weight[0]);
    if (weight[1] > 0.0f && !lw_kge_is_distance(c))
        factor = lw_scale(g, lw_kge_cubes(g, c, relation), weight[1]);
    if (!lw_val_ok(rows) || !lw_val_ok(factor))
        return lw_val_ok(rows) ? rows : factor;
    return lw_add(g, rows, factor);
}

int lw_kge_build_step(lw_builder *b, const lw_kge_config *c, const lw_kge_step *s)
{
    lw_graph *g = b->g;
    int32_t n = s->batch, all = 2 * n + s->negatives, m = s->negatives ? s->negatives : c->entities;
    lw_val table = lw_kge_entities(b, c);
    lw_val rows = lw_embedding(g, table, lw_input(g, "entities", lw_type_of(LW_I32, 1, all)));
    lw_val relation = lw_embedding(g, lw_kge_relations(b, c),
                                   lw_input(g, "relations", lw_type_of(LW_I32, 1, n)));
    lw_val known = lw_slice(g, rows, 0, 0, n), answer = lw_slice(g, rows, 0, n, 2 * n);
    lw_val q = lw_kge_query(g, c, known, relation,
                            lw_input(g, "side", lw_type_of(LW_F32, 2, n, 1)));
    lw_val others = s->negatives ? lw_slice(g, rows, 0, 2 * n, all) : table;
    parts p = {.g = g, .s = s};
    p.allowed = lw_input(g, "allowed", lw_type_of(LW_F32, 2, n, m));
    p.far = lw_scale(g, lw_add_f32(g, p.allowed, -1.0f), -FAR);
    p.positive = lw_kge_score_each(g, c, q, answer);
    p.candidates = lw_kge_score_all(g, c, q, others);
    p.cubes = cubes_of(g, c, s->regularization, known, relation, answer);
    LW_TRY(lw_graph_error(g));
    return s->loss == LW_KGE_CE ? cross_entropy(&p) : sampled_loss(&p);
}
