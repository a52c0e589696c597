/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What features are of: everything beside the pictures that decides their numbers. Two sets of
 * features, or of statistics of features, can be compared where their contracts agree; a distance
 * is called by its encoder.
 */
#ifndef LW_SESSION_CONTRACT_H
#define LW_SESSION_CONTRACT_H

#include "models/models.h"

typedef enum lw_contract_key {
    LW_CONTRACT_RESIZE,      /* a name of lw_resample_form_name, or "none" */
    LW_CONTRACT_ENCODER,     /* "resnet56" */
    LW_CONTRACT_HASH,        /* of its weights */
    LW_CONTRACT_LAYER,       /* "pooled" */
    LW_CONTRACT_PREPARATION, /* lw_contract_preparation, and the size of what stays as it is */
    LW_CONTRACT_DTYPE,       /* of products: "f32", "bf16", "int8" */
    LW_CONTRACT_KEYS
} lw_contract_key;
extern const char *const lw_contract_key_name[LW_CONTRACT_KEYS]; /* in files */

/* "": not said. All "": nobody knows (files of other programs). */
typedef struct lw_contract {
    char value[LW_CONTRACT_KEYS][320];
} lw_contract;

/* How a network's pictures are prepared, in words: lw_preparation_print, or "byte / 127.5 - 1". */
void lw_contract_preparation(const lw_network *n, lw_str *out);
/* Of `pooled` in the precision (lw_num) on pictures of h x w, which counts where the encoder takes
 * them as they are. */
void lw_contract_of(const lw_network *n, int32_t precision, int32_t h, int32_t w, lw_contract *out);
bool lw_contract_said(const lw_contract *c);
/* As an object of strings, and from one, other keys passed over. `what` names it in messages. */
json_t *lw_contract_json(const lw_contract *c);
int lw_contract_parse(const char *what, const json_t *j, lw_contract *out);
/* The first key that both say and say differently; LW_CONTRACT_KEYS: none. */
lw_contract_key lw_contract_differs(const lw_contract *a, const lw_contract *b);

/*
 * "Frechet distance, resnet56". Only one is called "FID": that of Inception-v3 in pytorch-fid's form
 * and with pytorch-fid's resize. With another resize it is "Frechet distance, inception_v3_fid, resize
 * float-aa". In buf, which is returned.
 */
const char *lw_contract_frechet(const lw_contract *c, char buf[96]);

#endif
