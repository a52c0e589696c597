/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ew: elementwise tile programs. A chain of elementwise operations is a short list of instructions
 * run tile by tile (tiles stay in L1), so that a chain of k operations reads and writes memory
 * once.
 *
 * The output is seen as [B, S, C]; an operand is read for element (b, s, c) by its mode. Everything
 * is f32. Registers: 0 .. n_in-1 are the operands, n_in + i is the result of instruction i. Every
 * output is full. Each element's result depends on its own operands only and has the same bits on
 * AVX2 and AVX-512, for any range and tile; ref computes in double and rounds once.
 *
 * Cost: 4 bytes an element for each full operand and for the output, whatever the length of the
 * program. Bound by memory while a program is short, by its transcendental functions when it has
 * any; it has no figure of its own.
 */
#ifndef LW_KERNELS_EW_H
#define LW_KERNELS_EW_H

#include <stddef.h>
#include <stdint.h>

enum { LW_EW_MAX_OPERANDS = 16, LW_EW_MAX_STEPS = 64, LW_EW_MAX_OUTPUTS = 8 };

/* Operation codes: the rows of ir/ewops.def, counted from 1 (as lw_ewop of ir). */
enum {
    LW_TILE_NONE,
#define EW(name, arity, ref, body, slope) LW_TILE_##name,
#include "ir/ewops.def"
#undef EW
    LW_TILE_OPS
};

/* Operand modes, numbered as lw_ew_mode of ir. */
enum {
    LW_TILE_FULL,    /* x[b, s, c] */
    LW_TILE_SCALAR,  /* x[0] */
    LW_TILE_CHANNEL, /* x[c] */
    LW_TILE_BATCH,   /* x[b] */
    LW_TILE_BC,      /* x[b, c] */
    LW_TILE_ROW,     /* x[b, s] */
    LW_TILE_MODES
};

typedef struct lw_ew_instr {
    uint8_t op;      /* LW_TILE_<name> */
    uint8_t a, b, c; /* registers; ignored beyond the arity */
    float imm;       /* the value of `konst` */
} lw_ew_instr;

typedef struct lw_ew_program {
    int32_t n_in, n_instr, n_out;
    uint8_t mode[LW_EW_MAX_OPERANDS];
    lw_ew_instr instr[LW_EW_MAX_STEPS];
    uint8_t out[LW_EW_MAX_OUTPUTS]; /* the register each output receives */
    /* set by lw_ew_prepare */
    int32_t n_slot;                /* temporaries alive at once */
    uint8_t slot[LW_EW_MAX_STEPS]; /* where instruction i leaves its result: slot, or 255 none */
    uint8_t
        last[LW_EW_MAX_OPERANDS + LW_EW_MAX_STEPS]; /* last instruction that reads the register */
} lw_ew_program;

typedef struct lw_ew_shape {
    ptrdiff_t b, s, c;
} lw_ew_shape;

/* Checks the program and assigns temporaries; call once before run. LW_ESHAPE when a count,
 * operation, mode or register is out of range. */
int lw_ew_prepare(lw_ew_program *p);
/* Operand count of an operation code. */
int lw_ew_arity(int op);

/* out[k][e] for flat elements e in [begin, end) of B*S*C. An output may be the same memory as a
 * FULL operand (not overlap it otherwise); outputs are distinct. */
typedef void lw_ew_run_fn(float *const *out, const float *const *in, const lw_ew_program *p,
                          const lw_ew_shape *shape, ptrdiff_t begin, ptrdiff_t end);
/* y[i] = (float)x[i] for i in [begin, end). */
typedef void lw_ew_from_u8_fn(float *y, const uint8_t *x, ptrdiff_t begin, ptrdiff_t end);
typedef void lw_ew_from_i32_fn(float *y, const int32_t *x, ptrdiff_t begin, ptrdiff_t end);

struct lw_ew_kernels {
    lw_ew_run_fn *run;
    lw_ew_from_u8_fn *from_u8;
    lw_ew_from_i32_fn *from_i32;
};

#define K(family, isa, field, function) \
    extern __typeof__(*((struct lw_ew_kernels *)0)->field) function;
#include "kernels/ew/ew.def"
#undef K

#endif
