/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stream/stream_similar.h"

#include <math.h>
#include <string.h>

void lw_similar_open(lw_similar *s, uint64_t seed, size_t frame, size_t picture)
{
    *s = (lw_similar){.seed = seed, .frame = frame, .picture = picture};
}

int lw_similar_set(lw_similar *s, double threshold)
{
    s->threshold = threshold;
    if (threshold <= 0 || s->last_picture)
        return 0;
    s->last_frame = lw_calloc(s->frame, 1);
    s->last_picture = lw_calloc(s->picture, 1);
    return s->last_frame && s->last_picture ? 0 : LW_ENOMEM;
}

void lw_similar_close(lw_similar *s)
{
    lw_free(&s->last_frame);
    lw_free(&s->last_picture);
}

/* Sums of whole numbers: twice the byte less 255. A row of 2^14 products fits 32 bits. */
static double cosine(const uint8_t *a, const uint8_t *b, size_t n)
{
    int64_t ab = 0, aa = 0, bb = 0;
    for (size_t at = 0; at < n;) {
        const size_t end = LW_MIN(n, at + (1u << 14));
        int32_t row_ab = 0, row_aa = 0, row_bb = 0;
        for (; at < end; at++) {
            const int32_t x = 2 * a[at] - 255, y = 2 * b[at] - 255;
            row_ab += x * y;
            row_aa += x * x;
            row_bb += y * y;
        }
        ab += row_ab;
        aa += row_aa;
        bb += row_bb;
    }
    return (double)ab / sqrt((double)aa * (double)bb); /* no byte is 127.5 */
}

bool lw_similar_skip(lw_similar *s, const uint8_t *frame, uint8_t *picture)
{
    const uint64_t number = (uint64_t)s->frames++;
    if (s->threshold <= 0 || !s->any || s->in_a_row == LW_SIMILAR_IN_A_ROW)
        return false;
    const double far = (1 - cosine(frame, s->last_frame, s->frame)) / (1 - s->threshold);
    const lw_rng_key key = lw_rng_key_of(s->seed, lw_hash_name("stream.similar"));
    if (lw_rng_uniform(key, 0, 0, number) >= 1 - far)
        return false;
    memcpy(picture, s->last_picture, s->picture);
    s->in_a_row++;
    s->skipped++;
    return true;
}

void lw_similar_keep(lw_similar *s, const uint8_t *frame, const uint8_t *picture)
{
    s->any = s->threshold > 0;
    s->in_a_row = 0;
    if (!s->any)
        return;
    memcpy(s->last_frame, frame, s->frame);
    memcpy(s->last_picture, picture, s->picture);
}

void lw_similar_reset(lw_similar *s)
{
    s->any = false;
    s->in_a_row = 0;
}
