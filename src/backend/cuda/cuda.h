/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs as devices, for backend.c. */
#ifndef LW_BACKEND_CUDA_H
#define LW_BACKEND_CUDA_H

#include "backend/backend.h"

/* "cuda" or "cuda:N". LW_EDEVICE says what is missing. */
int lw_cuda_open(const char *name, const lw_backend_options *options, lw_device **out);
/* 0: there is such a GPU and it is new enough. */
int lw_cuda_there(const char *name);
/* LW_EUSAGE: this is no such name, and stands in LW_DEVICE. */
int lw_cuda_check_name(const char *name);
/* One line for a person about GPU number i: its name, or (LW_EDEVICE) why it cannot be used. */
int lw_cuda_describe(int i, char *line, size_t size);
int lw_cuda_count(void); /* 0: no driver, or it sees none */
/* Does this program hold kernels for GPUs? */
bool lw_cuda_built(void);

#endif
