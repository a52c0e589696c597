/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: the one training loop and what lies around it: schedule, accumulation, optimiser, logs, checkpoints, resume,
 * the run directory and its page. It knows samples and steps; what a step computes is a job's, and what trainers on
 * pictures share is in pictures/.
 *
 * Read: train_config.h (what a run is), train_loop.h (what a job gives and gets), then jobs/ddpm, the shortest trainer.
 */
#ifndef LW_TRAIN_H
#define LW_TRAIN_H

#include "train/train_best.h"
#include "train/train_config.h"
#include "train/train_curves.h"
#include "train/train_leaves.h"
#include "train/train_loop.h"
#include "train/train_page.h"
#include "train/train_run_dir.h"
#include "train/train_schedule.h"
#include "train/train_turns.h"
#include "train/pictures/train_generator.h"
#include "train/pictures/train_heldout.h"
#include "train/pictures/train_pictures.h"
#include "train/pictures/train_real_features.h"

#endif
