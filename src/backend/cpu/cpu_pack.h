/* SPDX-License-Identifier: Apache-2.0 */
/* Private to backend/cpu: how a weight becomes what a product's kernel reads. */
#ifndef LW_CPU_PACK_H
#define LW_CPU_PACK_H

#include "backend/cpu/cpu_private.h"

/* The first member of the records of products and of the pack op. */
typedef struct cpu_pack {
    const lw_kernels *k;
    lw_num num; /* of the operands */
    bool conv;
    lw_conv_shape shape; /* conv: of one image or of the batch, it does not matter */
    lw_conv_pass pass;
    int tile; /* conv: 0, side and layout of Winograd's tiles (lw_winograd_layout), or CPU_RESCALE */
    ptrdiff_t N, K, stride_n, stride_k; /* element (n, k) at n stride_n + k stride_k; of a
                                           convolution k counts taps and channels together */
    size_t scale_at;                    /* byte offset of the N scales of an s8 weight */
} cpu_pack;

/* As a tile: the tiles of conv_rescale.h. No side and layout is as large. */
enum { CPU_RESCALE = 64 };
/* How a product is multiplied. */
typedef struct cpu_way {
    lw_num num;
    int tile; /* see cpu_pack */
} cpu_way;
/* Values of num: types, and how f32 is multiplied where it is split. */
enum { CPU_NUMS = LW_NUM_BF16X3 + 1 };
/* The operand type that goes with activations of a dtype. */
lw_num lw_cpu_num(lw_dtype t);
/* How a matrix product over activations of type x, and N columns, multiplies them. No bit of a row may depend on how many
 * there are, so the first dimension does not count: the batch. */
lw_num lw_cpu_product_num(const lw_kernels *k, lw_type x, ptrdiff_t N);
/* The convolution of a node, of so many images, with `upsampling`, which its attributes alone (lw_cpu_conv_shape) do not tell. */
lw_conv_shape lw_cpu_node_conv_shape(const lw_graph *g, const lw_node *n, int32_t batch);
/* The same of a convolution over activations of a dtype, and its tiles. */
cpu_way lw_cpu_conv_way(const lw_device *d, lw_dtype t, const lw_conv_shape *s, lw_conv_pass pass);
cpu_pack lw_cpu_pack_product(const lw_kernels *k, lw_num num, ptrdiff_t N, ptrdiff_t K,
                             bool rows_are_n);
/* tile: see cpu_pack. */
cpu_pack lw_cpu_pack_conv(const lw_kernels *k, lw_num num, const lw_conv_shape *s,
                          lw_conv_pass pass, int tile);
/* That of the product whose weight this node packs: the one that reads it may have fewer images. */
cpu_way lw_cpu_packed_way(const lw_node *pack);
/* Packed weight, and scales behind it. */
size_t lw_cpu_pack_bytes(const cpu_pack *p);
/* Phases that pack input 1 into the step's workspace: for weights that inputs have a part in. The
 * step's record starts with a cpu_pack. */
void lw_cpu_pack_in_step(cpu_lower *c, const cpu_pack *p);
/* What forward kernels want to know of u8 activations: pair is {scale, zero}. */
static inline lw_quant lw_cpu_quant(const cpu_pack *p, const float *pair, const void *packed)
{
    return (lw_quant){.a_scale = pair[0],
                      .a_zero = (int32_t)pair[1],
                      .b_scale = (const float *)((const char *)packed + p->scale_at)};
}

#endif
