# SPDX-License-Identifier: Apache-2.0
"""Single layers, forward and gradients, computed by PyTorch in double from float32 inputs.

Every case C stores C.<input>, C.y, C.gy (gradient of the loss with respect to y) and
C.g<input> for each differentiable input. Layouts are PyTorch's (NCHW, OIHW).
"""
import numpy as np
import torch
import torch.nn.functional as F

from . import formula


class Cases:
    """Collects cases: inputs from the formula, outputs and gradients from autograd."""

    def __init__(self):
        self.out = {}

    def add(self, case, fn, **inputs):
        args = {}
        for name, v in inputs.items():
            if isinstance(v, tuple):
                v = formula.unit(case + "." + name, v)
            self.out[case + "." + name] = v
            t = torch.from_numpy(np.array(v))
            args[name] = t.double().requires_grad_() if t.is_floating_point() else t
        y = fn(**args)
        gy = formula.unit(case + ".gy", tuple(y.shape))
        leaves = {n: t for n, t in args.items() if t.requires_grad}
        grads = torch.autograd.grad((y * torch.from_numpy(gy).double()).sum(), leaves.values())
        self.out[case + ".y"] = y.detach().numpy()
        self.out[case + ".gy"] = gy
        for n, g in zip(leaves, grads):
            self.out[case + ".g" + n] = g.numpy()


def convolutions(c):
    def conv(stride, pad):
        return lambda x, w, b: F.conv2d(x, w, b, stride=stride, padding=pad)
    sizes = {"odd": (2, 5, 7, 7, 6), "c16": (2, 16, 32, 8, 8), "c3": (1, 3, 20, 9, 5)}
    for tag, (n, ci, co, h, w) in sizes.items():
        for kind, k, s, p in (("3x3", 3, 1, 1), ("3x3s2", 3, 2, 1), ("1x1", 1, 1, 0),
                              ("1x1s2", 1, 2, 0)):
            c.add("conv%s.%s" % (kind, tag), conv(s, p), x=(n, ci, h, w),
                  w=formula.parameter("w%s.%s" % (kind, tag), (co, ci, k, k)), b=(co,))


    for tag, k, s, p, more in (("k3s2", 3, 2, 1, 1), ("k4s2", 4, 2, 1, 0), ("k2s3", 2, 3, 0, 2),
                               ("k5s1", 5, 1, 2, 0)):
        c.add("conv_transpose." + tag, lambda x, w, b, s=s, p=p, more=more: F.conv_transpose2d(
            x, w, b, stride=s, padding=p, output_padding=more), x=(2, 6, 4, 5),
            w=formula.parameter("wt." + tag, (6, 9, k, k)), b=(9,))
    for tag, k, s in (("k3", 3, 1), ("k3s2", 3, 2), ("k5s2", 5, 2)):
        c.add("depthwise." + tag, lambda x, w, b, k=k, s=s: F.conv2d(
            x, w, b, stride=s, padding=k // 2, groups=19), x=(2, 19, 7, 6),
            w=formula.parameter("wd." + tag, (19, 1, k, k)), b=(19,))


def norms(c):
    def ada(groups, silu):
        def fn(x, gamma, beta, scale, shift):
            h = F.group_norm(x, groups, gamma, beta, eps=1e-5)
            h = h * (1 + scale[:, :, None, None]) + shift[:, :, None, None]
            return F.silu(h) if silu else h
        return fn

    def gn(groups, act):
        return lambda x, gamma, beta: act(F.group_norm(x, groups, gamma, beta, eps=1e-5))
    for tag, n, ch, g, h, w in (("odd", 2, 12, 4, 5, 3), ("c32", 2, 32, 8, 4, 4),
                                ("c64g32", 1, 64, 32, 8, 8)):
        sh = dict(x=(n, ch, h, w), gamma=(ch,), beta=(ch,))
        c.add("groupnorm." + tag, gn(g, lambda v: v), **sh)
        c.add("groupnorm_silu." + tag, gn(g, F.silu), **sh)
        c.add("groupnorm_relu." + tag, gn(g, F.relu), **sh)
        c.add("groupnorm_scale_shift_silu." + tag, ada(g, True), scale=(n, ch), shift=(n, ch), **sh)
    mean = formula.values("bn.mean", (10,), 0.0, 0.2)
    var = formula.values("bn.var", (10,), 1.0, 0.5)

    def bn(x, gamma, beta):
        return F.batch_norm(x, torch.from_numpy(mean).double(), torch.from_numpy(var).double(),
                            gamma, beta, training=False, eps=1e-5)
    c.add("batchnorm", bn, x=(2, 10, 5, 3), gamma=(10,), beta=(10,))
    c.out["batchnorm.mean"], c.out["batchnorm.var"] = mean, var


def attention(c):
    """q, k, v are [B, T, C]; heads are consecutive slices of C; scale is 1/sqrt(C/heads)."""
    def att(heads):
        def fn(q, k, v):
            b, t, ch = q.shape
            sp = lambda a: a.reshape(b, -1, heads, ch // heads).transpose(1, 2)
            s = sp(q) @ sp(k).transpose(-1, -2) / (ch // heads) ** 0.5
            return (torch.softmax(s, -1) @ sp(v)).transpose(1, 2).reshape(b, t, ch)
        return fn
    for tag, b, t, ch, heads in (("t9", 2, 9, 16, 4), ("t64", 1, 64, 32, 4), ("t16h1", 3, 16, 24, 1)):
        c.add("attention." + tag, att(heads), q=(b, t, ch), k=(b, t, ch), v=(b, t, ch))


def simple(c):
    c.add("linear.odd", F.linear, input=(3, 7), weight=(5, 7), bias=(5,))
    c.add("linear.k64", F.linear, input=(4, 64), weight=(48, 64), bias=(48,))
    for name, fn in (("silu", F.silu), ("relu", F.relu), ("tanh", torch.tanh),
                     ("sigmoid", torch.sigmoid)):
        c.add(name, fn, input=(3, 37))
    c.add("relu6", F.relu6, input=formula.values("relu6.input", (3, 37), 3.0, 9.0))
    c.add("softmax", lambda x: torch.softmax(x, -1), x=(4, 11))
    ids = np.array([2, 0, 2, 4, 1], dtype=np.int32)
    c.out["embedding.ids"] = ids
    c.add("embedding", lambda weight: F.embedding(torch.from_numpy(ids).long(), weight),
          weight=(6, 9))
    labels = np.array([3, 0, 9, 9, 5, 1], dtype=np.int32)
    c.out["cross_entropy.labels"] = labels
    c.add("cross_entropy", lambda x: F.cross_entropy(x, torch.from_numpy(labels).long()), x=(6, 10))


def resize(mode, antialias, **to):
    return lambda x: F.interpolate(x, mode=mode, align_corners=False, antialias=antialias, **to)


def resampling(c):
    sh = (2, 5, 6, 8)
    c.add("upsample_nearest2", lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest"), x=sh)
    c.add("avgpool2", lambda x: F.avg_pool2d(x, 2), x=sh)
    c.add("global_avg", lambda x: x.mean((2, 3)), x=sh)
    c.add("maxpool3s2p1", lambda x: F.max_pool2d(x, 3, 2, 1), x=sh)
    c.add("maxpool2", lambda x: F.max_pool2d(x, 2), x=sh)
    for tag, size in (("up", (9, 17)), ("down", (4, 3)), ("x2", (12, 16)), ("mixed", (14, 5))):
        c.add("bilinear." + tag, resize("bilinear", False, size=size), x=sh)
    narrow, wide = (1, 2, 6, 8), (1, 17, 3, 4)
    for mode, antialias, tag, sizes in (
            ("bilinear", True, "bilinear_aa", ((narrow, 9, 17), (narrow, 4, 3), (wide, 3, 5))),
            ("bicubic", False, "bicubic", ((narrow, 9, 17), (narrow, 4, 3), (wide, 7, 3))),
            ("bicubic", True, "bicubic_aa", ((narrow, 9, 17), (narrow, 4, 3), (wide, 2, 4)))):
        for name, (shape, h, w) in zip(("up", "down", "wide"), sizes):
            c.add("%s.%s" % (tag, name), resize(mode, antialias, size=(h, w)), x=shape)
        if mode == "bicubic":  # DINOv2's position table
            scale = (2 + 0.1) / 3, (5 + 0.1) / 4
            c.add(tag + ".scale", resize(mode, antialias, scale_factor=scale), x=wide)


def keys(c):
    """Statistics of spec 2.1 of one map [2,6,8,8]: slots in row-major order, then channels."""
    def stat(patch, std):
        def fn(x):
            b, ch, h, w = x.shape
            ph, pw = (h, w) if patch == 0 else (patch, patch)
            p = x.reshape(b, ch, h // ph, ph, w // pw, pw)
            m = p.mean((3, 5))
            if std:
                m = (p.var((3, 5), unbiased=False) + 1e-6).sqrt()
            return m.permute(0, 2, 3, 1).reshape(b, -1, ch)
        return fn
    for patch in (0, 2, 4):
        tag = "_%d" % patch if patch else ""
        c.add("key.mean" + tag, stat(patch, False), x=(2, 6, 8, 8))
        c.add("key.std" + tag, stat(patch, True), x=(2, 6, 8, 8))


def time_embedding(out):
    """[cos | sin] of t * exp(-ln(1e4) k / half), the U-Net's sinusoid, in double."""
    t = np.array([0.0, 1.0, 7.0, 500.0, 999.0])
    for dim in (16, 128):
        half = dim // 2
        arg = t[:, None] * np.exp(-np.log(1e4) * np.arange(half) / half)
        out["time_proj.%d" % dim] = np.concatenate([np.cos(arg), np.sin(arg)], 1)
    out["time_proj.t"] = t


def make():
    c = Cases()
    for part in (convolutions, norms, attention, simple, resampling, keys):
        part(c)
    return c.out


def make_formula():
    """The formula's own values and the time embedding, in double."""
    out = formula.formula_rows()
    time_embedding(out)
    return out
