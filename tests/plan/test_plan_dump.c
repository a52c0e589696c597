/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden dumps: the text of a small graph after every pass, and of its plan, against files in
 * tests/plan/dumps. A change of a pass shows as a change of text; when it is meant, `test_plan_dump
 * --update` writes the files again, and the difference is reviewed with the change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"

#include "plan/plan_util.h"

#define DUMPS "tests/plan/dumps/"
static bool update;

/* A residual block with time modulation and 1x1 skip, attention behind it. */
static lw_val block(plan_lab *l)
{
    lw_graph *g = l->g;
    lw_val x = LAB_X(l, "x", 2, 4, 4, 8), temb = LAB_X(l, "temb", 2, 12);
    const char *up = lw_scope_push(g, "block");
    lw_val film = lw_linear(&l->b, "time", lw_silu(g, temb), 32, true);
    lw_val h = lw_group_norm(&l->b, "norm1", x, (lw_norm_opts){.groups = 4, .act = LW_ACT_SILU});
    h = lw_conv2d(&l->b, "conv1", h, 16, (lw_conv_opts){.kernel = 3, .pad = 1});
    h = lw_group_norm(&l->b, "norm2", h,
                      (lw_norm_opts){.groups = 4,
                                     .act = LW_ACT_SILU,
                                     .scale = lw_slice(g, film, 1, 0, 16),
                                     .shift = lw_slice(g, film, 1, 16, 32)});
    h = lw_conv2d(&l->b, "conv2", h, 16, (lw_conv_opts){.kernel = 3, .pad = 1});
    h = lw_add(g, h, lw_conv2d(&l->b, "skip", x, 16, (lw_conv_opts){.kernel = 1}));
    lw_val qkv = lw_linear(&l->b, "qkv", lw_reshape(g, h, lw_type_of(LW_F32, 3, 2, 16, 16)), 48,
                           false);
    lw_val a = lw_linear(&l->b, "out", lw_attention(g, qkv, 2), 16, true);
    h = lw_add(g, lw_reshape(g, a, lw_val_type(g, h)), h);
    h = lw_scale(g, h, 0.70710678f);
    lw_scope_set(g, up);
    return h;
}

static void build_forward(plan_lab *l)
{
    lab_output(l, "y", block(l));
}

static void build_train(plan_lab *l)
{
    lw_val loss = lw_mean(l->g, lw_sqr(l->g, block(l)), LW_OVER_ALL);
    lab_output(l, "loss", loss);
    assert_int_equal(lw_grad_params(l->g, loss, LW_NOVAL), 0);
}

/* Where two texts part, and the lines there. */
static void fail_at(const char *path, const char *want, const char *got)
{
    int line = 1;
    size_t at = 0, i = 0;
    for (; want[i] && want[i] == got[i]; i++)
        if (want[i] == '\n') {
            line++;
            at = i + 1;
        }
    fail_msg("%s: line %d\n  file: %.*s\n  now:  %.*s\n(test_plan_dump --update writes it again)",
             path, line, (int)strcspn(want + at, "\n"), want + at, (int)strcspn(got + at, "\n"),
             got + at);
}

static void check_dump(const char *path, void (*build)(plan_lab *l), bool passes)
{
    plan_lab l;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_free) char *want = NULL;
    size_t n;
    lab_open(&l, 1, LW_ISA_REF);
    build(&l);
    if (lw_compile(l.g, l.dev, &(lw_compile_opts){.opt = 1, .dump = passes ? &text : NULL},
                   &l.plan) < 0)
        fail_msg("%s", lw_errmsg());
    lw_str_add(&text, "-- plan\n");
    lw_plan_print(&text, l.plan);
    lab_close(&l);
    if (update)
        assert_int_equal(lw_file_write(path, lw_str_c(&text), text.len), 0);
    if (lw_file_read(path, 0, &want, &n) < 0)
        fail_msg("%s", lw_errmsg());
    if (strcmp(want, lw_str_c(&text)) != 0)
        fail_at(path, want, lw_str_c(&text));
}

static void test_forward(void **state)
{
    (void)state;
    check_dump(DUMPS "block_forward.txt", build_forward, true);
}

static void test_train(void **state)
{
    (void)state;
    check_dump(DUMPS "block_train.txt", build_train, true);
}

static void build_sample(plan_lab *l)
{
    lab_unet_sample(l, 2);
}

static void test_unet_sample(void **state)
{
    (void)state;
    check_dump(DUMPS "unet_sample.txt", build_sample, false);
}

/* One pass alone is a part of all of them. */
static void test_one_pass(void **state)
{
    (void)state;
    static const char *const passes[] = {"graph", "simplify", "upconv", "fuse",   "join",
                                         "pack",  "chain",    "slices", "outputs"};
    LW_CLEANUP(lw_str_clear) lw_str joined = {0}, all = {0};
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    build_train(&l);
    for (size_t i = 0; i < LW_COUNT(passes); i++) {
        assert_int_equal(
            lw_compile(l.g, l.dev,
                       &(lw_compile_opts){.opt = 1, .dump = &joined, .dump_pass = passes[i]},
                       &l.plan),
            0);
        lw_plan_free(&l.plan);
    }
    assert_int_equal(lw_compile(l.g, l.dev, &(lw_compile_opts){.opt = 1, .dump = &all}, &l.plan),
                     0);
    assert_string_equal(lw_str_c(&joined), lw_str_c(&all));
    lab_close(&l);
}

int main(int argc, char **argv)
{
    update = argc > 1 && strcmp(argv[1], "--update") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_train),
                                       cmocka_unit_test(test_unet_sample),
                                       cmocka_unit_test(test_one_pass)};
    return cmocka_run_group_tests_name("plan_dump", tests, NULL, NULL);
}
