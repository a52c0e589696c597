/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves: what makes the bits of a step independent of how its samples are cut into parts.
 *
 * A leaf is a fixed number of samples (of drift: whole groups of a class, with the field of those groups). Plans are
 * compiled for one leaf, its gradient never sees another leaf, and everything drawn is numbered by sample or by leaf,
 * counted from the first step. The n leaves of a step are then summed in a binary tree by leaf number:
 *
 *    node (0, i)       = gradient of leaf i
 *    node (k + 1, j)   = node (k, 2j) + node (k, 2j + 1)      covers leaves j 2^(k+1) ... (j + 1) 2^(k+1) - 1
 *                      = node (k, 2j)                         where the right one would cover no leaf below n
 *    sum of the step   = node (ceil(log2 n), 0)
 *
 * The tree depends on n alone. A run of leaves [a, b), wherever it begins and ends, is a list of whole nodes, at most
 * two of each level, and lists that are added in order complete each other's nodes: parts of a step may be summed
 * anywhere. Losses go the same way.
 *
 * Cost: n - 1 sums and about n / 2 copies of a gradient. Memory, when the leaves of a step come in order: as many
 * gradients as the number of leaves done has ones in binary, at most floor(log2 n), beside the one that plans write.
 */
#ifndef LW_TRAIN_LEAVES_H
#define LW_TRAIN_LEAVES_H

#include "plan/plan.h"
#include "train/train_config.h"

typedef struct lw_leaves {
    int64_t size;  /* samples of a leaf */
    int64_t whole; /* samples of a micro-batch: the size when none is asked for */
    int64_t n;     /* leaves of a step */
} lw_leaves;

/* Of micro-batches of `whole` samples (which `option` says), of which `unit` belong together. LW_EUSAGE: --leaf-size
 * does not divide them. */
int lw_train_leaves(const lw_train_config *c, int64_t whole, int64_t unit, const char *option,
                    lw_leaves *out);

typedef struct lw_leaf_node {
    int level;
    int64_t index;
    double loss; /* sum */
    float *grad;
} lw_leaf_node;

/* Nodes that wait for the ones at their right. */
typedef struct lw_leaf_sum {
    lw_device *dev;
    int64_t floats; /* of a gradient */
    int64_t leaves; /* of a step */
    int n;
    lw_leaf_node node[2 * 32]; /* their gradients are the sum's own, in the device's memory; kept */
    lw_leaf_node total;        /* grad NULL: leaves are missing */
} lw_leaf_sum;

void lw_leaf_sum_begin(lw_leaf_sum *s);
/* Takes the next node, in the order of its leaves. Its gradient is copied where it must wait; that of a step's only
 * leaf is the total itself. LW_ENOMEM. */
int lw_leaf_sum_add(lw_leaf_sum *s, lw_leaf_node next);
void lw_leaf_sum_clear(lw_leaf_sum *s);
/* Gradients it keeps at most, beside that of the plan. */
int lw_leaf_sum_slabs(int64_t leaves);

#endif
