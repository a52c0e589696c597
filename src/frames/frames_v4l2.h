/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a video device: the kernel's calls, or those of a device that a test makes up. */
#ifndef LW_FRAMES_V4L2_H
#define LW_FRAMES_V4L2_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As the functions of these names in libc: -1 and errno, or MAP_FAILED. */
typedef struct lw_v4l2_calls {
    int (*open)(const char *path);
    int (*control)(int fd, unsigned long request, void *arg);
    void *(*map)(int fd, size_t size, off_t at);
    int (*unmap)(void *p, size_t size);
    /* Whether a frame is there after at most `ms`: as poll of one descriptor. */
    int (*wait)(int fd, int ms);
    ssize_t (*write)(int fd, const void *bytes, size_t n);
    int (*close)(int fd);
} lw_v4l2_calls;

/* The kernel's; tests put their own here. */
extern const lw_v4l2_calls *lw_v4l2_device;

/* A request, repeated where a signal came between. -1 with errno. */
int lw_v4l2_control(int fd, unsigned long request, void *arg);
/* LW_E* with "NAME: what: reason": unplugged and busy devices are LW_EDEVICE. */
int lw_v4l2_fail(const char *name, const char *what);
/* "YUYV" of a pixel format. */
const char *lw_v4l2_word(char buf[8], unsigned pixels);

#endif
