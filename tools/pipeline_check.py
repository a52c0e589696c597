#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a model folder of a DDPM that leeway trained with diffusers' DDPMPipeline and DDIMPipeline
and compares their pictures with those of `leeway sample`, from the same noise; where it was trained
with a null class, guided ones too, of a loop written here. A folder of a drift generator must not open.

    python3 tools/pipeline_check.py build/leeway RUN/checkpoints/last/ema [DRIFT_FOLDER]

Needs torch and diffusers. Exit code 1: they differ by more than rounding, or the drift opened.
"""
import argparse
import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile

import diffusers
import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from prove_draws import normals  # noqa: E402

SCALE = 3  # of guidance
TOLERANCE = 2e-3  # of pictures in [0, 1]: f32 on both sides, over up to 1000 evaluations


class Noise:
    """Instead of torch's: what `leeway sample --seed 0` draws, call by call."""

    def __init__(self):
        self.step = 0

    def __call__(self, shape, generator=None, device=None, dtype=None, layout=None):
        n, c, h, w = shape
        rows = [normals("sample.noise", self.step, i, h * w * c) for i in range(n)]
        self.step += 1
        x = np.stack(rows).reshape(n, h, w, c).transpose(0, 3, 1, 2)
        return torch.from_numpy(np.ascontiguousarray(x)).to(dtype or torch.float32)


def patch():
    noise = Noise()
    for module in (diffusers.pipelines.ddpm.pipeline_ddpm, diffusers.pipelines.ddim.pipeline_ddim,
                   diffusers.schedulers.scheduling_ddpm):
        module.randn_tensor = noise


def theirs(pipeline, folder, n, **keys):
    patch()
    pipe = pipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    if pipe.unet.config.num_class_embeds:  # which these pipelines do not pass on
        pipe.unet.forward = functools.partial(pipe.unet.forward, class_labels=labels_of(folder, n))
    return pipe(batch_size=n, output_type="np", **keys).images


def config_of(folder):
    with open(os.path.join(folder, "config.json")) as f:
        return json.load(f)


def labels_of(folder, n):
    """Classes in turn; the null class, which is the last row of the embedding, is none of them."""
    config = config_of(folder)
    return torch.arange(n) % config.get("leeway_null_class", config["num_class_embeds"])


def guided(pipeline, folder, n, steps, scale, **keys):
    """Guidance without a classifier as diffusers' pipelines have it: one batch without classes and with them."""
    pipe = pipeline.from_pretrained(folder)
    net, scheduler, size = pipe.unet, pipe.scheduler, pipe.unet.config.sample_size
    labels = torch.cat([torch.full((n,), config_of(folder)["leeway_null_class"]), labels_of(folder, n)])
    x = Noise()((n, net.config.in_channels, size, size))
    scheduler.set_timesteps(steps)
    with torch.no_grad():
        for t in scheduler.timesteps:
            without, told = net(torch.cat([x, x]), t, class_labels=labels).sample.chunk(2)
            x = scheduler.step(without + scale * (told - without), t, x, **keys).prev_sample
    return (x / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1).numpy()


def ours(command, folder, n, options):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "x.npy")
        subprocess.run(command + ["sample", folder, "--n", str(n), "--output", path, "--quiet"]
                       + options, check=True, stdout=subprocess.DEVNULL)
        return np.clip(np.load(path).transpose(0, 2, 3, 1) / 2 + 0.5, 0, 1)


def refuses(folder):
    """No pipeline opens it; nor does UNet2DModel, unless that is what it is: a generator without a latent vector."""
    good = True
    openers = [diffusers.DDPMPipeline, diffusers.DDIMPipeline]
    if config_of(folder).get("leeway_latent_dim"):
        openers.append(diffusers.UNet2DModel)
    for opener in openers:
        try:
            opener.from_pretrained(folder)
            print("%s: %s opened it: FAILED" % (folder, opener.__name__))
            good = False
        except (OSError, ValueError) as e:
            print("%s: %s refuses it: %s" % (folder, opener.__name__, str(e).split("\n")[0][:90]))
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway")
    p.add_argument("folder")
    p.add_argument("drift", nargs="?")
    p.add_argument("--n", type=int, default=4)
    p.add_argument("--steps", type=int, default=20)
    o = p.parse_args()
    torch.set_num_threads(1)
    diffusers.utils.logging.set_verbosity_error()
    diffusers.utils.logging.disable_progress_bar()
    print("diffusers %s, torch %s, numpy %s"
          % (diffusers.__version__, torch.__version__, np.__version__))
    good, command, steps = True, shlex.split(o.leeway), ["--steps", str(o.steps)]
    clipped, plain = {"use_clipped_model_output": True}, functools.partial(theirs, num_inference_steps=o.steps)
    rows = [("DDIMPipeline, clipped output", plain, diffusers.DDIMPipeline, clipped, ["--sampler", "ddim"]),
            ("DDIMPipeline as it is", plain, diffusers.DDIMPipeline, {},
             ["--sampler", "ddim", "--no-use-clipped-model-output"]),
            ("DDPMPipeline", plain, diffusers.DDPMPipeline, {}, ["--sampler", "ancestral"])]
    if "leeway_null_class" in config_of(o.folder):
        rows.append(("DDIM, guided", functools.partial(guided, steps=o.steps, scale=SCALE), diffusers.DDIMPipeline,
                     clipped, ["--sampler", "ddim", "--guidance-scale", str(SCALE)]))
    for name, make, pipeline, keys, options in rows:
        a = make(pipeline, o.folder, o.n, **keys)
        b = ours(command, o.folder, o.n, steps + options)
        d = float(np.abs(a - b).max())
        good = good and d <= TOLERANCE
        print("%-30s %d pictures, %d steps: mean %.4f and %.4f, largest difference %.1e: %s"
              % (name, o.n, o.steps, a.mean(), b.mean(), d, "ok" if d <= TOLERANCE else "FAILED"))
    if o.drift:
        good = refuses(o.drift) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
