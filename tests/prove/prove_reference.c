/* SPDX-License-Identifier: Apache-2.0 */
/* One proof after another, one state after another, one sum after another. */
#include "prove/prove_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ir/ir.h"
#include "store/store.h"
#include "models/models.h"
#include "logic/logic.h"

/* ---- the network ----------------------------------------------------------------------------- */

static const float *parameter(const lw_store *s, const char *fmt, int k)
{
    char name[96];
    snprintf(name, sizeof name, fmt, k);
    int32_t i = lw_store_find(s, name);
    LW_ASSERT(i >= 0, "the store has no %s", name);
    return lw_store_data(s, i, LW_SLAB_PARAM);
}

static void linear(const float *w, const float *b, const double *x, int32_t n_in, int32_t n_out,
                   double *y)
{
    for (int32_t o = 0; o < n_out; o++) {
        y[o] = (double)b[o];
        for (int32_t i = 0; i < n_in; i++)
            y[o] += (double)w[(int64_t)o * n_in + i] * x[i];
    }
}

static void relu(double *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
}

static void norm(const float *gain, const float *bias, double *x, int32_t n)
{
    double mean = 0, variance = 0;
    for (int32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (int32_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / n;
    for (int32_t i = 0; i < n; i++)
        x[i] = (double)gain[i] * (x[i] - mean) / sqrt(variance + 1e-5) + (double)bias[i];
}

static int atom_order(const void *va, const void *vb)
{
    return memcmp(va, vb, sizeof(lw_atom));
}

/* p + h - t of every atom; the mean over all max_atoms places, padding counted. Atoms are taken in
 * one order, so that states with the same goals in another order tie exactly, as they do on paper:
 * the first of equals is what the choice depends on. */
static void embed(const lw_policy_config *c, const lw_store *s, const lw_atom *state_given,
                  double *e)
{
    lw_atom state[LW_PROOF_MOST_ATOMS];
    memcpy(state, state_given, (size_t)c->max_atoms * sizeof *state);
    qsort(state, (size_t)c->max_atoms, sizeof *state, atom_order);
    const float *constants = parameter(s, "constant_embedding.weight", 0);
    const float *predicates = parameter(s, "predicate_embedding.weight", 0);
    memset(e, 0, (size_t)c->embed * sizeof *e);
    for (int32_t a = 0; a < c->max_atoms; a++)
        for (int32_t i = 0; i < c->embed; i++)
            e[i] += ((double)predicates[(int64_t)state[a].p * c->embed + i] +
                     (double)constants[(int64_t)state[a].arg[0] * c->embed + i] -
                     (double)constants[(int64_t)state[a].arg[1] * c->embed + i]) /
                    c->max_atoms;
}

int ref_network(const lw_policy_config *c, const lw_store *s, const lw_atom *state, double *out)
{
    const int32_t wide = c->hidden;
    LW_CLEANUP(lw_free) double *e = lw_calloc((size_t)c->embed, sizeof *e);
    LW_CLEANUP(lw_free) double *x = lw_calloc((size_t)wide, sizeof *x);
    LW_CLEANUP(lw_free) double *y = lw_calloc((size_t)wide, sizeof *y);
    if (!e || !x || !y)
        return LW_ENOMEM;
    embed(c, s, state, e);
    linear(parameter(s, "shared_body.input_transform.0.weight", 0),
           parameter(s, "shared_body.input_transform.0.bias", 0), e, c->embed, wide, x);
    relu(x, wide);
    norm(parameter(s, "shared_body.input_transform.2.weight", 0),
         parameter(s, "shared_body.input_transform.2.bias", 0), x, wide);
    for (int32_t k = 0; k < c->blocks; k++) {
        linear(parameter(s, "shared_body.res_blocks.%d.0.weight", k),
               parameter(s, "shared_body.res_blocks.%d.0.bias", k), x, wide, wide, y);
        relu(y, wide);
        norm(parameter(s, "shared_body.res_blocks.%d.2.weight", k),
             parameter(s, "shared_body.res_blocks.%d.2.bias", k), y, wide);
        for (int32_t i = 0; i < wide; i++)
            x[i] += y[i];
    }
    linear(parameter(s, "policy_head.out_transform.0.weight", 0),
           parameter(s, "policy_head.out_transform.0.bias", 0), x, wide, wide, y);
    relu(y, wide);
    linear(parameter(s, "policy_head.out_transform.2.weight", 0),
           parameter(s, "policy_head.out_transform.2.bias", 0), y, wide, c->embed, out);
    return 0;
}

/* ---- a proof --------------------------------------------------------------------------------- */

/* logit[states]: all of them computed, those behind n unused. */
static int logits(const ref_world *w, const lw_policy_config *c, const lw_store *s,
                  const lw_atom *current, const lw_atom *padded, double *logit)
{
    LW_CLEANUP(lw_free) double *f = lw_calloc((size_t)c->embed, sizeof *f);
    LW_CLEANUP(lw_free) double *g = lw_calloc((size_t)c->embed, sizeof *g);
    if (!f || !g)
        return LW_ENOMEM;
    LW_TRY(ref_network(c, s, current, f));
    for (int32_t k = 0; k < w->states; k++) {
        LW_TRY(ref_network(c, s, padded + (size_t)k * (size_t)w->atoms, g));
        logit[k] = 0;
        for (int32_t i = 0; i < c->embed; i++)
            logit[k] += f[i] * g[i];
        logit[k] /= sqrt(c->embed);
    }
    return 0;
}

/* The first of the largest, and the logarithm of its share. */
static int32_t most_probable(const double *logit, int32_t n, double *log_prob)
{
    int32_t best = 0;
    double sum = 0;
    for (int32_t k = 1; k < n; k++)
        if (logit[k] > logit[best])
            best = k;
    for (int32_t k = 0; k < n; k++)
        sum += exp(logit[k] - logit[best]);
    *log_prob = -log(sum);
    return best;
}

static int walk(const ref_world *w, const lw_policy_config *c, const lw_store *s, lw_atom *current,
                lw_atom *padded, double *logit, ref_result *r)
{
    const size_t state = (size_t)w->atoms * sizeof *current;
    while (r->depth < w->depth) {
        double log_prob;
        memset(padded, 0, (size_t)w->states * state);
        int32_t n = w->offer(w->self, padded);
        LW_TRY(logits(w, c, s, current, padded, logit));
        int32_t k = most_probable(logit, n, &log_prob);
        r->log_prob += log_prob;
        r->depth++;
        memcpy(current, padded + (size_t)k * (size_t)w->atoms, state);
        r->proved = current->p == lw_kb_true(w->kb);
        if (current->p > w->kb->n_predicates)
            break;
        w->take(w->self, k);
    }
    return 0;
}

int ref_prove(const ref_world *w, const lw_policy_config *c, const lw_store *s, lw_atom query,
              ref_result *out)
{
    LW_CLEANUP(lw_free) lw_atom *current = lw_calloc((size_t)w->atoms, sizeof *current);
    LW_CLEANUP(lw_free)
    lw_atom *padded = lw_calloc((size_t)w->states * (size_t)w->atoms, sizeof *padded);
    LW_CLEANUP(lw_free) double *logit = lw_calloc((size_t)w->states, sizeof *logit);
    ref_result r = {0};
    if (!current || !padded || !logit)
        return LW_ENOMEM;
    current[0] = query;
    w->begin(w->self, query);
    LW_TRY(walk(w, c, s, current, padded, logit, &r));
    *out = r;
    return 0;
}

double ref_rank(const double *score, int32_t n)
{
    double rank = 1;
    for (int32_t i = 1; i < n; i++)
        rank += score[i] > score[0] ? 1 : score[i] < score[0] ? 0 : 0.5;
    return rank;
}

/* ---- the engine's environment ---------------------------------------------------------------- */

static void engine_begin(void *self, lw_atom query)
{
    ref_engine *e = self;
    lw_env_begin(e->env, e->path, query);
}

static int32_t engine_offer(void *self, lw_atom *padded)
{
    ref_engine *e = self;
    lw_moves m;
    lw_env_moves(e->env, e->path, &m);
    for (int32_t k = 0; k < m.n; k++)
        memcpy(padded + (size_t)k * (size_t)e->o.padding_atoms, m.atoms + m.first[k],
               (size_t)(m.first[k + 1] - m.first[k]) * sizeof *padded);
    return m.n;
}

static void engine_take(void *self, int32_t k)
{
    ref_engine *e = self;
    lw_moves m;
    lw_env_moves(e->env, e->path, &m);
    lw_env_take(e->env, e->path, &m, k);
}

int ref_engine_open(const lw_kb *kb, const lw_env_options *o, ref_engine *e, ref_world *out)
{
    e->o = *o;
    LW_TRY(lw_env_new(kb, o, &e->env));
    LW_TRY(lw_paths_new(o, 1, &e->path));
    *out = (ref_world){.self = e,
                       .kb = kb,
                       .atoms = o->padding_atoms,
                       .states = o->padding_states,
                       .depth = o->max_depth,
                       .begin = engine_begin,
                       .offer = engine_offer,
                       .take = engine_take};
    return 0;
}

void ref_engine_close(ref_engine *e)
{
    lw_env_free(&e->env);
    lw_paths_free(&e->path);
}
