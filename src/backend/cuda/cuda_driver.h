/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's driver, opened while the program runs: nothing of CUDA is linked, and a machine without
 * a driver starts the same program. The prototypes are the driver's, written down here; where cuda.h
 * is there while building, cuda_driver.c checks what they assume.
 */
#ifndef LW_CUDA_DRIVER_H
#define LW_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t lw_cu_ptr;
typedef struct lw_cu_context lw_cu_context;
typedef struct lw_cu_module lw_cu_module;
typedef struct lw_cu_function lw_cu_function;
typedef struct lw_cu_stream lw_cu_stream;
typedef struct lw_cu_event lw_cu_event;
typedef struct lw_cu_graph lw_cu_graph;
typedef struct lw_cu_graph_exec lw_cu_graph_exec;

enum {
    LW_CU_OUT_OF_MEMORY = 2,
    LW_CU_STUB = 34,
    LW_CU_NO_DEVICE = 100,
    LW_CU_STREAM_NON_BLOCKING = 1,
    LW_CU_EVENT_DISABLE_TIMING = 2,
    LW_CU_CAPTURE_THREAD_LOCAL = 1,
    LW_CU_MULTIPROCESSORS = 16,
    LW_CU_CC_MAJOR = 75,
    LW_CU_CC_MINOR = 76,
    LW_CU_SHARED_MOST = 97,     /* bytes of a block */
    LW_CU_SHARED_AT_LAUNCH = 8, /* of a kernel */
    LW_CU_CLUSTER = 4,          /* of a launch: so many neighbouring blocks are a cluster */
    LW_CU_EARLY_START =
        6, /* of a launch: before the one before is through, which the kernel waits for */
};

/* How a kernel is started; CUlaunchConfig and CUlaunchAttribute. */
typedef struct lw_cu_attribute {
    int which, hole;
    union {
        int number;
        unsigned cluster[3];
        char room[64];
    } value;
} lw_cu_attribute;
typedef struct lw_cu_launch {
    unsigned grid[3], block[3], shared;
    lw_cu_stream *stream;
    lw_cu_attribute *attributes;
    unsigned n_attributes;
} lw_cu_launch;

/* X(name, arguments): cu<name>, which returns 0 or an error's number. */
#define LW_CUDA_CALLS(X)                                                                   \
    X(Init, (unsigned))                                                                    \
    X(DriverGetVersion, (int *))                                                           \
    X(DeviceGetCount, (int *))                                                             \
    X(DeviceGet, (int *, int))                                                             \
    X(DeviceGetName, (char *, int, int))                                                   \
    X(DeviceGetAttribute, (int *, int, int))                                               \
    X(DeviceTotalMem_v2, (size_t *, int))                                                  \
    X(DevicePrimaryCtxRetain, (lw_cu_context **, int))                                     \
    X(DevicePrimaryCtxRelease_v2, (int))                                                   \
    X(CtxSetCurrent, (lw_cu_context *))                                                    \
    X(ModuleLoadData, (lw_cu_module **, const void *))                                     \
    X(ModuleUnload, (lw_cu_module *))                                                      \
    X(ModuleGetFunction, (lw_cu_function **, lw_cu_module *, const char *))                \
    X(FuncSetAttribute, (lw_cu_function *, int, int))                                      \
    X(MemGetInfo_v2, (size_t *, size_t *))                                                 \
    X(MemAlloc_v2, (lw_cu_ptr *, size_t))                                                  \
    X(MemFree_v2, (lw_cu_ptr))                                                             \
    X(MemsetD8Async, (lw_cu_ptr, unsigned char, size_t, lw_cu_stream *))                   \
    X(MemsetD32Async, (lw_cu_ptr, unsigned, size_t, lw_cu_stream *))                       \
    X(MemHostAlloc, (void **, size_t, unsigned))                                           \
    X(MemFreeHost, (void *))                                                               \
    X(MemcpyHtoDAsync_v2, (lw_cu_ptr, const void *, size_t, lw_cu_stream *))               \
    X(MemcpyDtoHAsync_v2, (void *, lw_cu_ptr, size_t, lw_cu_stream *))                     \
    X(StreamCreate, (lw_cu_stream **, unsigned))                                           \
    X(StreamSynchronize, (lw_cu_stream *))                                                 \
    X(StreamDestroy_v2, (lw_cu_stream *))                                                  \
    X(EventCreate, (lw_cu_event **, unsigned))                                             \
    X(EventRecord, (lw_cu_event *, lw_cu_stream *))                                        \
    X(EventSynchronize, (lw_cu_event *))                                                   \
    X(EventElapsedTime, (float *, lw_cu_event *, lw_cu_event *))                           \
    X(EventDestroy_v2, (lw_cu_event *))                                                    \
    X(StreamBeginCapture_v2, (lw_cu_stream *, int))                                        \
    X(StreamEndCapture, (lw_cu_stream *, lw_cu_graph **))                                  \
    X(GraphInstantiateWithFlags, (lw_cu_graph_exec **, lw_cu_graph *, unsigned long long)) \
    X(GraphLaunch, (lw_cu_graph_exec *, lw_cu_stream *))                                   \
    X(GraphExecDestroy, (lw_cu_graph_exec *))                                              \
    X(GraphDestroy, (lw_cu_graph *))                                                       \
    X(LaunchKernelEx, (const lw_cu_launch *, lw_cu_function *, void **, void **))          \
    X(GetErrorName, (int, const char **))                                                  \
    X(GetErrorString, (int, const char **))

typedef struct lw_cuda_driver {
    void *library;
#define LW_CUDA_CALL(name, arguments) int(*name) arguments;
    LW_CUDA_CALLS(LW_CUDA_CALL)
#undef LW_CUDA_CALL
} lw_cuda_driver;

/* Opens and starts the driver. LW_EDEVICE says why there is none: no library, NVIDIA's stub, too old
 * a one, no device. */
int lw_cuda_driver_open(lw_cuda_driver *d, int *devices);
void lw_cuda_driver_close(lw_cuda_driver *d);
/* "CUDA_ERROR_OUT_OF_MEMORY (out of memory)", in the driver's words. */
const char *lw_cuda_error(const lw_cuda_driver *d, int code, char *room, size_t size);

#endif
