/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor of a file each piece of a store is, and everything in which the two differ. */
#include "store/store_private.h"

#include <stdlib.h>
#include <string.h>

enum { NAMED = 5 }; /* names of each kind listed in one message */

static const char *const wrappers[] = {"module.", "_orig_mod.", "ema_model."};

/* The file's name without what wrappers put in front. */
static const char *unwrap(const char *name)
{
    for (size_t i = 0; i < LW_COUNT(wrappers);) {
        if (lw_str_starts(name, wrappers[i])) {
            name += strlen(wrappers[i]);
            i = 0;
        } else {
            i++;
        }
    }
    return name;
}

const lw_st_tensor *lw_st_find_model(const lw_st_file *f, const char *name)
{
    const lw_st_tensor *t = lw_st_find(f, name);
    for (size_t i = 0; !t && i < lw_st_count(f); i++)
        if (strcmp(unwrap(lw_st_at(f, i)->name), name) == 0)
            t = lw_st_at(f, i);
    return t;
}

/* ---- the file's names ------------------------------------------------------------------------ */

typedef struct file_name {
    const char *name; /* without prefix and wrappers */
    const lw_st_tensor *tensor;
    bool used;
} file_name;

typedef struct file_names {
    const lw_st_file *file;
    file_name *of; /* sorted */
    size_t n;
} file_names;

static void names_clear(file_names *f)
{
    lw_free(&f->of);
}

static int by_name(const void *a, const void *b)
{
    const file_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->tensor->name, y->tensor->name);
}

static int names_init(file_names *f, const lw_st_file *file, const char *prefix)
{
    size_t n = lw_st_count(file);
    f->file = file;
    f->of = lw_calloc(n + 1, sizeof *f->of);
    if (!f->of)
        return LW_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const lw_st_tensor *t = lw_st_at(file, i);
        if (lw_str_starts(t->name, prefix))
            f->of[f->n++] = (file_name){unwrap(t->name + strlen(prefix)), t, false};
    }
    qsort(f->of, f->n, sizeof *f->of, by_name);
    return 0;
}

static file_name *find(const file_names *f, const char *name)
{
    size_t low = 0, high = f->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strcmp(f->of[mid].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->n && strcmp(f->of[low].name, name) == 0 ? &f->of[low] : NULL;
}

static const lw_st_tensor *use(file_name *n)
{
    if (n)
        n->used = true;
    return n ? n->tensor : NULL;
}

/* NAME, or NAME_q of I8 with NAME_scale. */
static store_source source_of(const file_names *f, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str part = {0};
    file_name *values = find(f, name), *scale;
    if (values)
        return (store_source){.tensor = use(values)};
    lw_str_addf(&part, "%s_q", name);
    values = find(f, lw_str_c(&part));
    lw_str_clear(&part);
    lw_str_addf(&part, "%s_scale", name);
    scale = find(f, lw_str_c(&part));
    if (!values || !scale)
        return (store_source){0};
    return (store_source){use(values), use(scale)};
}

/* ---- what differs ---------------------------------------------------------------------------- */

typedef struct listing {
    lw_str text;
    size_t n;
} listing;

static void listing_clear(listing *l)
{
    lw_str_clear(&l->text);
}

static void list(listing *l, const char *prefix, const char *name)
{
    if (l->n++ < NAMED)
        lw_str_addf(&l->text, "%s'%s%.120s'", l->n > 1 ? ", " : "", prefix, name);
}

/* Equal shapes, or more ones behind, or a kernel with a centre to take. */
static bool shape_fits(const store_piece *p, const lw_st_tensor *t)
{
    bool crop = p->rule->values == LW_VALUES_CENTRE;
    for (int i = 0; i < LW_MAX(t->rank, p->rank); i++) {
        int64_t have = i < t->rank ? t->shape[i] : 1, want = i < p->rank ? p->shape[i] : 1;
        bool larger = crop && i >= 2 && have >= want && (have - want) % 2 == 0;
        if (have != want && !larger)
            return false;
    }
    return t->rank >= p->rank;
}

static void compare_shape(const store_piece *p, const store_source *s, listing *sizes)
{
    char have[192], want[192];
    const lw_st_tensor *t = s->tensor, *scale = s->scale;
    if (shape_fits(p, t) && (!scale || (scale->rank == 1 && scale->shape[0] == t->shape[0])))
        return;
    if (shape_fits(p, t)) {
        t = scale;
        lw_shape_text(want, 1, p->shape);
    } else {
        lw_shape_text(want, p->rank, p->shape);
    }
    if (sizes->n++ < NAMED)
        lw_str_addf(&sizes->text, "%s'%.120s' (file %s, model %s)", sizes->n > 1 ? ", " : "",
                    t->name, lw_shape_text(have, t->rank, t->shape), want);
}

static bool is_float(lw_elem e)
{
    return e == LW_ELEM_F32 || e == LW_ELEM_F16 || e == LW_ELEM_BF16 || e == LW_ELEM_F64;
}

static int check_type(const lw_st_file *f, const store_source *s)
{
    if (s->scale && s->tensor->type == LW_ELEM_I8 && is_float(s->scale->type))
        return 0;
    if (!s->scale && is_float(s->tensor->type))
        return 0;
    return lw_fail(LW_EFORMAT,
                   "%s: tensor '%s' is %s, weights must be F32, F16 or BF16 (or I8 as NAME_q with "
                   "NAME_scale)",
                   lw_st_path(f), s->tensor->name, lw_elem_name(s->tensor->type));
}

/* Every piece's source; *lacking: how many have none. */
static int find_all(store_match *m, const lw_store *s, file_names *f, const lw_naming *naming,
                    size_t *lacking)
{
    LW_TRY(lw_store_pieces_of(s, naming, &m->pieces));
    m->source = lw_calloc(m->pieces.n + 1, sizeof *m->source);
    if (!m->source)
        return LW_ENOMEM;
    for (size_t i = 0; i < f->n; i++)
        f->of[i].used = false;
    *lacking = 0;
    for (size_t i = 0; i < m->pieces.n; i++) {
        m->source[i] = source_of(f, m->pieces.of[i].name);
        *lacking += !m->source[i].tensor;
    }
    return 0;
}

static const char counter[] = "**num_batches_tracked"; /* of BatchNorm */

static bool ignored(const char *name, const lw_naming *naming)
{
    static const char *const always[] = {counter, "**position_ids"};
    for (size_t i = 0; i < LW_COUNT(always); i++)
        if (lw_naming_fits(always[i], name))
            return true;
    const char *const *p = naming ? naming->ignored : NULL;
    for (; p && *p; p++)
        if (lw_naming_fits(*p, name))
            return true;
    return false;
}

static void add_list(lw_str *s, const char *what, const listing *l)
{
    if (l->n == 0)
        return;
    lw_str_addf(s, "%s%s (%zu): %s", s->len ? "; " : "", what, l->n, lw_str_c(&l->text));
    if (l->n > NAMED)
        lw_str_add(s, ", ...");
}

/* As torch's load_state_dict says it: all at once. */
static int report(const file_names *f, const char *prefix, const store_match *m,
                  const lw_naming *naming)
{
    LW_CLEANUP(listing_clear) listing missing = {0}, unexpected = {0}, sizes = {0};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    for (size_t i = 0; i < m->pieces.n; i++) {
        if (!m->source[i].tensor)
            list(&missing, prefix, m->pieces.of[i].name);
        else
            compare_shape(&m->pieces.of[i], &m->source[i], &sizes);
    }
    for (size_t i = 0; i < f->n; i++)
        if (!f->of[i].used && !ignored(f->of[i].name, naming))
            list(&unexpected, "", f->of[i].tensor->name);
    add_list(&text, "missing key(s)", &missing);
    add_list(&text, "unexpected key(s)", &unexpected);
    add_list(&text, "size mismatch", &sizes);
    if (text.len == 0)
        return 0;
    return lw_fail(LW_EFORMAT, "%s: not the tensors of this model%s%s: %s", lw_st_path(f->file),
                   naming ? ", named as by " : "", naming ? naming->name : "", lw_str_c(&text));
}

void lw_store_match_clear(store_match *m)
{
    lw_store_pieces_clear(&m->pieces);
    lw_free(&m->source);
    *m = (store_match){0};
}

/* The first naming that lacks nothing, else the one that lacks least. NULL: ours. */
static int choose(const lw_store *s, file_names *f, const lw_naming *namings, const lw_naming **out)
{
    size_t least = SIZE_MAX;
    *out = NULL;
    for (const lw_naming *n = namings; n && n->name && least > 0; n++) {
        LW_CLEANUP(lw_store_match_clear) store_match m = {0};
        size_t lacking;
        LW_TRY(find_all(&m, s, f, n, &lacking));
        if (lacking < least)
            *out = n;
        least = LW_MIN(least, lacking);
    }
    return 0;
}

/* The one type that holds both. */
static lw_elem wider(lw_elem a, lw_elem b)
{
    bool narrow = b == LW_ELEM_F16 || b == LW_ELEM_BF16;
    return narrow && (a == b || a == LW_ELEM_COUNT) ? b : LW_ELEM_F32;
}

/* Sources of entries that `kept` has not are as if they were not used. */
static void drop(store_match *m, file_names *f, const lw_store *kept)
{
    for (size_t i = 0; kept && i < m->pieces.n; i++)
        if (m->source[i].tensor && lw_store_find(kept, m->pieces.of[i].entry->name) < 0)
            find(f, m->pieces.of[i].name)->used = false;
}

int lw_store_left_out(const lw_store *s, const lw_store *kept, const lw_st_file *f,
                      const lw_naming *namings, json_t **names, lw_elem *widest)
{
    LW_CLEANUP(names_clear) file_names have = {0};
    LW_CLEANUP(lw_store_match_clear) store_match m = {0};
    LW_CLEANUP(lw_json_drop) json_t *list = json_array();
    const lw_naming *naming;
    size_t lacking;
    LW_TRY(names_init(&have, f, ""));
    LW_TRY(choose(s, &have, namings, &naming));
    LW_TRY(find_all(&m, s, &have, naming, &lacking));
    drop(&m, &have, kept);
    *widest = LW_ELEM_COUNT;
    for (size_t i = 0; i < have.n; i++)
        if (!have.of[i].used && !lw_naming_fits(counter, have.of[i].name) &&
            json_array_append_new(list, json_string(have.of[i].name)) != 0)
            return LW_ENOMEM;
    for (size_t i = 0; i < m.pieces.n; i++)
        if (m.source[i].tensor)
            *widest = wider(*widest, m.source[i].tensor->type);
    *names = lw_steal(&list);
    return 0;
}

int lw_store_match(const lw_store *s, const lw_st_file *f, const char *prefix,
                   const lw_naming *namings, store_match *out)
{
    LW_CLEANUP(names_clear) file_names names = {0};
    LW_CLEANUP(lw_store_match_clear) store_match m = {0};
    const lw_naming *naming;
    size_t lacking;
    LW_TRY(names_init(&names, f, prefix));
    LW_TRY(choose(s, &names, namings, &naming));
    LW_TRY(find_all(&m, s, &names, naming, &lacking));
    LW_TRY(report(&names, prefix, &m, naming));
    for (size_t i = 0; i < m.pieces.n; i++)
        LW_TRY(check_type(f, &m.source[i]));
    *out = m;
    m = (store_match){0};
    return 0;
}
