/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing a list of feature keys and named sets: every key there is, from the shapes of a built
 * graph, and which of them were asked for. */
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

enum { PIXELS = 1, COL = 2, MAPS = 4, ALL = 8 };

static const struct {
    const char *word;
    int set;
} sets[] = {{"col", COL}, {"maps", MAPS}, {"all", ALL}, {"pixels", PIXELS}};

typedef struct key_row {
    const char *word; /* without the map: "pix.mean", ".loc" */
    lw_key_kind kind;
    int stat;
    int sets;
} key_row;

static const key_row picture_keys[] = {
    {"pix", LW_KEY_WHOLE, 0, PIXELS | COL | MAPS | ALL},
    {"pix.p4", LW_KEY_P4, 0, COL | ALL},
    {"pix.mean", LW_KEY_STAT, LW_STAT_MEAN, COL | ALL},
    {"pix.std", LW_KEY_STAT, LW_STAT_STD, COL | ALL},
    {"pix.m4", LW_KEY_STAT, LW_STAT_MEAN4, COL | ALL},
    {"norm_x", LW_KEY_NORM_X, 0, MAPS | ALL},
    {"global", LW_KEY_WHOLE, 0, MAPS | ALL}, /* beside maps with names of their own, where `maps`
                                                and `all` have it in the place of pix */
};
static const key_row map_keys[] = {
    {".loc", LW_KEY_WHOLE, 0, COL | MAPS | ALL},
    {".mean", LW_KEY_STAT, LW_STAT_MEAN, COL | MAPS | ALL},
    {".std", LW_KEY_STAT, LW_STAT_STD, COL | MAPS | ALL},
    {".mean2", LW_KEY_STAT, LW_STAT_MEAN2, MAPS | ALL},
    {".std2", LW_KEY_STAT, LW_STAT_STD2, MAPS | ALL},
    {".mean4", LW_KEY_STAT, LW_STAT_MEAN4, MAPS | ALL},
    {".std4", LW_KEY_STAT, LW_STAT_STD4, MAPS | ALL},
};
static const char *const published_words[] = {"",       "_mean",   "_std",  "_mean_2",
                                              "_std_2", "_mean_4", "_std_4"};
static const key_row row_key = {"", LW_KEY_WHOLE, 0, ALL}; /* a vector, or rows */

/* ---- the keys there are ---------------------------------------------------------------------- */

_Static_assert(LW_COUNT(picture_keys) == 7 && LW_COUNT(map_keys) == 7, "LW_MAX_FEATURE_KEYS");

typedef struct offer {
    lw_feature_key key; /* slots 0: no room for its patches */
    lw_type of;         /* what it is made from */
    int sets;
} offer;

typedef struct offers {
    const lw_network *e;
    int32_t n;
    offer at[LW_MAX_FEATURE_KEYS];
} offers;

/* Patches of side p in t. */
static int32_t patches(lw_type t, int32_t p)
{
    return (t.dim[1] / p) * (t.dim[2] / p);
}

static int32_t slots_of(const key_row *r, lw_type t)
{
    if (r->kind == LW_KEY_P4)
        return t.dim[1] % 4 || t.dim[2] % 4 ? 0 : patches(t, 4);
    if (r->kind == LW_KEY_STAT && (r->stat == LW_STAT_MEAN2 || r->stat == LW_STAT_STD2))
        return patches(t, 2);
    if (r->kind == LW_KEY_STAT && (r->stat == LW_STAT_MEAN4 || r->stat == LW_STAT_STD4))
        return patches(t, 4);
    return 1;
}

static lw_key_part part_of(const key_row *r, int32_t tap)
{
    bool locations = r == &map_keys[0];
    if (tap < 0)
        return r->kind == LW_KEY_WHOLE    ? LW_PART_PIXELS
               : r->kind == LW_KEY_NORM_X ? LW_PART_X2_MEAN
                                          : LW_PART_OTHER;
    if (r->kind != LW_KEY_STAT)
        return locations ? LW_PART_LOCATIONS : LW_PART_OTHER;
    switch (r->stat) {
    case LW_STAT_MEAN2:
    case LW_STAT_STD2:
        return LW_PART_PATCH2;
    case LW_STAT_MEAN4:
    case LW_STAT_STD4:
        return LW_PART_PATCH4;
    default:
        return LW_PART_GLOBAL;
    }
}

static void add_offer(offers *o, const key_row *r, const char *map, const char *word, int32_t tap,
                      lw_type t)
{
    offer *to = &o->at[o->n++];
    lw_feature_key *k = &to->key;
    *to = (offer){.of = t, .sets = r->sets};
    *k = (lw_feature_key){.kind = (uint8_t)r->kind, .stat = (uint8_t)r->stat, .tap = (int16_t)tap};
    snprintf(k->name, sizeof k->name, "%s%s", map, word);
    k->part = (uint8_t)part_of(r, tap);
    k->slots = slots_of(r, t);
    k->c = lw_type_last(t);
    if (r->kind == LW_KEY_P4)
        k->c *= 16;
    if (r->kind == LW_KEY_WHOLE && tap < 0) /* all pixels are one vector */
        k->c *= patches(t, 1);
    else if (r->kind == LW_KEY_WHOLE)
        k->slots = (int32_t)(lw_type_count(t) / t.dim[0] / k->c);
}

/* s0, s1, ...; networks whose maps have other names take their keys' names, too, from the published
 * drifting encoder. */
static bool is_numbered(const char *tap)
{
    return tap[0] == 's' && tap[1] >= '0' && tap[1] <= '9';
}

/* The sets leave the stem to `all` (the published ones do not), and `col` the locations of the first
 * stage. */
static void add_map(offers *o, const lw_tap *tap, int32_t index, lw_type t, int32_t stage)
{
    for (size_t i = 0; i < LW_COUNT(map_keys); i++) {
        bool numbered = is_numbered(tap->name);
        add_offer(o, &map_keys[i], tap->name, numbered ? map_keys[i].word : published_words[i],
                  index, t);
        int *s = &o->at[o->n - 1].sets;
        snprintf(o->at[o->n - 1].key.map, sizeof o->at[0].key.map, "%s", tap->name);
        if (stage == 0)
            *s &= numbered ? ALL : MAPS | ALL;
        if (stage == 1 && map_keys[i].kind == LW_KEY_WHOLE)
            *s &= ~COL;
    }
}

/* Of the picture x, where the network does not offer one of that name itself. */
static void add_picture(offers *o, const lw_graph *g, lw_val x, const lw_taps *taps, bool named)
{
    for (size_t i = 0; i < LW_COUNT(picture_keys); i++) {
        const char *word = picture_keys[i].word;
        bool global = strcmp(word, "global") == 0;
        if (lw_val_ok(lw_tap_find(taps, word)) || (global && !named))
            continue;
        add_offer(o, &picture_keys[i], "", word, -1, lw_val_type(g, x));
        if (named && strcmp(word, "pix") == 0)
            o->at[o->n - 1].sets &= PIXELS | COL;
    }
}

/* Keys of the picture x and of what the encoder makes of it. */
static void add_all(offers *o, const lw_graph *g, lw_val x, const lw_taps *taps)
{
    int32_t stage = 0;
    bool named = false;
    for (int32_t i = 0; i < taps->n; i++)
        named |= lw_val_type(g, taps->tap[i].val).rank == 4 && !is_numbered(taps->tap[i].name);
    add_picture(o, g, x, taps, named);
    for (int32_t i = 0; i < taps->n; i++) {
        const char *name = taps->tap[i].name;
        lw_type t = lw_val_type(g, taps->tap[i].val);
        if (t.rank == 4)
            add_map(o, &taps->tap[i], i, t, stage++);
        else if (strcmp(name, "logits") != 0) /* a verdict, no feature */
            add_offer(o, &row_key, name, "", i, t);
        if (strcmp(name, "norm_x") == 0) {
            o->at[o->n - 1].sets |= MAPS;
            o->at[o->n - 1].key.part = LW_PART_X2_MEAN;
        }
    }
}

static int look(const lw_network *e, int32_t size, int32_t channels, offers *o, lw_str *names)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, size, size, channels));
    lw_network_append(e, g, (lw_network_in){.x = x}, &taps);
    LW_TRY(lw_graph_error(g));
    o->e = e;
    add_all(o, g, x, &taps);
    lw_tap_names(&taps, names);
    return 0;
}

/* ---- the keys asked for ---------------------------------------------------------------------- */

static int add_key(const offer *o, lw_feature_set *s)
{
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->key[i].name, o->key.name) == 0)
            return 0;
    if (o->key.slots < 1)
        return lw_fail(LW_EUSAGE, "feature key '%s': a map of %dx%d has no room for its patches",
                       o->key.name, o->of.dim[1], o->of.dim[2]);
    s->key[s->n++] = o->key;
    return 0;
}

static int unknown_key(const offers *o, const char *word, const char *taps)
{
    const char *near = sets[0].word;
    for (size_t i = 1; i < LW_COUNT(sets); i++)
        if (lw_str_distance(word, sets[i].word) < lw_str_distance(word, near))
            near = sets[i].word;
    for (int32_t i = 0; i < o->n; i++)
        if (lw_str_distance(word, o->at[i].key.name) < lw_str_distance(word, near))
            near = o->at[i].key.name;
    return lw_fail(LW_EUSAGE,
                   "unknown feature key '%s' (did you mean '%s'?); encoder '%s' has the maps and "
                   "vectors: %s",
                   word, near, o->e->name, taps);
}

static int add_word(const offers *o, const char *word, const char *taps, lw_feature_set *s)
{
    int set = 0;
    for (size_t i = 0; i < LW_COUNT(sets); i++)
        if (strcmp(word, sets[i].word) == 0)
            set = sets[i].set;
    for (int32_t i = 0; i < o->n; i++) {
        if (!set && strcmp(word, o->at[i].key.name) == 0)
            return add_key(&o->at[i], s);
        if (o->at[i].sets & set && o->at[i].key.slots > 0)
            LW_TRY(add_key(&o->at[i], s));
    }
    return set ? 0 : unknown_key(o, word, taps);
}

static int add_list(const offers *o, const char *list, const char *taps, lw_feature_set *s)
{
    while (*list) {
        char word[32];
        size_t n = strcspn(list, ",");
        if (n == 0 || n >= sizeof word)
            return lw_fail(LW_EUSAGE, "feature keys '%s': an empty or too long name", list);
        memcpy(word, list, n);
        word[n] = '\0';
        LW_TRY(add_word(o, word, taps, s));
        list += n;
        if (*list == ',' && !*++list)
            return lw_fail(LW_EUSAGE, "feature keys end with a comma");
    }
    return s->n ? 0 : lw_fail(LW_EUSAGE, "no feature keys");
}

int lw_features_parse(const char *list, const lw_network *e, int32_t image_size, int32_t channels,
                      lw_feature_set *out)
{
    LW_CLEANUP(lw_str_clear) lw_str taps = {0};
    LW_CLEANUP(lw_free) offers *o = lw_calloc(1, sizeof *o);
    lw_feature_set set = {0};
    if (!o)
        return LW_ENOMEM;
    LW_TRY(look(e, image_size, channels, o, &taps));
    LW_TRY(add_list(o, list, lw_str_c(&taps), &set));
    *out = set;
    return 0;
}
