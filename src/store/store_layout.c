/* SPDX-License-Identifier: Apache-2.0 */
/* How the values of a tensor lie in a file and in the store. */
#include "store/store_private.h"

#include <string.h>

/* dst[n][m] <- src[m][n] */
static void transpose(const float *src, int64_t m, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++)
            *dst++ = src[k * n + i];
}

/* Rows of [KH,KW,C] from or to rows of [C,KH,KW]; others as they are. */
static void move_rows(const store_piece *p, const float *src, float *dst, bool to_file)
{
    const lw_type *t = &p->entry->type;
    if (t->rank != 4) {
        memcpy(dst, src, sizeof(float) * (size_t)p->count);
        return;
    }
    int64_t c = t->dim[3], hw = (int64_t)t->dim[1] * t->dim[2], row = c * hw;
    for (int64_t at = 0; at < p->count; at += row)
        transpose(src + at, to_file ? hw : c, to_file ? c : hw, dst + at);
}

/* One row of the store from columns of the file's [in,out]. */
static void read_transposed(const store_piece *p, const float *src, float *dst)
{
    const int64_t *shape = p->shape + p->rule->ones;
    int64_t in = shape[0], out = shape[1], first = p->skip / in;
    for (int64_t i = 0; i < p->count / in; i++)
        for (int64_t k = 0; k < in; k++)
            *dst++ = src[k * out + first + i];
}

/* The middle of [O,C,H,W], rows of [KH,KW,C]. */
static void read_centre(const store_piece *p, const lw_st_tensor *t, const float *src, float *dst)
{
    const int32_t *d = p->entry->type.dim;
    int64_t h = d[1], w = d[2], c = d[3], sh = t->shape[2], sw = t->shape[3];
    int64_t top = (sh - h) / 2, left = (sw - w) / 2;
    for (int64_t o = 0; o < d[0]; o++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++)
                for (int64_t i = 0; i < c; i++)
                    *dst++ = src[((o * c + i) * sh + y + top) * sw + x + left];
}

void lw_store_piece_read(const store_piece *p, const lw_st_tensor *t, const float *src, float *dst)
{
    lw_values v = p->rule->values;
    dst += p->at;
    if (p->count == 0)
        return;
    if (v == LW_VALUES_TRANSPOSED && p->entry->type.rank == 2)
        read_transposed(p, src, dst);
    else if (v == LW_VALUES_CENTRE && p->entry->type.rank == 4)
        read_centre(p, t, src, dst);
    else
        move_rows(p, src + p->skip, dst, false);
}

bool lw_store_piece_as_it_is(const store_piece *p)
{
    int64_t n = 1;
    int rank = p->entry->type.rank;
    for (int i = 0; i < p->rank; i++)
        n *= p->shape[i];
    return p->count == n && rank != 4 &&
           (p->rule->values == LW_VALUES_SAME ||
            (p->rule->values == LW_VALUES_TRANSPOSED && rank != 2));
}

void lw_store_piece_write(const store_piece *p, const float *src, float *dst)
{
    src += p->at;
    if (p->rule->values != LW_VALUES_TRANSPOSED || p->entry->type.rank != 2 || p->count == 0) {
        move_rows(p, src, dst + p->skip, true);
        return;
    }
    const int64_t *shape = p->shape + p->rule->ones;
    int64_t in = shape[0], out = shape[1], first = p->skip / in;
    for (int64_t i = 0; i < p->count / in; i++)
        for (int64_t k = 0; k < in; k++)
            dst[k * out + first + i] = *src++;
}
