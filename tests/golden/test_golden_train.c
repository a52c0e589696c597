/* SPDX-License-Identifier: Apache-2.0 */
/* Ten DDPM training steps against PyTorch: losses, gradient norms, final parameters and averages;
 * and the same bits for any thread count. */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

typedef struct trainer {
    const char *name;
    int32_t batch, steps;
    double lr, wd, clip, ema;
    lw_unet_config c;
    lw_store *s;
    lw_device *dev;
    lw_plan *plan;
    lw_exec *e;
    double *alpha_bar;
    lw_st_file *file;
} trainer;

static double meta_number(const lw_st_file *f, const char *key)
{
    const char *text = lw_st_meta(f, key);
    double v = 0.0;
    assert_non_null(text);
    assert_ok(lw_parse_f64(text, &v));
    return v;
}

static void compile(trainer *t)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_type image = lw_type_of(LW_F32, 4, t->batch, t->c.image_size, t->c.image_size, 3);
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(t->s)};
    lw_network_in in = {.x = lw_input(g, "x", image),
                        .t = lw_input(g, "t", lw_type_of(LW_F32, 1, t->batch))};
    if (t->c.classes)
        in.classes = lw_input(g, "classes", lw_type_of(LW_I32, 1, t->batch));
    lw_val eps = lw_input(g, "eps", image), y = lw_unet(&b, &t->c, in);
    lw_val loss = lw_mean(g, lw_sqr(g, lw_sub(g, y, eps)), LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    assert_ok(lw_grad_params(g, loss, LW_NOVAL));
    assert_ok(lw_compile(g, t->dev, NULL, &t->plan));
    assert_ok(lw_exec_new(t->plan, LW_SLAB_PARAM, &t->e));
}

static void trainer_open(trainer *t, const char *name, lw_isa isa, int threads)
{
    char path[256];
    json_t *j = NULL;
    *t = (trainer){.name = name};
    snprintf(path, sizeof path, "train_%s", name);
    t->file = golden_open(path);
    t->batch = (int32_t)meta_number(t->file, "batch");
    t->steps = (int32_t)meta_number(t->file, "steps");
    t->lr = meta_number(t->file, "lr");
    t->wd = meta_number(t->file, "wd");
    t->clip = meta_number(t->file, "clip");
    t->ema = meta_number(t->file, "ema");
    t->alpha_bar = golden_get(t->file, "alpha_bar", NULL);
    snprintf(path, sizeof path, GOLDEN "unet_%s_config.json", name);
    assert_ok(lw_json_load(path, &j));
    assert_ok(lw_unet_from_json(j, path, &t->c));
    lw_json_drop(&j);
    assert_ok(lw_store_new(false, &t->s));
    assert_ok(lw_unet_declare(&t->c, t->s));
    golden_fill_store(t->s);
    t->dev = golden_device(isa, threads);
    compile(t);
}

static void trainer_close(trainer *t)
{
    lw_exec_free(&t->e);
    lw_plan_free(&t->plan);
    lw_store_free(&t->s);
    lw_backend_close(&t->dev);
    lw_st_close(&t->file);
    free(t->alpha_bar);
}

/* Step's images, noise, times and labels, all from the formula. */
static void bind_step(trainer *t, int step)
{
    char tag[64];
    int32_t times[16];
    int64_t hw = (int64_t)t->c.image_size * t->c.image_size, one = 3 * hw, n = t->batch * one;
    float *x0 = malloc(sizeof *x0 * (size_t)n), *eps = malloc(sizeof *eps * (size_t)n);
    snprintf(tag, sizeof tag, "%s.step%d.x0", t->name, step);
    golden_fill(tag, 0, 1, n, x0);
    snprintf(tag, sizeof tag, "%s.step%d.eps", t->name, step);
    golden_unit(tag, n, eps);
    snprintf(tag, sizeof tag, "%s.step%d.t", t->name, step);
    golden_integers(tag, t->batch, 1000, times);
    golden_to_nhwc(eps, t->batch, 3, hw, lw_exec_write(t->e, "eps"));
    for (int b = 0; b < t->batch; b++) {
        double a = t->alpha_bar[times[b]];
        ((float *)lw_exec_write(t->e, "t"))[b] = (float)times[b];
        for (int64_t i = b * one; i < (b + 1) * one; i++)
            x0[i] = (float)(sqrt(a) * (double)x0[i] + sqrt(1.0 - a) * (double)eps[i]);
    }
    golden_to_nhwc(x0, t->batch, 3, hw, lw_exec_write(t->e, "x"));
    snprintf(tag, sizeof tag, "%s.step%d.labels", t->name, step);
    if (t->c.classes)
        golden_integers(tag, t->batch, t->c.classes, lw_exec_write(t->e, "classes"));
    free(x0);
    free(eps);
}

static void train_step(trainer *t, int step, double *loss, double *norm)
{
    lw_update a = {.lr = t->lr,
                   .beta1 = 0.9,
                   .beta2 = 0.999,
                   .eps = 1e-8,
                   .weight_decay = t->wd,
                   .t = step + 1,
                   .grad_scale = 1.0,
                   .max_norm = t->clip};
    a.n = lw_store_slabs(t->s, a.slab);
    a.ema_decay = fmin(t->ema, (2.0 + step) / (11.0 + step));
    bind_step(t, step);
    assert_ok(lw_exec_run(t->e, &(lw_tick){.step = (uint32_t)step}));
    *loss = (double)*(float *)lw_exec_read(t->e, "loss");
    assert_ok(t->dev->update(t->dev->self, &a, norm));
    lw_store_touch(t->s, LW_SLAB_PARAM);
    lw_store_touch(t->s, LW_SLAB_EMA);
}

/* Final parameters or averages against their sketches; returns the worst. */
static double check_slab(const trainer *t, lw_slab slab, const char *prefix, double tol)
{
    double worst = 0.0;
    for (int32_t i = 0; i < lw_store_count(t->s); i++) {
        const lw_store_entry *e = lw_store_at(t->s, i);
        float *tmp = malloc(sizeof *tmp * (size_t)e->count);
        for (int k = 0; k < golden_parts(e); k++) {
            golden_part p = golden_part_of(e, k);
            char key[200];
            snprintf(key, sizeof key, "%s.%s", prefix, p.name);
            if (lw_str_ends(p.name, "to_k.bias")) /* rounding noise that AdamW makes into steps */
                continue;
            double *sketch = golden_get(t->file, key, NULL);
            golden_part_get(e, k, lw_store_data(t->s, i, slab), tmp);
            double err = golden_sketch_error(p.name, tmp, p.count, sketch, 1e-12);
            free(sketch);
            golden_check(key, err, tol);
            worst = fmax(worst, err);
        }
        free(tmp);
    }
    return worst;
}

static void check_training(const char *name, lw_isa isa, double tol_loss, double tol_norm,
                           double tol_param)
{
    trainer t;
    double loss, norm, worst_loss = 0, worst_norm = 0;
    trainer_open(&t, name, isa, 2);
    double *losses = golden_get(t.file, "losses", NULL),
           *norms = golden_get(t.file, "grad_norms", NULL);
    for (int s = 0; s < t.steps; s++) {
        train_step(&t, s, &loss, &norm);
        worst_loss = fmax(worst_loss, fabs(loss / losses[s] - 1));
        worst_norm = fmax(worst_norm, fabs(norm / norms[s] - 1));
        golden_check("loss", fabs(loss / losses[s] - 1), tol_loss);
        golden_check("gradient norm", fabs(norm / norms[s] - 1), tol_norm);
    }
    double worst_p = check_slab(&t, LW_SLAB_PARAM, "param", tol_param);
    double worst_e = check_slab(&t, LW_SLAB_EMA, "ema", tol_param);
    printf("%s %s: %d steps, worst loss %.1e, norm %.1e, parameter %.1e, ema %.1e\n", name,
           lw_isa_name(isa), t.steps, worst_loss, worst_norm, worst_p, worst_e);
    free(losses);
    free(norms);
    trainer_close(&t);
}

static void test_tiny(void **state)
{
    int n;
    const lw_isa *isa = golden_isas(&n);
    (void)state;
    for (int i = 0; i < n; i++)
        check_training("tiny", isa[i], 2e-6, 2e-5, 2e-4);
}

static void test_small(void **state)
{
    (void)state;
    check_training("small", lw_isa_best(), 2e-4, 3e-4, 5e-5);
}

static void test_threads(void **state)
{
    static const int threads[] = {1, 2, 3, 5};
    uint64_t hash[LW_COUNT(threads)];
    double loss, norm;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(threads); i++) {
        trainer t;
        trainer_open(&t, "tiny", lw_isa_best(), threads[i]);
        for (int s = 0; s < 4; s++)
            train_step(&t, s, &loss, &norm);
        hash[i] = lw_store_hash(t.s, LW_SLAB_PARAM) ^ lw_store_hash(t.s, LW_SLAB_EMA) * 3 ^
                  lw_store_hash(t.s, LW_SLAB_M) * 5 ^ lw_store_hash(t.s, LW_SLAB_V) * 7;
        trainer_close(&t);
        assert_true(hash[i] == hash[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
