/* SPDX-License-Identifier: Apache-2.0 */
/* The run directory: what is written once, and the logs. */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "formats/formats.h"
#include "session/session.h"
#include "train/train_config.h"
#include "train/train_run_dir.h"

#include "base/base.h"

const char *lw_run_dir_file(const lw_run_dir *d, lw_str *s, const char *name)
{
    return lw_path_join(s, d->path, name);
}

static int write_env(const lw_run_dir *d, const char *job, int threads, const char *isa)
{
    struct utsname u = {0};
    char host[128] = "";
    uname(&u);
    gethostname(host, sizeof host - 1);
    const char *tuned = *lw_session_tuned() ? lw_session_tuned() : NULL;
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:s?, s:s, s:s, s:s, s:f}", "recipe", job,
                          "version", lw_build_version(), "commit", lw_build_commit(), "cpu",
                          lw_machine_name(), "isa", isa, "threads", threads, "tuned", tuned,
                          "compiler", lw_build_compiler(), "system", u.release, "host", host,
                          "started", lw_wall_time());
    lw_str path = {0};
    int rc = j ? lw_json_save(lw_run_dir_file(d, &path, "env.json"), j)
               : lw_fail(LW_ENOMEM, "out of memory for env.json");
    lw_str_clear(&path);
    json_decref(j);
    return rc;
}

static int cut_logs(const lw_run_dir *d, int64_t step)
{
    lw_str path = {0};
    int rc = lw_jsonl_cut_step(lw_run_dir_file(d, &path, "metrics.jsonl"), step);
    if (rc == 0)
        rc = lw_csv_cut_step(lw_run_dir_file(d, &path, "loss_log.csv"), step);
    lw_str_clear(&path);
    return rc;
}

/* What is written into over time must be ours: a link in a directory made by somebody else would
 * send logs, pictures or checkpoints anywhere, and a file in the place of a directory would be
 * found only when there is something to keep. The other files are replaced whole. */
static int check_parts(const lw_run_dir *d)
{
    static const struct {
        const char *name;
        mode_t kind;
    } parts[] = {{"metrics.jsonl", S_IFREG}, {"loss_log.csv", S_IFREG},
                 {"command.txt", S_IFREG},   {"tb", S_IFDIR},
                 {"samples", S_IFDIR},       {"checkpoints", S_IFDIR},
                 {"best", S_IFDIR}};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    struct stat st;
    for (size_t i = 0; i < LW_COUNT(parts); i++) {
        if (lstat(lw_run_dir_file(d, &path, parts[i].name), &st) != 0 ||
            (st.st_mode & S_IFMT) == parts[i].kind)
            continue;
        return lw_fail(LW_EIO, "%s: %s, not a %s: a run is not written there; remove it",
                       lw_str_c(&path),
                       S_ISLNK(st.st_mode) ? "is a symbolic link" : "is something else",
                       parts[i].kind == S_IFDIR ? "directory" : "file");
    }
    return 0;
}

static bool there(const char *path, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    return lw_path_exists(lw_path_join(&file, path, name));
}

bool lw_run_dir_there(const char *path)
{
    return there(path, "metrics.jsonl");
}

int lw_run_dir_refuse(const char *path)
{
    static const char *const results[] = {"summary.json", "report.html"};
    if (lw_run_dir_there(path))
        return lw_fail(LW_EUSAGE,
                       "%s already holds a run: go on with --resume, or choose another "
                       "--output-dir",
                       path);
    for (size_t i = 0; i < LW_COUNT(results); i++)
        if (there(path, results[i]))
            return lw_fail(LW_EUSAGE,
                           "%s holds a %s, which the run would replace: choose another "
                           "--output-dir",
                           path, results[i]);
    return 0;
}

/* What killed processes left half written; a checkpoint sweeps the other folders when it is saved. */
static void sweep(const lw_run_dir *d)
{
    LW_CLEANUP(lw_str_clear) lw_str samples = {0};
    lw_new_files_sweep(d->path);
    if (lw_path_is_dir(lw_run_dir_file(d, &samples, "samples")))
        lw_new_files_sweep(lw_str_c(&samples));
}

int lw_run_dir_open(const lw_train_config *c, const char *job, int threads, const char *isa,
                    int64_t step, lw_run_dir *out)
{
    lw_run_dir d = {.path = lw_strdup(c->output_dir), .lock = -1};
    lw_str path = {0};
    int rc = d.path ? lw_mkdirs(d.path) : LW_ENOMEM;
    if (rc == 0)
        rc = lw_dir_lock(d.path, &d.lock);
    if (rc == 0)
        rc = check_parts(&d);
    if (rc == 0)
        rc = step >= 0 ? cut_logs(&d, step) : lw_run_dir_refuse(d.path);
    if (rc == 0)
        sweep(&d);
    if (rc == 0 && c->command_line) /* one line per process that worked on the run */
        rc = lw_file_append(lw_run_dir_file(&d, &path, "command.txt"), c->command_line,
                            strlen(c->command_line));
    if (rc == 0)
        rc = write_env(&d, job, threads, isa);
    if (rc == 0)
        rc = lw_events_open(lw_run_dir_file(&d, &path, "tb"), LW_MAX(step, 0), &d.events);
    lw_str_clear(&path);
    if (rc < 0) {
        lw_run_dir_close(&d);
        return rc;
    }
    *out = d;
    return 0;
}

void lw_run_dir_close(lw_run_dir *d)
{
    lw_events_close(&d->events);
    lw_lock_drop(&d->lock);
    lw_free(&d->path);
}

static int log_csv(const lw_run_dir *d, int64_t step, const char *rate, const json_t *row)
{
    const char *const header[] = {"step", "loss", "time_s", rate};
    const json_t *loss = json_object_get(row, "loss");
    if (!loss)
        return 0;
    char text[4][32];
    const char *cells[4];
    snprintf(text[0], sizeof text[0], "%lld", (long long)step);
    for (int i = 1; i < 4; i++)
        lw_f64_text(text[i], json_number_value(json_object_get(row, header[i])));
    for (int i = 0; i < 4; i++)
        cells[i] = text[i];
    lw_str path = {0};
    int rc = lw_csv_append(lw_run_dir_file(d, &path, "loss_log.csv"), header, cells, 4);
    lw_str_clear(&path);
    return rc;
}

int lw_run_dir_describe(lw_run_dir *d, const json_t *options, const char *yaml)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_addf(&text, "```yaml\n%s```\n", yaml); /* Markdown */
    if (text.failed)
        return lw_fail(LW_ENOMEM, "out of memory for the configuration");
    LW_TRY(lw_events_text(d->events, "config.yaml", 0, lw_str_c(&text)));
    return lw_events_hparams(d->events, options);
}

int lw_run_dir_picture(lw_run_dir *d, int64_t step, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t n;
    int32_t w, h;
    LW_TRY(lw_image_size(lw_run_dir_file(d, &path, name), &w, &h));
    LW_TRY(lw_file_read(lw_str_c(&path), 0, &bytes, &n));
    return lw_events_image(d->events, "samples", step, bytes, n, w, h);
}

/* The group that TensorBoard shows a column in. */
static const char *group_of(const char *column)
{
    static const struct {
        const char *begins, *group;
    } rules[] = {{"fd", "eval"},         {"eval_", "eval"},   {"heldout", "eval"},
                 {"teacher_", "eval"},   {"valid", "eval"},   {"S", "drift"},
                 {"raw_drift", "drift"}, {"scale/", "drift"}, {"lambda/", "drift"}};
    for (size_t i = 0; i < LW_COUNT(rules); i++)
        if (lw_str_starts(column, rules[i].begins))
            return rules[i].group;
    return "train";
}

static int log_scalar(lw_run_dir *d, int64_t step, const char *column, double value)
{
    LW_CLEANUP(lw_str_clear) lw_str tag = {0};
    lw_str_addf(&tag, "%s/%s", group_of(column), column);
    return tag.failed ? LW_ENOMEM : lw_events_scalar(d->events, lw_str_c(&tag), step, value);
}

int lw_run_dir_log(lw_run_dir *d, int64_t step, const char *rate, const json_t *row)
{
    const char *key;
    json_t *value;
    lw_str path = {0};
    int rc = lw_jsonl_append(lw_run_dir_file(d, &path, "metrics.jsonl"), row);
    lw_str_clear(&path);
    LW_TRY(rc);
    LW_TRY(log_csv(d, step, rate, row));
    json_object_foreach((json_t *)(uintptr_t)row, key, value)
    {
        if (json_is_number(value) && strcmp(key, "step") != 0)
            LW_TRY(log_scalar(d, step, key, json_number_value(value)));
    }
    return 0;
}
