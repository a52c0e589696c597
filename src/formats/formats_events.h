/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorBoard event files: TFRecord frames (length, masked CRC-32C of it, data, masked CRC-32C of
 * it) around Event protocol buffers with Summary values, written by hand
 * (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto).
 */
#ifndef LW_FORMATS_EVENTS_H
#define LW_FORMATS_EVENTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lw_events lw_events;

/* New file events.out.tfevents.SECONDS.leeway.PID.K in dir (made if missing). start_step > 0 says
 * that a run is resumed: viewers then drop what older files hold at and after that step. */
int lw_events_open(const char *dir, int64_t start_step, lw_events **out);
void lw_events_close(lw_events **pp);
const char *lw_events_path(const lw_events *e);
/* One record each, written with one write(2). */
int lw_events_scalar(lw_events *e, const char *tag, int64_t step, double value);
int lw_events_image(lw_events *e, const char *tag, int64_t step, const void *png, size_t n,
                    int32_t width, int32_t height);
/* Options as hyperparameters of the run: numbers, booleans, texts; lists as texts. */
int lw_events_hparams(lw_events *e, const json_t *options);
int lw_events_text(lw_events *e, const char *tag, int64_t step, const char *markdown);

/* CRC-32C (Castagnoli), e.g. 0xe3069283 for "123456789". */
uint32_t lw_crc32c(const void *bytes, size_t n);

#endif
