/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drifting transformer: forward passes, and training steps that regress it onto given pictures (forward, backward,
 * clip, AdamW, average), as a drift step does behind its features.
 */
#include "bench/bench_reference.h"

#include <stdio.h>

typedef struct dit_case {
    const char *name;
    lw_dit_config config;
    int32_t forward, train; /* batch sizes, unless others are asked for */
} dit_case;

typedef struct dit_workload {
    const lw_dit_config *config;
    int32_t batch;
} dit_workload;

static lw_val build_net(lw_builder *b, const dit_workload *w, lw_type *pictures)
{
    const lw_dit_config *c = w->config;
    *pictures = lw_type_of(LW_F32, 4, w->batch, c->image_size, c->image_size, c->channels);
    lw_network_in in = {
        .x = lw_input(b->g, "x", *pictures),
        .classes = lw_input(b->g, "class", lw_type_of(LW_I32, 1, w->batch)),
        .alpha = lw_input(b->g, "alpha", lw_type_of(LW_F32, 1, w->batch)),
        .styles = lw_input(b->g, "styles", lw_type_of(LW_I32, 2, w->batch, c->styles)),
    };
    return lw_dit(b, c, in);
}

static int build_forward(lw_builder *b, const void *what)
{
    lw_type pictures;
    lw_graph_output_add(b->g, "y", build_net(b, what, &pictures), LW_NOVAL);
    return lw_graph_error(b->g);
}

static int build_train(lw_builder *b, const void *what)
{
    lw_graph *g = b->g;
    lw_type pictures;
    lw_val y = build_net(b, what, &pictures);
    lw_val loss = lw_mean(g, lw_sqr(g, lw_sub(g, y, lw_input(g, "target", pictures))), LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

/* What begins at zero (modulation, head) would make every picture and almost every gradient 0: an error could not be
 * seen. */
static void fill_zeros(lw_store *s)
{
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        lw_store_entry e = *lw_store_at(s, i);
        if (e.init.kind != LW_INIT_ZEROS || e.type.rank < 2)
            continue;
        e.init = (lw_init){LW_INIT_NORMAL, 0.02f};
        lw_store_init_entry(&e, 1, lw_store_edit(s, i, LW_SLAB_PARAM));
    }
    lw_store_touch(s, LW_SLAB_PARAM);
    lw_store_start_ema(s);
}

static int measure(lw_bench_run *r, const dit_case *c, const lw_bench_method *m, bool train,
                   int32_t batch)
{
    char name[64];
    const dit_workload what = {&c->config, batch};
    const lw_workload_spec spec = {.build = train ? build_train : build_forward,
                                   .what = &what,
                                   .opts = m->opts,
                                   .fill = fill_zeros,
                                   .train = train,
                                   .limit = lw_bench_memory_limit(r)};
    if (!m->opts.opt || m->train_only || !m->trains)
        return 0;
    snprintf(name, sizeof name, "%s_%s%s_b%d", c->name, train ? "train" : "forward", m->tag,
             (int)batch);
    if (!lw_bench_wants(r, name))
        return 0;
    return train ? lw_bench_train_step(r, m, &spec, name, batch)
                 : lw_bench_workload(r, m, &spec, name, batch);
}

int lw_bench_suite_dit(lw_bench_run *r)
{
    dit_case cases[] = {{"dit_b2", lw_dit_base(), 8, 4}, {"dit_small", lw_dit_base(), 2, 2}};
    cases[1].config.image_size = 8;
    cases[1].config.hidden = 48;
    cases[1].config.depth = 2;
    cases[1].config.heads = 3;
    const lw_bench_config *o = r->config;
    for (size_t i = 0; i < LW_COUNT(cases); i++)
        for (int train = 0; train < 2; train++)
            for (size_t m = 0; m < lw_bench_n_methods; m++)
                for (int32_t b = 0; b < LW_MAX(o->n_batch, 1); b++)
                    LW_TRY(measure(r, &cases[i], &lw_bench_methods[m], train,
                                   o->n_batch ? o->batch[b]
                                   : train    ? cases[i].train
                                              : cases[i].forward));
    return 0;
}
