#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The published masked autoencoder's features and their drift fields: Leeway beside PyTorch, eager and compiled.

    python3 tools/peers/mae_peer.py --leeway build/leeway [--threads 2] [--rounds 5] [--out mae.json]

Three rows at C0 = 64: 86 keys of 16 latents of 32x32x4; their gradient to the latents; fields of all keys of 8 classes
x (16 generated + 32 positive + 8 unconditional), statistics and gradients to the maps included. Libraries take turns;
each round is one process of Leeway (`leeway bench mae`) and one turn of every setting of PyTorch. --small: does it run?
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import suite_peer  # noqa: E402

if __name__ == "__main__":
    suite_peer.as_peers()

import torch  # noqa: E402

from field_peer import Field, OneExponential  # noqa: E402
from golden import mae  # noqa: E402

SIDE, LATENT = 32, 4


def statistic(x, p):
    """mean and std of p x p patches of [B,C,H,W] -> [B,T,C] each."""
    b, c, h, w = x.shape
    v, m = torch.var_mean(x.reshape(b, c, h // p, p, w // p, p), (3, 5), correction=0)
    return [t.reshape(b, c, -1).transpose(1, 2) for t in (m, (v + 1e-6).sqrt())]


def keys_of(x, maps):
    out = [x.flatten(1)[:, None], (x * x).mean((2, 3)).add(1e-6).sqrt()[:, None]]
    for m in maps:
        out.append(m.flatten(2).transpose(1, 2))
        for p in (m.shape[2], 2, 4):
            out += statistic(m, p)
    return out


def shapes(width):
    """[C,H,W] of the twelve maps."""
    p = mae.parameters(mae.shapes(LATENT, width, 1, 0), torch.float32)
    with torch.no_grad():
        return [tuple(m.shape[1:]) for m in mae.features(p, torch.zeros(1, LATENT, SIDE, SIDE)).values()]


class Features:
    """Weights are random: times do not depend on them."""

    def __init__(self, width, batch, gradient, fmt):
        self.p = {n: torch.randn(s) * (2.0 / max(1, torch.Size(s[1:]).numel())) ** 0.5 if len(s) > 1 else
                  torch.ones(s) for n, s in mae.shapes(LATENT, width, 1, 0).items()}
        self.p = {n: v.contiguous(memory_format=fmt) if v.dim() == 4 else v for n, v in self.p.items()}
        self.x = torch.randn(batch, LATENT, SIDE, SIDE).contiguous(memory_format=fmt)
        self.gradient = gradient
        self.dy = [torch.randn_like(k) for k in self.keys(self.p, self.x)] if gradient else None

    @staticmethod
    def keys(p, x):
        return keys_of(x, list(mae.features(p, x).values()))

    def make(self, call):
        if not self.gradient:
            def forward():
                with torch.no_grad():
                    return call(self.p, self.x)
            return forward
        x = self.x.detach().requires_grad_()

        def both():
            return torch.autograd.grad(call(self.p, x), x, self.dy)
        return both

    def settings(self):
        yield self.make(self.keys)

    def compiled(self):
        return self.make(torch.compile(self.keys))


class Fields:
    """Gradients of all keys' fields to the generated maps."""

    def __init__(self, width, groups, n, np, nu, field):
        self.groups, self.field = groups, field()
        self.part = []
        for rows in (n, np, nu):
            b = groups * rows
            self.part.append([torch.randn(b, LATENT, SIDE, SIDE)]
                             + [torch.randn(b, *s) for s in shapes(width)])

    def call(self, gen, pos, unc):
        with torch.no_grad():
            real, free = self.keys(pos[0], pos[1:]), self.keys(unc[0], unc[1:])
        keys = self.keys(gen[0], gen[1:])
        with torch.no_grad():
            return keys, [self.key(x, u, p) for x, p, u in zip(keys, real, free)]

    @staticmethod
    def keys(x, maps):
        return keys_of(x, maps)

    def key(self, x, u, p):
        """The gradient of one key's field, [G rows,T,C] of each."""
        return self.back(self.field(*(self.slots(t) for t in (x, u, p)))[1], x)

    def slots(self, t):
        """[G rows,T,C] -> [G T,rows,C]."""
        b, slots, c = t.shape
        t = t.reshape(self.groups, b // self.groups, slots, c)
        return t.transpose(1, 2).reshape(self.groups * slots, -1, c)

    def back(self, dx, like):
        b, slots, c = like.shape
        return dx.reshape(self.groups, slots, -1, c).transpose(1, 2).reshape(b, slots, c)

    def make(self):
        gen = [t.requires_grad_() for t in self.part[0]]

        def run():
            keys, dy = self.call(gen, *self.part[1:])
            return torch.autograd.grad(keys, gen, dy)
        return run

    def settings(self):
        yield self.make()

    def compiled(self):
        """Two graphs, all statistics and the field of a key (once for each of their shapes): all 86 fields in one graph
        take the compiler more than an hour."""
        torch._dynamo.config.cache_size_limit = 200
        self.keys = torch.compile(self.keys, dynamic=False)
        self.key = torch.compile(self.key, dynamic=False)
        return self.make()


def rows(small):
    width, batch, shape = (40, 2, (2, 4, 4, 2)) if small else (64, 16, (8, 16, 32, 8))
    tag = "w%d_b%d" % (width, batch)
    nchw, last = torch.contiguous_format, torch.channels_last
    return [
        ("mae_keys_" + tag, 1.4, 1.8, {"nchw": lambda: Features(width, batch, False, nchw),
                                       "channels_last": lambda: Features(width, batch, False, last)}),
        ("mae_keys_gradient_" + tag, 1.4, 1.8, {"nchw": lambda: Features(width, batch, True, nchw),
                                                "channels_last": lambda: Features(width, batch, True, last)}),
        ("mae_fields_w%d_%s" % (width, "x".join(map(str, shape))), 2.0, 3.0,
         {"softmaxes": lambda: Fields(width, *shape, Field),
          "one exponential": lambda: Fields(width, *shape, OneExponential)})]


if __name__ == "__main__":
    suite_peer.main("mae", __doc__, rows)
