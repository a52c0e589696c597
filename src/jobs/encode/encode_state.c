/* SPDX-License-Identifier: Apache-2.0 */
/* What a half written file holds, and whether that is what is asked for now. */
#include "jobs/encode/encode_file.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *about, const char *key)
{
    const char *text = json_string_value(json_object_get(about, key));
    return text ? text : "not said";
}

static int check_same(const lw_encode_file *f, const json_t *then)
{
    const char *key = lw_json_difference(f->about, then);
    return key ? lw_fail(LW_EUSAGE,
                         "%s" LW_PART_SUFFIX " is of another call (%s: %s, now %s): remove it to "
                         "start again",
                         f->path, key, text_of(then, key), text_of(f->about, key))
               : 0;
}

int lw_encode_state_read(lw_encode_file *f, bool resume, int64_t *done)
{
    LW_CLEANUP(lw_str_clear) lw_str part = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    const char *where = lw_str_c(&f->state);
    const json_t *then = NULL;
    const char *isa = f->isa, *device;
    int64_t rows = 0;
    *done = 0;
    lw_str_addf(&part, "%s" LW_PART_SUFFIX, f->path);
    if (!lw_path_exists(lw_str_c(&part)) || !lw_path_exists(where))
        return 0;
    LW_TRY(lw_json_load(where, &j));
    LW_TRY(lw_json_get_i64(j, where, "rows_done", &rows));
    LW_TRY(lw_json_get_object(j, where, "about", &then));
    if (rows == 0)
        return 0;
    if (!resume)
        return lw_fail(LW_EUSAGE,
                       "%s holds %lld of %lld rows of an interrupted encode: go on with --resume, "
                       "or remove it to start again",
                       lw_str_c(&part), (long long)rows, (long long)f->rows);
    LW_TRY(check_same(f, then));
    LW_TRY(lw_json_opt_str(j, where, "isa", &isa));
    device = lw_session_device_of(isa);
    LW_TRY(lw_json_opt_str(j, where, "device", &device));
    LW_TRY(lw_session_device_follow(lw_str_c(&part), device, f->device_change, f->device));
    if (rows < 0 || rows > f->rows)
        return lw_fail(LW_EFORMAT, "%s: 'rows_done' is %lld of %lld", where, (long long)rows,
                       (long long)f->rows);
    bool same_device = !strchr(f->device, ',');
    if (same_device && !(f->f32 ? lw_isa_same_f32(isa, f->isa) : lw_str_eq(isa, f->isa)))
        lw_log(LW_LOG_WARN, "encode", "%s was begun at %s, now %s: last bits of rows may differ",
               lw_str_c(&part), isa, f->isa);
    *done = rows;
    return 0;
}

int lw_encode_state_write(const lw_encode_file *f)
{
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:I, s:s, s:s, s:O}", "rows_done", (json_int_t)f->done, "isa", f->isa,
                          "device", f->device, "about", f->about);
    return j ? lw_json_save(lw_str_c(&f->state), j) : LW_ENOMEM;
}

bool lw_encode_state_whole(lw_encode_file *f)
{
    LW_CLEANUP(lw_str_clear) lw_str part = {0}, rows = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    lw_str_addf(&part, "%s" LW_PART_SUFFIX, f->path);
    lw_str_addf(&rows, "%s.json", f->path);
    if (lw_path_exists(lw_str_c(&part)) || !lw_path_exists(f->path) ||
        !lw_path_exists(lw_str_c(&rows)))
        return false;
    bool whole = lw_json_load(lw_str_c(&rows), &j) == 0 &&
                 json_equal(f->about, json_object_get(j, "about"));
    const char *device = json_string_value(json_object_get(j, "device"));
    if (whole && device)
        snprintf(f->device, sizeof f->device, "%s", device);
    lw_errclear();
    return whole;
}
