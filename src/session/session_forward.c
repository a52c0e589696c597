/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled graph, its tensors by name and rows through it. */
#include "session/session_forward.h"
#include "backend/backend.h"

#include <string.h>

struct lw_forward {
    const char *name;
    const lw_device *dev;
    bool planar;     /* pictures and maps are [N,C,H,W] outside */
    lw_graph *graph; /* names of the ports live here */
    lw_plan *plan;
    lw_exec *exec;
    lw_port *port;
    bool *bound; /* [n_port]: the caller's memory */
    int n_port;
};

/* ---- making ---------------------------------------------------------------------------------- */

static void add_port(lw_forward *f, const char *name, bool output)
{
    lw_type t = lw_exec_type(f->exec, name);
    lw_port p = {.name = name, .output = output, .integer = t.dtype == LW_I32, .rank = t.rank};
    if (t.dtype == LW_DT_NONE)
        return; /* an input nothing reads */
    LW_ASSERT(t.rank > 0, "'%s' has no rows", name);
    for (int i = 0; i < t.rank; i++)
        p.shape[i] = t.dim[i];
    p.row = lw_type_count(t) / t.dim[0];
    p.bytes = lw_type_bytes(t) / (size_t)t.dim[0];
    f->port[f->n_port++] = p;
}

static int add_ports(lw_forward *f)
{
    const lw_graph *g = f->graph;
    f->port = lw_calloc(lw_graph_node_count(g) + (size_t)lw_graph_output_count(g), sizeof *f->port);
    f->bound = lw_calloc(lw_graph_node_count(g) + (size_t)lw_graph_output_count(g),
                         sizeof *f->bound);
    if (!f->port || !f->bound)
        return LW_ENOMEM;
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        if (n->op == LW_OP_INPUT)
            add_port(f, ((const lw_attr_input *)n->attr)->name, false);
    }
    for (int i = 0; i < lw_graph_output_count(g); i++)
        add_port(f, lw_graph_output_at(g, i)->name, true);
    return 0;
}

static int check_memory(const lw_forward *f)
{
    char need[32], have[32];
    lw_plan_info i = lw_plan_get_info(f->plan);
    size_t bytes = i.frame_bytes + i.derived_bytes, total = (size_t)lw_memory_total();
    return bytes <= total ? 0
                          : lw_fail(LW_ENOMEM,
                                    "out of memory: %s needs %s, there are %s: choose a smaller "
                                    "batch",
                                    f->name, lw_fmt_bytes(need, bytes), lw_fmt_bytes(have, total));
}

int lw_forward_of(lw_device *dev, lw_graph **g, const lw_compile_opts *o, lw_slab weights,
                  const char *name, lw_forward **out)
{
    LW_CLEANUP(lw_forward_free) lw_forward *f = lw_calloc(1, sizeof *f);
    if (!f)
        return LW_ENOMEM;
    f->name = name;
    f->dev = dev;
    f->graph = lw_steal(g);
    LW_TRY(lw_compile(f->graph, dev, o, &f->plan));
    LW_TRY(check_memory(f));
    LW_TRY(lw_exec_new(f->plan, weights, &f->exec));
    LW_TRY(add_ports(f));
    *out = lw_steal(&f);
    return 0;
}

/* [N,H,W,C] is [N,C,H,W] outside. */
static void make_planar(lw_forward *f)
{
    f->planar = true;
    for (int i = 0; i < f->n_port; i++)
        if (f->port[i].rank == 4) {
            int64_t *d = f->port[i].shape, c = d[3];
            memmove(d + 2, d + 1, 2 * sizeof *d);
            d[1] = c;
        }
}

int lw_forward_new(lw_device *dev, const lw_network *n, const lw_forward_opts *o, lw_forward **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_quantization_free) lw_quantization *quant = NULL;
    int32_t h = o->height > 0 ? o->height : n->image_size,
            w = o->width > 0 ? o->width : n->image_size;
    if (o->batch < 1 || h < 1 || w < 1)
        return lw_fail(LW_EUSAGE, "%s: %d rows of %dx%d pictures: say how large they are", n->dir,
                       (int)o->batch, (int)h, (int)w);
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_network_build(n, g, o->batch, h, w, o->output));
    LW_TRY(lw_quantization_find(o->ranges ? o->ranges : n->dir, &quant));
    LW_TRY(lw_precision_check(o->precision, quant, n, n->dir));
    const lw_compile_opts c = {
        .opt = 1, .precision = (lw_num)o->precision, .calibration = lw_quantization_ranges(quant)};
    LW_TRY(lw_forward_of(dev, &g, &c, LW_SLAB_PARAM, n->dir, out));
    make_planar(*out);
    for (int i = 0; i < (*out)->n_port; i++)
        if (lw_str_eq((*out)->port[i].name, "class"))
            (*out)->port[i].below = lw_network_class_ids(n);
        else if (lw_str_eq((*out)->port[i].name, "styles"))
            (*out)->port[i].below = n->style_words;
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
    lw_free(&f->port);
    lw_free(&f->bound);
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

int lw_forward_find(const lw_forward *f, const char *name, const lw_port **out)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    for (int i = 0; i < f->n_port; i++) {
        if (lw_str_eq(f->port[i].name, name)) {
            *out = &f->port[i];
            return 0;
        }
    }
    for (int i = 0; i < f->n_port; i++)
        lw_str_addf(&have, "%s%s", i ? ", " : "", f->port[i].name);
    return lw_fail(LW_EUSAGE, "%s has no tensor '%s': there are %s", f->name, name,
                   lw_str_c(&have));
}

lw_plan_info lw_forward_info(const lw_forward *f)
{
    return lw_plan_get_info(f->plan);
}

void lw_forward_print(lw_str *s, const lw_forward *f)
{
    lw_plan_print(s, f->plan);
}

/* ---- one batch ------------------------------------------------------------------------------- */

void *lw_forward_input(lw_forward *f, const char *name)
{
    return lw_exec_write(f->exec, name);
}

const void *lw_forward_output(const lw_forward *f, const char *name)
{
    return lw_exec_read(f->exec, name);
}

int lw_forward_failed(const lw_forward *f)
{
    return lw_backend_failed_on(f->dev);
}

void lw_forward_pass(const lw_forward *from, const char *name, lw_forward *to, const char *input)
{
    const void *data = lw_forward_output(from, name);
    void *dst = lw_forward_input(to, input);
    if (data && dst)
        memcpy(dst, data, lw_type_bytes(lw_exec_type(to->exec, input)));
}

int lw_forward_run(lw_forward *f, const lw_tick *tick)
{
    return lw_exec_run(f->exec, tick);
}

void lw_forward_advance(lw_forward *f)
{
    lw_exec_advance(f->exec);
}

void lw_rows_transpose(float *dst, const float *src, int64_t rows, int64_t r, int64_t c)
{
    for (int64_t n = 0; n < rows; n++, src += r * c, dst += r * c)
        for (int64_t i = 0; i < r; i++)
            for (int64_t j = 0; j < c; j++)
                dst[j * r + i] = src[i * c + j];
}

int lw_forward_bind(lw_forward *f, const lw_port *p, const void *data)
{
    if (data && p->integer)
        return lw_fail(LW_EUNSUPPORTED,
                       "tensor '%s' holds integers, which are checked as they are set: set it",
                       p->name);
    if (!data && !f->bound[p - f->port])
        return 0;
    LW_TRY(lw_exec_bind(f->exec, p->name, (void *)(uintptr_t)data)); /* inputs are only read */
    f->bound[p - f->port] = data != NULL;
    return 0;
}

int lw_forward_check(const lw_forward *f, const lw_port *p, int64_t rows, const void *data)
{
    for (int64_t i = 0; p->below > 0 && i < rows * p->row; i++)
        if (((const int32_t *)data)[i] < 0 || ((const int32_t *)data)[i] >= p->below)
            return lw_fail(LW_EFORMAT, "%s: %s %d is not in 0 .. %d", f->name, p->name,
                           (int)((const int32_t *)data)[i], (int)p->below - 1);
    return 0;
}

int lw_forward_set(lw_forward *f, const lw_port *p, int64_t rows, const void *data)
{
    LW_TRY(lw_forward_check(f, p, rows, data));
    LW_TRY(lw_forward_bind(f, p, NULL));
    void *dst = lw_forward_input(f, p->name);
    if (f->planar && p->rank == 4)
        lw_rows_transpose(dst, data, rows, p->shape[1], p->shape[2] * p->shape[3]);
    else
        memcpy(dst, data, (size_t)rows * p->bytes);
    return 0;
}

int lw_forward_get(const lw_forward *f, const lw_port *p, int64_t rows, void *data)
{
    const void *src = lw_forward_output(f, p->name);
    if (f->planar && p->rank == 4)
        lw_rows_transpose(data, src, rows, p->shape[2] * p->shape[3], p->shape[1]);
    else
        memcpy(data, src, (size_t)rows * p->bytes);
    return lw_forward_failed(f);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The feed's part before the run (rows at .. at + n - 1 in) or behind it (out). */
static int move_rows(lw_forward *f, const lw_feed *feed, int64_t at, int64_t n, bool before)
{
    const lw_port *p;
    LW_TRY(lw_forward_find(f, feed->name, &p));
    size_t skip = (size_t)at * p->bytes;
    if (!before && feed->out)
        LW_TRY(lw_forward_get(f, p, n, (char *)feed->out + skip));
    if (before && feed->fill)
        return feed->fill(feed->self, at, n, lw_forward_input(f, p->name));
    return before && feed->in ? lw_forward_set(f, p, n, (const char *)feed->in + skip) : 0;
}

static int move_batch(lw_forward *f, const lw_feed *feed, int n_feed, int64_t at, int64_t n,
                      bool before)
{
    for (int i = 0; i < n_feed; i++)
        LW_TRY(move_rows(f, &feed[i], at, n, before));
    return 0;
}

int lw_forward_rows(lw_forward *f, const char *what, int64_t rows, const lw_feed *feed, int n_feed,
                    const lw_observer *obs)
{
    const int64_t batch = f->port[0].shape[0];
    const bool apart = lw_device_is_apart(f->dev);
    for (int64_t at = 0; at < rows; at += batch) {
        const int64_t next = LW_MIN(at + batch, rows);
        if (at == 0 || !apart)
            LW_TRY(move_batch(f, feed, n_feed, at, LW_MIN(batch, rows - at), true));
        LW_TRY(lw_forward_run(f, NULL));
        if (apart && next < rows) /* made while the device computes */
            LW_TRY(move_batch(f, feed, n_feed, next, LW_MIN(batch, rows - next), true));
        LW_TRY(move_batch(f, feed, n_feed, at, next - at, false));
        lw_observe_progress(obs, what, next, rows, NULL);
        if (next < rows && lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "interrupted after %lld of %lld rows", (long long)next,
                           (long long)rows);
    }
    return 0;
}
