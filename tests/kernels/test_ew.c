/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise tile programs: every operation, every operand mode, odd shapes, aliasing, special
 * values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static const char *const names[LW_TILE_OPS] = {
#define EW(name, arity, ref, body, slope) [LW_TILE_##name] = #name,
#include "ir/ewops.def"
#undef EW
};

static void must_prepare(lw_ew_program *p)
{
    LW_ASSERT(lw_ew_prepare(p) == 0, "%s", lw_errmsg());
}

static void run(check *t, float *const *out, const float *const *in, const lw_ew_program *p,
                lw_ew_shape s, ptrdiff_t begin, ptrdiff_t end)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    k.ew.run(out, in, p, &s, begin, end);
}

/* Each operation alone, each set of one-value operands, against the double reference. */
static void each_op(check *t)
{
    static const struct {
        int op;
        double lo, hi;
    } domain[] = {{LW_TILE_sqrt, 0, 9},        {LW_TILE_rsqrt, 0.01, 9}, {LW_TILE_log, 1e-6, 5},
                  {LW_TILE_recip, 0.1, 4},     {LW_TILE_div, 0.1, 4},    {LW_TILE_exp, -20, 20},
                  {LW_TILE_softplus, -30, 30}, {LW_TILE_sin, -100, 100}, {LW_TILE_cos, -100, 100}};
    for (int op = LW_TILE_copy; op < LW_TILE_OPS; op++) {
        double lo = -6, hi = 6;
        for (size_t i = 0; i < LW_COUNT(domain); i++)
            if (domain[i].op == op)
                lo = domain[i].lo, hi = domain[i].hi;
        int arity = lw_ew_arity(op);
        for (int one = 0; one < 1 << arity; one++) {
            int64_t n = 1 + (int64_t)check_below(t, 300);
            lw_ew_program p = {.n_in = arity, .n_instr = 1, .n_out = 1};
            p.instr[0] = (lw_ew_instr){.op = (uint8_t)op, .a = 0, .b = 1, .c = 2};
            p.out[0] = (uint8_t)arity;
            const float *in[3];
            for (int i = 0; i < arity; i++) {
                p.mode[i] = one >> i & 1 ? LW_TILE_SCALAR : LW_TILE_FULL;
                in[i] = check_in(t, one >> i & 1 ? 1 : n, i & 1, lo, hi);
            }
            must_prepare(&p);
            float *got = check_out(t, n, 1), *want = check_out(t, n, 0);
            lw_ew_shape s = {1, n, 1};
            run(t, &got, in, &p, s, 0, n);
            lw_ew_run_ref(&want, in, &p, &s, 0, n);
            check_close_f(t, got, want, n, (check_tol){.abs = 4e-7, .rel = 4e-7},
                          "%s one=%d n=%lld", names[op], one, (long long)n);
            check_next(t);
        }
    }
}

/* NaN, infinities, zeros and denormals through every unary operation and max, min, select. */
static void special_values(check *t)
{
    static const float value[] = {NAN,     INFINITY, -INFINITY, 0.0f,   -0.0f,  1e-40f,
                                  -1e-40f, 1e-38f,   3e38f,     -3e38f, 100.0f, -100.0f,
                                  1.0f,    -1.0f,    88.7f,     -103.0f};
    enum { N = LW_COUNT(value) };
    for (int op = LW_TILE_copy; op < LW_TILE_OPS; op++) {
        if (op == LW_TILE_sin || op == LW_TILE_cos)
            continue; /* their domain is |x| <= 1e5 */
        for (int shift = 0; shift < N; shift++) {
            float *in[3] = {check_out(t, N, 0), check_out(t, N, 1), check_out(t, N, 0)};
            for (int i = 0; i < N; i++) {
                in[0][i] = value[i];
                in[1][i] = value[(i + shift) % N];
                in[2][i] = value[(i + 2 * shift + 1) % N];
            }
            lw_ew_program p = {.n_in = 3, .n_instr = 1, .n_out = 1, .out = {3}};
            p.instr[0] = (lw_ew_instr){.op = (uint8_t)op, .a = 0, .b = 1, .c = 2};
            must_prepare(&p);
            float *got = check_out(t, N, 0), *want = check_out(t, N, 0);
            const float *const *const_in = (const float *const *)in;
            lw_ew_shape s = {1, N, 1};
            run(t, &got, const_in, &p, s, 0, N);
            lw_ew_run_ref(&want, const_in, &p, &s, 0, N);
            check_close_f(t, got, want, N, (check_tol){.abs = 1e-37, .rel = 4e-6}, "%s shift=%d",
                          names[op], shift);
            check_next(t);
            if (lw_ew_arity(op) == 1)
                break;
        }
    }
}

/* Curves and their slopes far out: what they tend to, up to the largest float, and slopes behind it.
 * (A curve itself is -inf times 0 at -inf, no number, as PyTorch has it.) */
static void far_out(check *t)
{
    static const struct {
        int op;
        bool slope;
    } curve[] = {{LW_TILE_silu, false},       {LW_TILE_silu_grad, true},
                 {LW_TILE_gelu, false},       {LW_TILE_gelu_grad, true},
                 {LW_TILE_gelu_tanh, false},  {LW_TILE_gelu_tanh_grad, true},
                 {LW_TILE_quick_gelu, false}, {LW_TILE_quick_gelu_grad, true}};
    static const float size[] = {1e3f,  9.9e3f, 1e4f,  1.1e4f, 1e6f,  1e10f,   1e12f,   1e13f,
                                 1e19f, 1e20f,  1e25f, 1e38f,  2e38f, 3.4e38f, INFINITY};
    enum { N = 2 * LW_COUNT(size) + 1 };
    for (size_t c = 0; c < LW_COUNT(curve); c++) {
        float *in = check_out(t, N, 1), *got = check_out(t, N, 0), *want = check_out(t, N, 1);
        lw_ew_program p = {.n_in = 1, .n_instr = 1, .n_out = 1, .out = {1}};
        p.instr[0] = (lw_ew_instr){.op = (uint8_t)curve[c].op};
        must_prepare(&p);
        for (size_t i = 0; i < LW_COUNT(size); i++) {
            in[2 * i] = size[i];
            in[2 * i + 1] = -size[i];
            want[2 * i] = curve[c].slope ? 1.0f : size[i];
            want[2 * i + 1] = curve[c].slope || isfinite(size[i]) ? 0.0f : NAN;
        }
        in[N - 1] = want[N - 1] = NAN;
        run(t, &got, (const float *const *)&in, &p, (lw_ew_shape){1, N, 1}, 0, N);
        check_close_f(t, got, want, N, (check_tol){.abs = 1e-30}, "%s", names[curve[c].op]);
        check_next(t);
    }
}

static int64_t operand_size(int mode, lw_ew_shape s)
{
    static const int of[LW_TILE_MODES][3] = {{1, 1, 1}, {0, 0, 0}, {0, 0, 1},
                                             {1, 0, 0}, {1, 0, 1}, {1, 1, 0}};
    return (of[mode][0] ? s.b : 1) * (of[mode][1] ? s.s : 1) * (of[mode][2] ? s.c : 1);
}

/* A random program over tame operations. */
static lw_ew_program random_program(check *t, int n_in, int n_instr, int n_out)
{
    static const uint8_t tame[] = {LW_TILE_add,  LW_TILE_sub,  LW_TILE_mul,   LW_TILE_max,
                                   LW_TILE_min,  LW_TILE_neg,  LW_TILE_fma,   LW_TILE_abs,
                                   LW_TILE_tanh, LW_TILE_silu, LW_TILE_konst, LW_TILE_sigmoid,
                                   LW_TILE_relu, LW_TILE_copy};
    lw_ew_program p = {.n_in = n_in, .n_instr = n_instr, .n_out = n_out};
    for (int i = 0; i < n_in; i++)
        p.mode[i] = (uint8_t)check_below(t, LW_TILE_MODES);
    for (int i = 0; i < n_instr; i++) {
        uint32_t known = (uint32_t)(n_in + i);
        p.instr[i] = (lw_ew_instr){.op = tame[check_below(t, LW_COUNT(tame))],
                                   .a = (uint8_t)(known - 1 - check_below(t, i > 3 ? 4 : known)),
                                   .b = (uint8_t)check_below(t, known),
                                   .c = (uint8_t)check_below(t, known),
                                   .imm = (float)check_below(t, 100) / 100.0f};
        if (p.instr[i].op == LW_TILE_mul || p.instr[i].op == LW_TILE_fma)
            p.instr[i].b = (uint8_t)check_below(t, (uint32_t)n_in); /* keep values small */
    }
    for (int k = 0; k < n_out; k++)
        p.out[k] = (uint8_t)(n_in + n_instr - 1 - k);
    return p;
}

/* Long random programs over random shapes, split at random points, outputs on top of operands. */
static void random_programs(check *t)
{
    static const int channels[] = {1, 2, 3, 5, 16, 31, 64, 127, 128, 130, 256, 1030};
    static const int spaces[] = {1, 2, 3, 16, 49, 100};
    for (int round = 0; round < 400; round++) {
        lw_ew_shape s = {1 + check_below(t, 4), spaces[check_below(t, LW_COUNT(spaces))],
                         channels[check_below(t, LW_COUNT(channels))]};
        int n_in = 1 + (int)check_below(t, 6), n_instr = 1 + (int)check_below(t, 12);
        if (round % 40 == 0)
            n_in = LW_EW_MAX_OPERANDS, n_instr = LW_EW_MAX_STEPS;
        int n_out = 1 + (int)check_below(t, 3);
        n_out = n_out > n_instr ? n_instr : n_out;
        lw_ew_program p = random_program(t, n_in, n_instr, n_out);
        must_prepare(&p);
        int64_t n = s.b * s.s * s.c;
        const float *in[LW_EW_MAX_OPERANDS], *in_copy[LW_EW_MAX_OPERANDS];
        for (int i = 0; i < n_in; i++) {
            in[i] = check_in(t, operand_size(p.mode[i], s), i & 1, -1, 1);
            in_copy[i] = check_copy(t, in[i], operand_size(p.mode[i], s), 1);
        }
        float *got[3], *want[3];
        int alias = 0;
        for (int k = 0; k < n_out; k++) {
            got[k] = check_out(t, n, k & 1);
            want[k] = check_out(t, n, 0);
            while (round % 2 && alias < n_in && p.mode[alias] != LW_TILE_FULL)
                alias++;
            if (round % 2 && alias < n_in)
                memcpy(&got[k], &in_copy[alias++],
                       sizeof got[k]); /* in place; not const in truth */
        }
        lw_ew_run_ref(want, in, &p, &s, 0, n);
        for (int64_t e = 0; e < n;) {
            int64_t to = e + 1 + (int64_t)check_below(t, (uint32_t)n);
            to = to > n ? n : to;
            run(t, got, in_copy, &p, s, e, to);
            e = to;
        }
        for (int k = 0; k < n_out; k++)
            check_close_f(t, got[k], want[k], n, (check_tol){.abs = 4e-6, .rel = 4e-6},
                          "round %d output %d of [%td,%td,%td], %d operands, %d instructions",
                          round, k, s.b, s.s, s.c, n_in, n_instr);
        check_next(t);
    }
}

/* Outputs that are operands or constants, and one register as two outputs. */
static void odd_outputs(check *t)
{
    enum { N = 2000 };
    lw_ew_program p = {.n_in = 2, .n_instr = 2, .n_out = 5, .mode = {LW_TILE_FULL, LW_TILE_ROW}};
    p.instr[0] = (lw_ew_instr){.op = LW_TILE_konst, .imm = 3.5f};
    p.instr[1] = (lw_ew_instr){.op = LW_TILE_mul, .a = 0, .b = 2};
    p.out[0] = 1, p.out[1] = 3, p.out[2] = 2, p.out[3] = 3, p.out[4] = 0;
    must_prepare(&p);
    lw_ew_shape s = {2, 200, 5};
    const float *in[2] = {check_in(t, N, 1, -1, 1), check_in(t, 400, 0, -1, 1)};
    float *got[5], *want[5];
    for (int k = 0; k < 5; k++)
        got[k] = check_out(t, N, 1), want[k] = check_out(t, N, 0);
    run(t, got, in, &p, s, 0, N);
    lw_ew_run_ref(want, in, &p, &s, 0, N);
    for (int k = 0; k < 5; k++)
        check_same(t, got[k], want[k], N * sizeof(float), "output %d", k);
}

/* Same bits for any split, and on every vector level. */
static void same_bits(check *t)
{
    if (t->isa == LW_ISA_REF) {
        check_same(t, "", "", 0, "ref is the oracle"); /* counted below */
        t->compared++;
        return;
    }
    lw_ew_shape s = {3, 50, 48};
    int64_t n = s.b * s.s * s.c;
    lw_ew_program p = random_program(t, 5, 30, 1);
    p.instr[29] = (lw_ew_instr){.op = LW_TILE_gelu, .a = 33};
    must_prepare(&p);
    const float *in[5];
    for (int i = 0; i < 5; i++)
        in[i] = check_in(t, operand_size(p.mode[i], s), 1, -2, 2);
    float *whole = check_out(t, n, 0), *split = check_out(t, n, 1);
    lw_ew_run_avx2(&whole, in, &p, &s, 0, n);
    for (int64_t e = 0; e < n; e += 777)
        run(t, &split, in, &p, s, e, e + 777 > n ? n : e + 777);
    check_same(t, split, whole, (size_t)n * sizeof(float), "split into 777");
}

static void refused_programs(check *t)
{
    static const lw_ew_program bad[] = {
        {.n_in = 1, .n_instr = 1, .n_out = 1, .instr = {{.op = LW_TILE_OPS}}},
        {.n_in = 1, .n_instr = 1, .n_out = 1, .instr = {{.op = LW_TILE_add, .a = 0, .b = 1}}},
        {.n_in = 1, .n_instr = 1, .n_out = 1, .instr = {{.op = LW_TILE_neg}}, .out = {2}},
        {.n_in = 1, .n_instr = 1, .n_out = 0, .instr = {{.op = LW_TILE_neg}}},
        {.n_in = 1,
         .n_instr = 1,
         .n_out = 1,
         .instr = {{.op = LW_TILE_neg}},
         .mode = {LW_TILE_MODES}},
        {.n_in = 17, .n_instr = 1, .n_out = 1, .instr = {{.op = LW_TILE_neg}}},
    };
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        lw_ew_program p = bad[i];
        int rc = lw_ew_prepare(&p), want = LW_ESHAPE;
        check_same(t, &rc, &want, sizeof rc, "bad program %zu", i);
    }
}

static void conversions(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    for (int64_t n = 1; n < 40; n++) {
        uint8_t *u = check_bytes(t, (size_t)n, 0);
        int32_t *w = check_bytes(t, (size_t)n * 4, 0);
        double *want = check_doubles(t, n);
        for (int64_t i = 0; i < n; i++)
            want[i] = u[i] = (uint8_t)check_below(t, 256), w[i] = (int32_t)u[i] - 128;
        float *got = check_out(t, n, 1);
        k.ew.from_u8(got, u, 0, n);
        check_close(t, got, want, n, (check_tol){0}, "u8 n=%lld", (long long)n);
        k.ew.from_i32(got, w, 0, n);
        for (int64_t i = 0; i < n; i++)
            want[i] -= 128;
        check_close(t, got, want, n, (check_tol){0}, "i32 n=%lld", (long long)n);
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"each_op", each_op},
        {"special_values", special_values},
        {"far_out", far_out},
        {"random_programs", random_programs},
        {"odd_outputs", odd_outputs},
        {"same_bits", same_bits},
        {"refused_programs", refused_programs},
        {"conversions", conversions},
    };
    return check_main(argc, argv, "ew", cases, LW_COUNT(cases));
}
