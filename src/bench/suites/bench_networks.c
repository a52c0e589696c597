/* SPDX-License-Identifier: Apache-2.0 */
/* The shared U-Net as a bench runs it: a forward pass, and one DDPM training step. */
#include <math.h>

#include "bench/bench_workload.h"

lw_unet_config lw_workload_unet_config(bool large)
{
    lw_unet_config c = large ? lw_unet_large() : lw_unet_small();
    c.default_out_init = c.default_res_init = true;
    return c;
}

int lw_workload_build_unet(lw_builder *b, const void *what)
{
    const lw_workload_unet *u = what;
    const lw_unet_config *c = &u->config;
    lw_network_in in = {
        .x =
            lw_input(b->g, "x",
                     lw_type_of(LW_F32, 4, u->batch, c->image_size, c->image_size, c->in_channels)),
        .t = lw_input(b->g, "t", lw_type_of(LW_F32, 1, u->batch)),
    };
    lw_graph_output_add(b->g, "y", lw_unet(b, c, in), LW_NOVAL);
    return 0;
}

/* A column of a table of the schedule for each sample, as [B,1,1,1]. */
static lw_val look_up(lw_graph *g, const float *table, lw_val t, int32_t batch)
{
    lw_val v = lw_embedding(g, lw_const(g, lw_type_of(LW_F32, 2, 1000, 1), table), t);
    return lw_reshape(g, v, lw_type_of(LW_F32, 4, batch, 1, 1, 1));
}

/* loss = mean (eps - unet(sqrt(ab) x + sqrt(1 - ab) eps, t))^2 */
int lw_workload_build_ddpm(lw_builder *b, const void *what)
{
    const lw_workload_unet *u = what;
    const lw_unet_config *c = &u->config;
    lw_graph *g = b->g;
    float keep[1000], add[1000], step[1000];
    double alpha_bar = 1;
    for (int i = 0; i < 1000; i++) { /* beta linear from 1e-4 to 0.02 */
        alpha_bar *= 1 - (1e-4 + (0.02 - 1e-4) * i / 999);
        keep[i] = (float)sqrt(alpha_bar);
        add[i] = (float)sqrt(1 - alpha_bar);
        step[i] = (float)i;
    }
    lw_type image = lw_type_of(LW_F32, 4, u->batch, c->image_size, c->image_size, c->in_channels);
    b->rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, u->batch));
    lw_val x = lw_input(g, "x", image);
    lw_val t = lw_random(g, "t", LW_RANDOM_BELOW, 1000, lw_type_of(LW_I32, 1, u->batch), b->rows);
    lw_val eps = lw_random(g, "noise", LW_RANDOM_NORMAL, 0, image, b->rows);
    lw_val noised = lw_add(g, lw_mul(g, x, look_up(g, keep, t, u->batch)),
                           lw_mul(g, eps, look_up(g, add, t, u->batch)));
    lw_network_in in = {
        .x = noised,
        .t = lw_reshape(g, look_up(g, step, t, u->batch), lw_type_of(LW_F32, 1, u->batch))};
    lw_val loss = lw_mean(g, lw_sqr(g, lw_sub(g, lw_unet(b, c, in), eps)), LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}
