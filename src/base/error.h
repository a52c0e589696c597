/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One convention: `int` results, 0 or a negative LW_E*. The message is set once, at the cause, in a
 * thread-local buffer; callers pass the code on (LW_TRY) or add context (lw_fail_in).
 */
#ifndef LW_BASE_ERROR_H
#define LW_BASE_ERROR_H

enum {
    LW_OK = 0,
#define E(name, value, sentence, exit_code) LW_E##name = value,
#include "base/errors.def"
#undef E
};

/* LW_EIO for what the system answered in errno, LW_ENOMEM where it lacked memory. */
int lw_errno_code(int why);
/* Sets this thread's message and returns `code`: `return lw_fail(LW_EFORMAT, "%s: ...", path);`.
 * One line, whatever the arguments hold: control characters are escaped (lw_str_add_clean). */
int lw_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prefixes the current message with context ("while doing X: "), keeps and returns `code`. */
int lw_fail_in(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The last message of this thread; "" when none. Valid until the next lw_fail on this thread. */
const char *lw_errmsg(void);
void lw_errclear(void);
/* Sentence and documented process exit code of an error code. */
const char *lw_errname(int code);
int lw_exit_code(int code);

#define LW_TRY(expr)             \
    do {                         \
        int lw_try_rc_ = (expr); \
        if (lw_try_rc_ < 0)      \
            return lw_try_rc_;   \
    } while (0)

/* A bug of ours: always on, prints file:line and the message, aborts. */
#define LW_ASSERT(cond, ...)                                        \
    do {                                                            \
        if (__builtin_expect(!(cond), 0))                           \
            lw_assert_fail(__FILE__, __LINE__, #cond, __VA_ARGS__); \
    } while (0)
_Noreturn void lw_assert_fail(const char *file, int line, const char *cond, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL; ... *out = lw_steal(&plan); return 0; */
#define LW_CLEANUP(fn) __attribute__((cleanup(fn)))
#define lw_steal(pp)                           \
    __extension__({                            \
        __typeof__(*(pp)) lw_steal_p_ = *(pp); \
        *(pp) = NULL;                          \
        lw_steal_p_;                           \
    })

#endif
