/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a run directory (fuzz_folder.h), as resuming, reports and `inspect` read it:
 * checkpoints with state.json and weights of a small store, metrics.jsonl, loss_log.csv,
 * config.yaml, env.json, quantization.json.
 */
#include "fuzz/fuzz_folder.h"

#include <math.h>
#include <stdlib.h>

#include "cpu_device.h"
#include "jobs/inspect/inspect_job.h"
#include "train/train_loop_parts.h"
#include "train/train_page.h"

/* The parameters that the weights of the corpus are of. */
static lw_store *small_store(void)
{
    lw_store *s = NULL;
    int32_t index;
    if (lw_store_new(false, &s) < 0)
        abort();
    const lw_params *p = lw_store_params(s);
    const lw_init zero = {LW_INIT_ZEROS, 0};
    if (p->declare(p->self, "a", lw_type_of(LW_F32, 1, 4), zero, &index) < 0 ||
        p->declare(p->self, "b.weight", lw_type_of(LW_F32, 2, 2, 3), zero, &index) < 0 ||
        lw_store_fix(s) < 0)
        abort();
    return s;
}

/* Where a run goes on; 0: it cannot. */
static int64_t resume(const char *run)
{
    static lw_device *dev; /* as long as the process */
    LW_CLEANUP(lw_store_free) lw_store *s = small_store();
    LW_CLEANUP(lw_train_state_clear) lw_train_state at = {0};
    const lw_train_config c = {.output_dir = run, .resume = true, .seed = 1};
    if (!dev && cpu_device(1, LW_ISA_REF, &dev) < 0)
        abort();
    const lw_train_job job = {.name = "train ddpm", .dev = dev, .store = s, .leaves = {1, 1, 1}};
    if (lw_train_resume(&c, &job, &at) < 0)
        return 0;
    if (at.first < 0 || at.first > LW_MAX_STEPS || at.steps < 0 || at.steps > LW_MAX_STEPS ||
        !(at.seconds >= 0.0 && at.seconds <= LW_MAX_SECONDS))
        abort();
    return at.first;
}

static void go_on(const char *run, int64_t step)
{
    const lw_train_config c = {.output_dir = run};
    lw_run_dir d;
    if (lw_run_dir_open(&c, "train ddpm", 1, "ref", step, &d) < 0)
        return;
    json_t *row = json_pack("{s:I, s:f}", "step", (json_int_t)(step + 1), "loss", 0.5);
    if (!row || lw_run_dir_log(&d, step + 1, "images_per_sec", row) < 0)
        abort();
    json_decref(row);
    lw_run_dir_close(&d);
}

static void report(const char *run)
{
    const lw_train_job job = {.name = "train drift"};
    const lw_train_result r = {.unit = "pictures", .steps = 2};
    lw_run_page_write(run, &job, "../report.html", &r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LW_CLEANUP(lw_quantization_free) lw_quantization *q = NULL;
    LW_CLEANUP(lw_json_drop) json_t *all = NULL;
    const char *run = fuzz_folder(data, size);
    lw_log_set(LW_LOG_ERROR);
    lw_job_inspect(run, true, &all);
    report(run);
    if (lw_quantization_find(run, &q) == 0 && q) {
        const lw_calibration *ranges = lw_quantization_ranges(q);
        for (int32_t i = 0; i < ranges->n; i++)
            if (!(ranges->edge[i].scale > 0) || !isfinite(1.0f / ranges->edge[i].scale))
                abort();
    }
    go_on(run, resume(run));
    lw_errclear();
    return 0;
}
