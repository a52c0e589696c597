/* SPDX-License-Identifier: Apache-2.0 */
/* What a call will take: memory, before anything is done; seconds, from a batch of each kind measured
 * here. */
#include <sys/resource.h>

#include "jobs/mc/mc_parts.h"

enum { SOME = 8 };

/* ---- memory ------------------------------------------------------------------------------------ */

static uint64_t array_bytes(const mc_model *m)
{
    uint64_t n = (uint64_t)m->n, t = (uint64_t)m->c->n_passes, k = (uint64_t)m->c->trials;
    uint64_t geometry = m->experiments & MC_EXP0B ? sizeof *m->geometry : 0;
    return t * k * n * sizeof *m->scores + 2 * t * n * (uint64_t)m->dim * sizeof *m->mean +
           k * n * geometry;
}

int lw_mc_check_memory(mc_model *m)
{
    lw_passes_info cut = lw_passes_get_info(m->passes);
    uint64_t pixels = (uint64_t)m->n * (uint64_t)m->data->h * (uint64_t)m->data->w * 3;
    uint64_t weights = lw_store_bytes(m->net->store), kept = cut.kept * (uint64_t)m->n;
    uint64_t arrays = array_bytes(m), mapped = 0, total = lw_memory_total();
    uint64_t need = weights + cut.bytes + arrays;
    struct rlimit space;
    *(m->data->cached ? &mapped : &need) += pixels;
    *(cut.on_disk ? &mapped : &need) += kept;
    m->out->arrays = arrays;
    m->out->need = need;
    bool limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
                   need + mapped > space.rlim_cur;
    if (need <= total && !limited)
        return 0;
    char b[6][32];
    return lw_fail(
        LW_ENOMEM,
        "out of memory: %s needs %s (weights %s, plans %s, scores of %lld pictures and %d "
        "trials %s), there are %s: take fewer of them, a smaller --batch-size, or "
        "--memory-limit, which puts what is kept of pictures on the disk",
        m->out->name, lw_fmt_bytes(b[0], limited ? need + mapped : need),
        lw_fmt_bytes(b[1], weights), lw_fmt_bytes(b[2], cut.bytes), (long long)m->n,
        (int)m->c->trials, lw_fmt_bytes(b[3], arrays),
        lw_fmt_bytes(b[4], limited ? (uint64_t)space.rlim_cur : total));
}

/* ---- time -------------------------------------------------------------------------------------- */

/* Of one picture's scores at every T, on one thread. */
static int time_scores(const mc_model *m, double *seconds)
{
    size_t dim = (size_t)m->dim;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)m->most * dim, sizeof *x);
    LW_CLEANUP(lw_free) double *room = lw_calloc(2 * dim, sizeof *room);
    double score[LW_PASS_SCORES];
    const lw_rng_key key = lw_rng_key_of(1, lw_hash_name("forecast"));
    if (!x || !room)
        return LW_ENOMEM;
    for (size_t i = 0; i < (size_t)m->most * dim; i++)
        x[i] = (float)lw_rng_uniform(key, 0, 0, i);
    double begin = lw_now();
    for (int32_t p = 0; p < m->c->n_passes; p++)
        LW_TRY(lw_pass_scores(x, m->c->passes[p], m->dim, score, room, room + dim, NULL));
    *seconds = lw_now() - begin;
    return 0;
}

static int time_prefix(mc_model *m, int64_t some, double *seconds)
{
    for (int i = 0; i <= lw_device_warm_runs(m->dev, false); i++) {
        double begin = lw_now();
        LW_TRY(lw_passes_prefix(m->passes, 0, some, lw_mc_fill, m, NULL));
        *seconds = lw_now() - begin;
    }
    return 0;
}

int lw_mc_forecast(mc_model *m, double opened)
{
    double first, second, prefix, score, n = (double)m->n, trials = m->c->trials;
    int64_t some = LW_MIN(m->n, (int64_t)SOME);
    int32_t whole = LW_MAX(m->out->batch / m->most, 1); /* pictures that are scored at once */
    LW_TRY(lw_mc_time_rows(m, m->out->batch, &first));
    LW_TRY(lw_mc_time_rows(m, m->out->batch, &second));
    LW_TRY(time_prefix(m, some, &prefix));
    LW_TRY(time_scores(m, &score));
    int32_t times = 1 + (m->experiments & MC_VALIDITY ? LW_DEGRADATIONS : 0);
    m->out->prefix = prefix / (double)some * n * times;
    m->out->passes = (first + second) / 2 / m->out->batch * n * m->most * trials * times;
    m->out->scores = score * n * trials * times / LW_MIN(lw_pool_size(m->dev->pool), whole);
    m->out->seconds = opened + (times - 1) * m->out->decode + m->out->prefix + m->out->passes +
                      m->out->scores;
    return 0;
}
