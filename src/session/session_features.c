/* SPDX-License-Identifier: Apache-2.0 */
/* Features and probabilities of pictures, batch by batch. */
#include "session/session_features.h"

#include "eval/eval.h"
#include "session/session_decoding.h"

enum { BATCH = 64, BATCH_LARGE = 8, LARGE = 64 }; /* pictures of over LARGE x LARGE */

/* Of the pictures its graph takes: [h,w,c]. */
static lw_type size_of(const lw_score_net *s)
{
    const lw_preparation *p = lw_network_preparation(s->encoder);
    return p ? lw_type_of(LW_F32, 3, p->height, p->width, p->channels)
             : lw_type_of(LW_F32, 3, s->side, s->side, s->channels);
}

int32_t lw_score_net_batch(const lw_score_net *s)
{
    const lw_preparation *p = &s->encoder->preparation;
    return lw_network_sized(s->encoder) && LW_MAX(p->height, p->width) > LARGE ? BATCH_LARGE
                                                                               : BATCH;
}

static int compile(lw_score_net *s, lw_device *dev)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const lw_type one = size_of(s), type = lw_type_of(LW_F32, 4, lw_score_net_batch(s), one.dim[0],
                                                      one.dim[1], one.dim[2]);
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_val x = lw_input(g, "images", type);
    lw_network_append(s->encoder, g, (lw_network_in){.x = x}, &taps);
    lw_graph_output_add(g, "pooled", lw_tap_find(&taps, "pooled"), LW_NOVAL);
    if (s->outputs)
        lw_graph_output_add(g, "logits", lw_tap_find(&taps, "logits"), LW_NOVAL);
    LW_TRY(lw_graph_error(g));
    s->graph = lw_graph_hash(g);
    return lw_forward_of(dev, &g, NULL, LW_SLAB_PARAM, s->encoder->name, &s->forward);
}

int lw_score_net_new(lw_device *dev, const char *spec, int32_t side, int32_t channels,
                     lw_score_net **out)
{
    LW_CLEANUP(lw_score_net_close) lw_score_net *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    LW_TRY(lw_encoder_open(spec, &s->encoder));
    LW_TRY(lw_latents_agree(s->encoder, spec, NULL));
    LW_TRY(lw_network_measures(s->encoder, spec));
    s->side = side;
    s->channels = channels;
    s->pool = dev->pool;
    s->dim = s->encoder->features;
    s->outputs = s->encoder->classes;
    s->judged = s->encoder->judged;
    LW_TRY(compile(s, dev));
    *out = lw_steal(&s);
    return 0;
}

void lw_score_net_close(lw_score_net **pp)
{
    lw_score_net *s = *pp;
    if (!s)
        return;
    lw_forward_free(&s->forward);
    lw_network_close(&s->encoder);
    lw_free(pp);
}

/* Logits of n rows become probabilities. */
static int to_probabilities(float *p, int64_t n, int32_t outputs)
{
    LW_CLEANUP(lw_free) double *row = lw_calloc((size_t)outputs, sizeof *row);
    if (!row)
        return LW_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < outputs; k++)
            row[k] = (double)p[i * outputs + k];
        lw_softmax_of(row, outputs, row);
        for (int32_t k = 0; k < outputs; k++)
            p[i * outputs + k] = (float)row[k];
    }
    return 0;
}

/* ---- pictures as an encoder's files say ------------------------------------------------------ */

typedef struct prepare_rows {
    const lw_score_net *s;
    const float *x;       /* all of them, [n][side][side][channels]; or NULL, and */
    const lw_pictures *p; /* these, from picture `offset` on */
    int64_t first, offset;
    float *dst; /* of this batch */
} prepare_rows;

/* Bytes as the network sees them, as numbers in [-1,1]. */
static int prepare_image(const lw_score_net *s, lw_raster im, const char *what, int64_t i,
                         float *dst)
{
    const lw_preparation *p = lw_network_preparation(s->encoder);
    if (!p && (im.width != s->side || im.height != s->side))
        return lw_fail(LW_ESHAPE,
                       "%s: picture %lld is %dx%d, and %s takes pictures of %dx%d as they are",
                       what, (long long)i, (int)im.width, (int)im.height, s->encoder->name,
                       (int)s->side, (int)s->side);
    const int64_t m = lw_type_count(size_of(s));
    LW_CLEANUP(lw_free) uint8_t *bytes = lw_calloc((size_t)m, 1);
    if (!bytes)
        return LW_ENOMEM;
    if (p) {
        LW_TRY(lw_prepare_pixels(p, im, bytes));
    } else {
        LW_TRY(lw_channels_check(what, im.channels, s->channels));
        lw_channels_convert(im.at, (int64_t)im.height * im.width, im.channels, s->channels, bytes);
    }
    lw_data_from_u8(bytes, m, dst);
    return 0;
}

static int prepare_floats(const lw_score_net *s, const float *x, int64_t i, float *dst)
{
    int64_t n = (int64_t)s->side * s->side * s->channels;
    LW_CLEANUP(lw_free) uint8_t *bytes = lw_calloc((size_t)n, 1);
    if (!bytes)
        return LW_ENOMEM;
    lw_data_to_u8(x + i * n, n, bytes);
    return prepare_image(s, (lw_raster){s->side, s->side, s->channels, bytes}, "pictures", i, dst);
}

static int prepare_picture(const lw_score_net *s, const lw_pictures *p, int64_t i, float *dst)
{
    LW_CLEANUP(lw_image_clear) lw_image made = {0};
    if (!p->rgb) {
        LW_TRY(p->decode(p->self, i, &made));
        return prepare_image(s, lw_raster_of(&made), p->name, i, dst);
    }
    const uint8_t *at = p->rgb + i * p->side * p->side * 3;
    const lw_raster im = {p->side, p->side, 3, (uint8_t *)(uintptr_t)at};
    return prepare_image(s, im, p->name, i, dst);
}

static int prepare_row(void *arg, int64_t i, int worker)
{
    const prepare_rows *r = arg;
    (void)worker;
    int64_t row = r->first + i;
    float *dst = r->dst + i * lw_type_count(size_of(r->s));
    return r->x ? prepare_floats(r->s, r->x, row, dst)
                : prepare_picture(r->s, r->p, r->offset + row, dst);
}

static int fill_prepared(void *self, int64_t first, int64_t n, void *dst)
{
    prepare_rows *r = self;
    r->first = first;
    r->dst = dst;
    return lw_pool_try(r->s->pool, n, prepare_row, r);
}

static int run_rows(lw_score_net *s, lw_feed images, int64_t n, float *features, float *probs)
{
    const lw_feed feed[] = {
        images, {.name = "pooled", .out = features}, {.name = "logits", .out = probs}};
    LW_ASSERT(!probs || s->outputs > 0, "%s has no head", s->encoder->name);
    LW_TRY(lw_forward_rows(s->forward, "encode", n, feed, probs ? 3 : 2, NULL));
    return probs ? to_probabilities(probs, n, s->outputs) : 0;
}

int lw_score_net_pictures(lw_score_net *s, const lw_pictures *p, int64_t first, int64_t n,
                          float *features, float *probs)
{
    prepare_rows rows = {.s = s, .p = p, .offset = first};
    const lw_feed feed = {.name = "images", .fill = fill_prepared, .self = &rows};
    return run_rows(s, feed, n, features, probs);
}

int lw_score_net_run(lw_score_net *s, const float *x, int64_t n, float *features, float *probs)
{
    prepare_rows rows = {.s = s, .x = x};
    const lw_feed as_is = {.name = "images", .in = x},
                  made = {.name = "images", .fill = fill_prepared, .self = &rows};
    return run_rows(s, lw_network_sized(s->encoder) ? made : as_is, n, features, probs);
}
