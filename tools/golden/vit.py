# SPDX-License-Identifier: Apache-2.0
"""Small vision transformers of transformers, timm and open_clip: taps and gradients to the picture.

Every case is a folder as its library writes it: the configuration is stored, the weights are not, but
their names and shapes, and the formula gives the values. So a test writes the folder again, and what
it compares went through the library's own names and configuration.
"""
import json
import os
import tempfile

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from . import formula

CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5,) * 3, (0.5,) * 3)
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def formula_weights(path):
    """Replaces the values in a safetensors file by the formula's; names and shapes."""
    with safe_open(path, "pt") as f:
        shapes = [(k, tuple(f.get_slice(k).get_shape())) for k in sorted(f.keys())]
        meta = f.metadata()
    save_file({k: torch.from_numpy(formula.parameter(k, s).reshape(s)) for k, s in shapes}, path,
              metadata=meta)
    return shapes


def grid(tokens, h, w, before):
    t = tokens[:, before:]
    return t.transpose(1, 2).reshape(t.shape[0], t.shape[2], h, w)


# ---- transformers --------------------------------------------------------------------------------

TEXT = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
            vocab_size=4, max_position_embeddings=4, bos_token_id=0, eos_token_id=1, pad_token_id=1)


def transformers_case(net, vision, taps):
    """net: an instance; vision(net): the tower; taps(net, out) names what stands before the maps."""
    def run(folder, x, gradient_of="pooled"):
        again = type(net).from_pretrained(folder).double().eval()
        tower = vision(again)
        out = tower(x, output_hidden_states=True)
        p = tower.config.patch_size
        h, w = x.shape[2] // p, x.shape[3] // p
        before = out.hidden_states[0].shape[1] - h * w
        found = taps(again, out)
        for i, t in enumerate(out.hidden_states):
            found["s%d" % i] = grid(t, h, w, before)
        return found
    return net.save_pretrained, run


def clip(projection, act, width=24, heads=3, picture=32):
    from transformers import CLIPConfig, CLIPModel, CLIPVisionConfig, CLIPVisionModel
    sizes = dict(hidden_size=width, intermediate_size=40, num_hidden_layers=2,
                 num_attention_heads=heads, image_size=picture, patch_size=8, hidden_act=act)
    both = lambda net, out: {"cls": out.pooler_output, "tokens": out.last_hidden_state}
    if projection:
        net = CLIPModel(CLIPConfig(vision_config=sizes, text_config=dict(TEXT, projection_dim=12),
                                   projection_dim=12))
        return transformers_case(
            net, lambda n: n.vision_model,
            lambda n, o: dict(both(n, o), pooled=n.visual_projection(o.pooler_output)))
    return transformers_case(CLIPVisionModel(CLIPVisionConfig(**sizes)), lambda n: n,
                             lambda n, o: dict(both(n, o), pooled=o.pooler_output))


def siglip(whole, **more):
    from transformers import SiglipConfig, SiglipModel, SiglipVisionConfig, SiglipVisionModel
    sizes = dict(hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=4,
                 image_size=30, patch_size=8, **more)
    taps = lambda net, out: {"pooled": out.pooler_output, "tokens": out.last_hidden_state}
    if whole:
        net = SiglipModel(SiglipConfig(vision_config=sizes, text_config=TEXT))
        return transformers_case(net, lambda n: n.vision_model, taps)
    return transformers_case(SiglipVisionModel(SiglipVisionConfig(**sizes)), lambda n: n, taps)


def dinov2(registers=0, classes=0, **more):
    import transformers as t
    sizes = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, image_size=32,
                 patch_size=8, mlp_ratio=2, **more)
    both = lambda net, out: {"pooled": out.last_hidden_state[:, 0], "cls": out.last_hidden_state[:, 0],
                             "tokens": out.last_hidden_state}
    if registers:
        net = t.Dinov2WithRegistersModel(
            t.Dinov2WithRegistersConfig(num_register_tokens=registers, **sizes))
        return transformers_case(net, lambda n: n, both)
    if classes:
        net = t.Dinov2ForImageClassification(t.Dinov2Config(num_labels=classes, **sizes))

        def taps(n, out):
            last = out.last_hidden_state
            linear = torch.cat([last[:, 0], last[:, 1:].mean(1)], 1)
            return dict(both(n, out), logits=n.classifier(linear))
        return transformers_case(net, lambda n: n.dinov2, taps)
    return transformers_case(t.Dinov2Model(t.Dinov2Config(**sizes)), lambda n: n, both)


# name: (the case, [batch, height, width], mean and deviation)
CASES = {
    "clip": (lambda: clip(True, "quick_gelu"), (2, 32, 32), CLIP),
    "clip_vision": (lambda: clip(False, "gelu"), (1, 32, 32), CLIP),
    "siglip": (lambda: siglip(True), (2, 30, 30), HALF),
    "siglip_vision": (lambda: siglip(False, hidden_act="gelu"), (1, 30, 30), HALF),
    "dinov2": (lambda: dinov2(classes=5), (2, 32, 32), IMAGENET),
    "dinov2_larger": (dinov2, (1, 41, 48), IMAGENET),
    "dinov2_gated": (lambda: dinov2(use_swiglu_ffn=True, qkv_bias=False), (1, 24, 24), IMAGENET),
    "registers": (lambda: dinov2(registers=3), (1, 24, 40), IMAGENET),
}


def one(name):
    build, (b, h, w), (mean, std) = CASES[name]
    torch.manual_seed(0)
    save, run = build()
    with tempfile.TemporaryDirectory() as folder:
        save(folder)
        weights = [f for f in os.listdir(folder) if f.endswith(".safetensors")][0]
        shapes = formula_weights(os.path.join(folder, weights))
        files = {f: json.load(open(os.path.join(folder, f), encoding="utf-8"))
                 for f in sorted(os.listdir(folder)) if f.endswith(".json")}
        x = torch.from_numpy(formula.values("vit.%s.x" % name, (b, 3, h, w))).double()
        x.requires_grad_()
        mean, std = (torch.tensor(v).double()[:, None, None] for v in (mean, std))
        found = run(folder, ((x + 1) / 2 - mean) / std)
    gy = formula.unit("vit.%s.gy" % name, tuple(found["pooled"].shape))
    (found["pooled"] * torch.from_numpy(gy)).sum().backward()
    out = {name + ".gx": x.grad.numpy()}
    for tap, v in found.items():
        v = v.detach().numpy()
        if tap[0] == "s" or tap == "tokens":
            out["%s.sketch.%s" % (name, tap)] = formula.sketch(tap, v)
        else:
            out["%s.%s" % (name, tap)] = v
    about = {"name": name, "picture": [b, h, w], "files": files, "weights": weights,
             "tensors": [[k, list(s)] for k, s in shapes]}
    return out, about


def make(directory):
    out, abouts = {}, []
    for name in CASES:
        tensors, about = one(name)
        out.update(tensors)
        abouts.append(about)
    with open(os.path.join(directory, "vit.json"), "w", encoding="utf-8") as f:
        f.write("[\n%s\n]\n" % ",\n".join(json.dumps(a, separators=(",", ":")) for a in abouts))
    out = {k: np.float64(v) if ".sketch." in k else np.float32(v) for k, v in out.items()}
    return out, {}
