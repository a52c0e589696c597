# SPDX-License-Identifier: Apache-2.0
"""ncnn's side: the U-Net converted by pnnx, f32, one picture at a time, which is all that ncnn has."""
import ncnn
import numpy as np

from peer_exported import Exported


def about(options):
    return {"ncnn": ncnn.__version__, "threads": options["threads"]}


class Variants(Exported):
    def settings(self):
        if self.row.precision != "f32" or self.row.batch != 1:
            self.skipped[self.row.precision] = "measured in f32 and on one picture only"
            return []
        return [("f32", self.caller)]

    def caller(self):
        net = ncnn.Net()
        o = net.opt
        o.num_threads, o.use_winograd_convolution, o.use_sgemm_convolution = self.threads, True, True
        o.use_fp16_packed = o.use_fp16_storage = o.use_fp16_arithmetic = o.use_bf16_storage = False
        if net.load_param(self.files.ncnn("unet.ncnn.param")) or net.load_model(self.files.ncnn("unet.ncnn.bin")):
            raise RuntimeError("the converted network does not load")

        def call(x, emb):
            run = net.create_extractor()
            run.input("in0", ncnn.Mat(np.ascontiguousarray(x[0])))
            run.input("in1", ncnn.Mat(np.ascontiguousarray(emb)))
            return np.array(run.extract("out0")[1])[None]
        return call
