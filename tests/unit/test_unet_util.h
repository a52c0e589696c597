/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the U-Net. */
#ifndef LW_TEST_UNET_UTIL_H
#define LW_TEST_UNET_UTIL_H

#include "models/models.h"
#include "unit/test_store_util.h"

/* Two levels of 8 pixels, attention at 4. */
static inline lw_unet_config tiny(void)
{
    lw_unet_config c = {.in_channels = 3,
                        .out_channels = 3,
                        .mid_attn = true,
                        .blocks = 1,
                        .heads = 2,
                        .norm_groups = 4,
                        .norm_eps = 1e-5f};
    assert_ok(lw_unet_set_levels(&c, 8, 8, (const int32_t[]){1, 2}, 2, (const int32_t[]){4}, 1));
    return c;
}

#endif
