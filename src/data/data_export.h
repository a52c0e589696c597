/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a dataset in files that other programs read: `leeway data export`. */
#ifndef LW_DATA_EXPORT_H
#define LW_DATA_EXPORT_H

#include "data/data_set.h"

/*
 * output, by its name:
 *   x.npy    u8 [n][h][w][channels]; written row by row
 *   x.npz    the same as arr_0, and as arr_1 the labels i64 [n] where there are any (ADM's layout)
 *   DIR      CLASS/000000.png, ... by place in the dataset; without labels DIR/000000.png, ...; of pictures that are gray or RGB
 *            Must not hold anything yet
 *
 * Whole or not at all. tensor: and folder: read them again. LW_EUSAGE: DIR holds something.
 */
int lw_data_export(const lw_dataset *d, const char *output, const lw_observer *obs);

#endif
