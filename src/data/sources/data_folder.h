/* SPDX-License-Identifier: Apache-2.0 */
/* Private to folder: the pictures below a directory, by class and split. */
#ifndef LW_DATA_FOLDER_H
#define LW_DATA_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct folder_file {
    char *path;
    char *class_name; /* directory relative to its root; "" for the root itself */
    int32_t label;
    bool heldout;
} folder_file;

typedef struct folder_list {
    folder_file *at; /* training rows first, then held-out; by class, then by name */
    size_t n, cap, n_train;
    char **classes; /* sorted */
    size_t n_classes, cap_classes;
} folder_list;

/* Reads names only. LW_EIO: dir cannot be listed; LW_EFORMAT: no pictures, or a held-out class
 * unknown to training. */
int lw_folder_list(const char *dir, folder_list *out);
void lw_folder_list_clear(folder_list *l);

/* ---- data_folder_size.c ---- */
struct lw_data_job;
/* Size and note from the headers of all pictures. */
int lw_folder_settle(struct lw_data_job *job);

#endif
