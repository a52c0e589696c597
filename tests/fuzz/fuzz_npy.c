/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as npy. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_array a = {0};
    if (lw_npy_parse("fuzz", data, size, &a) == 0 && lw_array_make_f32(&a) == 0)
        fuzz_touch(a.data, a.bytes);
    lw_array_clear(&a);
    return 0;
}
