/* SPDX-License-Identifier: Apache-2.0 */
/* leeway demo: everything once, in a few minutes. */
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/cli_recipe.h"
#include "formats/formats.h"
#include "jobs/compare/compare_job.h"
#include "jobs/demo/demo_job.h"

static const lw_option options[] = {
    {LW_OPT(lw_demo_config, data), .name = "data", .path = LW_PATH_IN, .fallback = "synth:16",
     .unit = "spec", .group = "Demo",
     .help = "labelled pictures: synth[:16|32], cifar10:PATH, mnist:PATH, folder:DIR"},
    {LW_OPT(lw_demo_config, minutes), .name = "minutes", .max = 1e5, .fallback = "0",
     .group = "Demo",
     .help =
         "of training, the recipe's networks together; two of the verdict take 3 % each, at most "
         "10 seconds, besides; 0: 6 for pictures of 16x16, 30 for larger ones"},
    {LW_OPT(lw_demo_config, recipe_file), .name = "recipe", .path = LW_PATH_IN, .unit = "yaml",
     .group = "Demo",
     .help =
         "sections encoder, judge, reader, drift and ddpm: options of `leeway train`, minutes "
         "their shares; default: the one of docs/recipes for the data (synth-6min, mnist-10min, "
         "else cifar10-60min)"},
    {LW_OPT(lw_demo_config, encoder), .name = "encoder", .path = LW_PATH_IN, .unit = "spec",
     .group = "Demo",
     .help = "features of Frechet distances, e.g. resnet_cifar10:FILE; default: the judge's"},
    {LW_OPT(lw_demo_config, n_fid), .name = "num-images", .aliases = "n-fid|n", .fallback = "1000",
     .min = 50, .max = 1e6, .unit = "pictures", .group = "Demo",
     .help = "of drift that are scored"},
    {LW_OPT(lw_demo_config, n_ddpm), .name = "n-ddpm", .fallback = "500", .min = 50, .max = 1e6,
     .unit = "pictures", .group = "Demo", .help = "of DDPM, which takes longer"},
    {LW_OPT(lw_demo_config, latency_seconds), .name = "latency-seconds", .fallback = "0.5",
     .min = 0.05, .max = 3600, .unit = "s", .group = "Demo", .help = "time for each timed cell"},
    {LW_OPT(lw_demo_config, output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR,
     .fallback = "runs/demo", .unit = "dir", .group = "Demo",
     .help = "runs and report; what is finished there is not trained again"},
    {.name = NULL}};

/* ---- the recipe ------------------------------------------------------------------------- */

/* Digits drawn small, other digits, photographs. */
static int built_in(const char *data, json_t **out)
{
    bool small = lw_str_eq(data, "synth") || lw_str_starts(data, "synth:16") ||
                 lw_str_starts(data, "synth,");
    bool digits = lw_str_starts(data, "synth") || lw_str_starts(data, "mnist:");
    const lw_embedded *file = &lw_recipes[small ? 0 : digits ? 1 : 2];
    return lw_yaml_parse(file->name, (const char *)file->bytes, file->n, out);
}

/* One stage: its section over the tables of its command. */
static int read_stage(const lw_cli *cli, const char *path, const json_t *recipe,
                      lw_demo_stage_id id, const lw_command *command, void *config, json_t **said)
{
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    lw_opts o = {.arena = cli->opts.arena};
    LW_TRY(lw_command_tables(command, &o, config));
    LW_TRY(lw_opts_section(path, recipe, lw_demo_stage_name(id), &tree));
    lw_str_addf(&what, "%s#%s", path, lw_demo_stage_name(id));
    LW_TRY(lw_opts_set_tree(&o, lw_str_c(&what), command->name, tree));
    LW_TRY(lw_demo_say(tree, "command", json_string(command->name)));
    *said = lw_steal(&tree);
    return 0;
}

extern const lw_command lw_cmd_train_encoder, lw_cmd_train_drift, lw_cmd_train_ddpm;

static int read_recipe(const lw_cli *cli, const lw_demo_config *c, lw_demo_recipe *r)
{
    LW_CLEANUP(lw_json_drop) json_t *recipe = NULL;
    const char *path = c->recipe_file ? c->recipe_file : "recipe";
    const struct {
        const lw_command *command;
        void *config;
    } stage[LW_DEMO_STAGES] = {{&lw_cmd_train_encoder, &r->encoder},
                               {&lw_cmd_train_encoder, &r->judge},
                               {&lw_cmd_train_encoder, &r->reader},
                               {&lw_cmd_train_drift, &r->drift},
                               {&lw_cmd_train_ddpm, &r->ddpm}};
    LW_TRY(c->recipe_file ? lw_yaml_load(path, &recipe) : built_in(c->data, &recipe));
    for (int i = 0; i < LW_DEMO_STAGES; i++)
        LW_TRY(read_stage(cli, path, recipe, (lw_demo_stage_id)i, stage[i].command, stage[i].config,
                          &r->options[i]));
    return 0;
}

/* ---- what it says ----------------------------------------------------------------------- */

static void print_bar(const lw_compare_result *r)
{
    for (int i = 0; i < LW_BAR_COUNT; i++)
        if (r->bar[i].applies)
            lw_cli_print("%s  %-46s %-22s (asked: %s)\n", r->bar[i].pass ? "PASS" : "FAIL",
                         r->bar[i].name, r->bar[i].value, r->bar[i].asked);
    lw_cli_print("%s  %-46s %d of %d, real pictures %s\n",
                 r->controls_passed || !r->real_passes ? "FAIL" : "PASS",
                 "spoilt pictures that fail, as they must", r->controls - r->controls_passed,
                 r->controls, r->real_passes ? "pass" : "do not pass");
    lw_cli_print("%s  %-46s %.1f %% right; accepts %.1f %% of real, %.1f %% of class means, %.1f "
                 "%% of blurred\n",
                 r->exam.fit ? "PASS" : "FAIL", "the judge is fit to judge", 100 * r->exam.accuracy,
                 100 * r->exam.real_accepted, 100 * r->exam.means_accepted,
                 100 * r->exam.blurred_accepted);
}

static void print_text(const lw_demo_result *d)
{
    const lw_compare_result *r = &d->compare;
    const lw_compare_other *ddpm = &r->other[0];
    char time[32], t[3][32];
    lw_cli_print("\n%s\n", ddpm->headline.text);
    lw_cli_print("\n            drift, 1 evaluation   DDPM, 50 evaluations   real pictures\n"
                 "accepted    %18.1f %%   %18.1f %%   %11.1f %%\n"
                 "Frechet     %20.2f   %20.2f   %6.2f | %.2f\n"
                 "drift is %s faster at one picture, %s at 8, %s at 64%s\n\n",
                 100 * r->drift.strict.accepted, 100 * ddpm->score.strict.accepted,
                 100 * r->real.strict.accepted, r->drift.fd.value, ddpm->score.fd.value,
                 r->real.fd.value, r->floor_few, lw_compare_times(t[0], ddpm->speedup[0]),
                 lw_compare_times(t[1], ddpm->speedup[1]), lw_compare_times(t[2], ddpm->speedup[2]),
                 r->busy ? "; the machine was busy" : "");
    LW_CLEANUP(lw_str_clear) lw_str work = {0};
    lw_compare_work_text(r->work, r->n_others, &work);
    lw_cli_print("%s\n\n%s", lw_str_c(&work), r->verdict);
    if (!d->barred)
        lw_cli_print("The conditions were set for synth:16 and its own recipe; here they are for "
                     "information:\n");
    print_bar(r);
    lw_cli_print("\n%s\nreport: %s\n", lw_fmt_time(time, d->seconds), r->report);
}

static void print_json(const lw_demo_config *c, const lw_demo_result *d)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    if (lw_json_load(lw_path_join(&path, c->output_dir, "summary.json"), &j) < 0)
        return;
    json_object_set_new(j, "report", json_string(d->compare.report));
    json_object_set_new(j, "seconds", lw_json_real(d->seconds));
    json_object_set_new(j, "pass", d->barred ? json_boolean(d->pass) : json_null());
    lw_cli_print_json(j);
}

/* What a dry run says in words, for programs. */
static void print_forecast(const lw_demo_result *d)
{
    json_t *stages = json_array();
    for (int i = 0; i < LW_DEMO_STAGES; i++) {
        const lw_demo_forecast *f = &d->stage[i];
        json_array_append_new(
            stages,
            json_pack("{s:s, s:f, s:o, s:o}", "name", lw_demo_stage_name((lw_demo_stage_id)i),
                      "minutes", f->minutes, "step_seconds",
                      f->step_seconds > 0 ? json_real(f->step_seconds) : json_null(),
                      "flops_per_step",
                      f->step_seconds > 0 ? json_real(f->flops_per_step) : json_null()));
    }
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:f, s:o}", "minutes", d->minutes, "stages", stages);
    lw_cli_print_result(j);
}

static int run_recipe(const lw_cli *cli, const lw_demo_config *c)
{
    lw_demo_result r;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer o;
    lw_cli_observer_open(&o, cli);
    int rc = lw_job_demo(c, &o.calls, &r);
    if (rc == LW_ESTOPPED) { /* a training says how it goes on by itself */
        char what[256];
        snprintf(what, sizeof what, "%.*s", (int)strcspn(lw_errmsg(), ";"), lw_errmsg());
        return lw_fail(rc, "%s; the same command goes on from here", what);
    }
    LW_TRY(rc);
    if (c->dry_run) {
        if (cli->global.json)
            print_forecast(&r);
        return 0;
    }
    if (cli->global.json)
        print_json(c, &r);
    else
        print_text(&r);
    return r.barred && !r.pass
               ? lw_fail(LW_EFAILED, "the drifting generator does not meet the bar, see %s",
                         r.compare.report)
               : 0;
}

static int run(const lw_cli *cli, const void *config)
{
    lw_demo_config c = *(const lw_demo_config *)config;
    lw_demo_recipe recipe = {0};
    c.seed = cli->global.seed;
    c.threads = cli->global.threads;
    c.conv = cli->global.conv;
    c.dry_run = cli->global.dry_run;
    c.recipe = &recipe;
    int rc = read_recipe(cli, &c, &recipe);
    if (rc == 0)
        rc = run_recipe(cli, &c);
    lw_demo_drop(&recipe);
    return rc;
}

const lw_command lw_cmd_demo = {
    .name = "demo",
    .dry_run = true,
    .summary = "train an encoder, a drifting generator and a DDPM, compare them on one page",
    .usage = "[--data SPEC] [--minutes M] [--output-dir DIR]",
    .notes = "Needs no file: the default data is drawn. Drift and DDPM train on the same U-Net, in "
             "turns, each the same share of its own steps: both get the same machine, and the "
             "result says by how many percent their times differ. "
             "Interrupted, it goes on where it was; finished stages are kept. Exit code 1: the bar "
             "is not met.",
    .examples = "leeway demo\n"
                "leeway demo --data cifar10:data/cifar10 --minutes 60 --output-dir runs/cifar",
    .options = {options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_demo_config),
    .run = run,
};
