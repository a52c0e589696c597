/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cameras through the kernel's interface. Of the frames that a camera has ready the newest is given,
 * those before it go back at once; what is damaged is passed over and counted.
 */
#include <errno.h>
#include <linux/videodev2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "formats/formats.h"
#include "frames/frames_source.h"
#include "frames/frames_v4l2.h"

enum { MOST_BUFFERS = 4, ASK_EVERY_MS = 50, SILENT_MS = 5000, RETRY_MS = 200 };
/* Up to so many pixels as they are, above as JPEGs: more would not fit an old cable. */
#define PLAIN_PIXELS (640 * 480)

typedef struct camera {
    int fd;
    bool open, streaming, jpeg;
    const lw_frame_options *options;
    lw_jpeg *decoder;
    unsigned line, size; /* bytes of a line (YUYV), of a frame at most */
    struct {
        void *p;
        size_t size;
    } buffer[MOST_BUFFERS];
    unsigned n_buffers;
    int bad; /* damaged frames in a row */
} camera;

static int control(const lw_frame_source *s, unsigned long request, void *arg, const char *word)
{
    const camera *c = s->self;
    return lw_v4l2_control(c->fd, request, arg) < 0 ? lw_v4l2_fail(lw_str_c(&s->name), word) : 0;
}
#define CONTROL(s, request, arg) LW_TRY(control(s, request, arg, #request))

/* "v4l2:/dev/video0" or "v4l2:/dev/video0:640x480": the device's path, and the size or 0. */
static int read_spec(const char *spec, char path[256], unsigned *w, unsigned *h)
{
    const char *name = spec + strlen("v4l2:"), *colon = strchr(name, ':');
    int64_t size[2] = {0}, fps = 0;
    *w = *h = 0;
    if (snprintf(path, 256, "%.*s", colon ? (int)(colon - name) : (int)strlen(name), name) >= 256)
        return lw_fail(LW_EUSAGE, "--input %s: the name is too long", spec);
    if (colon && (lw_frame_size_read(colon + 1, &size[0], &size[1], &fps) < 0 || fps ||
                  LW_MIN(size[0], size[1]) < 1 || LW_MAX(size[0], size[1]) > UINT16_MAX))
        return lw_fail(LW_EUSAGE, "--input %s: not v4l2:/dev/videoN:WxH", spec);
    *w = (unsigned)size[0];
    *h = (unsigned)size[1];
    return 0;
}

static int check_device(const lw_frame_source *s)
{
    struct v4l2_capability can = {0};
    CONTROL(s, VIDIOC_QUERYCAP, &can);
    const unsigned has = can.capabilities & V4L2_CAP_DEVICE_CAPS ? can.device_caps
                                                                 : can.capabilities;
    if (!(has & V4L2_CAP_VIDEO_CAPTURE) || !(has & V4L2_CAP_STREAMING))
        return lw_fail(LW_EDEVICE, "%s: gives no frames (cameras often have a second device)",
                       lw_str_c(&s->name));
    return 0;
}

/* The nearest that the camera has to this size in these pixels; *agreed: in them at all. */
static int ask(const lw_frame_source *s, unsigned pixels, unsigned w, unsigned h,
               struct v4l2_format *f, bool *agreed)
{
    const camera *c = s->self;
    f->type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    f->fmt.pix.width = w;
    f->fmt.pix.height = h;
    f->fmt.pix.pixelformat = pixels;
    f->fmt.pix.field = V4L2_FIELD_ANY;
    f->fmt.pix.bytesperline = f->fmt.pix.sizeimage = 0;
    int rc = lw_v4l2_control(c->fd, VIDIOC_S_FMT, f);
    if (rc < 0 && errno != EINVAL)
        return lw_v4l2_fail(lw_str_c(&s->name), "VIDIOC_S_FMT");
    *agreed = rc == 0 && f->fmt.pix.pixelformat == pixels;
    return 0;
}

static int agree(lw_frame_source *s, unsigned w, unsigned h)
{
    camera *c = s->self;
    struct v4l2_format f = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
    char word[8];
    bool agreed;
    CONTROL(s, VIDIOC_G_FMT, &f);
    const unsigned now = f.fmt.pix.pixelformat;
    w = w ? w : f.fmt.pix.width;
    h = h ? h : f.fmt.pix.height;
    const bool jpeg_first = (uint64_t)w * h > PLAIN_PIXELS;
    LW_TRY(ask(s, jpeg_first ? V4L2_PIX_FMT_MJPEG : V4L2_PIX_FMT_YUYV, w, h, &f, &agreed));
    if (!agreed)
        LW_TRY(ask(s, jpeg_first ? V4L2_PIX_FMT_YUYV : V4L2_PIX_FMT_MJPEG, w, h, &f, &agreed));
    if (!agreed)
        return lw_fail(
            LW_EUNSUPPORTED,
            "%s: gives neither YUYV nor MJPG (%s is set): type `ffmpeg -v error -f v4l2 -i "
            "DEVICE -f yuv4mpegpipe - | leeway stream --input - ...`",
            lw_str_c(&s->name), lw_v4l2_word(word, now));
    c->jpeg = f.fmt.pix.pixelformat == V4L2_PIX_FMT_MJPEG;
    c->line = LW_MAX(f.fmt.pix.bytesperline, (f.fmt.pix.width + 1) / 2 * 4);
    c->size = f.fmt.pix.sizeimage;
    LW_TRY(lw_frame_format_check(lw_str_c(&s->name), f.fmt.pix.width, f.fmt.pix.height, 30, 1));
    s->format = (lw_frame_format){.form = c->jpeg ? LW_PIXELS_RGB : LW_PIXELS_YUYV,
                                  .w = (int32_t)f.fmt.pix.width,
                                  .h = (int32_t)f.fmt.pix.height,
                                  .rate = 30,
                                  .per = 1};
    lw_frame_colours(&s->format, c->options,
                     c->jpeg || f.fmt.pix.quantization == V4L2_QUANTIZATION_FULL_RANGE);
    return 0;
}

/* The rate asked for, and that which came of it; cameras without one stay at 30. */
static void agree_rate(lw_frame_source *s, double fps)
{
    camera *c = s->self;
    struct v4l2_streamparm p = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
    struct v4l2_fract *t = &p.parm.capture.timeperframe;
    const struct v4l2_streamparm none = p;
    if (fps > 0)
        *t = (struct v4l2_fract){.numerator = 1000, .denominator = (unsigned)(fps * 1000 + 0.5)};
    if (fps <= 0 || lw_v4l2_control(c->fd, VIDIOC_S_PARM, &p) < 0) {
        p = none; /* refused, it would still say what was asked for */
        if (lw_v4l2_control(c->fd, VIDIOC_G_PARM, &p) < 0)
            return;
    }
    if (t->numerator > 0 && t->denominator > 0 && t->denominator / t->numerator <= 1000 &&
        t->denominator / t->numerator > 0 && t->denominator <= INT32_MAX) {
        s->format.rate = (int32_t)t->denominator;
        s->format.per = (int32_t)t->numerator;
    }
}

static int begin(lw_frame_source *s, int32_t wanted)
{
    camera *c = s->self;
    struct v4l2_requestbuffers want = {.count = (unsigned)(wanted > 0 ? wanted : MOST_BUFFERS),
                                       .type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
                                       .memory = V4L2_MEMORY_MMAP};
    CONTROL(s, VIDIOC_REQBUFS, &want);
    if (want.count == 0)
        return lw_fail(LW_EDEVICE, "%s: has no buffers", lw_str_c(&s->name));
    for (unsigned i = 0; i < LW_MIN(want.count, (unsigned)MOST_BUFFERS); i++) {
        struct v4l2_buffer b = {.type = want.type, .memory = want.memory, .index = i};
        CONTROL(s, VIDIOC_QUERYBUF, &b);
        void *p = lw_v4l2_device->map(c->fd, b.length, (off_t)b.m.offset);
        if (p == MAP_FAILED)
            return lw_v4l2_fail(lw_str_c(&s->name), "cannot map a buffer");
        c->buffer[i].p = p;
        c->buffer[i].size = b.length;
        c->n_buffers = i + 1;
        CONTROL(s, VIDIOC_QBUF, &b);
    }
    int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    CONTROL(s, VIDIOC_STREAMON, &type);
    c->streaming = true;
    return 0;
}

static int connect(lw_frame_source *s)
{
    camera *c = s->self;
    char path[256];
    unsigned w, h;
    LW_TRY(read_spec(lw_str_c(&s->name), path, &w, &h));
    c->fd = lw_v4l2_device->open(path);
    if (c->fd < 0)
        return lw_v4l2_fail(lw_str_c(&s->name), "cannot open");
    c->open = true;
    LW_TRY(check_device(s));
    LW_TRY(agree(s, w, h));
    agree_rate(s, c->options->fps);
    if (c->jpeg && !c->decoder)
        LW_TRY(lw_jpeg_new(&c->decoder));
    return begin(s, c->options->buffers);
}

static void disconnect(camera *c)
{
    int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (c->streaming)
        lw_v4l2_control(c->fd, VIDIOC_STREAMOFF, &type);
    for (unsigned i = 0; i < c->n_buffers; i++)
        lw_v4l2_device->unmap(c->buffer[i].p, c->buffer[i].size);
    if (c->open)
        lw_v4l2_device->close(c->fd);
    c->n_buffers = 0;
    c->streaming = c->open = false;
}

static int camera_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    camera *c = s->self = lw_calloc(1, sizeof *c);
    (void)spec; /* it is the name */
    if (!c)
        return LW_ENOMEM;
    c->options = o;
    s->live = true;
    return connect(s);
}

static bool stopped(const camera *c)
{
    return c->options->stopped && c->options->stopped(c->options->self);
}

static int wait_for(const lw_frame_source *s)
{
    const camera *c = s->self;
    for (int waited = 0;; waited += ASK_EVERY_MS) {
        int ready = lw_v4l2_device->wait(c->fd, ASK_EVERY_MS);
        if (ready > 0)
            return 0; /* or it was unplugged: taking the frame says so */
        if (ready < 0 && errno != EINTR)
            return lw_v4l2_fail(lw_str_c(&s->name), "poll");
        if (stopped(c))
            return lw_fail(LW_ESTOPPED, "interrupted");
        if (waited >= SILENT_MS)
            return lw_fail(LW_EDEVICE, "%s: no frame for %d seconds", lw_str_c(&s->name),
                           SILENT_MS / 1000);
    }
}

/* The newest frame that is ready; those before it go back. 1: none is. */
static int take_newest(const lw_frame_source *s, struct v4l2_buffer *out)
{
    const camera *c = s->self;
    int found = 1;
    for (unsigned k = 0; k < c->n_buffers; k++) {
        struct v4l2_buffer b = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
        if (lw_v4l2_control(c->fd, VIDIOC_DQBUF, &b) < 0) {
            if (errno == EAGAIN)
                break;
            return lw_v4l2_fail(lw_str_c(&s->name), "VIDIOC_DQBUF");
        }
        if (b.index >= c->n_buffers)
            return lw_fail(LW_EDEVICE, "%s: VIDIOC_DQBUF: buffer %u of %u", lw_str_c(&s->name),
                           b.index, c->n_buffers);
        if (found == 0)
            CONTROL(s, VIDIOC_QBUF, out);
        *out = b;
        found = 0;
    }
    return found;
}

/* The frame in a buffer, as the source gives it. LW_EFORMAT: damaged. */
static int read_buffer(const lw_frame_source *s, const struct v4l2_buffer *b, uint8_t *bytes)
{
    const camera *c = s->self;
    const uint8_t *from = c->buffer[b->index].p;
    const size_t have = LW_MIN(b->bytesused, c->buffer[b->index].size);
    const size_t line = (size_t)(s->format.w + 1) / 2 * 4, lines = (size_t)s->format.h;
    if (b->flags & V4L2_BUF_FLAG_ERROR)
        return lw_fail(LW_EFORMAT, "%s: marked by the camera", lw_str_c(&s->name));
    if (c->jpeg)
        return lw_jpeg_read(c->decoder, lw_str_c(&s->name), from, have, s->format.w, s->format.h,
                            bytes);
    if (have < (lines - 1) * c->line + line)
        return lw_fail(LW_EFORMAT, "%s: cut off after %zu bytes", lw_str_c(&s->name), have);
    for (size_t y = 0; y < lines; y++)
        memcpy(bytes + y * line, from + y * c->line, line);
    return 0;
}

static int next_frame(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    camera *c = s->self;
    for (;;) {
        struct v4l2_buffer b;
        LW_TRY(wait_for(s));
        int rc = take_newest(s, &b);
        LW_TRY(rc);
        if (rc == 1)
            continue;
        *captured = (b.flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC
                        ? (double)b.timestamp.tv_sec + 1e-6 * (double)b.timestamp.tv_usec
                        : lw_now();
        rc = read_buffer(s, &b, bytes);
        CONTROL(s, VIDIOC_QBUF, &b);
        if (rc == 0) {
            c->bad = 0;
            return 0;
        }
        if (rc != LW_EFORMAT)
            return rc;
        LW_TRY(lw_frame_skip(s, &c->bad));
    }
}

static void tell(const camera *c, const char *why)
{
    if (c->options->trouble)
        c->options->trouble(c->options->self, why);
}

/* Frames have to be what the pipeline was made for. */
static int check_same(const lw_frame_source *s, const lw_frame_format *was)
{
    const lw_frame_format *f = &s->format;
    char now[96], before[96];
    if (f->form == was->form && f->w == was->w && f->h == was->h && f->matrix == was->matrix &&
        f->full_range == was->full_range)
        return 0;
    return lw_fail(LW_EDEVICE, "%s: came back as %s, was %s", lw_str_c(&s->name),
                   lw_frame_format_text(now, f), lw_frame_format_text(before, was));
}

/* It failed: tries again and again, while the pipeline stands at its last frame. */
static int reconnect(lw_frame_source *s)
{
    camera *c = s->self;
    const lw_frame_format was = s->format;
    const double until = lw_now() + c->options->reopen;
    int rc;
    tell(c, lw_errmsg());
    do {
        disconnect(c);
        for (int waited = 0; waited < RETRY_MS; waited += ASK_EVERY_MS) {
            if (stopped(c))
                return lw_fail(LW_ESTOPPED, "interrupted");
            lw_sleep(ASK_EVERY_MS * 1e-3);
        }
        rc = connect(s);
    } while (rc < 0 && lw_now() < until);
    if (rc < 0)
        return lw_fail_in(LW_EDEVICE, "gone for %.3g s: ", c->options->reopen);
    LW_TRY(check_same(s, &was));
    tell(c, "");
    return 0;
}

static int camera_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    const camera *c = s->self;
    for (;;) {
        const int rc = next_frame(s, bytes, captured);
        if ((rc != LW_EDEVICE && rc != LW_EIO) || c->options->reopen <= 0)
            return rc;
        LW_TRY(reconnect(s));
    }
}

static int camera_rewind(lw_frame_source *s)
{
    return lw_fail(LW_EUSAGE, "%s: a camera cannot begin again: leave out --loop",
                   lw_str_c(&s->name));
}

static void camera_close(lw_frame_source *s)
{
    camera *c = s->self;
    if (!c)
        return;
    disconnect(c);
    lw_jpeg_free(&c->decoder);
    lw_free(&s->self);
}

const lw_frame_source_def lw_frames_from_v4l2 = {
    "v4l2:", "v4l2:/dev/videoN[:WxH]", camera_open, camera_next, camera_rewind, camera_close};
