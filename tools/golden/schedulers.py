# SPDX-License-Identifier: Apache-2.0
"""diffusers' own schedulers on the noise model in closed form of sampler.py, in double.

The model is made wrong on purpose (its noise estimate is off by BIAS mu), so that clipping the
predicted picture has something to clip, as it has with trained networks. diffusers keeps its tables
in float32; here they are replaced by the same tables in double, so that only its steps are tested.
"""
import numpy as np
import torch
from diffusers import DDIMScheduler, DDPMScheduler
from diffusers.schedulers import scheduling_ddpm

from . import formula
from .sampler import N, model

BIAS = 0.05
DDIM_COUNTS = (1, 7, 10, 50)
DDPM_COUNTS = (1, 7, 10, 50, 250)
ROWS = 12  # states kept of a trajectory, besides the last


def in_double(scheduler):
    betas = np.linspace(1e-4, 0.02, 1000)
    scheduler.betas = torch.from_numpy(betas)
    scheduler.alphas = 1.0 - scheduler.betas
    scheduler.alphas_cumprod = torch.cumprod(scheduler.alphas, 0)
    return scheduler


def trajectory(scheduler, steps, noise, **how):
    """Times [steps], numbers of the states kept, and these states (before step k; the last row is
    the end, not clipped)."""
    mu, _, _, eps = model()
    scheduler.set_timesteps(steps)
    x = np.float64(formula.unit("ddim.xT", (N,)))
    every = -(-steps // ROWS)
    kept, rows = [], []
    for k, t in enumerate(scheduler.timesteps.tolist()):
        if k % every == 0:
            kept.append(k)
            rows.append(x)
        scheduling_ddpm.randn_tensor = lambda *a, **o: torch.from_numpy(noise(t))[None]
        e = eps(x, t) + BIAS * mu
        x = scheduler.step(torch.from_numpy(e)[None], t, torch.from_numpy(x)[None],
                           **how).prev_sample[0].numpy()
    return scheduler.timesteps.numpy(), np.array(kept + [steps]), np.array(rows + [x])


def make():
    out = {"bias": np.array([BIAS])}
    noise = lambda t: np.float64(formula.unit("ancestral.noise%d" % t, (N,)))

    def put(tag, scheduler, steps, **how):
        made = trajectory(in_double(scheduler), steps, noise, **how)
        for name, a in zip(("t", "row", "x"), made):
            out["%s.%d.%s" % (tag, steps, name)] = a
    for steps in DDIM_COUNTS:
        for tag, recompute in (("ddim", True), ("ddim_kept", False)):
            put(tag, DDIMScheduler(), steps, use_clipped_model_output=recompute)
    for steps in DDPM_COUNTS:
        put("ancestral", DDPMScheduler(variance_type="fixed_large", clip_sample=False), steps)
    return out
