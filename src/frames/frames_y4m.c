/* SPDX-License-Identifier: Apache-2.0 */
/* YUV4MPEG2 files and pipes, and frames without any header: read and written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames/frames_sink.h"
#include "frames/frames_source.h"

enum { MOST_HEADER = 1024 };

typedef struct y4m {
    lw_frame_bytes bytes;
    bool raw;
    size_t frame;
} y4m;

/* Words of C in a header, of --raw, and what they are. Where chroma lies between pixels is one word for
 * us: differences are shared. */
typedef struct word {
    const char *word;
    lw_pixels_form form;
} word;
static const word y4m_words[] = {{"420jpeg", LW_PIXELS_420},  {"420mpeg2", LW_PIXELS_420},
                                 {"420paldv", LW_PIXELS_420}, {"420", LW_PIXELS_420},
                                 {"422", LW_PIXELS_422},      {"444", LW_PIXELS_444},
                                 {"mono", LW_PIXELS_GRAY}};
static const word raw_words[] = {{"yuv420p", LW_PIXELS_420},  {"yuv422p", LW_PIXELS_422},
                                 {"yuv444p", LW_PIXELS_444},  {"nv12", LW_PIXELS_NV12},
                                 {"yuyv422", LW_PIXELS_YUYV}, {"gray", LW_PIXELS_GRAY},
                                 {"rgb24", LW_PIXELS_RGB}};

static int find_form(const word *words, size_t n, const char *text, lw_pixels_form *out)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i].word, text) == 0) {
            *out = words[i].form;
            return 0;
        }
    return -1;
}

/* A line of at most MOST_HEADER letters without its end; *n = 0 and *end: no bytes are left. */
static int read_line(lw_frame_source *s, char *line, bool *end)
{
    lw_frame_bytes *b = &((y4m *)s->self)->bytes;
    const char *name = lw_str_c(&s->name);
    size_t n = 0, have;
    *end = false;
    for (;; n++) {
        LW_TRY(lw_frame_bytes_want(b, name, n + 1, &have));
        if (have == 0) {
            *end = true;
            return 0;
        }
        if (have <= n)
            return lw_fail(LW_EFORMAT, "%s: frame %lld: cut off in its header", name,
                           (long long)s->number);
        if (b->buf[b->begin + n] == '\n')
            break;
        if (n == MOST_HEADER - 1)
            return lw_fail(LW_EFORMAT, "%s: a header of more than %d bytes: no YUV4MPEG2", name,
                           MOST_HEADER - 1);
        line[n] = b->buf[b->begin + n];
    }
    line[n] = '\0';
    b->begin += n + 1;
    return 0;
}

/* "25:1" or "25". */
static int read_ratio(const char *text, int64_t *a, int64_t *b)
{
    char first[24];
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    if (n >= sizeof first)
        return -1;
    memcpy(first, text, n);
    first[n] = '\0';
    if (lw_parse_i64(first, a) < 0)
        return -1;
    return colon ? lw_parse_i64(colon + 1, b) : 0;
}

typedef struct header {
    int64_t w, h, rate, per;
    lw_pixels_form form;
    bool full;
} header;

/* One word of a header: its first letter says what it is. Unknown ones and I, A, X are passed over. */
static int read_word(const char *name, const char *text, header *h)
{
    int bad = 0;
    if (text[0] == 'W')
        bad = lw_parse_i64(text + 1, &h->w);
    else if (text[0] == 'H')
        bad = lw_parse_i64(text + 1, &h->h);
    else if (text[0] == 'F')
        bad = read_ratio(text + 1, &h->rate, &h->per);
    else if (text[0] == 'C' && find_form(y4m_words, LW_COUNT(y4m_words), text + 1, &h->form) < 0)
        return lw_fail(
            LW_EUNSUPPORTED,
            "%s: colours %s are not read: type `ffmpeg -v error -i FILE -pix_fmt yuv420p "
            "-f yuv4mpegpipe - | leeway stream --input - ...`",
            name, text);
    else if (strcmp(text, "XCOLORRANGE=FULL") == 0)
        h->full = true;
    return bad < 0 ? lw_fail(LW_EFORMAT, "%s: bad word '%s' in its header", name, text) : 0;
}

static int read_header(lw_frame_source *s, const lw_frame_options *o)
{
    const char *name = lw_str_c(&s->name);
    char line[MOST_HEADER];
    bool end;
    header h = {.rate = 25, .per = 1, .form = LW_PIXELS_420};
    LW_TRY(read_line(s, line, &end));
    if (end)
        return lw_fail(LW_EFORMAT, "%s: empty: no frames", name);
    char *at = line;
    const char *first = strsep(&at, " ");
    if (strcmp(first, "YUV4MPEG2") != 0)
        return lw_fail(LW_EFORMAT, "%s: no YUV4MPEG2 header (frames without one: --raw WxH:FORMAT)",
                       name);
    while (at) {
        const char *text = strsep(&at, " ");
        LW_TRY(read_word(name, text, &h));
    }
    if (h.rate == 0) { /* unknown, as some writers say */
        h.rate = 25;
        h.per = 1;
    }
    LW_TRY(lw_frame_format_check(name, h.w, h.h, h.rate, h.per));
    s->format = (lw_frame_format){.form = h.form,
                                  .w = (int32_t)h.w,
                                  .h = (int32_t)h.h,
                                  .rate = (int32_t)h.rate,
                                  .per = (int32_t)h.per};
    lw_frame_colours(&s->format, o, h.full);
    return 0;
}

/* "WxH:FORMAT". */
static int read_raw(lw_frame_source *s, const lw_frame_options *o)
{
    const char *colon = strchr(o->raw, ':');
    char size[48];
    int64_t w = 0, h = 0, fps = 0;
    lw_pixels_form form = LW_PIXELS_420;
    snprintf(size, sizeof size, "%.*s", colon ? (int)(colon - o->raw) : 0, o->raw);
    if (!colon || lw_frame_size_read(size, &w, &h, &fps) < 0 || fps || h < 1 ||
        find_form(raw_words, LW_COUNT(raw_words), colon + 1, &form) < 0)
        return lw_fail(LW_EUSAGE,
                       "--raw %s: not WxH:FORMAT with a format yuv420p, yuv422p, yuv444p, nv12, "
                       "yuyv422, gray or rgb24",
                       o->raw);
    if (lw_frame_format_check("--raw", w, h, 25, 1) < 0)
        return lw_fail(LW_EUSAGE, "%s", lw_errmsg());
    s->format =
        (lw_frame_format){.form = form, .w = (int32_t)w, .h = (int32_t)h, .rate = 25, .per = 1};
    lw_frame_colours(&s->format, o, false);
    return 0;
}

static int y4m_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    y4m *y = s->self = lw_calloc(1, sizeof *y);
    if (!y)
        return LW_ENOMEM;
    LW_TRY(lw_frame_bytes_open(&y->bytes, spec, o));
    y->raw = o->raw != NULL;
    s->live = !y->bytes.regular;
    if (!y->raw && s->def == &lw_frames_from_pipe) {
        size_t have;
        LW_TRY(lw_frame_bytes_want(&y->bytes, lw_str_c(&s->name), 2, &have));
        if (have >= 2 && memcmp(y->bytes.buf + y->bytes.begin, "\xff\xd8", 2) == 0) {
            LW_CLEANUP(lw_frame_bytes_close) lw_frame_bytes bytes = y->bytes;
            lw_free(&s->self);
            return lw_frame_mjpeg_begin(s, &bytes);
        }
    }
    LW_TRY(y->raw ? read_raw(s, o) : read_header(s, o));
    lw_pixels p;
    lw_pixels_init(&p, s->format.form, s->format.matrix, false, s->format.w, s->format.h);
    y->frame = lw_pixels_bytes(&p);
    return 0;
}

static int y4m_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    y4m *y = s->self;
    const char *name = lw_str_c(&s->name);
    char line[MOST_HEADER];
    bool end = false;
    size_t got;
    if (y->raw) {
        LW_TRY(lw_frame_bytes_want(&y->bytes, name, 1, &got));
        end = got == 0;
    } else {
        LW_TRY(read_line(s, line, &end));
        if (!end && strncmp(line, "FRAME", 5) != 0)
            return lw_fail(LW_EFORMAT, "%s: frame %lld: does not begin with FRAME", name,
                           (long long)s->number);
    }
    if (end)
        return 1;
    *captured = lw_now();
    LW_TRY(lw_frame_bytes_get(&y->bytes, name, bytes, y->frame, &got));
    if (got < y->frame)
        return lw_fail(LW_EFORMAT, "%s: frame %lld: cut off after %zu of %zu bytes", name,
                       (long long)s->number, got, y->frame);
    return 0;
}

static int y4m_rewind(lw_frame_source *s)
{
    y4m *y = s->self;
    char line[MOST_HEADER];
    bool end;
    LW_TRY(lw_frame_bytes_rewind(&y->bytes, lw_str_c(&s->name)));
    return y->raw ? 0 : read_line(s, line, &end);
}

static void y4m_close(lw_frame_source *s)
{
    y4m *y = s->self;
    if (y)
        lw_frame_bytes_close(&y->bytes);
    lw_free(&s->self);
}

const lw_frame_source_def lw_frames_from_y4m = {".y4m",   "FILE.y4m", y4m_open,
                                                y4m_next, y4m_rewind, y4m_close};
const lw_frame_source_def lw_frames_from_pipe = {
    "-", "- (y4m, JPEGs, or --raw WxH:FORMAT)", y4m_open, y4m_next, y4m_rewind, y4m_close};

/* ---- written --------------------------------------------------------------------------------- */

typedef struct y4m_out {
    lw_frame_file out;
    char *frame; /* "FRAME\n" and its bytes: one write a frame */
    size_t size;
} y4m_out;

static const char begin[] = "FRAME\n";

static int out_open(lw_frame_sink *s, const char *spec)
{
    y4m_out *o = s->self = lw_calloc(1, sizeof *o);
    lw_frame_format *f = &s->format;
    if (!o)
        return LW_ENOMEM;
    if (f->form != LW_PIXELS_422 && f->form != LW_PIXELS_444 && f->form != LW_PIXELS_GRAY)
        f->form = LW_PIXELS_420;
    lw_pixels_init(&s->pixels, f->form, f->matrix, f->full_range, f->w, f->h);
    o->size = sizeof begin - 1 + lw_pixels_bytes(&s->pixels);
    o->frame = lw_calloc(o->size, 1);
    if (!o->frame)
        return LW_ENOMEM;
    memcpy(o->frame, begin, sizeof begin - 1);
    LW_TRY(lw_new_file_begin(&o->out.file, strcmp(spec, "-") == 0 ? "/dev/stdout" : spec));
    const char *form = f->form == LW_PIXELS_422    ? "422"
                       : f->form == LW_PIXELS_444  ? "444"
                       : f->form == LW_PIXELS_GRAY ? "mono"
                                                   : "420jpeg"; /* in their middle, as a mean is */
    char line[160];
    int n = snprintf(line, sizeof line, "YUV4MPEG2 W%d H%d F%d:%d Ip A1:1 C%s XCOLORRANGE=%s\n",
                     f->w, f->h, f->rate, f->per, form, f->full_range ? "FULL" : "LIMITED");
    LW_TRY(lw_frame_file_add(&o->out, line, (size_t)n));
    lw_frame_file_header(&o->out);
    return 0;
}

static int out_put(lw_frame_sink *s, const uint8_t *rgb)
{
    y4m_out *o = s->self;
    s->kernels->pixels.from_u8((uint8_t *)o->frame + sizeof begin - 1, rgb, &s->pixels, 0,
                               s->pixels.bands);
    return lw_frame_file_put(&o->out, o->frame, o->size);
}

static int out_finish(lw_frame_sink *s, char text[64])
{
    (void)text;
    y4m_out *o = s->self;
    return o->out.file.open ? lw_new_file_finish(&o->out.file) : 0;
}

static void out_close(lw_frame_sink *s)
{
    y4m_out *o = s->self;
    if (!o)
        return;
    lw_new_file_drop(&o->out.file);
    lw_free(&o->frame);
    lw_free(&s->self);
}

const lw_frame_sink_def lw_frames_to_y4m = {".y4m",  "FILE.y4m", true,     out_open,
                                            out_put, out_finish, out_close};
const lw_frame_sink_def lw_frames_to_pipe = {"-",     "- (y4m)",  true,     out_open,
                                             out_put, out_finish, out_close};
