/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as a job's observer: progress bar, lines that stay, signals. */
#ifndef LW_CLI_OBSERVER_H
#define LW_CLI_OBSERVER_H

#include "cli/cli_command.h"
#include "cli/cli_progress.h"

/* LW_CLEANUP(lw_cli_observer_close) lw_cli_observer o; lw_cli_observer_open(&o, cli); job(..,
 * &o.calls) */
typedef struct lw_cli_observer {
    lw_observer calls; /* what the job is given */
    const lw_cli *cli;
    lw_progress *bar; /* of the work going on */
    char what[64];
    int64_t total;
} lw_cli_observer;

/* Catches SIGINT, SIGTERM and SIGHUP from here on. */
void lw_cli_observer_open(lw_cli_observer *o, const lw_cli *cli);
void lw_cli_observer_close(lw_cli_observer *o); /* ends the bar */

#endif
