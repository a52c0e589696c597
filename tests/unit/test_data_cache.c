/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped cache: hit, stale, damaged, unwritable, built by several processes at once; real data
 * from it. */
#include "test_data_util.h"

#include "data/sources/data_source.h"
#include "data/data.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const spec = "synth:16,seed=4";

static lw_data_opts in_dir(const char *dir)
{
    return (lw_data_opts){.cache_dir = dir, .count = 300};
}

static void second_opening_maps_the_first(void **state)
{
    (void)state;
    const char *dir = in_scratch("deep/er");
    lw_data_opts o = in_dir(dir);
    LW_CLEANUP(lw_data_close) lw_dataset *a = NULL;
    LW_CLEANUP(lw_data_close) lw_dataset *b = NULL;
    LW_CLEANUP(lw_data_close) lw_dataset *m = NULL;
    struct stat before, after;
    ok(lw_data_open(spec, &o, &a));
    assert_true(a->cached && lw_str_starts(a->cache_path, dir));
    assert_int_equal(stat(a->cache_path, &before), 0);
    ok(lw_data_open(spec, &o, &b));
    assert_int_equal(stat(b->cache_path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    o.cache_dir = "";
    ok(lw_data_open(spec, &o, &m));
    assert_false(m->cached);
    assert_string_equal(m->cache_path, "");
    assert_true(m->content == a->content && a->content == b->content &&
                m->fingerprint == b->fingerprint);
    assert_memory_equal(m->pixels, b->pixels, 300 * 768);
    assert_memory_equal(m->labels, b->labels, 300 * sizeof(int32_t));
}

static void read_cache(const char *path, char **bytes, size_t *n)
{
    ok(lw_file_read(path, 0, bytes, n));
}

/* What `data check` says of it: one problem that names the cache, and the data as it should be. */
static void expect_reported(const lw_data_opts *o, uint64_t content, const char *text)
{
    lw_data_report r;
    ok(lw_data_check(spec, o, &r));
    assert_int_equal(r.n_problems, 1);
    if (!strstr(r.problems[0].reason, text) || !strstr(r.problems[0].reason, ".data: damaged"))
        fail_msg("'%s' does not hold '%s'", r.problems[0].reason, text);
    assert_non_null(r.set);
    assert_true(r.set->content == content);
    lw_data_report_clear(&r);
    ok(lw_data_check(spec, o, &r)); /* it was built again */
    assert_int_equal(r.n_problems, 0);
    lw_data_report_clear(&r);
}

/* More blocks than an opening looks at: a check finds any byte, an opening in time. */
static void damaged_pixels_of_large_caches_are_found(void **state)
{
    (void)state;
    lw_data_opts o = in_dir(in_scratch("large"));
    o.count = 6000; /* 70 blocks of 85 rows; an opening looks at 32 */
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    ok(lw_data_open(spec, &o, &d));
    char path[600];
    snprintf(path, sizeof path, "%s", d->cache_path);
    uint64_t content = d->content;
    lw_data_close(&d);
    LW_CLEANUP(lw_free) char *good = NULL;
    size_t n;
    read_cache(path, &good, &n);
    const size_t at = LW_DATA_PIXELS_AT + 1000 * 768 + 5; /* row 1000 is of block 11 */
    good[at] ^= 1;
    ok(lw_file_write(path, good, n));
    expect_reported(&o, content, "the first is rows 935 to 1019)");
    ok(lw_file_write(path, good, n));
    int openings = 0;
    do {
        lw_data_close(&d);
        ok(lw_data_open(spec, &o, &d));
        openings++;
    } while (d->pixels[1000 * 768 + 5] == (uint8_t)good[at] && openings < 200);
    assert_true(openings < 200); /* by chance alone: (1 - 32/70)^200 */
    good[at] ^= 1;
    assert_memory_equal(d->pixels, good + LW_DATA_PIXELS_AT, 6000 * 768);
}

enum { LABELS_AT = LW_DATA_PIXELS_AT + 5 * 768 };

static void damage_is_named(const lw_data_opts *o, const char *path, char *good, size_t n,
                            uint64_t content)
{
    static const struct {
        size_t at;
        const char *says;
    } told[] = {{0, "does not begin as one"},
                {40, "its header"},
                {LW_DATA_PIXELS_AT + 900, "rows 0 to 4"},
                {LABELS_AT + 1, "its labels"}};
    for (size_t i = 0; i < LW_COUNT(told); i++) {
        good[told[i].at] ^= 0x41;
        ok(lw_file_write(path, good, n));
        good[told[i].at] ^= 0x41;
        expect_reported(o, content, told[i].says);
    }
}

/* Damage at any byte, any length: rebuilt, never believed, never a crash. Of small caches every
 * byte is looked at. LW_TEST_FULL: each of them is damaged once, not every third. */
static void damaged_caches_are_rebuilt(void **state)
{
    (void)state;
    lw_data_opts o = in_dir(in_scratch("damage"));
    o.count = 5;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    ok(lw_data_open(spec, &o, &d));
    char path[600];
    snprintf(path, sizeof path, "%s", d->cache_path);
    uint64_t content = d->content;
    uint8_t *pixels = malloc(5 * 768);
    memcpy(pixels, d->pixels, 5 * 768);
    LW_CLEANUP(lw_free) char *good = NULL;
    size_t n;
    read_cache(path, &good, &n);
    int rebuilt = 0;
    damage_is_named(&o, path, good, n, content);
    for (size_t at = 0; at < n; at++) {
        if (at >= sizeof(lw_data_header) && at < LW_DATA_PIXELS_AT)
            continue; /* padding of the header page */
        if (!getenv("LW_TEST_FULL") &&
            at % (at > LW_DATA_PIXELS_AT && at < LABELS_AT ? 97 : 3) != 0)
            continue;
        lw_data_close(&d);
        good[at] ^= 0x41;
        ok(lw_file_write(path, good, n));
        good[at] ^= 0x41;
        ok(lw_data_open(spec, &o, &d));
        assert_true(d->content == content && d->n == 5);
        assert_memory_equal(d->pixels, pixels, 5 * 768);
        rebuilt++;
    }
    static const size_t lengths[] = {0, 1, 100, 4095, 4096, 5000};
    for (size_t i = 0; i < LW_COUNT(lengths); i++) {
        lw_data_close(&d);
        ok(lw_file_write(path, good, lengths[i]));
        ok(lw_data_open(spec, &o, &d));
        assert_memory_equal(d->pixels, pixels, 5 * 768);
    }
    lw_data_close(&d);
    good = realloc(good, n + 1);
    good[n] = 0;
    ok(lw_file_write(path, good, n + 1));
    ok(lw_data_open(spec, &o, &d));
    LW_CLEANUP(lw_free) char *now = NULL;
    size_t k;
    read_cache(path, &now, &k);
    assert_int_equal(k, n);
    assert_memory_equal(now, good, n);
    free(pixels);
    print_message("%d damaged bytes, all rebuilt\n", rebuilt);
}

static void changed_sources_are_decoded_again(void **state)
{
    (void)state;
    char dir[256], path[300], text[600];
    snprintf(dir, sizeof dir, "%s", in_scratch("src"));
    snprintf(path, sizeof path, "%s/data_batch_1.bin", dir);
    snprintf(text, sizeof text, "cifar10:%s", dir);
    ok(lw_mkdirs(dir));
    static uint8_t records[2 * 3073];
    ok(lw_file_write(path, records, sizeof records));
    ok(lw_file_write(in_scratch("src/test_batch.bin"), records, sizeof records));
    lw_data_opts o = {.cache_dir = in_scratch("stale")};
    LW_CLEANUP(lw_data_close) lw_dataset *a = NULL;
    LW_CLEANUP(lw_data_close) lw_dataset *b = NULL;
    ok(lw_data_open(text, &o, &a));
    assert_int_equal(a->pixels[0], 0);
    records[1] = 200;
    ok(lw_file_write(path, records, sizeof records));
    ok(lw_data_open(text, &o, &b));
    assert_int_equal(b->pixels[0], 200);
    assert_int_equal(a->pixels[0], 0); /* the old map stays what it was */
    assert_true(a->fingerprint != b->fingerprint && a->content != b->content);
    assert_string_equal(a->cache_path, b->cache_path);
}

static void unwritable_caches_fall_back_to_memory(void **state)
{
    (void)state;
    ok(lw_file_write(in_scratch("file"), "x", 1));
    const char *const places[] = {in_scratch("file/below"), "/proc/leeway", "/dev/null"};
    for (size_t i = 0; i < LW_COUNT(places); i++) {
        LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
        lw_data_opts o = in_dir(places[i]);
        ok(lw_data_open(spec, &o, &d));
        assert_false(d->cached);
        assert_int_equal(d->n, 300);
        assert_string_equal(lw_errmsg(), "");
    }
}

/* A disk that is full while writing: the same fall-back; a link in the place of the temporary file
 * is not followed. */
static void full_disks_fall_back_to_memory(void **state)
{
    (void)state;
    lw_data_opts o = in_dir(in_scratch("full"));
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    ok(lw_data_open(spec, &o, &d));
    char path[600], temp[640];
    snprintf(path, sizeof path, "%s", d->cache_path);
    snprintf(temp, sizeof temp, "%s.tmp", path);
    lw_data_close(&d);
    assert_int_equal(unlink(path), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* no file may have more than 4096 bytes */
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}) != 0)
            _exit(3);
        _exit(lw_data_open(spec, &o, &d) == 0 && !d->cached ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_false(lw_path_exists(path));
    assert_false(lw_path_exists(temp));
    ok(lw_file_write(in_scratch("full/victim"), "mine", 4));
    assert_int_equal(symlink("victim", temp), 0);
    ok(lw_data_open(spec, &o, &d));
    assert_true(d->cached);
    uint64_t size = 0;
    ok(lw_file_size(in_scratch("full/victim"), &size));
    assert_int_equal(size, 4);
}

static void processes_share_one_build(void **state)
{
    (void)state;
    enum { PROCESSES = 6 };
    lw_data_opts o = {.cache_dir = in_scratch("many"), .count = 4000};
    pid_t child[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            lw_dataset *d = NULL;
            int rc = lw_data_open(spec, &o, &d);
            int good = rc == 0 && d->cached && d->n == 4000 && d->labels[3999] == 9;
            struct stat st;
            /* The inode says whether all map the same file. */
            if (good && stat(d->cache_path, &st) == 0) {
                char line[64];
                int n = snprintf(line, sizeof line, "%llu %016llx\n", (unsigned long long)st.st_ino,
                                 (unsigned long long)d->content);
                lw_file_append(in_scratch("inodes"), line, (size_t)n);
            }
            lw_data_close(&d);
            _exit(good ? 0 : 1);
        }
        assert_true(child[i] > 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n;
    ok(lw_file_read(in_scratch("inodes"), 0, &text, &n));
    size_t line = (size_t)(strchr(text, '\n') - text) + 1;
    assert_int_equal(n, PROCESSES * line);
    for (int i = 1; i < PROCESSES; i++)
        assert_memory_equal(text, text + (size_t)i * line, line);
}

static void cache_dir_follows_the_environment(void **state)
{
    (void)state;
    char buf[256];
    setenv("LW_CACHE", "/a/b", 1);
    assert_string_equal(lw_data_cache_dir(buf, sizeof buf), "/a/b");
    assert_string_equal(lw_data_cache_dir(buf, 3), "");
    unsetenv("LW_CACHE");
    setenv("XDG_CACHE_HOME", "/x", 1);
    assert_string_equal(lw_data_cache_dir(buf, sizeof buf), "/x/leeway");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/h", 1);
    assert_string_equal(lw_data_cache_dir(buf, sizeof buf), "/h/.cache/leeway");
    unsetenv("HOME");
    assert_string_equal(lw_data_cache_dir(buf, sizeof buf), "");
}

static void write_at(const char *path, size_t at, uint8_t byte)
{
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t n;
    read_cache(path, &bytes, &n);
    assert_true(at < n);
    bytes[at] = (char)byte;
    ok(lw_file_write(path, bytes, n));
}

static size_t count_state(const char *dir, lw_cached_state state)
{
    LW_CLEANUP(lw_data_cache_list_clear) lw_cached_list l = {0};
    size_t n = 0;
    ok(lw_data_cache_list(dir, &l));
    for (size_t i = 0; i < l.n; i++)
        n += l.at[i].state == state;
    return n;
}

/* Only what is named and begins as a cache is listed and removed; links and the rest stay. */
static void caches_are_listed_and_removed(void **state)
{
    (void)state;
    char dir[512], kept[2000], path[5][600];
    snprintf(dir, sizeof dir, "%s", in_scratch("list"));
    LW_CLEANUP(lw_data_cache_list_clear) lw_cached_list l = {0};
    ok(lw_data_cache_list(dir, &l)); /* a missing folder has none */
    assert_int_equal(l.n, 0);
    lw_data_opts o = in_dir(dir);
    for (int i = 0; i < 4; i++) {
        LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
        o.count = 5 + i;
        ok(lw_data_open(spec, &o, &d));
        snprintf(path[i], sizeof path[i], "%s", d->cache_path);
    }
    write_at(path[1], 50, 0xee); /* damaged */
    write_at(path[2], 8, 1);     /* of version 1 */
    write_at(path[3], 0, 'X');   /* not one of ours any more */
    static const char *const others[] = {
        "notes.txt", "synth-16-0123456789abcdef.data.bak", "synth-16-0123456789abcdeg.data",
        "other-16-0123456789abcdef.data", "synth-16-0123456789abcdef.data"};
    for (size_t i = 0; i < LW_COUNT(others); i++) {
        snprintf(kept, sizeof kept, "%s/%s", dir, others[i]);
        ok(lw_file_write(kept, "precious", 8));
    }
    snprintf(path[4], sizeof path[4], "%s/synth-16-1111111111111111.data", dir);
    assert_int_equal(symlink(path[0], path[4]), 0);
    snprintf(kept, sizeof kept, "%s.tmp", path[0]);
    ok(lw_file_write(kept, "half", 4));
    ok(lw_data_cache_list(dir, &l));
    assert_int_equal(l.n, 4);
    assert_int_equal(count_state(dir, LW_CACHED_WHOLE), 1);
    assert_int_equal(count_state(dir, LW_CACHED_DAMAGED), 1);
    assert_int_equal(count_state(dir, LW_CACHED_OTHER), 1);
    assert_int_equal(count_state(dir, LW_CACHED_UNFINISHED), 1);
    int fd = -1;
    snprintf(kept, sizeof kept, "%s.lock", path[0]);
    ok(lw_lock_take(kept, "waits", NULL, &fd));
    for (size_t i = 0; i < l.n; i++) {
        bool locked = lw_str_starts(l.at[i].path, path[0]); /* the file and its unfinished one */
        if (l.at[i].state == LW_CACHED_WHOLE) {
            assert_string_equal(l.at[i].title, "synth:16,seed=4 train rows 0+5");
            assert_int_equal(l.at[i].rows, 5);
            assert_true(l.at[i].age >= 0 && l.at[i].age < 3600 && l.at[i].bytes > 4096);
        }
        assert_int_equal(lw_data_cache_remove(&l.at[i]), locked);
    }
    lw_lock_drop(&fd);
    assert_true(lw_path_exists(path[0]) && !lw_path_exists(path[1]) && !lw_path_exists(path[2]));
    for (size_t i = 0; i < l.n; i++)
        assert_int_equal(lw_data_cache_remove(&l.at[i]), 0); /* those that are gone: nothing */
    assert_false(lw_path_exists(path[0]));
    assert_true(lw_path_exists(path[3]));
    char link[8];
    assert_true(readlink(path[4], link, sizeof link) > 0); /* the link is left */
    for (size_t i = 0; i < LW_COUNT(others); i++) {
        snprintf(kept, sizeof kept, "%s/%s", dir, others[i]);
        assert_true(lw_path_exists(kept));
    }
}

/* Needs the real files: LW_TEST_DATA/cifar10, LW_TEST_DATA/mnist. */
static void real_data_is_exact_and_opens_at_once(void **state)
{
    (void)state;
    const char *root = getenv("LW_TEST_DATA");
    if (!root) {
        print_message("skipped: LW_TEST_DATA names no folder with cifar10 and mnist\n");
        skip();
    }
    char text[600];
    lw_data_opts o = {.cache_dir = in_scratch("real")};
    for (int round = 0; round < 2; round++) {
        LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
        snprintf(text, sizeof text, "cifar10:%s/cifar10", root);
        o.split = round ? LW_SPLIT_HELDOUT : LW_SPLIT_TRAIN; /* both from one decoding */
        double t = lw_now();
        ok(lw_data_open(text, &o, &d));
        t = lw_now() - t;
        print_message("cifar10 %s: %lld rows in %.4f s\n", lw_split_name(o.split), (long long)d->n,
                      t);
        assert_int_equal(d->n, round ? 10000 : 50000);
        static const uint8_t red[6] = {59, 43, 50, 68, 98, 119};
        for (int i = 0; !round && i < 6; i++)
            assert_int_equal(d->pixels[3 * i], red[i]);
        assert_int_equal(d->labels[0], round ? 3 : 6);
        assert_true(!round || t < 1.0);
    }
    LW_CLEANUP(lw_data_close) lw_dataset *m = NULL;
    snprintf(text, sizeof text, "mnist:%s/mnist", root);
    o.split = LW_SPLIT_TRAIN;
    ok(lw_data_open(text, &o, &m));
    assert_int_equal(m->n, 60000);
    assert_int_equal(m->labels[0], 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_opening_maps_the_first),
        cmocka_unit_test(damaged_caches_are_rebuilt),
        cmocka_unit_test(damaged_pixels_of_large_caches_are_found),
        cmocka_unit_test(changed_sources_are_decoded_again),
        cmocka_unit_test(unwritable_caches_fall_back_to_memory),
        cmocka_unit_test(full_disks_fall_back_to_memory),
        cmocka_unit_test(processes_share_one_build),
        cmocka_unit_test(caches_are_listed_and_removed),
        cmocka_unit_test(cache_dir_follows_the_environment),
        cmocka_unit_test(real_data_is_exact_and_opens_at_once),
    };
    lw_log_set(LW_LOG_ERROR); /* small files and unwritable caches are warned about */
    return cmocka_run_group_tests_name("data cache", tests, scratch_make, scratch_remove);
}
