/* SPDX-License-Identifier: Apache-2.0 */
/* Option rows that commands which sample a DDPM share. */
#ifndef LW_CMD_SAMPLE_H
#define LW_CMD_SAMPLE_H

#include "cli/cli_options.h"

/* clang-format off */
#define LW_CLIPPED_OPTION(T, field, heading)                                                       \
    {LW_OPT(T, field), .name = "use-clipped-model-output", .fallback = "true", .group = heading,   \
     .help = "ddim: where the picture that a noise estimate implies was clipped, go on with the "  \
             "noise that belongs to the clipped one; without: with the estimate as it is, as "     \
             "diffusers does by default, which turns pictures grey as evaluations grow"}
/* clang-format on */

#endif
