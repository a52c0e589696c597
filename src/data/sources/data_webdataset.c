/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `webdataset`: pictures in tar files, as WebDataset has them: members whose names are equal up to the
 * first dot belong to one sample, KEY.jpg (or .jpeg, .png, .webp, .bmp) and its class in KEY.cls, a whole
 * number; other members are passed over. Every tenth sample is held out.
 *
 * The tar files are walked once, before the first decoding; what is kept of them is where each picture
 * begins, so that any thread decodes any of them.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/sources/data_source.h"
#include "formats/formats.h"

enum { MOST_SHARDS = 100000, SMALLEST = 8, LARGEST = 64, CLASS_BYTES = 64 };
#define MOST_BYTES ((size_t)1 << 30) /* of a picture's file */

typedef struct sample {
    int32_t shard, label;
    int64_t at; /* of its picture */
    char *name;
} sample;

typedef struct webdataset {
    char **shard;
    size_t n_shards, cap_shards;
    sample *at;
    size_t n, cap;
    bool indexed, labelled;
    int32_t classes;
} webdataset;

static void clear(lw_data_job *job)
{
    webdataset *w = job->priv;
    if (!w)
        return;
    lw_list_free(&w->shard, w->n_shards);
    for (size_t i = 0; i < w->n; i++)
        lw_free(&w->at[i].name);
    lw_free(&w->at);
    lw_free(&job->priv);
}

/* ---- which files ----------------------------------------------------------------------------- */

static int add_shard(lw_data_job *job, const char *path)
{
    webdataset *w = job->priv;
    if (w->n_shards >= MOST_SHARDS)
        return lw_fail(LW_EUSAGE, "data '%s': more than %d files", job->spec, MOST_SHARDS);
    LW_TRY(lw_grow(&w->shard, &w->cap_shards, w->n_shards + 1, sizeof *w->shard));
    w->shard[w->n_shards] = lw_strdup(path);
    if (!w->shard[w->n_shards])
        return LW_ENOMEM;
    w->n_shards++;
    LW_TRY(lw_data_job_place(job, path));
    return lw_data_job_file(job, path);
}

static int add_matching(lw_data_job *job, const char *pattern)
{
    glob_t found = {0};
    int rc = 0;
    if (!strpbrk(pattern, "*?["))
        return add_shard(job, pattern);
    int no = glob(pattern, 0, NULL, &found);
    if (no == 0)
        for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
            rc = add_shard(job, found.gl_pathv[i]);
    else
        rc = lw_fail(no == GLOB_NOSPACE ? LW_ENOMEM : LW_EIO, "data '%s': no file is called %s",
                     job->spec, pattern);
    globfree(&found);
    return rc;
}

/* {000..012} in the middle becomes its numbers, as wide as the first. */
static int add_braces(lw_data_job *job, const char *pattern)
{
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
    int first = 0, last = 0, from = 0, to = 0;
    if (!open)
        return add_matching(job, pattern);
    if (!close || sscanf(open, "{%n%d..%d%n", &from, &first, &last, &to) != 2 ||
        open + to != close || first < 0 || last < first || last - first >= MOST_SHARDS)
        return lw_fail(LW_EUSAGE, "data '%s': braces hold two numbers, as {000..012}", job->spec);
    const int width = (int)(strstr(open, "..") - open) - from;
    for (int i = first; i <= last; i++) {
        LW_CLEANUP(lw_str_clear) lw_str name = {0};
        lw_str_addf(&name, "%.*s%0*d%s", (int)(open - pattern), pattern, width, i, close + 1);
        if (name.failed)
            return LW_ENOMEM;
        LW_TRY(add_matching(job, lw_str_c(&name)));
    }
    return 0;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* The sample that members are being read of. */
typedef struct walk {
    lw_data_job *job;
    webdataset *w;
    int32_t shard;
    lw_str key;
    sample s; /* at -1: no picture yet */
    bool classed;
} walk;

static bool is_picture(const char *ending)
{
    static const char *const known[] = {"jpg", "jpeg", "png", "webp", "bmp"};
    for (size_t i = 0; i < LW_COUNT(known); i++)
        if (strcasecmp(ending, known[i]) == 0)
            return true;
    return false;
}

static const char *shard_of(const walk *k)
{
    return k->w->shard[k->shard];
}

/* Its last member is read. */
static int end_sample(walk *k)
{
    webdataset *w = k->w;
    const char *key = lw_str_c(&k->key);
    const bool first = w->n == 0;
    if (k->s.at < 0 && k->classed)
        return lw_fail(LW_EFORMAT, "data '%s': %s: sample %s has a class but no picture",
                       k->job->spec, shard_of(k), key);
    if (k->s.at < 0)
        return 0;
    if (!first && k->classed != w->labelled)
        return lw_fail(LW_EFORMAT, "data '%s': %s: sample %s has %s class, and those before have%s",
                       k->job->spec, shard_of(k), key, k->classed ? "a" : "no",
                       k->classed ? " none" : "");
    LW_TRY(lw_grow(&w->at, &w->cap, w->n + 1, sizeof *w->at));
    w->labelled = k->classed;
    w->at[w->n++] = k->s;
    w->classes = LW_MAX(w->classes, k->s.label + 1);
    k->s.name = NULL; /* taken */
    return 0;
}

static int begin_sample(walk *k, const char *name, size_t n)
{
    LW_TRY(end_sample(k));
    lw_free(&k->s.name);
    k->key.len = 0;
    lw_str_add_n(&k->key, name, n);
    k->s = (sample){.shard = k->shard, .at = -1};
    k->classed = false;
    return k->key.failed ? LW_ENOMEM : 0;
}

static int read_class(walk *k, lw_archive *a, const lw_archive_member *m)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n;
    int64_t label = -1;
    LW_TRY(lw_archive_read_all(a, CLASS_BYTES, &text, &n));
    text[strcspn(text, "\r\n")] = '\0';
    if (lw_parse_i64(text, &label) < 0 || label < 0 || label >= LW_DATA_MAX_CLASSES)
        return lw_fail(LW_EFORMAT, "data '%s': %s: %s is no whole number of 0 to %d", k->job->spec,
                       shard_of(k), m->name, LW_DATA_MAX_CLASSES - 1);
    k->s.label = (int32_t)label;
    k->classed = true;
    return 0;
}

static int read_picture(walk *k, const lw_archive_member *m)
{
    if (m->link)
        return lw_fail(LW_EFORMAT, "data '%s': %s: %s is a link: its bytes are not there",
                       k->job->spec, shard_of(k), m->name);
    if (m->at < 0)
        return lw_fail(LW_EUNSUPPORTED,
                       "data '%s': %s: pictures are found again in plain tar files only, neither "
                       "compressed nor zip",
                       k->job->spec, shard_of(k));
    if (k->s.at >= 0)
        return lw_fail(LW_EFORMAT, "data '%s': %s: sample %s has a second picture, %s",
                       k->job->spec, shard_of(k), lw_str_c(&k->key), m->name);
    k->s.at = m->at;
    k->s.name = lw_strdup(m->name);
    return k->s.name ? 0 : LW_ENOMEM;
}

static int take_member(void *arg, lw_archive *a, const lw_archive_member *m)
{
    walk *k = arg;
    const char *slash = strrchr(m->name, '/'), *file = slash ? slash + 1 : m->name;
    const char *dot = strchr(file, '.');
    if (lw_observe_stop(k->job->opts.obs))
        return lw_fail(LW_ESTOPPED, "data '%s': interrupted after %zu samples", k->job->spec,
                       k->w->n);
    if (m->raw)
        return lw_fail(LW_EFORMAT, "data '%s': %s is no tar file", k->job->spec, shard_of(k));
    if (!dot || dot == file)
        return 0;
    const size_t n = (size_t)(dot - m->name);
    if (n != k->key.len || memcmp(m->name, lw_str_c(&k->key), n) != 0)
        LW_TRY(begin_sample(k, m->name, n));
    if (lw_str_eq(dot + 1, "cls"))
        return read_class(k, a, m);
    return is_picture(dot + 1) ? read_picture(k, m) : 0;
}

/* Samples do not go on in the next file. */
static int walk_shard(walk *k)
{
    int rc = lw_archive_each(shard_of(k), take_member, k);
    if (rc == 0)
        rc = begin_sample(k, "", 0);
    return rc;
}

/* Classes are numbers; some may have no picture here. */
static int name_classes(lw_data_job *job)
{
    const webdataset *w = job->priv;
    char name[16];
    LW_CLEANUP(lw_free) int64_t *rows = lw_calloc((size_t)w->classes + 1u, sizeof *rows);
    int32_t empty = 0, first = 0;
    if (!rows)
        return LW_ENOMEM;
    for (size_t i = 0; i < w->n; i++)
        rows[w->at[i].label]++;
    job->labelled = w->labelled;
    for (int32_t c = 0; c < w->classes; c++) {
        snprintf(name, sizeof name, "%d", (int)c);
        LW_TRY(lw_data_job_class(job, name));
        first = rows[c] == 0 && empty++ == 0 ? c : first;
    }
    if (empty)
        lw_str_addf(&job->note, "%s%d of %d classes have no picture, the first is %d",
                    job->note.len ? "; " : "", (int)empty, (int)w->classes, (int)first);
    return 0;
}

static int make_index(lw_data_job *job)
{
    webdataset *w = job->priv;
    walk k = {.job = job, .w = w, .s = {.at = -1}};
    int rc = 0;
    if (w->indexed)
        return 0;
    for (size_t i = 0; i < w->n_shards && rc == 0; i++) {
        k.shard = (int32_t)i;
        k.s.shard = k.shard;
        rc = walk_shard(&k);
        lw_observe_progress(job->opts.obs, "index", (int64_t)i + 1, (int64_t)w->n_shards, NULL);
    }
    lw_free(&k.s.name);
    lw_str_clear(&k.key);
    LW_TRY(rc);
    if (w->n == 0)
        return lw_fail(LW_EFORMAT, "data '%s': no picture in %s%s", job->spec, w->shard[0],
                       w->n_shards > 1 ? " and the files behind it" : "");
    w->indexed = true;
    return name_classes(job);
}

/* ---- the record ------------------------------------------------------------------------------ */

static int plan(lw_data_job *job)
{
    const char *pattern;
    webdataset *w = job->priv = lw_calloc(1, sizeof *w);
    if (!w)
        return LW_ENOMEM;
    LW_TRY(lw_data_job_path(job, &pattern));
    if (strstr(pattern, "://") || lw_str_starts(pattern, "pipe:"))
        return lw_fail(LW_EUSAGE, "data '%s': tar files on this machine are read, not addresses",
                       job->spec);
    LW_TRY(add_braces(job, pattern));
    lw_data_job_size(job, 0);
    job->flip = true;
    return 0;
}

static int load(const webdataset *w, int64_t i, lw_image *out)
{
    const sample *s = &w->at[i];
    LW_CLEANUP(lw_archive_close) lw_archive *a = NULL;
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    lw_archive_member m;
    size_t n;
    LW_TRY(lw_archive_open_at(w->shard[s->shard], s->at, &a));
    int rc = lw_archive_next(a, &m);
    if (rc < 0)
        return rc;
    if (rc == 1 || !lw_str_eq(m.name, s->name))
        return lw_fail(LW_EIO, "%s: %s is no longer there", w->shard[s->shard], s->name);
    LW_TRY(lw_archive_read_all(a, MOST_BYTES, &bytes, &n));
    lw_str_addf(&what, "%s: %s", w->shard[s->shard], s->name);
    return lw_image_parse(lw_str_c(&what), bytes, n, out);
}

/* The first picture's shorter side, as a power of two; or that picture's size, which the others must have. */
static int settle(lw_data_job *job)
{
    lw_image first = {0};
    int32_t size = SMALLEST;
    LW_TRY(make_index(job));
    LW_TRY(load(job->priv, 0, &first));
    const int32_t side = LW_MIN(first.width, first.height);
    if (job->opts.whole) {
        lw_data_job_pictures(job, first.height, first.width);
        lw_image_clear(&first);
        return 0;
    }
    lw_image_clear(&first);
    while (2 * size <= LW_MIN(side, (int32_t)LARGEST))
        size *= 2;
    lw_data_job_size(job, size);
    if (size != side)
        lw_str_addf(&job->note,
                    "%spictures are resized to %dx%d: the largest power of two within the first "
                    "one's side and %d; --image-size N chooses another",
                    job->note.len ? "; " : "", (int)size, (int)size, LARGEST);
    return 0;
}

/* Every tenth, or those between. */
typedef struct pick {
    const lw_data_job *job;
    const webdataset *w;
    bool held;
} pick;

static int check_size(const pick *p, int64_t i, const lw_image *im)
{
    const lw_data_job *job = p->job;
    if (!job->opts.whole || (im->height == job->h && im->width == job->w))
        return 0;
    return lw_fail(LW_EUSAGE,
                   "pictures of several sizes (%s is %dx%d, the first %dx%d), and what reads them "
                   "resizes whole pictures itself: give those of one size",
                   p->w->at[i].name, im->width, im->height, job->w, job->h);
}

static int get(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const pick *p = from;
    lw_image read = {0};
    const int64_t at = lw_data_tenths_at(p->held, i);
    *label = p->w->at[at].label;
    LW_TRY(load(p->w, at, &read));
    *im = lw_raster_of(&read);
    return check_size(p, at, &read);
}

static const char *name_of(const void *from, int64_t i)
{
    const pick *p = from;
    return p->w->at[lw_data_tenths_at(p->held, i)].name;
}

static int build(lw_data_job *job, lw_data_sink *sink)
{
    LW_TRY(make_index(job));
    const webdataset *w = job->priv;
    const int64_t n = (int64_t)w->n, n_held = lw_data_tenths_of(n, true);
    const pick train = {job, w, false}, held = {job, w, true};
    LW_TRY(lw_data_sink_expect(sink, n - n_held, n_held));
    LW_TRY(lw_data_fill(
        job, sink,
        &(lw_data_pictures){.n = n - n_held, .from = &train, .get = get, .name = name_of}));
    lw_data_sink_heldout(sink);
    return lw_data_fill(
        job, sink, &(lw_data_pictures){.n = n_held, .from = &held, .get = get, .name = name_of});
}

const lw_data_source lw_data_source_webdataset = {
    .info = {"webdataset", "webdataset:GLOB",
             "tar files of KEY.jpg (.png, .webp, .bmp) and KEY.cls, the class; *, ?, [..] and "
             "{000..012} name several; every tenth held out"},
    .plan = plan,
    .settle = settle,
    .build = build,
    .clear = clear,
};
