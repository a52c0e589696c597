/* SPDX-License-Identifier: Apache-2.0 */
/* Words of shared enumerations. */
#include "base/kinds.h"

const char *const lw_filter_name[LW_FILTERS] = {"box", "bilinear", "hamming", "bicubic", "lanczos"};

const char *const lw_resample_form_name[LW_RESAMPLE_FORMS] = {"pillow", "pillow-13", "float-aa",
                                                              "torch", "tf-inception"};

size_t lw_pixels_form_bytes(lw_pixels_form form, size_t w, size_t h)
{
    const size_t half = (w + 1) / 2;
    switch (form) {
    case LW_PIXELS_420:
    case LW_PIXELS_NV12:
        return w * h + 2 * half * ((h + 1) / 2);
    case LW_PIXELS_422:
        return w * h + 2 * half * h;
    case LW_PIXELS_YUYV:
        return 4 * half * h;
    case LW_PIXELS_GRAY:
        return w * h;
    default:
        return 3 * w * h;
    }
}
