/* SPDX-License-Identifier: Apache-2.0 */
/* What the config.json of networks of the transformers library have in common. Every key is
 * honoured, known to change nothing that is computed here, or refused by name. */
#ifndef LW_MODELS_TRANSFORMERS_H
#define LW_MODELS_TRANSFORMERS_H

#include "formats/formats.h"
#include "models/encoders/models_vit.h"

/* Of a config.json, or of one inside it: `where` names it in messages. `own`: the keys that this
 * family honours beside those that all have, NULL-ended. LW_EUNSUPPORTED names a key, or a value, that is not honoured. */
int lw_transformers_check(const json_t *config, const char *where, const char *const *own);
/* Is `name` one of its "architectures"? */
bool lw_transformers_class(const json_t *config, const char *name);
/* The side of a square of 1 to 16,384, one number or two that agree; absent: *out stays. */
int lw_transformers_side(const json_t *config, const char *where, const char *key, int32_t *out);
/* The numbers of a transformer that most families name alike: hidden_size, intermediate_size,
 * num_hidden_layers, num_attention_heads, num_channels (3), patch_size, hidden_act, layer_norm_eps.
 * Those absent stay. */
int lw_transformers_vit(const json_t *config, const char *where, lw_vit *out);
/* An integer in [1, hi]; absent: *out stays. */
int lw_transformers_count(const json_t *config, const char *where, const char *key, int32_t hi,
                          int32_t *out);

#endif
