/* SPDX-License-Identifier: Apache-2.0 */
/* Features in files: the network's own, the same bits however they are made, interrupted or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"
#include "jobs/encode/encode_job.h"
#include "models/models.h"
#include "store/store.h"

enum { ROWS = 37 };

static char dir[64] = "/tmp/lw_encode_XXXXXX";
static lw_device *dev;

static lw_str paths[8];
static const char *in_dir(const char *name)
{
    static int turn;
    turn = (turn + 1) % 8;
    return lw_path_join(&paths[turn], dir, name);
}

static void save_net(const char *name, uint64_t seed)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    lw_encoder_config c = lw_encoder_default(16);
    c.width = 8;
    c.stages = 2;
    c.classes = 5;
    LW_CLEANUP(lw_json_drop) json_t *config = lw_encoder_to_json(&c);
    assert_int_equal(lw_store_new(true, &s), 0);
    assert_int_equal(lw_encoder_declare(&c, s), 0);
    lw_store_init(s, seed);
    assert_int_equal(lw_model_folder_save(in_dir(name), s, LW_SLAB_PARAM, config, LW_WEIGHTS_HF),
                     0);
}

static int enter(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    setenv("LW_CACHE", dir, 1);
    save_net("net", 3);
    save_net("other", 4);
    return cpu_device(2, lw_isa_best(), &dev);
}

static int leave(void **state)
{
    (void)state;
    lw_backend_close(&dev);
    for (int i = 0; i < 8; i++)
        lw_str_clear(&paths[i]);
    return lw_remove_tree(dir);
}

/* Borrows `output` until the next call. */
static lw_encode_config config_of(const char *output)
{
    static char net[128], out[128];
    snprintf(net, sizeof net, "%s", in_dir("net"));
    snprintf(out, sizeof out, "%s", in_dir(output));
    return (lw_encode_config){.source = net,
                              .data = "synth:16",
                              .limit = ROWS,
                              .layers = {"pooled", "s1", "logits"},
                              .n_layers = 3,
                              .batch = 5,
                              .threads = 2,
                              .output = out};
}

static void encode(const lw_encode_config *c)
{
    lw_encode_result r;
    if (lw_job_encode(c, NULL, &r) != 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(r.rows, c->num_images ? c->num_images : c->limit);
}

static void expect_failure(const lw_encode_config *c, int code, const char *words)
{
    lw_encode_result r;
    assert_int_equal(lw_job_encode(c, NULL, &r), code);
    if (!strstr(lw_errmsg(), words))
        fail_msg("'%s' lacks '%s'", lw_errmsg(), words);
}

static void expect_same_bytes(const char *a, const char *b)
{
    LW_CLEANUP(lw_free) char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    assert_int_equal(lw_file_read(in_dir(a), 0, &x, &n), 0);
    assert_int_equal(lw_file_read(in_dir(b), 0, &y, &m), 0);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

static const float *tensor(const lw_st_file *f, const char *name, size_t count)
{
    const lw_st_tensor *t = lw_st_find(f, name);
    assert_non_null(t);
    assert_int_equal(t->count, count);
    assert_true(t->type == LW_ELEM_F32);
    return t->data;
}

static void rows_are_the_networks(void **state)
{
    (void)state;
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    LW_CLEANUP(lw_forward_free) lw_forward *f = NULL;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *st = NULL;
    float x[16 * 16 * 3], planes[16 * 16 * 3], pooled[16], map[2048], logits[5];
    lw_encode_config c = config_of("a.safetensors");
    encode(&c);
    assert_int_equal(lw_st_open(c.output, &st), 0);
    assert_int_equal(lw_st_count(st), 4);
    const float *p = tensor(st, "pooled", ROWS * 16), *m = tensor(st, "s1", ROWS * 2048),
                *l = tensor(st, "logits", ROWS * 5);
    const lw_st_tensor *labels = lw_st_find(st, "labels");
    assert_true(labels && labels->type == LW_ELEM_I32 && labels->count == ROWS);
    assert_string_equal(lw_st_meta(st, "layer"), "pooled,s1,logits");
    assert_string_equal(lw_st_meta(st, "rows"), "37");
    assert_int_equal(lw_network_open(c.source, true, &net), 0);
    assert_int_equal(lw_forward_new(dev, net, &(lw_forward_opts){.batch = 1, .output = "*"}, &f),
                     0);
    const lw_data_opts o = {.count = ROWS};
    assert_int_equal(lw_data_open("synth:16", &o, &d), 0);
    for (int i = 0; i < ROWS; i++) {
        lw_data_get(d, i, false, x);
        for (int e = 0; e < 16 * 16; e++)
            for (int k = 0; k < 3; k++)
                planes[k * 256 + e] = x[3 * e + k];
        const lw_feed feed[] = {{.name = "x", .in = planes},
                                {.name = "pooled", .out = pooled},
                                {.name = "s1", .out = map},
                                {.name = "logits", .out = logits}};
        assert_int_equal(lw_forward_rows(f, "one", 1, feed, 4, NULL), 0);
        assert_memory_equal(pooled, p + (ptrdiff_t)i * 16, 16 * sizeof *p);
        assert_memory_equal(map, m + (ptrdiff_t)i * 2048, 2048 * sizeof *m);
        assert_memory_equal(logits, l + (ptrdiff_t)i * 5, 5 * sizeof *l);
        assert_int_equal(((const int32_t *)labels->data)[i], d->labels[i]);
    }
}

static void bytes_do_not_depend_on_how_they_are_made(void **state)
{
    static const int batches[] = {1, 8, 64}, threads[] = {1, 3, 2};
    (void)state;
    lw_encode_config c = config_of("whole.safetensors");
    encode(&c);
    for (int i = 0; i < 3; i++) {
        c = config_of("again.safetensors");
        c.batch = batches[i];
        c.threads = threads[i];
        encode(&c);
        expect_same_bytes("whole.safetensors", "again.safetensors");
    }
    c.precision = LW_NUM_BF16;
    encode(&c);
    c.output = in_dir("bf16.safetensors");
    c.batch = 64;
    encode(&c);
    expect_same_bytes("again.safetensors", "bf16.safetensors");
}

static void every_file_holds_the_same(void **state)
{
    (void)state;
    LW_CLEANUP(lw_st_close) lw_st_file *st = NULL;
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    lw_encode_config c = config_of("b.safetensors");
    encode(&c);
    assert_int_equal(lw_st_open(c.output, &st), 0);
    c = config_of("b.npz");
    encode(&c);
    assert_int_equal(lw_npz_load(c.output, &z), 0);
    assert_int_equal(z.n, 4);
    for (size_t i = 0; i < lw_st_count(st); i++) {
        const lw_st_tensor *t = lw_st_at(st, i);
        const lw_array *b = lw_npz_find(&z, t->name);
        assert_true(b && b->rank == t->rank && b->count == t->count && b->type == t->type);
        assert_memory_equal(b->data, t->data, t->bytes);
    }
    assert_false(lw_path_exists(in_dir("b.npz.partial")));
    c = config_of("b.npy");
    expect_failure(&c, LW_EUSAGE, "an .npy holds one layer");
    c.n_layers = 0; /* pooled */
    encode(&c);
    assert_int_equal(lw_npy_load(c.output, &a), 0);
    assert_memory_equal(a.data, lw_npz_find(&z, "pooled")->data, a.bytes);
    c.l2_normalize = true;
    encode(&c);
    lw_array_clear(&a);
    assert_int_equal(lw_npy_load(c.output, &a), 0);
    for (int r = 0; r < ROWS; r++) {
        const float *long_row = (const float *)lw_npz_find(&z, "pooled")->data + (ptrdiff_t)r * 16;
        const float *row = (const float *)a.data + (ptrdiff_t)r * 16;
        double sum = 0.0, all = 0.0;
        for (int i = 0; i < 16; i++) {
            all += (double)row[i] * (double)row[i];
            sum += (double)long_row[i] * (double)long_row[i];
        }
        assert_true(fabs(all - 1.0) < 1e-6);
        assert_true(fabs((double)row[3] - (double)long_row[3] / sqrt(sum)) < 1e-6);
    }
    c.layers[0] = "s1";
    c.n_layers = 1;
    expect_failure(&c, LW_EUSAGE, "--l2-normalize: s1 has more than one vector");
}

/* ---- interrupted ----------------------------------------------------------------------------- */

static int64_t stop_at;
static void watch(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    (void)what;
    (void)total;
    (void)note;
    *(int64_t *)self = done;
}
static bool enough(void *self)
{
    return *(const int64_t *)self >= stop_at;
}

static void interrupt(const lw_encode_config *c, int64_t at)
{
    lw_encode_result r;
    int64_t done = 0;
    const lw_observer o = {.self = &done, .progress = watch, .should_stop = enough};
    stop_at = at;
    assert_int_equal(lw_job_encode(c, &o, &r), LW_ESTOPPED);
    assert_non_null(strstr(lw_errmsg(), "--resume"));
    assert_false(lw_path_exists(c->output));
}

/* The state as it was at ten rows, when a process is killed at twenty. */
static void keep_older_state(lw_encode_config *c, const char *state)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n = 0;
    interrupt(c, 10);
    assert_int_equal(lw_file_read(in_dir(state), 0, &text, &n), 0);
    assert_non_null(strstr(text, "\"rows_done\": 10"));
    c->resume = true;
    interrupt(c, 20);
    assert_int_equal(lw_file_write(in_dir(state), text, n), 0);
}

static void what_was_done_is_kept(void **state)
{
    static const char *const endings[] = {"safetensors", "npz", "npy"};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(endings); i++) {
        char whole[32], part[32], note[64];
        lw_encode_result r;
        snprintf(whole, sizeof whole, "w.%s", endings[i]);
        snprintf(part, sizeof part, "p.%s", endings[i]);
        snprintf(note, sizeof note, "p.%s.partial.json", endings[i]);
        lw_encode_config c = config_of(whole);
        c.n_layers = i == 2 ? 1 : 3;
        encode(&c);
        c.output = in_dir(part);
        keep_older_state(&c, note);
        c.resume = false;
        expect_failure(&c, LW_EUSAGE,
                       "10 of 37 rows of an interrupted encode: go on with --resume");
        c.resume = true;
        c.batch = 7; /* need not be the same */
        assert_int_equal(lw_job_encode(&c, NULL, &r), 0);
        assert_int_equal(r.done_before, 10);
        expect_same_bytes(whole, part);
        assert_false(lw_path_exists(in_dir(note)));
        assert_int_equal(lw_job_encode(&c, NULL, &r), 0); /* nothing is left to do */
        assert_int_equal(r.done_before, ROWS);
    }
}

static void what_is_of_another_call_is_refused(void **state)
{
    (void)state;
    lw_encode_config c = config_of("q.npz"), o;
    char other[128];
    snprintf(other, sizeof other, "%s", in_dir("other"));
    interrupt(&c, 10);
    c.resume = true;
    o = c, o.source = other;
    expect_failure(&o, LW_EUSAGE, "q.npz.partial is of another call (model: ");
    o = c, o.data = "synth:16,seed=2";
    expect_failure(&o, LW_EUSAGE, "(data: synth:16, now synth:16,seed=2)");
    o = c, o.n_layers = 2;
    expect_failure(&o, LW_EUSAGE, "(layer: pooled,s1,logits, now pooled,s1)");
    o = c, o.precision = LW_NUM_BF16;
    expect_failure(&o, LW_EUSAGE, "(precision: f32, now bf16)");
    o = c, o.limit = 36;
    expect_failure(&o, LW_EUSAGE, "of another call");
    o = c, o.split = LW_SPLIT_HELDOUT;
    expect_failure(&o, LW_EUSAGE, "of another call");
    assert_int_equal(lw_file_write(in_dir("q.npz.partial"), "cut", 3), 0);
    expect_failure(&c, LW_EFORMAT, "q.npz.partial: 3 bytes, not ");
}

/* ---- which rows ------------------------------------------------------------------------------ */

static void rows_are_drawn_and_sorted(void **state)
{
    (void)state;
    LW_CLEANUP(lw_npz_clear) lw_npz all = {0}, some = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL, *k = NULL;
    lw_encode_config c = config_of("all.npz");
    encode(&c);
    assert_int_equal(lw_npz_load(c.output, &all), 0);
    c = config_of("some.npz");
    c.num_images = 9;
    c.seed = 5;
    encode(&c);
    assert_int_equal(lw_npz_load(c.output, &some), 0);
    assert_int_equal(lw_json_load(in_dir("some.npz.json"), &j), 0);
    const json_t *rows = json_object_get(j, "rows");
    assert_int_equal(json_array_size(rows), 9);
    assert_int_equal(json_integer_value(json_object_get(j, "num_images")), 9);
    for (size_t i = 0; i < 9; i++) {
        json_int_t r = json_integer_value(json_array_get(rows, i));
        assert_in_range(r, 0, ROWS - 1);
        assert_true(i == 0 || r > json_integer_value(json_array_get(rows, i - 1)));
        assert_memory_equal((float *)lw_npz_find(&some, "logits")->data + 5 * i,
                            (float *)lw_npz_find(&all, "logits")->data + 5 * r, 5 * sizeof(float));
    }
    c.seed = 6;
    c.output = in_dir("more.npz");
    encode(&c);
    assert_int_equal(lw_json_load(in_dir("more.npz.json"), &k), 0);
    assert_false(json_equal(rows, json_object_get(k, "rows")));
    c.num_images = ROWS + 1;
    expect_failure(&c, LW_EUSAGE, "38 pictures are to be drawn, but there are 37");
}

/* ---- prepared pictures ----------------------------------------------------------------------- */

static void pictures_are_prepared_as_the_folder_says(void **state)
{
    static const char said[] =
        "{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 20},"
        " \"crop_size\": {\"height\": 16, \"width\": 16}, \"resample\": 3}";
    (void)state;
    LW_CLEANUP(lw_score_net_close) lw_score_net *score = NULL;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)ROWS * 32 * 32 * 3, sizeof *x);
    float features[ROWS * 16];
    save_net("prepared", 3);
    assert_int_equal(
        lw_file_write(in_dir("prepared/preprocessor_config.json"), said, sizeof said - 1), 0);
    char net[128];
    snprintf(net, sizeof net, "%s", in_dir("prepared"));
    lw_encode_config c = config_of("prepared.npy");
    c.source = net;
    c.data = "synth:32";
    c.n_layers = 1;
    encode(&c);
    assert_int_equal(lw_npy_load(c.output, &a), 0);
    /* measures see the same: rows of the data, which became floats, are bytes again */
    const lw_data_opts o = {.count = ROWS};
    assert_int_equal(lw_data_open("synth:32", &o, &d), 0);
    lw_data_from_u8(d->pixels, (int64_t)ROWS * 32 * 32 * 3, x);
    assert_int_equal(lw_score_net_open(dev, net, 32, &score), 0);
    assert_int_equal(lw_score_net_run(score, x, ROWS, features, NULL), 0);
    assert_memory_equal(features, a.data, sizeof features);
    lw_encode_result r; /* what would be, without decoding it */
    c.dry_run = true;
    c.limit = 0;
    c.split = LW_SPLIT_ALL;
    assert_int_equal(lw_job_encode(&c, NULL, &r), 0);
    assert_true(r.rows == 60000 && r.tap[0].shape[0] == 60000 && r.seconds > 0.0);
    assert_true(r.file_bytes == 128 + 60000 * 64 && r.decode < 1.0);
    c.num_images = 70000;
    assert_int_equal(lw_job_encode(&c, NULL, &r), LW_EUSAGE);
    c.image_size = 24;
    expect_failure(&c, LW_EUSAGE, "says itself that its pictures are 16x16");
}

/* ---- real weights ---------------------------------------------------------------------------- */

static void real_logits(void **state)
{
    (void)state;
    LW_CLEANUP(lw_st_close) lw_st_file *got = NULL, *golden = NULL;
    const char *base = getenv("LW_TEST_DATA");
    char net[512], data[512], want[512];
    if (!base) {
        print_message("skipped: LW_TEST_DATA is not set\n");
        return;
    }
    snprintf(net, sizeof net, "%s/encoders/resnet_cifar10/resnet20.safetensors", base);
    snprintf(want, sizeof want, "%s/encoders/resnet_cifar10/golden_test256.safetensors", base);
    snprintf(data, sizeof data, "cifar10:%s/cifar10", base);
    lw_encode_config c = config_of("real.safetensors");
    c.source = net;
    c.data = data;
    c.split = LW_SPLIT_HELDOUT;
    c.limit = 256;
    c.batch = 64;
    c.layers[1] = "logits";
    c.n_layers = 2;
    encode(&c);
    assert_int_equal(lw_st_open(c.output, &got), 0);
    assert_int_equal(lw_st_open(want, &golden), 0);
    const char *const pairs[][2] = {{"pooled", "resnet20.features"}, {"logits", "resnet20.logits"}};
    for (int k = 0; k < 2; k++) {
        const lw_st_tensor *t = lw_st_find(golden, pairs[k][1]);
        const float *a = tensor(got, pairs[k][0], (size_t)t->count), *b = t->data;
        double worst = 0.0, top = 0.0;
        for (int64_t i = 0; i < t->count; i++) {
            worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
            top = fmax(top, fabs((double)b[i]));
        }
        assert_true(worst < 1e-4 * top);
    }
}

/* Every 111th of the crops, in dir/crops; their class and the class that MobileNetV2 says by
 * PyTorch. Returns how many the encoder will find (the last is held out). */
static int copy_crops(const char *base, int *label, int *said)
{
    char crops[400], from[512], line[256], file[64];
    int n = 0, row = 0;
    snprintf(crops, sizeof crops, "%s/images/imagenet1k_sample_224", base);
    snprintf(from, sizeof from, "%s/index.tsv", crops);
    FILE *index = fopen(from, "r");
    snprintf(from, sizeof from, "%s/top1.tsv", crops);
    FILE *top = fopen(from, "r");
    assert_true(index && top);
    assert_int_equal(lw_mkdirs(in_dir("crops")), 0);
    assert_true(fgets(line, sizeof line, index) && fgets(line, sizeof line, top));
    while (fgets(line, sizeof line, index)) {
        char *name = strrchr(line, '\t');
        assert_true(name && sscanf(name + 1, "%63s", file) == 1 && fgets(line, sizeof line, top));
        if (row++ % 111)
            continue;
        LW_CLEANUP(lw_free) char *bytes = NULL;
        size_t size;
        assert_int_equal(sscanf(line, "%d %d", &label[n], &said[n]), 2);
        snprintf(from, sizeof from, "%s/%s", crops, file);
        assert_int_equal(lw_file_read(from, 1 << 20, &bytes, &size), 0);
        snprintf(from, sizeof from, "%s/%s", in_dir("crops"), file);
        assert_int_equal(lw_file_write(from, bytes, size), 0);
        n++;
    }
    fclose(index);
    fclose(top);
    return n - (n == 10);
}

/* From JPEG files to classes. All thousand, by hand: tools/imagenet_check.py. */
static void real_classes(void **state)
{
    (void)state;
    LW_CLEANUP(lw_st_close) lw_st_file *got = NULL;
    const char *base = getenv("LW_TEST_DATA");
    enum { CLASSES = 1001 };
    int label[16], said[16], right = 0;
    char net[512], data[512];
    snprintf(net, sizeof net, "%s/encoders/mobilenet_v2/mobilenet_v2_1.0_224.safetensors",
             base ? base : "");
    snprintf(data, sizeof data, "%s/images/imagenet1k_sample_224/top1.tsv", base ? base : "");
    if (!base || !lw_path_exists(net) || !lw_path_exists(data)) {
        print_message("skipped: LW_TEST_DATA names no folder with images and encoders\n");
        return;
    }
    int n = copy_crops(base, label, said);
    snprintf(data, sizeof data, "folder:%s", in_dir("crops"));
    lw_encode_config c = config_of("classes.safetensors");
    c.source = net;
    c.data = data;
    c.limit = n;
    c.layers[0] = "logits";
    c.n_layers = 1;
    encode(&c);
    assert_int_equal(lw_st_open(c.output, &got), 0);
    const float *logits = tensor(got, "logits", (size_t)n * CLASSES);
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            best = logits[i * CLASSES + k] > logits[i * CLASSES + best] ? k : best;
        assert_int_equal(best - 1, said[i]);
        right += best - 1 == label[i];
    }
    assert_true(right >= n - 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_networks),
        cmocka_unit_test(bytes_do_not_depend_on_how_they_are_made),
        cmocka_unit_test(every_file_holds_the_same),
        cmocka_unit_test(what_was_done_is_kept),
        cmocka_unit_test(what_is_of_another_call_is_refused),
        cmocka_unit_test(rows_are_drawn_and_sorted),
        cmocka_unit_test(pictures_are_prepared_as_the_folder_says),
        cmocka_unit_test(real_logits),
        cmocka_unit_test(real_classes),
    };
    return cmocka_run_group_tests_name("encode", tests, enter, leave);
}
