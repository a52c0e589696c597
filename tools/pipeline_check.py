#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a model folder of a DDPM that leeway trained with diffusers' DDPMPipeline and DDIMPipeline
and compares their pictures with those of `leeway sample`, from the same noise. A folder of a drift
generator must not open.

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
    classes = pipe.unet.config.num_class_embeds
    if classes:  # which these pipelines do not pass on
        labels = torch.arange(n) % classes
        pipe.unet.forward = functools.partial(pipe.unet.forward, class_labels=labels)
    return pipe(batch_size=n, output_type="np", **keys).images


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
    with open(os.path.join(folder, "config.json")) as f:
        if json.load(f).get("leeway_latent_dim"):
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
    rows = [("DDIMPipeline, clipped output", diffusers.DDIMPipeline,
             {"use_clipped_model_output": True}, ["--sampler", "ddim"]),
            ("DDIMPipeline as it is", diffusers.DDIMPipeline, {},
             ["--sampler", "ddim", "--no-use-clipped-model-output"]),
            ("DDPMPipeline", diffusers.DDPMPipeline, {}, ["--sampler", "ancestral"])]
    for name, pipeline, keys, options in rows:
        a = theirs(pipeline, o.folder, o.n, num_inference_steps=o.steps, **keys)
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
