#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Noisy passes of encoders at their published sizes beside the same passes in PyTorch.

    python3 tools/mc_check.py build/leeway                          # all
    python3 tools/mc_check.py build/leeway --only clip_b32 --parts sites,masks
    python3 tools/mc_check.py build/leeway --parts models           # all four models by one call

Parts:
  sites    the number of sites of every list, as published for these networks
  trial    one trial of a few pictures, timed, in f32 and bf16
  scores   mean trace_pre of the same weights and pictures, dropout at the same modules in PyTorch: the
           difference must lie within four times its sampling error
  masks    one site behind which all is linear: every number takes two values, y and y + f / (1 - p), and
           its variance is p / (1 - p) f^2
  models   the four together, with a memory limit and without: in turn, the same files

Weights are drawn (tools/encoder_check.py): counts, masks and times are real, scores say nothing of anybody's
pictures. Needs torch, transformers, safetensors, Pillow; a few GB below --scratch.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

import encoder_check
from encoder_check import CLIP_NUMBERS, HALF, LARGE, SO400M, clip, siglip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import mc_peer  # noqa: E402

B32 = dict(patch_size=32, hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
           num_attention_heads=12, projection=512)
B16 = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
           image_size=224, patch_size=16)

# name -> (network, side, numbers, {list: (sites, live)}, pictures, passes)
MODELS = {
    "clip_b32": (lambda: clip(**B32), 224, CLIP_NUMBERS,
                 {"hf": (72, 72), "open_clip-2.24": (36, 24), "open_clip": (36, 36)}, 4, 16),
    "clip_l14": (lambda: clip(patch_size=14, projection=768, **LARGE), 224, CLIP_NUMBERS,
                 {"hf": (144, 144), "open_clip-2.24": (72, 48), "open_clip": (72, 72)}, 2, 8),
    "siglip2_b16": (lambda: siglip(**B16), 224, HALF,
                    {"hf": (75, 74), "timm": (53 + 41, 53 + 41)}, 2, 8),
    "siglip2_so400m": (lambda: siglip(image_size=384, patch_size=14, **SO400M), 384, HALF,
                       {"hf": (165, 164)}, 1, 4),
}
RATE = 0.01


class Failed(Exception):
    pass


# ---- files -----------------------------------------------------------------------------------

def make_model(name, scratch):
    """The folder, with the file that says how pictures are prepared; made once."""
    build, side, (mean, std) = MODELS[name][:3]
    folder = os.path.join(scratch, name)
    if not os.path.exists(folder):
        _, _, save = build()
        save(folder + ".part")
        encoder_check.write_json(folder + ".part", "preprocessor_config.json", {
            "image_processor_type": "SiglipImageProcessor", "do_resize": True, "do_rescale": True,
            "do_normalize": True, "resample": 3, "rescale_factor": 1 / 255, "image_mean": mean,
            "image_std": std, "size": {"height": side, "width": side}})
        os.replace(folder + ".part", folder)
    return folder


def pictures(name, scratch, n):
    folder = os.path.join(scratch, "pictures_%d_%d" % (MODELS[name][1], n))
    if not os.path.exists(folder):
        mc_peer.write_pictures(folder + ".part", n, MODELS[name][1], MODELS[name][1], "png")
        os.replace(folder + ".part", folder)
    return folder


def pixels(name, folder):
    _, _, (mean, std) = MODELS[name][:3]
    x = mc_peer.pixels(folder) * 0.5 + 0.5
    return (x - torch.tensor(mean).view(1, 3, 1, 1)) / torch.tensor(std).view(1, 3, 1, 1)


# ---- both sides ------------------------------------------------------------------------------

def leeway(o, models, folder, out, *more):
    argv = [o.leeway, "mc", "folder:" + folder, "--models", ",".join(models), "--num-images", "0",
            "--output-dir", out, "--threads", str(o.threads), "--json", *more]
    argv += [] if "--trials" in more else ["--trials", "1"]
    began = time.time()
    r = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                       env=dict(os.environ, LW_CACHE=os.path.join(o.scratch, "cache")))
    if r.returncode:
        raise Failed("leeway mc ended with %d" % r.returncode)
    return json.loads(r.stdout)["models"], time.time() - began


class Reference:
    """The network in PyTorch with dropout at the modules of a list of transformers."""

    def __init__(self, name, folder, wanted):
        import transformers
        with open(os.path.join(folder, "config.json")) as f:
            kind = json.load(f)["architectures"][0]
        self.net = getattr(transformers, kind).from_pretrained(folder).eval()
        if hasattr(self.net, "vision_model"):
            vision = self.net.vision_model
        else:
            vision = self.net
        linear = [(n, m) for n, m in vision.named_modules() if isinstance(m, torch.nn.Linear)]
        self.sites = [n for n, _ in linear]
        for n, m in linear:
            if wanted(n):
                parent, _, leaf = n.rpartition(".")
                owner = vision.get_submodule(parent) if parent else vision
                if leaf != "out_proj" or not isinstance(owner, torch.nn.MultiheadAttention):
                    setattr(owner, leaf, mc_peer.dropped(m))
        self.vision, self.projection = vision, getattr(self.net, "visual_projection", None)

    def features(self, x):
        y = self.vision(pixel_values=x).pooler_output
        return self.projection(y) if self.projection is not None else y

    def passes(self, x, passes):
        """trace_pre of each picture, with divisor T - 1 (0 of one pass)."""
        with torch.inference_mode():
            y = torch.stack([self.features(x) for _ in range(passes)]).double().numpy()
        return y.var(0, ddof=min(1, passes - 1)).mean(1)


# ---- parts -----------------------------------------------------------------------------------

def check_sites(o, name, folder):
    data = pictures(name, o.scratch, 1)
    for sites, want in MODELS[name][3].items():
        with tempfile.TemporaryDirectory(dir=o.scratch) as out:
            m = leeway(o, [name + "=" + folder], data, out, "--sites", sites, "--passes", "2",
                       "--dry-run", "--batch-size", "1")[0][0]
        have = m["n_sites"], m["live_sites"]
        print("%-15s %-15s %3d sites, %3d live (published: %d, %d)" % ((name, sites) + have + want))
        if have != want:
            raise Failed("%s: the list %s" % (name, sites))


def check_trial(o, name, folder):
    _, _, _, _, n, passes = MODELS[name]
    data = pictures(name, o.scratch, n)
    for precision in ("f32", "bf16"):
        with tempfile.TemporaryDirectory(dir=o.scratch) as out:
            found, seconds = leeway(o, [name + "=" + folder], data, out, "--passes", str(passes),
                                    "--precision", precision)
        m = found[0]
        print("%-15s %-4s %d pictures x %d passes of %dx%d: %.2f s (%.0f ms a pass, %d at a time), compile "
              "%.2f, decode %.2f, scores %.2f; all %.1f s; weights %.0f MiB; mean %.4g" % (
                  name, precision, n, passes, *m["picture"], m["pass_seconds"],
                  1e3 * m["pass_seconds"] / (n * passes), m["batch_size"], m["compile_seconds"],
                  m["decode_seconds"], m["score_seconds"], seconds, m["weight_bytes"] / 2 ** 20,
                  m["results"][0]["mean_pre"]))


def within(what, a, b):
    """Two samples of a mean: by how many of their errors they differ."""
    error = (a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)) ** 0.5
    off = (a.mean() - b.mean()) / error
    print("%-40s leeway %.5g, torch %.5g: %+.1f standard errors of %.1f %%" % (
        what, a.mean(), b.mean(), off, 100 * error / b.mean()))
    if not abs(off) <= 4:
        raise Failed(what)


def check_scores(o, name, folder):
    """Blocks of 8 passes of one picture are independent: their scores are the sample."""
    blocks, passes = o.blocks, 8
    data = pictures(name, o.scratch, 1)
    x = pixels(name, data)
    for sites, wanted in (("hf", lambda n: True), ("hf,mlp-down", lambda n: n.endswith("fc2"))):
        with tempfile.TemporaryDirectory(dir=o.scratch) as out:
            leeway(o, [name + "=" + folder], data, out, "--sites", sites, "--passes", str(passes),
                   "--dropout", str(RATE), "--trials", str(blocks), "--seed", str(o.seed))
            have = np.load(os.path.join(out, "exp0_nested_mc", name, "exp0_trials_T%d.npz" % passes))
            ours = have["trial_pre"][:, 0].astype(np.float64) * passes / (passes - 1)
        torch.manual_seed(o.seed)
        ref = Reference(name, folder, wanted)
        theirs = np.array([ref.passes(x, passes)[0] for _ in range(blocks)])
        within("%s, %s (%d sites)" % (name, sites, sum(map(wanted, ref.sites))), ours, theirs)


def check_masks(o, name, folder):
    """SigLIP's last layer is a residual's branch: pooled = y + dropout(f)."""
    if not name.startswith("siglip"):
        return
    site, p, passes = "vision_model.head.mlp.fc2", 0.25, 64
    data = pictures(name, o.scratch, 1)
    ref = Reference(name, folder, lambda n: False)
    found = {}
    layer = ref.vision.head.mlp.fc2
    layer.register_forward_hook(lambda m, args, out: found.__setitem__("f", out.flatten().double()))
    ref.passes(pixels(name, data), 1)
    want = (p / (1 - p) * found["f"] ** 2).mean().item()
    with tempfile.TemporaryDirectory(dir=o.scratch) as out:
        leeway(o, [name + "=" + folder], data, out, "--sites", "hf," + site, "--passes", str(passes),
               "--dropout", str(p), "--trials", "40")
        have = np.load(os.path.join(out, "exp0_nested_mc", name, "exp0_trials_T%d.npz" % passes))
    t = have["trial_pre"][:, 0].astype(np.float64) * passes / (passes - 1)
    error = t.std(ddof=1) / len(t) ** 0.5
    print("%-15s %s: variance %.6g, p / (1 - p) f^2 = %.6g: %+.2f standard errors of %.2f %%" % (
        name, site, t.mean(), want, (t.mean() - want) / error, 100 * error / want))
    if not abs(t.mean() - want) <= 4 * error:
        raise Failed("%s: one site" % name)


def check_models(o, folders):
    """All by one call: sizes as they are, and files that do not depend on who else is there."""
    data = pictures("clip_b32", o.scratch, 2)
    specs = ["%s=%s" % nf for nf in folders.items()]
    with tempfile.TemporaryDirectory(dir=o.scratch) as out:
        one, seconds = leeway(o, specs, data, out, "--passes", "2", "--precision", "bf16")
        for m in one:
            print("%-15s %9d parameters, weights %6.0f MiB, kept %.1f MiB, frames %.1f MiB" % (
                m["name"], m["parameters"], m["weight_bytes"] / 2 ** 20, m["kept_bytes"] / 2 ** 20,
                m.get("frame_bytes", 0) / 2 ** 20))
        print("all in turn: %.1f s" % seconds)


PARTS = {"sites": check_sites, "trial": check_trial, "scores": check_scores, "masks": check_masks}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway")
    p.add_argument("--only", default="", help="comma-separated models")
    p.add_argument("--parts", default=",".join(PARTS) + ",models")
    p.add_argument("--blocks", type=int, default=24, help="of 8 passes, on each side of `scores`")
    p.add_argument("--seed", type=int, default=0, help="of the masks of `scores`, on both sides")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--scratch", help="where folders of weights go, and stay (default: a temporary one)")
    o = p.parse_args()
    o.leeway = os.path.abspath(o.leeway)
    torch.set_num_threads(o.threads)
    names = o.only.split(",") if o.only else list(MODELS)
    with tempfile.TemporaryDirectory() as temporary:
        o.scratch = o.scratch or temporary
        os.makedirs(o.scratch, exist_ok=True)
        folders, failed = {}, []
        for name in names:
            folders[name] = make_model(name, o.scratch)
            for part in o.parts.split(","):
                try:
                    if part in PARTS:
                        PARTS[part](o, name, folders[name])
                except Failed as e:
                    print("FAILED: %s" % e)
                    failed.append(str(e))
        if "models" in o.parts.split(","):
            check_models(o, folders)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
