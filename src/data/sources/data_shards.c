/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `shards`: pictures in several files of arrays, each as `tensor` reads it, listed in JSON:
 *
 *   {"shards": ["a.npz", {"path": "b.npy", "labels": "b_labels.npy", "num_samples": 1000}, ...]}
 *
 * Paths begin at the list's folder. All have pictures of one size, and labels or none. One file at a time
 * is in memory. Every tenth picture of them all is held out.
 */
#include <stdio.h>
#include <string.h>

#include "data/sources/data_source.h"
#include "data/sources/data_tensor.h"

enum { MOST = 100000 };

typedef struct shard {
    char *path, *labels; /* labels: NULL */
    int64_t said;        /* "num_samples"; -1: not said */
    int64_t first, n;    /* its pictures among those of all */
} shard;

typedef struct shard_list {
    shard *at;
    size_t n, cap;
    int32_t h, w, c, classes;
    int64_t pictures;
    bool indexed;
    int64_t *rows; /* [classes]: pictures of each */
} shard_list;

static void clear(lw_data_job *job)
{
    shard_list *l = job->priv;
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++) {
        lw_free(&l->at[i].path);
        lw_free(&l->at[i].labels);
    }
    lw_free(&l->at);
    lw_free(&l->rows);
    lw_free(&job->priv);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* A path of the list, beside it, as a file of the job. */
static int add_file(lw_data_job *job, const char *list, const char *name, char **out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *slash = strrchr(list, '/');
    if (*name != '/')
        lw_str_add_n(&path, list, slash ? (size_t)(slash - list) + 1 : 0);
    lw_str_add(&path, name);
    *out = path.failed ? NULL : lw_strdup(lw_str_c(&path));
    return *out ? lw_data_job_file(job, *out) : LW_ENOMEM;
}

static int add_shard(lw_data_job *job, const char *list, const json_t *entry)
{
    shard_list *l = job->priv;
    const char *path = json_string_value(entry), *labels = NULL;
    const size_t number = l->n;
    LW_TRY(lw_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at));
    shard *s = &l->at[l->n++];
    *s = (shard){.said = -1};
    if (json_is_object(entry)) {
        LW_TRY(lw_json_get_str(entry, list, "path", &path));
        LW_TRY(lw_json_opt_str(entry, list, "labels", &labels));
        LW_TRY(lw_json_opt_i64(entry, list, "num_samples", &s->said));
    }
    if (!path || !*path)
        return lw_fail(LW_EFORMAT, "%s: 'shards' entry %zu is neither a path nor an object of one",
                       list, number);
    LW_TRY(add_file(job, list, path, &s->path));
    return labels ? add_file(job, list, labels, &s->labels) : 0;
}

static int read_list(lw_data_job *job, const char *path)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    const json_t *all, *entry;
    size_t i;
    LW_TRY(lw_json_load(path, &j));
    LW_TRY(lw_json_get_array(j, path, "shards", &all));
    if (json_array_size(all) == 0 || json_array_size(all) > MOST)
        return lw_fail(LW_EFORMAT, "%s: 'shards' lists %zu files; 1 to %d can be", path,
                       json_array_size(all), (int)MOST);
    json_array_foreach(all, i, entry) LW_TRY(add_shard(job, path, entry));
    return 0;
}

/* ---- shard by shard -------------------------------------------------------------------------- */

static int load(const lw_data_job *job, size_t i, tensor_file *out)
{
    const shard_list *l = job->priv;
    const shard *s = &l->at[i];
    int rc = lw_tensor_load(s->path, s->labels, out);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    if (out->held.pixels.data)
        return lw_fail(LW_EFORMAT, "data '%s': %s has a split of its own, which shards have not",
                       job->spec, s->path);
    if (s->said >= 0 && s->said != out->n)
        return lw_fail(LW_EFORMAT, "data '%s': %s has %lld pictures, 'num_samples' says %lld",
                       job->spec, s->path, (long long)out->n, (long long)s->said);
    if (l->h > 0 && (out->h != l->h || out->w != l->w || out->c != l->c))
        return lw_fail(LW_EFORMAT,
                       "data '%s': %s has pictures of %dx%d of %d channels, %s of "
                       "%dx%d of %d",
                       job->spec, s->path, (int)out->w, (int)out->h, (int)out->c, l->at[0].path,
                       (int)l->w, (int)l->h, (int)l->c);
    return 0;
}

static int count_classes(shard_list *l, const tensor_file *f)
{
    int64_t *rows = lw_calloc((size_t)LW_MAX(f->classes, l->classes) + 1u, sizeof *rows);
    if (!rows)
        return LW_ENOMEM;
    if (l->classes > 0)
        memcpy(rows, l->rows, (size_t)l->classes * sizeof *rows);
    lw_free(&l->rows);
    l->rows = rows;
    l->classes = LW_MAX(f->classes, l->classes);
    for (int64_t i = 0; f->train.labels.data && i < f->n; i++)
        rows[lw_tensor_label(&f->train, i)]++;
    return 0;
}

static int name_classes(lw_data_job *job)
{
    const shard_list *l = job->priv;
    int32_t empty = 0, first = 0;
    char name[16];
    job->labelled = l->classes > 0;
    for (int32_t c = 0; c < LW_MAX(l->classes, 1); c++) {
        snprintf(name, sizeof name, "%d", (int)c);
        LW_TRY(lw_data_job_class(job, name));
        first = l->classes > 0 && l->rows[c] == 0 && empty++ == 0 ? c : first;
    }
    if (empty)
        lw_str_addf(&job->note, "%d of %d classes have no picture, the first is %d", (int)empty,
                    (int)l->classes, (int)first);
    return 0;
}

/* Reads all of them once: how many there are of what. */
static int make_index(lw_data_job *job)
{
    shard_list *l = job->priv;
    if (l->indexed)
        return 0;
    for (size_t i = 0; i < l->n; i++) {
        LW_CLEANUP(lw_tensor_clear) tensor_file f = {0};
        LW_TRY(load(job, i, &f));
        if (i > 0 && (f.classes > 0) != (l->classes > 0))
            return lw_fail(LW_EFORMAT, "data '%s': %s has %slabels, those before have%s", job->spec,
                           l->at[i].path, f.classes > 0 ? "" : "no ", f.classes > 0 ? " none" : "");
        l->at[i].first = l->pictures;
        l->at[i].n = f.n;
        l->pictures += f.n;
        LW_TRY(count_classes(l, &f));
        lw_observe_progress(job->opts.obs, "index", (int64_t)i + 1, (int64_t)l->n, NULL);
        if (lw_observe_stop(job->opts.obs))
            return lw_fail(LW_ESTOPPED, "data '%s': interrupted after %zu files", job->spec, i + 1);
    }
    l->indexed = true;
    return name_classes(job);
}

/* Pictures of one shard that are (or are not) a tenth of all. */
typedef struct pick {
    const tensor_file *f;
    int64_t first, skip; /* of the shard; of the split's rows before it */
    bool held;
} pick;

static int get(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const pick *p = from;
    return lw_tensor_get(p->f, &p->f->train, lw_data_tenths_at(p->held, p->skip + i) - p->first, im,
                         label);
}

static int fill(lw_data_job *job, lw_data_sink *sink, bool held)
{
    const shard_list *l = job->priv;
    for (size_t i = 0; i < l->n; i++) {
        LW_CLEANUP(lw_tensor_clear) tensor_file f = {0};
        const shard *s = &l->at[i];
        const pick p = {&f, s->first, lw_data_tenths_of(s->first, held), held};
        const lw_data_pictures some = {
            .n = lw_data_tenths_of(s->first + s->n, held) - p.skip, .from = &p, .get = get};
        LW_TRY(load(job, i, &f));
        if (f.n != s->n)
            return lw_fail(LW_EIO, "data '%s': %s changed while it was read", job->spec, s->path);
        LW_TRY(lw_data_fill(job, sink, &some));
    }
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

static int plan(lw_data_job *job)
{
    const char *path;
    LW_CLEANUP(lw_tensor_clear) tensor_file f = {0};
    shard_list *l = job->priv = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    LW_TRY(lw_data_job_path(job, &path));
    LW_TRY(lw_data_job_place(job, path));
    LW_TRY(lw_data_job_file(job, path));
    int rc = read_list(job, path);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    LW_TRY(load(job, 0, &f));
    l->h = f.h;
    l->w = f.w;
    l->c = f.c;
    lw_data_job_pictures(job, f.h, f.w);
    job->own = f.c;
    job->flip = false; /* nobody says what they show */
    return 0;
}

static int build(lw_data_job *job, lw_data_sink *sink)
{
    const shard_list *l = job->priv;
    LW_TRY(make_index(job));
    LW_TRY(lw_data_sink_expect(sink, lw_data_tenths_of(l->pictures, false),
                               lw_data_tenths_of(l->pictures, true)));
    LW_TRY(fill(job, sink, false));
    lw_data_sink_heldout(sink);
    return fill(job, sink, true);
}

const lw_data_source lw_data_source_shards = {
    .info = {"shards", "shards:MANIFEST",
             "files of arrays, each as tensor reads it, listed in JSON: {\"shards\": [\"a.npz\", "
             "{\"path\": \"b.npy\", \"labels\": \"c.npy\"}]}; every tenth held out"},
    .plan = plan,
    .build = build,
    .clear = clear,
};
