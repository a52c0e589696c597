/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a goal by rules: joins of rows with facts, and the rules that gave each constant. */
#include "logic/search/logic_rule_plans.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 1 << 22 };

/* Rows of one width, each once. */
typedef struct rows {
    int32_t *cell;
    size_t cap;
    int32_t n, width;
    uint32_t *slot; /* number + 1 of a row; for rows of two columns or more */
    size_t n_slots;
} rows;

/* That a rule gave a constant. */
typedef struct given {
    int32_t constant, rank;
} given;

struct lw_rule_asker {
    const lw_rule_plans *p;
    rows row[2];
    uint32_t *mark, epoch; /* [n_constants + 1] rows of one column: there already */
    given *given;
    size_t n_given, cap_given;
    /* Of answer k: ranks of its rules, best first, at rank[first[k]]; its constant; the sum for noisy-or. */
    int32_t *place; /* [n_constants + 1]: number + 1 of the answer, 0: none */
    int32_t *constant, *first, *rank;
    size_t cap_constant, cap_first, cap_rank;
    int32_t n;
    int32_t *kept;
    size_t cap_kept;
    int32_t n_kept;
};

/* ---- rows -------------------------------------------------------------------------------------- */

static uint64_t row_hash(const int32_t *row, int32_t width)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int32_t i = 0; i < width; i++)
        h = lw_atom_hash((lw_atom){row[i], {(int32_t)h, (int32_t)(h >> 32)}});
    return h;
}

static int grow_slots(rows *r)
{
    const size_t n = r->n_slots ? 2 * r->n_slots : 1024;
    uint32_t *slot = lw_calloc(n, sizeof *slot);
    if (!slot)
        return LW_ENOMEM;
    for (int32_t i = 0; i < r->n; i++) {
        size_t k = (size_t)row_hash(r->cell + (size_t)i * (size_t)r->width, r->width) & (n - 1);
        while (slot[k] != 0)
            k = (k + 1) & (n - 1);
        slot[k] = (uint32_t)i + 1;
    }
    lw_free(&r->slot);
    r->slot = slot;
    r->n_slots = n;
    return 0;
}

/* *is_new: the row was not there; then its slot is taken, and the row must follow. */
static int look_for(rows *r, const int32_t *row, bool *is_new)
{
    const size_t bytes = (size_t)r->width * sizeof *row;
    if (2 * ((size_t)r->n + 1) > r->n_slots)
        LW_TRY(grow_slots(r));
    size_t k = (size_t)row_hash(row, r->width) & (r->n_slots - 1);
    for (; r->slot[k] != 0; k = (k + 1) & (r->n_slots - 1))
        if (memcmp(r->cell + (size_t)(r->slot[k] - 1) * (size_t)r->width, row, bytes) == 0) {
            *is_new = false;
            return 0;
        }
    r->slot[k] = (uint32_t)r->n + 1;
    *is_new = true;
    return 0;
}

static int add_row(lw_rule_asker *q, rows *r, const int32_t *row)
{
    bool is_new = r->n == 0;
    if (r->width == 1) {
        is_new = q->mark[row[0]] != q->epoch;
        q->mark[row[0]] = q->epoch;
    } else if (r->width > 1) {
        LW_TRY(look_for(r, row, &is_new));
    }
    if (!is_new)
        return 0;
    if (r->n == MOST_ROWS)
        return lw_fail(LW_ENOMEM, "more than %d matches", (int)MOST_ROWS);
    LW_TRY(lw_grow(&r->cell, &r->cap, ((size_t)r->n + 1) * (size_t)LW_MAX(r->width, 1),
                   sizeof *r->cell));
    memcpy(r->cell + (size_t)r->n * (size_t)r->width, row, (size_t)r->width * sizeof *row);
    r->n++;
    return 0;
}

static void begin_rows(lw_rule_asker *q, rows *r, int32_t width)
{
    if (width > 1 && r->n_slots)
        memset(r->slot, 0, r->n_slots * sizeof *r->slot);
    r->n = 0;
    r->width = width;
    if (++q->epoch == 0) {
        memset(q->mark, 0, ((size_t)q->p->kb->n_constants + 1) * sizeof *q->mark);
        q->epoch = 1;
    }
}

/* ---- joins ------------------------------------------------------------------------------------- */

/* A goal and the fact that it may not use. */
typedef struct goal {
    int32_t known;
    lw_atom query;
    bool without;
} goal;

static int32_t value(const lw_value *v, const goal *g, const int32_t *row)
{
    switch (v->of) {
    case LW_OF_CONSTANT:
        return v->constant;
    case LW_OF_GOAL:
        return g->known;
    case LW_OF_COLUMN:
        return row[v->column];
    default:
        return 0;
    }
}

static int meet(lw_rule_asker *q, const lw_join *j, const goal *g, const int32_t *row, lw_atom fact,
                rows *out)
{
    int32_t made[LW_PROOF_MOST_VARS];
    if ((j->same && fact.arg[0] != fact.arg[1]) || (g->without && lw_atom_eq(fact, g->query)))
        return 0;
    for (int32_t c = 0; c < j->width; c++)
        made[c] = j->out[c].of == LW_OF_FACT ? fact.arg[j->out[c].column] : row[j->out[c].column];
    return add_row(q, out, made);
}

/* One row with all facts that it fits. */
static int join_row(lw_rule_asker *q, const lw_join *j, const goal *g, const int32_t *row,
                    rows *out)
{
    const lw_facts *f = &q->p->kb->facts;
    const int32_t first = value(&j->arg[0], g, row), second = value(&j->arg[1], g, row);
    if (first && second) {
        const lw_atom a = {j->p, {first, second}};
        return lw_facts_find(f, a) >= 0 ? meet(q, j, g, row, a, out) : 0;
    }
    lw_fact_range r = first    ? lw_facts_with(f, j->p, 0, first)
                      : second ? lw_facts_with(f, j->p, 1, second)
                               : lw_facts_of(f, j->p);
    for (int32_t i = r.first; i < r.first + r.n; i++) {
        LW_TRY(meet(q, j, g, row, f->atom[!first && second ? f->by_second[i] : i], out));
        if (out->width == 0 && out->n > 0)
            break; /* one match is enough */
    }
    return 0;
}

static int join_all(lw_rule_asker *q, const lw_rule_plan *plan, const goal *g, rows **result)
{
    rows *in = &q->row[0], *out = &q->row[1];
    begin_rows(q, in, 0);
    in->n = 1; /* one row without columns */
    for (int32_t k = 0; k < plan->n && in->n > 0; k++) {
        const lw_join *j = &q->p->join[plan->first + k];
        begin_rows(q, out, j->width);
        for (int32_t i = 0; i < in->n; i++)
            LW_TRY(join_row(q, j, g, in->width ? in->cell + (size_t)i * (size_t)in->width : NULL,
                            out));
        rows *was = in;
        in = out;
        out = was;
    }
    *result = in;
    return 0;
}

/* ---- answers ----------------------------------------------------------------------------------- */

static int give(lw_rule_asker *q, int32_t constant, int32_t rank)
{
    LW_TRY(lw_grow(&q->given, &q->cap_given, q->n_given + 1, sizeof *q->given));
    q->given[q->n_given++] = (given){constant, rank};
    return 0;
}

static int apply(lw_rule_asker *q, const lw_rule_plan *plan, const goal *g)
{
    rows *found;
    if (plan->given.of == LW_OF_CONSTANT && plan->given.constant != g->known)
        return 0;
    int rc = join_all(q, plan, g, &found);
    if (rc == LW_ENOMEM)
        return lw_fail_in(rc, "rule of line %d: ", (int)q->p->kb->rules[plan->rule].line);
    LW_TRY(rc);
    if (plan->answer.of != LW_OF_COLUMN)
        return found->n > 0 ? give(q, value(&plan->answer, g, NULL), plan->rank) : 0;
    for (int32_t i = 0; i < found->n; i++)
        LW_TRY(give(q, found->cell[i], plan->rank));
    return 0;
}

/* What was given, by constant; ranks ascend in each, as rules came in their order. */
static int sort_out(lw_rule_asker *q)
{
    LW_TRY(lw_grow(&q->rank, &q->cap_rank, q->n_given + 1, sizeof *q->rank));
    for (size_t i = 0; i < q->n_given; i++) {
        int32_t *place = &q->place[q->given[i].constant];
        if (*place == 0) {
            LW_TRY(lw_grow(&q->constant, &q->cap_constant, (size_t)q->n + 1, sizeof *q->constant));
            LW_TRY(lw_grow(&q->first, &q->cap_first, (size_t)q->n + 3, sizeof *q->first));
            q->constant[q->n] = q->given[i].constant;
            *place = ++q->n;
            q->first[q->n + 1] = 0;
        }
        q->first[*place + 1]++;
    }
    if (q->n == 0)
        return 0;
    q->first[0] = q->first[1] = 0;
    for (int32_t k = 1; k <= q->n; k++) /* counted two places on, filled one place on */
        q->first[k + 1] += q->first[k];
    for (size_t i = 0; i < q->n_given; i++)
        q->rank[q->first[q->place[q->given[i].constant]]++] = q->given[i].rank;
    return 0;
}

int lw_rule_ask(lw_rule_asker *q, lw_atom query, int side, bool without)
{
    const lw_rule_plans *p = q->p;
    const goal g = {query.arg[!side], query, without};
    for (int32_t k = 0; k < q->n; k++)
        q->place[q->constant[k]] = 0;
    q->n = 0;
    q->n_given = 0;
    for (int32_t k = p->first[query.p]; k < p->first[query.p + 1]; k++)
        LW_TRY(apply(q, &p->plan[side][k], &g));
    return sort_out(q);
}

int32_t lw_rule_answers(const lw_rule_asker *q, const int32_t **constant)
{
    *constant = q->constant;
    return q->n;
}

/* ---- scores ------------------------------------------------------------------------------------ */

/* The ranks of one constant's rules. */
typedef struct ranks {
    const int32_t *rank;
    int32_t n;
} ranks;

static ranks ranks_of(const lw_rule_asker *q, int32_t x)
{
    const int32_t k = q->place[x];
    if (k == 0)
        return (ranks){NULL, 0};
    return (ranks){q->rank + q->first[k - 1], q->first[k] - q->first[k - 1]};
}

/* log of what is left of 1: lower is better. */
static double left_of(const lw_rule_plans *p, ranks r)
{
    double sum = 0;
    for (int32_t i = 0; i < r.n; i++)
        sum += log1p(-p->by_rank[r.rank[i]]);
    return sum;
}

static int compare(const lw_rule_plans *p, ranks x, ranks y)
{
    if (x.n == 0 || y.n == 0)
        return (x.n > 0) - (y.n > 0);
    if (p->score == LW_RULE_NOISY_OR) {
        const double a = left_of(p, x), b = left_of(p, y);
        return (a < b) - (a > b);
    }
    const int32_t most = p->score == LW_RULE_MAX ? 1 : LW_MIN(x.n, y.n);
    for (int32_t i = 0; i < most; i++)
        if (x.rank[i] != y.rank[i])
            return x.rank[i] < y.rank[i] ? 1 : -1;
    return p->score == LW_RULE_MAX ? 0 : (x.n > y.n) - (x.n < y.n);
}

int lw_rule_compare(const lw_rule_asker *q, int32_t x, int32_t y)
{
    return compare(q->p, ranks_of(q, x), ranks_of(q, y));
}

double lw_rule_value(const lw_rule_asker *q, int32_t x)
{
    const ranks r = ranks_of(q, x);
    if (r.n == 0)
        return 0;
    return q->p->score == LW_RULE_NOISY_OR ? -expm1(left_of(q->p, r)) : q->p->by_rank[r.rank[0]];
}

int lw_rule_keep(lw_rule_asker *q, int32_t x)
{
    const ranks r = ranks_of(q, x);
    LW_TRY(lw_grow(&q->kept, &q->cap_kept, (size_t)r.n + 1, sizeof *q->kept));
    if (r.n > 0)
        memcpy(q->kept, r.rank, (size_t)r.n * sizeof *r.rank);
    q->n_kept = r.n;
    return 0;
}

int lw_rule_compare_kept(const lw_rule_asker *q, int32_t x)
{
    return compare(q->p, ranks_of(q, x), (ranks){q->kept, q->n_kept});
}

/* ---- making one -------------------------------------------------------------------------------- */

int lw_rule_asker_new(const lw_rule_plans *p, lw_rule_asker **out)
{
    const size_t n = (size_t)p->kb->n_constants + 1;
    LW_CLEANUP(lw_rule_asker_free) lw_rule_asker *q = lw_calloc(1, sizeof *q);
    if (!q)
        return LW_ENOMEM;
    q->p = p;
    q->mark = lw_calloc(n, sizeof *q->mark);
    q->place = lw_calloc(n, sizeof *q->place);
    if (!q->mark || !q->place)
        return LW_ENOMEM;
    *out = lw_steal(&q);
    return 0;
}

void lw_rule_asker_free(lw_rule_asker **pp)
{
    lw_rule_asker *q = *pp;
    if (!q)
        return;
    for (int i = 0; i < 2; i++) {
        lw_free(&q->row[i].cell);
        lw_free(&q->row[i].slot);
    }
    lw_free(&q->mark);
    lw_free(&q->place);
    lw_free(&q->given);
    lw_free(&q->constant);
    lw_free(&q->first);
    lw_free(&q->rank);
    lw_free(&q->kept);
    lw_free(pp);
}
