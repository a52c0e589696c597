/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the data tests: a scratch folder, small fake datasets, expected failures. */
#ifndef TEST_DATA_UTIL_H
#define TEST_DATA_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "data/data.h"
#include "results.h"

static char scratch[64]; /* the folder of this test program */

static int scratch_make(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/lw-test-data-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int scratch_remove(void **state)
{
    (void)state;
    return lw_remove_tree(scratch);
}

/* scratch/a/b... in one of four static buffers. */
__attribute__((unused)) static const char *in_scratch(const char *name)
{
    static char buf[4][512];
    static int k;
    k = (k + 1) % 4;
    snprintf(buf[k], sizeof buf[k], "%s/%s", scratch, name);
    return buf[k];
}

__attribute__((unused)) static const char *spec_of(const char *source, const char *path)
{
    static char buf[2][600];
    static int k;
    k = !k;
    snprintf(buf[k], sizeof buf[k], "%s:%s", source, path);
    return buf[k];
}

#endif
