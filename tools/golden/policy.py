# SPDX-License-Identifier: Apache-2.0
"""The policy over proof states (docs/proof.md) in PyTorch: heads, values, logits, all gradients.

Written from the description: an atom is composed from a predicate and two arguments, a state from
its atoms, then a residual body with LayerNorm, a head and a value. Pads are rows of zeros and count
wherever a composition does not give zero for them.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import formula

SIZES = {"constants": 9, "predicates": 6, "variables": 4, "embed": 8, "hidden": 12, "blocks": 2,
         "atoms": 3, "states": 5}
# name: atoms, states, divided by their length, scaled by 1 / sqrt(E), temperature
CASES = {
    "transe": ("transe", "mean", False, True, 0.0),
    "transe_unit": ("transe", "sum", True, False, 0.5),
    "complex": ("complex", "mean", False, True, 0.0),
    "rotate": ("rotate", "sum", False, True, 0.0),
    "sum": ("sum", "atom_mean", False, True, 0.0),
    "concat": ("concat", "concat", False, True, 0.0),
    "attention": ("attention", "transformer", False, True, 0.0),
    "transformer": ("transformer", "rnn", True, True, 0.0),
    "rnn": ("rnn", "mean", False, True, 2.0),
}


def attend(q, k, v, heads):
    """Softmax attention of one query per row over the second dimension of k and v."""
    n, keys, e = k.shape
    q = q.view(n, heads, 1, e // heads)
    k, v = (t.view(n, keys, heads, e // heads).transpose(1, 2) for t in (k, v))
    w = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(e // heads), dim=-1)
    return (w @ v).reshape(n, e)


class Attention(nn.Module):
    def __init__(self, e):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(e, e) for _ in range(4))

    def forward(self, p, args):
        return self.out_proj(attend(self.q_proj(p), self.k_proj(args), self.v_proj(args), 4))


class Multihead(nn.Module):
    """torch's own MultiheadAttention with one head; with a learned query when there is none."""

    def __init__(self, e, learned):
        super().__init__()
        self.attention = nn.MultiheadAttention(e, 1, batch_first=True)
        if learned:
            self.query = nn.Parameter(torch.zeros(1, 1, e))

    def forward(self, p, keys):
        q = self.query.expand(keys.shape[0], -1, -1) if p is None else p[:, None]
        return self.attention(q, keys, keys, need_weights=False)[0][:, 0]


class Gru(nn.Module):
    def __init__(self, e):
        super().__init__()
        self.gru = nn.GRU(e, e, batch_first=True)

    def forward(self, p, args):
        return self.gru(args, None if p is None else p[None].contiguous())[1][0]


class Transform(nn.Module):
    def __init__(self, width, e, bias):
        super().__init__()
        self.transform = nn.Linear(width, e, bias=bias)


def atom_module(kind, e):
    made = {"concat": lambda: Transform(3 * e, e, False), "attention": lambda: Attention(e),
            "transformer": lambda: Multihead(e, False), "rnn": lambda: Gru(e)}
    return made.get(kind, nn.Identity)()


def state_module(kind, e, atoms):
    made = {"concat": lambda: Transform(atoms * e, e, True), "rnn": lambda: Gru(e),
            "transformer": lambda: Multihead(e, True)}
    return made.get(kind, nn.Identity)()


def layer(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.LayerNorm(o))


class Policy(nn.Module):
    def __init__(self, atom, state, unit, sqrt_scale, temperature):
        super().__init__()
        s, e, h = SIZES, SIZES["embed"], SIZES["hidden"]
        self.kinds, self.unit = (atom, state), unit
        self.scale = (1 / math.sqrt(e) if sqrt_scale else 1.0) / (temperature or 1.0)
        wide = {"complex": (2 * e, 2 * e), "rotate": (e, 2 * e)}.get(atom, (e, e))
        self.predicate_embedding = nn.Embedding(1 + s["predicates"], wide[0], padding_idx=0)
        self.constant_embedding = nn.Embedding(1 + s["constants"] + s["variables"], wide[1],
                                               padding_idx=0)
        self.atom_embedder = atom_module(atom, e)
        self.state_embedder = state_module(state, e, s["atoms"])
        body = nn.Module()
        body.input_transform = layer(e, h)
        body.res_blocks = nn.ModuleList(layer(h, h) for _ in range(s["blocks"]))
        self.shared_body = body
        self.policy_head = nn.Module()
        self.policy_head.out_transform = nn.Sequential(nn.Linear(h, h), nn.ReLU(), nn.Linear(h, e))
        self.value_head = nn.Module()
        self.value_head.output_layer = nn.Sequential(nn.Linear(h, h // 2), nn.ReLU(),
                                                     nn.Linear(h // 2, 1))

    def atoms(self, p, args):
        kind, h, t = self.kinds[0], args[:, 0], args[:, 1]
        if kind == "transe":
            return p + h - t
        if kind == "sum":
            return p - args.sum(1)
        if kind == "complex":
            (pr, pi), (hr, hi), (tr, ti) = (v.chunk(2, dim=-1) for v in (p, h, t))
            return hr * tr * pr + hi * ti * pr + hr * ti * pi - hi * tr * pi
        if kind == "rotate":
            angle = p * (math.pi * p.shape[-1] / 6.5)
            tail, head = (torch.complex(*v.chunk(2, dim=-1)) for v in (t, h))
            z = torch.polar(torch.ones_like(angle), -angle) * tail - head
            return torch.sqrt(torch.clamp(z.real ** 2 + z.imag ** 2, min=1e-9))
        if kind == "concat":
            return self.atom_embedder.transform(torch.cat([p, h, t], dim=-1))
        return self.atom_embedder(p, args)

    def forward(self, predicates, arguments):
        n, a = predicates.shape
        p = self.predicate_embedding(predicates.reshape(-1))
        x = self.atoms(p, self.constant_embedding(arguments.reshape(-1, 2))).reshape(n, a, -1)
        kind = self.kinds[1]
        if kind == "concat":
            x = self.state_embedder.transform(x.reshape(n, -1))
        elif kind in ("rnn", "transformer"):
            x = self.state_embedder(None, x)
        else:
            real = (predicates != 0).sum(1, keepdim=True)
            x = x.sum(1) / {"mean": a, "sum": 1, "atom_mean": real}[kind]
        x = self.shared_body.input_transform(x)
        for block in self.shared_body.res_blocks:
            x = x + block(x)
        f = self.policy_head.out_transform(x)
        return F.normalize(f, dim=-1) if self.unit else f, self.value_head.output_layer(x)


def states():
    """Ids of SIZES["states"] states of 1 to SIZES["atoms"] atoms, pads behind."""
    r, a = SIZES["states"], SIZES["atoms"]
    p = 1 + formula.integers("policy.predicates", r * a, SIZES["predicates"]).reshape(r, a)
    top = SIZES["constants"] + SIZES["variables"]
    args = 1 + formula.integers("policy.arguments", r * a * 2, top).reshape(r, a, 2)
    pad = np.arange(a)[None] >= 1 + np.arange(r)[:, None] % a
    p[pad], args[pad] = 0, 0
    return p, args.reshape(r, 2 * a)


def fill(net):
    with torch.no_grad():
        for name, v in net.named_parameters():
            v.copy_(torch.from_numpy(formula.parameter(name, tuple(v.shape))))
            if name.endswith("_embedding.weight"):
                v[0] = 0
    return net


def make():
    p, args = states()
    out = {"predicates": p, "arguments": args}
    meta = dict(SIZES)
    for case, kind in CASES.items():
        net = fill(Policy(*kind)).double()
        f, v = net(torch.from_numpy(p), torch.from_numpy(args))
        gf = formula.unit("policy.%s.gf" % case, tuple(f.shape))
        gv = formula.unit("policy.%s.gv" % case, tuple(v.shape))
        ((f * torch.from_numpy(gf)).sum() + (v * torch.from_numpy(gv)).sum()).backward()
        out.update({case + ".head": f, case + ".value": v, case + ".logits": f @ f.T * net.scale,
                    case + ".gf": gf, case + ".gv": gv})
        for name, w in net.named_parameters():
            out["%s.grad.%s" % (case, name)] = w.grad
        meta[case] = " ".join(str(k) for k in kind)
    return {k: v.detach().numpy() if torch.is_tensor(v) else v for k, v in out.items()}, meta


def published():
    """A state_dict under the names of the published module tree, heads it never uses included."""
    net = fill(Policy(*CASES["transe"]))
    out = {}
    for name, v in net.state_dict().items():
        if "_embedding." in name:
            inner = "embedder." + name.replace("_embedding.", "_embedder.embedder.")
            for outer in ("features_extractor.", "pi_features_extractor.", "vf_features_extractor."):
                out[outer + inner] = v.clone()
        else:
            out["mlp_extractor.shared_network." + name] = v
    for unused in ("action_net", "value_net"):
        out[unused + ".weight"], out[unused + ".bias"] = torch.zeros(1, 1), torch.zeros(1)
    return {k: v.numpy() for k, v in out.items()}, {}
