/* SPDX-License-Identifier: Apache-2.0 */
/* The list of suites and the loop over their cases. */
#include <math.h>
#include <string.h>

#include "bench/bench_case.h"
#include "session/session_device.h"

const lw_bench_suite lw_bench_suites[] = {
    {"kernels", lw_bench_suite_kernels, false},
    {"unet", lw_bench_suite_unet, false},
    {"resolution", lw_bench_suite_resolution, false},
    {"train", lw_bench_suite_train, false},
    {"field", lw_bench_suite_field, false},
    {"mae", lw_bench_suite_mae, false},
    {"dit", lw_bench_suite_dit, false},
    {"queue", lw_bench_suite_queue, true},
    {"table8", lw_bench_suite_table8, false},
    {"parity", lw_bench_suite_parity, false},
    {"attention", lw_bench_suite_attention, false},
    {"sampling", lw_bench_suite_sampling, false},
    {"startup", lw_bench_suite_startup, false},
    {"prove", lw_bench_suite_prove, false},
    {"eval", lw_bench_suite_eval, true},
    {"mc", lw_bench_suite_mc, false},
    {"stream", lw_bench_suite_stream, false},
};
const size_t lw_bench_n_suites = LW_COUNT(lw_bench_suites);

bool lw_bench_wants(lw_bench_run *r, const char *name)
{
    char full[96];
    lw_bench_case *c;
    snprintf(full, sizeof full, "%s.%s", r->suite, name);
    if (r->config->filter && !strstr(full, r->config->filter))
        return false;
    if (r->counting)
        lw_bench_new_case(r, name, "", 0, &c); /* out of memory shows as a missing case */
    return !r->counting;
}

int lw_bench_new_case(lw_bench_run *r, const char *name, const char *method, int32_t batch,
                      lw_bench_case **out)
{
    size_t cap = (size_t)r->out->n;
    const double none = (double)__builtin_nan("");
    LW_TRY(lw_grow(&r->out->cases, &cap, (size_t)r->out->n + 1, sizeof *r->out->cases));
    lw_bench_case *c = &r->out->cases[r->out->n++];
    *c = (lw_bench_case){.batch = batch,
                         .peak_share = none,
                         .error = none,
                         .base_ms = none,
                         .base_cpu_ms = none,
                         .difference = none};
    snprintf(c->suite, sizeof c->suite, "%s", r->suite);
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->method, sizeof c->method, "%s", method ? method : "");
    *out = c;
    return 0;
}

int lw_bench_skip(lw_bench_run *r, const char *name, const char *method, int32_t batch,
                  size_t memory, const char *why)
{
    lw_bench_case *c;
    LW_TRY(lw_bench_new_case(r, name, method, batch, &c));
    c->memory = memory;
    snprintf(c->skipped, sizeof c->skipped, "%s", why);
    lw_observe_say(r->obs, "%s: %s", name, why);
    return 0;
}

size_t lw_bench_memory_limit(const lw_bench_run *r)
{
    return r->config->memory_limit > 0 ? (size_t)ceil(r->config->memory_limit) : lw_memory_total();
}

static int run_suites(lw_bench_run *r)
{
    bool known = false;
    for (size_t i = 0; i < lw_bench_n_suites; i++) {
        r->suite = lw_bench_suites[i].name;
        if (r->config->suite && !lw_str_eq(r->config->suite, r->suite))
            continue;
        known = true;
        if (lw_bench_suites[i].of_cpu && r->dev->mark) {
            if (!r->config->suite)
                continue;
            lw_backend_refuse();
            return lw_fail(LW_EDEVICE, "bench %s is computed by the CPU; use --device cpu",
                           r->suite);
        }
        LW_TRY(lw_bench_suites[i].run(r));
    }
    return known ? 0 : lw_fail(LW_EUSAGE, "there is no suite '%s'", r->config->suite);
}

/* Names all cases into the empty bench. */
static int count_cases(lw_bench_run *r)
{
    r->counting = true;
    LW_TRY(run_suites(r));
    r->counting = false;
    r->total = r->out->n;
    return r->total > 0 ? 0
                        : lw_fail(LW_EUSAGE,
                                  "--filter %s: no case has such a name; "
                                  "--list shows all of them",
                                  r->config->filter);
}

static int bench(lw_bench_run *r)
{
    const lw_bench_config *c = r->config;
    r->out->warm_up = c->warm_up;
    r->out->samples = c->samples;
    LW_TRY(count_cases(r));
    r->out->machine = lw_machine_json(lw_pool_size(r->dev->pool), r->isa);
    if (!r->out->machine)
        return lw_fail(LW_ENOMEM, "no memory for the machine's description");
    json_object_set_new(r->out->machine, "conv", json_string(lw_conv_mode_name(c->conv)));
    if (c->list)
        return 0;
    r->out->n = 0;
    lw_observe_progress(r->obs, "bench", 0, r->total, "what this machine can do");
    if (r->dev->mark) { /* the peaks are the host's */
        json_object_set_new(r->out->machine, "device", json_string(r->dev->name));
        return run_suites(r);
    }
    LW_TRY(lw_machine_measure(lw_pool_size(r->dev->pool), r->isa, r->obs, &r->peak));
    json_object_set_new(r->out->machine, "peak", lw_machine_peak_json(&r->peak));
    return run_suites(r);
}

int lw_job_bench(const lw_bench_config *config, const lw_observer *obs, lw_bench *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL, *ref = NULL;
    lw_bench b = {0};
    lw_bench_run r = {.config = config, .obs = obs, .out = &b};
    LW_TRY(lw_isa_chosen(&r.isa));
    LW_TRY(lw_session_device_with(config->threads, config->conv, &dev));
    const lw_backend_options plain = {.threads = config->threads, .isa = LW_ISA_REF};
    LW_TRY(lw_backend_open("cpu", &plain, &ref));
    lw_pool_watch(dev->pool, obs);
    lw_pool_watch(ref->pool, obs);
    r.dev = dev;
    r.ref = ref;
    int rc = bench(&r);
    if (rc < 0)
        lw_bench_clear(&b);
    else
        *out = b;
    return rc;
}

void lw_bench_clear(lw_bench *b)
{
    for (int32_t i = 0; i < b->n; i++) {
        lw_free(&b->cases[i].ms);
        lw_free(&b->cases[i].part);
        lw_json_drop(&b->cases[i].published);
    }
    lw_free(&b->cases);
    lw_json_drop(&b->machine);
    b->n = 0;
}
