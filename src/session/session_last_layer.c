/* SPDX-License-Identifier: Apache-2.0 */
/* The last linear layer of an encoder, found in its graph. */
#include "session/session_last_layer.h"

#include "session/session_quantization.h"

struct lw_last_layer {
    lw_network network; /* without a hook */
    lw_forward *forward;
    lw_last_layer_info info;
    int32_t batch;
};

/* ---- finding it -------------------------------------------------------------------------------- */

static bool is_sum(const lw_node *n)
{
    const lw_attr_ew *e = n->attr;
    return n->op == LW_OP_EW && n->n_in == 2 && e->n_step == 1 && e->step[0].op == LW_EW_add;
}

/* The product behind v, through reshapes and the later side of sums; NULL: another op comes first. */
static const lw_node *find_product(const lw_graph *g, lw_val v)
{
    const lw_node *n = lw_val_node(g, v);
    while (n->op == LW_OP_RESHAPE || is_sum(n)) {
        const lw_node *a = lw_val_node(g, n->in[0]);
        const lw_node *b = n->n_in > 1 ? lw_val_node(g, n->in[1]) : a;
        n = b->index > a->index ? b : a;
    }
    return n->op == LW_OP_MATMUL && lw_node_param(lw_val_node(g, n->in[1])) ? n : NULL;
}

static double squares(const lw_store *s, const lw_attr_param *p)
{
    const float *x = lw_store_data(s, p->index, LW_SLAB_PARAM);
    double sum = 0;
    for (int64_t i = 0; i < lw_type_count(p->type); i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static int describe(lw_last_layer *l, const lw_graph *g, const lw_taps *taps, lw_val *f, lw_val *y)
{
    lw_last_layer_info *i = &l->info;
    const lw_network *n = &l->network;
    i->output = lw_val_ok(lw_tap_find(taps, "logits")) ? "logits" : "pooled";
    *y = lw_tap_find(taps, i->output);
    const lw_node *product = lw_val_ok(*y) ? find_product(g, *y) : NULL;
    if (!product)
        return lw_fail(LW_EUSAGE, "%s: a %s has no last linear layer: its output '%s' is %s",
                       n->dir, n->name, i->output, lw_val_ok(*y) ? "not made by one" : "not there");
    const lw_attr_param *weight = lw_node_param(lw_val_node(g, product->in[1]));
    i->bias = lw_val_ok(product->in[2]);
    i->weight = lw_store_at(n->store, weight->index)->name;
    i->squares = squares(n->store, weight);
    if (i->bias)
        i->squares += squares(n->store, lw_node_param(lw_val_node(g, product->in[2])));
    *f = product->in[0];
    i->in = lw_type_last(lw_val_type(g, *f));
    i->out = lw_type_last(lw_val_type(g, *y));
    return 0;
}

int lw_last_layer_new(lw_device *dev, const lw_network *n, int32_t height, int32_t width,
                      int32_t batch, int32_t precision, lw_last_layer **out)
{
    LW_CLEANUP(lw_last_layer_free) lw_last_layer *l = lw_calloc(1, sizeof *l);
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_quantization_free) lw_quantization *quant = NULL;
    lw_taps taps;
    lw_val f, y;
    if (!l)
        return LW_ENOMEM;
    l->network = lw_network_plain(n);
    l->batch = batch;
    LW_TRY(lw_graph_new(&g));
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, batch, height, width, n->channels));
    lw_network_append(&l->network, g, (lw_network_in){.x = x}, &taps);
    LW_TRY(lw_graph_error(g));
    LW_TRY(describe(l, g, &taps, &f, &y));
    lw_graph_output_add(g, "f", f, LW_NOVAL);
    lw_graph_output_add(g, "y", y, LW_NOVAL);
    LW_TRY(lw_quantization_need(n, precision, &quant));
    const lw_compile_opts c = {
        .opt = 1, .precision = (lw_num)precision, .calibration = lw_quantization_ranges(quant)};
    LW_TRY(lw_forward_of(dev, &g, &c, LW_SLAB_PARAM, n->dir, &l->forward));
    *out = lw_steal(&l);
    return 0;
}

void lw_last_layer_free(lw_last_layer **pp)
{
    if (*pp)
        lw_forward_free(&(*pp)->forward);
    lw_free(pp);
}

lw_last_layer_info lw_last_layer_get_info(const lw_last_layer *l)
{
    return l->info;
}

/* ---- rows -------------------------------------------------------------------------------------- */

int lw_last_layer_rows(lw_last_layer *l, int64_t n, lw_passes_fill *fill, void *pictures,
                       lw_last_layer_use *use, void *self, const char *what, const lw_observer *obs)
{
    for (int64_t at = 0; at < n; at += l->batch) {
        int64_t m = LW_MIN((int64_t)l->batch, n - at);
        LW_TRY(fill(pictures, at, m, lw_forward_input(l->forward, "x")));
        LW_TRY(lw_forward_run(l->forward, NULL));
        const float *f = lw_forward_output(l->forward, "f"),
                    *y = lw_forward_output(l->forward, "y");
        LW_TRY(lw_forward_failed(l->forward));
        LW_TRY(use(self, at, m, f, y));
        lw_observe_progress(obs, what, at + m, n, NULL);
        if (at + m < n && lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "interrupted after %lld of %lld pictures",
                           (long long)(at + m), (long long)n);
    }
    return 0;
}
