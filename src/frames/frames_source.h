/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of source is. */
#ifndef LW_FRAMES_SOURCE_H
#define LW_FRAMES_SOURCE_H

#include "frames/frames.h"

typedef struct lw_frame_source_def {
    const char *word;   /* "test", "folder:", ".y4m", "-": the spec is it, begins or ends with it */
    const char *spoken; /* "FILE.y4m": in messages */
    /* Fills format and self; what it opened is left to close, also when it failed. */
    int (*open)(lw_frame_source *s, const char *spec, const lw_frame_options *o);
    int (*next)(lw_frame_source *s, uint8_t *bytes, double *captured); /* 0, 1, LW_E* */
    int (*rewind)(lw_frame_source *s);
    void (*close)(lw_frame_source *s);
} lw_frame_source_def;

extern const lw_frame_source_def lw_frames_from_y4m, lw_frames_from_pipe, lw_frames_from_mjpeg,
    lw_frames_from_folder, lw_frames_from_test, lw_frames_from_mp4, lw_frames_from_mkv,
    lw_frames_from_mov, lw_frames_from_webm, lw_frames_from_avi, lw_frames_from_v4l2,
    lw_frames_from_browser;

/* "320x240@30", "320x240" or "": what is missing stays. -1: none of these. */
int lw_frame_size_read(const char *text, int64_t *w, int64_t *h, int64_t *fps);
/* Whether a spec is of the kind with this word. */
bool lw_frame_named(const char *word, const char *spec);
/* A damaged frame of a live source is passed over: counted; LW_EFORMAT with the last one's reason after
 * LW_FRAME_MOST_BAD (*bad) in a row. */
enum { LW_FRAME_MOST_BAD = 100 };
int lw_frame_skip(lw_frame_source *s, int *bad);
/* Matrix and range as the options say; `full`: what the source says. */
void lw_frame_colours(lw_frame_format *f, const lw_frame_options *o, bool full);

/* Bytes in order from a file or a pipe. Waits of a pipe ask `stopped`. */
typedef struct lw_frame_bytes {
    int fd;
    bool regular, opened;
    const lw_frame_options *options;
    char *buf;
    size_t begin, end, cap; /* what is read and not yet given: buf[begin..end) */
} lw_frame_bytes;

/* "-": standard input. LW_EIO. */
int lw_frame_bytes_open(lw_frame_bytes *b, const char *path, const lw_frame_options *o);
void lw_frame_bytes_close(lw_frame_bytes *b);
/* At least n bytes into buf if there are as many; *have: how many there are. `name` for messages. */
int lw_frame_bytes_want(lw_frame_bytes *b, const char *name, size_t n, size_t *have);
/* The next n into `to`; *got: fewer at the end. */
int lw_frame_bytes_get(lw_frame_bytes *b, const char *name, void *to, size_t n, size_t *got);
int lw_frame_bytes_rewind(lw_frame_bytes *b, const char *name);

/* The source as one of JPEGs in these bytes, which become its own: standard input may be that. */
int lw_frame_mjpeg_begin(lw_frame_source *s, lw_frame_bytes *bytes);

#endif
