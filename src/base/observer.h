/* SPDX-License-Identifier: Apache-2.0 */
/* How a job talks while it works: three callbacks, all optional. The command line implements
 * them. */
#ifndef LW_OBSERVER_H
#define LW_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lw_observer {
    void *self;
    /* Work `what` is at done of total (0: unknown); note: "loss 0.081  lr 0.0002" or NULL. */
    void (*progress)(void *self, const char *what, int64_t done, int64_t total, const char *note);
    /* A line worth keeping: "checkpoint step_0001000 written". */
    void (*say)(void *self, const char *line);
    /* Asked between steps: true ends the work after saving (LW_ESTOPPED). */
    bool (*should_stop)(void *self);
} lw_observer;

/* NULL-safe callers; o may be NULL. */
void lw_observe_progress(const lw_observer *o, const char *what, int64_t done, int64_t total,
                         const char *note);
void lw_observe_say(const lw_observer *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool lw_observe_stop(const lw_observer *o);

#endif
