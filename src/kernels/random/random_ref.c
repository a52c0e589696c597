/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows, ref words. */
#include "kernels/random/random_body.inc"
