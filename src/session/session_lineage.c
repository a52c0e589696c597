/* SPDX-License-Identifier: Apache-2.0 */
/* Where a network's weights come from, and who is kin of whom. */
#include "session/session_lineage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RANDOM_KEY "_leeway_random" /* of config.json: the seed its weights were drawn with */

const char *lw_origin_name(lw_origin o)
{
    static const char *const names[] = {"published", "trained here", "random weights"};
    return names[o];
}

/* ---- the run behind a spec ------------------------------------------------------------------- */

/* The part of a spec behind "WORD:", where its files are. */
static const char *path_of(const char *spec)
{
    const char *colon = strchr(spec, ':');
    return colon && !lw_path_exists(spec) ? colon + 1 : spec;
}

/* The nearest folder from `path` up that has a config.yaml: a run, above its checkpoints and their
 * ema. "": none. */
static void run_of(const char *path, lw_str *run)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0}, up = {0};
    run->len = 0;
    lw_str_add(run, path);
    for (int i = 0; i < 4 && !run->failed; i++) {
        if (lw_path_exists(lw_path_join(&file, lw_str_c(run), "config.yaml")))
            return;
        lw_path_parent(lw_str_c(run), &up);
        if (up.len == 0 || lw_str_eq(lw_str_c(&up), lw_str_c(run)))
            break;
        run->len = 0;
        lw_str_add(run, lw_str_c(&up));
    }
    run->len = 0;
}

/* Where a spec out of a run's config.yaml leads now: as it stands, else from the folders above. */
static char *spec_from(const char *run, const char *spec)
{
    LW_CLEANUP(lw_str_clear) lw_str at = {0}, path = {0}, up = {0};
    const char *file = path_of(spec);
    if (lw_path_exists(file) || file[0] == '/')
        return lw_strdup(spec);
    lw_str_add(&at, run);
    for (int i = 0; i < 4 && at.len > 0; i++) {
        if (lw_path_exists(lw_path_join(&path, lw_str_c(&at), file))) {
            LW_CLEANUP(lw_str_clear) lw_str whole = {0};
            lw_str_add_n(&whole, spec, (size_t)(file - spec));
            lw_str_add(&whole, lw_str_c(&path));
            return lw_strdup(lw_str_c(&whole));
        }
        lw_path_parent(lw_str_c(&at), &up);
        at.len = 0;
        lw_str_add(&at, lw_str_c(&up));
    }
    return lw_strdup(spec);
}

static int read_yaml(const char *run, json_t **out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    return lw_yaml_load(lw_path_join(&path, run, "config.yaml"), out);
}

static const char *text_of(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "";
}

/* ---- one link -------------------------------------------------------------------------------- */

/* "cifar10:/d" and "cifar10" are one set; of folders each is its own. */
static void name_data(const char *spec, char *out, size_t size)
{
    static const char *const named[] = {"cifar10", "mnist", "synth"};
    snprintf(out, size, "%s", spec);
    for (size_t i = 0; i < LW_COUNT(named); i++)
        if (lw_str_starts(spec, named[i]))
            snprintf(out, size, "%s", named[i]);
}

/* What the config.json of our own encoder says of its objective. */
static const char *own_objective(const json_t *config)
{
    if (json_object_get(config, "leeway_predicts"))
        return "distill";
    if (json_integer_value(json_object_get(config, "leeway_judged_classes")) > 0)
        return "judge";
    if (json_is_true(json_object_get(config, "decoder")))
        return "mae";
    return json_integer_value(json_object_get(config, "num_classes")) > 0 ? "classify" : "";
}

/* The last part of a path. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Published networks have names of their own; what was made here is called as its folder is. */
static void describe(const lw_network *n, const char *folder, const json_t *yaml, lw_link *l)
{
    bool ours = n->def == &lw_network_def_leeway;
    *l = (lw_link){.family = n->def->family ? n->def->family : n->def->name,
                   .origin = ours ? LW_ORIGIN_HERE : LW_ORIGIN_PUBLISHED,
                   .weights = n->store ? lw_store_hash(n->store, LW_SLAB_PARAM) : 0};
    bool drawn = json_object_get(n->config, RANDOM_KEY) != NULL;
    snprintf(l->name, sizeof l->name, "%.40s", ours || drawn ? base_of(folder) : n->name);
    if (drawn) {
        l->origin = LW_ORIGIN_RANDOM;
        return;
    }
    const char *objective = ours ? own_objective(n->config) : n->def->objective;
    const char *data = ours ? text_of(yaml, "data") : n->def->trained_on;
    if (ours && *text_of(yaml, "objective"))
        objective = text_of(yaml, "objective");
    snprintf(l->objective, sizeof l->objective, "%s", objective ? objective : "");
    name_data(data ? data : "", l->data, sizeof l->data);
}

/* Appends network n and, of a student, who taught it. */
static int add_links(const char *spec, const lw_network *n, lw_lineage *out)
{
    LW_CLEANUP(lw_str_clear) lw_str run = {0};
    LW_CLEANUP(lw_json_drop) json_t *yaml = NULL;
    LW_CLEANUP(lw_network_close) lw_network *by = NULL;
    lw_link *l = &out->link[out->n++];
    if (n->def == &lw_network_def_leeway) {
        run_of(path_of(spec), &run);
        if (run.len > 0)
            LW_TRY(read_yaml(lw_str_c(&run), &yaml));
    }
    describe(n, run.len > 0 ? lw_str_c(&run) : path_of(spec), yaml, l);
    if (l->origin != LW_ORIGIN_HERE || !lw_str_eq(l->objective, "distill"))
        return 0;
    const char *teacher = text_of(yaml, "teacher");
    LW_CLEANUP(lw_free) char *found = *teacher ? spec_from(lw_str_c(&run), teacher) : NULL;
    if (*teacher && !found)
        return LW_ENOMEM;
    if (!found || out->n == LW_LINEAGE_MOST || lw_encoder_open(found, &by) < 0) {
        lw_log(LW_LOG_WARN, "battery", "%s: its teacher %s is not there: it counts as kin of all",
               spec, found ? found : "(not said)");
        lw_errclear();
        out->unknown = true;
        return 0;
    }
    return add_links(found, by, out);
}

int lw_lineage_of(const char *spec, const lw_network *n, lw_lineage *out)
{
    lw_lineage l = {0};
    LW_TRY(add_links(spec, n, &l));
    *out = l;
    return 0;
}

static void link_text(const lw_link *l, lw_str *out)
{
    lw_str_add(out, lw_origin_name(l->origin));
    if (l->origin == LW_ORIGIN_RANDOM)
        return;
    lw_str_addf(out, " (%s, %s)", l->objective[0] ? l->objective : "objective not known",
                l->data[0] ? l->data : "data not known");
}

void lw_lineage_text(const lw_lineage *l, lw_str *out)
{
    for (int32_t i = 0; i < l->n; i++) {
        if (i > 0)
            lw_str_addf(out, " by %s, ", l->link[i].name);
        link_text(&l->link[i], out);
    }
    if (l->unknown)
        lw_str_add(out, " by a teacher that is not there");
}

/* ---- kinship --------------------------------------------------------------------------------- */

static bool same_or_unknown(const char *a, const char *b)
{
    return !*a || !*b || lw_str_eq(a, b);
}

static bool link_kin(const lw_link *a, const lw_link *b, lw_str *why)
{
    if (a->weights == b->weights && a->weights != 0) {
        if (why)
            lw_str_addf(why, "it has the weights of %s", b->name);
        return true;
    }
    if (a->origin == LW_ORIGIN_RANDOM || b->origin == LW_ORIGIN_RANDOM ||
        !lw_str_eq(a->family, b->family) || !same_or_unknown(a->objective, b->objective) ||
        !same_or_unknown(a->data, b->data))
        return false;
    if (why)
        lw_str_addf(why, "%s is of the family of %s, with the same objective and data (%s, %s)",
                    a->name, b->name, a->objective[0] ? a->objective : "not known",
                    a->data[0] ? a->data : "not known");
    return true;
}

bool lw_lineage_kin(const lw_lineage *a, const lw_lineage *b, lw_str *why)
{
    for (int32_t i = 0; i < a->n; i++)
        for (int32_t k = 0; k < b->n; k++)
            if (link_kin(&a->link[i], &b->link[k], why))
                return true;
    if ((a->unknown || b->unknown) && a->n > 0 && b->n > 0 &&
        a->link[0].origin != LW_ORIGIN_RANDOM && b->link[0].origin != LW_ORIGIN_RANDOM) {
        if (why)
            lw_str_addf(why, "the teacher of %s is not there to be compared",
                        (a->unknown ? a : b)->link[0].name);
        return true;
    }
    return false;
}

/* ---- what a run used ------------------------------------------------------------------------- */

static int add_one(const char *run, const char *used, char **spec, int32_t *n)
{
    if (!*used || lw_str_eq(used, "none"))
        return 0;
    spec[*n] = spec_from(run, used);
    return spec[(*n)++] ? 0 : LW_ENOMEM;
}

/* All of a list; paths with commas in them are found from the folders around the run, too. */
static int add_used(const char *run, const char *used, char **spec, int32_t *n)
{
    LW_CLEANUP(lw_free) char *whole = spec_from(run, used);
    char *one[LW_ENCODERS_MOST];
    int32_t count = 0;
    if (!whole)
        return LW_ENOMEM;
    if (!strchr(used, ',') || lw_path_exists(whole))
        return add_one(run, used, spec, n);
    int rc = lw_encoder_specs(used, one, &count);
    for (int32_t i = 0; i < count; i++) {
        if (rc == 0)
            rc = add_one(run, one[i], spec, n);
        lw_free(&one[i]);
    }
    return rc;
}

int lw_run_encoders(const char *source, char *spec[LW_RUN_ENCODERS], int32_t *n, bool *known)
{
    LW_CLEANUP(lw_str_clear) lw_str run = {0};
    LW_CLEANUP(lw_json_drop) json_t *yaml = NULL;
    run_of(path_of(source), &run);
    *n = 0;
    *known = run.len > 0;
    if (!*known)
        return 0;
    LW_TRY(read_yaml(lw_str_c(&run), &yaml));
    LW_TRY(add_used(lw_str_c(&run), text_of(yaml, "encoder"), spec, n));
    return lw_str_eq(text_of(yaml, "keep-best"), "eval_fd")
               ? add_used(lw_str_c(&run), text_of(yaml, "eval-encoder"), spec, n)
               : 0;
}

/* ---- random weights -------------------------------------------------------------------------- */

/* Weights of products by He's rule, everything else (norms, biases) as it is declared. */
static void draw(lw_store *s, uint64_t seed)
{
    lw_store_init(s, seed);
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        lw_store_entry e = *lw_store_at(s, i);
        if (e.type.rank < 2 || e.count == e.type.dim[0] || !lw_str_ends(e.name, "weight"))
            continue;
        e.init = (lw_init){LW_INIT_NORMAL, sqrtf(2.0f * (float)e.type.dim[0] / (float)e.count)};
        lw_store_init_entry(&e, seed, lw_store_edit(s, i, LW_SLAB_PARAM));
    }
    lw_store_touch(s, LW_SLAB_PARAM);
}

int lw_random_network(const char *dir, const json_t *config, const json_t *preparation,
                      uint64_t seed)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *said = json_copy((json_t *)(uintptr_t)config);
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    if (!said || json_object_set_new(said, RANDOM_KEY, json_integer((json_int_t)seed)) < 0)
        return LW_ENOMEM;
    LW_TRY(lw_network_of_config(said, dir, &n));
    LW_TRY(lw_store_new(true, &s));
    LW_TRY(lw_network_declare(n, s));
    draw(s, seed);
    LW_TRY(lw_mkdirs(dir));
    LW_TRY(lw_json_save(lw_path_join(&path, dir, "config.json"), said));
    LW_TRY(lw_store_save_as(s, LW_SLAB_PARAM, lw_path_join(&path, dir, LW_WEIGHTS_HF),
                            n->def->namings, LW_ELEM_F32, NULL, 0));
    return preparation
               ? lw_json_save(lw_path_join(&path, dir, "preprocessor_config.json"), preparation)
               : 0;
}
