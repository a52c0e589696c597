/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device that recipes compute on. */
#ifndef LW_RECIPE_DEVICE_H
#define LW_RECIPE_DEVICE_H

#include "plan/plan.h"
#include "recipes/recipe_observer.h"

/* The CPU with `threads` workers (0: all) at the level LW_ISA allows. Closed by lw_cpu_close. */
int lw_recipe_device(int threads, lw_device **out);
void lw_recipe_device_close(lw_device **pp); /* for folders that know no backend */
/* The same; conv (lw_conv_mode) says where f32 convolutions use Winograd's tiles. */
int lw_recipe_device_with(int threads, int32_t conv, lw_device **out);
/* Runs on it end within a step's time, with LW_ESTOPPED, once the observer (may be NULL; outlives
 * them) asks for it: for work that has nothing to save. */
void lw_recipe_device_watch(lw_device *dev, const lw_observer *obs);
/* Rate of a plain f32 product on all threads, FLOP per second; a few milliseconds. */
double lw_recipe_measure_flops(lw_device *dev);

#endif
