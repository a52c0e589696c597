/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for set-up: checked heap calls, and an arena that frees everything at once. */
#ifndef LW_BASE_MEMORY_H
#define LW_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed heap block; NULL with LW_ENOMEM's message set (names the size). n * size is
 * overflow-checked. */
void *lw_calloc(size_t n, size_t size);
/* Grows *pp (elements of `size` bytes) so that it holds at least `need`; doubles; keeps
 * *cap true. */
int lw_grow(void *pp, size_t *cap, size_t need, size_t size);
/* The same for bytes about to be read into: never more than `most`, nothing cleared, so that what
 * is not read takes no memory. */
int lw_grow_for_reading(char **buf, size_t *cap, size_t need, size_t most);
void lw_free(void *pp); /* void **: frees and nulls; accepts NULL inside */
char *lw_strdup(const char *s);

/* 64-byte aligned zeroed block for bulk data, huge pages advised when large. */
void *lw_bulk_alloc(size_t bytes);
void lw_bulk_free(void *pp, size_t bytes); /* void ** */

/* Where bulk blocks live: the host's memory, or a device's that the host cannot address. */
typedef struct lw_memory {
    void *self;
    void *(*alloc)(void *self, size_t bytes); /* as lw_bulk_alloc */
    void (*free)(void *self, void *p, size_t bytes);
    /* Is there room for so many bytes in all? LW_ENOMEM says how many are free. NULL: nobody knows before. */
    int (*fits)(void *self, size_t bytes);
    /* Copies between it (p) and the host (data). NULL: it is the host's, and nothing is copied. */
    void (*read)(void *self, void *data, const void *p, size_t bytes);
    void (*write)(void *self, void *p, const void *data, size_t bytes);
    /*
     * Memory of the host that such copies are fastest from and to; NULL: there is none such, or none left. send: a write from it
     * that goes on by itself behind what was begun before; data stay as they are until settle, which waits for all that was
     * sent, or a read is through.
     */
    void *(*host_alloc)(void *self, size_t bytes);
    void (*host_free)(void *self, void *p, size_t bytes);
    void (*send)(void *self, void *p, const void *data, size_t bytes);
    void (*settle)(void *self);
} lw_memory;
extern const lw_memory lw_host_memory;
void *lw_memory_alloc(const lw_memory *m, size_t bytes);
void lw_memory_free(const lw_memory *m, void *pp,
                    size_t bytes); /* void **; m may be NULL with it */

/* Tells that an allocation failed which was not made through this header: a library's. */
void lw_alloc_failed(size_t bytes);
/* Bytes of the last allocation of this process that failed, 0 for none. For programs that end with
 * their first error: what fails after it failed for it (a path cut short is not found). */
size_t lw_alloc_failed_bytes(void);
/* Number of heap allocations made through this header since start: tests assert it stands still. */
uint64_t lw_alloc_count(void);

/* True and *out = a * b, or false on overflow of size_t / int64_t. */
int lw_mul_size(size_t a, size_t b, size_t *out);

typedef struct lw_arena lw_arena;
int lw_arena_new(lw_arena **out);
void lw_arena_free(lw_arena **pp);
/* Zeroed, 16-byte aligned, lives as long as the arena. NULL (message set) when out of memory. */
void *lw_arena_alloc(lw_arena *a, size_t bytes);
char *lw_arena_strdup(lw_arena *a, const char *s);
char *lw_arena_printf(lw_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t lw_arena_bytes(const lw_arena *a);

#define LW_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LW_MIN(a, b) ((a) < (b) ? (a) : (b))
#define LW_MAX(a, b) ((a) > (b) ? (a) : (b))
#define LW_CEIL_DIV(a, b) (((a) + (b)-1) / (b))
#define LW_ROUND_UP(a, b) (LW_CEIL_DIV(a, b) * (b))

#endif
