/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a network offers by name. */
#include "models/models_taps.h"

#include <stdio.h>
#include <string.h>

void lw_tap_add(lw_taps *t, const char *name, lw_val v)
{
    if (!lw_val_ok(v))
        return;
    LW_ASSERT(t->n < LW_MAX_TAPS && strlen(name) < sizeof t->tap[0].name, "tap %d '%s'", t->n,
              name);
    snprintf(t->tap[t->n].name, sizeof t->tap[t->n].name, "%s", name);
    t->tap[t->n++].val = v;
}

void lw_tap_add_maps(lw_taps *t, const lw_val *map, int32_t n)
{
    char name[16];
    LW_ASSERT(n <= LW_MAX_MAPS, "%d maps", n);
    for (int32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "s%d", i);
        lw_tap_add(t, name, map[i]);
    }
}

lw_val lw_tap_find(const lw_taps *t, const char *name)
{
    for (int32_t i = 0; i < t->n; i++)
        if (strcmp(t->tap[i].name, name) == 0)
            return t->tap[i].val;
    return LW_NOVAL;
}

void lw_tap_names(const lw_taps *t, lw_str *out)
{
    for (int32_t i = 0; i < t->n; i++)
        lw_str_addf(out, "%s%s", i ? ", " : "", t->tap[i].name);
    if (t->n == 0)
        lw_str_add(out, "none");
}

int lw_tap_choose(const lw_taps *t, const char *name, const char *where, lw_val *out)
{
    const lw_val v = lw_tap_find(t, name);
    if (!lw_val_ok(v)) {
        LW_CLEANUP(lw_str_clear) lw_str have = {0};
        lw_tap_names(t, &have);
        return have.failed ? LW_ENOMEM
                           : lw_fail(LW_EUSAGE, "%s has no output '%s': there are %s", where, name,
                                     lw_str_c(&have));
    }
    *out = v;
    return 0;
}

/* Whether the list has the tap's name. NULL: the first of all; "*": each. */
static bool is_wanted(const lw_taps *t, int32_t i, const char *want)
{
    if (!want || lw_str_eq(want, "*"))
        return want || i == 0;
    return lw_str_index(want, ',', t->tap[i].name, strlen(t->tap[i].name)) >= 0;
}

static int check_wanted(const lw_taps *t, const char *want, const char *where)
{
    LW_CLEANUP(lw_str_clear) lw_str word = {0};
    for (const char *at = want, *end; at; at = *end ? end + 1 : NULL) {
        lw_val v;
        end = at + strcspn(at, ",");
        word.len = 0;
        lw_str_add_n(&word, at, (size_t)(end - at));
        if (word.failed)
            return LW_ENOMEM;
        LW_TRY(lw_tap_choose(t, lw_str_c(&word), where, &v));
    }
    return 0;
}

int lw_taps_offer(const lw_taps *t, lw_graph *g, const char *want, const char *where)
{
    if (want && !lw_str_eq(want, "*"))
        LW_TRY(check_wanted(t, want, where));
    if (t->n == 0)
        return lw_fail(LW_EUSAGE, "%s has no outputs", where);
    for (int32_t i = 0; i < t->n; i++)
        if (is_wanted(t, i, want))
            lw_graph_output_add(g, t->tap[i].name, t->tap[i].val, LW_NOVAL);
    return 0;
}
