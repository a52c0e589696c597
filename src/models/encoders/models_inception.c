/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inception-v3 (Szegedy et al., arXiv 1512.00567) in two forms of one set of tensors, which pytorch-fid,
 * torchvision and timm name alike:
 *
 *                           torchvision, timm        FID: the network of Frechet Inception distances
 *   logits                  1,000                    1,008
 *   average of 3x3          divides by 9             divides by the pixels inside the picture
 *   Mixed_7c's pooling      that average             maximum of 3x3
 *   pictures                342, centre 299          any size, resized to 299 in floats
 *
 * A file is of the FID form when its head has 1,008 rows (pt_inception-2015-12-05). All widths are
 * read from the tensors. The blocks are the table below.
 */
#include <stdio.h>
#include <string.h>

#include "models/encoders/models_timm.h"
#include "models/models_private.h"

enum { SIDE = 299, FID_CLASSES = 1008, CONVS = 94, MAX_WIDTH = 65536, MAX_ROWS = 10 };

typedef struct inception {
    int32_t width[CONVS]; /* channels that each convolution makes, in the order of the tables */
    int32_t classes;      /* 0: no head */
    bool fid;
} inception;

/* ---- the table ------------------------------------------------------------------------------- */

/* What a row reads, where it is not row `from` of its block. */
enum { INPUT = -1, POOLED = -2 };

typedef struct row {
    const char *name;
    int8_t from;
    uint8_t h, w, stride;
    bool valid; /* without a border of zeros */
    bool out;   /* is part of the block's result, which these are side by side */
} row;

static const row stem[] = {
    {"Conv2d_1a_3x3", INPUT, 3, 3, 2, true, false}, {"Conv2d_2a_3x3", 0, 3, 3, 1, true, false},
    {"Conv2d_2b_3x3", 1, 3, 3, 1, false, true},     {"Conv2d_3b_1x1", INPUT, 1, 1, 1, false, false},
    {"Conv2d_4a_3x3", 3, 3, 3, 1, true, true},
};
static const row block_a[] = {
    {"branch1x1", INPUT, 1, 1, 1, false, true},    {"branch5x5_1", INPUT, 1, 1, 1, false, false},
    {"branch5x5_2", 1, 5, 5, 1, false, true},      {"branch3x3dbl_1", INPUT, 1, 1, 1, false, false},
    {"branch3x3dbl_2", 3, 3, 3, 1, false, false},  {"branch3x3dbl_3", 4, 3, 3, 1, false, true},
    {"branch_pool", POOLED, 1, 1, 1, false, true},
};
static const row block_b[] = {
    {"branch3x3", INPUT, 3, 3, 2, true, true},
    {"branch3x3dbl_1", INPUT, 1, 1, 1, false, false},
    {"branch3x3dbl_2", 1, 3, 3, 1, false, false},
    {"branch3x3dbl_3", 2, 3, 3, 2, true, true},
};
static const row block_c[] = {
    {"branch1x1", INPUT, 1, 1, 1, false, true},       {"branch7x7_1", INPUT, 1, 1, 1, false, false},
    {"branch7x7_2", 1, 1, 7, 1, false, false},        {"branch7x7_3", 2, 7, 1, 1, false, true},
    {"branch7x7dbl_1", INPUT, 1, 1, 1, false, false}, {"branch7x7dbl_2", 4, 7, 1, 1, false, false},
    {"branch7x7dbl_3", 5, 1, 7, 1, false, false},     {"branch7x7dbl_4", 6, 7, 1, 1, false, false},
    {"branch7x7dbl_5", 7, 1, 7, 1, false, true},      {"branch_pool", POOLED, 1, 1, 1, false, true},
};
static const row block_d[] = {
    {"branch3x3_1", INPUT, 1, 1, 1, false, false},   {"branch3x3_2", 0, 3, 3, 2, true, true},
    {"branch7x7x3_1", INPUT, 1, 1, 1, false, false}, {"branch7x7x3_2", 2, 1, 7, 1, false, false},
    {"branch7x7x3_3", 3, 7, 1, 1, false, false},     {"branch7x7x3_4", 4, 3, 3, 2, true, true},
};
static const row block_e[] = {
    {"branch1x1", INPUT, 1, 1, 1, false, true},       {"branch3x3_1", INPUT, 1, 1, 1, false, false},
    {"branch3x3_2a", 1, 1, 3, 1, false, true},        {"branch3x3_2b", 1, 3, 1, 1, false, true},
    {"branch3x3dbl_1", INPUT, 1, 1, 1, false, false}, {"branch3x3dbl_2", 4, 3, 3, 1, false, false},
    {"branch3x3dbl_3a", 5, 1, 3, 1, false, true},     {"branch3x3dbl_3b", 5, 3, 1, 1, false, true},
    {"branch_pool", POOLED, 1, 1, 1, false, true},
};

typedef struct block {
    const char *name; /* scope of its rows */
    const row *row;
    int rows;
    int pool; /* behind its rows: STEM_POOL their maximum, HALVE the input's beside them */
} block;
enum { NO_POOL, STEM_POOL, HALVE };
#define BLOCK(name, rows, pool)               \
    {                                         \
        name, rows, (int)LW_COUNT(rows), pool \
    }
static const block blocks[] = {
    {NULL, stem, 3, STEM_POOL},          {NULL, stem + 3, 2, STEM_POOL},
    BLOCK("Mixed_5b", block_a, NO_POOL), BLOCK("Mixed_5c", block_a, NO_POOL),
    BLOCK("Mixed_5d", block_a, NO_POOL), BLOCK("Mixed_6a", block_b, HALVE),
    BLOCK("Mixed_6b", block_c, NO_POOL), BLOCK("Mixed_6c", block_c, NO_POOL),
    BLOCK("Mixed_6d", block_c, NO_POOL), BLOCK("Mixed_6e", block_c, NO_POOL),
    BLOCK("Mixed_7a", block_d, HALVE),   BLOCK("Mixed_7b", block_e, NO_POOL),
    BLOCK("Mixed_7c", block_e, NO_POOL),
};
enum { BLOCKS = LW_COUNT(blocks), MAPS = 4 };
static const int last_of_map[MAPS] = {0, 1, 9,
                                      BLOCKS - 1}; /* taps s0, s1, ... stand behind these */

/* ---- building -------------------------------------------------------------------------------- */

/* Before its ReLU. */
static lw_val convolve(lw_builder *b, const row *r, lw_val x, int32_t width)
{
    char conv[64], norm[64];
    lw_conv_bn_opts how = {
        .kernel = r->h, .kernel_w = r->w, .stride = r->stride, .valid = r->valid, .eps = 1e-3f};
    snprintf(conv, sizeof conv, "%s.conv", r->name);
    snprintf(norm, sizeof norm, "%s.bn", r->name);
    return lw_conv_bn_as(b, conv, norm, x, width, how);
}

/* The branch with a pooling in front; k is the number of the block. Averages over pixels inside the picture are the same behind
 * a 1x1 convolution, bias and all, whose result has a fourth to an eighth of its input's channels. */
static lw_val pool_and_convolve(lw_builder *b, const inception *a, int k, const row *r, lw_val x,
                                int32_t width)
{
    const bool last = k == BLOCKS - 1;
    if (a->fid && !last)
        return lw_mean_inside(b->g, convolve(b, r, x, width), 3, 1, 1);
    return convolve(b, r, lw_pool2d(b->g, x, 3, 1, 1, a->fid && last), width);
}

static lw_val beside(lw_graph *g, lw_val a, lw_val b)
{
    return a.id ? lw_concat(g, a, b, -1) : b;
}

/* width: of its first row. */
static lw_val build_block(lw_builder *b, const inception *a, int k, const int32_t *width, lw_val x)
{
    const block *d = &blocks[k];
    lw_graph *g = b->g;
    lw_val v[MAX_ROWS], y = LW_NOVAL;
    int first = (int)(d->row - stem); /* rows of the stem count from its beginning */
    first = d->name ? 0 : first;
    const char *up = d->name ? lw_scope_push(g, d->name) : NULL;
    for (int i = 0; i < d->rows; i++) {
        const row *r = &d->row[i];
        const lw_val sum =
            r->from == POOLED ? pool_and_convolve(b, a, k, r, x, width[i])
                              : convolve(b, r, r->from == INPUT ? x : v[r->from - first], width[i]);
        v[i] = lw_relu(g, sum);
        if (r->out)
            y = beside(g, y, v[i]);
    }
    if (d->pool == HALVE)
        y = beside(g, y, lw_pool2d(g, x, 3, 2, 0, true));
    if (up) {
        y = lw_layer_done(b, "", LW_NOVAL, y);
        lw_scope_set(g, up);
    }
    return d->pool == STEM_POOL ? lw_pool2d(g, y, 3, 2, 0, true) : y;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    const inception *a = arch;
    const int32_t *width = a->width;
    lw_val map[MAPS], x = in.x;
    for (int k = 0, m = 0; k < BLOCKS; width += blocks[k].rows, k++) {
        x = build_block(b, a, k, width, x);
        if (k == last_of_map[m])
            map[m++] = x;
    }
    lw_val pooled = lw_mean(b->g, x, LW_OVER_MIDDLE);
    if (a->classes > 0)
        lw_tap_add(
            out, "logits",
            lw_linear(b, "fc", lw_layer_done(b, "head", LW_NOVAL, pooled), a->classes, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, MAPS);
}

/* ---- which files ----------------------------------------------------------------------------- */

/* The channels of a row; 0: it is not there, or has another kernel. */
static int32_t width_of(const lw_st_file *f, const block *d, const row *r)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s%s.conv.weight", d->name ? d->name : "", d->name ? "." : "",
             r->name);
    const lw_st_tensor *t = lw_st_find_model(f, name);
    return t && t->rank == 4 && t->shape[2] == r->h && t->shape[3] == r->w && t->shape[0] >= 1 &&
                   t->shape[0] <= MAX_WIDTH
               ? (int32_t)t->shape[0]
               : 0;
}

static bool recognise(const lw_st_file *f, void *arch)
{
    inception *a = arch;
    int at = 0;
    for (int k = 0; k < BLOCKS; k++)
        for (int i = 0; i < blocks[k].rows; i++, at++)
            if ((a->width[at] = width_of(f, &blocks[k], &blocks[k].row[i])) == 0)
                return false;
    const lw_st_tensor *head = lw_st_find_model(f, "fc.weight");
    if (head && head->rank == 2 && head->shape[0] <= INT32_MAX)
        a->classes = (int32_t)head->shape[0];
    a->fid = a->classes == FID_CLASSES;
    return true;
}

static int read(const json_t *j, const char *where, void *arch)
{
    static const char *const built[] = {"inception_v3", "tf_inception_v3", "adv_inception_v3",
                                        "gluon_inception_v3", NULL};
    (void)arch;
    return lw_timm_plain(j, where, built, NULL);
}

/* ---- the record ------------------------------------------------------------------------------ */

/* torchvision's: its transform_input makes [-1,1] of ImageNet's numbers. */
static const lw_preparation usual = {.fit = LW_FIT_SHORTEST,
                                     .form = LW_RESAMPLE_PILLOW,
                                     .filter = LW_FILTER_BILINEAR,
                                     .resize_h = 342,
                                     .resize_w = 342,
                                     .height = SIDE,
                                     .width = SIDE,
                                     .half_to_even = true,
                                     LW_NUMBERS_HALF};
/* pytorch-fid's. */
static const lw_preparation fid = {.fit = LW_FIT_SQUASH,
                                   .form = LW_RESAMPLE_TORCH,
                                   .filter = LW_FILTER_BILINEAR,
                                   .resize_h = SIDE,
                                   .resize_w = SIDE,
                                   .height = SIDE,
                                   .width = SIDE,
                                   LW_NUMBERS_HALF};

/*
 *   torch          bilinear   2 x / 255 - 1     pytorch-fid
 *   float-aa       bicubic    (x - 128) / 128   clean-fid
 *   tf-inception   bilinear   (x - 128) / 128   the first one's TensorFlow graph, StyleGAN's file
 *   pillow         bicubic    (x - 128) / 128   clean-fid's with pixels rounded to bytes
 */
static void resize(const void *arch, lw_preparation *p)
{
    static const float middle[3] = {128, 128, 128};
    if (!((const inception *)arch)->fid)
        return;
    lw_resample_form form = p->form;
    *p = fid;
    p->form = form;
    if (form == LW_RESAMPLE_TORCH)
        return;
    p->filter = form == LW_RESAMPLE_TF_INCEPTION ? LW_FILTER_BILINEAR : LW_FILTER_BICUBIC;
    p->scale = 1.0;
    memcpy(p->mean, middle, sizeof middle);
    memcpy(p->std, middle, sizeof middle);
}

static void describe(lw_network *n)
{
    const inception *a = n->arch;
    n->name = a->fid ? "inception_v3_fid" : "inception_v3";
    if (a->fid)
        n->preparation = fid;
}

static const char *const ignored[] = {"AuxLogits.**", NULL}; /* a head for training */
static const lw_naming namings[] = {{.name = "torchvision, timm, pytorch-fid", .ignored = ignored},
                                    {0}};

const lw_network_def lw_network_def_inception_v3 = {
    .name = "inception_v3",
    .objective = "classify",
    .trained_on = "imagenet",
    .kind = "encoder",
    .class_name = "inception_v3 *_inception_v3",
    .arch_bytes = sizeof(inception),
    .read = read,
    .recognise = recognise,
    .tensors = "an Inception-v3 of pytorch-fid, torchvision or timm (Conv2d_1a_3x3 to Mixed_7c)",
    .describe = describe,
    .namings = namings,
    .preparation = &usual,
    .resize = resize,
    .build = build,
};
