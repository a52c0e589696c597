# SPDX-License-Identifier: Apache-2.0
"""Makes the files that rows need and that are missing: weights, inputs, references in double, ONNX
exports, int8 models, ahead-of-time compilations. Started by run.py: peer_prepare.py OPTIONS."""
import json
import logging
import os
import shutil
import subprocess
import sys
import time
import warnings

import numpy as np
import torch

import peer_common as peer
import encoder_peer
import mc_peer
import peer_rows
import unet_peer
from field_peer import Field, arrays

sys.path.insert(0, os.path.join(peer.ROOT, "tools"))

CHECKED = 2  # pictures whose output is compared


def make(path, what, how):
    """how(temporary path), unless the file is there."""
    if os.path.exists(path):
        return
    t, part = time.time(), path + ".part" + os.path.splitext(path)[1]
    how(part)
    os.replace(part, path)
    peer.note("prepared %s: %.0f s" % (what, time.time() - t))


def attempt(path, what, how):
    """make() of something whose absence costs a setting, not the run."""
    try:
        make(path, what, how)
    except Exception as e:  # exporters and compilers throw anything
        peer.note("%s was not made: %s: %s" % (what, type(e).__name__, str(e)[:500]))


def save(array):
    return lambda path: np.save(path, array())


# ---- network, inputs, reference --------------------------------------------------------------

def make_model(folder):
    """The shared U-Net with formula weights, in diffusers' format."""
    from golden import unet
    from safetensors.torch import save_file
    net = unet.build("small", torch.float32)
    shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
    os.makedirs(folder)
    unet.write_config(os.path.join(folder, "config.json"), "small")
    save_file({n: p.detach().contiguous() for n, p in net.named_parameters()},
              os.path.join(folder, "diffusion_pytorch_model.safetensors"), {"format": "pt"})


def reference(files):
    from golden import unet
    net = unet_peer.load(files.model).double()
    net.time_proj = unet.TimeProj(net.config.block_out_channels[0])
    x, t = (torch.from_numpy(np.load(files.path(n + ".npy"))[:CHECKED]) for n in "xt")
    with torch.inference_mode():
        return unet.call(net, x.double(), t, None).numpy()


def prepare_unet(files):
    from golden import formula
    if not os.path.exists(files.model):
        make(files.path("model"), "model folder", make_model)
    make(files.path("x.npy"), "pictures", save(lambda: formula.unit("peer.x", (32, 3, 32, 32))))
    make(files.path("t.npy"), "times", save(lambda: formula.integers("peer.t", 32, 1000)))
    make(files.path("times.npy"), "times for leeway",
         save(lambda: np.load(files.path("t.npy")).astype(np.float32)))
    make(files.path("y64.npy"), "output in double", save(lambda: reference(files)))


# ---- ONNX ------------------------------------------------------------------------------------

def export(files, path):
    net = unet_peer.Plain(unet_peer.load(files.model))
    x, t = (torch.from_numpy(np.load(files.path(n + ".npy"))[:2]) for n in "xt")
    with torch.inference_mode():
        torch.onnx.export(net, (x, t), path, input_names=["x", "t"], output_names=["y"],
                          dynamic_axes={n: {0: "batch"} for n in "xty"}, opset_version=17,
                          dynamo=False)


def given_time(files):
    """The network that gets sines of times from outside, and inputs to trace it with."""
    x, t = (np.load(files.path(n + ".npy"))[:2] for n in "xt")
    return (unet_peer.GivenTime(unet_peer.load(files.model)).eval(),
            (torch.from_numpy(x), torch.from_numpy(peer.time_embedding(t))))


def export_given_time(files, path):
    net, inputs = given_time(files)
    with torch.inference_mode():
        torch.onnx.export(net, inputs, path, input_names=["x", "emb"], output_names=["y"],
                          dynamic_axes={n: {0: "batch"} for n in ("x", "emb", "y")}, opset_version=17, dynamo=False)


def tool(name, *words, folder=None):
    """A program that a package put beside this Python."""
    argv = [os.path.join(os.path.dirname(sys.executable), name), *words]
    r = subprocess.run(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if r.returncode:
        raise RuntimeError("%s: %s" % (name, r.stdout[-300:]))


def convert_ncnn(files, folder):
    os.makedirs(folder, exist_ok=True)
    net, inputs = given_time(files)
    with torch.inference_mode():
        torch.jit.trace(net, tuple(v[:1] for v in inputs)).save(os.path.join(folder, "unet.pt"))
    tool("pnnx", "unet.pt", "inputshape=[1,3,32,32],[1,128]", "fp16=0", folder=folder)
    for name in os.listdir(folder):
        if not name.startswith("unet.ncnn."):
            os.remove(os.path.join(folder, name))


def quantize_openvino(files, folder, narrow=False):
    """By NNCF, on the pictures behind the checked ones. narrow: weights of 7 bits, which processors without VNNI want: their
    products of two bytes together are clipped to 16 bits."""
    import nncf
    import openvino
    x, t = (np.load(files.path(n + ".npy"))[8:] for n in "xt")
    emb = peer.time_embedding(t)
    data = nncf.Dataset([{"x": x[i:i + 1], "emb": emb[i:i + 1]} for i in range(len(x))])
    model = nncf.quantize(openvino.Core().read_model(files.onnx("given_time")), data, subset_size=len(x),
                          advanced_parameters=nncf.AdvancedQuantizationParameters(
                              overflow_fix=nncf.OverflowFix.ENABLE) if narrow else None)
    os.makedirs(folder, exist_ok=True)
    openvino.save_model(model, os.path.join(folder, "unet.xml"), compress_to_fp16=False)


def prepare_given_time(files, peers, int8):
    attempt(files.onnx("given_time"), "ONNX export without times", lambda path: export_given_time(files, path))
    if "mnn" in peers:
        attempt(files.mnn(), "MNN's conversion", lambda path: tool(
            "mnnconvert", "-f", "ONNX", "--modelFile", files.onnx("given_time"), "--MNNModel", path, "--bizCode", "peers"))
    if "ncnn" in peers:
        attempt(files.ncnn(), "ncnn's conversion", lambda path: convert_ncnn(files, path))
    if "openvino" in peers and int8:
        attempt(os.path.dirname(files.openvino()), "int8 by NNCF", lambda path: quantize_openvino(files, path))
        attempt(os.path.dirname(files.openvino(True)), "int8 by NNCF, weights of 7 bits",
                lambda path: quantize_openvino(files, path, True))


class Calibration:
    """The prepared pictures behind the checked ones, four at a time."""

    def __init__(self, files):
        x, t = (np.load(files.path(n + ".npy")) for n in "xt")
        self.batches = iter([{"x": x[i:i + 4], "t": t[i:i + 4]} for i in range(8, 32, 4)])

    def get_next(self):
        return next(self.batches, None)


def quantize(files, kind, path):
    import onnx
    from onnxruntime import quantization as q
    source = files.onnx("for_int8")
    convs = [n.name for n in onnx.load(source).graph.node if n.op_type == "Conv"]
    if kind == "int8_dynamic":
        q.quantize_dynamic(source, path, per_channel=True, weight_type=q.QuantType.QInt8,
                           nodes_to_exclude=[convs[0], convs[-1]])
        return
    q.quantize_static(source, path, Calibration(files), quant_format=q.QuantFormat.QDQ,
                      op_types_to_quantize=["Conv", "Gemm", "MatMul"]
                      if kind.startswith("int8_static") else None,
                      reduce_range=kind.endswith("_7"), per_channel=True, activation_type=q.QuantType.QUInt8,
                      weight_type=q.QuantType.QInt8, nodes_to_exclude=[convs[0], convs[-1]])


def prepare_onnx(files, int8):
    attempt(files.onnx(), "ONNX export", lambda path: export(files, path))
    if not int8:
        return
    from onnxruntime.quantization.shape_inference import quant_pre_process
    attempt(files.onnx("for_int8"), "shapes for int8",
            lambda path: quant_pre_process(files.onnx(), path, skip_symbolic_shape=True))
    for kind in ("int8_static", "int8_static_7", "int8_all", "int8_all_7", "int8_dynamic"):
        attempt(files.onnx(kind), kind, lambda path: quantize(files, kind, path))


# ---- drift field -----------------------------------------------------------------------------

def prepare_field(files, row):
    b, n, nu, npos, c = row.shape
    rng = np.random.default_rng(1)
    for what, k in (("x", n), ("u", nu), ("p", npos)):
        make(files.field(row, what + ".npy"), "%s %s" % (row.name, what),
             save(lambda: rng.standard_normal((b, k, c), dtype=np.float32)))

    def want():
        with torch.inference_mode():
            return Field()(*arrays(files, row, torch.float64))[0].numpy()
    make(files.field(row, "want.npy"), "%s in double" % row.name, save(want))


# ---- encoders --------------------------------------------------------------------------------

def export_encoder(files, net, path):
    module = encoder_peer.load(net, files.encoder(net, "model"))
    x = torch.from_numpy(np.load(files.encoder(net, "x.npy"))[:2])
    with torch.inference_mode():
        torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"],
                          dynamic_axes={n: {0: "batch"} for n in "xy"}, opset_version=17,
                          dynamo=False)


def encoder_reference(files, net):
    module = encoder_peer.load(net, files.encoder(net, "model")).double()
    x = torch.from_numpy(np.load(files.encoder(net, "x.npy"))[:CHECKED])
    with torch.inference_mode():
        return torch.cat([module(x[i:i + 1].double()) for i in range(len(x))]).numpy()


def pictures(net, side):
    """In [-1, 1], as many as any row takes; of live video those of bytes."""
    rng = np.random.default_rng(2)
    shape = (max(r.batch for r in peer_rows.ROWS if r.net == net), 3, side, side)
    if net == "live_128":
        return (rng.integers(0, 256, shape) / 127.5 - 1).astype(np.float32)
    return rng.uniform(-1, 1, shape).astype(np.float32)


def quantize_encoder(files, net, folder):
    """By NNCF, on what `leeway quantize` measures, too."""
    import nncf
    import openvino
    data = mc_peer.pixels(files.encoder(net, "calibration")).numpy()
    model = nncf.quantize(openvino.Core().read_model(files.encoder(net, "net.onnx")),
                          nncf.Dataset([data[i:i + 1] for i in range(len(data))]), subset_size=len(data),
                          preset=nncf.QuantizationPreset.MIXED,
                          model_type=nncf.ModelType.TRANSFORMER if net == "clip_b32" else None)
    os.makedirs(folder, exist_ok=True)
    openvino.save_model(model, os.path.join(folder, "net.xml"), compress_to_fp16=False)


def prepare_encoder(files, row):
    net, side = row.net, encoder_peer.NETS[row.net].side
    os.makedirs(files.encoder(net), exist_ok=True)
    make(files.encoder(net, "model"), net, lambda path: encoder_peer.write(net, path))
    make(files.encoder(net, "x.npy"), net + "'s pictures", save(lambda: pictures(net, side)))
    if not encoder_peer.NETS[net].files:
        return
    make(files.encoder(net, "y64.npy"), net + " in double",
         save(lambda: encoder_reference(files, net)))
    attempt(files.encoder(net, "net.onnx"), net + "'s ONNX export",
            lambda path: export_encoder(files, net, path))
    if row.precision == "int8":
        make(files.encoder(net, "calibration"), net + "'s pictures to calibrate with",
             lambda path: encoder_peer.write_calibration(net, path))
        attempt(files.encoder(net, "int8"), net + " in int8 by NNCF",
                lambda path: quantize_encoder(files, net, path))


# ---- noisy passes ----------------------------------------------------------------------------

def mc_reference(files, row):
    net = encoder_peer.load(mc_peer.NET, files.encoder(mc_peer.NET, "model"))
    count = mc_peer.disturb(net, row.sites)
    torch.manual_seed(1)
    with torch.inference_mode():
        trace = mc_peer.folded(net, mc_peer.pixels(
            files.encoder(mc_peer.NET, "pictures%d" % row.batch)), mc_peer.WANT_PASSES)
    peer.note("%s: %d sites, mean score %.4g" % (row.name, count, trace.mean()))
    return np.float64(mc_peer.unbiased(trace, mc_peer.WANT_PASSES))


def prepare_mc(files, row):
    net, note = mc_peer.NET, row.kind == "mc_note"
    os.makedirs(files.encoder(net), exist_ok=True)
    make(files.encoder(net, "model"), net, lambda path: encoder_peer.write(net, path))
    folder = files.encoder(net, ("photos%d" if note else "pictures%d") % row.batch)
    height, width = (375, 500) if note else (mc_peer.SIDE, mc_peer.SIDE)
    make(folder, "pictures", lambda path: mc_peer.write_pictures(
        path, row.batch, height, width, "jpg" if note else "png"))
    if not note:
        make(files.encoder(net, row.name + "_want.npy"), row.name + "'s score",
             save(lambda: mc_reference(files, row)))


def compile_passes(files, row, path):
    """Into inductor's cache: both forms of the loop."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = files.inductor()
    net = encoder_peer.load(mc_peer.NET, files.encoder(mc_peer.NET, "model")).bfloat16()
    mc_peer.disturb(net, row.sites)
    net = mc_peer.compiled(net)
    x = mc_peer.pixels(files.encoder(mc_peer.NET, "pictures%d" % row.batch)).bfloat16()
    with torch.inference_mode(), open(path, "w") as f:
        for loop in (mc_peer.one_by_one, mc_peer.folded):
            f.write("%s\n" % loop(net, x, row.passes).mean())


# ---- ahead-of-time compilation ---------------------------------------------------------------

def compile_step(o, files, row, path):
    """Forward and backward pass into inductor's cache, by two steps."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = files.inductor()
    net = unet_peer.load(files.model, o["dropout"]).to(memory_format=unet_peer.LAST)
    x = torch.from_numpy(np.load(files.path("x.npy"))[:row.batch])
    run = unet_peer.step(net, x.contiguous(memory_format=unet_peer.LAST),
                         row.precision == "bf16", True)
    losses = [float(run()) for _ in range(2)]
    with open(path, "w") as f:
        f.write("losses of two steps: %s\n" % losses)


def compile_row(o, files, row, path):
    if row.kind == "train":
        return compile_step(o, files, row, path)
    if row.kind == "mc":
        return compile_passes(files, row, path)
    if row.kind == "field":
        module, inputs = Field(), tuple(arrays(files, row))
    elif row.kind == "encoder":
        dtype = torch.bfloat16 if row.precision == "bf16" else torch.float32
        module = encoder_peer.load(row.net, files.encoder(row.net, "model")).to(dtype)
        x = torch.from_numpy(np.load(files.encoder(row.net, "x.npy"))[:row.batch])
        inputs = (x.to(dtype),)
    else:
        dtype = torch.bfloat16 if row.precision == "bf16" else torch.float32
        net = unet_peer.load(files.model).to(dtype=dtype, memory_format=unet_peer.LAST)
        x, t = (torch.from_numpy(np.load(files.path(n + ".npy"))[:row.batch]) for n in "xt")
        module, inputs = unet_peer.Plain(net), (
            x.to(dtype).contiguous(memory_format=unet_peer.LAST), t)
    # Folding the constants of live_128 gives .22 of error (torch 2.15.0), without folding 1e-6: a peer has to be right.
    freezing = row.net != "live_128"
    with torch.no_grad():
        program = torch.export.export(module.eval(), inputs)
        torch._inductor.aoti_compile_and_package(
            program, package_path=path, inductor_configs={"freezing": freezing})


def main():
    o = json.loads(sys.argv[1])
    torch.set_num_threads(o["threads"])
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser talks about every small tensor
    files = peer.Files(o["work"], o["model"])
    os.makedirs(files.unet, exist_ok=True)
    rows = [r for r in peer_rows.ROWS if r.name in o["rows"]]
    if any(r.kind not in ("field", "encoder", "mc", "mc_note") for r in rows):
        prepare_unet(files)
    exported, peers = {r.kind for r in rows} & {"forward", "sample", "startup"}, set(o["peers"])
    int8 = any(r.precision == "int8" for r in rows)
    if exported and "ort" in peers:
        prepare_onnx(files, int8)
    if exported and peers & {"openvino", "mnn", "ncnn"}:
        prepare_given_time(files, peers, int8)
    for r in rows:
        if r.kind == "field":
            prepare_field(files, r)
        if r.kind == "encoder":
            prepare_encoder(files, r)
        if r.kind in ("mc", "mc_note"):
            prepare_mc(files, r)
    for r in rows if o["compile"] and "torch" in peers else ():
        if r.precision != "int8" and r.kind != "mc_note":
            attempt(files.compiled(r, o["threads"]), "compilation of " + r.name,
                    lambda path: compile_row(o, files, r, path))


if __name__ == "__main__":
    main()
