# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's side: the encoders' ONNX exports, compiled for latency in f32 or bf16."""
import os

import numpy as np
import openvino

from peer_common import relative


def about(options):
    return {"openvino": openvino.__version__.split("-")[0], "threads": options["threads"]}


class Variants:
    def __init__(self, row, files, options):
        self.row, self.files, self.threads = row, files, options["threads"]
        self.run, self.skipped = {}, {}
        if row.kind == "encoder":
            self.encoder()
        else:
            self.skipped[row.kind] = "measured on the encoders only"

    def encoder(self):
        path = self.files.encoder(self.row.net, "net.onnx")
        if not os.path.exists(path):
            self.skipped[self.row.precision] = "net.onnx was not made"
            return
        x = np.load(self.files.encoder(self.row.net, "x.npy"))[:self.row.batch]
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape(list(x.shape))
        compiled = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": self.row.precision, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1})
        request = compiled.create_infer_request()
        self.run[self.row.precision] = lambda: request.infer([x], share_inputs=True)[0]

    def check(self, name):
        want = np.load(self.files.encoder(self.row.net, "y64.npy"))
        return relative(self.run[name]()[:len(want)], want)
