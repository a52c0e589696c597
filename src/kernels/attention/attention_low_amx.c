/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with products of bf16 on tile registers. Forward heads of few channels cost exponentials
 * more than products and stay where they were. */
#include "kernels/attention/attention_elem_bf16.h"

#define AT_NARROW
#define is_narrow(s) ((s)->hd <= 16)
#define narrow_forward lw_attention_forward_bf16_avx512bf16
#include "kernels/attention/attention_forward_body.inc"

#include "kernels/attention/attention_backward_body.inc"
