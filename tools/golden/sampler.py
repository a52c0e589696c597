# SPDX-License-Identifier: Apache-2.0
"""DDIM and ancestral sampling with a noise model in closed form, in double.

For data N(mu, s^2) per element the best noise estimate is known:
    eps(x, t) = sqrt(1 - abar) * (x - sqrt(abar) * mu) / (abar * s^2 + 1 - abar)
so a sampler can be tested without a network.
"""
import numpy as np

from . import formula
from .unet import alpha_bar

N = 24


def model():
    mu = formula.values("ddim.mu", (N,), 0.0, 0.9)
    s = formula.values("ddim.s", (N,), 0.25, 0.2)
    abar = alpha_bar()

    def eps(x, t):
        a = abar[t]
        return np.sqrt(1 - a) * (x - np.sqrt(a) * mu) / (a * np.float64(s) ** 2 + 1 - a)
    return mu, s, abar, eps


def ddim(steps, eta, noise):
    """Trajectory [steps + 1, N]; the clipped x0 is used, eps is not recomputed."""
    mu, s, abar, eps = model()
    stride = 1000 // steps
    x = np.float64(formula.unit("ddim.xT", (N,)))
    times = [i * stride for i in range(steps)][::-1]
    out = [x]
    for k, t in enumerate(times):
        a, prev = abar[t], abar[times[k + 1]] if k + 1 < steps else 1.0
        e = eps(x, t)
        x0 = np.clip((x - np.sqrt(1 - a) * e) / np.sqrt(a), -1, 1)
        sig = eta * np.sqrt((1 - prev) / (1 - a) * (1 - a / prev))
        x = np.sqrt(prev) * x0 + np.sqrt(max(1 - prev - sig * sig, 0.0)) * e
        if sig > 0:
            x = x + sig * noise(k)
        out.append(x)
    out[-1] = np.clip(out[-1], -1, 1)
    return np.array(times), np.array(out)


def ancestral():
    """All 1000 steps; the state before steps t = 999, 899, ..., 99 and the end (not clipped)."""
    mu, s, abar, eps = model()
    beta = np.linspace(1e-4, 0.02, 1000)
    x = np.float64(formula.unit("ddim.xT", (N,)))
    out = []
    for t in range(999, -1, -1):
        if t % 100 == 99:
            out.append(x)
        x = (x - beta[t] / np.sqrt(1 - abar[t]) * eps(x, t)) / np.sqrt(1 - beta[t])
        if t > 0:
            x = x + np.sqrt(beta[t]) * np.float64(formula.unit("ancestral.noise%d" % t, (N,)))
    return np.array(out + [x])


def make():
    mu, s, abar, _ = model()
    out = {"mu": mu, "s": s, "xT": formula.unit("ddim.xT", (N,)), "alpha_bar": abar}
    noise = lambda k: np.float64(formula.unit("ddim.noise%d" % k, (N,)))
    for tag, steps, eta in (("ddim50", 50, 0.0), ("ddim10", 10, 0.0), ("ddim1", 1, 0.0),
                            ("ddim7", 7, 0.0), ("ddim20_eta1", 20, 1.0)):
        out[tag + ".t"], out[tag + ".x"] = ddim(steps, eta, noise)
    out["ancestral.x"] = ancestral()
    return out
