/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `leeway fid` stands on: the names of distances, contracts that differ, and pictures that are resized in
 * floats one by one, as the graph of a network does it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "golden/golden.h"

#include "cpu_device.h"
#include "data/data.h"
#include "kernels/formula_picture.h"
#include "session/session.h"

static lw_contract of(const char *encoder, const char *resize)
{
    lw_contract c = {0};
    snprintf(c.value[LW_CONTRACT_ENCODER], sizeof c.value[0], "%s", encoder);
    snprintf(c.value[LW_CONTRACT_RESIZE], sizeof c.value[0], "%s", resize);
    return c;
}

static void called(const char *encoder, const char *resize, const char *want)
{
    char name[96];
    lw_contract c = of(encoder, resize);
    assert_string_equal(lw_contract_frechet(&c, name), want);
}

static void only_one_is_called_fid(void **state)
{
    (void)state;
    called("inception_v3_fid", "torch", "FID");
    called("inception_v3_fid", "float-aa", "Frechet distance, inception_v3_fid, resize float-aa");
    called("inception_v3_fid", "tf-inception",
           "Frechet distance, inception_v3_fid, resize tf-inception");
    called("inception_v3", "torch", "Frechet distance, inception_v3");
    called("resnet56", "none", "Frechet distance, resnet56");
    called("", "", "Frechet distance");
}

static void a_key_differs_where_both_say_it(void **state)
{
    (void)state;
    lw_contract a = of("resnet56", "none"), b = of("resnet20", ""), none = {0};
    assert_int_equal(lw_contract_differs(&a, &b), LW_CONTRACT_ENCODER);
    assert_int_equal(lw_contract_differs(&a, &a), LW_CONTRACT_KEYS);
    assert_int_equal(lw_contract_differs(&a, &none), LW_CONTRACT_KEYS);
    assert_true(lw_contract_said(&b));
    assert_false(lw_contract_said(&none));
    a.value[LW_CONTRACT_DTYPE][0] = 'x';
    b = a;
    b.value[LW_CONTRACT_DTYPE][0] = 'y';
    assert_int_equal(lw_contract_differs(&a, &b), LW_CONTRACT_DTYPE);
}

static void contracts_are_read_back(void **state)
{
    (void)state;
    lw_contract a = of("resnet56", "none"), b;
    LW_CLEANUP(lw_json_drop) json_t *j = lw_contract_json(&a);
    json_object_set_new(j, "another", json_integer(1));
    assert_int_equal(lw_contract_parse("f.npz", j, &b), 0);
    assert_memory_equal(&a, &b, sizeof a);
    json_object_set_new(j, "dtype", json_integer(1));
    assert_int_equal(lw_contract_parse("f.npz", j, &b), LW_EFORMAT);
    assert_string_equal(lw_errmsg(),
                        "f.npz: 'dtype' of its contract is no text of at most 319 bytes");
}

enum { H = 9, W = 14, TO = 23 };

/* The same pixels through the op, cut off where the filter overshoots. */
static void through_graph(const lw_preparation *p, const lw_image *im, float *out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_forward_free) lw_forward *f = NULL;
    lw_device *dev;
    float x[H * W * 3];
    assert_int_equal(cpu_device(1, lw_isa_best(), &dev), 0);
    assert_int_equal(lw_graph_new(&g), 0);
    lw_val y = lw_resize(g, lw_input(g, "x", lw_type_of(LW_F32, 4, 1, H, W, 3)),
                         (lw_attr_resize){.h = TO, .w = TO, .form = p->form, .filter = p->filter});
    lw_graph_output_add(g, "y", y, LW_NOVAL);
    assert_int_equal(lw_forward_of(dev, &g, NULL, LW_SLAB_PARAM, "resize", &f), 0);
    lw_data_from_u8(im->rgb, H * W * 3, x);
    const lw_feed feed[] = {{.name = "x", .in = x}, {.name = "y", .out = out}};
    assert_int_equal(lw_forward_rows(f, "resize", 1, feed, 2, NULL), 0);
    for (int i = 0; i < TO * TO * 3; i++)
        out[i] = LW_MAX(LW_MIN(out[i], 1.0f), -1.0f);
    lw_forward_free(&f);
    lw_backend_close(&dev);
}

static void floats_one_by_one_are_those_of_the_graph(void **state)
{
    static const struct {
        lw_resample_form form;
        lw_filter filter;
    } kinds[] = {{LW_RESAMPLE_TORCH, LW_FILTER_BILINEAR},
                 {LW_RESAMPLE_FLOAT_AA, LW_FILTER_BICUBIC},
                 {LW_RESAMPLE_TF_INCEPTION, LW_FILTER_BILINEAR}};
    static float have[TO * TO * 3], want[TO * TO * 3];
    uint8_t rgb[H * W * 3];
    const lw_image im = {.width = W, .height = H, .rgb = rgb};
    (void)state;
    formula_picture(rgb, H, W, 3);
    for (size_t k = 0; k < LW_COUNT(kinds); k++) {
        lw_preparation p = {.fit = LW_FIT_SQUASH,
                            .form = kinds[k].form,
                            .filter = kinds[k].filter,
                            .channels = 3,
                            .resize_h = TO,
                            .resize_w = TO,
                            .height = TO,
                            .width = TO};
        assert_int_equal(lw_prepare_f32(&p, lw_raster_of(&im), have), 0);
        through_graph(&p, &im, want);
        for (int i = 0; i < TO * TO * 3; i++)
            if (fabsf(have[i] - want[i]) > 1e-6f)
                fail_msg("%s: number %d is %g, the graph's %g", lw_resample_form_name[p.form], i,
                         (double)have[i], (double)want[i]);
        p.height = TO + 1; /* one line more than there is */
        assert_int_equal(lw_prepare_f32(&p, lw_raster_of(&im), have), LW_EUNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_is_called_fid),
        cmocka_unit_test(a_key_differs_where_both_say_it),
        cmocka_unit_test(contracts_are_read_back),
        cmocka_unit_test(floats_one_by_one_are_those_of_the_graph),
    };
    return cmocka_run_group_tests_name("fid", tests, NULL, NULL);
}
