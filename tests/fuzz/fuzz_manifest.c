/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a folder (fuzz_folder.h) with a list m.json of pictures, some of which are there. */
#include "fuzz/fuzz_folder.h"

#include <stdio.h>
#include <stdlib.h>

#include "data/data.h"
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char spec[600];
    lw_dataset *d = NULL;
    lw_log_set(LW_LOG_ERROR);
    snprintf(spec, sizeof spec, "manifest:%s/m.json", fuzz_folder(data, size));
    for (int skip = 0; skip < 2; skip++) {
        const lw_data_opts o = {.cache_dir = "", .image_size = 8, .on_error = (lw_on_error)skip};
        if (lw_data_open(spec, &o, &d) != 0)
            continue;
        for (int64_t i = 0; i < d->n; i++) {
            LW_CLEANUP(lw_str_clear) lw_str name = {0};
            lw_data_row_name(d, i, &name);
            fuzz_touch(lw_str_c(&name), name.len);
            if (d->labels[i] < 0 || d->labels[i] >= d->classes)
                abort();
        }
        fuzz_touch(d->pixels, (size_t)d->n * 8 * 8 * 3);
        lw_data_close(&d);
    }
    return 0;
}
