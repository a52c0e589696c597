/* SPDX-License-Identifier: Apache-2.0 */
/* What each kernel for GPUs is given: one struct by value, the same for the host, for nvcc and for
 * the emulating driver. */
#ifndef LW_CUDA_ARGS_H
#define LW_CUDA_ARGS_H

#include <stdint.h>

/* What changes from run to run: kernels read it from the device's memory, so that a CUDA graph can
 * be launched again. */
typedef struct lw_cuda_tick {
    uint64_t seed;
    uint32_t step, hole;
} lw_cuda_tick;

/* Division by `by` as a product, of what is not negative: n / by = ((n * mul >> 32) + (n & all)) >>
 * shift (Granlund, Montgomery: Division by invariant integers using multiplication, 1994); `all` is
 * ones by 1, whose mul does not fit, else 0. */
typedef struct lw_cuda_divider {
    int32_t by;
    uint32_t mul, all, shift;
} lw_cuda_divider;

/* ---- products ------------------------------------------------------------------------------ */

enum { LW_CUDA_TILE = 64, LW_CUDA_DEPTH = 16 };
/* products of few tiles: a block's rows and columns, and how much of K it takes at a time */
enum { LW_CUDA_FEW_ROWS = 16, LW_CUDA_FEW_COLUMNS = 32, LW_CUDA_FEW_DEPTH = 128 };
enum { LW_CUDA_MMA_DEPTH = 32 }; /* of K at a time in bf16 */

enum {
    LW_CUDA_FEW = 8,
    LW_CUDA_SHORT = 48
}; /* columns, and K ("depth"), up to which products have kernels of their own */

enum { LW_CUDA_HALO_WIDTH = 32 }; /* of pictures that have halo tiles, at most */
enum { LW_CUDA_CLUSTER = 8 };     /* blocks of a cluster, at most */
enum {
    LW_CUDA_PROJECT = 3,     /* chunks of 64 channels of a projection fetched together, at most */
    LW_CUDA_PROJECT_ALL = 9, /* and in all */
};

/* C [m][n] = A B: rows of A are pictures' pixels (implicit GEMM) or plain rows. */
typedef struct lw_cuda_product {
    void *y;
    const void *x, *w; /* f32; or bf16 x, and w of either */
    const float *bias, *image_bias;
    const void *residual; /* f32, or bf16 with residual_narrow */
    int64_t m;
    int32_t n, k;
    int32_t ldx, ldy, ld_residual;
    int32_t trans_x, trans_w; /* matmul: x is [k][m]; w is [n][k] */
    int32_t act;
    int32_t store; /* y is bf16 */
    int32_t w_narrow, residual_narrow;
    int32_t fixed;   /* no kernel of the CUDA graph writes w */
    int32_t w_pitch; /* > 0: w is [n][w_pitch]; packed, it is a multiple of eight, zeros behind k */
    int32_t image;   /* w is packed for halo tiles (product_packed_at) */
    int32_t kind;    /* mma_pack: product_kind of what reads y, f32 or bf16 with store; w is f32 */
    int32_t columns; /* mma_pack: columns that w has; the other n are zeros */
    int32_t
        chunks; /* bf16: in x, eight neighbours in K from a multiple of eight on lie side by side,
                       aligned */
    /* convolutions: the picture that is read, the one that is written, the filter */
    int32_t h, width, c, oh, ow;
    int32_t kh, kw, stride, pad_t, pad_l;
    /* tiles: a matrix is pictures of one pixel */
    int32_t backward;   /* the product is conv2d_dx */
    int32_t flat;       /* one tap: the pixel that is read is at the place of the one written */
    int32_t phases;     /* kinds of its pixels, each side; 1: all have the same taps */
    int32_t phase_rows; /* pixels of a kind; in halo tiles, positions up to the last pixel */
    /* a picture's width and height, of one kind of pixels or with the zeros of halo tiles; its
     * pixels of all kinds */
    lw_cuda_divider wide, high, pixels;
    /* > 0, in halo tiles: a 1x1 convolution of as many channels of other pixels (a projection
     * shortcut, He et al. 2016) is more of K, behind all of the product's own; packed likewise */
    int32_t project_c, ld_project;
    const void *project_x, *project_w;
    int32_t splits;       /* split-K: how many, whose partial sums are added in their order */
    int32_t own_splits;   /* those of the product's own K; the others are the projection's */
    int32_t split_blocks; /* each split has a block of its own, which is one of a cluster, or */
    float *partial;       /* writes its partial sums here */
    uint32_t *arrived;    /* blocks of a tile that have written them; zeros before and after */
    /* dropout of the sums after the bias; drop_rows 0: none */
    int32_t drop_rows; /* rows of a row id */
    float drop_scale;
    uint32_t drop_limit;
    uint64_t drop_stream;
    const lw_cuda_tick *tick;
    const int64_t *ids;
} lw_cuda_product;

typedef struct lw_cuda_upconv {
    float *y;
    const float *w;
    int64_t o, c;
} lw_cuda_upconv;

/* ---- normalisation, attention, softmax ------------------------------------------------------- */

typedef struct lw_cuda_norm {
    void *y;    /* f32, or bf16 with store */
    void *also; /* y in bf16 beside it; may be NULL */
    float *mean, *rstd;
    const void *x; /* f32, or bf16 with narrow, of pictures of several pixels */
    const float *gamma, *beta, *scale, *shift;
    int64_t hw;
    int32_t c, groups, act;
    int32_t rms; /* nothing is taken off x */
    float eps;
    int32_t store, narrow; /* y is bf16; x is */
    int32_t span;          /* groups of a block */
    int32_t fixed;         /* no kernel of the CUDA graph writes gamma and beta */
    int64_t rows;          /* layer_norm: of all samples */
    int32_t x_pitch, scale_pitch, shift_pitch;
} lw_cuda_norm;
enum { LW_CUDA_SPAN = 32 };      /* most groups of a block */
enum { LW_CUDA_NORM_KEPT = 32 }; /* elements of a thread */
enum {
    LW_CUDA_NORM_PARTS = 4
}; /* of a thread's sums, which threads of other blocks may have each */
enum { LW_CUDA_NORM_F32 = 256, LW_CUDA_NORM_BF16 = 512 }; /* threads of a block */
enum { LW_CUDA_NORM_PLACES = 1024 }; /* for their sums, 32 for each group or a multiple of it */

enum { LW_CUDA_HEAD = 512, LW_CUDA_QUERIES = 16, LW_CUDA_KEYS = 16 };
typedef struct lw_cuda_attention {
    void *o; /* f32, or bf16 with store */
    float *lse;
    const void *q, *k, *v; /* f32; bf16 of the kernel for those */
    int64_t q_sample, k_sample, v_sample;
    int32_t q_pitch, k_pitch, v_pitch;
    int32_t tq, tk, heads, hd;
    float scale, scale_2; /* of scores; the same to base 2 */
    /* > 0: tokens are places of pictures `width` x `height`, attended in squares of this side */
    int32_t window, width, height;
    int32_t store;
    int32_t tiles; /* flash: blocks of queries of a head of a sample or window */
} lw_cuda_attention;

typedef struct lw_cuda_softmax {
    float *y;
    const float *x;
    int64_t n;
} lw_cuda_softmax;

typedef struct lw_cuda_cross_entropy {
    float *loss, *lse;
    const float *x;
    const int32_t *label;
    int64_t n;
} lw_cuda_cross_entropy;

/* ---- elementwise and reductions --------------------------------------------------------------- */

enum { LW_CUDA_EW_IN = 10, LW_CUDA_EW_STEPS = 48, LW_CUDA_EW_THREADS = 128 };
/* Of a step a, b, c and `to` are places: operands first, then of results that anybody reads but the
 * next step. */
enum {
    LW_CUDA_EW_PLACES = 8,
    LW_CUDA_EW_LAST = 255
}; /* last: what the step before made; no place */
typedef struct lw_cuda_ew_step {
    uint8_t op, a, b, c;
    float imm;
} lw_cuda_ew_step;
typedef struct lw_cuda_ew {
    void *y; /* f32, or bf16 with store */
    const float *in[LW_CUDA_EW_IN];
    int64_t n, s, c;
    int32_t n_in, n_step;
    int32_t store, plain; /* plain: every operand is of the result's shape, or one element */
    uint8_t mode[16];
    uint8_t to[LW_CUDA_EW_STEPS];
    lw_cuda_ew_step step[LW_CUDA_EW_STEPS];
} lw_cuda_ew;

/* y [a][c] = scale * sum over r of x [a][r][c] */
typedef struct lw_cuda_reduce {
    float *y;
    const float *x;
    int64_t a, r, c;
    double scale;
} lw_cuda_reduce;

/* ---- moving ------------------------------------------------------------------------------------ */

/* rows of `width` words, `y_pitch` and `x_pitch` apart; of two parts each row has one behind the
 * other */
typedef struct lw_cuda_copy_part {
    uint32_t *y;
    const uint32_t *x;
    int64_t width, x_pitch;
} lw_cuda_copy_part;
typedef struct lw_cuda_copy {
    lw_cuda_copy_part part[2];
    int64_t rows, y_pitch;
    const lw_cuda_tick *tick; /* x begins at the row of the step, at most the last; NULL: at 0 */
    int64_t last;
    int32_t wide, hole; /* wide: everything is counted in pieces of four words */
} lw_cuda_copy;

/* y [b, i, j, k] = x [b, i * mul / div - lo[0], .., k - lo[2]], 0 outside */
typedef struct lw_cuda_space {
    float *y;
    const float *x;
    int64_t n; /* of y */
    int32_t oh, ow, oc, h, w, c;
    int32_t mul, div, lo[3];
    int32_t wide; /* channels are counted in pieces of four */
} lw_cuda_space;

typedef struct lw_cuda_patches {
    uint32_t *y;
    const uint32_t *x;
    int64_t n;
    int32_t k, across, run, back; /* patches of a row; words of a patch's row */
    int32_t wide, hole;           /* wide: words are counted in pieces of four */
} lw_cuda_patches;

typedef struct lw_cuda_pool {
    float *y;
    const float *x;
    int64_t n;
    int32_t h, w, c, oh, ow, k, stride, pad, inside, max;
} lw_cuda_pool;

typedef struct lw_cuda_embedding {
    float *y;
    const float *table;
    const int32_t *ids;
    int64_t rows, c, v;
} lw_cuda_embedding;

typedef struct lw_cuda_bag {
    float *y;
    const float *base, *table;
    const int32_t *ids;
    int64_t rows, c, v;
    int32_t k, period;
    uint32_t minus;
    int32_t hole;
} lw_cuda_bag;

/* rows of c channels in pieces of d; a token's row of the table has `pieces` of them */
typedef struct lw_cuda_rope {
    float *y;
    const float *x, *table;
    int64_t rows, tokens;
    int32_t c, d, pieces;
    float sign;
} lw_cuda_rope;

/* distances of rows of x [m][c] to rows of y [n][c] */
typedef struct lw_cuda_pairs {
    float *d;
    const float *x, *y;
    int64_t m, n;
    int32_t c, distance;
} lw_cuda_pairs;

/* mean and std of patches of ph x pw pixels, [b][h / ph][w / pw][c] of them */
typedef struct lw_cuda_stats {
    float *mean, *std;
    const float *x;
    int64_t n;
    int32_t h, w, c, ph, pw, hole;
} lw_cuda_stats;

/* ---- pixels ------------------------------------------------------------------------------------ */

/* y [outer][o][inner] = sum over j < count[o] of weight[o][j] x[outer][start[o] + j][inner] */
typedef struct lw_cuda_resize {
    float *y;
    const float *x, *weight;
    const int32_t *start, *count;
    int64_t outer, inner;
    int32_t from, to, taps, hole;
} lw_cuda_resize;

/* lw_pixels; frames of `bytes` */
typedef struct lw_cuda_frames {
    void *rgb;
    uint8_t *frame;
    int64_t n, bytes, w, h;
    int32_t form, narrow; /* narrow: rgb are bytes */
    int32_t lines, black, gray;
    int32_t yy, rv, gu, gv, bu;
    int32_t y_of[3], u_of[3], v_of[3];
} lw_cuda_frames;

/* f32 to bf16, bf16 to f32, f32 to u8, bf16 to u8 */
enum { LW_CUDA_TO_BF16, LW_CUDA_TO_F32, LW_CUDA_TO_U8, LW_CUDA_BF16_TO_U8 };
typedef struct lw_cuda_cast {
    void *y;
    const void *x;
    const float *quant;
    int64_t n;
    int32_t kind, wide; /* wide: four come at once */
} lw_cuda_cast;

/* ---- random and sampling ----------------------------------------------------------------------- */

typedef struct lw_cuda_random {
    void *y;
    const float *x;
    const int64_t *ids;
    int64_t rows, n; /* elements of a row */
    const lw_cuda_tick *tick;
    uint64_t stream;
    uint32_t below, limit;
    int32_t kind; /* lw_random_kind; 3: dropout */
    float scale;
} lw_cuda_random;

typedef struct lw_cuda_reverse {
    float *y;
    const float *x, *said, *noise;
    const double *numbers; /* lw_reverse */
    int64_t n;
    int32_t prediction, keep_eps;
} lw_cuda_reverse;

/* ---- drift ------------------------------------------------------------------------------------- */

enum { LW_CUDA_TAUS = 8, LW_CUDA_DRIFT_TILE = 128, LW_CUDA_DRIFT_DEPTH = 16 };
enum { LW_CUDA_DRIFT_AT_ONCE = 4 }; /* temperatures whose affinities are kept, most */
enum { LW_CUDA_DRIFT_ROWS = 8, LW_CUDA_DRIFT_COLUMNS = 64 }; /* of a block of sums */

/* What S makes of a variant (lw_drift_rule): logits are distances times -by, to base 2. */
typedef struct lw_cuda_drift_rule {
    double scale, v_unit;
    float by[LW_CUDA_TAUS];
    float mask, floor, inside, hole;
} lw_cuda_drift_rule;

/* One key: groups are (g, t) pairs. Targets have places: gen | uncond, zeros up to pos_at,
 * positives, zeros up to width; pos_at, width and depth (channels and zeros) are multiples of
 * LW_CUDA_DRIFT_DEPTH. The workspace, where two planes are the high and the low halves of values as
 * f16: */
typedef struct lw_cuda_drift {
    const float *x, *pos, *unc, *w_u;
    float *f, *dx, *loss, *report;
    uint16_t *points;         /* two planes [GT][width][depth]: targets, centred, over `unit` */
    uint16_t *turned;         /* two planes [GT][C][width]: the same, places side by side */
    uint16_t *affinity;       /* two planes [k_count][GT N][width]: times `unit`, see drift_two */
    float *unit;              /* [GT][width] powers of two */
    float *norm;              /* [GT][width] squared, of targets, centred */
    float *d;                 /* [GT N][width] */
    float *row_least;         /* [GT N] least distances, */
    float *row;               /* [K][GT N] halves of logarithms of sums */
    float *column_least;      /* [GT][width], the same over samples */
    float *column;            /* [K][GT][width] */
    float *part_least;        /* [parts][GT][width], the same of some of the samples */
    double *part_sum;         /* [parts][K][GT][width] */
    float *side;              /* [k_count][2][GT N] factors of V's terms */
    float *v;                 /* [K][2][GT N][C] terms: of negatives, of positives */
    double *part;             /* sums of blocks: of distances, of products of V */
    lw_cuda_drift_rule *rule; /* [scales] */
    double tau[LW_CUDA_TAUS];
    int64_t rows;                                       /* g t n */
    int64_t points_plane, turned_plane, affinity_plane; /* halves */
    int32_t g, n, np, nu, t, c, k;
    int32_t pos_at, width, depth;
    int32_t scales;                  /* 1, or t: a scale of each slot */
    int32_t s_in_sums;               /* each block of drift_sums makes S: there is one */
    int32_t parts;                   /* of the samples, in sums over them */
    int32_t moments;                 /* blocks of drift_moments for a temperature */
    int32_t k_first, k_count;        /* temperatures whose affinities there is room for */
    int32_t rows_only, variant, low; /* low: high points are bf16, over 1 */
} lw_cuda_drift;

#endif
