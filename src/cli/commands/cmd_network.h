/* SPDX-License-Identifier: Apache-2.0 */
/* Option rows that commands which run a network share. */
#ifndef LW_CMD_NETWORK_H
#define LW_CMD_NETWORK_H

#include "cli/cli_options.h"

/* clang-format off */
#define LW_WEIGHTS_OPTION(T, field)                                                                \
    {LW_OPT(T, field), .name = "weights", .fallback = "ema", .choices = "model|ema",               \
     .group = "Model", .help = "which weights of a checkpoint"}
#define LW_PRECISION_OPTION(T, field, heading)                                                     \
    {LW_OPT(T, field), .name = "precision", .choices = LW_PRECISION_CHOICES, .fallback = "f32",    \
     .group = heading,                                                                             \
     .help = "operands of products; int8 needs a folder made by `leeway quantize`"}
#define LW_CLIPPED_OPTION(T, field, heading)                                                       \
    {LW_OPT(T, field), .name = "use-clipped-model-output", .fallback = "true", .group = heading,   \
     .help = "compute the noise of ddim again where the picture it implies was clipped, as the "   \
             "original sampler does; diffusers' default does not, and pictures turn grey as "      \
             "evaluations grow"}
#define LW_GUIDANCE_OPTION(T, field, heading)                                                      \
    {LW_OPT(T, field), .name = "guidance-scale", .fallback = "1", .min = 1, .max = 1000,           \
     .group = heading,                                                                             \
     .help = "of a DDPM or flow trained with --class-dropout-prob: what the class changes in the " \
             "network's answer, times this; above 1 two evaluations a step; 1: no guidance"}
#define LW_WINDOW_OPTION(T, field, heading)                                                        \
    {LW_OPT(T, field), .name = "window", .fallback = "0", .max = 4096, .unit = "places",           \
     .group = heading,                                                                             \
     .help = "a U-Net's attention over 1,024 places or more is in squares of such sides, side by " \
             "side: faster, another result; 0: over all places"}
/* clang-format on */

#endif
