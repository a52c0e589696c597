/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: bytes as a file of torch.save, and as the pickle in one: most changes of an archive
 * are found at its directory.
 */
#include "fuzz/fuzz.h"
#include "fuzz/torch_archive.h"

#include <stdlib.h>

#include "formats/formats.h"

static void open_bytes(const uint8_t *data, size_t size)
{
    lw_st_file *f = NULL;
    if (lw_st_parse("fuzz", data, size, &f) == 0)
        for (size_t i = 0; i < lw_st_count(f); i++)
            fuzz_touch(lw_st_at(f, i)->data, lw_st_at(f, i)->bytes);
    lw_st_close(&f);
}

static void open_pickle(const uint8_t *data, size_t size)
{
    size_t n = 0;
    uint8_t *bytes = torch_archive_of(data, size, 0, &n);
    if (bytes)
        open_bytes(bytes, n);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_bytes(data, size);
    open_pickle(data, size);
    return 0;
}
