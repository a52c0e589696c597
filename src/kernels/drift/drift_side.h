/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: what all targets of one side (negatives or positives) add to a strip, tile by tile.
 *
 * A tile is n targets and all their distances (drift_field.h), or no more than its notes
 * (drift_near.h) where they serve: what lies above the floor is looked for among these, and every
 * pair has the floor's part.
 */
#ifndef LW_KERNELS_DRIFT_SIDE_H
#define LW_KERNELS_DRIFT_SIDE_H

#include "kernels/drift/drift_field.h"

/* Whether near pairs serve instead of all distances of a strip. */
static int drift_noted(const drift_job *q, drift_strip st)
{
    return q->near.from && q->range[0] > 1 && !drift_kept(q, st);
}

/* Notes of one tile of LW_DRIFT_ROWS, of which a strip's samples are the lanes or (turned) the
 * rows. */
typedef struct drift_piece {
    uint32_t from, to;
    ptrdiff_t first; /* of the targets, or samples, that its rows are */
    int turned;
} drift_piece;

/* Whether what was granted of n targets from j0 held. */
static int drift_near_good(const drift_job *q, ptrdiff_t j0, ptrdiff_t n)
{
    const uint8_t *bad = q->near.bad + lw_drift_segment(q->s, &q->d, j0);
    int good = 1;
    for (ptrdiff_t j = 0; j < n; j += LW_DRIFT_ROWS)
        good &= !*bad++;
    return good;
}

/* The pieces of n targets from j0 for a strip, at most four; 0: some have no notes that serve.
 * Generated targets must be those of one strip: the first of two strips has their notes. */
static int drift_noted_pieces(const drift_job *q, drift_piece *piece, drift_strip st, ptrdiff_t j0,
                              ptrdiff_t n)
{
    int turned = j0 < st.i0, count = 0,
        row_good = j0 < q->s->n ? drift_near_good(q, st.i0, st.live)
                                : !q->near.bad[q->d.segments + st.i0 / LW_DRIFT_LANES];
    ptrdiff_t strip = (turned ? j0 : st.i0) / LW_DRIFT_LANES, rows = turned ? st.live : n;
    const uint32_t *from = q->near.from + strip * (q->d.segments + 1) +
                           lw_drift_segment(q->s, &q->d, turned ? st.i0 : j0);
    if (!row_good || !drift_near_good(q, j0, n))
        return 0;
    for (ptrdiff_t row = 0; row < rows; row += LW_DRIFT_ROWS, from++) {
        if (from[0] == DRIFT_NEAR_NONE || from[1] == DRIFT_NEAR_NONE)
            return 0;
        piece[count++] = (drift_piece){from[0], from[1], row, turned};
    }
    return count;
}

/* Exponentials of n notes, and whose they are. */
LW_WORD void drift_note_powers(float *power, uint16_t *whose, const float *d, const uint16_t *at,
                               const drift_piece *p, const float *rmin, const float *cmin, vf b,
                               const ptrdiff_t n)
{
    const vi lanes = vi_set1(LW_DRIFT_LANES - 1);
    const vf half = v_set1(0.5f);
    vi code = vi_load_u16_n(at, n), lane = vi_and(code, lanes),
       row = vi_add(vi_shr(code, 6), vi_set1((uint32_t)p->first));
    vi i = p->turned ? row : lane, j = p->turned ? lane : row;
    vf shift = v_add(v_gather(rmin, i), v_gather(cmin, j));
    v_store_n(power, drift_exp(v_mul(v_fms(shift, half, v_load_n(d, n)), b)), n);
    vi_store_u16_n(whose, vi_or(vi_shl(j, 6), i), n);
}

/* Exponentials of a tile's notes into buf_e, and whose they are (target << 6 | lane, from the first
 * of the tile and the strip) into buf_d; zeros up to a whole vector. Returns their number. */
static ptrdiff_t drift_noted_powers(const drift_job *q, const drift_piece *piece, int pieces,
                                    drift_strip st, ptrdiff_t j0, float b)
{
    uint16_t *whose = (uint16_t *)(void *)q->buf_d;
    const float *rmin = q->rmin + st.i0, *cmin = q->cmin + j0;
    const vf bv = v_set1(b);
    ptrdiff_t count = 0;
    for (const drift_piece *p = piece; p < piece + pieces; p++) {
        const float *d = q->near.d + p->from;
        const uint16_t *at = q->near.at + p->from;
        const ptrdiff_t n = p->to - p->from;
        ptrdiff_t e = 0;
        for (; e + VL <= n; e += VL, count += VL)
            drift_note_powers(q->buf_e + count, whose + count, d + e, at + e, p, rmin, cmin, bv,
                              VL);
        if (e < n)
            drift_note_powers(q->buf_e + count, whose + count, d + e, at + e, p, rmin, cmin, bv,
                              n - e);
        count += n - e;
    }
    const ptrdiff_t rest = LW_ROUND_UP(count, VL) - count; /* pairs that count for nothing */
    v_store_n(q->buf_e + count, v_zero(), rest);
    vi_store_u16_n(whose + count, vi_set1(0), rest);
    return count;
}

/* Behind affinities in buf_a, of which there are no more than a tile has pairs: in buf_d, behind as many. */
static uint16_t *drift_above_whose(const drift_job *q)
{
    return (uint16_t *)(void *)q->buf_d + q->d.jb * q->d.lanes;
}

/* Of a tile's `count` notes those above the floor at temperature k: affinities less the floor's to
 * buf_a, whose they are (as in buf_d) behind them. Returns how many. */
LW_WORD ptrdiff_t drift_noted_above(const drift_job *q, drift_strip st, ptrdiff_t j0,
                                    ptrdiff_t count, int k, float low, vf least, const int p)
{
    const uint16_t *at = (const uint16_t *)(const void *)q->buf_d;
    const float *rs = q->rsum + k * q->d.lp + st.i0, *cs = q->csum + k * q->d.m + j0;
    const vi lanes = vi_set1(LW_DRIFT_LANES - 1);
    uint16_t *whose = drift_above_whose(q);
    ptrdiff_t pairs = 0;
    for (ptrdiff_t e = 0; e < count; e += VL) {
        vi code = vi_load_u16(at + e);
        vf x = v_mul(drift_power(v_load(q->buf_e + e), least, p),
                     v_gather(rs, vi_and(code, lanes)));
        x = v_mul(x, v_gather(cs, vi_shr(code, 6)));
        vm above = v_gt(x, v_set1(low)); /* none of lanes without a note: there e is 0 */
        v_pack(q->buf_a + pairs, v_sub(x, v_set1(low)), above);
        vi_pack_u16(whose + pairs, code, above);
        pairs += __builtin_popcount(vm_bits(above));
    }
    return pairs;
}

/* out[i] += a t_j of so many pairs, one after the other: in turns with asking for the vector of a later one, as large
 * groups' targets come from memory, each strip, and few of a tile are there. */
static void drift_add_pairs(const drift_job *q, float *out, const float *t, ptrdiff_t pairs)
{
    enum { LATER = 2 };
    const uint16_t *whose = drift_above_whose(q);
    const ptrdiff_t cp = q->d.cp;
    for (ptrdiff_t e = 0; e < pairs; e++) {
        float *to = out + whose[e] % LW_DRIFT_LANES * cp;
        const ptrdiff_t later = whose[LW_MIN(e + LATER, pairs - 1)] / LW_DRIFT_LANES;
        const float *from = t + whose[e] / LW_DRIFT_LANES * q->d.pitch,
                    *ask = t + later * q->d.pitch;
        const vf by = v_set1(q->buf_a[e]);
        for (ptrdiff_t c = 0; c < cp; c += 16) {
            __builtin_prefetch(ask + c);
            LW_UNROLL_UP_TO(2)
            for (int v = 0; v < 16; v += VL)
                v_store(to + c + v, v_fma(by, v_load(from + c + v), v_load(to + c + v)));
        }
    }
}

/* What a tile's pairs above the floor add to sum and to out, which the first tile of a side begins. */
static void drift_gather_above(const drift_job *q, float *out, float *sum, drift_strip st,
                               ptrdiff_t j0, ptrdiff_t pairs, int first)
{
    const ptrdiff_t cp = q->d.cp;
    const uint16_t *whose = drift_above_whose(q);
    const float *t = drift_rows_at(q, j0);
    if (first)
        drift_fill(out, st.live * cp, 0.0f);
    for (ptrdiff_t e = 0; e < pairs; e++)
        sum[whose[e] % LW_DRIFT_LANES] += q->buf_a[e];
    drift_add_pairs(q, out, t, pairs);
}

/* The targets from j0 on that these are notes of, all of one weight, for a strip, every
 * temperature. */
static void drift_noted_tile(const drift_job *q, const drift_taus *t, const drift_piece *piece,
                             int pieces, drift_strip st, int positive, ptrdiff_t j0)
{
    int first = j0 == (positive ? q->d.neg : 0);
    float low = drift_floor(q) * q->w[j0];
    for (int base = 0; base < t->k; base++) {
        if (t->base[base] != base)
            continue;
        ptrdiff_t count = drift_noted_powers(q, piece, pieces, st, j0, t->b[base]), pairs = 0;
        for (int k = 0; k < t->k; k++) {
            float *sum = q->sums + (positive * t->k + k) * q->d.lanes;
            vf least = v_set1(t->least[k]);
            if (t->base[k] != base)
                continue;
            DRIFT_BY_POWER(t->power[k], pairs = drift_noted_above, q, st, j0, count, k, low, least);
            drift_gather_above(q, drift_gathered(q, positive, k, st), sum, st, j0, pairs, first);
        }
    }
}

/* All targets of one side for a strip, from their notes where they have any. */
static void drift_noted_side(const drift_job *q, const drift_taus *t, float self, drift_strip st,
                             int positive)
{
    ptrdiff_t j0 = positive ? q->d.neg : 0, to = positive ? q->d.m : q->d.neg, n;
    for (; j0 < to; j0 += n) {
        drift_piece piece[LW_DRIFT_TARGETS / LW_DRIFT_ROWS];
        ptrdiff_t most = j0 < q->s->n ? LW_DRIFT_LANES : LW_DRIFT_TARGETS,
                  end = j0 < q->s->n ? q->s->n : to;
        n = end - j0 < most ? end - j0 : most;
        int pieces = drift_noted_pieces(q, piece, st, j0, n);
        if (pieces)
            drift_noted_tile(q, t, piece, pieces, st, positive, j0);
        else
            drift_side_tile(q, t, self, st, positive, j0, n);
    }
}

/* All targets of one side for a strip. */
static void drift_side(const drift_job *q, const drift_taus *t, float self, drift_strip st,
                       int positive)
{
    const lw_drift_shape *s = q->s;
    drift_cut cut = drift_cut_of(q, positive);
    double weight = positive ? (double)s->np : (double)s->n + (double)s->nu * (double)q->w_u;
    float *sum = q->sums + positive * t->k * q->d.lanes;
    if (drift_noted(q, st))
        drift_noted_side(q, t, self, st, positive);
    else
        for (ptrdiff_t j0 = cut.from; j0 < cut.to; j0 += cut.step)
            drift_side_tile(q, t, self, st, positive, j0,
                            cut.to - j0 < cut.step ? cut.to - j0 : cut.step);
    /* The floor's part at once: pair by pair it would be rounded differently on either side, and V is
     * a small difference of the two. */
    for (ptrdiff_t i = 0; i < t->k * q->d.lanes; i++)
        sum[i] += (float)((double)drift_floor(q) * weight);
}

#endif
