/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device that a job computes on. */
#ifndef LW_SESSION_DEVICE_H
#define LW_SESSION_DEVICE_H

#include "backend/backend.h"

/* The CPU with `threads` workers (0: all), bound or not (lw_backend_bind), at the level LW_ISA allows. Closed by lw_backend_close. */
int lw_session_device(int threads, lw_device **out);
/* The same; conv (lw_conv_mode) says where f32 convolutions use Winograd's tiles. */
int lw_session_device_with(int threads, int32_t conv, lw_device **out);
const char *lw_conv_mode_name(int32_t conv); /* "auto", "direct", "winograd" */
/* Rate of a plain f32 product on all threads, FLOP per second; a few milliseconds. */
double lw_session_flops(lw_device *dev);

#endif
