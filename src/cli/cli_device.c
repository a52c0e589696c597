/* SPDX-License-Identifier: Apache-2.0 */
/* --device: what it may be, and what auto takes. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_command.h"
#include "session/session.h"

static bool by_auto; /* the GPU that is there was taken, not asked for */

/* The line that auto owes as long as it has a GPU that computed nothing; else empty. */
static char owed[320];

static void tell_gpu(void)
{
    if (*owed)
        fprintf(stderr, "%s\n", owed);
    *owed = '\0';
}

static int take_cpu(lw_cli *cli, const char *why)
{
    *owed = '\0';
    if (!cli->global.quiet)
        fprintf(stderr, "leeway: --device auto is cpu: %s\n", why);
    cli->global.device = "cpu";
    return lw_backend_choose("cpu");
}

static int take_gpu(lw_cli *cli)
{
    char line[256] = "";
    LW_TRY(lw_backend_choose("cuda:0"));
    LW_TRY(lw_backend_gpu(0, line, sizeof line));
    if (!cli->global.quiet)
        snprintf(owed, sizeof owed, "leeway: --device auto is %s", line);
    lw_backend_on_begin(tell_gpu);
    cli->global.device = "cuda:0";
    by_auto = true;
    return 0;
}

/* Is the command's --precision, where it has one, a type that GPUs do not compute? */
static bool is_precision(const lw_cli *cli, const char *type)
{
    static const char name[] = "precision";
    const lw_opt_ref ref = lw_opts_find(&cli->opts, name, sizeof name - 1);
    LW_CLEANUP(lw_json_drop) json_t *value = ref.row ? lw_opt_get_json(ref) : NULL;
    const char *text = json_string_value(value);
    return text && lw_str_eq(text, type);
}

/* What is known before anything is opened. The rest is found where plans are lowered. */
static int choose_auto(lw_cli *cli)
{
    const lw_command *c = cli->command;
    const char *why = c->cpu_only || !c->not_on_gpus ? c->cpu_only : c->not_on_gpus(cli->config);
    if (why)
        return take_cpu(cli, why);
    if (is_precision(cli, "int8") || is_precision(cli, "f64"))
        return take_cpu(cli, is_precision(cli, "f64") ? "f64 is not computed on GPUs"
                                                      : "int8 is not computed on GPUs yet");
    int rc = take_gpu(cli);
    return rc == LW_EDEVICE ? take_cpu(cli, lw_errmsg()) : rc;
}

int lw_cli_device_choose(lw_cli *cli)
{
    const char *device = cli->global.device;
    if (lw_str_eq(device, "cpu")) /* said so, it wins over LW_DEVICE */
        return lw_cli_given(cli, "device") ? lw_backend_choose("cpu") : lw_backend_check_chosen();
    if (lw_str_eq(device, "auto"))
        return choose_auto(cli);
    if (lw_str_eq(device, "cuda") || lw_str_starts(device, "cuda:")) {
        LW_TRY(lw_backend_choose(device));
        const char *why = cli->command->cpu_only;
        return why ? lw_fail(LW_EDEVICE, "--device %s: %s; use --device cpu", device, why) : 0;
    }
    if (lw_str_eq(device, "mps"))
        return lw_fail(LW_EDEVICE, "--device mps: Apple's GPUs are not computed on, only the CPU");
    return lw_fail(LW_EUSAGE, "--device %s: must be cpu, auto, cuda[:N] or mps", device);
}

/* Once the GPU has computed, nothing goes back: half of a result would be another device's. */
static bool may_begin_again(int rc)
{
    return rc == LW_EDEVICE && by_auto && lw_backend_refused() && !lw_backend_begun();
}

const char *lw_cli_device_used(void)
{
    const char *chosen = lw_backend_chosen();
    return lw_str_starts(chosen, "cuda") && !lw_backend_begun() ? "cpu" : chosen;
}

int lw_cli_device_run(lw_cli *cli)
{
    char why[256];
    int rc = cli->command->run(cli, cli->config);
    if (!may_begin_again(rc)) {
        if (rc == 0) /* plans were only looked at */
            tell_gpu();
        return rc;
    }
    const int advice = (int)strcspn(lw_errmsg(), ";"); /* "; use --device cpu" */
    snprintf(why, sizeof why, "%.*s", advice, lw_errmsg());
    lw_errclear();
    LW_TRY(take_cpu(cli, why));
    return cli->command->run(cli, cli->config);
}
