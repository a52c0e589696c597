/* SPDX-License-Identifier: Apache-2.0 */
/* What `prove eval`, `prove compare` and `prove rank` are told of candidates and ranks, whatever else each adds. */
#ifndef LW_CMD_PROVE_CANDIDATES_H
#define LW_CMD_PROVE_CANDIDATES_H

#include "cli/prove/cmd_prove.h"
#include "jobs/prove/rank/rank_job.h"

typedef struct lw_prove_candidates {
    const char *n, *modes[LW_CORRUPT_MODES]; /* --n-corruptions, --corruption-modes */
    int32_t n_modes, domains, rank_rule;
    int32_t precision; /* of the walks: 0 f32, 1 bf16 */
    bool filtered, ranks_only, two_stage;
} lw_prove_candidates;

/* Rows over a struct T that has these as `field`; groups are the commands' own. */
#define LW_PROVE_CANDIDATES_N(T, field, many, in)                                        \
    {                                                                                    \
        LW_OPT(T, field.n), .name = "n-corruptions", .fallback = many, .unit = "number", \
                            .group = in,                                                 \
                            .help = "of each query in each mode, drawn without "         \
                                    "replacement; all or 0: every one there is"          \
    }
#define LW_PROVE_CANDIDATES_MODES(T, field, in)                                        \
    {                                                                                  \
        LW_OPT_LIST(T, field.modes, field.n_modes),                                    \
            .name = "corruption-modes", .distinct = true, .fallback = "head,tail",     \
            .choices = "head|tail|both", .group = in,                                  \
            .help = "what is replaced; metrics are means over modes; both: heads and " \
                    "tails in one list, half of each"                                  \
    }
#define LW_PROVE_CANDIDATES_FILTERED(T, field, in)                                              \
    {                                                                                           \
        LW_OPT(T, field.filtered),                                                              \
            .name = "filtered", .fallback = "true", .group = in,                                \
            .help =                                                                             \
                "pass over known positives of train, valid and test, but rank against them too" \
    }
#define LW_PROVE_CANDIDATES_DOMAINS(T, field, in)                                             \
    {                                                                                         \
        LW_OPT(T, field.domains),                                                             \
            .name = "domains", .choices = "auto|yes|no", .fallback = "auto", .group = in,     \
            .help = "replace by constants of the same domain: when the dataset has domains, " \
                    "always, never"                                                           \
    }
#define LW_PROVE_CANDIDATES_RULE(T, field, in)                                  \
    {                                                                           \
        LW_OPT(T, field.rank_rule),                                             \
            .name = "rank-rule", .choices = "realistic|optimistic|pessimistic", \
            .fallback = "realistic", .group = in,                               \
            .help = "rank = 1 + higher + ties/2, 1 + higher, 1 + higher + ties" \
    }

#define LW_PROVE_CANDIDATES_STAGES(T, field, in)                                              \
    {                                                                                         \
        LW_OPT(T, field.two_stage),                                                           \
            .name = "two-stage", .group = in,                                                 \
            .help = "ranks only, walked in bf16 and, where that leaves a choice or a "        \
                    "comparison of scores open, in f32: the ranks of f32, sooner where bf16 " \
                    "is fast; no certificate, the margin is measured"                         \
    }

/* What they say of corruptions. LW_EUSAGE: no number. */
int lw_prove_corruption(const lw_cli *cli, const lw_prove_candidates *c, lw_corrupt_options *out);
/* The defaults with all of these, the limits of o and the seed of the command. LW_EUSAGE: no number. */
int lw_prove_ranking(const lw_cli *cli, const lw_prove_cli *o, const lw_prove_candidates *c,
                     lw_prove_eval_options *out);

#endif
