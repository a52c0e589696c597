/* SPDX-License-Identifier: Apache-2.0 */
/* The policy's configuration and its config.json. */
#include "models/models.h"

#include <string.h>

static const char *const atom_words[LW_POLICY_ATOMS] = {
    "transe", "sum", "complex", "rotate", "concat", "attention", "transformer", "rnn"};
static const char *const state_words[LW_POLICY_STATES] = {"mean",   "atom_mean",   "sum",
                                                          "concat", "transformer", "rnn"};

static const char *const constant_words[LW_POLICY_CONSTANTS] = {"own", "frozen", "shared", "roles",
                                                                "none"};

lw_policy_config lw_policy_default(int32_t constants, int32_t predicates)
{
    return (lw_policy_config){.constants = constants,
                              .predicates = predicates,
                              .variables = 1000,
                              .embed = 250,
                              .hidden = 256,
                              .blocks = 8,
                              .max_atoms = 6,
                              .sqrt_scale = true};
}

static int in_range(const char *what, int32_t v, int32_t lo, int32_t hi)
{
    if (v < lo || v > hi)
        return lw_fail(LW_EUSAGE, "policy: %s is %d, must be %d to %d", what, v, lo, hi);
    return 0;
}

int lw_policy_check(const lw_policy_config *c)
{
    LW_TRY(in_range("constants", c->constants, 0, 1 << 28));
    LW_TRY(in_range("predicates", c->predicates, 1, 1 << 24));
    LW_TRY(in_range("variables", c->variables, 0, 1 << 24));
    LW_TRY(in_range("embedding size", c->embed, 1, 8192));
    LW_TRY(in_range("hidden size", c->hidden, 1, 8192));
    LW_TRY(in_range("residual blocks", c->blocks, 0, 256));
    LW_TRY(in_range("atoms", c->max_atoms, 1, 64));
    LW_TRY(in_range("atom composition", c->atom, 0, LW_POLICY_ATOMS - 1));
    LW_TRY(in_range("state composition", c->state, 0, LW_POLICY_STATES - 1));
    LW_TRY(in_range("rows of constants", c->constants_as, 0, LW_POLICY_CONSTANTS - 1));
    if (c->atom == LW_POLICY_ATOM_ATTENTION && c->embed % LW_POLICY_HEADS)
        return lw_fail(LW_EUSAGE,
                       "policy: attention needs an embedding size divisible by %d, not %d",
                       LW_POLICY_HEADS, c->embed);
    if (!(c->dropout >= 0 && c->dropout < 1))
        return lw_fail(LW_EUSAGE, "policy: dropout is %g, must be in [0, 1)", (double)c->dropout);
    if (!(c->temperature >= 0 && c->temperature <= 1e6f))
        return lw_fail(LW_EUSAGE, "policy: temperature is %g, must be 0 (none) or positive",
                       (double)c->temperature);
    return 0;
}

int32_t lw_policy_constant_rows(const lw_policy_config *c)
{
    switch (c->constants_as) {
    case LW_POLICY_CONSTANTS_SHARED:
        return c->constants + 1;
    case LW_POLICY_CONSTANTS_ROLES:
        return 3;
    case LW_POLICY_CONSTANTS_NONE:
        return 0;
    default:
        return c->constants;
    }
}

bool lw_policy_sees_query(const lw_policy_config *c)
{
    return c->constants_as == LW_POLICY_CONSTANTS_SHARED ||
           c->constants_as == LW_POLICY_CONSTANTS_ROLES;
}

int32_t lw_policy_argument(const lw_policy_config *c, int32_t arg, const int32_t query[2])
{
    if (arg == 0)
        return 0;
    if (arg > c->constants)
        return arg - c->constants + lw_policy_constant_rows(c);
    bool first = arg == query[0], second = arg == query[1];
    switch (c->constants_as) {
    case LW_POLICY_CONSTANTS_SHARED:
        return first || second ? arg : c->constants + 1;
    case LW_POLICY_CONSTANTS_ROLES:
        return first ? 1 : second ? 2 : 3;
    case LW_POLICY_CONSTANTS_NONE:
        return 0;
    default:
        return arg;
    }
}

float lw_policy_scale(const lw_policy_config *c, int32_t n)
{
    if (c->state == LW_POLICY_STATE_MEAN)
        return 1.0f / (float)c->max_atoms;
    return c->state == LW_POLICY_STATE_ATOM_MEAN && n > 0 ? 1.0f / (float)n : 1.0f;
}

json_t *lw_policy_to_json(const lw_policy_config *c)
{
    json_t *j = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:b, s:b, s:f, s:f}",
        "_class_name", "LeewayPolicy", "constants", c->constants, "predicates", c->predicates,
        "variables", c->variables, "embedding_size", c->embed, "hidden_size", c->hidden,
        "num_blocks", c->blocks, "max_atoms", c->max_atoms, "atom_embedder", atom_words[c->atom],
        "state_embedder", state_words[c->state], "constant_rows", constant_words[c->constants_as],
        "use_l2_norm", c->l2_norm, "sqrt_scale", c->sqrt_scale, "temperature",
        (double)c->temperature, "dropout", (double)c->dropout);
    if (j && c->names && json_object_set_new(j, "names", lw_json_hash(c->names)) < 0)
        lw_json_drop(&j);
    return j;
}

static int read_word(const json_t *j, const char *where, const char *key, const char *const *words,
                     int n, int32_t *out)
{
    const char *have;
    LW_TRY(lw_json_get_str(j, where, key, &have));
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], have) == 0) {
            *out = i;
            return 0;
        }
    }
    return lw_fail(LW_EFORMAT, "%s: '%s' is %s, which is not built here", where, key, have);
}

static int check_class(const json_t *j, const char *where)
{
    const char *other = json_string_value(json_object_get(j, "model_type")), *name;
    if (other && strcmp(other, "kge") == 0)
        return lw_fail(LW_EFORMAT,
                       "%s: these are embeddings of a knowledge graph (prove kge), no policy; they "
                       "are given by --kge",
                       where);
    if (other && !json_object_get(j, "_class_name"))
        return lw_fail(LW_EFORMAT, "%s: this is a %s, not a LeewayPolicy", where, other);
    LW_TRY(lw_json_get_str(j, where, "_class_name", &name));
    if (strcmp(name, "LeewayPolicy") != 0)
        return lw_fail(LW_EFORMAT, "%s: this is a %s, not a LeewayPolicy", where, name);
    return 0;
}

int lw_policy_from_json(const json_t *j, const char *where, lw_policy_config *out)
{
    lw_policy_config c = {.sqrt_scale = true};
    double temperature = 0, dropout = 0;
    LW_TRY(check_class(j, where));
    LW_TRY(lw_json_get_i32_in(j, where, "constants", 0, 1 << 28, &c.constants));
    LW_TRY(lw_json_get_i32_in(j, where, "predicates", 1, 1 << 24, &c.predicates));
    LW_TRY(lw_json_get_i32_in(j, where, "variables", 0, 1 << 24, &c.variables));
    LW_TRY(lw_json_get_i32_in(j, where, "embedding_size", 1, 8192, &c.embed));
    LW_TRY(lw_json_get_i32_in(j, where, "hidden_size", 1, 8192, &c.hidden));
    LW_TRY(lw_json_get_i32_in(j, where, "num_blocks", 0, 256, &c.blocks));
    LW_TRY(lw_json_get_i32_in(j, where, "max_atoms", 1, 64, &c.max_atoms));
    LW_TRY(read_word(j, where, "atom_embedder", atom_words, LW_POLICY_ATOMS, &c.atom));
    LW_TRY(read_word(j, where, "state_embedder", state_words, LW_POLICY_STATES, &c.state));
    if (json_object_get(j, "constant_rows")) /* folders of before have none: own */
        LW_TRY(read_word(j, where, "constant_rows", constant_words, LW_POLICY_CONSTANTS,
                         &c.constants_as));
    LW_TRY(lw_json_opt_bool(j, where, "use_l2_norm", &c.l2_norm));
    LW_TRY(lw_json_opt_bool(j, where, "sqrt_scale", &c.sqrt_scale));
    LW_TRY(lw_json_opt_f64(j, where, "temperature", &temperature));
    LW_TRY(lw_json_opt_f64(j, where, "dropout", &dropout));
    LW_TRY(lw_json_opt_hash(j, where, "names", &c.names));
    c.temperature = (float)temperature;
    c.dropout = (float)dropout;
    if (lw_policy_check(&c) < 0) /* the fields are well-formed, the network is not */
        return lw_fail(LW_EFORMAT, "%s: %s", where, lw_errmsg());
    *out = c;
    return 0;
}
