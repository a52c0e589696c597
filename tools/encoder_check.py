#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares encoders at their published sizes with the libraries that define them.

    python3 tools/encoder_check.py build/leeway                       # every case
    python3 tools/encoder_check.py build/leeway --only clip-b32,dinov2-b --precision f32,bf16
    python3 tools/encoder_check.py build/leeway --list

Each case builds a network of the named library from a configuration of the published size, draws
weights from a seed at the scale of trained ones, saves the folder as that library does, and compares
`leeway run` on random pictures with the library: per tap the largest error over the largest value
(max) and the norm of the error over the norm (rms). f32 must agree to 1e-4 in both.

Needs torch and transformers; cases of timm and open_clip need those.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

LIMIT = {"f32": 1e-4, "bf16": 3e-2}
CLIP_NUMBERS = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5,) * 3, (0.5,) * 3)
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def draw(net, seed=1):
    """Weights at the scale of trained ones: nothing is zero, one or alike, attention is peaked."""
    gen = torch.Generator().manual_seed(seed)
    for name, p in net.named_parameters():
        r = torch.randn(p.shape, generator=gen)
        if p.dim() >= 2 and "embedding" not in name and "token" not in name and "pos" not in name:
            fan = p[0].numel()
            sharp = 1.5 if any(k in name for k in ("q_proj", "k_proj", "query", "key", "qkv",
                                                   "in_proj")) else 1.0
            p.data = r * sharp / fan ** 0.5
        elif p.dim() == 1 and name.endswith(("lambda1", "gamma")):
            p.data = 0.3 + 0.1 * r
        elif p.dim() == 1 and name.endswith("weight"):
            p.data = 1 + 0.3 * r
        elif p.dim() == 1:
            p.data = 0.1 * r
        else:
            p.data = 0.3 * r
    return net.eval()


def grid(tokens, h, w, before):
    """[B,T,C] -> [B,C,h,w], without the tokens before the grid's."""
    t = tokens[:, before:]
    return t.transpose(1, 2).reshape(t.shape[0], t.shape[2], h, w)


# ---- cases: build() -> (network, save(folder)); taps(network, pixels) -> {tap: value} ------------

def clip(**sizes):
    from transformers import CLIPConfig, CLIPModel
    text = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                vocab_size=64, bos_token_id=0, eos_token_id=1, projection_dim=sizes["projection"])
    projection = sizes.pop("projection")
    net = draw(CLIPModel(CLIPConfig(vision_config=sizes, text_config=text,
                                    projection_dim=projection)))

    def taps(net, x):
        out = net.vision_model(x, output_hidden_states=True)
        side = sizes.get("image_size", 224) // sizes["patch_size"]
        found = {"pooled": net.visual_projection(out.pooler_output), "cls": out.pooler_output,
                 "tokens": out.last_hidden_state}
        for i in (0, 1, len(out.hidden_states) - 1):
            found["s%d" % i] = grid(out.hidden_states[i], side, side, 1)
        return found
    return net, taps, net.save_pretrained


def siglip(**sizes):
    from transformers import SiglipVisionConfig, SiglipVisionModel
    net = draw(SiglipVisionModel(SiglipVisionConfig(**sizes)))

    def taps(net, x):
        out = net(x, output_hidden_states=True)
        side = sizes["image_size"] // sizes["patch_size"]
        found = {"pooled": out.pooler_output, "tokens": out.last_hidden_state}
        for i in (0, 1, len(out.hidden_states) - 1):
            found["s%d" % i] = grid(out.hidden_states[i], side, side, 0)
        return found
    return net, taps, net.save_pretrained


def dinov2(registers=0, **sizes):
    import transformers as t
    sizes = dict(image_size=518, patch_size=14, **sizes)
    if registers:
        net = t.Dinov2WithRegistersModel(
            t.Dinov2WithRegistersConfig(num_register_tokens=registers, **sizes))
    else:
        net = t.Dinov2Model(t.Dinov2Config(**sizes))
    draw(net)

    def taps(net, x):
        out = net(x, output_hidden_states=True)
        h, w = x.shape[2] // 14, x.shape[3] // 14
        found = {"pooled": out.pooler_output, "tokens": out.last_hidden_state}
        for i in (0, 1, len(out.hidden_states) - 1):
            found["s%d" % i] = grid(out.hidden_states[i], h, w, 1 + registers)
        return found
    return net, taps, net.save_pretrained


SMALL = dict(hidden_size=384, num_attention_heads=6)
LARGE = dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16)
LARGE_DINO = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16)
SO400M = dict(hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16)
# name: (build, sides of pictures, mean and deviation)
CASES = {
    "clip-b32": (lambda: clip(patch_size=32, projection=512), (224, 224), CLIP_NUMBERS),
    "clip-b16": (lambda: clip(patch_size=16, projection=512), (224, 224), CLIP_NUMBERS),
    "clip-l14": (lambda: clip(patch_size=14, projection=768, **LARGE), (224, 224), CLIP_NUMBERS),
    "siglip-b16": (lambda: siglip(patch_size=16, image_size=224), (224, 224), HALF),
    "siglip-so400m": (lambda: siglip(patch_size=14, image_size=384, **SO400M), (384, 384), HALF),
    "dinov2-s": (lambda: dinov2(**SMALL), (224, 224), IMAGENET),
    "dinov2-b": (dinov2, (224, 224), IMAGENET),
    "dinov2-b-oblong": (dinov2, (140, 308), IMAGENET),
    "dinov2-b-518": (dinov2, (518, 518), IMAGENET),
    "dinov2-l": (lambda: dinov2(**LARGE_DINO), (224, 224), IMAGENET),
    "dinov2-s-reg": (lambda: dinov2(registers=4, **SMALL), (224, 224), IMAGENET),
    "dinov2-b-reg": (lambda: dinov2(registers=4), (224, 224), IMAGENET),
    "dinov2-l-reg": (lambda: dinov2(registers=4, **LARGE_DINO), (224, 224), IMAGENET),
}

# ---- running ------------------------------------------------------------------------------------


def errors(have, want):
    have, want = have.astype(np.float64), want.astype(np.float64)
    assert have.shape == want.shape, "%s, not %s" % (have.shape, want.shape)
    d = have - want
    return np.abs(d).max() / np.abs(want).max(), np.linalg.norm(d) / np.linalg.norm(want)


def reference(net, taps, x, numbers, double):
    """The library's taps of pictures in [-1, 1]."""
    mean, std = (torch.tensor(v, dtype=torch.float64)[:, None, None] for v in numbers)
    net = net.double() if double else net.float()
    pixels = ((torch.from_numpy(x).double() + 1) / 2 - mean) / std
    with torch.no_grad():
        found = taps(net, pixels if double else pixels.float())
    return {k: v.numpy() for k, v in found.items()}


def run(command, folder, tap, precision, scratch):
    out = os.path.join(scratch, "y.npy")
    subprocess.run(command + ["run", folder, "--input", os.path.join(scratch, "x.npy"), "--layer",
                              tap, "--precision", precision, "--output", out, "--quiet"],
                   check=True, stdout=sys.stderr)
    return np.load(out)


def line(case, what, precision, err):
    ok = max(err) <= LIMIT[precision]
    print("%-16s %-10s %-5s max %.1e  rms %.1e%s" % (case, what, precision, err[0], err[1],
                                                     "" if ok else "   TOO FAR"), flush=True)
    return ok


def check(name, o, scratch):
    build, (h, w), numbers = CASES[name]
    torch.manual_seed(0)
    net, taps, save = build()
    folder = os.path.join(scratch, name)
    save(folder)
    x = np.random.default_rng(2).uniform(-1, 1, (o.batch, 3, h, w)).astype(np.float32)
    np.save(os.path.join(scratch, "x.npy"), x)
    start = time.time()
    want = reference(net, taps, x, numbers, o.double)
    del net
    print("%s: the reference took %.0f s" % (name, time.time() - start), file=sys.stderr)
    ok = True
    for precision in o.precision.split(","):
        for tap in want if precision == "f32" else list(want)[:1]:
            got = run([o.leeway], folder, tap, precision, scratch)
            ok &= line(name, tap, precision, errors(got, want[tap]))
    shutil.rmtree(folder)
    return ok


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway", help="the program")
    p.add_argument("--only", default="", help="comma-separated cases")
    p.add_argument("--list", action="store_true", help="the cases")
    p.add_argument("--precision", default="f32,bf16")
    p.add_argument("--batch", type=int, default=2)
    p.add_argument("--double", action="store_true", help="the reference in double")
    p.add_argument("--threads", type=int, default=1, help="of the reference")
    p.add_argument("--scratch", help="where folders of weights go (default: a temporary folder)")
    o = p.parse_args()
    if o.list:
        print("\n".join(CASES))
        return 0
    torch.set_num_threads(o.threads)
    with tempfile.TemporaryDirectory(dir=o.scratch) as scratch:
        good = [check(n, o, scratch) for n in (o.only.split(",") if o.only else CASES)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
