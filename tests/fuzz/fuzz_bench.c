/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: base.json and now.json (fuzz_folder.h) of `bench --save`, compared. */
#include "fuzz/fuzz_folder.h"

#include "bench/bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LW_CLEANUP(lw_str_clear) lw_str base = {0}, now = {0}, text = {0};
    LW_CLEANUP(lw_bench_clear) lw_bench a = {0}, b = {0};
    LW_CLEANUP(lw_free) lw_bench_change *change = NULL;
    const char *dir = fuzz_folder(data, size);
    int32_t n = 0;
    if (lw_bench_load(lw_path_join(&base, dir, "base.json"), &a) == 0 &&
        lw_bench_load(lw_path_join(&now, dir, "now.json"), &b) == 0) {
        lw_bench_same_machine(&a, &b);
        if (lw_bench_compare(&a, &b, true, &change, &n) == 0)
            lw_bench_changes_text(change, n, &text);
        fuzz_touch(lw_str_c(&text), text.len);
    }
    lw_errclear();
    return 0;
}
