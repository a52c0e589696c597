/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded ring between one producer thread and one consumer thread, whose slots are the caller's
 * (numbers 0..n-1). The producer fills slots in order; an error travels in the slot and is
 * re-raised by the consumer. Also starts and joins the producer thread.
 */
#ifndef LW_BASE_RING_H
#define LW_BASE_RING_H

#include <stdint.h>

typedef struct lw_ring lw_ring;
/* Fills slot `slot` with item number `item` (0, 1, 2, ...). Returns 0, an LW_E*, or 1 for "no more
 * items". */
typedef int lw_ring_fill(void *arg, int slot, int64_t item);

int lw_ring_new(int slots, lw_ring_fill *fill, void *arg, lw_ring **out); /* starts the thread */
void lw_ring_free(lw_ring **pp);                                          /* stops and joins it */
/* Next filled slot in item order; the one given before is handed back to the producer.
 * 0 ok, 1 end of items, LW_E* the producer's error with its message. */
int lw_ring_next(lw_ring *r, int *slot);

#endif
