/* SPDX-License-Identifier: Apache-2.0 */
/* Words of shared enumerations. */
#include "base/kinds.h"

const char *const lw_filter_name[LW_FILTERS] = {"box", "bilinear", "hamming", "bicubic", "lanczos"};

const char *const lw_resample_form_name[LW_RESAMPLE_FORMS] = {"pillow", "pillow-13", "float-aa",
                                                              "torch", "tf-inception"};
