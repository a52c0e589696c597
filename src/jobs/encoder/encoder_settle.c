/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of BatchNorm by passes in training form. Each picture gives mean m and variance v of
 * its own places; over the pictures the mean is that of the m, the variance E[v] + Var[m], so that
 * nothing large is subtracted from anything large.
 */
#include "jobs/encoder/encoder_settle.h"

#include <stdio.h>
#include <string.h>

#include "session/session_forward.h"

enum { SETTLE_PICTURES = 4096, SETTLE_NORMS = 512 };

struct lw_settle {
    const lw_picture_run *p;
    lw_forward *f;
    int64_t rows;     /* whole batches */
    uint64_t version; /* of the averaged weights that are settled; 0: none */
    int n;
    int32_t norm[SETTLE_NORMS]; /* entry of its running_mean, before that of its running_var */
};

/* ---- the graph ------------------------------------------------------------------------------- */

typedef struct watch {
    lw_settle *s;
    const lw_store *store;
} watch;

static void port_name(char *name, size_t size, const char *what, int i)
{
    snprintf(name, size, "%s.%d", what, i);
}

static lw_val output(void *self, lw_builder *b, const char *layer, lw_val before, lw_val x)
{
    const watch *w = self;
    lw_settle *s = w->s;
    lw_graph *g = b->g;
    LW_CLEANUP(lw_str_clear) lw_str entry = {0};
    char name[32];
    (void)before;
    lw_str_addf(&entry, "%s.running_mean", layer);
    int32_t at = lw_store_find(w->store, lw_str_c(&entry));
    if (at < 0)
        return x; /* not a BatchNorm */
    if (s->n == SETTLE_NORMS)
        return lw_graph_fail(g, LW_EUSAGE, "more than %d BatchNorms", SETTLE_NORMS);
    lw_type t = lw_val_type(g, x);
    lw_val mean = lw_mean(g, x, LW_OVER_MIDDLE);
    lw_val apart = lw_reshape(g, mean, lw_type_of(LW_F32, 4, t.dim[0], 1, 1, t.dim[3]));
    lw_val var = lw_mean(g, lw_sqr(g, lw_sub(g, x, apart)), LW_OVER_MIDDLE);
    port_name(name, sizeof name, "mean", s->n);
    lw_graph_output_add(g, name, mean, LW_NOVAL);
    port_name(name, sizeof name, "var", s->n);
    lw_graph_output_add(g, name, var, LW_NOVAL);
    s->norm[s->n++] = at;
    return x;
}

int lw_settle_new(const lw_encoder_config *net, const lw_picture_run *p, lw_settle **out)
{
    LW_CLEANUP(lw_settle_free) lw_settle *s = lw_calloc(1, sizeof *s);
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps = {0};
    if (!s)
        return LW_ENOMEM;
    s->p = p;
    int64_t batch = p->leaves.size;
    s->rows = LW_CEIL_DIV((int64_t)SETTLE_PICTURES, batch) * batch;
    watch w = {s, p->store};
    const lw_layer_hook hook = {&w, output};
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(p->store), .training = true, .hook = &hook};
    lw_type t = lw_type_of(LW_F32, 4, (int32_t)batch, p->data->h, p->data->w, p->data->channels);
    lw_encoder_net(&b, net, lw_input(g, "images", t), &taps);
    LW_TRY(lw_graph_error(g));
    LW_TRY(lw_forward_of(p->dev, &g, NULL, LW_SLAB_EMA, "statistics of BatchNorm", &s->f));
    *out = lw_steal(&s);
    return 0;
}

void lw_settle_free(lw_settle **pp)
{
    if (!*pp)
        return;
    lw_forward_free(&(*pp)->f);
    lw_free(pp);
}

/* ---- a pass ---------------------------------------------------------------------------------- */

static int fill(void *self, int64_t first, int64_t n, void *images)
{
    const lw_settle *s = self;
    const lw_dataset *d = s->p->data;
    const lw_loader_opts o = {.batch_size = (int32_t)s->p->leaves.size,
                              .seed = (uint64_t)s->p->c->seed};
    for (int64_t i = 0; i < n; i++) {
        int64_t epoch, row;
        lw_loader_place(d, &o, first + i, &epoch, &row);
        lw_data_get(d, row, false, (float *)images + i * lw_data_row_size(d));
    }
    return 0;
}

/* mean and var [rows][c] of pictures into entry `at` and the next. */
static void set(lw_store *store, int32_t at, const float *mean, const float *var, int64_t rows)
{
    int64_t c = lw_store_at(store, at)->count;
    for (int64_t k = 0; k < c; k++) {
        double m = 0, v = 0, between = 0;
        for (int64_t i = 0; i < rows; i++) {
            m += (double)mean[i * c + k];
            v += (double)var[i * c + k];
        }
        m /= (double)rows;
        for (int64_t i = 0; i < rows; i++)
            between += ((double)mean[i * c + k] - m) * ((double)mean[i * c + k] - m);
        v = (v + between) / (double)rows;
        for (int slab = 0; slab < 2; slab++) {
            lw_slab of = slab ? LW_SLAB_EMA : LW_SLAB_PARAM;
            lw_store_edit(store, at, of)[k] = (float)m;
            lw_store_edit(store, at + 1, of)[k] = (float)v;
        }
    }
    /* They have no gradient: their momentum is what weight decay has pulled at values that are gone now, and the
     * file of a checkpoint would tell when a run was saved before. */
    for (int32_t i = at; i < at + 2; i++)
        memset(lw_store_edit(store, i, LW_SLAB_M), 0, sizeof(float) * (size_t)c);
}

int lw_settle_run(lw_settle *s)
{
    lw_store *store = s->p->store;
    if (s->version == lw_store_version(store, LW_SLAB_EMA))
        return 0;
    int64_t total = 0;
    for (int i = 0; i < s->n; i++)
        total += 2 * s->rows * lw_store_at(store, s->norm[i])->count;
    LW_CLEANUP(lw_free) float *all = lw_calloc((size_t)LW_MAX(total, 1), sizeof *all);
    LW_CLEANUP(lw_free) lw_feed *feed = lw_calloc((size_t)(1 + 2 * s->n), sizeof *feed);
    LW_CLEANUP(lw_free) char(*name)[32] = lw_calloc((size_t)(1 + 2 * s->n), sizeof *name);
    if (!all || !feed || !name)
        return LW_ENOMEM;
    float *at = all;
    feed[0] = (lw_feed){.name = "images", .fill = fill, .self = s};
    for (int i = 0; i < 2 * s->n; i++) {
        port_name(name[i], sizeof name[i], i % 2 ? "var" : "mean", i / 2);
        feed[1 + i] = (lw_feed){.name = name[i], .out = at};
        at += s->rows * lw_store_at(store, s->norm[i / 2])->count;
    }
    LW_TRY(lw_forward_rows(s->f, "statistics", s->rows, feed, 1 + 2 * s->n, NULL));
    for (int i = 0; i < s->n; i++)
        set(store, s->norm[i], feed[1 + 2 * i].out, feed[2 + 2 * i].out, s->rows);
    lw_store_touch(store, LW_SLAB_PARAM);
    lw_store_touch(store, LW_SLAB_EMA);
    lw_store_touch(store, LW_SLAB_M);
    s->version = lw_store_version(store, LW_SLAB_EMA);
    return 0;
}
