/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerations that ir and kernels share, which may not see each other. */
#ifndef LW_BASE_KINDS_H
#define LW_BASE_KINDS_H

/* The activation fused behind a product, a convolution or a normalisation. */
typedef enum lw_act { LW_ACT_NONE, LW_ACT_RELU, LW_ACT_SILU } lw_act;

#endif
