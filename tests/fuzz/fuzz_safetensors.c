/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as safetensors. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_st_file *f = NULL;
    if (lw_st_parse("fuzz", data, size, &f) == 0)
        for (size_t i = 0; i < lw_st_count(f); i++)
            fuzz_touch(lw_st_at(f, i)->data, lw_st_at(f, i)->bytes);
    lw_st_close(&f);
    return 0;
}
