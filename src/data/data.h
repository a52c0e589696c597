/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data: pictures with labels, from a spec the user typed to batches a network reads.
 *
 *   "cifar10:/d" --open--> source (plan: what is it, changed?)
 *                            |  in the cache?  yes: the mapped file
 *                            |                 no: decode once, under a file lock, then rename
 *                            v
 *                        lw_dataset --> lw_loader (ring of filled batches)
 *                                   --> lw_class_sampler_draw (groups of a drift step)
 *                                   --> lw_data_check, lw_data_sheet
 *                                   --> lw_junk (pictures a judge must refuse)
 *                                   --> lw_view_make (a picture seen another way)
 *
 * Read: data_set.h (open, the dataset), data_loader.h, data_classes.h, data_check.h, data_junk.h, data_view.h,
 * data_prepare.h (what published networks want done to a picture), data_features.h (what they make of it); then data_source.h (private: how
 * a source is written) and one source, e.g. data_mnist.c.
 *
 * Every source is 8-bit, channels last, gray or RGB as is asked for, or of as many channels as its
 * pictures have (data_pixels.h); networks see x / 127.5 - 1. Synthetic pictures are
 * rounded to 8 bits like all others, so that there is one path. Order, flips and draws are pure
 * functions of a seed and a step: nothing here has state that a checkpoint would need. A dataset is
 * read-only once open and may be shared by threads; loaders borrow it.
 */
#ifndef LW_DATA_H
#define LW_DATA_H

#include "data/data_cache_list.h"
#include "data/data_check.h"
#include "data/data_classes.h"
#include "data/data_queue.h"
#include "data/data_clips.h"
#include "data/data_degrade.h"
#include "data/data_export.h"
#include "data/data_features.h"
#include "data/data_junk.h"
#include "data/data_listing.h"
#include "data/data_loader.h"
#include "data/data_pixels.h"
#include "data/data_prepare.h"
#include "data/data_set.h"
#include "data/data_view.h"

#endif
