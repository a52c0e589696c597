/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures through an encoder. */
#include "jobs/fid/fid_view.h"

void lw_fid_view_clear(fid_view *v)
{
    lw_data_close(&v->data);
    lw_free(&v->rows);
    lw_free(&v->logits);
    if (v->stats && v->stats != v->set->stats)
        lw_stats_free(&v->stats);
}

int lw_fid_encoder_open(const lw_fid_config *c, const char *spec, fid_encoder *out)
{
    LW_TRY(lw_encoder_open(spec, &out->net));
    lw_network *n = out->net;
    LW_TRY(lw_latents_agree(n, spec, NULL));
    LW_TRY(lw_network_measures(n, spec));
    if (c->resize)
        LW_TRY(lw_encoder_resize(n, c->resize));
    out->sized = lw_network_sized(n);
    out->preparation = n->preparation;
    out->floats = out->sized && !lw_network_preparation(n);
    if (out->sized)
        lw_contract_of(n, c->precision, 0, 0, &out->contract);
    if (out->floats)
        n->preparation.form =
            LW_RESAMPLE_PILLOW; /* so that the graph leaves it to lw_prepare_f32 */
    return 0;
}

void lw_fid_encoder_clear(fid_encoder *e)
{
    lw_network_close(&e->net);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Files are decoded again, one by one, where each is resized in floats: then the dataset says only
 * which there are. */
static bool by_name(const fid_view *v)
{
    return v->encoder->floats && *v->data->root;
}

static bool has_names(const fid_view *v)
{
    const char *spec = lw_str_c(&v->set->spec);
    return lw_str_starts(spec, "folder:") || lw_str_starts(spec, "manifest:");
}

static int32_t side_of_data(const fid_view *v)
{
    enum { SMALLEST = 8 }; /* its rows are not looked at */
    const lw_fid_config *c = v->set->c;
    if (v->encoder->sized)
        return v->encoder->floats && has_names(v) ? SMALLEST : 0;
    return c->image_size ? c->image_size : v->encoder->net->image_size;
}

static int open_data(fid_view *v, lw_pool *pool, const lw_observer *obs)
{
    const fid_set *s = v->set;
    const lw_fid_config *c = s->c;
    const fid_encoder *e = v->encoder;
    const bool bytes = e->sized && !e->floats;
    const bool guess = c->dry_run && bytes; /* they are prepared for this call: one will do */
    const lw_data_opts o = {.image_size = side_of_data(v),
                            .preparation = bytes ? &e->preparation : NULL,
                            .whole = e->floats && !has_names(v),
                            .channels = e->net->channels,
                            .split = (lw_split)s->split,
                            .count = guess ? 1 : 0,
                            .num_images = guess ? 0 : c->num_images,
                            .seed = c->seed,
                            .on_error = (lw_on_error)c->on_error,
                            .pool = pool,
                            .obs = obs};
    LW_TRY(lw_data_open(lw_str_c(&s->spec), &o, &v->data));
    if (!e->sized && o.image_size == 0 && *v->data->note)
        return lw_fail(LW_EUSAGE,
                       "%c: %s: its pictures have several sizes, and %s takes them as they are: "
                       "--image-size N says which one they get",
                       s->letter, s->source, e->net->name);
    if (guess && c->num_images > v->data->split_rows)
        return lw_fail(LW_EUSAGE, "data '%s': %lld pictures are to be drawn, but there are %lld",
                       lw_str_c(&s->spec), (long long)c->num_images,
                       (long long)v->data->split_rows);
    v->n = !guess ? v->data->n : c->num_images ? c->num_images : v->data->split_rows;
    return 0;
}

int lw_fid_view_open(const fid_set *s, const fid_encoder *e, lw_pool *pool, const lw_observer *obs,
                     fid_view *out)
{
    *out = (fid_view){.set = s, .n = s->n, .dim = s->dim, .stats = s->stats};
    if (!lw_fid_is_pictures(s)) {
        out->contract = s->contract;
        return 0;
    }
    out->encoder = e;
    out->dim = e->net->features;
    out->stats = NULL;
    if (s->kind == FID_DATA)
        LW_TRY(open_data(out, pool, obs));
    out->h = e->sized ? e->preparation.height : out->data ? out->data->h : s->h;
    out->w = e->sized ? e->preparation.width : out->data ? out->data->w : s->w;
    out->contract = e->contract;
    if (!e->sized)
        lw_contract_of(e->net, s->c->precision, out->h, out->w, &out->contract);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Picture i as it is: of a file decoded into *file, else borrowed. */
static int raw_picture(const fid_view *v, int64_t i, lw_image *file, lw_raster *out)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0}, path = {0};
    const fid_set *s = v->set;
    if (!v->data) {
        *out = (lw_raster){s->h, s->w, 3, s->rgb + i * (int64_t)s->h * s->w * 3};
        return 0;
    }
    if (!by_name(v)) {
        const lw_dataset *d = v->data;
        const uint8_t *at = d->pixels + i * lw_data_row_size(d);
        *out = (lw_raster){d->h, d->w, d->channels, (uint8_t *)(uintptr_t)at};
        return 0;
    }
    lw_data_row_name(v->data, i, &name);
    LW_TRY(lw_image_load(lw_path_join(&path, v->data->root, lw_str_c(&name)), file));
    *out = lw_raster_of(file);
    return 0;
}

static int prepare_one(const fid_view *v, int64_t i, float *dst)
{
    LW_CLEANUP(lw_image_clear) lw_image file = {0};
    const fid_encoder *e = v->encoder;
    const int32_t channels = e->net->channels;
    const int64_t n = (int64_t)v->h * v->w * channels;
    lw_raster im;
    LW_TRY(raw_picture(v, i, &file, &im));
    if (e->floats)
        return lw_prepare_f32(&e->preparation, im, dst);
    if (v->data) { /* rows of data are prepared already */
        lw_data_from_u8(im.at, n, dst);
        return 0;
    }
    LW_CLEANUP(lw_free) uint8_t *bytes = lw_calloc((size_t)n, 1);
    if (!bytes)
        return LW_ENOMEM;
    if (e->sized) {
        LW_TRY(lw_prepare_pixels(&e->preparation, im, bytes));
    } else {
        LW_TRY(lw_channels_check(e->net->name, im.channels, channels));
        lw_channels_convert(im.at, (int64_t)im.height * im.width, im.channels, channels, bytes);
    }
    lw_data_from_u8(bytes, n, dst);
    return 0;
}

typedef struct filling {
    const fid_view *v;
    lw_pool *pool;
    int64_t first;
    bool same; /* the first picture again and again: for timing */
    float *dst;
} filling;

static int fill_one(void *arg, int64_t i, int worker)
{
    const filling *f = arg;
    float *dst = f->dst + i * f->v->h * f->v->w * f->v->encoder->net->channels;
    (void)worker;
    return prepare_one(f->v, f->same ? 0 : f->first + i, dst);
}

static int fill(void *self, int64_t first, int64_t n, void *dst)
{
    filling *f = self;
    f->first = first;
    f->dst = dst;
    return lw_pool_try(f->pool, n, fill_one, f);
}

static int check_rows(const fid_view *v)
{
    const int64_t i = lw_first_not_finite(v->rows, v->n * v->dim);
    return i == v->n * v->dim
               ? 0
               : lw_fail(LW_ENUMERIC, "%c: %s makes a %s of picture %lld", v->set->letter,
                         v->encoder->net->name, lw_not_finite_text((double)v->rows[i]),
                         (long long)(i / v->dim));
}

static int open_forward(const fid_view *v, lw_device *dev, bool logits, lw_forward **out)
{
    const lw_fid_config *c = v->set->c;
    if (logits && v->encoder->net->classes == 0)
        return lw_fail(LW_EUSAGE, "--is: %s has no classes", v->encoder->net->name);
    return lw_forward_new(dev, v->encoder->net,
                          &(lw_forward_opts){.batch = (int32_t)LW_MIN((int64_t)c->batch, v->n),
                                             .height = v->h,
                                             .width = v->w,
                                             .output = logits ? "pooled,logits" : "pooled",
                                             .precision = c->precision},
                          out);
}

static int run_network(fid_view *v, lw_device *dev, bool logits, const lw_observer *obs)
{
    LW_CLEANUP(lw_forward_free) lw_forward *forward = NULL;
    filling f = {.v = v, .pool = dev->pool};
    v->rows = lw_calloc((size_t)v->n * (size_t)v->dim, sizeof *v->rows);
    if (logits)
        v->logits = lw_calloc((size_t)v->n * (size_t)LW_MAX(v->encoder->net->classes, 1),
                              sizeof *v->logits);
    if (!v->rows || (logits && !v->logits))
        return LW_ENOMEM;
    LW_TRY(open_forward(v, dev, logits, &forward));
    const lw_feed feed[] = {{.name = "x", .fill = fill, .self = &f},
                            {.name = "pooled", .out = v->rows},
                            {.name = "logits", .out = v->logits}};
    LW_TRY(lw_forward_rows(forward, v->set->letter == 'A' ? "encode A" : "encode B", v->n, feed,
                           logits ? 3 : 2, obs));
    return check_rows(v);
}

/* Are mu and sigma beside ADM's pictures of these features? Published values are measured against
 * them: of the whole training set, of which the array has some pictures. */
static bool adm_made(const fid_view *v)
{
    return v->dim == lw_stats_dim(v->set->stats) &&
           lw_str_eq(v->contract.value[LW_CONTRACT_ENCODER], "inception_v3_fid") &&
           lw_str_eq(v->contract.value[LW_CONTRACT_RESIZE],
                     lw_resample_form_name[LW_RESAMPLE_TF_INCEPTION]);
}

int lw_fid_view_run(fid_view *v, lw_device *dev, bool logits, const lw_observer *obs)
{
    if (v->encoder)
        LW_TRY(run_network(v, dev, logits, obs));
    if (v->encoder && v->set->stats && adm_made(v))
        v->stats = v->set->stats;
    if (v->stats)
        return 0;
    LW_TRY(lw_stats_new(v->dim, &v->stats));
    return lw_stats_add(dev->pool, v->stats, v->rows ? v->rows : v->set->rows, v->n);
}

/* A batch of the first picture, to warm up and then timed. */
static int time_batch(const fid_view *v, lw_device *dev, lw_forward *forward, double *seconds)
{
    const int64_t batch = LW_MIN((int64_t)v->set->c->batch, v->n);
    filling f = {.v = v, .pool = dev->pool, .same = true};
    for (int i = 0; i <= lw_device_warm_runs(dev, false); i++) {
        double t = lw_now();
        if (v->data || v->set->rgb)
            LW_TRY(fill(&f, 0, batch, lw_forward_input(forward, "x")));
        LW_TRY(lw_forward_run(forward, NULL));
        lw_forward_output(forward, "pooled"); /* what is read has been waited for */
        LW_TRY(lw_forward_failed(forward));
        *seconds = lw_now() - t;
    }
    return 0;
}

int lw_fid_view_predict(const fid_view *v, lw_device *dev, double *seconds, uint64_t *bytes)
{
    LW_CLEANUP(lw_forward_free) lw_forward *forward = NULL;
    *seconds = 0;
    if (!v->encoder)
        return 0;
    LW_TRY(open_forward(v, dev, false, &forward));
    lw_plan_info info = lw_forward_info(forward);
    *bytes += info.frame_bytes + info.derived_bytes + lw_store_bytes(v->encoder->net->store) +
              (uint64_t)v->n * (uint64_t)v->dim * sizeof(float);
    LW_TRY(time_batch(v, dev, forward, seconds));
    int64_t batches = LW_CEIL_DIV(v->n, LW_MIN((int64_t)v->set->c->batch, v->n));
    *seconds *= (double)batches;
    return 0;
}

int lw_fid_save(const fid_view *v, const char *path)
{
    LW_CLEANUP(lw_moments_clear) lw_moments f = {.dim = v->dim, .count = v->n};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = lw_contract_json(&v->contract);
    size_t d = (size_t)v->dim;
    lw_json_dump(j, 0, &text);
    f.mean = lw_calloc(d, sizeof *f.mean);
    f.cov = lw_calloc(d * d, sizeof *f.cov);
    f.contract = lw_contract_said(&v->contract) ? lw_strdup(lw_str_c(&text)) : NULL;
    if (text.failed || !f.mean || !f.cov || (lw_contract_said(&v->contract) && !f.contract))
        return LW_ENOMEM;
    LW_TRY(lw_stats_get(v->stats, f.mean, f.cov));
    return lw_moments_save(path, &f);
}
