# SPDX-License-Identifier: Apache-2.0
"""MNN's side: the U-Net converted from ONNX, f32 (its precision "high"; "low" is the same on x86)."""
import MNN
import MNN.expr
import MNN.nn
import numpy as np

from peer_exported import Exported


def about(options):
    return {"mnn": MNN.version(), "threads": options["threads"]}


class Variants(Exported):
    def settings(self):
        if self.row.precision != "f32":
            self.skipped[self.row.precision] = "MNN computes f32 here"
            return []
        return [("f32", self.caller)]

    def caller(self):
        config = {"backend": 0, "numThread": self.threads, "precision": "high", "power": "high", "memory": "high"}
        manager = MNN.nn.create_runtime_manager((config,))
        net = MNN.nn.load_module_from_file(self.files.mnn(), ["x", "emb"], ["y"], runtime_manager=manager,
                                           shape_mutable=False)

        def call(*inputs):
            inputs = [MNN.expr.const(v, list(v.shape), MNN.expr.NCHW) for v in inputs]
            y = MNN.expr.convert(net.forward(inputs)[0], MNN.expr.NCHW)
            return np.array(y.read())
        return call
