/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing a list of feature keys and named sets. */
#include "models/models_private.h"

#include <stdio.h>
#include <string.h>

typedef struct key_row {
    const char *word; /* without the stage: "pix.mean", ".loc" */
    lw_key_kind kind;
    int stat;
} key_row;

static const key_row picture_keys[] = {
    {"pix", LW_KEY_PIX, 0},
    {"pix.p4", LW_KEY_P4, 0},
    {"pix.mean", LW_KEY_STAT, LW_STAT_MEAN},
    {"pix.std", LW_KEY_STAT, LW_STAT_STD},
    {"pix.m4", LW_KEY_STAT, LW_STAT_MEAN4},
    {"norm_x", LW_KEY_NORM_X, 0},
    {"pooled", LW_KEY_POOLED, 0},
};
static const key_row map_keys[] = {
    {".loc", LW_KEY_LOC, 0},
    {".mean", LW_KEY_STAT, LW_STAT_MEAN},
    {".std", LW_KEY_STAT, LW_STAT_STD},
    {".mean2", LW_KEY_STAT, LW_STAT_MEAN2},
    {".std2", LW_KEY_STAT, LW_STAT_STD2},
    {".mean4", LW_KEY_STAT, LW_STAT_MEAN4},
    {".std4", LW_KEY_STAT, LW_STAT_STD4},
};

lw_map_shape lw_encoder_map_shape(const lw_encoder *e, int32_t image_size, int32_t s)
{
    int32_t halvings = LW_MAX(s - 1, 0);
    int32_t base = e->kind == LW_ENCODER_CIFAR      ? 16
                   : e->kind == LW_ENCODER_RESNET18 ? 64
                                                    : e->own.width;
    lw_map_shape m = {image_size, base << halvings};
    for (int32_t i = 0; i < halvings; i++)
        m.size = LW_CEIL_DIV(m.size, 2);
    return m;
}

typedef struct parser {
    const lw_encoder *e;
    int32_t size;
    lw_feature_set *out;
    bool lenient; /* a set is being expanded: keys without room are skipped */
} parser;

/* ---- one key --------------------------------------------------------------------------------- */

static int32_t slots_of(const key_row *r, int32_t size)
{
    int32_t halves = size / 2, quarters = size / 4;
    switch (r->kind) {
    case LW_KEY_LOC:
        return size * size;
    case LW_KEY_P4:
        return size % 4 ? 0 : quarters * quarters;
    case LW_KEY_STAT:
        if (r->stat == LW_STAT_MEAN2 || r->stat == LW_STAT_STD2)
            return halves * halves;
        if (r->stat == LW_STAT_MEAN4 || r->stat == LW_STAT_STD4)
            return quarters * quarters;
        return 1;
    default:
        return 1;
    }
}

static int32_t width_of(const parser *p, const key_row *r, lw_map_shape m)
{
    switch (r->kind) {
    case LW_KEY_PIX:
        return m.size * m.size * m.c;
    case LW_KEY_P4:
        return 16 * m.c;
    case LW_KEY_POOLED:
        return p->e->feature_dim;
    default:
        return m.c;
    }
}

static int add_key(parser *p, const key_row *r, int32_t map)
{
    lw_feature_set *s = p->out;
    lw_map_shape m = map < 0 ? (lw_map_shape){p->size, 3}
                             : lw_encoder_map_shape(p->e, p->size, map);
    lw_feature_key k = {.kind = (uint8_t)r->kind, .stat = (uint8_t)r->stat, .map = (int8_t)map};
    if (map < 0)
        snprintf(k.name, sizeof k.name, "%s", r->word);
    else
        snprintf(k.name, sizeof k.name, "s%d%s", (int8_t)map, r->word);
    k.slots = slots_of(r, m.size);
    k.c = width_of(p, r, m);
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->key[i].name, k.name) == 0)
            return 0;
    if (k.slots < 1 && p->lenient)
        return 0;
    if (k.slots < 1)
        return lw_fail(LW_EUSAGE, "feature key '%s': a map of %dx%d has no room for its patches",
                       k.name, m.size, m.size);
    if (k.c < 1 && p->lenient)
        return 0;
    if (k.c < 1)
        return lw_fail(LW_EUSAGE, "feature key '%s': encoder '%s' has no pooled feature", k.name,
                       p->e->name);
    if (s->n == LW_MAX_FEATURE_KEYS)
        return lw_fail(LW_EUSAGE, "more than %d feature keys", LW_MAX_FEATURE_KEYS);
    s->key[s->n++] = k;
    return 0;
}

/* ---- names and sets -------------------------------------------------------------------------- */

static const key_row *find_row(const key_row *rows, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].word, word) == 0)
            return &rows[i];
    return NULL;
}

static int add_words(parser *p, const char *const *word, int32_t map)
{
    const key_row *rows = map < 0 ? picture_keys : map_keys;
    size_t n = map < 0 ? LW_COUNT(picture_keys) : LW_COUNT(map_keys);
    for (; *word; word++)
        LW_TRY(add_key(p, find_row(rows, n, *word), map));
    return 0;
}

static int add_set(parser *p, const char *word, bool *known)
{
    static const char *const pix[] = {"pix", NULL}, *const maps_pix[] = {"pix", "norm_x", NULL};
    static const char *const col_pix[] = {"pix", "pix.p4", "pix.mean", "pix.std", "pix.m4", NULL};
    static const char *const all_pix[] = {"pix",    "pix.p4", "pix.mean", "pix.std",
                                          "pix.m4", "norm_x", "pooled",   NULL};
    static const char *const all_map[] = {".loc",  ".mean",  ".std",  ".mean2",
                                          ".std2", ".mean4", ".std4", NULL};
    static const char *const first[] = {".mean", ".std", NULL}, *const later[] = {".loc", ".mean",
                                                                                  ".std", NULL};
    bool col = strcmp(word, "col") == 0, maps = strcmp(word, "maps") == 0,
         all = strcmp(word, "all") == 0;
    int32_t s = all ? 0 : 1, end = p->e->kind == LW_ENCODER_NONE ? 0 : lw_encoder_stages(p->e) + 1;
    *known = col || maps || all || strcmp(word, "pixels") == 0;
    if (!*known)
        return 0;
    p->lenient = true;
    int rc = add_words(p, all ? all_pix : col ? col_pix : maps ? maps_pix : pix, -1);
    for (; rc == 0 && (col || maps || all) && s < end; s++)
        rc = add_words(p, maps || all ? all_map : s == 1 ? first : later, s);
    p->lenient = false;
    return rc;
}

/* "s2.mean" -> stage 2 and its row. */
static const key_row *map_row(const char *word, int32_t *stage)
{
    if (word[0] != 's' || word[1] < '0' || word[1] > '9' || word[2] != '.')
        return NULL;
    *stage = word[1] - '0';
    return find_row(map_keys, LW_COUNT(map_keys), word + 2);
}

static int unknown_key(const char *word)
{
    static const char *const sets[] = {"col", "maps", "all", "pixels"};
    const char *near = sets[0];
    for (size_t i = 1; i < LW_COUNT(sets); i++)
        if (lw_str_distance(word, sets[i]) < lw_str_distance(word, near))
            near = sets[i];
    for (size_t i = 0; i < LW_COUNT(picture_keys); i++)
        if (lw_str_distance(word, picture_keys[i].word) < lw_str_distance(word, near))
            near = picture_keys[i].word;
    char text[32], best[32];
    snprintf(best, sizeof best, "%s", near);
    for (size_t i = 0; i < LW_COUNT(map_keys); i++) {
        int digit = word[0] == 's' && word[1] >= '0' && word[1] <= '9' ? word[1] - '0' : 1;
        snprintf(text, sizeof text, "s%d%s", digit, map_keys[i].word);
        if (lw_str_distance(word, text) < lw_str_distance(word, best))
            memcpy(best, text, sizeof best);
    }
    return lw_fail(LW_EUSAGE, "unknown feature key '%s' (did you mean '%s'?)", word, best);
}

static int add_word(parser *p, const char *word)
{
    bool known;
    int32_t stage = 0;
    LW_TRY(add_set(p, word, &known));
    if (known)
        return 0;
    const key_row *r = find_row(picture_keys, LW_COUNT(picture_keys), word);
    if (r)
        return add_key(p, r, -1);
    r = map_row(word, &stage);
    if (!r)
        return unknown_key(word);
    if (stage > lw_encoder_stages(p->e) || p->e->kind == LW_ENCODER_NONE)
        return lw_fail(LW_EUSAGE, "feature key '%s': encoder '%s' has %d stages", word, p->e->name,
                       lw_encoder_stages(p->e));
    return add_key(p, r, stage);
}

int lw_features_parse(const char *list, const lw_encoder *e, int32_t image_size,
                      lw_feature_set *out)
{
    lw_feature_set set = {0};
    parser p = {.e = e, .size = image_size, .out = &set};
    while (*list) {
        char word[32];
        size_t n = strcspn(list, ",");
        if (n == 0 || n >= sizeof word)
            return lw_fail(LW_EUSAGE, "feature keys '%s': an empty or too long name", list);
        memcpy(word, list, n);
        word[n] = '\0';
        LW_TRY(add_word(&p, word));
        list += n;
        if (*list == ',' && !*++list)
            return lw_fail(LW_EUSAGE, "feature keys end with a comma");
    }
    if (set.n == 0)
        return lw_fail(LW_EUSAGE, "no feature keys");
    *out = set;
    return 0;
}
