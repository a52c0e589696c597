/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of the words that kernels are written in: the threads that run them, and what they do. */
#ifndef LW_TESTS_EMULATED_THREADS_H
#define LW_TESTS_EMULATED_THREADS_H

#include "cuda/emulated.h"

enum { THREADS = EMULATED_THREADS, WARP = 32 };

extern emulated_launch emulated_now; /* what runs */
extern int emu_self;                 /* the thread that runs, among those of the block or cluster */
/* Of the cluster. */
int emulated_block_of(int thread);
/* Has the thread that runs waited for the kernels before? */
bool emulated_awaited(void);
/* Others go on until somebody begins the copies that this thread waits for. */
void emulated_wait_for_copies(void);
/* The threads of a warp meet. */
void lw_emu_sync_warp(void);
/* Ends the program: a kernel does what no GPU would let pass. */
void emulated_wrong(const char *what);

/* Nothing is underway of n threads. */
void emulated_begin_words(int n);

#endif
