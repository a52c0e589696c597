/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW and EMA, avx512 words. */
#include "kernels/optim/optim_body.inc"
