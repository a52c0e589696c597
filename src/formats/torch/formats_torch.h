/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.save's files (.pth, .pt, pytorch_model.bin): a zip archive without compression whose
 * PREFIX/data.pkl is a pickle that names tensors, and PREFIX/data/KEY their storages.
 *
 *   bytes ──zip──► data.pkl ──pickle──► torch_node tree ──► tensors of lw_st_file
 *                  data/KEY  ─────────── as they lie in the map ───┘
 *
 * A pickle is a program. Here it is read as data: its opcodes build a tree of numbers, texts, lists
 * and the few calls that weights consist of, none of which is made. Every other opcode, and every
 * other name of a module, is refused.
 */
#ifndef LW_FORMATS_TORCH_H
#define LW_FORMATS_TORCH_H

#include "formats/formats_safetensors_file.h"

/* Do these bytes begin as such a file, or as one of torch before 1.6 (a bare pickle)? */
bool lw_torch_is(const unsigned char *bytes, size_t size);
/* Fills f's tensors from them: pointers into bytes, copies only where strides are not dense. */
int lw_torch_read(lw_st_file *f, const unsigned char *bytes, size_t size);

/* ---- zip ------------------------------------------------------------------------------------- */

typedef struct torch_entry {
    const char *name;
    const unsigned char *data;
    size_t size;
} torch_entry;

typedef struct torch_zip {
    torch_entry *entry; /* sorted by name; all uncompressed and within the bytes */
    size_t n;
} torch_zip;

/* In f's arena. */
int lw_torch_zip_read(lw_st_file *f, const unsigned char *bytes, size_t size, torch_zip *out);
const torch_entry *lw_torch_zip_find(const torch_zip *z, const char *name); /* NULL: none */

/* ---- pickle ---------------------------------------------------------------------------------- */

typedef enum torch_call {
    TORCH_DICT,      /* collections.OrderedDict */
    TORCH_TENSOR,    /* torch._utils._rebuild_tensor_v2 */
    TORCH_PARAMETER, /* torch._utils._rebuild_parameter */
    TORCH_SIZE,      /* torch.Size */
    TORCH_STORAGE    /* torch.FloatStorage, ... */
} torch_call;

typedef enum torch_kind {
    NODE_MARK,
    NODE_NONE,
    NODE_BOOL,
    NODE_INT,
    NODE_FLOAT,
    NODE_TEXT,
    NODE_TUPLE,
    NODE_LIST,
    NODE_DICT,      /* items: key, value, key, value ... */
    NODE_GLOBAL,    /* call, elem */
    NODE_CALL,      /* call with items[0], a tuple */
    NODE_PERSISTENT /* items[0], a tuple */
} torch_kind;

typedef struct torch_node torch_node;
struct torch_node {
    torch_kind kind;
    torch_call call;
    lw_elem elem; /* of a storage */
    int64_t i;    /* of integers and truth values */
    const char *text;
    torch_node **item;
    size_t n, cap;
};

/* A pickle's one value. */
int lw_torch_unpickle(lw_st_file *f, const unsigned char *bytes, size_t size, torch_node **out);

#endif
