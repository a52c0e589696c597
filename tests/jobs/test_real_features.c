/* SPDX-License-Identifier: Apache-2.0 */
/* Features of real pictures on disk: the bits that are computed, found again by later runs. */
#include "jobs/train_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN TINY_DRIFT " --encoder features --no-flip --steps 2"

static int count_files(void)
{
    char **names = NULL;
    size_t n = 0;
    int files = 0;
    assert_int_equal(lw_list_dir("cache", &names, &n), 0);
    for (size_t i = 0; i < n; i++)
        files += lw_str_starts(names[i], "features-") && lw_str_ends(names[i], ".data");
    lw_list_free(&names, n);
    return files;
}

static int enter(void **state)
{
    int rc = lab_enter(state);
    lab_env = "LW_CACHE=cache";
    lab_expect(0, TINY_ENCODER " --steps 2 --output-dir features");
    return rc;
}

/* Whether features are encoded in every step, kept in memory, written to disk or found there. */
static void test_found_again(void **state)
{
    (void)state;
    lab_expect(0, RUN " --dry-run --output-dir dry");
    assert_non_null(strstr(lab_out, "pictures, kept on disk as features-"));
    assert_non_null(strstr(lab_out, ".data, to be made ("));
    assert_non_null(strstr(lab_out, " free)"));
    assert_int_equal(count_files(), 0);
    lab_expect(0, RUN " --feature-cache 1 --output-dir each_step");
    lab_expect(0, RUN " --feature-disk 0 --output-dir memory");
    assert_non_null(strstr(lab_err, "pictures, kept in memory"));
    assert_int_equal(count_files(), 0);
    lab_expect(0, RUN " --output-dir first");
    assert_non_null(strstr(lab_err, "to be made"));
    assert_int_equal(count_files(), 1);
    lab_expect(0, RUN " --output-dir second --threads 1");
    assert_non_null(strstr(lab_err, "made before"));
    assert_int_equal(count_files(), 1);
    lab_same_checkpoint("each_step", "memory");
    lab_same_checkpoint("each_step", "first");
    lab_same_checkpoint("each_step", "second");
}

/* Other numbers are never taken for these. */
static void test_told_apart(void **state)
{
    (void)state;
    static const char *const other[] = {"--feature-keys s1.mean,pix",
                                        "--feature-keys pix,s1.mean",
                                        "--feature-type bf16",
                                        "--limit 255",
                                        "--encoder more",
                                        "--conv direct",
                                        "--precision bf16"};
    int files = count_files();
    lab_expect(0, TINY_ENCODER " --steps 3 --output-dir more");
    for (size_t i = 0; i < LW_COUNT(other); i++) {
        lab_expect(0, RUN " --dry-run --output-dir dry %s", other[i]);
        assert_non_null(strstr(lab_out, "to be made"));
    }
    lab_expect(0, RUN " --dry-run --output-dir dry --groups 1 --seed 9"); /* not of the features */
    assert_non_null(strstr(lab_out, "made before"));
    assert_int_equal(count_files(), files);
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(count_files(), 1);
    lab_expect(0, RUN " --feature-disk 1 --output-dir full");
    assert_non_null(strstr(lab_err, "pictures, kept in memory"));
    lab_expect(0, RUN " --feature-keys s1.loc,pix --feature-disk 3 --output-dir other");
    assert_int_equal(count_files(), 1); /* the first made room */
    lab_expect(0, RUN " --dry-run --output-dir dry");
    assert_non_null(strstr(lab_out, "to be made"));
    lab_same_checkpoint("full", "first");
}

/* Listed and cleared with the decoded pictures. */
static void test_listed_and_cleared(void **state)
{
    (void)state;
    lab_expect(0, "data cache list");
    assert_non_null(strstr(lab_out, "features of synth:16 train pictures of 16x16 by leeway of "));
    assert_non_null(strstr(lab_out, ": s1.loc pix, of 256 pictures"));
    lab_expect(0, "data cache list --json");
    assert_non_null(strstr(lab_out, "features-"));
    assert_int_equal(lw_file_write("cache/features-00000000000000aa.data", "precious", 8), 0);
    lab_expect(0, "data cache clear");
    assert_int_equal(count_files(), 1); /* named so, and no such file */
    lab_expect(0, RUN " --dry-run --output-dir dry");
    assert_non_null(strstr(lab_out, "to be made"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_again),
        cmocka_unit_test(test_told_apart),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_listed_and_cleared),
    };
    return cmocka_run_group_tests(tests, enter, lab_leave);
}
