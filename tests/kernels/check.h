/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: is every fast kernel its reference? The shared part of the kernel tests.
 *
 *   static void sums(check *t) {
 *       for (int64_t n = 1; n < 70; n++) {
 *           float *x = check_in(t, n, n & 1, -1, 1);      random, misaligned for odd n
 *           float *got = check_out(t, n, n & 1);          poisoned with NaN
 *           double *want = check_doubles(t, n);
 *           ... fast kernel of level t->isa into got, reference into want ...
 *           check_close(t, got, want, n, (check_tol){.abs = 1e-6}, "n=%lld", (long long)n);
 *           check_next(t);                                canaries, then everything is freed
 *       }
 *   }
 *   int main(int argc, char **argv) {
 *       static const check_case cases[] = {{"sums", sums}};
 *       return check_main(argc, argv, "reduce", cases, LW_COUNT(cases));
 *   }
 *
 * Each case runs once per ISA level from ref to the machine's best. Options: --isa LEVEL (only this
 * one), --filter TEXT[,TEXT..] (cases whose family.case.isa contains one), --seed N. Buffers end at an
 * unmapped page, so a read past the end is a SIGSEGV that cmocka reports; the bytes before and the
 * gap behind are canaries. The largest error of each case is printed. Failures print both values
 * and the seed.
 */
#ifndef LW_TESTS_CHECK_H
#define LW_TESTS_CHECK_H

#include "base/base.h"

typedef struct check_buf check_buf;
typedef struct check {
    lw_isa isa; /* level under test */
    uint64_t seed;
    uint32_t draws;     /* random buffers and numbers handed out so far */
    double worst;       /* largest |got - want| / (abs + rel * |want|) so far */
    double worst_error; /* largest |got - want| so far */
    int64_t compared;   /* elements compared so far: a case that compares nothing fails */
    check_buf *bufs;
} check;

typedef void check_fn(check *t);
typedef struct check_case {
    const char *name;
    check_fn *fn;
} check_case;

/* Has this name one of the filter's texts, with commas between them, in it? An empty filter is in all names. */
bool check_chosen(const char *name, const char *filter);
/* When all names have been asked about: was one of the first 64 texts in none of them? Says which. */
bool check_unknown(const char *filter);

enum { CHECK_NO_CASE = 3 };
/* Parses options, runs everything, returns the process exit status: 0, 1 something failed, 2 usage,
 * CHECK_NO_CASE when the filter lets nothing through. */
int check_main(int argc, char **argv, const char *family, const check_case *cases, size_t n_cases);

/* n bytes ending at an unmapped page: 64-byte aligned (shift 0) or misaligned by whole floats
 * (shift 1). */
void *check_bytes(check *t, size_t n, int shift);
/* n uniform random floats in [lo, hi). */
float *check_in(check *t, int64_t n, int shift, double lo, double hi);
/* n floats poisoned with a NaN pattern. */
float *check_out(check *t, int64_t n, int shift);
/* n zeroed doubles. */
double *check_doubles(check *t, int64_t n);
/* A copy of n floats in a buffer of its own. */
float *check_copy(check *t, const float *from, int64_t n, int shift);
/* Random whole number in [0, n). */
uint32_t check_below(check *t, uint32_t n);

/* Passes where |got - want| <= abs + rel * |want|; equal infinities and NaN with NaN are equal. */
typedef struct check_tol {
    double abs, rel;
} check_tol;
void check_close(check *t, const float *got, const double *want, int64_t n, check_tol tol,
                 const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void check_close_f(check *t, const float *got, const float *want, int64_t n, check_tol tol,
                   const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Same bytes. */
void check_same(check *t, const void *got, const void *want, size_t bytes, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* n floats still hold the poison of check_out: nothing wrote into gaps between rows. */
void check_poisoned(check *t, const float *p, int64_t n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Verifies the canaries of all buffers and frees them. Called after each case too. */
void check_next(check *t);

#endif
