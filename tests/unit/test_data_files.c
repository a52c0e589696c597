/* SPDX-License-Identifier: Apache-2.0 */
/* CIFAR-10 and MNIST from small files made here: what is read, and what damaged ones say. */
#include "test_data_util.h"

#include "formats/formats.h"
#include "base/base.h"
#include "data/data.h"

enum { RECORD = 3073 };
static const lw_data_opts in_memory = {.cache_dir = ""};

static uint8_t cifar_byte(int record, int channel, int pixel)
{
    return (uint8_t)(record * 31 + channel * 7 + pixel);
}

/* n records whose labels are record % 10 + first; bad < 0: none. */
static void write_cifar(const char *path, int n, int first, int bad, size_t cut)
{
    uint8_t *b = calloc((size_t)n, RECORD);
    for (int r = 0; r < n; r++) {
        b[r * RECORD] = (uint8_t)(r == bad ? 10 : (r + first) % 10);
        for (int c = 0; c < 3; c++)
            for (int p = 0; p < 1024; p++)
                b[r * RECORD + 1 + c * 1024 + p] = cifar_byte(r + first, c, p);
    }
    ok(lw_file_write(path, b, (size_t)n * RECORD - cut));
    free(b);
}

static const char *cifar_dir(const char *name)
{
    const char *dir = in_scratch(name);
    char path[600];
    ok(lw_mkdirs(dir));
    snprintf(path, sizeof path, "%s/data_batch_2.bin", dir);
    write_cifar(path, 5, 20, -1, 0);
    snprintf(path, sizeof path, "%s/data_batch_1.bin", dir);
    write_cifar(path, 7, 0, -1, 0);
    snprintf(path, sizeof path, "%s/test_batch.bin", dir);
    write_cifar(path, 3, 50, -1, 0);
    return dir;
}

static void check_cifar(const char *spec)
{
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = in_memory;
    ok(lw_data_open(spec, &o, &d));
    assert_int_equal(d->n, 12);
    assert_int_equal(d->h, 32);
    assert_true(d->labelled && d->flip);
    assert_string_equal(d->class_names[6], "frog");
    for (int r = 0; r < 12; r++) {
        int record = r < 7 ? r : r - 7 + 20;
        assert_int_equal(d->labels[r], record % 10);
        for (int p = 0; p < 1024; p++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(d->pixels[(r * 1024 + p) * 3 + c], cifar_byte(record, c, p));
    }
    lw_data_close(&d);
    o.split = LW_SPLIT_HELDOUT;
    o.first = 1;
    o.image_size = 16;
    ok(lw_data_open(spec, &o, &d));
    assert_int_equal(d->n, 2);
    assert_int_equal(d->split_rows, 3);
    static const uint8_t pillow[3][3] = {{69, 76, 83}, {136, 131, 54}, {57, 64, 71}};
    assert_memory_equal(d->pixels, pillow[0],
                        3); /* of record 51: pixels (0, 0), (3, 5), (15, 15) */
    assert_memory_equal(d->pixels + 3 * (3 * 16 + 5), pillow[1], 3);
    assert_memory_equal(d->pixels + 3 * 255, pillow[2], 3);
}

static void cifar_is_read_from_a_folder(void **state)
{
    (void)state;
    const char *dir = cifar_dir("cifar");
    check_cifar(spec_of("cifar10", dir));
}

static void cifar_is_read_from_archives(void **state)
{
    (void)state;
    cifar_dir("packed/cifar-10-batches-bin");
    char cmd[1200];
    snprintf(cmd, sizeof cmd,
             "cd %s/packed && tar -cf odd.tar cifar-10-batches-bin/test_batch.bin "
             "cifar-10-batches-bin/data_batch_2.bin cifar-10-batches-bin/data_batch_1.bin && "
             "gzip -k odd.tar && mkdir only && cp odd.tar.gz only/cifar-10-binary.tar.gz",
             scratch);
    assert_int_equal(system(cmd), 0);
    check_cifar(spec_of("cifar10", in_scratch("packed"))); /* the folder the archive unpacks to */
    check_cifar(spec_of("cifar10", in_scratch("packed/odd.tar")));
    check_cifar(spec_of("cifar10", in_scratch("packed/odd.tar.gz")));
    check_cifar(
        spec_of("cifar10", in_scratch("packed/only"))); /* a folder with the archive in it */
}

static void damaged_cifar_is_named(void **state)
{
    (void)state;
    lw_dataset *d = NULL;
    const char *dir = cifar_dir("bad");
    char path[600], spec[600];
    snprintf(spec, sizeof spec, "cifar10:%s", dir);
    snprintf(path, sizeof path, "%s/data_batch_2.bin", dir);
    write_cifar(path, 5, 20, -1, 100);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT,
          "data_batch_2.bin: 15265 bytes are not whole records");
    write_cifar(path, 5, 20, 3, 0);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "record 3 (byte 9219) has label 10");
    ok(lw_file_write(path, "", 0));
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "0 bytes");
    snprintf(path, sizeof path, "%s/test_batch.bin", dir);
    assert_int_equal(unlink(path), 0);
    fails(lw_data_open(spec, &in_memory, &d), LW_EIO, "test_batch.bin is missing");
    ok(lw_mkdirs(in_scratch("empty")));
    fails(lw_data_open(spec_of("cifar10", in_scratch("empty")), &in_memory, &d), LW_EIO,
          "neither data_batch_");
    fails(lw_data_open(spec_of("cifar10", in_scratch("nowhere")), &in_memory, &d), LW_EIO,
          "No such file");
    char cmd[1200];
    cifar_dir("short");
    snprintf(cmd, sizeof cmd,
             "cd %s/short && tar -czf ../cut.tar.gz . && head -c 20000 ../cut.tar.gz > ../x && mv "
             "../x ../cut.tar.gz "
             "&& tar -cf ../half.tar data_batch_1.bin && echo hello > ../text.tar",
             scratch);
    assert_int_equal(system(cmd), 0);
    lw_file_write(in_scratch("cut.tar.gz"), "\x1f\x8b\x08", 3);
    fails(lw_data_open(spec_of("cifar10", in_scratch("cut.tar.gz")), &in_memory, &d), LW_EFORMAT,
          "cut.tar.gz");
    fails(lw_data_open(spec_of("cifar10", in_scratch("half.tar")), &in_memory, &d), LW_EFORMAT,
          "does not hold");
    fails(lw_data_open(spec_of("cifar10", in_scratch("text.tar")), &in_memory, &d), LW_EFORMAT,
          "text.tar");
    assert_null(d);
}

/* A batch as large as CIFAR-10's: black pictures of class 0, but for one byte. */
static void big_batch(const char *dir, const char *name, int records, uint8_t mark)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", in_scratch(dir), name);
    ok(lw_mkdirs(in_scratch(dir)));
    ok(lw_file_write(path, (uint8_t[]){0, mark}, 2));
    assert_int_equal(truncate(path, (off_t)records * RECORD), 0); /* a hole: takes no disk */
}

static void big_set(const char *dir)
{
    char name[32];
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        big_batch(dir, name, 10000, (uint8_t)i);
    }
    big_batch(dir, "test_batch.bin", 10000, 9);
}

/* A set whose batches have CIFAR-10's size must be all of CIFAR-10, each batch once. */
static void incomplete_cifar_is_named(void **state)
{
    (void)state;
    lw_dataset *d = NULL;
    char spec[600];
    big_set("big");
    snprintf(spec, sizeof spec, "cifar10:%s", in_scratch("big"));
    const char *fifth = in_scratch("big/data_batch_5.bin");
    assert_int_equal(unlink(fifth), 0);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT,
          "not the whole of CIFAR-10: data_batch_5.bin is missing");
    big_batch("big", "data_batch_5.bin", 9999, 5);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT,
          "data_batch_5.bin has 9999 records, not 10000");
    big_batch("big", "data_batch_5.bin", 10001, 5);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "data_batch_5.bin has 10001 records");
    big_batch("big", "data_batch_5.bin", 10000, 1); /* a copy of the first */
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT,
          "data_batch_5.bin holds the same records as data_batch_1.bin");
    big_batch("big", "data_batch_5.bin", 10000, 5);
    big_batch("big", "data_batch_6.bin", 10000, 6);
    big_batch("big", "test_batch.bin", 3, 9);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT,
          "data_batch_6.bin is not one of it, test_batch.bin has 3 records, not 10000");
    lw_data_report r;
    ok(lw_data_check(spec, &in_memory, &r));
    assert_null(r.set);
    assert_int_equal(r.n_problems, 1);
    lw_data_report_clear(&r);
}

static void bad_cifar_archives_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *make, *says;
    } kinds[] = {
        {"tar -cf t.tar * && tar -rf t.tar data_batch_2.bin", "holds data_batch_2.bin twice"},
        {"mv data_batch_2.bin x && ln -s x data_batch_2.bin && tar -cf t.tar *",
         "data_batch_2.bin is a link in the archive"},
        {"mv data_batch_2.bin A && ln A data_batch_2.bin && tar -cf t.tar *",
         "data_batch_2.bin is a link in the archive"},
        {"truncate -s 100M data_batch_2.bin && tar -czf t.tar *", "more than 30730000 bytes"},
        {"mv data_batch_1.bin data_batch_1 && mv data_batch_2.bin data_batch_2 && tar -cf t.tar *",
         "the version for Python"},
        {"mv data_batch_1.bin train.bin && mv data_batch_2.bin test.bin && tar -cf t.tar *",
         "CIFAR-100, which is not read"},
        {"truncate -s 3074 data_batch_2.bin && tar -cf t.tar *", "records of CIFAR-100"},
    };
    for (size_t i = 0; i < LW_COUNT(kinds); i++) {
        char name[32], cmd[900];
        lw_dataset *d = NULL;
        snprintf(name, sizeof name, "arch%zu", i);
        const char *dir = cifar_dir(name);
        snprintf(cmd, sizeof cmd, "cd %s && %s", dir, kinds[i].make);
        assert_int_equal(system(cmd), 0);
        snprintf(cmd, sizeof cmd, "cifar10:%s/t.tar", dir);
        fails(lw_data_open(cmd, &in_memory, &d), LW_EFORMAT, kinds[i].says);
        assert_null(d);
    }
    lw_dataset *d = NULL;
    char cmd[900];
    snprintf(cmd, sizeof cmd,
             "cd %s && mkdir py hundred && touch py/cifar-10-python.tar.gz "
             "hundred/cifar-100-binary.tar.gz",
             scratch);
    assert_int_equal(system(cmd), 0);
    fails(lw_data_open(spec_of("cifar10", in_scratch("py")), &in_memory, &d), LW_EIO,
          "the version for Python");
    fails(lw_data_open(spec_of("cifar10", in_scratch("hundred")), &in_memory, &d), LW_EIO,
          "CIFAR-100, which is not read");
}

/* A complete archive of random-like bytes cut in the middle of a member. */
static void truncated_archive_is_named(void **state)
{
    (void)state;
    lw_dataset *d = NULL;
    cifar_dir("whole");
    char cmd[1200];
    snprintf(cmd, sizeof cmd,
             "cd %s/whole && tar -cf ../whole.tar . && head -c 24000 ../whole.tar > ../part.tar",
             scratch);
    assert_int_equal(system(cmd), 0);
    fails(lw_data_open(spec_of("cifar10", in_scratch("part.tar")), &in_memory, &d), LW_EFORMAT,
          "part.tar");
    assert_null(d);
}

static void a_check_lists_bad_labels(void **state)
{
    (void)state;
    lw_data_report r;
    const char *dir = cifar_dir("cbad");
    char path[600];
    snprintf(path, sizeof path, "%s/test_batch.bin", dir);
    write_cifar(path, 3, 0, 1, 0);
    ok(lw_data_check(spec_of("cifar10", dir), &in_memory, &r));
    assert_int_equal(r.n_problems, 1);
    assert_non_null(strstr(r.problems[0].reason, "label 10"));
    lw_data_report_clear(&r);
}

/* ---- MNIST ---- */

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void write_idx(const char *path, uint32_t magic, uint32_t n, uint32_t side, size_t cut,
                      int bad_label)
{
    size_t head = side ? 16 : 8, each = side ? side * side : 1, len = head + n * each;
    uint8_t *b = calloc(len, 1);
    put32(b, magic);
    put32(b + 4, n);
    if (side) {
        put32(b + 8, side);
        put32(b + 12, side);
    }
    for (size_t i = 0; i < n * each; i++)
        b[head + i] = (uint8_t)(side ? i * 13 % 251 : i % 10);
    if (bad_label >= 0)
        b[head + (size_t)bad_label] = 77;
    ok(lw_file_write(path, b, len - cut));
    free(b);
}

static void put_count(const char *path, uint32_t n)
{
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t len;
    ok(lw_file_read(path, 0, &bytes, &len));
    put32((uint8_t *)bytes + 4, n);
    ok(lw_file_write(path, bytes, len));
}

static void mnist_dir(const char *name)
{
    char p[700];
    const char *dir = in_scratch(name);
    ok(lw_mkdirs(dir));
    snprintf(p, sizeof p, "%s/train-images-idx3-ubyte", dir);
    write_idx(p, 2051, 20, 28, 0, -1);
    snprintf(p, sizeof p, "%s/train-labels-idx1-ubyte", dir);
    write_idx(p, 2049, 20, 0, 0, -1);
    snprintf(p, sizeof p, "%s/t10k-images.idx3-ubyte", dir); /* the other usual spelling */
    write_idx(p, 2051, 4, 28, 0, -1);
    snprintf(p, sizeof p, "%s/t10k-labels-idx1-ubyte", dir);
    write_idx(p, 2049, 4, 0, 0, -1);
}

static void mnist_is_read_padded(void **state)
{
    (void)state;
    mnist_dir("mnist");
    char cmd[600];
    snprintf(cmd, sizeof cmd, "gzip %s/mnist/train-images-idx3-ubyte", scratch);
    assert_int_equal(system(cmd), 0);
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = in_memory;
    ok(lw_data_open(spec_of("mnist", in_scratch("mnist")), &o, &d));
    assert_int_equal(d->n, 20);
    assert_int_equal(d->h, 32);
    assert_true(d->labelled && !d->flip);
    const uint8_t *row = d->pixels + 3 * 3072;
    assert_int_equal(row[(1 * 32 + 9) * 3], 0);
    assert_int_equal(row[(9 * 32 + 30) * 3], 0);
    for (int c = 0; c < 3; c++)
        assert_int_equal(row[(7 * 32 + 9) * 3 + c], (3 * 784 + 5 * 28 + 7) * 13 % 251);
    lw_data_close(&d);
    o.image_size = 28;
    o.split = LW_SPLIT_HELDOUT;
    ok(lw_data_open(spec_of("mnist", in_scratch("mnist")), &o, &d));
    assert_int_equal(d->n, 4);
    assert_int_equal(d->pixels[2 * 28 * 28 * 3], 2 * 784 * 13 % 251);
}

static void damaged_mnist_is_named(void **state)
{
    (void)state;
    lw_dataset *d = NULL;
    mnist_dir("mbad");
    char spec[600];
    snprintf(spec, sizeof spec, "mnist:%s", in_scratch("mbad"));
    const char *images = in_scratch("mbad/train-images-idx3-ubyte");
    const char *labels = in_scratch("mbad/train-labels-idx1-ubyte");
    write_idx(labels, 2049, 20, 0, 0, 5);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "label 5 is 77");
    write_idx(labels, 2049, 19, 0, 0, -1);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "20 pictures");
    write_idx(labels, 2051, 20, 0, 0, -1);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "not an idx file of labels");
    write_idx(labels, 2049, 20, 0, 0, -1);
    write_idx(images, 2051, 20, 28, 9, -1);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "cut short");
    write_idx(images, 2051, 21, 28, 784 - 9, -1);
    put_count(images, 20);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "more follows");
    put_count(images, 0xffffffff); /* believed by nobody */
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "1 to 16777216 are read");
    write_idx(images, 2051, 20, 32, 0, -1);
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "pictures of 32x32");
    ok(lw_file_write(images, "abc", 3));
    fails(lw_data_open(spec, &in_memory, &d), LW_EFORMAT, "not an idx file of images");
    assert_int_equal(unlink(labels), 0);
    fails(lw_data_open(spec, &in_memory, &d), LW_EIO, "has no train-labels-idx1-ubyte");
    assert_null(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cifar_is_read_from_a_folder),
        cmocka_unit_test(cifar_is_read_from_archives),
        cmocka_unit_test(damaged_cifar_is_named),
        cmocka_unit_test(incomplete_cifar_is_named),
        cmocka_unit_test(bad_cifar_archives_are_named),
        cmocka_unit_test(truncated_archive_is_named),
        cmocka_unit_test(a_check_lists_bad_labels),
        cmocka_unit_test(mnist_is_read_padded),
        cmocka_unit_test(damaged_mnist_is_named),
    };
    lw_log_set(LW_LOG_ERROR); /* small files are warned about */
    return cmocka_run_group_tests_name("data files", tests, scratch_make, scratch_remove);
}
