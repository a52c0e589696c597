/* SPDX-License-Identifier: Apache-2.0 */
/* Video devices through the kernel's interface, and frames written to one: a virtual camera. */
#include "frames/frames_v4l2.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "frames/frames_sink.h"

static int kernel_open(const char *path)
{
    return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static int kernel_control(int fd, unsigned long request, void *arg)
{
    return ioctl(fd, request, arg);
}

static void *kernel_map(int fd, size_t size, off_t at)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
}

static int kernel_wait(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms);
}

static const lw_v4l2_calls kernel = {.open = kernel_open,
                                     .control = kernel_control,
                                     .map = kernel_map,
                                     .unmap = munmap,
                                     .wait = kernel_wait,
                                     .write = write,
                                     .close = close};
const lw_v4l2_calls *lw_v4l2_device = &kernel;

int lw_v4l2_control(int fd, unsigned long request, void *arg)
{
    int rc;
    do
        rc = lw_v4l2_device->control(fd, request, arg);
    while (rc < 0 && errno == EINTR);
    return rc;
}

int lw_v4l2_fail(const char *name, const char *what)
{
    const int why = errno;
    if (why == ENODEV || why == ENXIO)
        return lw_fail(LW_EDEVICE, "%s: %s: unplugged, or no such device", name, what);
    if (why == EBUSY)
        return lw_fail(LW_EDEVICE, "%s: %s: another program uses it", name, what);
    return lw_fail(lw_errno_code(why), "%s: %s: %s", name, what, strerror(why));
}

const char *lw_v4l2_word(char buf[8], unsigned pixels)
{
    for (int i = 0; i < 4; i++) {
        const char c = (char)(pixels >> 8 * i & 0x7f);
        buf[i] = (char)(c >= ' ' && c < 0x7f ? c : '?');
    }
    buf[4] = '\0';
    return buf;
}

/* ---- written --------------------------------------------------------------------------------- */

typedef struct out_device {
    int fd;
    bool open;
    uint8_t *frame;
} out_device;

/* Whether the device takes frames of this form as they are. */
static int offer(const lw_frame_sink *s, out_device *o, unsigned pixels, bool *taken)
{
    struct v4l2_format f = {.type = V4L2_BUF_TYPE_VIDEO_OUTPUT};
    const size_t size = lw_pixels_bytes(&s->pixels);
    f.fmt.pix.width = (unsigned)s->format.w;
    f.fmt.pix.height = (unsigned)s->format.h;
    f.fmt.pix.pixelformat = pixels;
    f.fmt.pix.field = V4L2_FIELD_NONE;
    f.fmt.pix.bytesperline = (unsigned)s->format.w * (pixels == V4L2_PIX_FMT_YUYV ? 2 : 1);
    f.fmt.pix.sizeimage = (unsigned)size;
    f.fmt.pix.colorspace = s->format.matrix == LW_MATRIX_709 ? V4L2_COLORSPACE_REC709
                                                             : V4L2_COLORSPACE_SMPTE170M;
    f.fmt.pix.quantization = V4L2_QUANTIZATION_LIM_RANGE;
    int rc = lw_v4l2_control(o->fd, VIDIOC_S_FMT, &f);
    if (rc < 0 && errno != EINVAL)
        return lw_v4l2_fail(lw_str_c(&s->name), "VIDIOC_S_FMT");
    *taken = rc == 0 && f.fmt.pix.pixelformat == pixels &&
             f.fmt.pix.width == (unsigned)s->format.w &&
             f.fmt.pix.height == (unsigned)s->format.h && f.fmt.pix.sizeimage == size;
    return 0;
}

static int agree(lw_frame_sink *s, out_device *o)
{
    static const struct {
        lw_pixels_form form;
        unsigned pixels;
    } ways[] = {{LW_PIXELS_YUYV, V4L2_PIX_FMT_YUYV}, {LW_PIXELS_420, V4L2_PIX_FMT_YUV420}};
    bool taken = false;
    for (size_t i = 0; i < LW_COUNT(ways) && !taken; i++) {
        s->format.form = ways[i].form;
        lw_pixels_init(&s->pixels, s->format.form, s->format.matrix, false, s->format.w,
                       s->format.h);
        LW_TRY(offer(s, o, ways[i].pixels, &taken));
    }
    return taken ? 0
                 : lw_fail(LW_EDEVICE, "%s: takes no frames of %dx%d as YUYV or YUV420",
                           lw_str_c(&s->name), s->format.w, s->format.h);
}

static int out_open(lw_frame_sink *s, const char *spec)
{
    out_device *o = s->self = lw_calloc(1, sizeof *o);
    struct v4l2_capability can = {0};
    const char *name = lw_str_c(&s->name);
    if (!o)
        return LW_ENOMEM;
    s->format.full_range = false;
    o->fd = lw_v4l2_device->open(spec + strlen("v4l2:"));
    if (o->fd < 0)
        return lw_v4l2_fail(name, "cannot open");
    o->open = true;
    if (lw_v4l2_control(o->fd, VIDIOC_QUERYCAP, &can) < 0)
        return lw_v4l2_fail(name, "VIDIOC_QUERYCAP (no video device?)");
    const unsigned has = can.capabilities & V4L2_CAP_DEVICE_CAPS ? can.device_caps
                                                                 : can.capabilities;
    if (!(has & V4L2_CAP_VIDEO_OUTPUT) || !(has & V4L2_CAP_READWRITE))
        return lw_fail(LW_EDEVICE,
                       "%s: takes no frames: a virtual camera is made with `modprobe v4l2loopback`",
                       name);
    LW_TRY(agree(s, o));
    o->frame = lw_calloc(lw_pixels_bytes(&s->pixels), 1);
    return o->frame ? 0 : LW_ENOMEM;
}

static int out_put(lw_frame_sink *s, const uint8_t *rgb)
{
    out_device *o = s->self;
    const size_t size = lw_pixels_bytes(&s->pixels);
    s->kernels->pixels.from_u8(o->frame, rgb, &s->pixels, 0, s->pixels.bands);
    ssize_t n;
    do
        n = lw_v4l2_device->write(o->fd, o->frame, size);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) /* it has no room: the frame is late, the next one is newer */
        return 0;
    if (n < 0)
        return lw_v4l2_fail(lw_str_c(&s->name), "cannot write");
    return (size_t)n == size
               ? 0
               : lw_fail(LW_EIO, "%s: took %zd of %zu bytes", lw_str_c(&s->name), n, size);
}

static int out_finish(lw_frame_sink *s, char text[64])
{
    (void)s;
    (void)text;
    return 0;
}

static void out_close(lw_frame_sink *s)
{
    out_device *o = s->self;
    if (!o)
        return;
    if (o->open)
        lw_v4l2_device->close(o->fd);
    lw_free(&o->frame);
    lw_free(&s->self);
}

const lw_frame_sink_def lw_frames_to_v4l2 = {"v4l2:", "v4l2:/dev/videoN", false,    out_open,
                                             out_put, out_finish,         out_close};
