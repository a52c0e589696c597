/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and copies of successors in one block each, and states compared as multisets of goals. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "logic/search/logic_env.h"

/* States that a path may pass: the query, one a choice, one a step without a choice. */
static size_t slots_of(const lw_env_options *o)
{
    return (size_t)o->max_depth * (o->skip_unary_actions ? 2 : 1) + 1;
}

size_t lw_path_bytes(const lw_env_options *o)
{
    size_t slots = slots_of(o), goals = slots * (size_t)o->padding_atoms;
    return sizeof(lw_path) +
           LW_ROUND_UP(slots * (sizeof(uint64_t) + sizeof(int32_t)) + goals * sizeof(lw_atom),
                       (size_t)16);
}

int lw_paths_new(const lw_env_options *o, int64_t n, lw_path **out)
{
    size_t slots = slots_of(o), each = lw_path_bytes(o);
    lw_path *paths = lw_calloc((size_t)n, each);
    if (!paths)
        return LW_ENOMEM;
    char *at = (char *)(paths + n);
    for (int64_t i = 0; i < n; i++, at += each - sizeof *paths) {
        paths[i].end = LW_PROOF_STOPPED;
        paths[i].hash = (void *)at;
        paths[i].n_atoms = (void *)(paths[i].hash + slots);
        paths[i].atoms = (void *)(paths[i].n_atoms + slots);
    }
    *out = paths;
    return 0;
}

void lw_paths_free(lw_path **pp)
{
    lw_free(pp);
}

size_t lw_moves_bytes(const lw_env_options *o)
{
    size_t states = (size_t)o->padding_states, goals = states * (size_t)o->padding_atoms,
           rows = states * sizeof(uint64_t) + goals * sizeof(lw_atom) +
                  (states + 1) * sizeof(int32_t);
    return sizeof(lw_moves) + LW_ROUND_UP(rows, (size_t)64);
}

int lw_moves_new(const lw_env_options *o, int64_t n, lw_moves **out)
{
    size_t each = lw_moves_bytes(o), states = (size_t)o->padding_states;
    lw_moves *moves = lw_calloc((size_t)n, each);
    if (!moves)
        return LW_ENOMEM;
    char *at = (char *)(moves + n);
    for (int64_t i = 0; i < n; i++, at += each - sizeof *moves) {
        moves[i].hash = (void *)at;
        moves[i].atoms = (void *)(moves[i].hash + states);
        moves[i].first = (void *)(moves[i].atoms + states * (size_t)o->padding_atoms);
    }
    *out = moves;
    return 0;
}

void lw_moves_free(lw_moves **pp)
{
    lw_free(pp);
}

void lw_moves_copy(const lw_moves *from, lw_moves *to)
{
    size_t n = (size_t)from->n;
    to->n = from->n;
    to->next_var = from->next_var;
    memcpy(to->first, from->first, (n + 1) * sizeof *to->first);
    memcpy(to->atoms, from->atoms, (size_t)from->first[n] * sizeof *to->atoms);
    memcpy(to->hash, from->hash, n * sizeof *to->hash);
}

uint64_t lw_state_hash(const lw_atom *atoms, int32_t n)
{
    uint64_t h = 0;
    for (int32_t i = 0; i < n; i++)
        h += lw_atom_hash(atoms[i]);
    return h;
}

static int compare(const void *va, const void *vb)
{
    const lw_atom *a = va, *b = vb;
    if (a->p != b->p)
        return a->p < b->p ? -1 : 1;
    if (a->arg[0] != b->arg[0])
        return a->arg[0] < b->arg[0] ? -1 : 1;
    return (a->arg[1] > b->arg[1]) - (a->arg[1] < b->arg[1]);
}

bool lw_state_same(const lw_atom *a, const lw_atom *b, int32_t n)
{
    lw_atom x[LW_PROOF_MOST_ATOMS], y[LW_PROOF_MOST_ATOMS];
    if (memcmp(a, b, (size_t)n * sizeof *a) == 0)
        return true;
    memcpy(x, a, (size_t)n * sizeof *a);
    memcpy(y, b, (size_t)n * sizeof *b);
    qsort(x, (size_t)n, sizeof *x, compare);
    qsort(y, (size_t)n, sizeof *y, compare);
    return memcmp(x, y, (size_t)n * sizeof *x) == 0;
}
