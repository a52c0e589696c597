/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates and ranks: from options to what ranking wants. */
#include "cli/prove/cmd_prove_candidates.h"

int lw_prove_corruption(const lw_cli *cli, const lw_prove_candidates *c, lw_corrupt_options *out)
{
    *out = (lw_corrupt_options){
        .filtered = c->filtered, .domains = c->domains, .seed = (uint64_t)cli->global.seed};
    return lw_prove_count(c->n, &out->n);
}

int lw_prove_ranking(const lw_cli *cli, const lw_prove_cli *o, const lw_prove_candidates *c,
                     lw_prove_eval_options *out)
{
    lw_prove_eval_options e = lw_prove_eval_defaults();
    e.walks.env = lw_prove_env(o);
    e.walks.seed = (uint64_t)cli->global.seed;
    e.walks.precision = c->precision ? LW_NUM_BF16 : LW_NUM_F32;
    LW_TRY(lw_prove_corruption(cli, c, &e.corrupt));
    lw_prove_modes(c->modes, c->n_modes, e.mode);
    e.rank_rule = c->rank_rule;
    e.ranks_only = c->ranks_only || c->two_stage;
    e.two_stage = c->two_stage;
    e.least_model_memory = (size_t)o->least_model_memory << 20;
    *out = e;
    return 0;
}
