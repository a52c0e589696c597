/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as a question that long work asks between steps. */
#ifndef LW_CLI_SIGNAL_H
#define LW_CLI_SIGNAL_H

#include <stdbool.h>

/* From here on the first SIGINT, SIGTERM or SIGHUP only sets a flag; a second SIGINT or SIGTERM
 * ends the process. SIGHUP that was ignored (nohup) stays so. */
void lw_signal_catch(void);
bool lw_signal_stopped(void);
/* Ignored, a reader that went away (SIGPIPE) and a file that may not grow (SIGXFSZ) are failed
 * writes as any other; not ignored is what a program started from here expects. */
void lw_signal_writes(bool ignore);

#endif
