/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW and SGD against PyTorch's formulas in double over ten steps; ranges, splits, clipping. */
#include <math.h>
#include <stdlib.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

enum { N = 1003, STEPS = 10 };

typedef struct model {
    double p[N], m[N], v[N], ema[N];
} model;

/* torch.optim.AdamW's single-tensor step, and EMA, as published, in double. */
static void torch_step(model *w, const float *g, const lw_adamw *o, int t, const int *decay)
{
    for (int i = 0; i < N; i++) {
        if (decay[i] < 0)
            continue;
        double gi = (double)g[i] * o->grad_scale;
        w->p[i] *= 1.0 - o->lr * (decay[i] ? o->weight_decay : 0.0);
        w->m[i] = o->beta1 * w->m[i] + (1.0 - o->beta1) * gi;
        w->v[i] = o->beta2 * w->v[i] + (1.0 - o->beta2) * gi * gi;
        double step_size = o->lr / (1.0 - pow(o->beta1, t));
        double denom = sqrt(w->v[i]) / sqrt(1.0 - pow(o->beta2, t)) + o->eps;
        w->p[i] -= step_size * w->m[i] / denom;
        w->ema[i] = o->ema_decay * w->ema[i] + (1.0 - o->ema_decay) * w->p[i];
    }
}

static void ten_steps(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    const lw_optim_range range[] = {{0, 100, 1}, {100, 333, 0}, {340, 700, 1}, {700, 1003, 0}};
    int decay[N];
    for (int i = 0; i < N; i++)
        decay[i] = -1; /* 333 .. 339 lie in no range */
    for (size_t r = 0; r < LW_COUNT(range); r++)
        for (ptrdiff_t i = range[r].begin; i < range[r].end; i++)
            decay[i] = range[r].decay;
    float *p = check_in(t, N, 1, -1, 1), *m = check_in(t, N, 1, 0, 0), *v = check_in(t, N, 0, 0, 0);
    float *ema = check_copy(t, p, N, 1);
    float *p2 = check_copy(t, p, N, 0), *m2 = check_copy(t, m, N, 0), *v2 = check_copy(t, v, N, 0);
    float *ema2 = check_copy(t, p, N, 0);
    model *w = calloc(1, sizeof *w);
    for (int i = 0; i < N; i++)
        w->p[i] = w->ema[i] = (double)p[i];
    for (int s = 1; s <= STEPS; s++) {
        float *g = check_in(t, N, 1, -0.3, 0.4);
        lw_adamw o = {.lr = 1e-3 * s,
                      .beta1 = 0.9,
                      .beta2 = 0.95,
                      .eps = 1e-8,
                      .weight_decay = 0.1,
                      .bias1 = 1.0 - pow(0.9, s),
                      .bias2 = 1.0 - pow(0.95, s),
                      .grad_scale = 0.5,
                      .ema_decay = 0.9};
        torch_step(w, g, &o, s, decay);
        k.optim.adamw(p, m, v, ema, g, &o, range, LW_COUNT(range), 0, N);
        for (int from = 0; from < N; from += 77) /* the same step in pieces */
            k.optim.adamw(p2, m2, v2, ema2, g, &o, range, LW_COUNT(range), from,
                          from + 77 < N ? from + 77 : N);
    }
    check_close(t, p, w->p, N, (check_tol){.abs = 5e-7, .rel = 1e-6}, "p");
    check_close(t, m, w->m, N, (check_tol){.abs = 1e-7, .rel = 1e-6}, "m");
    check_close(t, v, w->v, N, (check_tol){.abs = 1e-8, .rel = 1e-6}, "v");
    check_close(t, ema, w->ema, N, (check_tol){.abs = 5e-7, .rel = 1e-6}, "ema");
    check_same(t, p2, p, N * 4, "p in pieces");
    check_same(t, v2, v, N * 4, "v in pieces");
    check_same(t, ema2, ema, N * 4, "ema in pieces");
    free(w);
}

/* torch.optim.SGD's single-tensor step with momentum and nesterov, dampening 0, and EMA, in double. */
static void torch_sgd(model *w, const float *g, const lw_sgd *o, int t)
{
    for (int i = 0; i < N; i++) {
        double gi = (double)g[i] * o->grad_scale + o->weight_decay * w->p[i];
        w->m[i] = t == 1 ? gi : o->momentum * w->m[i] + gi;
        w->p[i] -= o->lr * (gi + o->momentum * w->m[i]);
        w->ema[i] = o->ema_decay * w->ema[i] + (1.0 - o->ema_decay) * w->p[i];
    }
}

static void ten_steps_of_sgd(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    float *p = check_in(t, N, 1, -1, 1), *m = check_in(t, N, 1, 0, 0),
          *ema = check_copy(t, p, N, 1);
    float *p2 = check_copy(t, p, N, 0), *m2 = check_copy(t, m, N, 0),
          *ema2 = check_copy(t, p, N, 0);
    float *p3 = check_copy(t, p, N, 0), *m3 = check_copy(t, m, N, 0); /* without an average */
    model *w = calloc(1, sizeof *w);
    for (int i = 0; i < N; i++)
        w->p[i] = w->ema[i] = (double)p[i];
    for (int s = 1; s <= STEPS; s++) {
        float *g = check_in(t, N, 1, -0.3, 0.4);
        const lw_sgd o = {.lr = 1e-2 * s,
                          .momentum = 0.9,
                          .weight_decay = 0.05,
                          .grad_scale = 0.5,
                          .ema_decay = 0.9};
        torch_sgd(w, g, &o, s);
        k.optim.sgd(p, m, ema, g, &o, 0, N);
        k.optim.sgd(p3, m3, NULL, g, &o, 0, N);
        for (int from = 0; from < N; from += 77) /* the same step in pieces */
            k.optim.sgd(p2, m2, ema2, g, &o, from, from + 77 < N ? from + 77 : N);
    }
    check_close(t, p, w->p, N, (check_tol){.abs = 1e-6, .rel = 1e-6}, "p");
    check_close(t, m, w->m, N, (check_tol){.abs = 1e-6, .rel = 1e-6}, "m");
    check_close(t, ema, w->ema, N, (check_tol){.abs = 1e-6, .rel = 1e-6}, "ema");
    check_same(t, p2, p, N * 4, "p in pieces");
    check_same(t, m2, m, N * 4, "m in pieces");
    check_same(t, ema2, ema, N * 4, "ema in pieces");
    check_same(t, p3, p, N * 4, "p without an average");
    free(w);
}

static void without_ema(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    const lw_adamw o = {.lr = 0.01,
                        .beta1 = 0.9,
                        .beta2 = 0.999,
                        .eps = 1e-8,
                        .bias1 = 0.1,
                        .bias2 = 0.001,
                        .grad_scale = 1,
                        .ema_decay = 0.99};
    for (int n = 1; n < 40; n++) {
        const lw_optim_range whole = {0, n, 1};
        float *g = check_in(t, n, 1, -1, 1), *p = check_in(t, n, 1, -1, 1),
              *want = check_copy(t, p, n, 0);
        float *m = check_in(t, n, 1, 0, 0), *v = check_in(t, n, 1, 0, 0);
        float *ema = check_in(t, n, 1, -1, 1), *ema_want = check_copy(t, ema, n, 0);
        float *m2 = check_in(t, n, 1, 0, 0), *v2 = check_in(t, n, 1, 0, 0);
        k.optim.adamw(p, m, v, NULL, g, &o, &whole, 1, 0, n);
        lw_optim_adamw_ref(want, m2, v2, NULL, g, &o, &whole, 1, 0, n);
        check_close_f(t, p, want, n, (check_tol){.abs = 1e-7, .rel = 1e-6}, "p n=%d", n);
        k.optim.ema(ema, p, 0.99, 0, n);
        lw_optim_ema_ref(ema_want, p, 0.99, 0, n);
        check_close_f(t, ema, ema_want, n, (check_tol){.abs = 1e-7, .rel = 1e-6}, "ema n=%d", n);
        check_next(t);
    }
}

static void clipping(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    float *g = check_in(t, 10000, 1, -1, 1);
    double sum = 0.0, part[3], coef, norm;
    for (int i = 0; i < 10000; i++)
        sum += (double)g[i] * (double)g[i];
    k.reduce.chunk_sumsq(part, g, 10000, 0, 3);
    static const double max_norm[] = {2.0, 1e6, 0.0};
    for (int i = 0; i < 3; i++) {
        k.optim.clip(&coef, &norm, part, 3, 0.5, max_norm[i]);
        double want[2] = {0.5 * sqrt(sum), i == 0 ? 0.5 * 2.0 / (0.5 * sqrt(sum) + 1e-6) : 0.5};
        float got[2] = {(float)norm, (float)coef};
        check_close(t, got, want, 2, (check_tol){.rel = 1e-6}, "max_norm %g", max_norm[i]);
    }
    /* No gradient is left as it is, one as short as what keeps from dividing by 0 is halved. */
    static const double length[] = {0.0, 1e-6};
    for (int i = 0; i < 2; i++) {
        k.optim.clip(&coef, &norm, &(double){length[i] * length[i]}, 1, 1.0, 1e-6);
        check_close(t, &(float){(float)coef}, &(double){i ? 0.5 : 1.0}, 1, (check_tol){.rel = 1e-6},
                    "length %g", length[i]);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"ten_steps", ten_steps},
                                       {"ten_steps_of_sgd", ten_steps_of_sgd},
                                       {"without_ema", without_ema},
                                       {"clipping", clipping}};
    return check_main(argc, argv, "optim", cases, LW_COUNT(cases));
}
