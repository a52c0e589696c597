/* SPDX-License-Identifier: Apache-2.0 */
/* leeway info: what this build and this machine can do. */
#include "cli/cli.h"
#include "formats/formats.h"
#include "recipes/recipes.h"

typedef struct info_config {
    bool peak;
} info_config;

/* Parts of the build that may be left out, and whether this one has them. */
static const struct {
    const char *name;
    bool present;
} features[] = {
    {"png", true},   {"jpeg", true}, {"archives", true}, {"lapack", true},
    {"cuda", false}, {"mpi", false}, {"video", false},   {"web", false},
};

static json_t *build_tree(const lw_cli *cli, lw_isa isa)
{
    json_t *tree = json_object(), *on = json_object();
    json_object_set_new(tree, "version", json_string(lw_build_version()));
    json_object_set_new(tree, "commit", json_string(lw_build_commit()));
    json_object_set_new(tree, "compiler", json_string(lw_build_compiler()));
    json_object_set_new(tree, "cpu", json_string(lw_cpu_name()));
    json_object_set_new(tree, "isa", json_string(lw_isa_name(isa)));
    json_object_set_new(tree, "isa_best", json_string(lw_isa_name(lw_isa_best())));
    json_object_set_new(tree, "cpus", json_integer(lw_cpu_count()));
    json_object_set_new(tree, "threads", json_integer(cli->global.threads));
    json_object_set_new(tree, "memory_bytes", json_integer((json_int_t)lw_memory_total()));
    json_object_set_new(tree, "devices", json_pack("[s]", "cpu"));
    for (size_t i = 0; i < LW_COUNT(features); i++)
        json_object_set_new(on, features[i].name, json_boolean(features[i].present));
    json_object_set_new(tree, "features", on);
    return tree;
}

static void print_features(bool present)
{
    for (size_t i = 0; i < LW_COUNT(features); i++)
        if (features[i].present == present)
            lw_cli_print(" %s", features[i].name);
    lw_cli_print("\n");
}

static void print_text(const lw_cli *cli, lw_isa isa)
{
    char memory[32];
    lw_cli_print("leeway    %s (%s)\n", lw_build_version(), lw_build_commit());
    lw_cli_print("compiler  %s\n", lw_build_compiler());
    lw_cli_print("with     ");
    print_features(true);
    lw_cli_print("without  ");
    print_features(false);
    lw_cli_print("cpu       %s\n", lw_cpu_name());
    lw_cli_print("isa       %s (best here: %s)\n", lw_isa_name(isa), lw_isa_name(lw_isa_best()));
    lw_cli_print("threads   %d of %d CPUs\n", (int)cli->global.threads, lw_cpu_count());
    lw_cli_print("memory    %s\n", lw_fmt_bytes(memory, lw_memory_total()));
    lw_cli_print("devices   cpu\n");
}

static void add_peak(json_t *tree, const lw_machine_peak *m)
{
    json_t *peak = json_object();
    json_object_set_new(peak, "f32_gflops_one_thread", lw_json_real(m->gflops_one));
    json_object_set_new(peak, "f32_gflops", lw_json_real(m->gflops_all));
    json_object_set_new(peak, "read_gb_per_second_one_thread", lw_json_real(m->read_gb_one));
    json_object_set_new(peak, "read_gb_per_second", lw_json_real(m->read_gb_all));
    json_object_set_new(peak, "dispatch_us", lw_json_real(m->dispatch_us));
    json_object_set_new(tree, "peak", peak);
}

static void print_peak(const lw_machine_peak *m)
{
    lw_cli_print("multiply  %.1f GFLOP/s f32, %.1f on one thread\n", m->gflops_all, m->gflops_one);
    lw_cli_print("memory    %.1f GB/s read, %.1f on one thread\n", m->read_gb_all, m->read_gb_one);
    lw_cli_print("dispatch  %.2f us for an empty job\n", m->dispatch_us);
}

static int run(const lw_cli *cli, const void *config)
{
    const info_config *c = config;
    lw_machine_peak peak = {0};
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    if (c->peak)
        LW_TRY(lw_machine_measure(cli->global.threads, isa, &peak));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *tree = build_tree(cli, isa);
        if (c->peak)
            add_peak(tree, &peak);
        lw_cli_print_json(tree);
        return 0;
    }
    print_text(cli, isa);
    if (c->peak)
        print_peak(&peak);
    return 0;
}

static const lw_option options[] = {
    {LW_OPT(info_config, peak), .name = "peak",
     .help = "measure arithmetic, memory and dispatch (about a second)"},
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
