/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a torch file: its pickle's tree against the storages of its archive. */
#include "formats/torch/formats_torch.h"

#include <string.h>

typedef struct torch_file {
    lw_st_file *f;
    size_t size; /* of the file */
    torch_zip zip;
    const char *prefix; /* of its entries, with the slash */
    size_t copied;      /* bytes of tensors that were not dense */
} torch_file;

/* torch before 1.6: a pickle that begins with this number (0x1950a86a20f9469cfc6c). */
static const unsigned char old_magic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9};

static bool is_old(const unsigned char *bytes, size_t size)
{
    return size > sizeof old_magic && memcmp(bytes, old_magic, sizeof old_magic) == 0;
}

/* A header of safetensors of this length has '{' where a zip has its method of compression. */
static bool is_zip(const unsigned char *bytes, size_t size)
{
    return size > 8 && memcmp(bytes, "PK\3\4", 4) == 0 && bytes[8] != '{';
}

bool lw_torch_is(const unsigned char *bytes, size_t size)
{
    return is_zip(bytes, size) || is_old(bytes, size);
}

/* ---- one tensor ------------------------------------------------------------------------------ */

static int bad(const torch_file *t, const char *name, const char *why)
{
    return lw_fail(LW_EFORMAT, "%s: tensor '%.120s' %s", t->f->path, name, why);
}

static const torch_node *item(const torch_node *n, size_t i, torch_kind kind)
{
    return n && i < n->n && n->item[i]->kind == kind ? n->item[i] : NULL;
}

/* ('storage', type, key, location, count) -> bytes, their type and how many elements. */
static int find_storage(const torch_file *t, const char *name, const torch_node *id, lw_elem *type,
                        int64_t *count, const unsigned char **data)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const torch_node *tuple = id ? item(id, 0, NODE_TUPLE) : NULL;
    const torch_node *kind = item(tuple, 1, NODE_GLOBAL), *key = item(tuple, 2, NODE_TEXT);
    const torch_node *n = item(tuple, 4, NODE_INT);
    if (!kind || kind->call != TORCH_STORAGE || !key || !n || n->i < 0)
        return bad(t, name, "has no storage");
    lw_str_addf(&path, "%sdata/%s", t->prefix, key->text);
    const torch_entry *e = lw_torch_zip_find(&t->zip, lw_str_c(&path));
    if (path.failed)
        return LW_ENOMEM;
    if (!e)
        return bad(t, name, "has a storage that is not in the file");
    if ((uint64_t)n->i > e->size / lw_elem_size(kind->elem))
        return bad(t, name, "has a storage that is shorter than it says");
    *type = kind->elem;
    *count = n->i;
    *data = e->data;
    return 0;
}

/* A tuple of numbers from 0 up, or torch.Size of one. */
static bool read_numbers(const torch_node *n, int64_t *out, int *rank)
{
    if (n->kind == NODE_CALL && n->call == TORCH_SIZE) {
        n = item(n, 0, NODE_TUPLE);
        n = n && n->n == 1 ? n->item[0] : NULL;
    }
    if (!n || (n->kind != NODE_TUPLE && n->kind != NODE_LIST) || n->n > LW_ARRAY_MAX_RANK)
        return false;
    for (size_t i = 0; i < n->n; i++) {
        if (n->item[i]->kind != NODE_INT || n->item[i]->i < 0)
            return false;
        out[i] = n->item[i]->i;
    }
    *rank = (int)n->n;
    return true;
}

/* Index of the last element plus one, 0 of an empty tensor; false where it overflows. */
static bool extent(const lw_st_tensor *t, const int64_t *stride, int64_t offset, int64_t *out)
{
    *out = 0;
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] == 0)
            return true;
    int64_t last = offset;
    for (int i = 0; i < t->rank; i++) {
        int64_t step;
        if (__builtin_mul_overflow(t->shape[i] - 1, stride[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    }
    return !__builtin_add_overflow(last, 1, out);
}

static bool is_dense(const lw_st_tensor *t, const int64_t *stride)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && stride[i] != step)
            return false;
        step *= t->shape[i];
    }
    return true;
}

static void gather(const lw_st_tensor *t, const int64_t *stride, const unsigned char *from,
                   unsigned char *to)
{
    size_t size = lw_elem_size(t->type);
    int64_t at[LW_ARRAY_MAX_RANK] = {0}, index = 0;
    for (int64_t k = 0; k < t->count; k++, to += size) {
        memcpy(to, from + (size_t)index * size, size);
        for (int i = t->rank - 1; i >= 0; i--) {
            index += stride[i];
            if (++at[i] < t->shape[i])
                break;
            index -= stride[i] * t->shape[i];
            at[i] = 0;
        }
    }
}

/* Values as they lie; a copy in order where they do not lie densely. */
static int place(torch_file *t, lw_st_tensor *out, const int64_t *stride, int64_t storage,
                 const unsigned char *from)
{
    if (out->count == 0 || is_dense(out, stride)) {
        out->data = from;
        return 0;
    }
    if (out->count > storage || out->bytes > 2 * t->size - t->copied)
        return bad(t, out->name, "repeats values, which weights do not");
    unsigned char *copy = lw_arena_alloc(t->f->arena, out->bytes);
    if (!copy)
        return LW_ENOMEM;
    t->copied += out->bytes;
    gather(out, stride, from, copy);
    out->data = copy;
    return 0;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, ...) or a parameter around it. */
static int read_tensor(torch_file *t, const char *name, const torch_node *n, lw_st_tensor *out)
{
    const torch_node *args = item(n, 0, NODE_TUPLE);
    int64_t stride[LW_ARRAY_MAX_RANK], storage = 0, end;
    const unsigned char *data = NULL;
    int strides;
    if (n->kind == NODE_CALL && n->call == TORCH_PARAMETER && args && args->n > 0) {
        n = args->item[0];
        args = item(n, 0, NODE_TUPLE);
    }
    if (n->kind != NODE_CALL || n->call != TORCH_TENSOR || !args || args->n < 4)
        return bad(t, name, "is no tensor");
    *out = (lw_st_tensor){.name = name, .count = 1};
    const torch_node *offset = item(args, 1, NODE_INT);
    LW_TRY(find_storage(t, name, item(args, 0, NODE_PERSISTENT), &out->type, &storage, &data));
    if (!offset || offset->i < 0 || !read_numbers(args->item[2], out->shape, &out->rank) ||
        !read_numbers(args->item[3], stride, &strides) || strides != out->rank)
        return bad(t, name, "has no shape");
    for (int i = 0; i < out->rank; i++)
        stride[i] = out->shape[i] == 1 ? 0 : stride[i]; /* anything may stand there */
    if (!extent(out, stride, offset->i, &end) || end > storage)
        return bad(t, name, "reaches beyond its storage");
    for (int i = 0; i < out->rank; i++)
        if (end == 0)
            out->count = 0;
        else if (__builtin_mul_overflow(out->count, out->shape[i], &out->count))
            return bad(t, name, "repeats values, which weights do not");
    size_t size = lw_elem_size(out->type);
    if (!lw_mul_size((size_t)out->count, size, &out->bytes))
        return bad(t, name, "repeats values, which weights do not");
    return place(t, out, stride, storage, end == 0 ? data : data + (size_t)offset->i * size);
}

/* ---- which of the pickle's values are the weights -------------------------------------------- */

static bool is_tensor(const torch_node *n)
{
    return n->kind == NODE_CALL && (n->call == TORCH_TENSOR || n->call == TORCH_PARAMETER);
}

static bool holds_tensors(const torch_node *n)
{
    for (size_t i = 1; n->kind == NODE_DICT && i < n->n; i += 2)
        if (is_tensor(n->item[i]))
            return true;
    return false;
}

/* A dictionary with tensors, or what training scripts keep one in. */
static const torch_node *find_weights(const torch_node *root)
{
    static const char *const keys[] = {"state_dict", "model_state_dict", "model", "params", "net"};
    if (root->kind != NODE_DICT || holds_tensors(root))
        return root;
    for (size_t k = 0; k < LW_COUNT(keys); k++)
        for (size_t i = 0; i + 1 < root->n; i += 2)
            if (root->item[i]->kind == NODE_TEXT && lw_str_eq(root->item[i]->text, keys[k]) &&
                holds_tensors(root->item[i + 1]))
                return root->item[i + 1];
    return root;
}

static int read_tensors(torch_file *t, const torch_node *weights)
{
    lw_st_file *f = t->f;
    if (!holds_tensors(weights))
        return lw_fail(LW_EFORMAT,
                       "%s: holds no state_dict: a dictionary of tensors, alone or as 'state_dict' "
                       "or 'model'",
                       f->path);
    f->tensors = lw_arena_alloc(f->arena, (weights->n / 2 + 1) * sizeof *f->tensors);
    if (!f->tensors)
        return LW_ENOMEM;
    for (size_t i = 0; i + 1 < weights->n; i += 2) {
        const torch_node *key = weights->item[i];
        if (key->kind != NODE_TEXT)
            return lw_fail(LW_EFORMAT, "%s: a tensor whose name is no text", f->path);
        LW_TRY(read_tensor(t, key->text, weights->item[i + 1], &f->tensors[f->n]));
        f->n++;
    }
    lw_st_sort(f->tensors, f->n);
    for (size_t i = 1; i < f->n; i++)
        if (strcmp(f->tensors[i - 1].name, f->tensors[i].name) == 0)
            return bad(t, f->tensors[i].name, "is there twice");
    return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* PREFIX/data.pkl, and that numbers are little-endian. */
static int find_pickle(torch_file *t, const torch_entry **out)
{
    static const char end[] = "/data.pkl";
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    *out = NULL;
    for (size_t i = 0; i < t->zip.n && !*out; i++)
        if (lw_str_ends(t->zip.entry[i].name, end))
            *out = &t->zip.entry[i];
    if (!*out)
        return lw_fail(LW_EFORMAT, "%s: a zip archive, but none of torch.save (no data.pkl)",
                       t->f->path);
    size_t n = strlen((*out)->name) - strlen(end) + 1;
    t->prefix = lw_arena_printf(t->f->arena, "%.*s", (int)n, (*out)->name);
    if (!t->prefix)
        return LW_ENOMEM;
    lw_str_addf(&path, "%sbyteorder", t->prefix);
    const torch_entry *order = lw_torch_zip_find(&t->zip, lw_str_c(&path));
    if (order && (order->size < 6 || memcmp(order->data, "little", 6) != 0))
        return lw_fail(LW_EFORMAT, "%s: its numbers are big-endian", t->f->path);
    return 0;
}

int lw_torch_read(lw_st_file *f, const unsigned char *bytes, size_t size)
{
    torch_file t = {.f = f, .size = size};
    const torch_entry *pickle = NULL;
    torch_node *root = NULL;
    if (is_old(bytes, size))
        return lw_fail(LW_EFORMAT,
                       "%s: written by torch before 1.6 (a bare pickle); load it there and "
                       "torch.save its state_dict again, or save it as safetensors",
                       f->path);
    LW_TRY(lw_torch_zip_read(f, bytes, size, &t.zip));
    LW_TRY(find_pickle(&t, &pickle));
    LW_TRY(lw_torch_unpickle(f, pickle->data, pickle->size, &root));
    return read_tensors(&t, find_weights(root));
}
