/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in order from a file or a pipe, which may make us wait: then the options are asked whether to
 * go on. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frames/frames_source.h"

enum { READ_AHEAD = 1 << 16, ASK_EVERY_MS = 50 };

int lw_frame_bytes_open(lw_frame_bytes *b, const char *path, const lw_frame_options *o)
{
    struct stat st;
    const bool own = strcmp(path, "-") == 0;
    b->options = o;
    b->fd = own ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    if (b->fd < 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot open: %s", own ? "standard input" : path,
                       strerror(errno));
    b->opened = true;
    if (fstat(b->fd, &st) == 0 && S_ISDIR(st.st_mode))
        return lw_fail(LW_EIO, "%s: cannot read: it is a directory (folder:%s?)", path, path);
    b->regular = S_ISREG(st.st_mode);
    return 0;
}

void lw_frame_bytes_close(lw_frame_bytes *b)
{
    if (b->opened)
        close(b->fd);
    lw_free(&b->buf);
    *b = (lw_frame_bytes){0};
}

static int wait_for(lw_frame_bytes *b)
{
    const lw_frame_options *o = b->options;
    while (!b->regular && o->stopped) {
        struct pollfd p = {.fd = b->fd, .events = POLLIN};
        int ready = poll(&p, 1, ASK_EVERY_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return 0;
        if (o->stopped(o->self))
            return lw_fail(LW_ESTOPPED, "interrupted");
    }
    return 0;
}

/* What is there, 1 to n bytes; 0: the end. */
static int read_some(lw_frame_bytes *b, const char *name, void *to, size_t n, size_t *got)
{
    for (;;) {
        LW_TRY(wait_for(b));
        ssize_t k = read(b->fd, to, n);
        if (k < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (k < 0)
            return lw_fail(lw_errno_code(errno), "%s: cannot read: %s", name, strerror(errno));
        *got = (size_t)k;
        return 0;
    }
}

int lw_frame_bytes_want(lw_frame_bytes *b, const char *name, size_t n, size_t *have)
{
    if (b->begin > 0 &&
        b->end - b->begin < n) { /* what is left to the front: it grows no further */
        memmove(b->buf, b->buf + b->begin, b->end - b->begin);
        b->end -= b->begin;
        b->begin = 0;
    }
    while (b->end - b->begin < n) {
        size_t got;
        LW_TRY(lw_grow(&b->buf, &b->cap, LW_MAX(n, (size_t)READ_AHEAD), 1));
        LW_TRY(read_some(b, name, b->buf + b->end, b->cap - b->end, &got));
        if (got == 0)
            break;
        b->end += got;
    }
    *have = b->end - b->begin;
    return 0;
}

int lw_frame_bytes_get(lw_frame_bytes *b, const char *name, void *to, size_t n, size_t *got)
{
    size_t done = LW_MIN(b->end - b->begin, n);
    if (done > 0)
        memcpy(to, b->buf + b->begin, done);
    b->begin += done;
    while (done < n) {
        size_t k;
        LW_TRY(read_some(b, name, (char *)to + done, n - done, &k));
        if (k == 0)
            break;
        done += k;
    }
    *got = done;
    return 0;
}

int lw_frame_bytes_rewind(lw_frame_bytes *b, const char *name)
{
    if (!b->regular || lseek(b->fd, 0, SEEK_SET) != 0)
        return lw_fail(LW_EUSAGE, "%s: a pipe cannot begin again: give a file to --loop", name);
    b->begin = b->end = 0;
    return 0;
}
