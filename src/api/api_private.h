/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api: the body of include/leeway.h. Checks what callers pass, copies between public and private
 * structs, and calls jobs; no arithmetic of its own. Private to this folder.
 */
#ifndef LW_API_PRIVATE_H
#define LW_API_PRIVATE_H

#include <fenv.h>

#include "base/base.h"
#include "leeway.h"

struct lw_model {
    struct lw_network *net;
};

/* A struct of the caller's: reads as much of it as both sides know, the rest stays zero. LW_EUSAGE
 * when `size` is missing. */
#define API_READ(own, theirs) lw_api_read(&(own), sizeof(own), (theirs), #theirs)
int lw_api_read(void *own, size_t own_size, const void *theirs, const char *what);
/* The other way, for reports. */
#define API_WRITE(theirs, own) lw_api_write((theirs), &(own), sizeof(own), #theirs)
int lw_api_write(void *theirs, void *own, size_t own_size, const char *what);

#define API_NEED(pointer)                                                    \
    do {                                                                     \
        if (!(pointer))                                                      \
            return lw_fail(LW_EUSAGE, "%s: %s is NULL", __func__, #pointer); \
    } while (0)

/*
 * How floats behave on a caller's thread, put away while a call computes: rounding, subnormals flushed to zero, traps may
 * be anything there (-ffast-math, audio hosts, debuggers), and threads that a call starts begin with what it has.
 */
#define API_FLOATS() /* to the end of the block */ \
    __attribute__((unused)) LW_CLEANUP(lw_api_floats_back) fenv_t api_floats_ = lw_api_floats()
fenv_t lw_api_floats(void);
void lw_api_floats_back(const fenv_t *theirs);

/*
 * A call that has callbacks, while it runs: what they may not close under it, or call again. Callbacks
 * come on the caller's thread, so the running calls are a list of that thread, innermost first.
 */
typedef struct lw_api_use {
    const void *object;
    struct lw_api_use *outer;
    fenv_t theirs; /* lw_api_floats of the call */
} lw_api_use;
/* LW_EUSAGE: a call with this object is running. */
int lw_api_idle(const void *object, const char *what);
/* The same, or this one is running, until lw_api_leave. */
int lw_api_enter(lw_api_use *use, const void *object, const char *what);
void lw_api_leave(const lw_api_use *use);
/* Around a callback of the innermost call, which has the caller's floats. */
void lw_api_outside(void);
void lw_api_inside(void);
/* The callbacks of that call; those that are NULL say nothing and stop nothing. */
void lw_api_progress(const lw_callbacks *c, int64_t done, int64_t total);
bool lw_api_cancelled(const lw_callbacks *c);
/* Is a call with this object running, or, NULL, any? Then lw_error_message() says that `what` stays
 * open. */
bool lw_api_running(const void *object, const char *what);

#endif
