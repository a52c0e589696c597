/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public C API in wrong hands, and what it says where: null pointers, things closed twice or while they
 * run, calls from callbacks, sizes that fit no machine, log lines, borrowed inputs. Meant for the sanitizers.
 */
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "leeway.h"

enum { SIDE = 16, PIXELS = 3 * SIDE * SIDE, ROWS = 5 };

static const char *unet_dir; /* made by make_model: 16x16, classes 0 .. 2 */
static lw_device *device;
static lw_model *model;

/* The code of a call that must be refused, and what its message names. */
#define assert_refused(code, text, call)                                                        \
    do {                                                                                        \
        int code_ = (call);                                                                     \
        if (code_ != (code) || !strstr(lw_error_message(), (text)))                             \
            fail_msg("%s: %d (%s), not %d with '%s'", #call, code_, lw_error_message(), (code), \
                     (text));                                                                   \
    } while (0)

static lw_session *new_session(int batch)
{
    lw_session *s = NULL;
    lw_session_options o = {.size = sizeof o, .batch = batch};
    assert_int_equal(lw_session_new(device, model, &o, &s), 0);
    return s;
}

static lw_sampler *new_sampler(int batch)
{
    lw_sampler *s = NULL;
    lw_sampler_options o = {.size = sizeof o, .batch = batch, .steps = 2, .seed = 3};
    assert_int_equal(lw_sampler_open(device, model, &o, &s), 0);
    return s;
}

/* ---- null pointers, twice, huge -------------------------------------------------------------- */

static void null_pointers(void **state)
{
    (void)state;
    lw_session *s = new_session(1);
    lw_sampler *p = new_sampler(1), *none = NULL;
    lw_sampler_info info = {.size = sizeof info};
    float x[PIXELS] = {0};
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_borrow(NULL, "x", x, sizeof x));
    assert_refused(LW_ERROR_USAGE, "name is NULL", lw_session_borrow(s, NULL, x, sizeof x));
    assert_refused(LW_ERROR_USAGE, "device is NULL", lw_sampler_open(NULL, model, NULL, &none));
    assert_refused(LW_ERROR_USAGE, "model is NULL", lw_sampler_open(device, NULL, NULL, &none));
    assert_refused(LW_ERROR_USAGE, "sampler is NULL", lw_sampler_open(device, model, NULL, NULL));
    assert_refused(LW_ERROR_USAGE, "sampler is NULL", lw_sampler_describe(NULL, &info));
    assert_refused(LW_ERROR_USAGE, "info is NULL", lw_sampler_describe(p, NULL));
    assert_refused(LW_ERROR_USAGE, "sampler is NULL",
                   lw_sampler_pictures(NULL, 0, 1, NULL, NULL, x));
    assert_refused(LW_ERROR_USAGE, "pixels is NULL",
                   lw_sampler_pictures(p, 0, 1, NULL, NULL, NULL));
    assert_null(lw_model_class_name(NULL, 0));
    assert_non_null(strstr(lw_error_message(), "model is NULL"));
    assert_null(lw_model_class_name(model, INT_MIN));
    assert_null(lw_model_class_name(model, INT_MAX));
    assert_non_null(lw_error_name(INT_MIN));
    assert_null(none);
    lw_sampler_close(&p);
    lw_session_free(&s);
}

static void closed_twice(void **state)
{
    (void)state;
    lw_device *d = NULL;
    lw_model *m = NULL;
    lw_session *s = new_session(1);
    lw_sampler *p = new_sampler(1);
    assert_int_equal(lw_device_open(NULL, &d), 0);
    assert_int_equal(lw_model_open(unet_dir, &m), 0);
    for (int i = 0; i < 2; i++) {
        lw_session_free(&s);
        lw_sampler_close(&p);
        lw_model_close(&m);
        lw_device_close(&d);
        assert_true(!s && !p && !m && !d);
    }
    lw_session_free(NULL);
    lw_sampler_close(NULL);
    lw_model_close(NULL);
    lw_device_close(NULL);
}

static void huge_sizes(void **state)
{
    (void)state;
    lw_session *s = new_session(1);
    lw_sampler *p = new_sampler(1), *none = NULL;
    float x[PIXELS] = {0};
    lw_sampler_options o = {.size = sizeof o, .batch = INT_MAX};
    lw_callbacks c = {.size = SIZE_MAX};
    assert_refused(LW_ERROR_USAGE, "bytes", lw_session_borrow(s, "x", x, SIZE_MAX));
    assert_refused(LW_ERROR_USAGE, "bytes", lw_session_borrow(s, "x", x, 0));
    assert_refused(LW_ERROR_USAGE, "65536", lw_sampler_open(device, model, &o, &none));
    o = (lw_sampler_options){.size = sizeof o, .steps = INT_MAX};
    assert_refused(LW_ERROR_USAGE, "steps", lw_sampler_open(device, model, &o, &none));
    assert_refused(LW_ERROR_USAGE, "range", lw_sampler_pictures(p, 0, INT64_MAX, NULL, NULL, x));
    assert_refused(LW_ERROR_USAGE, "range", lw_sampler_pictures(p, INT64_MAX, 1, NULL, NULL, x));
    assert_refused(
        LW_ERROR_USAGE, "range",
        lw_sampler_pictures(p, INT64_MAX - 1, 1, NULL, NULL, x)); /* the last of a batch */
    assert_refused(LW_ERROR_USAGE, ".size", lw_sampler_pictures(p, 0, 1, NULL, &c, x));
    assert_refused(LW_ERROR_USAGE, "level is 4", lw_set_log(4, NULL, NULL));
    assert_refused(LW_ERROR_USAGE, "level is -1", lw_set_log(-1, NULL, NULL));
    assert_null(none);
    lw_sampler_close(&p);
    lw_session_free(&s);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

typedef struct caller {
    lw_session *session;
    lw_sampler *sampler;
    int calls, stop_at;
} caller;

/* Closes and calls whatever it can reach. */
static void interfere(caller *c)
{
    float x[2 * PIXELS] = {0};
    lw_session_rows io = {.name = "x", .in = x};
    lw_device *d = device;
    lw_model *m = model;
    c->calls++;
    lw_device_close(&d);
    assert_non_null(strstr(lw_error_message(), "lw_device_close"));
    lw_model_close(&m);
    assert_non_null(strstr(lw_error_message(), "lw_model_close"));
    assert_true(d == device && m == model);
    if (c->session) {
        lw_session *s = c->session;
        lw_session_free(&s);
        assert_ptr_equal(s, c->session);
        assert_refused(LW_ERROR_USAGE, "callback of its own", lw_session_run(s));
        assert_refused(LW_ERROR_USAGE, "callback of its own", lw_session_set(s, "x", x, sizeof x));
        assert_refused(LW_ERROR_USAGE, "callback of its own", lw_session_borrow(s, "x", NULL, 0));
        assert_refused(LW_ERROR_USAGE, "callback of its own",
                       lw_session_run_rows(s, 1, &io, 1, NULL));
    }
    if (c->sampler) {
        lw_sampler *s = c->sampler;
        lw_sampler_close(&s);
        assert_ptr_equal(s, c->sampler);
        assert_refused(LW_ERROR_USAGE, "callback of its own",
                       lw_sampler_pictures(s, 0, 1, NULL, NULL, x));
    }
}

static void on_progress(void *self, int64_t done, int64_t total)
{
    (void)done;
    (void)total;
    interfere(self);
}

static int on_cancel(void *self)
{
    caller *c = self;
    interfere(c);
    return c->stop_at && c->calls >= c->stop_at;
}

static void on_preview(void *self, int64_t first, int64_t count, int step, int steps,
                       const float *pixels)
{
    lw_session *other = new_session(1); /* another one may come and go */
    (void)first;
    (void)step;
    (void)steps;
    assert_true(count >= 1 && pixels[count * PIXELS - 1] == pixels[count * PIXELS - 1]);
    assert_int_equal(lw_session_run(other), 0);
    lw_session_free(&other);
    assert_null(other);
    interfere(self);
}

static void rows_under_fire(void **state)
{
    (void)state;
    static float x[ROWS * PIXELS], plain[ROWS * PIXELS], seen[ROWS * PIXELS];
    caller me = {.session = new_session(2)};
    lw_callbacks c = {.size = sizeof c, .self = &me, .progress = on_progress, .cancel = on_cancel};
    lw_session_rows io[] = {{.name = "x", .in = x}, {.name = "y", .out = plain}};
    for (int i = 0; i < ROWS * PIXELS; i++)
        x[i] = (float)(i % 17) / 17;
    assert_int_equal(lw_session_run_rows(me.session, ROWS, io, 2, NULL), 0);
    io[1].out = seen;
    assert_int_equal(lw_session_run_rows(me.session, ROWS, io, 2, &c), 0);
    assert_true(me.calls == 5); /* three batches, asked twice between them */
    assert_memory_equal(plain, seen, sizeof plain);
    me.calls = 0;
    me.stop_at = 2; /* the question behind the first batch */
    memset(seen, 0, sizeof seen);
    assert_refused(LW_ERROR_STOPPED, "2 of 5", lw_session_run_rows(me.session, ROWS, io, 2, &c));
    assert_memory_equal(plain, seen, 2 * PIXELS * sizeof *seen);
    lw_session_free(&me.session); /* nothing runs any more */
    assert_null(me.session);
}

/* What is wrong with a later row is found before a row is written. */
static void a_wrong_row_writes_nothing(void **state)
{
    (void)state;
    static float x[ROWS * PIXELS], y[ROWS * PIXELS], as_it_was[ROWS * PIXELS];
    const int32_t classes[ROWS] = {0, 1, 2, 99, 0};
    lw_session *s = new_session(2);
    lw_session_rows io[] = {
        {.name = "x", .in = x}, {.name = "class", .in = classes}, {.name = "y", .out = y}};
    assert_refused(LW_ERROR_FORMAT, "class 99", lw_session_run_rows(s, ROWS, io, 3, NULL));
    assert_memory_equal(y, as_it_was, sizeof y);
    lw_session_free(&s);
}

static void pictures_under_fire(void **state)
{
    (void)state;
    static float plain[3 * PIXELS], seen[3 * PIXELS];
    caller me = {.sampler = new_sampler(2)};
    lw_callbacks c = {.size = sizeof c,
                      .self = &me,
                      .progress = on_progress,
                      .cancel = on_cancel,
                      .preview = on_preview};
    assert_int_equal(lw_sampler_pictures(me.sampler, 0, 3, NULL, NULL, plain), 0);
    assert_int_equal(lw_sampler_pictures(me.sampler, 0, 3, NULL, &c, seen), 0);
    assert_true(me.calls > 4);
    assert_memory_equal(plain, seen, sizeof plain);
    me.stop_at = 1;
    assert_refused(LW_ERROR_STOPPED, "", lw_sampler_pictures(me.sampler, 0, 3, NULL, &c, seen));
    assert_int_equal(lw_sampler_pictures(me.sampler, 0, 3, NULL, NULL, seen), 0);
    assert_memory_equal(plain, seen, sizeof plain); /* as if nothing had been */
    lw_sampler_close(&me.sampler);
    assert_null(me.sampler);
}

/* ---- the drift field --------------------------------------------------------------------------- */

static void fields_of_no_numbers(void **state)
{
    (void)state;
    enum { N = 4, C = 3 };
    static const float odd[] = {-1.0f, 1e7f, INFINITY, NAN};
    static const double hot[] = {1e-300, 1e46, 0.0, -1.0, (double)INFINITY};
    float x[N * C], positive[N * C], negative[N * C], weight = 1.0f;
    double tau = 0.5;
    for (int i = 0; i < N * C; i++) {
        x[i] = (float)i;
        positive[i] = (float)(i * i % 7);
        negative[i] = (float)(i % 5);
    }
    lw_field_request r = {.size = sizeof r,
                          .channels = C,
                          .generated = N,
                          .positives = N,
                          .unconditional = N,
                          .x = x,
                          .positive = positive,
                          .uncond = negative,
                          .uncond_weight = &weight,
                          .temperatures = &tau,
                          .temperature_count = 1};
    assert_int_equal(lw_field_run(device, &r, NULL), 0);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        weight = odd[i];
        assert_refused(LW_ERROR_USAGE, "weight 0 is", lw_field_run(device, &r, NULL));
    }
    weight = 1.0f;
    for (size_t i = 0; i < sizeof hot / sizeof *hot; i++) {
        tau = hot[i];
        assert_refused(LW_ERROR_USAGE, "temperature", lw_field_run(device, &r, NULL));
    }
    tau = 0.5;
    float *const arrays[] = {x, positive, negative};
    for (size_t i = 0; i < 3; i++) { /* at every level, the plain one too */
        const float was = arrays[i][2];
        arrays[i][2] = NAN;
        assert_refused(LW_ERROR_USAGE, "element 2 is", lw_field_run(device, &r, NULL));
        arrays[i][2] = was;
    }
    assert_int_equal(lw_field_run(device, &r, NULL), 0);
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Bits of the control register that a program may have set: rounding, subnormals to zero (-ffast-math), exceptions that trap
 * (which 64-bit ARM need not have). */
#if defined(__aarch64__)
enum { UP = 1 << 22, DOWN = 1 << 23, FLUSH = 1 << 24, MASKS = 0, CONTROL = UP | DOWN | FLUSH };
static unsigned floats(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (unsigned)control;
}
static void set_floats(unsigned control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)control));
}
#else
enum { DOWN = 0x2000, UP = 0x4000, FLUSH = 0x8040, MASKS = 0x0e80, CONTROL = 0xffc0 };
static unsigned floats(void)
{
    return __builtin_ia32_stmxcsr();
}
static void set_floats(unsigned control)
{
    __builtin_ia32_ldmxcsr(control);
}
#endif

typedef struct all_results {
    float rows[ROWS * PIXELS], pictures[3 * PIXELS], field[6];
} all_results;

static unsigned set_by_caller;

static void looks_at_floats(void *self, int64_t done, int64_t total)
{
    (void)done;
    (void)total;
    assert_int_equal(floats() & CONTROL, set_by_caller & CONTROL);
    ++*(int *)self;
}

/* With a device and a model of their own if `anew`, else with those of set_up. */
static void compute_all(bool anew, all_results *out)
{
    static float x[ROWS * PIXELS];
    const float near[6] = {0, 1e-3f, .3f, .1f, .7f, .2f}, far[6] = {1, 2, 3, 5, 7, 11};
    const double tau = .3;
    int calls = 0;
    lw_device *was = device;
    lw_model *had = model;
    for (int i = 0; i < ROWS * PIXELS; i++)
        x[i] = (float)(i % 17) / 16; /* exact, however it is rounded */
    if (anew) {
        assert_int_equal(
            lw_device_open(&(lw_device_options){.size = sizeof(lw_device_options), .threads = 2},
                           &device),
            0);
        assert_int_equal(lw_model_open(unet_dir, &model), 0);
    }
    lw_callbacks c = {.size = sizeof c, .self = &calls, .progress = looks_at_floats};
    lw_session_rows io[] = {{.name = "x", .in = x}, {.name = "y", .out = out->rows}};
    lw_field_request r = {.size = sizeof r,
                          .channels = 2,
                          .generated = 3,
                          .positives = 3,
                          .x = near,
                          .positive = far,
                          .temperatures = &tau,
                          .temperature_count = 1,
                          .field = out->field};
    lw_session *s = new_session(2);
    lw_sampler *p = new_sampler(2);
    assert_int_equal(lw_session_run_rows(s, ROWS, io, 2, &c), 0);
    assert_int_equal(lw_sampler_pictures(p, 0, 3, NULL, &c, out->pictures), 0);
    assert_int_equal(lw_field_run(device, &r, NULL), 0);
    assert_int_equal(calls, 3 + 2);
    lw_sampler_close(&p);
    lw_session_free(&s);
    if (anew) {
        lw_model_close(&model);
        lw_device_close(&device);
    }
    device = was;
    model = had;
}

static void floats_of_the_caller(void **state)
{
    (void)state;
    static all_results plain, seen;
    const unsigned before = floats(), set[] = {before | UP, before | DOWN | UP, before | FLUSH,
                                               before & ~(unsigned)MASKS};
    set_by_caller = before;
    compute_all(false, &plain);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        set_by_caller = set[i];
        set_floats(set[i]);
        compute_all(i % 2 == 0, &seen);
        unsigned after = floats();
        set_floats(before);
        assert_int_equal(after & CONTROL, set[i] & CONTROL);
        assert_memory_equal(&plain, &seen, sizeof plain);
    }
}

/* ---- log ------------------------------------------------------------------------------------- */

/* A folder of links to the U-Net's files, whose config.json has one pair more. */
static void make_odd_model(const char *pair, char *dir, size_t size)
{
    char whole[PATH_MAX], from[PATH_MAX + 256], to[PATH_MAX], text[8192];
    snprintf(dir, size, "/tmp/lw-misuse-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_non_null(realpath(unet_dir, whole)); /* links lead on from where they lie */
    DIR *d = opendir(whole);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(from, sizeof from, "%s/%s", whole, e->d_name);
        snprintf(to, sizeof to, "%s/%s", dir, e->d_name);
        if (strcmp(e->d_name, "config.json") != 0) {
            assert_int_equal(symlink(from, to), 0);
            continue;
        }
        FILE *in = fopen(from, "r"), *out = fopen(to, "w");
        assert_true(in && out);
        size_t n = fread(text, 1, sizeof text - 1, in);
        text[n] = '\0';
        char *brace = strchr(text, '{');
        assert_non_null(brace);
        fprintf(out, "{%s,%s", pair, brace + 1);
        fclose(in);
        fclose(out);
    }
    closedir(d);
}

static void remove_folder(const char *dir)
{
    char path[PATH_MAX];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

typedef struct lines {
    int count, level;
    char area[32], text[512];
    const char *again; /* a model to open in the function itself */
} lines;

static void on_line(void *self, int level, const char *area, const char *text)
{
    lines *l = self;
    l->count++;
    l->level = level;
    snprintf(l->area, sizeof l->area, "%s", area);
    snprintf(l->text, sizeof l->text, "%s", text);
    if (l->again) { /* its lines go to standard error; setting the log here does not wait for itself */
        lw_model *m = NULL;
        assert_int_equal(lw_set_log(LW_LEVEL_ERROR, on_line, l), 0);
        assert_int_equal(lw_model_open(l->again, &m), 0);
        lw_model_close(&m);
    }
}

static int lines_of_opening(const char *dir, const lines *l)
{
    lw_model *m = NULL;
    int before = l->count;
    assert_int_equal(lw_model_open(dir, &m), 0);
    lw_model_close(&m);
    return l->count - before;
}

static void log_lines(void **state)
{
    (void)state;
    char dir[64];
    lines one = {0}, two = {0};
    make_odd_model("\"odd_key\": 1", dir, sizeof dir);
    assert_int_equal(lw_set_log(LW_LEVEL_WARNING, on_line, &one), 0);
    assert_int_equal(lines_of_opening(dir, &one), 1);
    assert_int_equal(one.level, LW_LEVEL_WARNING);
    assert_string_equal(one.area, "config");
    assert_non_null(strstr(one.text, "'odd_key' is not known"));
    assert_null(strchr(one.text, '\n'));
    assert_int_equal(lw_set_log(LW_LEVEL_ERROR, on_line, &one), 0);
    assert_int_equal(lines_of_opening(dir, &one), 0); /* warnings are less grave */
    assert_int_equal(lw_set_log(LW_LEVEL_DEBUG, on_line, &two), 0);
    assert_int_equal(lines_of_opening(dir, &one), 0); /* no longer asked */
    assert_true(two.count >= 1);
    two = (lines){.again = dir};
    assert_true(lines_of_opening(dir, &two) >= 1);
    assert_int_equal(lw_set_log(LW_LEVEL_WARNING, NULL, NULL), 0);
    one.count = two.count = 0;
    assert_int_equal(lines_of_opening(dir, &two), 0);
    assert_int_equal(one.count, 0);
    remove_folder(dir);
}

/* ---- pictures that are none ------------------------------------------------------------------ */

/* A folder of the U-Net, of this method, whose weights are finite, and so large that every picture is NaN. */
static void make_large_model(const char *method, char *dir, size_t size)
{
    char path[PATH_MAX], from[PATH_MAX + 256], pair[64];
    uint64_t header = 0;
    snprintf(pair, sizeof pair, "\"leeway_method\": \"%s\"", method);
    make_odd_model(pair, dir, size);
    snprintf(path, sizeof path, "%s/diffusion_pytorch_model.safetensors", dir);
    snprintf(from, sizeof from, "%s/diffusion_pytorch_model.safetensors", unet_dir);
    FILE *in = fopen(from, "rb");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    const size_t bytes = (size_t)ftell(in);
    char *all = malloc(bytes);
    assert_non_null(all);
    rewind(in);
    assert_int_equal(fread(all, 1, bytes, in), bytes);
    fclose(in);
    memcpy(&header, all, sizeof header); /* and behind it f32s */
    for (size_t at = sizeof header + header; at + sizeof(float) <= bytes; at += sizeof(float))
        memcpy(all + at, &(float){3e38f}, sizeof(float));
    unlink(path);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(all, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
    free(all);
}

static void pictures_of_no_numbers(void **state)
{
    (void)state;
    static const char *const methods[] = {"drift", "flow", "ddpm"};
    for (int i = 0; i < 3; i++) {
        char dir[64];
        float x[3 * PIXELS] = {0};
        lw_model *large = NULL;
        lw_sampler *s = NULL;
        lw_sampler_options o = {.size = sizeof o, .batch = 2, .steps = i == 0 ? 1 : 2};
        make_large_model(methods[i], dir, sizeof dir);
        assert_int_equal(lw_model_open(dir, &large), 0);
        assert_int_equal(lw_sampler_open(device, large, &o, &s), 0);
        assert_refused(LW_ERROR_NUMERIC, "picture 4 has a number that is",
                       lw_sampler_pictures(s, 4, 3, NULL, NULL, x));
        for (int k = 0; k < 3 * PIXELS; k++)
            assert_true(x[k] == 0.0f);
        assert_int_equal(lw_sampler_pictures(s, 4, 0, NULL, NULL, x), 0);
        lw_sampler_close(&s);
        lw_model_close(&large);
        remove_folder(dir);
    }
}

/* ---- borrowed inputs ------------------------------------------------------------------------- */

/* [n,3,H,W] -> [n,H,W,3] */
static void interleave(const float *x, int n, float *out)
{
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < SIDE * SIDE; k++)
                out[(i * SIDE * SIDE + k) * 3 + c] = x[(i * 3 + c) * SIDE * SIDE + k];
}

static void run_to(lw_session *s, float *y)
{
    assert_int_equal(lw_session_run(s), 0);
    assert_int_equal(lw_session_get(s, "y", y, 2 * PIXELS * sizeof *y), 0);
}

static void borrowed_inputs(void **state)
{
    (void)state;
    enum { N = 2 * PIXELS };
    static float x[N], y[N], z[N], back[N];
    float *mine = malloc((N + 1) * sizeof *mine), t[2] = {5, 70};
    int32_t classes[2] = {0, 1};
    lw_session *s = new_session(2);
    assert_non_null(mine);
    for (int i = 0; i < N; i++)
        x[i] = (float)((i * 31) % 101) / 101 - .5f;
    assert_int_equal(lw_session_set(s, "x", x, sizeof x), 0);
    assert_int_equal(lw_session_set(s, "t", t, sizeof t), 0);
    run_to(s, y);
    interleave(x, 2, mine + 1); /* beside every boundary but that of a float */
    assert_int_equal(lw_session_borrow(s, "x", mine + 1, sizeof x), 0);
    assert_int_equal(lw_session_borrow(s, "t", t, sizeof t), 0);
    run_to(s, z);
    assert_memory_equal(y, z, sizeof y); /* the same numbers by another way */
    assert_int_equal(lw_session_get(s, "x", back, sizeof back), 0);
    assert_memory_equal(x, back, sizeof x);
    t[1] = 300; /* read anew by every run */
    run_to(s, z);
    assert_memory_equal(y, z, PIXELS * sizeof *y);
    assert_true(memcmp(y + PIXELS, z + PIXELS, PIXELS * sizeof *y) != 0);
    for (int i = 0; i < N; i++) /* setting ends it, and does not write into the caller's memory */
        back[i] = -x[i];
    assert_int_equal(lw_session_set(s, "x", back, sizeof back), 0);
    interleave(x, 2, z);
    assert_memory_equal(mine + 1, z, sizeof z);
    assert_int_equal(lw_session_borrow(s, "x", mine + 1, sizeof x), 0);
    assert_int_equal(lw_session_borrow(s, "t", NULL, 0), 0);
    t[1] = 70;
    assert_int_equal(lw_session_set(s, "t", t, sizeof t), 0);
    t[1] = 300; /* a copy again: nobody reads this */
    run_to(s, z);
    assert_memory_equal(y, z, sizeof y);
    lw_session_rows io[] = {{.name = "x", .in = back}, {.name = "y", .out = z}};
    assert_int_equal(lw_session_run_rows(s, 2, io, 2, NULL), 0); /* this, too, is setting */
    interleave(x, 2, back);
    assert_memory_equal(mine + 1, back, sizeof back);
    free(mine); /* nobody looks at it any more */
    run_to(s, z);
    assert_refused(LW_ERROR_USAGE, "no multiple of 4",
                   lw_session_borrow(s, "x", (const char *)x + 1, sizeof x));
    assert_refused(LW_ERROR_USAGE, "is an output", lw_session_borrow(s, "y", x, sizeof x));
    assert_refused(LW_ERROR_USAGE, "is an output", lw_session_borrow(s, "y", NULL, 0));
    assert_refused(LW_ERROR_USAGE, "x, t, class, y", lw_session_borrow(s, "z", NULL, 0));
    assert_refused(LW_ERROR_UNSUPPORTED, "'class'",
                   lw_session_borrow(s, "class", classes, sizeof classes));
    lw_session_free(&s);
}

static int set_up(void **state)
{
    (void)state;
    int rc = lw_device_open(&(lw_device_options){.size = sizeof(lw_device_options), .threads = 2},
                            &device);
    return rc < 0 ? rc : lw_model_open(unet_dir, &model);
}

static int tear_down(void **state)
{
    (void)state;
    lw_model_close(&model);
    lw_device_close(&device);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(null_pointers),
                                       cmocka_unit_test(closed_twice),
                                       cmocka_unit_test(huge_sizes),
                                       cmocka_unit_test(rows_under_fire),
                                       cmocka_unit_test(a_wrong_row_writes_nothing),
                                       cmocka_unit_test(fields_of_no_numbers),
                                       cmocka_unit_test(pictures_under_fire),
                                       cmocka_unit_test(floats_of_the_caller),
                                       cmocka_unit_test(log_lines),
                                       cmocka_unit_test(pictures_of_no_numbers),
                                       cmocka_unit_test(borrowed_inputs)};
    if (argc != 2)
        return 2;
    unet_dir = argv[1];
    return cmocka_run_group_tests_name("misuse", tests, set_up, tear_down);
}
