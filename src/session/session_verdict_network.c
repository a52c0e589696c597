/* SPDX-License-Identifier: Apache-2.0 */
/* One network's distances: of rows, of as many real pictures, of honest sets. */
#include "session/session_verdict_network.h"

#include <string.h>

/* ---- the pictures ---------------------------------------------------------------------------- */

/* Fixed: a rule learnt from other kinds is another rule. */
static const lw_junk_kind kinds[VERDICT_KINDS] = {
    LW_JUNK_AVERAGE, LW_JUNK_SPLICE, LW_JUNK_BLUR,   LW_JUNK_BLUR2, LW_JUNK_WARP,
    LW_JUNK_TILE,    LW_JUNK_NOISE,  LW_JUNK_NOISED, LW_JUNK_MEAN,  LW_JUNK_REPEATED};

verdict_sizes lw_verdict_sizes_of(int64_t reference, int64_t unseen)
{
    return (verdict_sizes){reference, unseen, LW_MIN(LW_MAX(unseen / 2, 1), LW_VERDICT_HONEST)};
}

int64_t lw_verdict_picture_count(const verdict_sizes *s)
{
    return s->reference + s->unseen + VERDICT_KINDS * s->honest;
}

int lw_verdict_pictures(const lw_verdict_real *real, const verdict_sizes *s, uint8_t **out)
{
    size_t row = (size_t)real->side * (size_t)real->side * 3;
    int64_t whole = s->reference + s->unseen;
    LW_CLEANUP(lw_junk_free) lw_junk *junk = NULL;
    LW_CLEANUP(lw_free) uint8_t *rgb = lw_calloc((size_t)lw_verdict_picture_count(s) * row, 1);
    LW_CLEANUP(lw_free) float *x = lw_calloc(row, sizeof *x);
    const lw_dataset unseen = {.n = s->unseen,
                               .h = real->side,
                               .w = real->side,
                               .channels = 3,
                               .classes = real->classes,
                               .labels = real->labels + s->reference,
                               .pixels = real->pixels + (size_t)s->reference * row};
    if (!rgb || !x)
        return LW_ENOMEM;
    memcpy(rgb, real->pixels, (size_t)whole * row);
    LW_TRY(lw_junk_new(&unseen, 2024, &junk));
    for (int kind = 0; kind < VERDICT_KINDS; kind++)
        for (int64_t i = 0; i < s->honest; i++) {
            lw_junk_make(junk, kinds[kind], i, x);
            lw_data_to_u8(x, (int64_t)row, rgb + (size_t)(whole + kind * s->honest + i) * row);
        }
    *out = lw_steal(&rgb);
    return 0;
}

/* ---- distances ------------------------------------------------------------------------------- */

int lw_verdict_network_open(lw_pool *pool, const char *name, int32_t dim, const verdict_sizes *s,
                            const lw_verdict_opts *o, float **features, verdict_network *out)
{
    LW_CLEANUP(lw_verdict_network_clear)
    verdict_network n = {.pool = pool, .name = name, .dim = dim, .sizes = *s, .o = *o};
    n.features = lw_steal(features);
    LW_TRY(lw_stats_new(dim, &n.reference));
    LW_TRY(lw_stats_add(pool, n.reference, n.features, s->reference));
    LW_TRY(lw_frechet_loss_new(n.reference, &n.loss));
    *out = n;
    n = (verdict_network){0};
    return 0;
}

void lw_verdict_network_clear(verdict_network *n)
{
    lw_free(&n->features);
    lw_stats_free(&n->reference);
    lw_frechet_loss_free(&n->loss);
}

static int sliced(const verdict_network *n, lw_pool *pool, const float *f, int64_t rows,
                  int32_t directions, double *out)
{
    return lw_sliced_wasserstein(pool, f, rows, n->features,
                                 LW_MIN(n->sizes.reference, VERDICT_SLICED_ROWS), n->dim,
                                 directions, n->o.seed, out);
}

static const float *unseen(const verdict_network *n)
{
    return n->features + n->sizes.reference * n->dim;
}

int lw_verdict_floor(verdict_network *n, int64_t rows, double *frechet, double *out)
{
    rows = LW_MIN(rows, n->sizes.unseen);
    if (n->floor_n != rows) {
        LW_TRY(lw_frechet_rows(unseen(n), rows, n->reference, &n->floor[0]));
        LW_TRY(sliced(n, n->pool, unseen(n), rows, n->o.directions, &n->floor[1]));
        n->floor_n = rows;
    }
    *frechet = n->floor[0];
    *out = n->floor[1];
    return 0;
}

int lw_verdict_distances(const verdict_network *n, const float *f, int64_t rows,
                         const lw_resampling *how, lw_verdict_value *v, double *frechet,
                         double *sliced_draws)
{
    LW_TRY(lw_frechet_linear(f, rows, n->reference, n->loss, how, &v->frechet, frechet));
    return lw_sliced_replicates(n->pool, f, rows, n->features,
                                LW_MIN(n->sizes.reference, VERDICT_SLICED_ROWS), n->dim,
                                n->o.directions, n->o.seed, how, &v->sliced, sliced_draws);
}

/* ---- honest sets ----------------------------------------------------------------------------- */

enum { COARSE = 4, SETS = VERDICT_DAMAGED + VERDICT_WHOLE + 1 }; /* the last one: their floor */

typedef struct honest_job {
    const verdict_network *n;
    float *rows; /* [SETS][honest][dim] */
    double frechet[SETS], sliced[SETS];
} honest_job;

/* Set i of a share of damaged pictures, the others as they are. */
static void fill_damaged(const verdict_network *n, int32_t i, float *dst)
{
    static const int64_t quarters[VERDICT_SHARES] = {1, 4};
    int64_t h = n->sizes.honest, bad = h * quarters[i % VERDICT_SHARES] / 4, d = n->dim;
    const float *junk = unseen(n) + (n->sizes.unseen + (int64_t)(i / VERDICT_SHARES) * h) * d;
    memcpy(dst, junk, (size_t)(bad * d) * sizeof *dst);
    memcpy(dst + bad * d, unseen(n) + bad * d, (size_t)((h - bad) * d) * sizeof *dst);
}

/*
 * A draw of undamaged ones, of each class as many as their floor has: a trained classifier sees little
 * but classes, and shares of them that chance made unequal would look to it like damage. Row r takes
 * the place of picture r, so a class is drawn from within itself: at[c] is how many it gave so far.
 */
static int fill_whole(const verdict_network *n, const int32_t *label, int32_t classes, int32_t i,
                      float *dst)
{
    lw_rng_key key = lw_rng_key_of(n->o.seed, lw_hash_name("verdict.whole"));
    LW_CLEANUP(lw_free) int64_t *order = lw_calloc((size_t)n->sizes.unseen, sizeof *order);
    LW_CLEANUP(lw_free) int64_t *first = lw_calloc((size_t)classes + 2, sizeof *first);
    LW_CLEANUP(lw_free) int64_t *at = lw_calloc((size_t)classes + 1, sizeof *at);
    if (!order || !first || !at)
        return LW_ENOMEM;
    for (int64_t r = 0; r < n->sizes.unseen; r++)
        first[label[r] + 1]++;
    for (int32_t c = 0; c < classes; c++)
        first[c + 1] += first[c];
    for (int64_t r = 0; r < n->sizes.unseen; r++)
        order[first[label[r]] + at[label[r]]++] = r;
    memset(at, 0, ((size_t)classes + 1) * sizeof *at);
    for (int64_t r = 0; r < n->sizes.honest; r++) {
        int32_t c = label[r];
        uint64_t size = (uint64_t)(first[c + 1] - first[c]);
        uint64_t k = lw_rng_permute(key, (uint32_t)(i * classes + c), size, (uint64_t)at[c]++);
        memcpy(dst + r * n->dim, unseen(n) + order[first[c] + (int64_t)k] * n->dim,
               (size_t)n->dim * sizeof *dst);
    }
    return 0;
}

static int measure_honest(void *arg, int64_t i, int worker)
{
    honest_job *j = arg;
    (void)worker;
    const verdict_network *n = j->n;
    const float *f = j->rows + i * n->sizes.honest * n->dim;
    int32_t directions = LW_MAX(n->o.directions / COARSE, 1);
    LW_TRY(lw_frechet_rows(f, n->sizes.honest, n->reference, &j->frechet[i]));
    return sliced(n, NULL, f, n->sizes.honest, directions, &j->sliced[i]);
}

int lw_verdict_honest(verdict_network *n, const lw_verdict_real *real, int32_t stride,
                      double *damaged, double *whole)
{
    const int32_t last = SETS - 1;
    size_t set = (size_t)(n->sizes.honest * n->dim);
    LW_CLEANUP(lw_free) float *rows = lw_calloc(SETS * set, sizeof *rows);
    honest_job j = {.n = n, .rows = rows};
    if (!rows)
        return LW_ENOMEM;
    for (int32_t i = 0; i < VERDICT_DAMAGED; i++)
        fill_damaged(n, i, rows + (size_t)i * set);
    for (int32_t i = 0; i < VERDICT_WHOLE; i++)
        LW_TRY(fill_whole(n, real->labels + n->sizes.reference, real->classes, i,
                          rows + (size_t)(VERDICT_DAMAGED + i) * set));
    memcpy(rows + (size_t)last * set, unseen(n), set * sizeof *rows);
    LW_TRY(lw_pool_try(n->pool, SETS, measure_honest, &j));
    for (int32_t i = 0; i < last; i++)
        if (lw_verdict_level(j.frechet[i], j.sliced[i], j.frechet[last], j.sliced[last],
                             i < VERDICT_DAMAGED ? &damaged[i * stride]
                                                 : &whole[(i - VERDICT_DAMAGED) * stride]) < 0)
            return lw_fail_in(LW_ENUMERIC, "real pictures in %s: ", n->name);
    return 0;
}

/* ---- how long -------------------------------------------------------------------------------- */

/* One row of rows_n pictures, and its floor. */
static int time_row(verdict_network *n, int64_t rows, bool floor, double *seconds)
{
    const lw_resampling how = {.replicates = n->o.replicates, .seed = n->o.seed};
    LW_CLEANUP(lw_free) double *draws = lw_calloc(2 * (size_t)how.replicates, sizeof *draws);
    lw_verdict_value v;
    double start = lw_now();
    if (!draws)
        return LW_ENOMEM;
    if (floor)
        LW_TRY(lw_verdict_floor(n, rows, &v.frechet_real, &v.sliced_real));
    LW_TRY(lw_verdict_distances(n, n->features, rows, &how, &v, draws, draws + how.replicates));
    *seconds += lw_now() - start;
    return 0;
}

static float *drawn_features(int64_t n, int32_t dim)
{
    float *f = lw_calloc((size_t)(n * dim), sizeof *f);
    lw_rng_key key = lw_rng_key_of(1, lw_hash_name("verdict.time"));
    for (int64_t i = 0; f && i < n; i++)
        for (int32_t k = 0; k < dim; k++)
            f[i * dim + k] = (float)lw_rng_uniform(key, 0, (uint64_t)i, (uint64_t)k);
    return f;
}

int lw_verdict_time(lw_pool *pool, int32_t dim, const lw_verdict_real *real,
                    const lw_verdict_opts *o, const lw_verdict_set *rows, int32_t n_rows,
                    double *seconds)
{
    const verdict_sizes s = lw_verdict_sizes_of(real->reference, real->unseen);
    double damaged[VERDICT_DAMAGED], whole[VERDICT_WHOLE], start = lw_now();
    int64_t most = 0, last = -1;
    for (int32_t i = 0; i < n_rows; i++)
        most = LW_MAX(most, rows[i].n);
    int64_t count = LW_MAX(lw_verdict_picture_count(&s), most);
    LW_CLEANUP(lw_free) float *f = drawn_features(count, dim);
    LW_CLEANUP(lw_verdict_network_clear) verdict_network n = {0};
    if (!f)
        return LW_ENOMEM;
    start = lw_now();
    LW_TRY(lw_verdict_network_open(pool, "drawn features", dim, &s, o, &f, &n));
    LW_TRY(lw_verdict_honest(&n, real, 1, damaged, whole));
    *seconds += lw_now() - start;
    double one = 0;
    for (int32_t i = 0; i < n_rows; i++) {
        if (rows[i].n != last) { /* rows of one size cost alike */
            one = 0;
            LW_TRY(time_row(&n, rows[i].n, true, seconds));
            last = rows[i].n;
            continue;
        }
        if (one == 0)
            LW_TRY(time_row(&n, rows[i].n, false, &one));
        *seconds += one;
    }
    return 0;
}
