#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose rounding is it? A network written by `leeway convert --to onnx`, computed in double by PyTorch operator by operator,
beside ONNX Runtime, PyTorch in single precision and `leeway run --conv auto|direct|winograd`.

  tools/onnx_exact.py PROGRAM SOURCE [--image-size N]

Prints the greatest and the root mean square difference from the double answer, over the answer's greatest number.
Needs torch, onnx and onnxruntime. Of networks with one input.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def ints(v):
    return [int(x) for x in v]


def conv(x, w, bias, a):
    top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
    return F.conv2d(F.pad(x, (left, right, top, bottom)), w, bias, stride=tuple(a.get("strides", [1, 1])),
                    groups=a.get("group", 1))


def resize(x, i, a):
    if a.get("mode", b"nearest") != b"nearest":
        sys.exit("Resize: only nearest is written here")
    size = ints(i[3]) if len(i) > 3 else [int(p * float(q)) for p, q in zip(x.shape, i[2])]
    return F.interpolate(x, size=size[2:], mode="nearest")


OPS = {
    "Add": lambda i, a: i[0] + i[1],
    "Sub": lambda i, a: i[0] - i[1],
    "Mul": lambda i, a: i[0] * i[1],
    "Div": lambda i, a: i[0] / i[1],
    "Sqrt": lambda i, a: torch.sqrt(i[0]),
    "Relu": lambda i, a: F.relu(i[0]),
    "Tanh": lambda i, a: torch.tanh(i[0]),
    "Sigmoid": lambda i, a: torch.sigmoid(i[0]),
    "Identity": lambda i, a: i[0],
    "Reshape": lambda i, a: i[0].reshape(ints(i[1])),
    "Transpose": lambda i, a: i[0].permute(*a["perm"]),
    "ReduceMean": lambda i, a: i[0].mean(dim=tuple(a["axes"]), keepdim=bool(a.get("keepdims", 1))),
    "Conv": lambda i, a: conv(i[0], i[1], i[2] if len(i) > 2 else None, a),
    "Resize": lambda i, a: resize(i[0], i, a),
}


def compute(graph, x, kind):
    value = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
    value = {k: v.to(kind) if v.is_floating_point() else v for k, v in value.items()}
    value[graph.input[0].name] = torch.from_numpy(x).to(kind)
    for n in graph.node:
        if n.op_type not in OPS:
            sys.exit("operator %s is not written here" % n.op_type)
        a = {k.name: onnx.helper.get_attribute_value(k) for k in n.attribute}
        value[n.output[0]] = OPS[n.op_type]([value[k] if k else None for k in n.input], a)
    return value[graph.output[0].name].numpy()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("source")
    p.add_argument("--image-size", default="0")
    o = p.parse_args()
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "onnx")
        subprocess.run([o.program, "convert", o.source, "--to", "onnx", "--batch-size", "2", "--image-size", o.image_size,
                        "--output-dir", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        path = os.path.join(out, "model.onnx")
        graph = onnx.load(path).graph
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        given = session.get_inputs()[0]
        x = np.random.default_rng(7).uniform(-1, 1, given.shape).astype(np.float32)
        np.save(os.path.join(d, "x.npy"), x)
        exact = compute(graph, x, torch.float64)
        answers = {"ONNX Runtime " + onnxruntime.__version__: session.run(None, {given.name: x})[0],
                   "PyTorch %s, single" % torch.__version__: compute(graph, x, torch.float32)}
        for mode in ("auto", "direct", "winograd"):
            y = os.path.join(d, "y.npy")
            subprocess.run([o.program, "run", o.source, "--batch-size", "2", "--conv", mode, "--input",
                            os.path.join(d, "x.npy"), "--output", y, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            answers["leeway --conv " + mode] = np.load(y)
        top = np.abs(exact).max()
        print("input %s, greatest number %.3g" % (list(x.shape), top))
        for name, y in answers.items():
            d64 = y.astype(np.float64) - exact
            print("%-26s max %.1e  rms %.1e" % (name, np.abs(d64).max() / top, np.sqrt((d64 ** 2).mean()) / top))


if __name__ == "__main__":
    main()
