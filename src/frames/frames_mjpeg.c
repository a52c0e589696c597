/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG pictures one behind the other, as cameras and `ffmpeg -f mjpeg` write them: read and written. */
#include <stdio.h>
#include <string.h>

#include "formats/formats.h"
#include "frames/frames_sink.h"
#include "frames/frames_source.h"

enum { MOST_JPEG = 64 << 20, QUALITY = 90 };

typedef struct mjpeg {
    lw_frame_bytes bytes;
    lw_image first; /* decoded when opened, to know the size */
    bool has_first;
} mjpeg;

/* The byte at `at` of the picture that begins here: 0..255, -1 where the file ends, LW_E* below. */
enum { NO_BYTE = 256 };
static int byte_at(mjpeg *m, const char *name, size_t at, int *out)
{
    lw_frame_bytes *b = &m->bytes;
    size_t have = b->end - b->begin;
    if (have <= at)
        LW_TRY(lw_frame_bytes_want(b, name, at + 1, &have));
    *out = have > at ? (uint8_t)b->buf[b->begin + at] : NO_BYTE;
    return 0;
}

static int cut_off(const char *name, long long number)
{
    return lw_fail(LW_EFORMAT, "%s: frame %lld: cut off", name, number);
}

/* Bytes of the JPEG that begins here: from marker to marker, over what segments say of their length
 * (a small picture within one has markers of its own), and over coded pixels, where 255 is followed by
 * 0 or a restart. */
static int jpeg_size(mjpeg *m, const char *name, long long number, size_t *out)
{
    size_t at = 2;
    bool coded = false;
    for (;;) {
        int a, b, c, d;
        if (at > MOST_JPEG)
            return lw_fail(LW_EFORMAT, "%s: frame %lld: a JPEG of more than %d MiB", name, number,
                           MOST_JPEG >> 20);
        LW_TRY(byte_at(m, name, at, &a));
        LW_TRY(byte_at(m, name, at + 1, &b));
        if (a == NO_BYTE || b == NO_BYTE)
            return cut_off(name, number);
        if (a != 0xff && !coded)
            return lw_fail(LW_EFORMAT, "%s: frame %lld: bad JPEG: no marker at byte %zu of it",
                           name, number, at);
        if (a != 0xff || b == 0xff || (coded && b == 0)) {
            at += a == 0xff && b == 0 ? 2 : 1;
            continue;
        }
        at += 2;
        if (b == 0xd9)
            break;
        if ((b >= 0xd0 && b <= 0xd8) || b == 1)
            continue;
        LW_TRY(byte_at(m, name, at, &c));
        LW_TRY(byte_at(m, name, at + 1, &d));
        if (c == NO_BYTE || d == NO_BYTE)
            return cut_off(name, number);
        at += (size_t)LW_MAX(c << 8 | d, 2);
        coded = b == 0xda;
    }
    *out = at;
    return 0;
}

/* The next picture; what lies between two (padding) is passed over. 1: there is none. */
static int next_picture(lw_frame_source *s, lw_image *out, double *captured)
{
    mjpeg *m = s->self;
    const char *name = lw_str_c(&s->name);
    char what[96];
    size_t passed = 0, size = 0;
    for (;; passed++) {
        int a, b;
        LW_TRY(byte_at(m, name, 0, &a));
        LW_TRY(byte_at(m, name, 1, &b));
        if (a == NO_BYTE)
            return s->number == 0 && passed > 0 ? lw_fail(LW_EFORMAT, "%s: no JPEG in it", name)
                                                : 1;
        if (a == 0xff && b == 0xd8)
            break;
        if (passed == MOST_JPEG)
            return lw_fail(LW_EFORMAT, "%s: frame %lld: no JPEG begins within %d MiB", name,
                           (long long)s->number, MOST_JPEG >> 20);
        m->bytes.begin++;
    }
    *captured = lw_now();
    LW_TRY(jpeg_size(m, name, (long long)s->number, &size));
    lw_clean(what, sizeof what - 32, name);
    snprintf(what + strlen(what), 32, ": frame %lld", (long long)s->number);
    int rc = lw_image_parse(what, m->bytes.buf + m->bytes.begin, size, out);
    m->bytes.begin += size;
    return rc;
}

static int mjpeg_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    mjpeg *m = s->self = lw_calloc(1, sizeof *m);
    double captured;
    if (!m)
        return LW_ENOMEM;
    LW_TRY(lw_frame_bytes_open(&m->bytes, spec, o));
    int rc = next_picture(s, &m->first, &captured);
    if (rc != 0)
        return rc < 0 ? rc : lw_fail(LW_EFORMAT, "%s: empty: no frames", lw_str_c(&s->name));
    m->has_first = true;
    s->format = (lw_frame_format){.form = LW_PIXELS_RGB,
                                  .full_range = true,
                                  .w = m->first.width,
                                  .h = m->first.height,
                                  .rate = 25,
                                  .per = 1};
    return 0;
}

static int mjpeg_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    mjpeg *m = s->self;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    if (m->has_first) {
        im = m->first;
        m->first = (lw_image){0};
        m->has_first = false;
    } else {
        int rc = next_picture(s, &im, captured);
        if (rc != 0)
            return rc;
    }
    if (im.width != s->format.w || im.height != s->format.h)
        return lw_fail(LW_EFORMAT, "%s: frame %lld: %dx%d pixels, those before it have %dx%d",
                       lw_str_c(&s->name), (long long)s->number, im.width, im.height, s->format.w,
                       s->format.h);
    memcpy(bytes, im.rgb, (size_t)im.width * (size_t)im.height * 3);
    return 0;
}

static int mjpeg_rewind(lw_frame_source *s)
{
    mjpeg *m = s->self;
    lw_image_clear(&m->first);
    m->has_first = false;
    return lw_frame_bytes_rewind(&m->bytes, lw_str_c(&s->name));
}

static void mjpeg_close(lw_frame_source *s)
{
    mjpeg *m = s->self;
    if (!m)
        return;
    lw_frame_bytes_close(&m->bytes);
    lw_image_clear(&m->first);
    lw_free(&s->self);
}

const lw_frame_source_def lw_frames_from_mjpeg = {".mjpeg",   "FILE.mjpeg", mjpeg_open,
                                                  mjpeg_next, mjpeg_rewind, mjpeg_close};

/* ---- written --------------------------------------------------------------------------------- */

typedef struct mjpeg_out {
    lw_frame_file out;
    lw_image im;
    lw_str jpeg;
} mjpeg_out;

static int out_open(lw_frame_sink *s, const char *spec)
{
    mjpeg_out *o = s->self = lw_calloc(1, sizeof *o);
    s->format.form = LW_PIXELS_RGB;
    if (!o)
        return LW_ENOMEM;
    LW_TRY(lw_image_init(&o->im, s->format.w, s->format.h));
    return lw_new_file_begin(&o->out.file, spec);
}

static int out_put(lw_frame_sink *s, const uint8_t *rgb)
{
    mjpeg_out *o = s->self;
    memcpy(o->im.rgb, rgb, (size_t)o->im.width * (size_t)o->im.height * 3);
    o->jpeg.len = 0;
    LW_TRY(lw_jpeg_encode(&o->im, QUALITY, &o->jpeg));
    return lw_frame_file_put(&o->out, o->jpeg.s, o->jpeg.len);
}

static int out_finish(lw_frame_sink *s, char text[64])
{
    (void)text;
    mjpeg_out *o = s->self;
    return o->out.file.open ? lw_new_file_finish(&o->out.file) : 0;
}

static void out_close(lw_frame_sink *s)
{
    mjpeg_out *o = s->self;
    if (!o)
        return;
    lw_new_file_drop(&o->out.file);
    lw_image_clear(&o->im);
    lw_str_clear(&o->jpeg);
    lw_free(&s->self);
}

const lw_frame_sink_def lw_frames_to_mjpeg = {".mjpeg", "FILE.mjpeg", true,     out_open,
                                              out_put,  out_finish,   out_close};
