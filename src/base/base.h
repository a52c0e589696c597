/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what every other folder stands on. Knows libc and POSIX, nothing of ours.
 *
 * Read in this order: error (codes and messages), log, arena and str (memory for set-up),
 * rng (Philox, counter based), bf16 (the storage type), sys (clock, files, memory maps, CPU flags,
 * modules), pool (the one thread pool), ring (bounded queue between two threads), mailbox (one
 * slot between them, in which the newest wins).
 *
 * Ownership: whoever calls *_new / *_open frees with *_free / *_close, which take T **, accept NULL
 * and half-built objects, and null the pointer. Arenas own everything allocated from them.
 */
#ifndef LW_BASE_H
#define LW_BASE_H

#include "base/bf16.h"
#include "base/build.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/kinds.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/observer.h"
#include "base/pixel.h"
#include "base/thread/mailbox.h"
#include "base/thread/pool.h"
#include "base/thread/ring.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/summary.h"
#include "base/sys/sys.h"
#include "base/sys/sys_module.h"
#include "base/sys/sys_output.h"

#endif
