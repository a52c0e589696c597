/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api: the body of include/leeway.h. Checks what callers pass, copies between public and private
 * structs, and calls jobs; no arithmetic of its own. Private to this folder.
 */
#ifndef LW_API_PRIVATE_H
#define LW_API_PRIVATE_H

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
 * A call that has callbacks, while it runs: what they may not close under it, or call again. Callbacks
 * come on the caller's thread, so the running calls are a list of that thread, innermost first.
 */
typedef struct lw_api_use {
    const void *object;
    struct lw_api_use *outer;
} lw_api_use;
/* LW_EUSAGE: a call with this object is running. */
int lw_api_idle(const void *object, const char *what);
/* The same, or this one is running, until lw_api_leave. */
int lw_api_enter(lw_api_use *use, const void *object, const char *what);
void lw_api_leave(const lw_api_use *use);
/* Is a call with this object running, or, NULL, any? Then lw_error_message() says that `what` stays
 * open. */
bool lw_api_running(const void *object, const char *what);

#endif
