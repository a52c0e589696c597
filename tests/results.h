/* SPDX-License-Identifier: Apache-2.0 */
/* What a call that may fail says when it does. After cmocka's header. */
#ifndef LW_TEST_RESULTS_H
#define LW_TEST_RESULTS_H

#include <string.h>

#include "base/base.h"

/* expr is 0 */
#define ok(expr)                                                \
    do {                                                        \
        int ok_rc_ = (expr);                                    \
        if (ok_rc_ != 0)                                        \
            fail_msg("%s: %d: %s", #expr, ok_rc_, lw_errmsg()); \
    } while (0)

/* expr fails with code, and the message holds text */
#define fails(expr, code, text)                                                                  \
    do {                                                                                         \
        lw_errclear();                                                                           \
        int fails_rc_ = (expr);                                                                  \
        if (fails_rc_ != (code) || !strstr(lw_errmsg(), text))                                   \
            fail_msg("%s: %d, not %d with '%s': %s", #expr, fails_rc_, code, text, lw_errmsg()); \
    } while (0)

#endif
