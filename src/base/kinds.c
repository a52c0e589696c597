/* SPDX-License-Identifier: Apache-2.0 */
/* Words of shared enumerations. */
#include "base/kinds.h"

const char *const lw_filter_name[LW_FILTERS] = {"box", "bilinear", "hamming", "bicubic", "lanczos"};
