/* SPDX-License-Identifier: Apache-2.0 */
/* leeway fid: distances between two sets of pictures. */
#include <math.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "data/data.h"
#include "formats/formats.h"
#include "session/session.h"
#include "jobs/fid/fid_job.h"

typedef struct fid_cli {
    lw_fid_config c;
    const char *a, *b;
    int32_t split_a, split_b;
    int32_t weights;
} fid_cli;

static const lw_option options[] = {
    {LW_OPT(fid_cli, a), .name = "a", .path = LW_PATH_IN, .positional = true, .required = true,
     .help = "the set that is judged: a folder, a data spec, a run or model folder, an array of "
             "pictures (.npy, .npz), features of `leeway encode`, or statistics (mu and sigma in "
             ".npz or .safetensors)"},
    {LW_OPT(fid_cli, b), .name = "b", .path = LW_PATH_IN, .positional = true,
     .help = "the reference, any of these; may be left out with --save-stats"},
    {LW_OPT(fid_cli, split_a), .name = "split-a", .choices = "train|held-out|all",
     .fallback = "all", .group = "Pictures", .help = "which part of A, where it is data"},
    {LW_OPT(fid_cli, split_b), .name = "split-b", .choices = "train|held-out|all",
     .fallback = "all", .group = "Pictures", .help = "which part of B, where it is data"},
    {LW_OPT(fid_cli, c.num_images), .name = "num-images", .aliases = "n", .max = 1e9,
     .fallback = "0", .unit = "pictures", .group = "Pictures",
     .help = "of each set, " LW_DATA_DRAW_HELP "; of a generator: how many it makes"},
    {LW_OPT(fid_cli, c.image_size), .name = "image-size", .max = 1024, .fallback = "0",
     .unit = "pixels", .group = "Pictures",
     .help = "side of pictures of data, for encoders that take any; 0: their own"},
    {LW_OPT(fid_cli, c.on_error), .name = "on-error", .choices = LW_DATA_ON_ERROR,
     .fallback = "fail", .group = "Pictures", .help = LW_DATA_ON_ERROR_HELP},
    {LW_OPT(fid_cli, weights), .name = "weights", .fallback = "ema", .choices = "model|ema",
     .group = "Pictures", .help = "which weights of a generator's checkpoint"},
    {LW_OPT(fid_cli, c.sampler), .name = "sampler", .choices = LW_SAMPLER_CHOICES,
     .fallback = "auto", .group = "Pictures", .help = "of a generator, as in `leeway sample`"},
    {LW_OPT(fid_cli, c.steps), .name = "steps", .fallback = "0", .max = 4000, .unit = "evaluations",
     .group = "Pictures", .help = "of a generator per picture, as in `leeway sample`"},
    {LW_OPT(fid_cli, c.alpha), .name = "alpha", .fallback = "0", .max = 1000, .group = "Pictures",
     .help = "strength of guidance, of generators trained with --alpha-dist; 0: 1, which is none"},
    LW_GUIDANCE_OPTION(fid_cli, c.guidance_scale, "Pictures"),
    {LW_OPT(fid_cli, c.battery), .name = "battery", .path = LW_PATH_IN, .unit = "specs",
     .group = "Encoders",
     .help = "networks, or folders of them, with commas between: their verdict on A, beside real "
             "pictures of B that no training of A saw (docs/verdict.md)"},
    {LW_OPT(fid_cli, c.probe), .name = "probe", .path = LW_PATH_IN, .unit = "specs",
     .group = "Encoders",
     .help = "networks, or folders of them, with commas between: a linear probe on each, fitted on "
             "labelled training pictures of B, says how many pictures of A show the class asked "
             "for, and of how many more than half of the networks say so (docs/verdict.md)"},
    {LW_OPT(fid_cli, c.probe_images), .name = "probe-images", .fallback = "4000", .min = 10,
     .max = 1e9, .unit = "pictures", .group = "Encoders",
     .help = "that probes are fitted on, drawn by --seed, at most"},
    {LW_OPT_LIST(fid_cli, c.encoders, c.n_encoders), .name = "encoder", .aliases = "encoders",
     .distinct = true, .path = LW_PATH_IN, .unit = "spec", .group = "Encoders",
     .help = "networks in whose features distances are measured, one row each; not needed for "
             "two sets of features or statistics"},
    {LW_OPT(fid_cli, c.resize), .name = "resize",
     .choices = "pillow|pillow-13|float-aa|torch|tf-inception", .group = "Encoders",
     .help = "resize pictures in this way instead of the encoder's own"},
    LW_PRECISION_OPTION(fid_cli, c.precision, "Encoders"),
    {LW_OPT(fid_cli, c.batch), .name = "batch-size", .fallback = "16", .min = 1, .max = 65536,
     .group = "Encoders", .help = "pictures at a time; results do not depend on it"},
    {LW_OPT(fid_cli, c.precision_recall), .name = "precision-recall", .fallback = "false",
     .group = "Measures", .help = "improved precision and recall, with 3 neighbours"},
    {LW_OPT(fid_cli, c.kid), .name = "kid", .fallback = "false", .group = "Measures",
     .help = "kernel distance: mean and deviation of 100 subsets of at most 1,000"},
    {LW_OPT(fid_cli, c.inception_score), .name = "is", .fallback = "false", .group = "Measures",
     .help = "Inception score of A by the encoder's classes, in 10 splits"},
    {LW_OPT(fid_cli, c.sliced_wasserstein), .name = "sw", .fallback = "false", .group = "Measures",
     .help = "sliced Wasserstein distance over 1,024 directions"},
    {LW_OPT(fid_cli, c.save_stats), .name = "save-stats", .path = LW_PATH_OUT, .unit = "file",
     .group = "Output",
     .help = ".npz or .safetensors: mean, covariance and contract of B (of A, if it is alone)"},
    {LW_OPT(fid_cli, c.force), .name = "force", .fallback = "false", .group = "Output",
     .help = "measure although contracts differ"},
    {.name = NULL}};

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *side_json(const lw_fid_side *s)
{
    return s->source
               ? json_pack("{s:s, s:s, s:o, s:o*, s:o*}", "source", s->source, "kind", s->kind,
                           "count", s->count ? json_integer((json_int_t)s->count) : json_null(),
                           "alpha", s->alpha > 0.0 ? json_real(s->alpha) : NULL, "guidance_scale",
                           s->guidance_scale > 0.0 ? json_real(s->guidance_scale) : NULL)
               : json_null();
}

static json_t *count_json(int64_t n)
{
    return n ? json_integer((json_int_t)n) : json_null();
}

static json_t *contract_json(const lw_fid_row *r)
{
    json_t *j = lw_contract_json(&r->contract);
    json_object_set_new(j, "count_a", count_json(r->count[0]));
    json_object_set_new(j, "count_b", count_json(r->count[1]));
    return j;
}

static json_t *row_json(const lw_fid_config *c, const lw_fid_row *r)
{
    json_t *notes = json_array(), *j = json_pack("{s:s, s:i, s:o}", "name", r->distance, "dim",
                                                 (int)r->dim, "contract", contract_json(r));
    if (r->compared)
        json_object_set_new(j, "frechet", lw_json_real(r->frechet));
    if (r->compared && c->precision_recall) {
        json_object_set_new(j, "precision", lw_json_real(r->precision));
        json_object_set_new(j, "recall", lw_json_real(r->recall));
    }
    if (r->compared && c->kid) {
        json_object_set_new(j, "kid", lw_json_real(r->kid));
        json_object_set_new(j, "kid_sd", lw_json_real(r->kid_sd));
        json_object_set_new(j, "kid_rows", json_integer(r->kid_rows));
    }
    if (r->compared && c->sliced_wasserstein)
        json_object_set_new(j, "sliced_wasserstein", lw_json_real(r->sliced));
    if (c->inception_score) {
        json_object_set_new(j, "inception_score", lw_json_real(r->score));
        json_object_set_new(j, "inception_score_sd", lw_json_real(r->score_sd));
    }
    for (int i = 0; i < r->n_notes; i++)
        json_array_append_new(notes, json_string(r->note[i]));
    json_object_set_new(j, "notes", notes);
    json_object_set_new(j, "seconds", lw_json_real(r->seconds));
    return j;
}

static json_t *share_json(lw_interval i)
{
    return json_pack("{s:f, s:f, s:f}", "share", i.value, "low", i.low, "high", i.high);
}

static json_t *probe_json(const lw_fid_result *r)
{
    json_t *judges = json_array(), *left_out = json_array();
    for (int i = 0; i < r->n_probes; i++) {
        const lw_fid_probe *p = &r->probe[i];
        json_array_append_new(judges,
                              json_pack("{s:s, s:f, s:o, s:o}", "name", p->name, "ridge", p->ridge,
                                        "made", share_json(p->made), "real", share_json(p->real)));
    }
    for (int i = 0; i < r->n_left_out; i++)
        json_array_append_new(left_out, json_pack("{s:s, s:s}", "name", r->left_out[i].name, "why",
                                                  r->left_out[i].why));
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:i, s:o, s:o}", "fitted",
                     (json_int_t)r->probe_fitted, "n", (json_int_t)r->probe_images[0], "n_real",
                     (json_int_t)r->probe_images[1], "judges", judges, "left_out", left_out,
                     "needed", (int)r->probes_needed, "named", share_json(r->named), "named_real",
                     share_json(r->named_real));
}

static void print_json(const lw_fid_config *c, const lw_fid_result *r)
{
    json_t *rows = json_array();
    for (int i = 0; i < r->n_rows; i++)
        json_array_append_new(rows, row_json(c, &r->row[i]));
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:o, s:o, s:o, s:s*, s:o}", "a", side_json(&r->side[0]), "b",
                          side_json(&r->side[1]), "results", rows, "save_stats",
                          c->dry_run ? NULL : c->save_stats,
                          c->dry_run ? "predicted_seconds" : "seconds", lw_json_real(r->seconds));
    if (c->dry_run)
        json_object_set_new(j, "memory_bytes", json_integer((json_int_t)r->memory_bytes));
    if (r->verdict_json)
        json_object_set(j, "verdict", r->verdict_json);
    if (r->n_probes)
        json_object_set_new(j, "probe", probe_json(r));
    lw_cli_print_result(j);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_contract(const lw_fid_row *r)
{
    for (int k = 0; k < LW_CONTRACT_KEYS; k++)
        if (*r->contract.value[k])
            lw_cli_print("  %s %s: %s\n", k ? "        " : "contract", lw_contract_key_name[k],
                         r->contract.value[k]);
}

static void print_kid(const char *encoder, const lw_fid_row *r)
{
    lw_cli_print("KID, %-35s %.9g", encoder, r->kid);
    if (!isnan(r->kid_sd))
        lw_cli_print(", deviation %.3g (subsets of %d)", r->kid_sd, (int)r->kid_rows);
    lw_cli_print("\n");
}

static void print_row(const lw_fid_config *c, const lw_fid_row *r)
{
    const char *encoder = r->contract.value[LW_CONTRACT_ENCODER];
    if (!*encoder)
        encoder = "features";
    lw_cli_print("\n");
    if (r->compared)
        lw_cli_print("%-40s %.9g\n", r->distance, r->frechet);
    if (r->compared && c->sliced_wasserstein)
        lw_cli_print("sliced Wasserstein, %-20s %.9g\n", encoder, r->sliced);
    if (r->compared && c->kid)
        print_kid(encoder, r);
    if (r->compared && c->precision_recall)
        lw_cli_print("precision, recall, %-21s %.4f, %.4f\n", encoder, r->precision, r->recall);
    if (c->inception_score)
        lw_cli_print("Inception score of A, %-18s %.6g, deviation %.3g\n", encoder, r->score,
                     r->score_sd);
    print_contract(r);
    for (int i = 0; i < r->n_notes; i++)
        lw_cli_print("  note: %s\n", r->note[i]);
}

static void print_share(const char *name, lw_interval made, lw_interval real)
{
    lw_cli_print("%-28s %5.1f %% (%.1f to %.1f)   real %5.1f %%\n", name, 100 * made.value,
                 100 * made.low, 100 * made.high, 100 * real.value);
}

static void print_probes(const lw_fid_result *r)
{
    char name[64];
    if (!r->n_probes)
        return;
    lw_cli_print("\nthe class asked for, named by linear probes fitted on %lld real pictures; %lld "
                 "pictures of A, %lld real held-out ones (95 %% intervals)\n",
                 (long long)r->probe_fitted, (long long)r->probe_images[0],
                 (long long)r->probe_images[1]);
    for (int i = 0; i < r->n_probes; i++)
        print_share(r->probe[i].name, r->probe[i].made, r->probe[i].real);
    snprintf(name, sizeof name, "at least %d of %d", (int)r->probes_needed, (int)r->n_probes);
    if (r->n_probes > 1)
        print_share(name, r->named, r->named_real);
}

static void print_left_out(const lw_fid_result *r)
{
    for (int i = 0; i < r->n_left_out; i++)
        lw_cli_print("  left out: %s: %s\n", r->left_out[i].name, r->left_out[i].why);
}

static void print_text(const lw_fid_config *c, const lw_fid_result *r)
{
    char time[32], bytes[32];
    for (int i = 0; i < 2; i++)
        if (r->side[i].source)
            lw_cli_print("%c  %s: %s\n", 'A' + i, r->side[i].source, r->side[i].what);
    for (int i = 0; i < r->n_rows && !c->dry_run; i++)
        print_row(c, &r->row[i]);
    if (*r->verdict)
        lw_cli_print("\n%s", r->verdict);
    print_probes(r);
    print_left_out(r);
    if (c->dry_run) {
        if (c->battery || c->probe)
            lw_cli_print("verdict: about %s\n", lw_fmt_time(time, r->verdict_seconds));
        for (int i = 0; i < r->n_rows; i++)
            lw_cli_print("%s: about %s\n", r->row[i].distance,
                         lw_fmt_time(time, r->row[i].seconds));
        lw_cli_print("about %s, and up to %s of memory\n", lw_fmt_time(time, r->seconds),
                     lw_fmt_bytes(bytes, r->memory_bytes));
        return;
    }
    if (c->save_stats)
        lw_cli_print("\n%s: statistics of %c\n", c->save_stats, r->side[1].source ? 'B' : 'A');
}

static int run(const lw_cli *cli, const void *config)
{
    const fid_cli *o = config;
    lw_fid_config c = o->c;
    LW_CLEANUP(lw_free) lw_fid_result *r = lw_calloc(1, sizeof *r);
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    c.set[0] = o->a;
    c.set[1] = o->b;
    c.split[0] = o->split_a;
    c.split[1] = o->split_b;
    c.ema = o->weights == 1;
    c.seed = (uint64_t)cli->global.seed;
    c.threads = cli->global.threads;
    c.conv = cli->global.conv;
    c.dry_run = cli->global.dry_run;
    lw_cli_observer_open(&obs, cli);
    if (!r)
        return LW_ENOMEM;
    LW_TRY(lw_job_fid(&c, &obs.calls, r));
    if (cli->global.json)
        print_json(&c, r);
    else
        print_text(&c, r);
    lw_json_drop(&r->verdict_json);
    return 0;
}

const lw_command lw_cmd_fid = {
    .name = "fid",
    .dry_run = true,
    .summary = "distances between two sets of pictures, in the features of frozen networks",
    .usage = "A B --encoder SPEC[,SPEC...] | --battery SPECS | --probe SPECS [options]",
    .notes =
        "Each distance is called by its encoder; only that of Inception-v3 in its published form "
        "and with its own resize is called FID. What decides a number beside the pictures (encoder "
        "and hash of its weights, resize, preparation, dtype) is its contract: it is printed, "
        "written into files of statistics, and compared, and sets that differ in it are refused "
        "(--force measures them all the same). docs/verdict.md says which numbers can be "
        "compared with which papers'.",
    .examples =
        "leeway fid samples/ cifar10:data --split-b train --encoder inception.safetensors\n"
        "leeway fid runs/drift cifar10:data --num-images 10000 --encoder "
        "resnet56.safetensors,dinov2 "
        "--precision-recall --kid --sw\n"
        "leeway fid cifar10:data --split-a train --encoder resnet56.safetensors --save-stats "
        "cifar10-resnet56.npz\n"
        "leeway fid runs/drift cifar10:data --num-images 2000 --probe "
        "mobilenet.safetensors,dinov2,clip\n"
        "leeway fid samples.npz cifar10-resnet56.npz --encoder resnet56.safetensors --json",
    .options = {options},
    .config_size = sizeof(fid_cli),
    .run = run,
};
