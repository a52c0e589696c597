/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder_gradient MODEL TAP x.npy g.npy gx.npy: the gradient of sum(tap * g) with respect to pictures
 * x [N,3,h,w] in [-1,1], in f32. No test by itself: tools/encoder_check.py compares what it writes with
 * the libraries that define the encoders.
 */
#include <stdio.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

static void swap(const float *src, int64_t n, int64_t a, int64_t b, float *dst)
{
    for (int64_t k = 0; k < n; k++, src += a * b, dst += a * b)
        for (int64_t i = 0; i < a; i++)
            for (int64_t j = 0; j < b; j++)
                dst[j * a + i] = src[i * b + j];
}

static int build(const lw_network *net, const char *tap, lw_type x_type, lw_graph *g)
{
    lw_taps taps;
    lw_val x = lw_input(g, "x", x_type), gx = LW_NOVAL;
    lw_network_append(net, g, (lw_network_in){.x = x}, &taps);
    LW_TRY(lw_graph_error(g));
    lw_val y = lw_tap_find(&taps, tap);
    if (!lw_val_ok(y))
        return lw_fail(LW_EUSAGE, "no tap '%s'", tap);
    lw_val gy = lw_input(g, "g", lw_val_type(g, y));
    lw_grad(g, &y, &gy, 1, &x, &gx, 1);
    lw_graph_output_add(g, "gx", gx, LW_NOVAL);
    return lw_graph_error(g);
}

static int run(lw_plan *plan, const lw_array *x, const lw_array *gy, const char *path)
{
    LW_CLEANUP(lw_exec_free) lw_exec *e = NULL;
    int64_t channels = x->shape[1], pixels = x->shape[2] * x->shape[3];
    LW_TRY(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    lw_type want = lw_exec_type(e, "g");
    if (lw_type_count(want) != gy->count)
        return lw_fail(LW_ESHAPE, "g has %lld numbers, the tap %lld", (long long)gy->count,
                       (long long)lw_type_count(want));
    int64_t inner = want.rank == 4 ? want.dim[3] : 1;
    swap(x->data, x->shape[0], channels, pixels, lw_exec_write(e, "x"));
    swap(gy->data, want.dim[0], inner, gy->count / want.dim[0] / inner, lw_exec_write(e, "g"));
    LW_TRY(lw_exec_run(e, &(lw_tick){0}));
    float *out = x->data;
    swap(lw_exec_read(e, "gx"), x->shape[0], pixels, channels, out);
    return lw_npy_save(path, LW_ELEM_F32, 4, x->shape, out);
}

static int gradient(char **argv)
{
    LW_CLEANUP(lw_array_clear) lw_array x = {0};
    LW_CLEANUP(lw_array_clear) lw_array gy = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    LW_TRY(lw_npy_load_f32(argv[3], &x));
    LW_TRY(lw_npy_load_f32(argv[4], &gy));
    LW_TRY(lw_backend_open("cpu", &(lw_backend_options){.isa = lw_isa_best()}, &dev));
    LW_TRY(lw_network_open(argv[1], true, &net));
    if (x.rank != 4 || x.shape[1] != net->channels)
        return lw_fail(LW_ESHAPE, "%s: must be [N,%d,h,w]", argv[3], (int)net->channels);
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build(
        net, argv[2],
        lw_type_of(LW_F32, 4, (int)x.shape[0], (int)x.shape[2], (int)x.shape[3], net->channels),
        g));
    LW_TRY(lw_compile(g, dev, NULL, &plan));
    return run(plan, &x, &gy, argv[5]);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: encoder_gradient MODEL TAP x.npy g.npy gx.npy\n");
        return 2;
    }
    int rc = gradient(argv);
    if (rc < 0)
        fprintf(stderr, "encoder_gradient: %s\n", lw_errmsg());
    return rc < 0 ? 1 : 0;
}
