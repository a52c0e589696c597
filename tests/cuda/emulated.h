/* SPDX-License-Identifier: Apache-2.0 */
/* The two parts of the emulated GPU: the driver (memory, streams, recordings, launches) and the words that kernels are
 * written in. */
#ifndef LW_TESTS_EMULATED_H
#define LW_TESTS_EMULATED_H

#include <stddef.h>

#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/kernels/cuda_port.h"

enum { EMULATED_SHARED = 232448 }; /* bytes that a block may have, most */
enum { EMULATED_THREADS = 1024 };  /* of a block or a cluster */

/* A kernel that is to run, a block or a cluster of neighbouring blocks at a time. */
typedef struct emulated_launch {
    void (*body)(const void *args);
    const void *args;
    int threads;
    size_t shared; /* bytes said at the launch */
    int cluster;   /* blocks */
} emulated_launch;

/* The cluster that begins with block lw_emu_bx, lw_emu_by, thread by thread; lw_emu_bx is any of its blocks behind it. False:
 * some left while others waited at a barrier. */
bool emulated_run_block(const emulated_launch *l);
void emulated_free_stacks(void);

/* Of the driver: does [p, p + n) lie in a block of memory; and is there what was there when the recording was started? */
bool emulated_inside(const void *p, size_t n);
bool emulated_still(const void *p, size_t n);

#endif
