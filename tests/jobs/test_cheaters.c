/* SPDX-License-Identifier: Apache-2.0 */
/* A battery of small networks, the first random weights of each, on pictures of 16x16: pictures moved
 * against one of them win there and are suspected, honest bad ones and real ones are not, and
 * training pictures with noise are copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"
#include "base/base.h"
#include "data/data.h"
#include "eval/eval.h"
#include "formats/formats.h"
#include "models/models.h"
#include "session/session.h"
#include "store/store.h"
#include "results.h"

enum { SIDE = 16, FLOATS = SIDE * SIDE * 3, N = 150, NETS = 5, UNSEEN = 200, TRAIN = 1000 };

static char dir[64] = "/tmp/lw_cheaters_XXXXXX";
static lw_device *dev;
static lw_dataset *train, *held;
static lw_battery *battery;
static lw_verdict_real real;
static lw_planted planted[LW_PLANTED];

static void save_net(int i, lw_str *specs)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char name[16];
    lw_encoder_config c = lw_encoder_default(SIDE);
    snprintf(name, sizeof name, "net%d", i);
    c.width = 8;
    c.stages = 2 + i % 2;
    c.norm_groups = 4;
    LW_CLEANUP(lw_json_drop) json_t *config = lw_encoder_to_json(&c);
    ok(lw_store_new(true, &s));
    ok(lw_encoder_declare(&c, s));
    lw_store_init(s, (uint64_t)i + 1);
    ok(lw_model_folder_save(lw_path_join(&path, dir, name), s, LW_SLAB_PARAM, config,
                            LW_WEIGHTS_HF));
    lw_str_addf(specs, "%s%s", i ? "," : "", lw_str_c(&path));
}

static int enter(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str specs = {0};
    const lw_data_opts t = {.count = TRAIN}, h = {.split = LW_SPLIT_HELDOUT};
    if (!mkdtemp(dir))
        return -1;
    setenv("LW_CACHE", dir, 1);
    for (int i = 0; i < NETS; i++)
        save_net(i, &specs);
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_data_open("synth:16", &t, &train));
    ok(lw_data_open("synth:16", &h, &held));
    ok(lw_verdict_split(held, UNSEEN, &real));
    ok(lw_battery_open(dev, 0, lw_str_c(&specs), SIDE, &battery));
    const lw_planted_opts o = {.network = lw_battery_at(battery, 0)->spec,
                               .name = lw_battery_at(battery, 0)->name,
                               .train = train,
                               .n = N,
                               .steps = 40};
    ok(lw_planted_make(dev, &o, planted));
    return 0;
}

static int leave(void **state)
{
    (void)state;
    for (int i = 0; i < LW_PLANTED; i++)
        lw_planted_clear(&planted[i]);
    lw_verdict_real_clear(&real);
    lw_battery_free(&battery);
    lw_data_close(&train);
    lw_data_close(&held);
    lw_backend_close(&dev);
    return lw_remove_tree(dir);
}

/* Bytes of a kind of damage that no honest set of the rule has. */
static uint8_t *warped(void)
{
    LW_CLEANUP(lw_junk_free) lw_junk *junk = NULL;
    uint8_t *rgb = malloc(N * FLOATS);
    float x[FLOATS];
    ok(lw_junk_new(train, 11, &junk));
    for (int64_t i = 0; i < N; i++) {
        lw_junk_make(junk, LW_JUNK_WARP, i, x);
        lw_data_to_u8(x, FLOATS, rgb + i * FLOATS);
    }
    return rgb;
}

static void one_network_is_won_and_the_verdict_lost(void **state)
{
    (void)state;
    uint8_t *bad = warped();
    const lw_verdict_set rows[] = {
        {"real", LW_VERDICT_REAL, real.pixels + real.reference * FLOATS, N, NULL, 0},
        {"warped", LW_VERDICT_MADE, bad, N, NULL, 0},
        {planted[0].name, LW_VERDICT_PLANTED, planted[0].rgb, N, NULL, 0},
        {planted[1].name, LW_VERDICT_PLANTED, planted[1].rgb, N, NULL, 0}};
    const lw_verdict_opts o = {.replicates = 20, .directions = 64};
    lw_verdict_result *r = NULL;
    ok(lw_verdict_run(dev, battery, &real, rows, LW_COUNT(rows), &o, NULL, &r));
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        printf("%-30s x%.2f (%.2f .. %.2f), shortfall %.2f at %d of limit %.2f:", rows[i].name,
               exp(r->row[i].number.value), exp(r->row[i].number.low), exp(r->row[i].number.high),
               r->row[i].shortfall, r->row[i].lowest, r->rule.limit);
        for (int k = 0; k < NETS; k++)
            printf(" %.2f", r->value[i][k].frechet / r->value[i][k].frechet_real);
        printf("\n");
    }
    assert_false(r->rule.blind);
    const lw_verdict_value *attacked = &r->value[2][0];
    assert_true(attacked->frechet < attacked->frechet_real); /* it wins that network */
    assert_true(attacked->frechet < r->value[1][0].frechet);
    assert_true(r->row[2].suspect && r->row[2].lowest == 0); /* and is found out */
    assert_true(r->row[2].number.low > r->row[0].number.high);
    assert_false(r->row[0].suspect);
    assert_false(r->row[1].suspect);
    lw_free(&r);
    free(bad);
}

/* Distances to the nearest and second nearest training picture, [n][2]. */
static double *nearest(const uint8_t *rgb, int64_t n)
{
    double *d = malloc((size_t)n * 2 * sizeof *d);
    float *x = malloc((size_t)(n * FLOATS) * sizeof *x),
          *t = malloc((size_t)TRAIN * FLOATS * sizeof *t);
    lw_data_from_u8(rgb, n * FLOATS, x);
    lw_data_from_u8(train->pixels, (int64_t)TRAIN * FLOATS, t);
    ok(lw_nearest(dev->pool, x, n, t, TRAIN, FLOATS, 2, false, d, NULL));
    free(x);
    free(t);
    return d;
}

static void memory_is_told_by_its_copies(void **state)
{
    (void)state;
    double *unseen = nearest(real.pixels + real.reference * FLOATS, UNSEEN / 2),
           *fresh = nearest(real.pixels + (real.reference + UNSEEN / 2) * FLOATS, UNSEEN / 2),
           *noisy = nearest(planted[1].rgb, N), *moved = nearest(planted[0].rgb, N);
    lw_copying c;
    ok(lw_copying_of(noisy, N, unseen, UNSEEN / 2, &c));
    assert_true(c.suspect);
    ok(lw_copying_of(fresh, UNSEEN / 2, unseen, UNSEEN / 2, &c));
    assert_false(c.suspect);
    ok(lw_copying_of(moved, N, unseen, UNSEEN / 2, &c));
    printf("moved: %lld of %lld near\n", (long long)c.near, (long long)c.n);
    free(unseen);
    free(fresh);
    free(noisy);
    free(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_network_is_won_and_the_verdict_lost),
        cmocka_unit_test(memory_is_told_by_its_copies),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
