/* SPDX-License-Identifier: Apache-2.0 */
/* At which size a folder's pictures are kept when nobody says: their own, if they have one. */
#include <stdlib.h>

#include "data/sources/data_folder.h"
#include "data/sources/data_source.h"
#include "formats/formats.h"

/* Pictures of many sizes are mostly photographs: larger than this a network learns nothing more in
 * the time there is, and its cost grows with the square. */
enum { MIXED_SIDE = 64, SMALLEST = 8 };

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Shorter sides of all pictures whose header can be read; building names the others. */
static size_t read_sides(const folder_list *l, int32_t *side)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        int32_t w, h;
        if (lw_image_size(l->at[i].path, &w, &h) == 0)
            side[n++] = LW_MIN(w, h);
    }
    lw_errclear();
    return n;
}

static void settle_same(lw_data_job *job, int32_t side)
{
    int32_t size = LW_MIN(LW_MAX(side, (int32_t)SMALLEST), LW_DATA_MAX_SQUARE);
    if (size != side)
        lw_str_addf(&job->note, "pictures of %dx%d are resized to %dx%d: sizes are %d to %d", side,
                    side, size, size, SMALLEST, LW_DATA_MAX_SQUARE);
    lw_data_job_size(job, size);
}

/* A power of two suits every network; not above the median, so that most pictures shrink. */
static void settle_mixed(lw_data_job *job, const int32_t *side, size_t n)
{
    int32_t median = side[(n - 1) / 2], size = SMALLEST;
    while (2 * size <= LW_MIN(median, (int32_t)MIXED_SIDE))
        size *= 2;
    lw_data_job_size(job, size);
    lw_str_addf(&job->note,
                "pictures of several sizes (shorter side %d to %d pixels, median %d) are resized "
                "to %dx%d: the largest power of two within the median and %d; --image-size N "
                "chooses another",
                side[0], side[n - 1], median, size, size, MIXED_SIDE);
}

/* All pictures have the size of the first one whose header can be read. */
static int settle_whole(lw_data_job *job)
{
    const folder_list *l = job->priv;
    const char *first = NULL;
    lw_data_job_size(job, SMALLEST);
    for (size_t i = 0; i < l->n; i++) {
        int32_t w, h;
        if (lw_image_size(l->at[i].path, &w, &h) < 0)
            continue;
        if (!first && (h > LW_DATA_MAX_SIDE || w > LW_DATA_MAX_SIDE))
            return lw_fail(LW_EUNSUPPORTED,
                           "%s: %dx%d pixels: whole pictures have sides of up to %d", l->at[i].path,
                           w, h, LW_DATA_MAX_SIDE);
        if (first && (h != job->h || w != job->w))
            return lw_fail(LW_EUSAGE,
                           "data '%s': pictures of several sizes (%s is %dx%d, %s %dx%d), and what "
                           "reads them resizes whole pictures itself: give those of one size, or "
                           "say with --image-size N at which they are cut to squares before",
                           job->spec, first, job->w, job->h, l->at[i].path, w, h);
        first = first ? first : l->at[i].path;
        job->h = h;
        job->w = w;
    }
    lw_errclear();
    return 0;
}

int lw_folder_settle(lw_data_job *job)
{
    const folder_list *l = job->priv;
    if (job->opts.whole)
        return settle_whole(job);
    LW_CLEANUP(lw_free) int32_t *side = lw_calloc(l->n, sizeof *side);
    if (!side)
        return LW_ENOMEM;
    size_t n = read_sides(l, side);
    if (n == 0) { /* nothing can be decoded either: building says so */
        lw_data_job_size(job, SMALLEST);
        return 0;
    }
    qsort(side, n, sizeof *side, ascending);
    if (side[0] == side[n - 1])
        settle_same(job, side[0]);
    else
        settle_mixed(job, side, n);
    return 0;
}
