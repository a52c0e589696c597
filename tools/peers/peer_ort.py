# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's side: the exported U-Net, f32 and int8, and encoders, one session per setting and batch."""
import os

import numpy as np
import onnxruntime as ort

from peer_common import alpha_bars, ddim, error

INT8 = (("static QDQ, per channel", "int8_static"), ("static QDQ, every op", "int8_all"),
        ("static QDQ, per channel, weights of 7 bits", "int8_static_7"),
        ("static QDQ, every op, weights of 7 bits", "int8_all_7"),
        ("dynamic", "int8_dynamic"))


def session(path, threads, batch):
    """All optimisations; workers spin while a run lasts and stop with it."""
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
    o.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    o.log_severity_level = 3
    o.add_free_dimension_override_by_name("batch", batch)
    o.add_session_config_entry("session.force_spinning_stop", "1")
    o.add_session_config_entry("session.set_denormal_as_zero", "1")
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def about(options):
    return {"onnxruntime": ort.__version__, "threads": options["threads"]}


class Variants:
    def __init__(self, row, files, options):
        self.row, self.files, self.threads = row, files, options["threads"]
        self.run, self.skipped = {}, {}
        getattr(self, row.kind)()

    def add(self, name, kind, make):
        path = self.files.onnx(kind)
        if not os.path.exists(path):
            self.skipped[name] = "%s was not made" % os.path.basename(path)
            return
        try:
            self.run[name] = make(session(path, self.threads, self.row.batch))
        except Exception as e:
            self.skipped[name] = "%s: %s" % (type(e).__name__, str(e).split("\n")[0][:200])

    def forward(self):
        if self.row.precision == "bf16":
            self.skipped["bf16"] = "ONNX Runtime has no bf16 kernels for x86 CPUs"
        elif self.row.precision == "int8":
            for name, kind in INT8:
                self.add(name, kind, self.caller)
        else:
            self.add("f32", "f32", self.caller)

    def caller(self, s):
        x, t = (np.load(self.files.path(n + ".npy"))[:self.row.batch] for n in "xt")
        return lambda: s.run(None, {"x": x, "t": t})[0]

    def encoder(self):
        if self.row.precision == "bf16":
            self.skipped["bf16"] = "ONNX Runtime has no bf16 kernels for x86 CPUs"
            return
        if self.row.precision == "int8":
            self.skipped["int8"] = "encoders are quantised for OpenVINO, which was the faster on the U-Net"
            return
        path = self.files.encoder(self.row.net, "net.onnx")
        if not os.path.exists(path):
            self.skipped["f32"] = "net.onnx was not made"
            return
        s = session(path, self.threads, self.row.batch)
        x = np.load(self.files.encoder(self.row.net, "x.npy"))[:self.row.batch]
        self.run["f32"] = lambda: s.run(None, {"x": x})[0]

    def mc(self):
        self.skipped[self.row.kind] = "an exported network draws no masks"

    mc_note = mc

    def train(self):
        self.skipped["train"] = "the onnxruntime package does not train"

    def field(self):
        self.skipped["field"] = "not a network: no ONNX export is in use"

    def sample(self):
        bar = alpha_bars()
        x = np.load(self.files.path("x.npy"))[:1]

        def make(s):
            call = lambda x, t: s.run(None, {"x": np.float32(x), "t": np.array([t])})[0]
            return lambda: ddim(call, x, self.row.steps, bar)
        self.add("f32", "f32", make)

    def check(self, name):
        """Runs it once, which also warms it up; the error where the row has one."""
        if self.row.kind == "sample" and self.row.steps > 1:
            return None
        return error(self.row, self.files, self.run[name]())
