/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of activations: a histogram that grows with what it sees, and the u8 scale it leads to. */
#ifndef LW_QUANTIZE_RANGES_H
#define LW_QUANTIZE_RANGES_H

#include <stdint.h>

#include "session/session_quantization.h"

typedef enum lw_range_rule {
    LW_RANGE_MSE,        /* the clip whose rounding and clipping together err least */
    LW_RANGE_PERCENTILE, /* all but a share of the values at both ends */
    LW_RANGE_MINMAX      /* everything seen */
} lw_range_rule;

enum { LW_RANGE_BINS = 4096 };

/* Starts zeroed. Bin k holds values in [(k - BINS/2) width, (k + 1 - BINS/2) width). */
typedef struct lw_ranges {
    float lo, hi;
    double width;
    int64_t n, not_finite; /* values counted, and passed over */
    int64_t bin[LW_RANGE_BINS];
} lw_ranges;

/* Values that are not finite are passed over. */
void lw_ranges_add(lw_ranges *r, const float *x, int64_t n);
/* Scale, zero point and error of u8 under a rule; name is left alone. share: of the values that
 * percentile leaves out at each end. */
void lw_ranges_choose(const lw_ranges *r, lw_range_rule rule, double share, lw_edge_seen *out);

#endif
