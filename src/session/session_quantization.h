/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types of products as users choose them (--precision), and the ranges that int8 needs:
 * quantization.json of a model folder, written by `leeway quantize` (docs/formats.md).
 */
#ifndef LW_SESSION_QUANTIZATION_H
#define LW_SESSION_QUANTIZATION_H

#include <jansson.h>

#include "models/models.h"
#include "plan/plan.h"

/* The values of --precision, in the order of lw_num. */
#define LW_PRECISION_CHOICES "f32|bf16|int8"
#define LW_PRECISION_TRAIN_CHOICES "f32|bf16"
const char *lw_precision_name(int32_t num); /* "f32", "bf16", "int8" */

typedef struct lw_quantization lw_quantization;

/* What a calibration saw of one edge. */
typedef struct lw_edge_seen {
    const char *name; /* of the product's weight */
    float lo, hi;     /* of all values */
    float scale;
    int32_t zero;
    double error; /* relative to the values' root mean square, of rounding to u8 */
} lw_edge_seen;

/* quantization.json of a model folder; *out stays NULL when there is none. LW_EFORMAT: what is
 * wrong with it. */
int lw_quantization_find(const char *dir, lw_quantization **out);
/* The same for a network in that precision; errors of lw_precision_check. */
int lw_quantization_need(const lw_network *n, int32_t precision, lw_quantization **out);
void lw_quantization_free(lw_quantization **pp);
/* What lw_compile wants; NULL for NULL. Lives as long as q. */
const lw_calibration *lw_quantization_ranges(const lw_quantization *q);
/* Of the names, scales and zero points, in the order of the file. */
uint64_t lw_quantization_hash(const lw_quantization *q);
/* The weights of this model folder are an average: those of a checkpoint's ema/, or what was quantised of
 * them. q: of the same folder; NULL: it has none. */
bool lw_weights_averaged(const char *dir, const lw_quantization *q);
/* Writes dir/quantization.json. about: borrowed, says how it was made. */
int lw_quantization_save(const char *dir, const lw_edge_seen *edge, int32_t n, json_t *about);

/* In int8 only, saying what to do: LW_EUSAGE, `name` was not quantised; LW_EFORMAT, q was measured with
 * other weights than those of n, which may be NULL where q is. */
int lw_precision_check(int32_t num, const lw_quantization *q, const lw_network *n,
                       const char *name);

#endif
