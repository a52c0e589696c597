/* SPDX-License-Identifier: Apache-2.0 */
/* The last linear layer of each family: which one it is, and that its weights make the network's output
 * of what is said to go into it. */
#include <math.h>

#include "jobs/frozen_fixture.h"
#include "session/session_last_layer.h"

enum { N = PICTURES };

static int fill(void *self, int64_t first, int64_t n, float *dst)
{
    int32_t side = *(const int32_t *)self; /* a corner of the picture */
    for (int64_t i = 0; i < n; i++)
        for (int64_t y = 0; y < side; y++, dst += side * 3)
            memcpy(dst, picture[first + i] + y * SIDE * 3, sizeof *dst * (size_t)side * 3);
    return 0;
}

typedef struct seen {
    const lw_network *net;
    lw_last_layer_info info;
    double apart, most; /* of y from W f + b, largest; of y */
    int64_t rows;
    double sum; /* of all of f and y, in order: the same for any batch */
} seen;

static int use(void *self, int64_t first, int64_t n, const float *f, const float *y)
{
    seen *s = self;
    char name[160];
    assert_int_equal(first, s->rows);
    snprintf(name, sizeof name, "%.*sbias", (int)strlen(s->info.weight) - 6, s->info.weight);
    int32_t at = lw_store_find(s->net->store, s->info.weight);
    int32_t bias = s->info.bias ? lw_store_find(s->net->store, name) : -1;
    const float *w = lw_store_data(s->net->store, at, LW_SLAB_PARAM);
    const float *b = bias >= 0 ? lw_store_data(s->net->store, bias, LW_SLAB_PARAM) : NULL;
    for (int64_t i = 0; i < n; i++, s->rows++)
        for (int64_t o = 0; o < s->info.out; o++) {
            double z = b ? (double)b[o] : 0, have = (double)y[i * s->info.out + o];
            for (int64_t k = 0; k < s->info.in; k++) {
                z += (double)w[o * s->info.in + k] * (double)f[i * s->info.in + k];
                s->sum = s->sum * 0.5 + (double)f[i * s->info.in + k];
            }
            s->apart = fmax(s->apart, fabs(z - have));
            s->most = fmax(s->most, fabs(have));
            s->sum = s->sum * 0.5 + have;
        }
    return 0;
}

static void test_families(void **state)
{
    static const struct {
        const char *network, *output, *weight;
        bool bias, beside; /* something is added to what the layer says */
    } want[] = {
        {"network_resnet_bottleneck", "logits", "classifier.1.weight", true, false},
        {"network_mobilenet_torchvision", "logits", "classifier.1.weight", true, false},
        {"network_convnext_timm", "logits", "head.fc.weight", true, false},
        {"network_dinov2", "logits", "classifier.weight", true, false},
        {"network_clip", "pooled", "visual_projection.weight", false, false},
        {"network_siglip", "pooled", "head.mlp.fc2.weight", true, true},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(want); i++) {
        lw_network *net = open_network(want[i].network);
        int32_t side = LW_MIN(lw_network_side(net, 0), SIDE);
        seen s[2] = {{.net = net}, {.net = net}};
        for (int k = 0; k < 2; k++) {
            lw_last_layer *l = NULL;
            assert_ok(lw_last_layer_new(dev, net, side, side, k ? 2 : 1, LW_NUM_F32, &l));
            s[k].info = lw_last_layer_get_info(l);
            assert_ok(lw_last_layer_rows(l, N, fill, &side, use, &s[k], "rows", NULL));
            assert_int_equal(s[k].rows, N);
            lw_last_layer_free(&l);
        }
        printf("%-30s %s of %s, %dx%d, |W|^2 %.4g; %.1e of %.3g apart\n", want[i].network,
               s[0].info.weight, s[0].info.output, (int)s[0].info.out, (int)s[0].info.in,
               s[0].info.squares, s[0].apart, s[0].most);
        assert_string_equal(s[0].info.output, want[i].output);
        assert_string_equal(s[0].info.weight, want[i].weight);
        assert_int_equal(s[0].info.bias, want[i].bias);
        assert_true(want[i].beside == (s[0].apart > 1e-5 * s[0].most));
        assert_memory_equal(&s[0].sum, &s[1].sum, sizeof s[0].sum);
        lw_network_close(&net);
    }
}

static void test_refusals(void **state)
{
    lw_network *net = open_network("network_dinov2_registers");
    lw_last_layer *l = NULL;
    int32_t side = LW_MIN(lw_network_side(net, 0), SIDE);
    (void)state;
    assert_int_equal(lw_last_layer_new(dev, net, side, side, 1, LW_NUM_F32, &l), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "has no last linear layer: its output 'pooled' is not"));
    lw_network_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
