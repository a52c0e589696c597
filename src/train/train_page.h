/* SPDX-License-Identifier: Apache-2.0 */
/* report.html of a run directory: what was trained, how it went, what came out. */
#ifndef LW_TRAIN_PAGE_H
#define LW_TRAIN_PAGE_H

#include "train/train_loop.h"

/* Writes DIR/report.html (atomically) from the files of the run directory DIR alone: config.yaml,
 * command.txt, env.json, metrics.jsonl and samples/. `name` ("train drift") and r are of the run;
 * r->loss_note and damaged or missing logs leave parts out, they are no error.
 * whole: address of a page that the run is part of, seen from DIR, or NULL. */
int lw_run_page_write(const char *dir, const lw_train_job *job, const char *whole,
                      const lw_train_result *r);

#endif
