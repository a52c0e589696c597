/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors: u64 header length, JSON header {name: {dtype, shape, data_offsets: [begin, end]}},
 * data.
 *
 * The reader maps the file and checks everything before it hands out a pointer: header length, JSON
 * depth, duplicate names, dtypes, shape * size == bytes, offsets inside the file, no overlap, no
 * hole, no tail. Data pointers stay valid until close and may be unaligned (foreign writers): read
 * through lw_elem_to_f32 or memcpy.
 */
#ifndef LW_FORMATS_SAFETENSORS_H
#define LW_FORMATS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "formats/formats_elem.h"

typedef struct lw_st_tensor {
    const char *name;
    lw_elem type;
    int rank;
    int64_t shape[LW_ARRAY_MAX_RANK];
    int64_t count;
    size_t bytes;
    const void *data;
} lw_st_tensor;

typedef struct lw_st_file lw_st_file;

/* path: a .safetensors file, a file of torch.save (formats_torch.h; known by its first bytes), or an
 * *.index.json whose shards lie beside it (plain file
 * names only; every name of weight_map must be in the shard it names). */
int lw_st_open(const char *path, lw_st_file **out);
/* Same checks on bytes in memory, which must outlive the result. `what` names them in messages. */
int lw_st_parse(const char *what, const void *bytes, size_t n, lw_st_file **out);
void lw_st_close(lw_st_file **pp);

const char *lw_st_path(const lw_st_file *f);
size_t lw_st_count(const lw_st_file *f);
const lw_st_tensor *lw_st_at(const lw_st_file *f, size_t i);           /* sorted by name */
const lw_st_tensor *lw_st_find(const lw_st_file *f, const char *name); /* NULL when absent */
int lw_st_get(const lw_st_file *f, const char *name,
              const lw_st_tensor **out); /* LW_EFORMAT when absent */
/* __metadata__: value of key or NULL; pairs in file order. */
const char *lw_st_meta(const lw_st_file *f, const char *key);
size_t lw_st_meta_count(const lw_st_file *f);
void lw_st_meta_at(const lw_st_file *f, size_t i, const char **key, const char **value);

/*
 * Writer: new, meta and add in any order, then the data of the tensors in the order they were
 * added, in pieces of any size, then finish (fsync and rename; until then the old file at path
 * stays as it was). The header is padded so that data starts at a multiple of 64. Free without
 * finish removes the temporary file.
 */
typedef struct lw_st_writer lw_st_writer;
int lw_st_writer_new(const char *path, lw_st_writer **out);
int lw_st_writer_meta(lw_st_writer *w, const char *key, const char *value);
int lw_st_writer_add(lw_st_writer *w, const char *name, lw_elem type, int rank,
                     const int64_t *shape);
/* What stands before the data, appended: for those who write the data themselves. */
int lw_st_writer_header(const lw_st_writer *w, lw_str *out);
int lw_st_writer_put(lw_st_writer *w, const void *bytes, size_t n);
int lw_st_writer_finish(lw_st_writer *w);
void lw_st_writer_free(lw_st_writer **pp);

/* All at once, in the given order. meta: n_meta pairs key, value, key, value...; may be NULL. */
int lw_st_save(const char *path, const lw_st_tensor *tensors, size_t n, const char *const *meta,
               size_t n_meta);

#endif
