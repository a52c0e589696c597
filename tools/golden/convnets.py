# SPDX-License-Identifier: Apache-2.0
"""Inception-v3 and ConvNeXt as tiny configurations of torchvision, timm and transformers; the parts of the network of
Frechet Inception distances that differ from torchvision's, which tools/encoder_check.py uses at full size too."""
import functools
import json

import torch
import torch.nn.functional as F

from .networks import IMAGENET, case, fill, normalised

FID_SIDE, FID_CLASSES = 299, 1008


# ---- Inception-v3 --------------------------------------------------------------------------------

def chain(block, x, *names):
    for name in names:
        x = getattr(block, name)(x)
    return x


def fid_form(net):
    """torchvision's Inception3 with the poolings of the network of Frechet distances, in place."""
    from torchvision.models import inception as lib  # pylint: disable=import-outside-toplevel

    def inside(x):
        return F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)

    class A(lib.InceptionA):
        def _forward(self, x):
            return [self.branch1x1(x), chain(self, x, "branch5x5_1", "branch5x5_2"),
                    chain(self, x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
                    self.branch_pool(inside(x))]

    class C(lib.InceptionC):
        def _forward(self, x):
            return [self.branch1x1(x), chain(self, x, "branch7x7_1", "branch7x7_2", "branch7x7_3"),
                    chain(self, x, *("branch7x7dbl_%d" % i for i in range(1, 6))),
                    self.branch_pool(inside(x))]

    class E(lib.InceptionE):
        pool = staticmethod(inside)

        def _forward(self, x):
            one, two = self.branch3x3_1(x), chain(self, x, "branch3x3dbl_1", "branch3x3dbl_2")
            return [self.branch1x1(x), self.branch3x3_2a(one), self.branch3x3_2b(one),
                    self.branch3x3dbl_3a(two), self.branch3x3dbl_3b(two), self.branch_pool(self.pool(x))]

    class LastE(E):
        @staticmethod
        def pool(x):
            return F.max_pool2d(x, 3, 1, 1)
    for name, block in net.named_children():
        kind = {lib.InceptionA: A, lib.InceptionC: C, lib.InceptionE: E}.get(type(block))
        if kind:
            block.__class__ = LastE if name == "Mixed_7c" else kind
    return net


def inception_taps(net, x):
    """Of pictures as numbers; x of any size from 75 on."""
    pool = functools.partial(F.max_pool2d, kernel_size=3, stride=2)
    h = out = None
    for name, block in net.named_children():
        if name.startswith(("Conv2d", "Mixed")):
            h = block(x if h is None else h)
        if name in ("Conv2d_2b_3x3", "Conv2d_4a_3x3"):
            h = pool(h)
        if name in ("Conv2d_2b_3x3", "Conv2d_4a_3x3", "Mixed_6e", "Mixed_7c"):
            out = dict(out or {}, **{"s%d" % len(out or {}): h})
    pooled = h.mean((2, 3))
    return dict({"pooled": pooled, "logits": net.fc(pooled)}, **out)


def narrow_inception(classes, aux, thin=16):
    from torchvision.models import inception as lib  # pylint: disable=import-outside-toplevel

    def conv(i, o, **more):
        return lib.BasicConv2d(i if i == 3 else i // thin, o // thin, **more)
    blocks = [conv] + [functools.partial(b, conv_block=conv) for b in (
        lib.InceptionA, lib.InceptionB, lib.InceptionC, lib.InceptionD, lib.InceptionE, lib.InceptionAux)]
    net = lib.Inception3(classes, aux_logits=aux, inception_blocks=blocks, init_weights=False)
    net.fc = torch.nn.Linear(2048 // thin, classes)
    if aux:
        net.AuxLogits.fc = torch.nn.Linear(768 // thin, classes)
    return net


def inception():
    """torchvision's names, with the second head that training has."""
    net = fill(narrow_inception(7, True))
    return case(net, lambda x: inception_taps(net, x), (2, 3, 83, 90), "pooled")


def as_tensorflow_1(x):
    """The resize in StyleGAN's file of the network: output o is at input o from / to."""
    n, _, h, w = x.shape
    at = [(2 * torch.arange(FID_SIDE, dtype=x.dtype) * size / FID_SIDE + 1) / size - 1 for size in (w, h)]
    grid = torch.stack(torch.meshgrid(*at, indexing="xy"), -1)
    return F.grid_sample(x, grid.expand(n, -1, -1, -1), mode="bilinear", padding_mode="border",
                         align_corners=False)


def fid_numbers(x, resize="torch"):
    """Pictures in [-1, 1] of any size as the network of Frechet distances sees them."""
    side = (FID_SIDE, FID_SIDE)
    if resize == "torch":  # pytorch-fid's
        return F.interpolate(x, side, mode="bilinear", align_corners=False)
    x = (x + 1) * 127.5
    if resize == "float-aa":  # clean-fid's
        x = F.interpolate(x, side, mode="bicubic", antialias=True).clamp(0, 255)
    else:
        x = as_tensorflow_1(x)
    return (x - 128) / 128


def inception_fid(resize="torch"):
    """Known by its 1,008 logits; pictures of any size become 299 x 299."""
    net = fid_form(fill(narrow_inception(FID_CLASSES, False)))
    return case(net, lambda x: inception_taps(net, fid_numbers(x, resize)), (2, 3, 32, 41), "pooled",
                resize=resize)


# ---- ConvNeXt ------------------------------------------------------------------------------------

def convnext_timm_taps(net, x):
    out, h = {}, net.stem(x)
    out["s0"] = h
    for i, stage in enumerate(net.stages, 1):
        out["s%d" % i] = h = stage(h)
    return dict({"pooled": net.head(h, pre_logits=True), "logits": net.head(h)}, **out)


def convnext_timm(**more):
    from timm.models.convnext import ConvNeXt  # pylint: disable=import-outside-toplevel
    net = fill(ConvNeXt(depths=(1, 2, 1, 1), dims=(8, 12, 16, 20), num_classes=5, **more))
    return net, case(net, lambda x: convnext_timm_taps(net, normalised(x)), (2, 3, 40, 52), "pooled")


def convnextv2_timm():
    return convnext_timm(use_grn=True, ls_init_value=None, conv_mlp=True)[1]


def convnext_v1_timm():
    return convnext_timm(ls_init_value=0.5)[1]


def convnext_hf_taps(body, x):
    res = body(x, output_hidden_states=True)
    return dict({"pooled": res.pooler_output}, **{"s%d" % i: h for i, h in enumerate(res.hidden_states)})


def convnextv2_hf(head):
    from transformers import ConvNextV2Config, ConvNextV2ForImageClassification, ConvNextV2Model  # pylint: disable=import-outside-toplevel
    config = ConvNextV2Config(hidden_sizes=[8, 12, 16, 20], depths=[1, 2, 1, 1], num_labels=5,
                              layer_norm_eps=1e-4)
    net = fill((ConvNextV2ForImageClassification if head else ConvNextV2Model)(config))
    body = net.convnextv2 if head else net

    def taps(x):
        out = convnext_hf_taps(body, normalised(x, IMAGENET))
        return dict(out, logits=net.classifier(out["pooled"])) if head else out
    text = json.loads(config.to_json_string(use_diff=False))
    return case(net, taps, (2, 3, 40, 52), "pooled", config=json.dumps(text, sort_keys=True))


def convnext_tv():
    """torchvision's: V1, its own places in a sequence."""
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt  # pylint: disable=import-outside-toplevel
    sizes = [(8, 12, 1), (12, 16, 2), (16, 20, 1), (20, None, 1)]
    net = fill(ConvNeXt([CNBlockConfig(*s) for s in sizes], layer_scale=0.5, num_classes=5))

    def taps(x):
        h, out = normalised(x), {}
        for i, part in enumerate(net.features):
            h = part(h)
            if i == 0 or i % 2:
                out["s%d" % ((i + 1) // 2)] = h
        pooled = net.classifier[0](net.avgpool(h))
        return dict({"pooled": pooled.flatten(1), "logits": net.classifier[1:](pooled)}, **out)
    return case(net, taps, (2, 3, 40, 52), "pooled")


CASES = {
    "convnext_tv": convnext_tv,
    "inception_v3": inception,
    "inception_v3_fid": inception_fid,
    "inception_v3_clean_fid": lambda: inception_fid("float-aa"),
    "inception_v3_tf": lambda: inception_fid("tf-inception"),
    "convnext_timm": convnext_v1_timm,
    "convnextv2_timm": convnextv2_timm,
    "convnextv2_hf": lambda: convnextv2_hf(True),
    "convnextv2_hf_body": lambda: convnextv2_hf(False),
}
