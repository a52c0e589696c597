/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of pictures through a battery, and real ones beside them. */
#include "session/session_verdict.h"

#include <math.h>
#include <string.h>

#include "session/session_verdict_network.h"

const char *lw_verdict_part_name(lw_verdict_part p)
{
    static const char *const names[] = {"made", "real", "control", "planted"};
    return names[p];
}

/* ---- real pictures --------------------------------------------------------------------------- */

void lw_verdict_real_clear(lw_verdict_real *r)
{
    lw_free(&r->pixels);
    lw_free(&r->labels);
}

int lw_verdict_split(const lw_dataset *d, int64_t unseen, lw_verdict_real *out)
{
    enum { LEAST = 100 };
    LW_CLEANUP(lw_free) int64_t *drawn = NULL;
    LW_CLEANUP(lw_verdict_real_clear) lw_verdict_real r = {.side = d->h, .classes = d->classes};
    size_t bytes = (size_t)d->h * (size_t)d->w * 3;
    if (d->n < LEAST)
        return lw_fail(LW_EUSAGE,
                       "%s: %lld pictures are too few to split into a reference and others, %d are "
                       "needed",
                       d->spec, (long long)d->n, LEAST);
    r.unseen = LW_MIN(unseen, d->n / 2);
    r.reference = LW_MIN(d->n - r.unseen, LW_VERDICT_REFERENCE);
    r.pixels = lw_calloc((size_t)(r.reference + r.unseen) * bytes, 1);
    r.labels = lw_calloc((size_t)(r.reference + r.unseen), sizeof *r.labels);
    if (!r.pixels || !r.labels)
        return LW_ENOMEM;
    LW_TRY(lw_data_drawn(d, &drawn));
    for (int64_t i = 0; i < r.reference + r.unseen; i++) {
        memcpy(r.pixels + (size_t)i * bytes, d->pixels + (size_t)drawn[i] * bytes, bytes);
        r.labels[i] = d->labels[drawn[i]];
    }
    *out = r;
    r = (lw_verdict_real){0};
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct verdict_job {
    lw_device *dev;
    const lw_battery *b;
    const lw_verdict_real *real;
    const lw_verdict_set *rows;
    int32_t n_rows;
    lw_verdict_opts o;
    lw_verdict_result *out;
    verdict_sizes sizes;
    double *damaged, *whole; /* levels of honest sets, [sets][networks] */
    double *draws;           /* [rows][networks][2][replicates] */
    lw_verdict_cell *cells;  /* [rows][networks] */
    int32_t k;               /* of the network that goes on, among those that count */
    verdict_network now;     /* the same */
} verdict_job;

static void job_clear(verdict_job *j)
{
    lw_verdict_network_clear(&j->now);
    lw_free(&j->damaged);
    lw_free(&j->whole);
    lw_free(&j->draws);
    lw_free(&j->cells);
    lw_free(&j->out);
}

/* Ratio to real pictures and its interval, of one measure alone. */
static int ratio_of(const lw_verdict_opts *o, double value, double real, const double *draws,
                    lw_interval *out)
{
    lw_interval i;
    LW_TRY(lw_interval_of_replicates(value, draws, o->replicates, o->level, &i));
    *out = (lw_interval){i.value / real, i.low / real, i.high / real};
    return 0;
}

static int measure_row(verdict_job *j, int32_t r, const float *f)
{
    const lw_verdict_set *s = &j->rows[r];
    const lw_resampling how = {.replicates = j->o.replicates,
                               .seed = j->o.seed,
                               .labels = s->labels,
                               .classes = s->classes};
    lw_verdict_value *v = &j->out->value[r][j->k];
    int64_t at = (int64_t)r * j->out->networks + j->k;
    double *frechet = j->draws + at * 2 * j->o.replicates, *sliced = frechet + j->o.replicates;
    double level;
    LW_TRY(lw_verdict_floor(&j->now, s->n, &v->frechet_real, &v->sliced_real));
    LW_TRY(lw_verdict_distances(&j->now, f, s->n, &how, v, frechet, sliced));
    if (lw_verdict_level(v->frechet, v->sliced, v->frechet_real, v->sliced_real, &level) < 0)
        return lw_fail_in(LW_ENUMERIC, "%s in %s: ", s->name, j->now.name);
    LW_TRY(ratio_of(&j->o, v->frechet, v->frechet_real, frechet, &v->frechet_ratio));
    LW_TRY(ratio_of(&j->o, v->sliced, v->sliced_real, sliced, &v->sliced_ratio));
    j->cells[at] = (lw_verdict_cell){v->frechet,     v->sliced, v->frechet_real,
                                     v->sliced_real, frechet,   sliced};
    return 0;
}

/* Set 0 are the real pictures and what was made of them, the rows come behind. */
static int on_features(void *self, int32_t i, int32_t s, float **f)
{
    verdict_job *j = self;
    const lw_battery_net *net = lw_battery_at(j->b, i);
    if (s > 0)
        return measure_row(j, s - 1, *f);
    while (j->out->network[j->k] != i)
        j->k++;
    lw_verdict_network_clear(&j->now);
    LW_TRY(
        lw_verdict_network_open(j->dev->pool, net->name, net->dim, &j->sizes, &j->o, f, &j->now));
    return lw_verdict_honest(&j->now, j->real, j->out->networks, j->damaged + j->k,
                             j->whole + j->k);
}

static int check_counted(const lw_battery *b)
{
    return lw_battery_counted(b) > 0
               ? 0
               : lw_fail(LW_EUSAGE,
                         "battery: every network is kin of an encoder that a training used");
}

static int job_open(verdict_job *j)
{
    LW_TRY(check_counted(j->b));
    lw_verdict_result *r = j->out = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    for (int32_t i = 0; i < lw_battery_count(j->b); i++)
        if (!lw_battery_at(j->b, i)->left_out)
            r->network[r->networks++] = i;
    r->rows = j->n_rows;
    r->families = lw_battery_families(j->b);
    r->reference = j->sizes.reference;
    r->unseen = j->sizes.unseen;
    r->honest = j->sizes.honest;
    r->replicates = j->o.replicates;
    r->directions = j->o.directions;
    r->level = j->o.level;
    size_t cells = (size_t)r->rows * (size_t)r->networks, networks = (size_t)r->networks;
    j->damaged = lw_calloc(VERDICT_DAMAGED * networks, sizeof *j->damaged);
    j->whole = lw_calloc(VERDICT_WHOLE * networks, sizeof *j->whole);
    j->draws = lw_calloc(cells * 2 * (size_t)j->o.replicates, sizeof *j->draws);
    j->cells = lw_calloc(cells, sizeof *j->cells);
    return j->damaged && j->whole && j->draws && j->cells ? 0 : LW_ENOMEM;
}

static lw_verdict_opts filled(const lw_verdict_opts *o)
{
    lw_verdict_opts f = *o;
    f.replicates = o->replicates ? o->replicates : 100;
    f.directions = o->directions ? o->directions : LW_SLICED_DIRECTIONS;
    f.level = o->level > 0 ? o->level : 0.95;
    return f;
}

static int conclude(verdict_job *j)
{
    bool counted[LW_VERDICT_ROWS];
    lw_verdict_result *r = j->out;
    for (int32_t i = 0; i < j->n_rows; i++)
        counted[i] = j->rows[i].part == LW_VERDICT_MADE;
    if (r->networks >= LW_VERDICT_LEAST)
        LW_TRY(lw_verdict_learn(r->networks, j->damaged, VERDICT_DAMAGED, j->whole, VERDICT_WHOLE,
                                &r->rule));
    return lw_verdict_rows(r->networks, r->rows, j->cells, counted, j->o.replicates, j->o.level,
                           r->networks >= LW_VERDICT_LEAST ? &r->rule : NULL, r->row);
}

/* Set 0: real pictures, whole and damaged, into *pixels; behind it the rows. */
static int make_sets(const lw_verdict_real *real, const verdict_sizes *sizes,
                     const lw_verdict_set *rows, int32_t n_rows, bool afresh, uint8_t **pixels,
                     lw_pictures sets[1 + LW_VERDICT_ROWS])
{
    LW_ASSERT(n_rows <= LW_VERDICT_ROWS, "%d rows", n_rows);
    LW_TRY(lw_verdict_pictures(real, sizes, pixels));
    sets[0] = (lw_pictures){.name = "real pictures, whole and damaged",
                            .n = lw_verdict_picture_count(sizes),
                            .side = real->side,
                            .rgb = *pixels};
    if (!afresh)
        sets[0].content =
            lw_hash64(*pixels, (size_t)sets[0].n * (size_t)real->side * (size_t)real->side * 3) | 1;
    for (int32_t i = 0; i < n_rows; i++)
        sets[1 + i] = (lw_pictures){
            .name = rows[i].name, .n = rows[i].n, .side = real->side, .rgb = rows[i].rgb};
    return 0;
}

int lw_verdict_run(lw_device *dev, lw_battery *b, const lw_verdict_real *real,
                   const lw_verdict_set *rows, int32_t n_rows, const lw_verdict_opts *o,
                   const lw_observer *obs, lw_verdict_result **out)
{
    LW_CLEANUP(lw_free) uint8_t *pixels = NULL;
    LW_CLEANUP(job_clear)
    verdict_job j = {.dev = dev,
                     .b = b,
                     .real = real,
                     .rows = rows,
                     .n_rows = n_rows,
                     .o = filled(o),
                     .sizes = lw_verdict_sizes_of(real->reference, real->unseen)};
    lw_pictures sets[1 + LW_VERDICT_ROWS];
    double start = lw_now();
    LW_TRY(job_open(&j));
    LW_TRY(make_sets(real, &j.sizes, rows, n_rows, o->afresh, &pixels, sets));
    LW_TRY(lw_battery_run(b, sets, 1 + n_rows, on_features, &j, obs));
    LW_TRY(conclude(&j));
    j.out->seconds = lw_now() - start;
    *out = lw_steal(&j.out);
    return 0;
}

/* ---- how long -------------------------------------------------------------------------------- */

int lw_verdict_forecast(lw_device *dev, lw_battery *b, const lw_verdict_real *real,
                        const lw_verdict_set *rows, int32_t n_rows, const lw_verdict_opts *o,
                        double *seconds)
{
    LW_CLEANUP(lw_free) uint8_t *pixels = NULL;
    const lw_verdict_opts f = filled(o);
    const verdict_sizes sizes = lw_verdict_sizes_of(real->reference, real->unseen);
    lw_pictures sets[1 + LW_VERDICT_ROWS];
    lw_battery_cost cost;
    double sum = -lw_now();
    LW_TRY(check_counted(b));
    LW_TRY(make_sets(real, &sizes, rows, n_rows, o->afresh, &pixels, sets));
    sum += lw_now();
    LW_TRY(lw_battery_forecast(b, sets, 1 + n_rows, &cost));
    for (int32_t i = 0; i < lw_battery_count(b); i++) {
        const lw_battery_net *net = lw_battery_at(b, i);
        if (!net->left_out)
            LW_TRY(lw_verdict_time(dev->pool, net->dim, real, &f, rows, n_rows, &sum));
    }
    *seconds = sum + cost.seconds;
    return 0;
}
