/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a picture (PNG, JPEG, BMP, WebP), and the texts of a PNG. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/base.h"
#include "formats/formats.h"
#include "formats/image/formats_image_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_image im = {0};
    int32_t w = 0, h = 0;
    int header = lw_image_parse_size("fuzz", data, size, &w, &h);
    if (lw_image_parse("fuzz", data, size, &im) == 0) {
        if (header != 0 || w != im.width || h != im.height)
            abort();
        fuzz_touch(im.rgb, (size_t)im.width * (size_t)im.height * 3);
    }
    lw_image_clear(&im);
    LW_CLEANUP(lw_json_drop) json_t *texts = NULL;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    if (lw_png_parse_texts("fuzz", data, size, &texts) == 0)
        lw_json_dump(texts, 2, &s);
    fuzz_touch(lw_str_c(&s), s.len);
    return 0;
}
