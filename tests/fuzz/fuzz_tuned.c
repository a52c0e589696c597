/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a file of `leeway bench --tune`. What is read can be computed. */
#include "fuzz/fuzz.h"

#include "base/base.h"
#include "session/session_tuned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LW_CLEANUP(lw_free) lw_tuned_row *row = NULL;
    char cpu[128], isa[32];
    int n = 0;
    lw_log_set(LW_LOG_ERROR);
    if (lw_tuned_load(fuzz_file("tuned", data, size), &row, &n, cpu, sizeof cpu, isa, sizeof isa) ==
        0) {
        for (int i = 0; i < n; i++) {
            lw_conv_shape s = lw_conv_choice_shape(&row[i].choice);
            int tile = row[i].choice.tile;
            if (lw_conv_shape_init(&s) < 0 || (tile != 0 && tile != 2 && tile != 4) ||
                (tile && !lw_winograd_applies(&s, row[i].choice.pass)))
                abort();
        }
        fuzz_touch(cpu, strlen(cpu));
        fuzz_touch(isa, strlen(isa));
    }
    lw_errclear();
    return 0;
}
