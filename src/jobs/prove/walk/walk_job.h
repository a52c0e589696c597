/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: a policy walks proofs: many at once, one dense batch, each state computed once. Ranking, training and
 * measuring stand on it.
 *
 * Read: prove_walks.h, prove_state_rows.h, prove_policy.h (where weights come from).
 */
#ifndef LW_WALK_JOB_H
#define LW_WALK_JOB_H

#include "jobs/prove/walk/prove_policy.h"
#include "jobs/prove/walk/prove_state_rows.h"
#include "jobs/prove/walk/prove_walks.h"

#endif
