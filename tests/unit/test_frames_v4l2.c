/* SPDX-License-Identifier: Apache-2.0 */
/* Cameras and virtual cameras, played by a device that is made up here: what they say is agreed on, the
 * newest frame is given, damaged ones are counted, and pulling the plug is one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/videodev2.h>
#include <sys/mman.h>

#include "formats/formats.h"
#include "frames/frames.h"
#include "frames/frames_v4l2.h"

enum { W = 64, H = 32, LINE = W * 2 + 32, BUFFERS = 4, ROOM = LINE * H + 4096 };
/* What taking a frame gives: its number, or one of these. */
enum { NONE_YET = -1, GONE = -2, DAMAGED = -3, MARKED = -4, SHORT = -5 };

static struct {
    unsigned can, yuyv, mjpeg, grants; /* capabilities; whether it has these; most buffers */
    const int *script;                 /* of frames, ended by GONE */
    unsigned long fails;               /* a request, with .why */
    int why;
    unsigned pixels;
    uint8_t memory[BUFFERS][ROOM];
    unsigned queue[BUFFERS], queued;
    int mapped, opened, streaming, at;
    int absent, opens; /* how many times it is not there when it is opened again; so far */
    uint8_t written[W * H * 2];
    size_t n_written;
} fake;
static lw_kernels kernels;
static lw_jpeg *jpeg;

static int fake_open(const char *path)
{
    if (strcmp(path, "/dev/video7") != 0) {
        errno = ENOENT;
        return -1;
    }
    if (fake.opens > 0 && fake.absent > 0) {
        fake.absent--;
        errno = ENOENT;
        return -1;
    }
    if (fake.opens++ > 0 && fake.script[fake.at] == GONE)
        fake.at++; /* plugged in again */
    fake.opened++;
    return 7;
}

static int fake_close(int fd)
{
    assert_int_equal(fd, 7);
    fake.opened--;
    return 0;
}

static void *fake_map(int fd, size_t size, off_t at)
{
    assert_true(fd == 7 && size == ROOM && at % ROOM == 0 && at / ROOM < BUFFERS);
    fake.mapped++;
    return fake.memory[at / ROOM];
}

static int fake_unmap(void *p, size_t size)
{
    assert_true(p && size == ROOM);
    fake.mapped--;
    return 0;
}

static int fake_wait(int fd, int ms)
{
    (void)fd;
    (void)ms;
    if (fake.script[fake.at] == NONE_YET) {
        fake.at++;
        return 0;
    }
    return 1;
}

static ssize_t fake_write(int fd, const void *bytes, size_t n)
{
    (void)fd;
    if (fake.why) {
        errno = fake.why;
        return -1;
    }
    assert_true(n <= sizeof fake.written);
    memcpy(fake.written, bytes, n);
    fake.n_written = n;
    return (ssize_t)n;
}

/* Frame `number` into a buffer; bytes used. */
static unsigned draw(uint8_t *to, int number)
{
    static uint8_t rgb[W * H * 3], yuyv[W * H * 2];
    lw_frame_test_draw(rgb, W, H, number >= 0 ? number : 99);
    if (fake.pixels == V4L2_PIX_FMT_MJPEG) {
        const uint8_t *bytes;
        size_t n;
        assert_int_equal(lw_jpeg_write(jpeg, rgb, W, H, 90, &bytes, &n), 0);
        memcpy(to, bytes, n);
        if (number == DAMAGED)
            memset(to + n / 2, 0xff, n / 2);
        return (unsigned)n;
    }
    lw_pixels p;
    lw_pixels_init(&p, LW_PIXELS_YUYV, LW_MATRIX_601, false, W, H);
    kernels.pixels.from_u8(yuyv, rgb, &p, 0, p.bands);
    for (size_t y = 0; y < H; y++)
        memcpy(to + y * LINE, yuyv + y * W * 2, W * 2);
    return number == SHORT ? LINE * H / 2 : LINE * H;
}

static int take(struct v4l2_buffer *b)
{
    const int next = fake.script[fake.at];
    if (next == NONE_YET || fake.queued == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (next == GONE) {
        errno = ENODEV;
        return -1;
    }
    b->index = fake.queue[0];
    memmove(fake.queue, fake.queue + 1, --fake.queued * sizeof *fake.queue);
    b->bytesused = draw(fake.memory[b->index], next);
    b->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | (next == MARKED ? V4L2_BUF_FLAG_ERROR : 0);
    b->timestamp.tv_sec = 1000 + next;
    b->timestamp.tv_usec = 500000;
    fake.at++;
    return 0;
}

static int set_format(struct v4l2_pix_format *f)
{
    if ((f->pixelformat == V4L2_PIX_FMT_YUYV && !fake.yuyv) ||
        (f->pixelformat == V4L2_PIX_FMT_MJPEG && !fake.mjpeg)) {
        f->pixelformat = V4L2_PIX_FMT_H264; /* as drivers answer: with what they have */
        return 0;
    }
    fake.pixels = f->pixelformat;
    f->width = W; /* the only size */
    f->height = H;
    if (fake.can & V4L2_CAP_VIDEO_CAPTURE) {
        f->bytesperline = f->pixelformat == V4L2_PIX_FMT_YUYV ? LINE : 0;
        f->sizeimage = ROOM;
    }
    return 0;
}

static int fake_control(int fd, unsigned long request, void *arg)
{
    assert_int_equal(fd, 7);
    if (request == fake.fails) {
        errno = fake.why;
        return -1;
    }
    switch (request) {
    case VIDIOC_QUERYCAP:
        ((struct v4l2_capability *)arg)->capabilities = fake.can;
        return 0;
    case VIDIOC_G_FMT: {
        struct v4l2_pix_format *f = &((struct v4l2_format *)arg)->fmt.pix;
        f->width = W;
        f->height = H;
        f->pixelformat = V4L2_PIX_FMT_H264;
        return 0;
    }
    case VIDIOC_S_FMT:
        return set_format(&((struct v4l2_format *)arg)->fmt.pix);
    case VIDIOC_G_PARM:
        ((struct v4l2_streamparm *)arg)->parm.capture.timeperframe = (struct v4l2_fract){1, 15};
        return 0;
    case VIDIOC_S_PARM:
        return 0;
    case VIDIOC_REQBUFS: {
        struct v4l2_requestbuffers *r = arg;
        r->count = r->count > fake.grants ? fake.grants : r->count;
        fake.queued = 0;
        return 0;
    }
    case VIDIOC_QUERYBUF: {
        struct v4l2_buffer *b = arg;
        b->length = ROOM;
        b->m.offset = b->index * ROOM;
        return 0;
    }
    case VIDIOC_QBUF:
        assert_true(fake.queued < BUFFERS);
        fake.queue[fake.queued++] = ((struct v4l2_buffer *)arg)->index;
        return 0;
    case VIDIOC_DQBUF:
        return take(arg);
    case VIDIOC_STREAMON:
        fake.streaming++;
        return 0;
    case VIDIOC_STREAMOFF:
        fake.streaming--;
        return 0;
    default:
        errno = ENOTTY;
        return -1;
    }
}

static void plug_in(unsigned yuyv, unsigned mjpeg, unsigned grants, const int *script)
{
    static const lw_v4l2_calls calls = {fake_open, fake_control, fake_map,  fake_unmap,
                                        fake_wait, fake_write,   fake_close};
    memset(&fake, 0, sizeof fake);
    fake.can = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    fake.yuyv = yuyv;
    fake.mjpeg = mjpeg;
    fake.grants = grants;
    fake.script = script;
    lw_v4l2_device = &calls;
}

static lw_frame_source *open_camera(void)
{
    static const lw_frame_options plain = {0};
    lw_frame_source *s = NULL;
    assert_int_equal(lw_frame_source_open("v4l2:/dev/video7", &plain, &s), 0);
    assert_true(s->format.w == W && s->format.h == H && lw_frame_source_paces(s));
    assert_true(s->format.rate == 15 && s->format.per == 1);
    return s;
}

/* The number in the next frame; or LW_E*. */
static int64_t next_number(lw_frame_source *s, double *captured)
{
    static uint8_t bytes[W * H * 3], rgb[W * H * 3];
    int rc = lw_frame_source_next(s, bytes, captured);
    if (rc != 0)
        return rc;
    kernels.pixels.to_u8(rgb, bytes, &s->pixels, 0, s->pixels.bands);
    return lw_frame_test_read(rgb, W, H);
}

static void close_camera(lw_frame_source **s);

/* One that refuses the rate asked for is at the rate that it says. */
static void a_rate_that_is_refused(void **state)
{
    const lw_frame_options asked = {.fps = 60};
    lw_frame_source *s = NULL;
    (void)state;
    plug_in(1, 0, BUFFERS, NULL);
    fake.fails = VIDIOC_S_PARM;
    fake.why = EINVAL;
    assert_int_equal(lw_frame_source_open("v4l2:/dev/video7", &asked, &s), 0);
    assert_true(s->format.rate == 15 && s->format.per == 1);
    close_camera(&s);
}

static void close_camera(lw_frame_source **s)
{
    lw_frame_source_close(s);
    assert_true(fake.mapped == 0 && fake.opened == 0 && fake.streaming == 0);
}

static void newest_frame_wins(void **state)
{
    (void)state;
    static const int script[] = {0, 1, 2, NONE_YET, 3, NONE_YET, NONE_YET, 4, 5, 6, 7, 8, GONE};
    for (unsigned grants = 1; grants <= BUFFERS; grants++) {
        double captured;
        plug_in(1, 1, grants, script);
        lw_frame_source *s = open_camera();
        assert_int_equal(s->format.form, LW_PIXELS_YUYV); /* small: as they are */
        const int64_t first = next_number(s, &captured);
        assert_int_equal(first, LW_MIN(grants, 3u) - 1); /* as many as it has ready */
        assert_true(captured > 1000.4 + (double)first && captured < 1000.6 + (double)first);
        assert_int_equal(fake.queued, grants); /* all buffers are the camera's again */
        for (int64_t n = first, now; (now = next_number(s, &captured)) != LW_EDEVICE; n = now)
            assert_true(now > n);
        assert_non_null(strstr(lw_errmsg(), "v4l2:/dev/video7: VIDIOC_DQBUF: unplugged"));
        assert_int_equal(s->skipped, 0);
        close_camera(&s);
    }
}

static void damaged_frames_are_counted(void **state)
{
    (void)state;
    static const int jpegs[] = {0,        NONE_YET, DAMAGED,  NONE_YET, MARKED,
                                NONE_YET, 1,        NONE_YET, GONE};
    static const int plain[] = {0, NONE_YET, SHORT, NONE_YET, MARKED, NONE_YET, 1, NONE_YET, GONE};
    for (unsigned k = 0; k < 2; k++) {
        double captured;
        plug_in(k, !k, 4, k ? plain : jpegs);
        lw_frame_source *s = open_camera();
        assert_int_equal(s->format.form, k ? LW_PIXELS_YUYV : LW_PIXELS_RGB);
        assert_int_equal(next_number(s, &captured), 0);
        assert_int_equal(next_number(s, &captured), 1);
        assert_int_equal(s->skipped, 2);
        assert_int_equal(next_number(s, &captured), LW_EDEVICE);
        close_camera(&s);
    }
    /* nothing but damage ends */
    static int bad[256];
    double captured;
    for (int i = 0; i < 255; i++)
        bad[i] = DAMAGED;
    bad[255] = GONE;
    plug_in(0, 1, 1, bad);
    lw_frame_source *s = open_camera();
    assert_int_equal(next_number(s, &captured), LW_EFORMAT);
    assert_non_null(strstr(lw_errmsg(), "100 damaged frames in a row"));
    close_camera(&s);
}

static char told[4][256];
static int n_told;

static void on_trouble(void *self, const char *why)
{
    (void)self;
    assert_true(n_told < 4);
    snprintf(told[n_told++], sizeof told[0], "%s", why);
}

/* Pulled out, it is opened again until it is there; one that stays away, or comes back as another, ends. */
static void cameras_come_back(void **state)
{
    (void)state;
    static const int script[] = {0, NONE_YET, GONE, 1, NONE_YET, GONE, 2, GONE, GONE};
    lw_frame_options o = {.reopen = 5, .trouble = on_trouble};
    lw_frame_source *s = NULL;
    double captured;
    plug_in(1, 1, 4, script);
    n_told = 0;
    assert_int_equal(lw_frame_source_open("v4l2:/dev/video7", &o, &s), 0);
    assert_int_equal(next_number(s, &captured), 0);
    fake.absent = 1;
    assert_int_equal(next_number(s, &captured), 1);
    assert_int_equal(n_told, 2);
    assert_non_null(strstr(told[0], "unplugged"));
    assert_string_equal(told[1], "");
    o.reopen = 0.1;
    fake.absent = 1000;
    assert_int_equal(next_number(s, &captured), LW_EDEVICE);
    assert_non_null(strstr(lw_errmsg(), "gone for 0.1 s: v4l2:/dev/video7: cannot open"));
    close_camera(&s);
    plug_in(1, 1, 4, script);
    assert_int_equal(lw_frame_source_open("v4l2:/dev/video7", &o, &s), 0);
    assert_int_equal(next_number(s, &captured), 0);
    fake.yuyv = 0;
    assert_int_equal(next_number(s, &captured), LW_EDEVICE);
    assert_non_null(strstr(lw_errmsg(), "came back as 64x32 rgb24"));
    close_camera(&s);
}

static void refusals_are_named(void **state)
{
    (void)state;
    static const int script[] = {GONE};
    static const struct {
        const char *spec;
        unsigned long request;
        int why, rc;
        const char *says;
    } rows[] = {
        {"v4l2:/dev/video9", 0, 0, LW_EIO, "video9: cannot open"},
        {"v4l2:/dev/video7:axb", 0, 0, LW_EUSAGE, "not v4l2:/dev/videoN:WxH"},
        {"v4l2:/dev/video7:64x 48", 0, 0, LW_EUSAGE, "not v4l2:/dev/videoN:WxH"},
        {"v4l2:/dev/video7", VIDIOC_QUERYCAP, ENOTTY, LW_EIO, "VIDIOC_QUERYCAP"},
        {"v4l2:/dev/video7", VIDIOC_S_FMT, EBUSY, LW_EDEVICE, "VIDIOC_S_FMT: another program"},
        {"v4l2:/dev/video7", VIDIOC_REQBUFS, ENOMEM, LW_ENOMEM, "VIDIOC_REQBUFS"},
        {"v4l2:/dev/video7", VIDIOC_QUERYBUF, EIO, LW_EIO, "VIDIOC_QUERYBUF"},
        {"v4l2:/dev/video7", VIDIOC_QBUF, EIO, LW_EIO, "VIDIOC_QBUF"},
        {"v4l2:/dev/video7", VIDIOC_STREAMON, EBUSY, LW_EDEVICE, "VIDIOC_STREAMON: another"},
        {"v4l2:/dev/video7", VIDIOC_STREAMON, ENODEV, LW_EDEVICE, "VIDIOC_STREAMON: unplugged"},
    };
    const lw_frame_options plain = {0};
    lw_frame_source *s = NULL;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        plug_in(1, 1, 4, script);
        fake.fails = rows[i].request;
        fake.why = rows[i].why;
        assert_int_equal(lw_frame_source_open(rows[i].spec, &plain, &s), rows[i].rc);
        if (!strstr(lw_errmsg(), rows[i].says))
            fail_msg("\"%s\" lacks \"%s\"", lw_errmsg(), rows[i].says);
        assert_true(fake.mapped == 0 && fake.opened == 0 && fake.streaming == 0);
    }
    plug_in(0, 0, 4, script);
    assert_int_equal(lw_frame_source_open("v4l2:/dev/video7", &plain, &s), LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "neither YUYV nor MJPG (H264 is set): type `ffmpeg"));
    plug_in(1, 1, 4, script);
    fake.can = V4L2_CAP_VIDEO_OUTPUT;
    assert_int_equal(lw_frame_source_open("v4l2:/dev/video7", &plain, &s), LW_EDEVICE);
}

static void virtual_cameras_get_frames(void **state)
{
    (void)state;
    const lw_frame_format like = lw_frame_format_rgb(W, H, 25);
    static uint8_t rgb[W * H * 3], back[W * H * 3];
    lw_frame_test_draw(rgb, W, H, 77);
    for (unsigned yuyv = 0; yuyv < 2; yuyv++) {
        lw_frame_sink *s = NULL;
        plug_in(yuyv, 0, 0, NULL);
        fake.can = V4L2_CAP_VIDEO_OUTPUT | V4L2_CAP_READWRITE;
        assert_int_equal(lw_frame_sink_open("v4l2:/dev/video7", &like, &kernels, &s), 0);
        assert_int_equal(s->format.form, yuyv ? LW_PIXELS_YUYV : LW_PIXELS_420);
        assert_int_equal(lw_frame_sink_put(s, rgb), 0);
        assert_int_equal(fake.n_written, lw_pixels_bytes(&s->pixels));
        kernels.pixels.to_u8(back, fake.written, &s->pixels, 0, s->pixels.bands);
        assert_int_equal(lw_frame_test_read(back, W, H), 77);
        fake.why = EAGAIN; /* no room: late frames are left out */
        assert_int_equal(lw_frame_sink_put(s, rgb), 0);
        fake.why = ENODEV;
        assert_int_equal(lw_frame_sink_put(s, rgb), LW_EDEVICE);
        assert_non_null(strstr(lw_errmsg(), "unplugged"));
        lw_frame_sink_close(&s);
        assert_int_equal(fake.opened, 0);
        plug_in(yuyv, 0, 0, NULL); /* a camera takes no frames */
        assert_int_equal(lw_frame_sink_open("v4l2:/dev/video7", &like, &kernels, &s), LW_EDEVICE);
        assert_non_null(strstr(lw_errmsg(), "v4l2loopback"));
    }
}

static int set_up(void **state)
{
    (void)state;
    lw_isa isa;
    if (lw_isa_chosen(&isa) < 0 || lw_jpeg_new(&jpeg) < 0)
        return -1;
    lw_kernels_init(&kernels, isa);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lw_jpeg_free(&jpeg);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_frame_wins),          cmocka_unit_test(damaged_frames_are_counted),
        cmocka_unit_test(cameras_come_back),          cmocka_unit_test(refusals_are_named),
        cmocka_unit_test(virtual_cameras_get_frames), cmocka_unit_test(a_rate_that_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
