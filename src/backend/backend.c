/* SPDX-License-Identifier: Apache-2.0 */
/* The devices by name. */
#include "backend/backend.h"

#include <stdlib.h>

#include "backend/cpu/cpu.h"

static const struct {
    const char *name;
    int (*open)(const lw_backend_options *options, lw_device **out);
} devices[] = {{"cpu", lw_cpu_open}, {"cpu-discrete", lw_cpu_open_discrete}};

int lw_backend_open(const char *name, const lw_backend_options *options, lw_device **out)
{
    for (size_t i = 0; i < LW_COUNT(devices); i++)
        if (lw_str_eq(name, devices[i].name))
            return devices[i].open(options, out);
    return lw_fail(LW_EDEVICE, "there is no device '%s'; there are cpu and cpu-discrete", name);
}

const char *lw_backend_chosen(void)
{
    const char *name = getenv("LW_DEVICE");
    return name && *name ? name : "cpu";
}

void lw_backend_close(lw_device **pp)
{
    if (*pp)
        (*pp)->close(*pp);
    *pp = NULL;
}
