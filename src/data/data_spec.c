/* SPDX-License-Identifier: Apache-2.0 */
/* From the text of a spec to a planned job: the list of sources, and what plans share. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/data_degrade.h"
#include "data/sources/data_source.h"

/* Every source there is. A new one is a file with its record, and a row here. */
static const lw_data_source *const sources[] = {
    &lw_data_source_synth,    &lw_data_source_cifar,
    &lw_data_source_mnist,    &lw_data_source_folder,
    &lw_data_source_manifest, &lw_data_source_tensor,
    &lw_data_source_shards,   &lw_data_source_webdataset,
    &lw_data_source_video,    NULL,
};

const lw_data_info *lw_data_sources(void)
{
    static lw_data_info list[LW_COUNT(sources)];
    for (size_t i = 0; sources[i]; i++)
        list[i] = sources[i]->info;
    return list;
}

/* The first `len` bytes of spec name no source. */
static int unknown_source(const char *spec, size_t len)
{
    const char *nearest = sources[0]->info.name;
    LW_CLEANUP(lw_str_clear) lw_str known = {0}, text = {0};
    lw_str_add_n(&text, spec, len);
    const char *word = lw_str_c(&text);
    for (size_t i = 0; sources[i]; i++) {
        lw_str_addf(&known, "%s%s", i ? ", " : "", sources[i]->info.usage);
        if (lw_str_distance(word, sources[i]->info.name) < lw_str_distance(word, nearest))
            nearest = sources[i]->info.name;
    }
    if (known.failed || text.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for its name", spec);
    if (len == 0)
        return lw_fail(LW_EUSAGE, "data '%s': a source must stand before the colon: %s", spec,
                       lw_str_c(&known));
    if (lw_path_exists(spec))
        return lw_fail(
            LW_EUSAGE,
            "data '%s' is a path without a source: write folder:%s, cifar10:%s or mnist:%s", spec,
            spec, spec, spec);
    return lw_fail(LW_EUSAGE, "data '%s': no source '%s'; did you mean '%s'? Sources: %s", spec,
                   word, nearest, lw_str_c(&known));
}

static int check_channels(const char *spec, const lw_data_opts *o)
{
    const lw_preparation *p = o->preparation;
    if (o->channels < 0 || o->channels > LW_MAX_CHANNELS)
        return lw_fail(LW_EUSAGE, "data '%s': %d channels are not within 1..%d", spec, o->channels,
                       LW_MAX_CHANNELS);
    if (p && o->channels != 0 && o->channels != p->channels)
        return lw_fail(LW_EUSAGE, "data '%s': %d channels beside a preparation of pictures of %d",
                       spec, o->channels, p->channels);
    return 0;
}

static int check_opts(const char *spec, const lw_data_opts *o)
{
    LW_TRY(check_channels(spec, o));
    if (o->image_size != 0 && (o->image_size < 8 || o->image_size > LW_DATA_MAX_SQUARE))
        return lw_fail(LW_EUSAGE, "data '%s': image size %d is not within 8..%d", spec,
                       o->image_size, LW_DATA_MAX_SQUARE);
    if (o->whole && (o->image_size != 0 || o->preparation))
        return lw_fail(LW_EUSAGE, "data '%s': whole pictures are neither resized nor prepared",
                       spec);
    if (o->image_size != 0 && o->preparation)
        return lw_fail(LW_EUSAGE,
                       "data '%s': image size %d beside a preparation, which says the size: leave "
                       "one out",
                       spec, o->image_size);
    const lw_preparation *p = o->preparation;
    if (p && (p->height < 1 || p->height > LW_DATA_MAX_SIDE || p->width < 1 ||
              p->width > LW_DATA_MAX_SIDE))
        return lw_fail(LW_EUNSUPPORTED,
                       "data '%s': pictures prepared as %dx%d pixels: sides are 1 to %d, as of "
                       "networks",
                       spec, p->width, p->height, LW_DATA_MAX_SIDE);
    return lw_data_range_opts(spec, o);
}

/* What names the cache file, behind what the plan said. */
static void add_place(lw_data_job *job)
{
    const lw_data_opts *o = &job->opts;
    lw_str_addf(&job->place, "%s %d", job->source->info.name, job->w);
    if (job->ranged) {
        lw_str_add(&job->place, "\n");
        lw_data_range_print(job, &job->place);
    }
    if (o->preparation) {
        lw_str_addf(&job->place, "\n%dx%d ", job->w, job->h);
        lw_preparation_print_pixels(o->preparation, &job->place);
    }
    if (o->whole)
        lw_str_addf(&job->place, "\nwhole %dx%d", job->w, job->h);
    if (o->degradation)
        lw_str_addf(&job->place, "\n%s", o->degradation->name);
    if (job->channels != 3) /* as those written before there was a choice are called */
        lw_str_addf(&job->place, "\nchannels %d", job->channels);
    if (o->on_error == LW_ON_ERROR_SKIP)
        lw_str_add(&job->place, "\nskip");
}

static int plan(lw_data_job *job)
{
    const lw_data_opts *o = &job->opts;
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    job->own = 3;
    job->channels = o->preparation ? o->preparation->channels : o->channels ? o->channels : 3;
    LW_TRY(job->source->plan(job));
    lw_str_addf(&what, "data '%s'", job->spec);
    return lw_channels_check(lw_str_c(&what), job->own, job->channels);
}

int lw_data_job_init(lw_data_job *job, const char *spec, const lw_data_opts *opts)
{
    *job = (lw_data_job){.spec = spec, .opts = opts ? *opts : (lw_data_opts){0}};
    if (!spec || !*spec)
        return lw_fail(LW_EUSAGE, "no data given: write for example synth:16 or cifar10:DIR");
    LW_TRY(check_opts(spec, &job->opts));
    const char *colon = strchr(spec, ':');
    size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
    for (size_t i = 0; sources[i] && !job->source; i++)
        if (strlen(sources[i]->info.name) == len && memcmp(spec, sources[i]->info.name, len) == 0)
            job->source = sources[i];
    if (!job->source)
        return unknown_source(spec, len);
    job->arg = colon ? colon + 1 : NULL;
    /* Prepared rows may have many times the bytes of their pictures: only those asked for. */
    job->ranged = job->opts.preparation || job->opts.num_images;
    LW_TRY(plan(job));
    add_place(job);
    if (job->place.failed || job->state.failed || job->root.failed || job->names.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for its description", spec);
    return 0;
}

void lw_data_job_clear(lw_data_job *job)
{
    if (job->source && job->source->clear)
        job->source->clear(job);
    lw_str_clear(&job->names);
    lw_str_clear(&job->place);
    lw_str_clear(&job->state);
    lw_str_clear(&job->note);
    lw_str_clear(&job->root);
    lw_str_clear(&job->damaged);
    *job = (lw_data_job){0};
}

int lw_data_job_settle(lw_data_job *job)
{
    if (job->h == 0)
        LW_TRY(job->source->settle(job));
    if (job->note.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for a note", job->spec);
    return 0;
}

size_t lw_data_job_row(const lw_data_job *job)
{
    return (size_t)job->h * (size_t)job->w * (size_t)job->channels;
}

void lw_data_job_title(const lw_data_job *job, lw_str *out)
{
    const char *place = lw_str_c(&job->place);
    if (*place == '/')
        lw_str_addf(out, "%s:%.*s", job->source->info.name, (int)strcspn(place, "\n"), place);
    else
        lw_str_add(out, job->spec);
    if (job->ranged) {
        lw_str_add(out, " ");
        lw_data_range_print(job, out);
    }
    if (job->opts.whole)
        lw_str_add(out, ", whole");
    if (job->opts.degradation)
        lw_str_addf(out, ", %s", job->opts.degradation->name);
    if (job->channels != 3)
        lw_str_addf(out, ", %d channel%s", job->channels, job->channels == 1 ? "" : "s");
    if (job->opts.preparation) {
        lw_str_add(out, ", prepared: ");
        lw_preparation_print_pixels(job->opts.preparation, out);
    }
}

void lw_data_job_size(lw_data_job *job, int32_t own)
{
    const lw_data_opts *o = &job->opts;
    job->h = job->w = o->image_size ? o->image_size : own;
    if (o->preparation) {
        job->h = o->preparation->height;
        job->w = o->preparation->width;
    }
}

void lw_data_job_pictures(lw_data_job *job, int32_t h, int32_t w)
{
    lw_data_job_size(job, LW_MIN(h, w));
    if (job->opts.whole) {
        job->h = h;
        job->w = w;
    }
}

int lw_data_job_class(lw_data_job *job, const char *name)
{
    if (job->classes >= LW_DATA_MAX_CLASSES)
        return lw_fail(LW_EFORMAT, "data '%s': more than %d classes", job->spec,
                       LW_DATA_MAX_CLASSES);
    lw_str_add_n(&job->names, name, strlen(name) + 1);
    job->classes++;
    return 0;
}

int lw_data_job_file(lw_data_job *job, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return lw_fail(lw_errno_code(errno), "data '%s': %s: %s", job->spec, path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return lw_fail(LW_EIO, "data '%s': %s: not a regular file", job->spec, path);
    lw_str_addf(&job->state, "%s %lld %lld.%09ld\n", path, (long long)st.st_size,
                (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    return 0;
}

int lw_data_job_place(lw_data_job *job, const char *path)
{
    char *real = realpath(path, NULL);
    if (!real)
        return lw_fail(lw_errno_code(errno), "data '%s': %s: %s", job->spec, path, strerror(errno));
    lw_str_addf(&job->place, "%s\n", real);
    free(real);
    return 0;
}

int lw_data_job_root(lw_data_job *job)
{
    char *real = realpath(lw_str_c(&job->root), NULL);
    if (!real)
        return lw_fail(lw_errno_code(errno), "data '%s': %s: %s", job->spec, lw_str_c(&job->root),
                       strerror(errno));
    job->root.len = 0;
    lw_str_add(&job->root, real);
    free(real);
    return 0;
}

int lw_data_job_path(const lw_data_job *job, const char **out)
{
    if (!job->arg || !*job->arg)
        return lw_fail(LW_EUSAGE, "data '%s': a path must follow: %s", job->spec,
                       job->source->info.usage);
    *out = job->arg;
    return 0;
}

int lw_data_report_add(lw_data_report *r, const char *path, const char *reason)
{
    LW_TRY(lw_grow(&r->problems, &r->cap_problems, r->n_problems + 1, sizeof *r->problems));
    const size_t n = strlen(path);
    const bool said = strncmp(reason, path, n) == 0 && strncmp(reason + n, ": ", 2) == 0;
    LW_CLEANUP(lw_free) char *p = lw_strdup(path);
    char *why = lw_strdup(said ? reason + n + 2 : reason); /* what it is of stands before it */
    if (!p || !why) {
        lw_free(&why);
        return LW_ENOMEM;
    }
    r->problems[r->n_problems++] = (lw_data_problem){.path = lw_steal(&p), .reason = why};
    return 0;
}
