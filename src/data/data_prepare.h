/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a published network wants done to a picture before it sees it, as the file beside its
 * weights says: resized, cut or padded to one size, then numbers.
 *
 *   pixel byte b of channel k  ->  (b scale - mean[k]) / std[k]
 *
 * lw_prepare does the part on bytes, with the bits of the library that the file is for (on Pillow
 * pictures); the numbers are ops of the network's graph. A form of floats (torch, float-aa,
 * tf-inception) has no such part: its resize is an op of the graph too, and no file here says one.
 *
 *   read from                     resized with       centre crop                 padded
 *   preprocessor_config.json      Pillow             offset rounded down         black
 *   (transformers)
 *   pretrained_cfg (timm, so      Pillow             offset rounded half         black; crop_mode
 *   torchvision's evaluation)                        to even                     border: the mean
 *   preprocess_cfg (open_clip)    Pillow             offset rounded half         none
 *                                                    to even
 *
 * Nothing in these files is passed over in silence: what changes pixels is honoured or refused by
 * name.
 */
#ifndef LW_DATA_PREPARE_H
#define LW_DATA_PREPARE_H

#include "base/base.h"
#include "data/data_pixels.h"
#include "formats/formats.h"
#include "kernels/resample/resample_picture.h"

typedef enum lw_fit {
    LW_FIT_SHORTEST, /* the picture covers resize_h x resize_w; of a square, its shorter edge has it */
    LW_FIT_SQUASH, /* it becomes that size */
    LW_FIT_INSIDE  /* it lies inside that size */
} lw_fit;

/* Whose files say it. */
typedef enum lw_library {
    LW_LIBRARY_HF, /* transformers */
    LW_LIBRARY_TIMM,
    LW_LIBRARY_OPEN_CLIP
} lw_library;
#define LW_LIBRARIES "hf|timm|open_clip"
extern const char *const lw_library_name[]; /* "transformers", "timm", "open_clip" */

/* A whole picture in numbers: scale, mean and std of a preparation. */
#define LW_NUMBERS_IMAGENET                                                \
    .channels = 3, .scale = 1.0 / 255.0, .mean = {0.485f, 0.456f, 0.406f}, \
    .std = {0.229f, 0.224f, 0.225f}
#define LW_NUMBERS_CLIP                                                                  \
    .channels = 3, .scale = 1.0 / 255.0, .mean = {0.48145466f, 0.4578275f, 0.40821073f}, \
    .std = {0.26862954f, 0.26130258f, 0.27577711f}
#define LW_NUMBERS_HALF \
    .channels = 3, .scale = 1.0 / 255.0, .mean = {0.5f, 0.5f, 0.5f}, .std = {0.5f, 0.5f, 0.5f}

typedef struct lw_preparation {
    lw_fit fit;
    lw_resample_form form;
    lw_filter filter;
    int32_t resize_h, resize_w;
    int32_t height, width; /* of the result, cut out of the middle or padded around it; 0: every
                              picture stays as it is, and only its numbers are said */
    bool half_to_even;     /* torchvision's rounding of the offset; else transformers' */
    int32_t channels;      /* of the picture it makes: the numbers of fill, mean and std */
    uint8_t fill[LW_MAX_CHANNELS];
    double scale;
    float mean[LW_MAX_CHANNELS], std[LW_MAX_CHANNELS];
} lw_preparation;

/* torchvision's evaluation of its ImageNet weights, first edition: 256, centre 224. */
extern const lw_preparation lw_preparation_imagenet;

/* The shorter edge becomes `side`, the central square stays: torchvision's Resize(side, bilinear) and
 * CenterCrop(side) of a Pillow picture, which the training scripts of diffusers do. What networks of
 * Leeway are trained on; a square of that size stays as it is. */
lw_preparation lw_preparation_square(int32_t side);

/* The same for pictures of so many channels. LW_EUNSUPPORTED: its numbers differ by channel, and so
 * say nothing of others; `what` names whose they are. */
int lw_preparation_for(lw_preparation *p, const char *what, int32_t channels);

/*
 * From the text of a preprocessor_config.json (or a processor_config.json around it), of a timm
 * pretrained_cfg, of a config.json that has one, or of an open_clip_config.json. `what` names it in messages. LW_EFORMAT: not
 * such a file, or a value of the wrong kind; LW_EUNSUPPORTED: a key or value that is not honoured.
 */
int lw_preparation_parse(const char *what, const char *text, size_t n, lw_preparation *out);
/* A file, or a folder with preprocessor_config.json, config.json or open_clip_config.json in it. */
int lw_preparation_load(const char *path, lw_preparation *out);
/* The same as that library's object: a preprocessor_config.json, a pretrained_cfg, a preprocess_cfg.
 * The offset of a crop is from then on rounded as that library does. LW_EUNSUPPORTED: it has no words
 * for something. */
int lw_preparation_json(const lw_preparation *p, lw_library to, json_t **out);
/* One line with everything that changes a number the network sees: for fingerprints and for
 * reading; and that part of it which says what lw_prepare does. */
void lw_preparation_print(const lw_preparation *p, lw_str *out);
void lw_preparation_print_pixels(const lw_preparation *p, lw_str *out);

/* How a picture of h x w comes to lie: resized to to[2] (down, across), of which keep[2] pixels from
 * skip[2] on stay, with pad[2] filled in before them. */
typedef struct lw_frame {
    int64_t to[2];
    int32_t skip[2], keep[2], pad[2];
} lw_frame;
lw_frame lw_preparation_frame(const lw_preparation *p, int64_t h, int64_t w);

/* dst [height][width][channels] (not 0) from a decoded picture, which becomes gray or RGB first
 * where it is not (LW_EUNSUPPORTED: it cannot); of a form of u8. */
int lw_prepare_pixels(const lw_preparation *p, lw_raster im, uint8_t *dst);
static inline int lw_prepare(const lw_preparation *p, const lw_image *im, uint8_t *dst)
{
    return lw_prepare_pixels(p, lw_raster_of(im), dst);
}
/* The same of a form of floats, in [-1,1]: what the graph makes of a picture (that of a network whose
 * form is another then does not resize), for pictures of several sizes. */
int lw_prepare_f32(const lw_preparation *p, lw_raster im, float *dst);

#endif
