/* SPDX-License-Identifier: Apache-2.0 */
/* Batteries of tiny networks: what they are, who is kin, features of sets, any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"
#include "results.h"
#include "session/session.h"
#include "session/session_verdict_network.h"

static char dir[64] = "/tmp/lw_battery_XXXXXX";
static lw_device *dev;

static const char *in_dir(const char *name)
{
    static lw_str s[4];
    static int at;
    at = (at + 1) % 4;
    return lw_path_join(&s[at], dir, name);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* A model folder NAME/m of our own encoder; with yaml a run of it. */
static void save_own(const char *name, uint64_t seed, int32_t width, const char *yaml)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, model = {0};
    lw_encoder_config c = lw_encoder_default(16);
    c.width = width;
    c.stages = 2;
    c.classes = 10;
    LW_CLEANUP(lw_json_drop) json_t *config = lw_encoder_to_json(&c);
    ok(lw_store_new(true, &s));
    ok(lw_encoder_declare(&c, s));
    lw_store_init(s, seed);
    lw_path_join(&model, in_dir(name), "m");
    ok(lw_model_folder_save(lw_str_c(&model), s, LW_SLAB_PARAM, config, LW_WEIGHTS_HF));
    if (!yaml)
        return;
    ok(lw_file_write(lw_path_join(&path, in_dir(name), "config.yaml"), yaml, strlen(yaml)));
}

static void save_random(const char *name, uint64_t seed)
{
    LW_CLEANUP(lw_json_drop)
    json_t *config = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i}", "model_type", "dinov2",
                               "hidden_size", 16, "num_hidden_layers", 2, "num_attention_heads", 2,
                               "image_size", 16, "patch_size", 4);
    LW_CLEANUP(lw_json_drop)
    json_t *preparation = json_pack("{s:s, s:{s:i, s:i}}", "image_processor_type",
                                    "ViTImageProcessor", "size", "height", 16, "width", 16);
    ok(lw_random_network(in_dir(name), config, preparation, seed));
}

static int enter(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    setenv("LW_CACHE", in_dir("cache"), 1);
    save_own("a", 1, 8, "objective: classify\ndata: synth:16\n");
    save_own("b", 2, 12, "objective: classify\ndata: \"synth:16,seed=7\"\n");
    save_own("c", 3, 8, "objective: mae\ndata: synth:16\n");
    save_own("s", 4, 8, "objective: distill\ndata: synth:16\nteacher: a/m\n");
    save_own("t", 5, 8, "objective: distill\ndata: synth:16\nteacher: gone/away\n");
    save_own("u", 6, 8, NULL);
    save_random("r1", 1);
    save_random("r2", 2);
    return cpu_device(2, lw_isa_best(), &dev);
}

static int leave(void **state)
{
    (void)state;
    lw_backend_close(&dev);
    return lw_remove_tree(dir);
}

/* A battery of DIR/x and DIR/y for "x,y". */
static int open_battery(const char *names, lw_battery **out)
{
    LW_CLEANUP(lw_str_clear) lw_str specs = {0};
    while (*names) {
        size_t n = strcspn(names, ",");
        lw_str_addf(&specs, "%s%s/%.*s", specs.len ? "," : "", dir, (int)n, names);
        names += n + (names[n] == ',');
    }
    return lw_battery_open(dev, 0, lw_str_c(&specs), 16, out);
}

/* ---- what they are --------------------------------------------------------------------------- */

static void test_facts(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    ok(open_battery("a/m,c/m,r1,r2", &b));
    assert_int_equal(lw_battery_count(b), 4);
    assert_int_equal(lw_battery_counted(b), 4);
    assert_int_equal(lw_battery_families(b), 2);
    assert_int_equal(lw_battery_at(b, 0)->dim, 16);
    assert_string_equal(lw_battery_at(b, 3)->name, "r2");
    lw_lineage_text(&lw_battery_at(b, 0)->lineage, &text);
    assert_string_equal(lw_str_c(&text), "trained here (classify, synth)");
    assert_int_equal(lw_battery_at(b, 2)->lineage.link[0].origin, LW_ORIGIN_RANDOM);
    assert_true(lw_battery_at(b, 0)->parameters > 0);
}

static void test_refused(void **state)
{
    (void)state;
    lw_battery *b = NULL;
    fails(open_battery("a/m,a/m", &b), LW_EUSAGE, "same weights");
    fails(open_battery("a/m,nothing", &b), LW_EUSAGE, "no such file or folder");
    fails(lw_battery_open(dev, 0, "none", 16, &b), LW_EUSAGE, "no pooled feature");
    fails(lw_battery_open(dev, 0, "", 16, &b), LW_EUSAGE, "no network");
    fails(lw_battery_open(dev, 0, in_dir("a/m"), 0, &b), LW_EUSAGE, "several sizes");
    assert_null(b);
}

/* A folder of networks: each of them, and what is none is passed over. */
static void test_folder(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    ok(lw_mkdirs(in_dir("all")));
    save_random("all/x", 11);
    save_random("all/y", 12);
    ok(lw_file_write(in_dir("all/README.md"), "# two\n", 6));
    ok(lw_mkdirs(in_dir("empty")));
    fails(lw_battery_open(dev, 0, in_dir("empty"), 16, &b), LW_EUSAGE, "holds no network");
    ok(lw_battery_open(dev, 0, in_dir("all"), 16, &b));
    assert_int_equal(lw_battery_count(b), 2);
    assert_string_equal(lw_battery_at(b, 1)->name, "y");
}

/* ---- kin ------------------------------------------------------------------------------------- */

static bool left_out(const char *used, const char *of)
{
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    lw_lineage l;
    ok(open_battery(of, &b));
    ok(lw_encoder_open(in_dir(used), &n));
    ok(lw_lineage_of(in_dir(used), n, &l));
    ok(lw_battery_leave_out(b, &l, "drift"));
    const char *why = lw_battery_at(b, 0)->left_out;
    assert_true(!why || strstr(why, "drift was trained with"));
    assert_int_equal(lw_battery_counted(b), why ? 0 : 1);
    return why != NULL;
}

static void test_kin(void **state)
{
    (void)state;
    assert_true(left_out("a/m", "a/m"));
    assert_true(left_out("a/m", "b/m"));  /* another seed and width, the same exercise */
    assert_false(left_out("a/m", "c/m")); /* another objective */
    assert_true(left_out("s/m", "a/m"));  /* a student's teacher */
    assert_true(left_out("a/m", "s/m"));
    assert_true(left_out("s/m", "b/m")); /* the teacher's kin */
    assert_false(left_out("s/m", "c/m"));
    assert_true(left_out("t/m", "c/m")); /* a teacher that is not there */
    assert_true(left_out("u/m", "a/m")); /* data that is not known */
    assert_false(left_out("u/m", "c/m"));
    assert_false(left_out("a/m", "r1"));
    assert_false(left_out("r1", "r2"));
    assert_true(left_out("r1", "r1"));
    assert_false(left_out("t/m", "r1"));
}

static void test_kin_of_run(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_battery_free) lw_battery *chosen = NULL;
    LW_CLEANUP(lw_battery_free) lw_battery *gone = NULL;
    LW_CLEANUP(lw_battery_free) lw_battery *two = NULL;
    static const char drift[] = "command: train drift\nencoder: s/m\neval-encoder: c/m\n",
                      best[] = "encoder: none\neval-encoder: c/m\nkeep-best: eval_fd\n",
                      lost[] = "encoder: lost/m\n", both[] = "encoder: c/m,s/m\n";
    ok(lw_mkdirs(in_dir("drift")));
    ok(lw_mkdirs(in_dir("best/checkpoints/step_1")));
    ok(lw_mkdirs(in_dir("lost_run")));
    ok(lw_mkdirs(in_dir("both")));
    ok(lw_file_write(in_dir("both/config.yaml"), both, strlen(both)));
    ok(lw_file_write(in_dir("drift/config.yaml"), drift, strlen(drift)));
    ok(lw_file_write(in_dir("best/config.yaml"), best, strlen(best)));
    ok(lw_file_write(in_dir("lost_run/config.yaml"), lost, strlen(lost)));
    ok(open_battery("a/m,c/m,r1", &b));
    ok(lw_battery_leave_out_run(b, in_dir("drift"), "drift"));
    assert_non_null(lw_battery_at(b, 0)->left_out); /* the teacher of its encoder */
    assert_null(lw_battery_at(b, 1)->left_out);     /* only looked on */
    ok(open_battery("a/m,c/m,r1", &chosen));
    ok(lw_battery_leave_out_run(chosen, in_dir("best/checkpoints/step_1"), "DDPM"));
    assert_null(lw_battery_at(chosen, 0)->left_out);
    assert_non_null(lw_battery_at(chosen, 1)->left_out); /* it chose the checkpoint */
    ok(open_battery("a/m,c/m,r1", &gone));
    ok(lw_battery_leave_out_run(gone, in_dir("lost_run"), "drift"));
    assert_int_equal(lw_battery_counted(gone), 1);
    assert_null(lw_battery_at(gone, 2)->left_out);
    ok(open_battery("a/m,c/m,r1", &two));
    ok(lw_battery_leave_out_run(two, in_dir("both"), "drift"));
    assert_int_equal(lw_battery_counted(two), 1); /* kin of either encoder */
    assert_null(lw_battery_at(two, 2)->left_out);
}

/* ---- features -------------------------------------------------------------------------------- */

enum { N = 70, SIDE = 16, BYTES = SIDE * SIDE * 3, MOST = 64 };
static uint8_t pixels[2][N][BYTES];

typedef struct seen {
    float f[4][2][N * MOST];
    int order[8], n;
} seen;

static int take(void *self, int32_t i, int32_t s, float **features)
{
    seen *v = self;
    memcpy(v->f[i][s], *features, sizeof(float) * N * 16);
    v->order[v->n++] = 10 * i + s;
    return 0;
}

static int decode(void *self, int64_t i, lw_image *out)
{
    (void)self;
    LW_TRY(lw_image_init(out, SIDE, SIDE));
    memcpy(out->rgb, pixels[1][i], BYTES);
    return 0;
}

static int decode_other(void *self, int64_t i, lw_image *out)
{
    (void)self;
    return lw_image_init(out, i == 3 ? SIDE + 1 : SIDE, SIDE);
}

static void draw_pixels(void)
{
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < BYTES; k++)
                pixels[s][i][k] = (uint8_t)((s * 57 + i * 31 + k * k + i * k) % 251);
}

static void test_features(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_battery_free) lw_battery *one = NULL;
    LW_CLEANUP(lw_free) seen *x = lw_calloc(1, sizeof *x);
    LW_CLEANUP(lw_free) seen *y = lw_calloc(1, sizeof *y);
    LW_CLEANUP(lw_str_clear) lw_str specs = {0};
    lw_device *single = NULL;
    draw_pixels();
    const lw_pictures sets[] = {
        {.name = "real", .n = N, .side = SIDE, .rgb = pixels[0][0], .content = 77},
        {.name = "made", .n = N, .side = SIDE, .rgb = pixels[1][0]}};
    const lw_pictures decoded[] = {sets[0], {.name = "made", .n = N, .decode = decode}};
    ok(open_battery("a/m,r1", &b));
    ok(lw_battery_run(b, sets, 2, take, x, NULL));
    assert_int_equal(x->n, 4);
    assert_int_equal(x->order[1], 1);
    assert_int_equal(x->order[2], 10);
    assert_memory_not_equal(x->f[0][0], x->f[0][1], sizeof(float) * N * 16);
    ok(cpu_device(1, lw_isa_best(), &single));
    lw_str_addf(&specs, "%s/a/m,%s/r1", dir, dir);
    ok(lw_battery_open(single, 0, lw_str_c(&specs), SIDE, &one));
    ok(lw_battery_run(one, decoded, 2, take, y, NULL)); /* the first set from the cache */
    for (int i = 0; i < 2; i++)
        for (int s = 0; s < 2; s++)
            assert_memory_equal(x->f[i][s], y->f[i][s], sizeof(float) * N * 16);
    const lw_pictures mixed = {.name = "mixed", .n = N, .decode = decode_other};
    fails(lw_battery_run(one, &mixed, 1, take, y, NULL), LW_ESHAPE, "picture 3 is 17x16");
    lw_battery_free(&one);
    lw_backend_close(&single);
}

/* What is left out is not even opened. */
static void test_left_out_is_not_run(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_free) seen *x = lw_calloc(1, sizeof *x);
    draw_pixels();
    const lw_pictures set = {.name = "made", .n = N, .side = SIDE, .rgb = pixels[1][0]};
    ok(open_battery("r1,r2", &b));
    ok(lw_battery_leave_out(b, &lw_battery_at(b, 0)->lineage, "drift"));
    ok(lw_battery_run(b, &set, 1, take, x, NULL));
    assert_int_equal(x->n, 1);
    assert_int_equal(x->order[0], 10);
}

/* Seconds are those of opening and of whole batches, of what must be computed: not of networks left
 * out, nor of features that are kept. */
static void test_forecast(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_free) seen *x = lw_calloc(1, sizeof *x);
    lw_battery_cost c;
    draw_pixels();
    const lw_pictures sets[] = {
        {.name = "kept", .n = N, .side = SIDE, .rgb = pixels[1][0], .content = 81},
        {.name = "other", .n = 1000, .side = SIDE},
        {.name = "third", .n = 65, .side = SIDE, .content = 83}};
    ok(open_battery("r1,r2,a/m", &b));
    ok(lw_battery_leave_out(b, &lw_battery_at(b, 0)->lineage, "drift"));
    for (int kept = 0; kept < 2; kept++) {
        ok(lw_battery_forecast(b, sets, LW_COUNT(sets), &c));
        assert_true(c.batches[0] == 0 && c.open[0] == 0 && c.per_batch[0] == 0);
        for (int i = 1; i < 3; i++) { /* batches of 64: 1000 pictures are 16, 65 are 2 */
            assert_int_equal(c.batches[i], (kept ? 0 : LW_CEIL_DIV(N, 64)) + 16 + 2);
            assert_true(c.open[i] > 0 && c.per_batch[i] > 0);
        }
        double sum = c.open[1] + c.open[2] + (double)c.batches[1] * c.per_batch[1] +
                     (double)c.batches[2] * c.per_batch[2];
        assert_true(fabs(sum - c.seconds) <= 1e-9 * sum);
        ok(lw_battery_run(b, sets, 1, take, x, NULL));
    }
    ok(lw_battery_forecast(b, sets, 1, &c)); /* nothing to compute: no batch is timed */
    assert_true(c.batches[1] == 0 && c.per_batch[1] == 0 && c.seconds > 0);
}

/* ---- a verdict ------------------------------------------------------------------------------- */

enum { ROWS = 4, EACH = 200 };

/* Other real pictures, blurred ones, noise, and the first again in other company. */
static void make_rows(uint8_t *rgb, lw_verdict_set rows[ROWS])
{
    static const char *const names[ROWS] = {"real", "blurred", "noise", "planted"};
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    const lw_data_opts o = {.split = LW_SPLIT_TRAIN, .count = EACH, .cache_dir = ""};
    float x[BYTES], y[BYTES];
    ok(lw_data_open("synth:16", &o, &d));
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < EACH; i++) {
            uint8_t *to = rgb + (r * EACH + i) * BYTES;
            lw_data_get(d, i, false, x);
            lw_junk_blur(x, SIDE, SIDE, 3, 2, y);
            memcpy(to, d->pixels + i * BYTES, BYTES);
            if (r == 1)
                lw_data_to_u8(y, BYTES, to);
            for (int k = 0; k < BYTES && r == 2; k++)
                to[k] = (uint8_t)(lw_hash64(&(int64_t){i * BYTES + k}, 8) & 255);
        }
    for (int r = 0; r < ROWS; r++)
        rows[r] = (lw_verdict_set){.name = names[r],
                                   .part = r == 3 ? LW_VERDICT_PLANTED : LW_VERDICT_MADE,
                                   .rgb = rgb + r * EACH * BYTES,
                                   .n = EACH};
}

static void open_real(lw_verdict_real *out)
{
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    const lw_data_opts o = {.split = LW_SPLIT_HELDOUT, .count = 600, .cache_dir = ""};
    ok(lw_data_open("synth:16", &o, &d));
    ok(lw_verdict_split(d, EACH, out));
    assert_int_equal(out->unseen, EACH);
    assert_int_equal(out->reference, 600 - EACH);
}

static void test_verdict(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_verdict_real_clear) lw_verdict_real real = {0};
    LW_CLEANUP(lw_free) uint8_t *rgb = lw_calloc((size_t)ROWS * EACH * BYTES, 1);
    LW_CLEANUP(lw_free) lw_verdict_result *r = NULL;
    LW_CLEANUP(lw_free) lw_verdict_result *one = NULL;
    const lw_verdict_opts o = {.replicates = 20, .directions = 64};
    lw_verdict_set rows[ROWS];
    lw_device *single = NULL;
    double seconds = 0;
    make_rows(rgb, rows);
    open_real(&real);
    ok(open_battery("a/m,c/m,r1,r2", &b));
    ok(lw_battery_leave_out(b, &lw_battery_at(b, 3)->lineage, "drift"));
    ok(lw_verdict_run(dev, b, &real, rows, ROWS, &o, NULL, &r));
    assert_int_equal(r->networks, 3);
    assert_int_equal(r->families, 2);
    assert_int_equal(r->network[2], 2);
    assert_int_equal(r->rule.sets, 28);
    assert_true(r->row[0].number.value < 0.4); /* as far as other real pictures */
    assert_true(r->row[1].number.value > r->row[0].number.high);
    assert_true(r->row[2].number.value > r->row[1].number.high);
    assert_true(r->row[1].number.low < r->row[1].number.value);
    assert_false(r->row[0].suspect || r->row[1].suspect);
    assert_memory_equal(&r->value[3], &r->value[0], sizeof r->value[0]);
    assert_true(r->row[3].judged);
    ok(lw_verdict_forecast(dev, b, &real, rows, ROWS, &o, &seconds));
    assert_true(seconds > 0);

    /* another number of threads; a row alone */
    ok(cpu_device(1, lw_isa_best(), &single));
    lw_battery_free(&b);
    lw_device *two = dev;
    dev = single;
    ok(open_battery("a/m,c/m,r1", &b));
    ok(lw_verdict_run(dev, b, &real, rows + 1, 1, &o, NULL, &one));
    assert_memory_equal(&one->value[0], &r->value[1], sizeof r->value[0]);
    assert_memory_equal(&one->row[0].number, &r->row[1].number, sizeof r->row[1].number);
    assert_true(one->row[0].shortfall == r->row[1].shortfall);
    lw_battery_free(&b);
    dev = two;
    lw_backend_close(&single);
}

static void test_verdict_refused(void **state)
{
    (void)state;
    LW_CLEANUP(lw_battery_free) lw_battery *b = NULL;
    LW_CLEANUP(lw_battery_free) lw_battery *pair = NULL;
    LW_CLEANUP(lw_verdict_real_clear) lw_verdict_real real = {0};
    LW_CLEANUP(lw_data_close) lw_dataset *few = NULL;
    LW_CLEANUP(lw_free) uint8_t *rgb = lw_calloc((size_t)ROWS * EACH * BYTES, 1);
    LW_CLEANUP(lw_free) lw_verdict_result *r = NULL;
    const lw_data_opts small = {.split = LW_SPLIT_HELDOUT, .count = 99, .cache_dir = ""};
    const lw_verdict_opts o = {.replicates = 20, .directions = 16};
    lw_verdict_set rows[ROWS];
    lw_verdict_real none;
    make_rows(rgb, rows);
    open_real(&real);
    ok(open_battery("r1", &b));
    ok(lw_battery_leave_out(b, &lw_battery_at(b, 0)->lineage, "drift"));
    fails(lw_verdict_run(dev, b, &real, rows, ROWS, &o, NULL, &r), LW_EUSAGE, "is kin");
    ok(lw_data_open("synth:16", &small, &few));
    fails(lw_verdict_split(few, 50, &none), LW_EUSAGE, "too few");
    ok(open_battery("r1,r2", &pair)); /* two cannot outvote one: numbers, and no verdict */
    ok(lw_verdict_run(dev, pair, &real, rows, ROWS, &o, NULL, &r));
    assert_int_equal(r->rule.sets, 0);
    assert_false(r->row[1].judged || r->row[1].suspect);
    rows[0].n = 1;
    lw_free(&r);
    fails(lw_verdict_run(dev, pair, &real, rows, 1, &o, NULL, &r), LW_EUSAGE, "2");
}

/* A network that sees classes and hardly anything else: undamaged sets are as near as their floor, for
 * they have its share of every class. Sets drawn across classes lie e^1 times as far and more. */
static void test_whole_sets_have_all_classes(void **state)
{
    enum { REFERENCE = 1000, UNSEEN = 400, CLASSES = 10 };
    static int32_t labels[REFERENCE + UNSEEN];
    const lw_verdict_real real = {
        .reference = REFERENCE, .unseen = UNSEEN, .classes = CLASSES, .labels = labels};
    const verdict_sizes sizes = lw_verdict_sizes_of(REFERENCE, UNSEEN);
    const lw_verdict_opts o = {.replicates = 20, .directions = 64, .level = 0.95};
    const int64_t count = lw_verdict_picture_count(&sizes);
    const lw_rng_key key = lw_rng_key_of(5, lw_hash_name("test.whole"));
    LW_CLEANUP(lw_verdict_network_clear) verdict_network n = {0};
    double damaged[VERDICT_DAMAGED], whole[VERDICT_WHOLE];
    float *f = lw_calloc((size_t)(count * CLASSES), sizeof *f);
    (void)state;
    assert_non_null(f);
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < CLASSES; k++)
            f[i * CLASSES + k] = (float)(k == i % CLASSES) +
                                 0.01f * (float)lw_rng_uniform(key, 0, (uint64_t)i, (uint64_t)k);
    for (int32_t i = 0; i < REFERENCE + UNSEEN; i++)
        labels[i] = i % CLASSES;
    ok(lw_verdict_network_open(dev->pool, "classes", CLASSES, &sizes, &o, &f, &n));
    ok(lw_verdict_honest(&n, &real, 1, damaged, whole));
    for (int i = 0; i < VERDICT_WHOLE; i++)
        if (fabs(whole[i]) > 0.5)
            fail_msg("undamaged set %d has level %g", i, whole[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_kin),
        cmocka_unit_test(test_kin_of_run),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_left_out_is_not_run),
        cmocka_unit_test(test_forecast),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_whole_sets_have_all_classes),
        cmocka_unit_test(test_verdict_refused),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
