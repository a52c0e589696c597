/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: moving pictures in and out, one frame at a time.
 *
 *   lw_frame_source *in;                     lw_frame_sink *out;
 *   lw_frame_source_open("a.y4m", &o, &in);  lw_frame_sink_open("b.mjpeg", &in->format, &kernels, &out);
 *   while (lw_frame_source_next(in, bytes, &captured) == 0)         lw_pixels_bytes(&in->pixels)
 *       { ... to RGB ...; lw_frame_sink_put(out, rgb); }            [h][w][3]
 *   lw_frame_sink_finish(out);
 *
 * A kind of source or sink is a const record (frames_source.h, frames_sink.h), chosen by the word or
 * the ending of what the user typed:
 *
 *   sources   FILE.y4m, FILE.mjpeg, FILE.mp4 (.mkv .mov .webm .avi), folder:DIR, test[:WxH@FPS],
 *             browser, - (y4m, JPEGs, or raw frames), v4l2:/dev/videoN[:WxH]
 *   sinks     FILE.y4m, FILE.mjpeg, FILE.mp4, folder:DIR, - (y4m), v4l2:/dev/videoN, md5, null
 *
 * Everything read is hostile: sizes are checked before use, and what is damaged or cut off is
 * LW_EFORMAT with one line that names file, frame and reason; the frames before it were given.
 * JPEGs of cameras and pipes are passed over instead, and counted. A frame costs no allocation but
 * those of libraries (FFmpeg's, libpng).
 */
#ifndef LW_FRAMES_H
#define LW_FRAMES_H

#include "base/base.h"
#include "kernels/kernels.h"

/* Of the frames of one source: never changes. */
typedef struct lw_frame_format {
    lw_pixels_form form;
    lw_pixels_matrix matrix; /* of colours, where form is not RGB */
    bool full_range;
    int32_t w, h;
    int32_t rate, per; /* frames a second: rate / per */
} lw_frame_format;

/* RGB bytes, `fps` of them a second. */
lw_frame_format lw_frame_format_rgb(int32_t w, int32_t h, int32_t fps);

#define LW_FRAME_MAX_SIDE 16384
#define LW_FRAME_MAX_PIXELS ((int64_t)1 << 26)
/* LW_EFORMAT naming `what`: a side or rate that no frame has. */
int lw_frame_format_check(const char *what, int64_t w, int64_t h, int64_t rate, int64_t per);
/* "256x144 yuv420p, BT.601, limited range, 25 fps" into buf, which is returned. */
const char *lw_frame_format_text(char buf[96], const lw_frame_format *f);

/* A picture of a page's camera, and what the page wrote on it. */
enum { LW_FRAME_MARK = 16 };
typedef struct lw_frame_picture {
    const void *jpeg;
    size_t n;
    double received; /* lw_now() */
    uint8_t mark[LW_FRAME_MARK];
} lw_frame_picture;

typedef struct lw_frame_options {
    const char *raw; /* "WxH:FORMAT": the source has no headers; NULL: it has */
    double fps;      /* instead of the source's own; 0: that */
    int32_t buffers; /* of a camera, 1 to 4; 0: 4 */
    double
        reopen; /* a camera that fails is opened again, for at most so many seconds; 0: it is not */
    int32_t matrix; /* 0: BT.709 from 720 lines on, else BT.601; 1: BT.601; 2: BT.709 */
    int32_t range;  /* 0: as the source says, else limited; 1: limited; 2: full */
    bool (*stopped)(void *self); /* asked while waiting for a pipe; NULL: never */
    /* For `browser`: the newest picture, valid until the next call, waiting for at most `seconds`: 0,
     * LW_MAILBOX_NOT_YET, LW_MAILBOX_END. NULL: there is no page. */
    int (*camera)(void *self, double seconds, lw_frame_picture *out);
    /* A camera failed, and why; "": it is back. From the thread that reads. NULL: nobody is told. */
    void (*trouble)(void *self, const char *why);
    void *self;
} lw_frame_options;

typedef struct lw_frame_source {
    const struct lw_frame_source_def *def;
    lw_frame_format format;
    lw_pixels pixels; /* of its frames */
    lw_str name;
    int64_t number;              /* of the next frame */
    bool live;                   /* a camera or a pipe: what is damaged is passed over */
    int64_t skipped;             /* such frames; read it when nobody reads frames */
    uint8_t mark[LW_FRAME_MARK]; /* of the last frame, as its page wrote it; else zeros */
    void *self;
} lw_frame_source;

/* LW_EUSAGE: no kind of source; LW_EIO, LW_EFORMAT. The options outlive the source. */
int lw_frame_source_open(const char *spec, const lw_frame_options *o, lw_frame_source **out);
/* The next frame into bytes; *captured: lw_now() before any of it was decoded. 0, 1 for no more,
 * LW_ESTOPPED, LW_E*. */
int lw_frame_source_next(lw_frame_source *s, uint8_t *bytes, double *captured);
/* From the first frame on. LW_EUSAGE: a pipe. */
int lw_frame_source_rewind(lw_frame_source *s);
/* Whether frames come at a pace of their own: those of pipes and cameras. */
bool lw_frame_source_paces(const lw_frame_source *s);
/* Names of video codecs that files are read with, and written with, as FFmpeg's libraries here have them.
 * LW_EUNSUPPORTED: there are none. */
int lw_frame_codecs(lw_str *reads, lw_str *writes);
bool lw_frame_source_of_page(const lw_frame_source *s); /* `browser` */
void lw_frame_source_close(lw_frame_source **pp);

typedef struct lw_frame_sink {
    const struct lw_frame_sink_def *def;
    lw_frame_format format; /* w, h and rate count; the form is the sink's own */
    lw_pixels pixels;
    const lw_kernels *kernels;
    lw_str name;
    int64_t n; /* frames put */
    void *self;
} lw_frame_sink;

/* LW_EUSAGE: two of n are the same, however spelt, or frames of another run are there, beside which no new ones are
 * put. Opens and makes nothing. */
int lw_frame_sinks_check(const char *const *specs, int n);
/* `like`: the source's format; of colours the sink keeps what it can say. LW_EUSAGE, LW_EIO. */
int lw_frame_sink_open(const char *spec, const lw_frame_format *like, const lw_kernels *k,
                       lw_frame_sink **out);
int lw_frame_sink_put(lw_frame_sink *s, const uint8_t *rgb);
/* Closes what was written so that it plays. Of md5, *text says the sum; else "". */
int lw_frame_sink_finish(lw_frame_sink *s, char text[64]);
/* Whether time passes from frame to frame in it, so that one left out has to be repeated. */
bool lw_frame_sink_timed(const lw_frame_sink *s);
void lw_frame_sink_close(lw_frame_sink **pp); /* what was not finished is not there */

/* The pattern of `test`: frame `number`, and the number read from a picture of it (the bars along
 * its top; survives blur and compression that keep dark and bright apart). -1: no such picture. */
enum { LW_FRAME_TEST_MIN_W = 64, LW_FRAME_TEST_MIN_H = 32 };
void lw_frame_test_draw(uint8_t *rgb, int32_t w, int32_t h, int64_t number);
int64_t lw_frame_test_read(const uint8_t *rgb, int32_t w, int32_t h);

#endif
