/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of frames: which one a text names, and what is the same in all of them. */
#include "frames/frames_source.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const lw_frame_source_def *const kinds[] = {
    &lw_frames_from_pipe,  &lw_frames_from_test, &lw_frames_from_folder, &lw_frames_from_y4m,
    &lw_frames_from_mjpeg, &lw_frames_from_mp4,  &lw_frames_from_mkv,    &lw_frames_from_mov,
    &lw_frames_from_webm,  &lw_frames_from_avi,  &lw_frames_from_v4l2,   &lw_frames_from_browser};

/* ".y4m" ends a spec, "folder:" begins it, "-" and "test" are it; "test" may go on with a colon. */
bool lw_frame_named(const char *word, const char *spec)
{
    const size_t n = strlen(word);
    if (word[0] == '.')
        return lw_str_ends(spec, word);
    if (word[n - 1] == ':')
        return lw_str_starts(spec, word);
    return strncmp(spec, word, n) == 0 && (spec[n] == '\0' || (n > 1 && spec[n] == ':'));
}

lw_frame_format lw_frame_format_rgb(int32_t w, int32_t h, int32_t fps)
{
    return (lw_frame_format){
        .form = LW_PIXELS_RGB, .full_range = true, .w = w, .h = h, .rate = fps, .per = 1};
}

int lw_frame_format_check(const char *what, int64_t w, int64_t h, int64_t rate, int64_t per)
{
    if (w < 1 || h < 1 || w > LW_FRAME_MAX_SIDE || h > LW_FRAME_MAX_SIDE ||
        w * h > LW_FRAME_MAX_PIXELS)
        return lw_fail(
            LW_EFORMAT, "%s: frames of %lldx%lld: sides are 1 to %d, pixels at most %lld", what,
            (long long)w, (long long)h, LW_FRAME_MAX_SIDE, (long long)LW_FRAME_MAX_PIXELS);
    if (rate < 1 || per < 1 || rate > INT32_MAX || per > INT32_MAX || rate / per > 1000)
        return lw_fail(LW_EFORMAT, "%s: %lld/%lld frames a second: at most 1000", what,
                       (long long)rate, (long long)per);
    return 0;
}

const char *lw_frame_format_text(char buf[96], const lw_frame_format *f)
{
    static const char *const forms[] = {"yuv420p", "yuv422p", "yuv444p", "nv12",
                                        "yuyv422", "gray",    "rgb24"};
    char colours[40] = "";
    if (f->form != LW_PIXELS_RGB)
        snprintf(colours, sizeof colours, ", BT.%s, %s range",
                 f->matrix == LW_MATRIX_709 ? "709" : "601", f->full_range ? "full" : "limited");
    snprintf(buf, 96, "%dx%d %s%s, %.4g fps", f->w, f->h, forms[f->form], colours,
             (double)f->rate / f->per);
    return buf;
}

void lw_frame_colours(lw_frame_format *f, const lw_frame_options *o, bool full)
{
    f->matrix = o->matrix == 2 || (o->matrix == 0 && f->h >= 720) ? LW_MATRIX_709 : LW_MATRIX_601;
    f->full_range = o->range == 2 || (o->range == 0 && full);
}

/* The rate asked for, as a ratio. */
static void set_rate(lw_frame_format *f, double fps)
{
    if (fps <= 0)
        return;
    f->per = fps == floor(fps) ? 1 : 1000;
    f->rate = (int32_t)lrint(fps * f->per);
}

static int no_kind(const char *spec)
{
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    for (size_t i = 0; i < LW_COUNT(kinds); i++)
        lw_str_addf(&all, "%s%s", i ? ", " : "", kinds[i]->spoken);
    return lw_fail(
        LW_EUSAGE,
        "--input %s: no source of frames; there are %s (other files: `ffmpeg -v error -i "
        "FILE -f yuv4mpegpipe - | leeway stream --input - ...`)",
        spec, lw_str_c(&all));
}

int lw_frame_source_open(const char *spec, const lw_frame_options *o, lw_frame_source **out)
{
    LW_CLEANUP(lw_frame_source_close) lw_frame_source *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    for (size_t i = 0; i < LW_COUNT(kinds) && !s->def; i++)
        if (lw_frame_named(kinds[i]->word, spec))
            s->def = kinds[i];
    if (!s->def && o->raw)
        s->def = &lw_frames_from_y4m;
    if (!s->def)
        return no_kind(spec);
    if (o->raw && s->def != &lw_frames_from_y4m && s->def != &lw_frames_from_pipe)
        return lw_fail(LW_EUSAGE, "--raw is for files and pipes without headers, not for %s",
                       s->def->spoken);
    lw_str_add(&s->name, strcmp(spec, "-") == 0 ? "standard input" : spec);
    if (s->name.failed)
        return LW_ENOMEM;
    s->format = (lw_frame_format){.rate = 25, .per = 1};
    LW_TRY(s->def->open(s, spec, o));
    if (s->def != &lw_frames_from_v4l2) /* which says what rate came of it */
        set_rate(&s->format, o->fps);
    const lw_frame_format *f = &s->format;
    LW_TRY(lw_frame_format_check(lw_str_c(&s->name), f->w, f->h, f->rate, f->per));
    lw_pixels_init(&s->pixels, f->form, f->matrix, f->full_range, f->w, f->h);
    *out = lw_steal(&s);
    return 0;
}

int lw_frame_source_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    *captured = lw_now();
    int rc = s->def->next(s, bytes, captured);
    s->number += rc == 0;
    return rc;
}

int lw_frame_skip(lw_frame_source *s, int *bad)
{
    s->skipped++;
    lw_log(LW_LOG_INFO, "stream", "a damaged frame is passed over: %s", lw_errmsg());
    if (++*bad < LW_FRAME_MOST_BAD)
        return 0;
    return lw_fail_in(LW_EFORMAT, "%s: %d damaged frames in a row: ", lw_str_c(&s->name), *bad);
}

int lw_frame_source_rewind(lw_frame_source *s)
{
    s->number = 0;
    return s->def->rewind(s);
}

bool lw_frame_source_paces(const lw_frame_source *s)
{
    return s->live || s->def == &lw_frames_from_pipe;
}

bool lw_frame_source_of_page(const lw_frame_source *s)
{
    return s->def == &lw_frames_from_browser;
}

void lw_frame_source_close(lw_frame_source **pp)
{
    lw_frame_source *s = *pp;
    if (!s)
        return;
    if (s->def)
        s->def->close(s);
    lw_str_clear(&s->name);
    lw_free(pp);
}
