#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The drifting transformer DiT-B/2, forward and training: Leeway beside PyTorch, eager and compiled.

    python3 tools/peers/dit_peer.py --leeway build/leeway [--threads 2] [--rounds 5] [--out dit.json]

Rows: forward passes of 8 latents of 32x32x4 in f32 and bf16, training steps of 4 (onto given pictures: forward, backward,
clip, AdamW, average). PyTorch's side is the network of tools/golden/dit.py as its users write it: nn.functional's linear,
fused attention and RMSNorm, fused AdamW, parameters and operands in bf16 or under autocast. Libraries take turns; each
round is one process of Leeway (`leeway bench dit`) and one turn of every setting of PyTorch. --small: does it run?
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import suite_peer  # noqa: E402

if __name__ == "__main__":
    suite_peer.as_peers()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

CLASSES, STYLES, WORDS, TOKENS, PATCH, CHANNELS = 1000, 32, 64, 16, 2, 4


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6)


def turned(x, cos, sin):
    """x [B,H,T,D], halves against each other."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.q_norm, self.k_norm = Norm(width // heads), Norm(width // heads)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate, self.up, self.down = (nn.Linear(width, inner), nn.Linear(width, inner), nn.Linear(inner, width))
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, h, act, cos, sin):
        s1, c1, g1, s2, c2, g2 = self.modulation(act)[:, None].chunk(6, -1)
        b, t, width = h.shape
        v = self.norm1(h) * (1 + c1) + s1
        q, k, v = self.qkv(v).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = turned(self.q_norm(q), cos, sin), turned(self.k_norm(k), cos, sin)
        o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, width)
        h = h + g1 * self.out(o)
        v = self.norm2(h) * (1 + c2) + s2
        return h + g2 * self.down(F.silu(self.gate(v)) * self.up(v))


class Net(nn.Module):
    def __init__(self, side, width, depth, heads):
        super().__init__()
        inner, pixels, self.side = -(-int(2 / 3 * 4 * width) // 32) * 32, PATCH * PATCH * CHANNELS, side // PATCH
        self.label, self.styles = nn.Embedding(CLASSES, width), nn.Embedding(STYLES * WORDS, width)
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.time_norm, self.last_norm = Norm(width), Norm(width)
        self.embed, self.own = nn.Linear(pixels, width), nn.Linear(width, width)
        self.places = nn.Parameter(torch.randn(1, self.side ** 2, width) * 0.02)
        self.tokens = nn.Parameter(torch.randn(1, TOKENS, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, inner) for _ in range(depth))
        self.modulation, self.head = nn.Linear(width, 2 * width), nn.Linear(width, pixels)
        half = width // heads // 2
        turn = torch.arange(TOKENS + self.side ** 2)[:, None] / 1e4 ** (torch.arange(half) / half)
        self.register_buffer("cos", turn.cos())
        self.register_buffer("sin", turn.sin())
        self.register_buffer("waves", torch.exp(-torch.log(torch.tensor(1e4)) * torch.arange(128) / 128))
        self.register_buffer("first", torch.arange(STYLES) * WORDS)

    def forward(self, x, alpha, labels, styles):
        b, s = x.shape[0], self.side
        a = alpha[:, None] * self.waves
        cond = 0.02 * self.time_norm(self.time(torch.cat([a.cos(), a.sin()], 1)))
        cond = cond + self.label(labels) + self.styles(styles + self.first).sum(1)
        h = x.view(b, CHANNELS, s, PATCH, s, PATCH).permute(0, 2, 4, 3, 5, 1).reshape(b, s * s, -1)
        h = torch.cat([self.own(cond)[:, None] + self.tokens, self.embed(h) + self.places], 1)
        act = F.silu(cond)
        for block in self.blocks:
            h = block(h, act, self.cos, self.sin)
        shift, scale = self.modulation(act)[:, None].chunk(2, -1)
        h = self.head(self.last_norm(h) * (1 + scale) + shift)[:, TOKENS:]
        return h.view(b, s, s, PATCH, PATCH, CHANNELS).permute(0, 5, 1, 3, 2, 4).reshape(x.shape)


class Case:
    """One setting: of f32, bf16 (all of it) or autocast."""

    def __init__(self, small, batch, train, how):
        side, width, depth, heads = (8, 48, 2, 3) if small else (32, 768, 12, 12)
        self.how, self.train = how, train
        self.net = Net(side, width, depth, heads)
        dtype = torch.bfloat16 if how == "bf16" else torch.float32
        self.net = self.net.to(dtype)
        self.inputs = (torch.randn(batch, CHANNELS, side, side).to(dtype), torch.rand(batch).to(dtype) + 1,
                       torch.randint(CLASSES, (batch,)), torch.randint(WORDS, (batch, STYLES)))
        self.target = torch.randn(batch, CHANNELS, side, side)
        if train:
            p = list(self.net.parameters())
            self.optimiser = torch.optim.AdamW(p, lr=2e-4, fused=True)
            self.average = [v.detach().clone() for v in p]

    def make(self, call):
        auto = torch.autocast("cpu", torch.bfloat16, enabled=self.how == "autocast")

        def forward():
            with torch.inference_mode(), auto:
                return call(*self.inputs)

        def step():
            with auto:
                y = call(*self.inputs)
            F.mse_loss(y.float(), self.target).backward()
            p = list(self.net.parameters())
            torch.nn.utils.clip_grad_norm_(p, 1.0)
            self.optimiser.step()
            self.optimiser.zero_grad()
            with torch.no_grad():
                torch._foreach_lerp_(self.average, p, 1e-4)
        return step if self.train else forward

    def settings(self):
        yield self.make(self.net)

    def compiled(self):
        return self.make(torch.compile(self.net))


def rows(small):
    net = "dit_small" if small else "dit_b2"
    out = []
    for train, batch, f32, bf16 in ((False, 2 if small else 8, (1.05, 1.2), (1.1, 1.3)),
                                    (True, 2 if small else 4, (1.1, 1.3), (1.1, 1.3))):
        verb = "train" if train else "forward"
        out.append(("%s_%s_b%d" % (net, verb, batch), *f32,
                    {"f32": lambda b=batch, t=train: Case(small, b, t, "f32")}))
        low = {"autocast": lambda b=batch, t=train: Case(small, b, t, "autocast")}
        if not train:  # weights of training stay in f32, as Leeway's do
            low["bf16"] = lambda b=batch, t=train: Case(small, b, t, "bf16")
        out.append(("%s_%s_bf16_b%d" % (net, verb, batch), *bf16, low))
    return out


if __name__ == "__main__":
    suite_peer.main("dit", __doc__, rows)
