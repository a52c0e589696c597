#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden: reference values by PyTorch, diffusers and numpy (docs/golden.md).

Run by hand in a virtual environment with numpy, torch, torchvision, diffusers and safetensors;
neither the build nor the tests need any of them.

    python3 tools/gen_golden.py [--only layers,drift,...] [--directory tests/golden/data]
"""
import argparse
import os
import sys
import time

import torch
from diffusers import (DDIMScheduler, DDPMScheduler, FlowMatchEulerDiscreteScheduler,
                       FlowMatchHeunDiscreteScheduler, UNet2DModel)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden import (dit, drift, encoder, flow, laplace, layers, mae, policy, rehearsal, resample, sampler, step,  # noqa: E402
                    schedulers, store, transformer, unet)

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def names(data):
    """Parameter names and configurations; proves that diffusers' network is the one described."""
    for cfg in ("tiny", "demo", "small"):
        count, diff = unet.same_as_spec(cfg)
        print("%s: %d parameters, diffusers against the description: %.1e" % (cfg, count, diff))
    assert unet.count_parameters("large") == unet.COUNTS["large"]
    unet.write_names(os.path.join(os.path.dirname(data), "unet_names.txt"), "tiny")
    unet.write_keys(os.path.join(os.path.dirname(data), "diffusers_keys.txt"),
                    (UNet2DModel, DDPMScheduler, DDIMScheduler, FlowMatchEulerDiscreteScheduler,
                     FlowMatchHeunDiscreteScheduler))
    unet.write_names(os.path.join(os.path.dirname(data), "unet_names_small.txt"), "small")
    for cfg in ("tiny", "small", "large"):
        unet.write_config(os.path.join(data, "unet_%s_config.json" % cfg), cfg)


def prepare(data):
    """Apart, because it alone needs transformers, timm and a Pillow before version 13."""
    from golden import prepare as part  # pylint: disable=import-outside-toplevel
    part.make(data)


def pictures(data):
    """Apart, because it alone needs a Pillow with WebP, and TurboJPEG."""
    from golden import pictures as part  # pylint: disable=import-outside-toplevel
    part.make(data)


def networks(data, only):
    """Apart, because they alone need diffusers, timm, transformers and open_clip."""
    from golden import convnets, networks as part, vit  # pylint: disable=import-outside-toplevel
    cases = {**part.CASES, **vit.CASES, **convnets.CASES}
    for name in only or cases:
        tensors, meta = cases[name]()
        store.save(data, "network_" + name, tensors, meta, 0)


def parts(data):
    """Name -> function that writes that golden file."""
    def put(name, made, doubles=4096):
        tensors, meta = made if isinstance(made, tuple) else (made, {})
        meta.setdefault("torch", torch.__version__.split("+")[0])
        store.save(data, name, tensors, meta, doubles)
        for k in sorted(meta):
            if k.startswith("torch_f32"):
                print("    %s: %s" % (k, meta[k]))
    return {
        "names": lambda: names(data),
        "layers": lambda: put("layers", layers.make(), 0),
        "formula": lambda: put("formula", layers.make_formula()),
        "resample": lambda: put("resample", resample.make(), 0),
        "drift": lambda: put("drift", drift.make()),
        "sampler": lambda: put("sampler", sampler.make()),
        "schedulers": lambda: put("schedulers", schedulers.make(data)),
        "flow": lambda: put("flow", flow.make(data)),
        "rehearsal": lambda: put("rehearsal", rehearsal.make(), 0),
        "dit": lambda: [put("dit_" + c, dit.golden(c), 0) for c in dit.CONFIGS],
        "mae_unet": lambda: [put("mae_unet_" + c, mae.golden(c)) for c in mae.CONFIGS],
        "step": lambda: put("step", step.golden(data)),
        "laplace": lambda: put("laplace", laplace.make()),
        "policy": lambda: (put("policy", policy.make(), 0),
                           put("policy_published", policy.published())),
        "transformer": lambda: put("transformer", transformer.make(), 0),
        "mae": lambda: put("encoder_mae", encoder.golden_mae()),
        "resnet18": lambda: put("encoder_resnet18", encoder.golden_resnet18()),
        "cifar": lambda: put("encoder_cifar20", encoder.golden_cifar()),
        "unet_tiny": lambda: put("unet_tiny", unet.golden("tiny", 3, True)),
        "unet_variants": lambda: put("unet_variants", unet.variants(data)),
        "train_tiny": lambda: put("train_tiny", unet.golden_training("tiny")),
        "unet_small": lambda: put("unet_small", unet.golden("small", 2, False)),
        "train_small": lambda: put("train_small", unet.golden_training("small")),
    }


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--directory", default=os.path.join(HERE, "tests", "golden", "data"))
    p.add_argument("--only", default="", help="comma-separated parts")
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    torch.use_deterministic_algorithms(True)
    os.makedirs(o.directory, exist_ok=True)
    todo = parts(o.directory)
    apart = {"prepare": prepare, "pictures": pictures}
    if o.only in apart:
        return apart[o.only](o.directory)
    if o.only.startswith("networks"):  # networks, or networks:NAME,NAME
        return networks(o.directory, o.only[9:].split(",") if o.only[8:] else None)
    for name in o.only.split(",") if o.only else todo:
        start = time.time()
        todo[name]()
        print("%s: %.1f s" % (name, time.time() - start), flush=True)
    return store.check_total(o.directory)


if __name__ == "__main__":
    main()
