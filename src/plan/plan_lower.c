/* SPDX-License-Identifier: Apache-2.0 */
/* lower: asks the device for every step's tasks, workspace, scratch and tables. */
#include "plan/plan_pass.h"

static bool is_fixed(const lw_plan *p, uint32_t slot)
{
    while (slot && p->slot[slot].place == LW_PLACE_VIEW)
        slot = p->slot[slot].base;
    if (!slot)
        return true;
    const lw_place place = p->slot[slot].place;
    return place == LW_PLACE_PARAM || place == LW_PLACE_CONST || place == LW_PLACE_DERIVED;
}

static uint32_t fixed_inputs(const lw_plan *p, const lw_plan_step *s)
{
    _Static_assert(LW_MAX_IN <= 32, "a bit for each input");
    uint32_t fixed = ~0u; /* what a node has no place for is absent */
    for (int i = 0; i < s->node->n_in; i++)
        fixed &= ~((uint32_t)!is_fixed(p, s->in[i]) << i);
    return fixed;
}

int lw_pass_lower(lw_plan *p)
{
    for (int k = 0; k < p->n_steps; k++) {
        lw_plan_step *s = &p->step[k];
        int rc = p->dev->lower(p->dev->self, p->arena, p->graph, s->node, fixed_inputs(p, s),
                               &s->low);
        if (rc < 0)
            return lw_fail_in(rc, "%s (%s): ", lw_op_get(s->node->op)->name, s->node->scope);
        LW_ASSERT(s->low.n_phases >= 1 && s->low.n_phases <= LW_MAX_PHASES, "%s: %d phases",
                  lw_op_get(s->node->op)->name, s->low.n_phases);
        if (s->low.work_bytes) {
            s->work = lw_plan_new_work(p, s->low.work_bytes, k);
            if (!s->work)
                return LW_ENOMEM;
        }
        if (s->low.table_bytes) {
            s->table = lw_plan_new_table(p, s->low.table, s->low.table_bytes);
            if (!s->table)
                return LW_ENOMEM;
        }
        p->scratch_bytes = LW_MAX(p->scratch_bytes, LW_ROUND_UP(s->low.scratch_bytes, 64));
    }
    return 0;
}
