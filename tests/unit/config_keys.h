/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of configurations in diffusers' keys: every key is computed as diffusers does, or
 * refused by name; none is passed over.
 */
#ifndef LW_TESTS_CONFIG_KEYS_H
#define LW_TESTS_CONFIG_KEYS_H

#include <string.h>

#include "base/base.h"

/* A key, the JSON types it may have (i n b s a 0: integer, number, boolean, string, array, null), a
 * value other than ours, and what becomes of that. */
typedef enum config_fate { KEPT, NO_EFFECT, REFUSED } config_fate;
typedef struct config_row {
    const char *key, *types, *other;
    config_fate fate;
} config_row;

/* Reads a good configuration ("config.json") with one key set to a value (JSON text). */
typedef int config_reader(const char *key, const char *value);

static void expect_refused(config_reader *read, const char *key, const char *value)
{
    int rc = read(key, value);
    if (rc == 0)
        fail_msg("'%s': %s is passed over", key, value);
    assert_int_equal(lw_exit_code(rc), 3);
    if (!strstr(lw_errmsg(), "config.json"))
        fail_msg("'%s': %s: the message does not name the file: %s", key, value, lw_errmsg());
}

/* Every key with a value of every JSON type that it may not have. */
static void check_types(config_reader *read, const config_row *rows, size_t n)
{
    static const struct {
        const char *value, *types;
    } samples[] = {{"3", "in"},  {"1.5", "n"},  {"true", "b"}, {"\"word\"", "s"},
                   {"[4]", "a"}, {"null", "0"}, {"{}", ""}};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < LW_COUNT(samples); k++) {
            char quoted[64];
            if (strpbrk(rows[i].types, *samples[k].types ? samples[k].types : " "))
                continue;
            expect_refused(read, rows[i].key, samples[k].value);
            snprintf(quoted, sizeof quoted, "'%s' must be", rows[i].key);
            if (!strstr(lw_errmsg(), quoted))
                fail_msg("%s, not by name: %s", rows[i].key, lw_errmsg());
        }
}

/* The rows have every key of diffusers' classes (words that follow one another in `classes`), and
 * no others. */
static void check_listed(const config_row *rows, size_t n, const char *classes)
{
    char *text = NULL, *save = NULL;
    bool seen[128] = {false};
    size_t found = 0;
    assert_true(n <= LW_COUNT(seen));
    assert_ok(lw_file_read("tests/golden/diffusers_keys.txt", 0, &text, NULL));
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        char *key = strchr(l, ' ');
        *key++ = '\0';
        if (!strstr(classes, l))
            continue;
        bool have = false;
        for (size_t i = 0; i < n; i++)
            if (strcmp(rows[i].key, key) == 0)
                have = seen[i] = true;
        if (!have)
            fail_msg("no row for %s", key);
        found++;
    }
    assert_true(found > 10);
    for (size_t i = 0; i < n; i++)
        if (!seen[i])
            fail_msg("%s is not a key of diffusers", rows[i].key);
    lw_free(&text);
}

#endif
