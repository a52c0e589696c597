/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures a dataset is of, so that they are found again. */
#ifndef LW_DATA_LISTING_H
#define LW_DATA_LISTING_H

#include "data/data_set.h"
#include "formats/formats.h"

/* {num_images, root, paths, rows, labels, class_names}: root and paths of files only, and then it is
 * one that `manifest:` reads; rows: which picture of its split each is. LW_EUNSUPPORTED: a name that is
 * not UTF-8. */
int lw_data_listing(const lw_dataset *d, json_t **out);

#endif
