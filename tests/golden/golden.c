/* SPDX-License-Identifier: Apache-2.0 */
/* The formula, layouts, files and comparisons of the golden tests. */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "cpu_device.h"
#include "formats/formats.h"
#include "store/store.h"

/* ---- the formula ----------------------------------------------------------------------------- */

static uint64_t fnv1a(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

static double formula(uint64_t h, int64_t i)
{
    uint64_t z = h + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 40) / 8388608.0 - 1.0;
}

void golden_fill(const char *name, double offset, double scale, int64_t n, float *dst)
{
    uint64_t h = fnv1a(name);
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)(offset + scale * formula(h, i));
}

void golden_unit(const char *name, int64_t n, float *dst)
{
    golden_fill(name, 0.0, sqrt(3.0), n, dst);
}

void golden_integers(const char *name, int64_t n, int32_t below, int32_t *dst)
{
    uint64_t h = fnv1a(name);
    for (int64_t i = 0; i < n; i++)
        dst[i] = (int32_t)floor((formula(h, i) + 1.0) * 0.5 * below);
}

void golden_parameter(const char *name, int rank, const int64_t *shape, float *dst)
{
    int64_t n = 1;
    double offset = 0.0, scale = 0.1;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    if (strcmp(name, "class_embedding.weight") == 0)
        scale = 0.5;
    else if (rank >= 2)
        scale = sqrt(3.0 / (double)(n / shape[0]));
    else if (lw_str_ends(name, "running_var"))
        offset = 1.0, scale = 0.5;
    else if (lw_str_ends(name, "running_mean"))
        scale = 0.2;
    else if (lw_str_ends(name, ".weight"))
        offset = 1.0, scale = 0.25;
    golden_fill(name, offset, scale, n, dst);
}

/* ---- layouts --------------------------------------------------------------------------------- */

void golden_to_nhwc(const float *src, int64_t n, int64_t c, int64_t hw, float *dst)
{
    for (int64_t b = 0; b < n; b++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t i = 0; i < hw; i++)
                dst[(b * hw + i) * c + k] = src[(b * c + k) * hw + i];
}

void golden_to_nchw(const float *src, int64_t n, int64_t c, int64_t hw, float *dst)
{
    for (int64_t b = 0; b < n; b++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t i = 0; i < hw; i++)
                dst[(b * c + k) * hw + i] = src[(b * hw + i) * c + k];
}

/* ---- entries --------------------------------------------------------------------------------- */

int golden_parts(const lw_store_entry *e)
{
    return strstr(e->name, ".to_qkv.") ? 3 : 1;
}

golden_part golden_part_of(const lw_store_entry *e, int k)
{
    golden_part p = {.rank = e->type.rank};
    const char *mark = strstr(e->name, ".to_qkv.");
    if (mark)
        snprintf(p.name, sizeof p.name, "%.*s.to_%c.%s", (int)(mark - e->name), e->name, "qkv"[k],
                 mark + 8);
    else
        snprintf(p.name, sizeof p.name, "%s", e->name);
    static const int order[4] = {0, 3, 1, 2};
    p.count = e->count / golden_parts(e);
    for (int i = 0; i < p.rank; i++)
        p.shape[i] = e->type.dim[p.rank == 4 ? order[i] : i];
    p.shape[0] /= golden_parts(e);
    return p;
}

void golden_part_get(const lw_store_entry *e, int k, const float *data, float *dst)
{
    golden_part p = golden_part_of(e, k);
    if (p.rank == 4)
        golden_to_nchw(data, p.shape[0], p.shape[1], p.shape[2] * p.shape[3], dst);
    else
        memcpy(dst, data + k * p.count, sizeof *dst * (size_t)p.count);
}

void golden_part_put(const lw_store_entry *e, int k, const float *src, float *data)
{
    golden_part p = golden_part_of(e, k);
    if (p.rank == 4)
        golden_to_nhwc(src, p.shape[0], p.shape[1], p.shape[2] * p.shape[3], data);
    else
        memcpy(data + k * p.count, src, sizeof *src * (size_t)p.count);
}

void golden_fill_store(lw_store *s)
{
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        float *tmp = malloc(sizeof *tmp * (size_t)e->count);
        for (int k = 0; k < golden_parts(e); k++) {
            golden_part p = golden_part_of(e, k);
            golden_parameter(p.name, p.rank, p.shape, tmp);
            golden_part_put(e, k, tmp, lw_store_edit(s, i, LW_SLAB_PARAM));
        }
        free(tmp);
    }
    lw_store_touch(s, LW_SLAB_PARAM);
    lw_store_start_ema(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

lw_st_file *golden_open(const char *name)
{
    char path[256];
    lw_st_file *f = NULL;
    snprintf(path, sizeof path, GOLDEN "%s.safetensors", name);
    assert_ok(lw_st_open(path, &f));
    return f;
}

bool golden_has(const lw_st_file *f, const char *name)
{
    return lw_st_find(f, name) != NULL;
}

float *golden_get_f32(const lw_st_file *f, const char *name, int64_t *n)
{
    const lw_st_tensor *t = NULL;
    assert_ok(lw_st_get(f, name, &t));
    float *x = malloc(sizeof *x * (size_t)(t->count + 1));
    lw_elem_to_f32(t->type, t->data, t->count, x);
    if (n)
        *n = t->count;
    return x;
}

double *golden_get(const lw_st_file *f, const char *name, int64_t *n)
{
    const lw_st_tensor *t = NULL;
    assert_ok(lw_st_get(f, name, &t));
    double *x = malloc(sizeof *x * (size_t)(t->count + 1));
    if (t->type == LW_ELEM_F64) {
        memcpy(x, t->data, t->bytes);
    } else {
        float *narrow = golden_get_f32(f, name, NULL);
        for (int64_t i = 0; i < t->count; i++)
            x[i] = (double)narrow[i];
        free(narrow);
    }
    if (n)
        *n = t->count;
    return x;
}

/* ---- comparing ------------------------------------------------------------------------------- */

double golden_relative(const float *have, const double *want, int64_t n, double floor)
{
    double diff = 0.0, norm = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)have[i] - want[i];
        diff += d * d;
        norm += want[i] * want[i];
    }
    return sqrt(diff) / fmax(sqrt(norm), floor);
}

double golden_sketch_error(const char *name, const float *have, int64_t n, const double *sketch,
                           double floor)
{
    double sum = 0.0;
    char key[200];
    for (int k = 0; k < 8; k++) {
        snprintf(key, sizeof key, "sketch:%d:%s", k, name);
        uint64_t h = fnv1a(key);
        double dot = 0.0;
        for (int64_t i = 0; i < n; i++)
            dot += (double)have[i] * formula(h, i);
        sum += (dot - sketch[k + 1]) * (dot - sketch[k + 1]);
    }
    return sqrt(3.0 * sum / 8.0) / fmax(sketch[0], floor);
}

void golden_check(const char *what, double err, double tol)
{
    if (!(err <= tol))
        fail_msg("%s: error %.3g, allowed %.3g", what, err, tol);
}

/* ---- running --------------------------------------------------------------------------------- */

lw_device *golden_device(lw_isa isa, int threads)
{
    const char *other = getenv("LW_GOLDEN_DEVICE");
    lw_device *d = NULL;
    if (other)
        assert_ok(lw_backend_open(other, &(lw_backend_options){.threads = 1}, &d));
    else
        assert_ok(cpu_device(threads, isa, &d));
    return d;
}

bool golden_forward_only(void)
{
    return getenv("LW_GOLDEN_DEVICE") != NULL;
}

const lw_isa *golden_isas(int *n)
{
    static lw_isa levels[2] = {LW_ISA_REF};
    levels[1] = lw_isa_best();
    *n = levels[1] == LW_ISA_REF || golden_forward_only() ? 1 : 2;
    return levels;
}

/* ---- a folder as its authors would write it -------------------------------------------------- */

/* "3x4x5" -> rank */
int golden_shape(const char *text, int64_t shape[4], int64_t *count)
{
    char *at;
    int rank = 0;
    *count = 1;
    for (;; text = at + 1) {
        assert_true(rank < 4);
        shape[rank] = strtoll(text, &at, 10);
        *count *= shape[rank++];
        if (*at != 'x')
            return rank;
    }
}

/* Declares or writes the tensor of a line of `names`: NAME 3x4x5 */
static void write_tensor(lw_st_writer *w, const char *line, size_t n, bool values)
{
    char text[256];
    int64_t shape[4], count;
    assert_true(n < sizeof text);
    snprintf(text, sizeof text, "%.*s", (int)n, line);
    char *at = strchr(text, ' ');
    assert_non_null(at);
    *at = '\0';
    int rank = golden_shape(at + 1, shape, &count);
    if (!values) {
        assert_ok(lw_st_writer_add(w, text, LW_ELEM_F32, rank, shape));
        return;
    }
    float *v = malloc(sizeof *v * (size_t)count);
    golden_parameter(text, rank, shape, v);
    assert_ok(lw_st_writer_put(w, v, sizeof *v * (size_t)count));
    free(v);
}

static void write_tensors(lw_st_writer *w, const char *names, bool values)
{
    assert_non_null(names);
    while (*names) {
        size_t n = strcspn(names, "\n");
        write_tensor(w, names, n, values);
        names += n + (names[n] == '\n');
    }
}

json_t *golden_config(const lw_st_file *f, const char *name)
{
    json_t *j = NULL;
    const char *config = lw_st_meta(f, "config");
    assert_non_null(config);
    assert_ok(lw_json_parse(name, config, strlen(config), &j));
    return j;
}

void golden_write_model(const lw_st_file *f, const char *dir)
{
    char path[128];
    lw_st_writer *w = NULL;
    const char *config = lw_st_meta(f, "config"), *file = lw_st_meta(f, "config_name");
    assert_ok(lw_mkdirs(dir));
    snprintf(path, sizeof path, "%s/%s", dir, file ? file : "config.json");
    if (config)
        assert_ok(lw_file_write(path, config, strlen(config)));
    snprintf(path, sizeof path, "%s/%s", dir, LW_WEIGHTS_HF);
    assert_ok(lw_st_writer_new(path, &w));
    write_tensors(w, lw_st_meta(f, "names"), false);
    write_tensors(w, lw_st_meta(f, "names"), true);
    assert_ok(lw_st_writer_finish(w));
    lw_st_writer_free(&w);
}
