/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of formats: a scratch folder, and assertions on failures and
 * their messages. */
#ifndef LW_TEST_FORMATS_UTIL_H
#define LW_TEST_FORMATS_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "formats/formats.h"

#define CORPUS "tests/fuzz/corpus/"

static char scratch[64];

static inline int scratch_make(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/lw_formats_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_remove(void **state)
{
    (void)state;
    return lw_remove_tree(scratch);
}

/* scratch/name in one of a few rotating buffers. */
static inline const char *in_scratch(const char *name)
{
    static char buf[4][160];
    static int at;
    at = (at + 1) % 4;
    snprintf(buf[at], sizeof buf[at], "%s/%s", scratch, name);
    return buf[at];
}

static inline void put_file(const char *path, const void *bytes, size_t n)
{
    assert_int_equal(lw_file_write(path, bytes, n), 0);
}

/* expr must fail with `code` and a message that holds `part`. */
#define assert_fails(code, part, expr)                                                       \
    do {                                                                                     \
        lw_errclear();                                                                       \
        int rc_ = (expr);                                                                    \
        if (rc_ != (code) || !strstr(lw_errmsg(), (part))) {                                 \
            print_error("%s: code %d (wanted %d), message '%s' (wanted '%s')\n", #expr, rc_, \
                        (code), lw_errmsg(), (part));                                        \
            fail();                                                                          \
        }                                                                                    \
    } while (0)
#define assert_ok(expr)                                                          \
    do {                                                                         \
        int rc_ = (expr);                                                        \
        if (rc_ != 0) {                                                          \
            print_error("%s: code %d, message '%s'\n", #expr, rc_, lw_errmsg()); \
            fail();                                                              \
        }                                                                        \
    } while (0)

#endif
