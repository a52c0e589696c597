/* SPDX-License-Identifier: Apache-2.0 */
/* Features between the phases of a step: one block of memory, or a mapped file without a name. */
#include <string.h>

#include "jobs/drift/drift_run.h"

enum { ALIGN = 64 };

bool lw_drift_keeps_real(const drift_run *r)
{
    return !lw_drift_real_get_cost(r).kept;
}

static size_t key_bytes(const drift_run *r, int k, int64_t rows, lw_dtype type)
{
    size_t bytes = lw_drift_kept_at(r, k, rows) * lw_dtype_size(type);
    return LW_ROUND_UP(bytes, ALIGN);
}

/* Lays the arrays out from `base` on (NULL: only their size). */
static size_t lay_out(const drift_run *r, char *base, lw_drift_kept *out)
{
    int64_t groups = r->draws.groups;
    bool real = lw_drift_keeps_real(r);
    size_t at = 0;
    for (int k = 0; k < r->keys.n; k++) {
        if (base)
            out->gen[k] = (float *)(void *)(base + at);
        at += key_bytes(r, k, lw_drift_pictures(r), LW_F32);
        if (base)
            out->state[k] = (int64_t *)(void *)(base + at);
        at += LW_ROUND_UP(lw_drift_state_bytes(r, k), ALIGN);
        if (!real)
            continue;
        if (base)
            out->pos[k] = base + at;
        at += key_bytes(r, k, groups * r->np, lw_drift_real_type(r));
        if (base && r->nu)
            out->unc[k] = base + at;
        at += key_bytes(r, k, groups * r->nu, lw_drift_real_type(r));
    }
    return at;
}

size_t lw_drift_kept_bytes(const drift_run *r)
{
    return lay_out(r, NULL, NULL);
}

int lw_drift_kept_room(const drift_run *r)
{
    uint64_t room = 0;
    char cache[4096], need[32], have[32];
    const char *dir = lw_data_cache_dir(cache, sizeof cache);
    if (!dir || !*dir)
        return lw_fail(LW_EUSAGE, "features of a step need a cache directory (LW_CACHE names one)");
    LW_TRY(lw_mkdirs(dir));
    LW_TRY(lw_disk_free(dir, &room));
    size_t bytes = lw_drift_kept_bytes(r);
    return room >= bytes
               ? 0
               : lw_fail(
                     LW_EUSAGE,
                     "features of a step take %s, %s has %s free (LW_CACHE names another place)",
                     lw_fmt_bytes(need, bytes), dir, lw_fmt_bytes(have, room));
}

int lw_drift_kept_open(drift_run *r)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char dir[4096];
    lw_drift_kept *kept = &r->kept;
    kept->bytes = lw_drift_kept_bytes(r);
    if (r->cut.mapped) {
        LW_TRY(lw_drift_kept_room(r));
        lw_path_join(&path, lw_data_cache_dir(dir, sizeof dir), "step");
        LW_TRY(lw_map_scratch(&kept->map, lw_str_c(&path), kept->bytes));
    } else {
        kept->memory = lw_bulk_alloc(kept->bytes);
        if (!kept->memory)
            return LW_ENOMEM;
    }
    lay_out(r, r->cut.mapped ? kept->map.data : kept->memory, kept);
    return 0;
}

void lw_drift_kept_close(drift_run *r)
{
    lw_map_close(&r->kept.map);
    if (r->kept.memory)
        lw_bulk_free(&r->kept.memory, r->kept.bytes);
}
