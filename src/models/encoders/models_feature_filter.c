/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys of a set are kept, by what they are of. */
#include "models/models_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Does a word name the map: by its name, or the stage it belongs to by number? */
static bool names_map(const char *word, const char *map)
{
    if (strcmp(word, map) == 0)
        return true;
    if (!isdigit((unsigned char)word[0]))
        return false;
    char *end;
    long stage = strtol(word, &end, 10);
    const char *at = strncmp(map, "layer", 5) == 0 ? map + 5 : map[0] == 's' ? map + 1 : NULL;
    if (*end)
        return false;
    if (!at) /* the stem */
        return stage == 0 && strcmp(map, "conv1") == 0;
    long of = strtol(at, &end, 10);
    return of == stage && (!*end || *end == '_');
}

/* Is the map among the words of a list? used[i] of word i is set. */
static bool is_selected(const char *list, const char *map, bool *used, int most)
{
    bool found = false;
    size_t n;
    const char *at;
    for (int i = 0; i < most && (at = lw_str_word(&list, ',', &n)); i++) {
        char word[32] = "";
        if (n < sizeof word)
            memcpy(word, at, n);
        if (names_map(word, map))
            found = used[i] = true;
    }
    return found;
}

static bool is_kept(const lw_feature_filter *f, const lw_feature_key *k)
{
    switch ((lw_key_part)k->part) {
    case LW_PART_LOCATIONS:
        return !f->no_locations;
    case LW_PART_GLOBAL:
        return !f->no_global;
    case LW_PART_PATCH2:
        return !f->no_patch2;
    case LW_PART_PATCH4:
        return !f->no_patch4;
    case LW_PART_X2_MEAN:
        return !f->no_x2_mean;
    case LW_PART_PIXELS:
    case LW_PART_OTHER:
        break;
    }
    return true;
}

/* Every word must name a map: else the first that does not. */
static int check_used(const char *list, const bool *used, const lw_feature_set *s)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    const char *last = "";
    for (int32_t k = 0; k < s->n; k++) {
        if (s->key[k].map[0] && strcmp(s->key[k].map, last) != 0)
            lw_str_addf(&have, "%s%s", have.len ? ", " : "", s->key[k].map);
        last = s->key[k].map;
    }
    size_t n;
    const char *word;
    for (int i = 0; (word = lw_str_word(&list, ',', &n)); i++)
        if (!used[i])
            return lw_fail(LW_EUSAGE,
                           "--feature-selected-stages: no key of '%.*s' here; the keys are of %s",
                           (int)n, word, have.len ? lw_str_c(&have) : "no map");
    return 0;
}

int lw_features_filter(lw_feature_set *s, const lw_feature_filter *f)
{
    bool used[64] = {false}, keep[LW_MAX_FEATURE_KEYS];
    int32_t n = 0;
    int words = 1;
    for (const char *at = f->stages; at && *at; at++)
        words += *at == ',';
    if (words > (int)LW_COUNT(used))
        return lw_fail(LW_EUSAGE, "--feature-selected-stages: at most %d names",
                       (int)LW_COUNT(used));
    for (int32_t k = 0; k < s->n; k++) {
        bool mapped = f->stages && s->key[k].map[0];
        keep[k] = (!mapped || is_selected(f->stages, s->key[k].map, used, words)) &&
                  is_kept(f, &s->key[k]);
    }
    if (f->stages)
        LW_TRY(check_used(f->stages, used, s));
    for (int32_t k = 0; k < s->n; k++)
        if (keep[k])
            s->key[n++] = s->key[k];
    s->n = n;
    return n ? 0 : lw_fail(LW_EUSAGE, "no feature keys are left");
}
