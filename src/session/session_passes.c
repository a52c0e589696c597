/* SPDX-License-Identifier: Apache-2.0 */
/* A noisy network, cut where its noise begins. */
#include "session/session_passes.h"

#include "session/session_quantization.h"

#include <stdio.h>
#include <string.h>

enum { MAX_KEPT = 16 };

typedef struct kept_value {
    lw_val val;       /* in a graph of the whole network */
    lw_type type;     /* there, of one picture */
    char name[16];    /* of the prefix's output and the suffix's input */
    size_t bytes, at; /* per picture; where in a place */
} kept_value;

struct lw_passes {
    const lw_network *network;
    lw_device *dev;
    lw_passes_opts o;
    char output[16]; /* the tap */
    lw_passes_info info;
    lw_quantization *quant; /* or NULL */
    kept_value kept[MAX_KEPT];
    int n_kept;
    lw_forward *prefix, *suffix; /* prefix NULL: the picture itself is kept */
    uint64_t prefix_bytes;
    bool fed;             /* the rows of the next run are in */
    unsigned char *place; /* [keep][info.kept] */
    lw_map file;          /* where place is when it does not fit into memory */
};

/* ---- the cut ---------------------------------------------------------------------------------- */

/* The whole network for so many rows; *tap: its output. */
static int build(lw_passes *p, lw_graph *g, int32_t rows, lw_val *tap)
{
    const lw_network *n = p->network;
    lw_taps taps;
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, rows, p->o.height, p->o.width, n->channels));
    lw_val ids = lw_input(g, "rows", lw_type_of(LW_I64, 1, rows));
    lw_network_append(n, g, (lw_network_in){.x = x, .rows = ids}, &taps);
    LW_TRY(lw_graph_error(g));
    const char *want = p->o.output ? p->o.output : taps.n ? taps.tap[0].name : "";
    snprintf(p->output, sizeof p->output, "%s", want);
    return lw_tap_choose(&taps, want, n->dir, tap);
}

static bool is_input(const lw_node *n, const char *name)
{
    return n->op == LW_OP_INPUT && lw_str_eq(((const lw_attr_input *)n->attr)->name, name);
}

/* Which values depend on an input of this name. */
static int find_dependent(const lw_graph *g, const char *input, bool **out)
{
    bool *on = lw_calloc(lw_graph_val_count(g) + 1, sizeof *on);
    if (!on)
        return LW_ENOMEM;
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        bool any = is_input(n, input);
        for (int k = 0; k < n->n_in; k++)
            any = any || on[n->in[k].id];
        for (int k = 0; k < n->n_out; k++)
            on[n->out[k].id] = any;
    }
    *out = on;
    return 0;
}

static int keep_value(lw_passes *p, const lw_graph *g, lw_val v)
{
    for (int i = 0; i < p->n_kept; i++)
        if (p->kept[i].val.id == v.id)
            return 0;
    if (p->n_kept == MAX_KEPT)
        return lw_fail(LW_EUNSUPPORTED, "%s: more than %d values lead into the noise",
                       p->network->dir, MAX_KEPT);
    kept_value *k = &p->kept[p->n_kept];
    lw_type t = lw_val_type(g, v);
    LW_ASSERT(t.dtype == LW_F32 && t.dim[0] % p->o.pictures == 0, "value %u has no rows", v.id);
    snprintf(k->name, sizeof k->name, "kept%d", p->n_kept++);
    k->val = v;
    k->type = t;
    k->type.dim[0] /= p->o.pictures;
    k->bytes = lw_type_bytes(k->type);
    k->at = p->info.kept;
    p->info.kept += k->bytes;
    return 0;
}

/* Values of the picture alone that noisy ones are made of. */
static int find_kept(lw_passes *p, const lw_graph *g, lw_val tap)
{
    LW_CLEANUP(lw_free) bool *picture = NULL;
    LW_CLEANUP(lw_free) bool *noisy = NULL;
    LW_TRY(find_dependent(g, "x", &picture));
    LW_TRY(find_dependent(g, "rows", &noisy));
    if (!noisy[tap.id])
        return lw_fail(LW_EUSAGE,
                       "%s: no live site lies before '%s', so every pass would give the same",
                       p->network->dir, p->output);
    for (uint32_t i = 0; i < lw_graph_node_count(g) && p->o.whole; i++)
        if (is_input(lw_graph_node(g, i), "x"))
            return keep_value(p, g, lw_graph_node(g, i)->out[0]);
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        for (int k = 0; k < n->n_in && n->n_out > 0 && noisy[n->out[0].id]; k++)
            if (picture[n->in[k].id] && !noisy[n->in[k].id])
                LW_TRY(keep_value(p, g, n->in[k]));
    }
    return 0;
}

static int compile(lw_passes *p, lw_graph **g, lw_forward **out, uint64_t *bytes)
{
    const lw_compile_opts c = {.opt = !p->o.unfused,
                               .precision = (lw_num)p->o.precision,
                               .calibration = lw_quantization_ranges(p->quant),
                               .part = true};
    double begin = lw_now();
    LW_TRY(lw_graph_error(*g));
    LW_TRY(lw_forward_of(p->dev, g, &c, LW_SLAB_PARAM, p->network->dir, out));
    lw_plan_info i = lw_forward_info(*out);
    *bytes = i.frame_bytes + i.derived_bytes;
    p->info.compile += lw_now() - begin;
    return 0;
}

/* The whole network, of which only what is kept is computed. */
static int make_prefix(lw_passes *p)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_val tap;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build(p, g, p->o.pictures, &tap));
    if (p->o.precision == LW_NUM_S8 && !lw_calibration_fits(g, lw_quantization_ranges(p->quant)))
        return lw_fail(LW_EFORMAT,
                       "%s: its ranges belong to no product that int8 can compute: make its own "
                       "with `leeway quantize`",
                       p->network->dir);
    LW_TRY(find_kept(p, g, tap));
    if (p->o.whole)
        return 0;
    for (int i = 0; i < p->n_kept; i++)
        lw_graph_output_add(g, p->kept[i].name, p->kept[i].val, LW_NOVAL);
    LW_TRY(compile(p, &g, &p->prefix, &p->prefix_bytes));
    p->info.prefix = lw_forward_info(p->prefix).flops / p->o.pictures;
    return 0;
}

/* The network of so many rows behind inputs that stand for what is kept: declared first, so that
 * every value's number is that of the prefix's graph plus how many they are. */
static int build_suffix(lw_passes *p, int32_t rows, lw_graph *g, lw_val *tap)
{
    lw_val in[MAX_KEPT] = {{0}};
    uint32_t shift = (uint32_t)p->n_kept;
    for (int i = 0; i < p->n_kept; i++) {
        lw_type t = p->kept[i].type;
        t.dim[0] *= rows;
        in[i] = lw_input(g, p->kept[i].name, t);
    }
    LW_TRY(build(p, g, rows, tap));
    for (uint32_t i = shift; i < lw_graph_node_count(g); i++) {
        lw_node *n = lw_graph_node(g, i);
        for (int k = 0; k < n->n_in; k++)
            for (int m = 0; m < p->n_kept; m++)
                if (n->in[k].id == p->kept[m].val.id + shift)
                    n->in[k] = in[m];
    }
    return 0;
}

int lw_passes_set_rows(lw_passes *p, int32_t rows)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_val tap;
    uint64_t bytes;
    LW_ASSERT(rows > 0, "%d rows", (int)rows);
    if (p->suffix && rows == p->o.rows)
        return 0;
    lw_forward_free(&p->suffix); /* first: two of them may not fit */
    p->fed = false;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build_suffix(p, rows, g, &tap));
    p->info.dim = (int32_t)(lw_type_count(lw_val_type(g, tap)) / rows);
    lw_graph_output_add(g, p->output, tap, LW_NOVAL);
    LW_TRY(compile(p, &g, &p->suffix, &bytes));
    p->o.rows = rows;
    p->info.suffix = lw_forward_info(p->suffix).flops / rows;
    p->info.bytes = p->prefix_bytes + bytes;
    return 0;
}

/* ---- what is kept ------------------------------------------------------------------------------ */

static int make_places(lw_passes *p)
{
    char dir[1024], size[32];
    uint64_t bytes = p->info.kept * (uint64_t)p->o.keep;
    p->info.on_disk = p->o.memory > 0 && bytes > p->o.memory;
    if (!p->info.on_disk) {
        p->place = lw_bulk_alloc((size_t)bytes);
        return p->place ? 0
                        : lw_fail(LW_ENOMEM, "out of memory: what is kept of %lld pictures is %s",
                                  (long long)p->o.keep, lw_fmt_bytes(size, bytes));
    }
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_mkdirs(lw_data_cache_dir(dir, sizeof dir)));
    LW_TRY(lw_map_scratch(&p->file, lw_path_join(&path, dir, "passes"), (size_t)bytes));
    p->place = p->file.data;
    return 0;
}

int lw_passes_new(lw_device *dev, const lw_network *n, const lw_passes_opts *o, lw_passes **out)
{
    LW_CLEANUP(lw_passes_free) lw_passes *p = lw_calloc(1, sizeof *p);
    if (!p)
        return LW_ENOMEM;
    LW_ASSERT(n->hook && o->pictures > 0 && o->rows > 0 && o->keep > 0, "%s: no noise", n->dir);
    p->network = n;
    p->dev = dev;
    p->o = *o;
    LW_TRY(lw_quantization_need(n, o->precision, &p->quant));
    LW_TRY(make_prefix(p));
    LW_TRY(lw_passes_set_rows(p, o->rows));
    LW_TRY(make_places(p));
    *out = lw_steal(&p);
    return 0;
}

void lw_passes_free(lw_passes **pp)
{
    lw_passes *p = *pp;
    if (!p)
        return;
    if (p->info.on_disk)
        lw_map_close(&p->file);
    else
        lw_bulk_free(&p->place, (size_t)(p->info.kept * (uint64_t)p->o.keep));
    lw_forward_free(&p->prefix);
    lw_forward_free(&p->suffix);
    lw_quantization_free(&p->quant);
    lw_free(pp);
}

lw_passes_info lw_passes_get_info(const lw_passes *p)
{
    return p->info;
}

static void keep_batch(lw_passes *p, int64_t first, int64_t n)
{
    for (int k = 0; k < p->n_kept; k++) {
        const kept_value *v = &p->kept[k];
        const unsigned char *from = lw_forward_output(p->prefix, v->name);
        for (int64_t i = 0; i < n; i++)
            memcpy(p->place + (uint64_t)(first + i) * p->info.kept + v->at,
                   from + (size_t)i * v->bytes, v->bytes);
    }
}

int lw_passes_prefix(lw_passes *p, int64_t first, int64_t n, lw_passes_fill *fill, void *self,
                     const lw_observer *obs)
{
    if (n > p->o.keep)
        return lw_fail(LW_EUSAGE, "%lld pictures, there is room for %lld", (long long)n,
                       (long long)p->o.keep);
    for (int64_t at = 0; at < n; at += p->o.pictures) {
        int64_t m = LW_MIN((int64_t)p->o.pictures, n - at);
        if (p->prefix) {
            const int64_t next = at + m, more = LW_MIN((int64_t)p->o.pictures, n - next);
            if (at == 0 || !lw_device_is_apart(p->dev))
                LW_TRY(fill(self, first + at, m, lw_forward_input(p->prefix, "x")));
            LW_TRY(lw_forward_run(p->prefix, NULL));
            if (lw_device_is_apart(p->dev) && more > 0)
                LW_TRY(fill(self, first + next, more, lw_forward_input(p->prefix, "x")));
            keep_batch(p, at, m);
            LW_TRY(lw_forward_failed(p->prefix));
        } else {
            LW_TRY(fill(self, first + at, m,
                        (float *)(void *)(p->place + (uint64_t)at * p->info.kept)));
        }
        lw_observe_progress(obs, "prefix", at + m, n, NULL);
        if (at + m < n && lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "interrupted after %lld of %lld pictures",
                           (long long)(at + m), (long long)n);
    }
    return 0;
}

/* ---- passes ------------------------------------------------------------------------------------ */

typedef struct feed {
    lw_passes *p;
    const lw_pass_row *row;
    unsigned char *dst[MAX_KEPT];
} feed;

static void feed_task(void *arg, int64_t i, int worker)
{
    const feed *f = arg;
    const unsigned char *place = f->p->place + (uint64_t)f->row[i].place * f->p->info.kept;
    (void)worker;
    for (int k = 0; k < f->p->n_kept; k++) {
        const kept_value *v = &f->p->kept[k];
        memcpy(f->dst[k] + (size_t)i * v->bytes, place + v->at, v->bytes);
    }
}

static void copy_rows_in(lw_passes *p, const lw_pass_row *row, int32_t n)
{
    feed f = {.p = p, .row = row};
    double begin = lw_now();
    LW_ASSERT(n <= p->o.rows, "%d rows of %d", (int)n, (int)p->o.rows);
    for (int k = 0; k < p->n_kept; k++)
        f.dst[k] = lw_forward_input(p->suffix, p->kept[k].name);
    int64_t *ids = lw_forward_input(p->suffix, "rows");
    for (int32_t i = 0; i < n; i++) {
        LW_ASSERT(row[i].place >= 0 && row[i].place < p->o.keep, "place %lld",
                  (long long)row[i].place);
        ids[i] = row[i].id;
    }
    lw_pool_run(p->dev->pool, n, feed_task, &f);
    p->info.feed += lw_now() - begin;
}

void lw_passes_feed(lw_passes *p, const lw_pass_row *row, int32_t n)
{
    if (!lw_device_is_apart(p->dev))
        return;
    copy_rows_in(p, row, n);
    p->fed = true;
}

int lw_passes_begin(lw_passes *p, const lw_pass_row *row, int32_t n, const lw_tick *tick)
{
    if (!p->fed)
        copy_rows_in(p, row, n);
    p->fed = false;
    double begin = lw_now();
    LW_TRY(lw_forward_run(p->suffix, tick));
    p->info.forward += lw_now() - begin;
    return 0;
}

int lw_passes_end(lw_passes *p, int32_t n, float *out)
{
    double begin = lw_now();
    const float *y = lw_forward_output(p->suffix, p->output); /* a device is through */
    p->info.forward += lw_now() - begin;
    memcpy(out, y, (size_t)n * (size_t)p->info.dim * sizeof *out);
    return lw_forward_failed(p->suffix);
}

int lw_passes_run(lw_passes *p, const lw_pass_row *row, int32_t n, const lw_tick *tick, float *out)
{
    LW_TRY(lw_passes_begin(p, row, n, tick));
    return lw_passes_end(p, n, out);
}
