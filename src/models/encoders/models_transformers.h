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
/* An integer in [1, hi]; absent: *out stays. */
int lw_transformers_count(const json_t *config, const char *where, const char *key, int32_t hi,
                          int32_t *out);
/* hidden_act is `act` or absent: else LW_EUNSUPPORTED. */
int lw_transformers_act_is(const json_t *config, const char *where, const char *act);
/* The numbers of a transformer that most families name alike: hidden_size, intermediate_size,
 * num_hidden_layers, num_attention_heads, image_size and patch_size (squares),
 * hidden_act, layer_norm_eps. Those absent stay. LW_EFORMAT: they contradict each other. */
int lw_transformers_vit(const json_t *config, const char *where, lw_vit *out);
/* The other way: all but intermediate_size, which not all families have. */
void lw_transformers_put_vit(const lw_vit *v, json_t *config);
/* Steps from the config of a whole model (of the keys `own`) into its vision_config, or stays where
 * there is none. in: memory for *where. */
int lw_transformers_vision(const json_t **config, const char **where, const char *const *own,
                           lw_str *in);

#endif
