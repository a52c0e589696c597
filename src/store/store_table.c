/* SPDX-License-Identifier: Apache-2.0 */
/* Declaring names, fixing them, the slabs, versions. */
#include "store/store_private.h"

#include <math.h>
#include <string.h>

enum { ALIGN_FLOATS = 16 }; /* 64 bytes */

size_t lw_store_slab_bytes(const lw_store *s)
{
    return sizeof(float) * (size_t)LW_MAX(s->floats, ALIGN_FLOATS);
}

/* ---- what builders and execs call ------------------------------------------------------------ */

static int type_mismatch(const lw_store_entry *e, lw_type type)
{
    LW_CLEANUP(lw_str_clear) lw_str old = {0}, new = {0};
    lw_type_print(&old, e->type);
    lw_type_print(&new, type);
    return lw_fail(LW_ESHAPE, "parameter '%s' is %s in the store, the network wants %s", e->name,
                   lw_str_c(&old), lw_str_c(&new));
}

static int declare(void *self, const char *name, lw_type type, lw_init init, int32_t *index)
{
    lw_store *s = self;
    int32_t at = lw_store_find(s, name);
    if (at >= 0) {
        if (!lw_type_eq(s->entry[at].type, type))
            return type_mismatch(&s->entry[at], type);
        *index = at;
        return 0;
    }
    if (s->fixed)
        return lw_fail(LW_EFORMAT,
                       "the network wants a parameter '%s' that the store does not have", name);
    if (type.dtype != LW_F32 || lw_type_count(type) < 1)
        return lw_fail(LW_EUNSUPPORTED, "parameter '%s': only non-empty f32 parameters are kept",
                       name);
    LW_TRY(lw_grow(&s->entry, &s->cap, s->n + 1, sizeof *s->entry));
    lw_store_entry e = {.hash = lw_hash_name(name),
                        .type = type,
                        .init = init,
                        .offset = s->floats,
                        .count = lw_type_count(type)};
    e.name = lw_arena_strdup(s->arena, name);
    if (!e.name)
        return LW_ENOMEM;
    s->floats += LW_ROUND_UP(e.count, ALIGN_FLOATS);
    *index = (int32_t)s->n;
    s->entry[s->n++] = e;
    return 0;
}

static void *address(void *self, int32_t index, lw_slab slab)
{
    const lw_store *s = self;
    LW_ASSERT(s->fixed, "addresses of a store exist after lw_store_fix");
    return s->there[slab] ? s->there[slab] + lw_store_at(s, index)->offset : NULL;
}

static int place(void *self, const lw_memory *memory)
{
    lw_store *s = self;
    if (memory == s->memory)
        return 0;
    if (s->memory->write)
        return lw_fail(LW_EUSAGE, "the weights are on another device, whose memory this one cannot "
                                  "read: open the model again for each device");
    float *p[LW_SLABS] = {NULL};
    size_t all = 0;
    for (int i = 0; i < LW_SLABS; i++)
        all += s->slab[i] ? lw_store_slab_bytes(s) : 0;
    int rc = memory->fits ? memory->fits(memory->self, all) : 0;
    for (int i = 0; i < LW_SLABS && rc == 0; i++) {
        p[i] = s->slab[i] ? lw_memory_alloc(memory, lw_store_slab_bytes(s)) : NULL;
        rc = s->slab[i] && !p[i] ? LW_ENOMEM : 0;
    }
    for (int i = 0; i < LW_SLABS && rc < 0; i++)
        lw_memory_free(memory, &p[i], lw_store_slab_bytes(s));
    if (rc < 0)
        return lw_fail_in(rc, "parameter store on the device: ");
    for (int i = 0; i < LW_SLABS; i++) {
        if (p[i])
            memory->write(memory->self, p[i], s->slab[i], lw_store_slab_bytes(s));
        s->there[i] = p[i];
    }
    s->memory = memory;
    return 0;
}

static uint64_t version(void *self, lw_slab slab)
{
    return lw_store_version(self, slab);
}

/* ---- life ------------------------------------------------------------------------------------ */

int lw_store_new(bool frozen, lw_store **out)
{
    LW_CLEANUP(lw_store_free) lw_store *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    LW_TRY(lw_arena_new(&s->arena));
    s->frozen = frozen;
    s->params = (lw_params){.self = s,
                            .frozen = frozen,
                            .declare = declare,
                            .place = place,
                            .address = address,
                            .version = version};
    s->memory = &lw_host_memory;
    for (int i = 0; i < LW_SLABS; i++)
        s->version[i] = 1;
    *out = lw_steal(&s);
    return 0;
}

void lw_store_free(lw_store **pp)
{
    lw_store *s = *pp;
    if (!s)
        return;
    for (int i = 0; i < LW_SLABS; i++) {
        if (s->there[i] != s->slab[i])
            lw_memory_free(s->memory, &s->there[i], lw_store_slab_bytes(s));
        lw_bulk_free(&s->slab[i], lw_store_slab_bytes(s));
    }
    lw_free(&s->entry);
    lw_arena_free(&s->arena);
    lw_free(pp);
}

const lw_params *lw_store_params(const lw_store *s)
{
    return &s->params;
}

static bool has_slab(const lw_store *s, int slab)
{
    return slab == LW_SLAB_PARAM || !s->frozen;
}

int lw_store_fix(lw_store *s)
{
    if (s->fixed)
        return 0;
    if (s->source) {
        LW_CLEANUP(lw_store_match_clear) store_match m = {0};
        LW_TRY(lw_store_match(s, s->source, "", s->source_namings, &m));
    }
    s->source = NULL;
    for (int i = 0; i < LW_SLABS; i++) {
        if (!has_slab(s, i) || s->slab[i])
            continue;
        s->there[i] = s->slab[i] = lw_bulk_alloc(lw_store_slab_bytes(s));
        if (!s->slab[i])
            return lw_fail_in(LW_ENOMEM, "parameter store: ");
    }
    s->fixed = true;
    return 0;
}

/* ---- looking --------------------------------------------------------------------------------- */

bool lw_store_is_fixed(const lw_store *s)
{
    return s->fixed;
}

bool lw_store_is_frozen(const lw_store *s)
{
    return s->frozen;
}

int32_t lw_store_count(const lw_store *s)
{
    return (int32_t)s->n;
}

const lw_store_entry *lw_store_at(const lw_store *s, int32_t i)
{
    LW_ASSERT(i >= 0 && (size_t)i < s->n, "entry %d of %zu", i, s->n);
    return &s->entry[i];
}

int32_t lw_store_find(const lw_store *s, const char *name)
{
    uint64_t h = lw_hash_name(name);
    for (size_t i = 0; i < s->n; i++)
        if (s->entry[i].hash == h && strcmp(s->entry[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

int64_t lw_store_param_count(const lw_store *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->entry[i].count;
    return n;
}

size_t lw_store_bytes(const lw_store *s)
{
    return lw_store_slab_bytes(s) * (s->frozen ? 1u : (size_t)LW_SLABS);
}

float *lw_store_slab(const lw_store *s, lw_slab slab, int64_t *floats)
{
    if (floats)
        *floats = s->floats;
    return s->there[slab];
}

int64_t lw_store_slabs(const lw_store *s, float *slab[LW_SLABS])
{
    memcpy(slab, s->there, sizeof s->there);
    return s->floats;
}

float *lw_store_host(const lw_store *s, lw_slab slab)
{
    if (s->there[slab] != s->slab[slab] && !s->edited[slab])
        s->memory->read(s->memory->self, s->slab[slab], s->there[slab], lw_store_slab_bytes(s));
    return s->slab[slab];
}

const float *lw_store_data(const lw_store *s, int32_t i, lw_slab slab)
{
    return s->slab[slab] ? lw_store_host(s, slab) + lw_store_at(s, i)->offset : NULL;
}

float *lw_store_edit(lw_store *s, int32_t i, lw_slab slab)
{
    float *host = lw_store_host(s, slab);
    s->edited[slab] = true;
    return host ? host + lw_store_at(s, i)->offset : NULL;
}

void lw_store_touch(lw_store *s, lw_slab slab)
{
    if (s->there[slab] != s->slab[slab] && s->edited[slab])
        s->memory->write(s->memory->self, s->there[slab], s->slab[slab], lw_store_slab_bytes(s));
    s->edited[slab] = false;
    s->version[slab]++;
}

uint64_t lw_store_version(const lw_store *s, lw_slab slab)
{
    return s->version[slab];
}

const char *lw_store_first_bad(const lw_store *s, lw_slab slab)
{
    const float *data = lw_store_host(s, slab);
    for (size_t i = 0; data && i < s->n; i++) {
        const float *x = data + s->entry[i].offset;
        for (int64_t k = 0; k < s->entry[i].count; k++)
            if (!isfinite(x[k]))
                return s->entry[i].name;
    }
    return NULL;
}

/* Four lanes of multiply and rotate over 8-byte words: a gigabyte takes a tenth of a second. */
static uint64_t hash_floats(const float *x, int64_t n)
{
    uint64_t lane[4] = {1, 2, 3, 4};
    const uint64_t prime = 0x9e3779b185ebca87u;
    const char *bytes = (const char *)x;
    size_t words = (size_t)n / 2;
    for (size_t i = 0; i < words; i++) {
        uint64_t w;
        memcpy(&w, bytes + 8 * i, 8);
        uint64_t h = (lane[i % 4] ^ w) * prime;
        lane[i % 4] = h << 29 | h >> 35;
    }
    uint64_t tail[6] = {lane[0], lane[1], lane[2], lane[3], (uint64_t)n, 0};
    if (n % 2)
        memcpy(&tail[5], x + n - 1, sizeof *x);
    return lw_hash64(tail, sizeof tail);
}

uint64_t lw_store_hash(const lw_store *s, lw_slab slab)
{
    uint64_t h = 0;
    const float *data = lw_store_host(s, slab);
    for (size_t i = 0; i < s->n; i++) {
        const lw_store_entry *e = &s->entry[i];
        uint64_t part[4] = {h, e->hash, lw_hash64(&e->type, sizeof e->type), 0};
        if (data)
            part[3] = hash_floats(data + e->offset, e->count);
        h = lw_hash64(part, sizeof part);
    }
    return h;
}
