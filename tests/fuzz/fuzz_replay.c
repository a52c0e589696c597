/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files given as arguments, directories one level deep: any compiler,
 * no fuzzer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "fuzz/fuzz.h"

/* Each input in a heap block of its own size: no slack behind it. Returns how many files ran. */
static int replay(const char *path)
{
    char *bytes;
    size_t n;
    if (lw_file_read(path, 0, &bytes, &n) < 0) {
        fprintf(stderr, "%s\n", lw_errmsg());
        exit(1);
    }
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        exit(1);
    memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    lw_free(&bytes);
    return 1;
}

int main(int argc, char **argv)
{
    int done = 0;
    for (int i = 1; i < argc; i++) {
        char **names;
        size_t n;
        if (!lw_path_is_dir(argv[i])) {
            done += replay(argv[i]);
            continue;
        }
        if (lw_list_dir(argv[i], &names, &n) < 0)
            return 1;
        lw_str path = {0};
        for (size_t k = 0; k < n; k++)
            done += replay(lw_path_join(&path, argv[i], names[k]));
        lw_str_clear(&path);
        lw_list_free(&names, n);
    }
    printf("%d inputs\n", done);
    return done > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
