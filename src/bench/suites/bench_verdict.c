/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of six small networks of random weights on 10,000 drawn pictures of 32x32, once, beside
 * what its forecast said, which is what `--dry-run` prints.
 */
#include <math.h>
#include <stdio.h>

#include "bench/bench_case.h"
#include "session/session.h"

enum { NETWORKS = 6, SIDE = 32, ROWS = 10000, REFERENCE = 5000, PICTURE = SIDE * SIDE * 3 };

typedef struct verdict_case {
    lw_str dir;
    lw_battery *battery;
    uint8_t *rgb; /* [ROWS] of the row, then [REFERENCE + REFERENCE] real ones */
    int32_t *labels;
} verdict_case;

static void verdict_case_clear(verdict_case *c)
{
    lw_battery_free(&c->battery);
    lw_free(&c->rgb);
    lw_free(&c->labels);
    if (c->dir.len > 0)
        lw_remove_tree(lw_str_c(&c->dir));
    lw_str_clear(&c->dir);
}

/* Gradients of colours with grain. */
static void draw_pictures(uint8_t *rgb, int64_t n)
{
    const lw_rng_key key = lw_rng_key_of(1, lw_hash_name("bench.verdict"));
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < PICTURE; k++) {
            int at = k / 3, channel = k % 3;
            uint64_t turn = lw_hash64(&(int64_t){i * 3 + channel}, sizeof(int64_t));
            int v = (int)(turn & 127) + (int)(turn >> 8 & 3) * (at % SIDE) +
                    (int)(turn >> 16 & 3) * (at / SIDE) / 2 +
                    (int)(16 * lw_rng_uniform(key, 0, (uint64_t)i, (uint64_t)k));
            rgb[i * PICTURE + k] = (uint8_t)LW_MIN(v, 255);
        }
}

/* Widths and depths as those of batteries trained in a minute. */
static int draw_networks(const char *dir)
{
    static const int widths[NETWORKS] = {16, 24, 32, 16, 24, 32};
    for (int i = 0; i < NETWORKS; i++) {
        LW_CLEANUP(lw_str_clear) lw_str path = {0};
        char name[16];
        lw_encoder_config e = lw_encoder_default(SIDE);
        snprintf(name, sizeof name, "net%d", i);
        e.width = widths[i];
        e.stages = 3 + i / 3;
        LW_CLEANUP(lw_json_drop) json_t *config = lw_encoder_to_json(&e);
        LW_TRY(lw_random_network(lw_path_join(&path, dir, name), config, NULL, (uint64_t)i + 1));
    }
    return 0;
}

static int verdict_case_init(lw_bench_run *r, verdict_case *c)
{
    const int64_t all = ROWS + 2 * REFERENCE;
    LW_TRY(lw_bench_temp_dir(&c->dir));
    LW_TRY(draw_networks(lw_str_c(&c->dir)));
    c->rgb = lw_calloc((size_t)all, PICTURE);
    c->labels = lw_calloc(2 * REFERENCE, sizeof *c->labels);
    if (!c->rgb || !c->labels)
        return LW_ENOMEM;
    draw_pictures(c->rgb, all);
    for (int32_t i = 0; i < 2 * REFERENCE; i++)
        c->labels[i] = i % 10;
    return lw_battery_open(r->dev, r->config->conv, lw_str_c(&c->dir), SIDE, &c->battery);
}

static int measure(lw_bench_run *r, verdict_case *c, const char *name)
{
    const lw_verdict_real real = {.reference = REFERENCE,
                                  .unseen = REFERENCE,
                                  .side = SIDE,
                                  .classes = 10,
                                  .pixels = c->rgb + (int64_t)ROWS * PICTURE,
                                  .labels = c->labels};
    const lw_verdict_set row = {.name = "drawn", .part = LW_VERDICT_MADE, .rgb = c->rgb, .n = ROWS};
    const lw_verdict_opts o = {.replicates = 60, .directions = 256, .afresh = true};
    LW_CLEANUP(lw_free) lw_verdict_result *result = NULL;
    lw_bench_case *out;
    double forecast, start;
    LW_TRY(lw_verdict_forecast(r->dev, c->battery, &real, &row, 1, &o, &forecast));
    start = lw_now();
    LW_TRY(lw_verdict_run(r->dev, c->battery, &real, &row, 1, &o, r->obs, &result));
    start = lw_now() - start;
    LW_TRY(lw_bench_new_case(r, name, "f32", 0, &out));
    out->error = fabs(forecast / start - 1);
    snprintf(out->against, sizeof out->against, "forecast");
    snprintf(out->base, sizeof out->base, "its forecast");
    out->base_ms = 1e3 * forecast;
    return lw_bench_add_sample(out, 1e3 * start);
}

int lw_bench_whole_verdict(lw_bench_run *r)
{
    static const char name[] = "verdict_10000_by_6";
    LW_CLEANUP(verdict_case_clear) verdict_case c = {0};
    if (!lw_bench_wants(r, name))
        return 0;
    LW_TRY(verdict_case_init(r, &c));
    return measure(r, &c, name);
}
