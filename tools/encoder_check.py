#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares encoders at their published sizes with the libraries that define them.

    python3 tools/encoder_check.py build/leeway                       # every case
    python3 tools/encoder_check.py build/leeway --only clip-b32,dinov2-b --precision f32,bf16
    python3 tools/encoder_check.py build/leeway --list

Each case builds a network of the named library from a configuration of the published size, draws
weights from a seed at the scale of trained ones, saves the folder as that library does, and compares
`leeway run` on random pictures with the library: per tap the largest error over the largest value
(max) and the norm of the error over the norm (rms). f32 must agree to 1e-4 in both. --gradient also
compares the gradient of sum(pooled * random) with respect to the picture, which encoder_gradient
beside leeway computes. Behind ReLUs and max-pools a gradient jumps where an input is within rounding
of a kink: there all is compared with the library in double, and three times the error of the
library's own f32 is allowed.

Published weights, where they are at hand: --published NAME=FOLDER (--list names them) compares
`leeway encode` of the pictures that GOLDEN speaks of with the embeddings that others published.

Needs torch and transformers; cases of torchvision, timm, open_clip and diffusers need those.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

from golden import convnets, networks

LIMIT = {"f32": 1e-4, "bf16": 3e-2}
CLIP_NUMBERS = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5,) * 3, (0.5,) * 3)
GRAY = ((0.1307,), (0.3081,))
GRAY_HALF = ((0.5,), (0.5,))
FIVE = ((0.1, 0.2, 0.3, 0.4, 0.5), (0.5, 0.4, 0.3, 0.2, 0.1))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


LINEAR = ("q_proj", "k_proj", "query", "key", "qkv", "in_proj", "attn_pool.q", "attn_pool.kv")
TABLES = ("position_embedding", "positional_embedding", "pos_embed", "token", "class_embedding", "probe",
          "latent")


def draw(net, seed=1):
    """Weights at the scale of trained ones: nothing is zero, one or alike, attention is peaked."""
    gen = torch.Generator().manual_seed(seed)
    for name, p in net.named_parameters():
        r = torch.randn(p.shape, generator=gen)
        if any(k in name for k in TABLES):
            p.data = 0.3 * r
        elif p.dim() >= 2:
            fan = p.shape[0] if name.endswith("visual.proj") else p[0].numel()
            p.data = r * (1.5 if any(k in name for k in LINEAR) else 1.0) / fan ** 0.5
        elif name.endswith(("lambda1", "gamma")):
            p.data = 0.3 + 0.1 * r
        elif name.endswith("weight"):
            p.data = 1 + 0.3 * r
        else:
            p.data = 0.1 * r
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


def states_of(blocks, run):
    """Tokens before the first and behind every block, while run() runs; and what it returns."""
    states = []
    hooks = [blocks[0].register_forward_pre_hook(lambda m, args: states.append(args[0]))]
    hooks += [b.register_forward_hook(lambda m, args, out: states.append(out)) for b in blocks]
    out = run()
    for h in hooks:
        h.remove()
    return out, states


def some_maps(states, h, w, before):
    return {"s%d" % i: grid(states[i], h, w, before) for i in (0, 1, len(states) - 1)}


def write_json(folder, name, content):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(content, f)


def save_weights(net, folder, name, named=str):
    from safetensors.torch import save_file
    os.makedirs(folder)
    save_file({named(k): v.float().contiguous() for k, v in net.state_dict().items()},
              os.path.join(folder, name))


def timm_numbers(net, numbers):
    """pretrained_cfg and model_args of a network whose pictures are not RGB; timm leaves mean and
    std of RGB in it."""
    about = {k: v for k, v in net.pretrained_cfg.items() if k != "url"}
    if numbers is None:
        return {"pretrained_cfg": about}
    n = len(numbers[0])
    about.update(input_size=[n] + list(about["input_size"])[1:], mean=numbers[0], std=numbers[1])
    return {"pretrained_cfg": about, "model_args": {"in_chans": n}}


def in_chans(numbers):
    return {} if numbers is None else {"in_chans": len(numbers[0])}


def timm_vit(architecture, before, classes=0, numbers=None):
    """As on the hub: config.json with the registration's name, model.safetensors."""
    import timm
    free = {"dynamic_img_size": True} if "dinov2" in architecture else {}
    net = draw(timm.create_model(architecture, num_classes=classes, **free, **in_chans(numbers)))

    def taps(net, x):
        p = net.patch_embed.patch_size[0]
        out, states = states_of(net.blocks, lambda: net(x))
        return {"pooled": out, "tokens": states[-1] if classes else net.norm(states[-1]),
                **some_maps(states, x.shape[2] // p, x.shape[3] // p, before)}

    def save(folder):
        save_weights(net, folder, "model.safetensors")
        write_json(folder, "config.json", {
            "architecture": architecture, "num_classes": classes, "num_features": net.num_features,
            "global_pool": net.global_pool, **timm_numbers(net, numbers)})
    return net, taps, save


def mobilenet():
    from torchvision.models import mobilenet_v2
    net = draw(mobilenet_v2(weights=None))

    def taps(net, x):
        pooled = net.features(x).mean((2, 3))
        return {"logits": net.classifier(pooled), "pooled": pooled, "s1": net.features[:2](x),
                "s4": net.features[:11](x), "s7": net.features[:18](x)}
    return net, taps, lambda folder: save_weights(net, folder, "model.safetensors")


def efficientnet_lite(name, flat=False):
    """timm's folder, or its weights under efficientnet_lite_pytorch's names."""
    import timm
    net = statistics(draw(timm.create_model(name, pretrained=False)))

    def taps(net, x):
        h = net.bn1(net.conv_stem(x))
        maps = {}
        for i, stage in enumerate(net.blocks, 1):
            maps["s%d" % i] = h = stage(h)
        pooled = net.global_pool(net.bn2(net.conv_head(h)))
        return {"logits": net.classifier(pooled), "pooled": pooled, "s1": maps["s1"], "s4": maps["s4"], "s7": h}

    def save(folder):
        if flat:
            save_weights(net, folder, "model.safetensors", networks.flat_names(net))
        else:
            save_timm(net, name, folder)
    return net, taps, save


def open_clip(name):
    """As on the hub: open_clip_config.json, open_clip_model.safetensors."""
    import open_clip as lib
    cfg = lib.get_model_config(name)
    cfg["text_cfg"] = {k: v for k, v in cfg["text_cfg"].items() if not k.startswith("hf_")}
    cfg["text_cfg"].update(vocab_size=64, width=64, heads=1, layers=1, context_length=8)
    kind = lib.CustomTextCLIP if cfg.pop("custom_text", False) else lib.CLIP
    net = draw(kind(**cfg))

    def taps(net, x):
        v = net.visual
        trunk = getattr(v, "trunk", None)
        blocks = trunk.blocks if trunk is not None else v.transformer.resblocks
        p = (trunk.patch_embed.patch_size if trunk is not None else v.patch_size)[0]
        out, states = states_of(blocks, lambda: net.encode_image(x))
        found = {"pooled": out}
        if trunk is None:
            found["cls"] = v.ln_post(states[-1][:, 0])
        found["tokens"] = states[-1] if trunk is None else trunk.norm(states[-1])
        return dict(found, **some_maps(states, x.shape[2] // p, x.shape[3] // p, trunk is None))

    def save(folder):
        save_weights(net, folder, "open_clip_model.safetensors")
        squash = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic",
                  "resize_mode": "squash"}
        write_json(folder, "open_clip_config.json", {
            "model_cfg": lib.get_model_config(name),
            "preprocess_cfg": squash if "SigLIP" in name else {}})
    return net, taps, save


def statistics(net, seed=3):
    """Running sums of BatchNorms that are not those of a fresh network."""
    gen = torch.Generator().manual_seed(seed)
    for m in net.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean = 0.2 * torch.randn(m.running_mean.shape, generator=gen)
            m.running_var = 1 + 0.5 * torch.rand(m.running_var.shape, generator=gen)
    return net


def stages(net, x):
    """Of torchvision's and timm's ResNets."""
    relu = net.relu if hasattr(net, "relu") else net.act1
    h = net.maxpool(relu(net.bn1(net.conv1(x))))
    found = {"s0": h}
    for i, layer in enumerate((net.layer1, net.layer2, net.layer3, net.layer4), 1):
        found["s%d" % i] = h = layer(h)
    pooled = h.mean((2, 3))
    return dict({"pooled": pooled, "logits": net.fc(pooled)}, **found)


def resnet_torchvision(name):
    import torchvision
    net = statistics(draw(getattr(torchvision.models, name)(weights=None)))
    return net, stages, lambda folder: save_weights(net, folder, "model.safetensors")


def resnet_timm(name, numbers=None):
    import timm
    net = statistics(draw(timm.create_model(name, pretrained=False, **in_chans(numbers))))

    return net, stages, lambda folder: save_timm(net, name, folder, numbers)


def resnet_hf():
    from transformers import ResNetConfig, ResNetForImageClassification
    net = statistics(draw(ResNetForImageClassification(ResNetConfig(num_labels=1000))))

    def taps(net, x):
        out = net.resnet(x, output_hidden_states=True)
        found = {"s%d" % i: h for i, h in enumerate(out.hidden_states)}
        return dict({"pooled": out.pooler_output.flatten(1),
                     "logits": net.classifier(out.pooler_output)}, **found)
    return net, taps, net.save_pretrained


def save_timm(net, name, folder, numbers=None):
    """As on the hub: config.json with the registration's name, model.safetensors."""
    save_weights(net, folder, "model.safetensors")
    write_json(folder, "config.json", {
        "architecture": name, "num_classes": net.num_classes, "num_features": net.num_features,
        "global_pool": "avg", **timm_numbers(net, numbers)})


def inception_fid():
    """The network of Frechet Inception distances, of pictures of any size."""
    from torchvision.models.inception import Inception3
    net = Inception3(convnets.FID_CLASSES, aux_logits=False, init_weights=False)
    net = statistics(draw(convnets.fid_form(net)))

    def taps(net, x):
        return convnets.inception_taps(net, convnets.fid_numbers(x))
    return net, taps, lambda folder: save_weights(net, folder, "model.safetensors")


def inception_torchvision():
    from torchvision.models import inception_v3
    net = statistics(draw(inception_v3(weights=None, transform_input=True, init_weights=False)))
    return net, lambda net, x: convnets.inception_taps(net, net._transform_input(x)), \
        lambda folder: save_weights(net, folder, "model.safetensors")


def inception_timm(name):
    import timm
    net = statistics(draw(timm.create_model(name, pretrained=False)))

    def taps(net, x):
        found = {}
        hooks = [getattr(net, n).register_forward_hook(
            lambda m, args, out, k=k: found.__setitem__(k, out))
                 for k, n in (("s0", "Pool1"), ("s1", "Pool2"), ("s2", "Mixed_6e"), ("s3", "Mixed_7c"))]
        pooled = net.global_pool(net.forward_features(x))
        for h in hooks:
            h.remove()
        return dict({"pooled": pooled, "logits": net.fc(pooled)}, **found)
    return net, taps, lambda folder: save_timm(net, name, folder)


def convnext_timm(name):
    import timm
    net = draw(timm.create_model(name, pretrained=False))
    return net, convnets.convnext_timm_taps, lambda folder: save_timm(net, name, folder)


def convnext_hf(**sizes):
    from transformers import ConvNextV2Config, ConvNextV2ForImageClassification
    net = draw(ConvNextV2ForImageClassification(ConvNextV2Config(num_labels=1000, **sizes)))

    def taps(net, x):
        found = convnets.convnext_hf_taps(net.convnextv2, x)
        return dict(found, logits=net.classifier(found["pooled"]))
    return net, taps, net.save_pretrained


def convnext_torchvision():
    from torchvision.models import convnext_tiny
    net = draw(convnext_tiny(weights=None))

    def taps(net, x):
        h = net.features(x)
        pooled = net.classifier[0](net.avgpool(h))
        return {"pooled": pooled.flatten(1), "logits": net.classifier[1:](pooled), "s4": h}
    return net, taps, lambda folder: save_weights(net, folder, "model.safetensors")


def sd_vae(decode):
    """The autoencoder of Stable Diffusion 1 and 2."""
    from diffusers import AutoencoderKL
    net = draw(AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2,
                             down_block_types=("DownEncoderBlock2D",) * 4,
                             up_block_types=("UpDecoderBlock2D",) * 4, sample_size=256))
    scale = net.config.scaling_factor

    def encode(net, x):
        dist = net.encode(x).latent_dist
        return {"latent": dist.mean * scale, "mean": dist.mean, "logvar": dist.logvar}
    return net, (lambda net, z: {"y": net.decode(z / scale).sample}) if decode else encode, \
        net.save_pretrained


def taesd(decode):
    """diffusers' AutoencoderTiny as it stands for Stable Diffusion."""
    from diffusers import AutoencoderTiny
    net = draw(AutoencoderTiny())

    def taps(net, x):
        return {"y": net.decode(x).sample} if decode else {"latent": net.encode(x).latents}
    return net, taps, net.save_pretrained


SMALL = dict(hidden_size=384, num_attention_heads=6)
LARGE = dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16)
LARGE_DINO = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16)
SO400M = dict(hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16)
# name: (build, sides of pictures, mean and deviation); of a decoder: channels and sides of latents
CASES = {
    "mobilenet-v2": (mobilenet, (224, 224), IMAGENET),
    "efficientnet-lite0-timm": (lambda: efficientnet_lite("tf_efficientnet_lite0"), (224, 224), HALF),
    "efficientnet-lite1-flat": (lambda: efficientnet_lite("tf_efficientnet_lite1", flat=True), (240, 240), HALF),
    "efficientnet-lite4-flat": (lambda: efficientnet_lite("tf_efficientnet_lite4", flat=True), (300, 300), HALF),
    "clip-b32": (lambda: clip(patch_size=32, projection=512), (224, 224), CLIP_NUMBERS),
    "clip-b16": (lambda: clip(patch_size=16, projection=512), (224, 224), CLIP_NUMBERS),
    "clip-l14": (lambda: clip(patch_size=14, projection=768, **LARGE), (224, 224), CLIP_NUMBERS),
    "siglip-b16": (lambda: siglip(patch_size=16, image_size=224), (224, 224), HALF),
    "siglip-so400m": (lambda: siglip(patch_size=14, image_size=384, **SO400M), (384, 384), HALF),
    "clip-b32-open": (lambda: open_clip("ViT-B-32-quickgelu"), (224, 224), CLIP_NUMBERS),
    "clip-l14-open": (lambda: open_clip("ViT-L-14"), (224, 224), CLIP_NUMBERS),
    "clip-b32-timm": (lambda: timm_vit("vit_base_patch32_clip_quickgelu_224", 1, 512), (224, 224),
                      CLIP_NUMBERS),
    "siglip-b16-timm": (lambda: timm_vit("vit_base_patch16_siglip_224", 0), (224, 224), HALF),
    "siglip2-b16-open": (lambda: open_clip("ViT-B-16-SigLIP2"), (224, 224), HALF),
    "siglip2-so400m-open": (lambda: open_clip("ViT-SO400M-14-SigLIP2-378"), (378, 378), HALF),
    "dinov2-s-timm": (lambda: timm_vit("vit_small_patch14_dinov2", 1), (224, 224), IMAGENET),
    "dinov2-b-reg-timm": (lambda: timm_vit("vit_base_patch14_reg4_dinov2", 5), (224, 280), IMAGENET),
    "dinov2-s": (lambda: dinov2(**SMALL), (224, 224), IMAGENET),
    "dinov2-b": (dinov2, (224, 224), IMAGENET),
    "dinov2-b-oblong": (dinov2, (140, 308), IMAGENET),
    "dinov2-b-518": (dinov2, (518, 518), IMAGENET),
    "dinov2-l": (lambda: dinov2(**LARGE_DINO), (224, 224), IMAGENET),
    "dinov2-s-reg": (lambda: dinov2(registers=4, **SMALL), (224, 224), IMAGENET),
    "dinov2-b-reg": (lambda: dinov2(registers=4), (224, 224), IMAGENET),
    "resnet18": (lambda: resnet_torchvision("resnet18"), (224, 224), IMAGENET),
    "resnet50": (lambda: resnet_torchvision("resnet50"), (224, 224), IMAGENET),
    "resnet50-oblong": (lambda: resnet_torchvision("resnet50"), (225, 190), IMAGENET),
    "resnet152": (lambda: resnet_torchvision("resnet152"), (224, 224), IMAGENET),
    "wide-resnet50": (lambda: resnet_torchvision("wide_resnet50_2"), (224, 224), IMAGENET),
    "resnet34-timm": (lambda: resnet_timm("resnet34"), (224, 224), IMAGENET),
    "resnet50-timm": (lambda: resnet_timm("resnet50"), (224, 224), IMAGENET),
    "resnet18-gray-timm": (lambda: resnet_timm("resnet18", GRAY), (224, 224), GRAY),
    "resnet18-five-timm": (lambda: resnet_timm("resnet18", FIVE), (224, 224), FIVE),
    "dinov2-s-gray-timm": (lambda: timm_vit("vit_small_patch14_dinov2", 1, numbers=GRAY), (224, 224),
                           GRAY),
    "siglip-b16-gray": (lambda: siglip(patch_size=16, image_size=224, num_channels=1), (224, 224),
                        GRAY_HALF),
    "resnet50-hf": (resnet_hf, (224, 224), IMAGENET),
    "inception-fid": (inception_fid, (299, 299), HALF),
    "inception-fid-small": (inception_fid, (32, 32), HALF),
    "inception-fid-oblong": (inception_fid, (375, 500), HALF),
    "inception-tv": (inception_torchvision, (299, 299), IMAGENET),
    "inception-timm": (lambda: inception_timm("inception_v3"), (299, 299), HALF),
    "convnextv2-atto-timm": (lambda: convnext_timm("convnextv2_atto"), (224, 224), IMAGENET),
    "convnextv2-nano-timm": (lambda: convnext_timm("convnextv2_nano"), (224, 288), IMAGENET),
    "convnextv2-base-timm": (lambda: convnext_timm("convnextv2_base"), (224, 224), IMAGENET),
    "convnext-tiny-timm": (lambda: convnext_timm("convnext_tiny"), (224, 224), IMAGENET),
    "convnext-tiny-tv": (convnext_torchvision, (224, 224), IMAGENET),
    "convnextv2-tiny-hf": (convnext_hf, (224, 224), IMAGENET),
    "sd-vae-encode": (lambda: sd_vae(False), (256, 256), HALF),
    "sd-vae-decode": (lambda: sd_vae(True), (4, 32, 32), HALF),
    "sd-vae-decode-oblong": (lambda: sd_vae(True), (4, 24, 40), HALF),
    "taesd-encode": (lambda: taesd(False), (256, 256), HALF),
    "taesd-decode": (lambda: taesd(True), (4, 32, 32), HALF),
    "dinov2-l-reg": (lambda: dinov2(registers=4, **LARGE_DINO), (224, 224), IMAGENET),
}

KINKS = ("resnet", "wide-resnet", "taesd", "mobilenet", "efficientnet", "inception")  # beginnings of cases

# ---- running ------------------------------------------------------------------------------------


def errors(have, want):
    have, want = have.astype(np.float64), want.astype(np.float64)
    assert have.shape == want.shape, "%s, not %s" % (have.shape, want.shape)
    d = have - want
    return np.abs(d).max() / np.abs(want).max(), np.linalg.norm(d) / np.linalg.norm(want)


def reference(net, taps, x, numbers, o):
    """The library's taps of pictures in [-1, 1], or of latents; g and the gradient of sum(first tap
    * g)."""
    mean, std = (torch.tensor(v, dtype=torch.float64)[:, None, None] for v in numbers)
    net = net.double() if o.double else net.float()
    x = torch.from_numpy(x).double().requires_grad_(o.gradient)
    pixels = x if numbers == HALF else ((x + 1) / 2 - mean) / std
    net.requires_grad_(False)
    found = taps(net, pixels if o.double else pixels.float())
    first = next(iter(found.values()))
    g = torch.randn(first.shape, generator=torch.Generator().manual_seed(3))
    if o.gradient:
        (first * g).sum().backward()
    return ({k: v.detach().numpy() for k, v in found.items()}, g.numpy(),
            x.grad.numpy() if o.gradient else None)


def run(command, folder, tap, precision, scratch):
    out = os.path.join(scratch, "y.npy")
    subprocess.run(command + ["run", folder, "--input", os.path.join(scratch, "x.npy"), "--layer",
                              tap, "--precision", precision, "--output", out, "--quiet"],
                   check=True, stdout=sys.stderr)
    return np.load(out)


def run_gradient(o, folder, tap, g, scratch):
    path = lambda n: os.path.join(scratch, n + ".npy")
    np.save(path("g"), g)
    program = os.path.join(os.path.dirname(o.leeway), "encoder_gradient")
    subprocess.run([program, folder, tap, path("x"), path("g"), path("gx")], check=True)
    return np.load(path("gx"))


def line(case, what, precision, err, limit=0):
    ok = max(err) <= max(LIMIT[precision], limit)
    print("%-16s %-10s %-5s max %.1e  rms %.1e%s" % (case, what, precision, err[0], err[1],
                                                     "" if ok else "   TOO FAR"), flush=True)
    return ok


def check(name, o, scratch):
    build, sides, numbers = CASES[name]
    torch.manual_seed(0)
    net, taps, save = build()
    folder = os.path.join(scratch, name)
    save(folder)
    decoder = len(sides) == 3
    shape = (o.batch,) + (sides if decoder else (len(numbers[0]),) + sides)
    x = np.random.default_rng(2).uniform(-1, 1, shape).astype(np.float32)
    np.save(os.path.join(scratch, "x.npy"), x)
    start = time.time()
    want, g, gx = reference(net, taps, x, numbers, o)
    limit = 0
    if o.gradient and name.startswith(KINKS):
        own = gx
        want, g, gx = reference(net, taps, x, numbers,
                                argparse.Namespace(double=True, gradient=True))
        limit = 3 * max(errors(own, gx))
    del net, taps, save
    print("%s: the reference took %.0f s" % (name, time.time() - start), file=sys.stderr)
    ok = True
    for precision in o.precision.split(","):
        for tap in want if precision == "f32" else list(want)[:1]:
            got = run([o.leeway], "decoder:" * decoder + folder, tap, precision, scratch)
            ok &= line(name, tap, precision, errors(got, want[tap]))
    if o.gradient:
        tap = next(iter(want))
        got = run_gradient(o, "decoder:" * decoder + folder, tap, g, scratch)
        ok &= line(name, "d " + tap, "f32", errors(got, gx), limit)
    shutil.rmtree(folder)
    return ok


# ---- published weights ---------------------------------------------------------------------------

# The first numbers of the L2-normalised embedding of 16 x 16 red pixels, written as JPEG by Pillow
# (stored as float16 by those who published them); of DINOv2, last_hidden_state[0, :3, :3] of COCO's
# picture 000000039769.
RED = {
    "clip-vit-base-patch32": (-0.0030384, -0.0146561, -0.0303497),
    "clip-vit-large-patch14": (0.0099792, 0.0163727, 0.0226898),
    "siglip2-base-patch16-224": (0.0188141, -0.0336609, -0.0021324),
    "siglip-so400m-patch14-384": (0.0096054, -0.0045624, -0.0090027),
}
COCO = {"dinov2-base": ((-2.1747, -0.4729, 1.0936), (-3.2780, -0.8269, -0.9210),
                        (-2.9129, 1.1284, -0.7306))}


def encode(o, folder, picture, layer, scratch):
    data, out = os.path.join(scratch, "pictures"), os.path.join(scratch, "e.npy")
    os.makedirs(data, exist_ok=True)
    shutil.copy(picture, data)
    subprocess.run([o.leeway, "encode", "--model", folder, "--data", "folder:" + data, "--layer", layer,
                    "--output", out, "--quiet"], check=True, stdout=sys.stderr)
    shutil.rmtree(data)
    return np.load(out)[0].astype(np.float64)


def check_published(o, name, folder, scratch):
    if name in RED:
        from PIL import Image
        picture = os.path.join(scratch, "red.jpg")
        Image.new("RGB", (16, 16), (255, 0, 0)).save(picture)
        y = encode(o, folder, picture, "pooled", scratch)
        have, want, limit = y[:3] / np.linalg.norm(y), np.array(RED[name]), 1e-4
    elif not o.coco:
        print("%-28s needs --coco 000000039769.jpg" % name)
        return False
    else:
        have = encode(o, folder, o.coco, "tokens", scratch)[:3, :3]
        want, limit = np.array(COCO[name]), 1e-3
    worst = np.abs(have - want).max()
    print("%-28s largest difference %.1e (%.0e allowed)" % (name, worst, limit))
    return worst <= limit


def published(o, scratch):
    given = dict(p.split("=", 1) for p in o.published)
    good = True
    for name in list(RED) + list(COCO):
        if name in given:
            good &= check_published(o, name, given.pop(name), scratch)
        else:
            print("%-28s not at hand" % name)
    if given:
        sys.exit("no published embedding is known of %s" % ", ".join(given))
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway", help="the program")
    p.add_argument("--only", default="", help="comma-separated cases")
    p.add_argument("--list", action="store_true", help="the cases")
    p.add_argument("--precision", default="f32,bf16")
    p.add_argument("--batch", type=int, default=2)
    p.add_argument("--double", action="store_true", help="the reference in double")
    p.add_argument("--gradient", action="store_true", help="also the gradient to the picture")
    p.add_argument("--published", nargs="*", metavar="NAME=FOLDER",
                   help="instead: published weights against published embeddings")
    p.add_argument("--coco", help="COCO's picture 000000039769.jpg, for --published")
    p.add_argument("--threads", type=int, default=1, help="of the reference")
    p.add_argument("--scratch", help="where folders of weights go (default: a temporary folder)")
    o = p.parse_args()
    if o.list:
        print("\n".join(list(CASES) + ["published: " + n for n in list(RED) + list(COCO)]))
        return 0
    torch.set_num_threads(o.threads)
    with tempfile.TemporaryDirectory(dir=o.scratch) as scratch:
        if o.published is not None:
            return 0 if published(o, scratch) else 1
        good = [check(n, o, scratch) for n in (o.only.split(",") if o.only else CASES)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
