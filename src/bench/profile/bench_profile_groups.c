/* SPDX-License-Identifier: Apache-2.0 */
/* Steps put together by kind of op or by layer. */
#include <stdlib.h>
#include <string.h>

#include "bench/profile/bench_profile.h"

/* The first `depth` dotted parts of a scope. */
static const char *layer_of(const lw_profile *p, const char *scope, int depth)
{
    const char *end = scope;
    for (int i = 0; i < depth && *end; i++) {
        end += i > 0;
        end += strcspn(end, ".");
    }
    if (end == scope)
        return "(outside)";
    return *end ? lw_arena_printf(p->arena, "%.*s", (int)(end - scope), scope) : scope;
}

static lw_profile_group *find(lw_profile_group *g, int32_t n, const char *name)
{
    for (int32_t i = 0; i < n; i++)
        if (strcmp(g[i].name, name) == 0)
            return &g[i];
    return NULL;
}

static int longest_first(const void *a, const void *b)
{
    double x = ((const lw_profile_group *)a)->ms, y = ((const lw_profile_group *)b)->ms;
    return (x < y) - (x > y);
}

int lw_profile_groups(const lw_profile *p, int depth, lw_profile_group **out, int32_t *n)
{
    lw_profile_group *g = lw_calloc((size_t)p->n_step + 1, sizeof *g);
    int32_t k = 0;
    if (!g)
        return LW_ENOMEM;
    for (int32_t i = 0; i < p->n_step; i++) {
        const lw_profile_step *s = &p->step[i];
        const char *name = depth > 0 ? layer_of(p, s->scope, depth) : s->op;
        lw_profile_group *at = name ? find(g, k, name) : NULL;
        if (!name) {
            lw_free(&g);
            return LW_ENOMEM;
        }
        if (!at) {
            at = &g[k++];
            at->name = name;
        }
        at->steps++;
        at->ms += s->ms;
        at->flops += s->flops;
        at->bytes += s->bytes;
    }
    qsort(g, (size_t)k, sizeof *g, longest_first);
    *out = g;
    *n = k;
    return 0;
}
