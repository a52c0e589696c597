/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a fuzz input in a private folder, in memory where the system has a folder for that. */
#include "fuzz/fuzz_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "formats/formats.h"

enum { MAX_FILES = 16, MAX_TENSORS = 256, MAX_ZEROS = 1 << 20 };

static char base[64], root[80];

static void remove_base(void)
{
    lw_remove_tree(base);
}

static void begin(void)
{
    if (!*base) {
        const char *at = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(base, sizeof base, "%s/leeway-fuzz-XXXXXX", at);
        if (!mkdtemp(base))
            abort();
        snprintf(root, sizeof root, "%s/in", base);
        atexit(remove_base);
    }
    if (lw_remove_tree(root) < 0 || lw_mkdirs(root) < 0)
        abort();
}

/* Letters, digits and ._- between single slashes, no name that begins with a point. */
static bool is_inside(const char *path)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    return *path && *path != '.' && *path != '/' && strspn(path, allowed) == strlen(path) &&
           !strstr(path, "/.") && !strstr(path, "//") && strlen(path) < 200;
}

static void write_bytes(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return; /* a folder of that name, or a file on the way */
    if (write(fd, text, n) != (ssize_t)n)
        abort();
    close(fd);
}

/* false: not an object of shapes, or more data than a small file has. */
static bool tensors_of(const json_t *shapes, lw_st_tensor *t, size_t *n, const void *zeros)
{
    const char *name;
    json_t *shape;
    size_t total = 0;
    json_object_foreach((json_t *)(uintptr_t)shapes, name, shape)
    {
        size_t rank = json_array_size(shape), count = 1;
        if (!json_is_array(shape) || rank > LW_ARRAY_MAX_RANK || *n == MAX_TENSORS)
            return false;
        t[*n] = (lw_st_tensor){.name = name, .type = LW_ELEM_F32, .rank = (int)rank, .data = zeros};
        for (size_t i = 0; i < rank; i++) {
            json_int_t d = json_integer_value(json_array_get(shape, i));
            if (d < 0 || d > MAX_ZEROS)
                return false;
            t[*n].shape[i] = d;
            count *= (size_t)d;
            if (count > MAX_ZEROS)
                return false;
        }
        t[*n].count = (int64_t)count;
        t[*n].bytes = count * sizeof(float);
        total += t[(*n)++].bytes;
    }
    return *n > 0 && total <= sizeof(float) * MAX_ZEROS;
}

static void write_tensors(const char *path, const char *text, size_t n)
{
    static float zeros[MAX_ZEROS];
    static lw_st_tensor t[MAX_TENSORS];
    json_t *shapes = NULL;
    size_t count = 0;
    bool good = lw_json_parse("shapes", text, n, &shapes) == 0 && json_is_object(shapes) &&
                tensors_of(shapes, t, &count, zeros);
    if (!good || lw_st_save(path, t, count, NULL, 0) < 0)
        write_bytes(path, text, n);
    json_decref(shapes);
}

static void write_file(const char *name, const char *text, size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, dir = {0};
    if (!is_inside(name))
        return;
    lw_path_join(&path, root, name);
    lw_str_add_n(&dir, path.s, (size_t)(strrchr(path.s, '/') - path.s));
    if (lw_mkdirs(lw_str_c(&dir)) < 0)
        return;
    if (lw_str_ends(name, ".safetensors"))
        write_tensors(path.s, text, n);
    else
        write_bytes(path.s, text, n);
}

const char *fuzz_folder(const uint8_t *data, size_t size)
{
    static const char mark[] = "==== ";
    const char *at = (const char *)data, *end = at + size;
    begin();
    for (int i = 0; i < MAX_FILES && (size_t)(end - at) >= sizeof mark; i++) {
        const char *line = memchr(at, '\n', (size_t)(end - at)), *next;
        char name[256];
        if (!line || memcmp(at, mark, sizeof mark - 1) != 0)
            break;
        snprintf(name, sizeof name, "%.*s", (int)(line - at) - 5, at + 5);
        next = memmem(line, (size_t)(end - line), "\n==== ", 6);
        write_file(name, line + 1, (size_t)((next ? next + 1 : end) - line - 1));
        at = next ? next + 1 : end;
    }
    lw_errclear();
    return root;
}
