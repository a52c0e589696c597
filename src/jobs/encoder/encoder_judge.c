/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves of pictures and junk. */
#include "jobs/encoder/encoder_judge.h"

#include <string.h>

/* Junk picture `index`. Every twentieth blends two pictures of one class that are in the leaf:
 * without those, an average over a whole class, which differs from a picture by nothing but its
 * softness, would pass for one. */
static void make_junk(lw_junk *junk, const lw_batch *b, int64_t index, float *dst)
{
    int64_t floats = lw_batch_row_size(b), first = index % b->size;
    for (int32_t k = 1; index % 20 == 0 && k < b->size; k++) {
        int64_t other = (first + k) % b->size;
        if (b->labels[other] == b->labels[first]) {
            lw_junk_average(b->images + first * floats, b->images + other * floats, b->h, b->w,
                            b->channels, dst);
            return;
        }
    }
    lw_junk_any(junk, index, dst);
}

int lw_judge_feed(lw_picture_run *p, lw_junk *junk, int64_t leaf)
{
    int64_t n = p->leaves.size, n_junk = n / 4, floats = lw_data_row_size(p->data);
    float *x = lw_exec_write(p->exec, "images");
    int32_t *labels = lw_exec_write(p->exec, "labels");
    int64_t *rows = lw_exec_write(p->exec, "rows");
    const lw_batch *b;
    LW_TRY(lw_picture_run_next(p, leaf, n - n_junk, &b));
    memcpy(x, b->images, (size_t)(b->size * floats) * sizeof *x);
    memcpy(labels, b->labels, (size_t)b->size * sizeof *labels);
    for (int64_t i = b->size; i < n; i++) {
        make_junk(junk, b, leaf * n_junk + i - b->size, x + i * floats);
        labels[i] = p->data->classes;
    }
    for (int64_t i = 0; i < n; i++)
        rows[i] = leaf * n + i;
    return 0;
}
