/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device that recipes compute on. */
#include "recipes/recipe_device.h"

#include "backend/cpu/cpu.h"

int lw_recipe_device(int threads, lw_device **out)
{
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    return lw_cpu_open(threads, isa, out);
}
