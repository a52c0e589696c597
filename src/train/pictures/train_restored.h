/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well a network conditioned on frames restores the held-out end of its clip: PSNR of its answers
 * beside that of the damaged frames, of the best unsharp mask and of the best Wiener filter, all on
 * the same crops. Filters are set on training frames; they see whole frames, the network crops. The
 * network runs as a stream does: frame after frame, on its own answers.
 *
 * psnr_swapped is that of answers to mirrored frames: a network that ignores its condition loses
 * nothing by it.
 */
#ifndef LW_TRAIN_RESTORED_H
#define LW_TRAIN_RESTORED_H

#include "data/data.h"
#include "session/session_sampler.h"

typedef struct lw_restored lw_restored;
/* `train`: the frames it learns from; o: how they are made worse. Opens the held-out rows. */
int lw_restored_new(const lw_dataset *train, const lw_clip_opts *o, const lw_observer *obs,
                    lw_restored **out);
void lw_restored_free(lw_restored **pp);
/* Crops of a frame: the batch of the sampler. */
int32_t lw_restored_crops(const lw_restored *r);
/* Adds psnr, psnr_swapped, psnr_input, psnr_unsharp, psnr_wiener and psnr_best, of the last three. */
int lw_restored_run(lw_restored *r, lw_sampler *s, const lw_observer *obs, json_t *row);
/* Damaged, answer, clean: a line for each of some held-out frames, lw_restored_lines of them. LW_ESTOPPED. */
int32_t lw_restored_lines(const lw_restored *r);
int lw_restored_grid(lw_restored *r, lw_sampler *s, const lw_observer *obs, lw_image *out);
/* "input 28.31 dB, unsharp mask 28.90 (sd 1, amount 0.5), ..." */
const char *lw_restored_filters(const lw_restored *r);

#endif
