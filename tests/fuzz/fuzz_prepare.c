/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a preprocessor_config.json or a pretrained_cfg, then a picture through it. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_preparation p;
    if (lw_preparation_parse("fuzz", (const char *)data, size, &p) < 0)
        return 0;
    lw_raster im = {0};
    size_t n = (size_t)p.height * (size_t)p.width * (size_t)p.channels;
    if (n > 1 << 20) /* slow, and nothing new */
        return 0;
    uint8_t *y = malloc(n);
    if (y &&
        lw_raster_init(&im, 1 + (int32_t)(size % 41), 1 + (int32_t)(size % 37), p.channels) == 0 &&
        lw_prepare_pixels(&p, im, y) < 0)
        abort();
    lw_raster_clear(&im);
    free(y);
    return 0;
}
