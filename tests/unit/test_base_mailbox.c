/* SPDX-License-Identifier: Apache-2.0 */
/* base/thread/mailbox: the newest wins, all are kept, errors travel, whoever waits can be stopped.
 * Built under TSan too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"

enum { NUMBERS = 512 };

/* Items are NUMBERS copies of their number: a buffer that two threads have is seen at once. */
typedef struct box {
    lw_mailbox *m;
    int64_t data[LW_MAILBOX_BUFFERS][NUMBERS];
    int64_t next, last, fail_at, seen, n;
    double pause;
} box;

static void fill(int64_t *to, int64_t number)
{
    for (int i = 0; i < NUMBERS; i++)
        to[i] = number;
}

static int64_t check(const int64_t *item)
{
    for (int i = 1; i < NUMBERS; i++)
        if (item[i] != item[0])
            abort();
    return item[0];
}

static int give(void *arg, int buffer)
{
    box *b = arg;
    if (b->next == b->fail_at)
        return lw_fail(LW_EFORMAT, "item %lld is bad", (long long)b->next);
    if (b->next == b->last)
        return LW_MAILBOX_END;
    lw_sleep(b->pause);
    fill(b->data[buffer], b->next++);
    return 0;
}

static int take(void *arg, int buffer)
{
    box *b = arg;
    int64_t item = check(b->data[buffer]);
    if (item == b->fail_at)
        return lw_fail(LW_EIO, "no place for item %lld", (long long)item);
    if (item <= b->seen)
        abort();
    b->seen = item;
    b->n++;
    lw_sleep(b->pause);
    return 0;
}

static box begin(bool keep_all, int64_t last, int64_t fail_at)
{
    box b = {.last = last, .fail_at = fail_at, .seen = -1};
    assert_int_equal(lw_mailbox_new(keep_all, &b.m), 0);
    return b;
}

/* Takes everything; how many there were. */
static int64_t take_all(box *b, int *rc)
{
    int64_t n = 0, last = -1;
    int buffer;
    while ((*rc = lw_mailbox_take(b->m, 10, &buffer)) == 0) {
        int64_t item = check(b->data[buffer]);
        assert_true(item > last);
        last = item;
        n++;
    }
    return n;
}

static void all_are_kept(void **state)
{
    (void)state;
    box b = begin(true, 3000, -1);
    int rc;
    assert_int_equal(lw_mailbox_start_giver(b.m, give, &b), 0);
    assert_int_equal(take_all(&b, &rc), 3000);
    assert_int_equal(rc, LW_MAILBOX_END);
    assert_int_equal(lw_mailbox_counted(b.m).dropped, 0);
    lw_mailbox_free(&b.m);
}

static void the_newest_wins(void **state)
{
    (void)state;
    box b = begin(false, 3000, -1);
    int buffer, rc;
    assert_int_equal(lw_mailbox_start_giver(b.m, give, &b), 0);
    while (lw_mailbox_counted(b.m).put < 3000)
        lw_sleep(0.001);
    assert_int_equal(lw_mailbox_take(b.m, 10, &buffer), 0);
    assert_int_equal(check(b.data[buffer]), 2999);
    assert_int_equal(take_all(&b, &rc), 0);
    lw_mailbox_counts n = lw_mailbox_counted(b.m);
    assert_int_equal(n.dropped, 2999);
    assert_int_equal(n.taken, 1);
    lw_mailbox_free(&b.m);

    b = begin(false, 3000, -1); /* both at once */
    assert_int_equal(lw_mailbox_start_giver(b.m, give, &b), 0);
    int64_t taken = take_all(&b, &rc);
    n = lw_mailbox_counted(b.m);
    assert_int_equal(n.taken, taken);
    assert_int_equal(n.put, n.taken + n.dropped);
    lw_mailbox_free(&b.m);
}

static void the_givers_error_comes_last(void **state)
{
    (void)state;
    box b = begin(true, 100, 7);
    int rc;
    assert_int_equal(lw_mailbox_start_giver(b.m, give, &b), 0);
    assert_int_equal(take_all(&b, &rc), 7);
    assert_int_equal(rc, LW_EFORMAT);
    assert_string_equal(lw_errmsg(), "item 7 is bad");
    lw_mailbox_free(&b.m);
}

/* Puts items 0..n-1 as they are taken. */
static int put_all(box *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        fill(b->data[lw_mailbox_buffer(b->m)], i);
        LW_TRY(lw_mailbox_put(b->m, 10));
    }
    return 0;
}

static void a_taker_gets_all_or_the_newest(void **state)
{
    (void)state;
    box b = begin(true, 0, -1);
    assert_int_equal(lw_mailbox_start_taker(b.m, take, &b), 0);
    assert_int_equal(put_all(&b, 2000), 0);
    assert_int_equal(lw_mailbox_end(b.m), 0);
    assert_int_equal(b.n, 2000);
    lw_mailbox_free(&b.m);

    b = begin(false, 0, -1);
    b.pause = 0.002;
    assert_int_equal(lw_mailbox_start_taker(b.m, take, &b), 0);
    assert_int_equal(put_all(&b, 2000), 0);
    assert_int_equal(lw_mailbox_end(b.m), 0);
    assert_int_equal(b.seen, 1999); /* whatever was dropped, the last was not */
    assert_int_equal(lw_mailbox_counted(b.m).dropped, 2000 - b.n);
    lw_mailbox_free(&b.m);
}

static void the_takers_error_ends_giving(void **state)
{
    (void)state;
    box b = begin(true, 0, 5);
    assert_int_equal(lw_mailbox_start_taker(b.m, take, &b), 0);
    assert_int_equal(put_all(&b, 100), LW_EIO);
    assert_string_equal(lw_errmsg(), "no place for item 5");
    assert_int_equal(lw_mailbox_end(b.m), LW_EIO);
    assert_int_equal(b.n, 5);
    lw_mailbox_free(&b.m);
}

static void waits_end(void **state)
{
    (void)state;
    box b = begin(false, 10, -1);
    int buffer;
    assert_int_equal(lw_mailbox_take(b.m, 0.01, &buffer), LW_MAILBOX_NOT_YET); /* nobody gives */
    lw_mailbox_free(&b.m);
    b = begin(true, 0, -1); /* nobody takes */
    assert_int_equal(lw_mailbox_put(b.m, 0.01), 0);
    assert_int_equal(lw_mailbox_put(b.m, 0.01), LW_MAILBOX_NOT_YET);
    lw_mailbox_free(&b.m);
    b = begin(true, 1000, -1); /* a giver that waits for a taker is stopped */
    assert_int_equal(lw_mailbox_start_giver(b.m, give, &b), 0);
    lw_mailbox_free(&b.m);
    assert_null(b.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_kept),
        cmocka_unit_test(the_newest_wins),
        cmocka_unit_test(the_givers_error_comes_last),
        cmocka_unit_test(a_taker_gets_all_or_the_newest),
        cmocka_unit_test(the_takers_error_ends_giving),
        cmocka_unit_test(waits_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
