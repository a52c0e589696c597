# SPDX-License-Identifier: Apache-2.0
"""diffusers' own schedulers on the noise model in closed form of sampler.py, in double.

The model is made wrong on purpose (its noise estimate is off by BIAS mu), so that clipping the
predicted picture has something to clip, as it has with trained networks. diffusers keeps its tables
in float32; here they are replaced by the same tables in double, so that only its steps are tested.
"""
import json
import os

import numpy as np
import torch
from diffusers import DDIMScheduler, DDPMScheduler, DPMSolverMultistepScheduler
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


# ---- settings of other folders -------------------------------------------------------------------

TRAINED = [0.001 + 0.0123 * k for k in range(20)]
FOLDERS = {  # name: scheduler, its settings, evaluations
    "ddim_defaults": (DDIMScheduler, {}, 10),
    "ddim_scaled": (DDIMScheduler, dict(beta_schedule="scaled_linear", beta_start=0.00085,
                                        beta_end=0.012, steps_offset=1, set_alpha_to_one=False,
                                        clip_sample=False), 10),
    "ddim_cosine": (DDIMScheduler, dict(beta_schedule="squaredcos_cap_v2", clip_sample_range=0.7),
                    50),
    "ddim_trailing": (DDIMScheduler, dict(timestep_spacing="trailing"), 7),
    "ddim_trailing_one": (DDIMScheduler, dict(timestep_spacing="trailing"), 1),
    "ddim_linspace": (DDIMScheduler, dict(timestep_spacing="linspace"), 10),
    "ddim_linspace_one": (DDIMScheduler, dict(timestep_spacing="linspace"), 1),
    "ddim_sample": (DDIMScheduler, dict(prediction_type="sample"), 10),
    "ddim_v": (DDIMScheduler, dict(prediction_type="v_prediction", rescale_betas_zero_snr=True,
                                   timestep_spacing="trailing"), 10),
    "ddim_trained": (DDIMScheduler, dict(trained_betas=TRAINED, num_train_timesteps=20), 6),
    "ddpm_defaults": (DDPMScheduler, {}, 10),
    "ddpm_all": (DDPMScheduler, dict(num_train_timesteps=30), 30),
    "ddpm_published": (DDPMScheduler, dict(variance_type="fixed_large"), 50),
    "ddpm_log": (DDPMScheduler, dict(variance_type="fixed_small_log", beta_schedule="sigmoid"), 10),
    "ddpm_trailing": (DDPMScheduler, dict(timestep_spacing="trailing", clip_sample=False,
                                          variance_type="fixed_large"), 7),
    "ddpm_linspace": (DDPMScheduler, dict(timestep_spacing="linspace"), 10),
    "ddpm_offset": (DDPMScheduler, dict(steps_offset=1, clip_sample_range=0.8), 10),
    "ddpm_sample": (DDPMScheduler, dict(prediction_type="sample", clip_sample=False), 10),
    "ddpm_v": (DDPMScheduler, dict(prediction_type="v_prediction", rescale_betas_zero_snr=True,
                                   timestep_spacing="trailing",
                                   beta_schedule="squaredcos_cap_v2"), 10),
}


# DPM-Solver++(2M) on schedules that are written as DDIM's. Where these clip the picture, diffusers'
# thresholding does so too: with its sample_max_value of 1 the threshold is 1 always.
SOLVERS = {  # name: settings of DDIMScheduler, evaluations
    "solver_defaults": ({}, 10),
    "solver_one": ({}, 1),
    "solver_two": ({}, 2),
    "solver_free": (dict(clip_sample=False), 20),
    "solver_leading": (dict(timestep_spacing="leading", steps_offset=1, clip_sample=False,
                            beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012), 25),
    "solver_trailing": (dict(timestep_spacing="trailing", beta_schedule="squaredcos_cap_v2"), 7),
    "solver_sample": (dict(prediction_type="sample", timestep_spacing="linspace"), 5),
    "solver_v": (dict(prediction_type="v_prediction", rescale_betas_zero_snr=True,
                      timestep_spacing="trailing", clip_sample=False), 10),
    "solver_trained": (dict(trained_betas=TRAINED, num_train_timesteps=20), 6),
}


def solver_of(settings):
    settings = dict(settings)
    clipped = settings.pop("clip_sample", True)
    return build_in_double(DPMSolverMultistepScheduler, dict(settings, thresholding=clipped))


def build_in_double(cls, settings):
    """diffusers writes float32 into its constructors; that name stands for double meanwhile."""
    single = torch.float32
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float64
    try:
        return cls(**settings)
    finally:
        torch.float32 = single
        torch.set_default_dtype(single)


def follow(scheduler, abar, steps, noise):
    """Like trajectory, with the estimate that the scheduler's prediction_type asks for: eps as
    there, and a picture that is half too bright."""
    mu, s, _, _ = model()
    s2 = np.float64(s) ** 2
    how = {"use_clipped_model_output": True} if isinstance(scheduler, DDIMScheduler) else {}
    scheduler.set_timesteps(steps)
    x = np.float64(formula.unit("ddim.xT", (N,)))
    rows = [x]
    for t in scheduler.timesteps.tolist():
        a, v = abar[t], abar[t] * s2 + 1 - abar[t]
        e = np.sqrt(1 - a) * (x - np.sqrt(a) * mu) / v + BIAS * mu
        x0 = 1.5 * (mu + np.sqrt(a) * s2 / v * (x - np.sqrt(a) * mu))
        y = {"epsilon": e, "sample": x0, "v_prediction": np.sqrt(a) * e - np.sqrt(1 - a) * x0}
        scheduling_ddpm.randn_tensor = lambda *a, **o: torch.from_numpy(noise(t))[None]
        x = scheduler.step(torch.from_numpy(y[scheduler.config.prediction_type])[None, None], t,
                           torch.from_numpy(x)[None, None], **how).prev_sample[0, 0].numpy()
        rows.append(x)
    return scheduler.timesteps.numpy(), np.array(rows)


def folders(directory):
    """Trajectories of FOLDERS, and their scheduler_config.json as diffusers writes them."""
    noise = lambda t: np.float64(formula.unit("ancestral.noise%d" % t, (N,)))
    out, configs = {}, {}
    for name, (cls, settings, steps) in FOLDERS.items():
        scheduler = build_in_double(cls, settings)
        configs[name] = json.loads(cls(**settings).to_json_string())
        abar = scheduler.alphas_cumprod.numpy()
        out[name + ".t"], out[name + ".x"] = follow(scheduler, abar, steps, noise)
        out[name + ".alpha_bar"] = abar[::29]
    for name, (settings, steps) in SOLVERS.items():
        abar = build_in_double(DDIMScheduler, settings).alphas_cumprod.numpy()
        configs[name] = json.loads(DDIMScheduler(**settings).to_json_string())
        if "timestep_spacing" not in settings:
            del configs[name]["timestep_spacing"]  # then the solver's own default holds
        out[name + ".t"], out[name + ".x"] = follow(solver_of(settings), abar, steps, noise)
        out[name + ".alpha_bar"] = abar[::29]
    with open(os.path.join(directory, "schedulers.json"), "w") as f:
        json.dump(configs, f, indent=1, sort_keys=True)
        f.write("\n")
    return out


def make(directory):
    out = folders(directory)
    out["bias"] = np.array([BIAS])
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
