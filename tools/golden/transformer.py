# SPDX-License-Identifier: Apache-2.0
"""Blocks that networks of tokens are made of, in PyTorch: outputs and all gradients.

vit: a pre-norm block (timm's names); qk_norm: the same with a LayerNorm per head on q and k between
the projection and attention; pool: a learned query over all tokens, then a block (SigLIP's head).
Parameters by the formula under their own names.
"""
import torch
import torch.nn.functional as F
from torch import nn

from . import formula

SIZES = {"batch": 2, "tokens": 17, "width": 32, "heads": 2, "hidden": 64}


class Mlp(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.fc1 = nn.Linear(SIZES["width"], SIZES["hidden"])
        self.fc2 = nn.Linear(SIZES["hidden"], SIZES["width"])
        self.act = act

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Attention(nn.Module):
    def __init__(self, norm):
        super().__init__()
        c, h = SIZES["width"], SIZES["heads"]
        self.qkv, self.proj = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.q_norm, self.k_norm = ((nn.LayerNorm(c // h, eps=1e-6) if norm else nn.Identity())
                                    for _ in range(2))

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(x).reshape(b, t, 3, SIZES["heads"], -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.q_norm(qkv[0]), self.k_norm(qkv[1]), qkv[2])
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(SIZES["width"], eps=1e-6) for _ in range(2))
        self.attn, self.mlp = Attention(norm), Mlp(F.gelu)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        c = SIZES["width"]
        self.probe = nn.Parameter(torch.zeros(1, 1, c))
        self.attention = nn.MultiheadAttention(c, SIZES["heads"], batch_first=True)
        self.layernorm, self.mlp = nn.LayerNorm(c), Mlp(lambda x: F.gelu(x, approximate="tanh"))

    def forward(self, x):
        q = self.probe.expand(x.shape[0], -1, -1)
        y = self.attention(q, x, x, need_weights=False)[0]
        return y + self.mlp(self.layernorm(y))


def make():
    out = {}
    x0 = formula.unit("transformer.x", (SIZES["batch"], SIZES["tokens"], SIZES["width"]))
    out["x"] = x0
    for case, net in (("vit", Block(False)), ("qk_norm", Block(True)), ("pool", Pool())):
        with torch.no_grad():
            for name, v in net.named_parameters():
                v.copy_(torch.from_numpy(formula.parameter(name, tuple(v.shape))))
        net, x = net.double(), torch.from_numpy(x0).double().requires_grad_()
        y = net(x)
        gy = formula.unit("transformer.%s.gy" % case, tuple(y.shape))
        (y * torch.from_numpy(gy)).sum().backward()
        out.update({case + ".y": y.detach().numpy(), case + ".gy": gy, case + ".gx": x.grad.numpy()})
        for name, w in net.named_parameters():
            out["%s.grad.%s" % (case, name)] = w.grad.numpy()
    return out, dict(SIZES)
