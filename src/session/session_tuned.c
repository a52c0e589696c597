/* SPDX-License-Identifier: Apache-2.0 */
/* Measured choices in a file. */
#include "session/session_tuned.h"

#include <stdio.h>

static const char *const types[] = {"f32", "bf16", NULL};
static const char *const passes[] = {"forward", "data_grad", NULL};
static const char *const file_keys[] = {"tuned_version", "cpu",    "isa",          "threads",
                                        "version",       "commit", "convolutions", NULL};
static const char *const row_keys[] = {"type", "pass", "in",      "out",        "height", "width",
                                       "tile", "ms",   "shipped", "shipped_ms", NULL};

static int word_of(const json_t *o, const char *where, const char *key, const char *const *words,
                   int *out)
{
    const char *word = NULL;
    LW_TRY(lw_json_get_str(o, where, key, &word));
    for (int i = 0; words[i]; i++) {
        if (lw_str_eq(word, words[i])) {
            *out = i;
            return 0;
        }
    }
    return lw_fail(LW_EFORMAT, "%s: '%s' must be %s or %s, is '%.40s'", where, key, words[0],
                   words[1], word);
}

static int check_keys(const json_t *o, const char *where, const char *const *keys)
{
    const char *const *known[] = {keys, NULL};
    return lw_json_check_known(o, where, known, NULL);
}

/* Can this be computed so? */
static int check_choice(const lw_conv_choice *c, int tile, const char *where, const char *key)
{
    lw_conv_shape s = lw_conv_choice_shape(c);
    LW_TRY(lw_conv_shape_init(&s));
    bool possible = tile == 0 || tile == 2 || tile == 4;
    if (c->num == LW_NUM_BF16 && tile && (c->pass == LW_CONV_FORWARD ? c->C : c->O) % 2)
        possible = false;
    if (!possible || (tile && !lw_winograd_applies(&s, c->pass)))
        return lw_fail(LW_EFORMAT, "%s: '%s': there are no tiles of %d for this convolution", where,
                       key, tile);
    return 0;
}

static int read_row(const json_t *o, const char *where, lw_tuned_row *out)
{
    enum { MOST = 1 << 16 };
    int type = 0, pass = 0;
    int32_t tile = 0, shipped = 0;
    lw_conv_choice *c = &out->choice;
    if (!json_is_object(o))
        return lw_fail(LW_EFORMAT, "%s must be an object", where);
    LW_TRY(check_keys(o, where, row_keys));
    LW_TRY(word_of(o, where, "type", types, &type));
    LW_TRY(word_of(o, where, "pass", passes, &pass));
    c->num = type ? LW_NUM_BF16 : LW_NUM_F32;
    c->pass = pass ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD;
    LW_TRY(lw_json_get_i32_in(o, where, "in", 1, LW_WINOGRAD_MAX_DEPTH, &c->C));
    LW_TRY(lw_json_get_i32_in(o, where, "out", 1, LW_WINOGRAD_MAX_DEPTH, &c->O));
    LW_TRY(lw_json_get_i32_in(o, where, "height", 1, MOST, &c->H));
    LW_TRY(lw_json_get_i32_in(o, where, "width", 1, MOST, &c->W));
    LW_TRY(lw_json_get_i32_in(o, where, "tile", 0, 4, &tile));
    LW_TRY(lw_json_get_i32_in(o, where, "shipped", 0, 4, &shipped));
    LW_TRY(lw_json_get_f64(o, where, "ms", &out->ms));
    LW_TRY(lw_json_get_f64(o, where, "shipped_ms", &out->shipped_ms));
    LW_TRY(check_choice(c, tile, where, "tile"));
    LW_TRY(check_choice(c, shipped, where, "shipped"));
    c->tile = tile;
    out->shipped = shipped;
    return 0;
}

static int read_rows(const json_t *list, const char *path, lw_tuned_row *rows, int n)
{
    LW_CLEANUP(lw_str_clear) lw_str where = {0};
    for (int i = 0; i < n; i++) {
        lw_str_clear(&where);
        lw_str_addf(&where, "%s: convolutions[%d]", path, i);
        LW_TRY(read_row(json_array_get(list, (size_t)i), lw_str_c(&where), &rows[i]));
        for (int k = 0; k < i; k++)
            if (lw_conv_choice_same(&rows[k].choice, &rows[i].choice))
                return lw_fail(LW_EFORMAT, "%s is convolutions[%d] again", lw_str_c(&where), k);
    }
    return 0;
}

int lw_tuned_load(const char *path, lw_tuned_row **rows, int *n, char *cpu, size_t cpu_size,
                  char *isa, size_t isa_size)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    const json_t *list = NULL;
    const char *of_cpu = NULL, *of_isa = NULL;
    int32_t version = 0;
    LW_TRY(lw_json_load(path, &tree));
    if (!json_is_object(tree))
        return lw_fail(LW_EFORMAT, "%s must be an object", path);
    LW_TRY(lw_json_get_i32_in(tree, path, "tuned_version", 1, 1, &version));
    LW_TRY(check_keys(tree, path, file_keys));
    LW_TRY(lw_json_get_str(tree, path, "cpu", &of_cpu));
    LW_TRY(lw_json_get_str(tree, path, "isa", &of_isa));
    LW_TRY(lw_json_get_array(tree, path, "convolutions", &list));
    if (json_array_size(list) == 0 || json_array_size(list) > LW_TUNED_MOST)
        return lw_fail(LW_EFORMAT, "%s: 'convolutions' must have 1 to %d rows, has %zu", path,
                       (int)LW_TUNED_MOST, json_array_size(list));
    int count = (int)json_array_size(list);
    LW_CLEANUP(lw_free) lw_tuned_row *r = lw_calloc((size_t)count, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    LW_TRY(read_rows(list, path, r, count));
    snprintf(cpu, cpu_size, "%s", of_cpu);
    snprintf(isa, isa_size, "%s", of_isa);
    *rows = lw_steal(&r);
    *n = count;
    return 0;
}

json_t *lw_tuned_json(const lw_tuned_row *rows, int n, int threads, lw_isa isa)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const lw_conv_choice *c = &rows[i].choice;
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:i, s:o}",
                                              "type", types[c->num == LW_NUM_BF16], "pass",
                                              passes[c->pass == LW_CONV_DATA_GRAD], "in", (int)c->C,
                                              "out", (int)c->O, "height", (int)c->H, "width",
                                              (int)c->W, "tile", (int)c->tile, "ms",
                                              lw_json_real(rows[i].ms), "shipped", rows[i].shipped,
                                              "shipped_ms", lw_json_real(rows[i].shipped_ms)));
    }
    return json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:o}", "tuned_version", 1, "cpu",
                     lw_machine_name(), "isa", lw_isa_name(isa), "threads", threads, "version",
                     lw_build_version(), "commit", lw_build_commit(), "convolutions", list);
}

static struct {
    lw_conv_choice *row;
    char path[512];
} used; /* by every device from then on */

static int use(const char *path, const lw_tuned_row *rows, int n, lw_isa isa)
{
    lw_conv_choice *c = lw_calloc((size_t)n, sizeof *c);
    int other = 0;
    if (!c)
        return LW_ENOMEM;
    for (int i = 0; i < n; i++) {
        c[i] = rows[i].choice;
        other += c[i].tile != lw_conv_choice_rule(&c[i], isa);
    }
    lw_backend_tune((lw_conv_choices){c, n});
    lw_free(&used.row);
    used.row = c;
    snprintf(used.path, sizeof used.path, "%s", path);
    lw_log(LW_LOG_INFO, "config", "%s: %d convolutions, %d of them otherwise than shipped", path, n,
           other);
    return 0;
}

int lw_session_tune(const char *path)
{
    LW_CLEANUP(lw_free) lw_tuned_row *rows = NULL;
    char cpu[128], level[32];
    int n = 0;
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    LW_TRY(lw_tuned_load(path, &rows, &n, cpu, sizeof cpu, level, sizeof level));
    if (!lw_str_eq(cpu, lw_machine_name()) || !lw_str_eq(level, lw_isa_name(isa)))
        return lw_fail(LW_EDEVICE,
                       "%s was measured on %s with %s, this is %s with %s: make one here "
                       "with `leeway bench --tune FILE`",
                       path, cpu, level, lw_machine_name(), lw_isa_name(isa));
    return use(path, rows, n, isa);
}

const char *lw_session_tuned(void)
{
    return used.path;
}
