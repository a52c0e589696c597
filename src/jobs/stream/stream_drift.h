/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the frames that go out decay: their numbers (eval_series.h), as files in a folder. */
#ifndef LW_STREAM_DRIFT_H
#define LW_STREAM_DRIFT_H

#include "eval/eval.h"

typedef struct lw_stream_drift lw_stream_drift;

/* Of frames w x h; `beside`: such a folder of another run, drawn into the same plots, or NULL. Makes
 * the folder. LW_EIO, LW_EFORMAT. */
int lw_stream_drift_new(const char *dir, const char *beside, int32_t w, int32_t h,
                        lw_stream_drift **out);
void lw_stream_drift_free(lw_stream_drift **pp);
/* The next frame, [h][w][3]; numbers 0, 100, 250 and 499 are kept as pictures. in: what the network was
 * given for it, before it was made worse, or NULL where that was its own picture; of the first frame it is there. */
int lw_stream_drift_add(lw_stream_drift *d, const uint8_t *rgb, const uint8_t *in);
/* metrics.csv, metrics.json, a plot for each number, report.html. `what`: input and network in a few
 * words. Nothing without frames. */
int lw_stream_drift_finish(lw_stream_drift *d, const char *what, lw_series_verdict *out);

#endif
