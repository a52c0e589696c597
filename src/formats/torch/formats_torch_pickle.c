/* SPDX-License-Identifier: Apache-2.0 */
/* A pickle (Python's pickletools, protocols 2 to 5) as a tree. Nothing is looked up or called. */
#include <string.h>

#include "formats/torch/formats_torch.h"

/* A network of 27 layers has 14,000 nodes. Both bound memory by the file's own size. */
enum { MAX_NODES = 1 << 20, MAX_PICKLE = 64 << 20 };

typedef struct unpickler {
    lw_st_file *f;
    const unsigned char *at, *end;
    torch_node **stack, **memo;
    size_t n, cap, n_memo, cap_memo, nodes;
    bool stopped;
} unpickler;

static void unpickler_clear(unpickler *u)
{
    lw_free(&u->stack);
    lw_free(&u->memo);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int broken(const unpickler *u, const char *why)
{
    return lw_fail(LW_EFORMAT, "%s: its data.pkl is damaged (%s)", u->f->path, why);
}

static int take(unpickler *u, size_t n, const unsigned char **out)
{
    if (n > (size_t)(u->end - u->at))
        return broken(u, "it ends too early");
    *out = u->at;
    u->at += n;
    return 0;
}

static int take_number(unpickler *u, int bytes, uint64_t *out)
{
    const unsigned char *p = NULL;
    LW_TRY(take(u, (size_t)bytes, &p));
    *out = 0;
    for (int i = bytes - 1; i >= 0; i--)
        *out = *out << 8 | p[i];
    return 0;
}

static int new_node(unpickler *u, torch_kind kind, torch_node **out)
{
    if (u->nodes++ >= MAX_NODES)
        return broken(u, "more values than weights have");
    *out = lw_arena_alloc(u->f->arena, sizeof **out);
    if (!*out)
        return LW_ENOMEM;
    (*out)->kind = kind;
    return 0;
}

static int push(unpickler *u, torch_node *node)
{
    LW_TRY(lw_grow(&u->stack, &u->cap, u->n + 1, sizeof(torch_node *)));
    u->stack[u->n++] = node;
    return 0;
}

static int push_new(unpickler *u, torch_kind kind, int64_t i)
{
    torch_node *node = NULL;
    LW_TRY(new_node(u, kind, &node));
    node->i = i;
    return push(u, node);
}

static int pop(unpickler *u, torch_node **out)
{
    if (u->n == 0 || u->stack[u->n - 1]->kind == NODE_MARK)
        return broken(u, "nothing to take");
    *out = u->stack[--u->n];
    return 0;
}

/* The top of the stack, which stays; one of two kinds. */
static int top_of(unpickler *u, torch_kind a, torch_kind b, torch_node **out)
{
    if (u->n == 0 || (u->stack[u->n - 1]->kind != a && u->stack[u->n - 1]->kind != b))
        return broken(u, "a value of another kind is wanted");
    *out = u->stack[u->n - 1];
    return 0;
}

/* Index of the first value behind the newest mark. */
static int marked(const unpickler *u, size_t *first)
{
    size_t i = u->n;
    while (i > 0 && u->stack[i - 1]->kind != NODE_MARK)
        i--;
    *first = i;
    return i > 0 ? 0 : broken(u, "a mark is missing");
}

static int append(unpickler *u, torch_node *to, torch_node *const *item, size_t n)
{
    if (to->n + n > to->cap) { /* doubled: the arena keeps less than twice of what is used */
        size_t cap = LW_MAX(2 * to->cap, to->n + n);
        torch_node **more = lw_arena_alloc(u->f->arena, cap * sizeof *more);
        if (!more)
            return LW_ENOMEM;
        if (to->n)
            memcpy(more, to->item, to->n * sizeof *more);
        to->item = more;
        to->cap = cap;
    }
    if (n)
        memcpy(to->item + to->n, item, n * sizeof *item);
    to->n += n;
    return 0;
}

/* ---- constants ------------------------------------------------------------------------------- */

static int skip(unpickler *u, int n)
{
    const unsigned char *p = NULL;
    return take(u, (size_t)n, &p);
}

static int mark(unpickler *u, int arg)
{
    (void)arg;
    return push_new(u, NODE_MARK, 0);
}

static int none(unpickler *u, int arg)
{
    (void)arg;
    return push_new(u, NODE_NONE, 0);
}

static int truth(unpickler *u, int value)
{
    return push_new(u, NODE_BOOL, value);
}

static int integer(unpickler *u, int bytes)
{
    uint64_t x = 0;
    LW_TRY(take_number(u, bytes, &x));
    return push_new(u, NODE_INT, bytes == 4 ? (int64_t)(int32_t)(uint32_t)x : (int64_t)x);
}

static int long_integer(unpickler *u, int arg)
{
    uint64_t n = 0, x = 0;
    (void)arg;
    LW_TRY(take_number(u, 1, &n));
    if (n > 8)
        return broken(u, "an integer of more than 64 bits");
    LW_TRY(take_number(u, (int)n, &x));
    if (n > 0 && n < 8 && x >> (8 * n - 1))
        x |= ~(uint64_t)0 << (8 * n);
    return push_new(u, NODE_INT, (int64_t)x);
}

static int real(unpickler *u, int bytes)
{
    LW_TRY(skip(u, bytes)); /* no weight is written so */
    return push_new(u, NODE_FLOAT, 0);
}

static int text(unpickler *u, int length_bytes)
{
    const unsigned char *p = NULL;
    torch_node *node = NULL;
    uint64_t n = 0;
    LW_TRY(take_number(u, length_bytes, &n));
    if (n > SIZE_MAX / 2)
        return broken(u, "it ends too early");
    LW_TRY(take(u, (size_t)n, &p));
    if (memchr(p, 0, (size_t)n))
        return broken(u, "a zero in a name");
    LW_TRY(new_node(u, NODE_TEXT, &node));
    char *copy = lw_arena_alloc(u->f->arena, (size_t)n + 1);
    if (!copy)
        return LW_ENOMEM;
    memcpy(copy, p, (size_t)n);
    node->text = copy;
    return push(u, node);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int empty(unpickler *u, int kind)
{
    return push_new(u, (torch_kind)kind, 0);
}

static int join(unpickler *u, size_t first, torch_kind kind, torch_node **out)
{
    LW_TRY(new_node(u, kind, out));
    LW_TRY(append(u, *out, u->stack + first, u->n - first));
    u->n = first;
    return 0;
}

static int tuple(unpickler *u, int n) /* -1: behind the mark */
{
    torch_node *node = NULL;
    size_t first = u->n - (size_t)LW_MAX(n, 0);
    if (n < 0)
        LW_TRY(marked(u, &first));
    if (n >= 0 && (u->n < (size_t)n))
        return broken(u, "nothing to take");
    LW_TRY(join(u, first, NODE_TUPLE, &node));
    u->n -= n < 0; /* the mark */
    return push(u, node);
}

/* Values behind a mark, or the one at the top, into the list or dictionary before them. */
static int put(unpickler *u, int width, bool many, torch_kind kind)
{
    size_t first = u->n - (size_t)LW_MIN((size_t)width, u->n);
    if (many)
        LW_TRY(marked(u, &first));
    size_t n = u->n - first, below = first - (many ? 1 : 0);
    if (n % (size_t)width || below == 0 || u->stack[below - 1]->kind != kind)
        return broken(u, "values for nothing");
    LW_TRY(append(u, u->stack[below - 1], u->stack + first, n));
    u->n = below;
    return 0;
}

static int put_one(unpickler *u, int width)
{
    return put(u, width, false, width == 2 ? NODE_DICT : NODE_LIST);
}

static int put_many(unpickler *u, int width)
{
    return put(u, width, true, width == 2 ? NODE_DICT : NODE_LIST);
}

/* ---- memo ------------------------------------------------------------------------------------ */

static int remember_at(unpickler *u, uint64_t i)
{
    if (u->n == 0 || i > MAX_NODES)
        return broken(u, "a memo of nothing, or too far");
    LW_TRY(lw_grow(&u->memo, &u->cap_memo, (size_t)i + 1, sizeof(torch_node *)));
    while (u->n_memo <= i)
        u->memo[u->n_memo++] = NULL;
    u->memo[i] = u->stack[u->n - 1];
    return 0;
}

static int remember(unpickler *u, int bytes) /* 0: the next place */
{
    uint64_t i = u->n_memo;
    if (bytes)
        LW_TRY(take_number(u, bytes, &i));
    return remember_at(u, i);
}

static int recall(unpickler *u, int bytes)
{
    uint64_t i = 0;
    LW_TRY(take_number(u, bytes, &i));
    if (i >= u->n_memo || !u->memo[i] || u->memo[i]->kind == NODE_MARK)
        return broken(u, "a memo that was never made");
    return push(u, u->memo[i]);
}

/* ---- names and calls, none of which is made -------------------------------------------------- */

static int global_of(unpickler *u, const char *module, const char *name)
{
    static const struct {
        const char *module, *name;
        torch_call call;
        lw_elem elem;
    } known[] = {
        {"collections", "OrderedDict", TORCH_DICT, 0},
        {"torch._utils", "_rebuild_tensor_v2", TORCH_TENSOR, 0},
        {"torch._utils", "_rebuild_parameter", TORCH_PARAMETER, 0},
        {"torch", "Size", TORCH_SIZE, 0},
        {"torch", "DoubleStorage", TORCH_STORAGE, LW_ELEM_F64},
        {"torch", "FloatStorage", TORCH_STORAGE, LW_ELEM_F32},
        {"torch", "HalfStorage", TORCH_STORAGE, LW_ELEM_F16},
        {"torch", "BFloat16Storage", TORCH_STORAGE, LW_ELEM_BF16},
        {"torch", "LongStorage", TORCH_STORAGE, LW_ELEM_I64},
        {"torch", "IntStorage", TORCH_STORAGE, LW_ELEM_I32},
        {"torch", "ShortStorage", TORCH_STORAGE, LW_ELEM_I16},
        {"torch", "CharStorage", TORCH_STORAGE, LW_ELEM_I8},
        {"torch", "ByteStorage", TORCH_STORAGE, LW_ELEM_U8},
        {"torch", "BoolStorage", TORCH_STORAGE, LW_ELEM_BOOL},
    };
    torch_node *node = NULL;
    size_t i = 0;
    while (i < LW_COUNT(known) &&
           !(lw_str_eq(known[i].module, module) && lw_str_eq(known[i].name, name)))
        i++;
    if (i == LW_COUNT(known))
        return lw_fail(LW_EFORMAT,
                       "%s: its pickle wants '%.100s.%.100s', which is no part of weights (nothing "
                       "was run); save a state_dict of tensors alone",
                       u->f->path, module, name);
    LW_TRY(new_node(u, NODE_GLOBAL, &node));
    node->call = known[i].call;
    node->elem = known[i].elem;
    return push(u, node);
}

static int line(unpickler *u, char *buf, size_t size)
{
    size_t left = (size_t)(u->end - u->at);
    const unsigned char *stop = memchr(u->at, '\n', left);
    size_t n = stop ? (size_t)(stop - u->at) : size;
    if (n >= size || memchr(u->at, 0, n))
        return broken(u, "a name without end");
    memcpy(buf, u->at, n);
    buf[n] = '\0';
    u->at += n + 1;
    return 0;
}

static int global(unpickler *u, int arg)
{
    char module[256], name[256];
    (void)arg;
    LW_TRY(line(u, module, sizeof module));
    LW_TRY(line(u, name, sizeof name));
    return global_of(u, module, name);
}

static int stack_global(unpickler *u, int arg)
{
    torch_node *module = NULL, *name = NULL;
    (void)arg;
    LW_TRY(pop(u, &name));
    LW_TRY(pop(u, &module));
    if (module->kind != NODE_TEXT || name->kind != NODE_TEXT)
        return broken(u, "a name that is none");
    return global_of(u, module->text, name->text);
}

static int wrap(unpickler *u, torch_kind kind, torch_call call, torch_node *arg)
{
    torch_node *node = NULL;
    LW_TRY(new_node(u, kind, &node));
    node->call = call;
    LW_TRY(append(u, node, &arg, 1));
    return push(u, node);
}

static int reduce(unpickler *u, int arg)
{
    torch_node *args = NULL, *callee = NULL;
    (void)arg;
    LW_TRY(pop(u, &args));
    LW_TRY(pop(u, &callee));
    if (callee->kind != NODE_GLOBAL || callee->call == TORCH_STORAGE || args->kind != NODE_TUPLE)
        return broken(u, "a call of what cannot be called");
    if (callee->call != TORCH_DICT)
        return wrap(u, NODE_CALL, callee->call, args);
    if (args->n)
        return broken(u, "an OrderedDict made of something");
    return push_new(u, NODE_DICT, 0);
}

/* The state of an OrderedDict is the versions of its modules. */
static int build(unpickler *u, int arg)
{
    torch_node *state = NULL, *object;
    (void)arg;
    LW_TRY(pop(u, &state));
    return top_of(u, NODE_DICT, NODE_CALL, &object);
}

static int persistent(unpickler *u, int arg)
{
    torch_node *id = NULL;
    (void)arg;
    LW_TRY(pop(u, &id));
    if (id->kind != NODE_TUPLE)
        return broken(u, "a storage that is none");
    return wrap(u, NODE_PERSISTENT, TORCH_STORAGE, id);
}

static int stop(unpickler *u, int arg)
{
    (void)arg;
    u->stopped = true;
    return 0;
}

/* ---- the machine ----------------------------------------------------------------------------- */

typedef struct opcode {
    int (*run)(unpickler *u, int arg);
    int arg;
} opcode;

static const opcode opcodes[256] = {
    [0x80] = {skip, 1},          /* PROTO */
    [0x95] = {skip, 8},          /* FRAME */
    ['('] = {mark, 0},           /* MARK */
    ['N'] = {none, 0},           /* NONE */
    [0x88] = {truth, 1},         /* NEWTRUE */
    [0x89] = {truth, 0},         /* NEWFALSE */
    ['J'] = {integer, 4},        /* BININT */
    ['K'] = {integer, 1},        /* BININT1 */
    ['M'] = {integer, 2},        /* BININT2 */
    [0x8a] = {long_integer, 0},  /* LONG1 */
    ['G'] = {real, 8},           /* BINFLOAT */
    ['X'] = {text, 4},           /* BINUNICODE */
    [0x8c] = {text, 1},          /* SHORT_BINUNICODE */
    [0x8d] = {text, 8},          /* BINUNICODE8 */
    ['U'] = {text, 1},           /* SHORT_BINSTRING */
    ['T'] = {text, 4},           /* BINSTRING */
    ['}'] = {empty, NODE_DICT},  /* EMPTY_DICT */
    [']'] = {empty, NODE_LIST},  /* EMPTY_LIST */
    [')'] = {empty, NODE_TUPLE}, /* EMPTY_TUPLE */
    ['t'] = {tuple, -1},         /* TUPLE */
    [0x85] = {tuple, 1},         /* TUPLE1 */
    [0x86] = {tuple, 2},         /* TUPLE2 */
    [0x87] = {tuple, 3},         /* TUPLE3 */
    ['s'] = {put_one, 2},        /* SETITEM */
    ['u'] = {put_many, 2},       /* SETITEMS */
    ['a'] = {put_one, 1},        /* APPEND */
    ['e'] = {put_many, 1},       /* APPENDS */
    ['q'] = {remember, 1},       /* BINPUT */
    ['r'] = {remember, 4},       /* LONG_BINPUT */
    [0x94] = {remember, 0},      /* MEMOIZE */
    ['h'] = {recall, 1},         /* BINGET */
    ['j'] = {recall, 4},         /* LONG_BINGET */
    ['c'] = {global, 0},         /* GLOBAL */
    [0x93] = {stack_global, 0},  /* STACK_GLOBAL */
    ['R'] = {reduce, 0},         /* REDUCE */
    ['b'] = {build, 0},          /* BUILD */
    ['Q'] = {persistent, 0},     /* BINPERSID */
    ['.'] = {stop, 0},           /* STOP */
};

static int run(unpickler *u)
{
    while (!u->stopped) {
        const unsigned char *p = NULL;
        LW_TRY(take(u, 1, &p));
        const opcode *o = &opcodes[*p];
        if (!o->run)
            return lw_fail(LW_EFORMAT,
                           "%s: its pickle has the opcode 0x%02x, which is no part of weights "
                           "(nothing was run); save a state_dict of tensors alone",
                           u->f->path, *p);
        LW_TRY(o->run(u, o->arg));
    }
    return u->n == 1 ? 0 : broken(u, "more or less than one value");
}

int lw_torch_unpickle(lw_st_file *f, const unsigned char *bytes, size_t size, torch_node **out)
{
    LW_CLEANUP(unpickler_clear) unpickler u = {.f = f, .at = bytes, .end = bytes + size};
    if (size > MAX_PICKLE)
        return broken(&u, "more than 64 MiB of names");
    LW_TRY(run(&u));
    *out = u.stack[0];
    return 0;
}
