/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps of whole files, and locks between processes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/observer.h"
#include "base/sys/sys.h"
#include "base/sys/sys_output.h"

/* Maps `size` bytes of fd and closes fd; an empty file is a map of NULL and 0 bytes. */
static int map_fd(lw_map *out, int fd, const char *path, size_t size, bool writable)
{
    void *data = NULL;
    if (size > 0) {
        int prot = PROT_READ | (writable ? PROT_WRITE : 0);
        data = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
    }
    int why = errno;
    close(fd);
    if (data == MAP_FAILED)
        return lw_fail(lw_errno_code(why), "%s: cannot map %zu bytes: %s", path, size,
                       strerror(why));
    *out = (lw_map){.data = data, .size = size, .writable = writable};
    return 0;
}

int lw_map_open(lw_map *out, const char *path)
{
    struct stat st;
    /* Else a pipe that nobody writes to would be waited for. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot open: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return lw_fail(LW_EIO, "%s: cannot map: not a regular file", path);
    }
    return map_fd(out, fd, path, (size_t)st.st_size, false);
}

/* Closes fd in any case. */
static int map_reserved(lw_map *out, int fd, const char *path, size_t size)
{
    /* Reserve the blocks now: a full disk is an error here, not a bus error at some later store. */
    int why = size > 0 ? posix_fallocate(fd, 0, (off_t)size) : 0;
    if (why == EOPNOTSUPP || why == EINVAL)
        why = ftruncate(fd, (off_t)size) == 0 ? 0 : errno;
    if (why != 0) {
        close(fd);
        return lw_fail(lw_errno_code(why), "%s: cannot reserve %zu bytes: %s", path, size,
                       strerror(why));
    }
    return map_fd(out, fd, path, size, true);
}

int lw_map_scratch(lw_map *out, const char *path, size_t size)
{
    int fd;
    LW_TRY(lw_scratch_open(path, &fd));
    return map_reserved(out, fd, path, size);
}

int lw_map_make(lw_map *out, const char *path, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot create: %s", path, strerror(errno));
    int rc = map_reserved(out, fd, path, size);
    if (rc < 0)
        unlink(path);
    return rc;
}

int lw_map_sync(lw_map *m)
{
    if (m->data && m->writable && msync(m->data, m->size, MS_SYNC) != 0)
        return lw_fail(lw_errno_code(errno), "cannot sync a map of %zu bytes: %s", m->size,
                       strerror(errno));
    return 0;
}

void lw_map_close(lw_map *m)
{
    if (m->data)
        munmap(m->data, m->size);
    *m = (lw_map){0};
}

enum { LOCK_HELD = 1, LOCK_REPLACED };

/* Opens and locks. LOCK_HELD: another process has it. LOCK_REPLACED: the file was removed or
 * replaced meanwhile, so that the lock would be one that nobody else asks for. */
static int lock_once(const char *path, int *fd)
{
    struct stat held, there = {0};
    int f = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (f < 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot open lock: %s", path, strerror(errno));
    bool locked = flock(f, LOCK_EX | LOCK_NB) == 0;
    bool known = locked && fstat(f, &held) == 0 && (stat(path, &there) == 0 || errno == ENOENT);
    int why = errno;
    if (known && held.st_ino == there.st_ino) {
        *fd = f;
        return 0;
    }
    close(f);
    if (known)
        return LOCK_REPLACED;
    if (!locked && (why == EWOULDBLOCK || why == EINTR))
        return LOCK_HELD;
    return lw_fail(lw_errno_code(why), "%s: cannot lock: %s", path, strerror(why));
}

/* A lock is asked for again and again, since a wait inside the kernel goes on through a signal. */
int lw_lock_take(const char *path, const char *does, const lw_observer *obs, int *fd)
{
    enum { PATIENCE = 10, REPLACED_MOST = 100 };
    int held = 0, replaced = 0, rc;
    while ((rc = lock_once(path, fd)) > 0) {
        replaced += rc == LOCK_REPLACED;
        held += rc == LOCK_HELD;
        if (replaced == REPLACED_MOST)
            return lw_fail(LW_EIO, "%s: cannot lock: another file is there each time", path);
        if (rc == LOCK_HELD && held == PATIENCE) /* who only looks is done by then */
            lw_observe_say(obs, "waiting for another process that %s", does);
        if (lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "interrupted while another process %s", does);
        lw_sleep(0.02);
    }
    return rc;
}

int lw_lock_try(const char *path, int *fd)
{
    int rc = lock_once(path, fd);
    return rc == LOCK_REPLACED ? LOCK_HELD : rc;
}

void lw_lock_drop(int *fd)
{
    lw_fd_close(fd); /* drops the lock */
}

/* The lock goes with the process, however it ends; file systems that know no locks go without. */
int lw_dir_lock(const char *path, int *fd)
{
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 0;
    lw_lock_drop(fd);
    return lw_fail(LW_EUSAGE,
                   "%s: another process is writing into it: wait for it, stop it, or choose "
                   "another --output-dir",
                   path);
}
