/* SPDX-License-Identifier: Apache-2.0 */
/* `folder`: PNG, JPEG, BMP and WebP files, class = parent folder, decoded once. */
#include "data/sources/data_folder.h"
#include "data/sources/data_source.h"
#include "formats/formats.h"

/* What follows from the list, for `manifest` too. */
int lw_folder_plan(lw_data_job *job)
{
    const folder_list *l = job->priv;
    lw_data_job_size(job, 0);
    job->flip = true;
    job->labelled = l->n_classes > 1;
    for (size_t c = 0; c < l->n_classes; c++)
        LW_TRY(lw_data_job_class(job, *l->classes[c] ? l->classes[c] : "."));
    for (size_t i = 0; i < l->n; i++) {
        LW_TRY(lw_data_job_file(job, l->at[i].path));
        lw_str_addf(&job->state, "%d %d\n", l->at[i].label, l->at[i].heldout);
    }
    return lw_data_job_root(job);
}

static int folder_plan(lw_data_job *job)
{
    const char *dir;
    LW_TRY(lw_data_job_path(job, &dir));
    LW_TRY(lw_data_job_place(job, dir));
    if (!lw_path_is_dir(dir))
        return lw_fail(LW_EIO, "data '%s': %s is not a folder", job->spec, dir);
    folder_list *l = job->priv = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    int rc = lw_folder_list(dir, l);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    lw_str_add(&job->root, dir);
    return lw_folder_plan(job);
}

void lw_folder_clear(lw_data_job *job)
{
    if (job->priv)
        lw_folder_list_clear(job->priv);
    lw_free(&job->priv);
}

static int get_file(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const folder_file *f = (const folder_file *)from + i;
    lw_image read = {0};
    *label = f->label;
    LW_TRY(lw_image_load(f->path, &read));
    *im = lw_raster_of(&read);
    return 0;
}

static const char *path_of(const void *from, int64_t i)
{
    return ((const folder_file *)from)[i].path;
}

static const char *name_of(const void *from, int64_t i)
{
    const folder_file *f = (const folder_file *)from + i;
    return f->path + f->name_at;
}

static lw_data_pictures files(const folder_list *l, size_t begin, size_t end)
{
    return (lw_data_pictures){.n = (int64_t)(end - begin),
                              .from = l->at + begin,
                              .get = get_file,
                              .path = path_of,
                              .name = name_of};
}

int lw_folder_build(lw_data_job *job, lw_data_sink *sink)
{
    const folder_list *l = job->priv;
    lw_data_pictures train = files(l, 0, l->n_train), held = files(l, l->n_train, l->n);
    LW_TRY(lw_data_sink_expect(sink, train.n, held.n));
    LW_TRY(lw_data_fill(job, sink, &train));
    lw_data_sink_heldout(sink);
    return lw_data_fill(job, sink, &held);
}

int lw_folder_scan(lw_data_job *job, lw_data_report *report)
{
    const folder_list *l = job->priv;
    lw_data_pictures all = files(l, 0, l->n);
    return lw_data_scan(job, &all, report);
}

const lw_data_source lw_data_source_folder = {
    .info = {"folder", "folder:DIR",
             "PNG, JPEG, BMP and WebP files; class = parent folder; DIR/train with DIR/test (or "
             "val), or "
             "every tenth held out"},
    .plan = folder_plan,
    .settle = lw_folder_settle,
    .build = lw_folder_build,
    .scan = lw_folder_scan,
    .clear = lw_folder_clear,
};
