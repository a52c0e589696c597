/* SPDX-License-Identifier: Apache-2.0 */
/* What a network is fed while ranges are measured: a generator's own inputs, or pictures. */
#include "jobs/quantize/quantize_inputs.h"

#include <math.h>
#include <string.h>

int32_t lw_quantize_side(const lw_quantize_inputs *in)
{
    const lw_network *n = in->net;
    if (n->generator && in->method == LW_METHOD_DRIFT && n->noise_size)
        return n->noise_size;
    return n->image_size ? n->image_size : in->data->h;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int read_method(lw_quantize_inputs *in)
{
    LW_TRY(lw_network_method(in->net, &in->method, &in->diffusion));
    in->what = "noise";
    if (in->method == LW_METHOD_DRIFT)
        return 0;
    in->what = in->data ? "noised pictures" : "pictures on their way from noise";
    in->times = LW_MIN(in->c->steps, in->diffusion->timesteps);
    return lw_diffusion_check_steps(in->diffusion, in->times);
}

static int open_data(lw_quantize_inputs *in)
{
    const char *spec = in->c->calibration;
    if (!spec || lw_str_eq(spec, "noise"))
        return in->net->generator ? 0
                                  : lw_fail(LW_EUSAGE,
                                            "%s is an encoder: say with --calibration DATA what "
                                            "pictures it reads",
                                            in->c->source);
    const lw_data_opts o = {
        .image_size = in->net->image_size, .pool = in->dev->pool, .obs = in->obs};
    LW_TRY(lw_data_open(spec, &o, &in->data));
    return lw_data_drawn(in->data, &in->drawn);
}

int lw_quantize_inputs_open(lw_quantize_inputs *in, const lw_quantize_config *c, lw_device *dev,
                            const lw_network *net)
{
    in->c = c;
    in->dev = dev;
    in->net = net;
    in->times = 1;
    in->what = "pictures";
    LW_TRY(open_data(in));
    if (net->generator)
        LW_TRY(read_method(in));
    int32_t side = lw_quantize_side(in);
    lw_type image = lw_type_of(LW_F32, 4, c->batch, side, side, net->channels);
    if (net->generator)
        LW_TRY(lw_noise_new(dev, image, net->latent, "quantize", &in->noise));
    in->row = (int64_t)side * side * net->channels;
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
        classes[i] = (int32_t)((first + i) % in->net->classes);
    LW_TRY(lw_noise_draw(in->noise, first, (lw_tick){in->c->seed, 0}));
    lw_forward_pass(in->noise, "latent", in->f, "latent");
    memcpy(in->x, lw_forward_output(in->noise, "noise"),
           sizeof *in->x * (size_t)(in->c->batch * in->row));
    return 0;
}

/* sqrt(ab) picture + sqrt(1 - ab) noise at the time of move k. */
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
    lw_diffusion_move m = lw_ddim_move(in->diffusion, in->times, k);
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
    lw_diffusion_move m = lw_ddim_move(in->diffusion, in->times, k);
    lw_diffusion_apply(&m, in->x, lw_forward_output(in->f, "y"), NULL, in->c->batch * in->row);
}
