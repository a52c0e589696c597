/* SPDX-License-Identifier: Apache-2.0 */
/* leeway report: the page of an output directory, from the files in it. */
#include "cli/cli.h"
#include "base/base.h"
#include "formats/formats.h"
#include "jobs/mc/mc_job.h"

typedef struct report_cli {
    const char *dir;
} report_cli;

static const lw_option options[] = {{LW_OPT(report_cli, dir), .name = "dir", .path = LW_PATH_IN,
                                     .positional = true, .required = true,
                                     .help = "what `leeway mc --output-dir` named"},
                                    {.name = NULL}};

static int run(const lw_cli *cli, const void *config)
{
    const report_cli *o = config;
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, answer = {0};
    LW_TRY(lw_job_mc_page(o->dir, &path, &answer));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack("{s:s, s:s}", "page", lw_str_c(&path), "answer", lw_str_c(&answer));
        lw_cli_print_json(j);
    } else {
        lw_cli_print("%s%s\n", lw_str_c(&answer), lw_str_c(&path));
    }
    return 0;
}

const lw_command lw_cmd_report = {
    .name = "report",
    .summary = "the page of a `leeway mc` output, anew from its files",
    .usage = "DIR",
    .notes = "Writes DIR/report.html, as `leeway mc` does when it ends: of all models whose files "
             "are there, of whatever calls and machines. Neither networks nor pictures are needed.",
    .examples = "leeway report mc",
    .options = {options},
    .config_size = sizeof(report_cli),
    .run = run,
};
