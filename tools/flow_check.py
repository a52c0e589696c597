#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rectified flow of `leeway train flow` beside diffusers: the loss and the size of the gradient of one training step,
computed by UNet2DModel and FlowMatchEulerDiscreteScheduler from the same draws, and the pictures of DDPMPipeline (with
that scheduler), of FlowMatchHeunDiscreteScheduler and of a guided loop from the same noise.

    python3 tools/flow_check.py build/leeway FOLDER

FOLDER is a new one, for the runs that are compared. Needs torch and diffusers. Exit code 1: they differ by more than
rounding.
"""
import argparse
import json
import os
import subprocess
import sys

import diffusers
import numpy as np
import torch
from diffusers import (DDPMPipeline, FlowMatchEulerDiscreteScheduler, FlowMatchHeunDiscreteScheduler,
                       UNet2DModel)
from scipy.special import ndtri

import pipeline_check
from pipeline_check import SCALE, guided, normals, ours, theirs
from prove_draws import philox, stream_key

NET = ("--data synth:16 --base-channels 16 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 "
       "--attention-head-dim 8 --norm-groups 4 --dropout 0 --no-flip --log-every 1").split()
SHIFT = 1.7


def drawn_time(row, steps):
    """What the stream flow trainings draw times from gives row `row` in step 0."""
    word = philox((np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.array([row], np.uint64),
                   np.zeros(1, np.uint64)), stream_key(0, "ddpm.t"))[0]
    return int((int(word[0]) * steps) >> 32)


def loss_of(folder, picture, sigma):
    """Mean squared error and norm of its gradient, by diffusers, of one picture [3,H,W] at a share of noise."""
    net = UNet2DModel.from_pretrained(folder).double().train()
    x = torch.from_numpy(picture)[None].double()
    c, h, w = picture.shape
    noise = normals("ddpm.noise", 0, 0, h * w * c).reshape(h, w, c).transpose(2, 0, 1)
    noise = torch.from_numpy(np.ascontiguousarray(noise))[None].double()
    scheduler = FlowMatchEulerDiscreteScheduler()
    mixed = (1.0 - sigma) * x + sigma * noise
    t = torch.tensor([sigma * scheduler.config.num_train_timesteps], dtype=torch.float64)
    said = net(mixed, t, class_labels=torch.tensor([0]) if net.config.num_class_embeds else None).sample
    loss = ((said - (noise - x)) ** 2).mean()  # as in diffusers' training of Stable Diffusion 3
    loss.backward()
    size = torch.sqrt(sum((p.grad ** 2).sum() for p in net.parameters() if p.grad is not None))
    return loss.item(), size.item()


def check_loss(command, folder, start, how, sigma_of):
    run = os.path.join(folder, "loss_" + how[-1])
    subprocess.run(command + ["train", "flow", "--limit", "1", "--batch-size", "1", "--steps", "1",
                              "--class-conditional", "no", "--ema-decay", "0", "--init-from", start,
                              "--shift", str(SHIFT), "--output-dir", run, "--quiet"] + NET + how, check=True)
    with open(os.path.join(run, "metrics.jsonl")) as f:
        row = json.loads(f.readline())
    data = os.path.join(folder, "picture.npy")
    if not os.path.exists(data):
        subprocess.run(command + ["data", "export", "synth:16", "--output", data, "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
    u = sigma_of(drawn_time(0, 1000))
    loss, size = loss_of(start, np.load(data)[0].transpose(2, 0, 1) / 127.5 - 1.0, SHIFT * u / (1 + (SHIFT - 1) * u))
    good = abs(row["loss"] / loss - 1) < 1e-5 and abs(row["grad_norm"] / size - 1) < 1e-4
    print("%-30s time %.4f: loss %.7f and %.7f, gradient %.6f and %.6f: %s"
          % (" ".join(how), u, loss, row["loss"], size, row["grad_norm"], "ok" if good else "FAILED"))
    return good


def heun_pictures(folder, n, steps):
    """As DDPMPipeline does, with the other scheduler."""
    net, scheduler = UNet2DModel.from_pretrained(folder), FlowMatchHeunDiscreteScheduler()
    size = net.config.sample_size
    x = pipeline_check.Noise()((n, 3, size, size))
    scheduler.set_timesteps(steps)
    with torch.no_grad():
        for t in scheduler.timesteps:
            x = scheduler.step(net(x, t).sample, t, x).prev_sample
    return (x / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1).numpy()


def train(command, folder, name, options):
    """The averaged weights of 40 steps."""
    run = os.path.join(folder, name)
    subprocess.run(command + ["train", "flow", "--limit", "64", "--batch-size", "16", "--steps", "40", "--lr", "2e-3",
                              "--ema-decay", "0.9", "--output-dir", run, "--quiet"] + NET + options, check=True)
    return os.path.join(run, "checkpoints", "last", "ema")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway")
    p.add_argument("folder")
    o = p.parse_args()
    torch.set_num_threads(1)
    diffusers.utils.logging.set_verbosity_error()
    diffusers.utils.logging.disable_progress_bar()
    print("diffusers %s, torch %s" % (diffusers.__version__, torch.__version__))
    command = [o.leeway]
    weights = train(command, o.folder, "start", ["--class-conditional", "no"])
    told = train(command, o.folder, "told", ["--class-dropout-prob", "0.2"])
    good = check_loss(command, o.folder, weights, ["--time-distribution", "uniform"],
                      lambda k: (k + 1) / 1000)
    good = check_loss(command, o.folder, weights, ["--logit-mean", "0.3", "--time-distribution", "logit_normal"],
                      lambda k: 1 / (1 + np.exp(-0.3 - ndtri((k + 0.5) / 1000)))) and good
    for name, source, a, options in (
            ("DDPMPipeline, Euler", weights, theirs(DDPMPipeline, weights, 4, num_inference_steps=20),
             ["--sampler", "euler", "--steps", "20"]),
            ("Heun's scheduler", weights, heun_pictures(weights, 4, 6), ["--sampler", "heun", "--steps", "11"]),
            ("Euler, guided", told, guided(DDPMPipeline, told, 4, 20, SCALE),
             ["--sampler", "euler", "--steps", "20", "--guidance-scale", str(SCALE)])):
        b = ours(command, source, 4, options + ["--timestep-spacing", "linspace"])
        worst = float(np.abs(a - b).max())
        good = good and worst < 1e-4
        print("%-30s 4 pictures: mean %.4f and %.4f, largest difference %.1e: %s"
              % (name, a.mean(), b.mean(), worst, "ok" if worst < 1e-4 else "FAILED"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
