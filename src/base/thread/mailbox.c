/* SPDX-License-Identifier: Apache-2.0 */
/* One slot between two threads. Everything in it is guarded by its lock but the buffers, whose
 * numbers say whose they are. */
#include "base/thread/mailbox.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread/thread.h"

struct lw_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, keep_all;
    lw_mailbox_fn *fn;
    void *arg;
    int givers, slot, takers; /* buffer of each */
    bool full, stop;
    int ended; /* 0: going on; LW_MAILBOX_END: no more items; LW_E*: the thread failed */
    lw_mailbox_counts n;
    char message[1024];
};

int lw_mailbox_new(bool keep_all, lw_mailbox **out)
{
    lw_mailbox *m = lw_calloc(1, sizeof *m);
    if (!m)
        return LW_ENOMEM;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, &clock);
    pthread_condattr_destroy(&clock);
    m->keep_all = keep_all;
    m->slot = 1;
    m->takers = 2;
    *out = m;
    return 0;
}

static int start(lw_mailbox *m, void *(*run)(void *), lw_mailbox_fn *fn, void *arg)
{
    m->fn = fn;
    m->arg = arg;
    int why = lw_thread_start(&m->thread, NULL, run, m);
    if (why != 0)
        return lw_fail(LW_ENOMEM, "cannot start a thread: %s", strerror(why));
    m->started = true;
    return 0;
}

/* Waits for a change, until `until` where that is given; false when it has come. */
static bool wait(lw_mailbox *m, const struct timespec *until)
{
    if (!until)
        return pthread_cond_wait(&m->changed, &m->lock) == 0;
    return pthread_cond_timedwait(&m->changed, &m->lock, until) != ETIMEDOUT;
}

static struct timespec in(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double whole = seconds + (double)t.tv_nsec * 1e-9;
    t.tv_sec += (time_t)whole;
    t.tv_nsec = (long)((whole - (double)(time_t)whole) * 1e9);
    return t;
}

static void swap(int *a, int *b)
{
    int t = *a;
    *a = *b;
    *b = t;
}

/* The giver's buffer into the slot. */
static void give(lw_mailbox *m)
{
    swap(&m->givers, &m->slot);
    m->n.put++;
    m->n.dropped += m->full;
    m->full = true;
    pthread_cond_broadcast(&m->changed);
}

static void take(lw_mailbox *m)
{
    swap(&m->takers, &m->slot);
    m->n.taken++;
    m->full = false;
    pthread_cond_broadcast(&m->changed);
}

static void end(lw_mailbox *m, int why)
{
    m->ended = why;
    if (why < 0)
        strncpy(m->message, lw_errmsg(), sizeof m->message - 1);
    pthread_cond_broadcast(&m->changed);
}

static void *run_giver(void *arg)
{
    lw_mailbox *m = arg;
    pthread_mutex_lock(&m->lock);
    while (!m->stop && m->ended == 0) {
        int mine = m->givers;
        pthread_mutex_unlock(&m->lock);
        int rc = m->fn(m->arg, mine);
        pthread_mutex_lock(&m->lock);
        while (rc == 0 && m->keep_all && m->full && !m->stop)
            wait(m, NULL);
        if (rc != 0)
            end(m, rc);
        else if (!m->stop)
            give(m);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static void *run_taker(void *arg)
{
    lw_mailbox *m = arg;
    pthread_mutex_lock(&m->lock);
    while (!m->stop && m->ended >= 0) {
        if (!m->full && m->ended != 0)
            break;
        if (!m->full) {
            wait(m, NULL);
            continue;
        }
        take(m);
        int mine = m->takers;
        pthread_mutex_unlock(&m->lock);
        int rc = m->fn(m->arg, mine);
        pthread_mutex_lock(&m->lock);
        if (rc < 0)
            end(m, rc);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

int lw_mailbox_start_giver(lw_mailbox *m, lw_mailbox_fn *fn, void *arg)
{
    return start(m, run_giver, fn, arg);
}

int lw_mailbox_start_taker(lw_mailbox *m, lw_mailbox_fn *fn, void *arg)
{
    return start(m, run_taker, fn, arg);
}

static void join(lw_mailbox *m)
{
    if (m->started)
        pthread_join(m->thread, NULL);
    m->started = false;
}

void lw_mailbox_free(lw_mailbox **pp)
{
    lw_mailbox *m = *pp;
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    join(m);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    lw_free(pp);
}

int lw_mailbox_take(lw_mailbox *m, double seconds, int *buffer)
{
    const struct timespec until = in(seconds);
    int rc = LW_MAILBOX_NOT_YET;
    pthread_mutex_lock(&m->lock);
    while (!m->full && m->ended == 0 && wait(m, &until))
        ;
    if (m->full) {
        take(m);
        *buffer = m->takers;
        rc = 0;
    } else if (m->ended != 0) {
        rc = m->ended < 0 ? lw_fail(m->ended, "%s", m->message) : m->ended;
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

int lw_mailbox_buffer(const lw_mailbox *m)
{
    return m->givers; /* changed by the caller alone */
}

int lw_mailbox_put(lw_mailbox *m, double seconds)
{
    const struct timespec until = in(seconds);
    int rc = 0;
    pthread_mutex_lock(&m->lock);
    while (m->keep_all && m->full && m->ended == 0 && wait(m, &until))
        ;
    if (m->ended < 0)
        rc = lw_fail(m->ended, "%s", m->message);
    else if (m->keep_all && m->full)
        rc = LW_MAILBOX_NOT_YET;
    else
        give(m);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

int lw_mailbox_end(lw_mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    if (m->ended == 0)
        end(m, LW_MAILBOX_END);
    pthread_mutex_unlock(&m->lock);
    join(m); /* nobody else writes from here on */
    return m->ended < 0 ? lw_fail(m->ended, "%s", m->message) : 0;
}

bool lw_mailbox_stopped(lw_mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    bool stop = m->stop;
    pthread_mutex_unlock(&m->lock);
    return stop;
}

lw_mailbox_counts lw_mailbox_counted(lw_mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    lw_mailbox_counts n = m->n;
    pthread_mutex_unlock(&m->lock);
    return n;
}
