/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as a file of statistics, .npz or .safetensors, and as clean-fid's file name. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "base/base.h"
#include "formats/formats.h"

static const char *linked(const char *target, const char *ending)
{
    static char path[2][64];
    char *p = path[ending[1] == 'n'];
    snprintf(p, sizeof path[0], "/tmp/lw-fuzz-stats-%d%s", (int)getpid(), ending);
    unlink(p);
    if (symlink(target, p) != 0)
        abort();
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const sets[] = {NULL, "s", "train"};
    const char *file = fuzz_file("lw-fuzz-stats", data, size);
    const char *path = linked(file, size > 1 && data[0] == 'P' ? ".npz" : ".safetensors");
    for (size_t i = 0; i < LW_COUNT(sets); i++) {
        lw_moments s = {0};
        if (lw_moments_load(path, sets[i], &s) < 0)
            continue;
        for (size_t k = 0, d = (size_t)s.dim; k < d * d; k++)
            if (!isfinite(s.cov[k]) || !isfinite(s.mean[k / d]) ||
                s.cov[k] != s.cov[k % d * d + k / d])
                abort();
        lw_moments_clear(&s);
    }
    unlink(path);
    char name[128];
    snprintf(name, sizeof name, "%.*s.npz", (int)LW_MIN(size, 100), (const char *)data);
    lw_clean_fid_name parsed;
    if (lw_clean_fid_parse(name, &parsed) && (!parsed.name[0] || !parsed.mode[0]))
        abort();
    return 0;
}
