/* SPDX-License-Identifier: Apache-2.0 */
/* States met once, and their features. */
#include "jobs/prove/ppo/prove_ppo_states.h"

#include <string.h>

#include "base/base.h"

void lw_ppo_states_init(lw_ppo_states *s, int32_t max_atoms, int32_t width)
{
    *s = (lw_ppo_states){.max_atoms = max_atoms, .width = width};
}

void lw_ppo_states_clear(lw_ppo_states *s)
{
    lw_free(&s->atoms);
    lw_free(&s->n_atoms);
    lw_free(&s->hash);
    lw_free(&s->row);
    lw_free(&s->slot);
    lw_free(&s->wanted);
    lw_free(&s->key);
    lw_free(&s->value);
}

void lw_ppo_states_empty(lw_ppo_states *s)
{
    s->n = s->n_rows = s->n_computed = 0;
    if (s->n_slots)
        memset(s->slot, 0xff, s->n_slots * sizeof *s->slot);
}

/* ---- finding --------------------------------------------------------------------------------- */

static void place(lw_ppo_states *s, int32_t state)
{
    size_t mask = s->n_slots - 1, i = (size_t)s->hash[state] & mask;
    while (s->slot[i] >= 0)
        i = (i + 1) & mask;
    s->slot[i] = state;
}

/* Room for one more state; the table stays at most half full. */
static int reserve(lw_ppo_states *s)
{
    size_t need = (size_t)s->n + 1, caps[3] = {s->cap, s->cap, s->cap};
    if (need > s->cap) {
        LW_TRY(lw_grow(&s->n_atoms, &caps[0], need, sizeof *s->n_atoms));
        LW_TRY(lw_grow(&s->hash, &caps[1], need, sizeof *s->hash));
        LW_TRY(lw_grow(&s->row, &caps[2], need, sizeof *s->row));
        s->cap = LW_MIN(caps[0], LW_MIN(caps[1], caps[2]));
    }
    LW_TRY(lw_grow(&s->atoms, &s->cap_atoms, need * (size_t)s->max_atoms, sizeof *s->atoms));
    if (2 * need <= s->n_slots)
        return 0;
    size_t n = LW_MAX(s->n_slots * 2, (size_t)4096);
    int32_t *slot = lw_calloc(n, sizeof *slot);
    if (!slot)
        return LW_ENOMEM;
    lw_free(&s->slot);
    s->slot = slot;
    s->n_slots = n;
    memset(slot, 0xff, n * sizeof *slot);
    for (int32_t i = 0; i < s->n; i++)
        place(s, i);
    return 0;
}

int lw_ppo_states_add(lw_ppo_states *s, const lw_atom *atoms, int32_t n, uint64_t hash,
                      int32_t *out)
{
    LW_TRY(reserve(s));
    size_t mask = s->n_slots - 1, bytes = (size_t)n * sizeof *atoms;
    for (size_t i = (size_t)hash & mask; s->slot[i] >= 0; i = (i + 1) & mask) {
        int32_t k = s->slot[i];
        if (s->hash[k] == hash && s->n_atoms[k] == n &&
            memcmp(s->atoms + (size_t)k * (size_t)s->max_atoms, atoms, bytes) == 0) {
            *out = k;
            return 0;
        }
    }
    lw_atom *to = s->atoms + (size_t)s->n * (size_t)s->max_atoms;
    memset(to, 0, (size_t)s->max_atoms * sizeof *to);
    memcpy(to, atoms, bytes);
    s->n_atoms[s->n] = n;
    s->hash[s->n] = hash;
    s->row[s->n] = -1;
    place(s, s->n);
    *out = s->n++;
    return 0;
}

int lw_ppo_states_want(lw_ppo_states *s, int32_t state)
{
    if (s->row[state] >= 0)
        return 0;
    LW_TRY(lw_grow(&s->wanted, &s->cap_rows, (size_t)s->n_rows + 1, sizeof *s->wanted));
    s->row[state] = s->n_rows;
    s->wanted[s->n_rows++] = state;
    return 0;
}

void lw_ppo_states_row(const lw_ppo_states *s, int32_t state, int32_t *predicates,
                       int32_t *arguments)
{
    const lw_atom *a = s->atoms + (size_t)state * (size_t)s->max_atoms;
    for (int32_t i = 0; i < s->max_atoms; i++) {
        predicates[i] = a[i].p;
        arguments[2 * i] = a[i].arg[0];
        arguments[2 * i + 1] = a[i].arg[1];
    }
}

/* ---- the network ----------------------------------------------------------------------------- */

static int compile(const lw_graph *g, lw_device *dev, const lw_compile_opts *o, lw_plan **plan,
                   lw_exec **exec)
{
    LW_TRY(lw_compile(g, dev, o, plan));
    return lw_exec_new(*plan, LW_SLAB_PARAM, exec);
}

static int open_states(const lw_builder *from, lw_device *dev, const lw_compile_opts *o,
                       lw_ppo_net *n)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    int32_t r = n->rows, a = n->config->max_atoms;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = from->params};
    lw_policy_in in = {lw_input(g, "predicates", lw_type_of(LW_I32, 2, r, a)),
                       lw_input(g, "arguments", lw_type_of(LW_I32, 2, r, 2 * a)),
                       lw_input(g, "scale", lw_type_of(LW_F32, 1, r))};
    if (n->config->dropout > 0.0f) {
        b.training = true;
        b.rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, r));
    }
    lw_val body = b.training ? lw_policy_body(&b, n->config, in)
                             : lw_policy_body_infer(&b, n->config, in);
    lw_graph_output_add(g, "key", lw_policy_key_of(&b, n->config, body), LW_NOVAL);
    lw_graph_output_add(g, "value", lw_policy_value(&b, n->config, body), LW_NOVAL);
    return compile(g, dev, o, &n->plan, &n->exec);
}

static int open_queries(const lw_builder *from, lw_device *dev, const lw_compile_opts *o,
                        lw_ppo_net *n)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = from->params};
    lw_val key = lw_input(g, "key",
                          lw_type_of(LW_F32, 2, n->queries, lw_policy_key_width(n->config)));
    lw_graph_output_add(g, "query", lw_policy_query(&b, n->config, key), LW_NOVAL);
    return compile(g, dev, o, &n->query_plan, &n->query);
}

int lw_ppo_net_open(const lw_policy_config *c, lw_store *store, lw_device *dev, int32_t queries,
                    const lw_compile_opts *o, lw_ppo_net *out)
{
    const lw_builder b = {.params = lw_store_params(store)};
    *out = (lw_ppo_net){.config = c, .rows = 512, .queries = queries};
    LW_TRY(open_states(&b, dev, o, out));
    return open_queries(&b, dev, o, out);
}

void lw_ppo_net_close(lw_ppo_net *n)
{
    lw_exec_free(&n->exec);
    lw_exec_free(&n->query);
    lw_plan_free(&n->plan);
    lw_plan_free(&n->query_plan);
}

/* One run: rows from n_computed on. */
static int run_rows(lw_ppo_net *net, lw_ppo_states *s, const lw_tick *tick)
{
    int32_t n = LW_MIN(s->n_rows - s->n_computed, net->rows), a = s->max_atoms;
    int32_t *predicates = lw_exec_data(net->exec, "predicates"),
            *arguments = lw_exec_data(net->exec, "arguments");
    float *scale = lw_exec_data(net->exec, "scale");
    int64_t *rows = lw_exec_data(net->exec, "rows"); /* with dropout only */
    for (int32_t i = 0; i < n; i++) {
        int32_t state = s->wanted[s->n_computed + i];
        lw_ppo_states_row(s, state, predicates + (size_t)i * (size_t)a,
                          arguments + (size_t)i * (size_t)a * 2);
        scale[i] = lw_policy_scale(net->config, s->n_atoms[state]);
        if (rows)
            rows[i] = state;
    }
    LW_TRY(lw_exec_run(net->exec, tick));
    memcpy(s->key + (size_t)s->n_computed * (size_t)s->width, lw_exec_data(net->exec, "key"),
           (size_t)n * (size_t)s->width * sizeof *s->key);
    memcpy(s->value + s->n_computed, lw_exec_data(net->exec, "value"),
           (size_t)n * sizeof *s->value);
    s->n_computed += n;
    return 0;
}

int lw_ppo_net_states(lw_ppo_net *n, lw_ppo_states *s, const lw_tick *tick)
{
    LW_TRY(lw_grow(&s->value, &s->cap_values, (size_t)s->n_rows, sizeof *s->value));
    LW_TRY(lw_grow(&s->key, &s->cap_keys, (size_t)s->n_rows * (size_t)s->width, sizeof *s->key));
    while (s->n_computed < s->n_rows)
        LW_TRY(run_rows(n, s, tick));
    return 0;
}
