/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM as a question that long work asks between steps. */
#ifndef LW_CLI_SIGNAL_H
#define LW_CLI_SIGNAL_H

#include <stdbool.h>

/* From here on the first SIGINT or SIGTERM only sets a flag; a second one ends the process. */
void lw_signal_catch(void);
bool lw_signal_stopped(void);

#endif
