/* SPDX-License-Identifier: Apache-2.0 */
/* leeway field: the drift field of arrays in files. */
#include "cli/cli.h"
#include "formats/formats.h"
#include "jobs/field/field_job.h"

typedef struct field_cli {
    lw_field_config c;
    int32_t variant, precision, products;
} field_cli;

static const lw_option options[] = {
    {LW_OPT(field_cli, c.gen), .name = "gen", .path = LW_PATH_IN, .required = true, .unit = "npy",
     .group = "Input", .help = "generated samples x: [N,C], [G,N,C] (groups) or [G,N,T,C] (slots)"},
    {LW_OPT(field_cli, c.pos), .name = "pos", .path = LW_PATH_IN, .required = true, .unit = "npy",
     .group = "Input", .help = "positive (real) samples, of the same rank, G, T and C"},
    {LW_OPT(field_cli, c.uncond), .name = "uncond", .path = LW_PATH_IN, .unit = "npy",
     .group = "Input", .help = "unconditional negatives, of the same rank, G, T and C"},
    {LW_OPT(field_cli, c.uncond_weight), .name = "uncond-weight", .path = LW_PATH_IN,
     .unit = "number|npy", .group = "Input",
     .help = "weight of each unconditional negative: a number, or an array of one or of [G] "
             "(default 0)"},
    {LW_OPT_LIST(field_cli, c.opts.tau, c.opts.n_tau), .name = "temperatures",
     .aliases = "temps|feature-temperatures", .fallback = "0.02,0.05,0.2", .min = 1e-6, .max = 1e6,
     .group = "Field", .help = "temperatures tau; the field is the sum over them"},
    {LW_OPT(field_cli, c.opts.normalize_over_x), .name = "normalize-over-x", .fallback = "true",
     .group = "Field",
     .help = "take softmax over the generated samples too, but over targets only"},
    {LW_OPT(field_cli, c.opts.own_scale), .name = "disable-shared-location-normalization",
     .fallback = "false", .group = "Field",
     .help = "each slot has its own mean distance, over the groups; S and sigma told are the means "
             "of those of the slots"},
    {LW_OPT(field_cli, variant), .name = "drift-variant", .fallback = "official",
     .choices = "official|plain|tau-times-dim", .group = "Field",
     .help = "official; plain: raw distances, nothing rescaled; tau-times-dim: an early port's "
             "temperatures, for parity"},
    {LW_OPT(field_cli, products), .name = "field-precision", .choices = "f32|bf16",
     .fallback = "f32", .group = "Field",
     .help = "bf16: distances from products of vectors rounded to bf16, the rest f32. The field is "
             "then off by 2e-3 to 8e-3 at the usual temperatures (f32: 1e-5), and the more the "
             "smaller they are and the fewer the channels: 1e-2 at 0.02 alone, 1e-1 at 0.001"},
    {LW_OPT(field_cli, precision), .name = "precision", .fallback = "f32", .choices = "f32|f64",
     .group = "Field", .help = "f64: plain loops in double on one thread, and the output is f64"},
    {LW_OPT(field_cli, c.output), .name = "output", .path = LW_PATH_OUT, .unit = "npy",
     .endings = ".npy", .group = "Output", .help = "where the field F goes, in the shape of --gen"},
    {.name = NULL}};

static json_t *numbers(const double *v, int n)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, lw_json_real(v[i]));
    return a;
}

static void print_json(const lw_field_stats *s)
{
    LW_CLEANUP(lw_json_drop) json_t *t = json_object();
    json_object_set_new(t, "S", lw_json_real(s->scale));
    json_object_set_new(t, "sigma", lw_json_real(s->sigma));
    json_object_set_new(t, "lambda", numbers(s->lambda, s->n_tau));
    json_object_set_new(t, "loss", lw_json_real(s->loss));
    json_object_set_new(t, "raw_mean_v2", numbers(s->raw_mean_v2, s->n_tau));
    json_object_set_new(t, "work_bytes", json_integer((json_int_t)s->work_bytes));
    lw_cli_print_result(t);
}

static void print_text(const lw_field_config *c, const lw_field_stats *s)
{
    lw_cli_print("S      %.9g\nsigma  %.9g\nloss   %.9g\n", s->scale, s->sigma, s->loss);
    for (int i = 0; i < s->n_tau; i++)
        lw_cli_print("tau %-8g lambda %-14.9g mean V^2 %.9g\n", c->opts.tau[i], s->lambda[i],
                     s->raw_mean_v2[i]);
    lw_cli_print("work   %.1f MiB beside operands and result\n", (double)s->work_bytes / (1 << 20));
}

static int run(const lw_cli *cli, const void *config)
{
    const field_cli *f = config;
    lw_field_config c = f->c;
    lw_field_stats stats;
    c.opts.variant = (lw_drift_variant)f->variant;
    c.opts.products = (lw_drift_products)f->products;
    c.threads = (int)cli->global.threads;
    c.precision = (lw_field_precision)f->precision;
    if (c.opts.products == LW_DRIFT_BF16 && c.precision == LW_FIELD_F64)
        return lw_fail(LW_EUSAGE, "field: --field-precision bf16 and --precision f64 exclude each "
                                  "other: the plain loops round nothing");
    if (c.opts.variant == LW_DRIFT_TAU_TIMES_DIM)
        lw_log(LW_LOG_WARN, "field",
               "tau-times-dim reproduces an early port whose kernel is nearly flat: for parity "
               "studies, not for training");
    LW_TRY(lw_job_field(&c, &stats));
    if (cli->global.json)
        print_json(&stats);
    else
        print_text(&c, &stats);
    return 0;
}

const lw_command lw_cmd_field = {
    .name = "field",
    .summary = "the drift field of arrays: an oracle for other programs",
    .usage = "--gen x.npy --pos p.npy [options]",
    .notes = "F is the drift itself: x + sigma F is where the field pushes x. With --json: S (mean "
             "distance), sigma "
             "(unit of coordinates), lambda (RMS of each temperature's field), loss (mean F^2, "
             "flat by construction: "
             "1 with one temperature), raw_mean_v2 (mean V^2 before it is scaled to 1: this one "
             "falls as samples "
             "improve), work_bytes (memory beside operands and result).",
    .examples =
        "leeway field --gen x.npy --pos p.npy --temperatures 0.2,0.05,0.02 --output F.npy --json\n"
        "leeway field --gen x.npy --pos p.npy --uncond u.npy --uncond-weight w.npy --output F.npy",
    .options = {options},
    .config_size = sizeof(field_cli),
    .run = run,
};
