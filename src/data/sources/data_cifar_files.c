/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the batches of CIFAR-10, and telling an incomplete set from a small one. */
#include "data/sources/data_cifar.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/formats.h"

#define TEST_FILE "test_batch.bin"
enum { TRAIN_BATCHES = 5 };
static const size_t batch_bytes = (size_t)CIFAR_BATCH * CIFAR_RECORD;

static void forget(cifar_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        lw_free(&set->at[i].name);
        lw_free(&set->at[i].what);
        lw_free(&set->at[i].bytes);
    }
    set->n = 0;
}

void lw_cifar_clear(cifar_set *set)
{
    forget(set);
    lw_free(&set->at);
    lw_free(&set->archive);
    *set = (cifar_set){0};
}

static bool is_batch(const char *name)
{
    return lw_str_eq(name, TEST_FILE) || fnmatch("data_batch_*.bin", name, 0) == 0;
}

/* Files that people take for this one, by name; NULL: not one of them. */
static const char *mistaken(const char *name)
{
    if (lw_str_eq(name, "train.bin") || lw_str_starts(name, "cifar-100"))
        return "this is CIFAR-100, which is not read";
    if (fnmatch("data_batch_[1-5]", name, 0) == 0 || lw_str_starts(name, "cifar-10-batches-py") ||
        lw_str_starts(name, "cifar-10-python"))
        return "this is the version for Python; the binary version is read (its tar is called "
               "cifar-10-binary.tar.gz)";
    return NULL;
}

/* name and what are copied; bytes are not. */
static int add(cifar_set *set, const char *name, const char *what, cifar_batch **out)
{
    LW_TRY(lw_grow(&set->at, &set->cap, set->n + 1, sizeof *set->at));
    cifar_batch *b = &set->at[set->n++];
    *b = (cifar_batch){.name = lw_strdup(name), .what = lw_strdup(what)};
    if (out)
        *out = b;
    return b->name && b->what ? 0 : LW_ENOMEM;
}

/* ---- folders ---- */

/* Takes the batch files of dir; 1 when it has none. */
static int take_dir(cifar_set *set, const char *dir, char **names, size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    for (size_t i = 0; i < n; i++)
        if (is_batch(names[i]))
            LW_TRY(add(set, names[i], lw_path_join(&path, dir, names[i]), NULL));
    return set->n == 0;
}

static int take_below(cifar_set *set, const char *dir)
{
    char **names = NULL;
    size_t n = 0;
    LW_TRY(lw_list_dir(dir, &names, &n));
    int rc = take_dir(set, dir, names, n);
    lw_list_free(&names, n);
    return rc;
}

static int look_into(const lw_data_job *job, cifar_set *set, const char *dir, char **names,
                     size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *hint = NULL;
    int rc = take_dir(set, dir, names, n);
    if (rc == 1 && lw_path_is_dir(lw_path_join(&path, dir, "cifar-10-batches-bin")))
        rc = take_below(set, path.s);
    if (rc <= 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        hint = hint ? hint : mistaken(names[i]);
        if (fnmatch("cifar-10*.tar*", names[i], 0) != 0 || mistaken(names[i]))
            continue;
        set->archive = lw_strdup(lw_path_join(&path, dir, names[i]));
        return set->archive ? 0 : LW_ENOMEM;
    }
    return lw_fail(
        LW_EIO,
        "data '%s': %s has neither data_batch_*.bin and " TEST_FILE " nor cifar-10*.tar*: %s",
        job->spec, dir, hint ? hint : "give the folder of the binary version of CIFAR-10");
}

static int plan_files(lw_data_job *job, cifar_set *set)
{
    if (set->archive)
        return lw_data_job_file(job, set->archive);
    bool test = lw_str_eq(set->at[set->n - 1].name, TEST_FILE); /* names are sorted */
    if (set->n < 2 || !test)
        return lw_fail(LW_EIO, "data '%s': %s is missing", job->spec,
                       test ? "data_batch_*.bin" : TEST_FILE);
    for (size_t i = 0; i < set->n; i++)
        LW_TRY(lw_data_job_file(job, set->at[i].what));
    return 0;
}

int lw_cifar_find(lw_data_job *job, const char *path, cifar_set *set)
{
    if (lw_path_is_dir(path)) {
        char **names = NULL;
        size_t n = 0;
        LW_TRY(lw_list_dir(path, &names, &n));
        int rc = look_into(job, set, path, names, n);
        lw_list_free(&names, n);
        LW_TRY(rc);
    } else {
        set->archive = lw_strdup(path);
        if (!set->archive)
            return LW_ENOMEM;
    }
    return plan_files(job, set);
}

/* ---- archives ---- */

typedef struct reader {
    cifar_set *set;
    size_t left; /* bytes that a whole set still may have */
    const char *hint;
} reader;

static int take_member(void *arg, lw_archive *a, const lw_archive_member *m)
{
    reader *r = arg;
    const char *slash = strrchr(m->name, '/'), *name = slash ? slash + 1 : m->name;
    if (m->raw || !is_batch(name)) {
        r->hint = r->hint || m->raw ? r->hint : mistaken(name);
        return 0;
    }
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    cifar_batch *b = NULL;
    lw_str_addf(&what, "%s: %s", r->set->archive, name);
    if (m->link)
        return lw_fail(LW_EFORMAT, "%s is a link in the archive: its records are not there",
                       lw_str_c(&what));
    for (size_t i = 0; i < r->set->n; i++)
        if (lw_str_eq(r->set->at[i].name, name))
            return lw_fail(LW_EFORMAT, "%s holds %s twice", r->set->archive, name);
    LW_TRY(add(r->set, name, lw_str_c(&what), &b));
    int rc = lw_archive_read_all(a, LW_MIN(batch_bytes, r->left), &b->bytes, &b->len);
    if (rc < 0)
        return lw_fail_in(rc, "%s: ", name);
    r->left -= b->len;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cifar_batch *)a)->name, ((const cifar_batch *)b)->name);
}

static int load_archive(const lw_data_job *job, cifar_set *set)
{
    forget(set); /* of a build before this one, which could not be written */
    reader r = {.set = set, .left = (TRAIN_BATCHES + 1) * batch_bytes};
    int rc = lw_archive_each(set->archive, take_member, &r);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    if (set->n > 1)
        qsort(set->at, set->n, sizeof *set->at, by_name); /* "test_batch.bin" comes last */
    if (set->n < 2 || !lw_str_eq(set->at[set->n - 1].name, TEST_FILE))
        return lw_fail(LW_EFORMAT,
                       "data '%s': %s does not hold data_batch_*.bin and " TEST_FILE "%s%s",
                       job->spec, set->archive, r.hint ? ": " : "", r.hint ? r.hint : "");
    return 0;
}

/* ---- is it all of it? ---- */

int lw_cifar_whole(const lw_data_job *job, const cifar_batch *b)
{
    if (b->len > 0 && b->len % CIFAR_RECORD == 0)
        return 0;
    return lw_fail(LW_EFORMAT,
                   "data '%s': %s: %zu bytes are not whole records of %d: the file is cut short or "
                   "not CIFAR-10's binary version%s",
                   job->spec, b->what, b->len, CIFAR_RECORD,
                   b->len > 0 && b->len % (CIFAR_RECORD + 1) == 0
                       ? " (they are records of CIFAR-100, which is not read)"
                       : "");
}

/* What of a full set is not as it must be, one after the other. */
static void find_faults(const cifar_set *set, lw_str *faults)
{
    char name[32];
    for (int i = 1; i <= TRAIN_BATCHES; i++) {
        size_t k = 0;
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        while (k < set->n && !lw_str_eq(set->at[k].name, name))
            k++;
        if (k == set->n)
            lw_str_addf(faults, "%s%s is missing", faults->len ? ", " : "", name);
    }
    for (size_t k = 0; k < set->n; k++) {
        const cifar_batch *b = &set->at[k];
        if (b->len != batch_bytes)
            lw_str_addf(faults, "%s%s has %zu records, not %d", faults->len ? ", " : "", b->name,
                        b->len / CIFAR_RECORD, CIFAR_BATCH);
        if (fnmatch("data_batch_[1-5].bin", b->name, 0) != 0 && k + 1 < set->n)
            lw_str_addf(faults, "%s%s is not one of it", faults->len ? ", " : "", b->name);
    }
}

static int check_set(const lw_data_job *job, cifar_set *set)
{
    LW_CLEANUP(lw_str_clear) lw_str faults = {0};
    size_t records = 0;
    set->full = false;
    for (size_t i = 0; i < set->n; i++) {
        LW_TRY(lw_cifar_whole(job, &set->at[i]));
        set->full |= i + 1 < set->n && set->at[i].len >= batch_bytes;
        records += set->at[i].len / CIFAR_RECORD;
    }
    if (!set->full) {
        lw_log(LW_LOG_WARN, "data", "%s: %zu records in %zu files: a small set, not CIFAR-10",
               job->spec, records, set->n);
        return 0;
    }
    find_faults(set, &faults);
    if (faults.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for its faults", job->spec);
    return faults.len == 0
               ? 0
               : lw_fail(LW_EFORMAT,
                         "data '%s': not the whole of CIFAR-10: %s (a small set in this layout has "
                         "training batches of fewer than %d records)",
                         job->spec, lw_str_c(&faults), CIFAR_BATCH);
}

int lw_cifar_load(lw_data_job *job, cifar_set *set)
{
    if (set->archive)
        LW_TRY(load_archive(job, set));
    for (size_t i = 0; i < set->n && !set->archive; i++) {
        uint64_t size = 0;
        LW_TRY(lw_file_size(set->at[i].what, &size));
        set->at[i].len = (size_t)size;
    }
    return check_set(job, set);
}
