/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small cases whose instructions bench/instructions.sh counts under callgrind. Everything is fixed:
 * AVX2, one thread, inputs by name. Each case is made ready and run once; then lw_counted, and
 * nothing else, runs it under count. Prints "NAME MILLISECONDS" per case, in the order counted.
 *
 *     bench_instructions [NAME...]      all cases, or those named
 */
#include <stdio.h>
#include <string.h>

#include "bench/suites/bench_op.h"

/* What callgrind switches on: the name stands in bench/instructions.sh. */
int lw_counted(int (*call)(void *self), void *self);
__attribute__((noinline)) int lw_counted(int (*call)(void *self), void *self)
{
    int rc = call(self);
    __asm__ volatile("" : : : "memory"); /* not a tail call: the count ends here */
    return rc;
}

static lw_workload_unet tiny_unet(void)
{
    lw_workload_unet u = {lw_workload_unet_config(false), 2};
    if (lw_unet_set_levels(&u.config, 16, 32, (const int32_t[]){1, 2}, 2, (const int32_t[]){8}, 1) <
        0)
        u.batch = 0; /* then building it fails and says so */
    u.config.norm_groups = 8;
    u.config.heads = 2;
    u.config.blocks = 1;
    u.config.dropout = 0.1f;
    return u;
}

static int build_forward(lw_builder *b, const void *what)
{
    (void)what;
    lw_workload_unet u = tiny_unet();
    return lw_workload_build_unet(b, &u);
}

static int build_step(lw_builder *b, const void *what)
{
    (void)what;
    lw_workload_unet u = tiny_unet();
    return lw_workload_build_ddpm(b, &u);
}

typedef struct counted {
    lw_bench_op op;
    lw_num precision;
} counted;

static const counted cases[] = {
    {.op = {"conv", lw_bench_build_conv, {32, 32, 16, 3, 1, 2}}},
    {.op = {"conv_dx", lw_bench_build_conv_dx, {32, 32, 16, 3, 1, 2}}},
    {.op = {"conv_dw", lw_bench_build_conv_dw, {32, 32, 16, 3, 1, 2}}},
    {.op = {"conv_odd", lw_bench_build_conv, {19, 23, 13, 3, 1, 2}}},
    {.op = {"conv_few_tiles", lw_bench_build_conv, {128, 96, 8, 3, 1, 1}}},
    {.op = {"conv_5x5", lw_bench_build_conv, {32, 32, 16, 5, 1, 2}}},
    {.op = {"conv_row", lw_bench_build_conv_row, {32, 32, 16, 7, 1, 2}}},
    {.op = {"conv_down", lw_bench_build_conv, {32, 32, 16, 3, 2, 2}}},
    {.op = {"conv_down_tiles", lw_bench_build_conv, {64, 64, 16, 3, 2, 2}}},
    {.op = {"conv_upsampled", lw_bench_build_upsampled_conv, {32, 32, 16, 3, 1, 2}}},
    {.op = {"conv_bf16", lw_bench_build_conv, {32, 32, 16, 3, 1, 2}}, .precision = LW_NUM_BF16},
    {.op = {"conv_int8", lw_bench_build_conv, {32, 32, 16, 3, 1, 2}}, .precision = LW_NUM_S8},
    {.op = {"linear", lw_bench_build_linear, {64, 256, 256}}},
    {.op = {"linear_dropout", lw_bench_build_linear_dropout, {64, 256, 256}}},
    {.op = {"attention_train", lw_bench_build_attention_train, {2, 64, 64, 2}}},
    {.op = {"attention_train_bf16", lw_bench_build_attention_train, {2, 64, 64, 2}},
     .precision = LW_NUM_BF16},
    {.op = {"attention_narrow", lw_bench_build_attention, {2, 64, 24, 4}},
     .precision = LW_NUM_BF16},
    {.op = {"norm_train", lw_bench_build_norm_train, {2, 16, 64, 8}}},
    {.op = {"silu", lw_bench_build_silu, {2, 16, 64}}},
    {.op = {"normal", lw_bench_build_normal, {8, 16, 3}}},
    {.op = {"field", lw_bench_build_field, {4, 16, 32, 16, 1, 64}}},
    {.op = {"field_slots", lw_bench_build_field, {1, 16, 128, 16, 320, 16}}},
    {.op = {"unet", build_forward, {0}}},
    {.op = {"unet_int8", build_forward, {0}}, .precision = LW_NUM_S8},
    {.op = {"unet_train", build_step, {0}}},
};

static int count_case(lw_device *dev, const counted *c)
{
    const lw_bench_op *op = &c->op;
    lw_workload lab;
    lw_workload_spec spec = {.build = op->build,
                             .what = op,
                             .opts = {.opt = 1, .precision = c->precision},
                             .train = op->build == build_step};
    LW_TRY(lw_workload_open(dev, &spec, &lab));
    int rc = lw_workload_run(&lab);
    double t = lw_now();
    if (rc == 0)
        rc = lw_counted(lw_workload_run, &lab);
    printf("%s %.3f\n", op->name, 1e3 * (lw_now() - t));
    lw_workload_close(&lab);
    return rc;
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    const lw_backend_options o = {.threads = 1, .isa = LW_ISA_AVX2};
    int rc = lw_isa_best() < LW_ISA_AVX2 ? lw_fail(LW_EDEVICE, "this CPU has no AVX2")
                                         : lw_backend_open("cpu", &o, &dev);
    for (size_t i = 0; rc == 0 && i < LW_COUNT(cases); i++)
        if (wanted(argc, argv, cases[i].op.name))
            rc = count_case(dev, &cases[i]);
    if (rc < 0)
        fprintf(stderr, "bench_instructions: %s\n", lw_errmsg());
    return rc < 0;
}
