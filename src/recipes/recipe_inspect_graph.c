/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs after each pass, and the plan, of a model folder's forward. */
#include "backend/cpu/cpu.h"
#include "recipes/recipe_device.h"
#include "recipes/recipe_inspect.h"
#include "recipes/recipe_network.h"

enum { ANY_SIZE = 32 };

static const char *const passes[] = {"graph", "simplify", "upconv", "fuse", "pack", "outputs"};

static int check_pass(const char *pass)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    for (size_t i = 0; i < LW_COUNT(passes); i++) {
        if (lw_str_eq(pass, passes[i]))
            return 0;
        lw_str_addf(&have, "%s, ", passes[i]);
    }
    return lw_str_eq(pass, "all")
               ? 0
               : lw_fail(LW_EUSAGE, "--pass %s: there are %sall", pass, lw_str_c(&have));
}

int lw_recipe_inspect_graph(const lw_inspect_graph *c, lw_str *out)
{
    LW_CLEANUP(lw_cpu_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    const char *pass = c->pass ? c->pass : passes[0];
    LW_TRY(check_pass(pass));
    LW_TRY(lw_recipe_device_with(c->threads, c->conv, &dev));
    LW_TRY(lw_network_open(c->source, true, &net));
    int32_t size = c->image_size > 0     ? c->image_size
                   : net->image_size > 0 ? net->image_size
                                         : ANY_SIZE;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_network_build(net, g, c->batch, size, size, NULL));
    lw_compile_opts o = {.opt = c->opt,
                         .dump = c->graph ? out : NULL,
                         .dump_pass = lw_str_eq(pass, "all") ? NULL : pass};
    LW_TRY(lw_compile(g, dev, &o, &plan));
    if (c->plan)
        lw_plan_print(out, plan);
    return out->failed ? lw_fail(LW_ENOMEM, "no memory for the text") : 0;
}
