/* SPDX-License-Identifier: Apache-2.0 */
/* How threads are started. */
#ifndef LW_THREAD_H
#define LW_THREAD_H

#include <pthread.h>

/* pthread_create with all signals blocked in the new thread: they are for the main one. attr may be
 * NULL. 0 or an errno. */
int lw_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

#endif
