/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows through a compiled network: any number of them, copied or made in place, in either layout,
 * as one by one.
 */
#include "golden/golden.h"

#include "cpu_device.h"
#include "session/session_forward.h"

enum { BATCH = 4, MOST = 2 * BATCH + 1, SIDE = 8, PIXELS = SIDE * SIDE, ROW = 3 * PIXELS };

static lw_network net;
static lw_unet_config unet;
static lw_device *dev;
static float x[MOST * ROW], t[MOST], want[MOST * ROW], got[(MOST + 1) * ROW];
static int32_t class[MOST];

static int open_all(void **state)
{
    (void)state;
    lw_unet_config *u = &unet;
    *u = lw_unet_small();
    assert_ok(lw_unet_set_levels(u, SIDE, 8, (const int32_t[]){1, 2}, 2, (const int32_t[]){4}, 1));
    u->blocks = 1;
    u->heads = 2;
    u->norm_groups = 4;
    u->classes = 3;
    u->default_out_init = u->default_res_init = true;
    net = lw_network_of(&lw_network_def_unet, u, NULL);
    net.dir = "net";
    assert_ok(lw_store_new(true, &net.store));
    assert_ok(lw_network_declare(&net, net.store));
    lw_store_init(net.store, 5);
    assert_ok(cpu_device(2, lw_isa_best(), &dev));
    for (int i = 0; i < MOST * ROW; i++)
        x[i] = (float)((i * 7919) % 1000) / 500.0f - 1.0f;
    for (int i = 0; i < MOST; i++) {
        t[i] = (float)(100 * i);
        class[i] = i % 3;
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    lw_store_free(&net.store);
    lw_backend_close(&dev);
    return 0;
}

/* [3][PIXELS] of row i, element e -> where it is with the channels last. */
static int last(int e)
{
    return e / ROW * ROW + e % PIXELS * 3 + e % ROW / PIXELS;
}

static lw_forward *forward_of(int32_t batch, bool planar)
{
    lw_forward *f = NULL;
    lw_graph *g = NULL;
    if (planar) {
        assert_ok(lw_forward_new(dev, &net, &(lw_forward_opts){.batch = batch}, &f));
        return f;
    }
    assert_ok(lw_graph_new(&g));
    assert_ok(lw_network_build(&net, g, batch, SIDE, SIDE, NULL));
    assert_ok(lw_forward_of(dev, &g, &(lw_compile_opts){.opt = 1}, LW_SLAB_PARAM, "graph", &f));
    assert_null(g);
    return f;
}

/* What each row gives alone, in a plan of one row. */
static void one_by_one(void)
{
    LW_CLEANUP(lw_forward_free) lw_forward *f = forward_of(1, true);
    for (int i = 0; i < MOST; i++) {
        const lw_feed feed[] = {{.name = "x", .in = x + i * ROW},
                                {.name = "t", .in = t + i},
                                {.name = "class", .in = class + i},
                                {.name = "y", .out = want + i * ROW}};
        assert_ok(lw_forward_rows(f, "run", 1, feed, 4, NULL));
    }
    assert_true(memcmp(want, want + ROW, ROW * sizeof *want) != 0);
}

/* Pictures written into the plan, channels last. */
static int fill(void *self, int64_t first, int64_t n, void *dst)
{
    int64_t *next = self;
    assert_int_equal(first, *next);
    assert_in_range(n, 1, BATCH);
    for (int e = 0; e < n * ROW; e++)
        ((float *)dst)[last(e)] = x[first * ROW + e];
    *next += n;
    return 0;
}

static void expect_rows(lw_forward *f, int64_t rows, bool planar)
{
    int64_t next = 0;
    const lw_feed feed[] = {planar ? (lw_feed){.name = "x", .in = x}
                                   : (lw_feed){.name = "x", .fill = fill, .self = &next},
                            {.name = "t", .in = t},
                            {.name = "class", .in = class},
                            {.name = "y", .out = got}};
    for (int i = 0; i < (MOST + 1) * ROW; i++)
        got[i] = 77.0f;
    assert_ok(lw_forward_rows(f, "run", rows, feed, 4, NULL));
    assert_int_equal(next, planar ? 0 : rows);
    for (int e = 0; e < rows * ROW; e++)
        if (got[planar ? e : last(e)] != want[e]) /* the same bits */
            fail_msg("%lld rows: element %d differs from one by one", (long long)rows, e);
    for (int e = (int)rows * ROW; e < (MOST + 1) * ROW; e++)
        assert_true(got[e] == 77.0f); /* nothing is written behind the last row */
}

static void test_rows(void **state)
{
    static const int64_t counts[] = {0, 1, BATCH - 1, BATCH, BATCH + 1, MOST, 1};
    (void)state;
    one_by_one();
    for (int planar = 0; planar < 2; planar++) {
        LW_CLEANUP(lw_forward_free) lw_forward *f = forward_of(BATCH, planar);
        for (size_t i = 0; i < LW_COUNT(counts); i++)
            expect_rows(f, counts[i], planar);
    }
}

static void test_ports(void **state)
{
    (void)state;
    LW_CLEANUP(lw_forward_free) lw_forward *a = forward_of(BATCH, true), *b = NULL;
    const lw_port *p = NULL;
    assert_ok(lw_forward_find(a, "y", &p));
    assert_true(p->output && p->rank == 4 && p->shape[0] == BATCH && p->shape[1] == 3 &&
                p->shape[3] == SIDE && p->row == ROW && p->bytes == ROW * sizeof(float));
    assert_int_equal(lw_forward_find(a, "z", &p), LW_EUSAGE);
    assert_string_equal(lw_errmsg(), "net has no tensor 'z': there are x, t, class, y");
    class[1] = 3;
    const lw_feed feed = {.name = "class", .in = class};
    assert_int_equal(lw_forward_rows(a, "run", 2, &feed, 1, NULL), LW_EFORMAT);
    assert_non_null(strstr(lw_errmsg(), "class 3 is not in 0 .. 2"));
    class[1] = 1;
    b = forward_of(BATCH, false);
    assert_ok(lw_forward_find(a, "x", &p));
    assert_ok(lw_forward_set(a, p, BATCH, x));
    lw_forward_pass(a, "x", b, "x");
    lw_forward_pass(a, "x", b, "latent"); /* has none */
    assert_memory_equal(lw_forward_output(b, "x"), lw_forward_output(a, "x"), BATCH * p->bytes);
    assert_null(lw_forward_input(b, "latent"));
    lw_forward_free(&b);
}

typedef struct watched {
    int64_t done;
    int calls;
} watched;

static void progress(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    watched *w = self;
    (void)note;
    assert_string_equal(what, "encode");
    assert_int_equal(total, MOST);
    w->done = done;
    w->calls++;
}

static bool enough(void *self)
{
    return ((const watched *)self)->done >= 2 * BATCH;
}

static void test_stop(void **state)
{
    (void)state;
    LW_CLEANUP(lw_forward_free) lw_forward *f = forward_of(BATCH, true);
    watched w = {0};
    lw_observer o = {.self = &w, .progress = progress, .should_stop = enough};
    const lw_feed feed[] = {{.name = "x", .in = x}, {.name = "y", .out = got}};
    assert_int_equal(lw_forward_rows(f, "encode", MOST, feed, 2, &o), LW_ESTOPPED);
    assert_string_equal(lw_errmsg(), "interrupted after 8 of 9 rows");
    assert_int_equal(w.calls, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
