/* SPDX-License-Identifier: Apache-2.0 */
/* base/sys: files, directories, maps, locks, clocks, CPU counts and control groups. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/sys/sys_cgroup.h"

static char dir[64]; /* a fresh directory for the group */

static const char *in_dir(const char *name)
{
    static lw_str paths[4];
    static int turn;
    turn = (turn + 1) % 4;
    return lw_path_join(&paths[turn], dir, name);
}

static void put(const char *path, const char *text)
{
    assert_int_equal(lw_file_write(path, text, strlen(text)), 0);
}

static void paths_are_seen_from_a_directory(void **state)
{
    (void)state;
    lw_str s = {0};
    assert_int_equal(lw_mkdirs(in_dir("ab/c")), 0);
    assert_int_equal(lw_mkdirs(in_dir("abc/d")), 0);
    put(in_dir("ab/page"), "x");
    put(in_dir("abc/d/page"), "x");
    assert_int_equal(lw_path_relative(in_dir("ab"), in_dir("ab/page"), &s), 0);
    assert_string_equal(lw_str_c(&s), "page");
    assert_int_equal(lw_path_relative(in_dir("ab/c"), in_dir("ab/page"), &s), 0);
    assert_string_equal(lw_str_c(&s), "../page");
    assert_int_equal(lw_path_relative(in_dir("ab/c"), in_dir("abc/d/page"), &s), 0);
    assert_string_equal(lw_str_c(&s), "../../abc/d/page"); /* ab is no part of abc */
    assert_int_equal(lw_path_relative(dir, in_dir("ab/../abc/d"), &s), 0);
    assert_string_equal(lw_str_c(&s), "abc/d");
    assert_int_equal(lw_path_relative(dir, in_dir("none"), &s), LW_EIO);
    assert_non_null(strstr(lw_errmsg(), "none"));
    lw_str_clear(&s);
}

static void files_round_trip(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    put(in_dir("a"), "hello\n");
    assert_int_equal(lw_file_read(in_dir("a"), 0, &text, &n), 0);
    assert_int_equal(n, 6);
    assert_string_equal(text, "hello\n");
    lw_free(&text);
    assert_int_equal(lw_file_append(in_dir("a"), "more", 4), 0);
    assert_int_equal(lw_file_read(in_dir("a"), 10, &text, &n), 0); /* exactly the limit */
    assert_string_equal(text, "hello\nmore");
    lw_free(&text);
    assert_int_equal(lw_file_read(in_dir("a"), 9, &text, &n), LW_EFORMAT);
    assert_int_equal(lw_file_read(in_dir("none"), 0, &text, &n), LW_EIO);
    assert_non_null(strstr(lw_errmsg(), "none"));
    assert_int_equal(lw_file_read(dir, 0, &text, &n), LW_EIO);
    assert_null(text);
    uint64_t size = 0;
    assert_int_equal(lw_file_size(in_dir("a"), &size), 0);
    assert_int_equal(size, 10);
}

/* A failing write leaves the old file whole and no temporary behind. */
/* What never ends is read up to a limit that the message names. */
static void endless_files_have_a_limit(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    assert_int_equal(lw_file_read("/dev/zero", 0, &text, &n), LW_EFORMAT);
    assert_non_null(strstr(lw_errmsg(), "/dev/zero: larger than 268435456 bytes, the limit for "
                                        "what is not a regular file"));
    assert_int_equal(lw_file_read("/dev/zero", 1000, &text, &n), LW_EFORMAT);
    assert_non_null(strstr(lw_errmsg(), "larger than 1000 bytes"));
    assert_null(text);
    assert_int_equal(lw_file_read("/proc/self/status", 0, &text, &n), 0); /* says it has 0 bytes */
    assert_true(n > 100 && strlen(text) == n);
    lw_free(&text);
}

static void write_is_atomic(void **state)
{
    (void)state;
    char sub[96], file[128];
    snprintf(sub, sizeof sub, "%s/atomic", dir);
    snprintf(file, sizeof file, "%s/f", sub);
    assert_int_equal(lw_mkdirs(sub), 0);
    put(file, "old");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* no file may have more than two bytes: as on a full disk */
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){2, 2}) != 0)
            _exit(3);
        _exit(lw_file_write(file, "newer", 5) == LW_EIO ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    char *text = NULL;
    assert_int_equal(lw_file_read(file, 0, &text, NULL), 0);
    assert_string_equal(text, "old");
    lw_free(&text);
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(lw_list_dir(sub, &names, &n), 0);
    assert_int_equal(n, 1);
    lw_list_free(&names, n);
}

static void what_a_killed_process_left_goes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool stays;
    } files[] = {{"swept", true},
                 {".tmp_swept.0123456789abcdef", false},
                 {".tmp_swept.notes", true},
                 {".tmp_swept2.0123456789abcdef", true}};
    for (size_t i = 0; i < LW_COUNT(files); i++)
        put(in_dir(files[i].name), "x");
    lw_new_file_sweep(in_dir("swept"));
    for (size_t i = 0; i < LW_COUNT(files); i++) {
        assert_int_equal(lw_path_exists(in_dir(files[i].name)), files[i].stays);
    }
    lw_new_files_sweep(dir); /* of any name */
    assert_false(lw_path_exists(in_dir(".tmp_swept2.0123456789abcdef")));
    assert_int_equal(unlink(in_dir("swept")), 0);
    assert_int_equal(unlink(in_dir(".tmp_swept.notes")), 0);
}

/* Names that somebody else can guess, in a directory where somebody else can make links. */
static void links_are_not_written_through(void **state)
{
    (void)state;
    char tmp[192], *text = NULL;
    put(in_dir("victim"), "mine\n");
    snprintf(tmp, sizeof tmp, "%s/out.tmp.%ld", dir, (long)getpid());
    assert_int_equal(symlink("victim", tmp), 0);
    put(in_dir("out"), "new");
    assert_int_equal(unlink(tmp), 0);
    assert_int_equal(symlink("victim", in_dir("link")), 0);
    assert_int_equal(lw_file_append(in_dir("link"), "more", 4), LW_EIO);
    assert_non_null(strstr(lw_errmsg(), "link: is a symbolic link"));
    assert_int_equal(lw_file_cut(in_dir("link"), 1), LW_EIO);
    put(in_dir("link"), "a file now"); /* replaced, not followed */
    assert_int_equal(mkdir(in_dir("real"), 0777), 0);
    assert_int_equal(symlink("real", in_dir("alias")), 0);
    assert_int_equal(lw_mkdir_own(in_dir("alias")), LW_EIO);
    assert_non_null(strstr(lw_errmsg(), "alias: is a symbolic link"));
    assert_int_equal(lw_mkdir_own(in_dir("real")), 0);
    assert_int_equal(lw_file_read(in_dir("victim"), 0, &text, NULL), 0);
    assert_string_equal(text, "mine\n");
    lw_free(&text);
}

/* /dev/stdout and its like are written to whatever is open there, never replaced. */
static void own_descriptors_are_written_to(void **state)
{
    (void)state;
    char name[64], *text = NULL;
    int fd = open(in_dir("redirected"), O_RDWR | O_CREAT, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "head ", 5), 5);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_int_equal(symlink(name, in_dir("stdout")), 0);
    put(name, "body ");
    put(in_dir("stdout"), "tail");
    assert_int_equal(write(fd, "!", 1), 1);
    close(fd);
    assert_int_equal(lw_file_read(in_dir("redirected"), 0, &text, NULL), 0);
    assert_string_equal(text, "head body tail!");
    lw_free(&text);
    struct stat st;
    assert_int_equal(lstat(in_dir("stdout"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static size_t entries(const char *path)
{
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(lw_list_dir(path, &names, &n), 0);
    lw_list_free(&names, n);
    return n;
}

/* A directory appears whole; one that is there keeps its other files, unless it is replaced. */
static void directories_are_made_whole(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    char box[96], folder[128];
    snprintf(box, sizeof box, "%s/box", dir);
    snprintf(folder, sizeof folder, "%s/a/folder/", box);
    for (int round = 0; round < 5; round++) { /* dropped, new, into it, into it, in its place */
        LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
        assert_int_equal(lw_new_dir_begin(&d, folder, round == 4), 0);
        put(lw_path_join(&file, lw_str_c(&d.tmp), round < 3 ? "one" : "two"), "x");
        assert_int_equal(lw_path_exists(lw_path_join(&file, folder, "two")), round == 4);
        /* inside what is there already: nothing beside it needs to be writable */
        assert_int_equal(lw_str_starts(lw_str_c(&d.tmp), folder), round == 2 || round == 3);
        if (round == 0) {
            lw_fail(LW_EIO, "the cause");
            lw_new_dir_drop(&d);
            assert_string_equal(lw_errmsg(), "the cause");
            assert_int_equal(lw_path_exists(folder), 0);
            assert_int_equal(entries(lw_path_join(&file, box, "a")), 0);
            continue;
        }
        assert_int_equal(lw_new_dir_finish(&d), 0);
        assert_int_equal(entries(folder), round == 3 ? 2 : 1);
        assert_int_equal(entries(lw_path_join(&file, box, "a")), 1);
    }
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir late = {0}; /* somebody else was faster: both stay */
    snprintf(folder, sizeof folder, "%s/a/both", box);
    assert_int_equal(lw_new_dir_begin(&late, folder, false), 0);
    put(lw_path_join(&file, lw_str_c(&late.tmp), "ours"), "x");
    assert_int_equal(lw_mkdirs(folder), 0);
    put(lw_path_join(&file, folder, "theirs"), "x");
    assert_int_equal(lw_new_dir_finish(&late), 0);
    assert_int_equal(entries(folder), 2);
}

/* A device stays one: it is written to, not replaced by a file of its name. */
static void devices_are_written_to(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
    int fd = open(in_dir("pipe"), O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    put(in_dir("pipe"), "through");
    char buf[16] = {0};
    assert_int_equal(read(fd, buf, sizeof buf - 1), 7);
    assert_string_equal(buf, "through");
    close(fd);
    assert_int_equal(stat(in_dir("pipe"), &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(unlink(in_dir("pipe")), 0);
}

/* A reader that opened the old file keeps reading the old bytes while a writer replaces it. */
static void write_replaces_by_rename(void **state)
{
    (void)state;
    put(in_dir("r"), "first");
    int fd = open(in_dir("r"), O_RDONLY);
    assert_true(fd >= 0);
    put(in_dir("r"), "second");
    char buf[16] = {0};
    assert_int_equal(read(fd, buf, sizeof buf - 1), 5);
    assert_string_equal(buf, "first");
    close(fd);
}

static void directories_are_made_listed_and_removed(void **state)
{
    (void)state;
    assert_int_equal(lw_mkdirs(in_dir("d/e/f")), 0);
    assert_int_equal(lw_mkdirs(in_dir("d/e/f/")), 0); /* again, with a slash */
    assert_true(lw_path_is_dir(in_dir("d/e/f")));
    put(in_dir("d/zeta"), "");
    put(in_dir("d/alpha"), "");
    assert_int_equal(symlink("/", in_dir("d/root")), 0); /* must not be followed when removing */
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(lw_list_dir(in_dir("d"), &names, &n), 0);
    static const char *const expected[] = {"alpha", "e", "root", "zeta"};
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(names[i], expected[i]);
    lw_list_free(&names, n);
    assert_null(names);
    assert_int_equal(lw_mkdirs(in_dir("d/zeta/x")), LW_EIO); /* a file is in the way */
    assert_int_equal(lw_remove_tree(in_dir("d")), 0);
    assert_false(lw_path_exists(in_dir("d")));
    assert_true(lw_path_exists("/etc"));
    assert_int_equal(lw_remove_tree(in_dir("d")), 0); /* missing is fine */
}

static void maps_share_the_file(void **state)
{
    (void)state;
    lw_map w = {0}, r = {0};
    char *zeros = lw_calloc(10000, 1);
    assert_int_equal(lw_map_scratch(&w, in_dir("m"), 10000), 0);
    assert_false(lw_path_exists(in_dir("m")));
    assert_int_equal(((char *)w.data)[9999], 0);
    memcpy((char *)w.data + 9990, "tail", 5);
    assert_int_equal(lw_map_sync(&w), 0);
    memcpy(zeros + 9990, "tail", 5);
    assert_memory_equal(w.data, zeros, 10000);
    assert_int_equal(lw_file_write(in_dir("m"), zeros, 10000), 0);
    lw_free(&zeros);
    assert_int_equal(lw_map_open(&r, in_dir("m")), 0);
    assert_int_equal(r.size, 10000);
    assert_false(r.writable);
    assert_string_equal((char *)r.data + 9990, "tail");
    lw_map_close(&r);
    lw_map_close(&w);
    assert_null(w.data);
    put(in_dir("empty"), "");
    assert_int_equal(lw_map_open(&r, in_dir("empty")), 0);
    assert_int_equal(r.size, 0);
    lw_map_close(&r);
    assert_int_equal(lw_map_open(&r, in_dir("none")), LW_EIO);
    assert_int_equal(mkfifo(in_dir("silent"), 0600), 0);
    alarm(60); /* it would wait for somebody who writes */
    assert_int_equal(lw_map_open(&r, in_dir("silent")), LW_EIO);
    alarm(0);
    assert_non_null(strstr(lw_errmsg(), "silent: cannot map: not a regular file"));
}

static void locks_exclude_other_processes(void **state)
{
    (void)state;
    int fd = -1;
    char path[96], mark[96];
    snprintf(path, sizeof path, "%s/lock", dir);
    snprintf(mark, sizeof mark, "%s/mark", dir);
    assert_int_equal(lw_lock_take(path, "waits", NULL, &fd), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int mine = -1;
        lw_lock_drop(&fd); /* the copy of the parent's: closing it keeps the parent's lock */
        int rc = lw_lock_take(path, "holds it", NULL, &mine);
        _exit(rc == 0 && lw_path_exists(mark) ? 0 : 1);
    }
    lw_sleep(0.05);
    put(mark, "");
    lw_lock_drop(&fd);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
}

typedef struct waiter {
    int said, asked;
} waiter;

static void hear(void *self, const char *line)
{
    waiter *w = self;
    w->said += strcmp(line, "waiting for another process that decodes x") == 0;
}

static bool stop_soon(void *self)
{
    waiter *w = self;
    return ++w->asked == 20;
}

static void who_waits_for_a_lock_is_told_and_may_stop(void **state)
{
    (void)state;
    waiter w = {0};
    const lw_observer obs = {.self = &w, .say = hear, .should_stop = stop_soon};
    int fd = -1, second = -1;
    char path[96];
    snprintf(path, sizeof path, "%s/lock", dir);
    assert_int_equal(lw_lock_take(path, "waits", NULL, &fd), 0);
    assert_int_equal(lw_lock_take(path, "decodes x", &obs, &second), LW_ESTOPPED);
    assert_non_null(strstr(lw_errmsg(), "another process decodes x"));
    assert_int_equal(w.said, 1);
    assert_int_equal(w.asked, 20);
    lw_lock_drop(&fd);
    assert_int_equal(lw_lock_take(path, "decodes x", &obs, &second), 0);
    assert_int_equal(w.said, 1);
    lw_lock_drop(&second);
}

static void one_process_writes_into_a_directory(void **state)
{
    (void)state;
    int fd = -1, second = -1;
    assert_int_equal(lw_dir_lock(dir, &fd), 0);
    assert_int_equal(lw_dir_lock(dir, &second), LW_EUSAGE);
    assert_int_equal(second, -1);
    assert_non_null(strstr(lw_errmsg(), "another process is writing into it"));
    lw_lock_drop(&fd);
    assert_int_equal(lw_dir_lock(dir, &second), 0);
    lw_lock_drop(&second);
}

static void part_files_outlive_their_writer(void **state)
{
    (void)state;
    char path[96], *text = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/whole", dir);
    put(path, "old");
    lw_part_file f = {.fd = -1}, g = {.fd = -1};
    assert_int_equal(lw_part_file_open(&f, path, false, 0), LW_EIO); /* none to go on with */
    assert_int_equal(lw_part_file_open(&f, path, true, 6), 0);
    assert_int_equal(lw_part_file_open(&g, path, false, 0), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "another process"));
    lw_part_file_close(&g);
    assert_int_equal(lw_part_file_put(&f, 4, "ef", 2), 0);
    assert_int_equal(lw_part_file_sync(&f), 0);
    lw_part_file_close(&f);
    assert_int_equal(lw_file_read(path, 0, &text, &n), 0);
    assert_string_equal(text, "old"); /* as it was until the end */
    lw_free(&text);
    assert_int_equal(lw_part_file_open(&f, path, false, 0), 0);
    assert_int_equal(lw_part_file_put(&f, 0, "abcd", 4), 0);
    assert_int_equal(lw_part_file_finish(&f), 0);
    lw_part_file_close(&f);
    assert_int_equal(lw_file_read(path, 0, &text, &n), 0);
    assert_string_equal(text, "abcdef");
    lw_free(&text);
    assert_int_equal(lw_part_file_open(&f, path, false, 0), LW_EIO);
    assert_int_equal(lw_part_file_open(&f, path, true, 3), 0);
    assert_int_equal(lw_part_file_remove(&f), 0);
    lw_part_file_close(&f);
    assert_int_equal(lw_part_file_open(&f, in_dir("no/such"), true, 3), LW_EIO);
    lw_part_file_close(&f);
    /* more than any disk has: refused, and nothing is left */
    assert_int_equal(lw_part_file_open(&f, path, true, (uint64_t)1 << 60), LW_EIO);
    assert_non_null(strstr(lw_errmsg(), "cannot reserve"));
    lw_part_file_close(&f);
    assert_int_equal(lw_part_file_open(&f, path, false, 0), LW_EIO);
    lw_part_file_close(&f);
}

static void clocks_move(void **state)
{
    (void)state;
    double t = lw_now();
    lw_sleep(0.02);
    double passed = lw_now() - t;
    assert_true(passed >= 0.02 && passed < 5.0);
    assert_true(lw_wall_time() > 1.6e9);
    assert_true(lw_peak_rss() > 100000);
    assert_true(lw_memory_total() > 1000000);
}

static void cpu_count_follows_affinity(void **state)
{
    (void)state;
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    int all = lw_core_count();
    assert_in_range(all, 1, CPU_COUNT(&old));
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE; c++) {
        if (CPU_ISSET(c, &old)) {
            CPU_SET(c, &one);
            break;
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(lw_core_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
    assert_int_equal(lw_core_count(), all);
}

static void cgroup_2_limits_are_found_on_the_way_up(void **state)
{
    (void)state;
    char self[96], mount[96];
    snprintf(self, sizeof self, "%s/self2", dir);
    snprintf(mount, sizeof mount, "%s/cg2", dir);
    put(self, "0::/pod/box\n");
    assert_true(lw_cgroup_cpus(self, mount) == 0.0); /* nothing mounted */
    assert_int_equal(lw_mkdirs(in_dir("cg2/pod/box")), 0);
    put(in_dir("cg2/pod/box/cpu.max"), "max 100000\n");
    put(in_dir("cg2/pod/box/memory.max"), "max\n");
    assert_true(lw_cgroup_cpus(self, mount) == 0.0);
    assert_true(lw_cgroup_memory(self, mount) == 0);
    put(in_dir("cg2/pod/cpu.max"), "150000 100000\n");
    put(in_dir("cg2/pod/memory.max"), "2147483648\n");
    assert_true(lw_cgroup_cpus(self, mount) == 1.5);
    assert_true(lw_cgroup_memory(self, mount) == 2147483648u);
    put(in_dir("cg2/pod/box/cpu.max"), "200000 100000\n"); /* the least counts, wherever it is */
    assert_true(lw_cgroup_cpus(self, mount) == 1.5);
    put(in_dir("cg2/pod/box/cpu.max"), "100000 100000\n");
    assert_true(lw_cgroup_cpus(self, mount) == 1.0);
    put(self, "0::/elsewhere\n"); /* a path of the host: only the root is visible */
    assert_true(lw_cgroup_cpus(self, mount) == 0.0);
    put(in_dir("cg2/cpu.max"), "50000 100000\n");
    assert_true(lw_cgroup_cpus(self, mount) == 0.5);
}

static void cgroup_1_limits_are_found(void **state)
{
    (void)state;
    char self[96], mount[96];
    snprintf(self, sizeof self, "%s/self1", dir);
    snprintf(mount, sizeof mount, "%s/cg1", dir);
    put(self, "5:memory:/box\n4:cpuset:/other\n3:cpu,cpuacct:/box\n0::/two\n");
    assert_int_equal(lw_mkdirs(in_dir("cg1/cpu/box")), 0);
    assert_int_equal(lw_mkdirs(in_dir("cg1/cpu/other")), 0);
    assert_int_equal(lw_mkdirs(in_dir("cg1/two")), 0);
    put(in_dir("cg1/cpu/other/cpu.cfs_period_us"), "100000\n"); /* another controller's path */
    put(in_dir("cg1/cpu/other/cpu.cfs_quota_us"), "100000\n");
    assert_int_equal(lw_mkdirs(in_dir("cg1/memory/box")), 0);
    put(in_dir("cg1/cpu/box/cpu.cfs_period_us"), "100000\n");
    put(in_dir("cg1/cpu/box/cpu.cfs_quota_us"), "-1\n");
    put(in_dir("cg1/memory/memory.limit_in_bytes"), "9223372036854771712\n");
    assert_true(lw_cgroup_cpus(self, mount) == 0.0);
    assert_true(lw_cgroup_memory(self, mount) == 0);
    put(in_dir("cg1/cpu/box/cpu.cfs_quota_us"), "300000\n");
    put(in_dir("cg1/memory/box/memory.limit_in_bytes"), "1048576\n");
    assert_true(lw_cgroup_cpus(self, mount) == 3.0);
    assert_true(lw_cgroup_memory(self, mount) == 1048576);
    put(in_dir("cg1/two/cpu.max"), "400000 100000\n"); /* both versions at once */
    assert_true(lw_cgroup_cpus(self, mount) == 3.0);
    put(in_dir("cg1/two/cpu.max"), "200000 100000\n");
    assert_true(lw_cgroup_cpus(self, mount) == 2.0);
}

static void isa_is_chosen_by_environment(void **state)
{
    (void)state;
    char *old = getenv("LW_ISA") ? lw_strdup(getenv("LW_ISA")) : NULL;
    lw_isa isa = LW_ISA_AVX512;
    setenv("LW_ISA", "ref", 1);
    assert_int_equal(lw_isa_chosen(&isa), 0);
    assert_int_equal(isa, LW_ISA_REF);
    setenv("LW_ISA", "mmx", 1);
    assert_int_equal(lw_isa_chosen(&isa), LW_EUSAGE);
    unsetenv("LW_ISA");
    assert_int_equal(lw_isa_chosen(&isa), 0);
    assert_int_equal(isa, lw_isa_best());
#if defined(__aarch64__)
    setenv("LW_ISA", "avx2", 1); /* a name of another kind of processor */
    assert_int_equal(lw_isa_chosen(&isa), LW_EUSAGE);
    setenv("LW_ISA", "i8mm", 1);
    assert_int_equal(lw_isa_chosen(&isa), lw_isa_best() >= LW_ISA_AVXVNNI ? 0 : LW_EDEVICE);
#else
    setenv("LW_ISA", "neon", 1);
    assert_int_equal(lw_isa_chosen(&isa), LW_EUSAGE);
    setenv("LW_ISA", "avx512", 1);
    assert_int_equal(lw_isa_chosen(&isa), lw_isa_best() >= LW_ISA_AVX512 ? 0 : LW_EDEVICE);
#endif
    if (old)
        setenv("LW_ISA", old, 1);
    else
        unsetenv("LW_ISA");
    lw_free(&old);
#if defined(__aarch64__)
    assert_string_equal(lw_isa_name(LW_ISA_AVX2), "neon");
    assert_string_equal(lw_isa_name(LW_ISA_AVXVNNI), "i8mm");
    assert_string_equal(lw_isa_name(LW_ISA_AVX512), "?");
    assert_true(lw_isa_same_f32("neon", "i8mm"));
#else
    assert_string_equal(lw_isa_name(LW_ISA_AVX2), "avx2");
    assert_string_equal(lw_isa_name(LW_ISA_AVXVNNI), "avxvnni");
    assert_string_equal(lw_isa_name(LW_ISA_AVX512BF16), "avx512bf16");
    assert_string_equal(lw_isa_name(LW_ISA_AMX), "amx");
    assert_true(lw_isa_same_f32("avx512bf16", "avx512"));
    assert_true(lw_isa_same_f32("avx2", "avxvnni"));
    assert_false(lw_isa_same_f32("avxvnni", "avx512"));
#endif
    assert_false(lw_isa_same_f32("amx", "avx512"));
    assert_true(lw_isa_same_f32("amx", "amx"));
    assert_false(lw_isa_same_f32("amx", "avx2"));
    assert_true(lw_isa_same_f32("ref", "ref"));
    assert_false(lw_isa_same_f32("avx2", "avx512"));
    assert_true(strlen(lw_machine_name()) > 0);
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/lw-test-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        in_dir("");
    return lw_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_seen_from_a_directory),
        cmocka_unit_test(files_round_trip),
        cmocka_unit_test(endless_files_have_a_limit),
        cmocka_unit_test(write_is_atomic),
        cmocka_unit_test(what_a_killed_process_left_goes),
        cmocka_unit_test(links_are_not_written_through),
        cmocka_unit_test(own_descriptors_are_written_to),
        cmocka_unit_test(directories_are_made_whole),
        cmocka_unit_test(devices_are_written_to),
        cmocka_unit_test(write_replaces_by_rename),
        cmocka_unit_test(directories_are_made_listed_and_removed),
        cmocka_unit_test(maps_share_the_file),
        cmocka_unit_test(locks_exclude_other_processes),
        cmocka_unit_test(who_waits_for_a_lock_is_told_and_may_stop),
        cmocka_unit_test(one_process_writes_into_a_directory),
        cmocka_unit_test(part_files_outlive_their_writer),
        cmocka_unit_test(clocks_move),
        cmocka_unit_test(cpu_count_follows_affinity),
        cmocka_unit_test(cgroup_2_limits_are_found_on_the_way_up),
        cmocka_unit_test(cgroup_1_limits_are_found),
        cmocka_unit_test(isa_is_chosen_by_environment),
    };
    return cmocka_run_group_tests_name("base_sys", tests, make_dir, drop_dir);
}
