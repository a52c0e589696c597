/* SPDX-License-Identifier: Apache-2.0 */
/* check: buffers with canaries and guard pages, comparisons, and the run over cases and
 * ISA levels. */
#include "kernels/check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

enum { FRONT = 64, CANARY = 0xA5 };
static const uint32_t poison = 0x7FC0DEAD; /* a quiet NaN */

struct check_buf {
    check_buf *next;
    unsigned char *map, *data;
    size_t map_bytes, bytes; /* map_bytes without the guard page */
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *check_bytes(check *t, size_t n, int shift)
{
    size_t page = page_bytes(), mapped = LW_ROUND_UP(n + FRONT + 64, page);
    check_buf *b = calloc(1, sizeof *b);
    unsigned char *map = mmap(NULL, mapped + page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!b || map == MAP_FAILED || mprotect(map + mapped, page, PROT_NONE)) {
        fprintf(stderr, "check: cannot map %zu bytes\n", mapped);
        abort();
    }
    memset(map, CANARY, mapped);
    size_t at = mapped - n;
    if (shift) {
        at &= ~(size_t)3;
        at -= at % 64 == 0 ? 4 : 0;
    } else {
        at &= ~(size_t)63;
    }
    *b =
        (check_buf){.next = t->bufs, .map = map, .data = map + at, .map_bytes = mapped, .bytes = n};
    t->bufs = b;
    return b->data;
}

static uint32_t draw_word(check *t, uint64_t e)
{
    return lw_rng_word(lw_rng_key_of(t->seed, 1), t->draws, 0, e);
}

float *check_in(check *t, int64_t n, int shift, double lo, double hi)
{
    float *p = check_bytes(t, (size_t)n * sizeof *p, shift);
    t->draws++;
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)(lo + (hi - lo) * (double)(draw_word(t, (uint64_t)i) >> 8) * 0x1p-24);
    return p;
}

float *check_out(check *t, int64_t n, int shift)
{
    float *p = check_bytes(t, (size_t)n * sizeof *p, shift);
    for (int64_t i = 0; i < n; i++)
        memcpy(p + i, &poison, sizeof poison);
    return p;
}

double *check_doubles(check *t, int64_t n)
{
    double *p = check_bytes(t, (size_t)n * sizeof *p, 0);
    memset(p, 0, (size_t)n * sizeof *p);
    return p;
}

float *check_copy(check *t, const float *from, int64_t n, int shift)
{
    float *p = check_bytes(t, (size_t)n * sizeof *p, shift);
    memcpy(p, from, (size_t)n * sizeof *p);
    return p;
}

uint32_t check_below(check *t, uint32_t n)
{
    t->draws++;
    return draw_word(t, 0) % n;
}

/* Ends the case: what was wrong, at which sizes, with which seed. */
static void report(check *t, const char *what, const char *fmt, va_list ap)
{
    char sizes[256];
    vsnprintf(sizes, sizeof sizes, fmt, ap);
    fail_msg("%s [%s, %s, --seed %llu]", what, lw_isa_name(t->isa), sizes,
             (unsigned long long)t->seed);
}

static bool element_ok(check *t, double got, double want, check_tol tol)
{
    t->compared++;
    if (isnan(want) || isinf(want) || isnan(got) || isinf(got))
        return isnan(want) ? isnan(got) : got == want;
    double error = fabs(got - want), allowed = tol.abs + tol.rel * fabs(want);
    t->worst_error = LW_MAX(t->worst_error, error);
    if (error > 0.0)
        t->worst = LW_MAX(t->worst, allowed > 0.0 ? error / allowed : HUGE_VAL);
    return error <= allowed;
}

static void compare(check *t, const float *got, const double *want, const float *want_f, int64_t n,
                    check_tol tol, const char *fmt, va_list ap)
{
    for (int64_t i = 0; i < n; i++) {
        double w = want ? want[i] : (double)want_f[i];
        if (element_ok(t, (double)got[i], w, tol))
            continue;
        char what[160];
        snprintf(what, sizeof what, "element %lld of %lld: got %.9g, want %.9g, error %.3g",
                 (long long)i, (long long)n, (double)got[i], w, fabs((double)got[i] - w));
        report(t, what, fmt, ap);
    }
}

void check_close(check *t, const float *got, const double *want, int64_t n, check_tol tol,
                 const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    compare(t, got, want, NULL, n, tol, fmt, ap);
    va_end(ap);
}

void check_close_f(check *t, const float *got, const float *want, int64_t n, check_tol tol,
                   const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    compare(t, got, NULL, want, n, tol, fmt, ap);
    va_end(ap);
}

void check_same(check *t, const void *got, const void *want, size_t bytes, const char *fmt, ...)
{
    const unsigned char *g = got, *w = want;
    va_list ap;
    va_start(ap, fmt);
    t->compared++;
    for (size_t i = 0; i < bytes; i++) {
        if (g[i] == w[i])
            continue;
        char what[120];
        snprintf(what, sizeof what, "byte %zu of %zu differs: got %02x, want %02x", i, bytes, g[i],
                 w[i]);
        report(t, what, fmt, ap);
    }
    va_end(ap);
}

void check_poisoned(check *t, const float *p, int64_t n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    for (int64_t i = 0; i < n; i++) {
        if (!memcmp(p + i, &poison, sizeof poison))
            continue;
        char what[120];
        snprintf(what, sizeof what, "a gap was written at float %lld: %.9g", (long long)i,
                 (double)p[i]);
        report(t, what, fmt, ap);
    }
    va_end(ap);
}

static bool is_canary(const unsigned char *from, const unsigned char *to)
{
    while (from < to)
        if (*from++ != CANARY)
            return false;
    return true;
}

static void free_all(check *t, bool *intact)
{
    *intact = true;
    for (check_buf *b = t->bufs, *next; b; b = next) {
        next = b->next;
        *intact = *intact && is_canary(b->data - FRONT, b->data) &&
                  is_canary(b->data + b->bytes, b->map + b->map_bytes);
        munmap(b->map, b->map_bytes + page_bytes());
        free(b);
    }
    t->bufs = NULL;
}

void check_next(check *t)
{
    bool intact;
    free_all(t, &intact);
    if (!intact)
        fail_msg("bytes outside a buffer were written [%s, --seed %llu]", lw_isa_name(t->isa),
                 (unsigned long long)t->seed);
}

typedef struct check_run {
    const check_case *c;
    check t;
} check_run;

static void run_case(void **state)
{
    check_run *r = *state;
    r->c->fn(&r->t);
    check_next(&r->t);
    if (!r->t.compared)
        fail_msg("the case compared nothing");
    print_message("  %-28s %-7s %10lld elements, max error %.3g (%.2f of the tolerance)\n",
                  r->c->name, lw_isa_name(r->t.isa), (long long)r->t.compared, r->t.worst_error,
                  r->t.worst);
}

static int teardown_case(void **state)
{
    check_run *r = *state;
    bool intact;
    free_all(&r->t, &intact);
    return 0;
}

static uint64_t found; /* the filter's texts, in order, that a name had in it */

bool check_chosen(const char *name, const char *filter)
{
    char part[96];
    bool chosen = !*filter;
    for (uint64_t bit = 1; *filter; filter += *filter == ',', bit <<= 1) {
        size_t n = strcspn(filter, ",");
        snprintf(part, sizeof part, "%.*s", (int)n, filter);
        if (n > 0 && n < sizeof part && strstr(name, part)) {
            chosen = true;
            found |= bit;
        }
        filter += n;
    }
    return chosen;
}

bool check_unknown(const char *filter)
{
    bool unknown = false;
    for (uint64_t bit = 1; bit && *filter; filter += *filter == ',', bit <<= 1) {
        size_t n = strcspn(filter, ",");
        const bool lost = n > 0 && !(found & bit);
        if (lost)
            fprintf(stderr, "leeway check: --filter: no case has '%.*s' in its name\n", (int)n,
                    filter);
        unknown |= lost;
        filter += n;
    }
    return unknown;
}

typedef struct check_options {
    int isa; /* -1: all */
    const char *filter;
    uint64_t seed;
} check_options;

static int parse(int argc, char **argv, check_options *o)
{
    *o = (check_options){.isa = -1, .filter = ""}; /* seed 0, as leeway check has it */
    for (int i = 1; i + 1 < argc; i += 2) {
        if (lw_str_eq(argv[i], "--filter")) {
            o->filter = argv[i + 1];
        } else if (lw_str_eq(argv[i], "--seed")) {
            o->seed = strtoull(argv[i + 1], NULL, 10);
        } else if (lw_str_eq(argv[i], "--isa")) {
            for (int l = 0; l < LW_ISA_COUNT; l++)
                if (lw_str_eq(argv[i + 1], lw_isa_name((lw_isa)l)))
                    o->isa = l;
            if (o->isa < 0 || !lw_isa_has((lw_isa)o->isa))
                return -1;
        } else {
            return -1;
        }
    }
    return argc % 2 ? 0 : -1;
}

int check_main(int argc, char **argv, const char *family, const check_case *cases, size_t n_cases)
{
    check_options o;
    if (parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: %s [--isa " LW_ISA_NAMES
                "] [--filter TEXT[,TEXT..]] [--seed N] (levels this machine has)\n",
                argv[0]);
        return 2;
    }
    size_t most = n_cases * LW_ISA_COUNT, n = 0;
    check_run *runs = calloc(most, sizeof *runs);
    struct CMUnitTest *tests = calloc(most, sizeof *tests);
    char(*names)[96] = calloc(most, sizeof *names);
    for (int l = 0; l < LW_ISA_COUNT && runs && tests && names; l = lw_isa_next((lw_isa)l)) {
        for (size_t i = 0; i < n_cases; i++) {
            snprintf(names[n], sizeof names[n], "%s.%s.%s", family, cases[i].name,
                     lw_isa_name((lw_isa)l));
            const bool chosen = check_chosen(names[n], o.filter);
            if (!chosen || (o.isa >= 0 && l != o.isa))
                continue;
            runs[n] = (check_run){.c = &cases[i], .t = {.isa = (lw_isa)l, .seed = o.seed}};
            tests[n] = (struct CMUnitTest){.name = names[n],
                                           .test_func = run_case,
                                           .teardown_func = teardown_case,
                                           .initial_state = &runs[n]};
            n++;
        }
    }
    int failed = n ? _cmocka_run_group_tests(family, tests, n, NULL, NULL) : 0;
    free(runs);
    free(tests);
    free(names);
    return !n ? CHECK_NO_CASE : failed ? 1 : 0;
}
