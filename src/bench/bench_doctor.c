/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_doctor.h"

#include <stdlib.h>

#include "bench/bench_workload.h"

enum { RUNS = 64 };
#define SECONDS 0.4 /* of measuring one size */
#define SLOW 12     /* frames a second: larger ones are slower still */

static const int32_t sides[LW_DOCTOR_SIZES] = {32, 48, 64, 96, 128, 192, 256};
static const struct {
    const char *name;
    int32_t base;
} networks[LW_DOCTOR_NETWORKS] = {
    {"U-Net, width 16", 16}, {"U-Net, width 32", 32}, {"U-Net, width 64", 64}};

/* Three levels, a block each, attention at the lowest up to 16 x 16. */
static int config_of(int32_t base, int32_t side, lw_unet_config *c)
{
    const int32_t mult[] = {1, 2, 2};
    *c = lw_workload_unet_config(false);
    c->blocks = 1;
    c->norm_groups = 8;
    c->mid_attn = side <= 64;
    return lw_unet_set_levels(c, side, base, mult, 3, NULL, 0);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_runs(lw_workload *w, double *fps)
{
    double seconds[RUNS];
    const double began = lw_now();
    int n = 0;
    LW_TRY(lw_workload_run(w)); /* packs the weights */
    while (n < RUNS && (n < 3 || lw_now() - began < SECONDS)) {
        const double from = lw_now();
        LW_TRY(lw_workload_run(w));
        seconds[n++] = lw_now() - from;
    }
    qsort(seconds, (size_t)n, sizeof seconds[0], compare);
    *fps = 1 / seconds[n / 2];
    return 0;
}

static int measure(lw_device *dev, int32_t base, int32_t side, lw_doctor_network *to)
{
    lw_workload_unet u = {.batch = 1};
    lw_workload w = {0};
    LW_TRY(config_of(base, side, &u.config));
    const lw_workload_spec spec = {.build = lw_workload_build_unet, .what = &u, .opts = {.opt = 1}};
    int rc = lw_workload_open(dev, &spec, &w);
    if (rc == 0)
        rc = time_runs(&w, &to->fps[to->n]);
    if (rc == 0) {
        to->parameters = lw_store_param_count(w.store);
        to->side[to->n++] = side;
    }
    lw_workload_close(&w);
    return rc;
}

int lw_bench_doctor(lw_device *dev, const lw_observer *obs,
                    lw_doctor_network out[LW_DOCTOR_NETWORKS])
{
    for (int i = 0; i < LW_DOCTOR_NETWORKS; i++) {
        out[i] = (lw_doctor_network){.name = networks[i].name};
        for (int k = 0; k < LW_DOCTOR_SIZES; k++) {
            if (lw_observe_stop(obs))
                return lw_fail(LW_ESTOPPED, "interrupted");
            LW_TRY(measure(dev, networks[i].base, sides[k], &out[i]));
            if (out[i].fps[k] < SLOW)
                break;
        }
    }
    return 0;
}

int32_t lw_doctor_side(int k)
{
    return sides[k];
}

int32_t lw_doctor_reaches(const lw_doctor_network *n, double fps)
{
    int32_t side = 0;
    for (int32_t i = 0; i < n->n; i++)
        if (n->fps[i] >= fps)
            side = n->side[i];
    return side;
}
