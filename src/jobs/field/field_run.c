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
        else if (o->tau[i] < 1e-30 || o->tau[i] > 1e30) /* kernels compute with f32 */
            return lw_fail(LW_EUSAGE, "drift field: temperature %g must be 1e-30 to 1e30",
                           o->tau[i]);
    if (o->own_scale && o->variant == LW_DRIFT_PLAIN)
        return lw_fail(LW_EUSAGE,
                       "drift field: the plain variant rescales nothing, so a slot has no "
                       "scale of its own");
    return 0;
}

enum { DIM_G, DIM_N, DIM_NP, DIM_NU, DIM_T, DIM_C, DIMS };

static int check_dims(const int64_t dim[DIMS])
{
    if (dim[DIM_G] < 1 || dim[DIM_N] < 1 || dim[DIM_NP] < 1 || dim[DIM_NU] < 0 || dim[DIM_T] < 1 ||
        dim[DIM_C] < 1)
        return lw_fail(
            LW_ESHAPE,
            "drift field: %lld groups of %lld generated and %lld positive samples, %lld slots, "
            "%lld channels: none of these may be 0",
            (long long)dim[DIM_G], (long long)dim[DIM_N], (long long)dim[DIM_NP],
            (long long)dim[DIM_T], (long long)dim[DIM_C]);
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

/* What weights of the unconditional may be: beyond, f32 cannot tell the other negatives from nothing. */
static int check_weight_range(const lw_field_arrays *a)
{
    for (int64_t i = 0; a->nu > 0 && a->w_u && i < a->g; i++)
        if (!(a->w_u[i] >= 0.0f && a->w_u[i] <= 1e6f))
            return lw_fail(LW_EUSAGE, "drift field: weight %lld is %g: must be 0 to 1e6",
                           (long long)i, (double)a->w_u[i]);
    return 0;
}

/* The kernels say NaN where a vector is out of reach, or is none; only then is it looked for. */
static int check_result(const lw_field_arrays *a, double scale, double loss)
{
    int64_t each = a->g * a->t * a->c;
    if (!isnan(scale) && !isnan(loss))
        return 0;
    LW_TRY(check_reach("generated samples", a->x, each * a->n, a->c, LW_EUSAGE, ""));
    LW_TRY(check_reach("positives", a->pos, each * a->np, a->c, LW_EUSAGE, ""));
    LW_TRY(check_reach("unconditional negatives", a->unc, each * a->nu, a->c, LW_EUSAGE, ""));
    return lw_fail(LW_EUSAGE, "drift field: the result is not a number: scale all arrays alike");
}

/* The operator's record; its sizes are counted in 32 bits. */
static int fill_record(lw_attr_drift *at, const lw_field_opts *o, const lw_field_arrays *a)
{
    const int64_t dim[DIMS] = {a->g, a->n, a->np, a->nu, a->t, a->c};
    LW_TRY(check_opts(o));
    LW_TRY(check_dims(dim));
    for (int i = 0; i < DIMS; i++)
        if (dim[i] > INT32_MAX / (i == DIM_N || i == DIM_NP || i == DIM_NU ? a->g : 1))
            return lw_fail(LW_ESHAPE,
                           "drift field: %lld groups of %lld generated, %lld positive and %lld "
                           "unconditional samples, %lld slots, %lld channels: too many, none may "
                           "pass %d over all groups",
                           (long long)a->g, (long long)a->n, (long long)a->np, (long long)a->nu,
                           (long long)a->t, (long long)a->c, INT32_MAX);
    *at = (lw_attr_drift){.groups = (int32_t)a->g,
                          .n = (int32_t)a->n,
                          .np = (int32_t)a->np,
                          .nu = (int32_t)a->nu,
                          .slots = (int32_t)a->t,
                          .c = (int32_t)a->c,
                          .n_tau = o->n_tau,
                          .normalize_over_x = o->normalize_over_x,
                          .variant = (int32_t)o->variant,
                          .products = (int32_t)o->products,
                          .own_scale = o->own_scale};
    memcpy(at->tau, o->tau, sizeof at->tau);
    return 0;
}

/* A graph of one operator, compiled for the device, with the caller's operands. */
typedef struct field_plan {
    lw_graph *graph;
    lw_plan *plan;
    lw_exec *exec;
    size_t bytes; /* of operands and results */
} field_plan;

static void close_plan(field_plan *p)
{
    lw_exec_free(&p->exec);
    lw_plan_free(&p->plan);
    lw_graph_free(&p->graph);
}

static lw_val input(field_plan *p, const char *name, lw_type type)
{
    p->bytes += lw_type_bytes(type);
    return lw_input(p->graph, name, type);
}

static lw_type samples(const lw_attr_drift *at, int32_t each)
{
    return lw_type_of(LW_F32, 3, at->groups * each, at->slots, at->c);
}

static void output(field_plan *p, const char *name, lw_val v)
{
    if (lw_val_ok(v))
        p->bytes += lw_type_bytes(lw_val_type(p->graph, v));
    lw_graph_output_add(p->graph, name, v, LW_NOVAL);
}

static int build(field_plan *p, const lw_attr_drift *at, const lw_field_arrays *a)
{
    lw_val unc = LW_NOVAL, w = LW_NOVAL;
    LW_TRY(lw_graph_new(&p->graph));
    lw_val x = input(p, "x", samples(at, at->n)), pos = input(p, "pos", samples(at, at->np));
    if (at->nu) {
        unc = input(p, "unc", samples(at, at->nu));
        w = input(p, "w_u", lw_type_of(LW_F32, 1, at->groups));
    }
    lw_drift_out o = lw_drift_field(p->graph, x, pos, unc, w, at);
    output(p, "stats", o.stats);
    if (a->f)
        output(p, "f", o.field);
    if (a->dx)
        output(p, "dx", o.dx);
    return lw_graph_error(p->graph);
}

static int bind(field_plan *p, const char *name, const float *data)
{
    return lw_exec_bind(p->exec, name, (void *)(uintptr_t)data);
}

static int open_plan(field_plan *p, lw_device *dev, const lw_attr_drift *at,
                     const lw_field_arrays *a)
{
    LW_TRY(build(p, at, a));
    LW_TRY(lw_compile(p->graph, dev, &(lw_compile_opts){.opt = 1}, &p->plan));
    LW_TRY(lw_exec_new(p->plan, LW_SLAB_PARAM, &p->exec));
    LW_TRY(bind(p, "x", a->x));
    LW_TRY(bind(p, "pos", a->pos));
    if (at->nu) {
        LW_TRY(bind(p, "unc", a->unc));
        LW_TRY(bind(p, "w_u", a->w_u));
    }
    return 0;
}

/* stats: as kernels/drift/drift.h has them. */
static int run_plan(field_plan *p, const lw_device *dev, const lw_attr_drift *at,
                    const lw_field_arrays *a, float *stats)
{
    size_t bytes = lw_type_bytes(samples(at, at->n));
    LW_TRY(lw_exec_run(p->exec, &(lw_tick){0}));
    memcpy(stats, lw_exec_read(p->exec, "stats"),
           sizeof *stats * (size_t)LW_DRIFT_STATS(at->n_tau));
    if (a->f)
        memcpy(a->f, lw_exec_read(p->exec, "f"), bytes);
    if (a->dx)
        memcpy(a->dx, lw_exec_read(p->exec, "dx"), bytes);
    return lw_backend_failed_on(dev); /* a device that failed reads as not a number */
}

/* Mean V^2 from its f32 and lambda: of raw features of 1e15 with weights of 1e6 it leaves f32,
 * while lambda is its root. */
static double mean_v2(double m, double lambda)
{
    return isinf(m) && lambda > 1e18 ? lambda * lambda : m;
}

#define READ_STATS(out, k, stats)                                                               \
    do {                                                                                        \
        (out)->n_tau = (k);                                                                     \
        (out)->scale = (double)(stats)[0];                                                      \
        (out)->sigma = (double)(stats)[1];                                                      \
        (out)->loss = (double)(stats)[2];                                                       \
        for (int i_ = 0; i_ < (k); i_++) {                                                      \
            (out)->lambda[i_] = (double)(stats)[3 + i_];                                        \
            (out)->raw_mean_v2[i_] = mean_v2((double)(stats)[3 + (k) + i_], (out)->lambda[i_]); \
        }                                                                                       \
    } while (0)

int lw_field_compute(lw_device *dev, const lw_field_opts *opts, const lw_field_arrays *a,
                     lw_field_stats *out)
{
    float stats[LW_DRIFT_STATS(LW_DRIFT_MAX_TAU)];
    lw_attr_drift at;
    field_plan p = {0};
    LW_TRY(fill_record(&at, opts, a));
    LW_TRY(check_weight_range(a));
    int rc = open_plan(&p, dev, &at, a);
    if (rc == 0) {
        out->work_bytes = lw_plan_get_info(p.plan).frame_bytes - p.bytes;
        rc = run_plan(&p, dev, &at, a, stats);
    }
    close_plan(&p);
    LW_TRY(rc);
    LW_TRY(check_result(a, (double)stats[0], (double)stats[2]));
    READ_STATS(out, at.n_tau, stats);
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
            return lw_fail(LW_EFORMAT, "%s: element %lld is %s", path, (long long)i,
                           lw_not_finite_text(v));
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

static int fill_shape(lw_drift_shape *s, const lw_field_opts *o, const int64_t dim[DIMS])
{
    LW_TRY(check_opts(o));
    LW_TRY(check_dims(dim));
    *s = (lw_drift_shape){.g = dim[DIM_G],
                          .n = dim[DIM_N],
                          .np = dim[DIM_NP],
                          .nu = dim[DIM_NU],
                          .t = dim[DIM_T],
                          .c = dim[DIM_C],
                          .k = o->n_tau,
                          .rows_only = !o->normalize_over_x,
                          .variant = o->variant,
                          .own_scale = o->own_scale};
    memcpy(s->tau, o->tau, sizeof s->tau);
    lw_drift_dense(s);
    return 0;
}

static int run_f64(const field_files *in, const lw_field_opts *opts, lw_field_stats *out)
{
    lw_drift_shape s;
    double stats[LW_DRIFT_STATS(LW_DRIFT_MAX_TAU)];
    LW_TRY(fill_shape(&s, opts, (const int64_t[DIMS]){in->g, in->n, in->np, in->nu, in->t, in->c}));
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
    READ_STATS(out, s.k, stats);
    out->work_bytes = bytes;
    return 0;
}

static int run_f32_files(const field_files *in, const lw_field_config *c, lw_field_stats *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_TRY(lw_session_device(c->threads, &dev));
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
    if (f64 && lw_str_starts(lw_backend_chosen(), "cuda"))
        return lw_fail(LW_EDEVICE,
                       "the drift field in f64 is plain loops on the CPU, which %s does "
                       "not run; use --device cpu",
                       lw_backend_chosen());
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
