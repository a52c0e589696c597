/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `video`: the frames of a clip, in order: of a file that frames/ reads, or of a folder of pictures
 * of one size. The last tenth is held out, because neighbours are nearly equal: a frame between two
 * that were learnt would say nothing.
 */
#include <string.h>
#include <sys/stat.h>

#include "data/sources/data_source.h"
#include "frames/frames.h"

enum { TENTH = 10, AHEAD = 32 /* frames read before they are made rows together */ };

typedef struct video {
    lw_str spec; /* of frames/: a file, or folder:DIR */
    lw_frame_options options;
    lw_frame_source *in;
    lw_kernels kernels;
    uint8_t *bytes; /* [AHEAD] frames as the source has them */
    size_t frame;   /* bytes of one */
} video;

static void video_clear(lw_data_job *job)
{
    video *v = job->priv;
    if (v) {
        lw_frame_source_close(&v->in);
        lw_str_clear(&v->spec);
        lw_free(&v->bytes);
    }
    lw_free(&job->priv);
}

/* Every picture of the folder is part of what makes the cache stale. */
static int note_folder(lw_data_job *job, const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    LW_TRY(lw_list_dir(dir, &names, &n));
    for (size_t i = 0; i < n && rc == 0; i++)
        if (lw_image_known(names[i]))
            rc = lw_data_job_file(job, lw_path_join(&path, dir, names[i]));
    lw_list_free(&names, n);
    return rc;
}

static int find(lw_data_job *job, video *v)
{
    const char *path, *word = "folder:";
    struct stat st;
    LW_TRY(lw_data_job_path(job, &path));
    bool named = lw_str_starts(path, word);
    if (named)
        path += strlen(word);
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    lw_str_addf(&v->spec, "%s%s", named || folder ? word : "", path);
    if (v->spec.failed)
        return LW_ENOMEM;
    LW_TRY(lw_data_job_place(job, path));
    return folder ? note_folder(job, path) : lw_data_job_file(job, path);
}

static int video_plan(lw_data_job *job)
{
    video *v = job->priv = lw_calloc(1, sizeof *v);
    if (!v)
        return LW_ENOMEM;
    LW_TRY(find(job, v));
    lw_isa isa;
    int rc = lw_frame_source_open(lw_str_c(&v->spec), &v->options, &v->in);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    const lw_frame_format *f = &v->in->format;
    if (LW_MAX(f->w, f->h) > LW_DATA_MAX_SIDE)
        return lw_fail(LW_EUNSUPPORTED, "data '%s': frames of %dx%d, sides are 1 to %d", job->spec,
                       f->w, f->h, LW_DATA_MAX_SIDE);
    LW_TRY(lw_isa_chosen(&isa));
    lw_kernels_init(&v->kernels, isa);
    v->frame = lw_pixels_bytes(&v->in->pixels);
    lw_data_job_pictures(job, f->h, f->w);
    job->flip = true;
    return lw_data_job_class(job, "0");
}

/* How many there are. Where what cannot be read is left out, so is all behind it: a gap in a clip
 * would be a jump. */
static int count(lw_data_job *job, video *v, int64_t *n)
{
    double captured;
    int rc;
    *n = 0;
    while ((rc = lw_frame_source_next(v->in, v->bytes, &captured)) == 0)
        (*n)++;
    if (rc == LW_EFORMAT && job->opts.on_error == LW_ON_ERROR_SKIP && *n > 0)
        lw_log(LW_LOG_WARN, "data", "%s: the clip ends at frame %lld: %s", job->spec, (long long)*n,
               lw_errmsg());
    else if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    lw_errclear();
    return *n > 0 ? lw_frame_source_rewind(v->in)
                  : lw_fail(LW_EFORMAT, "data '%s': no frames", job->spec);
}

static int get(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const video *v = from;
    const lw_pixels *p = &v->in->pixels;
    *label = 0;
    LW_TRY(lw_raster_init(im, (int32_t)p->h, (int32_t)p->w, 3));
    v->kernels.pixels.to_u8(im->at, v->bytes + (size_t)i * v->frame, p, 0, p->bands);
    return 0;
}

/* The next n frames become rows. */
static int fill(const lw_data_job *job, video *v, int64_t n, lw_data_sink *sink)
{
    double captured;
    for (int64_t at = 0, m; at < n; at += m) {
        m = LW_MIN(n - at, AHEAD);
        for (int64_t i = 0; i < m; i++) {
            int rc = lw_frame_source_next(v->in, v->bytes + (size_t)i * v->frame, &captured);
            if (rc != 0)
                return rc < 0 ? lw_fail_in(rc, "data '%s': ", job->spec)
                              : lw_fail(LW_EIO, "data '%s': changed while it was read", job->spec);
        }
        LW_TRY(lw_data_fill(job, sink, &(lw_data_pictures){.n = m, .from = v, .get = get}));
    }
    return 0;
}

static int video_build(lw_data_job *job, lw_data_sink *sink)
{
    video *v = job->priv;
    int64_t n;
    v->bytes = lw_calloc(AHEAD, v->frame);
    if (!v->bytes)
        return LW_ENOMEM;
    LW_TRY(count(job, v, &n));
    int64_t held = n > 1 ? LW_MAX(n / TENTH, 1) : 0;
    LW_TRY(lw_data_sink_expect(sink, n - held, held));
    LW_TRY(fill(job, v, n - held, sink));
    lw_data_sink_heldout(sink);
    return fill(job, v, held, sink);
}

const lw_data_source lw_data_source_video = {
    .info = {"video", "video:FILE",
             "frames of a clip in order (y4m, mjpeg, mp4, mkv, mov, webm, avi; or folder:DIR, "
             "pictures of one size); the last "
             "tenth held out"},
    .plan = video_plan,
    .build = video_build,
    .clear = video_clear,
};
