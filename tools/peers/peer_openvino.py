# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's side: the ONNX exports of the U-Net and the encoders, compiled for latency in f32 or bf16, and the U-Net and
some encoders in int8, quantised by NNCF."""
import os

import numpy as np
import openvino

from encoder_peer import NETS
from peer_common import error
from peer_exported import Exported


def about(options):
    return {"openvino": openvino.__version__.split("-")[0], "threads": options["threads"]}


class Variants(Exported):
    def settings(self):
        if self.row.precision != "int8":
            return [(self.row.precision, lambda: self.caller(self.files.onnx("given_time"), self.row.precision))]
        weights = {"int8": self.files.openvino(), "int8, weights of 7 bits,": self.files.openvino(True)}
        return [("%s by NNCF, rest %s" % (name, rest), lambda path=path, rest=rest: self.caller(path, rest))
                for name, path in weights.items() for rest in ("f32", "bf16")]

    def caller(self, path, precision):
        model = openvino.Core().read_model(path)
        b = self.row.batch
        model.reshape({"x": [b, 3, 32, 32], "emb": [b, 128]})
        request = self.compiled(model, precision)
        return lambda x, emb: request.infer({"x": x, "emb": emb}, share_inputs=True)[0]

    def compiled(self, model, precision):
        return openvino.Core().compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1}).create_infer_request()

    def other(self):
        if self.row.kind != "encoder":
            self.skipped[self.row.kind] = "measured on networks only"
            return
        x = np.load(self.files.encoder(self.row.net, "x.npy"))[:self.row.batch]
        int8 = self.row.precision == "int8"
        path = self.files.encoder(self.row.net, *(("int8", "net.xml") if int8 else ("net.onnx",)))
        if not NETS[self.row.net].files:
            model = self.converted(x)
        elif os.path.exists(path):
            model = openvino.Core().read_model(path)
        else:
            self.skipped[self.row.precision] = "%s was not made" % os.path.basename(path)
            return
        model.reshape(list(x.shape))
        hints = {"int8 by NNCF, rest %s" % h: h for h in ("f32", "bf16")} if int8 else {self.row.precision: self.row.precision}
        for name, hint in hints.items():
            request = self.compiled(model, hint)
            self.run[name] = lambda request=request: request.infer([x], share_inputs=True)[0]

    def converted(self, x):
        """Of a network too large for an export: from PyTorch, in this process; its weights are kept in half the room."""
        import torch
        import encoder_peer
        net = encoder_peer.load(self.row.net, None)
        with torch.inference_mode():
            return openvino.convert_model(net, example_input=torch.from_numpy(x))

    def check(self, name):
        if self.row.kind == "encoder" and not NETS[self.row.net].files:
            self.run[name]()
            return None
        return error(self.row, self.files, self.run[name]())
