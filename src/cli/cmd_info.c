/* SPDX-License-Identifier: Apache-2.0 */
/* leeway info: what this build and this machine can do. */
#include "cli/cli.h"
#include "formats/formats.h"

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

static int run(const lw_cli *cli, const void *config)
{
    (void)config;
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    if (!cli->global.json) {
        print_text(cli, isa);
        return 0;
    }
    LW_CLEANUP(lw_json_drop) json_t *tree = build_tree(cli, isa);
    lw_cli_print_json(tree);
    return 0;
}

const lw_command lw_cmd_info = {
    .name = "info",
    .summary = "what this build and this machine can do",
    .usage = "[options]",
    .examples = "leeway info\nleeway info --json",
    .run = run,
};
