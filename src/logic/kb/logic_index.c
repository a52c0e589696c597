/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting facts and the three tables over them. */
#include "logic/kb/logic_index.h"

#include <stdlib.h>

#include "base/base.h"

static int compare(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

static int by_first(const void *va, const void *vb)
{
    const lw_atom *a = va, *b = vb;
    int c = compare(a->p, b->p);
    c = c ? c : compare(a->arg[0], b->arg[0]);
    return c ? c : compare(a->arg[1], b->arg[1]);
}

/* A row of the second order while it is sorted. */
typedef struct second_row {
    int32_t p, second, fact;
} second_row;

static int by_second(const void *va, const void *vb)
{
    const second_row *a = va, *b = vb;
    int c = compare(a->p, b->p);
    c = c ? c : compare(a->second, b->second);
    return c ? c : compare(a->fact, b->fact); /* facts ascend in their first argument */
}

static uint64_t key_hash(int32_t p, int32_t arg)
{
    return lw_atom_hash((lw_atom){p, {arg, 0}});
}

static int order_second(lw_facts *f)
{
    second_row *row = lw_calloc((size_t)f->n, sizeof *row);
    if (!row)
        return LW_ENOMEM;
    for (int32_t i = 0; i < f->n; i++)
        row[i] = (second_row){f->atom[i].p, f->atom[i].arg[1], i};
    qsort(row, (size_t)f->n, sizeof *row, by_second);
    for (int32_t i = 0; i < f->n; i++)
        f->by_second[i] = row[i].fact;
    lw_free(&row);
    return 0;
}

/* Row i of the order that serves arguments on `side`. */
static const lw_atom *row_of(const lw_facts *f, int side, int32_t i)
{
    return &f->atom[side == 0 ? i : f->by_second[i]];
}

static int fill_keys(lw_facts *f, int side)
{
    size_t runs = 0, slots = 64;
    for (int32_t i = 0; i < f->n; i++) {
        const lw_atom *a = row_of(f, side, i), *b = i ? row_of(f, side, i - 1) : NULL;
        runs += !b || a->p != b->p || a->arg[side] != b->arg[side];
    }
    while (slots < 2 * runs)
        slots *= 2;
    f->n_keys[side] = slots;
    f->key[side] = lw_calloc(slots, sizeof *f->key[side]);
    if (!f->key[side])
        return LW_ENOMEM;
    for (int32_t i = 0, end; i < f->n; i = end) {
        const lw_atom *a = row_of(f, side, i);
        for (end = i + 1; end < f->n; end++) {
            const lw_atom *b = row_of(f, side, end);
            if (b->p != a->p || b->arg[side] != a->arg[side])
                break;
        }
        size_t k = (size_t)key_hash(a->p, a->arg[side]) & (slots - 1);
        while (f->key[side][k].p != 0)
            k = (k + 1) & (slots - 1);
        f->key[side][k] = (lw_fact_key){a->p, a->arg[side], i, end - i};
    }
    return 0;
}

static int fill_slots(lw_facts *f)
{
    f->n_slots = 64;
    while (f->n_slots < 2 * (size_t)f->n)
        f->n_slots *= 2;
    f->slot = lw_calloc(f->n_slots, sizeof *f->slot);
    if (!f->slot)
        return LW_ENOMEM;
    for (int32_t i = 0; i < f->n; i++) {
        size_t k = (size_t)lw_atom_hash(f->atom[i]) & (f->n_slots - 1);
        while (f->slot[k].atom.p != 0)
            k = (k + 1) & (f->n_slots - 1);
        f->slot[k] = (lw_fact_slot){f->atom[i], i};
    }
    return 0;
}

int lw_facts_index(lw_facts *f, lw_atom *atom, int32_t n, int32_t n_predicates)
{
    qsort(atom, (size_t)n, sizeof *atom, by_first);
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++)
        if (kept == 0 || !lw_atom_eq(atom[i], atom[kept - 1]))
            atom[kept++] = atom[i];
    f->atom = atom;
    f->n = kept;
    f->by_second = lw_calloc((size_t)kept, sizeof *f->by_second);
    f->pred_first = lw_calloc((size_t)n_predicates + 2, sizeof *f->pred_first);
    if (!f->by_second || !f->pred_first)
        return LW_ENOMEM;
    for (int32_t i = 0; i < kept; i++)
        f->pred_first[atom[i].p + 1]++;
    for (int32_t p = 0; p <= n_predicates; p++)
        f->pred_first[p + 1] += f->pred_first[p];
    LW_TRY(order_second(f));
    LW_TRY(fill_keys(f, 0));
    LW_TRY(fill_keys(f, 1));
    return fill_slots(f);
}

void lw_facts_clear(lw_facts *f)
{
    lw_free(&f->atom);
    lw_free(&f->by_second);
    lw_free(&f->pred_first);
    lw_free(&f->key[0]);
    lw_free(&f->key[1]);
    lw_free(&f->slot);
    *f = (lw_facts){0};
}

uint64_t lw_facts_bytes(const lw_facts *f, int32_t n_predicates)
{
    return (uint64_t)f->n * (sizeof *f->atom + sizeof *f->by_second) +
           ((uint64_t)n_predicates + 2) * sizeof *f->pred_first +
           (f->n_keys[0] + f->n_keys[1]) * sizeof *f->key[0] + f->n_slots * sizeof *f->slot;
}

int32_t lw_facts_find(const lw_facts *f, lw_atom a)
{
    size_t mask = f->n_slots - 1, k = (size_t)lw_atom_hash(a) & mask;
    for (; f->slot[k].atom.p != 0; k = (k + 1) & mask)
        if (lw_atom_eq(f->slot[k].atom, a))
            return f->slot[k].fact;
    return -1;
}

lw_fact_range lw_facts_with(const lw_facts *f, int32_t p, int side, int32_t arg)
{
    const lw_fact_key *key = f->key[side];
    size_t mask = f->n_keys[side] - 1, k = (size_t)key_hash(p, arg) & mask;
    for (; key[k].p != 0; k = (k + 1) & mask)
        if (key[k].p == p && key[k].arg == arg)
            return (lw_fact_range){key[k].first, key[k].n};
    return (lw_fact_range){0, 0};
}
