/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs after each pass, and the plan, of a model folder's forward. */
#include "session/session_device.h"
#include "jobs/inspect/inspect_job.h"
#include "session/session_forward.h"

static const struct {
    const char *name, *needs; /* the option without which it does not run */
} passes[] = {
    {"graph", NULL},     {"simplify", "--opt 1"},     {"upconv", "--opt 1"},
    {"fuse", "--opt 1"}, {"join", "--opt 1"},         {"precision", "--precision bf16 or int8"},
    {"pack", NULL},      {"chain", "--opt 1"},        {"slices", "--opt 1"},
    {"outputs", NULL},   {"recompute", "--recompute"}};

static int check_pass(const char *pass)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    for (size_t i = 0; i < LW_COUNT(passes); i++) {
        if (lw_str_eq(pass, passes[i].name))
            return 0;
        lw_str_addf(&have, "%s, ", passes[i].name);
    }
    return lw_str_eq(pass, "all")
               ? 0
               : lw_fail(LW_EUSAGE, "--pass %s: there are %sall", pass, lw_str_c(&have));
}

/* An empty text is not an answer. */
static int check_ran(const char *pass, size_t before, const lw_str *out)
{
    for (size_t i = 0; i < LW_COUNT(passes); i++)
        if (out->len == before && lw_str_eq(pass, passes[i].name))
            return lw_fail(LW_EUSAGE, "--pass %s runs with %s only", pass, passes[i].needs);
    return 0;
}

static int build(const lw_inspect_graph *c, const lw_network *net, lw_graph *g)
{
    int32_t size = lw_network_side(net, c->image_size);
    LW_TRY(lw_network_build(net, g, c->batch, size, size, NULL));
    if (!net->training)
        return 0;
    lw_val loss = lw_mean(g, lw_sqr(g, lw_graph_output_at(g, 0)->val), LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

int lw_job_inspect_graph(const lw_inspect_graph *c, lw_str *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    LW_CLEANUP(lw_quantization_free) lw_quantization *quant = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    const char *pass = c->pass ? c->pass : passes[0].name;
    size_t before = out->len;
    LW_TRY(check_pass(pass));
    LW_TRY(lw_session_device_with(c->threads, c->conv, &dev));
    LW_TRY(lw_network_open(c->source, true, &net));
    LW_TRY(lw_quantization_need(net, c->precision, &quant));
    if (c->train || c->recompute) {
        if (c->precision == LW_NUM_S8)
            return lw_fail(LW_EUSAGE, "--precision int8 does not train");
        LW_TRY(lw_network_train(net));
    }
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build(c, net, g));
    lw_compile_opts o = {.opt = c->opt,
                         .recompute = c->recompute,
                         .precision = (lw_num)c->precision,
                         .calibration = lw_quantization_ranges(quant),
                         .dump = c->graph ? out : NULL,
                         .dump_pass = lw_str_eq(pass, "all") ? NULL : pass};
    LW_TRY(lw_compile(g, dev, &o, &plan));
    LW_TRY(c->graph ? check_ran(pass, before, out) : 0);
    if (c->plan)
        lw_plan_print(out, plan);
    return out->failed ? lw_fail(LW_ENOMEM, "no memory for the text") : 0;
}
