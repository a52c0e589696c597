#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks `leeway convert` with the libraries that its folders are for.

    python3 tools/convert_check.py build/leeway                  # small networks of every family
    python3 tools/convert_check.py build/leeway --full           # at published sizes too (hundreds of MB)
    python3 tools/convert_check.py build/leeway --only clip

Each case builds a network with one library, draws weights, saves its folder as that library does, and
goes through a list of conversions, each from the folder that the last one wrote. Every folder is opened
by its own library, strictly (no key may be missing or unexpected), with its preparation, and its
features of random pictures are compared with the first network's (1e-5 of the largest). Where a list
comes back to the library that it began with, tensors are compared bit for bit; a case may name those
that cannot come back.

Needs torch, transformers, timm, open_clip and safetensors.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from encoder_check import draw, statistics, write_json  # pylint: disable=wrong-import-position

FEATURES = {  # of what a library's network returns
    "image_embeds": lambda out: out.image_embeds, "pooler": lambda out: out.pooler_output,
    "token": lambda out: out.last_hidden_state[:, 0], "logits": lambda out: out.logits,
    "mean": lambda out: out.pooler_output.flatten(1)}


# ---- networks of each library -------------------------------------------------------------------

def transformers_net(kind, config, feature, **more):
    import transformers as t
    net = statistics(draw(getattr(t, kind)(getattr(t, config)(**more))))
    if hasattr(net, "logit_scale"):
        net.logit_scale.data.fill_(2.5)
    return net, lambda x: feature(net, x), net.save_pretrained


def plain(name):
    return lambda net, x: FEATURES[name](net(x))


def timm_net(architecture, **args):
    import timm
    net = statistics(draw(timm.create_model(architecture, **args)))

    def save(folder):
        os.makedirs(folder)
        save_file({k: v.contiguous() for k, v in net.state_dict().items()},
                  os.path.join(folder, "model.safetensors"))
        about = {k: v for k, v in net.pretrained_cfg.items() if k != "url"}
        both = {"num_classes": net.num_classes, "global_pool": about.get("global_pool") or (
            net.global_pool if isinstance(net.global_pool, str) else net.global_pool.pool_type)}
        write_json(folder, "config.json", {  # as timm 1.0.31 says them: twice
            "architecture": architecture, **both, "num_features": net.num_features,
            "model_args": {"in_chans": 3, **args, **both}, "pretrained_cfg": about})
    return net, net, save


def open_clip_net(quick):
    import open_clip
    cfg = {"embed_dim": 12, "quick_gelu": quick,
           "vision_cfg": {"image_size": 32, "layers": 2, "width": 24, "head_width": 8, "patch_size": 8,
                          "mlp_ratio": 2.0},
           "text_cfg": {"context_length": 6, "vocab_size": 20, "width": 16, "heads": 2, "layers": 2}}
    net = draw(open_clip.CLIP(**cfg))

    def save(folder):
        os.makedirs(folder)
        save_file({k: v.contiguous() for k, v in net.state_dict().items()},
                  os.path.join(folder, "open_clip_model.safetensors"))
        write_json(folder, "open_clip_config.json", {"model_cfg": cfg, "preprocess_cfg": {}})
    return net, net.encode_image, save


# ---- opening what was written --------------------------------------------------------------------

def tensors(folder):
    name = [f for f in os.listdir(folder) if f.endswith(".safetensors")]
    assert len(name) == 1, name
    return load_file(os.path.join(folder, name[0]))


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


def open_hf(folder):
    import transformers as t
    config = read_json(folder, "config.json")
    net, info = getattr(t, config["architectures"][0]).from_pretrained(
        folder, output_loading_info=True)
    missing = [k for k in info["missing_keys"] if "mask_token" not in k]
    assert not missing and not info["unexpected_keys"] and not info["mismatched_keys"], info
    t.AutoImageProcessor.from_pretrained(folder)
    net.eval()
    kind = config["architectures"][0]
    if kind.startswith("CLIPVisionModelWith"):
        return lambda x: net(x).image_embeds
    if kind == "CLIPModel":
        return lambda x: net.visual_projection(net.vision_model(x).pooler_output)
    if kind == "SiglipModel":
        return lambda x: net.vision_model(x).pooler_output
    if kind.startswith(("CLIP", "Siglip")):
        return lambda x: net(x).pooler_output
    if kind.endswith("ForImageClassification"):
        return lambda x: net(x).logits
    if kind.startswith("Dinov2"):
        return lambda x: net(x).last_hidden_state[:, 0]
    return lambda x: net(x).pooler_output.flatten(1)


def open_timm(folder):
    import timm
    net = timm.create_model("local-dir:" + folder, pretrained=True).eval()
    assert set(net.state_dict()) == set(tensors(folder)), set(net.state_dict()) ^ set(tensors(folder))
    timm.data.create_transform(**timm.data.resolve_model_data_config(net))
    return net


def open_open_clip(folder):
    import open_clip
    config = read_json(folder, "open_clip_config.json")
    found = tensors(folder)
    if any(not k.startswith("visual.") for k in found):
        net, _, _ = open_clip.create_model_and_transforms("local-dir:" + folder)
        return net.eval().encode_image
    cfg = dict(config["model_cfg"], text_cfg=dict(vocab_size=8, width=16, heads=1, layers=1))
    net = (open_clip.CustomTextCLIP if cfg.pop("custom_text", False) else open_clip.CLIP)(**cfg)
    net.visual.load_state_dict({k[7:]: v for k, v in found.items()}, strict=True)
    return net.visual.eval()


OPEN = {"hf": open_hf, "timm": open_timm, "open_clip": open_open_clip}


# ---- cases: build, side, conversions, tolerance, tensors that do not come back -------------------

TINY = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
            image_size=32, patch_size=8)
TEXT = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
            vocab_size=20, max_position_embeddings=6, bos_token_id=18, eos_token_id=19, pad_token_id=1)
DINO = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, image_size=32, patch_size=8,
            mlp_ratio=2)
SMALL = dict(embed_dim=36, depth=2, num_heads=3, patch_size=8, img_size=32, mlp_ratio=2)


def clip_hf(net, x):
    return net.visual_projection(net.vision_model(x).pooler_output)


def tower(net, x):
    return net.vision_model(x).pooler_output


CASES = {
    "clip-hf": (lambda: transformers_net("CLIPModel", "CLIPConfig", clip_hf, vision_config=TINY,
                                         text_config=dict(TEXT, projection_dim=12),
                                         projection_dim=12), 32, "timm open_clip hf timm hf"),
    "clip-vision": (lambda: transformers_net("CLIPVisionModelWithProjection", "CLIPVisionConfig",
                                             plain("image_embeds"), projection_dim=12,
                                             hidden_act="gelu", **TINY), 32, "timm open_clip hf"),
    "clip-open": (lambda: open_clip_net(True), 32, "hf open_clip timm open_clip"),
    "clip-open-gelu": (lambda: open_clip_net(False), 32, "timm hf open_clip"),
    "siglip-hf": (lambda: transformers_net("SiglipVisionModel", "SiglipVisionConfig",
                                           plain("pooler"), **TINY), 32, "timm hf"),
    "siglip-timm": (lambda: timm_net("vit_base_patch16_siglip_224", num_classes=0, **SMALL), 32,
                    "hf timm"),
    "dinov2-hf": (lambda: transformers_net("Dinov2Model", "Dinov2Config", plain("token"), **DINO), 32,
                  "timm hf"),
    "dinov2-gated": (lambda: transformers_net("Dinov2Model", "Dinov2Config", plain("token"),
                                              use_swiglu_ffn=True, qkv_bias=False, **DINO), 32,
                     "timm hf"),
    "dinov2-registers": (lambda: transformers_net(
        "Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", plain("token"),
        num_register_tokens=3, **DINO), 32, "timm hf"),
    "dinov2-timm-registers": (lambda: timm_net("vit_small_patch14_reg4_dinov2", num_classes=0,
                                               **SMALL), 32, "hf timm"),
    "resnet-hf": (lambda: transformers_net(
        "ResNetForImageClassification", "ResNetConfig", plain("logits"), embedding_size=64,
        hidden_sizes=[8, 12, 16, 20], depths=[1, 2, 1, 1], num_labels=5), 64, "timm hf"),
    "resnet-basic": (lambda: transformers_net(
        "ResNetModel", "ResNetConfig", plain("mean"), embedding_size=64, layer_type="basic",
        hidden_sizes=[64, 12, 16, 20], depths=[1, 2, 1, 1]), 64, "timm hf"),
    "resnet18-timm": (lambda: timm_net("resnet18", num_classes=5), 64, "hf timm"),
    "mobilenet-hf": (lambda: transformers_net(
        "MobileNetV2ForImageClassification", "MobileNetV2Config", plain("logits"),
        depth_multiplier=0.35, num_labels=5), 64, "timm hf"),
    "mobilenet-timm": (lambda: timm_net("mobilenetv2_035", num_classes=5), 64, "hf timm"),
    "efficientnet-lite-timm": (lambda: timm_net("tf_efficientnet_lite0", num_classes=5), 64, "timm"),
}
FULL = {
    "full-siglip-b16": (lambda: transformers_net(
        "SiglipModel", "SiglipConfig", tower, text_config=dict(TEXT, num_hidden_layers=1),
        vision_config=dict(hidden_act="gelu")), 224, "open_clip timm hf"),
    "full-clip-b32": (lambda: transformers_net(
        "CLIPModel", "CLIPConfig", clip_hf, vision_config={}, text_config=TEXT), 224,
                      "timm open_clip hf"),
    "full-dinov2-s": (lambda: timm_net("vit_small_patch14_dinov2", num_classes=0), 518, "hf timm"),
    "full-resnet50": (lambda: timm_net("resnet50"), 224, "hf timm"),
}
LOST = {"dinov2-registers": ("embeddings.cls_token", "embeddings.position_embeddings")}


# ---- running ------------------------------------------------------------------------------------

def convert(leeway, source, to, target):
    out = subprocess.run([leeway, "convert", source, "--to", to, "--output-dir", target, "--json"],
                         check=False, capture_output=True, text=True)
    if out.returncode:
        sys.exit("%s -> %s: %s" % (source, to, out.stderr))
    return json.loads(out.stdout)


def same_bits(first, last, lost):
    """Tensors of the last folder are those of the first; how many."""
    plain_name = lambda k: k.removeprefix("vision_model.")  # transformers 5 leaves it out
    a, b = ({plain_name(k): v for k, v in tensors(f).items()} for f in (first, last))
    for k, v in b.items():
        if k not in lost:
            same = a[k].shape == v.shape and torch.equal(a[k].view(-1), v.view(-1))
            assert same, "%s came back as another" % k
    return len(b)


def check(name, o, scratch):
    build, side, steps = dict(CASES, **FULL)[name]
    torch.manual_seed(0)
    net, feature, save = build()
    x = torch.from_numpy(np.random.default_rng(2).standard_normal((2, 3, side, side), np.float32))
    folders = [os.path.join(scratch, "0")]
    save(folders[0])
    kind = "open_clip" if os.path.exists(os.path.join(folders[0], "open_clip_config.json")) else (
        "timm" if "architecture" in read_json(folders[0], "config.json") else "hf")
    with torch.no_grad():
        want = feature(x)
        for i, to in enumerate(steps.split(), 1):
            folders.append(os.path.join(scratch, str(i)))
            said = convert(o.leeway, folders[-2], to, folders[-1])
            have = OPEN[to](folders[-1])(x)
            error = ((have - want).abs().max() / want.abs().max()).item()
            note = ""
            if to == kind:
                note = ", %d tensors came back to the bit" % same_bits(folders[0], folders[-1],
                                                                       LOST.get(name, ()))
            print("%-22s -> %-9s %.1e, %d left out%s" % (name, to, error, len(said["left_out"]), note),
                  flush=True)
            for n in said["notes"]:
                print("    %s" % n)
            assert error < 1e-5, "features differ"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("leeway")
    p.add_argument("--only", default="", help="cases whose names begin so")
    p.add_argument("--full", action="store_true")
    o = p.parse_args()
    o.leeway = os.path.abspath(o.leeway)
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    for name in dict(CASES, **(FULL if o.full else {})):
        if name.startswith(o.only):
            scratch = tempfile.mkdtemp()
            try:
                check(name, o, scratch)
            finally:
                shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
