/* SPDX-License-Identifier: Apache-2.0 */
/* One goal or fact: three numbers, a row ready for an embedding lookup. */
#ifndef LW_LOGIC_ATOM_H
#define LW_LOGIC_ATOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lw_atom {
    int32_t p, arg[2]; /* predicate, arguments */
} lw_atom;

enum {
    LW_PROOF_MOST_ATOMS = 64,                                   /* of a state */
    LW_PROOF_MOST_BODY = 32,                                    /* of a rule */
    LW_PROOF_MOST_VARS = 64,                                    /* different variables of a rule */
    LW_PROOF_WIDEST = LW_PROOF_MOST_ATOMS + LW_PROOF_MOST_BODY, /* atoms of any successor */
};

static inline bool lw_atom_eq(lw_atom a, lw_atom b)
{
    return a.p == b.p && a.arg[0] == b.arg[0] && a.arg[1] == b.arg[1];
}

/* A well-mixed 64-bit hash of one atom (two multiply-xorshift rounds over its three numbers). */
static inline uint64_t lw_atom_hash(lw_atom a)
{
    uint64_t h = (uint64_t)(uint32_t)a.arg[0] << 32 | (uint32_t)a.arg[1];
    h = (h ^ (uint64_t)(uint32_t)a.p * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 32)) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 29);
}

#endif
