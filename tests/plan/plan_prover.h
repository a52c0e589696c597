/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proves by replaying a plan on paper that no step reads memory that something else has written
 * since: every 64 bytes of the frame remember who wrote them last. Knows nothing of the planner's
 * lifetimes.
 */
#ifndef LW_TESTS_PLAN_PROVER_H
#define LW_TESTS_PLAN_PROVER_H

#include "plan/plan_pass.h"

typedef struct plan_proof {
    int in_place;  /* steps whose result took over an operand's memory */
    int placed;    /* operands of concatenations that their producers wrote in place */
    int shared;    /* 64-byte blocks of the frame with more than one owner over time */
    char why[256]; /* "" when proved */
} plan_proof;

/* Returns true and counts, or false and the first violation in out->why. */
bool plan_prove(const lw_plan *p, plan_proof *out);

#endif
