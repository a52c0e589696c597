#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `leeway stream --model UNET --strength S --steps N` with diffusers' image to image in double.

    python3 tools/img2img_check.py build/leeway

A small UNet2DModel with formula weights, a frame of noise, the noise of `leeway sample`'s first picture; the times are
those of a scheduler with timestep_spacing "trailing", of which the last N of round(N / S) are taken. Levels of the
resulting pictures may differ by one. Needs torch and diffusers.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import torch
from diffusers import DDIMScheduler, DPMSolverMultistepScheduler
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "peers")]
import prove_draws  # noqa: E402
import unet_check  # noqa: E402
from golden import unet  # noqa: E402

CASES = [("ddim", 1, 1.0), ("ddim", 1, 0.25), ("ddim", 2, 0.2), ("ddim", 4, 0.2), ("dpm-solver", 1, 0.25),
         ("dpm-solver", 2, 0.2), ("dpm-solver", 4, 0.2)]
NO_CLIP = {"_class_name": "DDIMScheduler", "num_train_timesteps": 1000, "beta_start": 1e-4, "beta_end": 0.02,
           "beta_schedule": "linear", "clip_sample": False, "timestep_spacing": "trailing"}


def scheduler(kind):
    if kind == "ddim":
        return DDIMScheduler.from_config(NO_CLIP)
    return DPMSolverMultistepScheduler(num_train_timesteps=1000, beta_start=1e-4, beta_end=0.02, beta_schedule="linear",
                                       algorithm_type="dpmsolver++", solver_order=2, timestep_spacing="trailing",
                                       final_sigmas_type="zero")


def reference(net, kind, steps, strength, frame, noise):
    """frame [1,3,h,w] in [-1,1] as diffusers' pipelines go: the last `steps` times of round(steps / strength)."""
    s = scheduler(kind)
    s.set_timesteps(round(steps / strength))
    times = s.timesteps[-steps:]
    if hasattr(s, "set_begin_index"):
        s.set_begin_index(len(s.timesteps) - steps)
    x = s.add_noise(frame, noise, times[:1])
    with torch.no_grad():
        for t in times:
            x = s.step(unet.call(net, x, t[None], torch.zeros(1, dtype=torch.int64)), t, x).prev_sample
    return x.clamp(-1, 1)


def run(command, folder, directory, frame, kind, steps, strength, seed):
    height, width = frame.shape[:2]
    path = os.path.join(directory, "frame")
    out = os.path.join(directory, f"{kind}-{steps}-{strength}")  # a folder that holds frames is refused
    frame.tofile(path)
    subprocess.run(command + ["stream", "--input", path, "--raw", f"{width}x{height}:rgb24", "--every-frame",
                              "--model", folder, "--size", f"{width}x{height}", "--sampler", kind, "--steps",
                              str(steps), "--strength", str(strength), "--seed", str(seed), "--output",
                              "folder:" + out], check=True, stdout=subprocess.DEVNULL)
    return np.array(Image.open(os.path.join(out, "frame_000000.png"))).astype(int)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("leeway")
    p.add_argument("--seed", type=int, default=3)
    a = p.parse_args()
    torch.set_num_threads(1)
    bad = 0
    with tempfile.TemporaryDirectory() as directory:
        folder = unet_check.make_folder(os.path.join(directory, ""), "tiny", 3)
        with open(os.path.join(folder, "scheduler_config.json"), "w", encoding="utf-8") as f:
            json.dump(NO_CLIP, f)
        net = unet.build("tiny", torch.float32, 3).double().eval()
        side = net.config.sample_size
        frame = np.random.default_rng(5).integers(0, 256, (side, side, 3), dtype=np.uint8)
        x = torch.from_numpy(frame / 127.5 - 1).permute(2, 0, 1)[None]
        noise = torch.from_numpy(prove_draws.normals("sample.noise", 0, 0, side * side * 3, a.seed))
        noise = noise.reshape(side, side, 3).permute(2, 0, 1)[None]
        for kind, steps, strength in CASES:
            want = reference(net, kind, steps, strength, x, noise)[0].permute(1, 2, 0).numpy()
            want = np.floor((want + 1) * 127.5 + 0.5).clip(0, 255).astype(int)
            have = run(shlex.split(a.leeway), folder, directory, frame, kind, steps, strength, a.seed)
            far, n = np.abs(want - have).max(), (want != have).mean()
            inside = ((want > 0) & (want < 255)).mean()
            print(f"{kind} steps {steps} strength {strength}: {100 * n:.2f} % of bytes differ, by {far} at most; "
                  f"{100 * inside:.0f} % lie between black and white")
            bad += far > 1
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
