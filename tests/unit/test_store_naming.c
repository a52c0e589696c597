/* SPDX-License-Identifier: Apache-2.0 */
/* Files that others name: rules from their tensors to the store's and back. */
#include "unit/test_store_util.h"

#include <math.h>

#include "base/base.h"
#include "formats/formats.h"
#include "ir/ir.h"
#include "store/store.h"

/* ---- a small transformer --------------------------------------------------------------------- */

enum { D = 4, MLP = 6, OUT = 3, TOKENS = 5 };

static lw_store *transformer(uint64_t seed)
{
    lw_store *s = NULL;
    const lw_init n = {LW_INIT_NORMAL, 0.5f};
    assert_ok(lw_store_new(true, &s));
    declare(s, "patch.weight", lw_type_of(LW_F32, 4, D, 2, 2, 3), n);
    declare(s, "cls", lw_type_of(LW_F32, 1, D), n);
    declare(s, "pos", lw_type_of(LW_F32, 2, TOKENS, D), n);
    for (int i = 0; i < 11; i += 10) { /* numbers of one and of two digits */
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.attn.to_qkv.weight", i);
        declare(s, name, lw_type_of(LW_F32, 2, 3 * D, D), n);
        snprintf(name, sizeof name, "blocks.%d.attn.to_qkv.bias", i);
        declare(s, name, lw_type_of(LW_F32, 1, 3 * D), n);
        snprintf(name, sizeof name, "blocks.%d.fc.weight", i);
        declare(s, name, lw_type_of(LW_F32, 2, MLP, D), n);
    }
    declare(s, "pool.q.weight", lw_type_of(LW_F32, 2, D, D), n);
    declare(s, "pool.kv.weight", lw_type_of(LW_F32, 2, 2 * D, D), n);
    declare(s, "proj.weight", lw_type_of(LW_F32, 2, OUT, D), n);
    assert_ok(lw_store_fix(s));
    lw_store_init(s, seed);
    return s;
}

static const lw_name_rule hf[] = {
    {.file = "embed.patch.*", .store = "patch.*"},
    {.file = "embed.cls", .store = "cls"},
    {.file = "embed.pos", .store = "pos"},
    {.file = "layers.*.q_proj.*", .store = "blocks.*.attn.to_qkv.*", .store_rows = {0, 1, 3}},
    {.file = "layers.*.k_proj.*", .store = "blocks.*.attn.to_qkv.*", .store_rows = {1, 1, 3}},
    {.file = "layers.*.v_proj.*", .store = "blocks.*.attn.to_qkv.*", .store_rows = {2, 1, 3}},
    {.file = "layers.*.fc1.*", .store = "blocks.*.fc.*"},
    {.file = "head.in_proj_weight", .store = "pool.q.weight", .file_rows = {0, 1, 3}},
    {.file = "head.in_proj_weight", .store = "pool.kv.weight", .file_rows = {1, 2, 3}},
    {.file = "visual_projection.*", .store = "proj.*", .bare = true},
    {0},
};
static const lw_name_rule timm[] = {
    {.file = "patch_embed.proj.*", .store = "patch.*"},
    {.file = "cls_token", .store = "cls", .ones = 2},
    {.file = "pos_embed", .store = "pos", .ones = 1},
    {.file = "blocks.*.attn.qkv.*", .store = "blocks.*.attn.to_qkv.*"},
    {.file = "attn_pool.*.*", .store = "pool.*.*"},
    {.file = "visual.proj", .store = "proj.weight", .values = LW_VALUES_TRANSPOSED},
    {0},
};
static const char *const text_tower[] = {"text_model.**", "logit_scale", NULL};
static const lw_naming namings[] = {
    {.name = "transformers", .prefix = "vision.", .rules = hf, .ignored = text_tower},
    {.name = "timm", .rules = timm},
    {0},
};

static void test_patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {
        {"a.*.b", "a.12.b", true},
        {"a.*.b", "a.1.2.b", false},
        {"a.*.b", "a..b", false},
        {"a.**.b", "a.1.2.b", true},
        {"**x", "x", true},
        {"**.x", "x", false},
        {"*", "", false},
        {"**", "", true},
        {"a.*", "a.weight", true},
        {"a.*", "a.b.weight", false},
        {"a", "a.b", false},
        {"a.b", "a", false},
        {"**.q.*", "q.q.q.q", true},
        {"pi_**", "pi_x.y", true},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        bool fits = lw_naming_fits(rows[i].pattern, rows[i].text);
        if (fits != rows[i].fits)
            fail_msg("%s and %s: %d", rows[i].pattern, rows[i].text, (int)fits);
    }
}

static const lw_st_tensor *tensor(const lw_st_file *f, const char *name, int rank, int64_t first,
                                  int64_t last)
{
    const lw_st_tensor *t = NULL;
    assert_ok(lw_st_get(f, name, &t));
    assert_int_equal(t->rank, rank);
    assert_int_equal(t->shape[0], first);
    assert_int_equal(t->shape[rank - 1], last);
    return t;
}

static const float *values(const lw_store *s, const char *name)
{
    int32_t i = lw_store_find(s, name);
    assert_true(i >= 0);
    return lw_store_data(s, i, LW_SLAB_PARAM);
}

/* What is written lies as its naming says, and is read back to the bit. */
static void test_transformers(void **state)
{
    lw_store *s = transformer(3), *back = transformer(4);
    lw_st_file *f = NULL;
    const char *path = in_scratch("hf.safetensors");
    (void)state;
    assert_ok(lw_store_save_as(s, LW_SLAB_PARAM, path, &namings[0], LW_ELEM_F32, NULL, 0));
    assert_ok(lw_st_open(path, &f));
    assert_int_equal(lw_st_count(f), 19);
    const lw_st_tensor *t = tensor(f, "vision.layers.10.k_proj.weight", 2, D, D);
    assert_memory_equal(t->data, values(s, "blocks.10.attn.to_qkv.weight") + D * D, 4 * D * D);
    t = tensor(f, "vision.head.in_proj_weight", 2, 3 * D, D);
    assert_memory_equal(t->data, values(s, "pool.q.weight"), 4 * D * D);
    assert_memory_equal((const float *)t->data + D * D, values(s, "pool.kv.weight"), 8 * D * D);
    tensor(f, "vision.embed.patch.weight", 4, D, 2);
    tensor(f, "visual_projection.weight", 2, OUT, D);
    assert_ptr_equal(lw_naming_find(namings, f, "proj.weight"),
                     lw_st_find(f, "visual_projection.weight"));
    assert_ptr_equal(lw_naming_find(namings, f, "blocks.0.attn.to_qkv.bias"),
                     lw_st_find(f, "vision.layers.0.q_proj.bias"));
    assert_null(lw_naming_find(namings, f, "blocks.3.fc.weight"));
    assert_ok(lw_store_load_from(back, LW_SLAB_PARAM, f, namings));
    assert_true(lw_store_hash(back, LW_SLAB_PARAM) == lw_store_hash(s, LW_SLAB_PARAM));
    lw_st_close(&f);
    lw_store_free(&s);
    lw_store_free(&back);
}

static void test_timm(void **state)
{
    lw_store *s = transformer(5), *back = transformer(6);
    lw_st_file *f = NULL;
    const char *path = in_scratch("timm.safetensors");
    (void)state;
    assert_ok(lw_store_save_as(s, LW_SLAB_PARAM, path, &namings[1], LW_ELEM_F32, NULL, 0));
    assert_ok(lw_st_open(path, &f));
    tensor(f, "cls_token", 3, 1, D);
    tensor(f, "pos_embed", 3, 1, D);
    tensor(f, "blocks.0.attn.qkv.weight", 2, 3 * D, D);
    tensor(f, "attn_pool.kv.weight", 2, 2 * D, D);
    const float *turned = tensor(f, "visual.proj", 2, D, OUT)->data;
    for (int o = 0; o < OUT; o++)
        for (int i = 0; i < D; i++)
            assert_true(turned[i * OUT + o] == values(s, "proj.weight")[o * D + i]);
    assert_ok(lw_store_load_from(back, LW_SLAB_PARAM, f, namings));
    assert_true(lw_store_hash(back, LW_SLAB_PARAM) == lw_store_hash(s, LW_SLAB_PARAM));
    lw_st_close(&f);
    lw_store_free(&s);
    lw_store_free(&back);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

/* Writes the tensors of a file again, without `drop` and with `add` of shape [2]. */
static void rewrite(const char *from, const char *to, const char *drop, const char *add)
{
    lw_st_file *f = NULL;
    lw_st_tensor t[32];
    static const float two[2] = {1.0f, 2.0f};
    size_t n = 0;
    assert_ok(lw_st_open(from, &f));
    for (size_t i = 0; i < lw_st_count(f); i++)
        if (!drop || !lw_str_eq(lw_st_at(f, i)->name, drop))
            t[n++] = *lw_st_at(f, i);
    if (add)
        t[n++] = (lw_st_tensor){add, LW_ELEM_F32, 1, {2}, 2, sizeof two, two};
    assert_ok(lw_st_save(to, t, n, NULL, 0));
    lw_st_close(&f);
}

static void test_what_differs(void **state)
{
    lw_store *s = transformer(3);
    char hf_path[256], bad[256];
    snprintf(hf_path, sizeof hf_path, "%s", in_scratch("hf.safetensors"));
    snprintf(bad, sizeof bad, "%s", in_scratch("bad.safetensors"));
    (void)state;
    rewrite(hf_path, bad, NULL, "text_model.x");
    assert_ok(lw_store_load(s, LW_SLAB_PARAM, bad, namings));
    rewrite(hf_path, bad, NULL, "vision.embed.position_ids");
    assert_ok(lw_store_load(s, LW_SLAB_PARAM, bad, namings));
    rewrite(hf_path, bad, NULL, "vision.layers.0.q_proj.lora");
    assert_fails(LW_EFORMAT,
                 "bad.safetensors: not the tensors of this model, named as by transformers: "
                 "unexpected key(s) (1): 'vision.layers.0.q_proj.lora'",
                 lw_store_load(s, LW_SLAB_PARAM, bad, namings));
    rewrite(hf_path, bad, "vision.embed.cls", "vision.embed.CLS");
    assert_fails(LW_EFORMAT,
                 "missing key(s) (1): 'vision.embed.cls'; unexpected key(s) (1): "
                 "'vision.embed.CLS'",
                 lw_store_load(s, LW_SLAB_PARAM, bad, namings));
    rewrite(hf_path, bad, "vision.embed.cls", "vision.embed.cls");
    assert_fails(LW_EFORMAT, "size mismatch (1): 'vision.embed.cls' (file [2], model [4])",
                 lw_store_load(s, LW_SLAB_PARAM, bad, namings));
    /* two names of one tensor: one is too many */
    rewrite(hf_path, bad, NULL, "module.vision.embed.cls");
    assert_fails(LW_EFORMAT, "'module.vision.embed.cls'",
                 lw_store_load(s, LW_SLAB_PARAM, bad, namings));
    lw_store_free(&s);
}

/* ---- I8 with scales -------------------------------------------------------------------------- */

static void write_i8(const char *path, int64_t scales, lw_elem of, float first)
{
    static const int8_t q[12] = {-128, 127, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const float scale[4] = {first, 2.0f, 0.25f, 1.0f};
    const lw_st_tensor t[2] = {
        {"c.weight_q", of, 4, {2, 3, 1, 2}, 12, 12, q},
        {"c.weight_scale", LW_ELEM_F32, 1, {scales}, scales, 4 * (size_t)scales, scale}};
    assert_ok(lw_st_save(path, t, 2, NULL, 0));
}

static void test_i8(void **state)
{
    lw_store *s = NULL;
    const char *path = in_scratch("i8.safetensors");
    (void)state;
    assert_ok(lw_store_new(true, &s));
    declare(s, "c.weight", lw_type_of(LW_F32, 4, 2, 1, 2, 3), (lw_init){0});
    assert_ok(lw_store_fix(s));
    write_i8(path, 2, LW_ELEM_I8, 0.5f);
    assert_ok(lw_store_load(s, LW_SLAB_PARAM, path, NULL));
    static const float want[12] = {-64, 0.5f, 1.5f, 63.5f, 1, 2, 10, 14, 18, 12, 16, 20};
    assert_memory_equal(values(s, "c.weight"), want, sizeof want);
    write_i8(path, 3, LW_ELEM_I8, 0.5f);
    assert_fails(LW_EFORMAT, "'c.weight_scale' (file [3], model [2])",
                 lw_store_load(s, LW_SLAB_PARAM, path, NULL));
    write_i8(path, 2, LW_ELEM_I8, INFINITY);
    assert_fails(LW_EFORMAT, "'c.weight_q' holds values that are not finite",
                 lw_store_load(s, LW_SLAB_PARAM, path, NULL));
    write_i8(path, 2, LW_ELEM_U8, 0.5f);
    assert_fails(LW_EFORMAT, "'c.weight_q' is U8", lw_store_load(s, LW_SLAB_PARAM, path, NULL));
    lw_store_free(&s);
}

/* A rule that leads to the store but not back. */
static void test_no_way_back(void **state)
{
    static const lw_name_rule q_only[] = {
        {.file = "head.in_proj_weight", .store = "pool.q.weight", .file_rows = {0, 1, 3}}, {0}};
    const lw_naming part = {.name = "part", .rules = q_only};
    lw_store *s = transformer(1);
    (void)state;
    assert_fails(
        LW_EUNSUPPORTED,
        "tensor 'head.in_proj_weight' cannot be made from this model in the names of part",
        lw_store_save_as(s, LW_SLAB_PARAM, in_scratch("part"), &part, LW_ELEM_F32, NULL, 0));
    lw_store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns), cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_timm),     cmocka_unit_test(test_what_differs),
        cmocka_unit_test(test_i8),       cmocka_unit_test(test_no_way_back),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
