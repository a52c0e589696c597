/* SPDX-License-Identifier: Apache-2.0 */
/* The cache file of a decoded source: where it is, what it must say to be believed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data_source.h"

const char *lw_data_cache_dir(char *buf, size_t size)
{
    const char *own = getenv("LW_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (own && *own)
        n = snprintf(buf, size, "%s", own);
    else if (xdg && xdg[0] == '/')
        n = snprintf(buf, size, "%s/leeway", xdg);
    else if (home && *home)
        n = snprintf(buf, size, "%s/.cache/leeway", home);
    if (n <= 0 || (size_t)n >= size)
        buf[0] = '\0';
    return buf;
}

uint64_t lw_data_fingerprint(const lw_data_job *job)
{
    uint64_t parts[4] = {LW_DATA_VERSION, lw_hash64(lw_str_c(&job->place), job->place.len),
                         lw_hash64(lw_str_c(&job->state), job->state.len),
                         lw_hash64(lw_str_c(&job->names), job->names.len)};
    return lw_hash64(parts, sizeof parts);
}

int lw_data_cache_path(const lw_data_job *job, const char *dir, char **out)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_str_addf(&s, "%s/%s-%d-%016llx.data", dir, job->source->info.name, job->size,
                (unsigned long long)lw_hash64(lw_str_c(&job->place), job->place.len));
    if (s.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for a path", job->spec);
    *out = lw_strdup(s.s);
    return *out ? 0 : LW_ENOMEM;
}

/* Sizes and places: each within bounds that keep the products below from overflowing. */
static bool layout_holds(const lw_data_header *h, size_t size)
{
    if (h->size < 1 || h->size > LW_DATA_MAX_SIDE || h->classes < 1 ||
        h->classes > LW_DATA_MAX_CLASSES || h->n_train < 0 || h->n_train >= LW_DATA_NONE_BEFORE ||
        h->n_heldout < 0 || h->n_heldout >= LW_DATA_NONE_BEFORE || h->labelled > 1 || h->flip > 1)
        return false;
    uint64_t rows = (uint64_t)(h->n_train + h->n_heldout);
    uint64_t row = (uint64_t)h->size * (uint64_t)h->size * 3;
    if (h->pixels_at != LW_DATA_PIXELS_AT || h->total_bytes != size || h->texts_bytes > size)
        return false;
    return h->labels_at == LW_ROUND_UP(h->pixels_at + rows * row, 64u) &&
           h->texts_at == h->labels_at + 4 * rows && h->total_bytes == h->texts_at + h->texts_bytes;
}

static bool tail_holds(const lw_data_header *h, const uint8_t *image)
{
    if (lw_hash64(image + h->labels_at, h->total_bytes - h->labels_at) != h->tail_hash)
        return false;
    const int32_t *labels = (const int32_t *)(const void *)(image + h->labels_at);
    for (int64_t i = 0; i < h->n_train + h->n_heldout; i++)
        if (labels[i] < 0 || labels[i] >= h->classes)
            return false;
    int64_t ends = 0;
    for (uint64_t i = 0; i < h->texts_bytes; i++)
        ends += image[h->texts_at + i] == 0;
    return ends == (int64_t)h->classes + 1 && image[h->total_bytes - 1] == 0;
}

int lw_data_image_check(const char *what, const void *image, size_t size, lw_data_header *out)
{
    lw_data_header h;
    if (size < LW_DATA_PIXELS_AT)
        return lw_fail(LW_EFORMAT, "%s: %zu bytes are too few for a data cache", what, size);
    memcpy(&h, image, sizeof h);
    if (memcmp(h.magic, LW_DATA_MAGIC, sizeof h.magic) != 0 || h.version != LW_DATA_VERSION ||
        h.header_bytes != sizeof h)
        return lw_fail(LW_EFORMAT, "%s: not a data cache of version %u", what, LW_DATA_VERSION);
    if (lw_hash64(&h, offsetof(lw_data_header, header_hash)) != h.header_hash ||
        !layout_holds(&h, size) || !tail_holds(&h, image))
        return lw_fail(LW_EFORMAT, "%s: damaged data cache", what);
    *out = h;
    return 0;
}
