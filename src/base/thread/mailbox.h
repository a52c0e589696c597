/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One slot between two threads, of which it starts one: the newest item wins and nothing queues.
 *
 * Three buffers, numbers 0..2, are the caller's: the giver fills one, one lies in the slot, the
 * taker reads one. Giving swaps the first two; what lay in the slot and nobody took is dropped and
 * counted. Where all are kept, the giver waits until the slot is free instead.
 *
 *   a thread gives: lw_mailbox_start_giver, then lw_mailbox_take until it says 1
 *   a thread takes: lw_mailbox_start_taker; fill lw_mailbox_buffer, lw_mailbox_put; lw_mailbox_end
 */
#ifndef LW_BASE_MAILBOX_H
#define LW_BASE_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

enum { LW_MAILBOX_BUFFERS = 3 };
/* Answers beside 0 and LW_E*. */
enum { LW_MAILBOX_END = 1, LW_MAILBOX_NOT_YET = 2 };

typedef struct lw_mailbox lw_mailbox;
typedef struct lw_mailbox_counts {
    int64_t put, taken, dropped;
} lw_mailbox_counts;
/* What the thread does with one buffer, its own until it returns: fills it, or uses it. 0, LW_E*, or
 * of a giver LW_MAILBOX_END: there are no more. */
typedef int lw_mailbox_fn(void *arg, int buffer);

int lw_mailbox_new(bool keep_all, lw_mailbox **out);
int lw_mailbox_start_giver(lw_mailbox *m, lw_mailbox_fn *fn, void *arg);
int lw_mailbox_start_taker(lw_mailbox *m, lw_mailbox_fn *fn, void *arg);
void lw_mailbox_free(lw_mailbox **pp); /* has the thread stop, and waits for it */

/* The newest item, waiting for at most `seconds`; its buffer is the caller's until the next call.
 * LW_MAILBOX_END; LW_MAILBOX_NOT_YET; LW_E*: the giver's error with its message, after the last
 * item. */
int lw_mailbox_take(lw_mailbox *m, double seconds, int *buffer);
int lw_mailbox_buffer(const lw_mailbox *m); /* that the caller fills */
/* Gives the buffer filled. LW_MAILBOX_NOT_YET: all are kept and none was taken for `seconds`: ask
 * again. LW_E*: the taker's error with its message. */
int lw_mailbox_put(lw_mailbox *m, double seconds);
/* There are no more: waits until the taker is done with all. LW_E*: its error. */
int lw_mailbox_end(lw_mailbox *m);
/* Whether the thread is to return soon: asked within long waits of its function. */
bool lw_mailbox_stopped(lw_mailbox *m);
lw_mailbox_counts lw_mailbox_counted(lw_mailbox *m);

#endif
