/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as json. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v = NULL, *back = NULL;
    lw_str s = {0};
    if (lw_json_parse("fuzz", (const char *)data, size, &v) == 0) {
        lw_json_dump(v, size % 3, &s); /* what was read can be written and reads back equal */
        if (lw_json_parse("dump", lw_str_c(&s), s.len, &back) != 0 || !json_equal(v, back))
            abort();
    }
    json_decref(v);
    json_decref(back);
    lw_str_clear(&s);
    return 0;
}
