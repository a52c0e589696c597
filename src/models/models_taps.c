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
