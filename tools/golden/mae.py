# SPDX-License-Identifier: Apache-2.0
"""The published masked autoencoder, written from its text: forward, loss, every gradient by formula weights."""
import json

import numpy as np
import torch
import torch.nn.functional as F

from . import formula
from .unet import relative

BATCH, EPS, LABELS = 2, 1e-6, 0.1
BLOCKS = (3, 4, 6, 3)
#          side, channels, width, patchify, classes
CONFIGS = {"latent": (16, 4, 4, 1, 5), "pixels": (32, 3, 6, 2, 3)}


def config(name):
    side, channels, width, patchify, classes = CONFIGS[name]
    return dict(_class_name="LeewayMAE", image_size=side, in_channels=channels, base_channels=width,
                input_patchify_size=patchify, num_classes=classes, decoder=True)


def shapes(channels, width, patchify, classes):
    """Every parameter: name to shape."""
    s = {}

    def conv(name, i, o, k):
        s[name + ".weight"] = (o, i, k, k)

    def norm(name, c):
        s[name + ".weight"] = s[name + ".bias"] = (c,)

    def pair(scope, n, i, o):
        conv("%sconv%d" % (scope, n), i, o, 3)
        norm("%snorm%d" % (scope, n), o)

    inputs, c = channels * patchify ** 2, width
    pair("", 1, inputs, width)
    for stage, blocks in enumerate(BLOCKS, 1):
        o = width << (stage - 1)
        for i in range(blocks):
            scope = "layer%d.%d." % (stage, i)
            pair(scope, 1, c, o)
            pair(scope, 2, o, o)
            if c != o or (i == 0 and stage > 1):
                conv(scope + "downsample.0", c, o, 1)
                norm(scope + "downsample.1", o)
            c = o
        norm("layer%d.norm" % stage, o)
    pair("decoder.0.", 1, c, c)
    for i, skip in enumerate((4 * width, 2 * width, width, width), 1):
        norm("decoder.%d.norm0" % i, c + skip)
        pair("decoder.%d." % i, 1, c + skip, skip)
        pair("decoder.%d." % i, 2, skip, skip)
        c = skip
    conv("head", width, inputs, 1)
    s["head.bias"] = (inputs,)
    if classes:
        s["fc.weight"], s["fc.bias"] = (classes, 8 * width), (classes,)
    return s


def parameters(shape, dtype):
    return {n: torch.from_numpy(formula.parameter(n, s)).to(dtype).requires_grad_() for n, s in shape.items()}


def group_norm(p, name, x):
    groups = next(g for g in range(32, 0, -1) if x.shape[1] % g == 0)
    return F.group_norm(x, groups, p[name + ".weight"], p[name + ".bias"], EPS)


def pair(p, scope, n, x, stride=1):
    x = F.conv2d(x, p["%sconv%d.weight" % (scope, n)], None, stride, 1)
    return group_norm(p, "%snorm%d" % (scope, n), x)


def places(x, patchify):
    """[B,C,H,W] -> [B,p p C,H/p,W/p], channels of a place by row, column, colour."""
    b, c, h, w = x.shape
    x = x.reshape(b, c, h // patchify, patchify, w // patchify, patchify)
    return x.permute(0, 3, 5, 1, 2, 4).reshape(b, -1, h // patchify, w // patchify)


def features(p, x):
    """The twelve maps by name, of places."""
    maps = {"conv1": F.relu(pair(p, "", 1, x))}
    h = maps["conv1"]
    for stage, blocks in enumerate(BLOCKS, 1):
        for i in range(blocks):
            scope, stride = "layer%d.%d." % (stage, i), 2 if i == 0 and stage > 1 else 1
            r = pair(p, scope, 2, F.relu(pair(p, scope, 1, h, stride)))
            if scope + "downsample.0.weight" in p:
                h = F.conv2d(h, p[scope + "downsample.0.weight"], None, stride)
                h = group_norm(p, scope + "downsample.1", h)
            h = F.relu(r + h)
            if i % 2:
                maps["layer%d_blk%d" % (stage, i + 1)] = h
        h = maps["layer%d" % stage] = group_norm(p, "layer%d.norm" % stage, h)
    return maps


def decode(p, maps):
    h = F.relu(pair(p, "decoder.0.", 1, maps["layer4"]))
    for i, skip in enumerate(("layer3", "layer2", "layer1", "conv1"), 1):
        skip = maps[skip]
        h = F.interpolate(h, size=skip.shape[2:], mode="bilinear", align_corners=False)
        h = group_norm(p, "decoder.%d.norm0" % i, torch.cat([h, skip], 1))
        for n in (1, 2):
            h = F.relu(pair(p, "decoder.%d." % i, n, h))
    return F.conv2d(h, p["head.weight"], p["head.bias"])


def run(name, dtype):
    side, channels, width, patchify, classes = CONFIGS[name]
    tag, grid = "mae_unet.%s." % name, side // patchify
    p = parameters(shapes(channels, width, patchify, classes), dtype)
    x = torch.from_numpy(formula.unit(tag + "x", (BATCH, channels, side, side))).to(dtype).requires_grad_()
    cells = torch.from_numpy(formula.uniform(tag + "mask", BATCH * (grid // 2) ** 2) < 0).to(dtype)
    mask = F.interpolate(cells.reshape(BATCH, 1, grid // 2, grid // 2), scale_factor=2.0, mode="nearest")
    seen = places(x, patchify)
    maps = features(p, seen * (1 - mask))
    rec = decode(p, maps)
    err = ((rec - seen) ** 2 * mask).sum((1, 2, 3)) / (mask.sum((1, 2, 3)) + 1e-8)
    logits = maps["layer4"].mean((2, 3)) @ p["fc.weight"].T + p["fc.bias"]
    labels = torch.from_numpy(formula.integers(tag + "labels", BATCH, classes))
    ce = F.cross_entropy(logits, labels, reduction="none")
    loss = ((1 - LABELS) * err + LABELS * ce).mean()
    grads = dict(zip(p, torch.autograd.grad(loss, list(p.values()))))
    clear = features(p, seen)  # what a drift loss sees, and its gradient to the picture
    pull = sum((m * torch.from_numpy(formula.unit(tag + k, tuple(m.shape)))).mean() for k, m in clear.items())
    gx, = torch.autograd.grad(pull, x)
    return dict(rec=rec, err=err, logits=logits, loss=loss.reshape(1), gx=gx), grads, clear


def golden(name):
    """loss, reconstruction, maps, gradients to the picture and to every parameter (sketches)."""
    to = lambda r: [{k: v.detach().numpy() for k, v in d.items()} for d in r]
    out, grads, maps = to(run(name, torch.float64))
    out32, grads32, maps32 = to(run(name, torch.float32))
    total = float(np.sqrt(sum((g ** 2).sum() for g in grads.values())))
    res = {k: out[k] for k in ("err", "logits", "loss")}
    res["grad_norm"] = np.array([total])
    for k in ("rec", "gx"):
        res["sketch." + k] = formula.sketch(k, out[k])
    for k, v in maps.items():
        res["sketch." + k] = formula.sketch(k, v)
    for k, v in grads.items():
        res["grad." + k] = formula.sketch(k, v)
    worst = max((relative(grads32[k], v, 1e-5 * total), k) for k, v in grads.items())
    meta = {"config": json.dumps(config(name)), "torch_f32.worst_gradient": worst,
            "torch_f32.gx": "%.2e" % relative(out32["gx"], out["gx"]),
            "torch_f32.rec": "%.2e" % relative(out32["rec"], out["rec"]),
            "parameters": sum(g.size for g in grads.values())}
    return res, meta
