/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model's tensors are called in files that others write, and how their values lie there. The
 * same rules are read from the file to the store and back (lw_store_load, lw_store_save_as).
 *
 *   {.file = "vision_model.encoder.layers.*.mlp.fc1.*", .store = "blocks.*.mlp.fc1.*"}
 *
 * In a pattern `*` stands for one or more characters without a dot, `**` for any characters; what a
 * star of one pattern stood for is written for the star of the same number in the other.
 *
 * A store's name belongs to the first rule whose `store` it matches; where that rule gives rows only
 * of it, to the next rules of the same pattern too, in order, until all rows are given. Without a
 * rule the name is the same in both, and a packed projection X.to_qkv.* is X.to_q.*, X.to_k.*,
 * X.to_v.* in the file. Always: weights of convolutions are [O,KH,KW,C] here and [O,C,KH,KW] there;
 * a file's shape may end in more ones than the model's (a 1x1 convolution for a linear layer); a
 * tensor NAME may be given as NAME_q of I8 and NAME_scale of one number per row.
 */
#ifndef LW_STORE_NAMING_H
#define LW_STORE_NAMING_H

#include "formats/formats.h"

/* Rows [first, first + count) of `of` equal parts of the first dimension; {0}: all. */
typedef struct lw_rows {
    int first, count, of;
} lw_rows;

typedef enum lw_values {
    LW_VALUES_SAME,
    LW_VALUES_TRANSPOSED, /* [in,out] in the file, [out,in] here */
    LW_VALUES_CENTRE      /* a convolution whose kernel is the centre of the file's larger one */
} lw_values;

typedef struct lw_name_rule {
    const char *file, *store; /* patterns of one number of stars; NULL ends a list */
    lw_values values;
    int ones;           /* dimensions of 1 in front that only the file's tensor has */
    lw_rows store_rows; /* which rows of the store's tensor it gives */
    lw_rows file_rows;  /* out of which rows of the file's; {0, 1, 3}: q of a packed q|k|v */
    bool bare;          /* the file's name stands without the naming's prefix */
} lw_name_rule;
/* Three tensors of a file as the rows of one packed `to_qkv`. */
#define LW_QKV_RULES(q, k, v)                                         \
    {.file = q, .store = "**.to_qkv.*", .store_rows = {0, 1, 3}},     \
        {.file = k, .store = "**.to_qkv.*", .store_rows = {1, 1, 3}}, \
    {                                                                 \
        .file = v, .store = "**.to_qkv.*", .store_rows = { 2, 1, 3 }  \
    }

/* Lists of namings end with one without a name. The first whose tensors are all there is taken. */
typedef struct lw_naming {
    const char *name;          /* whose names these are: "transformers", "timm", ... */
    const char *prefix;        /* before every name of the file; NULL: nothing */
    const lw_name_rule *rules; /* NULL: none */
    /* Patterns of whole names, NULL-ended: tensors that are there and mean nothing here. Those that
     * end in num_batches_tracked or position_ids need not be said. */
    const char *const *ignored;
} lw_naming;

/* The tensor that `name` of the store is filled from, whole or its first rows, by the first naming
 * that has it; NULL: none has. For telling models apart, and their sizes. */
const lw_st_tensor *lw_naming_find(const lw_naming *namings, const lw_st_file *f, const char *name);

/* What a file of a naming calls a tensor of the store, or rows of one. */
typedef struct lw_file_name {
    const char *name;
    lw_rows rows; /* of the store's tensor that it gives */
    lw_rows of;   /* out of which rows of the file's own */
    bool bare;    /* it stands beside what carries the prefix */
} lw_file_name;
enum { LW_MAX_FILE_NAMES = 4 };
/* Does a name match a pattern? */
bool lw_naming_fits(const char *pattern, const char *name);

#endif
