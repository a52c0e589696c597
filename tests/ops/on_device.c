/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/on_device.h"

#include <stdio.h>

#include "backend/backend.h"
#include "kernels/check.h"
#include "ops/op_cases.h"

bool on_device_chosen(const on_device *o, const char *family, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", family, name);
    return !(o->first && o->wrong) && check_chosen(full, o->filter);
}

void on_device_compared(on_device *o, const char *name, int64_t compared, double worst, double tol)
{
    bool ok = worst <= tol;
    o->computed++;
    o->wrong += !ok;
    printf("  %-28s %-7s %10lld elements, max error %.3g, tolerance %.3g%s\n", name, o->device,
           (long long)compared, worst, tol, ok ? "" : "  WRONG");
}

void on_device_failed(on_device *o, const char *name, const char *why)
{
    o->computed++;
    o->wrong++;
    printf("  %-28s %-7s failed: %s\n", name, o->device, why);
}

void ops_on_device(on_device *o, lw_device *dev)
{
    const op_case *c;
    for (size_t i = 0; (c = op_case_at(i)); i++) {
        char name[64];
        op_result r;
        if (!on_device_chosen(o, "ops", c->name))
            continue;
        snprintf(name, sizeof name, "ops.%s", c->name);
        int rc = op_check_on(c, dev, &r);
        if (r.absent) {
            o->absent++;
            printf("  %-28s %-7s not computed there: %s\n", name, o->device, lw_errmsg());
        } else if (rc < 0) {
            on_device_failed(o, name, lw_errmsg());
        } else {
            on_device_compared(o, name, r.compared, r.worst, c->tol);
        }
    }
}

int on_device_run(on_device *o, int least)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    const lw_backend_options options = {.threads = 1, .isa = lw_isa_best()};
    int rc = lw_backend_open(o->device, &options, &dev);
    if (rc == 0) {
        ops_on_device(o, dev);
        drift_on_device(o, dev);
        rc = lw_backend_failed_on(dev);
    }
    if (rc < 0) {
        fprintf(stderr, "leeway check: %s\n", lw_errmsg());
        return lw_exit_code(rc);
    }
    if (o->wrong == 0 && check_unknown(o->filter))
        return 2;
    printf("%d cases on %s: %d wrong; %d have ops that are not computed there\n", o->computed,
           o->device, o->wrong, o->absent);
    if (o->computed < least)
        fprintf(stderr, "leeway check: %s computed %d cases, fewer than %d\n", o->device,
                o->computed, least);
    return o->wrong > 0 || o->computed < least;
}
