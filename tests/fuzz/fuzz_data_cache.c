/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: bytes as a data cache. The first is a choice, the header follows, then what stands
 * behind the header page. Hashes that no mutation would hit are made right when bits of the choice
 * say so, so that what they guard is reached.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "data/sources/data_source.h"

static void mend(uint8_t choice, uint8_t *image, size_t n)
{
    lw_data_header h;
    memcpy(&h, image, sizeof h);
    if (choice & 1) {
        memcpy(h.magic, LW_DATA_MAGIC, sizeof h.magic);
        h.version = LW_DATA_VERSION;
        h.header_bytes = sizeof h;
        h.pixels_at = LW_DATA_PIXELS_AT;
    }
    if (choice & 2)
        h.total_bytes = n;
    if ((choice & 4) && h.labels_at < n)
        h.tail_hash = lw_hash64(image + h.labels_at, n - h.labels_at);
    if (choice & 8)
        h.header_hash = lw_hash64(&h, offsetof(lw_data_header, header_hash));
    memcpy(image, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_data_header h;
    size_t head = size > 1 ? LW_MIN(size - 1, sizeof h) : 0;
    size_t rest = size > 1 ? size - 1 - head : 0, n = LW_DATA_PIXELS_AT + rest;
    if (size == 0)
        return 0;
    uint8_t *image = aligned_alloc(64, LW_ROUND_UP(n, (size_t)64));
    if (!image)
        return 0;
    memset(image, 0, LW_ROUND_UP(n, (size_t)64));
    memcpy(image, data + 1, head);
    memcpy(image + LW_DATA_PIXELS_AT, data + 1 + head, rest);
    mend(data[0], image, n);
    if (lw_data_image_check("fuzz", image, n, &h) == 0) {
        lw_data_image_pixels("fuzz", image, &h, false);
        lw_data_image_pixels("fuzz", image, &h, true);
        fuzz_touch(image + h.texts_at, h.texts_bytes);
        fuzz_touch(image + h.names_at, h.names_bytes);
        const char *text = (const char *)image + h.texts_at;
        for (int32_t i = 0; i < h.classes + 2; i++)
            text += strlen(text) + 1;
        if (text > (const char *)image + n)
            abort();
    }
    free(image);
    return 0;
}
