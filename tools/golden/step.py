# SPDX-License-Identifier: Apache-2.0
"""Ten drift steps with the published autoencoder's 86 keys: features and optimiser by PyTorch, fields by numpy, all in
double. Rows and strengths of guidance are those that the test draws from the queue (LW_GOLDEN_DRAWS of
tests/golden/test_golden_step.c), pictures are of the formula."""
import os

import numpy as np
import torch
import torch.nn.functional as F

from . import drift, formula, mae

G, N, NP, NU, STEPS, SIDE, C = 2, 4, 4, 2, 10, 32, 4
WIDTH = 33  # up to 32 a GroupNorm is of one channel, whose mean and deviation say nothing of the picture
TAUS = (0.2, 0.05, 0.02)


def picture(tag):
    return formula.unit("step." + tag, (C, SIDE, SIDE))


def pictures(tags):
    return torch.from_numpy(np.stack([picture(t) for t in tags])).double()


def patches(x, p):
    """[B,C,H,W] -> [B,T,C,p p]."""
    b, c, h, w = x.shape
    x = x.reshape(b, c, h // p, p, w // p, p)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(b, (h // p) * (w // p), c, p * p)


def keys(p, x):
    """Name -> [B,T,C], of pictures [B,C,H,W]."""
    out = {"global": x.permute(0, 2, 3, 1).reshape(len(x), 1, -1),
           "norm_x": (x * x).mean((2, 3)).add(1e-6).sqrt()[:, None]}
    for name, m in mae.features(p, x).items():
        out[name] = m.flatten(2).transpose(1, 2)
        for suffix, side in (("", m.shape[2]), ("_2", 2), ("_4", 4)):
            v = patches(m, side)
            out[name + "_mean" + suffix] = v.mean(3)
            out[name + "_std" + suffix] = (v.var(3, unbiased=False) + 1e-6).sqrt()
    return out


def grouped(v, rows):
    """[G rows,T,C] -> numpy [G,rows,T,C]."""
    return v.detach().numpy().reshape(G, rows, *v.shape[1:])


def read_draws(directory):
    rows = np.loadtxt(os.path.join(directory, "step_draws.txt"))
    pos, unc = rows[:, :G * NP].astype(np.int64), rows[:, G * NP:G * (NP + NU)].astype(np.int64)
    return pos, unc, rows[:, G * (NP + NU):]


def golden(directory):
    pos, unc, alpha = read_draws(directory)
    frozen = {n: torch.from_numpy(formula.parameter(n, s)).double()
              for n, s in mae.shapes(C, WIDTH, 1, 0).items()}
    made = [torch.from_numpy(formula.parameter(n, s)).double().requires_grad_()
            for n, s in (("gen.weight", (C, C, 3, 3)), ("gen.bias", (C,)))]
    optimiser = torch.optim.AdamW(made, lr=1e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
    loss, norm, key_loss, scale = [], [], [], []
    for s in range(STEPS):
        noise = pictures("noise%d.%d" % (s, i) for i in range(G * N))
        gen = keys(frozen, F.conv2d(noise, made[0], made[1], padding=1))
        with torch.no_grad():
            real = keys(frozen, pictures("row%d" % r for r in pos[s]))
            free = keys(frozen, pictures("row%d" % r for r in unc[s]))
        weight = (alpha[s] - 1.0) * (N - 1) / NU
        r = {k: drift.field(grouped(v, N), grouped(real[k], NP), grouped(free[k], NU), weight, TAUS)
             for k, v in gen.items()}
        optimiser.zero_grad()
        torch.autograd.backward(list(gen.values()), [
            torch.from_numpy(r[k]["dX"].reshape(v.shape)) for k, v in gen.items()])
        norm.append(float(torch.nn.utils.clip_grad_norm_(made, 2.0)))
        optimiser.step()
        key_loss.append([v["loss"] for v in r.values()])
        scale.append([v["S"] for v in r.values()])
        loss.append(sum(key_loss[-1]))
    assert len(r) == 86
    return (dict(loss=np.array(loss), grad_norm=np.array(norm), key_loss=np.array(key_loss),
                 scale=np.array(scale), positive=pos, unconditional=unc, alpha=alpha),
            {"keys": " ".join(r)})
