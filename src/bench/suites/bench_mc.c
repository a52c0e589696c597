/* SPDX-License-Identifier: Apache-2.0 */
/* Noisy passes of CLIP B/32 with random weights: dropout at every linear module beside none at all. */
#include <math.h>

#include "bench/bench_case.h"
#include "bench/ladder/bench_ladder_parts.h"

enum { ROWS = 64, SIDE = 224 };

static const struct {
    const char *name;
    lw_num num;
    bool noisy;
} cases[] = {{"pass_b64", LW_NUM_F32, true},
             {"plain_b64", LW_NUM_F32, false},
             {"pass_bf16_b64", LW_NUM_BF16, true},
             {"plain_bf16_b64", LW_NUM_BF16, false}};

typedef struct work {
    lw_network *net;
    lw_sites sites;
    lw_noise noise;
    lw_layer_hook hook;
    lw_passes *passes;
    lw_forward *plain;
    lw_pass_row row[ROWS];
    float *out;
} work;

static void work_clear(work *w)
{
    lw_passes_free(&w->passes);
    lw_forward_free(&w->plain);
    lw_sites_clear(&w->sites);
    lw_network_close(&w->net);
    lw_free(&w->out);
}

static int call_passes(void *self)
{
    work *w = self;
    return lw_passes_run(w->passes, w->row, ROWS, &(lw_tick){.seed = 1}, w->out);
}

static int call_plain(void *self)
{
    return lw_forward_run(((work *)self)->plain, NULL);
}

static int grey(void *self, int64_t first, int64_t n, float *dst)
{
    (void)self, (void)first;
    for (int64_t i = 0; i < n * SIDE * SIDE * 3; i++)
        dst[i] = (float)(i % 255) / 127.5f - 1.0f;
    return 0;
}

static int open_passes(lw_bench_run *r, work *w, lw_num num)
{
    const lw_passes_opts o = {.height = SIDE,
                              .width = SIDE,
                              .output = "pooled",
                              .precision = (int32_t)num,
                              .pictures = 1,
                              .rows = ROWS,
                              .keep = 1};
    LW_TRY(lw_sites_find(w->net, NULL, &w->sites));
    w->noise = (lw_noise){LW_NOISE_DROPOUT, 0.01f, &w->sites};
    w->hook = lw_noise_hook(&w->noise);
    w->net->hook = &w->hook;
    LW_TRY(lw_passes_new(r->dev, w->net, &o, &w->passes));
    for (int32_t i = 0; i < ROWS; i++)
        w->row[i].id = i;
    w->out = lw_calloc((size_t)ROWS * (size_t)lw_passes_get_info(w->passes).dim, sizeof *w->out);
    return w->out ? lw_passes_prefix(w->passes, 0, 1, grey, NULL, NULL) : LW_ENOMEM;
}

static int measure(lw_bench_run *r, const char *model, size_t i)
{
    LW_CLEANUP(work_clear) work w = {0};
    lw_bench_work b = {.name = cases[i].name,
                       .method = lw_precision_name(cases[i].num),
                       .batch = ROWS,
                       .num = cases[i].num,
                       .self = &w,
                       .error = (double)NAN};
    const lw_forward_opts o = {
        .batch = ROWS, .output = "pooled", .precision = (int32_t)cases[i].num};
    LW_TRY(lw_network_open(model, true, &w.net));
    if (cases[i].noisy) {
        LW_TRY(open_passes(r, &w, cases[i].num));
        lw_passes_info f = lw_passes_get_info(w.passes);
        b.call = call_passes;
        b.flops = ROWS * f.suffix;
        b.memory = f.bytes;
    } else {
        LW_TRY(lw_forward_new(r->dev, w.net, &o, &w.plain));
        lw_plan_info f = lw_forward_info(w.plain);
        b.call = call_plain;
        b.flops = f.flops;
        b.memory = f.frame_bytes + f.derived_bytes;
    }
    return lw_bench_measure(r, &b, NULL);
}

int lw_bench_suite_mc(lw_bench_run *r)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_str_clear) lw_str model = {0};
    int rc = 0;
    for (size_t i = 0; i < LW_COUNT(cases) && rc == 0; i++) {
        if (!lw_bench_wants(r, cases[i].name))
            continue;
        if (dir.len == 0) {
            LW_TRY(lw_bench_temp_dir(&dir));
            rc = lw_ladder_draw_model(lw_path_join(&model, lw_str_c(&dir), "clip_b32"));
        }
        if (rc == 0)
            rc = measure(r, lw_str_c(&model), i);
    }
    if (dir.len > 0)
        lw_remove_tree(lw_str_c(&dir));
    return rc;
}
