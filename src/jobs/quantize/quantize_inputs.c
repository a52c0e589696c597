/* SPDX-License-Identifier: Apache-2.0 */
/* What a network is fed while ranges are measured: a generator's own inputs, or pictures. */
#include "jobs/quantize/quantize_inputs.h"

#include "session/session_flow.h"

#include <math.h>
#include <string.h>

/* ---- opening --------------------------------------------------------------------------------- */

/* Pictures, or NULL. */
static const char *pictures_of(const lw_quantize_inputs *in)
{
    const char *spec = in->c->calibration;
    return spec && !lw_str_eq(spec, "noise") ? spec : NULL;
}

static int read_method(lw_quantize_inputs *in)
{
    LW_TRY(lw_network_method(in->net, &in->method, &in->diffusion));
    in->what = "noise";
    if (in->method == LW_METHOD_DRIFT && pictures_of(in))
        return lw_fail(LW_EUSAGE,
                       "%s is a drifting generator, which reads noise and no pictures: leave out "
                       "--calibration",
                       in->c->source);
    if (in->method == LW_METHOD_DRIFT)
        return 0;
    in->what = pictures_of(in) ? "noised pictures" : "pictures on their way from noise";
    in->times = LW_MIN(in->c->steps, in->diffusion->timesteps);
    return lw_diffusion_check_steps(in->diffusion, in->times, "--steps");
}

/* Prepared pictures are made for this call: as many as are looked at, if there are so many. */
static int draw_prepared(const lw_quantize_inputs *in, const char *spec, lw_data_opts *o)
{
    LW_CLEANUP(lw_data_close) lw_dataset *one = NULL;
    o->image_size = 0;
    o->preparation = &in->net->preparation;
    o->count = 1;
    LW_TRY(lw_data_open(spec, o, &one));
    o->count = 0;
    o->num_images = LW_MIN((int64_t)in->c->n, one->split_rows);
    o->seed = in->c->seed;
    return 0;
}

static int open_data(lw_quantize_inputs *in)
{
    const char *spec = pictures_of(in);
    if (!spec)
        return in->net->generator ? 0
                                  : lw_fail(LW_EUSAGE,
                                            "%s is an encoder: say with --calibration DATA what "
                                            "pictures it reads",
                                            in->c->source);
    const lw_network *net = in->net;
    if (net->channels > LW_MAX_CHANNELS || net->def->decoder)
        return lw_fail(LW_EFORMAT, "%s: a %s takes %d channels, no pictures", net->dir, net->name,
                       (int)net->channels);
    lw_data_opts o = {.image_size = net->image_size,
                      .channels = net->channels,
                      .on_error = (lw_on_error)in->c->on_error,
                      .pool = in->dev->pool,
                      .obs = in->obs};
    if (lw_network_preparation(net))
        LW_TRY(draw_prepared(in, spec, &o));
    LW_TRY(lw_data_open(spec, &o, &in->data));
    LW_TRY(lw_data_drawn(in->data, &in->drawn));
    if (in->data->n < in->c->n)
        lw_log(LW_LOG_WARN, "data", "%s: there are %lld pictures; %d are asked for, so they repeat",
               spec, (long long)in->data->n, (int)in->c->n);
    return 0;
}

/* Of the pictures the network is compiled for. */
static void choose_size(lw_quantize_inputs *in)
{
    const lw_network *n = in->net;
    in->h = in->w = n->image_size;
    if (n->generator && in->method == LW_METHOD_DRIFT && n->noise_size)
        in->h = in->w = n->noise_size;
    else if (!n->generator || in->h == 0) {
        in->h = in->data->h;
        in->w = in->data->w;
    }
}

int lw_quantize_inputs_open(lw_quantize_inputs *in, const lw_quantize_config *c, lw_device *dev,
                            const lw_network *net)
{
    in->c = c;
    in->dev = dev;
    in->net = net;
    in->times = 1;
    in->what = "pictures";
    if (net->condition > 0)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: its ranges depend on frames ('leeway_condition' of its config.json), "
                       "which quantize has none of: --precision bf16 needs no ranges",
                       net->dir);
    if (net->generator)
        LW_TRY(read_method(in));
    LW_TRY(open_data(in));
    choose_size(in);
    lw_type image = lw_type_of(LW_F32, 4, c->batch, in->h, in->w, net->channels);
    if (net->generator)
        LW_TRY(lw_noise_new(dev, image, net, "quantize", &in->noise));
    in->row = (int64_t)in->h * in->w * net->channels;
    in->x = lw_calloc((size_t)(c->batch * in->row), sizeof *in->x);
    return in->x ? 0 : LW_ENOMEM;
}

void lw_quantize_inputs_clear(lw_quantize_inputs *in)
{
    lw_forward_free(&in->noise);
    lw_data_close(&in->data);
    lw_free(&in->drawn);
    lw_free(&in->diffusion);
    lw_free(&in->x);
}

/* ---- feeding --------------------------------------------------------------------------------- */

static void picture(const lw_quantize_inputs *in, int64_t i, float *dst)
{
    lw_data_get(in->data, in->drawn[i % in->data->n], false, dst);
}

static int draw(lw_quantize_inputs *in, int64_t first)
{
    int32_t *classes = lw_forward_input(in->f, "class");
    for (int32_t i = 0; classes && i < in->c->batch; i++)
        classes[i] = (int32_t)((first + i) % lw_network_class_ids(in->net));
    LW_TRY(lw_noise_draw(in->noise, first, (lw_tick){in->c->seed, 0}));
    lw_forward_pass(in->noise, "latent", in->f, "latent");
    lw_forward_pass(in->noise, "styles", in->f, "styles");
    memcpy(in->x, lw_forward_output(in->noise, "noise"),
           sizeof *in->x * (size_t)(in->c->batch * in->row));
    return 0;
}

/* A picture and noise, as the schedule mixes them at the time of move k. */
static void noise_pictures(const lw_quantize_inputs *in, int64_t first, const lw_diffusion_move *m,
                           float *x)
{
    const float *noise = lw_forward_output(in->noise, "noise");
    for (int32_t i = 0; i < in->c->batch; i++, x += in->row) {
        picture(in, first + i, x);
        for (int64_t e = 0; e < in->row; e++)
            x[e] = (float)(m->by.a * (double)x[e] + m->by.s * (double)noise[i * in->row + e]);
    }
}

int lw_quantize_inputs_fill(lw_quantize_inputs *in, int64_t first, int32_t k)
{
    float *x = lw_forward_input(in->f, "x"), *t = lw_forward_input(in->f, "t");
    if (!in->net->generator) {
        for (int32_t i = 0; i < in->c->batch; i++)
            picture(in, first + i, x + i * in->row);
        return 0;
    }
    if (k == 0)
        LW_TRY(draw(in, first));
    if (!in->diffusion) {
        memcpy(x, in->x, sizeof *x * (size_t)(in->c->batch * in->row));
        return 0;
    }
    lw_diffusion_move m = lw_plain_move(in->diffusion, in->times, k);
    for (int32_t i = 0; i < in->c->batch; i++)
        t[i] = (float)m.t;
    if (in->data)
        noise_pictures(in, first, &m, x);
    else
        memcpy(x, in->x, sizeof *x * (size_t)(in->c->batch * in->row));
    return 0;
}

void lw_quantize_inputs_next(lw_quantize_inputs *in, int32_t k)
{
    if (!in->diffusion || in->data)
        return;
    lw_diffusion_move m = lw_plain_move(in->diffusion, in->times, k);
    lw_diffusion_apply(&m, in->x, lw_forward_output(in->f, "y"), NULL, in->c->batch * in->row);
}
