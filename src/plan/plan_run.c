/* SPDX-License-Identifier: Apache-2.0 */
/* An exec: one frame, a table of slot addresses, and the replay loop. Running cannot allocate. */
#include "plan/plan_pass.h"
#include "plan/plan_profile.h"

#include <string.h>

/* An input or output of a device whose memory the host cannot address. */
typedef struct host_copy {
    void *data;
    bool bound;   /* it is the caller's */
    bool written; /* an input to be copied before the next run */
    bool shown;   /* read since the last run */
    bool fast;    /* of lw_memory.host_alloc */
} host_copy;

struct lw_exec {
    const lw_plan *plan;
    const lw_memory *memory;
    const lw_ranks *ranks; /* NULL: this one alone */
    lw_slab weights;
    lw_derived *derived;               /* perhaps with others */
    char *frame, *scratch, *constants; /* constants: with copies, the device's */
    size_t frame_bytes, scratch_total, constant_bytes;
    void **addr;       /* per slot */
    host_copy *copy;   /* per input and output; NULL: the host addresses them */
    bool sent;         /* copies of inputs may still go on */
    size_t fast_bytes; /* of copies that are fast */
    bool profile;
    bool launched;   /* each run starts its steps anew */
    bool alone;      /* this run stays on the calling thread */
    bool neighbour;  /* has one worker's scratch */
    double *seconds; /* per step and phase, summed */
    int64_t runs;
    lw_recording *recording[2]; /* states change places from run to run, and back */
    int turn;
};

static void *param_address(const lw_exec *e, const lw_attr_param *a)
{
    void *p = a->params->address(a->params->self, a->index, e->weights);
    return p ? p : a->params->address(a->params->self, a->index, LW_SLAB_PARAM);
}

/* The address of a constant: where the plan has it, or where the device reads it. */
static void *constant_address(const lw_exec *e, const lw_slot *s, size_t *at)
{
    if (!e->memory->write)
        return (void *)(uintptr_t)s->data;
    char *p = e->constants + *at;
    e->memory->write(e->memory->self, p, s->data, s->bytes);
    *at += LW_ROUND_UP(s->bytes, 64);
    return p;
}

/* A part of a part is further in. */
static char *view_address(const lw_exec *e, uint32_t slot)
{
    const lw_slot *s = &e->plan->slot[slot];
    size_t offset = 0;
    for (; s->place == LW_PLACE_VIEW; s = &e->plan->slot[slot]) {
        offset += s->offset;
        slot = s->base;
    }
    return (char *)e->addr[slot] + offset;
}

static int fill_addresses(lw_exec *e)
{
    const lw_plan *p = e->plan;
    size_t at = 0;
    for (uint32_t i = 1; i <= p->n_slots; i++) {
        const lw_slot *s = &p->slot[i];
        if (s->place == LW_PLACE_FRAME)
            e->addr[i] = e->frame + s->offset;
        else if (s->place == LW_PLACE_DERIVED)
            e->addr[i] = e->derived->data + s->offset;
        else if (s->place == LW_PLACE_CONST)
            e->addr[i] = constant_address(e, s, &at);
        else if (s->place == LW_PLACE_PARAM)
            e->addr[i] = param_address(e, s->param);
    }
    for (uint32_t i = 1; i <= p->n_slots; i++)
        if (p->slot[i].place == LW_PLACE_VIEW)
            e->addr[i] = view_address(e, i);
    for (int i = 0; i < p->n_output; i++) {
        const lw_attr_param *a = p->output[i].grad_of;
        if (!a)
            continue;
        void *slab = a->params->address(a->params->self, a->index, LW_SLAB_GRAD);
        if (!slab)
            return lw_fail(LW_EUSAGE, "parameter '%s' has no gradient slab", a->name);
        e->addr[p->output[i].slot] = slab;
    }
    return 0;
}

static const lw_plan_port *port_at(const lw_plan *p, int i)
{
    return i < p->n_input ? &p->input[i] : &p->output[i - p->n_input];
}

/* Copies of inputs are through. */
static void settle(lw_exec *e)
{
    if (e->sent)
        e->memory->settle(e->memory->self);
    e->sent = false;
}

static int make_copy(lw_exec *e, host_copy *c, size_t bytes)
{
    enum { FAST_MOST = 256 << 20 }; /* more are no longer few of a host's pages */
    const lw_memory *m = e->memory;
    const bool may = m->host_alloc && bytes <= FAST_MOST - LW_MIN(e->fast_bytes, FAST_MOST);
    *c = (host_copy){.data = may ? m->host_alloc(m->self, bytes) : NULL};
    c->fast = c->data != NULL;
    e->fast_bytes += c->fast ? bytes : 0;
    if (!c->fast)
        c->data = lw_bulk_alloc(bytes);
    return c->data ? 0 : LW_ENOMEM;
}

static void free_copy(lw_exec *e, host_copy *c, size_t bytes)
{
    settle(e);
    e->fast_bytes -= c->fast ? bytes : 0;
    if (c->fast)
        e->memory->host_free(e->memory->self, c->data, bytes);
    else if (!c->bound)
        lw_bulk_free(&c->data, bytes);
    *c = (host_copy){0};
}

static int make_copies(lw_exec *e)
{
    const lw_plan *p = e->plan;
    e->copy = lw_calloc((size_t)(p->n_input + p->n_output) + 1u, sizeof *e->copy);
    if (!e->copy)
        return LW_ENOMEM;
    for (int i = 0; i < p->n_input + p->n_output; i++)
        LW_TRY(make_copy(e, &e->copy[i], lw_type_bytes(port_at(p, i)->type)));
    return 0;
}

/* Whether a device has room for all of it, prepared weights too, is asked before any is taken. The weights are
 * there by now: what is free is without them. */
static int make_blocks(lw_exec *e)
{
    const lw_plan *p = e->plan;
    const lw_memory *m = e->memory;
    e->frame_bytes = LW_MAX(p->frame_bytes, 64);
    e->scratch_total = p->scratch_bytes * (e->neighbour ? 1 : (size_t)lw_pool_size(p->dev->pool));
    e->scratch_total = LW_MAX(e->scratch_total, 64);
    for (uint32_t i = 1; i <= p->n_slots && m->write; i++)
        if (p->slot[i].place == LW_PLACE_CONST)
            e->constant_bytes += LW_ROUND_UP(p->slot[i].bytes, 64);
    const size_t all = e->frame_bytes + e->scratch_total + e->constant_bytes;
    int rc = m->fits ? m->fits(m->self, all + lw_derived_room(p, e->weights)) : 0;
    if (rc < 0)
        return lw_fail_in(rc,
                          "values of the network and prepared weights, beside the weights there: ");
    e->frame = lw_memory_alloc(m, e->frame_bytes);
    e->derived = lw_derived_take(p, e->weights);
    e->scratch = lw_memory_alloc(m, e->scratch_total);
    e->constants = m->write ? lw_memory_alloc(m, e->constant_bytes) : NULL;
    return e->frame && e->derived && e->scratch && (e->constants || !m->write) ? 0 : LW_ENOMEM;
}

static void free_copies(lw_exec *e)
{
    const lw_plan *p = e->plan;
    for (int i = 0; e->copy && i < p->n_input + p->n_output; i++)
        free_copy(e, &e->copy[i], lw_type_bytes(port_at(p, i)->type));
    lw_free(&e->copy);
}

static int fill_exec(lw_exec *e)
{
    const lw_plan *p = e->plan;
    e->addr = lw_calloc(p->n_slots + 1u, sizeof *e->addr);
    e->seconds = lw_calloc((size_t)p->n_steps * LW_MAX_PHASES + 1u, sizeof *e->seconds);
    if (!e->addr || !e->seconds)
        return LW_ENOMEM;
    for (int i = 0; i < p->n_store; i++)
        LW_TRY(p->store[i]->place(p->store[i]->self, e->memory));
    LW_TRY(make_blocks(e));
    if (e->memory->write)
        LW_TRY(make_copies(e));
    return fill_addresses(e);
}

static int new_exec(const lw_plan *p, lw_slab weights, bool neighbour, lw_exec **out)
{
    LW_CLEANUP(lw_exec_free) lw_exec *e = lw_calloc(1, sizeof *e);
    if (!e)
        return LW_ENOMEM;
    e->plan = p;
    e->memory = p->dev->memory;
    e->weights = weights;
    e->neighbour = neighbour;
    int rc = fill_exec(e);
    if (rc < 0) /* a device that broke gave no memory, either */
        return rc == LW_ENOMEM && p->dev->failed ? LW_EDEVICE : rc;
    e->profile = lw_log_on(LW_LOG_DEBUG, "profile");
    *out = lw_steal(&e);
    return 0;
}

int lw_exec_new(const lw_plan *p, lw_slab weights, lw_exec **out)
{
    return new_exec(p, weights, false, out);
}

int lw_exec_new_beside(const lw_exec *owner, lw_exec **out)
{
    return new_exec(owner->plan, owner->weights, true, out);
}

void lw_exec_free(lw_exec **pp)
{
    lw_exec *e = *pp;
    if (!e)
        return;
    if (e->runs && lw_log_on(LW_LOG_DEBUG, "profile"))
        lw_exec_profile_log(e);
    for (int i = 0; i < 2; i++)
        if (e->recording[i])
            e->plan->dev->forget(e->plan->dev->self, &e->recording[i]);
    free_copies(e);
    lw_memory_free(e->memory, &e->frame, e->frame_bytes);
    lw_derived_drop(e->plan->dev, &e->derived);
    lw_memory_free(e->memory, &e->scratch, e->scratch_total);
    lw_memory_free(e->memory, &e->constants, e->constant_bytes);
    lw_free(&e->addr);
    lw_free(&e->seconds);
    lw_free(pp);
}

/* Number of the port among `n`, inputs first; -1: no such name. */
static int find_port(const lw_plan *p, const char *name, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(port_at(p, i)->name, name) == 0)
            return i;
    return -1;
}

/* Gives an input the exec's own memory again. A state and what becomes of it change places: whichever of the two has the
 * caller's memory now gets what the other one has not. */
static void unbind(lw_exec *e, int input)
{
    const lw_plan *p = e->plan;
    void **in = &e->addr[p->input[input].slot];
    char *own = e->frame + p->slot[p->input[input].slot].offset;
    for (int i = 0; i < p->n_output; i++) {
        if (p->output[i].next - 1 != input)
            continue;
        void **out = &e->addr[p->output[i].slot];
        char *other = e->frame + p->slot[p->output[i].slot].offset;
        if (*in != own && *in != other)
            *in = *out == own ? other : own;
        else if (*out != own && *out != other)
            *out = *in == own ? other : own;
        return;
    }
    *in = own;
}

int lw_exec_bind(lw_exec *e, const char *name, void *data)
{
    int i = find_port(e->plan, name, e->plan->n_input);
    if (i < 0)
        return lw_fail(LW_EUSAGE, "the plan has no input named '%s'", name);
    const lw_plan_port *port = &e->plan->input[i];
    size_t bytes = lw_type_bytes(port->type);
    if (!e->copy) {
        if (data)
            e->addr[port->slot] = data;
        else
            unbind(e, i);
        return 0;
    }
    host_copy *c = &e->copy[i];
    if (!data && !c->bound)
        return 0;
    host_copy now = {.data = data, .bound = data != NULL};
    if (!data)
        LW_TRY(make_copy(e, &now, bytes));
    free_copy(e, c, bytes);
    *c = now;
    c->written = true;
    return 0;
}

void *lw_exec_write(lw_exec *e, const char *name)
{
    int i = find_port(e->plan, name, e->plan->n_input);
    if (i < 0)
        return NULL;
    if (!e->copy)
        return e->addr[e->plan->input[i].slot];
    settle(e);
    e->copy[i].written = true;
    return e->copy[i].data;
}

const void *lw_exec_read(lw_exec *e, const char *name)
{
    int i = find_port(e->plan, name, e->plan->n_input + e->plan->n_output);
    if (i < 0)
        return NULL;
    const lw_plan_port *port = port_at(e->plan, i);
    if (!e->copy)
        return e->addr[port->slot];
    e->copy[i].shown = i >= e->plan->n_input;
    if (e->copy[i].shown) {
        e->memory->read(e->memory->self, e->copy[i].data, e->addr[port->slot],
                        lw_type_bytes(port->type));
        e->sent = false;
    }
    return e->copy[i].data;
}

/* Inputs go to the device; results that were read are no longer true, which whoever kept their
 * address shall see. */
static void begin_run(lw_exec *e)
{
    const lw_plan *p = e->plan;
    for (int i = 0; e->copy && i < p->n_input + p->n_output; i++) {
        host_copy *c = &e->copy[i];
        const lw_plan_port *port = port_at(p, i);
        if (c->written)
            (c->fast ? e->memory->send : e->memory->write)(e->memory->self, e->addr[port->slot],
                                                           c->data, lw_type_bytes(port->type));
        e->sent |= c->written && c->fast;
        if (c->shown)
            memset(c->data, 0xff, lw_type_bytes(port->type));
        c->written = c->bound;
        c->shown = false;
    }
}

void lw_exec_ranks(lw_exec *e, const lw_ranks *ranks)
{
    e->ranks = ranks;
}

lw_type lw_exec_type(const lw_exec *e, const char *name)
{
    int i = find_port(e->plan, name, e->plan->n_input + e->plan->n_output);
    return i < 0 ? (lw_type){0} : port_at(e->plan, i)->type;
}

void lw_exec_advance(lw_exec *e)
{
    const lw_plan *p = e->plan;
    e->turn ^= 1;
    for (int i = 0; i < p->n_output; i++) {
        uint32_t from = p->output[i].slot;
        int to = p->output[i].next - 1;
        if (to < 0)
            continue;
        void *made = e->addr[from];
        e->addr[from] = e->addr[p->input[to].slot];
        e->addr[p->input[to].slot] = made;
        if (e->copy)
            e->copy[to].written = false;
    }
}

/* ---- replay ---------------------------------------------------------------------------------- */

static int run_phase(const lw_exec *e, const lw_launch *l)
{
    const lw_device *d = e->plan->dev;
    LW_TRY(d->run(d->self, l));
    for (int i = 0; e->ranks && i < l->low->n_reductions; i++) {
        const lw_reduction *r = &l->low->reduction[i];
        if (r->phase == l->task.phase)
            e->ranks->reduce(e->ranks->self, r, (char *)l->task.work + r->offset);
    }
    return 0;
}

/* Mark of the beginning of a phase; that of its end is the next. */
static int32_t mark_of(const lw_exec *e, const lw_plan_step *s, int phase)
{
    return LW_MARK_STEPS + 2 * (int32_t)((s - e->plan->step) * LW_MAX_PHASES + phase);
}

/* A device with a clock of its own says after the run what phases took (gather). */
static int time_phase(lw_exec *e, const lw_plan_step *s, const lw_launch *l)
{
    const lw_device *d = e->plan->dev;
    int32_t mark = mark_of(e, s, l->task.phase);
    if (d->mark) {
        LW_TRY(d->mark(d->self, mark));
        LW_TRY(run_phase(e, l));
        return d->mark(d->self, mark + 1);
    }
    double t = lw_now();
    LW_TRY(run_phase(e, l));
    e->seconds[(s - e->plan->step) * LW_MAX_PHASES + l->task.phase] += lw_now() - t;
    return 0;
}

static int gather(lw_exec *e, const lw_plan_step *s)
{
    const lw_device *d = e->plan->dev;
    for (int k = 0; k < s->low.n_phases; k++) {
        double t = 0.0;
        LW_TRY(d->elapsed(d->self, mark_of(e, s, k), mark_of(e, s, k) + 1, &t));
        e->seconds[(s - e->plan->step) * LW_MAX_PHASES + k] += t;
    }
    return 0;
}

static int run_step(lw_exec *e, const lw_plan_step *s, const lw_tick *tick, bool may_stop)
{
    void *in[LW_MAX_IN] = {NULL},
         *out[LW_MAX_OUT] = {NULL}; /* absent trailing operands read NULL */
    for (int i = 0; i < s->node->n_in; i++)
        in[i] = s->in[i] ? e->addr[s->in[i]] : NULL;
    for (int i = 0; i < s->node->n_out; i++)
        out[i] = s->out[i] ? e->addr[s->out[i]] : NULL;
    lw_launch l = {.low = &s->low,
                   .scratch_stride = e->plan->scratch_bytes,
                   .alone = e->alone,
                   .may_stop = may_stop};
    l.task = (lw_task){.arg = s->low.arg,
                       .in = in,
                       .out = out,
                       .work = s->work ? e->addr[s->work] : NULL,
                       .table = s->table ? e->addr[s->table] : NULL,
                       .scratch = e->scratch,
                       .tick = tick};
    for (l.task.phase = 0; l.task.phase < s->low.n_phases; l.task.phase++)
        LW_TRY(e->profile ? time_phase(e, s, &l) : run_phase(e, &l));
    return 0;
}

static int run_some(lw_exec *e, int begin, int end, const lw_tick *tick, bool may_stop,
                    bool backward)
{
    for (int k = begin; k < end; k++)
        if (backward || !e->plan->step[k].node->backward)
            LW_TRY(run_step(e, &e->plan->step[k], tick, may_stop));
    for (int k = begin; k < end && e->profile && e->plan->dev->mark; k++)
        if (backward || !e->plan->step[k].node->backward)
            LW_TRY(gather(e, &e->plan->step[k]));
    return 0;
}

static int run_range(lw_exec *e, int begin, int end, const lw_tick *tick, bool may_stop)
{
    return run_some(e, begin, end, tick, may_stop, true);
}

typedef struct whole_run {
    lw_exec *e;
    const lw_tick *tick;
    bool backward;
} whole_run;

static int run_whole(void *arg)
{
    const whole_run *r = arg;
    return run_some(r->e, r->e->plan->n_prepare, r->e->plan->n_steps, r->tick, true, r->backward);
}

/* What is timed step by step, or waits for other ranks, is not recorded; nor are runs of a part. */
static int run_or_replay(whole_run r)
{
    lw_exec *e = r.e;
    const lw_device *d = e->plan->dev;
    if (!d->replay || e->launched || !e->copy || e->profile || e->ranks || !r.backward)
        return run_whole(&r);
    return d->replay(d->self, &e->recording[e->turn], r.tick, run_whole, &r);
}

static const lw_tick no_tick;

void lw_exec_prepare(lw_exec *e)
{
    if (lw_derived_stale(e->derived, e->plan, e->weights))
        run_range(e, 0, e->plan->n_prepare, &no_tick, false);
}

static int run_all(lw_exec *e, const lw_tick *tick, bool backward)
{
    LW_ASSERT(!e->neighbour, "a neighbour has scratch for one worker");
    const lw_plan *p = e->plan;
    tick = tick ? tick : &no_tick;
    begin_run(e);
    if (lw_derived_stale(e->derived, p, e->weights)) {
        int rc = run_range(e, 0, p->n_prepare, &no_tick, true);
        e->derived->made = rc == 0;
        LW_TRY(rc);
    }
    LW_TRY(run_or_replay((whole_run){e, tick, backward}));
    e->runs += e->profile && backward;
    return 0;
}

int lw_exec_run(lw_exec *e, const lw_tick *tick)
{
    return run_all(e, tick, true);
}

int lw_exec_run_forward(lw_exec *e, const lw_tick *tick)
{
    return run_all(e, tick, false);
}

void lw_exec_run_alone(lw_exec *e, const lw_tick *tick)
{
    e->alone = true;
    begin_run(e);
    run_range(e, e->plan->n_prepare, e->plan->n_steps, tick ? tick : &no_tick, false);
    e->runs += e->profile;
    e->alone = false;
}

void lw_exec_launch_each(lw_exec *e)
{
    e->launched = true;
}

int lw_device_time(const lw_device *d, int times, int (*call)(void *self), void *self,
                   double *seconds)
{
    double began = lw_now();
    if (d->mark)
        LW_TRY(d->mark(d->self, LW_MARK_BEGIN));
    for (int i = 0; i < times; i++)
        LW_TRY(call(self));
    if (!d->mark) {
        *seconds = lw_now() - began;
        return 0;
    }
    LW_TRY(d->mark(d->self, LW_MARK_END));
    return d->elapsed(d->self, LW_MARK_BEGIN, LW_MARK_END, seconds);
}

/* ---- profile --------------------------------------------------------------------------------- */

void lw_exec_profile(lw_exec *e, bool on)
{
    e->profile = on;
    e->runs = 0;
    memset(e->seconds, 0, sizeof *e->seconds * (size_t)e->plan->n_steps * LW_MAX_PHASES);
}

int lw_exec_step_count(const lw_exec *e)
{
    return e->plan->n_steps;
}

int lw_exec_prepare_count(const lw_exec *e)
{
    return e->plan->n_prepare;
}

int lw_exec_phase_count(const lw_exec *e, int i)
{
    return e->plan->step[i].low.n_phases;
}

lw_phase_time lw_exec_phase_time(const lw_exec *e, int i, int k)
{
    double sum = e->seconds[(ptrdiff_t)i * LW_MAX_PHASES + k];
    return (lw_phase_time){.seconds = e->runs ? sum / (double)e->runs : 0.0,
                           .tasks = e->plan->step[i].low.phase[k].n_tasks};
}

lw_step_time lw_exec_step_time(const lw_exec *e, int i)
{
    const lw_plan_step *s = &e->plan->step[i];
    lw_step_time t = {.op = lw_op_get(s->node->op)->name,
                      .scope = s->node->scope,
                      .backward = s->node->backward,
                      .type = lw_val_type(e->plan->graph, s->node->out[0]),
                      .flops = s->cost.flops,
                      .bytes = s->cost.bytes};
    for (int k = 0; k < s->low.n_phases; k++) {
        lw_phase_time phase = lw_exec_phase_time(e, i, k);
        t.seconds += phase.seconds;
        t.tasks += phase.tasks;
    }
    return t;
}
