/* SPDX-License-Identifier: Apache-2.0 */
/* Features of all rows in a file of the cache: made once, found again, never believed when damaged. */
#include "unit/test_formats_util.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/data_features.h"

enum { ROWS = 1000 };
static const size_t row[] = {4 * 7, 2 * 3, 4 * 300};

static lw_features_spec spec_of(uint64_t key)
{
    static char dir[160];
    snprintf(dir, sizeof dir, "%s", in_scratch("cache"));
    return (lw_features_spec){.key = key,
                              .title = "numbers of a test",
                              .rows = ROWS,
                              .row = row,
                              .arrays = LW_COUNT(row),
                              .dir = dir,
                              .together = (int64_t)4 << 20};
}

/* Byte i of array k; self counts calls, or is what to fail with. */
static uint8_t byte_of(uint64_t k, size_t i)
{
    return (uint8_t)(i * 7 + i / 251 + k);
}

static int calls, fails_with;
static int make(void *self, void *const *array)
{
    (void)self;
    calls++;
    for (size_t k = 0; k < LW_COUNT(row); k++)
        for (size_t i = 0; i < ROWS * row[k]; i++)
            ((uint8_t *)array[k])[i] = byte_of(k, i);
    return fails_with ? lw_fail(fails_with, "the maker failed") : 0;
}

static void assert_numbers(const lw_features_file *f)
{
    for (size_t k = 0; k < LW_COUNT(row); k++) {
        assert_true((uintptr_t)f->array[k] % 64 == 0);
        for (size_t i = 0; i < ROWS * row[k]; i++)
            if (((const uint8_t *)f->array[k])[i] != byte_of(k, i))
                fail_msg("array %zu, byte %zu", k, i);
    }
}

static int count_files(void)
{
    char **names = NULL;
    size_t n = 0;
    int files = 0;
    assert_ok(lw_list_dir(in_scratch("cache"), &names, &n));
    for (size_t i = 0; i < n; i++)
        files += lw_str_ends(names[i], ".data");
    lw_list_free(&names, n);
    return files;
}

static void test_made_once(void **state)
{
    lw_features_spec s = spec_of(1);
    lw_features_file f = {0}, g = {0};
    lw_str path = {0};
    int64_t rows;
    char *title = NULL;
    (void)state;
    calls = 0;
    assert_int_equal(lw_features_open(&s, &f), 1);
    assert_ok(lw_features_keep(&s, make, NULL, &f));
    assert_numbers(&f);
    assert_ok(lw_features_keep(&s, make, NULL, &g));
    assert_numbers(&g);
    assert_int_equal(calls, 1);
    assert_true(lw_features_path(&s, &path) == f.map.size);
    assert_string_equal(lw_str_c(&path), in_scratch("cache/features-0000000000000001.data"));
    assert_ok(lw_features_look("f", f.map.data, f.map.size, &rows, &title));
    assert_true(rows == ROWS);
    assert_string_equal(title, "numbers of a test");
    lw_free(&title);
    lw_features_close(&f);
    lw_features_close(&g);
    s.rows--; /* never the numbers of something else */
    assert_fails(LW_EFORMAT, "features of something else", lw_features_open(&s, &f));
    lw_str_clear(&path);
}

/* Any byte of the file. */
static void test_damage(void **state)
{
    static const long at[] = {3, 9, 17, 40, 4096 + 77, 1000000, -1, -30};
    lw_features_spec s = spec_of(2);
    lw_str path = {0};
    (void)state;
    lw_features_path(&s, &path);
    for (size_t i = 0; i < LW_COUNT(at); i++) {
        lw_features_file f = {0};
        assert_ok(lw_features_keep(&s, make, NULL, &f));
        lw_features_close(&f);
        FILE *file = fopen(lw_str_c(&path), "r+b");
        assert_non_null(file);
        fseek(file, at[i], at[i] < 0 ? SEEK_END : SEEK_SET);
        int c = fgetc(file);
        fseek(file, at[i], at[i] < 0 ? SEEK_END : SEEK_SET);
        fputc(c ^ 0x10, file);
        fclose(file);
        int rc = lw_features_open(&s, &f);
        if (rc != LW_EFORMAT && !(at[i] == 9 && rc == LW_EUNSUPPORTED))
            fail_msg("byte %ld: %d", at[i], rc);
        calls = 0;
        assert_ok(lw_features_keep(&s, make, NULL, &f)); /* made again */
        assert_int_equal(calls, 1);
        assert_numbers(&f);
        lw_features_close(&f);
    }
    assert_int_equal(truncate(lw_str_c(&path), 5000), 0);
    lw_features_file f = {0};
    assert_fails(LW_EFORMAT, "5000 bytes, not", lw_features_open(&s, &f));
    lw_str_clear(&path);
}

/* Nothing is left of what was not finished; what cannot be on disk is no failure. */
static void test_not_kept(void **state)
{
    lw_features_spec s = spec_of(3);
    lw_features_file f = {0};
    int before = count_files();
    (void)state;
    fails_with = LW_ESTOPPED;
    assert_int_equal(lw_features_keep(&s, make, NULL, &f), LW_ESTOPPED);
    fails_with = 0;
    assert_int_equal(count_files(), before);
    assert_false(lw_path_exists(in_scratch("cache/features-0000000000000003.data.tmp")));
    calls = 0;
    s.together = 1000;
    assert_int_equal(lw_features_keep(&s, make, NULL, &f), 1);
    assert_non_null(strstr(lw_errmsg(), "more than the"));
    s.dir = "/proc/nowhere";
    s.together = (int64_t)1 << 30;
    assert_int_equal(lw_features_keep(&s, make, NULL, &f), 1);
    s.dir = "";
    assert_int_equal(lw_features_keep(&s, make, NULL, &f), 1);
    assert_int_equal(calls, 0);
}

/* Three fit: of four, the one longest unused goes. */
static void test_room(void **state)
{
    (void)state;
    assert_ok(lw_remove_tree(in_scratch("cache")));
    for (uint64_t key = 10; key < 13; key++) {
        lw_features_spec s = spec_of(key);
        lw_features_file f = {0};
        assert_ok(lw_features_keep(&s, make, NULL, &f));
        lw_features_close(&f);
        lw_sleep(0.01);
    }
    lw_features_spec first = spec_of(10), second = spec_of(11), fourth = spec_of(13);
    lw_features_file f = {0}, used = {0};
    assert_int_equal(count_files(), 3);
    assert_ok(lw_features_open(&second, &used));
    assert_ok(lw_features_open(&first, &f)); /* used: the second is the oldest but the third */
    lw_features_close(&f);
    lw_features_spec third = spec_of(12);
    assert_ok(lw_features_keep(&fourth, make, NULL, &f));
    lw_features_close(&f);
    assert_int_equal(count_files(), 3);
    assert_int_equal(lw_features_open(&third, &f), 1);
    assert_numbers(&used);
    lw_features_close(&used);
}

/* Of several processes one makes it. */
static void test_processes(void **state)
{
    enum { N = 4 };
    lw_features_spec s = spec_of(20);
    pid_t child[N];
    int made = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            lw_features_file f = {0};
            calls = 0;
            int rc = lw_features_keep(&s, make, NULL, &f);
            _exit(rc < 0 || rc == 1 ? 100 : calls);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        assert_true(waitpid(child[i], &status, 0) == child[i] && WIFEXITED(status));
        assert_true(WEXITSTATUS(status) < 100);
        made += WEXITSTATUS(status);
    }
    assert_int_equal(made, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_once), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_not_kept),  cmocka_unit_test(test_room),
        cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
