/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures of a source are rows of the dataset: a split, a range of it, some of that drawn. */
#include <inttypes.h>

#include "data/sources/data_source.h"

static const char *const splits[LW_SPLIT_COUNT] = {"train", "held-out", "all"};

const char *lw_split_name(lw_split s)
{
    return splits[s];
}

int lw_data_range_opts(const char *spec, const lw_data_opts *o)
{
    if ((int)o->split < 0 || o->split >= LW_SPLIT_COUNT)
        return lw_fail(LW_EUSAGE, "data '%s': split %d is neither train, held-out nor all", spec,
                       (int)o->split);
    if (o->first < 0 || o->count < 0 || o->num_images < 0)
        return lw_fail(LW_EUSAGE,
                       "data '%s': rows from %" PRId64 ", %" PRId64 " of them, %" PRId64
                       " drawn: must not be negative",
                       spec, o->first, o->count, o->num_images);
    return 0;
}

int lw_data_range_check(const lw_data_job *job, int64_t have)
{
    const lw_data_opts *o = &job->opts;
    const char *split = lw_split_name(o->split);
    if (have == 0)
        return lw_fail(LW_EFORMAT, "data '%s': no %s pictures", job->spec,
                       o->split == LW_SPLIT_ALL ? "" : split);
    if (o->first >= have || o->count > have - o->first)
        return lw_fail(LW_EUSAGE,
                       "data '%s': %" PRId64 " rows from row %" PRId64
                       " on are asked for, but the %s split has %" PRId64
                       ": ask for fewer (--limit)",
                       job->spec, LW_MAX(o->count, 1), o->first, split, have);
    int64_t n = o->count ? o->count : have - o->first;
    if (o->num_images > n && !o->at_most)
        return lw_fail(LW_EUSAGE,
                       "data '%s': %" PRId64 " pictures are to be drawn, but there are %" PRId64,
                       job->spec, o->num_images, n);
    return 0;
}

bool lw_data_draws(uint64_t seed, int64_t n, int64_t want, int64_t i)
{
    lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("data.rows"));
    return want == 0 || lw_rng_permute(key, 0, (uint64_t)n, (uint64_t)i) < (uint64_t)want;
}

bool lw_data_range_has(const lw_data_job *job, int64_t have, int64_t i)
{
    const lw_data_opts *o = &job->opts;
    int64_t n = o->count ? o->count : have - o->first;
    i -= o->first;
    return i >= 0 && i < n && lw_data_draws(o->seed, n, o->num_images, i);
}

void lw_data_range_print(const lw_data_job *job, lw_str *out)
{
    const lw_data_opts *o = &job->opts;
    lw_str_addf(out, "%s rows", lw_split_name(o->split));
    if (o->first || o->count)
        lw_str_addf(out, " %" PRId64 "+%" PRId64, o->first, o->count);
    if (o->num_images)
        lw_str_addf(out, ", %" PRId64 " drawn by seed %" PRIu64, o->num_images, o->seed);
}

/* ---- every tenth ----------------------------------------------------------------------------- */

int64_t lw_data_tenths_of(int64_t n, bool heldout)
{
    return heldout ? n / 10 : n - n / 10;
}

int64_t lw_data_tenths_at(bool heldout, int64_t i)
{
    return heldout ? i * 10 + 9 : i + i / 9;
}
