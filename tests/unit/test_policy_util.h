/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the policy: a small network, numbered states, a plan that runs. */
#ifndef LW_TEST_POLICY_UTIL_H
#define LW_TEST_POLICY_UTIL_H

#include "unit/test_store_util.h"

#include "models/models.h"
#include "plan/plan.h"
#include "backend/backend.h"

static inline lw_policy_config small(void)
{
    lw_policy_config c = lw_policy_default(21, 7);
    c.variables = 9;
    c.embed = 10;
    c.hidden = 24;
    c.blocks = 2;
    c.max_atoms = 4;
    c.temperature = 0.7f;
    return c;
}

static inline lw_store *formula_store(const lw_policy_config *c, uint64_t seed)
{
    lw_store *s = NULL;
    assert_ok(lw_store_new(false, &s));
    assert_ok(lw_policy_declare(c, s));
    assert_ok(lw_policy_formula(c, seed, s));
    return s;
}

/* ---- states: row r of a plan holds state `which` --------------------------------------------- */

/* Atoms of state `which`: 1 to max_atoms of them, pads behind. */
static inline int fill_state(const lw_policy_config *c, int which, int32_t *preds, int32_t *args)
{
    int n = 1 + which % c->max_atoms;
    for (int a = 0; a < c->max_atoms; a++) {
        preds[a] = a < n ? 1 + (which * 5 + a * 3) % c->predicates : 0;
        for (int k = 0; k < 2; k++)
            args[2 * a + k] = a < n
                                  ? 1 + (which * 7 + a * 11 + k * 4) % (c->constants + c->variables)
                                  : 0;
    }
    return n;
}

typedef struct rig {
    lw_device *dev;
    lw_plan *plan;
    lw_exec *e;
    int rows;
} rig;

static inline lw_policy_in inputs(lw_graph *g, const lw_policy_config *c, int rows)
{
    return (lw_policy_in){lw_input(g, "predicates", lw_type_of(LW_I32, 2, rows, c->max_atoms)),
                          lw_input(g, "arguments", lw_type_of(LW_I32, 2, rows, 2 * c->max_atoms)),
                          lw_input(g, "scale", lw_type_of(LW_F32, 1, rows))};
}

static inline void rig_close(rig *r)
{
    lw_exec_free(&r->e);
    lw_plan_free(&r->plan);
    lw_backend_close(&r->dev);
}

/* Row i holds state (first + i) % states. */
static inline void rig_run(rig *r, const lw_policy_config *c, int first, int states)
{
    int32_t *p = lw_exec_write(r->e, "predicates"), *a = lw_exec_write(r->e, "arguments");
    float *scale = lw_exec_write(r->e, "scale");
    for (int i = 0; i < r->rows; i++) {
        int n = fill_state(c, (first + i) % states, p + i * c->max_atoms, a + 2 * i * c->max_atoms);
        scale[i] = lw_policy_scale(c, n);
    }
    assert_ok(lw_exec_run(r->e, &(lw_tick){0}));
}

static inline const float *row(rig *r, const char *name, int i)
{
    lw_type t = lw_exec_type(r->e, name);
    return (const float *)lw_exec_read(r->e, name) + (int64_t)i * t.dim[1];
}

#endif
