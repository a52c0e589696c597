/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks fed pictures of other channels than they take: gray for RGB, RGB for gray, in the graph
 * and with gradients; and what folders say of channels against what their weights say. The networks
 * are those of two fixtures (test_golden_networks.c), whose values are not looked at here.
 */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "formats/formats.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "store/store.h"

enum { BATCH = 2, H = 41, W = 50, PIXELS = BATCH * H * W };

static char scratch[64];

static const char *model(const char *fixture, char dir[96])
{
    lw_st_file *f = golden_open(fixture);
    snprintf(dir, 96, "%s/%s", scratch, fixture);
    golden_write_model(f, dir);
    lw_st_close(&f);
    return dir;
}

/* pooled of x [BATCH,H,W,channels], and the gradient of its sum. */
static int run(const lw_network *net, int32_t channels, const float *x, float *pooled, float *gx)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = golden_device(lw_isa_best(), 2);
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    LW_CLEANUP(lw_exec_free) lw_exec *e = NULL;
    lw_taps taps;
    lw_val dx = LW_NOVAL;
    LW_TRY(lw_graph_new(&g));
    lw_val in = lw_input(g, "x", lw_type_of(LW_F32, 4, BATCH, H, W, channels));
    lw_network_append(net, g, (lw_network_in){.x = in}, &taps);
    LW_TRY(lw_graph_error(g));
    lw_val y = lw_tap_find(&taps, "pooled");
    lw_val gy = lw_input(g, "gy", lw_val_type(g, y));
    lw_grad(g, &y, &gy, 1, &in, &dx, 1);
    lw_graph_output_add(g, "y", y, LW_NOVAL);
    lw_graph_output_add(g, "gx", dx, LW_NOVAL);
    LW_TRY(lw_compile(g, dev, NULL, &plan));
    LW_TRY(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    memcpy(lw_exec_write(e, "x"), x, sizeof(float) * (size_t)(PIXELS * channels));
    float *ones = lw_exec_write(e, "gy");
    for (int64_t i = 0; i < lw_type_count(lw_exec_type(e, "gy")); i++)
        ones[i] = 1.0f;
    LW_TRY(lw_exec_run(e, &(lw_tick){0}));
    memcpy(pooled, lw_exec_read(e, "y"), lw_type_count(lw_exec_type(e, "y")) * sizeof(float));
    memcpy(gx, lw_exec_read(e, "gx"), sizeof(float) * (size_t)(PIXELS * channels));
    return 0;
}

static float gray[PIXELS], rgb[3 * PIXELS], g1[PIXELS], g3[3 * PIXELS], out1[4096], out3[4096];

static void fill_pictures(void)
{
    golden_fill("x", 0.0, 1.0, PIXELS, gray);
    for (int i = 0; i < 3 * PIXELS; i++)
        rgb[i] = gray[i / 3];
}

/* Gray pictures are those whose three channels are the same; the gradient is the sum over them. */
static void gray_for_rgb(void **state)
{
    char dir[96];
    lw_network *net = NULL;
    double off = 0, most = 0;
    (void)state;
    fill_pictures();
    assert_ok(lw_network_open(model("network_resnet_timm", dir), true, &net));
    assert_int_equal(net->channels, 3);
    assert_ok(run(net, 1, gray, out1, g1));
    assert_ok(run(net, 3, rgb, out3, g3));
    assert_memory_equal(out1, out3, sizeof(float) * (size_t)(BATCH * net->features));
    for (int i = 0; i < PIXELS; i++) {
        double want = (double)g3[3 * i] + (double)g3[3 * i + 1] + (double)g3[3 * i + 2];
        off = fmax(off, fabs((double)g1[i] - want));
        most = fmax(most, fabs(want));
    }
    golden_check("gradient", off / most, 1e-5);
    lw_network_close(&net);
}

/* RGB before a network of gray is its luma; whose channels are the same, that gray. */
static void rgb_for_gray(void **state)
{
    static const double luma[] = {0.299, 0.587, 0.114};
    char dir[96];
    lw_network *net = NULL;
    double off = 0, most = 0;
    (void)state;
    fill_pictures();
    assert_ok(lw_network_open(model("network_resnet_gray", dir), true, &net));
    assert_int_equal(net->channels, 1);
    assert_int_equal(net->preparation.channels, 1);
    assert_ok(run(net, 1, gray, out1, g1));
    assert_ok(run(net, 3, rgb, out3, g3));
    for (int i = 0; i < BATCH * net->features; i++)
        assert_true(fabsf(out1[i] - out3[i]) < 1e-5f * fmaxf(fabsf(out1[i]), 1.0f));
    for (int i = 0; i < 3 * PIXELS; i++) {
        off = fmax(off, fabs((double)g3[i] - luma[i % 3] * (double)g1[i / 3]));
        most = fmax(most, fabs((double)g1[i / 3]));
    }
    golden_check("gradient", off / most, 1e-4);
    lw_network_close(&net);
}

static void no_way(void **state)
{
    char dir[96];
    lw_network *net = NULL;
    (void)state;
    assert_ok(lw_network_open(model("network_dinov2_timm_five", dir), true, &net));
    assert_int_equal(net->channels, 5);
    assert_int_equal(run(net, 3, rgb, out3, g3), LW_ESHAPE);
    assert_non_null(strstr(lw_errmsg(), "pictures of 3 channels, and dinov2 takes 5"));
    lw_network_close(&net);
}

/* The gray ResNet's folder with `was` of its config.json changed. */
static void changed(const char *was, const char *now, int code, const char *says)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_free) char *bytes = NULL;
    char dir[96], path[128];
    size_t n;
    lw_network *net = NULL;
    model("network_resnet_gray", dir);
    snprintf(path, sizeof path, "%s/config.json", dir);
    assert_ok(lw_file_read(path, 0, &bytes, &n));
    char *at = strstr(bytes, was);
    assert_non_null(at);
    lw_str_addf(&text, "%.*s%s%s", (int)(at - bytes), bytes, now, at + strlen(was));
    assert_ok(lw_file_write(path, lw_str_c(&text), text.len));
    int rc = lw_network_open(dir, true, &net);
    if (rc != code || (code < 0 && !strstr(lw_errmsg(), says)))
        fail_msg("%s: code %d, '%s'", now, rc, lw_errmsg());
    lw_network_close(&net);
}

static void what_folders_say(void **state)
{
    (void)state;
    changed("\"in_chans\": 1", "\"in_chans\": 3", LW_EFORMAT,
            "'in_chans' is 3, but 'conv1.weight' takes pictures of 1 channels");
    changed("\"in_chans\": 1, ", "", 0, "");
    changed("\"in_chans\": 1", "\"in_chans\": 65", LW_EFORMAT, "'in_chans' is 65");
    changed("\"mean\": [0.1307]", "\"mean\": [0.1, 0.2, 0.3]", LW_EFORMAT,
            "'mean' must be 1 number");
    changed("\"input_size\": [1, ", "\"input_size\": [3, ", 0, ""); /* one number is one for all */
    changed("\"mean\": [0.1307], ", "", LW_EFORMAT,
            "'mean' is missing: nothing is usual for 1 channel");
}

/* Weights alone are prepared as their record says, which of ImageNet's RGB says nothing of gray. */
static void weights_alone(void **state)
{
    char dir[96], path[128];
    lw_network *net = NULL;
    (void)state;
    model("network_resnet_gray", dir);
    snprintf(path, sizeof path, "%s/config.json", dir);
    assert_int_equal(remove(path), 0);
    assert_int_equal(lw_network_open(dir, true, &net), LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "mean and std are of 3 channels, its pictures have 1"));
}

static int make_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/lw_channels_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    (void)state;
    return lw_remove_tree(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gray_for_rgb),  cmocka_unit_test(rgb_for_gray),
        cmocka_unit_test(no_way),        cmocka_unit_test(what_folders_say),
        cmocka_unit_test(weights_alone),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
