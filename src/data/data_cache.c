/* SPDX-License-Identifier: Apache-2.0 */
/* The cache file of a decoded source: where it is, what it must say to be believed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sources/data_source.h"

#define BLOCK_BYTES 65536
#define SAMPLE_BYTES ((int64_t)2 << 20)

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

int64_t lw_data_block_rows(size_t row)
{
    return LW_MAX(BLOCK_BYTES / (int64_t)row, 1);
}

size_t lw_data_header_row(const lw_data_header *h)
{
    return (size_t)h->height * (size_t)h->width * (size_t)h->channels;
}

uint64_t lw_data_fold(uint64_t h, uint64_t row_hash)
{
    uint64_t parts[2] = {h, row_hash};
    return lw_hash64(parts, sizeof parts);
}

uint64_t lw_data_content(uint64_t content, uint64_t row_hash, int32_t label)
{
    uint64_t parts[3] = {content, row_hash, (uint64_t)label};
    return lw_hash64(parts, sizeof parts);
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
    lw_str_addf(&s, "%s/%s-%d", dir, job->source->info.name, job->w);
    if (job->w != job->h)
        lw_str_addf(&s, "x%d", job->h);
    lw_str_addf(&s, "-%016llx.data",
                (unsigned long long)lw_hash64(lw_str_c(&job->place), job->place.len));
    if (s.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for a path", job->spec);
    *out = lw_strdup(s.s);
    return *out ? 0 : LW_ENOMEM;
}

/* Sizes and places: each within bounds that keep the products below from overflowing. */
static bool layout_holds(const lw_data_header *h, size_t size)
{
    if (h->height < 1 || h->height > LW_DATA_MAX_SIDE || h->width < 1 ||
        h->width > LW_DATA_MAX_SIDE || h->channels < 1 || h->channels > LW_MAX_CHANNELS ||
        h->classes < 1 || h->classes > LW_DATA_MAX_CLASSES || h->n_train < 0 ||
        h->n_train >= LW_DATA_NONE_BEFORE || h->n_heldout < 0 ||
        h->n_heldout >= LW_DATA_NONE_BEFORE || h->split_rows < 0 || h->skipped < 0 ||
        h->labelled > 1 || h->flip > 1)
        return false;
    uint64_t rows = (uint64_t)(h->n_train + h->n_heldout);
    uint64_t row = lw_data_header_row(h);
    if (rows > size / row)
        return false;
    if (h->pixels_at != LW_DATA_PIXELS_AT || h->total_bytes != size || h->texts_bytes > size ||
        h->names_bytes > size)
        return false;
    uint64_t blocks = LW_CEIL_DIV(rows, (uint64_t)lw_data_block_rows(row));
    return h->labels_at == LW_ROUND_UP(h->pixels_at + rows * row, 64u) &&
           h->hashes_at == LW_ROUND_UP(h->labels_at + 4 * rows, 8u) &&
           h->numbers_at == h->hashes_at + 8 * blocks && h->names_at == h->numbers_at + 8 * rows &&
           (h->names_bytes == 0 || h->names_bytes / 8 > rows) &&
           h->texts_at == h->names_at + h->names_bytes &&
           h->total_bytes == h->texts_at + h->texts_bytes;
}

/* Each name within the bytes behind the places, and ended. */
static bool names_hold(const lw_data_header *h, const uint8_t *image)
{
    uint64_t rows = (uint64_t)(h->n_train + h->n_heldout), before = 0;
    if (h->names_bytes == 0)
        return true;
    const uint64_t *at = (const uint64_t *)(const void *)(image + h->names_at);
    const uint8_t *bytes = (const uint8_t *)(at + rows + 1);
    uint64_t end = h->names_bytes - 8 * (rows + 1);
    if (at[0] != 0 || at[rows] != end)
        return false;
    for (uint64_t i = 1; i <= rows; i++) {
        if (at[i] <= before || at[i] > end || bytes[at[i] - 1] != 0)
            return false;
        before = at[i];
    }
    return true;
}

static bool numbers_hold(const lw_data_header *h, const uint8_t *image)
{
    const int64_t *number = (const int64_t *)(const void *)(image + h->numbers_at);
    for (int64_t i = 0; i < h->n_train + h->n_heldout; i++)
        if (number[i] < 0 || number[i] >= LW_DATA_NONE_BEFORE)
            return false;
    return true;
}

static bool tail_holds(const lw_data_header *h, const uint8_t *image)
{
    if (lw_hash64(image + h->labels_at, h->total_bytes - h->labels_at) != h->tail_hash)
        return false;
    const int32_t *labels = (const int32_t *)(const void *)(image + h->labels_at);
    for (int64_t i = 0; i < h->n_train + h->n_heldout; i++)
        if (labels[i] < 0 || labels[i] >= h->classes)
            return false;
    if (!numbers_hold(h, image) || !names_hold(h, image))
        return false;
    int64_t ends = 0;
    for (uint64_t i = 0; i < h->texts_bytes; i++)
        ends += image[h->texts_at + i] == 0;
    return ends == (int64_t)h->classes + 2 && image[h->total_bytes - 1] == 0;
}

int lw_data_image_check(const char *what, const void *image, size_t size, lw_data_header *out)
{
    lw_data_header h;
    if (size < LW_DATA_PIXELS_AT)
        return lw_fail(LW_EFORMAT, "%s: damaged data cache: only %zu bytes", what, size);
    memcpy(&h, image, sizeof h);
    if (memcmp(h.magic, LW_DATA_MAGIC, sizeof h.magic) != 0)
        return lw_fail(LW_EFORMAT, "%s: damaged data cache: it does not begin as one", what);
    if (h.version != LW_DATA_VERSION)
        return lw_fail(LW_EUNSUPPORTED, "%s: data cache of version %u, not %u", what, h.version,
                       LW_DATA_VERSION);
    if (h.header_bytes != sizeof h ||
        lw_hash64(&h, offsetof(lw_data_header, header_hash)) != h.header_hash)
        return lw_fail(LW_EFORMAT, "%s: damaged data cache: its header does not fit its hash",
                       what);
    if (!layout_holds(&h, size))
        return lw_fail(LW_EFORMAT, "%s: damaged data cache: %zu bytes, not %llu", what, size,
                       (unsigned long long)h.total_bytes);
    if (!tail_holds(&h, image))
        return lw_fail(LW_EFORMAT, "%s: damaged data cache: its labels do not fit their hash",
                       what);
    *out = h;
    return 0;
}

/* Whether block b has its hash; content, when given, goes on over its rows. */
static bool block_holds(const uint8_t *image, const lw_data_header *h, int64_t b, uint64_t *content)
{
    const int32_t *labels = (const int32_t *)(const void *)(image + h->labels_at);
    size_t row = lw_data_header_row(h);
    int64_t rows = lw_data_block_rows(row), end = LW_MIN((b + 1) * rows, h->n_train + h->n_heldout);
    uint64_t want, fold = 0;
    memcpy(&want, image + h->hashes_at + 8 * (size_t)b, sizeof want);
    for (int64_t i = b * rows; i < end; i++) {
        uint64_t hash = lw_hash64(image + h->pixels_at + (size_t)i * row, row);
        fold = lw_data_fold(fold, hash);
        if (content)
            *content = lw_data_content(*content, hash, labels[i]);
    }
    return fold == want;
}

int lw_data_image_pixels(const char *what, const void *image, const lw_data_header *h,
                         bool thorough)
{
    size_t row = lw_data_header_row(h);
    int64_t rows = h->n_train + h->n_heldout, each = lw_data_block_rows(row);
    int64_t n = LW_CEIL_DIV(rows, each), bad = 0, first = -1;
    int64_t block = each * (int64_t)row;
    int64_t k = thorough ? n : LW_MIN(n, LW_MAX(SAMPLE_BYTES / block, 2));
    double now = lw_wall_time();
    /* One of n / k neighbours each, which one is left to the clock: in time all are looked at. */
    int64_t shift = (int64_t)(lw_hash64(&now, sizeof now) % (uint64_t)LW_MAX(n, 1));
    uint64_t content = 0;
    for (int64_t i = 0; i < k; i++) {
        int64_t b = k < n ? (i * n + shift) / k : i;
        if (block_holds(image, h, b, thorough ? &content : NULL))
            continue;
        bad++;
        first = first < 0 ? b : first;
    }
    if (bad == 0 && thorough && content != h->content)
        return lw_fail(LW_EFORMAT, "%s: damaged data cache: its content is not what it says", what);
    if (bad == 0)
        return 0;
    return lw_fail(LW_EFORMAT,
                   "%s: damaged data cache: pixels do not fit their hash (%lld of %lld blocks "
                   "looked at; the first is rows %lld to %lld)",
                   what, (long long)bad, (long long)k, (long long)(first * each),
                   (long long)(LW_MIN((first + 1) * each, rows) - 1));
}
