/* SPDX-License-Identifier: Apache-2.0 */
/* The operating system: clock, CPU, files, memory maps, locks. */
#ifndef LW_BASE_SYS_H
#define LW_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/observer.h"
#include "base/str.h"

double lw_now(void);             /* monotonic seconds */
double lw_process_seconds(void); /* processor time of this process, all threads */
double lw_wall_time(void);       /* seconds since 1970 */
void lw_sleep(double seconds);
uint64_t lw_peak_rss(void);     /* bytes, this process */
uint64_t lw_memory_total(void); /* bytes this process may use (cgroup limit or RAM) */
/* Bytes of the cache of a level, 1 to 3, that a core reads data from, alone or with others; 0: unknown. What Linux tells:
 * the C library's third level is, on AMD's processors, that of all their chips together. */
size_t lw_cache_bytes(int level);

/* CPUs this process may run on: affinity mask and cgroup quota, at least 1. */
int lw_core_count(void);
/* Cores among them: of CPUs that share one (SMT) one is counted. */
int lw_whole_core_count(void);
/* On 64-bit ARM kernels of avx2 are made of NEON's words and have its name, with the bits they have on x86; those of avxvnni have
 * I8MM's dot product and the name i8mm; there are no others. */
typedef enum lw_isa {
    LW_ISA_REF,
    LW_ISA_AVX2,
    LW_ISA_AVXVNNI, /* f32 and bf16 results have the bits of avx2; int8 products are faster */
    LW_ISA_AVX512,
    LW_ISA_AVX512BF16, /* f32 results have the bits of avx512; bf16 and int8 products are faster */
    LW_ISA_AMX,        /* so they have here; bf16 and int8 products on tile registers */
    LW_ISA_COUNT
} lw_isa;
#if defined(__aarch64__)
#define LW_ISA_NAMES "ref|neon|i8mm"
#else
#define LW_ISA_NAMES "ref|avx2|avxvnni|avx512|avx512bf16|amx"
#endif
/* Best level this CPU and kernel support (avx2 needs FMA; avxvnni AVX-VNNI too; avx512 needs F, BW, DQ, VL; avx512bf16
 * BF16 and VNNI too, amx also tiles with BF16 and INT8 that the kernel lets us use: it is asked
 * for them here, for all threads of this process). */
lw_isa lw_isa_best(void);
/* Whether this CPU has a level: those up to the best, but avxvnni, which many with AVX-512 do not have. */
bool lw_isa_has(lw_isa isa);
/* The next one it has; LW_ISA_COUNT behind the best. */
lw_isa lw_isa_next(lw_isa isa);
/* The level of a name; before and behind: what messages have around it. An unknown name or an unsupported level is LW_EUSAGE / LW_EDEVICE. */
int lw_isa_named(const char *before, const char *name, const char *behind, lw_isa *out);
/* Best level, lowered by LW_ISA=, one of LW_ISA_NAMES, refused as lw_isa_named refuses. */
int lw_isa_chosen(lw_isa *out);
const char *lw_isa_name(lw_isa isa); /* of LW_ISA_NAMES */
bool lw_isa_is_avx2(lw_isa isa); /* whose f32 kernels are those of avx2 (NEON's), of eight lanes */
/* Whether one instruction adds four products of bytes to each lane; elsewhere they are widened to 16 bits first. */
bool lw_isa_multiplies_bytes(lw_isa isa);
/* Whether f32 results at two levels, by name, have the same bits. */
bool lw_isa_same_f32(const char *a, const char *b);
const char *lw_machine_name(void); /* model name as the kernel says it */

/* Closes a descriptor, if it is one, and makes it -1. For LW_CLEANUP. */
void lw_fd_close(int *fd);
/* Whole file into a heap block with a NUL after it (not counted). max 0: no limit, but
 * LW_UNSIZED_MAX for pipes and devices, which may have no end. Caller lw_free()s. */
#define LW_UNSIZED_MAX ((size_t)256 << 20)
int lw_file_read(const char *path, size_t max, char **out, size_t *len);
/* For logs in a directory that others may have written: a link is refused, not followed. */
int lw_file_append(const char *path, const void *bytes, size_t n);
int lw_file_cut(const char *path, size_t size); /* to `size` bytes, which it has; as append */
bool lw_path_exists(const char *path);
bool lw_path_is_dir(const char *path);
/* *found: whether there is anything at path. LW_EIO with the cause when that cannot be told. */
int lw_path_look(const char *path, bool *found);
int lw_file_size(const char *path, uint64_t *out);
/* Bytes that may still be written in the file system of `path`, which is there. */
int lw_disk_free(const char *path, uint64_t *out);
int lw_mkdirs(const char *path);      /* like mkdir -p */
int lw_remove_tree(const char *path); /* like rm -rf; missing is fine */
int lw_fsync_path(const char *path);
/* Sorted names in a directory (no . and ..), heap array of heap strings, freed by lw_list_free. */
int lw_list_dir(const char *path, char ***names, size_t *n);
void lw_list_free(char ***names, size_t n);
/* dir + "/" + name into s (replaced). */
const char *lw_path_join(lw_str *s, const char *dir, const char *name);
/* What is before the last slash into s (replaced): "." without one. */
void lw_path_parent(const char *path, lw_str *s);
/* How what is at `path` is reached from the directory `dir` ("../a/b"), both there, links resolved,
 * into s (replaced). LW_EIO. */
int lw_path_relative(const char *dir, const char *path, lw_str *s);

/* Read-only or writable shared memory map of a whole file. */
typedef struct lw_map {
    void *data;
    size_t size;
    bool writable;
} lw_map;
int lw_map_open(lw_map *out, const char *path); /* read-only */
/* `size` zero bytes, writable, on the file system of `path` but without a name. */
int lw_map_scratch(lw_map *out, const char *path, size_t size);
/* The same with a name, which nothing may have yet. */
int lw_map_make(lw_map *out, const char *path, size_t size);
int lw_map_sync(lw_map *m);
void lw_map_close(lw_map *m);

/* Advisory exclusive lock on path (created if missing), for caches several processes may build.
 * Waits for another process that has it, which `obs` is told, with what that one does ("decodes
 * synth:16"), and may end (LW_ESTOPPED). Otherwise LW_EIO. */
int lw_lock_take(const char *path, const char *does, const lw_observer *obs, int *fd);
int lw_lock_try(const char *path, int *fd); /* 1: another process has it */
void lw_lock_drop(int *fd);
/* Locks a directory that a command writes its results into, for as long as *fd stays open: two
 * processes in one would write over each other's files. LW_EUSAGE: another process has it. */
int lw_dir_lock(const char *path, int *fd);

#endif
