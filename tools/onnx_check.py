#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`leeway convert --to onnx` against `leeway run`, by ONNX Runtime and OpenVINO where they are there.

  tools/onnx_check.py PROGRAM SOURCE... [--limit 1e-5]

Each network is given noise; the greatest difference over the greatest number of leeway's answer must
stay below the limit. Exit code 77: neither runtime is there.
"""
import argparse
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: there is no numpy")
    sys.exit(77)


def runtimes():
    found = {}
    try:
        import onnxruntime

        def run(path, feed):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            s = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            return s.run(None, feed)[0]

        found["onnxruntime " + onnxruntime.__version__] = run
    except ImportError:
        print("without ONNX Runtime: it is not installed")
    try:
        import openvino

        def run_openvino(path, feed):
            hint = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
            return openvino.Core().compile_model(path, "CPU", hint)(feed)[0]

        found["openvino " + openvino.__version__] = run_openvino
    except ImportError:
        print("without OpenVINO: it is not installed")
    return found


def inputs(source):
    """Names and shapes of what the network takes, from what ONNX Runtime or OpenVINO read."""
    import importlib

    try:
        ort = importlib.import_module("onnxruntime")
        s = ort.InferenceSession(source, providers=["CPUExecutionProvider"])
        return {i.name: (i.shape, i.type) for i in s.get_inputs()}
    except ImportError:
        ov = importlib.import_module("openvino")
        m = ov.Core().read_model(source)
        return {i.any_name: (list(i.shape), str(i.element_type)) for i in m.inputs}


def check(program, source, where, limit, found):
    batch, rng, worst = 2, np.random.default_rng(7), 0.0
    out = os.path.join(where, "onnx")
    subprocess.run([program, "convert", source, "--to", "onnx", "--batch-size", str(batch), "--output-dir", out,
                    "--quiet"], check=True, stdout=subprocess.DEVNULL)
    path = os.path.join(out, "model.onnx")
    feed, args = {}, [program, "run", source, "--batch-size", str(batch), "--quiet"]
    for name, (shape, kind) in inputs(path).items():
        integer = "int" in kind or "i32" in kind
        value = rng.integers(0, 2, shape) if integer else rng.uniform(-1, 1, shape)
        if name == "t":
            value = np.array([3.0, 500.0])
        feed[name] = np.ascontiguousarray(value, dtype=np.int32 if integer else np.float32)
        file = os.path.join(where, name + ".npy")
        np.save(file, feed[name].astype(np.float32))
        args += ["--input" if name == "x" else "--" + name, file]
    answer = os.path.join(where, "y.npy")
    subprocess.run(args + ["--output", answer], check=True, stdout=subprocess.DEVNULL)
    want = np.load(answer)
    for title, run in found.items():
        got = run(path, feed)
        assert got.shape == want.shape, (got.shape, want.shape)
        off = float(np.abs(got - want).max() / np.abs(want).max())
        worst = max(worst, off if off == off else float("inf"))
        print(f"{'ok ' if off <= limit else 'FAR'} {source} {title}: {list(want.shape)} {off:.1e}", flush=True)
    return worst <= limit


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("sources", nargs="+")
    p.add_argument("--limit", type=float, default=1e-5)
    a = p.parse_args()
    found = runtimes()
    if not found:
        print("skipped: neither ONNX Runtime nor OpenVINO is there")
        sys.exit(77)
    print("versions:", ", ".join(found), "numpy", np.__version__)
    good = True
    for source in a.sources:
        with tempfile.TemporaryDirectory() as where:
            good &= check(a.program, source, where, a.limit, found)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
