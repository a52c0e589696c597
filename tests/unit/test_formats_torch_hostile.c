/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of torch.save that want to run something, or that lie: each is refused with one line, nothing
 * is run, and no memory is taken for what they say.
 */
#include "fuzz/torch_archive.h"
#include "unit/test_formats_util.h"

#define BYTES(text) text, sizeof text - 1 /* which may hold zeros */

/* Pieces of pickles, protocol 2. */
#define TEXT1(n, text) "X" n "\0\0\0" text
#define CALL(module, name) "c" module "\n" name "\n"
#define TENSOR CALL("torch._utils", "_rebuild_tensor_v2")
#define STORAGE(kind, key_size, key, count)                                                      \
    "(" TEXT1("\7", "storage") CALL("torch", kind) TEXT1(key_size, key) TEXT1("\3", "cpu") count \
        "tQ"
#define GOOD_STORAGE STORAGE("FloatStorage", "\1", "0", "K\20")
/* {'w': a tensor of a storage, an offset, a size and strides} */
#define WEIGHTS(storage, offset, size, stride) \
    "\x80\2}" TEXT1("\1", "w") TENSOR "(" storage offset size stride "\x89)tRs."

typedef struct hostile {
    const char *what;
    const char *pickle;
    size_t n;
    const char *part; /* of the message; NULL: it is good */
} hostile;

static const hostile rows[] = {
    {"good", BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "K\4K\4\x86", "K\4K\1\x86")), NULL},

    /* names that are not part of weights */
    {"os.system", BYTES("\x80\2" CALL("os", "system") TEXT1("\15", "touch pwned  ") "\x85R."),
     "wants 'os.system'"},
    {"posix.system", BYTES("\x80\2" CALL("posix", "system") TEXT1("\13", "touch pwned") "\x85R."),
     "wants 'posix.system'"},
    {"builtins.eval", BYTES("\x80\2" CALL("builtins", "eval") TEXT1("\3", "1/0") "\x85R."),
     "wants 'builtins.eval'"},
    {"__builtin__.exec", BYTES("\x80\2" CALL("__builtin__", "exec") TEXT1("\4", "pass") "\x85R."),
     "wants '__builtin__.exec'"},
    {"subprocess.Popen", BYTES("\x80\4\x8c\12subprocess\x8c\5Popen\x93)R."),
     "wants 'subprocess.Popen'"},
    {"a name of a good module", BYTES("\x80\2" CALL("torch._utils", "_rebuild_tensor") ")R."),
     "wants 'torch._utils._rebuild_tensor'"},
    {"a dotted name", BYTES("\x80\2" CALL("collections", "OrderedDict.__init__.__globals__") ")R."),
     "wants 'collections.OrderedDict.__init__.__globals__'"},
    {"a module path in a name", BYTES("\x80\4\x8c\5torch\x8c\23_utils.os.system(1)\x93)R."),
     "wants 'torch._utils.os.system(1)'"},
    {"torch.load", BYTES("\x80\2" CALL("torch", "load") TEXT1("\1", "x") "\x85R."), "'torch.load'"},
    {"getattr chain",
     BYTES("\x80\2" CALL("builtins", "getattr") CALL("os", "path") TEXT1("\2", "os") "\x86R."),
     "wants 'builtins.getattr'"},
    {"a hostile name inside of good arguments",
     BYTES("\x80\2}" TEXT1("\1", "w") TENSOR "(" CALL("os", "system") "tRs."), "wants 'os.system'"},
    {"a name out of the memo", BYTES("\x80\4\x8c\2os\x94\x8c\6system\x94h\0h\1\x93."),
     "wants 'os.system'"},
    {"a name with a line break in it", BYTES("\x80\4\x8c\3o\ns\x8c\6system\x93."), "system'"},

    /* opcodes that make objects */
    {"INST", BYTES("\x80\2(" TEXT1("\1", "x") "ios\nsystem\n."), "opcode 0x69"},
    {"OBJ", BYTES("\x80\2(cos\nsystem\no."), "wants 'os.system'"},
    {"OBJ of a good name", BYTES("\x80\2(ccollections\nOrderedDict\no."), "opcode 0x6f"},
    {"NEWOBJ", BYTES("\x80\2ccollections\nOrderedDict\n)\x81."), "opcode 0x81"},
    {"NEWOBJ_EX", BYTES("\x80\4ccollections\nOrderedDict\n)}\x92."), "opcode 0x92"},
    {"EXT1", BYTES("\x80\2\x82\1)R."), "opcode 0x82"},
    {"EXT2", BYTES("\x80\2\x83\1\0)R."), "opcode 0x83"},
    {"EXT4", BYTES("\x80\2\x84\1\0\0\0)R."), "opcode 0x84"},
    {"PERSID as a line", BYTES("\x80\2P../../etc/passwd\n."), "opcode 0x50"},
    {"NEXT_BUFFER", BYTES("\x80\5\x97."), "opcode 0x97"},
    {"LONG4", BYTES("\x80\2\x8b\xff\xff\xff\x7f."), "opcode 0x8b"},
    {"a call of a call", BYTES("\x80\2ccollections\nOrderedDict\n)R)R."), "what cannot be called"},
    {"a call of a storage", BYTES("\x80\2ctorch\nFloatStorage\nK\1\x85R."),
     "what cannot be called"},
    {"a call of a text", BYTES("\x80\2" TEXT1("\2", "os") ")R."), "what cannot be called"},
    {"an OrderedDict of a call's result", BYTES("\x80\2ccollections\nOrderedDict\n]\x85R."),
     "made of something"},
    {"BUILD of a name", BYTES("\x80\2ctorch\nFloatStorage\n}b."), "another kind"},

    /* storages that lie */
    {"an id that is a text", BYTES(WEIGHTS(TEXT1("\1", "0") "Q", "K\0", "K\4\x85", "K\1\x85")),
     "a storage that is none"},
    {"an id without a type",
     BYTES(WEIGHTS("(" TEXT1("\7", "storage") "NX\1\0\0\0"
                                              "0K\20K\20tQ",
                   "K\0", "K\4\x85", "K\1\x85")),
     "has no storage"},
    {"a path out of the archive",
     BYTES(WEIGHTS(STORAGE("FloatStorage", "\13", "../../../0x", "K\20"), "K\0", "K\4\x85",
                   "K\1\x85")),
     "a storage that is not in the file"},
    {"longer than its bytes",
     BYTES(WEIGHTS(STORAGE("FloatStorage", "\1", "0", "K\21"), "K\0", "K\4\x85", "K\1\x85")),
     "shorter than it says"},
    {"longer by its type",
     BYTES(WEIGHTS(STORAGE("DoubleStorage", "\1", "0", "K\20"), "K\0", "K\4\x85", "K\1\x85")),
     "shorter than it says"},
    {"of a negative count",
     BYTES(WEIGHTS(STORAGE("FloatStorage", "\1", "0", "J\xff\xff\xff\xff"), "K\0", "K\4\x85",
                   "K\1\x85")),
     "has no storage"},
    {"of a huge count",
     BYTES(WEIGHTS(STORAGE("FloatStorage", "\1", "0", "\x8a\10\xff\xff\xff\xff\xff\xff\xff\x7f"),
                   "K\0", "K\4\x85", "K\1\x85")),
     "shorter than it says"},

    /* shapes and strides that leave it */
    {"one value too many", BYTES(WEIGHTS(GOOD_STORAGE, "K\1", "K\4K\4\x86", "K\4K\1\x86")),
     "reaches beyond"},
    {"a stride that leaves", BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "K\2K\3\x86", "K\x64K\1\x86")),
     "reaches beyond"},
    {"a negative stride", BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "K\4\x85", "J\xff\xff\xff\xff\x85")),
     "has no shape"},
    {"a negative size", BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85")),
     "has no shape"},
    {"a negative offset", BYTES(WEIGHTS(GOOD_STORAGE, "J\xff\xff\xff\xff", "K\4\x85", "K\1\x85")),
     "has no shape"},
    {"a stride that overflows",
     BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "K\5\x85", "\x8a\10\0\0\0\0\0\0\0\x40\x85")),
     "reaches beyond"},
    {"an offset that overflows",
     BYTES(WEIGHTS(GOOD_STORAGE, "\x8a\10\xff\xff\xff\xff\xff\xff\xff\x7f", "K\4\x85", "K\1\x85")),
     "reaches beyond"},
    {"a huge shape of one value",
     BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "\x8a\10\0\0\0\0\0\0\0\x40K\4\x86", "K\0K\0\x86")),
     "repeats values"},
    {"a tebibyte of one value",
     BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "\x8a\6\0\0\0\0\0\1\x85", "K\0\x85")), "repeats values"},
    {"nine dimensions",
     BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t",
                   "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t")),
     "has no shape"},
    {"fewer strides than sizes", BYTES(WEIGHTS(GOOD_STORAGE, "K\0", "K\2K\2\x86", "K\1\x85")),
     "has no shape"},

    /* pickles that grow */
    {"a text longer than the file", BYTES("\x80\2X\xff\xff\xff\x7fx."), "it ends too early"},
    {"a text of 2^63 bytes", BYTES("\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\xffx."),
     "it ends too early"},
    {"a memo far away", BYTES("\x80\2Nr\xff\xff\xff\x7f."), "too far"},
    {"a dictionary of itself", BYTES("\x80\2}q\0X\1\0\0\0wh\0s."), "holds no state_dict"},
    {"no end", BYTES("\x80\2}"), "it ends too early"},
    {"nothing", BYTES(""), "it ends too early"},
};

static void hostile_pickles(void **state)
{
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        const hostile *h = &rows[i];
        lw_st_file *f = NULL;
        size_t n = 0;
        uint8_t *bytes = torch_archive_of(h->pickle, h->n, 0, &n);
        assert_non_null(bytes);
        int rc = lw_st_parse("t.pth", bytes, n, &f);
        if (!h->part && rc < 0)
            fail_msg("%s: '%s'", h->what, lw_errmsg());
        if (h->part && (rc != LW_EFORMAT || !strstr(lw_errmsg(), h->part)))
            fail_msg("%s: code %d, '%s'", h->what, rc, rc < 0 ? lw_errmsg() : "");
        if (rc == 0) /* as it lies in the file */
            assert_int_equal(lw_st_find(f, "w")->count, 16);
        lw_st_close(&f);
        free(bytes);
    }
    assert_false(lw_path_exists("pwned"));
}

/* A million values in a file of a megabyte are as many as are taken. */
static void more_values_than_weights_have(void **state)
{
    enum { N = 2 << 20 };
    lw_st_file *f = NULL;
    size_t n = 0;
    char *pickle = malloc(N);
    (void)state;
    assert_non_null(pickle);
    memset(pickle, 'N', N);
    uint8_t *bytes = torch_archive_of(pickle, N, 0, &n);
    assert_fails(LW_EFORMAT, "more values than weights have", lw_st_parse("t.pth", bytes, n, &f));
    free(bytes);
    free(pickle);
}

/* Nothing is ever unpacked: an archive that says it is compressed is no file of torch.save. */
static void bombs_are_not_unpacked(void **state)
{
    lw_st_file *f = NULL;
    size_t n = 0;
    (void)state;
    uint8_t *bytes = torch_archive_of("\x80\2}.", 4, 8, &n);
    assert_fails(LW_EFORMAT, "is compressed or encrypted", lw_st_parse("t.pth", bytes, n, &f));
    free(bytes);
}

/* A good archive, `n` bytes of extra data behind its last entry's name; *central: that entry. */
static uint8_t *archive_with(const void *extra, size_t n, size_t *size, uint8_t **central)
{
    uint8_t *bytes = torch_archive_of(rows[0].pickle, rows[0].n, 0, size);
    assert_non_null(bytes);
    uint8_t *end = bytes + *size - 22;
    *central = end - 46 - strlen("a/data/0");
    memmove(end + n, end, 22);
    if (n)
        memcpy(end, extra, n);
    archive_number(*central + 30, n, 2);
    archive_number(end + n + 12, (uint64_t)(end + n - *central) + 46 + strlen("a/data.pkl"), 4);
    *size += n;
    return bytes;
}

enum { FLAGS = 8, PACKED = 20, SIZE = 24, LOCAL = 42, END = 54 };
#define MISSING "\7\0\2\0??" /* an extra field that says nothing to us */
#define NUMBER "\100\0\0\0\0\0\0\0"

/* What the directory says of the last entry and of itself, a number or two of it changed. */
static void directories_that_lie(void **state)
{
    static const struct {
        const char *extra;
        size_t n;
        struct {
            int at, bytes; /* from the last entry on; bytes 0: nothing */
            uint64_t value;
        } put[2];
        const char *part;
    } lies[] = {
        {BYTES(""), {{0}}, NULL},
        {BYTES(""), {{PACKED, 4, 63}}, "compressed or encrypted"},
        {BYTES(""), {{FLAGS, 2, 1}}, "compressed or encrypted"},
        {BYTES(""), {{PACKED, 4, 9999}, {SIZE, 4, 9999}}, "an entry is outside"},
        {BYTES(""), {{LOCAL, 4, 0x7fffffff}}, "an entry is outside"},
        {BYTES(""), {{END + 10, 2, 3}}, "its directory is outside"},
        {BYTES(""), {{END + 20, 2, 5}}, "its end is missing"},
        {BYTES(""), {{SIZE, 4, UINT32_MAX}}, "a zip64 size is missing"},
        {BYTES(MISSING "\1\0\20\0" NUMBER NUMBER),
         {{PACKED, 4, UINT32_MAX}, {SIZE, 4, UINT32_MAX}},
         NULL},
        {BYTES(MISSING "\1\0\10\0" NUMBER),
         {{PACKED, 4, UINT32_MAX}, {SIZE, 4, UINT32_MAX}},
         "a zip64 size is missing"},
        {BYTES(MISSING), {{SIZE, 4, UINT32_MAX}}, "a zip64 size is missing"},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(lies); i++) {
        lw_st_file *f = NULL;
        size_t n;
        uint8_t *central, *bytes = archive_with(lies[i].extra, lies[i].n, &n, &central);
        for (int k = 0; k < 2; k++)
            archive_number(central + lies[i].put[k].at, lies[i].put[k].value, lies[i].put[k].bytes);
        int rc = lw_st_parse("t.pth", bytes, n, &f);
        if (rc != (lies[i].part ? LW_EFORMAT : 0) ||
            (lies[i].part && !strstr(lw_errmsg(), lies[i].part)))
            fail_msg("row %zu: code %d, '%s'", i, rc, rc < 0 ? lw_errmsg() : "");
        lw_st_close(&f);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_pickles), cmocka_unit_test(more_values_than_weights_have),
        cmocka_unit_test(bombs_are_not_unpacked), cmocka_unit_test(directories_that_lie)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
