/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of frozen networks: a scratch folder, a device, pictures by the formula. */
#ifndef LW_TEST_FROZEN_FIXTURE_H
#define LW_TEST_FROZEN_FIXTURE_H

#include "golden/golden.h"

enum { SIDE = 32, PICTURES = 3 };

static char scratch[64];
static lw_device *dev;
static float picture[PICTURES][SIDE * SIDE * 3];

static int open_all(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/lw_frozen_XXXXXX");
    assert_non_null(mkdtemp(scratch));
    dev = golden_device(lw_isa_best(), 2);
    for (int i = 0; i < PICTURES; i++)
        golden_fill((const char *[]){"a", "b", "c"}[i], 0.0, 1.0, SIDE * SIDE * 3, picture[i]);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    lw_backend_close(&dev);
    return lw_remove_tree(scratch);
}

/* That of a golden file, as its authors would have written it. */
static lw_network *open_network(const char *name)
{
    char dir[128];
    lw_network *net = NULL;
    lw_st_file *f = golden_open(name);
    snprintf(dir, sizeof dir, "%s/%s", scratch, name);
    golden_write_model(f, dir);
    assert_ok(lw_network_open(dir, true, &net));
    lw_st_close(&f);
    return net;
}

#endif
