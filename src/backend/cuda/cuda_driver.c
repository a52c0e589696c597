/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the driver and its functions. */
#include "backend/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

#ifdef LW_HAVE_CUDA_H
#include <cuda.h>
_Static_assert(sizeof(CUdeviceptr) == sizeof(lw_cu_ptr), "device addresses");
_Static_assert(CUDA_ERROR_OUT_OF_MEMORY == (CUresult)LW_CU_OUT_OF_MEMORY, "out of memory");
_Static_assert(CUDA_ERROR_STUB_LIBRARY == (CUresult)LW_CU_STUB, "stub");
_Static_assert(CUDA_ERROR_NO_DEVICE == (CUresult)LW_CU_NO_DEVICE, "no device");
_Static_assert(CU_STREAM_NON_BLOCKING == (CUstream_flags)LW_CU_STREAM_NON_BLOCKING, "streams");
_Static_assert(CU_EVENT_DISABLE_TIMING == (CUevent_flags)LW_CU_EVENT_DISABLE_TIMING, "events");
_Static_assert(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ==
                   (CUstreamCaptureMode)LW_CU_CAPTURE_THREAD_LOCAL,
               "captures");
_Static_assert(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == (CUlaunchAttributeID)LW_CU_CLUSTER,
               "clusters");
_Static_assert(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ==
                   (CUlaunchAttributeID)LW_CU_EARLY_START,
               "launches");
_Static_assert(sizeof(CUlaunchAttribute) == sizeof(lw_cu_attribute) &&
                   offsetof(CUlaunchAttribute, value) == offsetof(lw_cu_attribute, value),
               "launches");
_Static_assert(sizeof(CUlaunchConfig) == sizeof(lw_cu_launch) &&
                   offsetof(CUlaunchConfig, sharedMemBytes) == offsetof(lw_cu_launch, shared) &&
                   offsetof(CUlaunchConfig, hStream) == offsetof(lw_cu_launch, stream) &&
                   offsetof(CUlaunchConfig, attrs) == offsetof(lw_cu_launch, attributes) &&
                   offsetof(CUlaunchConfig, numAttrs) == offsetof(lw_cu_launch, n_attributes),
               "launches");
_Static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ==
                   (CUfunction_attribute)LW_CU_SHARED_AT_LAUNCH,
               "shared memory");
_Static_assert(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ==
                   (CUdevice_attribute)LW_CU_SHARED_MOST,
               "shared memory of a block");
_Static_assert(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ==
                   (CUdevice_attribute)LW_CU_MULTIPROCESSORS,
               "multiprocessors");
_Static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == (CUdevice_attribute)LW_CU_CC_MAJOR,
               "attributes");
_Static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == (CUdevice_attribute)LW_CU_CC_MINOR,
               "attributes");
#endif

const char *lw_cuda_error(const lw_cuda_driver *d, int code, char *room, size_t size)
{
    const char *name = NULL, *text = NULL;
    if (d->GetErrorName(code, &name) != 0 || !name)
        name = "error";
    if (d->GetErrorString(code, &text) != 0 || !text)
        text = "unknown";
    snprintf(room, size, "%s %d (%s)", name, code, text);
    return room;
}

static int find_calls(lw_cuda_driver *d)
{
#define LW_CUDA_CALL(name, arguments)                                                    \
    {                                                                                    \
        void *at = dlsym(d->library, "cu" #name);                                        \
        if (!at)                                                                         \
            return lw_fail(LW_EDEVICE, "NVIDIA's driver is too old: it lacks cu" #name); \
        memcpy(&d->name, &at, sizeof at);                                                \
    }
    LW_CUDA_CALLS(LW_CUDA_CALL)
#undef LW_CUDA_CALL
    return 0;
}

static int start(lw_cuda_driver *d, int *devices)
{
    char why[256];
    LW_TRY(find_calls(d));
    int rc = d->Init(0);
    if (rc == LW_CU_STUB)
        return lw_fail(LW_EDEVICE, "libcuda.so.1 is the toolkit's stub, not a driver");
    if (rc == 0)
        rc = d->DeviceGetCount(devices);
    if (rc == LW_CU_NO_DEVICE || (rc == 0 && *devices == 0))
        return lw_fail(LW_EDEVICE, "NVIDIA's driver is there, but it sees no GPU");
    if (rc != 0)
        return lw_fail(LW_EDEVICE, "NVIDIA's driver does not start: %s",
                       lw_cuda_error(d, rc, why, sizeof why));
    return 0;
}

int lw_cuda_driver_open(lw_cuda_driver *d, int *devices)
{
    *d = (lw_cuda_driver){.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
    *devices = 0;
    if (!d->library)
        return lw_fail(LW_EDEVICE, "no NVIDIA driver is installed (libcuda.so.1 was not found)");
    int rc = start(d, devices);
    if (rc < 0)
        lw_cuda_driver_close(d);
    return rc;
}

void lw_cuda_driver_close(lw_cuda_driver *d)
{
    if (d->library)
        dlclose(d->library);
    d->library = NULL;
}
