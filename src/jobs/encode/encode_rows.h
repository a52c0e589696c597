/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: which pictures are encoded, and how they are found again. */
#ifndef LW_ENCODE_ROWS_H
#define LW_ENCODE_ROWS_H

#include "jobs/encode/encode_file.h"

typedef struct lw_encode_rows {
    lw_dataset *data;
    int64_t *row;   /* of the dataset, [n], in the order they are encoded */
    int32_t *label; /* [n] */
    int64_t n;
    uint64_t hash; /* of row */
} lw_encode_rows;

/* Opens the data as the network wants it and draws its rows. LW_EUSAGE: more than there are. */
int lw_encode_rows_open(const lw_encode_config *c, const lw_network *net, lw_pool *pool,
                        const lw_observer *obs, lw_encode_rows *out);
void lw_encode_rows_clear(lw_encode_rows *r);
/* Writes OUTPUT.json. */
int lw_encode_rows_save(const lw_encode_rows *r, const lw_encode_file *f);

#endif
