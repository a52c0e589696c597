/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leeway-check: the kernels of this machine against their references, every family of tests/kernels
 * in one program. Each test file's main is renamed lw_check_<family> when it is built for this one.
 * With --device DEVICE first: the cases of tests/ops on that device (ops/on_device.h); then --filter TEXT[,TEXT..],
 * --least N (fewer computed cases are a failure) and --first (ends with the first that is wrong).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/check.h"
#include "ops/on_device.h"

#define F(family) int lw_check_##family(int argc, char **argv);
#include "leeway_check.def"
#undef F

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} families[] = {
#define F(family) {#family, lw_check_##family},
#include "leeway_check.def"
#include "base/base.h"
#undef F
};

static const char *filter_of(int argc, char **argv)
{
    const char *filter = "";
    for (int i = 1; i + 1 < argc; i++)
        if (lw_str_eq(argv[i], "--filter"))
            filter = argv[i + 1];
    return filter;
}

/* Status of each family; 0 when nothing failed and something ran. */
static int run_all(int argc, char **argv, int *status)
{
    int ran = 0, failed = 0;
    for (size_t i = 0; i < LW_COUNT(families); i++) {
        status[i] = families[i].run(argc, argv);
        if (status[i] == 2)
            return 2;
        ran += status[i] != CHECK_NO_CASE;
        failed += status[i] == 1;
    }
    const bool unknown = check_unknown(filter_of(argc, argv));
    return failed ? 1 : unknown || ran == 0 ? 2 : 0;
}

static void print_json(const int *status, int rc)
{
    const char *comma = "";
    printf("{\"isa_best\": \"%s\", \"passed\": %s, \"families\": {", lw_isa_name(lw_isa_best()),
           rc ? "false" : "true");
    for (size_t i = 0; i < LW_COUNT(families); i++) {
        if (status[i] == CHECK_NO_CASE)
            continue;
        printf("%s\"%s\": %s", comma, families[i].name, status[i] ? "false" : "true");
        comma = ", ";
    }
    printf("}}\n");
}

static int run_on_device(int argc, char **argv, on_device *o)
{
    int least = 1;
    *o = (on_device){.device = argv[2], .filter = ""};
    for (int i = 3; i < argc; i++) {
        if (lw_str_eq(argv[i], "--first"))
            o->first = true;
        else if (lw_str_eq(argv[i], "--filter") && i + 1 < argc)
            o->filter = argv[++i];
        else if (lw_str_eq(argv[i], "--least") && i + 1 < argc)
            least = (int)strtol(argv[++i], NULL, 10);
        else
            return fprintf(stderr, "leeway check: no such option beside --device: %s\n", argv[i]),
                   2;
    }
    return on_device_run(o, least);
}

static void print_device_json(const on_device *o, int rc)
{
    printf("{\"device\": \"%s\", \"passed\": %s, \"cases\": %d, \"wrong\": %d, \"not_computed\": "
           "%d}\n",
           o->device, rc ? "false" : "true", o->computed, o->wrong, o->absent);
}

int main(int argc, char **argv)
{
    int status[LW_COUNT(families)] = {0}, keep = -1;
    on_device o = {.device = NULL};
    bool json = argc > 1 && strcmp(argv[argc - 1], "--json") == 0;
    if (json) { /* what the families say goes to stderr */
        argc--;
        keep = dup(1);
        if (keep < 0 || dup2(2, 1) < 0)
            return 4;
    }
    bool device = argc > 2 && lw_str_eq(argv[1], "--device");
    int rc = device ? run_on_device(argc, argv, &o) : run_all(argc, argv, status);
    if (fflush(stdout))
        return 4;
    if (json && rc <= 1) {
        if (dup2(keep, 1) < 0)
            return 4;
        if (device)
            print_device_json(&o, rc);
        else
            print_json(status, rc);
    }
    return fflush(stdout) ? 4 : rc;
}
