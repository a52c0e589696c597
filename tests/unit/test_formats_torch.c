/* SPDX-License-Identifier: Apache-2.0 */
/* Files that torch wrote (tools/golden/torch_files.py): their tensors, and what is refused. */
#include "unit/test_formats_util.h"

#include <math.h>

#define TORCH CORPUS "torch/"

static lw_st_file *opened(const char *name)
{
    char path[128];
    lw_st_file *f = NULL;
    snprintf(path, sizeof path, TORCH "%s", name);
    assert_ok(lw_st_open(path, &f));
    return f;
}

static void expect(const lw_st_file *f, const char *name, lw_elem type, int rank,
                   const int64_t *shape, const float *values)
{
    float have[64];
    const lw_st_tensor *t = NULL;
    assert_ok(lw_st_get(f, name, &t));
    assert_int_equal(t->type, type);
    assert_int_equal(t->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(t->shape[i], shape[i]);
    assert_int_equal(t->bytes, (size_t)t->count * lw_elem_size(type));
    lw_elem_to_f32(t->type, t->data, t->count, have);
    for (int64_t i = 0; i < t->count; i++)
        if (have[i] != values[i])
            fail_msg("%s[%d] is %g, not %g", name, (int)i, (double)have[i], (double)values[i]);
}

static void reads_every_type_and_stride(void **state)
{
    float plain[24], turned[12], part[4];
    lw_st_file *f = opened("state.pth");
    (void)state;
    for (int i = 0; i < 24; i++)
        plain[i] = (float)i;
    for (int i = 0; i < 12; i++)
        turned[i] = (float)(i % 3 * 4 + i / 3);
    for (int i = 0; i < 4; i++)
        part[i] = (float)(i / 2 * 12 + (1 + i % 2) * 4 + 1);
    assert_int_equal(lw_st_count(f), 11);
    expect(f, "plain.weight", LW_ELEM_F32, 3, (const int64_t[]){2, 3, 4}, plain);
    expect(f, "turned.weight", LW_ELEM_F32, 2, (const int64_t[]){4, 3}, turned);
    expect(f, "part.weight", LW_ELEM_F32, 2, (const int64_t[]){2, 2}, part);
    expect(f, "half.weight", LW_ELEM_F16, 1, (const int64_t[]){2}, (const float[]){1.5f, -2});
    expect(f, "bf16.weight", LW_ELEM_BF16, 1, (const int64_t[]){2}, (const float[]){1.5f, -2});
    expect(f, "double.weight", LW_ELEM_F64, 1, (const int64_t[]){1}, (const float[]){0.1f});
    expect(f, "num_batches_tracked", LW_ELEM_I64, 0, NULL, (const float[]){7});
    expect(f, "bytes", LW_ELEM_U8, 1, (const int64_t[]){2}, (const float[]){1, 255});
    expect(f, "chars", LW_ELEM_I8, 1, (const int64_t[]){2}, (const float[]){-1, 2});
    expect(f, "truth", LW_ELEM_BOOL, 1, (const int64_t[]){2}, (const float[]){1, 0});
    expect(f, "empty", LW_ELEM_F32, 2, (const int64_t[]){0, 3}, NULL);
    lw_st_close(&f);
}

/* A state_dict with _metadata, inside of what a script saved, of parameters, of later protocols. */
static void finds_the_state_dict(void **state)
{
    static const char *const files[] = {"module.bin", "wrapped.pth", "parameters.pt",
                                        "protocol4.pt", "protocol5.pt"};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(files); i++) {
        lw_st_file *f = opened(files[i]);
        assert_int_equal(lw_st_count(f), 2);
        expect(f, "weight", LW_ELEM_F32, 2, (const int64_t[]){2, 2}, (const float[]){1, 2, 3, 4});
        expect(f, "bias", LW_ELEM_F32, 1, (const int64_t[]){2}, (const float[]){5, 6});
        lw_st_close(&f);
    }
}

static void refuses_what_is_no_weights(void **state)
{
    static const struct {
        const char *file, *part;
    } bad[] = {
        {"runs.pth", "its pickle wants 'posix.getcwd', which is no part of weights"},
        {"hostile_system.pth", "its pickle wants 'posix.system', which is no part of weights"},
        {"hostile_eval.pth", "its pickle wants '__builtin__.eval'"},
        {"hostile_chain.pth", "its pickle wants '__builtin__.getattr'"},
        {"hostile_key.pth", "its pickle wants 'posix.system'"},
        {"hostile_protocol4.pth", "its pickle wants 'posix.system'"},
        {"hostile_bomb.pth", "is compressed or encrypted"},
        {"whole_module.pth", "its pickle wants 'torch.nn.modules.linear.Linear'"},
        {"old.pth", "written by torch before 1.6"},
        {"expanded.pth", "tensor 'a' repeats values"},
        {"no_tensors.pth", "holds no state_dict"},
        {"script.pt", "a TorchScript file is a program, which is not read"},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        char path[128];
        lw_st_file *f = NULL;
        snprintf(path, sizeof path, TORCH "%s", bad[i].file);
        assert_fails(LW_EFORMAT, bad[i].part, lw_st_open(path, &f));
        assert_null(f);
    }
}

/* ---- state.pth with other bytes -------------------------------------------------------------- */

#define BYTES(text) text, sizeof text - 1 /* which may hold zeros */

typedef struct patch {
    const char *from;
    size_t n;
    const char *to;   /* as many bytes */
    const char *part; /* of the message; NULL: none */
} patch;

static void refuses_damage(void **state)
{
    static const patch patches[] = {
        {BYTES("collections\nOrderedDic"), "collectionz\nOrderedDic",
         "wants 'collectionz.OrderedDict'"},
        {BYTES("ctorch._utils\n_rebuild"), "Gtorch._utils\n_rebuild", "opcode 0x"},
        {BYTES("X\x0c\0\0\0plain.weigh"), "i\x0c\0\0\0plain.weigh", "opcode 0x69"},
        {BYTES("K\2K\3K\4"), "K\2K\3K\5", "tensor 'plain.weight' reaches beyond its storage"},
        {BYTES("X\x0b\0\0\0half.weigh"), "X\x0b\0\0\0bf16.weigh", "'bf16.weight' is there twice"},
        {BYTES("X\x0b\0\0\0half.weigh"), "X\x0b\0\0\0ha\0f.weigh", "a zero in a name"},
        {BYTES("X\x0b\0\0\0half.weigh"), "X\x0b\xff\xff\x7fhalf.weigh", "it ends too early"},
        {BYTES("HalfStorag"), "LongStorag", "a storage that is shorter than it says"},
        {BYTES("state/data/3"), "state/data/X", NULL}, /* the local name: nobody asks it */
        {BYTES("littl"), "biggg", "big-endian"},
        {BYTES("PK\5"), "PX\5", "its end is missing"},
        {BYTES("PK\1"), "PX\1", "its directory is damaged"},
    };
    (void)state;
    char *bytes = NULL;
    size_t size = 0;
    assert_ok(lw_file_read(TORCH "state.pth", 1 << 20, &bytes, &size));
    for (size_t i = 0; i < LW_COUNT(patches); i++) {
        const patch *p = &patches[i];
        lw_st_file *f = NULL;
        char *at = memmem(bytes, size, p->from, p->n);
        if (!at)
            fail_msg("patch %zu: not there", i);
        memcpy(at, p->to, p->n);
        if (p->part)
            assert_fails(LW_EFORMAT, p->part, lw_st_parse("t.pth", bytes, size, &f));
        else
            assert_ok(lw_st_parse("t.pth", bytes, size, &f));
        lw_st_close(&f);
        memcpy(at, p->from, p->n);
    }
    lw_free(&bytes);
}

static void survives_every_cut_and_flip(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t size = 0;
    assert_ok(lw_file_read(TORCH "protocol4.pt", 1 << 20, &bytes, &size));
    for (size_t n = 0; n < size; n++) {
        lw_st_file *f = NULL;
        char *cut = malloc(n + 1); /* of exactly these bytes: a sanitizer sees one too many */
        memcpy(cut, bytes, n);
        assert_true(lw_st_parse("cut", cut, n, &f) < 0);
        free(cut);
        for (int bit = 0; bit < 8; bit += 3) {
            bytes[n] ^= (char)(1 << bit);
            if (lw_st_parse("flip", bytes, size, &f) == 0)
                assert_true(lw_st_count(f) <= 2);
            lw_st_close(&f);
            bytes[n] ^= (char)(1 << bit);
        }
    }
    lw_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_type_and_stride), cmocka_unit_test(finds_the_state_dict),
        cmocka_unit_test(refuses_what_is_no_weights),  cmocka_unit_test(refuses_damage),
        cmocka_unit_test(survives_every_cut_and_flip),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
