/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as the command line names it, opened for one knowledge base. */
#ifndef LW_PROVE_POLICY_H
#define LW_PROVE_POLICY_H

#include "models/models.h"
#include "models/proof/models_policy.h"
#include "jobs/prove/walk/prove_walks.h"

typedef struct lw_prove_policy {
    lw_policy_config config;
    lw_store *store;         /* frozen; NULL: uniform */
    char *name;              /* for reports: what it is and where its weights came from */
    lw_policy_source source; /* points into this struct: do not copy it */
} lw_prove_policy;

/*
 * spec: "uniform", "formula" or "formula:SEED" (lw_policy_formula at the published size, for
 * measuring), a run, checkpoint or model folder, or a bare .safetensors file under our or the
 * published names (lw_policy_load_file; the published defaults for what it cannot say). ema:
 * averaged weights where there are any. LW_EFORMAT when it was made for other symbols than kb's;
 * LW_EIO, LW_EFORMAT: no such folder, or what it lacks. out is zeroed first.
 */
int lw_prove_policy_open(const char *spec, bool ema, const lw_kb *kb, const lw_env_options *env,
                         lw_prove_policy *out);
void lw_prove_policy_close(lw_prove_policy *p);
/* LW_EFORMAT when a model trained on `names` (lw_kb_names) does not fit kb; a warning when they are
 * unknown (0). */
int lw_prove_check_names(uint64_t names, const char *model, const lw_kb *kb);

#endif
