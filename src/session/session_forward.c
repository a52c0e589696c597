/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled network and its tensors by name. */
#include "session/session_forward.h"

#include <string.h>

enum { MAX_PORTS = 24 };

struct lw_forward {
    const lw_network *net;
    lw_graph *graph; /* names of the ports live here */
    lw_plan *plan;
    lw_exec *exec;
    lw_port port[MAX_PORTS];
    int n_port;
};

/* ---- making ---------------------------------------------------------------------------------- */

/* A port from the plan's own type: [B,H,W,C] becomes [N,C,H,W]. */
static void fill_port(lw_port *p, const char *name, bool output, lw_type t)
{
    *p = (lw_port){
        .name = name, .output = output, .integer = t.dtype == LW_I32, .rank = t.rank, .row = 1};
    for (int i = 0; i < t.rank; i++)
        p->shape[i] = t.dim[t.rank == 4 ? (int[]){0, 3, 1, 2}[i] : i];
    for (int i = 1; i < t.rank; i++)
        p->row *= p->shape[i];
}

static int add_port(lw_forward *f, const char *name, bool output)
{
    lw_type t = lw_exec_type(f->exec, name);
    if (t.dtype == LW_DT_NONE)
        return 0; /* an input nothing reads */
    LW_ASSERT(f->n_port < MAX_PORTS && t.rank <= 4, "port %d '%s' of rank %d", f->n_port, name,
              (int)t.rank);
    fill_port(&f->port[f->n_port], name, output, t);
    if (lw_str_eq(name, "class"))
        f->port[f->n_port].below = f->net->unet.classes;
    f->n_port++;
    return 0;
}

static int add_ports(lw_forward *f, const lw_graph *g)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        if (n->op == LW_OP_INPUT)
            LW_TRY(add_port(f, ((const lw_attr_input *)n->attr)->name, false));
    }
    for (int i = 0; i < lw_graph_output_count(g); i++)
        LW_TRY(add_port(f, lw_graph_output_at(g, i)->name, true));
    return 0;
}

int lw_forward_new(lw_device *dev, const lw_network *n, const lw_forward_opts *o, lw_forward **out)
{
    LW_CLEANUP(lw_forward_free) lw_forward *f = lw_calloc(1, sizeof *f);
    int32_t h = o->height > 0 ? o->height : n->image_size,
            w = o->width > 0 ? o->width : n->image_size;
    if (!f)
        return LW_ENOMEM;
    f->net = n;
    if (o->batch < 1 || h < 1 || w < 1)
        return lw_fail(LW_EUSAGE, "%s: %d rows of %dx%d pictures: say how large they are", n->dir,
                       (int)o->batch, (int)h, (int)w);
    LW_TRY(lw_graph_new(&f->graph));
    LW_TRY(lw_network_build(n, f->graph, o->batch, h, w, o->output));
    LW_TRY(lw_precision_check(o->precision, n->quant, n->dir));
    const lw_compile_opts c = {.opt = 1,
                               .precision = (lw_num)o->precision,
                               .calibration = lw_quantization_ranges(n->quant)};
    LW_TRY(lw_compile(f->graph, dev, &c, &f->plan));
    LW_TRY(lw_exec_new(f->plan, LW_SLAB_PARAM, &f->exec));
    LW_TRY(add_ports(f, f->graph));
    *out = lw_steal(&f);
    return 0;
}

void lw_forward_free(lw_forward **pp)
{
    lw_forward *f = *pp;
    if (!f)
        return;
    lw_exec_free(&f->exec);
    lw_plan_free(&f->plan);
    lw_graph_free(&f->graph);
    lw_free(pp);
}

/* ---- looking --------------------------------------------------------------------------------- */

int lw_forward_count(const lw_forward *f)
{
    return f->n_port;
}

const lw_port *lw_forward_port(const lw_forward *f, int i)
{
    LW_ASSERT(i >= 0 && i < f->n_port, "port %d of %d", i, f->n_port);
    return &f->port[i];
}

static int unknown_name(const lw_forward *f, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    for (int i = 0; i < f->n_port; i++)
        lw_str_addf(&have, "%s%s", i ? ", " : "", f->port[i].name);
    return lw_fail(LW_EUSAGE, "%s has no tensor '%s': there are %s", f->net->dir, name,
                   lw_str_c(&have));
}

int lw_forward_find(const lw_forward *f, const char *name, const lw_port **out)
{
    for (int i = 0; i < f->n_port; i++) {
        if (lw_str_eq(f->port[i].name, name)) {
            *out = &f->port[i];
            return 0;
        }
    }
    return unknown_name(f, name);
}

size_t lw_forward_bytes(const lw_forward *f)
{
    lw_plan_info i = lw_plan_get_info(f->plan);
    return i.frame_bytes + i.derived_bytes;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* rows of [C,H,W] <-> rows of [H,W,C]; both are [pixels] x [channels] matrices, transposed. */
static void transpose(float *dst, const float *src, int64_t rows, int64_t r, int64_t c)
{
    for (int64_t n = 0; n < rows; n++, src += r * c, dst += r * c)
        for (int64_t i = 0; i < r; i++)
            for (int64_t j = 0; j < c; j++)
                dst[j * r + i] = src[i * c + j];
}

static void check_rows(const lw_port *p, int64_t first, int64_t rows)
{
    LW_ASSERT(first >= 0 && rows >= 0 && first + rows <= p->shape[0],
              "rows %lld + %lld of '%s', which has %lld", (long long)first, (long long)rows,
              p->name, (long long)p->shape[0]);
}

int lw_forward_set(lw_forward *f, const lw_port *p, int64_t first, int64_t rows, const void *data)
{
    char *to = lw_exec_data(f->exec, p->name);
    int64_t n = rows * p->row;
    check_rows(p, first, rows);
    for (int64_t i = 0; p->below > 0 && i < n; i++)
        if (((const int32_t *)data)[i] < 0 || ((const int32_t *)data)[i] >= p->below)
            return lw_fail(LW_EFORMAT, "%s: %s %d is not in 0 .. %d", f->net->dir, p->name,
                           (int)((const int32_t *)data)[i], (int)p->below - 1);
    to += first * p->row * 4;
    if (p->rank == 4)
        transpose((float *)to, data, rows, p->shape[1], p->shape[2] * p->shape[3]);
    else
        memcpy(to, data, (size_t)n * 4);
    return 0;
}

int lw_forward_run(lw_forward *f)
{
    return lw_exec_run(f->exec, NULL);
}

int lw_forward_get(const lw_forward *f, const lw_port *p, int64_t first, int64_t rows, void *data)
{
    const char *from = (const char *)lw_exec_data(f->exec, p->name) + first * p->row * 4;
    check_rows(p, first, rows);
    if (p->rank == 4)
        transpose(data, (const float *)from, rows, p->shape[2] * p->shape[3], p->shape[1]);
    else
        memcpy(data, from, (size_t)(rows * p->row) * 4);
    return 0;
}

int lw_forward_rows(lw_forward *f, int64_t rows, const lw_feed *feed, int n_feed,
                    const lw_observer *obs)
{
    int64_t batch = f->port[0].shape[0];
    for (int64_t at = 0; at < rows; at += batch) {
        int64_t n = LW_MIN(batch, rows - at);
        for (int i = 0; i < n_feed; i++)
            if (feed[i].in)
                LW_TRY(lw_forward_set(f, feed[i].port, 0, n,
                                      (const char *)feed[i].in + at * feed[i].port->row * 4));
        LW_TRY(lw_forward_run(f));
        for (int i = 0; i < n_feed; i++)
            if (feed[i].out)
                LW_TRY(lw_forward_get(f, feed[i].port, 0, n,
                                      (char *)feed[i].out + at * feed[i].port->row * 4));
        lw_observe_progress(obs, "run", at + n, rows, NULL);
        if (at + n < rows && lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "interrupted after %lld of %lld rows", (long long)(at + n),
                           (long long)rows);
    }
    return 0;
}
