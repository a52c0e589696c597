/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module `libav`: video files through FFmpeg's libraries (base/sys/sys_module.h). frames_video.c
 * is its caller; nothing else includes FFmpeg's headers or links its libraries.
 *
 * Functions return 0 or LW_E* with the reason in `why`, which has LW_LIBAV_WHY bytes and is "" where
 * the callback that it was given failed. What open and create made is to be closed, also when they
 * failed.
 */
#ifndef LW_FRAMES_LIBAV_CALLS_H
#define LW_FRAMES_LIBAV_CALLS_H

#include "frames/frames.h"

enum { LW_LIBAV_VERSION = 2, LW_LIBAV_WHY = 200 };

typedef struct lw_libav_said {
    int32_t matrix; /* as of lw_frame_options: 0: nothing */
    bool full_range;
    double turned;      /* degrees that the picture is to be turned by when shown */
    char converted[32]; /* FFmpeg's name of pixels that are none of lw_pixels_form; else "" */
} lw_libav_said;

/* The next bytes of the file; `begins`: all before them are whole frames. Below 0: stop. */
typedef int lw_libav_write_fn(void *self, const uint8_t *bytes, size_t n, bool begins);

typedef struct lw_libav_calls {
    int32_t version;
    /* A regular file. Of *f all but matrix and range are filled. */
    int (*open)(const char *path, lw_frame_format *f, lw_libav_said *said, void **reader,
                char *why);
    /* 1: no more. Frames before a damaged or missing place are given first. */
    int (*next)(void *reader, uint8_t *bytes, char *why);
    int (*rewind)(void *reader, char *why);
    void (*close_reader)(void **reader);
    /* mp4, of frames 4:2:0 in limited range. *coder: "libx264", "mpeg4". */
    int (*create)(const lw_frame_format *f, lw_libav_write_fn *write, void *self, void **writer,
                  const char **coder, char *why);
    int (*put)(void *writer, const uint8_t *frame, char *why);
    int (*finish)(void *writer, char *why);
    void (*close_writer)(void **writer);
    /* The k-th codec that a file may be read with (or is written with) and that is here; NULL: no more. */
    const char *(*codec)(bool writes, int k);
} lw_libav_calls;

/* The writer's, in libav_write.c. */
int lw_libav_create(const lw_frame_format *f, lw_libav_write_fn *write, void *self, void **writer,
                    const char **coder, char *why);
int lw_libav_put(void *writer, const uint8_t *frame, char *why);
int lw_libav_finish(void *writer, char *why);
void lw_libav_close_writer(void **writer);
/* "what: FFmpeg's reason" into why; LW_ENOMEM or `code`. */
int lw_libav_bad(char *why, int code, const char *what, int reason);

#endif
