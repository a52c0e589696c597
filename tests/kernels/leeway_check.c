/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leeway-check: the kernels of this machine against their references, every family of tests/kernels
 * in one program. Each test file's main is renamed lw_check_<family> when it is built for this one.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/check.h"

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
    if (ran == 0)
        fprintf(stderr, "leeway check: no case has such a name\n");
    return ran == 0 ? 2 : failed > 0;
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

int main(int argc, char **argv)
{
    int status[LW_COUNT(families)] = {0}, keep = -1;
    bool json = argc > 1 && strcmp(argv[argc - 1], "--json") == 0;
    if (json) { /* what the families say goes to stderr */
        argc--;
        keep = dup(1);
        if (keep < 0 || dup2(2, 1) < 0)
            return 4;
    }
    int rc = run_all(argc, argv, status);
    fflush(stdout);
    if (json && rc != 2) {
        if (dup2(keep, 1) < 0)
            return 4;
        print_json(status, rc);
    }
    return fflush(stdout) ? 4 : rc;
}
