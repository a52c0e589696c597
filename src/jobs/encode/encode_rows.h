/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: which pictures are encoded, and how they are found again. */
#ifndef LW_ENCODE_ROWS_H
#define LW_ENCODE_ROWS_H

#include "jobs/encode/encode_file.h"

typedef struct lw_encode_rows {
    lw_str spec; /* as the data is opened */
    lw_dataset *data;
    int64_t n;     /* rows of data; of a dry run those there would be */
    uint64_t hash; /* of their numbers in the split */
    json_t *list;  /* what OUTPUT.json says of them */
} lw_encode_rows;

/* Opens the data as the network wants it. LW_EUSAGE: neither data nor a manifest, or both of
 * different kinds. */
int lw_encode_rows_open(const lw_encode_config *c, const lw_network *net, lw_pool *pool,
                        const lw_observer *obs, lw_encode_rows *out);
void lw_encode_rows_clear(lw_encode_rows *r);
/* Writes OUTPUT.json, which is a manifest where rows are files. */
int lw_encode_rows_save(lw_encode_rows *r, const lw_encode_file *f);

#endif
