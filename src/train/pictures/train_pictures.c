/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the trainers on pictures. */
#include "train/pictures/train_pictures.h"

#include "session/session_device.h"

int lw_picture_run_open(lw_picture_run *r)
{
    const lw_train_config *c = r->c;
    LW_TRY(lw_session_device_with(c->threads, c->conv, &r->dev));
    const lw_data_opts data = {.image_size = r->pictures->image_size,
                               .channels = r->pictures->channels,
                               .count = r->pictures->limit,
                               .on_error = (lw_on_error)r->pictures->on_error,
                               .pool = r->dev->pool,
                               .obs = r->obs};
    LW_TRY(lw_data_open(c->data, &data, &r->data));
    return lw_store_new(false, &r->store);
}

void lw_picture_run_clear(lw_picture_run *r)
{
    lw_loader_free(&r->loader);
    lw_exec_free(&r->exec);
    lw_plan_free(&r->plan);
    lw_store_free(&r->store);
    lw_data_close(&r->data);
    lw_backend_close(&r->dev);
    lw_json_drop(&r->model);
    lw_json_drop(&r->files);
}

int lw_picture_run_job(lw_picture_run *r, const lw_graph *g, lw_train_job *job)
{
    LW_TRY(lw_train_compile(r->c, r->dev, g, &r->plan, &r->exec));
    job->dev = r->dev;
    job->store = r->store;
    job->step = r->exec;
    job->plan = r->plan;
    job->leaves = r->leaves;
    job->model = r->model;
    job->files = r->files;
    if (r->weights)
        job->weights = r->weights;
    return 0;
}

int lw_picture_run_next(lw_picture_run *r, int64_t leaf, int64_t n, const lw_batch **out)
{
    if (!r->loader || r->next != leaf) {
        const lw_loader_opts o = {.batch_size = (int32_t)n,
                                  .seed = (uint64_t)r->c->seed,
                                  .flip = r->pictures->flip && r->data->flip,
                                  .start_step = leaf};
        lw_loader_free(&r->loader);
        LW_TRY(lw_loader_new(r->data, &o, &r->loader));
    }
    LW_TRY(lw_loader_next(r->loader, out));
    r->next = leaf + 1;
    return 0;
}

int lw_picture_run_feed(lw_picture_run *r, int64_t leaf, bool labels)
{
    const lw_batch *b;
    LW_TRY(lw_picture_run_next(r, leaf, r->leaves.size, &b));
    LW_TRY(lw_exec_bind(r->exec, "images", b->images));
    LW_TRY(lw_exec_bind(r->exec, "rows", b->rows));
    return labels ? lw_exec_bind(r->exec, "labels", b->labels) : 0;
}
