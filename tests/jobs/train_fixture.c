/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and files of the job tests. */
#include "jobs/train_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"

char lab_out[16384], lab_err[16384];
const char *lab_env;
static char lab_dir[256], home[4096];

int lab_enter(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(lab_dir, sizeof lab_dir, "%.200s/leeway-train-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return getcwd(home, sizeof home) && mkdtemp(lab_dir) && chdir(lab_dir) == 0 ? 0 : -1;
}

int lab_leave(void **state)
{
    (void)state;
    return chdir(home) == 0 ? lw_remove_tree(lab_dir) : -1;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void to_file(const char *path, int fd)
{
    int f = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (f < 0 || dup2(f, fd) < 0)
        _exit(120);
    close(f);
}

static pid_t start(const char *args)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char *copy = strdup(args), *save = NULL, *argv[128] = {(char *)(uintptr_t)LEEWAY};
    int n = 1;
    for (char *w = strtok_r(copy, " ", &save); w && n < 126; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    argv[n++] = (char *)(uintptr_t) "--no-progress";
    if (lab_env)
        putenv((char *)(uintptr_t)lab_env);
    to_file("stdout.txt", STDOUT_FILENO);
    to_file("stderr.txt", STDERR_FILENO);
    execv(LEEWAY, argv);
    _exit(121);
}

static void slurp(const char *path, char *dst, size_t size)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n = 0;
    dst[0] = '\0';
    if (lw_file_read(path, 0, &text, &n) == 0)
        snprintf(dst, size, "%s", text);
}

static int finish(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    slurp("stdout.txt", lab_out, sizeof lab_out);
    slurp("stderr.txt", lab_err, sizeof lab_err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int lab_run(const char *format, ...)
{
    char args[4096];
    va_list ap;
    va_start(ap, format);
    vsnprintf(args, sizeof args, format, ap);
    va_end(ap);
    return finish(start(args));
}

int lab_run_until(double seconds, int signal, const char *args)
{
    pid_t pid = start(args);
    int status;
    double end = lw_now() + seconds;
    while (lw_now() < end) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
            return finish(pid);
        lw_sleep(0.002);
    }
    (void)status;
    kill(pid, signal);
    return finish(pid);
}

bool lab_one_line(void)
{
    int lines = 0;
    char *save = NULL, *copy = strdup(lab_err);
    for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        lines += !lw_str_starts(l, "warn ");
    free(copy);
    return lines == 1;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void same_file(const char *run_a, const char *run_b, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str a = {0}, b = {0};
    LW_CLEANUP(lw_free) char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    lw_path_join(&a, run_a, name);
    lw_path_join(&b, run_b, name);
    if (lw_file_read(lw_str_c(&a), 0, &x, &n) < 0 || lw_file_read(lw_str_c(&b), 0, &y, &m) < 0)
        fail_msg("%s", lw_errmsg());
    if (n != m || memcmp(x, y, n) != 0)
        fail_msg("%s and %s differ", lw_str_c(&a), lw_str_c(&b));
}

int64_t lab_last_step(const char *run)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    lw_checkpoint c = {0};
    int64_t step = -1;
    if (lw_checkpoint_latest(run, &dir) == 0 && lw_checkpoint_peek(lw_str_c(&dir), &c) == 0)
        step = c.step;
    lw_checkpoint_clear(&c);
    return step;
}

void lab_same_checkpoint(const char *run_a, const char *run_b)
{
    static const char *const names[] = {"checkpoints/last/optimizer.safetensors",
                                        "checkpoints/last/config.json"};
    assert_true(lab_last_step(run_a) > 0);
    assert_int_equal(lab_last_step(run_a), lab_last_step(run_b));
    for (size_t i = 0; i < LW_COUNT(names); i++)
        same_file(run_a, run_b, names[i]);
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, probe = {0};
    lw_path_join(&dir, run_a, "checkpoints/last");
    bool own = lw_path_exists(lw_path_join(&probe, lw_str_c(&dir), LW_WEIGHTS_HF));
    same_file(run_a, run_b,
              own ? "checkpoints/last/" LW_WEIGHTS_HF : "checkpoints/last/" LW_WEIGHTS_DIFFUSERS);
    bool averaged = lw_path_exists(lw_path_join(&probe, lw_str_c(&dir), "ema"));
    lw_path_join(&dir, run_b, "checkpoints/last/ema");
    assert_int_equal(lw_path_exists(lw_str_c(&dir)), averaged);
    if (averaged)
        same_file(run_a, run_b,
                  own ? "checkpoints/last/ema/" LW_WEIGHTS_HF
                      : "checkpoints/last/ema/" LW_WEIGHTS_DIFFUSERS);
}

static json_t *metrics(const char *run)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    json_t *rows = NULL;
    if (lw_jsonl_load(lw_path_join(&path, run, "metrics.jsonl"), &rows) < 0)
        fail_msg("%s", lw_errmsg());
    return rows;
}

/* What the clock says: the time, and the rate of whatever was counted. */
static void forget_times(json_t *row)
{
    const char *key;
    json_t *value;
    void *next;
    int rates = 0;
    assert_int_equal(json_object_del(row, "time_s"), 0);
    json_object_foreach_safe(row, next, key, value)
    {
        size_t n = strlen(key);
        if (n > 8 && strcmp(key + n - 8, "_per_sec") == 0)
            rates += json_object_del(row, key) == 0;
    }
    assert_int_equal(rates, 1);
}

void lab_same_logs(const char *run_a, const char *run_b)
{
    LW_CLEANUP(lw_json_drop) json_t *a = metrics(run_a);
    LW_CLEANUP(lw_json_drop) json_t *b = metrics(run_b);
    assert_true(json_array_size(a) > 0);
    for (size_t i = 0; i < json_array_size(a) && i < json_array_size(b); i++) {
        json_t *x = json_array_get(a, i), *y = json_array_get(b, i);
        forget_times(x);
        forget_times(y);
        if (!json_equal(x, y))
            fail_msg("row %zu of metrics.jsonl: %s in %s, %s in %s", i, json_dumps(x, 0), run_a,
                     json_dumps(y, 0), run_b);
    }
    assert_int_equal(json_array_size(a), json_array_size(b));
}

double lab_metric(const char *run, const char *key, int from_end)
{
    LW_CLEANUP(lw_json_drop) json_t *rows = metrics(run);
    size_t n = json_array_size(rows), at = from_end < 0 ? 0 : n - 1 - (size_t)from_end;
    const json_t *v = json_object_get(json_array_get(rows, at), key);
    if (!v)
        fail_msg("%s: row %zu of %zu has no '%s'", run, at, n, key);
    return json_number_value(v);
}

double lab_metric_mean(const char *run, const char *key, size_t from, size_t to)
{
    LW_CLEANUP(lw_json_drop) json_t *rows = metrics(run);
    double sum = 0.0;
    assert_true(to <= json_array_size(rows));
    for (size_t i = from; i < to; i++)
        sum += json_number_value(json_object_get(json_array_get(rows, i), key));
    return sum / (double)(to - from);
}

double lab_uniform(void)
{
    static uint64_t draw;
    return lw_rng_uniform(lw_rng_key_of(5, 5), 0, 0, draw++);
}
