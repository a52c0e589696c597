/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame of video through a network, as one plan from bytes to bytes:
 *
 *   frame u8 ─► frame_to_rgb ─► crop ─► resize ─► border ─► network ─► undo ─► rgb_to_frame ─► RGB u8
 *               YUV or gray     `fit`, to the size of                  `at_input`
 *               or RGB          the network's pictures
 *
 *   network   identity          nothing
 *             an autoencoder    encoder ─► decoder
 *             a U-Net           [encoder ─►] + noise ─► (U-Net ─► move) x steps [─► decoder]
 *                                                        ▲ frame, former answers
 *
 * Shapes are fixed when it is made, and a frame allocates nothing. What a size does not need is not
 * there: `identity` at the source's size is frame_to_rgb on bytes alone. A frame's result depends on
 * the frame, and where the network is conditioned on former answers on those (one state of the plan,
 * zeros at first); with the same bits for any number of threads.
 *
 * Cost beside the network: the bytes of the frame and some floats a pixel, less than a millisecond for
 * 1280 x 720 to 256 x 144. taef2 itself is 66 GFLOP a frame at 256 x 256.
 */
#ifndef LW_SESSION_TRANSLATOR_H
#define LW_SESSION_TRANSLATOR_H

#include "kernels/kernels.h"
#include "models/models.h"
#include "session/session_forward.h"

/* How a picture becomes one of other proportions. */
typedef enum lw_frame_fit {
    LW_FRAME_CROP,   /* what is over is cut off, on both sides */
    LW_FRAME_BORDER, /* what is missing is black, on both sides */
    LW_FRAME_STRETCH
} lw_frame_fit;
#define LW_FRAME_FIT_CHOICES "crop|border|stretch"

typedef struct lw_translator_opts {
    const char *model; /* "identity", an autoencoder (lw_autoencoder_open), or a U-Net (a SOURCE) */
    const char *latents; /* the autoencoder of a U-Net in latents; NULL: it is in pixels. Both are
                            borrowed during the call */
    int32_t w, h;     /* of the network's pictures; 0, 0: those it was made for, or as large as the
                            source's, a little smaller where it wants multiples */
    int32_t fit;      /* lw_frame_fit */
    int32_t at_input; /* 1: the result has the source's scale: resized back, without the border;
                            what was cropped stays away. 0: it is as large as the network's picture */
    int32_t out_w, out_h; /* of the result; 0, 0: as at_input says */
    int32_t window;       /* of a U-Net's attention (lw_network.window); 0: none */
    int32_t precision;    /* lw_num of products; S8: of a U-Net's, from a quantised folder */
    lw_device *
        beside_dev; /* the decoder is a plan of its own on this device, so that it may run beside the
                              network of the next frame (lw_translator_encode); borrowed. NULL: one plan */
    bool given;     /* keeps the frame as the network is given it: lw_translator_given */
    bool undamaged; /* keeps instead what lw_translator_undamaged says of it */
    bool beside;    /* the result has the frame on its left, as the network is given it: twice as
                          wide */
    bool feed_back; /* from the second frame on (also behind a reset) the network is given its own
                          last picture instead of the frame */
    /* of a U-Net */
    double strength; /* share of the noise schedule that is undone and done again; 1: all of it;
                         0: a half, and all of a conditioned network's */
    int32_t steps;   /* evaluations a frame; 0: 1 */
    int32_t sampler; /* lw_sampler_kind: ddim or dpm-solver; auto: ddim, and one step for drift */
    int32_t
        stream_batch; /* as many frames at as many steps in one evaluation: a run's picture is that of
                             the frame stream_batch - 1 runs before. 0, 1: each frame by itself;
                             else what steps is, where that is given */
    uint64_t seed;    /* of the noise */
    int32_t fresh_noise; /* 1: other noise for each frame; 0: every frame has that of `leeway
                            sample`'s first picture */
    int32_t label;       /* class, of a network that has some */
} lw_translator_opts;

typedef struct lw_translator lw_translator;
/* Borrows the device. in: the frames that will come. LW_EUSAGE: a size that the network cannot take,
 * naming the nearest; LW_EFORMAT, LW_EUNSUPPORTED: a model that makes no pictures of pictures. */
int lw_translator_new(lw_device *dev, const lw_translator_opts *o, const lw_pixels *in,
                      lw_translator **out);
void lw_translator_free(lw_translator **pp);
/* Trained numbers of all its networks. */
int64_t lw_translator_parameters(const lw_translator *t);
/* Of its result, and of the network's pictures. */
void lw_translator_size(const lw_translator *t, int32_t *w, int32_t *h);
void lw_translator_network_size(const lw_translator *t, int32_t *w, int32_t *h);
lw_plan_info lw_translator_info(const lw_translator *t);
/* What becomes of a frame's size, then the plan (lw_plan_print): lines for --verbose. */
void lw_translator_print(lw_str *s, const lw_translator *t);
/* A frame as the source has it -> rgb [h][w][3]. LW_ESTOPPED: the device was asked to stop. */
int lw_translator_run(lw_translator *t, const uint8_t *frame, uint8_t *rgb);
/*
 * Both halves of a run, with opts.beside_dev: what the network makes of a frame, then the picture. They may run
 * at the same time, each in one thread. latent: lw_translator_latent numbers. Former answers and frames in
 * flight are the first half's.
 */
size_t lw_translator_latent(const lw_translator *t); /* 0: one plan */
int lw_translator_encode(lw_translator *t, const uint8_t *frame, float *latent);
int lw_translator_decode(lw_translator *t, const float *latent, uint8_t *rgb);
/* The last frame at the result's size, rgb [h][w][3], until the next run. NULL: without opts.given, or the
 * network was given its own picture instead. */
const uint8_t *lw_translator_given(const lw_translator *t);
/* With opts.undamaged: the next frame as it was before somebody made it worse, of the same layout. It is
 * fitted as frames are, and no network sees it. */
void lw_translator_undamaged(lw_translator *t, const uint8_t *frame);
/* How many runs a frame's picture comes after the frame: the first so many give nobody's. */
int32_t lw_translator_delay(const lw_translator *t);
/* Former answers are forgotten: the next frame is as the first one was. Frames in flight stay: they
 * see no former answers. */
void lw_translator_reset(lw_translator *t);
/* From the next frame on; nothing is compiled. Strength 0: as opts say of it. */
void lw_translator_set_strength(lw_translator *t, double strength);
void lw_translator_set_seed(lw_translator *t, uint64_t seed);

#endif
