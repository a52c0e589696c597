/* SPDX-License-Identifier: Apache-2.0 */
/* What the loss of a drift step is of: which feature keys, and how their fields' losses are put together. */
#ifndef LW_DRIFT_LOSS_H
#define LW_DRIFT_LOSS_H

#include "jobs/drift/drift_run.h"

/* The keys of a config for pictures of that size. LW_EUSAGE: the encoder lacks one, or none is left. */
int lw_drift_keys(const lw_drift_config *c, const lw_network *encoder, int32_t size,
                  int32_t channels, lw_feature_set *out);
/* What the loss of key k, and its gradient, is multiplied by. */
float lw_drift_share(const lw_drift_config *c, const lw_feature_set *keys, int k);
/* v multiplied by that. */
lw_val lw_drift_shared(const lw_drift_config *c, const lw_feature_set *keys, int k, lw_graph *g,
                       lw_val v);
/* Loss of key k from its field's statistics (lw_drift_out), with it. */
float lw_drift_key_loss(const lw_drift_config *c, const lw_feature_set *keys, int k,
                        const float *stats);
/* The same in a graph. */
lw_val lw_drift_key_term(const lw_drift_config *c, const lw_feature_set *keys, int k, lw_graph *g,
                         lw_drift_out o);

#endif
