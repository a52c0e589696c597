/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks that exist as code alone: nobody published weights of them, so they get random ones, and
 * only benches run them. They are those of a public project on live video (docs/live.md).
 *
 *   gpu-stress:B             two U-Nets of BatchNorm and attention behind each other, then the frame
 *                            before: B = 192 has 880,258,653 parameters
 *   gpu-intensive-lsd:B      a U-Net with attention at every place, repaired: as written its shapes
 *                            do not fit
 *   simple-optimized-unet:B  a small one: B = 96 has 8,508,003 parameters
 *
 * B is the width of the first level. All take pictures in [-1,1] of one size, a time t, and frames as
 * the condition where they have any; their answer is y.
 */
#ifndef LW_MODELS_REHEARSAL_H
#define LW_MODELS_REHEARSAL_H

#include "models/models_network.h"

/* "gpu-stress:192" for pictures of side x side (0: 64), with zeros until lw_store_init. LW_EUSAGE: no
 * such network, naming those there are, or a width or side that it does not take. */
int lw_rehearsal_open(const char *spec, int32_t side, lw_network **out);
/* The same refusals, and nothing made. */
int lw_rehearsal_check(const char *spec, int32_t side);
/* Is it the name of one? */
bool lw_rehearsal_is(const char *spec);

#endif
