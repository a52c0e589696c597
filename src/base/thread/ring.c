/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring between one producer thread and one consumer. Three counters, in items: filled by the
 * producer, given to the consumer, handed back. A slot may be written while filled - returned <
 * slots.
 */
#include "base/thread/ring.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread/thread.h"

struct lw_ring {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started;
    lw_ring_fill *fill;
    void *arg;
    int slots;
    int64_t filled, given, returned; /* items; guarded by lock, like everything below */
    bool stop;
    int ended; /* 0 running, 1 no more items, LW_E* failed: said by the producer once */
    char message[1024];
};

static void *produce(void *arg)
{
    lw_ring *r = arg;
    for (int64_t item = 0;; item++) {
        pthread_mutex_lock(&r->lock);
        while (!r->stop && item - r->returned >= r->slots)
            pthread_cond_wait(&r->changed, &r->lock);
        bool stop = r->stop;
        pthread_mutex_unlock(&r->lock);
        if (stop)
            return NULL;
        int rc = r->fill(r->arg, (int)(item % r->slots), item);
        pthread_mutex_lock(&r->lock);
        if (rc == 0) {
            r->filled++;
        } else {
            r->ended = rc;
            strncpy(r->message, rc < 0 ? lw_errmsg() : "", sizeof r->message - 1);
        }
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        if (rc != 0)
            return NULL;
    }
}

static int start_thread(lw_ring *r)
{
    int why = lw_thread_start(&r->thread, NULL, produce, r);
    if (why != 0)
        return lw_fail(LW_ENOMEM, "cannot start a loader thread: %s", strerror(why));
    r->started = true;
    return 0;
}

int lw_ring_new(int slots, lw_ring_fill *fill, void *arg, lw_ring **out)
{
    LW_ASSERT(slots >= 1, "a ring of %d slots", slots);
    lw_ring *r = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    r->slots = slots;
    r->fill = fill;
    r->arg = arg;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    int rc = start_thread(r);
    if (rc < 0) {
        lw_ring_free(&r);
        return rc;
    }
    *out = r;
    return 0;
}

void lw_ring_free(lw_ring **pp)
{
    lw_ring *r = *pp;
    if (!r)
        return;
    if (r->started) {
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
    }
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    lw_free(pp);
}

int lw_ring_next(lw_ring *r, int *slot)
{
    pthread_mutex_lock(&r->lock);
    if (r->returned < r->given) {
        r->returned = r->given;
        pthread_cond_broadcast(&r->changed);
    }
    while (r->filled == r->given && r->ended == 0)
        pthread_cond_wait(&r->changed, &r->lock);
    int rc = 0;
    if (r->filled > r->given) {
        *slot = (int)(r->given % r->slots);
        r->given++;
    } else {
        rc = r->ended; /* stays: every later call says the same */
        if (rc < 0)
            lw_fail(rc, "%s", r->message);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}
