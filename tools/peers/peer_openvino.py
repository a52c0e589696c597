# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's side: the encoders' ONNX exports, compiled for latency in f32 or bf16."""
import os

import numpy as np
import openvino

from encoder_peer import NETS
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
        x = np.load(self.files.encoder(self.row.net, "x.npy"))[:self.row.batch]
        core = openvino.Core()
        path = self.files.encoder(self.row.net, "net.onnx")
        if not NETS[self.row.net].files:
            model = self.converted(x)
        elif os.path.exists(path):
            model = core.read_model(path)
        else:
            self.skipped[self.row.precision] = "net.onnx was not made"
            return
        model.reshape(list(x.shape))
        compiled = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": self.row.precision, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1})
        request = compiled.create_infer_request()
        self.run[self.row.precision] = lambda: request.infer([x], share_inputs=True)[0]

    def converted(self, x):
        """Of a network too large for an export: from PyTorch, in this process; its weights are kept in half the room."""
        import torch
        import encoder_peer
        net = encoder_peer.load(self.row.net, None)
        with torch.inference_mode():
            return openvino.convert_model(net, example_input=torch.from_numpy(x))

    def check(self, name):
        if not NETS[self.row.net].files:
            self.run[name]()
            return None
        want = np.load(self.files.encoder(self.row.net, "y64.npy"))
        return relative(self.run[name]()[:len(want)], want)
