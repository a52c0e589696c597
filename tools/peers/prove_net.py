# SPDX-License-Identifier: Apache-2.0
"""The policy network in PyTorch, in the shape in which it is published: tables of embeddings, a
residual body shared by the current state and every successor, a head, dot products. Weights by the
formula of docs/proof.md, or from a safetensors file."""
import math

import numpy as np
import torch
from torch import nn

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def splitmix64(x):
    """uint64 array -> uint64 array."""
    with np.errstate(over="ignore"):
        z = x + np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def formula(name, shape, bound, seed):
    """Element i is (2u - 1) * bound, u a fraction of 53 bits from name, seed and i."""
    n = math.prod(shape)
    start = (fnv1a64(name) + seed * GOLDEN) & MASK
    with np.errstate(over="ignore"):
        x = np.uint64(start) + np.arange(n, dtype=np.uint64)
    u = (splitmix64(x) >> np.uint64(11)).astype(np.float64) * 2.0 ** -53
    return ((2 * u - 1) * bound).astype(np.float32).reshape(shape)


class Block(nn.Sequential):
    def __init__(self, n_in, n_out):
        super().__init__(nn.Linear(n_in, n_out), nn.ReLU(), nn.LayerNorm(n_out))


class Body(nn.Module):
    def __init__(self, embed, hidden, blocks):
        super().__init__()
        self.input_transform = Block(embed, hidden)
        self.res_blocks = nn.ModuleList(Block(hidden, hidden) for _ in range(blocks))

    def forward(self, x):
        x = self.input_transform(x)
        for block in self.res_blocks:
            x = block(x) + x
        return x


class Head(nn.Module):
    def __init__(self, embed, hidden):
        super().__init__()
        self.out_transform = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(),
                                           nn.Linear(hidden, embed))

    def forward(self, x):
        return self.out_transform(x)


class Value(nn.Module):
    """Part of the weights; evaluation does not run it."""

    def __init__(self, hidden):
        super().__init__()
        self.output_layer = nn.Sequential(nn.Linear(hidden, hidden // 2), nn.ReLU(),
                                          nn.Linear(hidden // 2, 1))


class Policy(nn.Module):
    def __init__(self, constants, predicates, variables=1000, embed=250, hidden=256, blocks=8):
        """predicates: with the three terminals."""
        super().__init__()
        self.embed, self.base = embed, 1 + constants + variables
        self.constant_embedding = nn.Embedding(1 + constants + variables, embed, padding_idx=0)
        self.predicate_embedding = nn.Embedding(1 + predicates, embed, padding_idx=0)
        self.shared_body = Body(embed, hidden, blocks)
        self.policy_head = Head(embed, hidden)
        self.value_head = Value(hidden)

    def set_formula(self, seed):
        """Tables within 1, pad rows zero; linear layers within 1/sqrt(fan in); norms 1 and 0."""
        for prefix, module in self.named_modules():
            if isinstance(module, nn.Embedding):
                self.fill(prefix, module, 1.0, seed)
                with torch.no_grad():
                    module.weight[0] = 0
            elif isinstance(module, nn.Linear):
                self.fill(prefix, module, 1.0 / math.sqrt(module.in_features), seed)
        return self

    @staticmethod
    def fill(prefix, module, bound, seed):
        for name, p in module.named_parameters():
            w = formula("%s.%s" % (prefix, name), tuple(p.shape), bound, seed)
            with torch.no_grad():
                p.copy_(torch.from_numpy(w))

    def states(self, index):
        """[.., A, 3] -> [.., E]: p + h - t of every goal, and the mean, in which padding counts.
        Goals are summed in one order, so that the same goals in another order tie exactly."""
        keys = (index[..., 0] * self.base + index[..., 1]) * self.base + index[..., 2]
        order = keys.argsort(-1, descending=True)
        index = index.gather(-2, order[..., None].expand_as(index))
        p = self.predicate_embedding(index[..., 0])
        args = self.constant_embedding(index[..., 1:])
        return (p + args[..., 0, :] - args[..., 1, :]).mean(-2)

    def forward(self, current, successors, mask):
        """[B,A,3], [B,S,A,3], [B,S] -> logits [B,S], -inf where there is no successor."""
        x = self.states(torch.cat([current[:, None], successors], 1))
        f = self.policy_head(self.shared_body(x))
        logits = torch.matmul(f[:, 1:], f[:, 0, :, None])[..., 0] / self.embed ** 0.5
        return logits.masked_fill(~mask, float("-inf"))
