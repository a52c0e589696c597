/* SPDX-License-Identifier: Apache-2.0 */
/* Private to folder: the pictures below a directory, by class and split. */
#ifndef LW_DATA_FOLDER_H
#define LW_DATA_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct folder_file {
    char *path;
    size_t name_at;   /* in path: what follows the folder of the spec */
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

/* What `folder` and `manifest` share, with a folder_list as job->priv. */
struct lw_data_job;
struct lw_data_sink;
struct lw_data_report;
int lw_folder_plan(struct lw_data_job *job);
int lw_folder_build(struct lw_data_job *job, struct lw_data_sink *sink);
int lw_folder_scan(struct lw_data_job *job, struct lw_data_report *report);
void lw_folder_clear(struct lw_data_job *job);

/* ---- data_manifest.c ---- */
struct lw_str;
/* Reads a list; root ("": none was said) becomes what its relative paths begin at. LW_EFORMAT: no
 * such file of JSON. Whether the pictures are there is not looked at. */
int lw_manifest_list(const char *file, struct lw_str *root, folder_list *out);

/* ---- data_folder_size.c ---- */
/* Size and note from the headers of all pictures. */
int lw_folder_settle(struct lw_data_job *job);

#endif
