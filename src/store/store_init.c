/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values: a pure function of (seed, name, element). */
#include "store/store_private.h"

#include <math.h>
#include <string.h>

/* Word w of block b of the entry's stream: elements 4 b .. 4 b + 3, step and row 0. */
static void draw(lw_rng_key key, int64_t block, uint32_t w[4])
{
    const uint32_t counter[4] = {(uint32_t)block, 0, (uint32_t)((uint64_t)block >> 32), 0};
    lw_philox4x32(counter, key.k, w);
}

/* (0, 1]: never 0, so that its logarithm is finite. */
static double open_unit(uint32_t word)
{
    return ((double)(word >> 8) + 1.0) * 0x1p-24;
}

/* Box and Muller 1958: two words make two normal numbers. */
static void normal_pair(const uint32_t w[2], double out[2])
{
    double r = sqrt(-2.0 * log(open_unit(w[0])));
    double a = 2.0 * M_PI * (double)(w[1] >> 8) * 0x1p-24;
    out[0] = r * cos(a);
    out[1] = r * sin(a);
}

static void block_values(lw_init init, const uint32_t w[4], double v[4])
{
    if (init.kind == LW_INIT_NORMAL) {
        normal_pair(w, v);
        normal_pair(w + 2, v + 2);
        return;
    }
    for (int i = 0; i < 4; i++)
        v[i] = ((double)(w[i] >> 8) + 0.5) * 0x1p-23 - 1.0;
}

/* Of each token a quarter of sines and one of cosines of its column, then of its row, at frequencies
 * 1e4^(-k / (C / 4)). */
static void places(const lw_store_entry *e, float *dst)
{
    int64_t c = lw_type_last(e->type), quarter = c / 4, tokens = e->count / c;
    int64_t side = (int64_t)lround(sqrt((double)tokens));
    for (int64_t i = 0; i < tokens * 2 * quarter; i++) {
        int64_t token = i / (2 * quarter), axis = i / quarter % 2, k = i % quarter;
        double at = (double)(axis ? token / side : token % side);
        double a = at * pow(1e4, -(double)k / (double)quarter);
        dst[token * c + axis * 2 * quarter + k] = (float)sin(a);
        dst[token * c + axis * 2 * quarter + quarter + k] = (float)cos(a);
    }
}

void lw_store_init_entry(const lw_store_entry *e, uint64_t seed, float *dst)
{
    lw_rng_key key = lw_rng_key_of(seed, e->hash);
    if (e->init.kind == LW_INIT_ZEROS || e->init.kind == LW_INIT_ONES) {
        for (int64_t i = 0; i < e->count; i++)
            dst[i] = e->init.kind == LW_INIT_ONES ? 1.0f : 0.0f;
        return;
    }
    if (e->init.kind == LW_INIT_SINCOS) {
        places(e, dst);
        return;
    }
    for (int64_t i = 0; i < e->count; i += 4) {
        uint32_t w[4];
        double v[4];
        draw(key, i / 4, w);
        block_values(e->init, w, v);
        for (int64_t k = 0; k < LW_MIN(4, e->count - i); k++)
            dst[i + k] = (float)((double)e->init.scale * v[k]);
    }
}

void lw_store_init(lw_store *s, uint64_t seed)
{
    LW_ASSERT(s->fixed, "lw_store_fix comes before lw_store_init");
    for (int i = 0; i < LW_SLABS; i++) {
        s->edited[i] = true;
        if (s->slab[i])
            memset(s->slab[i], 0, sizeof(float) * (size_t)s->floats);
    }
    for (size_t i = 0; i < s->n; i++)
        lw_store_init_entry(&s->entry[i], seed, s->slab[LW_SLAB_PARAM] + s->entry[i].offset);
    lw_store_start_ema(s);
    for (int i = 0; i < LW_SLABS; i++)
        lw_store_touch(s, (lw_slab)i);
}

void lw_store_start_ema(lw_store *s)
{
    if (!s->slab[LW_SLAB_EMA])
        return;
    memcpy(s->slab[LW_SLAB_EMA], lw_store_host(s, LW_SLAB_PARAM),
           sizeof(float) * (size_t)s->floats);
    s->edited[LW_SLAB_EMA] = true;
    lw_store_touch(s, LW_SLAB_EMA);
}
