/* SPDX-License-Identifier: Apache-2.0 */
/* Private to tensor and shards: pictures in one file of arrays. */
#ifndef LW_DATA_TENSOR_H
#define LW_DATA_TENSOR_H

#include "data/data_pixels.h"
#include "formats/formats.h"

typedef struct tensor_part {
    lw_array pixels, labels; /* labels: no data when there are none */
} tensor_part;

typedef struct tensor_file {
    tensor_part train, held; /* held: no data when every tenth of train is */
    int32_t h, w, c, classes;
    int64_t n; /* of pictures of train */
} tensor_file;

/* .npy, .npz or .safetensors; labels: another file for those of a .npy, or NULL. LW_EFORMAT: they are no
 * pictures. Cleared in any case. */
int lw_tensor_load(const char *path, const char *labels, tensor_file *out);
void lw_tensor_clear(tensor_file *f); /* accepts a zeroed struct; fits LW_CLEANUP */
/* Class of picture i of a part that has labels. */
int32_t lw_tensor_label(const tensor_part *part, int64_t i);
/* A copy of picture i. */
int lw_tensor_get(const tensor_file *f, const tensor_part *part, int64_t i, lw_raster *im,
                  int32_t *label);

#endif
