/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW and EMA, avx2 words. */
#include "kernels/optim/optim_body.inc"
