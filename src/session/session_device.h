/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device that a job computes on. */
#ifndef LW_SESSION_DEVICE_H
#define LW_SESSION_DEVICE_H

#include "backend/backend.h"

/* The CPU with `threads` workers (0: all), bound or not (lw_backend_bind), at the level LW_ISA allows. Closed by lw_backend_close. */
int lw_session_device(int threads, lw_device **out);
/* The same; conv (lw_conv_mode) says where convolutions use Winograd's tiles. */
int lw_session_device_with(int threads, int32_t conv, lw_device **out);
const char *lw_conv_mode_name(int32_t conv); /* "auto", "direct", "winograd" */
/* Kinds of devices, as results are said to be of: "cpu", "cuda"; behind a change of devices "cpu, cuda". */
enum { LW_DEVICE_KINDS = 64 };
void lw_session_device_kind(const lw_device *device, char kind[LW_DEVICE_KINDS]);
/* Of a device that nobody wrote down, from its level (lw_device.isa; NULL: not known either). */
const char *lw_session_device_of(const char *isa);
/* `where` (a file) holds what devices `then` computed, and `kinds`, this one's kind, goes on with it: they become those of both.
 * LW_EUSAGE: another kind of device, whose last bits differ, and the user did not say that it may (`change`). */
int lw_session_device_follow(const char *where, const char *then, bool change,
                             char kinds[LW_DEVICE_KINDS]);
/* Rate of a plain f32 product on all threads, FLOP per second; a few milliseconds. */
double lw_session_flops(lw_device *dev);

#endif
