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
    lw_jpeg *jpeg;
    size_t found; /* bytes of the picture that begins here, where that is known; else 0 */
    int bad;      /* damaged pictures in a row */
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
        if (b == 0xd8) /* another begins where this one has no end */
            return cut_off(name, number);
        if ((b >= 0xd0 && b <= 0xd7) || b == 1)
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

/* To where the next picture begins: what lies before it (padding) is passed over. 1: there is none. */
static int pass_to_picture(lw_frame_source *s)
{
    mjpeg *m = s->self;
    const char *name = lw_str_c(&s->name);
    for (size_t passed = 0;; passed++) {
        int a, b;
        LW_TRY(byte_at(m, name, 0, &a));
        LW_TRY(byte_at(m, name, 1, &b));
        if (a == NO_BYTE)
            return s->number == 0 && passed > 0 && s->skipped == 0
                       ? lw_fail(LW_EFORMAT, "%s: no JPEG in it", name)
                       : 1;
        if (a == 0xff && b == 0xd8)
            return 0;
        if (passed == MOST_JPEG)
            return lw_fail(LW_EFORMAT, "%s: frame %lld: no JPEG begins within %d MiB", name,
                           (long long)s->number, MOST_JPEG >> 20);
        m->bytes.begin++;
    }
}

/* Finds the next picture, m->found bytes from m->bytes.begin on. 1: there is none. */
static int find_picture(lw_frame_source *s, double *captured)
{
    mjpeg *m = s->self;
    while (m->found == 0) {
        int rc = pass_to_picture(s);
        if (rc != 0)
            return rc;
        *captured = lw_now();
        rc = jpeg_size(m, lw_str_c(&s->name), (long long)s->number, &m->found);
        if (rc == LW_EFORMAT && s->live) { /* the next one begins behind this marker, or further */
            m->bytes.begin += 2;
            rc = lw_frame_skip(s, &m->bad);
        }
        LW_TRY(rc);
    }
    return 0;
}

static void pass_picture(mjpeg *m)
{
    m->bytes.begin += m->found;
    m->found = 0;
}

/* Its size, or with rgb its pixels, of that size. */
static int read_picture(lw_frame_source *s, int32_t *w, int32_t *h, uint8_t *rgb)
{
    mjpeg *m = s->self;
    const char *bytes = m->bytes.buf + m->bytes.begin;
    char what[96];
    lw_clean(what, sizeof what - 32, lw_str_c(&s->name));
    snprintf(what + strlen(what), 32, ": frame %lld", (long long)s->number);
    return rgb ? lw_jpeg_read(m->jpeg, what, bytes, m->found, *w, *h, rgb)
               : lw_jpeg_read_size(m->jpeg, what, bytes, m->found, w, h);
}

/* The next picture that is whole, as above; damaged ones of a live source are passed over. */
static int next_picture(lw_frame_source *s, int32_t *w, int32_t *h, uint8_t *rgb, double *captured)
{
    mjpeg *m = s->self;
    for (;;) {
        int rc = find_picture(s, captured);
        if (rc != 0)
            return rc;
        rc = read_picture(s, w, h, rgb);
        if (rc == 0) {
            m->bad = 0;
            if (rgb)
                pass_picture(m);
            return 0;
        }
        pass_picture(m);
        if (rc != LW_EFORMAT || !s->live)
            return rc;
        LW_TRY(lw_frame_skip(s, &m->bad));
    }
}

int lw_frame_mjpeg_begin(lw_frame_source *s, lw_frame_bytes *bytes)
{
    mjpeg *m = s->self = lw_calloc(1, sizeof *m);
    double captured;
    int32_t w, h;
    s->def = &lw_frames_from_mjpeg;
    if (!m)
        return LW_ENOMEM;
    m->bytes = *bytes;
    *bytes = (lw_frame_bytes){0};
    s->live = !m->bytes.regular;
    LW_TRY(lw_jpeg_new(&m->jpeg));
    int rc = next_picture(s, &w, &h, NULL, &captured);
    if (rc != 0)
        return rc < 0 ? rc : lw_fail(LW_EFORMAT, "%s: empty: no frames", lw_str_c(&s->name));
    s->format = lw_frame_format_rgb(w, h, 25);
    return 0;
}

static int mjpeg_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    LW_CLEANUP(lw_frame_bytes_close) lw_frame_bytes bytes = {0};
    LW_TRY(lw_frame_bytes_open(&bytes, spec, o));
    return lw_frame_mjpeg_begin(s, &bytes);
}

static int mjpeg_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    return next_picture(s, &s->format.w, &s->format.h, bytes, captured);
}

static int mjpeg_rewind(lw_frame_source *s)
{
    mjpeg *m = s->self;
    m->found = 0;
    return lw_frame_bytes_rewind(&m->bytes, lw_str_c(&s->name));
}

static void mjpeg_close(lw_frame_source *s)
{
    mjpeg *m = s->self;
    if (!m)
        return;
    lw_frame_bytes_close(&m->bytes);
    lw_jpeg_free(&m->jpeg);
    lw_free(&s->self);
}

const lw_frame_source_def lw_frames_from_mjpeg = {".mjpeg",   "FILE.mjpeg", mjpeg_open,
                                                  mjpeg_next, mjpeg_rewind, mjpeg_close};

/* ---- written --------------------------------------------------------------------------------- */

typedef struct mjpeg_out {
    lw_frame_file out;
    lw_jpeg *jpeg;
} mjpeg_out;

static int out_open(lw_frame_sink *s, const char *spec)
{
    mjpeg_out *o = s->self = lw_calloc(1, sizeof *o);
    s->format.form = LW_PIXELS_RGB;
    if (!o)
        return LW_ENOMEM;
    LW_TRY(lw_jpeg_new(&o->jpeg));
    return lw_new_file_begin(&o->out.file, spec);
}

static int out_put(lw_frame_sink *s, const uint8_t *rgb)
{
    mjpeg_out *o = s->self;
    const uint8_t *bytes;
    size_t n;
    LW_TRY(lw_jpeg_write(o->jpeg, rgb, s->format.w, s->format.h, QUALITY, &bytes, &n));
    return lw_frame_file_put(&o->out, bytes, n);
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
    lw_jpeg_free(&o->jpeg);
    lw_free(&s->self);
}

const lw_frame_sink_def lw_frames_to_mjpeg = {".mjpeg", "FILE.mjpeg", true,     out_open,
                                              out_put,  out_finish,   out_close};
