/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that a graph becomes, read field by field: every tensor that a node reads was made before it,
 * no name is made twice, bytes of tensors are those of their shapes. Values: tools/onnx_check.py.
 */
#include "golden/golden.h"

#include "base/base.h"
#include "jobs/convert/convert_onnx.h"

typedef struct message {
    const unsigned char *at, *end;
} message;

typedef struct field {
    unsigned number;
    uint64_t v;
    message m;
} field;

static uint64_t varint(message *m)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(m->at < m->end && shift < 64);
        v |= (uint64_t)(*m->at & 0x7f) << shift;
        if (!(*m->at++ & 0x80))
            return v;
    }
}

static bool next(message *m, field *f)
{
    if (m->at == m->end)
        return false;
    uint64_t tag = varint(m);
    *f = (field){.number = (unsigned)(tag >> 3)};
    if ((tag & 7) == 0) {
        f->v = varint(m);
        return true;
    }
    uint64_t n = (tag & 7) == 5 ? 4 : (tag & 7) == 1 ? 8 : varint(m);
    assert_true(n <= (uint64_t)(m->end - m->at));
    f->m = (message){m->at, m->at + n};
    m->at += n;
    return true;
}

enum { MOST = 512 };
static char made[MOST][32];
static bool taken[MOST]; /* by a node */
static int n_made;

/* Its number; -1: it is not. */
static int place_of(message m)
{
    size_t n = (size_t)(m.end - m.at);
    for (int i = 0; i < n_made; i++)
        if (strlen(made[i]) == n && memcmp(made[i], m.at, n) == 0)
            return i;
    return -1;
}

static bool is_made(message m)
{
    return m.at == m.end /* absent */ || place_of(m) >= 0;
}

static void make(message m)
{
    size_t n = (size_t)(m.end - m.at);
    assert_true(n > 0 && n < sizeof *made && n_made < MOST && !is_made(m));
    memcpy(made[n_made], m.at, n);
    taken[n_made] = false;
    made[n_made++][n] = 0;
}

static void read_tensor(message m)
{
    field f;
    uint64_t count = 1, bytes = 0, type = 0;
    while (next(&m, &f)) {
        if (f.number == 1)
            count *= f.v;
        if (f.number == 2)
            type = f.v;
        if (f.number == 8)
            make(f.m);
        if (f.number == 9)
            bytes = (uint64_t)(f.m.end - f.m.at);
    }
    assert_int_equal(bytes, count * (type == 7 ? 8 : 4));
}

static void read_name(message m)
{
    field f;
    while (next(&m, &f))
        if (f.number == 1)
            make(f.m);
}

/* Nodes of operator `op`, all of them checked on the way. */
static int read_nodes(message graph, const char *op)
{
    field f, g;
    int n = 0;
    while (next(&graph, &f)) {
        if (f.number != 1)
            continue;
        message node = f.m;
        while (next(&node, &g)) {
            if (g.number == 1 && !is_made(g.m))
                fail_msg("read before it is made: %.*s", (int)(g.m.end - g.m.at),
                         (const char *)g.m.at);
            if (g.number == 1 && g.m.at < g.m.end)
                taken[place_of(g.m)] = true;
            if (g.number == 2)
                make(g.m);
            n += g.number == 4 && (size_t)(g.m.end - g.m.at) == strlen(op) &&
                 memcmp(g.m.at, op, strlen(op)) == 0;
        }
    }
    return n;
}

static message graph_of(const lw_str *model)
{
    message m = {(const unsigned char *)lw_str_c(model),
                 (const unsigned char *)lw_str_c(model) + model->len};
    message found = {NULL, NULL};
    field f;
    while (next(&m, &f)) {
        if (f.number == 1)
            assert_int_equal(f.v, 8); /* the IR that ONNX Runtime 1.12 reads */
        if (f.number == 7)
            found = f.m;
    }
    assert_non_null(found.at);
    return found;
}

static int read_graph(message graph, const char *op)
{
    field f;
    n_made = 0;
    for (message m = graph; next(&m, &f);)
        if (f.number == 5)
            read_tensor(f.m);
    int tensors = n_made;
    for (message m = graph; next(&m, &f);) {
        if (f.number == 11)
            read_name(f.m);
    }
    int n = read_nodes(graph, op);
    for (int i = 0; i < tensors; i++)
        if (!taken[i])
            fail_msg("nothing takes the tensor %s", made[i]);
    bool out = false;
    for (message m = graph; next(&m, &f);)
        if (f.number == 12) {
            field name;
            message port = f.m;
            assert_true(next(&port, &name) && is_made(name.m));
            out = true;
        }
    assert_true(out);
    return n;
}

static void test_structure(void **state)
{
    (void)state;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_str_clear) lw_str model = {0};
    const float w[4 * 3 * 3 * 3] = {1.0f}, l[2 * 4] = {2.0f}, c[4] = {3.0f};
    assert_int_equal(lw_graph_new(&g), 0);
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, 2, 8, 8, 3));
    lw_val four = lw_const(g, lw_type_of(LW_F32, 1, 4), c);
    lw_zeros(g, lw_type_of(LW_F32, 1, 3)); /* which nothing takes */
    lw_val y = lw_conv2d_op(g, x, lw_const(g, lw_type_of(LW_F32, 4, 4, 3, 3, 3), w), four, 1, 1);
    y = lw_group_norm_op(g, y, four, four, LW_NOVAL, LW_NOVAL, 2, 1e-5f, LW_ACT_RELU);
    y = lw_silu(g, y);
    y = lw_upsample(g, lw_pool2d(g, y, 2, 2, 0, true), 2);
    lw_val p = lw_linear_op(g, lw_mean(g, y, LW_OVER_MIDDLE),
                            lw_const(g, lw_type_of(LW_F32, 2, 2, 4), l), LW_NOVAL);
    lw_graph_output_add(g, "map", y, LW_NOVAL);
    lw_graph_output_add(g, "logits", p, LW_NOVAL);
    assert_string_equal(lw_graph_error(g) ? lw_errmsg() : "", "");
    assert_int_equal(lw_onnx_of_graph(g, "small", &model), 0);
    assert_int_equal(read_graph(graph_of(&model), "Conv"), 1);
    assert_int_equal(read_graph(graph_of(&model), "MaxPool"), 1);
    assert_int_equal(read_graph(graph_of(&model), "MatMul"), 1);
    assert_int_equal(read_graph(graph_of(&model), "ReduceMean"), 3); /* of the norm and the mean */
}

static void test_refused(void **state)
{
    (void)state;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_str_clear) lw_str model = {0};
    assert_int_equal(lw_graph_new(&g), 0);
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 2, 4, 8)),
           y = lw_input(g, "y", lw_type_of(LW_F32, 2, 4, 8));
    lw_graph_output_add(g, "d", lw_pair_distance(g, x, y, LW_DISTANCE_L2), LW_NOVAL);
    assert_int_equal(lw_onnx_of_graph(g, "pairs", &model), LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "pair_distance"));
    assert_int_equal(model.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_structure),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
