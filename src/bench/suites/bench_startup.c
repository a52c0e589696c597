/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From nothing to the first result: a fresh process for every sample, which opens a model folder,
 * compiles its network for one picture and runs it. The parts are timed inside that process, on the
 * clock that all processes share.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench_reference.h"
#include "session/session_device.h"
#include "session/session_forward.h"

extern char **environ;

enum { ANSWER = 4096, MOST_STARTS = 20 };

/* ---- inside the process ---------------------------------------------------------------------- */

static int build_network(lw_builder *b, const void *what)
{
    const lw_network *n = what;
    int32_t side = lw_network_side(n, 0);
    return lw_network_build(n, b->g, 1, side, side, NULL);
}

static uint64_t hash_of(const lw_workload *l)
{
    const char *name = lw_graph_output_at(l->graph, 0)->name;
    return lw_hash64(lw_exec_read(l->exec, name), lw_type_bytes(lw_exec_type(l->exec, name)));
}

static json_t *answer(const double at[5], uint64_t hash)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:o}", "process_ms", 1e3 * (at[1] - at[0]), "load_ms",
                     1e3 * (at[2] - at[1]), "compile_ms", 1e3 * (at[3] - at[2]), "first_ms",
                     1e3 * (at[4] - at[3]), "hash", lw_json_hash(hash));
}

static int start(const char *model, int threads, int32_t conv, lw_workload *workload,
                 lw_device **dev, lw_network **net, double at[5])
{
    LW_TRY(lw_session_device_with(threads, conv, dev));
    at[1] = lw_now();
    LW_TRY(lw_network_open(model, true, net));
    at[2] = lw_now();
    lw_workload_spec spec = {
        .build = build_network, .what = *net, .opts = {.opt = 1}, .store = (*net)->store};
    LW_TRY(lw_workload_open(*dev, &spec, workload));
    at[3] = lw_now();
    LW_TRY(lw_workload_run(workload));
    at[4] = lw_now();
    return 0;
}

int lw_bench_startup_child(const char *model, int threads, int32_t conv, double since, json_t **out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    lw_workload workload = {0};
    double at[5] = {since};
    int rc = start(model, threads, conv, &workload, &dev, &net, at);
    if (rc == 0) {
        *out = answer(at, hash_of(&workload));
        rc = *out ? 0 : lw_fail(LW_ENOMEM, "no memory for the answer");
    }
    lw_workload_close(&workload);
    return rc;
}

/* ---- starting them --------------------------------------------------------------------------- */

typedef struct startup {
    lw_bench_run *r;
    const char *model;
    lw_bench_case *part[5]; /* process, load, compile, first, total */
    char hash[24];          /* of the same result in this process */
    double error;           /* 0 when every process gave those bits */
} startup;

static const char *const parts[] = {"process", "load", "compile", "first", "total"};

/* Everything a file descriptor gives until its end; at most size - 1 bytes. */
static void read_all(int fd, char *text, size_t size)
{
    size_t n = 0;
    for (ssize_t k; n + 1 < size; n += (size_t)k) {
        k = read(fd, text + n, size - 1 - n);
        if (k < 0 && errno == EINTR)
            k = 0;
        else if (k <= 0)
            break;
    }
    text[n] = '\0';
}

static int spawn(const startup *s, int out, pid_t *pid)
{
    char threads[16], since[40];
    posix_spawn_file_actions_t io;
    snprintf(threads, sizeof threads, "%d", lw_pool_size(s->r->dev->pool));
    snprintf(since, sizeof since, "%.9f", lw_now());
    const char *argv[] = {"leeway",
                          "bench",
                          "startup",
                          "--model",
                          s->model,
                          "--child",
                          since,
                          "--threads",
                          threads,
                          "--device",
                          s->r->dev->mark ? s->r->dev->name : "cpu",
                          "--conv",
                          lw_conv_mode_name(s->r->config->conv),
                          NULL};
    int rc = posix_spawn_file_actions_init(&io);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&io, out, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn(pid, "/proc/self/exe", &io, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&io);
    return rc == 0
               ? 0
               : lw_fail(lw_errno_code(rc), "cannot start this program again: %s", strerror(rc));
}

/* One process: its answer as text, and how long it took from start to answer. */
static int ask(const startup *s, char text[ANSWER])
{
    int fd[2], status = 0;
    pid_t pid;
    if (pipe2(fd, O_CLOEXEC) != 0)
        return lw_fail(lw_errno_code(errno), "pipe: %s", strerror(errno));
    int rc = spawn(s, fd[1], &pid);
    close(fd[1]);
    if (rc == 0) {
        read_all(fd[0], text, ANSWER);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            rc = lw_observe_stop(s->r->obs) /* a terminal's Ctrl-C is for both */
                     ? lw_fail(LW_ESTOPPED, "interrupted")
                     : lw_fail(LW_EFAILED, "the started process failed; its message stands above");
    }
    close(fd[0]);
    return rc;
}

static int add_start(startup *s)
{
    char text[ANSWER], key[24];
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    const char *hash;
    double ms, total = 0;
    LW_TRY(ask(s, text));
    LW_TRY(lw_json_parse("the started process", text, strlen(text), &tree));
    LW_TRY(lw_json_get_str(tree, "the started process", "hash", &hash));
    if (!lw_str_eq(hash, s->hash))
        s->error = 1;
    for (int i = 0; i < 4; i++) {
        snprintf(key, sizeof key, "%s_ms", parts[i]);
        LW_TRY(lw_json_get_f64(tree, "the started process", key, &ms));
        if (s->part[i])
            LW_TRY(lw_bench_add_sample(s->part[i], ms));
        total += ms;
    }
    return s->part[4] ? lw_bench_add_sample(s->part[4], total) : 0;
}

static int run_starts(startup *s)
{
    const lw_bench_config *c = s->r->config;
    double began = lw_now();
    int n = LW_MIN(c->samples, MOST_STARTS), done = 0;
    char note[64];
    LW_TRY(ask(s, (char[ANSWER]){0})); /* brings program and weights into the page cache */
    do {
        LW_TRY(add_start(s));
        snprintf(note, sizeof note, "startup %d/%d", ++done, n);
        lw_observe_progress(s->r->obs, "bench", s->r->out->n - 1, s->r->total, note);
        if (lw_observe_stop(s->r->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    } while (done < n && (c->seconds <= 0 || lw_now() - began < c->seconds));
    for (int i = 0; i < 5; i++)
        if (s->part[i])
            s->part[i]->error = s->error;
    return 0;
}

/* The same result here: other processes must give its bits. */
static int own_result(startup *s, size_t *memory)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    lw_workload workload = {0};
    double at[5];
    int rc = start(s->model, s->r->config->threads, s->r->config->conv, &workload, &dev, &net, at);
    if (rc == 0) {
        snprintf(s->hash, sizeof s->hash, "%016llx", (unsigned long long)hash_of(&workload));
        *memory = workload.bytes;
    }
    lw_workload_close(&workload);
    return rc;
}

static int measure(startup *s, const bool wanted[5])
{
    size_t memory = 0;
    int32_t first = s->r->out->n, k = 0;
    char name[32];
    lw_bench_case *c;
    LW_TRY(own_result(s, &memory));
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "startup_%s", parts[i]);
        if (wanted[i])
            LW_TRY(lw_bench_new_case(s->r, name, "f32", 1, &c));
    }
    for (int i = 0; i < 5; i++) { /* the list may have moved while it grew */
        s->part[i] = wanted[i] ? &s->r->out->cases[first + k++] : NULL;
        if (!s->part[i])
            continue;
        s->part[i]->memory = memory;
        snprintf(s->part[i]->against, sizeof s->part[i]->against, "own bits");
    }
    return run_starts(s);
}

int lw_bench_temp_dir(lw_str *dir)
{
    const char *tmp = getenv("TMPDIR");
    lw_str_addf(dir, "%s/leeway-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!dir->failed && mkdtemp(dir->s))
        return 0;
    int cause = dir->failed ? ENOMEM : errno;
    lw_str_clear(dir);
    return lw_fail(lw_errno_code(cause), "no directory for temporary files in %s: %s",
                   tmp && *tmp ? tmp : "/tmp", strerror(cause));
}

/* The shared U-Net with random weights, written where temporary files go. */
static int write_model(const lw_bench_run *r, lw_str *dir)
{
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    LW_CLEANUP(lw_json_drop) json_t *json = NULL;
    lw_unet_config c = lw_workload_unet_config(r->config->large);
    LW_TRY(lw_bench_temp_dir(dir));
    LW_TRY(lw_store_new(true, &store));
    LW_TRY(lw_unet_declare(&c, store));
    lw_store_init(store, 1);
    json = lw_unet_to_json(&c);
    return lw_model_folder_save(lw_str_c(dir), store, LW_SLAB_PARAM, json, NULL);
}

int lw_bench_suite_startup(lw_bench_run *r)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    startup s = {.r = r, .model = r->config->model};
    bool wanted[5], any = false;
    char name[32];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "startup_%s", parts[i]);
        wanted[i] = lw_bench_wants(r, name);
        if (wanted[i] && lw_backend_binds()) {
            LW_TRY(lw_bench_skip(r, name, "", 0, 0,
                                 "not with --bind cores: what is started has this thread's cores"));
            wanted[i] = false;
        }
        any |= wanted[i];
    }
    if (!any)
        return 0;
    int rc = s.model ? 0 : write_model(r, &dir);
    if (!s.model)
        s.model = lw_str_c(&dir);
    if (rc == 0)
        rc = measure(&s, wanted);
    if (dir.len > 0)
        lw_remove_tree(lw_str_c(&dir));
    return rc;
}
