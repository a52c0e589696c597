# SPDX-License-Identifier: Apache-2.0
"""Small vision transformers of transformers, timm and open_clip, and DINOv2 as its authors name it.

As networks.py, but names and configuration are those of the folder that the library writes, which are
not always those of its modules.
"""
import json
import math
import os
import tempfile

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from . import formula
from .networks import IMAGENET, answers, fill, names, normalised

CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5,) * 3, (0.5,) * 3)


def formula_weights(path):
    """Replaces the values in a safetensors file by the formula's; the list of names and shapes."""
    with safe_open(path, "pt") as f:
        shapes = [(k, tuple(f.get_slice(k).get_shape())) for k in sorted(f.keys())]
        meta = f.metadata()
    old = load_file(path)
    save_file({k: torch.from_numpy(formula.parameter(k, s)) if s else old[k] for k, s in shapes},
              path, metadata=meta)
    return "\n".join("%s %s" % (k, "x".join(map(str, s))) for k, s in shapes if s)


def grid(tokens, h, w, before):
    t = tokens[:, before:]
    return t.transpose(1, 2).reshape(t.shape[0], t.shape[2], h, w)


def maps(states, x, patch):
    """s0, s1, ... of the tokens before and behind every block."""
    h, w = x.shape[2] // patch, x.shape[3] // patch
    return {"s%d" % i: grid(t, h, w, t.shape[1] - h * w) for i, t in enumerate(states)}


# ---- transformers --------------------------------------------------------------------------------

TEXT = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
            vocab_size=4, max_position_embeddings=4, bos_token_id=0, eos_token_id=1, pad_token_id=1)


def transformers_case(net, shape, numbers, vision, more):
    """vision(net): the tower; more(net, its output): the taps but the maps."""
    with tempfile.TemporaryDirectory() as folder:
        net.save_pretrained(folder)
        listed = formula_weights(os.path.join(folder, "model.safetensors"))
        again = type(net).from_pretrained(folder).double().eval()
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            config = json.load(f)

    def taps(x):
        out = vision(again)(normalised(x, numbers), output_hidden_states=True)
        return dict(more(again, out),
                    **maps(out.hidden_states, x, vision(again).config.patch_size))
    res, about = answers(taps, shape, "pooled")
    return res, dict(about, names=listed, config=json.dumps(config, sort_keys=True))


def clip(projection, act):
    from transformers import CLIPConfig, CLIPModel, CLIPVisionConfig, CLIPVisionModel
    sizes = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
                 image_size=32, patch_size=8, hidden_act=act)
    both = lambda out: {"cls": out.pooler_output, "tokens": out.last_hidden_state}
    if projection:
        net = CLIPModel(CLIPConfig(vision_config=sizes, text_config=dict(TEXT, projection_dim=12),
                                   projection_dim=12))
        return transformers_case(
            net, (2, 3, 32, 32), CLIP, lambda n: n.vision_model,
            lambda n, out: dict(both(out), pooled=n.visual_projection(out.pooler_output)))
    return transformers_case(CLIPVisionModel(CLIPVisionConfig(**sizes)), (1, 3, 32, 32), CLIP,
                             lambda n: n, lambda n, out: dict(both(out), pooled=out.pooler_output))


def siglip(whole, **more):
    from transformers import SiglipConfig, SiglipModel, SiglipVisionConfig, SiglipVisionModel
    sizes = dict(hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=4,
                 image_size=30, patch_size=8, **more)
    taps = lambda n, out: {"pooled": out.pooler_output, "tokens": out.last_hidden_state}
    if whole:
        return transformers_case(
            SiglipModel(SiglipConfig(vision_config=sizes, text_config=TEXT)), (2, 3, 30, 30), HALF,
            lambda n: n.vision_model, taps)
    return transformers_case(SiglipVisionModel(SiglipVisionConfig(**sizes)), (1, 3, 30, 30), HALF,
                             lambda n: n, taps)


def dinov2(shape, registers=0, classes=0, **more):
    import transformers as t
    sizes = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, image_size=32,
                 patch_size=8, mlp_ratio=2, **more)
    both = lambda n, out: {"pooled": out.last_hidden_state[:, 0], "cls": out.last_hidden_state[:, 0],
                           "tokens": out.last_hidden_state}
    if registers:
        net = t.Dinov2WithRegistersModel(
            t.Dinov2WithRegistersConfig(num_register_tokens=registers, **sizes))
    elif classes:
        net = t.Dinov2ForImageClassification(t.Dinov2Config(num_labels=classes, **sizes))
    else:
        net = t.Dinov2Model(t.Dinov2Config(**sizes))

    def taps(n, out):
        if not classes:
            return both(n, out)
        last = out.last_hidden_state
        return dict(both(n, out),
                    logits=n.classifier(torch.cat([last[:, 0], last[:, 1:].mean(1)], 1)))
    return transformers_case(net, shape, IMAGENET, lambda n: n.dinov2 if classes else n, taps)


# ---- timm ----------------------------------------------------------------------------------------

def timm_case(architecture, shape, numbers, prefix, classes=0, **args):
    import timm
    net = fill(timm.create_model(architecture, num_classes=classes, **args))
    if "dynamic_img_size" in args:
        args.pop("dynamic_img_size")  # of the module, not of what it computes

    def taps(x):
        states = [net.norm_pre(net._pos_embed(net.patch_embed(normalised(x, numbers))))]
        for block in net.blocks:
            states.append(block(states[-1]))
        last = net.norm(states[-1])
        out = {"pooled": net.forward_head(last), "tokens": states[-1] if classes else last,
               **maps(states, x, args["patch_size"])}
        if prefix:
            out["cls"] = last[:, 0]
        return out
    res, about = answers(taps, shape, "pooled")
    config = {"architecture": architecture, "num_classes": classes, "num_features": net.num_features,
              "global_pool": net.global_pool, "model_args": args,
              "pretrained_cfg": {"input_size": [len(numbers[0]), args["img_size"], args["img_size"]], "crop_mode": "center", "crop_pct": 1.0,
                                 "interpolation": "bicubic", "mean": numbers[0], "std": numbers[1],
                                 "num_classes": 0, "first_conv": "patch_embed.proj",
                                 "classifier": "head", "tag": "", "custom_load": False,
                                 "fixed_input_size": True}}
    return res, dict(about, names=names(net), config=json.dumps(config, sort_keys=True))


# ---- open_clip -----------------------------------------------------------------------------------

def open_clip_case(quick):
    from open_clip.model import CLIP as Clip
    cfg = {"embed_dim": 12, "quick_gelu": quick,
           "vision_cfg": {"image_size": 32, "layers": 2, "width": 24, "head_width": 8,
                          "patch_size": 8, "mlp_ratio": 2.0},
           "text_cfg": {"context_length": 4, "vocab_size": 4, "width": 8, "heads": 1, "layers": 1}}
    net = fill(Clip(**cfg))

    def taps(x):
        v, states = net.visual, []
        hooks = [v.transformer.resblocks[0].register_forward_pre_hook(
            lambda m, args: states.append(args[0]))]
        hooks += [b.register_forward_hook(lambda m, args, out: states.append(out))
                  for b in v.transformer.resblocks]
        pooled = net.encode_image(normalised(x, CLIP))
        for h in hooks:
            h.remove()
        return {"pooled": pooled, "cls": v.ln_post(states[-1][:, 0]), "tokens": states[-1],
                **maps(states, x, 8)}
    res, about = answers(taps, (1, 3, 32, 32), "pooled")
    config = {"model_cfg": cfg, "preprocess_cfg": {"mean": CLIP[0], "std": CLIP[1]}}
    return res, dict(about, names=names(net), config=json.dumps(config, sort_keys=True),
                     config_name="open_clip_config.json")


# ---- DINOv2's own files, from their description --------------------------------------------------

class Attention(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Scale(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(c))

    def forward(self, x):
        return x * self.gamma


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(c, 2 * c), nn.Linear(2 * c, c)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(c, eps=1e-6), nn.LayerNorm(c, eps=1e-6)
        self.attn, self.mlp, self.ls1, self.ls2 = Attention(c, heads), Mlp(c), Scale(c), Scale(c)

    def forward(self, x):
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class Authors(nn.Module):
    """Without registers the table follows the picture by scale_factor (n + 0.1) / M, with them by size
    and antialiased."""

    def __init__(self, c, heads, side, patch, registers):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, c))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + side * side, c))
        self.mask_token = nn.Parameter(torch.zeros(1, c))
        self.register_tokens = nn.Parameter(torch.zeros(1, registers, c)) if registers else None
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, c, patch, patch)
        self.blocks = nn.ModuleList([Block(c, heads) for _ in range(2)])
        self.norm = nn.LayerNorm(c, eps=1e-6)

    def table(self, h, w):
        at = self.pos_embed[:, 1:]
        side = math.isqrt(at.shape[1])
        if h == w == side:
            return at
        how = {"size": (h, w), "antialias": True} if self.register_tokens is not None else {
            "scale_factor": ((h + 0.1) / side, (w + 0.1) / side)}
        at = at.reshape(1, side, side, -1).permute(0, 3, 1, 2)
        at = F.interpolate(at, mode="bicubic", **how)
        assert tuple(at.shape[2:]) == (h, w)
        return at.permute(0, 2, 3, 1).flatten(1, 2)

    def taps(self, x):
        t = self.patch_embed.proj(normalised(x))
        t = t.flatten(2).transpose(1, 2) + self.table(*t.shape[2:])
        front = [self.cls_token + self.pos_embed[:, :1]]
        if self.register_tokens is not None:
            front.append(self.register_tokens)
        states = [torch.cat([f.expand(len(x), -1, -1) for f in front] + [t], 1)]
        for block in self.blocks:
            states.append(block(states[-1]))
        last = self.norm(states[-1])
        return {"pooled": last[:, 0], "cls": last[:, 0], "tokens": last,
                **maps(states, x, self.patch_embed.proj.kernel_size[0])}


def authors(shape, registers):
    net = fill(Authors(64, 1, 5, 8, registers))
    res, about = answers(net.taps, shape, "pooled")
    return res, dict(about, names=names(net))


FIVE = (0.1, 0.2, 0.3, 0.4, 0.5), (0.5, 0.4, 0.3, 0.2, 0.1)
SMALL = dict(embed_dim=36, depth=2, patch_size=8, mlp_ratio=2)
CASES = {
    "clip": lambda: clip(True, "quick_gelu"),
    "clip_vision": lambda: clip(False, "gelu"),
    "clip_open": lambda: open_clip_case(True),
    "clip_open_gelu": lambda: open_clip_case(False),
    "clip_timm": lambda: timm_case("vit_base_patch32_clip_quickgelu_224", (1, 3, 32, 32), CLIP, True,
                                   classes=12, img_size=32, num_heads=4, **SMALL),
    "siglip": lambda: siglip(True),
    "siglip_vision": lambda: siglip(False, hidden_act="gelu"),
    "siglip_timm": lambda: timm_case("vit_base_patch16_siglip_224", (1, 3, 30, 30), HALF, False,
                                     img_size=30, num_heads=4, **SMALL),
    "dinov2": lambda: dinov2((2, 3, 32, 32), classes=5),
    "dinov2_oblong": lambda: dinov2((1, 3, 41, 48)),
    "dinov2_gated": lambda: dinov2((1, 3, 24, 24), use_swiglu_ffn=True, qkv_bias=False),
    "dinov2_registers": lambda: dinov2((1, 3, 24, 40), registers=3),
    "dinov2_authors": lambda: authors((1, 3, 32, 48), 0),
    "dinov2_authors_registers": lambda: authors((1, 3, 32, 48), 4),
    "dinov2_timm": lambda: timm_case("vit_small_patch14_dinov2", (1, 3, 32, 48), IMAGENET, True,
                                     img_size=40, dynamic_img_size=True, **SMALL),
    "dinov2_timm_five": lambda: timm_case("vit_small_patch14_dinov2", (1, 5, 16, 24), FIVE, True,
                                          img_size=24, in_chans=5, dynamic_img_size=True, **SMALL),
    "dinov2_timm_registers": lambda: timm_case("vit_small_patch14_reg4_dinov2", (1, 3, 48, 32),
                                               IMAGENET, True, img_size=40, dynamic_img_size=True,
                                               **SMALL),
}
