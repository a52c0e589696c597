/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what a stream computes with. */
#include "jobs/stream/stream_network.h"

int lw_stream_engine_open(lw_stream_engine *e, const lw_stream_config *c,
                          const lw_translator_opts *o, const lw_pixels *in)
{
    lw_translator_opts own = *o;
    own.given = c->drift_metrics != NULL;
    own.undamaged = lw_stream_undamaged(c);
    const int32_t all = c->threads > 0 ? c->threads : lw_core_count(),
                  beside = c->pipeline ? LW_MAX(all / 2, 1) : 0;
    LW_TRY(lw_session_device_with(LW_MAX(all - beside, 1), c->conv, &e->dev));
    if (beside > 0)
        LW_TRY(lw_session_device_with(beside, c->conv, &e->beside));
    own.beside_dev = e->beside;
    return lw_translator_new(e->dev, &own, in, &e->translator);
}

void lw_stream_engine_close(lw_stream_engine *e)
{
    lw_translator_free(&e->translator);
    lw_backend_close(&e->dev);
    lw_backend_close(&e->beside);
}

int lw_stream_network_open(lw_stream_network *n, const lw_stream_config *c, const lw_pixels *in)
{
    n->in = *in;
    LW_TRY(lw_stream_engine_open(&n->now, c, &c->network, in));
    lw_translator_size(n->now.translator, &n->w, &n->h);
    n->reset_every = c->reset_every;
    n->result = c->pipeline ? lw_translator_latent(n->now.translator) * sizeof(float)
                            : (size_t)n->w * (size_t)n->h * 3;
    lw_similar_open(&n->similar, c->network.seed, lw_pixels_bytes(in), n->result);
    return lw_similar_set(&n->similar, c->similarity);
}

void lw_stream_network_reset(lw_stream_network *n)
{
    lw_translator_reset(n->now.translator);
    lw_similar_reset(&n->similar);
}

/* The tag of the picture that has just been made, for that of the frame. */
static int exchange(lw_stream_network *n, lw_stream_tag *tag)
{
    const int32_t delay = lw_translator_delay(n->now.translator);
    n->flight[n->runs++ % LW_STREAM_BATCH] = *tag;
    if (++n->in_flight <= delay)
        return LW_STREAM_NOT_YET;
    n->in_flight--;
    *tag = n->flight[(n->runs - 1 - delay) % LW_STREAM_BATCH];
    return 0;
}

int lw_stream_network_run(lw_stream_network *n, const uint8_t *frame, lw_stream_tag *tag,
                          uint8_t *out)
{
    lw_translator *t = n->now.translator;
    if (n->reset_every > 0 && n->frames > 0 && n->frames % n->reset_every == 0)
        lw_stream_network_reset(n);
    n->frames++;
    if (lw_similar_skip(&n->similar, frame, out))
        return 0;
    LW_TRY(n->now.beside ? lw_translator_encode(t, frame, (float *)(void *)out)
                         : lw_translator_run(t, frame, out));
    lw_similar_keep(&n->similar, frame, out);
    return exchange(n, tag);
}

int lw_stream_network_decode(lw_stream_network *n, const uint8_t *latent, uint8_t *rgb)
{
    return lw_translator_decode(n->now.translator, (const float *)(const void *)latent, rgb);
}

void lw_stream_network_swap(lw_stream_network *n, lw_stream_engine *e)
{
    const lw_stream_engine before = n->now;
    n->now = *e;
    *e = before;
    n->in_flight = 0;
    lw_similar_reset(&n->similar);
}

void lw_stream_network_close(lw_stream_network *n)
{
    lw_similar_close(&n->similar);
    lw_stream_engine_close(&n->now);
}
