/* SPDX-License-Identifier: Apache-2.0 */
/* Block sizes of the tiled attention, shared by the task split and by the kernels. Private to
 * attention/. */
#ifndef LW_KERNELS_ATTENTION_BLOCK_H
#define LW_KERNELS_ATTENTION_BLOCK_H

#define LW_ATTENTION_ROWS 384 /* query rows of a forward task, at most: each packs k and v, */
#define LW_ATTENTION_FEW 64   /* which costs a tenth of these rows, so no less */
#define LW_ATTENTION_TASKS 48 /* of all samples: fewer are cut finer */
#define LW_ATTENTION_QF 32    /* query rows of a forward tile */
#define LW_ATTENTION_KF 288   /* keys of a forward tile, at most: 256 and a class token */
#define LW_ATTENTION_B 64     /* query rows and keys of a backward tile */
#define LW_ATTENTION_NR 32    /* keys of a packed panel */

/* tq, tk: tokens rounded up to 64, d: channels of a head rounded up to 32.
 * Forward: k transposed, v, one tile of scores and of output, two values per row of it; of bf16
 * also probabilities and queries, two in a word. */
#define LW_ATTENTION_FORWARD_FLOATS(tk, d) \
    (2 * (tk) * (d) + LW_ATTENTION_QF * ((d) + LW_ATTENTION_KF + 2 + ((d) + LW_ATTENTION_KF) / 2))
/* Backward: k and v transposed, k, dk, dv, and q, dO, dq; S and dP, of bf16 also P and dS in words; one
 * value per row of q. In words of two, operands that are there both as rows and as steps take no more, and
 * leave B * B / 2 for products that want P and dS as rows of keys. */
#define LW_ATTENTION_BACKWARD_FLOATS(tq, tk, d) \
    ((5 * (tk) + 3 * (tq)) * (d) + 7 * LW_ATTENTION_B * LW_ATTENTION_B / 2 + (tq))

#endif
