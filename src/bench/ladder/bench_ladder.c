/* SPDX-License-Identifier: Apache-2.0 */
/* The rungs, the jobs that are predicted from them, and the loop over models. */
#include "bench/ladder/bench_ladder.h"

#include <stdio.h>
#include <string.h>

#include "bench/bench_case.h"
#include "bench/ladder/bench_ladder_parts.h"

enum { SMALL_BATCH = 8, LARGE_BATCH = 64, UNFUSED_BATCH = 16, CHECK_TIMES = 4 };

/* Each with what those before it have; the last takes one thing away. */
static const ladder_rung rungs[LW_LADDER_RUNGS] = {
    {.name = "decode each pass", .again = true, .rows = SMALL_BATCH, .whole = true},
    {.name = "pixels kept", .rows = SMALL_BATCH, .whole = true},
    {.name = "bf16", .bf16 = true, .rows = SMALL_BATCH, .whole = true},
    {.name = "larger batch", .bf16 = true, .rows = LARGE_BATCH, .whole = true},
    {.name = "prefix once", .bf16 = true, .rows = LARGE_BATCH},
    {.name = "passes folded", .bf16 = true, .rows = LARGE_BATCH, .folded = true},
    {.name = "unfused", .bf16 = true, .rows = UNFUSED_BATCH, .folded = true, .unfused = true},
};
enum { BEST = LW_LADDER_RUNGS - 2 };

const char *const lw_ladder_part_name[LW_LADDER_PARTS] = {
    "load", "decode", "resize", "stack", "once", "copy", "forward", "accumulate"};

const lw_ladder_job lw_ladder_jobs[LW_LADDER_JOBS] = {
    {"exp0", "10 trials of 64 passes, nested", 500, 320000},
    {"exp0 apart", "10 trials of 4 + 16 + 64 passes", 500, 420000},
    {"exp0b", "5 trials of 64 passes", 500, 160000},
    {"exp4", "10 trials of 64 passes", 500, 320000},
    {"exp5", "64 passes of 5,000 pictures", 5000, 320000},
    {"phase 1", "exp0, exp0b, exp4, exp5", 5500, 1120000},
};

/* ---- one model --------------------------------------------------------------------------------- */

static void model_clear(ladder_model *m)
{
    lw_data_close(&m->data);
    lw_sites_clear(&m->sites);
    lw_network_close(&m->net);
    lw_free(&m->pixels);
}

static int open_model(ladder_model *m, const char *source, const char *data)
{
    LW_CLEANUP(lw_str_clear) lw_str spec = {0};
    LW_TRY(lw_network_open(source, true, &m->net));
    LW_TRY(lw_sites_find(m->net, m->c->sites, &m->sites));
    m->noise = (lw_noise){LW_NOISE_DROPOUT, 0.01f, &m->sites};
    m->hook = lw_noise_hook(&m->noise);
    m->net->hook = &m->hook;
    const lw_preparation *p = lw_network_preparation(m->net);
    m->preparation = p ? *p : lw_preparation_square(lw_network_side(m->net, 0));
    const lw_data_opts o = {.preparation = &m->preparation,
                            .split = LW_SPLIT_ALL,
                            .num_images = m->c->pictures,
                            .seed = m->c->seed,
                            .cache_dir = "",
                            .pool = m->dev->pool,
                            .obs = m->obs};
    lw_str_addf(&spec, "%s%s", strchr(data, ':') ? "" : "folder:", data);
    LW_TRY(spec.failed ? LW_ENOMEM : lw_data_open(lw_str_c(&spec), &o, &m->data));
    if (!m->data->root[0] || m->data->n < m->c->pictures)
        return lw_fail(LW_EUSAGE,
                       "--data %s: the ladder needs a folder of at least %d picture files", data,
                       (int)m->c->pictures);
    m->pixels = lw_calloc((size_t)m->data->n, (size_t)m->data->h * (size_t)m->data->w * 3);
    return m->pixels ? 0 : LW_ENOMEM;
}

static void describe(ladder_model *m)
{
    lw_ladder_model *o = m->out;
    snprintf(o->sites, sizeof o->sites, "%s", m->sites.list);
    o->n_sites = m->sites.n;
    o->live = m->sites.live;
    o->height = m->data->h;
    o->width = m->data->w;
}

static double predict(const lw_ladder_rung *r, int64_t pictures, int64_t rows)
{
    return r->once * (double)pictures + r->every * (double)rows;
}

static int run_rung(ladder_model *m, int at)
{
    lw_ladder_rung *r = &m->out->rung[at];
    char what[96];
    r->name = rungs[at].name;
    snprintf(what, sizeof what, "%s: %s", m->out->name, r->name);
    lw_observe_progress(m->obs, what, at, LW_LADDER_RUNGS, NULL);
    int rc = lw_ladder_run(m, &rungs[at], m->c->passes, r);
    if (rc == LW_ENOMEM || rc == LW_EUNSUPPORTED) {
        snprintf(r->skipped, sizeof r->skipped, "%s", lw_errmsg());
        return 0;
    }
    for (int j = 0; j < LW_LADDER_JOBS && rc == 0; j++)
        r->job[j] = r->compile + predict(r, lw_ladder_jobs[j].pictures, lw_ladder_jobs[j].rows);
    return rc;
}

/* A prediction beside what it was of. */
static int check(ladder_model *m)
{
    const lw_ladder_rung *best = &m->out->rung[BEST];
    lw_ladder_rung whole = {.name = "check"};
    int32_t passes = CHECK_TIMES * m->c->passes;
    if (best->skipped[0])
        return 0;
    lw_observe_progress(m->obs, "a whole run, to check a prediction", 0, 1, NULL);
    LW_TRY(lw_ladder_run(m, &rungs[BEST], passes, &whole));
    m->out->check_passes = whole.passes;
    m->out->check_seconds = whole.seconds;
    m->out->check_predicted = predict(best, m->c->pictures, whole.passes);
    return 0;
}

static int run_model(ladder_model *m, const char *source, const char *data)
{
    LW_TRY(open_model(m, source, data));
    describe(m);
    for (int i = 0; i < LW_LADDER_RUNGS; i++)
        LW_TRY(run_rung(m, i));
    return check(m);
}

/* ---- all --------------------------------------------------------------------------------------- */

static int run_models(const lw_ladder_config *c, const lw_observer *obs, const char *dir,
                      lw_ladder *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_str_clear) lw_str model = {0};
    LW_CLEANUP(lw_str_clear) lw_str data = {0};
    lw_str_addf(&model, "%s/clip_b32", dir);
    lw_str_addf(&data, "%s/pictures", dir);
    LW_TRY(model.failed || data.failed ? LW_ENOMEM : 0);
    LW_TRY(lw_session_device_with(c->threads, c->conv, &dev));
    lw_pool_watch(dev->pool, obs);
    if (out->random)
        LW_TRY(lw_ladder_draw_model(lw_str_c(&model)));
    if (out->drawn)
        LW_TRY(lw_ladder_draw_pictures(lw_str_c(&data), c->pictures));
    for (int32_t i = 0; i < LW_MAX(c->n_models, 1); i++) {
        LW_CLEANUP(model_clear)
        ladder_model m = {.c = c, .obs = obs, .dev = dev, .out = &out->model[out->n++]};
        const char *spec = out->random ? lw_str_c(&model) : c->models[i];
        const char *slash = strrchr(spec, '/'), *equals = strchr(spec, '=');
        const char *name = slash && !equals ? slash + 1 : spec;
        size_t n = equals ? (size_t)(equals - spec) : strlen(name);
        snprintf(m.out->name, sizeof m.out->name, "%.*s", (int)n, name);
        LW_TRY(run_model(&m, equals ? equals + 1 : spec, out->drawn ? lw_str_c(&data) : c->data));
    }
    return 0;
}

int lw_job_ladder(const lw_ladder_config *c, const lw_observer *obs, lw_ladder *out)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    *out = (lw_ladder){.drawn = !c->data,
                       .random = c->n_models == 0,
                       .pictures = c->pictures,
                       .passes = c->passes};
    LW_TRY(lw_bench_temp_dir(&dir));
    int rc = run_models(c, obs, lw_str_c(&dir), out);
    lw_remove_tree(lw_str_c(&dir));
    return rc;
}
