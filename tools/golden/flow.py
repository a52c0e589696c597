# SPDX-License-Identifier: Apache-2.0
"""diffusers' samplers of rectified flows on a velocity in closed form, in double.

For data N(mu, s^2) per element and x = (1 - q) picture + q noise the best answer is known:
    noise - picture = (q - (1 - q) s^2) (x - (1 - q) mu) / ((1 - q)^2 s^2 + q^2) - mu
and is made wrong by BIAS mu, as a trained network's is. Its numbers are those of sampler.py.
"""
import json
import os

import numpy as np
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, FlowMatchHeunDiscreteScheduler

from . import formula
from .sampler import N, model
from .schedulers import BIAS

CASES = {  # scheduler, its settings, steps, whether the sigmas are given as diffusers' Flux pipeline does
    "euler_one": (FlowMatchEulerDiscreteScheduler, {}, 1, False),
    "euler": (FlowMatchEulerDiscreteScheduler, {}, 10, False),
    "euler_shifted": (FlowMatchEulerDiscreteScheduler, dict(shift=3.0), 7, False),
    "euler_few": (FlowMatchEulerDiscreteScheduler, dict(num_train_timesteps=20), 5, False),
    "euler_even_one": (FlowMatchEulerDiscreteScheduler, {}, 1, True),
    "euler_even": (FlowMatchEulerDiscreteScheduler, {}, 4, True),
    "euler_even_shifted": (FlowMatchEulerDiscreteScheduler, dict(shift=0.5), 9, True),
    "heun_one": (FlowMatchHeunDiscreteScheduler, {}, 1, False),
    "heun": (FlowMatchHeunDiscreteScheduler, {}, 5, False),
    "heun_shifted": (FlowMatchHeunDiscreteScheduler, dict(shift=3.0), 3, False),
}


def velocity(x, q):
    mu, s, _, _ = model()
    s2 = np.float64(s) ** 2
    off = x - (1 - q) * mu
    return (q - (1 - q) * s2) * off / ((1 - q) ** 2 * s2 + q * q) - mu + BIAS * mu


def trajectory(cls, settings, steps, given):
    """Times [evaluations] and states [evaluations + 1, N], the last not clipped."""
    scheduler = cls(**settings)
    if given:
        scheduler.set_timesteps(sigmas=np.linspace(1.0, 1.0 / steps, steps))
    else:
        scheduler.set_timesteps(steps)
    x = np.float64(formula.unit("ddim.xT", (N,)))
    rows, total = [x], scheduler.config.num_train_timesteps
    for t in scheduler.timesteps:
        y = velocity(x, float(t) / total)
        x = scheduler.step(torch.from_numpy(y), t, torch.from_numpy(x)).prev_sample.numpy()
        rows.append(x)
    return scheduler.timesteps.numpy().astype(np.float64), np.array(rows)


def make(directory):
    """The trajectories, and their scheduler_config.json as diffusers writes them. diffusers writes
    float32 into its steps; that name stands for double meanwhile."""
    out, configs, single = {"bias": np.array([BIAS])}, {}, torch.float32
    for name, (cls, settings, steps, given) in CASES.items():
        configs[name] = json.loads(cls(**settings).to_json_string())
        torch.float32 = torch.float64
        try:
            out[name + ".t"], out[name + ".x"] = trajectory(cls, settings, steps, given)
        finally:
            torch.float32 = single
    with open(os.path.join(directory, "flow.json"), "w") as f:
        json.dump(configs, f, indent=1, sort_keys=True)
        f.write("\n")
    return out
