/* SPDX-License-Identifier: Apache-2.0 */
/* Video files read and written through the module `libav`, which is loaded when one is named. */
#include <stdio.h>
#include <string.h>

#include "frames/frames_sink.h"
#include "frames/frames_source.h"
#include "frames/libav/libav_calls.h"

/* The module's functions; without them, what to type instead. */
static int load(const char *path, const char *instead, const lw_libav_calls **out)
{
    const void *calls;
    int rc = lw_module_open("libav", LW_LIBAV_VERSION, &calls);
    if (rc < 0) {
        char why[600];
        snprintf(why, sizeof why, "%s", lw_errmsg());
        return lw_fail(rc, "%s: no video files here (%s): type `%s`", path, why, instead);
    }
    *out = calls;
    return 0;
}

static void list(const lw_libav_calls *calls, bool writes, lw_str *out)
{
    const char *name;
    for (int k = 0; (name = calls->codec(writes, k)) != NULL; k++)
        lw_str_addf(out, "%s%s", k ? " " : "", name);
}

int lw_frame_codecs(lw_str *reads, lw_str *writes)
{
    const void *calls;
    LW_TRY(lw_module_open("libav", LW_LIBAV_VERSION, &calls));
    list(calls, false, reads);
    list(calls, true, writes);
    return reads->failed || writes->failed ? LW_ENOMEM : 0;
}

typedef struct video {
    const lw_libav_calls *calls;
    void *reader;
} video;

static int fail_reading(const lw_frame_source *s, int rc, const char *why)
{
    return lw_fail(rc, "%s: frame %lld: %s", lw_str_c(&s->name), (long long)s->number, why);
}

static int video_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    video *v = s->self = lw_calloc(1, sizeof *v);
    const char *name = lw_str_c(&s->name);
    char why[LW_LIBAV_WHY];
    lw_libav_said said;
    uint64_t size;
    if (!v)
        return LW_ENOMEM;
    LW_TRY(load(name, "ffmpeg -v error -i FILE -f yuv4mpegpipe - | leeway stream --input - ...",
                &v->calls));
    if (lw_path_is_special(spec))
        return lw_fail(LW_EUSAGE, "%s: no file: pipes and devices are read as - (y4m or --raw)",
                       name);
    LW_TRY(lw_file_size(spec, &size)); /* says what is missing */
    int rc = v->calls->open(spec, &s->format, &said, &v->reader, why);
    if (rc < 0)
        return fail_reading(s, rc, why);
    lw_frame_options colours = *o;
    if (colours.matrix == 0)
        colours.matrix = said.matrix;
    lw_frame_colours(&s->format, &colours, said.full_range);
    if (said.converted[0])
        lw_log(LW_LOG_INFO, "stream", "%s: pixels %s are read as 8 bits", name, said.converted);
    if (said.turned < -1 || said.turned > 1)
        lw_log(LW_LOG_WARN, "stream",
               "%s: is to be turned by %.0f degrees when shown, which is not done", name,
               said.turned);
    return 0;
}

static int video_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    (void)captured;
    video *v = s->self;
    char why[LW_LIBAV_WHY];
    int rc = v->calls->next(v->reader, bytes, why);
    return rc < 0 ? fail_reading(s, rc, why) : rc;
}

static int video_rewind(lw_frame_source *s)
{
    video *v = s->self;
    char why[LW_LIBAV_WHY];
    int rc = v->calls->rewind(v->reader, why);
    return rc < 0 ? fail_reading(s, rc, why) : 0;
}

static void video_close(lw_frame_source *s)
{
    video *v = s->self;
    if (v && v->calls)
        v->calls->close_reader(&v->reader);
    lw_free(&s->self);
}

#define SOURCE(name, word)                                                  \
    const lw_frame_source_def name = {word,       "FILE" word,  video_open, \
                                      video_next, video_rewind, video_close}
SOURCE(lw_frames_from_mp4, ".mp4");
SOURCE(lw_frames_from_mkv, ".mkv");
SOURCE(lw_frames_from_mov, ".mov");
SOURCE(lw_frames_from_webm, ".webm");
SOURCE(lw_frames_from_avi, ".avi");

/* ---- written --------------------------------------------------------------------------------- */

typedef struct video_out {
    const lw_libav_calls *calls;
    void *writer;
    lw_frame_file out;
    uint8_t *frame; /* 4:2:0 */
} video_out;

/* The writer's bytes into the file. */
static int hand_out(void *self, const uint8_t *bytes, size_t n, bool begins)
{
    video_out *o = self;
    if (begins && o->out.header == 0)
        lw_frame_file_header(&o->out);
    else if (begins)
        lw_frame_file_whole(&o->out);
    return lw_frame_file_add(&o->out, bytes, n);
}

/* why "": the file's, whose message stands. */
static int fail_writing(const lw_frame_sink *s, int rc, const char *why)
{
    return rc < 0 && why[0] ? lw_fail(rc, "%s: %s", lw_str_c(&s->name), why) : rc;
}

static int out_open(lw_frame_sink *s, const char *spec)
{
    video_out *o = s->self = lw_calloc(1, sizeof *o);
    lw_frame_format *f = &s->format;
    const char *coder;
    char why[LW_LIBAV_WHY];
    if (!o)
        return LW_ENOMEM;
    LW_TRY(load(spec, "leeway stream ... --output - | ffmpeg -i - FILE", &o->calls));
    f->form = LW_PIXELS_420;
    f->full_range = false; /* what every player expects */
    lw_pixels_init(&s->pixels, f->form, f->matrix, f->full_range, f->w, f->h);
    o->frame = lw_calloc(lw_pixels_bytes(&s->pixels), 1);
    if (!o->frame)
        return LW_ENOMEM;
    o->out.seconds = true;
    LW_TRY(lw_new_file_begin(&o->out.file, spec));
    int rc = o->calls->create(f, hand_out, o, &o->writer, &coder, why);
    if (rc == 0)
        lw_log(LW_LOG_DEBUG, "stream", "%s: %s", spec, coder);
    return fail_writing(s, rc, why);
}

static int out_put(lw_frame_sink *s, const uint8_t *rgb)
{
    video_out *o = s->self;
    char why[LW_LIBAV_WHY];
    s->kernels->pixels.from_u8(o->frame, rgb, &s->pixels, 0, s->pixels.bands);
    return fail_writing(s, o->calls->put(o->writer, o->frame, why), why);
}

static int out_finish(lw_frame_sink *s, char text[64])
{
    (void)text;
    video_out *o = s->self;
    char why[LW_LIBAV_WHY];
    if (!o->out.file.open) /* cut off where it could not be written */
        return 0;
    LW_TRY(fail_writing(s, o->calls->finish(o->writer, why), why));
    return lw_new_file_finish(&o->out.file);
}

static void out_close(lw_frame_sink *s)
{
    video_out *o = s->self;
    if (!o)
        return;
    if (o->calls)
        o->calls->close_writer(&o->writer);
    lw_new_file_drop(&o->out.file);
    lw_free(&o->frame);
    lw_free(&s->self);
}

const lw_frame_sink_def lw_frames_to_mp4 = {".mp4",  "FILE.mp4", true,     out_open,
                                            out_put, out_finish, out_close};
