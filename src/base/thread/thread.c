/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/thread.h"

#include <signal.h>

int lw_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int why = pthread_create(thread, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return why;
}
