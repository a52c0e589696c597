/* SPDX-License-Identifier: Apache-2.0 */
/* Tables laid over structs: adding, finding, suggesting. */
#include "cli/cli_options.h"

#include <string.h>

#include "train/train_run_dir.h"

/* Names compare equal with - and _ exchanged. */
static bool same_name(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char x = a[i] == '_' ? '-' : a[i], y = b[i] == '_' ? '-' : b[i];
        if (x != y || x == '\0')
            return false;
    }
    return true;
}

static bool row_is_named(const lw_option *row, const char *name, size_t n)
{
    if (strlen(row->name) == n && same_name(row->name, name, n))
        return true;
    size_t k;
    for (const char *rest = row->aliases, *alias; (alias = lw_str_word(&rest, '|', &k));)
        if (k == n && same_name(alias, name, n))
            return true;
    return false;
}

static size_t count_rows(const lw_option *rows)
{
    size_t n = 0;
    while (rows[n].name)
        n++;
    return n;
}

int lw_opts_add(lw_opts *o, const lw_option *rows, void *base)
{
    LW_ASSERT(o->n < LW_OPT_MAX_SETS, "more than %d option tables", LW_OPT_MAX_SETS);
    size_t n = count_rows(rows);
    bool *given = lw_arena_alloc(o->arena, n * sizeof *given);
    if (!given)
        return LW_ENOMEM;
    lw_opt_set *set = &o->set[o->n++];
    *set = (lw_opt_set){.rows = rows, .base = base, .given = given};
    for (size_t i = 0; i < n; i++) {
        lw_opt_ref ref = {set, &rows[i]};
        if (rows[i].fallback)
            LW_TRY(lw_opt_set_text(o, ref, rows[i].name, rows[i].fallback));
        given[i] = false;
    }
    return 0;
}

lw_opt_ref lw_opts_find(const lw_opts *o, const char *name, size_t n)
{
    for (int s = 0; s < o->n; s++)
        for (const lw_option *row = o->set[s].rows; row->name; row++)
            if (row_is_named(row, name, n))
                return (lw_opt_ref){&o->set[s], row};
    return (lw_opt_ref){0};
}

const char *lw_opts_nearest(const lw_opts *o, const char *name)
{
    const char *best = "";
    int least = LW_MAX((int)strlen(name) / 3, 2) + 1;
    for (int s = 0; s < o->n; s++) {
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            int d = lw_str_distance(name, row->name);
            /* --batch for --batch-size: a beginning counts as near */
            if (strlen(name) >= 3 && lw_str_starts(row->name, name))
                d = LW_MIN(d, 1);
            if (d < least) {
                least = d;
                best = row->name;
            }
        }
    }
    return best;
}

typedef struct familiar {
    const char *theirs, *ours, *note;
} familiar;

static bool is_familiar(const familiar *f, const char *name)
{
    size_t n = strlen(name);
    return strlen(f->theirs) == n && same_name(f->theirs, name, n);
}

void lw_opts_familiar(const lw_opts *o, const char *name, lw_str *out)
{
    static const familiar names[] = {
#define FAMILIAR(theirs, ours, note) {theirs, ours, note},
#include "cli/cli_familiar.def"
#undef FAMILIAR
    };
    const familiar *found = NULL;
    bool here = false;
    for (size_t i = 0; i < LW_COUNT(names) && !here; i++) {
        const familiar *f = &names[i];
        if (!is_familiar(f, name))
            continue;
        here = f->ours && lw_opts_find(o, f->ours, strlen(f->ours)).row;
        found = !found || here ? f : found;
    }
    if (!found)
        return;
    if (found->ours)
        lw_str_addf(out, here ? "that is --%s here" : "elsewhere here that is --%s", found->ours);
    if (found->note)
        lw_str_addf(out, "%s%s", found->ours ? ": " : "", found->note);
}

bool lw_opts_given(const lw_opts *o, const char *name)
{
    lw_opt_ref ref = lw_opts_find(o, name, strlen(name));
    LW_ASSERT(ref.row, "no option '%s'", name);
    return ref.set->given[ref.row - ref.set->rows];
}

static bool given_instead(const lw_opts *o, const lw_option *row)
{
    return row->unless && lw_opts_find(o, row->unless, strlen(row->unless)).row &&
           lw_opts_given(o, row->unless);
}

int lw_opts_check_required(const lw_opts *o)
{
    for (int s = 0; s < o->n; s++) {
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            if (!row->required || o->set[s].given[row - o->set[s].rows] || given_instead(o, row))
                continue;
            return lw_fail(LW_EUSAGE, "missing %s%s: see --help",
                           row->positional ? "argument " : "option --", row->name);
        }
    }
    return 0;
}

static bool is_set(lw_opt_ref ref)
{
    LW_CLEANUP(lw_json_drop) json_t *value = lw_opt_get_json(ref);
    return ref.set->given[ref.row - ref.set->rows] && json_number_value(value) != 0.0;
}

/* All that stand for `name`, and itself: how many are set, `names` of them where it is not NULL; those
 * that are not set in `typed` go back to their default where that is not NULL. */
static int walk_alternatives(const lw_opts *o, const char *name, const lw_opts *typed,
                             lw_str *names)
{
    int n = 0;
    for (int s = 0; s < o->n; s++) {
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            lw_opt_ref ref = {&o->set[s], row};
            bool of = lw_str_eq(row->name, name) || (row->instead && lw_str_eq(row->instead, name));
            if (!of || !is_set(ref))
                continue;
            n++;
            if (names)
                lw_str_addf(names, "%s--%s", names->len ? ", " : "", row->name);
            if (typed && !is_set((lw_opt_ref){&typed->set[s], row}))
                LW_TRY(lw_opt_set_text(o, ref, row->name, row->fallback));
        }
    }
    return n;
}

int lw_opts_choose_one(const lw_opts *o, const lw_opts *typed)
{
    for (int s = 0; s < o->n; s++) {
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            LW_CLEANUP(lw_str_clear) lw_str names = {0};
            if (!row->instead || walk_alternatives(o, row->instead, NULL, NULL) < 2)
                continue;
            if (walk_alternatives(typed, row->instead, NULL, NULL) == 1)
                LW_TRY(walk_alternatives(o, row->instead, typed, NULL));
            else if (walk_alternatives(o, row->instead, NULL, &names))
                return lw_fail(LW_EUSAGE, "%s: say only one", lw_str_c(&names));
        }
    }
    return 0;
}

/* A name that promises a kind of file that is not written would hide what it is. */
static int check_ending(const char *what, const char *path, const char *endings)
{
    static const char *const kinds[] = {".bmp",         ".csv", ".gif",  ".html", ".jpeg", ".jpg",
                                        ".json",        ".mp4", ".npy",  ".npz",  ".png",  ".pt",
                                        ".safetensors", ".tif", ".tiff", ".txt",  ".webp", ".zip"};
    if (!endings || lw_path_is_dir(path) || lw_path_is_special(path))
        return 0;
    for (size_t i = 0; i < LW_COUNT(kinds); i++)
        if (lw_str_ends(path, kinds[i]) && !strstr(endings, kinds[i]))
            return lw_fail(LW_EUSAGE, "%s %s: no such file is written; give a %s", what, path,
                           endings);
    return 0;
}

static const char *output_of(const lw_opts *o, int s, const lw_option *row)
{
    return row->type == LW_OPT_TEXT && row->path >= LW_PATH_OUT
               ? *(const char *const *)(const void *)((char *)o->set[s].base + row->offset)
               : NULL;
}

/* Is `path` one of the files that the folder of this row gets? */
static int check_beside(const lw_option *row, const char *dir, const lw_option *file,
                        const char *path)
{
    size_t n;
    for (const char *rest = row->files, *name; (name = lw_str_word(&rest, '|', &n));) {
        LW_CLEANUP(lw_str_clear) lw_str whole = {0};
        bool same;
        lw_str_addf(&whole, "%s/%.*s", dir, (int)n, name);
        LW_TRY(whole.failed ? LW_ENOMEM : lw_output_same(lw_str_c(&whole), path, &same));
        if (same)
            return lw_fail(LW_EUSAGE, "--%s %s: --%s writes a file of that name: choose another",
                           file->name, path, row->name);
    }
    return 0;
}

/* Whatever is written last would be all there is. */
static int check_once(const lw_opts *o, const lw_option *mine, const char *path)
{
    for (int s = 0; s < o->n; s++)
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            const char *other = output_of(o, s, row);
            bool same = false;
            if (row == mine)
                return 0;
            if (!other)
                continue;
            LW_TRY(check_beside(row, other, mine, path));
            LW_TRY(check_beside(mine, path, row, other));
            LW_TRY(lw_output_same(other, path, &same));
            if (same && !lw_path_is_special(path))
                return lw_fail(LW_EUSAGE, "--%s and --%s are both %s: give each a name of its own",
                               row->name, mine->name, path);
        }
    return 0;
}

int lw_opts_check_outputs(const lw_opts *o)
{
    static const lw_out_kind kinds[] = {[LW_PATH_OUT] = LW_OUT_FILE,
                                        [LW_PATH_OUT_DIR] = LW_OUT_DIR,
                                        [LW_PATH_OUT_ANY] = LW_OUT_EITHER,
                                        [LW_PATH_RUN_DIR] = LW_OUT_DIR};
    for (int s = 0; s < o->n; s++) {
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            const char *path = output_of(o, s, row);
            LW_CLEANUP(lw_str_clear) lw_str what = {0};
            if (!path)
                continue;
            lw_str_addf(&what, "--%s", row->name);
            LW_TRY(check_ending(lw_str_c(&what), path, row->endings));
            LW_TRY(lw_output_check(lw_str_c(&what), path, kinds[row->path]));
            LW_TRY(check_once(o, row, path));
            if (row->path == LW_PATH_OUT_DIR && lw_run_dir_there(path))
                return lw_fail(LW_EUSAGE,
                               "%s: %s holds a training run, whose files would be replaced: choose "
                               "another",
                               lw_str_c(&what), path);
        }
    }
    return 0;
}
