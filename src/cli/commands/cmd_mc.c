/* SPDX-License-Identifier: Apache-2.0 */
/* leeway mc: Monte-Carlo uncertainty of frozen encoders. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "data/data.h"
#include "eval/eval.h"
#include "formats/formats.h"
#include "session/session.h"
#include "jobs/mc/mc_job.h"

typedef struct mc_cli {
    lw_mc_config c;
    int64_t memory;    /* MiB */
    const char *batch; /* a number, or auto */
    bool half;
    int32_t workers;
} mc_cli;

/* Settings of one experiment where they are not those of all. */
#define OWN(k, word, more)                                                                     \
    {LW_OPT(mc_cli, c.own[k].num_images),                                                      \
     .name = word "-num-images",                                                               \
     .max = 1e12,                                                                              \
     .unit = "pictures",                                                                       \
     .group = "Of one experiment",                                                             \
     .help = "--num-images of " word},                                                         \
        {LW_OPT(mc_cli, c.own[k].trials), .name = word "-trials",     .min = 1, .max = 100000, \
         .group = "Of one experiment",    .help = "--trials of " word},                        \
        {LW_OPT_LIST(mc_cli, c.own[k].passes, c.own[k].n_passes),                              \
         .name = word "-passes",                                                               \
         .min = 2,                                                                             \
         .max = LW_MC_MAX_PASSES - 1,                                                          \
         .group = "Of one experiment",                                                         \
         .help = "--passes of " word},                                                         \
    {                                                                                          \
        LW_OPT_LIST(mc_cli, c.own[k].models, c.own[k].n_models),                               \
            .name = word "-models", .aliases = more, .path = LW_PATH_IN,                       \
            .group = "Of one experiment", .help = "--models of " word                          \
    }

static const lw_option options[] = {
    {LW_OPT(mc_cli, c.data), .name = "data", .path = LW_PATH_IN, .positional = true,
     .required = true, .unit = "spec", .group = "Data",
     .help = "a folder of pictures, or " LW_DATA_SPEC_HELP},
    {LW_OPT(mc_cli, c.manifest), .name = "manifest", .path = LW_PATH_IN, .unit = "file",
     .group = "Data",
     .help = "the pictures of this JSON file, {\"paths\": [..]}, that lie in the folder DATA"},
    {LW_OPT(mc_cli, c.split), .name = "split", .choices = "train|held-out|all", .fallback = "all",
     .group = "Data", .help = "which part"},
    {LW_OPT(mc_cli, c.num_images), .name = "num-images", .aliases = "n", .max = 1e12,
     .fallback = "500", .unit = "pictures", .group = "Data",
     .help = LW_DATA_DRAW_HELP "; where it is not given all if there are fewer"},
    {LW_OPT(mc_cli, c.on_error), .name = "on-error", .choices = LW_DATA_ON_ERROR,
     .fallback = "fail", .group = "Data", .help = LW_DATA_ON_ERROR_HELP},
    {LW_OPT(mc_cli, c.image_size), .name = "image-size", .max = 1024, .fallback = "0",
     .unit = "pixels", .group = "Data",
     .help = "side of the pictures, for networks that take any; 0: the data's own"},
    {LW_OPT_LIST(mc_cli, c.models, c.n_models), .name = "models", .path = LW_PATH_IN,
     .group = "Models",
     .help = "run directories, model folders or weights files of encoders; NAME=SOURCE gives the "
             "name of its files"},
    {LW_OPT(mc_cli, c.layer), .name = "layer", .group = "Models",
     .help = "the output that is scored; default: pooled, or the first there is"},
    {LW_OPT(mc_cli, c.precision), .name = "precision", .choices = LW_PRECISION_CHOICES,
     .fallback = "f32", .group = "Models",
     .help = "operands of products; int8 needs a folder made by `leeway quantize`; sums, masks and "
             "scores are wider"},
    {LW_OPT(mc_cli, half), .name = "half", .fallback = "false", .group = "Models",
     .help = "--precision bf16; --no-half: f32"},
    {LW_OPT_LIST(mc_cli, c.only, c.n_only), .name = "only", .group = "Experiments",
     .help =
         "exp0: do scores come out again? exp0b: shape of the covariance; exp4: trace and angle; "
         "exp5: ambiguity against texts, of 5000 pictures, 1 trial of 64 passes where these are "
         "not "
         "given; validity: do scores rise when pictures are blurred or "
         "made small? (four times the passes more); errors: do they find what the network gets "
         "wrong? Default exp0"},
    {LW_OPT_LIST(mc_cli, c.passes, c.n_passes), .name = "passes", .fallback = "4,16,64", .min = 2,
     .max = LW_MC_MAX_PASSES - 1, .group = "Experiments",
     .help = "T, rising: scores of fewer passes are those of the first ones"},
    {LW_OPT(mc_cli, c.trials), .name = "trials", .fallback = "10", .min = 1, .max = 100000,
     .group = "Experiments", .help = "K: how often all passes are made again, with other masks"},
    {LW_OPT(mc_cli, c.dropout), .name = "dropout", .fallback = "0.01", .max = 100, .group = "Noise",
     .help =
         "probability; of gaussian and multiplicative noise the share of the standard deviation"},
    {LW_OPT(mc_cli, c.perturb), .name = "perturb", .choices = LW_NOISE_KINDS, .fallback = "dropout",
     .group = "Noise", .help = "what is done at a site"},
    {LW_OPT(mc_cli, c.sites), .name = "sites", .group = "Noise",
     .help =
         "hf, open_clip, open_clip-2.24, timm: linear modules as that library has them; blocks, "
         "depth, head; narrower attention, mlp, mlp-down, last:N, or a module; with commas "
         "between. Default: hf, of convolutional networks blocks"},
    {LW_OPT(mc_cli, c.one_pass), .name = "one-pass", .choices = LW_MC_METHODS, .fallback = "none",
     .group = "One pass",
     .help = "beside the passes: laplace, a distribution over the last layer's weights whose "
             "uncertainty takes one pass"},
    {LW_OPT(mc_cli, c.calibration), .name = "calibration", .path = LW_PATH_IN, .unit = "spec",
     .group = "One pass",
     .help = "the pictures it is made from, a data spec's training rows, labels play no part; "
             "default: those that are scored"},
    {LW_OPT(mc_cli, c.calibration_images), .name = "calibration-images", .max = 1e12,
     .fallback = "0", .unit = "pictures", .group = "One pass",
     .help = "so many of them, drawn with --seed; 0: all"},
    {LW_OPT(mc_cli, c.training_images), .name = "training-images", .max = 1e12, .fallback = "0",
     .unit = "pictures", .group = "One pass",
     .help =
         "how many the network was trained on, if those of --calibration stand for them; 0: for "
         "themselves"},
    {LW_OPT(mc_cli, c.prior), .name = "prior-precision", .fallback = "0", .max = 1e30,
     .group = "One pass", .help = "of each weight of the last layer; 0: that of largest evidence"},

    {LW_OPT(mc_cli, c.class_map), .name = "class-map", .aliases = "exp5-class-map",
     .path = LW_PATH_IN, .unit = "file", .group = "Answers",
     .help = "JSON {\"NAME\": number}: which output of the network, or row of the texts, is right "
             "for a picture or a class (folder) of that name; default: labels, where there are as "
             "many classes"},
    {LW_OPT(mc_cli, c.reference), .name = "reference", .path = LW_PATH_IN, .unit = "file",
     .group = "Answers",
     .help =
         "errors: a number of each picture, or counts of answers, whose entropy is taken; .npy, "
         ".npz or .safetensors with a row for each picture or each one of the split"},
    {LW_OPT(mc_cli, c.text_embeddings), .name = "text-embeddings", .path = LW_PATH_IN,
     .unit = "file", .group = "Answers",
     .help = "exp5: [classes, D] or [templates, classes, D], .npy, .npz or .safetensors"},
    {LW_OPT(mc_cli, c.templates), .name = "templates", .aliases = "exp5-templates",
     .group = "Answers",
     .help = "exp5: so many of its templates, or their names with | between; default: all"},
    {LW_OPT(mc_cli, c.quantile), .name = "quantile", .fallback = "0.1", .min = 0.001, .max = 0.5,
     .group = "Answers", .help = "exp5: the share of pictures that counts as ambiguous"},
    OWN(LW_MC_EXP0, "exp0", NULL),
    OWN(LW_MC_EXP0B, "exp0b", "exp0b-model"),
    OWN(LW_MC_EXP4, "exp4", NULL),
    OWN(LW_MC_EXP5, "exp5", NULL),
    {LW_OPT(mc_cli, batch), .name = "batch-size", .fallback = "auto", .group = "Speed",
     .unit = "rows",
     .help = "pictures times passes at a time, 1 to 4096; auto or 0: measured; never changes a "
             "bit"},
    {LW_OPT(mc_cli, workers), .name = "num-workers", .max = 4096, .group = "Speed",
     .transient = true, .help = "accepted and without effect: --threads decode pictures"},
    {LW_OPT(mc_cli, memory), .name = "memory-limit", .fallback = "0", .max = 1 << 24, .unit = "MiB",
     .group = "Speed",
     .help = "what is kept of pictures lies on the disk when it takes more; 0: half the memory"},
    {LW_OPT(mc_cli, c.output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR, .required = true,
     .unit = "dir", .group = "Output",
     .help = "report.html, the page; EXPERIMENT/MODEL/.. .npz and .json"},
    {LW_OPT(mc_cli, c.save_every), .name = "save-every", .fallback = "1", .min = 1, .max = 100000,
     .unit = "trials", .group = "Output", .help = "how often what is done is kept for --resume"},
    {LW_OPT(mc_cli, c.resume), .name = "resume", .fallback = "false", .group = "Output",
     .transient = true, .help = "go on with trials that an interrupted call left"},
    {LW_OPT(mc_cli, c.device_change), .name = "device-change", .fallback = "false",
     .group = "Output", .transient = true,
     .help =
         "with --resume, go on with trials that the CPU began on a GPU, or the other way round; "
         "their last bits differ"},
    {.name = NULL}};

/* ---- what is said ------------------------------------------------------------------------------ */

/* What has been compared with trace_pre stands in the file for every score. */
static json_t *one_pass_json(const lw_mc_config *c, const lw_mc_model_result *m)
{
    const lw_mc_one_pass_result *r = &m->one_pass;
    json_t *scores = json_object();
    for (int s = 0; s < LW_LAPLACE_SCORES; s++)
        json_object_set_new(scores, lw_laplace_score_name[s],
                            json_pack("{s:o, s:o}", "mean", lw_json_real(r->mean[s]),
                                      "spearman_trace_pre",
                                      lw_json_real(r->rho[s][LW_PASS_TRACE_PRE][c->n_passes - 1])));
    return json_pack("{s:s, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:o}", "weight", r->weight, "in",
                     (int)r->in, "out", (int)r->out, "calibration_images",
                     (json_int_t)r->fit.pictures, "prior_precision", r->fit.prior,
                     "effective_weights", r->fit.gamma, "calibrate_seconds", r->calibrate,
                     "score_seconds", r->score, "scores", scores);
}

static json_t *model_json(const lw_mc_config *c, const lw_mc_model_result *m)
{
    json_t *t = json_array();
    for (int32_t i = 0; i < m->n_t && !c->dry_run; i++)
        json_array_append_new(t, json_pack("{s:i, s:o, s:o, s:o, s:o, s:s, s:s}", "passes",
                                           (int)m->t[i], "mean_pre", lw_json_real(m->mean_pre[i]),
                                           "mean_post", lw_json_real(m->mean_post[i]), "rho_pre",
                                           lw_json_real(m->pre[i].rho_median), "rho_post",
                                           lw_json_real(m->post[i].rho_median), "status_pre",
                                           lw_reliability_status(&m->pre[i]), "status_post",
                                           lw_reliability_status(&m->post[i])));
    json_t *j = lw_mc_costs_json(m);
    json_object_set_new(j, c->dry_run ? "predicted_seconds" : "seconds", lw_json_real(m->seconds));
    if (m->one_pass.done)
        json_object_set_new(j, "one_pass", one_pass_json(c, m));
    json_object_set_new(j, "results", t);
    return j;
}

static void print_json(const lw_mc_config *c, const lw_mc_result *r)
{
    json_t *models = json_array();
    for (int32_t i = 0; i < r->n; i++)
        json_array_append_new(models, model_json(c, &r->model[i]));
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:s, s:s, s:s, s:i, s:f, s:o}", "output_dir", c->output_dir, "page",
                          r->page, "answer", lw_str_c(&r->answer), "trials", (int)c->trials,
                          "dropout", c->dropout, "models", models);
    lw_cli_print_result(j);
}

static void print_costs(const lw_mc_config *c, const lw_mc_model_result *m)
{
    char b[5][32], t[3][32];
    double share = m->cut.prefix / (m->cut.prefix + m->cut.suffix);
    lw_cli_print("%s: %s, %lld parameters (%s), %lld pictures of %dx%d (%s; %s as f32)\n", m->name,
                 m->network, (long long)m->parameters, lw_fmt_bytes(b[0], m->weights),
                 (long long)m->pictures, (int)m->width, (int)m->height,
                 lw_fmt_bytes(b[1], m->pixels), lw_fmt_bytes(b[2], m->pixels_f32));
    lw_cli_print("  sites %s: %d, %d live, %d dead; scored: %s of %d numbers\n",
                 lw_str_c(&m->sites), (int)m->n_sites, (int)m->live, (int)(m->n_sites - m->live),
                 m->layer, (int)m->dim);
    lw_cli_print("  rate %g at these; the network's own files say: %s\n", c->dropout,
                 m->stored_dropout);
    lw_cli_print("  once a picture %.3g GFLOP (%.0f %%), kept %s %s; each pass %.3g GFLOP, %d rows "
                 "at a time, %s\n",
                 m->cut.prefix / 1e9, 100 * share,
                 lw_fmt_bytes(b[3], m->cut.kept * (uint64_t)m->pictures),
                 m->cut.on_disk ? "on disk" : "in memory", m->cut.suffix / 1e9, (int)m->batch,
                 lw_fmt_bytes(b[4], m->cut.bytes));
    lw_cli_print("  memory %s beside what is mapped from files: weights %s, scores %s\n",
                 lw_fmt_bytes(b[0], m->need), lw_fmt_bytes(b[1], m->weights),
                 lw_fmt_bytes(b[2], m->arrays));
    lw_cli_print("  %s%s: decode %.2f s, compile %.2f s, once %s, passes %s, scores %.2f s\n",
                 c->dry_run ? "would take about " : "", lw_fmt_time(t[0], m->seconds), m->decode,
                 m->compile, lw_fmt_time(t[1], m->prefix), lw_fmt_time(t[2], m->passes), m->scores);
}

static void print_one_pass(const lw_mc_config *c, const lw_mc_model_result *m)
{
    const lw_mc_one_pass_result *r = &m->one_pass;
    lw_cli_print("  one pass: %s %dx%d%s, prior precision %.4g%s, %lld calibration pictures tell "
                 "%.1f of %lld weights; calibrated in %.2f s, scored in %.2f s\n",
                 r->weight, (int)r->out, (int)r->in, r->bias ? " and bias" : "", r->fit.prior,
                 c->prior > 0 ? "" : " (largest evidence)", (long long)r->fit.pictures,
                 r->fit.gamma, (long long)r->out * (r->in + r->bias), r->calibrate, r->score);
    for (int s = 0; s < LW_LAPLACE_SCORES; s++) {
        lw_cli_print("    %-26s  mean %-10.5g rho with trace_pre", lw_laplace_score_name[s],
                     r->mean[s]);
        for (int32_t i = 0; i < c->n_passes; i++)
            lw_cli_print(" %.3f (T=%d)", r->rho[s][LW_PASS_TRACE_PRE][i], (int)c->passes[i]);
        lw_cli_print("\n");
    }
}

static void print_reliability(const char *t, const char *score, double mean,
                              const lw_reliability *r)
{
    lw_cli_print("  %-4s  %-10s  %-10.4g  %6.3f  %-7.3g  %6.3f  %s\n", t, score, mean,
                 r->rho_median, r->snr, r->icc, lw_reliability_status(r));
}

static void print_model(const lw_mc_config *c, const lw_mc_model_result *m)
{
    print_costs(c, m);
    if (!c->dry_run)
        lw_cli_print("  T     score       mean        rho     snr      icc\n");
    for (int32_t i = 0; i < m->n_t && !c->dry_run; i++) {
        char t[16];
        snprintf(t, sizeof t, "%d", (int)m->t[i]);
        print_reliability(t, "trace_pre", m->mean_pre[i], &m->pre[i]);
        print_reliability("", "trace_post", m->mean_post[i], &m->post[i]);
    }
    if (m->one_pass.done)
        print_one_pass(c, m);
}

/* What running in turn saves, and that it costs nothing. */
static void print_together(const lw_mc_result *r)
{
    uint64_t most = 0, all = 0;
    double seconds = 0;
    char b[2][32], t[32];
    for (int32_t i = 0; i < r->n; i++) {
        most = LW_MAX(most, r->model[i].need);
        all += r->model[i].need;
        seconds += r->model[i].seconds;
    }
    if (r->n > 1)
        lw_cli_print("all in turn: about %s, at most %s of memory at a time (together %s, in no "
                     "less time); pictures that are prepared alike are decoded once\n",
                     lw_fmt_time(t, seconds), lw_fmt_bytes(b[0], most), lw_fmt_bytes(b[1], all));
}

static int set_batch(const char *text, int32_t *out)
{
    int64_t n = 0;
    bool number = lw_str_eq(text, "auto") || lw_parse_i64(text, &n) == 0;
    if (!number || n < 0 || n > 4096)
        return lw_fail(LW_EUSAGE, "--batch-size %s: auto, or 1 to 4096", text);
    *out = (int32_t)n;
    return 0;
}

/* exp5 is about more pictures and one trial, where nothing else is said: as its authors have it. */
static void set_exp5(const lw_cli *cli, lw_mc_config *c)
{
    enum { PICTURES = 5000, TRIALS = 1, PASSES = 64 };
    lw_mc_own *own = &c->own[LW_MC_EXP5];
    c->at_most = !lw_cli_given(cli, "num-images");
    if (!own->num_images && c->at_most) {
        own->num_images = PICTURES;
        own->at_most = true;
    }
    if (!own->trials && !lw_cli_given(cli, "trials"))
        own->trials = TRIALS;
    if (!own->n_passes && !lw_cli_given(cli, "passes"))
        own->passes[own->n_passes++] = PASSES;
}

/* The origin chooses SigLIP's modules by a variable; here no variable changes what is computed. */
static int check_backend(const lw_cli *cli)
{
    const char *said = getenv("MCDO_SIGLIP2_BACKEND");
    if (!said || !*said || lw_cli_given(cli, "sites"))
        return 0;
    return lw_fail(LW_EUSAGE,
                   "MCDO_SIGLIP2_BACKEND=%s is set, and no variable changes results here: say "
                   "--sites %s, or unset it",
                   said, strstr(said, "clip") ? "open_clip" : "hf");
}

static int run(const lw_cli *cli, const void *config)
{
    static lw_mc_result r;
    const mc_cli *o = config;
    lw_mc_config c = o->c;
    LW_TRY(set_batch(o->batch, &c.batch));
    LW_TRY(check_backend(cli));
    set_exp5(cli, &c);
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    LW_CLEANUP(lw_str_clear) lw_str command = {0};
    lw_cli_command_line(cli, &command);
    c.command = lw_str_c(&command);
    if (lw_cli_given(cli, "half"))
        c.precision = o->half ? LW_NUM_BF16 : LW_NUM_F32;
    c.seed = (uint64_t)cli->global.seed;
    c.threads = cli->global.threads;
    c.conv = cli->global.conv;
    c.dry_run = cli->global.dry_run;
    c.memory = (uint64_t)o->memory << 20;
    lw_cli_observer_open(&obs, cli);
    if (lw_cli_given(cli, "num-workers"))
        lw_observe_say(&obs.calls, "--num-workers has no effect: %d threads decode",
                       (int)c.threads);
    LW_TRY(lw_job_mc(&c, &obs.calls, &r));
    if (cli->global.json)
        print_json(&c, &r);
    for (int32_t i = 0; i < r.n && !cli->global.json; i++)
        print_model(&c, &r.model[i]);
    if (c.dry_run && !cli->global.json)
        print_together(&r);
    if (!c.dry_run && !cli->global.json)
        lw_cli_print("%s%s\n", lw_str_c(&r.answer), *r.page ? r.page : c.output_dir);
    lw_mc_result_clear(&r);
    return 0;
}

const lw_command lw_cmd_mc = {
    .name = "mc",
    .dry_run = true,
    .summary = "uncertainty of frozen encoders by noisy passes, and whether it comes out again",
    .usage = "DATA --models SPEC,.. --output-dir DIR [options]",
    .notes =
        "Every picture goes T times through the network with dropout on, K trials long; its "
        "score is how much the features vary. The answer is OUTPUT/report.html: are the scores "
        "usable, from which T on, and of anything? What lies before the first site is computed "
        "once: --sites last:3 is fast. A score depends on the seed, the picture and the sites "
        "alone, on no batch, order or number of threads. Interrupted, it goes on with --resume "
        "to the same bits.",
    .examples =
        "leeway mc pictures --models clip_b32=models/clip-vit-base-patch32 --output-dir mc "
        "--dry-run\n"
        "leeway mc pictures --models clip_b32=models/clip-vit-base-patch32 --passes 4,16,64 "
        "--trials 10 --num-images 500 --output-dir mc\n"
        "leeway mc cifar10:data --split held-out --models resnet56.safetensors --sites last:2 "
        "--dropout 0.2 --only exp0,validity,errors --one-pass laplace --output-dir mc",
    .options = {options},
    .config_size = sizeof(mc_cli),
    .run = run,
};
