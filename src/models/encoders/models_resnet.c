/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen ResNets for small pictures: the CIFAR ones, and torchvision's ResNet-18 cut down. */
#include "models/models_private.h"

#include <stdio.h>

/* Pictures of any size. */
static const lw_preparation as_is = {LW_NUMBERS_IMAGENET};

/* Option A (He et al. 2016): every second pixel, new channels are zeros on both sides. */
static lw_val shortcut_a(lw_graph *g, lw_val x, int32_t o)
{
    int32_t c = lw_type_last(lw_val_type(g, x));
    if (!lw_val_ok(x) || c == o)
        return x;
    int side = (o - c) / 2;
    return lw_pad(g, lw_subsample(g, x, 2), (const int[3]){0, 0, side}, (const int[3]){0, 0, side});
}

static lw_val cifar_block(lw_builder *b, lw_val x, int32_t o, int stride)
{
    lw_graph *g = b->g;
    lw_val h = lw_relu(g, lw_conv_bn(b, "conv1", "bn1", x, o, 3, stride));
    h = lw_conv_bn(b, "conv2", "bn2", h, o, 3, 1);
    return lw_relu(g, lw_add(g, h, shortcut_a(g, x, o)));
}

static lw_val torch_block(lw_builder *b, lw_val x, int32_t o, int stride)
{
    lw_graph *g = b->g;
    lw_val h = lw_relu(g, lw_conv_bn(b, "conv1", "bn1", x, o, 3, stride));
    h = lw_conv_bn(b, "conv2", "bn2", h, o, 3, 1);
    if (stride != 1)
        x = lw_conv_bn(b, "downsample.0", "downsample.1", x, o, 1, stride);
    return lw_relu(g, lw_add(g, h, x));
}

typedef lw_val block_fn(lw_builder *b, lw_val x, int32_t o, int stride);

static lw_val stage(lw_builder *b, block_fn *block, int s, lw_val x, int32_t o, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const char *up = lw_scope_pushf(b->g, "layer%d.%d", s, i);
        x = lw_layer_done(b, "", x, block(b, x, o, i == 0 && s > 1 ? 2 : 1));
        lw_scope_set(b->g, up);
    }
    return x;
}

/* Stem map[0] and stages map[1 ..] at widths base, 2 base, ...; the mean of the last. */
static lw_val trunk(lw_builder *b, block_fn *block, lw_val x, int32_t base, int32_t stages,
                    int32_t n, lw_val *map)
{
    map[0] = lw_relu(b->g, lw_conv_bn(b, "conv1", "bn1", x, base, 3, 1));
    for (int32_t s = 1; s <= stages; s++)
        map[s] = stage(b, block, s, map[s - 1], base << (s - 1), n);
    return lw_mean(b->g, map[stages], LW_OVER_MIDDLE);
}

/* ---- akamaster's CIFAR ResNets --------------------------------------------------------------- */

/* 3 stages of `arch` blocks (int32_t), widths 16, 32, 64, option A shortcuts; head `linear`. */

static bool is_cifar(const lw_st_file *f, void *arch)
{
    const lw_st_tensor *head = lw_st_find_model(f, "linear.weight");
    const lw_st_tensor *stem = lw_st_find_model(f, "conv1.weight");
    int32_t n = 0;
    char name[64];
    if (!head || head->rank != 2 || head->shape[1] != 64 || !stem || stem->rank != 4 ||
        stem->shape[0] != 16)
        return false;
    do
        snprintf(name, sizeof name, "layer3.%d.conv1.weight", n);
    while (lw_st_find_model(f, name) && ++n < 64);
    *(int32_t *)arch = n;
    return n > 0;
}

static void describe_cifar(lw_network *n)
{
    static const struct {
        int32_t n;
        const char *name;
    } known[] = {
        {3, "resnet20"}, {5, "resnet32"}, {7, "resnet44"}, {9, "resnet56"}, {18, "resnet110"}};
    for (size_t i = 0; i < LW_COUNT(known); i++)
        if (known[i].n == *(const int32_t *)n->arch)
            n->name = known[i].name;
}

static void build_cifar(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_val map[4], pooled = trunk(b, cifar_block, in.x, 16, 3, *(const int32_t *)arch, map);
    lw_val seen = lw_layer_done(b, "head", LW_NOVAL, pooled);
    lw_tap_add(out, "logits", lw_linear(b, "linear", seen, 10, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, 4);
}

const lw_network_def lw_network_def_resnet_cifar10 = {
    .name = "resnet_cifar10",
    .objective = "classify",
    .trained_on = "cifar10",
    .kind = "encoder",
    .arch_bytes = sizeof(int32_t),
    .recognise = is_cifar,
    .tensors = "a CIFAR ResNet (16-channel stem, three stages, 'linear' head)",
    .describe = describe_cifar,
    .stem = "conv1.weight",
    .preparation = &as_is,
    .build = build_cifar,
};

/* ---- torchvision's ResNet-18 for small images ------------------------------------------------ */

static bool is_resnet18(const lw_st_file *f, void *arch)
{
    const lw_st_tensor *stem = lw_st_find_model(f, "conv1.weight");
    const lw_st_tensor *first = lw_st_find_model(f, "layer1.0.conv1.weight");
    (void)arch;
    return stem && stem->rank == 4 && stem->shape[0] == 64 && stem->shape[2] == 7 && first &&
           first->rank == 4 && first->shape[1] == 64 && first->shape[2] == 3 &&
           lw_st_find_model(f, "layer2.0.downsample.0.weight");
}

static void build_resnet18(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_val map[3], pooled = trunk(b, torch_block, in.x, 64, 2, 2, map);
    (void)arch;
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, 3);
}

static const char *const beyond[] = {"layer3.**", "layer4.**", "fc.**", NULL};
static const lw_name_rule cut[] = {
    {.file = "conv1.weight", .store = "conv1.weight", .values = LW_VALUES_CENTRE}, {0}};
static const lw_naming cut_namings[] = {{.name = "torchvision", .rules = cut, .ignored = beyond},
                                        {0}};

/* conv1 is the centre 3x3 of the 7x7 kernel at stride 1; no max-pool; layer1, layer2. */
const lw_network_def lw_network_def_resnet18 = {
    .name = "resnet18",
    .family = "resnet",
    .objective = "classify",
    .trained_on = "imagenet",
    .kind = "encoder",
    .recognise = is_resnet18,
    .tensors = "torchvision's ResNet-18 (conv1.weight [64,3,7,7], layer1, layer2)",
    .stem = "conv1.weight",
    .namings = cut_namings,
    .preparation = &as_is,
    .build = build_resnet18,
};
