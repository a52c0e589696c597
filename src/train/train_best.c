/* SPDX-License-Identifier: Apache-2.0 */
/* The record of the best checkpoint. */
#include "train/train_best.h"

#include <stdio.h>

#include "store/store.h"

static const json_t *half(const json_t *row, const char *metric, const char *what)
{
    char key[48];
    snprintf(key, sizeof key, "%.30s_%s", metric, what);
    return json_object_get(row, key);
}

int lw_best_take(json_t **best, const char *metric, const char *measure, int64_t step,
                 const json_t *row, bool *better)
{
    *better = false;
    const json_t *now = metric ? half(row, metric, "choosing") : NULL,
                 *told = metric ? half(row, metric, "reporting") : NULL,
                 *floor = metric ? half(row, metric, "reporting_floor") : NULL;
    if (!json_is_number(now) || !json_is_number(told) || !json_is_number(floor))
        return 0;
    if (*best && json_number_value(now) >= json_number_value(json_object_get(*best, "choosing")))
        return 0;
    json_t *record = json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "metric", metric, "measure",
                               measure, "step", (json_int_t)step, "choosing",
                               json_number_value(now), "reporting", json_number_value(told),
                               "floor", json_number_value(floor));
    if (!record)
        return lw_fail(LW_ENOMEM, "out of memory for a checkpoint");
    lw_json_drop(best);
    *best = record;
    *better = true;
    return 0;
}

int lw_best_restore(const char *run, const char *measure, json_t **best)
{
    const char *was = json_string_value(json_object_get(*best, "measure"));
    const json_t *step = json_object_get(*best, "step");
    bool same = was && measure && lw_str_eq(was, measure) && json_is_integer(step) &&
                json_integer_value(step) >= 0;
    if (same && lw_checkpoint_best(run, json_integer_value(step)) == 0)
        return 0;
    if (*best)
        lw_log(LW_LOG_WARN, "train", "%s: --keep-best begins anew: %s", run,
               same ? lw_errmsg() : "it was another measure");
    lw_errclear();
    lw_json_drop(best);
    return lw_checkpoint_best(run, -1);
}
