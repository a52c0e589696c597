# SPDX-License-Identifier: Apache-2.0
"""What the runtimes of the exported U-Net share that get the sines of times from outside (unet_peer.GivenTime): OpenVINO,
MNN, ncnn. Each says in settings() by which names it computes a row's precision, and how a call(x, emb) -> y is made."""
import numpy as np

from peer_common import alpha_bars, ddim, error, time_embedding


class Exported:
    def __init__(self, row, files, options):
        self.row, self.files, self.threads = row, files, options["threads"]
        self.run, self.skipped = {}, {}
        if row.kind in ("forward", "sample"):
            self.unet()
        else:
            self.other()

    def settings(self):
        raise NotImplementedError

    def other(self):
        self.skipped[self.row.kind] = "measured on the U-Net only"

    def unet(self):
        x, t = (np.load(self.files.path(n + ".npy"))[:self.row.batch] for n in "xt")
        bar = alpha_bars()

        def forward(call):
            return lambda: call(x, time_embedding(t))

        def sample(call):
            one = lambda x, t: call(np.float32(x), time_embedding([t]))
            return lambda: ddim(one, x, self.row.steps, bar)
        for name, make in self.settings():
            try:
                self.run[name] = (forward if self.row.kind == "forward" else sample)(make())
            except Exception as e:  # runtimes throw anything
                self.skipped[name] = "%s: %s" % (type(e).__name__, str(e).strip().split("\n")[0][:200])

    def check(self, name):
        """Runs it once, which also warms it up; the error where the row has one."""
        return error(self.row, self.files, self.run[name]())
