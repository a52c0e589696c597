/* SPDX-License-Identifier: Apache-2.0 */
/* Vision transformers against transformers, timm and open_clip: each case is a folder as its library
 * writes it, opened as a user opens it; taps, and the gradient of `pooled` to the picture. */
#include "golden/golden.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

/* ---- writing the folder ---------------------------------------------------------------------- */

typedef struct tensor_line {
    const char *name;
    int rank;
    int64_t shape[4], count;
} tensor_line;

static tensor_line line_of(const json_t *row)
{
    tensor_line t = {.name = json_string_value(json_array_get(row, 0)), .count = 1};
    const json_t *shape = json_array_get(row, 1);
    t.rank = (int)json_array_size(shape);
    for (int i = 0; i < t.rank; i++) {
        t.shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
        t.count *= t.shape[i];
    }
    return t;
}

static void write_weights(const char *path, const json_t *rows)
{
    lw_st_writer *w = NULL;
    assert_ok(lw_st_writer_new(path, &w));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        tensor_line t = line_of(json_array_get(rows, i));
        assert_ok(lw_st_writer_add(w, t.name, LW_ELEM_F32, t.rank, t.shape));
    }
    for (size_t i = 0; i < json_array_size(rows); i++) {
        tensor_line t = line_of(json_array_get(rows, i));
        float *v = malloc(sizeof *v * (size_t)t.count);
        golden_parameter(t.name, t.rank, t.shape, v);
        assert_ok(lw_st_writer_put(w, v, sizeof *v * (size_t)t.count));
        free(v);
    }
    assert_ok(lw_st_writer_finish(w));
    lw_st_writer_free(&w);
}

static void write_folder(const char *dir, const json_t *about)
{
    char path[512];
    const char *name;
    json_t *text;
    json_object_foreach(json_object_get(about, "files"), name, text)
    {
        snprintf(path, sizeof path, "%s/%s", dir, name);
        assert_ok(lw_json_save(path, text));
    }
    snprintf(path, sizeof path, "%s/%s", dir, json_string_value(json_object_get(about, "weights")));
    write_weights(path, json_object_get(about, "tensors"));
}

static void remove_folder(const char *dir, const json_t *about)
{
    char path[512];
    const char *name;
    json_t *text;
    json_object_foreach(json_object_get(about, "files"), name, text)
    {
        snprintf(path, sizeof path, "%s/%s", dir, name);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/%s", dir, json_string_value(json_object_get(about, "weights")));
    unlink(path);
    rmdir(dir);
}

/* ---- a case ---------------------------------------------------------------------------------- */

typedef struct rig {
    const char *name;
    const lw_st_file *file;
    lw_network *net;
    int32_t batch, h, w;
    lw_graph *g;
    lw_plan *plan;
    lw_exec *e;
} rig;

static void rig_build(rig *r, lw_device *dev)
{
    lw_taps taps;
    lw_val gx;
    assert_ok(lw_graph_new(&r->g));
    lw_val x = lw_input(r->g, "x", lw_type_of(LW_F32, 4, r->batch, r->h, r->w, 3));
    lw_network_append(r->net, r->g, (lw_network_in){.x = x}, &taps);
    assert_ok(lw_graph_error(r->g));
    lw_val pooled = lw_tap_find(&taps, "pooled");
    lw_val gy = lw_input(r->g, "gy", lw_val_type(r->g, pooled));
    lw_grad(r->g, &pooled, &gy, 1, &x, &gx, 1);
    lw_graph_output_add(r->g, "gx", gx, LW_NOVAL);
    for (int32_t i = 0; i < taps.n; i++)
        lw_graph_output_add(r->g, taps.tap[i].name, taps.tap[i].val, LW_NOVAL);
    assert_ok(lw_compile(r->g, dev, NULL, &r->plan));
    assert_ok(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->e));
}

static void rig_run(rig *r)
{
    char key[80];
    int64_t n = (int64_t)r->batch * 3 * r->h * r->w;
    float *x = malloc(sizeof *x * (size_t)n);
    snprintf(key, sizeof key, "vit.%s.x", r->name);
    golden_fill(key, 0.0, 1.0, n, x);
    golden_to_nhwc(x, r->batch, 3, (int64_t)r->h * r->w, lw_exec_write(r->e, "x"));
    snprintf(key, sizeof key, "vit.%s.gy", r->name);
    golden_unit(key, lw_type_count(lw_exec_type(r->e, "gy")), lw_exec_write(r->e, "gy"));
    assert_ok(lw_exec_run(r->e, &(lw_tick){0}));
    free(x);
}

static void rig_close(rig *r)
{
    lw_exec_free(&r->e);
    lw_plan_free(&r->plan);
    lw_graph_free(&r->g);
    lw_network_close(&r->net);
}

/* An output in PyTorch's layout; *n numbers. */
static float *output_of(const rig *r, const char *name, int64_t *n)
{
    lw_type t = lw_exec_type(r->e, name);
    *n = lw_type_count(t);
    const float *v = lw_exec_read(r->e, name);
    float *out = malloc(sizeof *out * (size_t)*n);
    if (t.rank == 4)
        golden_to_nchw(v, t.dim[0], t.dim[3], (int64_t)t.dim[1] * t.dim[2], out);
    else
        memcpy(out, v, sizeof *out * (size_t)*n);
    return out;
}

/* Relative error of what the file holds as `key`, "CASE.pooled" or "CASE.sketch.tokens". */
static double error_of(const rig *r, const char *key)
{
    const char *tap = key + strlen(r->name) + 1;
    bool sketched = lw_str_starts(tap, "sketch.");
    int64_t n, count;
    tap += sketched ? strlen("sketch.") : 0;
    float *have = output_of(r, tap, &n);
    double *want = golden_get(r->file, key, &count);
    double err;
    if (sketched) {
        err = golden_sketch_error(tap, have, n, want, 1e-12);
    } else {
        assert_int_equal(count, n);
        err = golden_relative(have, want, n, 1e-12);
    }
    free(want);
    free(have);
    return err;
}

/* Everything the file has of this case. */
static void check_values(const rig *r)
{
    char prefix[80];
    int checked = 0;
    double worst = 0;
    snprintf(prefix, sizeof prefix, "%s.", r->name);
    for (size_t i = 0; i < lw_st_count(r->file); i++) {
        const char *key = lw_st_at(r->file, i)->name;
        if (!lw_str_starts(key, prefix))
            continue;
        double err = error_of(r, key);
        golden_check(key, err, 5e-6);
        worst = err > worst ? err : worst;
        checked++;
    }
    printf("%-16s %d values, worst %.1e\n", r->name, checked, worst);
    assert_true(checked >= 5); /* gx, pooled, tokens, two maps at the least */
}

static void run_case(const json_t *about, const lw_st_file *file)
{
    char dir[] = "/tmp/leeway_vit_XXXXXX";
    const json_t *picture = json_object_get(about, "picture");
    int n;
    const lw_isa *isas = golden_isas(&n);
    assert_non_null(mkdtemp(dir));
    write_folder(dir, about);
    for (int i = 0; i < n; i++) {
        lw_device *dev = golden_device(isas[i], 2);
        rig r = {.name = json_string_value(json_object_get(about, "name")),
                 .file = file,
                 .batch = (int32_t)json_integer_value(json_array_get(picture, 0)),
                 .h = (int32_t)json_integer_value(json_array_get(picture, 1)),
                 .w = (int32_t)json_integer_value(json_array_get(picture, 2))};
        assert_ok(lw_encoder_open(dir, &r.net));
        rig_build(&r, dev);
        rig_run(&r);
        check_values(&r);
        rig_close(&r);
        lw_backend_close(&dev);
    }
    remove_folder(dir, about);
}

static void test_cases(void **state)
{
    json_t *all = NULL;
    lw_st_file *f = golden_open("vit");
    (void)state;
    assert_ok(lw_json_load(GOLDEN "vit.json", &all));
    for (size_t i = 0; i < json_array_size(all); i++)
        run_case(json_array_get(all, i), f);
    lw_json_drop(&all);
    lw_st_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
