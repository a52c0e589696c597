/* SPDX-License-Identifier: Apache-2.0 */
/* leeway info: what this build and this machine can do. */
#include <stdio.h>

#include "cli/cli.h"
#include "formats/formats.h"
#include "session/session.h"

typedef struct info_config {
    bool peak;
} info_config;

/* Parts of the build that may be left out, and whether this one has them. */
static const struct {
    const char *name;
    bool present;
    const char *module; /* that has it, where it is one */
} features[] = {
    {"png", true, NULL},   {"jpeg", true, NULL}, {"archives", true, NULL},
    {"cuda", false, NULL}, {"mpi", false, NULL}, {"video", false, "libav"},
    {"web", false, "lws"},
};

static bool is_present(size_t i)
{
    if (lw_str_eq(features[i].name, "cuda"))
        return lw_backend_has_gpu_kernels();
    return features[i].present || (features[i].module && lw_module_there(features[i].module));
}

/* About GPU number i, or why it cannot be used; number 0: why there is none. */
static bool gpu_line(int i, char line[256])
{
    bool found = lw_backend_gpu(i, line, 256) == 0;
    if (!found)
        snprintf(line, 256, "%s", lw_errmsg());
    return found;
}

static json_t *build_tree(const lw_cli *cli, lw_isa isa)
{
    json_t *tree = lw_machine_json(cli->global.threads, isa), *on = json_object();
    json_object_set_new(tree, "isa_best", json_string(lw_isa_name(lw_isa_best())));
    char line[256];
    bool found = false;
    const int n = lw_backend_gpu_count();
    json_t *gpus = json_array();
    for (int i = 0; i < n; i++) {
        found |= gpu_line(i, line);
        json_array_append_new(gpus, json_string(line));
    }
    gpu_line(0, line);
    json_object_set_new(tree, "devices",
                        found ? json_pack("[ss]", "cpu", "cuda") : json_pack("[s]", "cpu"));
    json_object_set_new(tree, "gpu", json_string(line));
    json_object_set_new(tree, "gpus", gpus);
    for (size_t i = 0; i < LW_COUNT(features); i++)
        json_object_set_new(on, features[i].name, json_boolean(is_present(i)));
    json_object_set_new(tree, "features", on);
    return tree;
}

static void print_features(bool present)
{
    for (size_t i = 0; i < LW_COUNT(features); i++)
        if (is_present(i) == present)
            lw_cli_print(" %s", features[i].name);
    lw_cli_print("\n");
}

static void print_text(const lw_cli *cli, lw_isa isa)
{
    char memory[32], gpu[256];
    bool found = false;
    const int n = lw_backend_gpu_count();
    lw_cli_print("leeway    %s (%s)\n", lw_build_version(), lw_build_commit());
    lw_cli_print("compiler  %s\n", lw_build_compiler());
    lw_cli_print("with     ");
    print_features(true);
    lw_cli_print("without  ");
    print_features(false);
    lw_cli_print("cpu       %s\n", lw_machine_name());
    lw_cli_print("isa       %s (best here: %s)\n", lw_isa_name(isa), lw_isa_name(lw_isa_best()));
    lw_cli_print("threads   %d of %d CPUs\n", (int)cli->global.threads, lw_core_count());
    lw_cli_print("memory    %s\n", lw_fmt_bytes(memory, lw_memory_total()));
    for (int i = 0; i < n; i++)
        found |= gpu_line(i, gpu);
    lw_cli_print("devices   cpu%s\n", found ? ", cuda" : "");
    for (int i = 0; i < LW_MAX(n, 1); i++) {
        bool usable = gpu_line(i, gpu);
        lw_cli_print("%s%s%s\n", i ? "          " : "gpu       ", gpu,
                     usable && !lw_backend_has_gpu_kernels()
                         ? "; but this program was built without nvcc"
                         : "");
    }
}

static void print_peak(const lw_machine_peak *m)
{
    char size[32];
    lw_cli_print("%-9s %12s %12s\n", "multiply", "one thread", "all threads");
    for (int i = 0; i < LW_NUM_COUNT; i++)
        if (m->rate[i].all > 0)
            lw_cli_print("  %-7s %12.1f %12.1f  10^9 operations/s\n", lw_precision_name(i),
                         m->rate[i].one, m->rate[i].all);
        else
            lw_cli_print("  %-7s %12s %12s  no instruction for it at this level\n",
                         lw_precision_name(i), "-", "-");
    lw_cli_print("memory    read, one          all  copy, one          all  10^9 bytes/s\n");
    for (int i = 0; i < LW_MACHINE_LEVELS; i++)
        if (m->bytes[i] > 0)
            lw_cli_print("  %-7s %9.1f %12.1f %10.1f %12.1f  %s a thread\n",
                         lw_machine_level_name((lw_machine_level)i), m->read[i].one, m->read[i].all,
                         m->copy[i].one, m->copy[i].all, lw_fmt_bytes(size, m->bytes[i]));
    lw_cli_print("dispatch  %.2f us for an empty job\n", m->dispatch_us);
}

static void print_gpu_peak(const char *device, const lw_gpu_peak *m)
{
    char size[32];
    lw_cli_print("%-9s %12s\n", "multiply", device);
    for (int i = 0; i < LW_NUM_COUNT; i++)
        if (m->rate[i] > 0)
            lw_cli_print("  %-7s %12.4g  10^12 operations/s, product of %d x %d x %d\n",
                         lw_precision_name(i), 1e-3 * m->rate[i], (int)m->side[i], (int)m->side[i],
                         (int)m->side[i]);
        else
            lw_cli_print("  %-7s %12s  not computed on GPUs yet\n", lw_precision_name(i), "-");
    lw_cli_print("memory            copy  10^9 bytes/s\n");
    lw_cli_print("  %-7s %12.4g  %s read and written\n", "GPU", m->copy,
                 lw_fmt_bytes(size, m->copy_bytes));
    lw_cli_print("dispatch  %.2f us for a kernel of a recorded graph\n", m->launch_us);
}

static int measure_gpu(const lw_cli *cli, char name[16], lw_gpu_peak *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_TRY(lw_session_device(cli->global.threads, &dev));
    snprintf(name, 16, "%s", dev->name);
    return lw_gpu_measure(dev, out);
}

static int run(const lw_cli *cli, const void *config)
{
    const info_config *c = config;
    const bool gpu = lw_str_starts(cli->global.device, "cuda");
    char name[16] = "";
    lw_machine_peak peak = {0};
    lw_gpu_peak gpu_peak = {0};
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    if (c->peak)
        LW_TRY(gpu ? measure_gpu(cli, name, &gpu_peak)
                   : lw_machine_measure(cli->global.threads, isa, NULL, &peak));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *tree = build_tree(cli, isa);
        if (c->peak)
            json_object_set_new(tree, "peak",
                                gpu ? lw_gpu_peak_json(name, &gpu_peak)
                                    : lw_machine_peak_json(&peak));
        lw_cli_print_json(tree);
        return 0;
    }
    print_text(cli, isa);
    if (c->peak && gpu)
        print_gpu_peak(name, &gpu_peak);
    else if (c->peak)
        print_peak(&peak);
    return 0;
}

static const lw_option options[] = {
    {LW_OPT(info_config, peak), .name = "peak",
     .help = "measure this machine: arithmetic by operand type, reading and copying in every level "
             "of memory, dispatch (some seconds); with --device cuda the GPU: products of f32 and "
             "bf16, "
             "copying, a launch"},
    {.name = NULL}};

const lw_command lw_cmd_info = {
    .name = "info",
    .summary = "what this build and this machine can do",
    .usage = "[options]",
    .examples = "leeway info\nleeway info --peak --json",
    .options = {options},
    .config_size = sizeof(info_config),
    .run = run,
};
