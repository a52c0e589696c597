/* SPDX-License-Identifier: Apache-2.0 */
/* Vision transformers as timm's config.json and open_clip's open_clip_config.json describe them. timm
 * names an architecture, whose numbers are a registration in its source: here they are a table. */
#ifndef LW_MODELS_TIMM_H
#define LW_MODELS_TIMM_H

#include "formats/formats.h"
#include "models/encoders/models_vit.h"
#include "models/models_network.h"
#include "store/store.h"

/* What timm calls the blocks of towers whose names in transformers are CLIP's or SigLIP's, and what
 * stands around them. */
#define LW_TIMM_TOWER_RULES                                                                 \
    {.file = "patch_embed.proj.*", .store = "embeddings.patch_embedding.*"},                \
        {.file = "pos_embed", .store = "embeddings.position_embedding.weight", .ones = 1},  \
        {.file = "blocks.*.norm1.*", .store = "encoder.layers.*.layer_norm1.*"},            \
        {.file = "blocks.*.attn.qkv.*", .store = "encoder.layers.*.self_attn.to_qkv.*"},    \
        {.file = "blocks.*.attn.proj.*", .store = "encoder.layers.*.self_attn.out_proj.*"}, \
        {.file = "blocks.*.norm2.*", .store = "encoder.layers.*.layer_norm2.*"},            \
        {.file = "blocks.*.mlp.*.*", .store = "encoder.layers.*.mlp.*.*"},                  \
    {                                                                                       \
        .file = "norm.*", .store = "post_layernorm.*"                                       \
    }

/* Has a configuration an "architecture", as timm writes it? */
bool lw_timm_is(const json_t *config);
/* Is it open_clip's? */
bool lw_open_clip_is(const json_t *config);

/* The "model_args" of timm's config.json, where there are any: those that each network takes, those
 * `said` (NULL-ended, or NULL) and those of `only`. "num_classes" and "global_pool", which timm 1.0.31
 * writes there a second time, must be those beside it. LW_EUNSUPPORTED names what is not honoured. */
int lw_timm_check_args(const json_t *config, const char *where, const char *const *said,
                       const lw_json_only *only);
/* timm's config.json of a convolutional network whose tensors say the rest: its architecture is one
 * of `built`, pooled by the average, of the arguments `said` or none; both NULL-ended, said may be
 * NULL. LW_EUNSUPPORTED names what is not honoured. */
int lw_timm_plain(const json_t *config, const char *where, const char *const *built,
                  const char *const *said);
/* timm's, of an architecture vit_SIZE_patchN_.., pooled by `pool`; or an open_clip tower of such an
 * architecture. Fields that neither says stay. classes: of its head, 0: none; NULL: it must have
 * none. LW_EUNSUPPORTED names what is not honoured. */
int lw_timm_vit(const json_t *config, const char *where, const char *pool, lw_vit *out,
                int32_t *classes);
/* The numbers of one of timm's registrations, by its name. LW_EUNSUPPORTED: not built. */
int lw_timm_architecture(const char *name, const char *where, lw_vit *out);
/* What timm calls an activation; NULL: it has no name there. */
const char *lw_timm_act(lw_ewop op);

/* The other way. `family` stands in the names of its registrations ("_clip_"); `usual` has the fields
 * that no name says. config gets "architecture" and "model_args". LW_EUNSUPPORTED: timm has no words
 * for a field of v. */
int lw_timm_write(const lw_network *n, const lw_vit *v, const char *family, const lw_vit *usual,
                  json_t *config);
/* The registration that is v but for its activation, whose numbers *found becomes; NULL: none is. */
const char *lw_timm_find(const lw_vit *v, const char *family, const lw_vit *usual, lw_vit *found);
/* open_clip's own transformer, the other way. */
int lw_open_clip_write(const lw_network *n, const lw_vit *v, int32_t projection, json_t *config);
/* open_clip's own transformer. projection: of its vectors. */
int lw_open_clip_vit(const json_t *config, const char *where, lw_vit *out, int32_t *projection);

#endif
