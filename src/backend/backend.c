/* SPDX-License-Identifier: Apache-2.0 */
/* The devices by name. */
#include "backend/backend.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "backend/cuda/cuda.h"

static const struct {
    const char *name;
    int (*open)(const lw_backend_options *options, lw_device **out);
} devices[] = {{"cpu", lw_cpu_open}, {"cpu-discrete", lw_cpu_open_discrete}};

static bool is_cuda(const char *name)
{
    return lw_str_eq(name, "cuda") || lw_str_starts(name, "cuda:");
}

int lw_backend_open(const char *name, const lw_backend_options *options, lw_device **out)
{
    for (size_t i = 0; i < LW_COUNT(devices); i++)
        if (lw_str_eq(name, devices[i].name))
            return devices[i].open(options, out);
    if (is_cuda(name)) {
        int rc = lw_cuda_open(name, options, out);
        if (rc == LW_EDEVICE && lw_backend_working()) /* no kernels for it, or too old */
            lw_backend_refuse();
        return rc;
    }
    return lw_fail(LW_EDEVICE, "there is no device '%s'; there are cpu, cpu-discrete and cuda[:N]",
                   name);
}

static char chosen[16]; /* by the program; else empty */

int lw_backend_choose(const char *name)
{
    if (is_cuda(name))
        LW_TRY(lw_cuda_there(name));
    snprintf(chosen, sizeof chosen, "%s", name);
    return 0;
}

const char *lw_backend_chosen(void)
{
    const char *name = getenv("LW_DEVICE");
    name = *chosen ? chosen : name && *name ? name : "cpu";
    return lw_str_eq(name, "cuda") ? "cuda:0" : name;
}

int lw_backend_check_chosen(void)
{
    return !*chosen && is_cuda(lw_backend_chosen()) ? lw_cuda_check_name(lw_backend_chosen()) : 0;
}

static bool binds;

void lw_backend_bind(bool on)
{
    binds = on;
}

bool lw_backend_binds(void)
{
    return binds;
}

static lw_conv_choices tuned;

void lw_backend_tune(lw_conv_choices choices)
{
    tuned = choices;
}

lw_conv_choices lw_backend_tuned(void)
{
    return tuned;
}

/* The first failure of any device. Devices of several threads may fail at once. */
static char failure[256];
static atomic_bool failing, failed;

void lw_backend_fail(const char *why)
{
    if (atomic_exchange(&failing, true))
        return;
    snprintf(failure, sizeof failure, "%s", why);
    atomic_store(&failed, true);
}

int lw_backend_failed(void)
{
    return atomic_load(&failed) ? lw_fail(LW_EDEVICE, "the device failed: %s", failure) : 0;
}

int lw_backend_failed_on(const lw_device *device)
{
    return device->failed ? lw_fail(LW_EDEVICE, "%s: %s", device->name, device->why) : 0;
}

bool lw_backend_working(void)
{
    return !atomic_load(&failed);
}

static atomic_bool refused, begun;
static void (*on_begin)(void);

void lw_backend_refuse(void)
{
    refused = true;
}

bool lw_backend_refused(void)
{
    return refused;
}

void lw_backend_begin(void)
{
    if (!atomic_exchange(&begun, true) && on_begin)
        on_begin();
}

bool lw_backend_begun(void)
{
    return begun;
}

void lw_backend_on_begin(void (*tell)(void))
{
    on_begin = tell;
}

int lw_backend_gpu(int i, char *line, size_t size)
{
    return lw_cuda_describe(i, line, size);
}

int lw_backend_gpu_count(void)
{
    return lw_cuda_count();
}

bool lw_backend_has_gpu_kernels(void)
{
    return lw_cuda_built();
}

void lw_backend_close(lw_device **pp)
{
    if (*pp)
        (*pp)->close(*pp);
    *pp = NULL;
}
