/* SPDX-License-Identifier: Apache-2.0 */
/* What an entry is called in a file, and the permutation of convolution weights. */
#include "store/store_private.h"

#include <string.h>

static const char qkv_mark[] = ".to_qkv.";

static const char *qkv_at(const lw_store_entry *e)
{
    const char *at = strstr(e->name, qkv_mark);
    bool whole = at && e->type.rank <= 2 && e->type.dim[0] % 3 == 0;
    return whole ? at : NULL;
}

store_disk lw_store_disk_of(const lw_store_entry *e)
{
    const lw_type *t = &e->type;
    store_disk d = {.parts = qkv_at(e) ? 3 : 1, .permute = t->rank == 4, .rank = t->rank};
    static const int to_file[4] = {0, 3, 1, 2};
    for (int i = 0; i < t->rank; i++)
        d.shape[i] = t->dim[d.permute ? to_file[i] : i];
    if (d.rank == 0) /* a scalar is stored as one element */
        d.shape[d.rank++] = 1;
    d.shape[0] /= d.parts;
    d.count = e->count / d.parts;
    return d;
}

const char *lw_store_disk_name(lw_str *s, const lw_store_entry *e, int part)
{
    const char *at = qkv_at(e);
    s->len = 0;
    if (!at) {
        lw_str_add(s, e->name);
        return lw_str_c(s);
    }
    lw_str_add_n(s, e->name, (size_t)(at - e->name));
    lw_str_addf(s, ".to_%c.%s", "qkv"[part], at + sizeof qkv_mark - 1);
    return lw_str_c(s);
}

void lw_store_from_disk(const store_disk *d, const float *src, float *dst)
{
    if (!d->permute) {
        memcpy(dst, src, sizeof(float) * (size_t)d->count);
        return;
    }
    int64_t c = d->shape[1], hw = d->shape[2] * d->shape[3];
    for (int64_t o = 0; o < d->shape[0]; o++)
        for (int64_t k = 0; k < hw; k++)
            for (int64_t i = 0; i < c; i++)
                *dst++ = src[(o * c + i) * hw + k];
}

void lw_store_to_disk(const store_disk *d, const float *src, float *dst)
{
    if (!d->permute) {
        memcpy(dst, src, sizeof(float) * (size_t)d->count);
        return;
    }
    int64_t c = d->shape[1], hw = d->shape[2] * d->shape[3];
    for (int64_t o = 0; o < d->shape[0]; o++)
        for (int64_t i = 0; i < c; i++)
            for (int64_t k = 0; k < hw; k++)
                *dst++ = src[(o * hw + k) * c + i];
}
