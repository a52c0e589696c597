# SPDX-License-Identifier: Apache-2.0
"""The shared U-Net through diffusers' UNet2DModel: names, forward, gradients, training steps."""
import inspect
import json
import math
import os

import numpy as np
import torch
from diffusers import UNet2DModel

from . import formula
from .spec_unet import SpecUNet, copy_from_diffusers

#           base, mult,        blocks, attn at, heads, groups, size, classes
CONFIGS = {
    "tiny": (16, (1, 2), 1, (8,), 4, 8, 16, 10),
    "demo": (32, (1, 2, 2), 1, (), 4, 8, 16, 10),
    "small": (128, (1, 2, 2, 2), 2, (16,), 4, 32, 32, 0),
    "large": (256, (1, 2, 2, 2), 3, (16, 8), 8, 32, 32, 0),
}
COUNTS = {"small": 38307203, "large": 209976323}
FULL_GRADIENT = 1024  # gradients of at most this many elements are stored whole


class TimeProj(torch.nn.Module):
    """The sinusoid in double: diffusers computes it in float32 whatever the model's type."""

    def __init__(self, dim, cos_first=True, shift=0):
        super().__init__()
        half = dim // 2
        self.freq = torch.exp(-math.log(1e4) * torch.arange(half, dtype=torch.float64)
                              / (half - shift))
        self.cos_first = cos_first

    def forward(self, t):
        a = t.double()[:, None] * self.freq
        return torch.cat([a.cos(), a.sin()] if self.cos_first else [a.sin(), a.cos()], 1)


def config(name, channels=3):
    """UNet2DModel keywords. Heads are given as attention_head_dim, so every level that has
    attention (and the middle) must have the same width."""
    base, mult, blocks, attn, heads, groups, size, classes = CONFIGS[name]
    has = [size >> i in attn for i in range(len(mult))]
    widths = {m * base for m, a in zip(mult, has) if a} | {mult[-1] * base}
    assert len(widths) == 1, widths
    return dict(
        sample_size=size, in_channels=channels, out_channels=channels, layers_per_block=blocks,
        block_out_channels=tuple(m * base for m in mult),
        down_block_types=tuple("AttnDownBlock2D" if a else "DownBlock2D" for a in has),
        up_block_types=tuple("AttnUpBlock2D" if a else "UpBlock2D" for a in reversed(has)),
        attention_head_dim=mult[-1] * base // heads, norm_num_groups=groups,
        attn_norm_num_groups=groups, norm_eps=1e-5, resnet_time_scale_shift="scale_shift",
        flip_sin_to_cos=True, freq_shift=0, downsample_padding=1, dropout=0.0,
        num_class_embeds=classes or None)


def build(name, dtype, channels=3):
    """The model with formula weights (also in the tensors that training starts at zero)."""
    net = UNet2DModel(**config(name, channels))
    for pname, p in net.named_parameters():
        p.data.copy_(torch.from_numpy(formula.parameter(pname, tuple(p.shape))))
    net = net.to(dtype)
    if dtype == torch.float64:
        net.time_proj = TimeProj(CONFIGS[name][0])
    return net.eval()


def same_as_spec(name):
    """Largest difference between diffusers' network and the one written from the text."""
    base, mult, blocks, attn, heads, groups, size, classes = CONFIGS[name]
    net = build(name, torch.float64)
    spec = SpecUNet(base, mult, blocks, attn, heads, groups, size, classes).double()
    copy_from_diffusers(spec, net)
    count = sum(p.numel() for p in net.parameters())
    assert count == sum(p.numel() for p in spec.parameters())
    assert count == COUNTS.get(name, count), count
    x, t, y = inputs(name, 2)
    with torch.no_grad():
        a = call(net, x.double(), t, y)
        b = spec(x.double(), t, y)
    diff = ((a - b).abs().max() / a.abs().max()).item()
    assert diff < 1e-12, diff
    return count, diff


def inputs(name, batch):
    size, classes = CONFIGS[name][6:]
    x = torch.from_numpy(formula.unit(name + ".x", (batch, 3, size, size)))
    t = torch.from_numpy(formula.integers(name + ".t", batch, 1000))
    y = torch.from_numpy(formula.integers(name + ".labels", batch, classes)) if classes else None
    return x, t, y


def call(net, x, t, y):
    return net(x, t, class_labels=y, return_dict=False)[0]


def gradients(name, batch, dtype):
    """Loss mean((out - target)^2), its output and its gradients by name."""
    net = build(name, dtype)
    x, t, y = inputs(name, batch)
    x = x.to(dtype).requires_grad_()
    target = torch.from_numpy(formula.unit(name + ".target", tuple(x.shape))).to(dtype)
    out = call(net, x, t, y)
    loss = ((out - target) ** 2).mean()
    loss.backward()
    grads = {n: p.grad.numpy() for n, p in net.named_parameters()}
    return out.detach().numpy(), loss.item(), x.grad.numpy(), grads


def relative(a, b, floor=0.0):
    """|a - b| / max(|b|, floor)."""
    a, b = np.float64(a).ravel(), np.float64(b).ravel()
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), floor))


def is_invariant(name):
    """The key bias shifts every logit of a row alike: its gradient is zero, what is computed is
    rounding noise, and AdamW turns that noise into steps. Such tensors cannot be compared."""
    return name.endswith("to_k.bias")


def count_parameters(name):
    """Without allocating them."""
    with torch.device("meta"):
        return sum(p.numel() for p in UNet2DModel(**config(name)).parameters())


def golden(name, batch, full):
    """Tensors and metadata of one network; full stores every gradient, else sketches."""
    out, loss, gx, grads = gradients(name, batch, torch.float64)
    o32, l32, gx32, g32 = gradients(name, batch, torch.float32)
    x, t, y = inputs(name, batch)
    res = {"x": x.numpy(), "t": t.numpy(), "y": out, "loss": np.array([loss]), "gx": gx}
    if y is not None:
        res["labels"] = y.numpy()
    for n, g in grads.items():
        res["sketch." + n] = formula.sketch(n, g)
        if full or g.size <= FULL_GRADIENT:
            res["grad." + n] = np.float32(g)
    total = float(np.sqrt(sum((g ** 2).sum() for g in grads.values())))
    dev = sorted((relative(g32[n], g, 1e-5 * total), n) for n, g in grads.items())
    res["grad_norm"] = np.array([total])
    meta = {"torch_f32.y": "%.2e" % relative(o32, out), "torch_f32.gx": "%.2e" % relative(gx32, gx),
            "torch_f32.loss": "%.2e" % abs(l32 / loss - 1), "torch_f32.worst_gradient": dev[-1],
            "torch_f32.median_gradient": "%.2e" % dev[len(dev) // 2][0], "batch": batch,
            "parameters": sum(g.size for g in grads.values())}
    return res, meta


# ---- what published folders have and ours have not -----------------------------------------------

BASE = dict(sample_size=8, layers_per_block=1, block_out_channels=[8, 16],
            down_block_types=["DownBlock2D", "AttnDownBlock2D"],
            up_block_types=["AttnUpBlock2D", "UpBlock2D"], attention_head_dim=8,
            norm_num_groups=4, num_class_embeds=None)
SHIFT = dict(resnet_time_scale_shift="scale_shift", attn_norm_num_groups=4)
VARIANTS = {
    "plain": {},  # diffusers' own defaults
    "middle": dict(mid_block_scale_factor=1.7),
    "middle_shift": dict(mid_block_scale_factor=0.6, **SHIFT),
    "middle_bare": dict(mid_block_scale_factor=-2, add_attention=False, **SHIFT),
    "published": dict(attention_head_dim=None, downsample_padding=0, flip_sin_to_cos=False,
                      freq_shift=1, norm_eps=1e-6),
    "square": dict(sample_size=[8, 8], time_embedding_dim=32, act_fn="swish",
                   num_train_timesteps=1000),
    "gray": dict(in_channels=1, out_channels=1),
    "five": dict(in_channels=5, out_channels=5),
    "condition": dict(in_channels=12, out_channels=3),
}


# What diffusers' network is told of its channels: nothing. Ours: noise, a frame, two previous answers.
OURS = {"condition": dict(leeway_condition=dict(frame=True, previous=2))}


def variants(directory):
    """y of each by formula weights; its configuration as diffusers writes it."""
    res, configs = {}, {}
    t = torch.from_numpy(formula.integers("variants.t", 2, 1000))
    for name, change in VARIANTS.items():
        net = UNet2DModel(**{**BASE, **change})
        configs[name] = {**json.loads(net.to_json_string()), **OURS.get(name, {})}
        for pname, p in net.named_parameters():
            p.data.copy_(torch.from_numpy(formula.parameter(pname, tuple(p.shape))))
        net = net.double().eval()
        net.time_proj = TimeProj(8, net.config.flip_sin_to_cos, net.config.freq_shift)
        shape = (2, net.config.in_channels, 8, 8)
        x = torch.from_numpy(formula.unit("variants.x", shape)).double()
        with torch.no_grad():
            res[name + ".y"] = call(net, x, t, None).numpy()
    with open(os.path.join(directory, "unet_variants.json"), "w") as f:
        json.dump(configs, f, indent=1, sort_keys=True)
        f.write("\n")
    return res


def write_keys(path, classes):
    """Every parameter of diffusers' constructors, which are the keys of its configurations."""
    with open(path, "w") as f:
        for c in classes:
            for key in inspect.signature(c.__init__).parameters:
                if key != "self":
                    f.write("%s %s\n" % (c.__name__, key))


# ---- ten training steps of DDPM --------------------------------------------------------------

TRAIN = {"tiny": dict(steps=10, batch=4, lr=1e-3, wd=0.01, clip=1.0, ema=0.999),
         "small": dict(steps=10, batch=2, lr=2e-4, wd=0.0, clip=1.0, ema=0.9999)}


def batch_of(name, step, size, classes, batch):
    """Step's images, noise, times and labels, all from the formula."""
    tag = "%s.step%d." % (name, step)
    x0 = formula.values(tag + "x0", (batch, 3, size, size))
    eps = formula.unit(tag + "eps", (batch, 3, size, size))
    t = formula.integers(tag + "t", batch, 1000)
    y = formula.integers(tag + "labels", batch, classes) if classes else None
    return x0, eps, t, y


def alpha_bar():
    """Product of 1 - beta in double, beta linear from 1e-4 to 0.02 in 1000 steps."""
    return np.cumprod(1.0 - np.linspace(1e-4, 0.02, 1000))


def train(name, dtype):
    """Losses, gradient norms (before clipping), EMA decays, and final and EMA parameters."""
    o = TRAIN[name]
    size, classes = CONFIGS[name][6:]
    net = build(name, dtype)
    params = dict(net.named_parameters())
    ema = {n: p.detach().clone() for n, p in params.items()}
    opt = torch.optim.AdamW(params.values(), lr=o["lr"], betas=(0.9, 0.999), eps=1e-8,
                            weight_decay=o["wd"])
    abar, losses, norms, decays = alpha_bar(), [], [], []
    for s in range(o["steps"]):
        x0, eps, t, y = batch_of(name, s, size, classes, o["batch"])
        a = abar[t][:, None, None, None]
        xt = torch.from_numpy(np.sqrt(a) * x0 + np.sqrt(1.0 - a) * eps).to(dtype)
        out = call(net, xt, torch.from_numpy(t), torch.from_numpy(y) if classes else None)
        loss = ((out - torch.from_numpy(eps).to(dtype)) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(params.values(), o["clip"])))
        opt.step()
        d = min(o["ema"], (1.0 + s + 1) / (10.0 + s + 1))
        for n, p in params.items():
            ema[n].mul_(d).add_(p.detach(), alpha=1 - d)
        losses.append(loss.item())
        decays.append(d)
    final = {n: p.detach().numpy() for n, p in params.items()}
    return losses, norms, decays, final, {n: e.numpy() for n, e in ema.items()}


def golden_training(name):
    losses, norms, decays, final, ema = train(name, torch.float64)
    l32, n32, _, f32, e32 = train(name, torch.float32)
    res = {"losses": np.array(losses), "grad_norms": np.array(norms), "ema_decays": np.array(decays),
           "alpha_bar": alpha_bar()}
    for n in filter(lambda m: not is_invariant(m), final):
        res["param." + n], res["ema." + n] = formula.sketch(n, final[n]), formula.sketch(n, ema[n])
    meta = dict(TRAIN[name], betas="0.9 0.999", eps=1e-8)
    meta["torch_f32.losses"] = "%.2e" % max(abs(a / b - 1) for a, b in zip(l32, losses))
    meta["torch_f32.grad_norms"] = "%.2e" % max(abs(a / b - 1) for a, b in zip(n32, norms))
    meta["torch_f32.worst_param"] = max((relative(f32[n], final[n]), n) for n in final
                                     if not is_invariant(n))
    meta["torch_f32.worst_ema"] = max((relative(e32[n], ema[n]), n) for n in final
                                   if not is_invariant(n))
    return res, meta


def write_names(path, name):
    """Every parameter of the configuration: name and shape, one a line."""
    with torch.device("meta"):
        net = UNet2DModel(**config(name))
    with open(path, "w") as f:
        for n, p in net.named_parameters():
            f.write("%s %s\n" % (n, "x".join(map(str, p.shape))))


def write_config(path, name, channels=3):
    """config.json as diffusers writes it (without its version, which would date the file)."""
    with torch.device("meta"):
        cfg = {k: v for k, v in dict(UNet2DModel(**config(name, channels)).config).items()
               if not k.startswith("_")}
    with open(path, "w") as f:
        json.dump(dict(_class_name="UNet2DModel", **cfg), f, indent=2, sort_keys=True)
        f.write("\n")
