/* SPDX-License-Identifier: Apache-2.0 */
/* CIFAR-10, MNIST and folders from small files made here: what is read, and what damaged
 * files say. */
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
    for (int c = 0; c < 3; c++) {
        int sum = cifar_byte(51, c, 0) + cifar_byte(51, c, 1) + cifar_byte(51, c, 32) +
                  cifar_byte(51, c, 33);
        assert_int_equal(d->pixels[c], (sum + 2) / 4); /* the mean of 2x2, halves up */
    }
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

/* ---- folders ---- */

static void write_picture(const char *name, int32_t w, int32_t h, uint8_t level)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    char dir[600];
    snprintf(dir, sizeof dir, "%s", in_scratch(name));
    *strrchr(dir, '/') = '\0';
    ok(lw_mkdirs(dir));
    ok(lw_image_init(&im, w, h));
    for (int32_t i = 0; i < w * h; i++) {
        im.rgb[3 * i] = level;
        im.rgb[3 * i + 1] = (uint8_t)(i % w);
        im.rgb[3 * i + 2] = (uint8_t)(i / w);
    }
    if (lw_str_ends(name, ".png")) {
        ok(lw_png_save(in_scratch(name), &im, NULL));
        return;
    }
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    ok(lw_jpeg_encode(&im, 95, &s));
    ok(lw_file_write(in_scratch(name), s.s, s.len));
}

static void folders_are_classes(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 21; i++) {
        snprintf(name, sizeof name, "f/dog/%02d.png", i);
        write_picture(name, 40, 20, (uint8_t)(100 + i));
    }
    write_picture("f/cat/b.JPG", 10, 30, 7);
    write_picture("f/cat/a.png", 16, 16, 9);
    write_picture("f/.hidden/a.png", 16, 16, 9);
    ok(lw_file_write(in_scratch("f/readme.txt"), "x", 1));
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .image_size = 10};
    ok(lw_data_open(spec_of("folder", in_scratch("f")), &o, &d));
    assert_int_equal(d->classes, 2);
    assert_string_equal(d->class_names[0], "cat");
    assert_string_equal(d->class_names[1], "dog");
    assert_int_equal(
        d->n, 1 + 19); /* b.JPG (capitals first) trains, a.png is held out; dog without 09, 19 */
    assert_int_equal(d->labels[0], 0);
    assert_int_equal(d->labels[1], 1);
    const uint8_t *dog = d->pixels + 300; /* the square x 10..29 of 40x20, halved */
    assert_int_equal(dog[0], 100);
    assert_int_equal(dog[1], 11); /* (10 + 11) / 2, halves up */
    assert_int_equal(dog[3 * 99 + 1], 29);
    assert_int_equal(dog[3 * 99 + 2], 19);
    lw_data_close(&d);
    o.split = LW_SPLIT_HELDOUT;
    ok(lw_data_open(spec_of("folder", in_scratch("f")), &o, &d));
    assert_int_equal(d->n, 3);
    assert_int_equal(d->pixels[300], 109);
    assert_int_equal(d->pixels[600], 119);
}

static void expect_side(const char *dir, int32_t side, const char *note)
{
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    ok(lw_data_open(spec_of("folder", in_scratch(dir)), &in_memory, &d));
    assert_int_equal(d->h, side);
    assert_int_equal(d->w, side);
    if (*note ? !strstr(d->note, note) : *d->note)
        fail_msg("%s: note '%s', not '%s'", dir, d->note, note);
}

/* Without an image size: one size stays, of several a power of two is chosen and named. */
static void folders_keep_their_size(void **state)
{
    (void)state;
    write_picture("k16/a/1.png", 16, 16, 1);
    write_picture("k16/b/2.jpg", 16, 16, 2);
    expect_side("k16", 16, "");
    write_picture("k20/1.png", 40, 20, 1); /* the central square of all is of one size */
    write_picture("k20/2.png", 20, 30, 1);
    expect_side("k20", 20, "");
    write_picture("k4/1.png", 4, 4, 1);
    expect_side("k4", 8, "pictures of 4x4 are resized to 8x8");
    write_picture("mix/1.png", 17, 90, 1);
    write_picture("mix/2.jpg", 40, 41, 1);
    write_picture("mix/3.png", 300, 200, 1);
    expect_side("mix", 32, "(shorter side 17 to 200 pixels, median 40) are resized to 32x32");
    write_picture("mix/4.png", 300, 300, 1);
    write_picture("mix/5.png", 300, 300, 1);
    expect_side("mix", 64, "median 200) are resized to 64x64");
    write_picture("tiny/1.png", 3, 3, 1);
    write_picture("tiny/2.png", 5, 5, 1);
    expect_side("tiny", 8, "resized to 8x8");
    lw_data_opts o = {.cache_dir = in_scratch("sizes")};
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    for (int round = 0; round < 2; round++) { /* built, then from the cache */
        lw_data_close(&d);
        ok(lw_data_open(spec_of("folder", in_scratch("mix")), &o, &d));
        assert_int_equal(d->h, 64);
        assert_non_null(strstr(d->note, "--image-size N"));
    }
}

static void train_and_test_folders_are_splits(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .image_size = 8, .split = LW_SPLIT_HELDOUT};
    write_picture("s/train/x/1.png", 8, 8, 1);
    write_picture("s/train/y/1.png", 8, 8, 2);
    write_picture("s/val/y/1.png", 8, 8, 3);
    ok(lw_data_open(spec_of("folder", in_scratch("s")), &o, &d));
    assert_int_equal(d->n, 1);
    assert_int_equal(d->labels[0], 1);
    assert_int_equal(d->pixels[0], 3);
    lw_data_close(&d);
    write_picture("s/val/z/1.png", 8, 8, 3);
    fails(lw_data_open(spec_of("folder", in_scratch("s")), &o, &d), LW_EFORMAT, "class 'z'");
}

static void one_folder_has_no_labels(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .image_size = 16};
    write_picture("one/1.png", 12, 12, 50);
    ok(lw_data_open(spec_of("folder", in_scratch("one")), &o, &d));
    assert_int_equal(d->classes, 1);
    assert_false(d->labelled);
    assert_int_equal(d->pixels[0], 50); /* bilinear growth keeps a constant */
    lw_data_close(&d);
    o.split = LW_SPLIT_HELDOUT;
    fails(lw_data_open(spec_of("folder", in_scratch("one")), &o, &d), LW_EFORMAT,
          "no held-out pictures");
}

static void unreadable_pictures_are_listed(void **state)
{
    (void)state;
    lw_data_opts o = {.cache_dir = "", .image_size = 8};
    lw_dataset *d = NULL;
    write_picture("u/a/1.png", 8, 8, 1);
    write_picture("u/a/2.png", 8, 8, 1);
    write_picture("u/b/3.png", 8, 8, 1);
    ok(lw_file_write(in_scratch("u/a/2.png"), "\x89PNG nonsense", 13));
    ok(lw_file_write(in_scratch("u/b/4.jpg"), "\xff\xd8\xff", 3));
    fails(lw_data_open(spec_of("folder", in_scratch("u")), &o, &d), LW_EFORMAT, "u/a/2.png");
    fails(lw_data_open(spec_of("folder", in_scratch("nothing")), &o, &d), LW_EIO, "nothing");
    ok(lw_mkdirs(in_scratch("void/sub")));
    fails(lw_data_open(spec_of("folder", in_scratch("void")), &o, &d), LW_EFORMAT,
          "no .png, .jpg or .jpeg");
    lw_data_report r;
    ok(lw_data_check(spec_of("folder", in_scratch("u")), &o, &r));
    assert_null(r.set);
    assert_int_equal(r.files_read, 4);
    assert_int_equal(r.n_problems, 2);
    assert_true(lw_str_ends(r.problems[0].path, "b/4.jpg") ||
                lw_str_ends(r.problems[0].path, "a/2.png"));
    lw_data_report_clear(&r);
    fails(lw_data_check("folder:/no/such/place", &o, &r), LW_EIO, "/no/such/place");
    lw_data_report_clear(&r);
    const char *dir = cifar_dir("cbad");
    char path[600];
    snprintf(path, sizeof path, "%s/test_batch.bin", dir);
    write_cifar(path, 3, 0, 1, 0);
    ok(lw_data_check(spec_of("cifar10", dir), &in_memory, &r));
    assert_int_equal(r.n_problems, 1);
    assert_non_null(strstr(r.problems[0].reason, "label 10"));
    lw_data_report_clear(&r);
}

static void duplicates_are_counted(void **state)
{
    (void)state;
    lw_data_report r;
    lw_data_opts o = {.cache_dir = "", .image_size = 8};
    static const uint8_t level[12] = {5, 6, 5, 7, 6, 5, 8, 9, 10, 250, 11, 12}; /* 9 is held out */
    char name[64];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "dup/k/%02d.png", i);
        write_picture(name, 8, 8, level[i]);
    }
    ok(lw_data_check(spec_of("folder", in_scratch("dup")), &o, &r));
    assert_int_equal(r.set->n, 11);
    assert_int_equal(r.duplicates, 3);
    assert_int_equal(r.duplicate_a, 0);
    assert_int_equal(r.duplicate_b, 2);
    assert_true(r.min[0] > 5 / 127.5 - 1 - 1e-9 && r.min[0] < 5 / 127.5 - 1 + 1e-9);
    assert_true(r.max[0] > 12 / 127.5 - 1 - 1e-9 && r.max[0] < 12 / 127.5 - 1 + 1e-9);
    assert_true(r.mean[1] > 3.5 / 127.5 - 1 - 1e-9 && r.mean[1] < 3.5 / 127.5 - 1 + 1e-9);
    lw_data_report_clear(&r);
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
        cmocka_unit_test(mnist_is_read_padded),
        cmocka_unit_test(damaged_mnist_is_named),
        cmocka_unit_test(folders_are_classes),
        cmocka_unit_test(folders_keep_their_size),
        cmocka_unit_test(train_and_test_folders_are_splits),
        cmocka_unit_test(one_folder_has_no_labels),
        cmocka_unit_test(unreadable_pictures_are_listed),
        cmocka_unit_test(duplicates_are_counted),
    };
    lw_log_set(LW_LOG_ERROR); /* small files are warned about */
    return cmocka_run_group_tests_name("data files", tests, scratch_make, scratch_remove);
}
