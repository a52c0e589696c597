/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of pictures as frames, in the order of their names; and frames as such a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/formats.h"
#include "frames/frames_sink.h"
#include "frames/frames_source.h"

typedef struct folder {
    char **names;
    size_t n, next;
    lw_str dir, path;
} folder;

/* Names of pictures to the front, in their order. */
static void keep_pictures(folder *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (lw_image_known(f->names[i])) {
            char *name = f->names[n];
            f->names[n++] = f->names[i];
            f->names[i] = name;
        }
    f->next = n; /* how many, until the first frame is asked for */
}

static int folder_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    (void)o;
    folder *f = s->self = lw_calloc(1, sizeof *f);
    if (!f)
        return LW_ENOMEM;
    lw_str_add(&f->dir, spec + strlen("folder:"));
    if (f->dir.failed)
        return LW_ENOMEM;
    LW_TRY(lw_list_dir(lw_str_c(&f->dir), &f->names, &f->n));
    keep_pictures(f);
    const size_t pictures = f->next;
    for (size_t i = pictures; i < f->n; i++)
        lw_free(&f->names[i]);
    f->n = pictures;
    f->next = 0;
    if (f->n == 0)
        return lw_fail(LW_EFORMAT, "%s: no pictures in it", lw_str_c(&f->dir));
    int32_t w, h;
    lw_path_join(&f->path, lw_str_c(&f->dir), f->names[0]);
    LW_TRY(lw_image_size(lw_str_c(&f->path), &w, &h));
    s->format = lw_frame_format_rgb(w, h, 25);
    return 0;
}

static int folder_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    (void)captured;
    folder *f = s->self;
    if (f->next == f->n)
        return 1;
    lw_path_join(&f->path, lw_str_c(&f->dir), f->names[f->next]);
    if (f->path.failed)
        return LW_ENOMEM;
    LW_TRY(lw_image_read(lw_str_c(&f->path), s->format.w, s->format.h, bytes));
    f->next++;
    return 0;
}

static int folder_rewind(lw_frame_source *s)
{
    ((folder *)s->self)->next = 0;
    return 0;
}

static void folder_close(lw_frame_source *s)
{
    folder *f = s->self;
    if (!f)
        return;
    lw_list_free(&f->names, f->n);
    lw_str_clear(&f->dir);
    lw_str_clear(&f->path);
    lw_free(&s->self);
}

const lw_frame_source_def lw_frames_from_folder = {"folder:",   "folder:DIR",  folder_open,
                                                   folder_next, folder_rewind, folder_close};

/* ---- written --------------------------------------------------------------------------------- */

int lw_frame_folder_check(const char *dir)
{
    char **names = NULL;
    size_t n = 0, frames = 0;
    if (!lw_path_is_dir(dir))
        return 0;
    LW_TRY(lw_list_dir(dir, &names, &n));
    for (size_t i = 0; i < n; i++)
        frames += lw_str_starts(names[i], "frame_");
    lw_list_free(&names, n);
    return frames == 0
               ? 0
               : lw_fail(LW_EUSAGE,
                         "%s holds something already (%zu files frame_*): choose another --output",
                         dir, frames);
}

static int out_open(lw_frame_sink *s, const char *spec)
{
    lw_str *dir = s->self = lw_calloc(1, sizeof *dir);
    s->format.form = LW_PIXELS_RGB;
    if (!dir)
        return LW_ENOMEM;
    lw_str_add(dir, spec + strlen("folder:"));
    return dir->failed ? LW_ENOMEM : lw_mkdirs(lw_str_c(dir));
}

static int out_put(lw_frame_sink *s, const uint8_t *rgb)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const lw_image im = {.width = s->format.w,
                         .height = s->format.h,
                         .rgb = (uint8_t *)(uintptr_t)rgb}; /* only read */
    lw_str_addf(&path, "%s/frame_%06lld.png", lw_str_c(s->self), (long long)s->n);
    if (path.failed)
        return LW_ENOMEM;
    return lw_png_save(lw_str_c(&path), &im, NULL);
}

static int out_finish(lw_frame_sink *s, char text[64])
{
    (void)s;
    (void)text;
    return 0;
}

static void out_close(lw_frame_sink *s)
{
    if (s->self)
        lw_str_clear(s->self);
    lw_free(&s->self);
}

const lw_frame_sink_def lw_frames_to_folder = {"folder:", "folder:DIR", true,     out_open,
                                               out_put,   out_finish,   out_close};
