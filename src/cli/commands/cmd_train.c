/* SPDX-License-Identifier: Apache-2.0 */
/* What the train commands share: global options into the config, prediction and outcome
 * to stdout. */
#include "cli/commands/cmd_train.h"

#include <stdio.h>

/* NULL: the step has one part. */
static json_t *parts_json(const lw_train_result *r)
{
    json_t *all = r->n_parts ? json_array() : NULL;
    for (int32_t i = 0; i < r->n_parts; i++) {
        const lw_train_part *p = &r->part[i];
        json_array_append_new(all, json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", p->name,
                                             "forward_flops", p->flops[0], "backward_flops",
                                             p->flops[1], "forward_ms", 1e3 * p->seconds[0],
                                             "backward_ms", 1e3 * p->seconds[1]));
    }
    return all;
}

/* Forward and backward of a step, with times where they were measured. */
static void print_parts(const lw_train_result *r)
{
    bool timed = r->run_seconds > 0.0;
    double whole = r->run_seconds + r->fed_seconds + r->update_seconds;
    if (!r->n_parts)
        return;
    lw_cli_print("\n%-24s %12s %12s", "part of a step", "GFLOP", "backward");
    lw_cli_print(timed ? " %10s %10s %8s\n" : "\n", "ms", "backward", "share");
    for (int32_t i = 0; i < r->n_parts; i++) {
        const lw_train_part *p = &r->part[i];
        lw_cli_print("%-24s %12.4g %12.4g", *p->name ? p->name : "others", 1e-9 * p->flops[0],
                     1e-9 * p->flops[1]);
        if (timed)
            lw_cli_print(" %10.4g %10.4g %7.1f%%", 1e3 * p->seconds[0], 1e3 * p->seconds[1],
                         100.0 * (p->seconds[0] + p->seconds[1]) / whole);
        lw_cli_print("\n");
    }
    if (timed)
        lw_cli_print(
            "%-24s %12s %12s %10.4g %10s %7.1f%%\n%-24s %12s %12s %10.4g %10s %7.1f%%\n%.4g "
            "ms\n",
            "feeding, packing", "", "", 1e3 * r->fed_seconds, "", 100.0 * r->fed_seconds / whole,
            "optimiser", "", "", 1e3 * r->update_seconds, "", 100.0 * r->update_seconds / whole,
            1e3 * whole);
}

static json_t *phases_json(const lw_train_result *r)
{
    json_t *all = r->n_phases ? json_array() : NULL;
    for (int32_t i = 0; i < r->n_phases; i++) {
        const lw_train_phase *p = &r->phase[i];
        json_array_append_new(all, json_pack("{s:s, s:I, s:f, s:f, s:I, s:f, s:f}", "name", p->name,
                                             "bytes", (json_int_t)p->bytes[0], "flops", p->flops[0],
                                             "seconds", p->seconds[0], "least_bytes",
                                             (json_int_t)p->bytes[1], "least_flops", p->flops[1],
                                             "least_seconds", p->seconds[1]));
    }
    return all;
}

static json_t *factors_json(const lw_train_result *r)
{
    json_t *all = r->n_factors ? json_array() : NULL;
    for (int32_t i = 0; i < r->n_factors; i++)
        json_array_append_new(all,
                              json_pack("{s:s, s:f, s:f}", "name", r->factor[i].name, "value",
                                        r->factor[i].value, "saved_by_half", r->factor[i].halved));
    return all;
}

static void print_phases(const lw_train_result *r)
{
    char bytes[32], least[32];
    bool parts = false;
    for (int32_t i = 0; i < r->n_phases; i++)
        parts = parts || r->phase[i].bytes[1] > 0;
    lw_cli_print("\n%-24s %12s %12s %10s", "phase of a step", "memory", "GFLOP", "s");
    lw_cli_print(parts ? " %14s %12s %10s\n" : "\n", "smallest parts", "GFLOP", "s");
    for (int32_t i = 0; i < r->n_phases; i++) {
        const lw_train_phase *p = &r->phase[i];
        lw_cli_print("%-24s %12s %12.4g %10.3g", p->name, lw_fmt_bytes(bytes, p->bytes[0]),
                     1e-9 * p->flops[0], p->seconds[0]);
        if (parts)
            lw_cli_print(" %14s %12.4g %10.3g", lw_fmt_bytes(least, p->bytes[1]),
                         1e-9 * p->flops[1], p->seconds[1]);
        lw_cli_print("\n");
    }
}

static void print_factors(const lw_train_result *r)
{
    lw_cli_print("\n%.4g affinities a step, the product of\n%-24s %12s %s\n", r->distances,
                 "factor", "value", "arithmetic that half of it saves");
    for (int32_t i = 0; i < r->n_factors; i++)
        lw_cli_print("%-24s %12.6g %.1f%%\n", r->factor[i].name, r->factor[i].value,
                     100.0 * r->factor[i].halved);
}

static void print_prediction(const lw_cli *cli, const lw_train_result *r)
{
    char slabs[32], frame[32], derived[32], total[32], time[32], kept[48] = "", frozen[48] = "",
                                                                 bytes_text[32];
    size_t bytes = r->bytes_slabs + r->bytes_frame + r->bytes_derived + r->bytes_kept +
                   r->bytes_frozen;
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack(
            "{s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:o*, s:o*, s:o*}", "parameters",
            (json_int_t)r->parameters, "flops_per_step", r->flops_per_step, "bytes_parameters",
            (json_int_t)r->bytes_slabs, "bytes_activations", (json_int_t)r->bytes_frame,
            "bytes_packed", (json_int_t)r->bytes_derived, "bytes_features",
            (json_int_t)r->bytes_kept, "bytes_frozen", (json_int_t)r->bytes_frozen,
            "predicted_seconds_per_step", r->predicted_step_seconds, "steps", (json_int_t)r->steps,
            "parts", parts_json(r), "phases", phases_json(r), "factors", factors_json(r));
        lw_cli_print_json(j);
        return;
    }
    lw_cli_print("parameters         %lld\n", (long long)r->parameters);
    if (r->bytes_kept)
        snprintf(kept, sizeof kept, " + %s kept beside", lw_fmt_bytes(bytes_text, r->bytes_kept));
    if (r->bytes_frozen)
        snprintf(frozen, sizeof frozen, " + %s of frozen networks",
                 lw_fmt_bytes(bytes_text, r->bytes_frozen));
    lw_cli_print("memory             %s = %s parameters, gradients, moments, average + %s "
                 "activations + %s packed%s%s\n",
                 lw_fmt_bytes(total, bytes), lw_fmt_bytes(slabs, r->bytes_slabs),
                 lw_fmt_bytes(frame, r->bytes_frame), lw_fmt_bytes(derived, r->bytes_derived), kept,
                 frozen);
    if (*r->note)
        lw_cli_print("real features      %s\n", r->note);
    lw_cli_print("per step           %.4g GFLOP, about %.3g s\n", r->flops_per_step * 1e-9,
                 r->predicted_step_seconds);
    if (r->steps)
        lw_cli_print("in all             %lld step%s, about %s\n", (long long)r->steps,
                     r->steps == 1 ? "" : "s",
                     lw_fmt_time(time, r->predicted_step_seconds * (double)r->steps));
    if (r->n_phases)
        print_phases(r);
    if (r->n_factors)
        print_factors(r);
    print_parts(r);
}

static void print_outcome(const lw_cli *cli, const lw_train_config *t, const lw_train_result *r)
{
    char time[32];
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack("{s:s, s:I, s:I, s:f, s:f, s:f}", "output_dir", t->output_dir,
                              "parameters", (json_int_t)r->parameters, "steps",
                              (json_int_t)r->steps, "final_loss", r->loss, "seconds", r->seconds,
                              lw_train_rate_name(r->unit), r->samples_per_second);
        lw_cli_print_json(j);
        return;
    }
    lw_cli_print("%lld steps in %s", (long long)r->steps, lw_fmt_time(time, r->seconds));
    if (r->samples_per_second > 0.0) /* 0: nothing was left to do */
        lw_cli_print(", %.4g %s/s", r->samples_per_second, r->unit);
    lw_cli_print(", loss %.5g\n%s\n", r->loss, t->output_dir);
}

int lw_cmd_train_run(const lw_cli *cli, lw_train_config *t, void *config, lw_train_call *call)
{
    LW_CLEANUP(lw_str_clear) lw_str command = {0}, changes = {0};
    LW_CLEANUP(lw_json_drop) json_t *options = NULL;
    lw_train_result result = {0};
    LW_TRY(lw_cmd_train_check(cli, t, &changes));
    t->rescheduled = changes.len ? lw_str_c(&changes) : NULL;
    LW_TRY(lw_opts_get_tree(&cli->opts, cli->command->name, &options));
    lw_cli_command_line(cli, &command);
    lw_str_add(&command, "\n");
    t->seed = cli->global.seed;
    t->threads = cli->global.threads;
    t->conv = cli->global.conv;
    t->dry_run = cli->global.dry_run;
    t->options = options;
    t->command_line = lw_str_c(&command);
    lw_cli_observer o;
    lw_cli_observer_open(&o, cli);
    int rc = call(config, &o.calls, &result);
    lw_cli_observer_close(&o);
    LW_TRY(rc);
    if (t->dry_run || t->profile > 0)
        print_prediction(cli, &result);
    else
        print_outcome(cli, t, &result);
    return 0;
}
