/* SPDX-License-Identifier: Apache-2.0 */
/* Private to prove_kge*.c: an opened embedding. */
#ifndef LW_PROVE_KGE_PARTS_H
#define LW_PROVE_KGE_PARTS_H

#include "jobs/prove/kge/kge_job.h"
#include "session/session.h"

struct lw_kge {
    lw_kge_config config;
    lw_device *dev;  /* borrowed */
    lw_store *store; /* owned when it is `owned` */
    lw_store *owned;
    lw_slab slab;
    lw_forward *each, *all; /* made when first asked for */
    int32_t block;          /* queries of one run of `all` */
};

/* Queries whose scores of all entities are kept at once: at most 256, at most 64 MiB. */
int32_t lw_kge_block(const lw_kge_config *c);
/* Makes `all` and `block`. */
int lw_kge_open_all(lw_kge *k);

#endif
