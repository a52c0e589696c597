/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field of arrays in memory and of npy files. */
#include "jobs/field/field_job.h"

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "session/session_device.h"

/* ---- arrays in memory ------------------------------------------------------------------------ */

static int check_opts(const lw_field_opts *o)
{
    if (o->n_tau < 1 || o->n_tau > LW_DRIFT_MAX_TAU)
        return lw_fail(LW_EUSAGE, "drift field: %d temperatures, must be 1 to %d", (int)o->n_tau,
                       LW_DRIFT_MAX_TAU);
    for (int i = 0; i < o->n_tau; i++)
        if (!(o->tau[i] > 0) || !isfinite(o->tau[i]))
            return lw_fail(LW_EUSAGE, "drift field: temperature %g must be positive", o->tau[i]);
    if (o->own_scale && o->variant == LW_DRIFT_PLAIN)
        return lw_fail(LW_EUSAGE,
                       "drift field: the plain variant rescales nothing, so a slot has no "
                       "scale of its own");
    return 0;
}

static int fill_shape(lw_drift_shape *s, const lw_field_opts *o, const int64_t dim[6])
{
    LW_TRY(check_opts(o));
    *s = (lw_drift_shape){.g = dim[0],
                          .n = dim[1],
                          .np = dim[2],
                          .nu = dim[3],
                          .t = dim[4],
                          .c = dim[5],
                          .k = o->n_tau,
                          .rows_only = !o->normalize_over_x,
                          .variant = o->variant,
                          .own_scale = o->own_scale,
                          .bf16 = o->products == LW_DRIFT_BF16};
    if (s->g < 1 || s->n < 1 || s->np < 1 || s->nu < 0 || s->t < 1 || s->c < 1)
        return lw_fail(
            LW_ESHAPE,
            "drift field: %td groups of %td generated and %td positive samples, %td slots, %td "
            "channels: none of these may be 0",
            s->g, s->n, s->np, s->t, s->c);
    memcpy(s->tau, o->tau, sizeof s->tau);
    lw_drift_dense(s);
    return 0;
}

/* The f32 kernels take distances of 1e17 and more for pairs out of
 * reach (kernels/drift/drift.h). */
static int check_reach(const char *name, const float *v, int64_t count, int64_t channels, int code,
                       const char *hint)
{
    double most = 5e16 / sqrt((double)channels);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)v[i]) <= most))
            return lw_fail(code,
                           "%s: element %lld is %g: distances of vectors beyond %.2g do not fit "
                           "f32 here; scale all arrays alike%s",
                           name, (long long)i, (double)v[i], most, hint);
    return 0;
}

/* The kernels say NaN where a vector is out of reach; only then is it looked for. */
static int check_scale(const lw_field_arrays *a, double scale)
{
    int64_t each = a->g * a->t * a->c;
    if (!isnan(scale))
        return 0;
    LW_TRY(check_reach("generated samples", a->x, each * a->n, a->c, LW_EUSAGE, ""));
    LW_TRY(check_reach("positives", a->pos, each * a->np, a->c, LW_EUSAGE, ""));
    LW_TRY(check_reach("unconditional negatives", a->unc, each * a->nu, a->c, LW_EUSAGE, ""));
    return lw_fail(LW_EUSAGE, "drift field: the mean distance is not a number; weights must be "
                              "finite and not negative");
}

typedef struct field_job {
    const lw_kernels *k;
    const lw_drift_shape *s;
    const lw_drift_io *io;
    void *work;
    char *scratch; /* [workers][scratch_bytes] */
    size_t scratch_bytes;
    int phase;
} field_job;

static void field_task(void *arg, int64_t task, int worker)
{
    const field_job *j = arg;
    lw_drift_runner(&j->k->drift, j->s)(j->io, j->s, j->phase, task, j->work,
                                        j->scratch + (size_t)worker * j->scratch_bytes);
}

static int run_f32(lw_device *dev, const lw_drift_shape *s, const lw_drift_io *io, size_t *bytes)
{
    field_job j = {.k = dev->kernels, .s = s, .io = io};
    size_t workers = (size_t)lw_pool_size(dev->pool), work = lw_drift_work(s);
    j.scratch_bytes = LW_ROUND_UP(LW_MAX(lw_drift_scratch(s), (size_t)1), 64);
    j.work = lw_bulk_alloc(work);
    j.scratch = j.work ? lw_bulk_alloc(workers * j.scratch_bytes) : NULL;
    if (j.scratch)
        for (j.phase = 0; j.phase < lw_drift_phases(s); j.phase++)
            lw_pool_run(dev->pool, lw_drift_tasks(s, j.phase), field_task, &j);
    int rc = j.scratch ? 0 : LW_ENOMEM;
    *bytes = work + workers * j.scratch_bytes;
    lw_bulk_free(&j.work, work);
    lw_bulk_free(&j.scratch, workers * j.scratch_bytes);
    return rc;
}

/* Mean V^2 from its f32 and lambda: of raw features of 1e15 with weights of 1e6 it leaves f32,
 * while lambda is its root. */
static double mean_v2(double m, double lambda)
{
    return isinf(m) && lambda > 1e18 ? lambda * lambda : m;
}

#define READ_STATS(out, s, stats)                                                                  \
    do {                                                                                           \
        (out)->n_tau = (s)->k;                                                                     \
        (out)->scale = (double)(stats)[0];                                                         \
        (out)->sigma = (double)(stats)[1];                                                         \
        (out)->loss = (double)(stats)[2];                                                          \
        for (int i_ = 0; i_ < (s)->k; i_++) {                                                      \
            (out)->lambda[i_] = (double)(stats)[3 + i_];                                           \
            (out)->raw_mean_v2[i_] = mean_v2((double)(stats)[3 + (s)->k + i_], (out)->lambda[i_]); \
        }                                                                                          \
    } while (0)

int lw_field_compute(lw_device *dev, const lw_field_opts *opts, const lw_field_arrays *a,
                     lw_field_stats *out)
{
    lw_drift_shape s;
    float stats[LW_DRIFT_STATS(LW_DRIFT_MAX_TAU)];
    LW_TRY(fill_shape(&s, opts, (const int64_t[6]){a->g, a->n, a->np, a->nu, a->t, a->c}));
    LW_TRY(run_f32(dev, &s,
                   &(lw_drift_io){.f = a->f,
                                  .dx = a->dx,
                                  .stats = stats,
                                  .x = a->x,
                                  .pos = a->pos,
                                  .unc = a->unc,
                                  .w_u = a->w_u},
                   &out->work_bytes));
    LW_TRY(check_scale(a, (double)stats[0]));
    READ_STATS(out, &s, stats);
    return 0;
}

/* ---- npy files ------------------------------------------------------------------------------- */

/* Operands as read, all of one element type. */
typedef struct field_files {
    lw_array gen, pos, unc, w, f;
    int64_t g, n, np, nu, t, c;
} field_files;

static void clear_files(field_files *in)
{
    lw_array_clear(&in->gen);
    lw_array_clear(&in->pos);
    lw_array_clear(&in->unc);
    lw_array_clear(&in->w);
    lw_array_clear(&in->f);
}

static int check_finite(const char *path, const lw_array *a)
{
    for (int64_t i = 0; i < a->count; i++) {
        double v = a->type == LW_ELEM_F64 ? ((const double *)a->data)[i]
                                          : (double)((const float *)a->data)[i];
        if (!isfinite(v))
            return lw_fail(LW_EFORMAT, "%s: element %lld is %g", path, (long long)i, v);
    }
    return 0;
}

/* Any element type, as f32 or as f64. Integers become f64 through f32, exact up to 2^24. */
static int load(const char *path, bool f64, lw_array *a)
{
    LW_TRY(f64 ? lw_npy_load(path, a) : lw_npy_load_f32(path, a));
    if (f64 && a->type != LW_ELEM_F64) {
        lw_array wide = {0};
        LW_TRY(lw_array_make_f32(a));
        LW_TRY(lw_array_init(&wide, LW_ELEM_F64, a->rank, a->shape));
        for (int64_t i = 0; i < a->count; i++)
            ((double *)wide.data)[i] = (double)((const float *)a->data)[i];
        lw_array_clear(a);
        *a = wide;
    }
    return check_finite(path, a);
}

static int64_t dim_groups(const lw_array *a)
{
    return a->rank == 2 ? 1 : a->shape[0];
}
static int64_t dim_samples(const lw_array *a)
{
    return a->rank == 2 ? a->shape[0] : a->shape[1];
}
static int64_t dim_slots(const lw_array *a)
{
    return a->rank == 4 ? a->shape[2] : 1;
}
static int64_t dim_channels(const lw_array *a)
{
    return a->shape[a->rank - 1];
}

static int check_like_gen(const field_files *in, const char *gen, const char *path,
                          const lw_array *a)
{
    char one[192], two[192];
    if (a->rank == in->gen.rank && dim_groups(a) == in->g && dim_slots(a) == in->t &&
        dim_channels(a) == in->c && a->count > 0)
        return 0;
    return lw_fail(
        LW_ESHAPE,
        "%s is %s, %s is %s: both must be [N,C], [G,N,C] or [G,N,T,C] with the same G, T and C, "
        "and not empty",
        path, lw_shape_text(one, a->rank, a->shape), gen,
        lw_shape_text(two, in->gen.rank, in->gen.shape));
}

static int check_reach_file(const field_files *in, const char *path, const lw_array *a)
{
    return a->type == LW_ELEM_F32
               ? check_reach(path, a->data, a->count, in->c, LW_EFORMAT, ", or use --precision f64")
               : 0;
}

static int load_operands(field_files *in, const lw_field_config *c, bool f64)
{
    char text[192];
    LW_TRY(load(c->gen, f64, &in->gen));
    if (in->gen.rank < 2 || in->gen.rank > 4 || in->gen.count == 0)
        return lw_fail(LW_ESHAPE, "%s is %s: must be [N,C], [G,N,C] or [G,N,T,C] and not empty",
                       c->gen, lw_shape_text(text, in->gen.rank, in->gen.shape));
    in->g = dim_groups(&in->gen);
    in->n = dim_samples(&in->gen);
    in->t = dim_slots(&in->gen);
    in->c = dim_channels(&in->gen);
    LW_TRY(load(c->pos, f64, &in->pos));
    LW_TRY(check_like_gen(in, c->gen, c->pos, &in->pos));
    LW_TRY(check_reach_file(in, c->gen, &in->gen));
    LW_TRY(check_reach_file(in, c->pos, &in->pos));
    in->np = dim_samples(&in->pos);
    if (!c->uncond)
        return 0;
    LW_TRY(load(c->uncond, f64, &in->unc));
    LW_TRY(check_like_gen(in, c->gen, c->uncond, &in->unc));
    in->nu = dim_samples(&in->unc);
    return check_reach_file(in, c->uncond, &in->unc);
}

static void fill(lw_array *a, double v)
{
    for (int64_t i = 0; i < a->count; i++)
        if (a->type == LW_ELEM_F64)
            ((double *)a->data)[i] = v;
        else
            ((float *)a->data)[i] = (float)v;
}

/* in->w [G]: a number from the command line, one from a file for all, or one per group. */
static int load_weights(field_files *in, const lw_field_config *c, bool f64)
{
    char text[192];
    double one = 0;
    lw_elem type = f64 ? LW_ELEM_F64 : LW_ELEM_F32;
    if (c->uncond_weight && !c->uncond)
        return lw_fail(LW_EUSAGE, "--uncond-weight without --uncond: there is nothing to weigh");
    if (c->uncond_weight && lw_parse_f64(c->uncond_weight, &one) < 0) {
        lw_errclear();
        if (!lw_path_exists(c->uncond_weight))
            return lw_fail(LW_EUSAGE, "--uncond-weight %s: neither a number nor a file",
                           c->uncond_weight);
        LW_TRY(load(c->uncond_weight, f64, &in->w));
        if (in->w.count == in->g && in->w.rank <= 1)
            return 0;
        if (in->w.count != 1)
            return lw_fail(LW_ESHAPE, "%s is %s: must be one number or [%lld], one for each group",
                           c->uncond_weight, lw_shape_text(text, in->w.rank, in->w.shape),
                           (long long)in->g);
        one = f64 ? ((const double *)in->w.data)[0] : (double)((const float *)in->w.data)[0];
        lw_array_clear(&in->w);
    }
    if (!isfinite(one))
        return lw_fail(LW_EUSAGE, "--uncond-weight %s: must be finite", c->uncond_weight);
    LW_TRY(lw_array_init(&in->w, type, 1, &in->g));
    fill(&in->w, one);
    return 0;
}

static int check_weights(const field_files *in)
{
    for (int64_t i = 0; i < in->w.count; i++) {
        double v = in->w.type == LW_ELEM_F64 ? ((const double *)in->w.data)[i]
                                             : (double)((const float *)in->w.data)[i];
        if (v < 0)
            return lw_fail(LW_EUSAGE, "uncond weight %g of group %lld: must not be negative", v,
                           (long long)i);
    }
    return 0;
}

static int run_f64(const field_files *in, const lw_field_opts *opts, lw_field_stats *out)
{
    lw_drift_shape s;
    double stats[LW_DRIFT_STATS(LW_DRIFT_MAX_TAU)];
    LW_TRY(fill_shape(&s, opts, (const int64_t[6]){in->g, in->n, in->np, in->nu, in->t, in->c}));
    size_t bytes = lw_drift_work_f64(&s);
    void *work = lw_bulk_alloc(bytes);
    if (!work)
        return LW_ENOMEM;
    lw_drift_run_f64(&(lw_drift_io_f64){.f = in->f.data,
                                        .stats = stats,
                                        .x = in->gen.data,
                                        .pos = in->pos.data,
                                        .unc = in->unc.data,
                                        .w_u = in->w.data},
                     &s, work);
    lw_bulk_free(&work, bytes);
    READ_STATS(out, &s, stats);
    out->work_bytes = bytes;
    return 0;
}

static int run_f32_files(const field_files *in, const lw_field_config *c, lw_field_stats *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_TRY(lw_session_device(c->threads, &dev));
    if (lw_str_starts(dev->name, "cuda"))
        return lw_fail(LW_EDEVICE,
                       "the drift field of files is computed on the CPU only, not on %s",
                       dev->name);
    return lw_field_compute(dev, &c->opts,
                            &(lw_field_arrays){.g = in->g,
                                               .n = in->n,
                                               .np = in->np,
                                               .nu = in->nu,
                                               .t = in->t,
                                               .c = in->c,
                                               .x = in->gen.data,
                                               .pos = in->pos.data,
                                               .unc = in->unc.data,
                                               .w_u = in->w.data,
                                               .f = in->f.data},
                            out);
}

static int run_files(field_files *in, const lw_field_config *c, lw_field_stats *out)
{
    bool f64 = c->precision == LW_FIELD_F64;
    LW_TRY(load_operands(in, c, f64));
    LW_TRY(load_weights(in, c, f64));
    LW_TRY(check_weights(in));
    LW_TRY(lw_array_init(&in->f, in->gen.type, in->gen.rank, in->gen.shape));
    LW_TRY(f64 ? run_f64(in, &c->opts, out) : run_f32_files(in, c, out));
    return c->output ? lw_npy_save(c->output, in->f.type, in->f.rank, in->f.shape, in->f.data) : 0;
}

int lw_job_field(const lw_field_config *config, lw_field_stats *out)
{
    field_files in = {0};
    int rc = run_files(&in, config, out);
    clear_files(&in);
    return rc;
}
