/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks of frames: which one a text names, and what is the same in all of them. */
#include "frames/frames_sink.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frames/frames_source.h"

static const lw_frame_sink_def *const kinds[] = {
    &lw_frames_to_pipe,   &lw_frames_to_null,  &lw_frames_to_md5, &lw_frames_to_y4m,
    &lw_frames_to_folder, &lw_frames_to_mjpeg, &lw_frames_to_mp4, &lw_frames_to_v4l2};

static int no_kind(const char *spec)
{
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    for (size_t i = 0; i < LW_COUNT(kinds); i++)
        lw_str_addf(&all, "%s%s", i ? ", " : "", kinds[i]->spoken);
    return lw_fail(LW_EUSAGE,
                   "--output %s: no sink of frames; there are %s (other files: `leeway stream ... "
                   "--output - | ffmpeg -i - FILE`)",
                   spec, lw_str_c(&all));
}

/* The folder that a text names, else the whole text: a file, or a word like any other. */
static const char *path_of(const char *spec)
{
    const char *word = lw_frames_to_folder.word;
    return lw_frame_named(word, spec) ? spec + strlen(word) : spec;
}

int lw_frame_sinks_check(const char *const *specs, int n)
{
    for (int i = 0; i < n; i++) {
        const char *path = path_of(specs[i]);
        for (int k = 0; k < i; k++) {
            bool same;
            LW_TRY(lw_output_same(path_of(specs[k]), path, &same));
            if (same)
                return lw_fail(LW_EUSAGE, "outputs %s and %s are the same: leave one out", specs[k],
                               specs[i]);
        }
        if (path != specs[i])
            LW_TRY(lw_frame_folder_check(path));
    }
    return 0;
}

int lw_frame_sink_open(const char *spec, const lw_frame_format *like, const lw_kernels *k,
                       lw_frame_sink **out)
{
    LW_CLEANUP(lw_frame_sink_close) lw_frame_sink *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    for (size_t i = 0; i < LW_COUNT(kinds) && !s->def; i++)
        if (lw_frame_named(kinds[i]->word, spec))
            s->def = kinds[i];
    if (!s->def)
        return no_kind(spec);
    lw_str_add(&s->name, strcmp(spec, "-") == 0 ? "standard output" : spec);
    if (s->name.failed)
        return LW_ENOMEM;
    s->format = *like;
    s->kernels = k;
    LW_TRY(s->def->open(s, spec));
    *out = lw_steal(&s);
    return 0;
}

int lw_frame_sink_put(lw_frame_sink *s, const uint8_t *rgb)
{
    LW_TRY(s->def->put(s, rgb));
    s->n++;
    return 0;
}

int lw_frame_sink_finish(lw_frame_sink *s, char text[64])
{
    text[0] = '\0';
    return s->def->finish(s, text);
}

bool lw_frame_sink_timed(const lw_frame_sink *s)
{
    return s->def->timed;
}

void lw_frame_sink_close(lw_frame_sink **pp)
{
    lw_frame_sink *s = *pp;
    if (!s)
        return;
    if (s->def)
        s->def->close(s);
    lw_str_clear(&s->name);
    lw_free(pp);
}

int lw_frame_file_add(lw_frame_file *f, const void *bytes, size_t n)
{
    int rc = lw_new_file_put(&f->file, bytes, n);
    if (rc == 0) {
        f->size += n;
        return 0;
    }
    if (f->file.in_place)
        return rc;
    char why[512];
    snprintf(why, sizeof why, "%s", lw_errmsg());
    bool kept = f->whole > f->header && ftruncate(f->file.fd, (off_t)f->whole) == 0 &&
                lw_new_file_finish(&f->file) == 0;
    if (!kept) {
        lw_new_file_drop(&f->file);
        return lw_fail(rc, "%s (no frame is kept: the file is not there)", why);
    }
    return lw_fail(rc, "%s (%s)", why,
                   f->seconds ? "whole seconds before it are kept, frames behind them are not"
                              : "the frames before it are kept");
}

void lw_frame_file_whole(lw_frame_file *f)
{
    f->whole = f->size;
}

void lw_frame_file_header(lw_frame_file *f)
{
    f->header = f->whole = f->size;
}

int lw_frame_file_put(lw_frame_file *f, const void *bytes, size_t n)
{
    LW_TRY(lw_frame_file_add(f, bytes, n));
    lw_frame_file_whole(f);
    return 0;
}

/* ---- null ------------------------------------------------------------------------------------ */

static int null_open(lw_frame_sink *s, const char *spec)
{
    (void)spec;
    s->format.form = LW_PIXELS_RGB;
    return 0;
}

static int null_put(lw_frame_sink *s, const uint8_t *rgb)
{
    (void)s;
    (void)rgb;
    return 0;
}

static int null_finish(lw_frame_sink *s, char text[64])
{
    (void)s;
    (void)text;
    return 0;
}

static void null_close(lw_frame_sink *s)
{
    (void)s;
}

const lw_frame_sink_def lw_frames_to_null = {"null",   "null",      false,     null_open,
                                             null_put, null_finish, null_close};
