/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules of a network are sites: lists by the names of the libraries that have them. */
#include "models/models_noise.h"
#include "models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers of the network, in the order they are built --------------------------------------- */

typedef enum layer_kind { LINEAR, BLOCK, OWN_DROPOUT, CLASSIFIER_INPUT } layer_kind;

typedef struct layer {
    const char *name;
    layer_kind kind;
    int32_t width, block;
    bool shaped; /* a block whose output has the shape of its input */
} layer;

typedef struct layers {
    const lw_network *network;
    lw_arena *arena;
    layer *of;
    size_t n, cap;
    int32_t blocks;
    int error;
} layers;

static bool has_weight(const lw_store *s, const char *name)
{
    char weight[160];
    snprintf(weight, sizeof weight, "%s.weight", name);
    int32_t at = lw_store_find(s, weight);
    return at >= 0 && lw_store_at(s, at)->type.rank == 2;
}

static layer_kind kind_of(const layers *l, const char *name, lw_val before)
{
    if (lw_val_ok(before))
        return BLOCK;
    if (lw_str_eq(name, "head") || lw_str_ends(name, ".head"))
        return CLASSIFIER_INPUT;
    return has_weight(l->network->store, name) ? LINEAR : OWN_DROPOUT;
}

static lw_val record(void *self, lw_builder *b, const char *name, lw_val before, lw_val y)
{
    layers *l = self;
    lw_type t = lw_val_type(b->g, y);
    if (l->error || lw_grow(&l->of, &l->cap, l->n + 1, sizeof *l->of) < 0) {
        l->error = LW_ENOMEM;
        return y;
    }
    layer *a = &l->of[l->n++];
    *a = (layer){.name = lw_arena_strdup(l->arena, name),
                 .kind = kind_of(l, name, before),
                 .width = lw_type_last(t),
                 .block = -1};
    l->error = a->name ? 0 : LW_ENOMEM;
    if (a->kind != BLOCK || l->error)
        return y;
    a->block = l->blocks++;
    a->shaped = lw_type_eq(t, lw_val_type(b->g, before));
    for (size_t i = 0; i + 1 < l->n; i++) { /* what lies inside came before it */
        size_t n = strlen(name);
        if (strncmp(l->of[i].name, name, n) == 0 && l->of[i].name[n] == '.')
            l->of[i].block = a->block;
    }
    return y;
}

static int find_layers(const lw_network *n, layers *l)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const lw_layer_hook hook = {l, record};
    lw_network recorded = *n;
    int32_t side = lw_network_side(n, 0);
    recorded.hook = &hook;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_network_build(&recorded, g, 1, side, side, NULL));
    return l->error ? lw_fail(l->error, "%s: no memory for its layers", n->dir) : 0;
}

/* ---- a library's modules ---------------------------------------------------------------------- */

typedef struct base_list {
    const char *word, *naming;
    bool own_dropout;  /* its own Dropout modules are turned on too */
    bool packed_calls; /* out_proj beside a packed in_proj is called as a module */
} base_list;
static const base_list bases[] = {
    {"hf", "transformers", false, false},
    {"open_clip", "open_clip", false, true},
    {"open_clip-2.24", "open_clip", false, false},
    {"timm", "timm", true, true},
};

static int add(lw_sites *s, size_t *cap, lw_site site)
{
    size_t n = (size_t)s->n;
    if (lw_grow(&s->of, cap, n + 1, sizeof *s->of) < 0)
        return LW_ENOMEM;
    s->of[s->n++] = site;
    return 0;
}

static const lw_naming *find_naming(const lw_network *n, const char *name)
{
    for (const lw_naming *m = n->def->namings; m && m->name; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* Is module (".out_proj") read by torch's attention instead of called? Then a packed in_proj without a
 * module of its own lies beside it. */
static int beside_in_proj(const layers *l, const lw_naming *naming, const char *module, bool *out)
{
    lw_file_name names[LW_MAX_FILE_NAMES];
    size_t parent = (size_t)(strrchr(module, '.') ? strrchr(module, '.') - module : 0);
    *out = false;
    for (size_t i = 0; i < l->n && !*out; i++) {
        char weight[160];
        int n;
        snprintf(weight, sizeof weight, "%s.weight", l->of[i].name);
        if (l->of[i].kind != LINEAR)
            continue;
        LW_TRY(lw_store_file_names(l->network->store, naming, weight, l->arena, names, &n));
        for (int k = 0; k < n; k++)
            *out = *out || (strncmp(names[k].name, module, parent) == 0 &&
                            strcmp(names[k].name + parent, ".in_proj_weight") == 0);
    }
    return 0;
}

static int add_linear(const layers *l, const layer *a, const base_list *base,
                      const lw_naming *naming, lw_sites *s, size_t *cap)
{
    static const char weight[] = ".weight";
    lw_file_name names[LW_MAX_FILE_NAMES];
    char name[160];
    int n;
    snprintf(name, sizeof name, "%s%s", a->name, weight);
    LW_TRY(lw_store_file_names(l->network->store, naming, name, l->arena, names, &n));
    for (int k = 0; k < n; k++) {
        bool dead = false;
        if (!lw_str_ends(names[k].name, weight) || names[k].bare)
            continue; /* a bare parameter, or outside the vision model */
        char *module = lw_arena_strdup(l->arena, names[k].name);
        if (!module)
            return LW_ENOMEM;
        module[strlen(module) - strlen(weight)] = '\0';
        if (!base->packed_calls && lw_str_ends(module, ".out_proj"))
            LW_TRY(beside_in_proj(l, naming, module, &dead));
        LW_TRY(add(s, cap,
                   (lw_site){module, a->name, names[k].rows.first, names[k].rows.of, a->block,
                             a->width / names[k].rows.of, !dead}));
    }
    return 0;
}

static int add_library(const layers *l, const base_list *base, lw_sites *s, size_t *cap)
{
    const lw_network *net = l->network;
    const lw_naming *naming = find_naming(net, base->naming);
    if (!naming && net->def->namings)
        return lw_fail(LW_EUSAGE, "--sites %s: %s has no names of %s", base->word, net->name,
                       base->naming);
    /* open_clip holds towers of timm as they are */
    bool own = base->own_dropout ||
               (naming && naming->prefix && strstr(naming->prefix, "trunk.") != NULL);
    for (size_t i = 0; i < l->n; i++) {
        const layer *a = &l->of[i];
        if (a->kind == LINEAR)
            LW_TRY(add_linear(l, a, base, naming, s, cap));
        else if (a->kind == OWN_DROPOUT && own)
            LW_TRY(add(s, cap, (lw_site){a->name, a->name, 0, 1, a->block, a->width, true}));
    }
    return 0;
}

static int add_kind(const layers *l, layer_kind kind, bool shaped, lw_sites *s, size_t *cap)
{
    for (size_t i = 0; i < l->n; i++) {
        const layer *a = &l->of[i];
        if (a->kind == kind && (a->shaped || !shaped))
            LW_TRY(add(s, cap, (lw_site){a->name, a->name, 0, 1, a->block, a->width, true}));
    }
    return 0;
}

/* ---- the list's words ------------------------------------------------------------------------- */

static const char *const words[] = {"hf",     "open_clip", "open_clip-2.24", "timm",
                                    "blocks", "depth",     "head",           "attention",
                                    "mlp",    "mlp-down",  "last:N"};

static bool is_base(const char *word)
{
    bool base = lw_str_eq(word, "blocks") || lw_str_eq(word, "depth") || lw_str_eq(word, "head");
    for (size_t i = 0; i < LW_COUNT(bases); i++)
        base = base || lw_str_eq(word, bases[i].word);
    return base;
}

static int add_base(const layers *l, const char *word, lw_sites *s, size_t *cap)
{
    if (lw_str_eq(word, "blocks") || lw_str_eq(word, "depth"))
        return add_kind(l, BLOCK, lw_str_eq(word, "depth"), s, cap);
    if (lw_str_eq(word, "head"))
        return add_kind(l, CLASSIFIER_INPUT, false, s, cap);
    for (size_t i = 0; i < LW_COUNT(bases); i++)
        if (lw_str_eq(word, bases[i].word))
            return add_library(l, &bases[i], s, cap);
    return 0;
}

static bool fits_word(const lw_site *s, const char *word, int32_t blocks)
{
    bool mlp = strstr(s->layer, "mlp.") != NULL;
    int64_t last;
    if (lw_str_eq(word, "mlp"))
        return mlp;
    if (lw_str_eq(word, "mlp-down"))
        return lw_str_ends(s->layer, "mlp.fc2") || lw_str_ends(s->layer, "mlp.weights_out");
    if (lw_str_eq(word, "attention"))
        return !mlp && strstr(s->layer, "att") != NULL;
    if (lw_str_starts(word, "last:") && lw_parse_i64(word + 5, &last) == 0)
        return s->block >= blocks - last;
    return lw_str_eq(word, s->module) || lw_str_eq(word, s->layer);
}

static bool is_filter(const char *word)
{
    return lw_str_eq(word, "mlp") || lw_str_eq(word, "mlp-down") || lw_str_eq(word, "attention") ||
           lw_str_starts(word, "last:");
}

static int unknown(const lw_network *n, const lw_sites *s, const char *word)
{
    const char *near = words[0];
    for (size_t i = 0; i < LW_COUNT(words); i++)
        if (lw_str_distance(word, words[i]) < lw_str_distance(word, near))
            near = words[i];
    for (int32_t i = 0; i < s->n; i++)
        if (lw_str_distance(word, s->of[i].module) < lw_str_distance(word, near))
            near = s->of[i].module;
    return lw_fail(LW_EUSAGE,
                   "--sites: %s has no module '%s', and no list has that name (did you mean '%s'? "
                   "lists are hf, open_clip, open_clip-2.24, timm, blocks, depth, head; narrower "
                   "attention, mlp, mlp-down, last:N)",
                   n->name, word, near);
}

/* Keeps the sites that the word fits; one that is no filter names a module. */
static int narrow(const lw_network *net, lw_sites *s, const char *word)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (fits_word(&s->of[i], word, s->blocks))
            s->of[n++] = s->of[i];
    if (n == 0)
        return is_filter(word)
                   ? lw_fail(LW_EUSAGE, "--sites: %s has no site left by '%s'", net->name, word)
                   : unknown(net, s, word);
    s->n = n;
    return 0;
}

static int split(const char *list, lw_arena *arena, const char *out[16], int *n)
{
    size_t len;
    *n = 0;
    for (const char *word; (word = lw_str_word(&list, ',', &len));) {
        if (*n == 16)
            return lw_fail(LW_EUSAGE, "--sites: more than 16 words");
        out[*n] = lw_arena_printf(arena, "%.*s", (int)len, word);
        if (!out[(*n)++])
            return LW_ENOMEM;
    }
    return 0;
}

/* The first word if it is a base, else the network's usual one. */
static const char *base_of(const lw_network *n, const layers *l, const char *const *word, int count)
{
    for (int i = 0; i < count; i++)
        if (is_base(word[i]))
            return word[i];
    size_t linear = 0;
    for (size_t i = 0; i < l->n; i++)
        linear += l->of[i].kind == LINEAR;
    if (linear < 3)
        return "blocks";
    return find_naming(n, "transformers") ? "hf" : "blocks";
}

static int choose(const lw_network *n, const char *list, layers *l, lw_sites *s)
{
    LW_CLEANUP(lw_str_clear) lw_str said = {0};
    const char *word[16], *base;
    size_t cap = 0;
    int count;
    LW_TRY(split(list, s->arena, word, &count));
    LW_TRY(find_layers(n, l));
    s->blocks = l->blocks;
    base = base_of(n, l, word, count);
    LW_TRY(add_base(l, base, s, &cap));
    lw_str_add(&said, base);
    if (s->n == 0)
        return lw_fail(LW_EUSAGE, "--sites %s: %s has none", base, n->name);
    for (int i = 0; i < count; i++) {
        if (word[i] == base || lw_str_eq(word[i], base))
            continue;
        if (is_base(word[i]))
            return lw_fail(LW_EUSAGE, "--sites: '%s' and '%s' are two lists; give one", base,
                           word[i]);
        LW_TRY(narrow(n, s, word[i]));
        lw_str_addf(&said, ",%s", word[i]);
    }
    for (int32_t i = 0; i < s->n; i++)
        s->live += s->of[i].live;
    s->list = lw_arena_strdup(s->arena, lw_str_c(&said));
    return s->list ? 0 : LW_ENOMEM;
}

static void layers_clear(layers *l)
{
    lw_free(&l->of);
}

int lw_sites_find(const lw_network *n, const char *list, lw_sites *out)
{
    LW_CLEANUP(lw_sites_clear) lw_sites s = {0};
    LW_CLEANUP(layers_clear) layers l = {.network = n};
    LW_TRY(lw_arena_new(&s.arena));
    l.arena = s.arena;
    LW_TRY(choose(n, list, &l, &s));
    *out = s;
    s = (lw_sites){0};
    return 0;
}

void lw_sites_clear(lw_sites *s)
{
    lw_free(&s->of);
    lw_arena_free(&s->arena);
    *s = (lw_sites){0};
}
