/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's environment: derive, number, reject, offer. */
#include "logic/search/logic_env.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct lw_env {
    const lw_kb *kb;
    lw_env_options o;
    lw_env_counts counts;
    lw_derivation derive;
    int32_t width; /* goals that a successor may have before it is rejected */
    int32_t n;
    lw_atom *atoms; /* [(padding_states + 1) * width] */
    int32_t *first; /* [padding_states + 2] */
    uint64_t *hash;
    lw_proof_origin *origin;
};

lw_env_options lw_env_defaults(void)
{
    return (lw_env_options){.max_depth = 20,
                            .padding_atoms = 6,
                            .padding_states = 120,
                            .max_total_vars = 100,
                            .memory_pruning = true,
                            .end_proof_action = true};
}

static int check_range(const char *name, int32_t value, int32_t min, int32_t max)
{
    if (value < min || value > max)
        return lw_fail(LW_EUSAGE, "%s is %d, it must be %d to %d", name, value, min, max);
    return 0;
}

static int check_options(const lw_env_options *o)
{
    LW_TRY(check_range("max-depth", o->max_depth, 1, 1000000));
    LW_TRY(check_range("padding-atoms", o->padding_atoms, 1, LW_PROOF_MOST_ATOMS));
    LW_TRY(check_range("padding-states", o->padding_states, 1, 65536));
    LW_TRY(check_range("max-fact-pairs", o->max_fact_pairs, 0, INT32_MAX));
    return check_range("max-total-vars", o->max_total_vars, 1, 1000000);
}

/* A successor as it was derived. Canonical numbers are final, so what is too long ends here; the
 * published numbering looks at all successors first. */
static int collect(void *arg, const lw_atom *atoms, int32_t n, lw_proof_origin origin)
{
    lw_env *e = arg;
    if (n > e->o.padding_atoms && e->o.numbering == LW_NUMBER_CANONICAL) {
        e->counts.atoms_cut++;
        return 0;
    }
    int32_t at = e->first[e->n];
    memcpy(e->atoms + at, atoms, (size_t)n * sizeof *atoms);
    e->origin[e->n++] = origin;
    e->first[e->n] = at + n;
    return 0;
}

int lw_env_new(const lw_kb *kb, const lw_env_options *o, lw_env **out)
{
    LW_TRY(check_options(o));
    LW_CLEANUP(lw_env_free) lw_env *e = lw_calloc(1, sizeof *e);
    if (!e)
        return LW_ENOMEM;
    e->kb = kb;
    e->o = *o;
    e->width = o->padding_atoms + kb->most_body;
    size_t rows = (size_t)o->padding_states + 2;
    e->atoms = lw_calloc(rows * (size_t)e->width, sizeof *e->atoms);
    e->first = lw_calloc(rows, sizeof *e->first);
    e->hash = lw_calloc(rows, sizeof *e->hash);
    e->origin = lw_calloc(rows, sizeof *e->origin);
    if (!e->atoms || !e->first || !e->hash || !e->origin)
        return LW_ENOMEM;
    e->derive = (lw_derivation){.kb = kb,
                                .numbering = o->numbering,
                                .max_fact_pairs = o->max_fact_pairs,
                                .max_successors = o->padding_states,
                                .emit = collect,
                                .arg = e};
    *out = lw_steal(&e);
    return 0;
}

void lw_env_free(lw_env **pp)
{
    if (!*pp)
        return;
    lw_free(&(*pp)->atoms);
    lw_free(&(*pp)->first);
    lw_free(&(*pp)->hash);
    lw_free(&(*pp)->origin);
    lw_free(pp);
}

const lw_env_counts *lw_env_counted(const lw_env *e)
{
    return &e->counts;
}

void lw_env_counts_add(lw_env_counts *sum, const lw_env_counts *more)
{
#define C(field, what) sum->field += more->field;
    LW_ENV_COUNTS(C)
#undef C
}

/* One shift for all successors: the smallest variable becomes next_var. Returns the next free
 * number. */
static int32_t number_published(lw_env *e, int32_t next_var)
{
    int32_t constants = e->kb->n_constants, least = INT32_MAX, most = 0, n = e->first[e->n];
    for (int32_t i = 0; i < n; i++)
        for (int j = 0; j < 2; j++)
            if (e->atoms[i].arg[j] > constants)
                least = LW_MIN(least, e->atoms[i].arg[j]);
    for (int32_t i = 0; i < n; i++)
        for (int j = 0; j < 2; j++)
            if (e->atoms[i].arg[j] > constants) {
                e->atoms[i].arg[j] += next_var - least;
                most = LW_MAX(most, e->atoms[i].arg[j]);
            }
    return LW_MAX(next_var, most + 1);
}

/* By first appearance over all successors together; the state's own variables, all below next_var,
 * keep their numbers. */
static int32_t number_parity(lw_env *e, int32_t next_var)
{
    int32_t map[LW_PROOF_MOST_VARS], next = next_var; /* fresh: next_var .. next_var + 63 */
    memset(map, 0, sizeof map);
    for (int32_t i = 0; i < e->first[e->n]; i++)
        for (int j = 0; j < 2; j++) {
            int32_t *x = &e->atoms[i].arg[j];
            if (*x < next_var)
                continue;
            if (map[*x - next_var] == 0)
                map[*x - next_var] = next++;
            *x = map[*x - next_var];
        }
    return next;
}

static bool on_path(const lw_env *e, const lw_path *path, const lw_atom *atoms, int32_t n,
                    uint64_t hash)
{
    for (int32_t i = path->n_states - 1; i >= 0; i--)
        if (path->hash[i] == hash && path->n_atoms[i] == n &&
            lw_state_same(path->atoms + (size_t)i * (size_t)e->o.padding_atoms, atoms, n))
            return true;
    return false;
}

/* Keeps the successors within the limits and not on the path, in order. */
static void reject(lw_env *e, const lw_path *path)
{
    int32_t kept = 0, to = 0;
    for (int32_t k = 0, end; k < e->n; k++) {
        int32_t from = e->first[k], n;
        end = e->first[k + 1];
        n = end - from;
        if (n > e->o.padding_atoms) {
            e->counts.atoms_cut++;
        } else if (lw_state_next_var(e->kb, e->atoms + from, n) >
                   e->kb->n_constants + e->o.max_total_vars + 1) {
            e->counts.vars_cut++;
        } else {
            uint64_t hash = lw_state_hash(e->atoms + from, n);
            if (e->o.memory_pruning && on_path(e, path, e->atoms + from, n, hash)) {
                e->counts.visited++;
                continue;
            }
            memmove(e->atoms + to, e->atoms + from, (size_t)n * sizeof *e->atoms);
            e->origin[kept] = e->origin[k];
            e->hash[kept] = hash;
            e->first[kept++] = to;
            to += n;
        }
    }
    e->n = kept;
    e->first[kept] = to;
}

/* Appends a state that is one terminal predicate. */
static void add_terminal(lw_env *e, int32_t predicate, lw_proof_origin origin)
{
    int32_t at = e->first[e->n];
    e->atoms[at] = (lw_atom){predicate, {0, 0}};
    e->hash[e->n] = lw_state_hash(&e->atoms[at], 1);
    e->origin[e->n++] = origin;
    e->first[e->n] = at + 1;
}

/* Successors by the knowledge base alone, then what the limits leave. True: a terminal is the only
 * one. */
static bool expand(lw_env *e, const lw_path *path, int32_t *next_var)
{
    int32_t n;
    const lw_atom *state = lw_path_state(path, &e->o, &n);
    e->n = 0;
    e->first[0] = 0;
    e->derive.query = path->query;
    e->derive.next_var = path->next_var;
    lw_derive(&e->derive, state, n);
    e->counts.steps++;
    e->counts.facts_cut += e->derive.facts_cut;
    e->counts.states_cut += e->derive.successors_cut;
    *next_var = path->next_var;
    if (e->derive.proved) {
        e->n = 0;
        e->counts.proofs++;
        add_terminal(e, lw_kb_true(e->kb), e->derive.proof);
        return true;
    }
    if (e->o.numbering == LW_NUMBER_PUBLISHED)
        *next_var = number_published(e, path->next_var);
    else if (e->o.numbering == LW_NUMBER_PARITY)
        *next_var = number_parity(e, path->next_var);
    reject(e, path);
    if (e->n > 0)
        return false;
    e->counts.dead_ends++;
    add_terminal(e, lw_kb_false(e->kb), 0);
    return true;
}

static void push(const lw_env *e, lw_path *path, const lw_atom *atoms, int32_t n, uint64_t hash)
{
    int32_t i = path->n_states++;
    path->hash[i] = hash;
    path->n_atoms[i] = n;
    memcpy(path->atoms + (size_t)i * (size_t)e->o.padding_atoms, atoms, (size_t)n * sizeof *atoms);
}

void lw_env_begin(const lw_env *e, lw_path *path, lw_atom query)
{
    path->query = query;
    path->end = LW_PROOF_OPEN;
    path->depth = path->n_states = path->free_steps = 0;
    path->next_var = lw_state_next_var(e->kb, &query, 1);
    push(e, path, &query, 1, lw_state_hash(&query, 1));
}

void lw_env_moves(lw_env *e, lw_path *path, lw_moves *out)
{
    *out = (lw_moves){0};
    if (path->end != LW_PROOF_OPEN)
        return;
    bool terminal = expand(e, path, &out->next_var);
    while (e->o.skip_unary_actions && !terminal && e->n == 1 && path->free_steps < e->o.max_depth) {
        push(e, path, e->atoms, e->first[1], e->hash[0]);
        path->next_var = out->next_var;
        path->free_steps++;
        e->counts.unary_steps++;
        terminal = expand(e, path, &out->next_var);
    }
    if (e->o.end_proof_action && !terminal) {
        if (e->n == e->o.padding_states) {
            e->n--;
            e->counts.end_cut++;
        }
        add_terminal(e, lw_kb_endf(e->kb), 0);
    }
    e->counts.successors += e->n;
    out->n = e->n;
    out->atoms = e->atoms;
    out->first = e->first;
    out->hash = e->hash;
    out->origin = e->origin;
}

void lw_env_take(lw_env *e, lw_path *path, const lw_moves *moves, int32_t k)
{
    LW_ASSERT(k >= 0 && k < moves->n, "choice %d of %d", k, moves->n);
    lw_env_go(e, path, moves->atoms + moves->first[k], moves->first[k + 1] - moves->first[k],
              moves->hash[k], moves->next_var);
}

void lw_env_go(lw_env *e, lw_path *path, const lw_atom *state, int32_t n, uint64_t hash,
               int32_t next_var)
{
    LW_ASSERT(path->end == LW_PROOF_OPEN, "the proof has ended");
    path->depth++;
    path->next_var = next_var;
    if (state->p > e->kb->n_predicates) {
        path->end = state->p == lw_kb_true(e->kb)    ? LW_PROOF_PROVED
                    : state->p == lw_kb_false(e->kb) ? LW_PROOF_FAILED
                                                     : LW_PROOF_STOPPED;
        return;
    }
    push(e, path, state, n, hash);
    if (path->depth >= e->o.max_depth) {
        path->end = LW_PROOF_DEEP;
        e->counts.depth_cut++;
    }
}
