/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of queries as they come: sums of every rule, and the lists themselves where they are kept. */
#include "base/base.h"
#include "jobs/prove/rank/rank_job.h"

int lw_rank_lists_keep(lw_rank_lists *r, int mode, int32_t n)
{
    r->list[mode] = lw_calloc((size_t)n + 1, sizeof *r->list[mode]);
    r->score[mode] = lw_calloc((size_t)n + 1, sizeof *r->score[mode]);
    return r->list[mode] && r->score[mode] ? 0 : LW_ENOMEM;
}

void lw_rank_lists_add(lw_rank_lists *r, lw_corrupt_mode mode, const lw_rank *rank)
{
    r->alone += rank->higher + rank->ties + rank->lower == 0;
    for (int rule = 0; rule < LW_RANK_RULES; rule++) {
        double value = lw_rank_value(rank, (lw_rank_rule)rule);
        lw_rank_sum_add(&r->sum[mode][rule], value);
        lw_rank_sum_add(&r->all[rule], value);
    }
}

void lw_rank_lists_clear(lw_rank_lists *r)
{
    for (int m = 0; m < LW_CORRUPT_MODES; m++) {
        lw_free(&r->list[m]);
        lw_free(&r->score[m]);
    }
    *r = (lw_rank_lists){0};
}
