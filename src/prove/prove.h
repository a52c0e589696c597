/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove: the programs of `leeway prove` without a command line: a policy walks proofs (proof/ is
 * their environment), candidates are ranked by its walks, it is trained by PPO, compared and joined
 * with embeddings of the graph, and measured.
 *
 * Read: prove_walks.h (many proofs, one dense batch), prove_state_rows.h (each state computed
 * once), prove_policy.h (where weights come from), then prove_eval.h, prove_ppo.h, prove_kge.h and
 * prove_bench.h, which stand on them. prove_ppo.c and prove_kge_train.c run in the trainer of
 * recipes/.
 */
#ifndef LW_PROVE_H
#define LW_PROVE_H

#include "prove/prove_bench.h"
#include "prove/prove_eval.h"
#include "prove/prove_kge.h"
#include "prove/prove_policy.h"
#include "prove/prove_ppo.h"
#include "prove/prove_walks.h"

#endif
