/* SPDX-License-Identifier: Apache-2.0 */
/* formats: element conversions, .npy and .npz. */
#include "unit/test_formats_util.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>

#include "formats/formats_half.h"
#include "base/base.h"
#include "formats/formats.h"

static void every_half_survives_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = lw_f16_to_f32((uint16_t)h), b = lw_bf16_to_f32((uint16_t)h);
        if (isnan(f))
            assert_true((lw_f32_to_f16(f) & 0x7fff) > 0x7c00);
        else
            assert_int_equal(lw_f32_to_f16(f), h);
        if (isnan(b))
            assert_true((lw_bf16_of_f32(b) & 0x7fff) > 0x7f80);
        else
            assert_int_equal(lw_bf16_of_f32(b), h);
    }
}

/* Between two neighbouring halves the nearer one wins, and at the middle the even one. */
static void halves_round_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float lo = lw_f16_to_f32((uint16_t)h), hi = lw_f16_to_f32((uint16_t)(h + 1));
        float mid = 0.5f * (lo + hi); /* exact in f32 */
        uint32_t even = h & 1 ? h + 1 : h;
        assert_int_equal(lw_f32_to_f16(mid), even);
        assert_int_equal(lw_f32_to_f16(nextafterf(mid, 0)), h);
        assert_int_equal(lw_f32_to_f16(nextafterf(mid, 1e9f)), h + 1);
        assert_int_equal(lw_f32_to_f16(-mid), even | 0x8000);
    }
    assert_int_equal(lw_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(lw_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(lw_bf16_of_f32(1.00390625f), 0x3f80);   /* 1 + 2^-8, a tie: even */
    assert_int_equal(lw_bf16_of_f32(1.01171875f), 0x3f82);   /* 1 + 3 2^-8, a tie: even */
    assert_int_equal(lw_bf16_of_f32(3.4028235e38f), 0x7f80); /* overflow */
}

static void elements_convert_from_any_alignment(void **state)
{
    (void)state;
    unsigned char raw[1 + 3 * 8];
    float out[3], back[3] = {1.5f, -2, 70000};
    const int64_t i64[3] = {-1, 0, 1ll << 40};
    memcpy(raw + 1, i64, sizeof i64);
    lw_elem_to_f32(LW_ELEM_I64, raw + 1, 3, out);
    assert_true(out[0] == -1 && out[1] == 0 && out[2] == 0x1p40f);
    const int16_t i16[3] = {-32768, 5, 32767};
    memcpy(raw + 1, i16, sizeof i16);
    lw_elem_to_f32(LW_ELEM_I16, raw + 1, 3, out);
    assert_true(out[0] == -32768 && out[1] == 5 && out[2] == 32767);
    assert_ok(lw_elem_from_f32(LW_ELEM_F64, back, 3, raw + 1));
    lw_elem_to_f32(LW_ELEM_F64, raw + 1, 3, out);
    assert_memory_equal(out, back, sizeof out);
    assert_ok(lw_elem_from_f32(LW_ELEM_BF16, back, 3, raw + 1));
    lw_elem_to_f32(LW_ELEM_BF16, raw + 1, 3, out);
    assert_true(out[0] == 1.5f && out[1] == -2 && fabsf(out[2] - 70000) <= 256);
    lw_elem_to_f32(LW_ELEM_BOOL, "\0\1\2", 3, out);
    assert_true(out[0] == 0 && out[1] == 1 && out[2] == 1);
    assert_fails(LW_EUNSUPPORTED, "I8", lw_elem_from_f32(LW_ELEM_I8, back, 3, raw));
}

static void arrays_refuse_bad_shapes(void **state)
{
    (void)state;
    lw_array a = {0};
    const int64_t huge[3] = {1ll << 31, 1ll << 31, 4}, negative[1] = {-1}, none[2] = {0, 5};
    assert_fails(LW_ESHAPE, "[2147483648,2147483648,4]", lw_array_init(&a, LW_ELEM_F32, 3, huge));
    assert_fails(LW_ESHAPE, "[-1]", lw_array_init(&a, LW_ELEM_F32, 1, negative));
    const int64_t half[1] = {1ll << 62};
    assert_fails(LW_ESHAPE, "rank 9", lw_array_init(&a, LW_ELEM_F32, 9, huge));
    assert_fails(LW_ESHAPE, "too large", lw_array_init(&a, LW_ELEM_U8, 1, half));
    assert_ok(lw_array_init(&a, LW_ELEM_F32, 2, none));
    assert_true(a.count == 0 && a.bytes == 0 && a.data);
    lw_array_clear(&a);
    assert_null(a.data);
}

static void reads_what_numpy_wrote(void **state)
{
    (void)state;
    static const char *const same[] = {"f4_v1", "f8_v2", "i8_v3", "f4_fortran"};
    for (size_t i = 0; i < LW_COUNT(same); i++) {
        char path[80];
        lw_array a = {0};
        snprintf(path, sizeof path, CORPUS "npy/%s.npy", same[i]);
        assert_ok(lw_npy_load_f32(path, &a));
        assert_true(a.rank == 3 && a.shape[0] == 2 && a.shape[1] == 3 && a.shape[2] == 4);
        for (int k = 0; k < 24; k++)
            assert_true(((float *)a.data)[k] == (float)k);
        lw_array_clear(&a);
    }
    static const struct {
        const char *name;
        lw_elem type;
        float v[3];
        int n;
    } small[] = {
        {"scalar", LW_ELEM_F64, {1.5f}, 1},  {"u1", LW_ELEM_U8, {0, 128, 255}, 3},
        {"b1", LW_ELEM_BOOL, {1, 0, 1}, 3},  {"f2", LW_ELEM_F16, {1, 0.0999755859375f, -65504}, 3},
        {"i2", LW_ELEM_I16, {-300, 300}, 2}, {"i4", LW_ELEM_I32, {-5, 7}, 2},
        {"i1", LW_ELEM_I8, {-5, 7}, 2},      {"empty", LW_ELEM_F32, {0}, 0},
    };
    for (size_t i = 0; i < LW_COUNT(small); i++) {
        char path[80];
        lw_array a = {0};
        snprintf(path, sizeof path, CORPUS "npy/%s.npy", small[i].name);
        assert_ok(lw_npy_load(path, &a));
        assert_true(a.type == small[i].type && a.count == small[i].n);
        assert_ok(lw_array_make_f32(&a));
        assert_memory_equal(a.data, small[i].v, (size_t)small[i].n * sizeof(float));
        lw_array_clear(&a);
    }
}

static void refuses_bad_npy(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
    } bad[] = {
        {"big_endian", "element type '>f4'"},
        {"complex", "element type '<c8'"},
        {"struct", "structured arrays"},
        {"truncated", "F32 [2,3,4] needs 96 bytes of data, the file has 91"},
        {"longer", "the file has 98"},
        {"header_cut", "header of"},
        {"rank9", "more than 8 dimensions"},
        {"negative", "a size expected"},
        {"overflow", "overflows"},
        {"twice", "key 'descr'"},
        {"missing", "are needed"},
    };
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        char path[80];
        lw_array a = {0};
        snprintf(path, sizeof path, CORPUS "npy/%s.npy", bad[i].name);
        assert_fails(LW_EFORMAT, bad[i].part, lw_npy_load(path, &a));
        assert_null(a.data);
    }
    lw_array a = {0};
    assert_fails(LW_EFORMAT, "not an .npy", lw_npy_parse("x", "hello, world", 12, &a));
    assert_fails(LW_EFORMAT, "version 9", lw_npy_parse("x", "\x93NUMPY\x09\0\0\0\0\0", 12, &a));
}

/* A file of that header and `data` zeros behind it; the bytes that to[512] then holds. */
static size_t npy_of(char *to, char version, const char *header, size_t data)
{
    size_t len = strlen(header), at = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    memcpy(to + 6, (const char[]){version, 0, (char)len, (char)(len >> 8), 0, 0}, at - 6);
    memcpy(to + at, header, len);
    memset(to + at + len, 0, data);
    return at + len + data;
}

#define SHAPED(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': (" shape ")}"
#define KEY31 "1234567890123456789012345678901"

static void npy_headers_are_read_to_the_letter(void **state)
{
    (void)state;
    static const struct {
        const char *header, *part;
    } bad[] = {
        {SHAPED("|f4", "1,"), "element type '|f4'"},
        {SHAPED("=f4", "1,"), "element type '=f4'"},
        {SHAPED("<U0", "1,"), "text of '0' characters"},
        {SHAPED("<U2", "1,1,1,1,1,1,1,1"), "text of so many dimensions"},
        {"{'descr': '<U2', 'fortran_order': True, 'shape': (1,1)}", "text of so many dimensions"},
        {SHAPED("|u1", "1,") " x", "text after the dictionary"},
        {SHAPED("|u1", "99999999999999999999,"), "too large"},
        {SHAPED("|u1", "99999999999999999999,0"), "too large"},
        {"{'" KEY31 "': 1}", "key '" KEY31 "'"},
        {"{'" KEY31 "2': 1}", "a short quoted word"},
    };
    char bytes[512];
    lw_array a = {0};
    for (size_t i = 0; i < LW_COUNT(bad); i++)
        assert_fails(LW_EFORMAT, bad[i].part,
                     lw_npy_parse("x", bytes, npy_of(bytes, 1, bad[i].header, 1), &a));
    size_t n = npy_of(bytes, 1, SHAPED("|u1", "1,1,1,1,1,1,1,2"), 2);
    assert_ok(lw_npy_parse("x", bytes, n, &a));
    assert_true(a.rank == 8 && a.shape[7] == 2);
    lw_array_clear(&a);
    n = npy_of(bytes, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", 6);
    memcpy(bytes + n - 6, "adbecf", 6);
    assert_ok(lw_npy_parse("x", bytes, n, &a));
    assert_memory_equal(a.data, "abcdef", 6);
    lw_array_clear(&a);
    /* of a list of texts the order of elements is the same either way */
    n = npy_of(bytes, 2, "{'descr': '<U2', 'fortran_order': True, 'shape': (2,)}", 16);
    memcpy(bytes + n - 16, (const int32_t[]){'a', 'b', 'c', 'd'}, 16);
    assert_ok(lw_npy_parse("x", bytes, n, &a));
    assert_true(a.rank == 2 && ((int32_t *)a.data)[1] == 'b' && ((int32_t *)a.data)[2] == 'c');
    lw_array_clear(&a);
}

/* What is not there is not looked at. */
static void npy_files_end_anywhere(void **state)
{
    (void)state;
    char bytes[512];
    lw_array a = {0};
    for (char version = 1; version <= 2; version++) {
        const size_t head = version == 1 ? 10 : 12;
        const size_t n = npy_of(bytes, version, SHAPED("|u1", "1,"), 0);
        for (size_t cut = 0; cut < n; cut++)
            assert_fails(LW_EFORMAT,
                         cut < 10     ? "not an .npy file"
                         : cut < head ? "truncated .npy header"
                                      : ".npy header of ",
                         lw_npy_parse("x", bytes, cut, &a));
        assert_fails(LW_EFORMAT, "needs 1 bytes of data", lw_npy_parse("x", bytes, n, &a));
    }
    size_t n = npy_of(bytes, 1, SHAPED("|u1", "1,"), 1);
    bytes[n - 2] = '\0'; /* the header's last character */
    assert_fails(LW_EFORMAT, "a NUL byte", lw_npy_parse("x", bytes, n, &a));
    bytes[6] = 0;
    assert_fails(LW_EFORMAT, "version 0", lw_npy_parse("x", bytes, n, &a));
    n = npy_of(bytes, 2, SHAPED("|u1", "1,"), 1);
    bytes[10] = 1;
    assert_fails(LW_EFORMAT, "header of 655", lw_npy_parse("x", bytes, n, &a));
}

static void npy_comes_back(void **state)
{
    (void)state;
    const double v[4] = {1, -2.5, 1e300, 0};
    const int64_t shape[2] = {2, 2}, one[1] = {4};
    lw_array a = {0};
    assert_ok(lw_npy_save(in_scratch("a.npy"), LW_ELEM_F64, 2, shape, v));
    assert_ok(lw_npy_load(in_scratch("a.npy"), &a));
    assert_true(a.type == LW_ELEM_F64 && a.rank == 2);
    assert_memory_equal(a.data, v, sizeof v);
    lw_array_clear(&a);
    assert_ok(lw_npy_save(in_scratch("a.npy"), LW_ELEM_F64, 0, NULL, v));
    assert_ok(lw_npy_load(in_scratch("a.npy"), &a));
    assert_true(a.rank == 0 && a.count == 1);
    lw_array_clear(&a);
    /* numpy's own bytes for the same array */
    float f[24];
    for (int i = 0; i < 24; i++)
        f[i] = (float)i;
    const int64_t s3[3] = {2, 3, 4};
    assert_ok(lw_npy_save(in_scratch("f.npy"), LW_ELEM_F32, 3, s3, f));
    char *ours, *theirs;
    size_t n1, n2;
    assert_ok(lw_file_read(in_scratch("f.npy"), 0, &ours, &n1));
    assert_ok(lw_file_read(CORPUS "npy/f4_v1.npy", 0, &theirs, &n2));
    assert_int_equal(n1, n2);
    assert_memory_equal(ours, theirs, n1);
    lw_free(&ours);
    lw_free(&theirs);
    assert_fails(LW_EUNSUPPORTED, "BF16",
                 lw_npy_save(in_scratch("b.npy"), LW_ELEM_BF16, 1, one, v));
    const int64_t negative[1] = {-1};
    assert_fails(LW_ESHAPE, "bad shape", lw_npy_save("b.npy", LW_ELEM_U8, 1, negative, v));
    /* Python takes (4) for a number, and numpy writes no byte order for bytes. */
    LW_CLEANUP(lw_str_clear) lw_str head = {0};
    assert_ok(lw_npy_header_write("x", LW_ELEM_U8, 1, one, &head));
    assert_non_null(
        strstr(lw_str_c(&head) + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }"));
}

static void npz_reads_and_writes(void **state)
{
    (void)state;
    lw_npz z = {0}, back = {0};
    assert_ok(lw_npz_load(CORPUS "npz/stats.npz", &z));
    assert_int_equal(z.n, 2);
    lw_array *mu = lw_npz_find(&z, "mu"), *sigma = lw_npz_find(&z, "sigma");
    assert_true(mu && sigma && mu->count == 3 && sigma->rank == 2 && !lw_npz_find(&z, "nu"));
    assert_true(((double *)mu->data)[2] == 2 && ((double *)sigma->data)[4] == 1);
    assert_ok(lw_npz_save(in_scratch("z.npz"), &z));
    assert_ok(lw_npz_load(in_scratch("z.npz"), &back));
    assert_true(back.n == 2 && lw_npz_find(&back, "sigma")->bytes == sigma->bytes);
    assert_memory_equal(lw_npz_find(&back, "sigma")->data, sigma->data, sigma->bytes);
    lw_npz_clear(&back);
    lw_array extra = {0};
    assert_ok(lw_array_init(&extra, LW_ELEM_U8, 0, NULL));
    assert_fails(LW_EUSAGE, "'mu'", lw_npz_add(&z, "mu", &extra));
    assert_ok(lw_npz_add(&z, "extra", &extra));
    assert_null(extra.data);
    lw_npz_clear(&z);
    assert_ok(lw_npz_load(CORPUS "npz/packed.npz", &z)); /* deflated */
    assert_true(((float *)lw_npz_find(&z, "x")->data)[4] == 4);
    lw_npz_clear(&z);
    assert_fails(LW_EFORMAT, "not an .npz", lw_npz_load(CORPUS "npy/u1.npy", &z));
    assert_fails(LW_EIO, "none.npz", lw_npz_load("none.npz", &z));
    char *bytes;
    size_t n;
    assert_ok(lw_file_read(CORPUS "npz/packed.npz", 0, &bytes, &n));
    put_file(in_scratch("cut.npz"), bytes, 90);
    lw_free(&bytes);
    assert_int_equal(lw_npz_load(in_scratch("cut.npz"), &z), LW_EFORMAT);
    assert_null(z.entries);
}

static int see_header(void *arg, const char *name, lw_array *a)
{
    assert_string_equal(name, "x");
    assert_null(a->data);
    assert_int_equal(a->count, 1 << 20);
    assert_int_equal(a->bytes, 4 << 20);
    ++*(int *)arg;
    return 0;
}

/* Headers need no data: an array that is damaged behind its header is only seen when it is read. */
static void npz_headers_are_read_alone(void **state)
{
    (void)state;
    const int64_t shape[1] = {1 << 20};
    lw_npz z = {0};
    lw_array a = {0};
    int seen = 0;
    assert_ok(lw_array_init(&a, LW_ELEM_F32, 1, shape));
    assert_ok(lw_npz_add(&z, "x", &a));
    assert_ok(lw_npz_save(in_scratch("big.npz"), &z));
    lw_npz_clear(&z);
    char *bytes;
    size_t n;
    assert_ok(lw_file_read(in_scratch("big.npz"), 0, &bytes, &n));
    bytes[n / 2] ^= 1;
    put_file(in_scratch("big.npz"), bytes, n);
    lw_free(&bytes);
    assert_ok(lw_npz_each(in_scratch("big.npz"), false, see_header, &seen));
    assert_int_equal(seen, 1);
    assert_int_equal(lw_npz_load(in_scratch("big.npz"), &z), LW_EFORMAT);
    assert_fails(LW_EFORMAT, "at most 4294967296 are read",
                 lw_npz_load(CORPUS "archive/huge.npz", &z));
    assert_fails(LW_EFORMAT, "two arrays called 'x'", lw_npz_load(CORPUS "archive/long.npz", &z));
    assert_ok(lw_npz_load(CORPUS "archive/two.npz", &z)); /* x is in Fortran order */
    static const float want[6] = {0, 2, 4, 1, 3, 5};
    assert_memory_equal(lw_npz_find(&z, "x")->data, want, sizeof want);
    lw_npz_clear(&z);
}

static void texts_come_back(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b.png", "", "\u00e9\u4e2d\U0001f600",
                                        "\x7f\u07ff\u0800\uffff"};
    lw_npz z = {0};
    assert_ok(lw_npz_add_text(&z, "paths", names, 4));
    assert_ok(lw_npz_save(in_scratch("text.npz"), &z));
    lw_npz_clear(&z);
    assert_ok(lw_npz_load(in_scratch("text.npz"), &z));
    lw_array *a = lw_npz_find(&z, "paths");
    assert_int_equal(a->shape[1], 7); /* characters, not bytes */
    for (int64_t i = 0; i < 4; i++) {
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        assert_ok(lw_npz_text_at(a, i, &s));
        assert_string_equal(lw_str_c(&s), names[i]);
    }
    lw_str out = {0};
    assert_fails(LW_EFORMAT, "without text 4", lw_npz_text_at(a, 4, &out));
    assert_fails(LW_EFORMAT, "without text -1", lw_npz_text_at(a, -1, &out));
    int32_t *c = a->data; /* negative, a surrogate, beyond the last plane */
    c[0] = -5;
    c[1] = 0xd800;
    c[2] = 0x110000;
    assert_ok(lw_npz_text_at(a, 0, &out));
    assert_string_equal(lw_str_c(&out), "\ufffd\ufffd\ufffd.png");
    out.len = 0;
    c[0] = 0xd7ff; /* those beside the surrogates */
    c[1] = 0xdfff;
    c[2] = 0xe000;
    assert_ok(lw_npz_text_at(a, 0, &out));
    assert_string_equal(lw_str_c(&out), "\xed\x9f\xbf\ufffd\ue000.png");
    a->type = LW_ELEM_F32;
    assert_fails(LW_EFORMAT, "no array of texts", lw_npz_text_at(a, 0, &out));
    lw_str_clear(&out);
    lw_npz_clear(&z);
}

/* One character is the least that an element has. */
static void short_texts_come_back(void **state)
{
    (void)state;
    static const char *const none[] = {"", ""}, *const one[] = {"x", ""}, *const bad[] = {"\xff"};
    lw_npz z = {0};
    assert_ok(lw_npz_add_text(&z, "none", none, 2));
    assert_ok(lw_npz_add_text(&z, "one", one, 2));
    assert_fails(LW_EFORMAT, "not UTF-8", lw_npz_add_text(&z, "bad", bad, 1));
    assert_ok(lw_npz_save(in_scratch("short.npz"), &z));
    lw_npz_clear(&z);
    assert_ok(lw_npz_load(in_scratch("short.npz"), &z));
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    for (int64_t i = 0; i < 2; i++) {
        assert_ok(lw_npz_text_at(lw_npz_find(&z, "none"), i, &s));
        assert_ok(lw_npz_text_at(lw_npz_find(&z, "one"), i, &s));
    }
    assert_string_equal(lw_str_c(&s), "x");
    lw_npz_clear(&z);
}

static int count_visit(void *arg, const char *name, lw_array *a)
{
    assert_string_equal(name, "sigma");
    assert_int_equal(a->count, 9);
    ++*(int *)arg;
    return 0;
}

/* One member in a zip; streamed: it cannot be read from its end, and the size stands behind the member. */
static void put_zip(const char *path, bool streamed, const char *name, const void *bytes, size_t n)
{
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    assert_int_equal(archive_write_set_format_zip(a), ARCHIVE_OK);
    if (streamed)
        assert_int_equal(archive_write_add_filter_gzip(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, AE_IFREG);
    assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, bytes, n), n);
    archive_entry_free(e);
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
}

static void npz_takes_what_was_asked_for(void **state)
{
    (void)state;
    static const char *const want[] = {"sigma"};
    lw_npz z = {0};
    int seen = 0;
    assert_ok(lw_npz_pick(CORPUS "npz/stats.npz", want, 1, true, count_visit, &seen));
    assert_int_equal(seen, 1);
    put_zip(in_scratch("notes.npz"), false, "notes.txt", "no array", 8);
    assert_ok(lw_npz_load(in_scratch("notes.npz"), &z));
    assert_int_equal(z.n, 0);
    /* no size is said beforehand: shorter and longer is seen all the same */
    static const int64_t sizes[] = {4, (1 << 17) - 128,
                                    200000}; /* the second: as much as is read with a header */
    for (size_t i = 0; i < LW_COUNT(sizes); i++) {
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        assert_ok(lw_npy_header_write("x", LW_ELEM_U8, 1, &sizes[i], &s));
        size_t head = s.len;
        for (int64_t k = 0; k <= sizes[i]; k++)
            lw_str_add(&s, "x");
        put_zip(in_scratch("s.npz"), true, "x.npy", s.s, s.len);
        assert_fails(LW_EFORMAT, "bytes of data", lw_npz_load(in_scratch("s.npz"), &z));
        put_zip(in_scratch("long.npz"), false, "x.npy", s.s, s.len);
        assert_fails(LW_EFORMAT, "bytes of data",
                     lw_npz_each(in_scratch("long.npz"), false, count_visit, &seen));
        put_zip(in_scratch("s.npz"), true, "x.npy", s.s, s.len - 2);
        assert_fails(LW_EFORMAT, "bytes of data", lw_npz_load(in_scratch("s.npz"), &z));
        put_zip(in_scratch("s.npz"), true, "x.npy", s.s, s.len - 1);
        assert_ok(lw_npz_load(in_scratch("s.npz"), &z));
        assert_memory_equal(lw_npz_find(&z, "x")->data, s.s + head, (size_t)sizes[i]);
        lw_npz_clear(&z);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives_a_round_trip),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(elements_convert_from_any_alignment),
        cmocka_unit_test(arrays_refuse_bad_shapes),
        cmocka_unit_test(reads_what_numpy_wrote),
        cmocka_unit_test(refuses_bad_npy),
        cmocka_unit_test(npy_headers_are_read_to_the_letter),
        cmocka_unit_test(npy_files_end_anywhere),
        cmocka_unit_test(npy_comes_back),
        cmocka_unit_test(npz_reads_and_writes),
        cmocka_unit_test(npz_headers_are_read_alone),
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(short_texts_come_back),
        cmocka_unit_test(npz_takes_what_was_asked_for),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
