# SPDX-License-Identifier: Apache-2.0
"""Prepared pictures by the libraries themselves, as hashes of their bytes: prepare.json.

transformers' processors that run on Pillow (...ImageProcessorPil) without rescaling and normalising; timm's and
open_clip's evaluation transforms without tensors. Pillow before version 13 is needed: from then on it takes the passes of some pictures in the
other order, and published numbers are older.
"""
import json
import os

import numpy as np
import open_clip.transform
import PIL
import timm.data
import torchvision.transforms as T
import transformers
from PIL import Image

from . import formula

PICTURES = ((375, 500), (500, 375), (224, 224), (100, 300), (301, 97), (33, 47), (427, 640))
CLIP = {"feature_extractor_type": "CLIPFeatureExtractor", "crop_size": 224, "do_center_crop": True, "do_normalize": True,
        "do_resize": True, "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 224}
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
HF = {
    "clip": {"image_processor_type": "CLIPImageProcessor"},
    "clip-first-files": CLIP,
    "clip-l14-336": dict(CLIP, size=336, crop_size=336),
    "clip-odd": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 240},
                 "crop_size": {"height": 225, "width": 223}},
    "clip-padded": {"image_processor_type": "CLIPImageProcessorFast", "size": {"shortest_edge": 101}, "crop_size": 128,
                    "resample": 1, "do_rescale": False},
    "siglip": {"image_processor_type": "SiglipImageProcessor", "processor_class": "SiglipProcessor"},
    "siglip2-so400m": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384},
                       "resample": 2, "do_convert_rgb": None, "rescale_factor": 0.00392156862745098},
    "siglip-number": {"image_processor_type": "SiglipImageProcessor", "size": 48, "do_center_crop": True,
                      "crop_size": 40},
    "dinov2": {"image_processor_type": "BitImageProcessor", "crop_size": {"height": 224, "width": 224},
               "do_center_crop": True, "do_convert_rgb": True, "do_normalize": True, "do_rescale": True,
               "do_resize": True, "image_mean": IMAGENET["mean"], "image_std": IMAGENET["std"], "resample": 3,
               "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}},
    "vit": {"image_processor_type": "ViTImageProcessor"},
    "vit-first-files": {"do_normalize": True, "do_resize": True, "image_mean": [0.5, 0.5, 0.5],
                        "image_std": [0.5, 0.5, 0.5], "size": 224, "feature_extractor_type": "ViTFeatureExtractor"},
    "deit": {"image_processor_type": "DeiTImageProcessor", "do_normalize": False},
    "convnext-224": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}, "resample": 3,
                     "crop_pct": 0.875, "image_mean": IMAGENET["mean"], "image_std": IMAGENET["std"]},
    "convnext-384": {"image_processor_type": "ConvNextFeatureExtractor", "size": 384, "resample": 2},
    "mobilenet-v2": {"image_processor_type": "MobileNetV2ImageProcessor"},
}
TIMM = {
    "torchvision-eval": {"input_size": [3, 224, 224], "interpolation": "bilinear", "crop_pct": 0.875, **IMAGENET},
    "timm-vit": {"tag": "augreg", "input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.9,
                 "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "num_classes": 1000},
    "timm-resnet-288": {"input_size": [3, 288, 288], "interpolation": "bicubic", "crop_pct": 0.95, **IMAGENET},
    "timm-odd": {"input_size": [3, 225, 225], "interpolation": "lanczos", "crop_pct": 0.96, **IMAGENET},
    "timm-siglip-378": {"input_size": [3, 378, 378], "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "squash",
                        "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
    "timm-border": {"input_size": [3, 224, 224], "crop_pct": 1.0, "crop_mode": "border", **IMAGENET},
    "timm-border-cut": {"input_size": [3, 160, 161], "crop_pct": 0.8, "crop_mode": "border", **IMAGENET},
    "timm-wide": {"input_size": [3, 192, 256], "crop_pct": 0.95, "interpolation": "bilinear", **IMAGENET},
}


OPEN_CLIP = {
    "open_clip": {"model_cfg": {"embed_dim": 512, "vision_cfg": {"image_size": 224}},
                  "preprocess_cfg": {"mode": "RGB", "fill_color": 0}},
    "open_clip-siglip2": {"model_cfg": {"vision_cfg": {"image_size": 256}},
                          "preprocess_cfg": {"size": [224, 224], "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
                                             "interpolation": "bicubic", "resize_mode": "squash"}},
    "open_clip-odd": {"model_cfg": {"vision_cfg": {"image_size": 225}},
                      "preprocess_cfg": {"interpolation": "bilinear", **IMAGENET}},
}


def image(h, w):
    return Image.fromarray(formula.picture(h, w, 3))


def processor_of(config):
    word = config.get("image_processor_type", config.get("feature_extractor_type"))
    for suffix in ("ImageProcessorFast", "ImageProcessor", "FeatureExtractor"):
        word = word.removesuffix(suffix)
    arguments = {k: v for k, v in config.items() if not k.endswith("_type") and k != "processor_class"}
    return getattr(transformers, word + "ImageProcessorPil")(**arguments)


def by_transformers(config):
    p = processor_of(config)
    row = {"scale": p.rescale_factor if p.do_rescale else 1.0,
           "mean": list(p.image_mean) if p.do_normalize else [0, 0, 0],
           "std": list(p.image_std) if p.do_normalize else [1, 1, 1]}

    def run(h, w):
        out = p(image(h, w), do_rescale=False, do_normalize=False, return_tensors="np")["pixel_values"][0]
        return out.transpose(1, 2, 0)
    return row, run


def by_timm(name, config):
    c = timm.data.resolve_data_config(pretrained_cfg=config)
    t = timm.data.create_transform(input_size=c["input_size"], interpolation=c["interpolation"], mean=c["mean"],
                                   std=c["std"], crop_pct=c["crop_pct"], crop_mode=c["crop_mode"])
    steps = T.Compose([s for s in t.transforms if type(s).__name__ not in ("MaybeToTensor", "Normalize")])
    if name == "torchvision-eval":
        steps = T.Compose([T.Resize(256, T.InterpolationMode.BILINEAR), T.CenterCrop(224)])
    row = {"scale": 1 / 255, "mean": list(c["mean"]), "std": list(c["std"])}
    return row, lambda h, w: np.asarray(steps(image(h, w)))


def by_open_clip(config):
    c = {"size": config["model_cfg"]["vision_cfg"]["image_size"], **config["preprocess_cfg"]}
    size = c["size"] if isinstance(c["size"], int) else c["size"][0]
    t = open_clip.transform.image_transform(size, False, c.get("mean"), c.get("std"), c.get("resize_mode"),
                                            c.get("interpolation"))
    steps = T.Compose([s for s in t.transforms if type(s).__name__ not in ("MaybeToTensor", "Normalize")])
    row = {"scale": 1 / 255, "mean": list(t.transforms[-1].mean), "std": list(t.transforms[-1].std)}
    return row, lambda h, w: np.asarray(steps(image(h, w)))


def rows():
    for name, config in list(HF.items()) + list(TIMM.items()) + list(OPEN_CLIP.items()):
        if name in OPEN_CLIP:
            row, run = by_open_clip(config)
        else:
            row, run = by_timm(name, config) if name in TIMM else by_transformers(config)
        pictures = []
        for h, w in PICTURES:
            y = np.ascontiguousarray(run(h, w))
            assert y.dtype == np.uint8 and y.shape[2] == 3, (name, y.dtype, y.shape)
            pictures.append({"h": h, "w": w, "hash": "%016x" % formula.hash64(y.tobytes())})
        file = {"architecture": "any", "pretrained_cfg": config} if name in TIMM else config
        yield {"name": name, "config": file, "height": y.shape[0], "width": y.shape[1], **row, "pictures": pictures}


def make(data):
    if int(PIL.__version__.split(".", maxsplit=1)[0]) >= 13:
        raise SystemExit("prepare: Pillow before version 13 is needed")
    with open(os.path.join(data, "prepare.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows()) + "\n]\n")
