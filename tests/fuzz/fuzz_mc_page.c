/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: an output directory of leeway mc (fuzz_folder.h), as its page reads it. */
#include "fuzz/fuzz_folder.h"

#include <stdlib.h>

#include "base/base.h"
#include "jobs/mc/mc_job.h"
#include "unit/test_report_markup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, answer = {0};
    LW_CLEANUP(lw_free) char *page = NULL;
    size_t n;
    if (lw_job_mc_page(fuzz_folder(data, size), &path, &answer) < 0)
        return 0;
    if (lw_file_read(lw_str_c(&path), 0, &page, &n) < 0 || markup_error(page))
        abort();
    return 0;
}
