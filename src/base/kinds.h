/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerations and records that ir and kernels share, which may not see each other. */
#ifndef LW_BASE_KINDS_H
#define LW_BASE_KINDS_H

#include <stddef.h>

/*
 * The activation fused behind a product or a convolution; behind a normalisation up to SILU.
 *   RELU        max(x, 0)
 *   SILU        x / (1 + e^-x)
 *   GELU        x (1 + erf(x / sqrt 2)) / 2
 *   GELU_TANH   x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 *   QUICK_GELU  x / (1 + e^(-1.702 x))
 *   RELU6       min(max(x, 0), 6)
 *
 * Hendrycks and Gimpel, arXiv 1606.08415. Those between the two ReLUs are curves, computed in a
 * second pass over a finished tile.
 */
typedef enum lw_act {
    LW_ACT_NONE,
    LW_ACT_RELU,
    LW_ACT_SILU,
    LW_ACT_GELU,
    LW_ACT_GELU_TANH,
    LW_ACT_QUICK_GELU,
    LW_ACT_RELU6,
    LW_ACT_COUNT
} lw_act;
static inline int lw_act_is_curve(lw_act a)
{
    return a > LW_ACT_RELU && a < LW_ACT_RELU6;
}

/*
 * Element types of the operands of products and convolutions; sums and outputs are always f32.
 *   LW_NUM_BF16  bf16 x bf16, f32 sums
 *   LW_NUM_S8    u8 activations x s8 weights, exact s32 sums, scaled to f32 at the end
 *
 *   LW_NUM_BF16X3  f32 operands, each multiplied as a sum of three bf16, f32 sums: no type of values of its own, but how
 *                  those of LW_NUM_F32 are multiplied where bf16 is much faster (kernels/gemm/gemm.h)
 */
typedef enum lw_num {
    LW_NUM_F32,
    LW_NUM_BF16,
    LW_NUM_S8,
    LW_NUM_COUNT,
    LW_NUM_BF16X3 = LW_NUM_COUNT
} lw_num;

/*
 * How 3x3 convolutions of stride 1 and 2, and those behind nearest upsampling by two, are computed: with Winograd's
 * tiles where a fixed rule of type, shape and level says so, never, or wherever they apply.
 */
typedef enum lw_conv_mode {
    LW_CONV_MODE_AUTO,
    LW_CONV_MODE_DIRECT,
    LW_CONV_MODE_WINOGRAD,
} lw_conv_mode;

/* What lies between pixels, and how wide it reaches; formulas in kernels/resample. */
typedef enum lw_filter {
    LW_FILTER_BOX,
    LW_FILTER_BILINEAR,
    LW_FILTER_HAMMING,
    LW_FILTER_BICUBIC,
    LW_FILTER_LANCZOS,
    LW_FILTERS
} lw_filter;
extern const char *const lw_filter_name[LW_FILTERS];

/* How a picture gets another size: what each is stands in kernels/resample/resample_axis.h. The first
 * two are of 8-bit channels, the others of floats. */
typedef enum lw_resample_form {
    LW_RESAMPLE_PILLOW,
    LW_RESAMPLE_PILLOW_13,
    LW_RESAMPLE_FLOAT_AA,
    LW_RESAMPLE_TORCH,
    LW_RESAMPLE_TF_INCEPTION,
    LW_RESAMPLE_FORMS
} lw_resample_form;
extern const char *const lw_resample_form_name[LW_RESAMPLE_FORMS];
static inline int lw_resample_is_u8(lw_resample_form form)
{
    return form == LW_RESAMPLE_PILLOW || form == LW_RESAMPLE_PILLOW_13;
}
/* Float forms lack most filters: torch has bilinear and bicubic, tf-inception bilinear. */
static inline int lw_resample_has(lw_resample_form form, lw_filter filter)
{
    if (form == LW_RESAMPLE_TORCH)
        return filter == LW_FILTER_BILINEAR || filter == LW_FILTER_BICUBIC;
    return form != LW_RESAMPLE_TF_INCEPTION || filter == LW_FILTER_BILINEAR;
}

/* How the samples of a frame of video lie in memory; colours in kernels/pixels. Planes follow each
 * other without gaps; a half of an odd side is rounded up. */
typedef enum lw_pixels_form {
    LW_PIXELS_420,  /* planes Y, U, V; differences for 2 x 2 pixels */
    LW_PIXELS_422,  /* planes; for 2 pixels of a line */
    LW_PIXELS_444,  /* planes; for each pixel */
    LW_PIXELS_NV12, /* plane Y, then U V in turns; for 2 x 2 pixels */
    LW_PIXELS_YUYV, /* Y U Y V; for 2 pixels of a line; odd widths are padded by a Y and V */
    LW_PIXELS_GRAY, /* Y alone */
    LW_PIXELS_RGB,  /* [h][w][3], no luma: range and matrix do not matter */
    LW_PIXELS_FORMS
} lw_pixels_form;
typedef enum lw_pixels_matrix { LW_MATRIX_601, LW_MATRIX_709 } lw_pixels_matrix;
/* Of a frame of w x h pixels. */
size_t lw_pixels_form_bytes(lw_pixels_form form, size_t w, size_t h);

/* How far apart two rows are; formulas in kernels/pairs/pairs.h. */
typedef enum lw_distance { LW_DISTANCE_L1, LW_DISTANCE_L2, LW_DISTANCE_MODULUS } lw_distance;

/* What a diffusion model's network gives: the noise, the picture, sqrt(ab) noise - sqrt(1 - ab)
 * picture; of a rectified flow noise - picture. */
typedef enum lw_prediction {
    LW_PREDICT_EPSILON,
    LW_PREDICT_SAMPLE,
    LW_PREDICT_VELOCITY,
    LW_PREDICT_FLOW
} lw_prediction;

/* The numbers of a reverse step of diffusion; formulas in kernels/reverse/reverse.h. A graph, which
 * knows no double, holds them as i64[8], bit for bit. */
typedef struct lw_reverse {
    double a, s; /* x = a picture + s noise: sqrt(alpha_bar), sqrt(1 - alpha_bar) of diffusion */
    double c0, c1, c2, c3;
    double clip, limit; /* INFINITY: no bound */
} lw_reverse;

/* How the drift field is computed; formulas in kernels/drift/drift.h. */
typedef enum lw_drift_variant {
    LW_DRIFT_OFFICIAL,      /* the reference form */
    LW_DRIFT_PLAIN,         /* the paper's Algorithm 2: raw distances, no floor, nothing rescaled */
    LW_DRIFT_TAU_TIMES_DIM, /* an early public port's temperatures, for parity studies */
} lw_drift_variant;

/* Element type of the products behind the field's distances; everything else is f32 or wider. */
typedef enum lw_drift_products { LW_DRIFT_F32, LW_DRIFT_BF16 } lw_drift_products;

enum { LW_DRIFT_MAX_TAU = 8 };

/* A key whose groups are met in parts: all parts come to the first door, then all to the next. */
typedef enum lw_drift_door {
    LW_DRIFT_WHOLE,   /* no doors: the key is met at once */
    LW_DRIFT_SCALE,   /* adds to the sums behind S */
    LW_DRIFT_MOMENTS, /* S is known: adds to the sums behind m and lambda */
    LW_DRIFT_FIELD    /* both are known: F, dX and the statistics */
} lw_drift_door;

/* Sums over the groups met so far, as doubles, zeros at first: of w d, of w_u, of guesses of S and of
 * their weights; the greatest w_u; products V_a . V_b, a <= b. A graph, which knows no double, holds
 * them as i64, bit for bit. */
enum {
    LW_DRIFT_AT_D,
    LW_DRIFT_AT_W,
    LW_DRIFT_AT_GUESS,
    LW_DRIFT_AT_GUESS_W,
    LW_DRIFT_AT_MOST,
    LW_DRIFT_AT_MOMENTS,
    LW_DRIFT_STATE = LW_DRIFT_AT_MOMENTS + LW_DRIFT_MAX_TAU * (LW_DRIFT_MAX_TAU + 1) / 2
};
/* Numbers of them: behind these, where each slot has a scale of its own, the sums of w d of each. */
#define LW_DRIFT_STATE_OF(own_scale, slots) (LW_DRIFT_STATE + ((own_scale) ? (slots) : 0))

/* Numbers the field reports for K temperatures: S, sigma, loss, lambda[K], mean V^2 [K]. */
#define LW_DRIFT_STATS(k) (3 + 2 * (k))

#endif
