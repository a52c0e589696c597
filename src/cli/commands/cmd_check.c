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
#include "session/session.h"

typedef struct check_cli {
    const char *filter, *isa;
} check_cli;

static const lw_option options[] = {
    {LW_OPT(check_cli, filter), .name = "filter", .unit = "text",
     .help = "only checks whose family.case.isa contains this, or one of several with commas "
             "between them, e.g. gemm, conv.sizes, .avx2; on a GPU family.case: ops.conv, drift."},
    {LW_OPT(check_cli, isa), .name = "isa", .choices = LW_ISA_NAMES,
     .help = "only this level of the CPU (default: every level of this machine)"},
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

/* Only words that are there are handed over. */
static void add_words(char **argv, int *n, const char *const *words, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++)
        if (words[i])
            argv[(*n)++] = (char *)(uintptr_t)words[i];
}

/* NULL: the CPU. */
static int choose_gpu(const lw_cli *cli, const check_cli *o, const char **device)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    *device = lw_str_eq(cli->global.device, "cpu") ? NULL : lw_backend_chosen();
    if (!*device)
        return 0;
    if (o->isa)
        return lw_fail(LW_EUSAGE, "--isa %s is a level of the CPU; use --device cpu", o->isa);
    /* what fails in the other program cannot be given back to --device auto */
    LW_TRY(lw_session_device(1, &dev));
    lw_backend_begin();
    return 0;
}

static int run(const lw_cli *cli, const void *config)
{
    const check_cli *o = config;
    const char *device;
    char path[PATH_MAX], seed[32], json[] = "--json";
    char *argv[12] = {path};
    int n = 1;
    lw_isa level;
    LW_TRY(find_program(path, sizeof path));
    if (o->isa)
        LW_TRY(lw_isa_named("--isa ", o->isa, "", &level));
    LW_TRY(choose_gpu(cli, o, &device));
    snprintf(seed, sizeof seed, "%lld", (long long)cli->global.seed);
    const char *of_gpu[] = {"--device", device, "--least", "1"};
    const char *of_cpu[] = {o->isa ? "--isa" : NULL, o->isa, "--seed", seed};
    const char *filter[] = {o->filter ? "--filter" : NULL, o->filter};
    if (device) /* its first word */
        add_words(argv, &n, of_gpu, 2);
    add_words(argv, &n, filter, LW_COUNT(filter));
    if (device)
        add_words(argv, &n, of_gpu + 2, 2);
    else
        add_words(argv, &n, of_cpu, LW_COUNT(of_cpu));
    if (cli->global.json) /* its last word */
        argv[n++] = json;
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
             "the largest error. With --device cuda every op and the drift field are computed on "
             "the GPU and compared with the CPU's plain references (--seed does not change their "
             "values). Ends with exit code 1 when an error exceeds its bound.",
    .examples = "leeway check\nleeway check --filter gemm --isa avx2 --seed 7\n"
                "leeway check --device cuda",
    .options = {options},
    .config_size = sizeof(check_cli),
    .run = run,
};
