/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a step's leaves: a binary counter of tree nodes. */
#include "train/train_leaves.h"

#include "base/base.h"

int lw_train_leaves(const lw_train_config *c, int64_t whole, int64_t unit, const char *option,
                    lw_leaves *out)
{
    int64_t size = c->leaf_size > 0 ? c->leaf_size : whole;
    if (size % unit != 0)
        return lw_fail(LW_EUSAGE,
                       "--leaf-size %lld: no multiple of the %lld samples of a group (%s)",
                       (long long)size, (long long)unit, option);
    if (whole % size != 0)
        return lw_fail(LW_EUSAGE,
                       "--leaf-size %lld: does not divide the %lld samples of a micro-batch (%s)",
                       (long long)size, (long long)whole, option);
    *out = (lw_leaves){size, whole, whole / size * c->grad_accum_steps};
    return 0;
}

int lw_leaf_sum_slabs(int64_t leaves)
{
    int k = 0;
    while (leaves >> (k + 1) > 0)
        k++;
    return k;
}

void lw_leaf_sum_begin(lw_leaf_sum *s)
{
    s->n = 0;
    s->total.grad = NULL;
}

/* No leaf of a step stands right of the node. */
static bool at_the_end(const lw_leaf_sum *s, const lw_leaf_node *x)
{
    return (x->index + 1) << x->level >= s->leaves;
}

/* Does the last waiting node lack exactly this one? */
static bool completes(const lw_leaf_sum *s, const lw_leaf_node *x)
{
    const lw_leaf_node *left = s->n > 0 ? &s->node[s->n - 1] : NULL;
    return left && x->index % 2 == 1 && left->level == x->level && left->index == x->index - 1;
}

static int keep(lw_leaf_sum *s, const lw_leaf_node *x)
{
    lw_leaf_node *to = &s->node[s->n];
    float *own = to->grad;
    LW_ASSERT(s->n < (int)LW_COUNT(s->node), "leaf %lld out of order",
              (long long)(x->index << x->level));
    if (!own)
        own = lw_memory_alloc(s->dev->memory, (size_t)s->floats * sizeof *own);
    if (!own)
        return LW_ENOMEM;
    if (own != x->grad)
        s->dev->copy(s->dev->self, own, x->grad, s->floats);
    *to = *x;
    to->grad = own;
    s->n++;
    return 0;
}

int lw_leaf_sum_add(lw_leaf_sum *s, lw_leaf_node next)
{
    while (next.index > 0 || !at_the_end(s, &next)) {
        if (completes(s, &next)) {
            const lw_leaf_node *left = &s->node[--s->n];
            s->dev->add(s->dev->self, left->grad, next.grad, s->floats);
            next.grad = left->grad;
            next.loss = left->loss + next.loss;
        } else if (next.index % 2 == 1 || !at_the_end(s, &next)) {
            return keep(s, &next);
        }
        next.level++;
        next.index /= 2;
    }
    s->total = next;
    return 0;
}

void lw_leaf_sum_clear(lw_leaf_sum *s)
{
    for (size_t i = 0; i < LW_COUNT(s->node) && s->node[i].grad; i++)
        lw_memory_free(s->dev->memory, &s->node[i].grad,
                       (size_t)s->floats * sizeof *s->node[i].grad);
}
