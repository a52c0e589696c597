/* SPDX-License-Identifier: Apache-2.0 */
/* base: errors, memory, strings, log. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void error_message_is_set_once_and_prefixed(void **state)
{
    (void)state;
    assert_int_equal(lw_fail(LW_EFORMAT, "%s: %d bytes", "a.npy", 7), LW_EFORMAT);
    assert_string_equal(lw_errmsg(), "a.npy: 7 bytes");
    assert_int_equal(lw_fail_in(LW_EIO, "loading %s: ", "run"), LW_EIO);
    assert_string_equal(lw_errmsg(), "loading run: a.npy: 7 bytes");
    lw_fail(LW_EIO, "again: %s", lw_errmsg()); /* the argument is the old message itself */
    assert_string_equal(lw_errmsg(), "again: loading run: a.npy: 7 bytes");
    lw_errclear();
    assert_string_equal(lw_errmsg(), "");
}

static void long_messages_are_cut_not_overrun(void **state)
{
    (void)state;
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    lw_fail(LW_EIO, "%s", big);
    lw_fail_in(LW_EIO, "%s", big);
    size_t n = strlen(lw_errmsg());
    assert_in_range(n, 1000, 4000);
    lw_errclear();
}

static void exit_codes_are_the_documented_ones(void **state)
{
    (void)state;
    static const struct {
        int code, exit_code;
    } expected[] = {{0, 0},         {LW_EFAILED, 1},   {LW_EUSAGE, 2},  {LW_EFORMAT, 3},
                    {LW_EIO, 4},    {LW_ENOMEM, 5},    {LW_EDEVICE, 6}, {LW_ENUMERIC, 7},
                    {LW_ESHAPE, 3}, {LW_ESTOPPED, 130}};
    for (size_t i = 0; i < LW_COUNT(expected); i++)
        assert_int_equal(lw_exit_code(expected[i].code), expected[i].exit_code);
    assert_string_equal(lw_errname(LW_ENUMERIC), "numerical failure");
}

/* A host of the library lives on after a failed allocation: what fails next has its own name. */
static void a_failed_allocation_names_nothing_else(void **state)
{
    (void)state;
    assert_null(lw_bulk_alloc(SIZE_MAX));
    assert_non_null(strstr(lw_errmsg(), "no memory for a block of"));
    assert_true(lw_alloc_failed_bytes() == SIZE_MAX);
    assert_int_equal(lw_fail(LW_EFORMAT, "%s: bad", "a.npy"), LW_EFORMAT);
    assert_string_equal(lw_errmsg(), "a.npy: bad");
    errno = ENOMEM; /* left behind by it */
    assert_int_equal(lw_fail(LW_EIO, "%s: short", "a.npy"), LW_EIO);
    assert_int_equal(lw_errno_code(ENOMEM), LW_ENOMEM);
    assert_int_equal(lw_errno_code(ENOENT), LW_EIO);
    lw_errclear();
}

static void grow_keeps_content_and_zeroes_the_rest(void **state)
{
    (void)state;
    int *p = NULL;
    size_t cap = 0;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(lw_grow(&p, &cap, (size_t)i + 1, sizeof *p), 0);
        assert_int_equal(p[i], 0);
        p[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(p[i], i);
    assert_int_equal(lw_grow(&p, &cap, SIZE_MAX / 2, sizeof *p), LW_ENOMEM);
    assert_int_equal(p[999], 999); /* untouched on failure */
    lw_free(&p);
    assert_null(p);
    lw_free(&p); /* accepts NULL inside */
}

static void calloc_refuses_overflow(void **state)
{
    (void)state;
    lw_errclear();
    assert_null(lw_calloc(SIZE_MAX / 4, 8));
    assert_string_not_equal(lw_errmsg(), "");
    size_t out = 5;
    assert_false(lw_mul_size(SIZE_MAX / 2, 3, &out));
    assert_int_equal(out, 5);
    assert_true(lw_mul_size(6, 7, &out));
    assert_int_equal(out, 42);
}

static void bulk_blocks_are_aligned_zeroed_and_counted(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 4096, (4u << 20) - 1, 4u << 20, (9u << 20) + 3};
    for (size_t i = 0; i < LW_COUNT(sizes); i++) {
        uint64_t before = lw_alloc_count();
        unsigned char *p = lw_bulk_alloc(sizes[i]);
        assert_non_null(p);
        assert_int_equal(lw_alloc_count(), before + 1);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t k = 0; k < sizes[i]; k += 1 + k / 64)
            assert_int_equal(p[k], 0);
        if (sizes[i] > 0)
            p[0] = p[sizes[i] - 1] = 1;
        lw_bulk_free(&p, sizes[i]);
        assert_null(p);
    }
    assert_null(lw_bulk_alloc(SIZE_MAX));
}

static void arena_hands_out_zeroed_aligned_memory(void **state)
{
    (void)state;
    LW_CLEANUP(lw_arena_free) lw_arena *a = NULL;
    assert_int_equal(lw_arena_new(&a), 0);
    for (size_t n = 0; n < 3000; n += 7) {
        unsigned char *p = lw_arena_alloc(a, n);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, n);
    }
    void *large = lw_arena_alloc(a, 5u << 20); /* larger than any chunk, and all of it there */
    assert_non_null(large);
    memset(large, 0xff, 5u << 20);
    assert_true(lw_arena_bytes(a) >= 5u << 20);
    char *s = lw_arena_strdup(a, "conv_in.weight");
    char *t = lw_arena_printf(a, "%s[%d]", s, 3);
    assert_string_equal(s, "conv_in.weight");
    assert_string_equal(t, "conv_in.weight[3]");
    assert_null(lw_arena_alloc(a, SIZE_MAX));
}

static void strings_grow(void **state)
{
    (void)state;
    lw_str s = {0};
    assert_string_equal(lw_str_c(&s), "");
    for (int i = 0; i < 200; i++)
        lw_str_addf(&s, "%d,", i);
    lw_str_add(&s, "end");
    lw_str_add_n(&s, "!?", 1);
    assert_false(s.failed);
    assert_int_equal(s.len, strlen(lw_str_c(&s)));
    assert_true(lw_str_starts(lw_str_c(&s), "0,1,2,"));
    assert_true(lw_str_ends(lw_str_c(&s), "199,end!"));
    lw_str_clear(&s);
    assert_int_equal(s.len, 0);
    lw_str_add(&s, "a");
    lw_str_add_n(&s, "b", SIZE_MAX); /* what could not be added is said for good */
    lw_str_add(&s, "c");
    assert_true(s.failed);
    assert_string_equal(lw_str_c(&s), "a");
    lw_str_clear(&s);
}

static void texts_are_compared_whole(void **state)
{
    (void)state;
    size_t n;
    assert_true(lw_str_ends(".npy", ".npy"));
    assert_false(lw_str_ends("npy", ".npy"));
    assert_true(lw_str_eq("a", "a"));
    assert_false(lw_str_eq("a", NULL) || lw_str_eq(NULL, "a") || lw_str_eq(NULL, NULL));
    static const char choices[] = "one|three\0not|this";
    assert_true(lw_str_choice(choices, 0, &n) == choices && n == 3);
    assert_true(lw_str_choice(choices, 1, &n) == choices + 4 && n == 5);
    for (int32_t i = 2; i < 4; i++) /* there are two */
        assert_true(*lw_str_choice(choices, i, &n) == '\0' && n == 0);
}

static void words_of_a_list_come_in_turn(void **state)
{
    (void)state;
    static const char text[] = "a,,ccc,";
    const char *rest = text, *none = NULL, *empty = "";
    size_t n;
    assert_true(lw_str_word(&rest, ',', &n) == text && n == 1);
    assert_true(lw_str_word(&rest, ',', &n) == text + 2 && n == 0);
    assert_true(lw_str_word(&rest, ',', &n) == text + 3 && n == 3);
    for (int again = 0; again < 2; again++)
        assert_true(lw_str_word(&rest, ',', &n) == NULL && n == 0);
    assert_null(lw_str_word(&none, ',', &n));
    assert_null(lw_str_word(&empty, ',', &n));
    assert_int_equal(lw_str_index(text, ',', "cccc", 3), 2);
    assert_int_equal(lw_str_index(text, ',', "", 0), 1);
    assert_int_equal(lw_str_index(text, ',', "cc", 2), -1);
    assert_int_equal(lw_str_index(text, '|', text, sizeof text - 1), 0);
}

static void text_for_terminals_is_clean(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *clean;
    } cases[] = {
        {"plain: 50 % of C:\\x \"y\"", "plain: 50 % of C:\\x \"y\""},
        {"Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80",
         "Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\033]0;title\a\n\t\r\177", "\\x1b]0;title\\x07\\n\\t\\r\\x7f"},
        {"\xc2\x9b"
         "2J",
         "\\xc2\\x9b"
         "2J"}, /* a C1 control sequence */
        {"\xc2\xa0\xc2", "\xc2\xa0\\xc2"},
        {"\xff\xc0\xaf\xed\xa0\x80", "\\xff\\xc0\\xaf\\xed\\xa0\\x80"},
        {"a\xe2\x80\xae"
         "b\xe2\x81\xa6\xe2\x80\xa8",
         "a\\xe2\\x80\\xae"
         "b\\xe2\\x81\\xa6\\xe2\\x80\\xa8"},
        {"\xe2\x81\xa9", "\\xe2\\x81\\xa9"},
        {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"}, /* longer than needed, or beyond the last plane */
        {"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
        {"", ""}};
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        LW_CLEANUP(lw_str_clear) lw_str once = {0}, twice = {0};
        char buf[128];
        lw_str_add_clean(&once, cases[i].raw, "");
        assert_string_equal(lw_str_c(&once), cases[i].clean);
        lw_str_add_clean(&twice, lw_str_c(&once), "");
        assert_string_equal(lw_str_c(&twice), cases[i].clean);
        lw_clean(buf, sizeof buf, cases[i].raw);
        assert_string_equal(buf, cases[i].clean);
        assert_int_equal(lw_fail(LW_EIO, "%s", cases[i].raw), LW_EIO);
        assert_string_equal(lw_errmsg(), cases[i].clean);
        lw_fail_in(LW_EIO, "%s", cases[i].raw);
        assert_int_equal(strlen(lw_errmsg()), 2 * strlen(cases[i].clean));
    }
    assert_int_equal(lw_utf8_size((const unsigned char *)"\xe2\x82\xac", 3), 3);
    assert_int_equal(lw_utf8_size((const unsigned char *)"\xe2\x82\xac", 2), 0);
    assert_int_equal(lw_utf8_length("Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80"), 10);
    LW_CLEANUP(lw_str_clear) lw_str lines = {0};
    lw_str_add_clean(&lines, "a\nb\033\tc\n", "\n");
    assert_string_equal(lw_str_c(&lines), "a\nb\\x1b\\tc\n");
    char small[6];
    lw_clean(small, sizeof small, "ab\033cd"); /* never half an escape */
    assert_string_equal(small, "ab");
    lw_errclear();
}

static void edit_distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(lw_str_distance("", ""), 0);
    assert_int_equal(lw_str_distance("abc", ""), 3);
    assert_int_equal(lw_str_distance("batch-size", "batch-size"), 0);
    assert_int_equal(lw_str_distance("batchsize", "batch-size"), 1);
    assert_int_equal(lw_str_distance("kitten", "sitting"), 3);
    assert_int_equal(lw_str_distance("sitting", "kitten"), 3);
}

static void hashes_are_stable_and_spread(void **state)
{
    (void)state;
    /* FNV-1a 64 of "" and "a" finished with murmur3's fmix64, computed apart from this code. */
    assert_true(lw_hash_name("") == 0xefd01f60ba992926u);
    assert_true(lw_hash_name("a") == 0x82a2a958a9bece5bu);
    assert_true(lw_hash_name("a") != lw_hash_name("b"));
    assert_true(lw_hash64("ab\0c", 4) != lw_hash64("ab", 2));
}

static void numbers_parse_whole_strings_only(void **state)
{
    (void)state;
    int64_t i = 77;
    double f = 77.0;
    static const char *const not_int[] = {
        "", "-", " 1", "1 ", "1.0", "0x10", "9223372036854775808"};
    for (size_t k = 0; k < LW_COUNT(not_int); k++)
        assert_int_equal(lw_parse_i64(not_int[k], &i), LW_EUSAGE);
    assert_int_equal(i, 77);
    assert_int_equal(lw_parse_i64("-9223372036854775808", &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(lw_parse_i64("+12", &i), 0);
    assert_int_equal(i, 12);
    static const char *const not_num[] = {"",   ".",  "nan", "0x1p3", "1e",
                                          " 1", "1 ", "1,5", "1e999"};
    for (size_t k = 0; k < LW_COUNT(not_num); k++)
        assert_int_equal(lw_parse_f64(not_num[k], &f), LW_EUSAGE);
    assert_true(f == 77.0);
    assert_int_equal(lw_parse_f64("2e-4", &f), 0);
    assert_true(f == 2e-4);
    assert_int_equal(lw_parse_f64("-.5", &f), 0);
    assert_true(f == -0.5);
    assert_int_equal(lw_parse_f64("1e-400", &f), 0); /* too small is small */
    assert_true(f == 0.0);
}

static void sizes_and_times_read_well(void **state)
{
    (void)state;
    char b[32];
    assert_string_equal(lw_fmt_bytes(b, 17), "17 B");
    assert_string_equal(lw_fmt_bytes(b, 1536), "1.5 KiB");
    assert_string_equal(lw_fmt_bytes(b, (uint64_t)3 << 30), "3.0 GiB");
    assert_string_equal(lw_fmt_bytes(b, (1 << 20) - 1), "1.0 MiB"); /* as it is rounded */
    assert_string_equal(lw_fmt_bytes(b, UINT64_MAX), "16.0 EiB");
    assert_string_equal(lw_fmt_time(b, 0.0000125), "12.5 us");
    assert_string_equal(lw_fmt_time(b, 0.25), "250 ms");
    assert_string_equal(lw_fmt_time(b, 0.0007804), "780 us");
    assert_string_equal(lw_fmt_time(b, 0.0009996), "1 ms");
    assert_string_equal(lw_fmt_time(b, 0.9996), "1s");
    assert_string_equal(lw_fmt_time(b, 2.114), "2.11s");
    assert_string_equal(lw_fmt_time(b, 12.34), "12.3s");
    assert_string_equal(lw_fmt_time(b, 59.97), "1m 00s");
    assert_string_equal(lw_fmt_time(b, 125), "2m 05s");
    assert_string_equal(lw_fmt_time(b, 3600), "1h 00m");
    assert_string_equal(lw_fmt_time(b, 3 * 3600 + 25 * 60), "3h 25m");
    assert_string_equal(lw_fmt_time(b, -1), "?");
    assert_string_equal(lw_fmt_time(b, 2e9), "?");
    assert_string_equal(lw_f64_text(b, 5e-324), "4.94065645841247e-324"); /* no digit too many */
    assert_string_equal(lw_f64_text(b, 0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(lw_f64_text(b, -(double)INFINITY), "-inf");
}

static bool close_to(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void samples_are_summed_up(void **state)
{
    (void)state;
    const double v[] = {10, 2, 4, 1, 3};
    lw_summary s = lw_summarize(v, 5);
    assert_true(s.min == 1 && s.p50 == 3 && s.mean == 4 && s.mad == 1);
    assert_true(close_to(s.std, sqrt(12.5)) && close_to(s.p10, 1.4) && close_to(s.p90, 7.6));
    assert_true(close_to(s.p95, 8.8) && close_to(s.p99, 9.76));
    s = lw_summarize(v, 1); /* one sample has no spread to tell */
    assert_true(s.min == 10 && s.p99 == 10 && s.mad == 0 && isnan(s.std));
    s = lw_summarize(v, 0);
    assert_true(s.n == 0 && isnan(s.p50));
    assert_true(lw_quantile(v, 5, 1.0) == 3);
    assert_true(isnan(lw_quantile(v, 0, 0.5)));
}

static void log_levels_go_by_area(void **state)
{
    (void)state;
    assert_int_equal(lw_log_config("info,profile=debug,data=error"), 0);
    assert_true(lw_log_on(LW_LOG_INFO, "train"));
    assert_false(lw_log_on(LW_LOG_DEBUG, "train"));
    assert_true(lw_log_on(LW_LOG_DEBUG, "profile"));
    assert_false(lw_log_on(LW_LOG_WARN, "data"));
    assert_int_equal(lw_log_config("loud"), LW_EUSAGE);
    assert_int_equal(lw_log_config("data=loud"), LW_EUSAGE);
    assert_int_equal(lw_log_config("plan=debug"), LW_EUSAGE); /* no such area */
    assert_non_null(strstr(lw_errmsg(), "profile"));
    assert_int_equal(lw_log_config("dat=debug"), LW_EUSAGE);
    assert_int_equal(lw_log_config("=debug"), LW_EUSAGE);
    lw_log_set(LW_LOG_WARN);
    assert_false(lw_log_on(LW_LOG_INFO, "train"));
    assert_true(lw_log_on(LW_LOG_DEBUG, "profile"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_message_is_set_once_and_prefixed),
        cmocka_unit_test(long_messages_are_cut_not_overrun),
        cmocka_unit_test(exit_codes_are_the_documented_ones),
        cmocka_unit_test(a_failed_allocation_names_nothing_else),
        cmocka_unit_test(grow_keeps_content_and_zeroes_the_rest),
        cmocka_unit_test(calloc_refuses_overflow),
        cmocka_unit_test(bulk_blocks_are_aligned_zeroed_and_counted),
        cmocka_unit_test(arena_hands_out_zeroed_aligned_memory),
        cmocka_unit_test(strings_grow),
        cmocka_unit_test(texts_are_compared_whole),
        cmocka_unit_test(words_of_a_list_come_in_turn),
        cmocka_unit_test(text_for_terminals_is_clean),
        cmocka_unit_test(edit_distance_counts_edits),
        cmocka_unit_test(hashes_are_stable_and_spread),
        cmocka_unit_test(numbers_parse_whole_strings_only),
        cmocka_unit_test(sizes_and_times_read_well),
        cmocka_unit_test(samples_are_summed_up),
        cmocka_unit_test(log_levels_go_by_area),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
