/* SPDX-License-Identifier: Apache-2.0 */
/* Private to models_policy*.c: from ids to the vector of a state, and the layers both halves use.
 */
#ifndef LW_MODELS_POLICY_PARTS_H
#define LW_MODELS_POLICY_PARTS_H

#include "models/models.h"

#define POLICY_GAIN 1.4142135623730951 /* of initial values behind a relu */

/* Parameters "weight" [out,in] and "bias" [out] under the current scope. */
lw_val lw_policy_weight(lw_builder *b, int32_t in, int32_t out, double gain);
lw_val lw_policy_bias(lw_builder *b, int32_t out);
lw_val lw_policy_linear(lw_builder *b, const char *name, lw_val x, int32_t out, double gain);

/* Columns of the two tables. */
int32_t lw_policy_predicate_width(const lw_policy_config *c);
int32_t lw_policy_constant_width(const lw_policy_config *c);
/* The vector of each state, f32[R,E]. */
lw_val lw_policy_embed(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in);
/* Is the state's vector a signed sum of rows, so that the first Linear can go into the tables? */
bool lw_policy_folds(const lw_policy_config *c);
/* The first Linear's result, f32[R,H], from projected tables. */
lw_val lw_policy_embed_folded(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in);

#endif
