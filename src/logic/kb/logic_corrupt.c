/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of corruptions, and the table of positives they pass over. */
#include "logic/kb/logic_corrupt.h"

#include <string.h>

struct lw_corruptor {
    const lw_kb *kb;
    lw_corrupt_options o;
    bool domains;
    lw_rng_key key;
    lw_facts others; /* positives that are no facts; none: n is 0 */
    size_t bytes;    /* of these */
};

/* Where an argument's replacements come from. */
typedef struct pool {
    const int32_t *member; /* ascending; NULL: constants 1, 2, .. */
    int64_t original;      /* place of the original, -1: not there */
    int64_t n;             /* without the original */
} pool;

/* A fact, or in one of the sets. */
static bool is_known(const lw_corruptor *c, lw_atom a)
{
    return lw_facts_find(&c->kb->facts, a) >= 0 ||
           (c->others.n > 0 && lw_facts_find(&c->others, a) >= 0);
}

static int remember(lw_corruptor *c, const lw_queries *const *sets, int32_t n_sets)
{
    enum { INDEXED = 120 }; /* bytes of an atom in lw_facts, at most */
    size_t most = 0, n = 0;
    for (int32_t s = 0; s < n_sets; s++)
        most += (size_t)sets[s]->n;
    if (c->o.memory > 0 && most * INDEXED > c->o.memory)
        return lw_fail(LW_EUSAGE, "a table of %zu positives to filter by takes %zu MiB", most,
                       (most * INDEXED >> 20) + 1);
    LW_CLEANUP(lw_free) lw_atom *atom = lw_calloc(most + 1, sizeof *atom);
    if (!atom)
        return LW_ENOMEM;
    for (int32_t s = 0; s < n_sets; s++)
        for (int32_t i = 0; i < sets[s]->n; i++)
            if (lw_facts_find(&c->kb->facts, sets[s]->atom[i]) < 0)
                atom[n++] = sets[s]->atom[i];
    if (n == 0)
        return 0;
    LW_TRY(lw_facts_index(&c->others, lw_steal(&atom), (int32_t)n, c->kb->n_predicates));
    c->bytes = (size_t)lw_facts_bytes(&c->others, c->kb->n_predicates);
    return 0;
}

int lw_corruptor_new(const lw_kb *kb, const lw_corrupt_options *o,
                     const lw_queries *const *positives, int32_t n_sets, lw_corruptor **out)
{
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *c = lw_calloc(1, sizeof *c);
    if (!c)
        return LW_ENOMEM;
    c->kb = kb;
    c->o = *o;
    c->domains = o->domains != LW_DOMAINS_NO && kb->domains.names.n > 0;
    c->key = lw_rng_key_of(o->seed, lw_hash_name("corruptions"));
    if (o->n < 0)
        return lw_fail(LW_EUSAGE, "n-corruptions %lld: 0 (all) or more", (long long)o->n);
    if (o->domains == LW_DOMAINS_YES && !c->domains)
        return lw_fail(LW_EUSAGE, "domains: the dataset has none (domain2constants.txt)");
    if (o->filtered)
        LW_TRY(remember(c, positives, n_sets));
    *out = lw_steal(&c);
    return 0;
}

void lw_corruptor_free(lw_corruptor **pp)
{
    if (*pp)
        lw_facts_clear(&(*pp)->others);
    lw_free(pp);
}

size_t lw_corruptor_bytes(const lw_corruptor *c)
{
    return sizeof *c + c->bytes;
}

static int64_t place_of(const int32_t *member, int64_t n, int32_t constant)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t mid = (low + high) / 2;
        if (member[mid] < constant)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && member[low] == constant ? low : -1;
}

static pool pool_of(const lw_corruptor *c, lw_atom a, int side)
{
    const lw_domains *d = &c->kb->domains;
    int32_t domain = 0, was = a.arg[side];
    if (c->domains) {
        domain = d->of_arg[side][a.p];
        if (domain == 0 || d->first[domain] == d->first[domain + 1])
            domain = d->of[was];
    }
    if (domain == 0)
        return (pool){NULL, was - 1, c->kb->n_constants - 1};
    const int32_t *member = d->member + d->first[domain];
    int64_t n = d->first[domain + 1] - d->first[domain], at = place_of(member, n, was);
    return (pool){member, at, n - (at >= 0)};
}

int64_t lw_corruptor_pool(const lw_corruptor *c, lw_atom a, int side)
{
    return pool_of(c, a, side).n;
}

static bool in_pool(const pool *p, lw_atom a, int side, int32_t constant)
{
    return constant != a.arg[side] &&
           (!p->member || place_of(p->member, p->n + (p->original >= 0), constant) >= 0);
}

/* Positives of one set that would be in the pool. */
static int64_t known_of(const lw_facts *f, const pool *p, lw_atom a, int side)
{
    const lw_fact_range r = lw_facts_with(f, a.p, !side, a.arg[!side]);
    int64_t n = 0;
    for (int32_t i = r.first; i < r.first + r.n; i++)
        n += in_pool(p, a, side, f->atom[side ? i : f->by_second[i]].arg[side]);
    return n;
}

int64_t lw_corruptor_count(const lw_corruptor *c, lw_atom a, int side)
{
    const pool p = pool_of(c, a, side);
    if (!c->o.filtered)
        return p.n;
    return p.n - known_of(&c->kb->facts, &p, a, side) -
           (c->others.n > 0 ? known_of(&c->others, &p, a, side) : 0);
}

bool lw_corruptor_may(const lw_corruptor *c, lw_atom a, int side, int32_t constant)
{
    const pool p = pool_of(c, a, side);
    if (!in_pool(&p, a, side, constant))
        return false;
    a.arg[side] = constant;
    return !c->o.filtered || !is_known(c, a);
}

/* Replacement i of n: the original's place is stepped over. */
static int32_t member_at(const int32_t *member, int64_t original, int64_t i)
{
    i += original >= 0 && i >= original;
    return member ? member[i] : (int32_t)i + 1;
}

/* How many heads or tails the query's list should have. */
static int64_t wanted(const lw_corruptor *c, lw_corrupt_mode mode, int side, int64_t pool_n)
{
    int64_t n = c->o.n;
    if ((side == 0 && mode == LW_CORRUPT_TAIL) || (side == 1 && mode == LW_CORRUPT_HEAD))
        return 0;
    if (n == 0)
        return pool_n;
    return mode == LW_CORRUPT_BOTH ? (n + (side == 0)) / 2 : n;
}

static void begin_side(const lw_corruptor *c, lw_corruptions *s)
{
    const pool p = pool_of(c, s->query, s->side);
    s->member = p.member;
    s->original = p.original;
    s->pool = p.n;
    s->at = s->of_side = 0;
    s->wanted = wanted(c, s->mode, s->side, p.n);
}

void lw_corruptions_begin(const lw_corruptor *c, lw_atom query, lw_corrupt_mode mode,
                          lw_corruptions *out)
{
    *out = (lw_corruptions){.query = query, .mode = mode};
    begin_side(c, out);
}

/* The permutation of a query's side. */
static int64_t drawn(const lw_corruptor *c, const lw_corruptions *s)
{
    uint64_t h = lw_atom_hash(s->query);
    const lw_rng_key key = {{c->key.k[0] ^ (uint32_t)h, c->key.k[1] ^ (uint32_t)(h >> 32)}};
    return (int64_t)lw_rng_permute(key, (uint32_t)s->side, (uint64_t)s->pool, (uint64_t)s->at);
}

static bool next_of_side(const lw_corruptor *c, lw_corruptions *s, lw_atom *out)
{
    lw_atom a = s->query;
    while (s->of_side < s->wanted && s->at < s->pool) {
        int64_t i = c->o.n > 0 ? drawn(c, s) : s->at;
        s->at++;
        a.arg[s->side] = member_at(s->member, s->original, i);
        if (c->o.filtered && is_known(c, a)) {
            s->known++;
            continue;
        }
        s->of_side++;
        *out = a;
        return true;
    }
    return false;
}

bool lw_corruptions_next(const lw_corruptor *c, lw_corruptions *s, lw_atom *out)
{
    while (s->side < 2) {
        if (next_of_side(c, s, out)) {
            s->given++;
            return true;
        }
        if (c->o.n > 0)
            s->missing += s->wanted - s->of_side;
        if (++s->side < 2)
            begin_side(c, s);
    }
    return false;
}

bool lw_corrupt_one(const lw_corruptor *c, lw_atom positive, int side, lw_rng_key key,
                    uint32_t step, uint64_t row, lw_atom *out)
{
    enum { BLOCKS = 4 };
    const pool p = pool_of(c, positive, side);
    int64_t i = 0;
    *out = positive;
    if (p.n <= 0)
        return false;
    for (uint32_t block = 0; block < BLOCKS; block++) {
        const uint32_t counter[4] = {block, step, (uint32_t)row, (uint32_t)(row >> 32)};
        uint32_t word[4];
        lw_philox4x32(counter, key.k, word);
        for (int w = 0; w < 4; w++) {
            i = (int64_t)((uint64_t)word[w] * (uint64_t)p.n >> 32);
            out->arg[side] = member_at(p.member, p.original, i);
            if (!c->o.filtered || !is_known(c, *out))
                return true;
        }
    }
    for (int64_t k = 1; k <= p.n; k++) { /* nearly all are known: the next that is not */
        out->arg[side] = member_at(p.member, p.original, (i + k) % p.n);
        if (!is_known(c, *out))
            return true;
    }
    *out = positive;
    return false;
}

const char *lw_corrupt_mode_name(lw_corrupt_mode m)
{
    static const char *const name[] = {"head", "tail", "both"};
    return name[m];
}
