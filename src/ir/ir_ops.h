/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of the ops and the functions that append them. Those of equal nodes are equal byte by
 * byte: but for the leaves no struct may have a hole, whose bytes would be undefined.
 *
 * Shapes: B batch, H W space, C channels, T tokens or slots, M rows, K N matrix sizes. Activations
 * are channels last; linear weights are [N,K]; convolution weights are [O,KH,KW,C].
 */
#ifndef LW_IR_OPS_H
#define LW_IR_OPS_H

#include "base/kinds.h"
#include "ir/ir_graph.h"

/* ---- leaves ------------------------------------------------------------------------------- */

typedef struct lw_attr_input {
    const char *name;
    lw_type type;
} lw_attr_input;
lw_val lw_input(lw_graph *g, const char *name, lw_type type);

struct lw_params;
typedef struct lw_attr_param {
    const char *name;               /* full dotted name */
    const struct lw_params *params; /* the store it lives in */
    int32_t index;                  /* its number there */
    lw_type type;
    bool frozen; /* gradient passes through what it feeds, none is computed for it */
} lw_attr_param;

typedef struct lw_attr_const {
    lw_type type;
    const void *data; /* arena memory, lw_type_bytes */
    uint64_t hash;    /* of type and data */
} lw_attr_const;
/* The attributes of a parameter, NULL for other nodes; likewise those of a constant. */
const lw_attr_param *lw_node_param(const lw_node *n);
const lw_attr_const *lw_node_const(const lw_node *n);
/* The same leaf in another graph. */
lw_val lw_graph_copy_leaf(lw_graph *to, const lw_node *n);
lw_val lw_const(lw_graph *g, lw_type type, const void *data); /* copied */
lw_val lw_const_f32(lw_graph *g, float value);                /* f32[1] */
lw_val lw_zeros(lw_graph *g, lw_type type);

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* ---- elementwise -------------------------------------------------------------------------- */

typedef enum lw_ewop {
    LW_EW_NONE,
#define EW(name, arity, ref, body, slope) LW_EW_##name,
#include "ir/ewops.def"
#undef EW
    LW_EW_COUNT
} lw_ewop;

enum { LW_EW_MAX_INSTR = 48 };

/* How an operand is read for element (b, s, c) of the output seen as [B, S, C]. */
typedef enum lw_ew_mode {
    LW_EW_FULL,    /* x[b, s, c] */
    LW_EW_SCALAR,  /* x[0] */
    LW_EW_CHANNEL, /* x[c] */
    LW_EW_BATCH,   /* x[b] */
    LW_EW_BC,      /* x[b, c] */
    LW_EW_ROW,     /* x[b, s] */
} lw_ew_mode;

/* Registers: 0..n_in-1 are the operands, then one per instruction. The last instruction is output
 * 0. */
typedef struct lw_ew_step {
    uint8_t op; /* lw_ewop */
    uint8_t a, b, c;
    float imm; /* the value of a `konst` instruction */
} lw_ew_step;

typedef struct lw_attr_ew {
    lw_type type; /* of the output */
    int32_t n_step;
    uint8_t mode[LW_MAX_IN]; /* lw_ew_mode per operand */
    uint8_t hole[2];
    lw_ew_step step[LW_EW_MAX_INSTR];
} lw_attr_ew;

const char *lw_ewop_name(lw_ewop op);
int lw_ewop_arity(lw_ewop op);
/* [B, S, C] view of an elementwise output: B first dimension, C last, S the rest (1 when rank
 * < 3). */
void lw_ew_view(lw_type t, int64_t *b, int64_t *s, int64_t *c);

lw_val lw_ew1(lw_graph *g, lw_ewop op, lw_val a);
lw_val lw_ew2(lw_graph *g, lw_ewop op, lw_val a, lw_val b);
lw_val lw_ew3(lw_graph *g, lw_ewop op, lw_val a, lw_val b, lw_val c);
lw_val lw_add(lw_graph *g, lw_val a, lw_val b);
lw_val lw_sub(lw_graph *g, lw_val a, lw_val b);
lw_val lw_mul(lw_graph *g, lw_val a, lw_val b);
lw_val lw_div(lw_graph *g, lw_val a, lw_val b);
lw_val lw_scale(lw_graph *g, lw_val a, float k);   /* a * k */
lw_val lw_add_f32(lw_graph *g, lw_val a, float k); /* a + k */
lw_val lw_relu(lw_graph *g, lw_val a);
lw_val lw_relu6(lw_graph *g, lw_val a);
lw_val lw_silu(lw_graph *g, lw_val a);
lw_val lw_sqr(lw_graph *g, lw_val a);
lw_val lw_broadcast(lw_graph *g, lw_val a, lw_type type); /* a copy of a at the larger type */
/* The reverse of broadcasting: sums v (of some ew output's type) down to `type`, an operand's. */
lw_val lw_sum_to(lw_graph *g, lw_val v, lw_type type);

/* ---- element types ------------------------------------------------------------------------ */

/*
 * inputs: x, quant f32[2]? = {scale, zero point}, given when the result is u8:
 *   u8 = clamp(round(x / scale) + zero, 0, 255)
 *
 * Put into graphs by the precision pass, behind the gradient; not differentiable.
 */
typedef struct lw_attr_cast {
    int32_t to; /* lw_dtype */
} lw_attr_cast;
lw_val lw_cast(lw_graph *g, lw_val x, lw_dtype to, lw_val quant);

/* ---- matrices and convolutions ------------------------------------------------------------ */

/*
 * Activations of a product (input a or x; dy and x of a weight gradient) are f32, bf16, or u8 with
 * an input quant f32[2] = {scale, zero point} behind the residual (forward products only). Weights,
 * bias, residual and results are f32 whatever they are; packing rounds the weight to the same type.
 * Where `store` says so, products have results of bf16, those of f32 where the device makes such; the residual of others may
 * be bf16 anyway. Products of bf16 or u8 also have results of u8, the bytes that a cast with the quant in LW_STORE_QUANT would make.
 */
enum { LW_STORE_QUANT = 8 }; /* input of matmul, conv2d and conv2d_dx */

/* inputs: a, b, bias[N]?, residual[M,N]?, quant[2]?. a is [.., K] ([.., M] rows when trans_a), b is
 * [N,K] when trans_b, else [K,N]. trans_a needs rank-2 views: rows are all dimensions but
 * the last. */
typedef struct lw_attr_matmul {
    int32_t trans_a, trans_b;
    int32_t act;                /* lw_act */
    int32_t packed_n, packed_k; /* set when b is a packed weight: its N and K */
    int32_t store;              /* lw_dtype of the result: 0 or f32, bf16, u8 */
    uint64_t drop_stream;       /* with input 5, row ids: dropout of the sums, behind the bias */
    float drop;                 /* its probability */
    int32_t hole;
} lw_attr_matmul;
lw_val lw_matmul(lw_graph *g, lw_val a, lw_val b, bool trans_a, bool trans_b);
/* x [.., K], w [N,K], bias [N] or absent -> [.., N] */
lw_val lw_linear_op(lw_graph *g, lw_val x, lw_val w, lw_val bias);

/* inputs: x, w, bias[O]?, residual?, quant[2]?, image bias [B,O]? (a row added to all pixels of an
 * image), projected [B,OH,OW,P] and its weight [O,1,1,P]? (a 1x1 convolution of it is added, plan_project.c); conv2d_dx: dy, w, residual?, bias[C]?, quant? (with u8 dy). out = floor((in + pad_lo +
 * pad_hi - k) / stride) +
 * 1 */
typedef struct lw_attr_conv {
    int32_t kh, kw, stride;
    int32_t pad_t, pad_l, pad_b, pad_r;
    int32_t act;   /* lw_act */
    int32_t h, w;  /* input space (conv2d_dx makes it, conv2d has it in x) */
    int32_t c, o;  /* input and output channels */
    int32_t store; /* as of matmul; conv2d and conv2d_dx only */
} lw_attr_conv;
enum {
    LW_CONV_PROJECT_X = 6,
    LW_CONV_PROJECT_W
}; /* inputs of conv2d: what is projected, by what */
lw_val lw_conv2d_op(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, int pad);
/* pad: top, left, bottom, right. */
lw_val lw_conv2d_pad(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, const int pad[4]);
/* PyTorch's ConvTranspose2d: x [B,H,W,C], w [C,KH,KW,O], as its [C,O,KH,KW] lies in a store;
 * out = (in - 1) stride - 2 pad + k + output_pad. It is the conv2d_dx of the convolution that leads
 * from the result back to x. */
lw_val lw_conv_transpose2d_op(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, int pad,
                              int output_pad);
/* Every channel with its own filter, w [C,KH,KW,1]; inputs and attributes as those of conv2d and
 * conv2d_dx (o = c; no quant, no image bias). */
lw_val lw_depthwise_op(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, const int pad[4]);
/* One direction of what TensorFlow calls SAME padding: as much as makes ceil(in / stride) outputs,
 * the odd one behind (of an even size at stride 2: all of it). */
void lw_conv_pads_same(int32_t in, int32_t kernel, int32_t stride, int32_t *before, int32_t *after);

/* Convolutions (depthwise or not) one behind the other, each with a bias and an activation. Inputs: x,
 * residual? (of the last), then for each packed w, bias?. The output is that of the last. */
enum { LW_CHAIN_MAX = 3 };
typedef struct lw_attr_conv_chain {
    int32_t n;
    int32_t depthwise[LW_CHAIN_MAX]; /* 0 or 1 */
    lw_attr_conv stage[LW_CHAIN_MAX];
} lw_attr_conv_chain;

typedef struct lw_attr_pack {
    int32_t kind;   /* the device's own numbering */
    int32_t p[9];   /* what that kind needs to know; nine, so that the struct has no hole */
    int64_t floats; /* size of the result */
} lw_attr_pack;

/* ---- normalisation, attention, softmax ----------------------------------------------------- */

/* inputs: x (f32, or bf16 of several pixels), gamma[C]?, beta[C]?, scale[B,C]?, shift[B,C]?, quant[2]? (with store u8, as in
 * cast) */
typedef struct lw_attr_norm {
    int32_t groups;
    int32_t act; /* lw_act */
    float eps;
    int32_t store; /* lw_dtype of y: 0 or f32, bf16, u8 */
    int32_t rms;   /* 1: RMSNorm, nothing is taken off x and the mean is 0 */
    int32_t also;  /* LW_BF16: output 3 is y in bf16 beside the f32 (LayerNorms only); else 0 */
} lw_attr_norm;
/* Is a norm of x one of rows: samples of one pixel, one group, no scale, no activation? */
bool lw_norm_is_layer_norm(lw_type x, const lw_attr_norm *a, bool has_scale);
lw_val lw_group_norm_op(lw_graph *g, lw_val x, lw_val gamma, lw_val beta, lw_val scale,
                        lw_val shift, int groups, float eps, lw_act act);
/* Each row of x [.., C] normalised alone (+ residual of x's shape, or absent): a group norm of
 * samples of one pixel and one group, whose shift is the residual. */
lw_val lw_layer_norm_op(lw_graph *g, lw_val x, lw_val gamma, lw_val beta, lw_val residual,
                        float eps);
/* Zhang and Sennrich 2019: each row of x [.., C] divided by the root of its mean square, times gamma
 * [C] (absent: 1). */
lw_val lw_rms_norm_op(lw_graph *g, lw_val x, lw_val gamma, float eps);

/* inputs: q|k|v side by side [B,T,3C]; or q [B,Tq,C] and k|v [B,Tk,2C]; or q, k [B,Tk,C] and v.
 * -> [B,Tq,C]; head h is channels h C / heads and on. */
typedef struct lw_attr_attention {
    int32_t heads;
    int32_t num;   /* lw_num of the products' operands: F32, or BF16, which q, k and v are then, and
                      for the gradient o and do */
    int32_t store; /* lw_dtype of the result: 0 or f32; bf16 with num BF16 */
    /* > 0: tokens are places of pictures `width` wide, row by row, and one at (y, x) attends those
     * alone at (i, j) with i / window = y / window and j / window = x / window: squares side by side
     * from the first place on, cut off at the picture's ends. Without a gradient. */
    int32_t window, width;
} lw_attr_attention;
/* Pairs of a query and a key it attends, of one head and sample of so many queries and keys. */
double lw_attention_pairs(const lw_attr_attention *a, int32_t queries, int32_t keys);
/* Attention of n operands, as below; over pictures of 1,024 places or more and larger than a window
 * with a->window, over others without. */
enum { LW_ATTENTION_WINDOWED = 1024 };
lw_val lw_attention_places(lw_graph *g, const lw_val *x, int n, const lw_attr_attention *a);
lw_val lw_attention(lw_graph *g, lw_val qkv, int heads);
lw_val lw_cross_attention(lw_graph *g, lw_val q, lw_val kv, int heads);
lw_val lw_attention_qkv(lw_graph *g, lw_val q, lw_val k, lw_val v, int heads);

/*
 * Rotary positions of x [B,T,C], table [T,P,D] (kernels/attention/attention.h): C is a multiple of P D, and
 * heads repeat the P pieces of a token. One piece of a head's size turns it as a whole (tokens in a row);
 * two of half that size, by rows and by columns, are the axes of a picture. The table gets no gradient.
 */
typedef struct lw_attr_rope {
    int32_t back; /* 1: turned back, which is the gradient */
} lw_attr_rope;
lw_val lw_rope(lw_graph *g, lw_val x, lw_val table);

lw_val lw_softmax(lw_graph *g, lw_val x);
/* [M,K], i32[M] -> [M]; a negative label skips its row (0), one of K or more makes it NaN. */
lw_val lw_cross_entropy(lw_graph *g, lw_val logits, lw_val labels);

/* ---- reductions and shapes ----------------------------------------------------------------- */

typedef enum lw_reduce_over {
    LW_OVER_ALL,    /* -> [1] */
    LW_OVER_LAST,   /* [.., C] -> [.., 1] */
    LW_OVER_ROWS,   /* [.., C] -> [C] */
    LW_OVER_MIDDLE, /* [B, .., C] -> [B, C] */
    LW_OVER_BATCH,  /* [B, ..] -> [B]: everything but the first dimension */
} lw_reduce_over;
typedef struct lw_attr_reduce {
    int32_t over;
    int32_t mean;
} lw_attr_reduce;
lw_val lw_sum(lw_graph *g, lw_val x, lw_reduce_over over);
lw_val lw_mean(lw_graph *g, lw_val x, lw_reduce_over over);

typedef struct lw_attr_type {
    lw_type type;
} lw_attr_type;
lw_val lw_reshape(lw_graph *g, lw_val x, lw_type type);

typedef struct lw_attr_axis {
    int32_t axis;
    int32_t begin, end; /* slice only */
} lw_attr_axis;
lw_val lw_concat(lw_graph *g, lw_val a, lw_val b, int axis); /* negative axis counts from the end */
lw_val lw_slice(lw_graph *g, lw_val x, int axis, int begin, int end);

/* zeros before and after each of H, W, C of [B,H,W,C] (negative values crop) */
typedef struct lw_attr_pad {
    int32_t lo[3], hi[3];
} lw_attr_pad;
lw_val lw_pad(lw_graph *g, lw_val x, const int lo[3], const int hi[3]);

typedef struct lw_attr_factor {
    int32_t k;
    int32_t h, w; /* subsample_grad: the space made */
} lw_attr_factor;
lw_val lw_subsample(lw_graph *g, lw_val x, int stride);
typedef struct lw_attr_patches {
    int32_t k;
    int32_t h, w;   /* back: the space made */
    int32_t pad[4]; /* else: zeros around the picture, top, left, bottom, right */
} lw_attr_patches;
/* [B,H,W,C] -> [B, H / k * W / k, k k C]: rows of a product that is a convolution whose stride is its
 * kernel. H and W, of padded ones with the zeros around them, are multiples of k. */
lw_val lw_patches(lw_graph *g, lw_val x, int k);
lw_val lw_patches_padded(lw_graph *g, lw_val x, int k, const int pad[4]);
/* The way back, to [B,h,w,C]. */
lw_val lw_patches_back(lw_graph *g, lw_val rows, int k, int h, int w);
lw_val lw_upsample(lw_graph *g, lw_val x, int factor);

/*
 * torch.nn.functional.interpolate of [B,H,W,C] with align_corners=False, or TensorFlow 1's
 * resize_bilinear; weights in kernels/resample/resample_axis.h. An explicit scale is its scale_factor: the coordinates follow
 * it instead of h / H, w / W, where h = floor(H scale[0]), w = floor(W scale[1]). Differentiable;
 * x may be a parameter.
 *
 *   size=(h, w), bilinear        lw_resize(g, x, (lw_attr_resize){.h = h, .w = w,
 *                                          .form = LW_RESAMPLE_TORCH, .filter = LW_FILTER_BILINEAR})
 *   antialias=True               .. .form = LW_RESAMPLE_FLOAT_AA
 *   scale_factor=(a, b)          .. .h = floor(H a), .w = floor(W b), .scale = {a, b}
 *
 * Bicubic has a = -0.75, antialiased -0.5, as there.
 */
typedef struct lw_attr_resize {
    int32_t h, w;    /* the space made */
    int32_t form;    /* lw_resample_form: torch, float-aa or tf-inception */
    int32_t filter;  /* lw_filter that the form has */
    double scale[2]; /* of h and of w, both or neither; 0: none given */
} lw_attr_resize;
lw_val lw_resize(lw_graph *g, lw_val x, lw_attr_resize to);

/* A frame of video of w x h pixels; kernels/pixels/pixels.h says how it becomes RGB and how RGB
 * becomes one. Neither is differentiable. */
typedef struct lw_attr_pixels {
    int32_t form, matrix; /* lw_pixels_form, lw_pixels_matrix */
    int32_t full_range;   /* 0 or 1 */
    int32_t w, h;
    int32_t to; /* frame_to_rgb: lw_dtype, f32 in [-1,1] or the bytes themselves */
} lw_attr_pixels;
/* u8[B, lw_pixels_form_bytes] -> [B,h,w,3], and f32[B,h,w,3] back. */
lw_val lw_frame_to_rgb(lw_graph *g, lw_val frames, lw_attr_pixels a);
lw_val lw_rgb_to_frame(lw_graph *g, lw_val rgb, lw_attr_pixels a);

typedef struct lw_attr_pool {
    int32_t k, stride, pad;
    int32_t max;    /* 1 max, 0 average */
    int32_t inside; /* of an average: 1 divides by the pixels inside the picture, 0 by k*k always
                       (PyTorch's count_include_pad) */
    int32_t h, w;   /* the input space, for the gradient */
} lw_attr_pool;
lw_val lw_pool2d(lw_graph *g, lw_val x, int k, int stride, int pad, bool max);
/* The average of the pixels of a window that lie inside the picture. */
lw_val lw_mean_inside(lw_graph *g, lw_val x, int k, int stride, int pad);

lw_val lw_embedding(lw_graph *g, lw_val table, lw_val ids); /* [V,C], i32[B] -> [B,C] */

/*
 * inputs: table [V,C], ids i32 of R * k numbers, base [R,C]?
 *   y[r] = base[r] + sum over j < k, ascending, of sign(j) table[ids[r, j]]
 *
 * sign(j) is minus where bit j % period of `minus` is set. Id 0 and ids outside the table add
 * nothing, and row 0 never gets a gradient (PyTorch's padding_idx 0).
 */
typedef struct lw_attr_bag {
    int32_t k;      /* ids a row */
    int32_t period; /* 1 .. 32 */
    uint32_t minus;
    lw_type table; /* embedding_bag_grad: what it makes; else zero */
} lw_attr_bag;
lw_val lw_embedding_bag(lw_graph *g, lw_val table, lw_val ids, lw_val base, int32_t k,
                        int32_t period, uint32_t minus); /* -> [R,C] */

/* ---- random -------------------------------------------------------------------------------- */

typedef enum lw_random_kind { LW_RANDOM_NORMAL, LW_RANDOM_UNIFORM, LW_RANDOM_BELOW } lw_random_kind;
/* input: rows i64[B]. Stream: hash of the name; draws depend on (seed, stream, tick step, row)
 * only. */
typedef struct lw_attr_random {
    int32_t kind;
    int32_t below;   /* LW_RANDOM_BELOW: i32 in [0, below) */
    uint64_t stream; /* lw_hash_name of the dotted name */
    lw_type type;    /* [B, ..]; f32, or i32 for BELOW */
} lw_attr_random;
lw_val lw_random(lw_graph *g, const char *stream, lw_random_kind kind, int32_t below, lw_type type,
                 lw_val rows);

typedef struct lw_attr_dropout {
    float p; /* probability of dropping */
    int32_t hole;
    uint64_t stream;
} lw_attr_dropout;
/* x [B, ..], rows i64[B]; the stream is named by the current scope. p == 0 returns x. */
lw_val lw_dropout(lw_graph *g, lw_val x, lw_val rows, float p);

/* ---- sampling ------------------------------------------------------------------------------ */

/* Row k of a table [N, ..] in a run whose tick has step k; the last one behind it. [N] -> [1] */
lw_val lw_at_step(lw_graph *g, lw_val table);

/* inputs: x, y, numbers i64[8] (the bits of a struct lw_reverse), noise?; kernels/reverse/reverse.h
 * says what is computed. Not differentiable. */
typedef struct lw_attr_reverse {
    int32_t prediction; /* lw_prediction */
    int32_t keep_eps;
} lw_attr_reverse;
lw_val lw_reverse_step_op(lw_graph *g, lw_val x, lw_val y, lw_val numbers, lw_val noise,
                          lw_prediction prediction, bool keep_eps);

/* ---- distances ----------------------------------------------------------------------------- */

typedef struct lw_attr_pairs {
    int32_t distance; /* lw_distance */
} lw_attr_pairs;
/* [M,C], [N,C] -> [M,N]; kernels/pairs/pairs.h has the formulas. */
lw_val lw_pair_distance(lw_graph *g, lw_val x, lw_val y, lw_distance distance);

/* ---- features and drift -------------------------------------------------------------------- */

enum {
    LW_STAT_MEAN,
    LW_STAT_STD,
    LW_STAT_MEAN2,
    LW_STAT_STD2,
    LW_STAT_MEAN4,
    LW_STAT_STD4,
    LW_STATS
};
/* x [B,H,W,C] -> out[LW_STATS]: [B,1,C] [B,1,C] [B,HW/4,C] x2 [B,HW/16,C] x2. std = sqrt(var +
 * 1e-6). */
void lw_feature_stats(lw_graph *g, lw_val x, lw_val out[LW_STATS]);

/* inputs: gen [G*N,T,C], pos [G*Np,T,C], uncond [G*Nu,T,C]?, weight [G]?, with a door state
 * i64[LW_DRIFT_STATE_OF(own_scale, slots)], heat [1]?, above 0: temperatures are tau times it */
typedef struct lw_attr_drift {
    double tau[LW_DRIFT_MAX_TAU];
    int32_t groups, n, np, nu, slots, c;
    int32_t n_tau;
    int32_t normalize_over_x;
    int32_t variant;  /* lw_drift_variant */
    int32_t products; /* lw_drift_products */
    int32_t door;     /* lw_drift_door: groups are some of `whole` ones */
    int32_t whole;
    int32_t own_scale; /* 1: S of each slot, not one of the key */
    int32_t hole;
} lw_attr_drift;
typedef struct lw_drift_out {
    lw_val loss;  /* [1] */
    lw_val dx;    /* dloss/dgen, closed form, same type as gen */
    lw_val stats; /* [LW_DRIFT_STATS(n_tau)]: S, sigma, loss, lambda[], mean V^2 [] */
    lw_val field; /* F, same type as gen */
    lw_val state; /* with a door: the sums with those of these groups; at the first two only this */
} lw_drift_out;
lw_drift_out lw_drift_field(lw_graph *g, lw_val gen, lw_val pos, lw_val uncond, lw_val weight,
                            const lw_attr_drift *attr);
lw_drift_out lw_drift_through(lw_graph *g, lw_val gen, lw_val pos, lw_val uncond, lw_val weight,
                              lw_val state, lw_val heat, const lw_attr_drift *attr);

/* ---- gradients ------------------------------------------------------------------------------ */

/* Appends the VJP of y with cotangent dy for each of wrt[]; din[i] is invalid where y does not
 * depend on it. y and dy hold n_y values each. (plan/plan_grad.c) */
void lw_grad(lw_graph *g, const lw_val *y, const lw_val *dy, int n_y, const lw_val *wrt,
             lw_val *din, int n_wrt);

#pragma GCC diagnostic pop

#endif
