/* SPDX-License-Identifier: Apache-2.0 */
/* What a translator computes with: its networks, and the sizes they take. */
#include "session/session_decoding.h"
#include "session/session_generator.h"
#include "session/session_sampler.h"
#include "session/session_translator_private.h"

enum { MOST_STEPS = 64 };

static int check_sampler(lw_translator *t)
{
    lw_translator_opts *o = &t->o;
    const bool automatic = o->sampler == LW_SAMPLER_AUTO;
    o->steps = LW_MAX(o->steps, 1);
    o->strength = lw_translator_strength(t, o->strength);
    if (t->method == LW_METHOD_DRIFT)
        return o->steps == 1 && (automatic || o->sampler == LW_SAMPLER_ONE_STEP) &&
                       o->strength >= 1.0
                   ? 0
                   : lw_fail(LW_EUSAGE,
                             "%s: a drifting generator makes its picture of noise in one step: "
                             "leave out --steps, --sampler and --strength",
                             o->model);
    if (automatic)
        o->sampler = LW_SAMPLER_DDIM;
    if (o->sampler != LW_SAMPLER_DDIM && o->sampler != LW_SAMPLER_DPM_SOLVER)
        return lw_fail(LW_EUSAGE, "frames are sampled by ddim or dpm-solver");
    t->part = lw_calloc(1, sizeof *t->part);
    return t->part ? 0 : LW_ENOMEM;
}

/* How many frames of its condition are former answers. */
static int read_condition(lw_translator *t)
{
    const lw_network *n = t->net;
    const int32_t frames = n->condition / n->channels;
    const lw_unet_config *u = n->def == &lw_network_def_unet ? n->arch : NULL;
    if (frames == 0 && t->method == LW_METHOD_DRIFT)
        return lw_fail(LW_EUSAGE, "%s: makes pictures of noise alone, so no frame would reach it",
                       t->o.model);
    t->previous = u ? u->previous : frames > 0 ? frames - 1 : 0;
    return 0;
}

/* Frames in flight may not need what comes of those before them. */
static int check_batch(lw_translator *t)
{
    lw_translator_opts *o = &t->o;
    if (o->stream_batch <= 1)
        return 0;
    if (!t->net)
        return lw_fail(LW_EUSAGE, "--stream-batch is for U-Nets of several steps, not for %s",
                       o->model);
    if (o->steps > 1 && o->steps != o->stream_batch)
        return lw_fail(LW_EUSAGE,
                       "--stream-batch %d has a frame at each of %d steps: leave out "
                       "--steps %d",
                       (int)o->stream_batch, (int)o->stream_batch, (int)o->steps);
    o->steps = o->stream_batch;
    if (!t->schedule || t->net->latent > 0 || t->net->styles > 0)
        return lw_fail(LW_EUSAGE, "%s: --stream-batch is for diffusion models", o->model);
    if (o->sampler == LW_SAMPLER_DPM_SOLVER)
        return lw_fail(LW_EUSAGE, "--stream-batch goes with --sampler ddim, whose moves need "
                                  "nothing of the one before");
    if (t->previous > 0 || o->feed_back)
        return lw_fail(LW_EUSAGE,
                       "%s%s: with --stream-batch the answer before is not there yet "
                       "when a frame needs it",
                       o->model, o->feed_back ? " --feed-back" : " is shown its former answers");
    return 0;
}

static int check_generator(lw_translator *t)
{
    const lw_network *n = t->net;
    const int32_t channels = t->coder.encoder ? t->coder.channels : 3;
    if (n->channels != channels || n->outputs != channels)
        return lw_fail(LW_EUSAGE, "%s makes pictures of %d channels from such of %d; %s has %d%s",
                       t->o.model, (int)n->outputs, (int)n->channels,
                       t->coder.encoder ? "a latent" : "RGB", (int)channels,
                       t->coder.encoder ? "" : " (latents: name the autoencoder)");
    if (n->classes > 0 && (t->o.label < 0 || t->o.label >= n->classes))
        return lw_fail(LW_EUSAGE, "class %d: %s has 0 to %d", (int)t->o.label, t->o.model,
                       (int)n->classes - 1);
    LW_TRY(lw_network_method(n, &t->method, &t->schedule));
    if (t->method == LW_METHOD_FLOW)
        return lw_fail(
            LW_EUSAGE,
            "%s: frames go through a DDPM, and this is a rectified flow: `leeway sample` "
            "makes its pictures",
            t->o.model);
    LW_TRY(read_condition(t));
    LW_TRY(check_batch(t));
    return check_sampler(t);
}

static int open_networks(lw_translator *t)
{
    const lw_translator_opts *o = &t->o;
    const bool identity = lw_str_eq(o->model, "identity");
    if (!identity && !lw_autoencoder_named(o->model))
        LW_TRY(lw_network_open(o->model, true, &t->net));
    const bool generator = t->net && t->net->generator;
    if (generator && (o->latents || lw_latents_of(t->net->config)))
        LW_TRY(lw_latents_coder(t->net, o->latents, &t->coder));
    if (t->net)
        t->net->window = o->window;
    if (generator)
        return check_generator(t);
    if (identity && !o->latents)
        return 0;
    lw_network_close(&t->net);
    return o->latents
               ? lw_fail(LW_EUSAGE, "%s: latents are for generators, and this is none", o->model)
               : lw_autoencoder_open(o->model, &t->coder);
}

/* ---- sizes ------------------------------------------------------------------------------------- */

/* The multiple that lies nearest to a side. */
static int32_t near(int32_t side, int32_t multiple)
{
    return LW_MAX((side + multiple / 2) / multiple, 1) * multiple;
}

static int check_size(const lw_translator *t, int32_t multiple, int32_t own)
{
    const lw_translator_opts *o = &t->o;
    if (o->w < 1 || o->h < 1 || (int64_t)o->w * o->h > (int64_t)1 << 26)
        return lw_fail(LW_EUSAGE, "pictures of %dx%d: sides are at least 1, pixels at most 2^26",
                       (int)o->w, (int)o->h);
    if (o->w % multiple || o->h % multiple)
        return lw_fail(LW_EUSAGE,
                       "%s takes pictures whose sides are multiples of %d: %dx%d is nearest to "
                       "%dx%d",
                       o->model, (int)multiple, (int)near(o->w, multiple),
                       (int)near(o->h, multiple), (int)o->w, (int)o->h);
    if (t->net && t->net->noise_size > 0 && (o->w != own || o->h != own))
        return lw_fail(LW_EUSAGE, "%s: noise of %dx%d is for pictures of %dx%d alone", o->model,
                       (int)t->net->noise_size, (int)t->net->noise_size, (int)own, (int)own);
    return 0;
}

static int choose_size(lw_translator *t)
{
    lw_translator_opts *o = &t->o;
    const int32_t w = (int32_t)t->in.w, h = (int32_t)t->in.h;
    const int32_t shrink = t->coder.encoder ? t->coder.shrink : 1;
    const int32_t multiple = shrink * (t->net ? LW_MAX(t->net->multiple, 1) : 1);
    const int32_t own = t->net ? t->net->image_size * shrink : 0;
    if (o->w == 0 && o->h == 0) {
        o->w = own > 0 ? own : LW_MAX(w - w % multiple, multiple);
        o->h = own > 0 ? own : LW_MAX(h - h % multiple, multiple);
    }
    LW_TRY(check_size(t, multiple, own));
    t->framing = lw_framing_of((lw_frame_fit)o->fit, w, h, o->w, o->h);
    t->out_w = o->out_w > 0 ? o->out_w : o->at_input ? t->framing.window.w : o->w;
    t->out_h = o->out_h > 0 ? o->out_h : o->at_input ? t->framing.window.h : o->h;
    return 0;
}

static int fits(lw_translator *t)
{
    if (!t->net)
        LW_TRY(check_batch(t));
    const int32_t most = t->schedule ? LW_MIN(MOST_STEPS, t->schedule->timesteps) : 1;
    if (t->net && (t->o.steps < 1 || t->o.steps > most))
        return lw_fail(LW_EUSAGE, "--steps %d: %s makes a frame in 1 to %d", (int)t->o.steps,
                       t->o.model, (int)most);
    return choose_size(t);
}

static int check_beside(const lw_translator *t)
{
    if (!t->o.beside_dev)
        return 0;
    if (!t->coder.decoder)
        return lw_fail(LW_EUSAGE,
                       "--pipeline runs the decoder of latents beside the network, and %s has none",
                       t->o.model);
    return t->o.feed_back || t->o.beside
               ? lw_fail(LW_EUSAGE, "--pipeline: with --%s the network waits for the picture",
                         t->o.feed_back ? "feed-back" : "split")
               : 0;
}

int lw_translator_open(lw_translator *t)
{
    LW_TRY(open_networks(t));
    LW_TRY(check_beside(t));
    return fits(t);
}
