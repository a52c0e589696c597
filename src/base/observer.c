/* SPDX-License-Identifier: Apache-2.0 */
/* Calling an observer that may not be there. */

#include <stdarg.h>
#include <stdio.h>

#include "base/observer.h"

void lw_observe_progress(const lw_observer *o, const char *what, int64_t done, int64_t total,
                         const char *note)
{
    if (o && o->progress)
        o->progress(o->self, what, done, total, note);
}

void lw_observe_say(const lw_observer *o, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (o && o->say)
        o->say(o->self, line);
}

bool lw_observe_stop(const lw_observer *o)
{
    return o && o->should_stop && o->should_stop(o->self);
}
