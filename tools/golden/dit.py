# SPDX-License-Identifier: Apache-2.0
"""The drifting transformer, written from its text: forward and every gradient by formula weights."""
import json

import numpy as np
import torch
import torch.nn.functional as F

from . import formula
from .unet import relative

BATCH = 3
#            side, channels, patch, hidden, depth, heads, classes, styles, words, tokens, qk-norm, rope
CONFIGS = {
    "published": (8, 4, 2, 48, 2, 3, 5, 3, 7, 2, True, "1d_flat"),
    "axial": (8, 3, 4, 32, 1, 2, 0, 2, 4, 3, True, "2d_axial"),
    "bare": (4, 2, 1, 16, 1, 1, 4, 0, 0, 0, False, None),
}
EPS, BASE, RATIO = 1e-6, 1e4, 4.0


def config(name):
    side, channels, patch, hidden, depth, heads, classes, styles, words, tokens, qk, rope = CONFIGS[name]
    c = dict(_class_name="LeewayDiT", input_size=side, in_channels=channels, out_channels=channels,
             patch_size=patch, hidden_size=hidden, cond_dim=hidden, depth=depth, num_heads=heads,
             mlp_ratio=RATIO, num_classes=classes, noise_coords=styles, noise_classes=words,
             n_cls_tokens=tokens, use_qknorm=qk, use_rope=rope is not None, use_rmsnorm=True,
             use_swiglu=True)
    if rope == "2d_axial":
        c["leeway_rope"] = rope
    return c


def shapes(name):
    """Every parameter of a configuration: name to shape, linear layers [in, out]."""
    side, channels, patch, hid, depth, heads, classes, styles, words, tokens, qk, _ = CONFIGS[name]
    inner = -(-int(2 / 3 * int(hid * RATIO)) // 32) * 32
    s = {}

    def dense(scope, i, o):
        s[scope + ".Dense_0.kernel"], s[scope + ".Dense_0.bias"] = (i, o), (o,)

    if classes:
        s["Embed_0.embedding"] = (classes, hid)
    for i in range(styles):
        s["noise_embeds_%d.embedding" % i] = (words, hid)
    dense("TimestepEmbedder_0.TorchLinear_0", 256, hid)
    dense("TimestepEmbedder_0.TorchLinear_1", hid, hid)
    s["RMSNorm_0.weight"] = (hid,)
    net, pixels = "LightningDiT_0", patch * patch * channels
    dense(net + ".TorchLinear_0", pixels, hid)
    s[net + ".pos_embed"] = (1, (side // patch) ** 2, hid)
    if tokens:
        dense(net + ".TorchLinear_1", hid, hid)
        s[net + ".cls_embed"] = (1, tokens, hid)
    for i in range(depth):
        b = net + ".blocks_%d" % i
        s[b + ".RMSNorm_0.weight"] = s[b + ".RMSNorm_1.weight"] = (hid,)
        dense(b + ".Attention_0.TorchLinear_0", hid, 3 * hid)
        if qk:
            s[b + ".Attention_0.q_norm.weight"] = s[b + ".Attention_0.k_norm.weight"] = (hid // heads,)
        dense(b + ".Attention_0.TorchLinear_1", hid, hid)
        dense(b + ".SwiGLUFFN_0.TorchLinear_0", hid, inner)
        dense(b + ".SwiGLUFFN_0.TorchLinear_1", hid, inner)
        dense(b + ".SwiGLUFFN_0.TorchLinear_2", inner, hid)
        dense(b + ".TorchLinear_0", hid, 6 * hid)
    f = net + ".FinalLayer_0"
    s[f + ".RMSNorm_0.weight"] = (hid,)
    dense(f + ".TorchLinear_0", hid, 2 * hid)
    dense(f + ".TorchLinear_1", hid, pixels)
    return s


def parameters(name, dtype):
    return {n: torch.from_numpy(formula.parameter(n, s)).to(dtype).requires_grad_()
            for n, s in shapes(name).items()}


def rms(x, w=None):
    x = x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS)
    return x if w is None else x * w


def places(tokens, side, rope):
    """What positions multiply frequencies with: a list of axes, each one number per token."""
    if rope == "1d_flat":
        return [torch.arange(tokens + side * side)]
    grid = torch.arange(side * side)
    none = torch.zeros(tokens, dtype=torch.int64)
    return [torch.cat([none, grid // side]), torch.cat([none, grid % side])]


def rotate(x, axes):
    """x [B,T,H,D]: each axis turns its share of the channels, halves against each other."""
    out = []
    for part, place in zip(x.chunk(len(axes), -1), axes):
        half = part.shape[-1] // 2
        freq = 1.0 / BASE ** (torch.arange(half, dtype=torch.float64) / half)
        a = (place[:, None] * freq)[None, :, None, :].to(x.dtype)
        u, v = part[..., :half], part[..., half:]
        out += [u * a.cos() - v * a.sin(), v * a.cos() + u * a.sin()]
    return torch.cat(out, -1)


def forward(name, p, x, alpha, labels, styles):
    """x [B,C,H,W] -> the same."""
    side, channels, patch, hid, depth, heads, classes, n_styles, _, tokens, qk, rope = CONFIGS[name]
    batch, grid = x.shape[0], side // patch

    def dense(scope, v):
        return v @ p[scope + ".Dense_0.kernel"] + p[scope + ".Dense_0.bias"]

    k = torch.arange(128, dtype=torch.float64)
    a = alpha.double()[:, None] * torch.exp(-np.log(1e4) * k / 128)
    e = torch.cat([a.cos(), a.sin()], 1).to(x.dtype)
    e = dense("TimestepEmbedder_0.TorchLinear_1", F.silu(dense("TimestepEmbedder_0.TorchLinear_0", e)))
    cond = 0.02 * rms(e, p["RMSNorm_0.weight"])
    if classes:
        cond = cond + p["Embed_0.embedding"][labels]
    for i in range(n_styles):
        cond = cond + p["noise_embeds_%d.embedding" % i][styles[:, i]]
    net = "LightningDiT_0"
    h = x.permute(0, 2, 3, 1).reshape(batch, grid, patch, grid, patch, channels)
    h = h.permute(0, 1, 3, 2, 4, 5).reshape(batch, grid * grid, -1)
    h = dense(net + ".TorchLinear_0", h) + p[net + ".pos_embed"]
    if tokens:
        own = dense(net + ".TorchLinear_1", cond)[:, None] + p[net + ".cls_embed"]
        h = torch.cat([own, h], 1)
    act, axes = F.silu(cond), places(tokens, grid, rope) if rope else None

    def modulation(scope, n):
        return [m[:, None] for m in dense(scope, act).chunk(n, 1)]

    for i in range(depth):
        b = net + ".blocks_%d" % i
        s1, c1, g1, s2, c2, g2 = modulation(b + ".TorchLinear_0", 6)
        v = rms(h, p[b + ".RMSNorm_0.weight"]) * (1 + c1) + s1
        q, key, v = dense(b + ".Attention_0.TorchLinear_0", v).reshape(
            batch, -1, 3, heads, hid // heads).unbind(2)
        if qk:
            q, key = rms(q, p[b + ".Attention_0.q_norm.weight"]), rms(key, p[b + ".Attention_0.k_norm.weight"])
        if axes:
            q, key = rotate(q, axes), rotate(key, axes)
        q, key, v = (t.transpose(1, 2) for t in (q, key, v))
        w = torch.softmax(q @ key.transpose(-1, -2) * (hid // heads) ** -0.5, -1)
        o = (w @ v).transpose(1, 2).reshape(batch, -1, hid)
        h = h + g1 * dense(b + ".Attention_0.TorchLinear_1", o)
        v = rms(h, p[b + ".RMSNorm_1.weight"]) * (1 + c2) + s2
        f = b + ".SwiGLUFFN_0.TorchLinear_"
        h = h + g2 * dense(f + "2", F.silu(dense(f + "0", v)) * dense(f + "1", v))
    f = net + ".FinalLayer_0"
    s, c = modulation(f + ".TorchLinear_0", 2)
    h = dense(f + ".TorchLinear_1", rms(h, p[f + ".RMSNorm_0.weight"]) * (1 + c) + s)[:, tokens:]
    h = h.reshape(batch, grid, grid, patch, patch, channels).permute(0, 5, 1, 3, 2, 4)
    return h.reshape(x.shape)


def inputs(name):
    side, channels, _, _, _, _, classes, styles, words = CONFIGS[name][:9]
    tag = "dit.%s." % name
    x = torch.from_numpy(formula.unit(tag + "x", (BATCH, channels, side, side)))
    alpha = torch.from_numpy(formula.values(tag + "alpha", (BATCH,), 2.5, 1.5))
    labels = torch.from_numpy(formula.integers(tag + "labels", BATCH, classes)) if classes else None
    ids = formula.integers(tag + "styles", BATCH * styles, words).reshape(BATCH, styles)
    target = torch.from_numpy(formula.unit(tag + "target", tuple(x.shape)))
    return x, alpha, labels, torch.from_numpy(ids), target


def gradients(name, dtype):
    x, alpha, labels, styles, target = inputs(name)
    p, x = parameters(name, dtype), x.to(dtype).requires_grad_()
    y = forward(name, p, x, alpha, labels, styles)
    loss = ((y - target.to(dtype)) ** 2).mean()
    loss.backward()
    return y.detach().numpy(), loss.item(), x.grad.numpy(), {n: v.grad.numpy() for n, v in p.items()}


def golden(name):
    """y, loss, gradients to x (whole) and to every parameter (sketches; small ones whole)."""
    y, loss, gx, grads = gradients(name, torch.float64)
    y32, l32, gx32, g32 = gradients(name, torch.float32)
    res = {"y": np.float32(y), "loss": np.array([loss]), "gx": np.float32(gx)}
    total = float(np.sqrt(sum((g ** 2).sum() for g in grads.values())))
    for n, g in grads.items():
        res["sketch." + n] = formula.sketch(n, g)
        if g.size <= 256:
            res["grad." + n] = np.float32(g)
    res["grad_norm"] = np.array([total])
    dev = sorted((relative(g32[n], g, 1e-5 * total), n) for n, g in grads.items())
    meta = {"config": json.dumps(config(name)), "torch_f32.y": "%.2e" % relative(y32, y),
            "torch_f32.gx": "%.2e" % relative(gx32, gx), "torch_f32.loss": "%.2e" % abs(l32 / loss - 1),
            "torch_f32.worst_gradient": dev[-1],
            "parameters": sum(g.size for g in grads.values())}
    return res, meta
