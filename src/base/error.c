/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and the one message per thread. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { MESSAGE_BYTES = 2048 };

static _Thread_local char message[MESSAGE_BYTES];

typedef struct error_row {
    int code, exit_code;
    const char *sentence;
} error_row;

static const error_row rows[] = {
#define E(name, value, sentence, exit_code) {value, exit_code, sentence},
#include "base/errors.def"
#undef E
};

int lw_errno_code(int why)
{
    return why == ENOMEM ? LW_ENOMEM : LW_EIO;
}

int lw_fail(int code, const char *fmt, ...)
{
    char text[MESSAGE_BYTES]; /* the arguments may point into the old message */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lw_clean(message, sizeof message,
             text); /* names of files and what is in them may be anything */
    return code;
}

int lw_fail_in(int code, const char *fmt, ...)
{
    char raw[MESSAGE_BYTES], text[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    lw_clean(text, sizeof text, raw);
    size_t used = strlen(text), rest = strnlen(message, sizeof message - 1);
    if (rest > sizeof text - 1 - used)
        rest = sizeof text - 1 - used;
    memcpy(text + used, message, rest);
    text[used + rest] = '\0';
    memcpy(message, text, used + rest + 1);
    return code;
}

const char *lw_errmsg(void)
{
    return message;
}

void lw_errclear(void)
{
    message[0] = '\0';
}

static const error_row *row_of(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

const char *lw_errname(int code)
{
    if (code >= 0)
        return "ok";
    const error_row *row = row_of(code);
    return row ? row->sentence : "unknown error";
}

int lw_exit_code(int code)
{
    if (code >= 0)
        return 0;
    const error_row *row = row_of(code);
    return row ? row->exit_code : 1;
}

_Noreturn void lw_assert_fail(const char *file, int line, const char *cond, const char *fmt, ...)
{
    fprintf(stderr, "%s:%d: assertion '%s' failed: ", file, line, cond);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(stderr);
    abort();
}
