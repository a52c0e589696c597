/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of proof: knowledge bases from texts, a scratch dataset, failures. */
#ifndef LW_TEST_PROOF_UTIL_H
#define LW_TEST_PROOF_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "logic/logic.h"
#include "results.h"

static inline void same_file(const char *a, const char *b)
{
    LW_CLEANUP(lw_free) char *x = NULL, *y = NULL;
    size_t n, m;
    ok(lw_file_read(a, 0, &x, &n));
    ok(lw_file_read(b, 0, &y, &m));
    assert_true(n == m && memcmp(x, y, n) == 0);
}

static inline lw_kb *kb_of(const char *facts, const char *rules)
{
    lw_problems problems = {0};
    lw_kb *kb = NULL;
    const lw_kb_texts t = {lw_span_of(facts), lw_span_of(rules), {NULL, 0}};
    ok(lw_kb_parse(&t, &problems, &kb));
    lw_problems_clear(&problems);
    return kb;
}

static inline lw_atom atom_of(const lw_kb *kb, const char *text)
{
    lw_atom a = {0};
    ok(lw_kb_atom(kb, text, &a));
    return a;
}

/* "p(a,b), q(b,V1)" in a buffer that the next call but three takes again. */
static inline const char *text_of(const lw_kb *kb, const lw_atom *a, int32_t n)
{
    static char text[4][1024];
    static int at;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    at = (at + 1) % 4;
    lw_kb_print_atoms(kb, a, n, &s);
    snprintf(text[at], sizeof text[at], "%s", lw_str_c(&s));
    return text[at];
}

static inline const char *move_text(const lw_kb *kb, const lw_moves *m, int32_t k)
{
    return text_of(kb, m->atoms + m->first[k], m->first[k + 1] - m->first[k]);
}

#endif
