/* SPDX-License-Identifier: Apache-2.0 */
/* leeway compare: a drifting generator beside a DDPM, a rectified flow. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "data/data.h"
#include "formats/formats.h"
#include "session/session.h"
#include "jobs/compare/compare_job.h"

static const lw_option options[] = {
    {LW_OPT(lw_compare_config, drift), .name = "drift", .path = LW_PATH_IN, .required = true,
     .unit = "run", .group = "Compared",
     .help = "run, checkpoint or model folder of the drifting generator"},
    {LW_OPT(lw_compare_config, ddpm), .name = "ddpm", .path = LW_PATH_IN, .unit = "run",
     .group = "Compared", .help = "the same of a DDPM"},
    {LW_OPT(lw_compare_config, flow), .name = "flow", .path = LW_PATH_IN, .unit = "run",
     .group = "Compared", .help = "the same of a rectified flow, instead of --ddpm or besides"},
    {LW_OPT(lw_compare_config, data), .name = "data", .path = LW_PATH_IN, .unit = "spec",
     .group = "Compared", .help = "real pictures; default: what the drift run was trained on"},
    {LW_OPT(lw_compare_config, limit), .name = "limit", .max = 1e12, .fallback = "0",
     .unit = "pictures", .group = "Compared",
     .help = "training pictures the runs saw; 0: as the drift run's config.yaml says"},
    {LW_OPT(lw_compare_config, ema), .name = "ema", .fallback = "true", .group = "Compared",
     .help = "use averaged weights, but the last ones"},
    {LW_OPT(lw_compare_config, precision), .name = "precision", .choices = LW_PRECISION_CHOICES,
     .fallback = "f32", .group = "Compared",
     .help = "operands of products in both; int8 needs folders made by `leeway quantize`"},
    {LW_OPT(lw_compare_config, judge), .name = "judge", .path = LW_PATH_IN, .unit = "run",
     .group = "Measured",
     .help = "a run of `train encoder --objective judge`: acceptance, the bar"},
    {LW_OPT(lw_compare_config, reader), .name = "reader", .path = LW_PATH_IN, .unit = "run",
     .group = "Measured",
     .help = "a run of `train encoder --objective classify`: legibility, agreement; default: the "
             "judge"},
    {LW_OPT(lw_compare_config, encoder), .name = "encoder", .path = LW_PATH_IN, .unit = "spec",
     .group = "Measured",
     .help = "features of Frechet distances, e.g. resnet_cifar10:FILE; default: the reader's, the "
             "judge's, else the drift run's"},
    {LW_OPT(lw_compare_config, battery), .name = "battery", .path = LW_PATH_IN, .unit = "spec,...",
     .group = "Measured",
     .help = "encoders and folders of them for a verdict of networks that no training saw; "
             "default: the folder battery beside the drift run, where there is one"},
    {LW_OPT(lw_compare_config, planted_steps), .name = "planted-steps", .fallback = "100",
     .max = 100000, .unit = "steps", .group = "Measured",
     .help = "two cheaters are planted among the rows of the verdict, which must expose them: "
             "drift's pictures moved by so many steps against one network of the battery, and "
             "training pictures with noise; 0: none"},
    {LW_OPT(lw_compare_config, planted_network), .name = "planted-network", .unit = "name",
     .group = "Measured",
     .help = "that network; default: of those that count the one of the fewest parameters"},
    {LW_OPT(lw_compare_config, n_fid), .name = "num-images", .aliases = "n-fid|n",
     .fallback = "1000", .min = 50, .max = 1e6, .unit = "pictures", .group = "Measured",
     .help = "pictures scored of each method"},
    {LW_OPT(lw_compare_config, on_error), .name = "on-error", .choices = LW_DATA_ON_ERROR,
     .fallback = "fail", .group = "Measured", .help = LW_DATA_ON_ERROR_HELP},
    {LW_OPT(lw_compare_config, n_ddpm), .name = "n-ddpm", .fallback = "0", .max = 1e6,
     .unit = "pictures", .group = "Measured",
     .help = "of DDPM and flow, when that many take too long; 0: --num-images"},
    {LW_OPT_LIST(lw_compare_config, alpha, n_alpha), .name = "alpha", .distinct = true, .min = 1,
     .max = 1000, .group = "Measured",
     .help = "strengths of guidance that drift is also scored with, from the same noise, when it "
             "was trained with --alpha-dist; the others are compared with the best"},
    {LW_OPT_LIST(lw_compare_config, guidance_scale, n_guidance_scale), .name = "guidance-scale",
     .distinct = true, .min = 1, .max = 1000, .group = "Measured",
     .help =
         "scales of guidance that DDPM and flow are also scored with, from the same noise and "
         "in the same steps of their first sampler, up to the usual number, two evaluations each; "
         "those that are compared must have been trained with --class-dropout-prob"},
    {LW_OPT(lw_compare_config, solver), .name = "sampler", .choices = "ddim|dpm-solver",
     .fallback = "ddim", .group = "Measured",
     .help = "of the DDPM, for --ddim-steps and --score-steps; dpm-solver: DPM-Solver++(2M)"},
    {LW_OPT_LIST(lw_compare_config, ddim_steps, n_ddim_steps), .name = "ddim-steps",
     .distinct = true, .fallback = "50,100,1000", .min = 1, .max = 4000, .group = "Measured",
     .help = "evaluations a DDPM is timed with; the first is also scored"},
    {LW_OPT_LIST(lw_compare_config, score_steps, n_score_steps), .name = "score-steps",
     .distinct = true, .fallback = "1,2,5,10,20", .min = 1, .max = 4000, .group = "Measured",
     .help = "further evaluations of it to score: DDPM's best is found among all"},
    {LW_OPT_LIST(lw_compare_config, ancestral_steps, n_ancestral_steps), .name = "ancestral-steps",
     .distinct = true, .fallback = "10,20,50", .min = 1, .max = 4000, .group = "Measured",
     .help = "the same of ancestral sampling"},
    {LW_OPT_LIST(lw_compare_config, flow_steps, n_flow_steps), .name = "flow-steps",
     .distinct = true, .fallback = "1,2,4,8,16", .min = 1, .max = 4000, .group = "Measured",
     .help = "evaluations of the flow, each timed and scored; the last is its usual number"},
    {LW_OPT(lw_compare_config, flow_sampler), .name = "flow-sampler", .choices = "euler|heun",
     .fallback = "euler", .group = "Measured", .help = "of the flow"},
    {LW_OPT(lw_compare_config, n_slow), .name = "n-slow", .fallback = "0", .max = 1e6,
     .unit = "pictures", .group = "Measured",
     .help = "of DDPM with more evaluations than the first of --ddim-steps; 0: --n-ddpm"},
    LW_CLIPPED_OPTION(lw_compare_config, use_clipped_model_output, "Measured"),
    {LW_OPT(lw_compare_config, latency_seconds), .name = "latency-seconds", .fallback = "3",
     .min = 0.05, .max = 3600, .unit = "s", .group = "Measured",
     .help = "time for each timed cell; much slower ones are extrapolated"},
    {LW_OPT(lw_compare_config, output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR,
     .required = true, .unit = "dir", .group = "Output",
     .help = "report.html, pictures, latency.csv, summary.json"},
    {LW_OPT(lw_compare_config, title), .name = "title", .group = "Output", .help = "of the page"},
    {.name = NULL}};

static void print_json(const lw_compare_config *c, const lw_compare_result *r)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    (void)r;
    if (lw_json_load(lw_path_join(&path, c->output_dir, "summary.json"), &j) == 0)
        lw_cli_print_result(j);
}

/* "DDPM-50" */
static const char *short_name(const lw_compare_other *o, char buf[24])
{
    snprintf(buf, 24, "%s-%d", o->name, (int)o->evaluations);
    return buf;
}

static void print_scores(const lw_compare_result *r)
{
    char name[24];
    lw_cli_print("%s\n                  drift %.3f [%.3f, %.3f]", r->distance, r->drift.fd.value,
                 r->drift.fd.low, r->drift.fd.high);
    for (int i = 0; i < r->n_others; i++) {
        const lw_interval *fd = &r->other[i].score.fd;
        lw_cli_print("  %s %.3f [%.3f, %.3f]", short_name(&r->other[i], name), fd->value, fd->low,
                     fd->high);
    }
    lw_cli_print("  real %.3f  untrained %.3g\n", r->real.fd.value, r->untrained_fd);
    if (r->drift_alpha > 0)
        lw_cli_print("%-17s drift at alpha %g, its best\n", "", r->drift_alpha);
    if (!r->judged)
        return;
    lw_cli_print("accepted          drift %.1f %%", 100 * r->drift.strict.accepted);
    for (int i = 0; i < r->n_others; i++)
        lw_cli_print("  %s %.1f %%", short_name(&r->other[i], name),
                     100 * r->other[i].score.strict.accepted);
    lw_cli_print("  real %.1f %%\n", 100 * r->real.strict.accepted);
}

static void print_paired(const lw_compare_result *r)
{
    char name[24];
    if (!r->paired_drift.n)
        return;
    lw_cli_print("beside f32        drift rms %.2g, worst %.2g", r->paired_drift.rms,
                 r->paired_drift.worst);
    for (int i = 0; i < r->n_others; i++)
        lw_cli_print("  %s rms %.2g, worst %.2g", short_name(&r->other[i], name),
                     r->other[i].paired.rms, r->other[i].paired.worst);
    lw_cli_print(" (same noise, %lld pictures)\n", (long long)r->paired_drift.n);
}

static void print_text(const lw_compare_result *r)
{
    LW_CLEANUP(lw_str_clear) lw_str work = {0};
    for (int i = 0; i < r->n_others; i++)
        lw_cli_print("%s\n\n", r->other[i].headline.text);
    print_scores(r);
    print_paired(r);
    lw_compare_work_text(r->work, r->n_others, &work);
    lw_cli_print("%s\n", lw_str_c(&work));
    lw_cli_print("%s", r->verdict);
    for (int i = 0; i < r->n_others; i++) {
        const double *x = r->other[i].speedup;
        char t[3][32], than[32] = "";
        if (r->n_others > 1)
            snprintf(than, sizeof than, " than %s", r->other[i].name);
        lw_cli_print("faster%-12s%s at 1, %s at 8, %s at 64 pictures%s\n", than,
                     lw_compare_times(t[0], x[0]), lw_compare_times(t[1], x[1]),
                     lw_compare_times(t[2], x[2]), r->busy ? "; the machine was busy" : "");
    }
    lw_cli_print("%s\n", r->report);
}

static void print_forecast(const lw_cli *cli, const lw_compare_result *r)
{
    char time[32];
    const bool battery = r->verdict_seconds > 0;
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:o}", "verdict_seconds",
                          battery ? json_real(r->verdict_seconds) : json_null());
    if (cli->global.json)
        lw_cli_print_result(j);
    else
        lw_cli_print(
            "%s%s; making, scoring and timing pictures comes besides and is not forecast\n",
            battery ? "the battery's verdict takes about " : "there is no battery, so no verdict",
            battery ? lw_fmt_time(time, r->verdict_seconds) : "");
}

static int run(const lw_cli *cli, const void *config)
{
    lw_compare_config c = *(const lw_compare_config *)config;
    lw_compare_result r;
    LW_CLEANUP(lw_str_clear) lw_str command = {0};
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer o;
    lw_cli_command_line(cli, &command);
    c.commands = lw_str_c(&command);
    c.seed = cli->global.seed;
    c.threads = cli->global.threads;
    c.conv = cli->global.conv;
    c.dry_run = cli->global.dry_run;
    lw_cli_observer_open(&o, cli);
    LW_TRY(lw_job_compare(&c, &o.calls, &r));
    if (c.dry_run)
        print_forecast(cli, &r);
    else if (cli->global.json)
        print_json(&c, &r);
    else
        print_text(&r);
    return 0;
}

/* Whether there is a verdict is known when half of the work is done. */
static const char *not_on_gpus(const void *config)
{
    const lw_compare_config *c = config;
    return c->planted_steps > 0
               ? "gradients, which --planted-steps moves pictures by, are not computed on "
                 "GPUs yet (--planted-steps 0: none)"
               : NULL;
}

const lw_command lw_cmd_compare = {
    .name = "compare",
    .dry_run = true,
    .summary =
        "a drifting generator beside a DDPM, a rectified flow: pictures, quality, speed, one page",
    .usage = "--drift RUN [--ddpm RUN] [--flow RUN] --output-dir DIR [options]",
    .notes = "Quality is measured against held-out pictures, with controls (noise, averages, "
             "blurred, repeated pictures) "
             "that must fail; distances stand beside what real pictures get.",
    .examples = "leeway compare --drift runs/drift --ddpm runs/ddpm --judge runs/judge "
                "--output-dir compare\n"
                "leeway compare --drift runs/drift --ddpm runs/ddpm --flow runs/flow --flow-steps "
                "1,2,4,8 --encoder mobilenet.safetensors --output-dir compare\n"
                "leeway compare --drift c/drift --ddpm c/ddpm --encoder "
                "resnet_cifar10:resnet56.safetensors --num-images 10000 "
                "--ddim-steps 50 --output-dir compare",
    .options = {options},
    .not_on_gpus = not_on_gpus,
    .config_size = sizeof(lw_compare_config),
    .run = run,
};
