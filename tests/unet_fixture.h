/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a small U-Net of random weights, for pictures of 16 x 16, all of whose layers count. */
#ifndef LW_TESTS_UNET_FIXTURE_H
#define LW_TESTS_UNET_FIXTURE_H

#include "models/models.h"

/* previous: answers that it sees behind the frame; -1: it is conditioned on nothing. */
static inline int unet_make(const char *dir, int32_t channels, int32_t previous, const char *method)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    lw_unet_config c = lw_unet_small();
    LW_TRY(lw_unet_set_levels(&c, 16, 8, (const int32_t[]){1, 2}, 2, (const int32_t[]){8}, 1));
    c.norm_groups = 4;
    c.heads = 2;
    c.blocks = 1;
    c.frame = previous >= 0;
    c.previous = LW_MAX(previous, 0);
    c.in_channels = channels * (2 + previous);
    c.out_channels = channels;
    c.default_out_init = c.default_res_init = true;
    LW_TRY(lw_store_new(true, &s));
    LW_TRY(lw_unet_declare(&c, s));
    lw_store_init(s, 5);
    LW_CLEANUP(lw_json_drop) json_t *config = lw_unet_to_json(&c);
    json_object_set_new(config, "leeway_method", json_string(method));
    return lw_model_folder_save(dir, s, LW_SLAB_PARAM, config, NULL);
}

#endif
