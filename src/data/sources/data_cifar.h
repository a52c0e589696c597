/* SPDX-License-Identifier: Apache-2.0 */
/* Private to cifar10: which files are the set, and whether they are all of it. */
#ifndef LW_DATA_CIFAR_H
#define LW_DATA_CIFAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/sources/data_source.h"

#define CIFAR_RECORD 3073 /* bytes: a label, three planes */
#define CIFAR_BATCH 10000 /* records of a batch; more are never read */

typedef struct cifar_batch {
    char *name;  /* "data_batch_1.bin" */
    char *what;  /* its path, or "archive: name" */
    char *bytes; /* of archives, whose members come in any order; NULL: read from the path */
    size_t len;
    uint64_t hash;
} cifar_batch;

typedef struct cifar_set {
    cifar_batch *at; /* by name: test_batch.bin is the last */
    size_t n, cap;
    char *archive; /* members are listed when it is read */
    bool full;     /* batches are as large as CIFAR-10's: all must be there */
} cifar_set;

/* Looks where the files are, and adds them to the job's state. */
int lw_cifar_find(lw_data_job *job, const char *path, cifar_set *set);
/* Reads an archive; then says whether the set is one. LW_EFORMAT names each batch that is missing,
 * doubled, short or a link. A set of which no training batch has 10,000 records passes with a
 * warning: somebody's small set in this layout. */
int lw_cifar_load(lw_data_job *job, cifar_set *set);
/* LW_EFORMAT unless b is one or more whole records. */
int lw_cifar_whole(const lw_data_job *job, const cifar_batch *b);
void lw_cifar_clear(cifar_set *set);

#endif
