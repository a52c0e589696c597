/* SPDX-License-Identifier: Apache-2.0 */
/* From what users type to a generator: the U-Net both methods share, the transformer of drifting. */
#ifndef LW_SESSION_UNET_H
#define LW_SESSION_UNET_H

#include "data/data.h"
#include "models/models.h"
#include "session/session_diffusion.h"

typedef enum lw_auto { LW_AUTO, LW_YES, LW_NO } lw_auto;

typedef enum lw_generator_kind {
    LW_GENERATOR_UNET,
    LW_GENERATOR_DIT, /* a small one */
    LW_GENERATOR_DIT_B2,
    LW_GENERATOR_DIT_L2,
    LW_GENERATOR_DIT_B16,
    LW_GENERATOR_DIT_L16
} lw_generator_kind;
#define LW_GENERATORS "unet|dit|dit-b2|dit-l2|dit-b16|dit-l16"

/* The generator of a training. */
typedef struct lw_net_config {
    int32_t base_channels;
    int32_t channel_mult[8], n_channel_mult;
    int32_t num_res_blocks;
    int32_t attn_resolutions[8], n_attn_resolutions;
    int32_t heads, head_dim, norm_groups; /* head_dim > 0: instead of heads */
    double dropout;
    bool large; /* base 256, 3 blocks, attention at 16 and 8, 8 heads */
    bool zero_init_output;
    int32_t latent_dim;
    const char *noise_shape;   /* "full" or "HxW" */
    int32_t class_conditional; /* lw_auto: when the data has labels */
    /* The transformer of `train drift`; of the others 0 is that of the generator. */
    int32_t generator; /* lw_generator_kind */
    int32_t patch_size, hidden_dim, depth, num_heads;
    int32_t register_tokens, style_count, style_words;
    int32_t rope;         /* lw_dit_rope */
    int32_t qk_norm_mode; /* 0: RMSNorm, 1: none */
    /* Set by trainers: lw_unet_config's. */
    bool frame, residual, null_class;
    int32_t previous;
    float alpha;
} lw_net_config;

/* How a trained generator makes pictures. Stands in config.json as "leeway_method". */
typedef enum lw_method { LW_METHOD_DDPM, LW_METHOD_DRIFT, LW_METHOD_FLOW } lw_method;
const char *lw_method_name(lw_method m);

/* "frame", "previous", "previous:K", or frame and previous with a comma. LW_EUSAGE. */
int lw_condition_parse(const char *text, bool *frame, int32_t *previous);
/* LW_EUSAGE: pictures of this side have not the levels that its U-Net is asked for. */
int lw_net_check_side(const lw_net_config *c, int32_t side);
/* The U-Net of a config for a dataset's size and classes. LW_EUSAGE names the option that does not
 * fit. */
int lw_net_unet(const lw_net_config *c, const lw_dataset *d, lw_unet_config *out);
/* The transformer, likewise; generator is not the U-Net. */
int lw_net_dit(const lw_net_config *c, const lw_dataset *d, lw_dit_config *out);
/* config.json of a model folder: `net`, a network's keys, which is stolen (NULL: no memory), the method, class
 * names of those that are `conditional`. New reference. */
json_t *lw_net_json(json_t *net, bool conditional, lw_method m, const lw_dataset *d);
/* What makes such a folder a DDPMPipeline of diffusers, {name: content}: its schedule (of a flow
 * FlowMatchEulerDiscreteScheduler, with which that pipeline runs) and the index. *out stays NULL where its pipeline would compute something else. */
int lw_net_pipeline(const lw_unet_config *u, const lw_noise_schedule *s, json_t **out);
/* Method of a config.json; a folder that does not say is a DDPM (or a flow, where its scheduler is one:
 * lw_network_method). */
lw_method lw_net_method(const json_t *config);

#endif
