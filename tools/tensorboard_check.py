#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a run's tb/ with TensorBoard's own reader: scalars in groups, sample grids as images,
config.yaml as text, options as hyperparameters.

    python3 tools/tensorboard_check.py RUN

Needs tensorboard. Exit code 1: something is missing, or differs from metrics.jsonl.
"""
import json
import os
import struct
import sys

import tensorboard
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tensorboard_check.py RUN")
    run, good = sys.argv[1], True

    def check(what, fine, told):
        nonlocal good
        good = good and fine
        print("%-10s %s: %s" % (what, "ok" if fine else "FAILED", told))

    reader = EventAccumulator(os.path.join(run, "tb"), size_guidance={"images": 0, "tensors": 0,
                                                                      "scalars": 0})
    reader.Reload()
    tags = reader.Tags()
    print("tensorboard %s" % tensorboard.__version__)
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    loss = [(e.step, e.value) for e in reader.Scalars("train/loss")]
    wanted = [(r["step"], r["loss"]) for r in rows]
    same = len(loss) == len(wanted) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= 1e-6 * abs(b[1]) for a, b in zip(loss, wanted))
    check("scalars", same and all("/" in t for t in tags["scalars"]),
          "%d of train/loss; tags %s" % (len(loss), ", ".join(sorted(tags["scalars"]))))
    grids = sorted(os.listdir(os.path.join(run, "samples"))) \
        if os.path.isdir(os.path.join(run, "samples")) else []
    images = reader.Images("samples") if "samples" in tags["images"] else []
    same = len(images) == len(grids)
    for image, name in zip(images, grids):
        with open(os.path.join(run, "samples", name), "rb") as f:
            png = f.read()
        same = same and image.encoded_image_string == png and \
            (image.width, image.height) == struct.unpack(">II", png[16:24]) and \
            name == "step_%07d.png" % image.step
    check("images", same, "%d grids" % len(images))
    texts = [t for t in tags["tensors"] if t == "config.yaml"]
    told = reader.Tensors("config.yaml")[0].tensor_proto.string_val[0].decode() if texts else ""
    check("text", "batch-size:" in told, "%d lines of config.yaml" % told.count("\n"))
    metadata = reader.SummaryMetadata("_hparams_/session_start_info")
    data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
    options = data.session_start_info.hparams
    check("hparams", metadata.plugin_data.plugin_name == "hparams" and "batch-size" in options and
          options["batch-size"].number_value > 0 and options["data"].string_value != "",
          "%d options" % len(options))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
