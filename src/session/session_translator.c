/* SPDX-License-Identifier: Apache-2.0 */
/* Making a translator, its settings, one frame. */
#include "session/session_translator.h"

#include <string.h>

#include "session/session_translator_private.h"

/* The plan's inputs that are no frames. */
static void set_inputs(lw_translator *t)
{
    int32_t *label = lw_forward_input(t->plan, "class");
    for (int32_t k = 0; label && k <= lw_translator_delay(t); k++)
        label[k] = t->o.label;
    lw_translator_set_moves(t);
}

/* Of latents, where the decoder is apart. */
static lw_type latent_type(const lw_translator *t)
{
    const lw_port *p;
    lw_type type = lw_type_of(LW_F32, 4, 1, 1, 1, 1);
    if (lw_forward_find(t->plan, "latent", &p) == 0)
        for (int k = 0; k < 4; k++)
            type.dim[k] = (int32_t)p->shape[k];
    return type;
}

static int make_plan(lw_translator *t, lw_device *dev, bool back, lw_forward **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_quantization_free) lw_quantization *quant = NULL;
    const char *name = t->net ? t->net->dir : t->coder.encoder ? t->coder.encoder->dir : "identity";
    if (t->net)
        LW_TRY(lw_quantization_find(name, &quant));
    LW_TRY(lw_precision_check(t->o.precision, quant, t->net, name));
    LW_TRY(lw_graph_new(&g));
    LW_TRY(back ? lw_translator_build_back(t, g, latent_type(t)) : lw_translator_build(t, g));
    const lw_compile_opts o = {.opt = 1,
                               .precision = (lw_num)t->o.precision,
                               .calibration = lw_quantization_ranges(quant)};
    return lw_forward_of(dev, &g, &o, LW_SLAB_PARAM, name, out);
}

int lw_translator_new(lw_device *dev, const lw_translator_opts *o, const lw_pixels *in,
                      lw_translator **out)
{
    LW_CLEANUP(lw_translator_free) lw_translator *t = lw_calloc(1, sizeof *t);
    if (!t)
        return LW_ENOMEM;
    t->dev = dev;
    t->o = *o;
    t->in = *in;
    LW_TRY(lw_translator_open(t));
    LW_TRY(make_plan(t, dev, false, &t->plan));
    if (t->o.beside_dev)
        LW_TRY(make_plan(t, t->o.beside_dev, true, &t->back));
    t->o.model = t->net || t->coder.encoder ? "the network" : "identity"; /* the caller's is gone */
    t->o.latents = NULL;
    set_inputs(t);
    *out = lw_steal(&t);
    return 0;
}

void lw_translator_free(lw_translator **pp)
{
    lw_translator *t = *pp;
    if (!t)
        return;
    lw_forward_free(&t->plan);
    lw_forward_free(&t->back);
    lw_network_close(&t->net);
    lw_autoencoder_close(&t->coder);
    lw_free(&t->schedule);
    lw_free(&t->part);
    lw_free(pp);
}

void lw_translator_size(const lw_translator *t, int32_t *w, int32_t *h)
{
    *w = t->out_w * (t->o.beside ? 2 : 1);
    *h = t->out_h;
}

int64_t lw_translator_parameters(const lw_translator *t)
{
    const lw_network *all[] = {t->coder.encoder, t->net, t->coder.decoder};
    int64_t n = 0;
    for (size_t i = 0; i < LW_COUNT(all); i++)
        n += all[i] ? all[i]->parameters : 0;
    return n;
}

void lw_translator_network_size(const lw_translator *t, int32_t *w, int32_t *h)
{
    *w = t->framing.w;
    *h = t->framing.h;
}

lw_plan_info lw_translator_info(const lw_translator *t)
{
    lw_plan_info all = lw_forward_info(t->plan);
    if (t->back) {
        const lw_plan_info back = lw_forward_info(t->back);
        all.n_steps += back.n_steps;
        all.n_prepare += back.n_prepare;
        all.frame_bytes += back.frame_bytes;
        all.derived_bytes += back.derived_bytes;
        all.flops += back.flops;
        all.bytes += back.bytes;
        all.forward_flops += back.forward_flops;
    }
    return all;
}

void lw_translator_print(lw_str *s, const lw_translator *t)
{
    lw_framing_print(s, &t->framing);
    lw_str_addf(s, "result: %dx%d rgb24%s\n", (int)t->out_w, (int)t->out_h,
                t->out_w == t->framing.w && t->out_h == t->framing.h ? "" : ", resized bilinear");
    lw_forward_print(s, t->plan);
    if (t->back) {
        lw_str_addf(s, "the decoder, beside the network of the next frame, with %d threads:\n",
                    lw_pool_size(t->o.beside_dev->pool));
        lw_forward_print(s, t->back);
    }
}

const uint8_t *lw_translator_given(const lw_translator *t)
{
    const bool own = t->o.feed_back && t->frames > 1; /* the last one's number is frames - 1 */
    const uint8_t *apart = lw_forward_output(t->plan, "given.rgb");
    if (!(t->o.given || t->o.undamaged) || own)
        return NULL;
    return apart ? apart : lw_forward_output(t->plan, "rgb");
}

void lw_translator_undamaged(lw_translator *t, const uint8_t *frame)
{
    memcpy(lw_forward_input(t->plan, "undamaged"), frame, lw_pixels_bytes(&t->in));
}

int32_t lw_translator_delay(const lw_translator *t)
{
    return LW_MAX(t->o.stream_batch, 1) - 1;
}

void lw_translator_reset(lw_translator *t)
{
    const lw_port *p;
    void *history = lw_forward_input(t->plan, "history");
    if (history && lw_forward_find(t->plan, "history", &p) == 0)
        memset(history, 0, p->bytes);
    t->frames = 0;
}

double lw_translator_strength(const lw_translator *t, double asked)
{
    return asked > 0.0 ? asked : t->net->condition > 0 ? 1.0 : 0.5;
}

void lw_translator_set_strength(lw_translator *t, double strength)
{
    if (!t->net)
        return;
    t->o.strength = lw_translator_strength(t, strength);
    lw_translator_set_moves(t);
}

void lw_translator_set_seed(lw_translator *t, uint64_t seed)
{
    t->o.seed = seed;
}

static void set_fed_back(lw_translator *t)
{
    float *own = lw_forward_input(t->plan, "own"), *given = lw_forward_input(t->plan, "given");
    if (!own || !given)
        return;
    *own = t->frames > 0 ? 1.0f : 0.0f;
    *given = 1.0f - *own;
}

static int run_front(lw_translator *t, const uint8_t *frame)
{
    const lw_tick tick = {t->o.seed, t->o.fresh_noise ? (uint32_t)t->frames : 0};
    if (t->frames > 0 || (t->ran && lw_translator_delay(t) > 0))
        lw_forward_advance(t->plan);
    t->ran = true;
    memcpy(lw_forward_input(t->plan, "frame"), frame, lw_pixels_bytes(&t->in));
    set_fed_back(t);
    LW_TRY(lw_forward_run(t->plan, &tick));
    t->frames++;
    return 0;
}

static void copy_rgb(const lw_translator *t, const lw_forward *from, uint8_t *rgb)
{
    int32_t w, h;
    lw_translator_size(t, &w, &h);
    memcpy(rgb, lw_forward_output(from, "rgb"), (size_t)w * (size_t)h * 3);
}

int lw_translator_run(lw_translator *t, const uint8_t *frame, uint8_t *rgb)
{
    LW_TRY(run_front(t, frame));
    if (t->back) {
        lw_forward_pass(t->plan, "latent", t->back, "latent");
        LW_TRY(lw_forward_run(t->back, NULL));
    }
    copy_rgb(t, t->back ? t->back : t->plan, rgb);
    return lw_forward_failed(t->back ? t->back : t->plan);
}

size_t lw_translator_latent(const lw_translator *t)
{
    return t->back ? (size_t)lw_type_count(latent_type(t)) : 0;
}

int lw_translator_encode(lw_translator *t, const uint8_t *frame, float *latent)
{
    LW_TRY(run_front(t, frame));
    memcpy(latent, lw_forward_output(t->plan, "latent"), lw_translator_latent(t) * sizeof *latent);
    return lw_forward_failed(t->plan);
}

int lw_translator_decode(lw_translator *t, const float *latent, uint8_t *rgb)
{
    memcpy(lw_forward_input(t->back, "latent"), latent, lw_translator_latent(t) * sizeof *latent);
    LW_TRY(lw_forward_run(t->back, NULL));
    copy_rgb(t, t->back, rgb);
    return lw_forward_failed(t->back);
}
