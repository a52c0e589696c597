#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `leeway run MODEL_DIR` with diffusers' UNet2DModel in double.

    python3 tools/unet_check.py build/leeway --config tiny|demo|small   # formula weights, new folder
    python3 tools/unet_check.py build/leeway --config tiny --channels 1    # of gray pictures
    python3 tools/unet_check.py build/leeway --model RUN/checkpoints/last   # a folder leeway wrote

The second form also shows that diffusers reads what leeway writes. Needs torch and diffusers.
"""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import torch
from diffusers import UNet2DModel
from safetensors.torch import save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden import formula, unet  # noqa: E402


def make_folder(directory, name, channels):
    """A model folder as diffusers writes it, with formula weights."""
    net = unet.build(name, torch.float32, channels)
    unet.write_config(os.path.join(directory, "config.json"), name, channels)
    save_file({n: p.detach().contiguous() for n, p in net.named_parameters()},
              os.path.join(directory, "diffusion_pytorch_model.safetensors"),
              metadata={"format": "pt"})
    return directory


def reference(folder, batch):
    """Inputs and output of diffusers in double."""
    net = UNet2DModel.from_pretrained(folder).double().eval()
    net.time_proj = unet.TimeProj(net.config.block_out_channels[0])
    size, classes = net.config.sample_size, net.config.num_class_embeds
    x = formula.unit("check.x", (batch, net.config.in_channels, size, size))
    t = formula.integers("check.t", batch, 1000)
    y = formula.integers("check.labels", batch, classes) if classes else None
    with torch.no_grad():
        out = unet.call(net, torch.from_numpy(x).double(), torch.from_numpy(t),
                        torch.from_numpy(y) if classes else None)
    return x, t, y, out.numpy()


def check(command, folder, batch, directory):
    x, t, y, want = reference(folder, batch)
    path = lambda n: os.path.join(directory, n + ".npy")
    np.save(path("x"), x)
    np.save(path("t"), t.astype(np.float32))
    args = ["run", folder, "--input", path("x"), "--t", path("t"), "--output", path("y"),
            "--weights", "model"]  # those that diffusers reads, not their average
    if y is not None:
        np.save(path("c"), y.astype(np.int32))
        args += ["--class", path("c")]
    subprocess.run(command + args, check=True, stdout=sys.stderr)
    return unet.relative(np.load(path("y")), want)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway")
    p.add_argument("--config", default="tiny", choices=sorted(unet.CONFIGS))
    p.add_argument("--channels", type=int, default=3, help="of pictures, with --config")
    p.add_argument("--model", help="an existing model folder")
    p.add_argument("--batch", type=int, default=3)
    p.add_argument("--tolerance", type=float, default=2e-5)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as d:
        folder = o.model or make_folder(d, o.config, o.channels)
        err = check(shlex.split(o.leeway), folder, o.batch, d)
    print("relative L2 error %.2e, tolerance %.1e: %s"
          % (err, o.tolerance, "ok" if err <= o.tolerance else "FAILED"))
    return 0 if err <= o.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
