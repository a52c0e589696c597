/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress on stderr. On a terminal one line is redrawn at most ten times a second:
 *   train drift  [#########-----------]  47%  940/2000  4.1/s  ETA 4m 18s  loss 0.98
 *
 * Elsewhere work that takes a second or more writes a plain line after that second, every 30
 * seconds and at its end. With --quiet or --no-progress nothing is.
 */
#ifndef LW_CLI_PROGRESS_H
#define LW_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli_command.h"

typedef struct lw_progress lw_progress;
struct lw_cli;

/* total 0: unknown. NULL-safe below, so that a quiet run may have none. */
int lw_progress_new(const struct lw_cli *cli, const char *what, int64_t total, lw_progress **out);
void lw_progress_free(lw_progress **pp); /* leaves the last state on its own line */
/* `note` (may be NULL) follows the numbers: "loss 0.0812". Starts counting speed from the first
 * call. */
void lw_progress_set(lw_progress *p, int64_t done, const char *note);
void lw_progress_set_total(lw_progress *p, int64_t total);
/* A line that stays, above the bar: "checkpoint step_0001000 written". */
void lw_progress_say(lw_progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
