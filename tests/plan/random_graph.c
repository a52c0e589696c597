/* SPDX-License-Identifier: Apache-2.0 */
/* What a random graph starts from, its outputs and gradients, and the values of its inputs. */
#include "plan/random_graph.h"

#include <stdio.h>

#include "base/base.h"
#include "ir/ir.h"
#include "store/store.h"

/* ---- outputs and gradients ------------------------------------------------------------------- */

static lw_val cotangent(random_graph *r, lw_val y)
{
    lw_type t = random_type(r, y);
    float *v = lw_calloc((size_t)lw_type_count(t), sizeof *v);
    random_graph_fill(r->seed, "cotangent", t, v);
    lw_val c = lw_const(r->g, t, v);
    lw_free(&v);
    return c;
}

static bool is_leaf(const random_graph *r, lw_val v)
{
    return lw_op_get(lw_val_node(r->g, v)->op)->flags & LW_OPF_LEAF;
}

/* Gradients of up to two values with respect to a random choice of f32 inputs and parameters. */
static void add_gradients(random_graph *r, const lw_val *y, int n)
{
    lw_val dy[2], wrt[200], din[200];
    int n_wrt = 0, n_out = 0;
    char name[16];
    for (int i = 0; i < n; i++)
        dy[i] = cotangent(r, y[i]);
    for (uint32_t i = 0; i < lw_graph_node_count(r->g) && n_wrt < 200; i++) {
        const lw_node *node = lw_graph_node(r->g, i);
        if ((node->op == LW_OP_INPUT || node->op == LW_OP_PARAM) &&
            random_type(r, node->out[0]).dtype == LW_F32 && random_chance(r, 70))
            wrt[n_wrt++] = node->out[0];
    }
    lw_grad(r->g, y, dy, n, wrt, din, n_wrt);
    for (int i = 0; i < n_wrt; i++) {
        if (!lw_val_ok(din[i]))
            continue;
        snprintf(name, sizeof name, "d%d", n_out++);
        bool slab = lw_val_node(r->g, wrt[i])->op == LW_OP_PARAM && r->seed % 2;
        lw_graph_output_add(r->g, name, din[i], slab ? wrt[i] : LW_NOVAL);
    }
}

/* Sum of the means of most values that nothing reads yet, so that little of the graph is dead. */
static lw_val gather_ends(random_graph *r)
{
    bool used[4096] = {false};
    lw_val sum = LW_NOVAL;
    for (uint32_t k = 0; k < lw_graph_node_count(r->g); k++)
        for (int i = 0; i < lw_graph_node(r->g, k)->n_in; i++)
            used[lw_graph_node(r->g, k)->in[i].id % 4096] = true;
    for (int i = 0; i < r->n_val; i++) {
        if (is_leaf(r, r->val[i]) || used[r->val[i].id % 4096] || random_chance(r, 20))
            continue;
        lw_val m = lw_mean(r->g, r->val[i], LW_OVER_ALL);
        sum = lw_val_ok(sum) ? lw_add(r->g, sum, m) : m;
    }
    return sum;
}

static void add_outputs(random_graph *r)
{
    lw_val y[2];
    int n = 0;
    char name[16];
    y[n] = random_chance(r, 80) ? gather_ends(r) : LW_NOVAL;
    n += lw_val_ok(y[n]);
    if (!n || random_chance(r, 40))
        y[n++] = r->val[r->n_val - 1];
    bool with_grad = random_chance(r, 75), forward = !with_grad || random_chance(r, 75);
    if (with_grad)
        add_gradients(r, y, n);
    int n_y = 0;
    for (int i = 0; forward && i < n; i++) {
        snprintf(name, sizeof name, "y%d", n_y++);
        lw_graph_output_add(r->g, name, y[i], LW_NOVAL);
    }
    for (int i = 0; i < 2 && random_chance(r, 40);
         i++) { /* any value, perhaps a leaf, perhaps one named already */
        snprintf(name, sizeof name, "y%d", n_y++);
        lw_graph_output_add(r->g, name, random_pick(r, 0), LW_NOVAL);
    }
    if (!lw_graph_output_count(r->g))
        lw_graph_output_add(r->g, "y0", y[0], LW_NOVAL);
}

void random_graph_build(random_graph *r, lw_graph *g, lw_store *store, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->g = g;
    r->store = store;
    r->seed = seed;
    r->b = (lw_builder){.g = g, .params = lw_store_params(store), .training = true};
    int32_t batch = 1 + (int32_t)random_below(r, 4), h = 3 + (int32_t)random_below(r, 6),
            w = 3 + (int32_t)random_below(r, 6);
    r->rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    r->ids = lw_input(g, "ids", lw_type_of(LW_I32, 1, batch));
    r->val[r->n_val++] =
        random_input(r, lw_type_of(LW_F32, 4, batch, h, w, 1 + (int32_t)random_below(r, 33)));
    r->val[r->n_val++] = random_input(r, lw_type_of(LW_F32, 4, batch, h, w, 8));
    r->val[r->n_val++] =
        random_input(r, lw_type_of(LW_F32, 2, batch, 2 + (int32_t)random_below(r, 30)));
    r->val[r->n_val++] =
        random_input(r, lw_type_of(LW_F32, 3, batch, 3, 4 + (int32_t)random_below(r, 12)));
    if (random_chance(r, 50))
        r->val[r->n_val++] = random_param(r, lw_type_of(LW_F32, 2, batch, 8), 1.0f);
    int want = 4 + (int)random_below(r, 24);
    for (int made = 0, tries = 0; made < want && tries < 400 && r->n_val < 140; tries++) {
        const char *up = lw_scope_pushf(g, "n%d", made);
        lw_val v = random_op(r);
        lw_scope_set(g, up);
        if (lw_graph_error(g) < 0)
            return;
        if (!lw_val_ok(v) || lw_type_count(random_type(r, v)) > 40000)
            continue;
        r->val[r->n_val++] = v;
        made++;
    }
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++)
        r->ops[lw_graph_node(g, i)->op]++;
    add_outputs(r);
}

void random_graph_fill(uint64_t seed, const char *name, lw_type t, void *data)
{
    lw_rng_key key = lw_rng_key_of(seed, lw_hash_name(name));
    for (int64_t i = 0; i < lw_type_count(t); i++) {
        if (t.dtype == LW_F32)
            ((float *)data)[i] = (float)(lw_rng_uniform(key, 0, 0, (uint64_t)i) * 2.0 - 1.0);
        else if (t.dtype == LW_I32)
            ((int32_t *)data)[i] = (int32_t)lw_rng_below(key, 0, 0, (uint64_t)i, 6);
        else
            ((int64_t *)data)[i] = 1000 + 7 * i;
    }
}
