/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of recipe_walks: one live proof, and what the workers hold. */
#ifndef LW_RECIPE_WALKS_PARTS_H
#define LW_RECIPE_WALKS_PARTS_H

#include "base/base.h"
#include "recipes/recipe_walks.h"

enum { LW_WALKS_MOST_WORKERS = 256 };

/* One place for a live proof. */
typedef struct lw_walker {
    lw_walk walk;
    lw_path *path;
    double log_prob;
    bool alive;
} lw_walker;

struct lw_walks {
    const lw_kb *kb;
    lw_device *dev;
    lw_walks_options o;
    lw_rng_key key;
    int workers;
    lw_env *env[LW_WALKS_MOST_WORKERS];
    lw_walks_counts worker_counts[LW_WALKS_MOST_WORKERS]; /* counted without locks, then summed */
    lw_path *paths;
    lw_walker *walker; /* [fixed_batch_size] */
    size_t bytes;
    lw_walks_counts counts;
};

#endif
