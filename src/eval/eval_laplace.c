/* SPDX-License-Identifier: Apache-2.0 */
/* Laplace's approximation of a last layer; see the header for the formulas. */
#include "eval/eval_laplace.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "eval/eval_answers.h"
#include "eval/eval_dense.h"

enum { BLOCK = LW_GEMM_DEPTH }; /* rows that are summed together */

const char *const lw_laplace_score_name[LW_LAPLACE_SCORES] = {
    "laplace_logit_var", "laplace_entropy", "laplace_mutual_information", "entropy",
    "least_confidence"};

struct lw_laplace {
    lw_laplace_opts o;
    const lw_dense *dense;
    int32_t in, out, answers; /* in: with the 1 */
    double *text;             /* [answers][out] of length 1; NULL: a classifier */
    int64_t n, held;          /* pictures; those of a block that is not whole yet */
    double *a, *b;            /* [in][in], [out][out]: sums, from fit on eigenvectors in rows */
    double *cross;            /* [out][out] of texts: sum of left right^T */
    double *weight;           /* [answers]: sum of what stands in the diagonal of H's middle */
    double *f;                /* [BLOCK][in] */
    double *apart;            /* [BLOCK][out]: rows whose squares B lacks */
    double *left, *right;     /* [BLOCK][out] of texts */
    double *z;                /* [3][answers]: of the picture that is added */
    double *va, *vb;          /* [in], [out]: a_i, b_j */
    double *along;            /* [out][answers]: v_j, or v_j t_c */
    double *inverse;          /* [out][in]: 1 / (a_i b_j + prior) */
    double prior, gamma;
};

/* ---- making ------------------------------------------------------------------------------------ */

static int copy_texts(lw_laplace *l)
{
    for (int64_t c = 0; c < l->answers; c++) {
        const double *from = l->o.text + c * l->out;
        double length = sqrt(l->dense->dot(from, from, l->out));
        if (!(length > 0) || !isfinite(length))
            return lw_fail(LW_ENUMERIC, "text %lld is a vector of length %g", (long long)c, length);
        for (int64_t d = 0; d < l->out; d++)
            l->text[c * l->out + d] = from[d] / length;
    }
    l->o.text = NULL;
    return 0;
}

static int add_array(double **out, int64_t rows, int64_t cols)
{
    *out = lw_calloc((size_t)rows * (size_t)cols, sizeof **out);
    return *out ? 0 : LW_ENOMEM;
}

int lw_laplace_new(const lw_laplace_opts *o, lw_laplace **out)
{
    LW_CLEANUP(lw_laplace_free) lw_laplace *l = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    l->o = *o;
    l->dense = lw_dense_best();
    l->in = o->in + o->bias;
    l->out = o->out;
    l->answers = o->texts ? o->texts : o->out;
    LW_TRY(add_array(&l->a, l->in, l->in));
    LW_TRY(add_array(&l->b, l->out, l->out));
    LW_TRY(add_array(&l->weight, l->answers, 1));
    LW_TRY(add_array(&l->f, BLOCK, l->in));
    LW_TRY(add_array(&l->apart, BLOCK, l->out));
    LW_TRY(add_array(&l->z, 3, l->answers));
    LW_TRY(add_array(&l->va, l->in, 1));
    LW_TRY(add_array(&l->vb, l->out, 1));
    LW_TRY(add_array(&l->inverse, l->out, l->in));
    LW_TRY(add_array(&l->along, l->out, l->answers));
    if (o->texts) {
        LW_TRY(add_array(&l->text, l->answers, l->out));
        LW_TRY(add_array(&l->cross, l->out, l->out));
        LW_TRY(add_array(&l->left, BLOCK, l->out));
        LW_TRY(add_array(&l->right, BLOCK, l->out));
        LW_TRY(copy_texts(l));
    }
    *out = lw_steal(&l);
    return 0;
}

void lw_laplace_free(lw_laplace **pp)
{
    lw_laplace *l = *pp;
    if (!l)
        return;
    double **const all[] = {&l->text, &l->a,     &l->b,     &l->cross,  &l->weight,
                            &l->f,    &l->apart, &l->left,  &l->right,  &l->z,
                            &l->va,   &l->vb,    &l->along, &l->inverse};
    for (size_t i = 0; i < LW_COUNT(all); i++)
        lw_free(all[i]);
    lw_free(pp);
}

/* ---- answers ----------------------------------------------------------------------------------- */

static int widen(const float *x, int64_t n, const char *what, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return lw_fail(LW_ENUMERIC, "number %lld of %s is %g", (long long)i, what,
                           (double)x[i]);
        out[i] = (double)x[i];
    }
    return 0;
}

/* g [out] becomes a vector of length 1; cosine [answers] with the texts. */
static int compare(const lw_laplace *l, double *g, double *cosine, double *length)
{
    *length = sqrt(l->dense->dot(g, g, l->out));
    if (!(*length > 0))
        return lw_fail(LW_ENUMERIC, "a picture's feature is 0: it has no cosine");
    for (int64_t d = 0; d < l->out; d++)
        g[d] /= *length;
    for (int64_t c = 0; c < l->answers; c++)
        cosine[c] = l->dense->dot(g, l->text + c * l->out, l->out);
    return 0;
}

static void cosine_logits(const lw_laplace *l, const double *cosine, double *z)
{
    for (int64_t c = 0; c < l->answers; c++)
        z[c] = l->o.scale * cosine[c] + l->o.shift;
}

/* ---- calibration ------------------------------------------------------------------------------- */

static void add_classes(lw_laplace *l, const double *g, double *p)
{
    lw_softmax_of(g, l->out, p);
    for (int64_t c = 0; c < l->answers; c++)
        l->weight[c] += p[c];
}

/*
 * J T^T D T J = w (T^T D T - left right^T - right left^T) with w = scale^2 / |g|^2, right = g / |g|,
 * left = sum_c d_c cos_c t_c - right sum_c d_c cos_c^2 / 2; and J T^T p = (sum_c p_c t_c less its
 * part along g) / |g|. g: `right`, of any length yet.
 */
static int add_texts(lw_laplace *l, double *left, double *right, double *apart)
{
    double *cosine = l->z, *z = cosine + l->answers, *p = z + l->answers, length, square = 0;
    LW_TRY(compare(l, right, cosine, &length));
    cosine_logits(l, cosine, z);
    if (l->o.sigmoid)
        for (int64_t c = 0; c < l->answers; c++)
            p[c] = 1 / (1 + exp(-z[c])) * (1 / (1 + exp(z[c])));
    else
        lw_softmax_of(z, l->answers, p);
    double w = l->o.scale * l->o.scale / (length * length);
    memset(left, 0, sizeof *left * (size_t)l->out);
    memset(apart, 0, sizeof *apart * (size_t)l->out);
    for (int64_t c = 0; c < l->answers; c++) {
        l->weight[c] += w * p[c];
        square += w * p[c] * cosine[c] * cosine[c];
        l->dense->more(left, w * p[c] * cosine[c], l->text + c * l->out, l->out);
        if (!l->o.sigmoid)
            l->dense->more(apart, sqrt(w) * p[c], l->text + c * l->out, l->out);
    }
    l->dense->more(left, -square / 2, right, l->out);
    l->dense->more(apart, -l->dense->dot(apart, right, l->out), right, l->out);
    return 0;
}

/* Rows of the block into the sums; products are of upper triangles where they are symmetric. */
static int sum_block(lw_pool *pool, lw_laplace *l)
{
    const int64_t n = l->held, in = l->in, out = l->out;
    lw_operand f = LW_COLUMNS(l->f, in), apart = LW_COLUMNS(l->apart, out);
    l->held = 0;
    LW_TRY(lw_gemm(pool, l->a, in, 1, f, in, f, in, n, true));
    if (!l->o.sigmoid)
        LW_TRY(lw_gemm(pool, l->b, out, -1, apart, out, apart, out, n, true));
    return l->text ? lw_gemm(pool, l->cross, out, 1, LW_COLUMNS(l->left, out), out,
                             LW_COLUMNS(l->right, out), out, n, false)
                   : 0;
}

int lw_laplace_add(lw_pool *pool, lw_laplace *l, const float *f, const float *g, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double *row = l->f + l->held * l->in, *apart = l->apart + l->held * l->out;
        double *to = l->text ? l->right + l->held * l->out : l->z;
        LW_TRY(widen(f + i * l->o.in, l->o.in, "a picture's feature", row));
        LW_TRY(widen(g + i * l->out, l->out, "a picture's output", to));
        if (l->o.bias)
            row[l->o.in] = 1;
        if (l->text)
            LW_TRY(add_texts(l, l->left + l->held * l->out, to, apart));
        else
            add_classes(l, to, apart);
        l->n++;
        if (++l->held == BLOCK)
            LW_TRY(sum_block(pool, l));
    }
    return 0;
}

/* ---- the fit ----------------------------------------------------------------------------------- */

/* What the blocks left out of B: the diagonal in the middle, and what lies beside g. */
static int finish_b(lw_pool *pool, lw_laplace *l)
{
    const int64_t out = l->out;
    if (!l->text) {
        for (int64_t c = 0; c < out; c++)
            l->b[c * out + c] += l->weight[c];
        return 0;
    }
    LW_CLEANUP(lw_free) double *weighted = NULL;
    LW_TRY(add_array(&weighted, l->answers, out));
    for (int64_t c = 0; c < l->answers; c++)
        l->dense->more(weighted + c * out, l->weight[c], l->text + c * out, out);
    LW_TRY(lw_gemm(pool, l->b, out, 1, LW_COLUMNS(weighted, out), out, LW_COLUMNS(l->text, out),
                   out, l->answers, true));
    for (int64_t i = 0; i < out; i++)
        for (int64_t j = i; j < out; j++)
            l->b[i * out + j] -= l->cross[i * out + j] + l->cross[j * out + i];
    return 0;
}

/* Eigenvalues of x, none below 0, times scale; x [d][d], of which the upper triangle counts. */
static int decompose(double *x, int32_t d, double scale, double *values)
{
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < i; j++)
            x[i * d + j] = x[j * d + i];
    LW_TRY(lw_eigen(x, d, values));
    for (int64_t i = 0; i < d; i++)
        values[i] = LW_MAX(values[i], 0) * scale;
    return 0;
}

static double effective(const lw_laplace *l, double prior)
{
    double sum = 0;
    for (int64_t j = 0; j < l->out; j++)
        for (int64_t i = 0; i < l->in; i++)
            sum += l->va[i] * l->vb[j] / (l->va[i] * l->vb[j] + prior);
    return sum;
}

/* The prior of largest evidence: where prior |W|^2 meets gamma, by bisection of its logarithm. */
static int choose_prior(const lw_laplace *l, double *out)
{
    double low = 1, high = 1;
    while (high < 1e200 && high * l->o.squares < effective(l, high))
        high *= 10;
    while (low > 1e-200 && low * l->o.squares >= effective(l, low))
        low /= 10;
    if (!(low > 1e-200 && high < 1e200))
        return lw_fail(LW_ENUMERIC, "no prior precision has the largest evidence: %s",
                       l->o.squares > 0 ? "every answer to the calibration pictures is certain"
                                        : "all weights of the last layer are 0");
    for (int i = 0; i < 100 && high > low * (1 + 1e-14); i++) {
        double middle = sqrt(low) * sqrt(high);
        if (middle * l->o.squares < effective(l, middle))
            low = middle;
        else
            high = middle;
    }
    *out = high;
    return 0;
}

int lw_laplace_fit(lw_pool *pool, lw_laplace *l)
{
    const int64_t in = l->in, out = l->out;
    if (l->n == 0)
        return lw_fail(LW_EUSAGE, "no calibration pictures");
    LW_TRY(sum_block(pool, l));
    LW_TRY(finish_b(pool, l));
    double n = (double)l->n, scale = sqrt(l->o.pictures > 0 ? l->o.pictures : n) / n;
    LW_TRY(decompose(l->a, l->in, scale, l->va));
    LW_TRY(decompose(l->b, l->out, scale, l->vb));
    l->prior = l->o.prior;
    if (l->prior == 0)
        LW_TRY(choose_prior(l, &l->prior));
    l->gamma = effective(l, l->prior);
    for (int64_t j = 0; j < out; j++)
        for (int64_t i = 0; i < in; i++)
            l->inverse[j * in + i] = 1 / (l->va[i] * l->vb[j] + l->prior);
    if (!l->text)
        memcpy(l->along, l->b, sizeof *l->along * (size_t)out * (size_t)out);
    else
        for (int64_t j = 0; j < out; j++)
            for (int64_t c = 0; c < l->answers; c++)
                l->along[j * l->answers + c] = l->dense->dot(l->b + j * out, l->text + c * out,
                                                             out);
    return 0;
}

lw_laplace_info lw_laplace_get_info(const lw_laplace *l)
{
    return (lw_laplace_info){l->n, l->prior, l->gamma};
}

/* ---- scores ------------------------------------------------------------------------------------ */

size_t lw_laplace_doubles(const lw_laplace *l)
{
    return 4 * (size_t)l->answers + 2 * (size_t)l->out + 2 * (size_t)l->in;
}

/* Mean and variance of the answers, p [answers] of the network as it is. g: lost. s: of header. */
static int answer(const lw_laplace *l, double *g, const double *s, double *mean, double *var,
                  double *p, double *factor)
{
    *factor = 1;
    if (l->text) {
        double length, wide = 0;
        LW_TRY(compare(l, g, mean, &length));
        for (int64_t j = 0; j < l->out; j++)
            wide += s[j];
        cosine_logits(l, mean, var);
        lw_softmax_of(var, l->answers, p);
        double r = sqrt(length * length + wide);
        for (int64_t c = 0; c < l->answers; c++)
            mean[c] *= length / r;
        cosine_logits(l, mean, mean);
        *factor = l->o.scale * l->o.scale / (r * r);
    } else {
        memcpy(mean, g, sizeof *mean * (size_t)l->answers);
        lw_softmax_of(mean, l->answers, p);
    }
    memset(var, 0, sizeof *var * (size_t)l->answers);
    for (int64_t j = 0; j < l->out; j++)
        for (int64_t c = 0; c < l->answers; c++) {
            double v = l->along[j * l->answers + c];
            var[c] += *factor * s[j] * v * v;
        }
    return 0;
}

/* Mean probabilities, approximately. */
static void probit(const double *mean, const double *var, int64_t n, double *z, double *p)
{
    for (int64_t c = 0; c < n; c++)
        z[c] = mean[c] / sqrt(1 + M_PI / 8 * var[c]);
    lw_softmax_of(z, n, p);
}

int lw_laplace_scores(const lw_laplace *l, const float *f, const float *g, double *scratch,
                      double out[LW_LAPLACE_SCORES])
{
    const int64_t k = l->answers;
    double *mean = scratch, *var = mean + k, *p = var + k, *z = p + k, *wide = z + k,
           *s = wide + l->out, *row = s + l->out, *square = row + l->in, factor, top = 0;
    LW_TRY(widen(f, l->o.in, "a picture's feature", row));
    LW_TRY(widen(g, l->out, "a picture's output", wide));
    if (l->o.bias)
        row[l->o.in] = 1;
    for (int64_t i = 0; i < l->in; i++) {
        double u = l->dense->dot(l->a + i * l->in, row, l->in);
        square[i] = u * u;
    }
    for (int64_t j = 0; j < l->out; j++)
        s[j] = l->dense->dot(l->inverse + j * l->in, square, l->in);
    LW_TRY(answer(l, wide, s, mean, var, p, &factor));

    double var_mean = 0, information = 0;
    for (int64_t c = 0; c < k; c++) {
        var_mean += var[c] / (double)k;
        information += p[c] * var[c];
        top = LW_MAX(top, p[c]);
    }
    for (int64_t j = 0; j < l->out; j++) {
        double u = l->dense->dot(l->along + j * k, p, k);
        information -= factor * s[j] * u * u;
    }
    out[LW_LAPLACE_LOGIT_VAR] = var_mean;
    out[LW_LAPLACE_MUTUAL_INFORMATION] = LW_MAX(information, 0) / 2;
    out[LW_LAPLACE_PLAIN_ENTROPY] = lw_entropy_of(p, k);
    out[LW_LAPLACE_LEAST_CONFIDENCE] = 1 - top;
    probit(mean, var, k, z, p);
    out[LW_LAPLACE_ENTROPY] = lw_entropy_of(p, k);
    return 0;
}
