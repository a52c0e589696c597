/* SPDX-License-Identifier: Apache-2.0 */
/* Two sets, one row of numbers for each encoder. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jobs/fid/fid_view.h"

enum { KID_SUBSETS = 100, KID_ROWS = 1000, NEIGHBOURS = 3, SCORE_SPLITS = 10 };

typedef struct fid_state {
    const lw_fid_config *c;
    const lw_observer *obs;
    lw_fid_result *out;
    lw_device *dev;
    fid_set set[2];
    int n; /* sets given */
} fid_state;

static void clear_state(fid_state *s)
{
    for (int i = 0; i < 2; i++)
        lw_fid_set_clear(&s->set[i]);
    lw_backend_close(&s->dev);
}

__attribute__((format(printf, 2, 3))) static void add_note(lw_fid_row *r, const char *fmt, ...)
{
    char note[sizeof r->note[0]];
    va_list args;
    va_start(args, fmt);
    vsnprintf(note, sizeof note, fmt, args);
    va_end(args);
    for (int32_t i = 0; i < r->n_notes; i++) /* an encoder meets A, then B */
        if (lw_str_eq(r->note[i], note))
            return;
    if (r->n_notes < LW_FID_NOTES)
        snprintf(r->note[r->n_notes++], sizeof r->note[0], "%s", note);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static int check_config(const fid_state *s)
{
    const lw_fid_config *c = s->c;
    bool pictures = false;
    if (s->n < 2 && !c->save_stats)
        return lw_fail(LW_EUSAGE, "one set has no distance: name B, or --save-stats FILE for the "
                                  "statistics of A");
    for (int i = 0; i < s->n; i++)
        pictures = pictures || lw_fid_is_pictures(&s->set[i]);
    const bool makes = s->set[0].kind == FID_GENERATOR ||
                       (s->n > 1 && s->set[1].kind == FID_GENERATOR);
    if (c->alpha > 0.0 && !makes)
        return lw_fail(LW_EUSAGE, "--alpha %g: no set is a generator", c->alpha);
    if (c->guidance_scale > 1.0 && !makes)
        return lw_fail(LW_EUSAGE, "--guidance-scale %g: no set is a generator", c->guidance_scale);
    if (c->battery && s->n < 2)
        return lw_fail(LW_EUSAGE, "--battery: name B, real pictures that A is held against");
    if (c->probe && s->n < 2)
        return lw_fail(LW_EUSAGE, "--probe: name B, labelled pictures that probes are fitted on");
    if (pictures && c->n_encoders == 0 && !c->battery && !c->probe)
        return lw_fail(LW_EUSAGE, "pictures have no distance by themselves: --encoder SPEC says in "
                                  "whose features");
    if (c->save_stats && c->n_encoders > 1)
        return lw_fail(LW_EUSAGE,
                       "--save-stats %s: a file has the statistics of one encoder, %d "
                       "are named",
                       c->save_stats, (int)c->n_encoders);
    if (c->save_stats && !lw_str_ends(c->save_stats, ".npz") &&
        !lw_str_ends(c->save_stats, ".safetensors"))
        return lw_fail(LW_EUSAGE, "--save-stats %s: the name ends in .npz or .safetensors",
                       c->save_stats);
    if (c->inception_score && !lw_fid_is_pictures(&s->set[0]))
        return lw_fail(LW_EUSAGE, "--is: A (%s) has no pictures to be classified", c->set[0]);
    return 0;
}

static const char *pictures_of(const fid_set *s)
{
    return s->n == 1 ? "picture" : "pictures";
}

static void describe_side(const fid_state *s, int i)
{
    static const char *const kinds[] = {"data", "array", "generator", "features", "statistics"};
    const fid_set *set = &s->set[i];
    lw_fid_side *o = &s->out->side[i];
    snprintf(o->kind, sizeof o->kind, "%s", kinds[set->kind]);
    o->source = set->source;
    o->count = set->n;
    o->alpha = set->alpha;
    o->guidance_scale = set->guidance_scale;
    if (set->kind == FID_ARRAY || set->kind == FID_GENERATOR)
        snprintf(o->what, sizeof o->what, "%lld %s of %dx%d%s", (long long)set->n, pictures_of(set),
                 (int)set->w, (int)set->h, set->kind == FID_GENERATOR ? ", to be made" : "");
    else if (set->kind == FID_FEATURES)
        snprintf(o->what, sizeof o->what, "features of %lld %s", (long long)set->n,
                 pictures_of(set));
    else if (set->kind == FID_STATS && set->n)
        snprintf(o->what, sizeof o->what, "statistics of %lld %s", (long long)set->n,
                 pictures_of(set));
    else if (set->kind == FID_STATS)
        snprintf(o->what, sizeof o->what, "statistics; the file does not say of how many pictures");
    size_t n = strlen(o->what);
    if (set->alpha > 0.0)
        snprintf(o->what + n, sizeof o->what - n, ", strength of guidance %g", set->alpha);
    if (set->guidance_scale > 0.0)
        snprintf(o->what + n, sizeof o->what - n, ", guidance scale %g", set->guidance_scale);
}

/* ---- contracts ------------------------------------------------------------------------------- */

static const char *value_of(const fid_view *v, lw_contract_key k)
{
    return v->contract.value[k];
}

/* One line for the first key that differs, unless --force. */
static int check_contracts(const fid_state *s, const fid_view *a, const fid_view *b, lw_fid_row *r)
{
    lw_contract_key k = lw_contract_differs(&a->contract, &b->contract);
    if (k == LW_CONTRACT_KEYS)
        return 0;
    if (!s->c->force)
        return lw_fail(LW_EFORMAT,
                       "%s differs: '%s' of %s, '%s' of %s: distances of different features mean "
                       "nothing (--force measures all the same)",
                       lw_contract_key_name[k], value_of(a, k),
                       a->set ? a->set->source : "the encoder", value_of(b, k), b->set->source);
    add_note(r, "forced: %s differs ('%.80s' and '%.80s')", lw_contract_key_name[k], value_of(a, k),
             value_of(b, k));
    return 0;
}

static void note_gray(const fid_view *v, lw_fid_row *r)
{
    if (v->set->gray && v->encoder && v->encoder->net->channels == 3)
        add_note(r, "%c: its pictures are gray: %s, a network of RGB, sees the channel three times",
                 v->set->letter, v->encoder->net->name);
}

/* A set without a contract is taken at its word. */
static void note_unsaid(const fid_view *v, lw_fid_row *r)
{
    if (!lw_contract_said(&v->contract))
        add_note(r, "%c: %.120s does not say what made its features: taken as of the same encoder",
                 v->set->letter, v->set->source);
}

static int check_width(const fid_view *a, const fid_view *b)
{
    if (a->dim == b->dim)
        return 0;
    return lw_fail(LW_EFORMAT, "widths differ: %s has %d features, %s has %d", a->set->source,
                   (int)a->dim, b->set->source, (int)b->dim);
}

/* The encoder's own contract where no set shows it, as pictures do. */
static int check_encoder(const fid_state *s, const fid_encoder *e, const fid_view *v, lw_fid_row *r)
{
    if (!e || v->encoder)
        return 0;
    const lw_network *net = e->net;
    fid_view own = {.dim = net->features, .contract = e->contract};
    if (!e->sized) {
        lw_contract_of(net, s->c->precision, 0, 0, &own.contract);
        *own.contract.value[LW_CONTRACT_PREPARATION] = '\0'; /* says the pictures' size */
    }
    if (own.dim != v->dim)
        return lw_fail(LW_EFORMAT, "widths differ: %s has %d features, %s has %d", net->name,
                       (int)own.dim, v->set->source, (int)v->dim);
    if (!lw_contract_said(&r->contract))
        r->contract = own.contract;
    return check_contracts(s, &own, v, r);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const float *rows_of(const fid_view *v)
{
    return v->rows ? v->rows : v->set->rows;
}

static int need_rows(const fid_view *v, const char *option)
{
    if (rows_of(v))
        return 0;
    return lw_fail(LW_EUSAGE,
                   "%s needs the features of every picture, %s has mean and covariance "
                   "only",
                   option, v->set->source);
}

static int measure_kid(const fid_state *s, const fid_view *a, const fid_view *b, lw_fid_row *r)
{
    lw_kid_value k;
    LW_TRY(need_rows(a, "--kid"));
    LW_TRY(need_rows(b, "--kid"));
    LW_TRY(lw_kid(s->dev->pool, rows_of(a), a->n, rows_of(b), b->n, r->dim, KID_SUBSETS, KID_ROWS,
                  s->c->seed, false, &k));
    r->kid = k.mean;
    r->kid_sd = k.sd;
    r->kid_rows = k.rows;
    if (a->n > k.rows || b->n > k.rows)
        return 0;
    r->kid_sd = (double)NAN; /* what is left is rounding */
    add_note(r, "KID: every subset is all %d pictures of A and of B: it has no deviation",
             (int)k.rows);
    return 0;
}

static int measure_rows(const fid_state *s, const fid_view *a, const fid_view *b, lw_fid_row *r)
{
    const lw_fid_config *c = s->c;
    lw_pool *pool = s->dev->pool;
    if (c->precision_recall) {
        lw_manifold m;
        LW_TRY(need_rows(a, "--precision-recall"));
        LW_TRY(need_rows(b, "--precision-recall"));
        LW_TRY(
            lw_precision_recall(pool, rows_of(a), a->n, rows_of(b), b->n, r->dim, NEIGHBOURS, &m));
        r->precision = m.precision;
        r->recall = m.recall;
    }
    if (c->kid)
        LW_TRY(measure_kid(s, a, b, r));
    if (c->sliced_wasserstein) {
        LW_TRY(need_rows(a, "--sw"));
        LW_TRY(need_rows(b, "--sw"));
        LW_TRY(lw_sliced_wasserstein(pool, rows_of(a), a->n, rows_of(b), b->n, r->dim,
                                     LW_SLICED_DIRECTIONS, c->seed, &r->sliced));
    }
    return 0;
}

static void note_rank(const fid_view *v, int32_t rank, lw_fid_row *r)
{
    if (rank >= v->dim)
        return;
    if (v->n > 0 && v->n <= v->dim)
        add_note(r,
                 "%c: the covariance of %lld pictures has rank %d of %d: the distance is exact for "
                 "it, and larger than that of more pictures",
                 v->set->letter, (long long)v->n, (int)rank, (int)v->dim);
    else
        add_note(r, "%c: the covariance has rank %d of %d", v->set->letter, (int)rank, (int)v->dim);
}

static int measure(const fid_state *s, fid_view v[2], lw_fid_row *r)
{
    const lw_fid_config *c = s->c;
    if (c->inception_score)
        LW_TRY(lw_inception_score(v[0].logits, v[0].n, v[0].encoder->net->classes, SCORE_SPLITS,
                                  &r->score, &r->score_sd));
    if (s->n < 2)
        return 0;
    lw_frechet_parts parts;
    LW_TRY(lw_frechet_detail(s->dev->pool, v[0].stats, v[1].stats, &parts));
    r->compared = true;
    r->frechet = parts.distance;
    note_rank(&v[0], parts.rank_a, r);
    note_rank(&v[1], parts.rank_b, r);
    return measure_rows(s, &v[0], &v[1], r);
}

/* ---- one encoder ----------------------------------------------------------------------------- */

static int few_pictures(const fid_state *s, const fid_view *v)
{
    if (v->set->kind == FID_STATS || v->n >= 2)
        return 0;
    return lw_fail(LW_EUSAGE, "%c: %s is one picture: a covariance needs two at least",
                   v->set->letter, s->c->set[v->set->letter - 'A']);
}

static int compare_views(const fid_state *s, const fid_encoder *e, fid_view v[2], lw_fid_row *r)
{
    for (int i = 0; i < s->n; i++) {
        LW_TRY(few_pictures(s, &v[i]));
        r->count[i] = v[i].n;
        if (!lw_contract_said(&r->contract) || v[i].encoder)
            r->contract = v[i].contract;
    }
    for (int i = 0; i < s->n; i++)
        LW_TRY(check_encoder(s, e, &v[i], r));
    r->dim = v[0].dim;
    lw_contract_frechet(&r->contract, r->distance);
    for (int i = 0; i < s->n; i++) {
        note_unsaid(&v[i], r);
        note_gray(&v[i], r);
    }
    if (s->n < 2)
        return 0;
    LW_TRY(check_width(&v[0], &v[1]));
    return check_contracts(s, &v[0], &v[1], r);
}

/* Data has its count once it is open. */
static void count_data(const fid_state *s, const fid_view v[2])
{
    for (int i = 0; i < s->n; i++) {
        lw_fid_side *o = &s->out->side[i];
        if (s->set[i].kind != FID_DATA)
            continue;
        o->count = v[i].n;
        snprintf(o->what, sizeof o->what, "%lld pictures (%s)", (long long)v[i].n,
                 lw_split_name((lw_split)s->set[i].split));
    }
}

static int run_views(const fid_state *s, const fid_encoder *e, fid_view v[2], lw_fid_row *r)
{
    double seconds = 0, t = lw_now();
    for (int i = 0; i < s->n; i++)
        LW_TRY(lw_fid_view_open(&s->set[i], e, s->dev->pool, s->obs, &v[i]));
    count_data(s, v);
    LW_TRY(compare_views(s, e, v, r));
    for (int i = 0; i < s->n && s->c->dry_run; i++) {
        LW_TRY(lw_fid_view_predict(&v[i], s->dev, &seconds, &s->out->memory_bytes));
        r->seconds += seconds;
    }
    if (s->c->dry_run)
        return 0;
    for (int i = 0; i < s->n; i++)
        LW_TRY(lw_fid_view_run(&v[i], s->dev, s->c->inception_score && i == 0, s->obs));
    LW_TRY(measure(s, v, r));
    if (s->c->save_stats)
        LW_TRY(lw_fid_save(&v[s->n - 1], s->c->save_stats));
    r->seconds = lw_now() - t;
    return 0;
}

static int run_encoder(const fid_state *s, const char *spec, lw_fid_row *r)
{
    LW_CLEANUP(lw_fid_encoder_clear) fid_encoder e = {0};
    fid_view v[2] = {0};
    if (spec)
        LW_TRY(lw_fid_encoder_open(s->c, spec, &e));
    int rc = run_views(s, spec ? &e : NULL, v, r);
    for (int i = 0; i < 2; i++)
        lw_fid_view_clear(&v[i]);
    return rc;
}

/* ---- before any picture is made -------------------------------------------------------------- */

static int look_at_encoder(const fid_state *s, const lw_fid_config *few, const char *spec)
{
    LW_CLEANUP(lw_fid_encoder_clear) fid_encoder e = {0};
    LW_TRY(lw_fid_encoder_open(few, spec, &e));
    for (int i = 0; i < s->n; i++) {
        fid_set set = s->set[i];
        fid_view v = {0};
        set.c = few;
        int rc = set.kind == FID_DATA ? lw_fid_view_open(&set, &e, s->dev->pool, s->obs, &v) : 0;
        lw_fid_view_clear(&v);
        LW_TRY(rc);
    }
    return 0;
}

/* --battery and --probe. */
static int look_at_judges(const fid_state *s, const char *specs, int32_t side)
{
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    const fid_set *real = &s->set[1];
    const lw_data_opts one = {.image_size = side,
                              .split = (lw_split)real->split,
                              .count = 1,
                              .on_error = (lw_on_error)s->c->on_error,
                              .pool = s->dev->pool,
                              .obs = s->obs};
    if (!specs)
        return 0;
    LW_TRY(real->kind == FID_DATA ? lw_data_open(lw_str_c(&real->spec), &one, &d) : 0);
    return lw_battery_open(s->dev, s->c->conv, specs, side, &b);
}

/* A generator may take hours: what its pictures are measured in and against is opened before. */
static int look_ahead(const fid_state *s)
{
    lw_fid_config few = *s->c;
    int32_t side = 0;
    few.dry_run = true; /* a row of data will do */
    for (int i = 0; i < s->n; i++) {
        LW_CLEANUP(lw_source_close) lw_source *source = NULL;
        if (s->set[i].kind != FID_GENERATOR)
            continue;
        LW_TRY(lw_source_open(s->set[i].source, s->c->ema, &source));
        side = lw_picture_side(source->net);
    }
    if (side == 0)
        return 0;
    for (int32_t e = 0; e < s->c->n_encoders; e++)
        LW_TRY(look_at_encoder(s, &few, s->c->encoders[e]));
    LW_TRY(look_at_judges(s, s->c->battery, side));
    return look_at_judges(s, s->c->probe, side);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Encoders trained here share a name: then their weights tell them apart. */
static void tell_apart(lw_fid_result *r)
{
    bool again[LW_FID_ENCODERS] = {false};
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int32_t k = 0; k < r->n_rows && !again[i]; k++)
            again[i] = k != i && lw_str_eq(r->row[k].distance, r->row[i].distance);
    for (int32_t i = 0; i < r->n_rows; i++) {
        lw_fid_row *row = &r->row[i];
        size_t n = strlen(row->distance);
        if (again[i])
            snprintf(row->distance + n, sizeof row->distance - n, " %.8s",
                     row->contract.value[LW_CONTRACT_HASH]);
    }
}

static int run(fid_state *s)
{
    double t = lw_now();
    s->n = s->c->set[1] ? 2 : 1;
    for (int i = 0; i < s->n; i++)
        LW_TRY(lw_fid_set_open(s->c, i, &s->set[i]));
    LW_TRY(check_config(s));
    LW_TRY(lw_session_device_with(s->c->threads, s->c->conv, &s->dev));
    lw_pool_watch(s->dev->pool, s->obs);
    LW_TRY(look_ahead(s));
    for (int i = 0; i < s->n; i++)
        LW_TRY(lw_fid_set_make(&s->set[i], s->dev, s->obs, &s->out->seconds));
    for (int i = 0; i < s->n; i++)
        describe_side(s, i);
    s->out->n_rows = LW_MAX(s->c->n_encoders, s->c->battery || s->c->probe ? 0 : 1);
    for (int32_t e = 0; e < s->out->n_rows; e++) {
        LW_TRY(run_encoder(s, s->c->n_encoders ? s->c->encoders[e] : NULL, &s->out->row[e]));
        s->out->seconds += s->out->row[e].seconds;
    }
    tell_apart(s->out);
    if (s->c->battery)
        LW_TRY(lw_fid_verdict(s->c, s->set, s->dev, s->obs, s->out));
    if (s->c->probe)
        LW_TRY(lw_fid_probes(s->c, s->set, s->dev, s->obs, s->out));
    s->out->seconds += s->out->verdict_seconds;
    if (!s->c->dry_run)
        s->out->seconds = lw_now() - t;
    return 0;
}

int lw_job_fid(const lw_fid_config *c, const lw_observer *obs, lw_fid_result *out)
{
    fid_state s = {.c = c, .obs = obs, .out = out};
    *out = (lw_fid_result){0};
    int rc = run(&s);
    clear_state(&s);
    return rc;
}
