/* SPDX-License-Identifier: Apache-2.0 */
/* Peak of bytes, avxvnni words. */
#include "kernels/peak/peak_int8_body.inc"
