/* SPDX-License-Identifier: Apache-2.0 */
/* The public C API: errors, sized structs, sessions, rows, callbacks and the drift field. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "leeway.h"
#include "plan/plan.h"

/* Made by make_model before this program starts. */
static const char *unet_dir, *encoder_dir, *clip_dir;
static lw_device *device;

#define assert_code(code, call) assert_int_equal((call), (code))

static void versions(void **state)
{
    (void)state;
    assert_int_equal(lw_api_version(), LW_API_VERSION);
    assert_non_null(strchr(lw_api_release(), '('));
    assert_string_equal(lw_error_name(LW_ERROR_MEMORY), "out of memory");
}

/* The level of a device that was asked for this one: on a GPU (LW_DEVICE) that of the CPU beside it was. */
static const char *level(const char *asked)
{
    return strcmp(lw_device_isa(device), "cuda") == 0 ? "cuda" : asked;
}

static void devices(void **state)
{
    (void)state;
    lw_device *d = NULL;
    lw_device_options o = {.size = sizeof o, .threads = 3, .isa = "ref"};
    assert_code(0, lw_device_open(&o, &d));
    assert_int_equal(lw_device_threads(d), 3);
    assert_string_equal(lw_device_isa(d), level("ref"));
    lw_device_close(&d);
    assert_null(d);
    lw_device_close(&d);
    o.isa = "mmx";
    assert_code(LW_ERROR_USAGE, lw_device_open(&o, &d));
    assert_non_null(strstr(lw_error_message(), "'mmx'"));
    o = (lw_device_options){.size = sizeof o, .threads = -1};
    assert_code(LW_ERROR_USAGE, lw_device_open(&o, &d));
    o = (lw_device_options){.threads = 1};
    assert_code(LW_ERROR_USAGE, lw_device_open(&o, &d)); /* size forgotten */
    assert_code(LW_ERROR_USAGE, lw_device_open(NULL, NULL));
    assert_null(d);
    o = (lw_device_options){.size = offsetof(lw_device_options, isa), .threads = 2, .isa = "mmx"};
    assert_code(0, lw_device_open(&o, &d)); /* an older caller's struct ends before isa */
    assert_int_equal(lw_device_threads(d), 2);
    lw_device_close(&d);
}

static void models(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_model_info i = {.size = sizeof i};
    assert_code(0, lw_model_open(unet_dir, &m));
    assert_code(0, lw_model_describe(m, &i));
    assert_string_equal(i.kind, "unet");
    assert_string_equal(i.network, "UNet2DModel");
    assert_true(i.parameters > 1000 && i.channels == 3 && i.image_size == 16 && i.classes == 3 &&
                i.latent == 0);
    struct {
        size_t size;
        const char *kind;
    } old = {.size = sizeof old};
    assert_code(
        0, lw_model_describe(m, (lw_model_info *)(void *)&old)); /* writes no further than size */
    assert_string_equal(old.kind, "unet");
    lw_model_close(&m);
    assert_null(m);
    assert_code(LW_ERROR_IO, lw_model_open("/no/such/folder", &m));
    assert_non_null(strstr(lw_error_message(), "/no/such/folder"));
    assert_code(LW_ERROR_USAGE, lw_model_open(NULL, &m));
}

static void fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(((uint64_t)i * 2654435761u + seed) % 1000) / 500.0f - 1.0f;
}

enum { ROWS = 7, PIXELS = 3 * 16 * 16 };
static float x[ROWS * PIXELS], t[ROWS], y[ROWS * PIXELS];
static int32_t class_of[ROWS];

static void make_inputs(void)
{
    fill(x, ROWS * PIXELS, 7);
    for (int i = 0; i < ROWS; i++) {
        t[i] = (float)(100 * i);
        class_of[i] = i % 3;
    }
}

static void run_all(lw_session *s, const lw_callbacks *c, float *out)
{
    lw_session_rows io[] = {{.name = "x", .in = x},
                            {.name = "t", .in = t},
                            {.name = "class", .in = class_of},
                            {.name = "y", .out = out}};
    assert_code(0, lw_session_run_rows(s, ROWS, io, 4, c));
}

static void sessions(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_session *one = NULL, *s = NULL;
    lw_tensor_info i = {.size = sizeof i};
    float *again = calloc(ROWS * PIXELS, sizeof *again);
    make_inputs();
    assert_code(0, lw_model_open(unet_dir, &m));
    assert_code(0, lw_session_new(device, m, NULL, &one));
    assert_int_equal(lw_session_tensors(one), 4);
    assert_code(0, lw_session_tensor(one, 0, &i));
    assert_string_equal(i.name, "x");
    assert_true(i.rank == 4 && i.shape[0] == 1 && i.shape[1] == 3 && i.shape[3] == 16 &&
                !i.is_output);
    assert_code(0, lw_session_tensor(one, 2, &i));
    assert_true(i.element == LW_ELEMENT_I32 && i.rank == 1 && i.bytes == 4);
    assert_code(LW_ERROR_USAGE, lw_session_tensor(one, 4, &i));
    for (int r = 0; r < ROWS; r++) { /* row by row through set, run, get */
        assert_code(0, lw_session_set(one, "x", x + r * PIXELS, PIXELS * 4));
        assert_code(0, lw_session_set(one, "t", t + r, 4));
        assert_code(0, lw_session_set(one, "class", class_of + r, 4));
        uint64_t count = lw_alloc_count();
        assert_code(0, lw_session_run(one));
        assert_code(0, lw_session_get(one, "y", y + r * PIXELS, PIXELS * 4));
        assert_true(lw_alloc_count() == count);
    }
    for (int batch = 1; batch <= 9; batch += 4) { /* rows: the same bits at any batch size */
        lw_session_options o = {.size = sizeof o, .batch = batch};
        assert_code(0, lw_session_new(device, m, &o, &s));
        run_all(s, NULL, again);
        assert_memory_equal(again, y, sizeof y);
        lw_session_free(&s);
    }
    free(again);
    lw_session_free(&one);
    lw_model_close(&m);
}

static void refusals(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_session *s = NULL;
    lw_session_options o = {.size = sizeof o, .height = 8, .width = 8};
    int32_t wrong = 3;
    assert_code(0, lw_model_open(unet_dir, &m));
    assert_code(LW_ERROR_SHAPE, lw_session_new(device, m, &o, &s));
    o = (lw_session_options){.size = sizeof o, .output = "z"};
    assert_code(LW_ERROR_USAGE, lw_session_new(device, m, &o, &s));
    o = (lw_session_options){.size = sizeof o, .batch = -1};
    assert_code(LW_ERROR_USAGE, lw_session_new(device, m, &o, &s));
    assert_null(s);
    assert_code(0, lw_session_new(device, m, NULL, &s));
    assert_code(LW_ERROR_USAGE, lw_session_set(s, "x", x, 4));
    assert_non_null(strstr(lw_error_message(), "3072"));
    assert_code(LW_ERROR_USAGE, lw_session_set(s, "y", x, PIXELS * 4));
    assert_code(LW_ERROR_USAGE, lw_session_set(s, "noise", x, 4));
    assert_non_null(strstr(lw_error_message(), "x, t, class, y"));
    assert_code(LW_ERROR_FORMAT, lw_session_set(s, "class", &wrong, 4));
    assert_code(LW_ERROR_USAGE, lw_session_get(s, "y", y, 4));
    assert_code(LW_ERROR_USAGE,
                lw_session_run_rows(s, 1, &(lw_session_rows){.name = "y", .in = x}, 1, NULL));
    assert_code(LW_ERROR_USAGE,
                lw_session_run_rows(s, 1, &(lw_session_rows){.name = "x"}, 1, NULL));
    assert_code(LW_ERROR_USAGE, lw_session_run(NULL));
    lw_session_free(&s);
    lw_model_close(&m);
}

typedef struct watch {
    int64_t done, total;
    int calls, stop_after;
} watch;

static void on_progress(void *self, int64_t done, int64_t total)
{
    watch *w = self;
    assert_true(done > w->done);
    w->done = done;
    w->total = total;
    w->calls++;
}

static int on_cancel(void *self)
{
    const watch *w = self;
    return w->stop_after > 0 && w->calls >= w->stop_after;
}

static void callbacks(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_session *s = NULL;
    watch w = {0};
    lw_callbacks c = {.size = sizeof c, .self = &w, .progress = on_progress, .cancel = on_cancel};
    lw_session_options o = {.size = sizeof o, .batch = 2};
    float *part = calloc(ROWS * PIXELS, sizeof *part),
          *whole = calloc(ROWS * PIXELS, sizeof *whole);
    make_inputs();
    assert_code(0, lw_model_open(unet_dir, &m));
    assert_code(0, lw_session_new(device, m, &o, &s));
    run_all(s, &c, whole);
    assert_true(w.calls == 4 && w.done == ROWS && w.total == ROWS);
    w = (watch){.stop_after = 2};
    lw_session_rows io[] = {{.name = "x", .in = x},
                            {.name = "t", .in = t},
                            {.name = "class", .in = class_of},
                            {.name = "y", .out = part}};
    assert_code(LW_ERROR_STOPPED, lw_session_run_rows(s, ROWS, io, 4, &c));
    assert_memory_equal(part, whole,
                        4 * PIXELS * sizeof *part); /* two batches are there, nothing after */
    for (int i = 4 * PIXELS; i < ROWS * PIXELS; i++)
        assert_true(part[i] == 0.0f);
    free(part);
    free(whole);
    lw_session_free(&s);
    lw_model_close(&m);
}

/* ---- pictures ---- */

enum { PICTURES = 5, STEPS = 4 };

typedef struct show {
    int calls, last, progress, stop_at;
    int64_t first;
    float seen[2 * PIXELS]; /* of the last preview */
} show;

static void on_preview(void *self, int64_t first, int64_t count, int step, int steps,
                       const float *pixels)
{
    show *s = self;
    assert_true(steps == STEPS && step >= 1 && step <= steps && count >= 1 && count <= 2);
    s->calls++;
    s->last = step;
    s->first = first;
    memcpy(s->seen, pixels, (size_t)count * PIXELS * sizeof *pixels);
}

static void on_pictures(void *self, int64_t done, int64_t total)
{
    show *s = self;
    assert_int_equal(total, PICTURES);
    assert_true(done > s->progress);
    s->progress = (int)done;
}

static int after(void *self)
{
    const show *s = self;
    return s->stop_at > 0 && s->calls >= s->stop_at;
}

static void samplers(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_sampler *one = NULL, *s = NULL;
    lw_sampler_info i = {.size = sizeof i};
    lw_model_info about = {.size = sizeof about};
    lw_sampler_options o = {.size = sizeof o, .batch = 2, .steps = STEPS, .seed = 7};
    static const int32_t wanted[PICTURES] = {2, 0, 1, 1, 2};
    static float a[PICTURES * PIXELS], b[PICTURES * PIXELS];
    show w = {0};
    lw_callbacks c = {.size = sizeof c,
                      .self = &w,
                      .progress = on_pictures,
                      .cancel = after,
                      .preview = on_preview};
    assert_code(0, lw_model_open(unet_dir, &m));
    assert_code(0, lw_model_describe(m, &about));
    assert_string_equal(about.method, "ddpm");
    assert_null(lw_model_class_name(m, 99));
    assert_code(0, lw_sampler_open(device, m, &o, &s));
    assert_code(0, lw_sampler_describe(s, &i));
    assert_string_equal(i.sampler, "ddim");
    assert_true(i.evaluations == STEPS && i.channels == 3 && i.height == 16 && i.width == 16 &&
                i.classes == 3);
    assert_code(0, lw_sampler_pictures(s, 0, PICTURES, wanted, &c, a));
    assert_true(w.calls == 3 * STEPS && w.last == STEPS && w.first == 4 && w.progress == PICTURES);
    assert_memory_equal(w.seen, a + 4 * PIXELS, PIXELS * sizeof *a); /* the last is the picture */
    for (int k = 0; k < PICTURES * PIXELS; k++)
        assert_true(a[k] >= -1.0f && a[k] <= 1.0f);
    o.batch = 1; /* one by one, each by its number */
    assert_code(0, lw_sampler_open(device, m, &o, &one));
    for (int k = PICTURES - 1; k >= 0; k--)
        assert_code(0, lw_sampler_pictures(one, k, 1, wanted + k, NULL, b + k * PIXELS));
    assert_memory_equal(a, b, sizeof a);
    /* stopped within the second batch: the first is there; the sampler goes on as if new */
    memset(b, 0, sizeof b);
    w = (show){.stop_at = STEPS + 2};
    assert_code(LW_ERROR_STOPPED, lw_sampler_pictures(s, 0, PICTURES, wanted, &c, b));
    assert_true(w.calls == STEPS + 2 && w.progress == 2);
    assert_memory_equal(a, b, 2 * PIXELS * sizeof *a);
    assert_true(b[2 * PIXELS] == 0.0f);
    assert_code(0, lw_sampler_pictures(s, 0, PICTURES, wanted, NULL, b));
    assert_memory_equal(a, b, sizeof a);
    c.size = offsetof(lw_callbacks, preview); /* an older caller's struct ends before it */
    w = (show){0};
    assert_code(0, lw_sampler_pictures(s, 0, PICTURES, wanted, &c, b));
    assert_int_equal(w.calls, 0);
    lw_sampler_close(&one);
    lw_sampler_close(&s);
    assert_null(s);
    lw_sampler_close(&s);
    lw_sampler_close(NULL);
    lw_model_close(&m);
}

static void sampler_refusals(void **state)
{
    (void)state;
    lw_model *m = NULL, *encoder = NULL;
    lw_sampler *s = NULL;
    lw_sampler_options o = {.size = sizeof o, .steps = 1};
    const int32_t wrong = 3;
    float p[PIXELS];
    assert_code(0, lw_model_open(unet_dir, &m));
    assert_code(0, lw_model_open(encoder_dir, &encoder));
    assert_code(LW_ERROR_USAGE, lw_sampler_open(NULL, m, &o, &s));
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, NULL, &o, &s));
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, m, &o, NULL));
    assert_code(LW_ERROR_FORMAT, lw_sampler_open(device, encoder, NULL, &s));
    o.sampler = "euler";
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, m, &o, &s));
    assert_non_null(strstr(lw_error_message(), "ancestral"));
    assert_null(strstr(lw_error_message(), "--")); /* there are no options here */
    o.sampler = "one-step";
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, m, &o, &s));
    o = (lw_sampler_options){.size = sizeof o, .steps = 1001};
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, m, &o, &s));
    assert_null(strstr(lw_error_message(), "--"));
    o = (lw_sampler_options){.size = sizeof o, .sampler = "dpm-solver", .steps = 1000};
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, m, &o, &s));
    assert_null(strstr(lw_error_message(), "--"));
    o = (lw_sampler_options){.size = sizeof o, .steps = -1};
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, m, &o, &s));
    o = (lw_sampler_options){.size = sizeof o, .batch = 1 << 30};
    assert_code(LW_ERROR_USAGE, lw_sampler_open(device, m, &o, &s));
    o = (lw_sampler_options){.size = sizeof o, .precision = "int8"}; /* it was not quantised */
    assert_true(lw_sampler_open(device, m, &o, &s) < 0);
    assert_null(s);
    o = (lw_sampler_options){.size = sizeof o, .batch = 1, .steps = 1};
    assert_code(0, lw_sampler_open(device, m, &o, &s));
    assert_code(LW_ERROR_USAGE, lw_sampler_pictures(NULL, 0, 1, NULL, NULL, p));
    assert_code(LW_ERROR_USAGE, lw_sampler_pictures(s, 0, 1, NULL, NULL, NULL));
    assert_code(LW_ERROR_USAGE, lw_sampler_pictures(s, -1, 1, NULL, NULL, p));
    assert_code(LW_ERROR_USAGE, lw_sampler_pictures(s, 0, -1, NULL, NULL, p));
    assert_code(LW_ERROR_USAGE, lw_sampler_pictures(s, 0, INT64_MAX, NULL, NULL, p));
    assert_code(LW_ERROR_USAGE, lw_sampler_pictures(s, INT64_MAX, 1, NULL, NULL, p));
    assert_code(LW_ERROR_FORMAT, lw_sampler_pictures(s, 0, 1, &wrong, NULL, p));
    assert_non_null(strstr(lw_error_message(), "0 .. 2"));
    assert_code(LW_ERROR_USAGE, lw_sampler_pictures(s, 0, 1, NULL, &(lw_callbacks){0}, p));
    assert_code(0, lw_sampler_pictures(s, 0, 0, NULL, NULL, p));
    lw_sampler_close(&s);
    lw_model_close(&encoder);
    lw_model_close(&m);
}

static void encoders(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_session *s = NULL;
    lw_model_info info = {.size = sizeof info};
    lw_session_options o = {.size = sizeof o, .output = "*"};
    float logits[5], pooled[32], map[32 * 4 * 4];
    assert_code(0, lw_model_open(encoder_dir, &m));
    assert_code(0, lw_model_describe(m, &info));
    assert_string_equal(info.kind, "encoder");
    assert_int_equal(info.classes, 5);
    assert_code(0, lw_session_new(device, m, &o, &s));
    assert_int_equal(lw_session_tensors(s), 7);
    fill(x, PIXELS, 3);
    assert_code(0, lw_session_set(s, "x", x, PIXELS * 4));
    assert_code(0, lw_session_run(s));
    assert_code(0, lw_session_get(s, "logits", logits, sizeof logits));
    assert_code(0, lw_session_get(s, "pooled", pooled, sizeof pooled));
    assert_code(0, lw_session_get(s, "s3", map, sizeof map));
    for (int c = 0; c < 32; c++) { /* pooled is the mean of the last map, channel by channel */
        double sum = 0;
        for (int i = 0; i < 16; i++)
            sum += (double)map[16 * c + i];
        assert_true(fabs(sum / 16 - (double)pooled[c]) < 1e-5);
    }
    lw_session_free(&s);
    float again[32 * 4 * 4];
    o.output = "s3,pooled"; /* some of them, the same bits */
    assert_code(0, lw_session_new(device, m, &o, &s));
    assert_int_equal(lw_session_tensors(s), 3);
    assert_code(0, lw_session_set(s, "x", x, PIXELS * 4));
    assert_code(0, lw_session_run(s));
    assert_code(0, lw_session_get(s, "s3", again, sizeof map));
    assert_memory_equal(again, map, sizeof map);
    assert_code(0, lw_session_get(s, "pooled", again, sizeof pooled));
    assert_memory_equal(again, pooled, sizeof pooled);
    lw_session_free(&s);
    static const char *const wrong[] = {"", ",", "pooled,", "pooled,s33", "s3 ,pooled"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.output = wrong[i];
        assert_code(LW_ERROR_USAGE, lw_session_new(device, m, &o, &s));
    }
    assert_string_equal(strstr(lw_error_message(), "has no output"),
                        "has no output 's3 ': there are logits, pooled, s0, s1, s2, s3");
    lw_model_close(&m);
}

/* tokens are [N,T,C]: the class token, then the map's places, row by row */
static void tokens(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_session *s = NULL;
    lw_tensor_info info = {.size = sizeof info};
    lw_session_options o = {.size = sizeof o, .output = "cls,tokens,s2", .batch = 2};
    float cls[2 * 16], all[2 * 5 * 16], map[2 * 16 * 4];
    assert_code(0, lw_model_open(clip_dir, &m));
    assert_code(0, lw_session_new(device, m, &o, &s));
    assert_int_equal(lw_session_tensors(s), 4);
    assert_code(0, lw_session_tensor(s, 2, &info));
    assert_string_equal(info.name, "tokens");
    assert_true(info.rank == 3 && info.shape[0] == 2 && info.shape[1] == 5 && info.shape[2] == 16);
    fill(x, 2 * PIXELS, 3);
    assert_code(0, lw_session_set(s, "x", x, 2 * PIXELS * 4));
    assert_code(0, lw_session_run(s));
    assert_code(0, lw_session_get(s, "cls", cls, sizeof cls));
    assert_code(0, lw_session_get(s, "tokens", all, sizeof all));
    assert_code(0, lw_session_get(s, "s2", map, sizeof map));
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 4; i++)
            for (int c = 0; c < 16; c++)
                assert_true(all[(5 * n + 1 + i) * 16 + c] == map[(16 * n + c) * 4 + i]);
    lw_session_free(&s);
    lw_model_close(&m);
}

/* One temperature, no groups: loss 1; the gradient is the field, scaled; zero weight is
 * no weight. */
static void field(void **state)
{
    (void)state;
    enum { N = 9, P = 11, C = 5 };
    float gen[N * C], pos[P * C], unc[2 * C], f[N * C], g[N * C], f2[N * C], zero[1] = {0};
    const double tau[] = {0.2};
    lw_field_report r = {.size = sizeof r};
    fill(gen, N * C, 1);
    fill(pos, P * C, 99);
    fill(unc, 2 * C, 5);
    lw_field_request q = {.size = sizeof q,
                          .generated = N,
                          .positives = P,
                          .channels = C,
                          .x = gen,
                          .positive = pos,
                          .temperatures = tau,
                          .temperature_count = 1,
                          .field = f,
                          .gradient = g};
    assert_code(0, lw_field_run(device, &q, &r));
    assert_true(fabs(r.loss - 1) < 1e-5 && r.scale > 0 && r.temperature_count == 1);
    assert_true(fabs(r.sigma - r.scale / sqrt(C)) < 1e-5);
    for (int i = 0; i < N * C; i++)
        assert_true(fabs((double)g[i] + 2 * (double)f[i] / (N * C * r.sigma)) < 1e-6);
    q.unconditional = 2;
    q.uncond = unc;
    q.field = f2;
    assert_code(0, lw_field_run(device, &q, NULL));
    assert_true(memcmp(f, f2, sizeof f) != 0); /* they dilute the softmax */
    q.uncond_weight = zero;
    q.field = f;
    assert_code(0, lw_field_run(device, &q, NULL));
    assert_memory_equal(f, f2, sizeof f); /* no weights are weights of 0 */
    pos[7] = 1e18f; /* its distances leave f32; said and not computed wrongly */
    assert_code(LW_ERROR_USAGE, lw_field_run(device, &q, NULL));
    assert_non_null(strstr(lw_error_message(), "positives: element 7"));
    pos[7] = 0;
    q.uncond = NULL;
    assert_code(LW_ERROR_USAGE, lw_field_run(device, &q, NULL));
    q.unconditional = 0;
    q.temperature_count = 9;
    assert_code(LW_ERROR_USAGE, lw_field_run(device, &q, NULL));
    q.temperature_count = 1;
    q.positives = 0;
    assert_code(LW_ERROR_SHAPE, lw_field_run(device, &q, NULL));
    q.size = 0;
    assert_code(LW_ERROR_USAGE, lw_field_run(device, &q, NULL));
}

/* A call that must be refused: its code, and what its message names. */
#define assert_refused(code, text, call)                                                        \
    do {                                                                                        \
        int code_ = (call);                                                                     \
        if (code_ != (code) || !strstr(lw_error_message(), (text)))                             \
            fail_msg("%s: %d (%s), not %d with '%s'", #call, code_, lw_error_message(), (code), \
                     (text));                                                                   \
    } while (0)

static void null_pointers_are_named(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_session *s = NULL;
    lw_model_info mi = {.size = sizeof mi};
    lw_tensor_info ti = {.size = sizeof ti};
    lw_session_rows row = {.in = x};
    lw_field_request q = {.size = sizeof q};
    assert_refused(LW_ERROR_USAGE, "device is NULL", lw_device_open(NULL, NULL));
    assert_refused(LW_ERROR_USAGE, "device is NULL", lw_device_threads(NULL));
    assert_null(lw_device_isa(NULL));
    lw_device_close(NULL);
    assert_refused(LW_ERROR_USAGE, "path is NULL", lw_model_open(NULL, &m));
    assert_refused(LW_ERROR_USAGE, "model is NULL", lw_model_open(unet_dir, NULL));
    assert_refused(LW_ERROR_USAGE, "model is NULL", lw_model_describe(NULL, &mi));
    lw_model_close(NULL);
    assert_code(0, lw_model_open(unet_dir, &m));
    assert_refused(LW_ERROR_USAGE, "info is NULL", lw_model_describe(m, NULL));
    assert_refused(LW_ERROR_USAGE, "device is NULL", lw_session_new(NULL, m, NULL, &s));
    assert_refused(LW_ERROR_USAGE, "model is NULL", lw_session_new(device, NULL, NULL, &s));
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_new(device, m, NULL, NULL));
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_tensors(NULL));
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_tensor(NULL, 0, &ti));
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_set(NULL, "x", x, 4));
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_get(NULL, "y", y, 4));
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_run(NULL));
    assert_refused(LW_ERROR_USAGE, "session is NULL", lw_session_run_rows(NULL, 1, &row, 1, NULL));
    lw_session_free(NULL);
    assert_code(0, lw_session_new(device, m, NULL, &s));
    assert_refused(LW_ERROR_USAGE, "info is NULL", lw_session_tensor(s, 0, NULL));
    assert_refused(LW_ERROR_USAGE, "name is NULL", lw_session_set(s, NULL, x, 4));
    assert_refused(LW_ERROR_USAGE, "data is NULL", lw_session_set(s, "x", NULL, 4));
    assert_refused(LW_ERROR_USAGE, "name is NULL", lw_session_get(s, NULL, y, 4));
    assert_refused(LW_ERROR_USAGE, "data is NULL", lw_session_get(s, "y", NULL, 4));
    assert_refused(LW_ERROR_USAGE, "tensors is NULL", lw_session_run_rows(s, 1, NULL, 1, NULL));
    assert_refused(LW_ERROR_USAGE, "tensors[0].name", lw_session_run_rows(s, 1, &row, 1, NULL));
    assert_refused(LW_ERROR_USAGE, "device is NULL", lw_field_run(NULL, &q, NULL));
    assert_refused(LW_ERROR_USAGE, "request is NULL", lw_field_run(device, NULL, NULL));
    assert_refused(LW_ERROR_USAGE, "request.x is NULL", lw_field_run(device, &q, NULL));
    lw_session_free(&s);
    lw_model_close(&m);
}

static const int64_t absurd[] = {-1,        INT64_MIN, INT64_MAX, 1ll << 31, 1ll << 33,
                                 1ll << 40, 1ll << 48, 1ll << 62, INT32_MIN, -(1ll << 40)};

static void sizes_of_sessions_are_checked(void **state)
{
    (void)state;
    lw_model *m = NULL;
    lw_session *s = NULL;
    lw_tensor_info ti = {.size = sizeof ti};
    lw_session_rows row = {.name = "x", .in = x};
    assert_code(0, lw_model_open(encoder_dir, &m));
    lw_session_options o = {.size = sizeof o, .batch = 65536, .height = 32768, .width = 32768};
    assert_refused(LW_ERROR_SHAPE, "32768x32768", lw_session_new(device, m, &o, &s));
    o.batch = INT_MAX;
    assert_refused(LW_ERROR_USAGE, "2147483647 rows", lw_session_new(device, m, &o, &s));
    o = (lw_session_options){.size = sizeof o, .height = INT_MIN};
    assert_refused(LW_ERROR_USAGE, "-2147483648", lw_session_new(device, m, &o, &s));
    assert_null(s);
    assert_code(0, lw_session_new(device, m, NULL, &s));
    assert_refused(LW_ERROR_USAGE, "tensor -1", lw_session_tensor(s, -1, &ti));
    assert_refused(LW_ERROR_USAGE, "tensor 2147483647", lw_session_tensor(s, INT_MAX, &ti));
    assert_refused(LW_ERROR_USAGE, "bytes", lw_session_set(s, "x", x, SIZE_MAX));
    assert_refused(LW_ERROR_USAGE, "bytes", lw_session_get(s, "x", x, 0));
    assert_refused(LW_ERROR_USAGE, "rows is -1", lw_session_run_rows(s, -1, &row, 1, NULL));
    assert_refused(LW_ERROR_USAGE, "rows is", lw_session_run_rows(s, INT64_MAX, &row, 1, NULL));
    assert_refused(LW_ERROR_USAGE, "count is -1", lw_session_run_rows(s, 1, &row, -1, NULL));
    assert_refused(LW_ERROR_USAGE, "count is 33", lw_session_run_rows(s, 1, &row, 33, NULL));
    assert_code(0, lw_session_run_rows(s, 0, &row, 1, NULL));
    ti.size = SIZE_MAX;
    assert_refused(LW_ERROR_USAGE, ".size", lw_session_tensor(s, 0, &ti));
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)NAN; /* numbers that are none go through: a network has no opinion */
    assert_code(0, lw_session_set(s, "x", x, PIXELS * 4));
    assert_code(0, lw_session_run(s));
    lw_session_free(&s);
    lw_model_close(&m);
}

static void sizes_of_fields_are_checked(void **state)
{
    (void)state;
    float gen[4] = {1, 2, 3, 4}, pos[4] = {4, 3, 2, 2}, f[4] = {7, 7, 7, 7};
    double tau[] = {0.5};
    const lw_field_request good = {.size = sizeof good,
                                   .groups = 1,
                                   .slots = 1,
                                   .channels = 2,
                                   .generated = 2,
                                   .positives = 2,
                                   .x = gen,
                                   .positive = pos,
                                   .uncond = pos,
                                   .temperatures = tau,
                                   .temperature_count = 1,
                                   .field = f};
    static const struct {
        const char *name;
        size_t at;
    } sizes[] = {{"groups", offsetof(lw_field_request, groups)},
                 {"slots", offsetof(lw_field_request, slots)},
                 {"channels", offsetof(lw_field_request, channels)},
                 {"generated", offsetof(lw_field_request, generated)},
                 {"positives", offsetof(lw_field_request, positives)},
                 {"unconditional", offsetof(lw_field_request, unconditional)}};
    for (size_t k = 0; k < LW_COUNT(sizes); k++)
        for (size_t i = 0; i < LW_COUNT(absurd); i++) {
            lw_field_request q = good;
            memcpy((char *)&q + sizes[k].at, &absurd[i], sizeof absurd[i]);
            assert_refused(LW_ERROR_USAGE, sizes[k].name, lw_field_run(device, &q, NULL));
        }
    lw_field_request q = good; /* each in range, not their product */
    q.groups = q.slots = q.generated = INT32_MAX;
    assert_refused(LW_ERROR_USAGE, "vectors", lw_field_run(device, &q, NULL));
    q = good;
    q.channels = INT32_MAX;
    q.generated = 1 << 20;
    assert_refused(LW_ERROR_USAGE, "channels", lw_field_run(device, &q, NULL));
    q = good;
    q.temperature_count = -1;
    assert_refused(LW_ERROR_USAGE, "temperature_count", lw_field_run(device, &q, NULL));
    q = good;
    q.variant = (lw_field_variant)9;
    assert_refused(LW_ERROR_USAGE, "variant", lw_field_run(device, &q, NULL));
    tau[0] = (double)NAN;
    assert_refused(LW_ERROR_USAGE, "temperature", lw_field_run(device, &good, NULL));
    tau[0] = 0.5;
    lw_field_report r = {.size = 3};
    assert_refused(LW_ERROR_USAGE, "report", lw_field_run(device, &good, &r));
    for (int i = 0; i < 4; i++)
        assert_true(f[i] == 7.0f); /* refused: nothing was written */
    gen[1] = (float)NAN;
    assert_refused(LW_ERROR_USAGE, "generated samples: element 1",
                   lw_field_run(device, &good, NULL));
    gen[1] = 2;
    assert_code(0, lw_field_run(device, &good, NULL));
}

static int set_up(void **state)
{
    (void)state;
    return lw_device_open(&(lw_device_options){.size = sizeof(lw_device_options), .threads = 2},
                          &device);
}

static int tear_down(void **state)
{
    (void)state;
    lw_device_close(&device);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(versions),
                                       cmocka_unit_test(devices),
                                       cmocka_unit_test(models),
                                       cmocka_unit_test(sessions),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(callbacks),
                                       cmocka_unit_test(samplers),
                                       cmocka_unit_test(sampler_refusals),
                                       cmocka_unit_test(encoders),
                                       cmocka_unit_test(tokens),
                                       cmocka_unit_test(field),
                                       cmocka_unit_test(null_pointers_are_named),
                                       cmocka_unit_test(sizes_of_sessions_are_checked),
                                       cmocka_unit_test(sizes_of_fields_are_checked)};
    if (argc != 4)
        return 2;
    unet_dir = argv[1];
    encoder_dir = argv[2];
    clip_dir = argv[3];
    return cmocka_run_group_tests_name("api", tests, set_up, tear_down);
}
