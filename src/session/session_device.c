/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device that a job computes on. */
#include "session/session_device.h"

#include <stdio.h>
#include <string.h>

int lw_session_device_with(int threads, int32_t conv, lw_device **out)
{
    lw_backend_options o = {.threads = threads,
                            .bind = lw_backend_binds(),
                            .conv = (lw_conv_mode)conv,
                            .tuned = lw_backend_tuned()};
    LW_TRY(lw_isa_chosen(&o.isa));
    LW_TRY(lw_backend_check_chosen());
    return lw_backend_open(lw_backend_chosen(), &o, out);
}

const char *lw_conv_mode_name(int32_t conv)
{
    static const char *const names[] = {[LW_CONV_MODE_AUTO] = "auto",
                                        [LW_CONV_MODE_DIRECT] = "direct",
                                        [LW_CONV_MODE_WINOGRAD] = "winograd"};
    return names[conv];
}

int lw_session_device(int threads, lw_device **out)
{
    return lw_session_device_with(threads, LW_CONV_MODE_AUTO, out);
}

void lw_session_device_kind(const lw_device *device, char kind[LW_DEVICE_KINDS])
{
    snprintf(kind, LW_DEVICE_KINDS, "%.*s", (int)strcspn(device->name, ":"), device->name);
}

const char *lw_session_device_of(const char *isa)
{
    return isa && lw_str_eq(isa, "cuda") ? "cuda" : "cpu";
}

int lw_session_device_follow(const char *where, const char *then, bool change,
                             char kinds[LW_DEVICE_KINDS])
{
    char all[LW_DEVICE_KINDS];
    const bool same = strstr(then, kinds);
    if (!same && !change)
        return lw_fail(LW_EUSAGE,
                       "%s was begun on %s, now %s: last bits would differ; go on there, or "
                       "here with --device-change",
                       where, then, kinds);
    snprintf(all, sizeof all, "%s%s%s", then, same ? "" : ", ", same ? "" : kinds);
    memcpy(kinds, all, sizeof all);
    return 0;
}

enum { PROBE = 512 }; /* a product of two PROBE x PROBE matrices, cut by the kernel's own tasks */

typedef struct probe {
    const struct lw_gemm_kernels *k;
    float *a, *b, *c;
} probe;

static void probe_task(void *arg, int64_t task, int worker)
{
    const probe *p = arg;
    (void)worker;
    p->k->forward(p->c, PROBE, p->a, PROBE, p->b, PROBE, PROBE, PROBE, NULL, task);
}

double lw_session_flops(lw_device *dev)
{
    size_t square = PROBE * PROBE * sizeof(float);
    size_t packed = (size_t)lw_gemm_packed_floats(PROBE, PROBE) * sizeof(float);
    probe p = {.k = &dev->kernels->gemm,
               .a = lw_bulk_alloc(square),
               .b = lw_bulk_alloc(packed),
               .c = lw_bulk_alloc(square)};
    double best = 0.0;
    for (int i = 0; i < 6 && p.a && p.b && p.c; i++) {
        double t = lw_now();
        lw_pool_run(dev->pool, lw_gemm_tasks(dev->kernels->isa, LW_NUM_F32, PROBE, PROBE, PROBE),
                    probe_task, &p);
        double rate = 2.0 * PROBE * PROBE * PROBE / (lw_now() - t);
        best = rate > best ? rate : best;
    }
    lw_bulk_free(&p.a, square);
    lw_bulk_free(&p.b, packed);
    lw_bulk_free(&p.c, square);
    return best;
}
