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

/* Held-out pictures: sets of so many, the reference behind them. */
enum { SETS = 6, EACH = 100, REFERENCE = SETS * EACH };

static float *floats_of(const uint8_t *rgb, int64_t n)
{
    float *x = malloc((size_t)(n * FLOATS) * sizeof *x);
    assert_non_null(x);
    lw_data_from_u8(rgb, n * FLOATS, x);
    return x;
}

static void nearest(const float *x, int64_t n, const uint8_t *rgb, int64_t m, double *d,
                    int64_t *which)
{
    float *t = floats_of(rgb, m);
    ok(lw_nearest(dev->pool, x, n, t, m, FLOATS, 1, false, d, which));
    free(t);
}

static lw_nearness *nearness(const float *x, int64_t n)
{
    lw_nearness *near = calloc((size_t)n, sizeof *near);
    double *d = malloc((size_t)n * 2 * sizeof *d);
    int64_t *which = malloc((size_t)n * 2 * sizeof *which);
    nearest(x, n, train->pixels, TRAIN, d, which);
    nearest(x, n, held->pixels + (int64_t)REFERENCE * FLOATS, TRAIN, d + n, which + n);
    for (int64_t i = 0; i < n; i++)
        near[i] = (lw_nearness){d[i], d[n + i], which[i]};
    free(d);
    free(which);
    return near;
}

static lw_copying copying(const char *name, float *x, int64_t n)
{
    float *fresh = floats_of(held->pixels, EACH);
    lw_nearness *unseen = nearness(fresh, EACH), *made = nearness(x, n);
    lw_copying c;
    ok(lw_copying_of(made, n, unseen, EACH, &c));
    printf("%-24s %lld of %lld copies, %lld of %lld training pictures%s\n", name, (long long)c.near,
           (long long)c.n, (long long)c.ayes, (long long)c.voters, c.suspect ? ": suspect" : "");
    free(fresh);
    free(unseen);
    free(made);
    free(x);
    return c;
}

static void memory_is_told_by_its_copies(void **state)
{
    (void)state;
    lw_copying c = copying("training and noise", floats_of(planted[1].rgb, N), N);
    assert_true(c.suspect && c.near == N && c.ayes == c.voters);
    copying("moved", floats_of(planted[0].rgb, N), N); /* blurred training pictures: some are */
    for (int64_t i = 1; i < SETS; i++) /* five sets of pictures that were not learnt */
        assert_false(
            copying("held out", floats_of(held->pixels + i * EACH * FLOATS, EACH), EACH).suspect);
}

/* A generator that learnt nothing: grey, nearly equal. */
static void greys_are_no_copies(void **state)
{
    (void)state;
    const lw_rng_key key = lw_rng_key_of(3, 0);
    for (int level = -1; level <= 1; level++) {
        float *x = malloc((size_t)N * FLOATS * sizeof *x);
        assert_non_null(x);
        for (int64_t i = 0; i < (int64_t)N * FLOATS; i++)
            x[i] = 0.4F * (float)level + 0.05F * (float)lw_rng_uniform(key, 0, (uint64_t)i, 0);
        assert_false(copying("grey", x, N).suspect);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_network_is_won_and_the_verdict_lost),
        cmocka_unit_test(memory_is_told_by_its_copies),
        cmocka_unit_test(greys_are_no_copies),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
