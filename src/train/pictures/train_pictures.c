/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the trainers on pictures. */
#include "train/pictures/train_pictures.h"

#include "session/session_device.h"

int lw_clip_check(const lw_picture_config *c)
{
    if (c->clip.condition && c->latents)
        return lw_fail(LW_EUSAGE, "--latents: pictures are encoded once, but --condition makes new "
                                  "crops of frames in every step: one of the two");
    if (!c->clip.condition)
        return c->clip.degrade ? lw_fail(LW_EUSAGE, "--degrade makes pairs for --condition frame")
                               : 0;
    if (c->image_size == 0)
        return lw_fail(LW_EUSAGE, "--condition: say with --image-size how large crops are");
    return c->channels == 0 || c->channels == 3
               ? 0
               : lw_fail(LW_EUSAGE, "--condition wants --channels 3, not %d", c->channels);
}

static int check_workers(const lw_real_config *c)
{
    static bool told;
    if (c->workers == 0 && (c->persistent || c->prefetch > 0))
        return lw_fail(LW_EUSAGE, "%s: needs --real-num-workers above 0",
                       c->persistent ? "--real-persistent-workers" : "--real-prefetch-factor");
    if (c->pin && !told)
        lw_log(LW_LOG_WARN, "data", "--real-pin-memory has no effect: on CPUs nothing is copied");
    told = told || c->pin;
    return 0;
}

int lw_real_spec(const lw_real_config *c, const char *data, lw_str *out)
{
    const struct {
        const char *option, *path, *word;
    } of[] = {{"", "", ""},
              {"", "", "synth:"},
              {"--real-imagefolder-root", c->imagefolder, "folder:"},
              {"--real-webdataset-urls", c->webdataset, "webdataset:"},
              {"--real-tensor-file-path", c->tensor, "tensor:"},
              {"--real-tensor-shards-manifest-path", c->shards, "shards:"}};
    LW_TRY(check_workers(c));
    for (int32_t i = 2; i < (int32_t)LW_COUNT(of); i++)
        if (of[i].path && i != c->source)
            return lw_fail(LW_EUSAGE, "%s: belongs to another --real-batch-source", of[i].option);
    if (c->source == 0) {
        lw_str_add(out, data);
        return out->failed ? LW_ENOMEM : 0;
    }
    if (data)
        return lw_fail(LW_EUSAGE, "--data and --real-batch-source: one of the two");
    if (!of[c->source].path)
        return lw_fail(LW_EUSAGE, "--real-batch-source: needs %s", of[c->source].option);
    lw_str_addf(out, "%s%s", of[c->source].word, c->source == 1 ? "32" : of[c->source].path);
    return out->failed ? LW_ENOMEM : 0;
}

static int read_clip(lw_picture_run *r)
{
    const lw_clip_config *c = &r->pictures->clip;
    r->clip = (lw_clip_opts){.side = r->pictures->image_size,
                             .noise = c->history_noise,
                             .blur = c->history_blur,
                             .drop = c->history_drop,
                             .flip = r->pictures->flip,
                             .seed = (uint64_t)r->c->seed,
                             .pool = r->dev->pool};
    LW_TRY(lw_condition_parse(c->condition, &r->clip.frame, &r->clip.previous));
    if (c->degrade)
        LW_TRY(lw_degradation_parse(c->degrade, &r->clip.degradation));
    else if (r->clip.frame)
        return lw_fail(LW_EUSAGE,
                       "--condition frame: say with --degrade what is wrong with it (%s)",
                       LW_DEGRADE_HELP);
    return 0;
}

/* Frames as they are; those of a folder in order. */
static int open_clip(lw_picture_run *r)
{
    LW_CLEANUP(lw_str_clear) lw_str spec = {0};
    const lw_data_opts data = {.whole = true,
                               .count = r->pictures->limit,
                               .on_error = (lw_on_error)r->pictures->on_error,
                               .pool = r->dev->pool,
                               .obs = r->obs};
    LW_TRY(read_clip(r));
    lw_str_addf(&spec, "%s%s", lw_str_starts(r->c->data, "folder:") ? "video:" : "", r->c->data);
    if (!lw_str_starts(lw_str_c(&spec), "video:"))
        return lw_fail(LW_EUSAGE,
                       "--condition: data '%s' has no frames in order; write video:FILE, or "
                       "folder:DIR",
                       r->c->data);
    return lw_data_open(lw_str_c(&spec), &data, &r->data);
}

/* What was opened is pictures; what is learnt becomes their latents. */
static int open_latents(lw_picture_run *r)
{
    if (r->pictures->crop_padding)
        return lw_fail(LW_EUSAGE, "--crop-padding: pictures are encoded once, so crops of them are "
                                  "not to be had with --latents");
    r->decoded = r->data;
    r->data = NULL;
    return lw_latents_new(r->dev, r->pictures->latents, r->decoded, r->pictures->flip, r->c->conv,
                          &r->latents, &r->data);
}

int lw_picture_run_open(lw_picture_run *r)
{
    const lw_train_config *c = r->c;
    LW_TRY(lw_session_device_with(c->threads, c->conv, &r->dev));
    if (r->pictures->clip.condition) {
        LW_TRY(open_clip(r));
        return lw_store_new(false, &r->store);
    }
    const int32_t workers = r->pictures->real.workers;
    if (workers > 0)
        LW_TRY(lw_pool_new(workers, &r->decoders));
    const lw_data_opts data = {.image_size = r->pictures->image_size,
                               .channels = r->pictures->channels,
                               .count = r->pictures->limit,
                               .on_error = (lw_on_error)r->pictures->on_error,
                               .pool = workers > 0 ? r->decoders : r->dev->pool,
                               .obs = r->obs};
    LW_TRY(lw_data_open(c->data, &data, &r->data));
    const int32_t side = LW_MIN(r->data->h, r->data->w), shift = r->pictures->crop_padding;
    if (shift > 0 && 2 * shift >= side)
        return lw_fail(LW_EUSAGE, "--crop-padding %d: pictures of %d x %d can be moved by up to %d",
                       shift, r->data->h, r->data->w, (side - 1) / 2);
    if (r->pictures->latents)
        LW_TRY(open_latents(r));
    return lw_store_new(false, &r->store);
}

void lw_picture_run_clear(lw_picture_run *r)
{
    lw_loader_free(&r->loader);
    lw_clips_free(&r->clips);
    lw_exec_free(&r->exec);
    lw_plan_free(&r->plan);
    lw_store_free(&r->store);
    lw_data_close(&r->data);
    lw_latents_free(&r->latents);
    lw_data_close(&r->decoded);
    lw_pool_free(&r->decoders);
    lw_backend_close(&r->dev);
    lw_json_drop(&r->model);
    lw_json_drop(&r->files);
    lw_json_drop(&r->extra);
}

/* The autoencoder is a part of what a run takes; encoding comes before, when nothing else is there. */
static int count_latents(lw_picture_run *r, lw_train_job *job)
{
    LW_CLEANUP(lw_str_clear) lw_str note = {0};
    const lw_latents_cost c = lw_latents_get_cost(r->latents, &note);
    char frozen[32], frame[32];
    job->kept_bytes += c.held;
    job->frozen_bytes += c.frozen;
    lw_observe_say(r->obs, "%s; autoencoder %s%s%s", lw_str_c(&note),
                   lw_fmt_bytes(frozen, c.frozen), c.frame ? ", encoding " : "",
                   c.frame ? lw_fmt_bytes(frame, c.frame) : "");
    r->extra = json_pack("{s:o}", "latents", lw_latents_json(r->latents));
    job->extra = r->extra;
    return note.failed || !r->extra ? LW_ENOMEM : 0;
}

int lw_picture_run_restore(const lw_picture_run *r, const json_t *extra)
{
    LW_CLEANUP(lw_json_drop) json_t *now = r->latents ? lw_latents_json(r->latents) : NULL;
    const char *began =
        json_string_value(json_object_get(json_object_get(extra, "latents"), "hash"));
    const char *hash = json_string_value(json_object_get(now, "hash"));
    if (!began || !hash || lw_str_eq(began, hash))
        return 0;
    return lw_fail(LW_EUSAGE,
                   "--latents %s: the autoencoder has other weights than when this run began",
                   r->pictures->latents);
}

int lw_picture_run_job(lw_picture_run *r, const lw_graph *g, lw_train_job *job)
{
    if (!r->plan)
        LW_TRY(lw_train_compile(r->c, r->dev, g, &r->plan, NULL));
    LW_TRY(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->exec));
    job->dev = r->dev;
    job->store = r->store;
    job->step = r->exec;
    job->plan = r->plan;
    job->leaves = r->leaves;
    job->model = r->model;
    job->files = r->files;
    job->namings = r->namings;
    if (r->weights)
        job->weights = r->weights;
    lw_train_depends(job, lw_picture_run_pictures(r)->content);
    if (r->pictures->clip.condition) /* frames made worse */
        job->kept_bytes += (size_t)(r->data->n * lw_data_row_size(r->data));
    return r->latents ? count_latents(r, job) : 0;
}

int lw_picture_run_prepare(lw_picture_run *r)
{
    return r->latents ? lw_latents_fill(r->latents, r->obs) : 0;
}

int lw_picture_held_open(const lw_picture_run *r, lw_picture_held *out)
{
    const lw_data_opts o = {.image_size = r->pictures->image_size,
                            .channels = r->pictures->channels,
                            .split = LW_SPLIT_HELDOUT,
                            .on_error = (lw_on_error)r->pictures->on_error,
                            .pool = r->dev->pool,
                            .obs = r->obs};
    LW_TRY(lw_data_open(r->c->data, &o, &out->data));
    LW_TRY(lw_data_drawn(out->data, &out->drawn));
    if (!r->latents)
        return 0;
    out->decoded = lw_steal(&out->data);
    LW_TRY(lw_latents_new(r->dev, r->pictures->latents, out->decoded, false, r->c->conv,
                          &out->latents, &out->data));
    return lw_latents_fill(out->latents, r->obs);
}

void lw_picture_held_clear(lw_picture_held *h)
{
    lw_data_close(&h->data);
    lw_latents_free(&h->latents);
    lw_data_close(&h->decoded);
    lw_free(&h->drawn);
}

/* Batches in flight. */
static int32_t slots_of(const lw_real_config *c)
{
    enum { MOST = 64 };
    return c->prefetch > 0 ? (int32_t)LW_MIN((int64_t)c->prefetch * c->workers + 1, MOST) : 0;
}

int lw_picture_run_next(lw_picture_run *r, int64_t leaf, int64_t n, const lw_batch **out)
{
    if (!r->loader || r->next != leaf) {
        const lw_loader_opts o = {.batch_size = (int32_t)n,
                                  .seed = (uint64_t)r->c->seed,
                                  .flip = r->pictures->flip && r->data->flip,
                                  .shift = r->pictures->crop_padding,
                                  .ordered = r->pictures->real.ordered,
                                  .slots = slots_of(&r->pictures->real),
                                  .start_step = leaf};
        lw_loader_free(&r->loader);
        LW_TRY(lw_loader_new(r->data, &o, &r->loader));
    }
    LW_TRY(lw_loader_next(r->loader, out));
    r->next = leaf + 1;
    return 0;
}

int lw_picture_run_clips(lw_picture_run *r, int64_t unit)
{
    r->clip.batch = (int32_t)(r->leaves.size / unit);
    return lw_clips_new(r->data, &r->clip, &r->clips);
}

static int feed_clips(lw_picture_run *r, int64_t leaf)
{
    int64_t *rows = lw_exec_write(r->exec, "rows");
    for (int64_t i = 0; i < r->leaves.size; i++)
        rows[i] = leaf * r->leaves.size + i;
    return lw_clips_fill(r->clips, leaf * r->clip.batch, r->clip.batch,
                         lw_exec_write(r->exec, "images"), lw_exec_write(r->exec, "condition"));
}

int lw_picture_run_feed(lw_picture_run *r, int64_t leaf, bool labels)
{
    const lw_batch *b;
    if (r->clips)
        return feed_clips(r, leaf);
    LW_TRY(lw_picture_run_next(r, leaf, r->leaves.size, &b));
    LW_TRY(lw_exec_bind(r->exec, "images", b->images));
    LW_TRY(lw_exec_bind(r->exec, "rows", b->rows));
    return labels ? lw_exec_bind(r->exec, "labels", b->labels) : 0;
}
