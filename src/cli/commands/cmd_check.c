/* SPDX-License-Identifier: Apache-2.0 */
/* leeway check: hands over to leeway-check beside this program, which is built from the kernel
 * tests. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_signal.h"

typedef struct check_cli {
    const char *filter, *isa;
} check_cli;

static const lw_option options[] = {
    {LW_OPT(check_cli, filter), .name = "filter", .unit = "text",
     .help = "only checks whose family.case.isa contains this, e.g. gemm, conv.sizes, .avx2"},
    {LW_OPT(check_cli, isa), .name = "isa", .choices = "ref|avx2|avxvnni|avx512|avx512bf16|amx",
     .help = "only this level (default: every level of this machine)"},
    {.name = NULL}};

/* The program beside this one; LW_EUNSUPPORTED when the build has none. */
static int find_program(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n <= 0 || n >= (ssize_t)size - 16)
        return lw_fail(lw_errno_code(errno), "cannot find this program's folder: %s",
                       strerror(errno));
    path[n] = '\0';
    snprintf(strrchr(path, '/') + 1, 16, "leeway-check");
    if (access(path, X_OK) != 0)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s is not there: this build was made without its tests (they need cmocka)",
                       path);
    return 0;
}

static int run(const lw_cli *cli, const void *config)
{
    const check_cli *o = config;
    char path[PATH_MAX], seed[32];
    char *argv[12] = {path};
    int n = 1;
    lw_isa level;
    LW_TRY(find_program(path, sizeof path));
    if (o->isa)
        LW_TRY(lw_isa_named("--isa ", o->isa, "", &level));
    snprintf(seed, sizeof seed, "%lld", (long long)cli->global.seed);
    const char *rest[] = {o->filter ? "--filter" : NULL,
                          o->filter,
                          o->isa ? "--isa" : NULL,
                          o->isa,
                          "--seed",
                          seed,
                          cli->global.json ? "--json" : NULL};
    for (size_t i = 0; i < LW_COUNT(rest); i++)
        if (rest[i])
            argv[n++] = (char *)(uintptr_t)rest[i];
    fflush(stdout);
    lw_signal_writes(false);
    execv(path, argv);
    return lw_fail(lw_errno_code(errno), "cannot run %s: %s", path, strerror(errno));
}

const lw_command lw_cmd_check = {
    .name = "check",
    .summary = "the kernels of this machine against their references",
    .usage = "[--filter TEXT] [--isa LEVEL] [options]",
    .notes = "Runs every kernel at every level this CPU has on odd sizes, misaligned buffers and "
             "special values, and prints "
             "the largest error. Ends with exit code 1 when one exceeds its bound.",
    .examples = "leeway check\nleeway check --filter gemm --isa avx2 --seed 7",
    .options = {options},
    .cpu_only = "it compares the kernels of the CPU",
    .config_size = sizeof(check_cli),
    .run = run,
};
