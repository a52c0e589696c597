/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first search over flat arrays: nodes, their goals, and an open-addressing table. */
#include "logic/search/logic_search.h"

#include <string.h>

#include "base/base.h"

/* A state: goals first .. first of the next node, in `goal`. */
typedef struct node {
    uint32_t parent, first, hash;
    lw_proof_origin origin; /* of this state from its parent */
} node;

enum { LEAST_SLOTS = 256, LEAST_MEMORY = 64 << 10 };

struct lw_search {
    const lw_kb *kb;
    lw_search_options o;
    lw_derivation derive;
    node *nodes; /* [n + 1]: the last one only ends the goals of the one before */
    lw_atom *goal;
    uint32_t *slot; /* node + 1, 0 is empty */
    size_t n, cap_nodes, n_goals, cap_goals;
    size_t n_slots, cap_slots; /* in use, allocated */
    uint32_t parent;           /* being expanded */
    uint32_t *chain;           /* nodes of the proof found, [max_depth] */
    size_t cap_chain;
    lw_proof_origin last;
    int32_t depth; /* of the level being expanded */
    int32_t found; /* length of chain */
    int error;
    lw_search_result *result;
};

const char *lw_search_end_name(lw_search_end end)
{
    static const char *const name[] = {"proved", "no proof", "cut", "depth", "states", "memory"};
    return name[end];
}

static uint32_t sequence_hash(const lw_atom *a, int32_t n)
{
    uint64_t h = 0;
    for (int32_t i = 0; i < n; i++)
        h = (h ^ (h >> 31)) * 0x9e3779b97f4a7c15u + lw_atom_hash(a[i]);
    return (uint32_t)(h >> 32 ^ h);
}

static bool is_node(const lw_search *s, uint32_t at, const lw_atom *a, int32_t n)
{
    const node *x = &s->nodes[at];
    return x[1].first - x->first == (uint32_t)n &&
           memcmp(s->goal + x->first, a, (size_t)n * sizeof *a) == 0;
}

static void place(lw_search *s, uint32_t at)
{
    size_t mask = s->n_slots - 1, k = s->nodes[at].hash & mask;
    while (s->slot[k] != 0)
        k = (k + 1) & mask;
    s->slot[k] = at + 1;
}

/* True when growing to these capacities stays within the bound; a realloc may hold both blocks. */
static bool fits(const lw_search *s, size_t nodes, size_t goals, size_t slots)
{
    size_t moving = nodes > s->cap_nodes ? s->cap_nodes * sizeof *s->nodes : 0;
    moving = LW_MAX(moving, goals > s->cap_goals ? s->cap_goals * sizeof *s->goal : 0);
    moving = LW_MAX(moving, slots > s->cap_slots ? s->cap_slots * sizeof *s->slot : 0);
    return nodes * sizeof *s->nodes + goals * sizeof *s->goal + slots * sizeof *s->slot + moving <=
           s->o.memory;
}

/* Room for one more state of n goals. False: the bound or the machine (s->error) says no. */
static bool reserve(lw_search *s, int32_t n)
{
    size_t nodes = s->cap_nodes, goals = s->cap_goals, slots = s->n_slots;
    if (s->n + 2 > nodes)
        nodes = LW_MAX(2 * nodes, (size_t)64);
    if (s->n_goals + (size_t)n > goals)
        goals = LW_MAX(2 * goals, (size_t)256);
    if (2 * (s->n + 1) > slots)
        slots = LW_MAX(2 * slots, (size_t)LEAST_SLOTS);
    if (!fits(s, nodes, goals, LW_MAX(slots, s->cap_slots)) || goals >= UINT32_MAX ||
        nodes >= UINT32_MAX)
        return false;
    s->error = lw_grow(&s->nodes, &s->cap_nodes, nodes, sizeof *s->nodes);
    if (s->error == 0)
        s->error = lw_grow(&s->goal, &s->cap_goals, goals, sizeof *s->goal);
    if (s->error == 0)
        s->error = lw_grow(&s->slot, &s->cap_slots, slots, sizeof *s->slot);
    if (s->error != 0)
        return false;
    if (slots > s->n_slots) {
        s->n_slots = slots;
        memset(s->slot, 0, slots * sizeof *s->slot);
        for (size_t i = 0; i < s->n; i++)
            place(s, (uint32_t)i);
    }
    return true;
}

static bool known_state(const lw_search *s, const lw_atom *a, int32_t n, uint32_t hash)
{
    size_t mask = s->n_slots - 1, k = hash & mask;
    for (; s->slot[k] != 0; k = (k + 1) & mask)
        if (s->nodes[s->slot[k] - 1].hash == hash && is_node(s, s->slot[k] - 1, a, n))
            return true;
    return false;
}

/* A state for the next level, unless it is an old one. Nonzero: a limit ends the search. */
static int keep(void *arg, const lw_atom *a, int32_t n, lw_proof_origin origin)
{
    lw_search *s = arg;
    s->result->successors++;
    if (n > s->o.max_atoms) {
        s->result->atoms_cut++;
        return 0;
    }
    uint32_t hash = sequence_hash(a, n);
    if (s->n > 0 && known_state(s, a, n, hash))
        return 0;
    if ((int64_t)s->n >= s->o.max_states) {
        s->result->end = LW_SEARCH_STATES;
        return 1;
    }
    if (!reserve(s, n)) {
        s->result->end = LW_SEARCH_MEMORY;
        return 1;
    }
    s->nodes[s->n] = (node){s->parent, (uint32_t)s->n_goals, hash, origin};
    memcpy(s->goal + s->n_goals, a, (size_t)n * sizeof *a);
    s->n_goals += (size_t)n;
    s->nodes[s->n + 1].first = (uint32_t)s->n_goals;
    place(s, (uint32_t)s->n++);
    return 0;
}

int lw_search_new(const lw_kb *kb, const lw_search_options *o, lw_search **out)
{
    if (o->max_depth < 1 || o->max_depth > 1000000)
        return lw_fail(LW_EUSAGE, "max-depth is %d, it must be 1 to 1000000", o->max_depth);
    if (o->max_atoms < 1 || o->max_atoms > LW_PROOF_MOST_ATOMS)
        return lw_fail(LW_EUSAGE, "padding-atoms is %d, it must be 1 to %d", o->max_atoms,
                       LW_PROOF_MOST_ATOMS);
    if (o->max_states < 1 || o->max_fact_pairs < 0)
        return lw_fail(LW_EUSAGE, "max-states must be at least 1, max-fact-pairs at least 0");
    if (o->memory < LEAST_MEMORY)
        return lw_fail(LW_EUSAGE, "a search needs at least 64 KiB");
    lw_search *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->kb = kb;
    s->o = *o;
    s->derive =
        (lw_derivation){.kb = kb, .max_fact_pairs = o->max_fact_pairs, .emit = keep, .arg = s};
    *out = s;
    return 0;
}

void lw_search_free(lw_search **pp)
{
    if (!*pp)
        return;
    lw_free(&(*pp)->nodes);
    lw_free(&(*pp)->goal);
    lw_free(&(*pp)->slot);
    lw_free(&(*pp)->chain);
    lw_free(pp);
}

/* The nodes from the query to `at`, whose derivation proved it. */
static int record(lw_search *s, uint32_t at, int32_t depth)
{
    LW_TRY(lw_grow(&s->chain, &s->cap_chain, (size_t)depth, sizeof *s->chain));
    s->found = depth;
    s->last = s->derive.proof;
    for (int32_t i = depth - 1; i >= 0; i--, at = s->nodes[at].parent)
        s->chain[i] = at;
    return 0;
}

/* Expands the states of one level; true when a proof was found or memory failed. Once a limit is
 * met nothing more is kept, but this level and what was kept of the next are searched for proofs:
 * all shorter ones are ruled out, so what is found is shortest. */
static bool expand_level(lw_search *s, size_t from, size_t to, bool last)
{
    lw_search_result *r = s->result;
    lw_atom state[LW_PROOF_MOST_ATOMS];
    for (size_t i = from; i < to; i++) {
        const node *x = &s->nodes[i];
        int32_t n = (int32_t)(x[1].first - x->first);
        memcpy(state, s->goal + x->first, (size_t)n * sizeof *state); /* goal may move */
        s->parent = (uint32_t)i;
        s->derive.proofs_only = last || r->end != LW_SEARCH_NONE;
        lw_derive(&s->derive, state, n);
        if (!s->derive.proofs_only && r->end != LW_SEARCH_NONE) {
            s->derive.proofs_only = true;
            lw_derive(&s->derive, state, n);
        }
        r->expanded++;
        r->facts_cut += s->derive.facts_cut;
        if (s->derive.proofs_only)
            r->successors += s->derive.emitted;
        if (s->derive.proved) {
            r->end = LW_SEARCH_PROVED;
            r->depth = s->depth + 1;
            s->error = record(s, (uint32_t)i, r->depth);
        }
        if (s->derive.proved || s->error != 0)
            return true;
    }
    return false;
}

int lw_search_run(lw_search *s, lw_atom query, lw_search_result *out)
{
    *out = (lw_search_result){.end = LW_SEARCH_NONE, .depth = -1};
    s->result = out;
    s->error = 0;
    s->n = s->n_goals = s->n_slots = 0;
    s->derive.query = query;
    s->parent = 0;
    keep(s, &query, 1, 0);
    out->successors = 0;
    size_t from = 0;
    for (s->depth = 0; s->depth < s->o.max_depth && from < s->n; s->depth++) {
        size_t to = s->n;
        int64_t before = out->successors;
        bool last = s->depth + 1 == s->o.max_depth || out->end != LW_SEARCH_NONE;
        if (expand_level(s, from, to, last) || (last && out->end != LW_SEARCH_NONE))
            break;
        from = to;
        if (last && out->successors > before)
            out->end = LW_SEARCH_DEPTH;
    }
    if (out->end == LW_SEARCH_NONE && (out->atoms_cut > 0 || out->facts_cut > 0))
        out->end = LW_SEARCH_CUT;
    out->states = (int64_t)s->n;
    return s->error;
}

size_t lw_search_bytes(const lw_search *s)
{
    return s->cap_nodes * sizeof *s->nodes + s->cap_goals * sizeof *s->goal +
           s->cap_slots * sizeof *s->slot;
}

void lw_search_proof(const lw_search *s, lw_proof_origin *origin)
{
    for (int32_t i = 1; i < s->found; i++)
        origin[i - 1] = s->nodes[s->chain[i]].origin;
    origin[s->found - 1] = s->last;
}
