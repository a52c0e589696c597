/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters in files: layouts, prefixes, types, and what is wrong with a file. */
#include "unit/test_store_util.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "formats/formats.h"
#include "store/store.h"

static lw_store *filled(bool frozen)
{
    lw_store *s = small_store(frozen);
    lw_store_init(s, 5);
    return s;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void test_save_is_pytorch(void **state)
{
    lw_store *s = filled(false);
    lw_st_file *f = NULL;
    const lw_st_tensor *t = NULL;
    (void)state;
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, in_scratch("m.safetensors"),
                            (const char *[]){"who", "test"}, 1));
    assert_ok(lw_st_open(in_scratch("m.safetensors"), &f));
    assert_string_equal(lw_st_meta(f, "format"), "pt");
    assert_string_equal(lw_st_meta(f, "who"), "test");
    assert_int_equal(lw_st_count(f), 9);
    assert_ok(lw_st_get(f, "conv.weight", &t));
    assert_int_equal(t->rank, 4);
    assert_int_equal(t->shape[1], 3);
    const float *here = lw_store_data(s, 0, LW_SLAB_PARAM), *there = t->data;
    for (int o = 0; o < 5; o++)
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < 3; y++)
                for (int x = 0; x < 3; x++)
                    assert_true(there[((o * 3 + c) * 3 + y) * 3 + x] ==
                                here[((o * 3 + y) * 3 + x) * 3 + c]);
    static const char *const parts[] = {"attn.to_q.weight", "attn.to_k.weight", "attn.to_v.weight"};
    here = lw_store_data(s, 2, LW_SLAB_PARAM);
    for (int k = 0; k < 3; k++) {
        assert_ok(lw_st_get(f, parts[k], &t));
        assert_true(t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 2);
        assert_memory_equal(t->data, here + 4 * k, 16);
    }
    assert_null(lw_st_find(f, "attn.to_qkv.weight"));
    lw_st_close(&f);
    lw_store_free(&s);
}

static void test_round_trip(void **state)
{
    lw_store *s = filled(false), *frozen = small_store(true);
    (void)state;
    lw_store_edit(s, 0, LW_SLAB_EMA)[3] = 42.0f;
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, in_scratch("p.safetensors"), NULL, 0));
    assert_ok(lw_store_save(s, LW_SLAB_EMA, in_scratch("e.safetensors"), NULL, 0));
    uint64_t v = lw_store_version(frozen, LW_SLAB_PARAM);
    assert_ok(lw_store_load(frozen, LW_SLAB_PARAM, in_scratch("p.safetensors"), NULL));
    assert_true(lw_store_version(frozen, LW_SLAB_PARAM) > v);
    assert_true(lw_store_hash(frozen, LW_SLAB_PARAM) == lw_store_hash(s, LW_SLAB_PARAM));
    assert_ok(lw_store_load(s, LW_SLAB_PARAM, in_scratch("e.safetensors"), NULL));
    assert_true(lw_store_data(s, 0, LW_SLAB_PARAM)[3] == 42.0f);
    assert_true(lw_store_hash(s, LW_SLAB_PARAM) == lw_store_hash(s, LW_SLAB_EMA));
    assert_fails(LW_EUSAGE, "no such slab",
                 lw_store_save(frozen, LW_SLAB_EMA, in_scratch("x"), NULL, 0));
    lw_store_free(&s);
    lw_store_free(&frozen);
}

/* ---- foreign files --------------------------------------------------------------------------- */

typedef struct wanted {
    const char *name;
    int rank;
    int64_t shape[4];
} wanted;

static const wanted whole[] = {
    {"conv.weight", 4, {5, 3, 3, 3}}, {"conv.bias", 1, {5}},
    {"attn.to_q.weight", 2, {2, 2}},  {"attn.to_k.weight", 2, {2, 2}},
    {"attn.to_v.weight", 2, {2, 2}},  {"attn.to_q.bias", 1, {2}},
    {"attn.to_k.bias", 1, {2}},       {"attn.to_v.bias", 1, {2}},
    {"norm.weight", 1, {7}},
};

/* Writes the rows with `prefix` before each name, in element type e, value = index + 1 (and row
 * number). */
static void write_rows(const char *path, const wanted *rows, size_t n, const char *prefix,
                       lw_elem e)
{
    lw_st_writer *w = NULL;
    char name[128];
    float x[512];
    assert_ok(lw_st_writer_new(path, &w));
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, rows[i].name);
        assert_ok(lw_st_writer_add(w, name, e, rows[i].rank, rows[i].shape));
    }
    for (size_t i = 0; i < n; i++) {
        int64_t count = 1;
        for (int d = 0; d < rows[i].rank; d++)
            count *= rows[i].shape[d];
        unsigned char bytes[4096];
        for (int64_t k = 0; k < count; k++)
            x[k] = (float)(k + 1) + 0.5f * (float)(i % 2);
        if (lw_elem_from_f32(e, x, count, bytes) < 0)
            memset(bytes, 1, sizeof bytes);
        assert_ok(lw_st_writer_put(w, bytes, lw_elem_size(e) * (size_t)count));
    }
    assert_ok(lw_st_writer_finish(w));
    lw_st_writer_free(&w);
}

static void test_prefixes_and_types(void **state)
{
    static const char *const prefix[] = {"", "module.", "_orig_mod.", "ema_model.",
                                         "module._orig_mod."};
    static const lw_elem types[] = {LW_ELEM_F32, LW_ELEM_F16, LW_ELEM_BF16, LW_ELEM_F64};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(prefix); i++) {
        lw_store *s = small_store(true);
        write_rows(in_scratch("f.safetensors"), whole, LW_COUNT(whole), prefix[i], types[i % 4]);
        assert_ok(lw_store_load(s, LW_SLAB_PARAM, in_scratch("f.safetensors"), NULL));
        const float *w = lw_store_data(s, 0, LW_SLAB_PARAM);
        assert_true(w[0] == 1.0f && w[1] == 10.0f &&
                    w[3] == 2.0f); /* [o][y][x][c] of 1 + index in OIHW */
        const float *qkv = lw_store_data(s, 2, LW_SLAB_PARAM);
        assert_true(qkv[0] == 1.0f && qkv[4] == 1.5f && qkv[8] == 1.0f && qkv[11] == 4.0f);
        lw_store_free(&s);
    }
}

static void test_renaming(void **state)
{
    static const wanted old[] = {
        {"conv.weight", 4, {5, 3, 3, 3}}, {"conv.bias", 1, {5}},
        {"attn.query.weight", 2, {2, 2}}, {"attn.key.weight", 4, {2, 2, 1, 1}},
        {"attn.value.weight", 2, {2, 2}}, {"attn.query.bias", 1, {2}},
        {"attn.key.bias", 1, {2}},        {"attn.value.bias", 1, {2}},
        {"norm.weight", 1, {7}},
    };
    static const lw_name_rule rules[] = {
        {.file = "*.query.*", .store = "*.to_qkv.*", .store_rows = {0, 1, 3}},
        {.file = "*.key.*", .store = "*.to_qkv.*", .store_rows = {1, 1, 3}},
        {.file = "*.value.*", .store = "*.to_qkv.*", .store_rows = {2, 1, 3}},
        {0}};
    const lw_naming namings[] = {{.name = "new"}, {.name = "old", .rules = rules}, {0}};
    lw_store *s = small_store(true);
    (void)state;
    write_rows(in_scratch("old.safetensors"), old, LW_COUNT(old), "", LW_ELEM_F32);
    assert_fails(LW_EFORMAT,
                 "missing key(s) (6): 'attn.to_q.weight', 'attn.to_k.weight', 'attn.to_v.weight', "
                 "'attn.to_q.bias', 'attn.to_k.bias', ...; unexpected key(s) (6): "
                 "'attn.key.bias', 'attn.key.weight', 'attn.query.bias', 'attn.query.weight', "
                 "'attn.value.bias', ...",
                 lw_store_load(s, LW_SLAB_PARAM, in_scratch("old.safetensors"), NULL));
    assert_ok(lw_store_load(s, LW_SLAB_PARAM, in_scratch("old.safetensors"), namings));
    assert_true(lw_store_data(s, 2, LW_SLAB_PARAM)[4] == 1.5f);
    lw_store_free(&s);
}

/* A state_dict of torch.save is as good as safetensors. */
static void test_torch_file(void **state)
{
    lw_store *s = NULL;
    (void)state;
    assert_ok(lw_store_new(true, &s));
    declare(s, "weight", lw_type_of(LW_F32, 2, 2, 2), (lw_init){0});
    declare(s, "bias", lw_type_of(LW_F32, 1, 2), (lw_init){0});
    assert_ok(lw_store_fix(s));
    assert_ok(lw_store_load(s, LW_SLAB_PARAM, CORPUS "torch/wrapped.pth", NULL));
    assert_true(lw_store_data(s, 0, LW_SLAB_PARAM)[3] == 4.0f);
    assert_true(lw_store_data(s, 1, LW_SLAB_PARAM)[1] == 6.0f);
    lw_store_free(&s);
}

static void test_centre_crop(void **state)
{
    static const wanted wide[] = {{"conv1.weight", 4, {2, 1, 7, 7}}};
    static const lw_name_rule rules[] = {
        {.file = "conv1.weight", .store = "conv1.weight", .values = LW_VALUES_CENTRE}, {0}};
    const lw_naming namings[] = {{.name = "cut", .rules = rules}, {0}};
    lw_store *s = NULL;
    (void)state;
    assert_ok(lw_store_new(true, &s));
    declare(s, "conv1.weight", lw_type_of(LW_F32, 4, 2, 3, 3, 1), (lw_init){0});
    assert_ok(lw_store_fix(s));
    write_rows(in_scratch("wide.safetensors"), wide, 1, "", LW_ELEM_F32);
    assert_fails(LW_EFORMAT, "size mismatch (1): 'conv1.weight' (file [2,1,7,7], model [2,1,3,3])",
                 lw_store_load(s, LW_SLAB_PARAM, in_scratch("wide.safetensors"), NULL));
    assert_ok(lw_store_load(s, LW_SLAB_PARAM, in_scratch("wide.safetensors"), namings));
    const float *w = lw_store_data(s, 0, LW_SLAB_PARAM);
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++) {
            assert_true(w[y * 3 + x] == (float)((y + 2) * 7 + x + 3));
            assert_true(w[9 + y * 3 + x] == (float)(49 + (y + 2) * 7 + x + 3));
        }
    lw_store_free(&s);
}

static void test_bad_files(void **state)
{
    lw_store *s = filled(false);
    wanted rows[LW_COUNT(whole)];
    uint64_t before = lw_store_hash(s, LW_SLAB_PARAM);
    const char *path = in_scratch("bad.safetensors");
    (void)state;
    write_rows(path, whole, LW_COUNT(whole) - 1, "", LW_ELEM_F32);
    assert_fails(LW_EFORMAT, "missing key(s) (1): 'norm.weight'",
                 lw_store_load(s, LW_SLAB_PARAM, path, NULL));
    memcpy(rows, whole, sizeof rows);
    rows[0].shape[0] = 6;
    write_rows(path, rows, LW_COUNT(rows), "", LW_ELEM_F32);
    assert_fails(LW_EFORMAT,
                 "bad.safetensors: not the tensors of this model: size mismatch (1): 'conv.weight' "
                 "(file [6,3,3,3], model [5,3,3,3])",
                 lw_store_load(s, LW_SLAB_PARAM, path, NULL));
    memcpy(rows, whole, sizeof rows);
    rows[8].rank = 2; /* [7,1] is a [7] with a tail of ones: taken */
    rows[8].shape[1] = 1;
    write_rows(path, rows, LW_COUNT(rows), "", LW_ELEM_F32);
    lw_store *ok = small_store(true);
    assert_ok(lw_store_load(ok, LW_SLAB_PARAM, path, NULL));
    lw_store_free(&ok);
    write_rows(path, whole, LW_COUNT(whole), "", LW_ELEM_I32);
    assert_fails(LW_EFORMAT, "is I32, weights must be F32, F16 or BF16",
                 lw_store_load(s, LW_SLAB_PARAM, path, NULL));
    assert_fails(LW_EIO, "none.safetensors",
                 lw_store_load(s, LW_SLAB_PARAM, in_scratch("none.safetensors"), NULL));
    assert_true(lw_store_hash(s, LW_SLAB_PARAM) == before); /* nothing was touched */
    lw_store_free(&s);
}

static void test_not_finite(void **state)
{
    lw_store *s = filled(false), *t = filled(false);
    (void)state;
    lw_store_edit(t, 4, LW_SLAB_PARAM)[6] = INFINITY;
    assert_ok(lw_store_save(t, LW_SLAB_PARAM, in_scratch("inf.safetensors"), NULL, 0));
    uint64_t before = lw_store_hash(s, LW_SLAB_PARAM);
    assert_fails(LW_EFORMAT, "'norm.weight' holds values that are not finite",
                 lw_store_load(s, LW_SLAB_PARAM, in_scratch("inf.safetensors"), NULL));
    assert_true(lw_store_hash(s, LW_SLAB_PARAM) == before);
    lw_store_free(&s);
    lw_store_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save_is_pytorch),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_prefixes_and_types), cmocka_unit_test(test_renaming),
        cmocka_unit_test(test_centre_crop),        cmocka_unit_test(test_torch_file),
        cmocka_unit_test(test_bad_files),          cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
