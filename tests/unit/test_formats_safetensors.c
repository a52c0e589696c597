/* SPDX-License-Identifier: Apache-2.0 */
/* formats: safetensors files, good, written here, and hostile. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "formats/formats.h"

#include "unit/test_formats_util.h"

#define ST CORPUS "safetensors/"

static void reads_a_file_of_the_reference_library(void **state)
{
    (void)state;
    lw_st_file *f = NULL;
    const lw_st_tensor *t = NULL;
    float v[6];
    assert_ok(lw_st_open(ST "good.safetensors", &f));
    assert_int_equal(lw_st_count(f), 6);
    for (size_t i = 1; i < lw_st_count(f); i++)
        assert_true(strcmp(lw_st_at(f, i - 1)->name, lw_st_at(f, i)->name) < 0);
    assert_ok(lw_st_get(f, "b.weight", &t));
    assert_true(t->type == LW_ELEM_F32 && t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3);
    lw_elem_to_f32(t->type, t->data, t->count, v);
    for (int i = 0; i < 6; i++)
        assert_true(v[i] == (float)i);
    t = lw_st_find(f, "a");
    lw_elem_to_f32(t->type, t->data, t->count, v);
    assert_true(t->type == LW_ELEM_I64 && v[0] == 1 && v[1] == -2);
    t = lw_st_find(f, "h");
    lw_elem_to_f32(t->type, t->data, t->count, v);
    assert_true(t->type == LW_ELEM_F16 && v[0] == 0.5f && v[1] == 65504.0f && v[2] == -0x1p-24f);
    t = lw_st_find(f, "empty");
    assert_true(t->count == 0 && t->rank == 2 && t->shape[1] == 4);
    t = lw_st_find(f, "scalar");
    lw_elem_to_f32(t->type, t->data, t->count, v);
    assert_true(t->rank == 0 && t->count == 1 && v[0] == 2.5f);
    t = lw_st_find(f, "flag");
    lw_elem_to_f32(t->type, t->data, t->count, v);
    assert_true(t->type == LW_ELEM_BOOL && v[0] == 1 && v[1] == 0);
    assert_null(lw_st_find(f, "nope"));
    assert_fails(LW_EFORMAT, "tensor 'b.weihgt' is missing (there is 'b.weight')",
                 lw_st_get(f, "b.weihgt", &t));
    assert_string_equal(lw_st_meta(f, "note"), "h\xc3\xa9llo");
    assert_null(lw_st_meta(f, "absent"));
    assert_int_equal(lw_st_meta_count(f), 2);
    lw_st_close(&f);
    assert_null(f);
}

static void refuses_hostile_files(void **state)
{
    (void)state;
    static const struct {
        const char *file, *part;
    } cases[] = {
        {"overlap", "tensors 'a' and 'b' overlap at byte 4"},
        {"hole", "4 bytes before tensor 'b' belong to no tensor"},
        {"tail", "4 bytes at the end belong to no tensor"},
        {"outside", "not within the 4 bytes"},
        {"backwards", "not within"},
        {"negative", "not within"},
        {"size", "F32 [3] needs 12 bytes, data_offsets hold 8"},
        {"overflow", "overflows"},
        {"dtype", "dtype 'F8_E4M3' is not one of"},
        {"rank", "rank 9, at most 8"},
        {"duplicate", "duplicate"},
        {"header_long", "header of 10000 bytes in a file of"},
        {"header_huge", "no safetensors header"},
        {"deep", "deeper than"},
        {"meta", "__metadata__ 'x' must be a string"},
        {"not_object", "does not begin with '{'"},
        {"short", "too short"},
    };
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        char path[128];
        lw_st_file *f = NULL;
        snprintf(path, sizeof path, ST "%s.safetensors", cases[i].file);
        assert_fails(LW_EFORMAT, cases[i].part, lw_st_open(path, &f));
        assert_non_null(strstr(lw_errmsg(), path));
        assert_null(f);
    }
    lw_st_file *f = NULL;
    assert_fails(LW_EIO, "none", lw_st_open("none.safetensors", &f));
    assert_ok(lw_st_open(ST "only_meta.safetensors", &f));
    assert_int_equal(lw_st_count(f), 0);
    lw_st_close(&f);
}

/* A file of that header and as many zeros as data. */
static int st_of(const char *header, size_t data, lw_st_file **out)
{
    static char bytes[512]; /* files point into it */
    uint64_t len = strlen(header);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &len, sizeof len);
    memcpy(bytes + sizeof len, header, len);
    return lw_st_parse("x", bytes, sizeof len + len + data, out);
}

static void headers_say_nothing_twice_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *header, *part;
    } bad[] = {
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", "two integers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0.5]}}", "two integers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", "integers from 0 up"},
        {"{\"__metadata__\":[]}", "must be an object of strings"},
        {"", "does not begin with '{'"},
        {"{", "does not begin with '{'"},
    };
    lw_st_file *f = NULL;
    for (size_t i = 0; i < LW_COUNT(bad); i++)
        assert_fails(LW_EFORMAT, bad[i].part, st_of(bad[i].header, i < 4, &f));
    /* no elements are no bytes, whatever the other sizes are */
    assert_ok(st_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4,0],"
                    "\"data_offsets\":[0,0]}}",
                    0, &f));
    assert_int_equal(lw_st_find(f, "a")->count, 0);
    lw_st_close(&f);
    /* the header's last bytes are missing, or the file ends behind its length */
    const char alone[9] = "\0\0\0\0\0\0\0\0{", cut[12] = "\5\0\0\0\0\0\0\0{  }";
    assert_fails(LW_EFORMAT, "does not begin", lw_st_parse("x", alone, 8, &f));
    assert_fails(LW_EFORMAT, "truncated", lw_st_parse("x", cut, 12, &f));
}

/* Any single flipped byte of the header part, or a cut anywhere, must fail or give a consistent
 * file. */
static void survives_every_cut_and_flip(void **state)
{
    (void)state;
    char *good;
    size_t n;
    assert_ok(lw_file_read(ST "good.safetensors", 0, &good, &n));
    size_t refused = 0;
    for (size_t i = 0; i < n; i++) {
        lw_st_file *f = NULL;
        char *cut = malloc(i ? i : 1); /* its own block, so that sanitizers see one byte too far */
        memcpy(cut, good, i);
        assert_int_equal(lw_st_parse("cut", cut, i, &f), LW_EFORMAT);
        free(cut);
        char *flip = malloc(n);
        memcpy(flip, good, n);
        flip[i] ^= 0x15;
        int rc = lw_st_parse("flip", flip, n, &f);
        refused += rc != 0;
        for (size_t k = 0; rc == 0 && k < lw_st_count(f); k++) {
            const lw_st_tensor *t = lw_st_at(f, k);
            assert_true((const char *)t->data >= flip &&
                        (const char *)t->data + t->bytes <= flip + n);
        }
        lw_st_close(&f);
        free(flip);
    }
    assert_true(refused > n / 4);
    lw_free(&good);
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    const char *path = in_scratch("w.safetensors");
    const float w[6] = {1, 2, 3, 4, 5, 6};
    const int8_t q[3] = {-1, 0, 1};
    const lw_st_tensor tensors[] = {
        {.name = "z", .type = LW_ELEM_F32, .rank = 2, .shape = {2, 3}, .data = w},
        {.name = "a", .type = LW_ELEM_I8, .rank = 1, .shape = {3}, .data = q},
        {.name = "none", .type = LW_ELEM_F64, .rank = 1, .shape = {0}},
    };
    const char *meta[] = {"step", "7", "text", "\"quoted\" \n"};
    assert_ok(lw_st_save(path, tensors, 3, meta, 2));
    lw_st_file *f = NULL;
    assert_ok(lw_st_open(path, &f));
    assert_memory_equal(lw_st_find(f, "z")->data, w, sizeof w);
    assert_memory_equal(lw_st_find(f, "a")->data, q, sizeof q);
    assert_int_equal((uintptr_t)lw_st_find(f, "z")->data % 64, 0); /* first in file, given order */
    assert_string_equal(lw_st_meta(f, "text"), "\"quoted\" \n");
    const char *key, *value;
    lw_st_meta_at(f, 0, &key, &value);
    assert_string_equal(key, "step");
    lw_st_close(&f);
    /* the same bytes every time */
    char *one, *two;
    size_t n1, n2;
    assert_ok(lw_file_read(path, 0, &one, &n1));
    assert_ok(lw_st_save(path, tensors, 3, meta, 2));
    assert_ok(lw_file_read(path, 0, &two, &n2));
    assert_int_equal(n1, n2);
    assert_memory_equal(one, two, n1);
    lw_free(&one);
    lw_free(&two);
}

/* Renamed over, a device or pipe would be a file from then on; here links keep the real
 * one safe. */
static void devices_are_written_to(void **state)
{
    (void)state;
    const int64_t shape[] = {2};
    const float x[] = {1, 2};
    const lw_st_tensor t = {.name = "x", .type = LW_ELEM_F32, .rank = 1, .shape = {2}, .data = x};
    char full[128], none[128], fifo[128];
    struct stat st;
    snprintf(full, sizeof full, "%s", in_scratch("full"));
    snprintf(none, sizeof none, "%s", in_scratch("none"));
    snprintf(fifo, sizeof fifo, "%s", in_scratch("fifo"));
    assert_int_equal(symlink("/dev/full", full) | symlink("/dev/null", none) | mkfifo(fifo, 0600),
                     0);
    assert_fails(LW_EIO, "full: ", lw_st_save(full, &t, 1, NULL, 0));
    assert_ok(lw_st_save(none, &t, 1, NULL, 0));
    lw_array a = {0};
    lw_npz z = {0};
    assert_ok(lw_array_init(&a, LW_ELEM_F32, 1, shape));
    assert_ok(lw_npz_add(&z, "x", &a));
    assert_fails(LW_EIO, "full: ", lw_npz_save(full, &z));
    assert_ok(lw_npz_save(none, &z));
    int fd = open(fifo, O_RDONLY | O_NONBLOCK);
    char head[16];
    assert_true(fd >= 0);
    assert_ok(lw_st_save(fifo, &t, 1, NULL, 0));
    assert_int_equal(read(fd, head, 9), 9);
    assert_int_equal(head[8], '{');
    while (read(fd, head, sizeof head) > 0)
        continue;
    assert_ok(lw_npz_save(fifo, &z));
    assert_int_equal(read(fd, head, 2), 2);
    assert_memory_equal(head, "PK", 2);
    close(fd);
    lw_npz_clear(&z);
    const char *const still[] = {full, none};
    for (size_t i = 0; i < LW_COUNT(still); i++)
        assert_true(lstat(still[i], &st) == 0 && S_ISLNK(st.st_mode));
    assert_true(lstat(fifo, &st) == 0 && S_ISFIFO(st.st_mode));
}

static void an_unfinished_writer_leaves_the_old_file(void **state)
{
    (void)state;
    char path[160];
    snprintf(path, sizeof path, "%s", in_scratch("keep.safetensors"));
    put_file(path, "old", 3);
    lw_st_writer *w = NULL;
    const int64_t shape[9] = {2, 2}, negative[1] = {-1}, most[1] = {INT64_MAX};
    assert_ok(lw_st_writer_new(path, &w));
    assert_ok(lw_st_writer_add(w, "x", LW_ELEM_F32, 2, shape));
    assert_fails(LW_EUSAGE, "'x' is taken", lw_st_writer_add(w, "x", LW_ELEM_F32, 2, shape));
    assert_fails(LW_EUSAGE, "is taken", lw_st_writer_add(w, "__metadata__", LW_ELEM_F32, 2, shape));
    assert_fails(LW_ESHAPE, "bad shape", lw_st_writer_add(w, "y", LW_ELEM_F32, 1, negative));
    assert_fails(LW_ESHAPE, "rank 9", lw_st_writer_add(w, "y", LW_ELEM_F32, 9, shape));
    assert_fails(LW_ESHAPE, "too large", lw_st_writer_add(w, "y", LW_ELEM_U8, 1, most));
    assert_ok(lw_st_writer_put(w, "12345", 5));
    lw_st_writer_free(&w);
    char **names;
    size_t n;
    assert_ok(lw_list_dir(scratch, &names, &n));
    for (size_t i = 0; i < n; i++)
        assert_null(strstr(names[i], ".tmp"));
    lw_list_free(&names, n);
    char *text;
    assert_ok(lw_file_read(path, 0, &text, &n));
    assert_string_equal(text, "old");
    lw_free(&text);
    assert_fails(LW_EIO, "cannot create",
                 lw_st_save("/nonexistent/x.safetensors", NULL, 0, NULL, 0));
}

static void shards_look_like_one_file(void **state)
{
    (void)state;
    const float x = 1, y = 2;
    const lw_st_tensor tx = {.name = "x", .type = LW_ELEM_F32, .rank = 0, .data = &x};
    const lw_st_tensor ty = {.name = "y", .type = LW_ELEM_F32, .rank = 0, .data = &y};
    const char *const meta[] = {"format", "pt"};
    assert_ok(lw_st_save(in_scratch("m-1.safetensors"), &tx, 1, meta, 1));
    assert_ok(lw_st_save(in_scratch("m-2.safetensors"), &ty, 1, meta, 1));
    const char *index = "{\"weight_map\":{\"y\":\"m-2.safetensors\",\"x\":\"m-1.safetensors\"}}";
    put_file(in_scratch("m.safetensors.index.json"), index, strlen(index));
    lw_st_file *f = NULL;
    assert_ok(lw_st_open(in_scratch("m.safetensors.index.json"), &f));
    assert_int_equal(lw_st_count(f), 2);
    float v;
    memcpy(&v, lw_st_find(f, "y")->data, sizeof v);
    assert_true(v == 2);
    assert_string_equal(lw_st_meta(f, "format"), "pt");
    lw_st_close(&f);
    static const struct {
        const char *index, *part;
        int code;
    } bad[] = {
        {"{\"weight_map\":{\"y\":\"../m-2.safetensors\"}}", "without a folder", LW_EFORMAT},
        {"{\"weight_map\":{\"y\":\"m-1.safetensors\"}}", "'y' is missing", LW_EFORMAT},
        {"{\"weight_map\":{\"y\":\"b.index.json\"}}", "must be a .safetensors", LW_EFORMAT},
        {"{\"weight_map\":{\"y\":\"m-3.safetensors\"}}", "m-3.safetensors", LW_EIO},
        {"{\"weight_map\":{\"y\":3}}", "must be a file name", LW_EFORMAT},
        {"{}", "'weight_map' is missing", LW_EFORMAT},
    };
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        put_file(in_scratch("b.index.json"), bad[i].index, strlen(bad[i].index));
        assert_fails(bad[i].code, bad[i].part, lw_st_open(in_scratch("b.index.json"), &f));
        assert_null(f);
    }
}

static void reads_real_weights(void **state)
{
    (void)state;
    const char *data = getenv("LW_TEST_DATA");
    if (!data) {
        print_message("LW_TEST_DATA is not set: no real weights to read\n");
        skip();
    }
    lw_str path = {0};
    lw_str_addf(&path, "%s/encoders/resnet_cifar10/resnet20.safetensors", data);
    lw_st_file *f = NULL;
    assert_ok(lw_st_open(lw_str_c(&path), &f));
    int64_t floats = 0;
    for (size_t i = 0; i < lw_st_count(f); i++)
        floats += lw_st_at(f, i)->type == LW_ELEM_F32 ? lw_st_at(f, i)->count : 0;
    assert_true(floats > 260000 && floats < 300000);
    lw_st_close(&f);
    lw_str_clear(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_file_of_the_reference_library),
        cmocka_unit_test(refuses_hostile_files),
        cmocka_unit_test(headers_say_nothing_twice_and_nothing_else),
        cmocka_unit_test(survives_every_cut_and_flip),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(devices_are_written_to),
        cmocka_unit_test(an_unfinished_writer_leaves_the_old_file),
        cmocka_unit_test(shards_look_like_one_file),
        cmocka_unit_test(reads_real_weights),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
