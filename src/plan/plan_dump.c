/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as text: steps in order, then the memory map. Golden-tested: no pointers, no times. */
#include "plan/plan_pass.h"

static const char *place_name(lw_place p)
{
    static const char *const names[] = {"-", "frame", "derived", "param", "const", "view"};
    return names[p];
}

static void print_ref(lw_str *s, const lw_plan *p, uint32_t slot)
{
    if (!slot)
        lw_str_add(s, "-");
    else if (p->slot[slot].place == LW_PLACE_PARAM)
        lw_str_addf(s, "'%s'", p->slot[slot].param->name);
    else
        lw_str_addf(s, "s%u", slot);
}

static void print_step(lw_str *s, const lw_plan *p, int k)
{
    const lw_plan_step *t = &p->step[k];
    lw_str_addf(s, "%4d %-16s ", k, lw_op_get(t->node->op)->name);
    for (int i = 0; i < t->node->n_out; i++) {
        lw_str_add(s, i ? "," : "");
        print_ref(s, p, t->out[i]);
    }
    lw_str_add(s, " <- ");
    for (int i = 0; i < t->node->n_in; i++) {
        lw_str_add(s, i ? "," : "");
        print_ref(s, p, t->in[i]);
    }
    lw_str_add(s, "  ");
    lw_type_print(s, lw_val_type(p->graph, t->node->out[0]));
    if (lw_op_get(t->node->op)->print) {
        lw_str_add(s, " {");
        lw_op_get(t->node->op)->print(s, t->node);
        lw_str_add(s, "}");
    }
    lw_str_add(s, " tasks");
    for (int i = 0; i < t->low.n_phases; i++)
        lw_str_addf(s, "%s%lld", i ? "+" : " ", (long long)t->low.phase[i].n_tasks);
    for (int i = 0; i < t->low.n_reductions; i++) {
        const lw_reduction *r = &t->low.reduction[i];
        static const char *const ops[] = {"mean", "sum", "min"};
        lw_str_addf(s, "%s%s of %lld '%s' after phase %d", i ? ", " : " ranks ", ops[r->op],
                    (long long)r->count, r->name, r->phase);
    }
    lw_str_addf(s, " flop %.3g byte %.3g", t->cost.flops, t->cost.bytes);
    lw_str_addf(s, "%s%s\n", t->node->scope[0] ? "  ; " : "", t->node->scope);
}

void lw_plan_print(lw_str *s, const lw_plan *p)
{
    lw_plan_info info = lw_plan_get_info(p);
    lw_str_addf(
        s,
        "plan for %s: %d prepare steps, %d steps, %.4g FLOP, values %zu bytes, derived %zu bytes\n",
        p->dev->name, info.n_prepare, info.n_steps, info.flops, p->frame_bytes, p->derived_bytes);
    for (int k = 0; k < p->n_steps; k++) {
        if (k == p->n_prepare && k)
            lw_str_add(s, "-- run\n");
        print_step(s, p, k);
    }
    lw_str_add(s, "-- memory\n");
    for (uint32_t i = 1; i <= p->n_slots; i++) {
        const lw_slot *v = &p->slot[i];
        if (v->place == LW_PLACE_FRAME || v->place == LW_PLACE_DERIVED)
            lw_str_addf(s, "s%-4u %-7s offset %10zu bytes %10zu steps %d..%d\n", i,
                        place_name(v->place), v->offset, v->bytes, v->first,
                        v->last == INT32_MAX ? -1 : v->last);
        else if (v->place == LW_PLACE_VIEW)
            lw_str_addf(s, "s%-4u view    in s%u at %zu steps %d..%d\n", i, v->base, v->offset,
                        v->first, v->last);
    }
    for (int i = 0; i < p->n_input; i++)
        lw_str_addf(s, "input '%s' s%u\n", p->input[i].name, p->input[i].slot);
    for (int i = 0; i < p->n_output; i++)
        lw_str_addf(s, "output '%s' s%u%s\n", p->output[i].name, p->output[i].slot,
                    p->output[i].grad_of ? " (gradient slab)"
                    : p->output[i].next  ? " (state)"
                                         : "");
}
