# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of every row: one callable per setting."""
import functools
import importlib.metadata
import os

import numpy as np
import torch

import encoder_peer
import mc_peer
import peer_isa
import unet_peer
from field_peer import Field, OneExponential, arrays
from peer_common import alpha_bars, ddim, relative
from unet_peer import LAST, NCHW


def about(options):
    torch.set_num_threads(options["threads"])
    torch.set_flush_denormal(True)  # before the first parallel call: its threads inherit it
    return {"torch": torch.__version__, "diffusers": importlib.metadata.version("diffusers"),
            "threads": torch.get_num_threads(), "isa": torch.backends.cpu.get_cpu_capability(),
            "onednn": torch.backends.mkldnn.is_available()}


@functools.lru_cache(maxsize=None)
def network(folder, dtype, fmt):
    """For inference; rows share it."""
    return unet_peer.load(folder).to(dtype=dtype, memory_format=fmt)


class Compiled:
    """What peer_prepare.py compiled ahead of time."""

    def __init__(self, path):
        if not os.path.exists(path):
            raise FileNotFoundError("not compiled: run --prepare first")
        peer_isa.refuse_wide(path)
        self.call = torch._inductor.aoti_load_package(path)


class Variants:
    """The settings of one row. run[name]() does the work once; check(name) is its error."""

    def __init__(self, row, files, options):
        self.row, self.files, self.options = row, files, options
        self.run, self.skipped = {}, {}
        getattr(self, row.kind)()

    def add(self, name, make):
        """A setting that cannot be made is reported, and the others go on."""
        try:
            self.run[name] = make()
        except Exception as e:
            self.skipped[name] = "%s: %s" % (type(e).__name__, str(e).split("\n")[0][:200])

    def inputs(self, dtype, fmt=NCHW):
        x = torch.from_numpy(np.load(self.files.path("x.npy")))[:self.row.batch]
        t = torch.from_numpy(np.load(self.files.path("t.npy")))[:self.row.batch]
        return x.to(dtype).contiguous(memory_format=fmt), t

    def ahead(self):
        return Compiled(self.files.compiled(self.row, self.options["threads"])).call

    # ---- forward

    def forward(self):
        bf16 = self.row.precision == "bf16"
        if self.row.precision == "int8":
            self.skipped["int8"] = "eager PyTorch has no int8 convolution with a user's interface"
            return
        for name, fmt in (("channels_last", LAST), ("nchw", NCHW)):
            self.add(name, lambda fmt=fmt: self.eager(fmt, bf16))
        if bf16:
            self.add("autocast channels_last", lambda: self.eager(LAST, False, autocast=True))
        self.add("compiled", lambda: self.compiled(torch.bfloat16 if bf16 else torch.float32))

    def eager(self, fmt, bf16, autocast=False):
        dtype = torch.bfloat16 if bf16 else torch.float32
        net = network(self.files.model, dtype, fmt)
        x, t = self.inputs(dtype, fmt)

        def run():
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                return net(x, t, return_dict=False)[0]
        return run

    def compiled(self, dtype):
        call = self.ahead()
        x, t = self.inputs(dtype, LAST)

        def run():
            with torch.inference_mode():
                return call(x, t)
        return run

    # ---- encoders

    def encoder(self):
        bf16 = self.row.precision == "bf16"
        if self.row.precision == "int8":
            self.skipped["int8"] = "eager PyTorch has no int8 convolution with a user's interface"
            return
        for name, fmt in (("nchw", NCHW), ("channels_last", LAST)):
            self.add(name, lambda fmt=fmt: self.encode(bf16, fmt, False))
        if bf16 and encoder_peer.NETS[self.row.net].files:  # else its weights are gigabytes
            self.add("autocast", lambda: self.encode(False, NCHW, True))
        self.add("compiled", lambda: self.encode_ahead(bf16))

    def picture(self, bf16, fmt):
        x = np.load(self.files.encoder(self.row.net, "x.npy"))[:self.row.batch]
        x = torch.from_numpy(x).contiguous(memory_format=fmt)
        return x.bfloat16() if bf16 else x

    def encode(self, bf16, fmt, autocast):
        net = encoder_peer.load(self.row.net, self.files.encoder(self.row.net, "model"))
        net = net.to(dtype=torch.bfloat16 if bf16 else torch.float32, memory_format=fmt)
        x = self.picture(bf16, fmt)

        def run():
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                return net(x)
        return run

    def encode_ahead(self, bf16):
        call, x = self.ahead(), self.picture(bf16, NCHW)

        def run():
            with torch.inference_mode():
                return call(x)
        return run

    # ---- noisy passes

    def noisy(self):
        net = encoder_peer.load(mc_peer.NET, self.files.encoder(mc_peer.NET, "model"))
        mc_peer.disturb(net, self.row.sites)
        return net

    def mc(self):
        for name, loop in (("pass by pass", mc_peer.one_by_one), ("folded", mc_peer.folded)):
            self.add("bf16 " + name, lambda loop=loop: self.passes(loop, True, False))
            self.add("compiled bf16 " + name, lambda loop=loop: self.passes(loop, True, False, True))
        self.add("autocast folded", lambda: self.passes(mc_peer.folded, False, True))

    def passes(self, loop, bf16, autocast, compiled=False):
        net = self.noisy().to(torch.bfloat16 if bf16 else torch.float32)
        x = mc_peer.pixels(self.files.encoder(mc_peer.NET, "pictures%d" % self.row.batch))
        x = x.bfloat16() if bf16 else x
        if compiled:
            self.use_cache()
            net = mc_peer.compiled(net)

        def run():
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                return loop(net, x, self.row.passes)
        return run

    def mc_note(self):
        def make():
            from transformers import ViTImageProcessor
            folder = self.files.encoder(mc_peer.NET, "model")
            net, processor = self.noisy(), ViTImageProcessor.from_pretrained(folder)
            pictures = self.files.encoder(mc_peer.NET, "photos%d" % self.row.batch)
            return lambda: mc_peer.note_loop(net, processor, pictures, self.row.passes)
        self.add("f32, PIL each pass", make)

    # ---- training

    def train(self):
        for name, fmt in (("channels_last", LAST), ("nchw", NCHW)):
            self.add(name, lambda fmt=fmt: self.stepper(fmt))
        self.add("compiled", self.compiled_stepper)

    def stepper(self, fmt, compiled=False):
        net = unet_peer.load(self.files.model, self.options["dropout"]).to(memory_format=fmt)
        return unet_peer.step(net, self.inputs(torch.float32, fmt)[0],
                              self.row.precision == "bf16", compiled)

    def compiled_stepper(self):
        """Compiled again from inductor's cache, where --prepare left it: tens of seconds."""
        self.use_cache()
        return self.stepper(LAST, True)

    def use_cache(self):
        """Of inductor, which --prepare has filled."""
        if not os.path.exists(self.files.compiled(self.row, self.options["threads"])):
            raise FileNotFoundError("not compiled: run --prepare first")
        peer_isa.refuse_wide(self.files.inductor())
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = self.files.inductor()

    # ---- drift field

    def field(self):
        inputs = arrays(self.files, self.row)

        def eager(module):
            def run():
                with torch.inference_mode():
                    return module(*inputs)[0]
            return run

        def ahead():
            call = self.ahead()

            def run():
                with torch.inference_mode():
                    return call(*inputs)[0]
            return run
        self.add("eager", lambda: eager(Field()))
        self.add("eager, one exponential", lambda: eager(OneExponential()))
        self.add("compiled", ahead)

    # ---- sampling

    def sample(self):
        bar = alpha_bars()

        def loop(call):
            x = self.inputs(torch.float32, LAST)[0]

            def run():
                with torch.inference_mode():
                    return ddim(call, x, self.row.steps, bar)
            return run

        def eager():
            net = network(self.files.model, torch.float32, LAST)
            return loop(lambda x, t: net(x, t, return_dict=False)[0])

        def ahead():
            net = self.ahead()
            return loop(lambda x, t: net(x.contiguous(memory_format=LAST), torch.tensor([t])))
        self.add("channels_last", eager)
        self.add("compiled", ahead)

    # ---- errors

    def check(self, name):
        """Runs it once, which also warms it up; the error where the row has one."""
        if self.row.kind == "sample" and self.row.steps > 1:
            return None  # long, and warm enough from its own first step on
        if self.row.kind == "mc_note":
            return None  # minutes, and its time is of a loop with cold caches
        y = self.run[name]()
        if self.row.kind == "mc":
            want = np.load(self.files.encoder(mc_peer.NET, self.row.name + "_want.npy"))
            return abs(mc_peer.unbiased(y, self.row.passes) / float(want) - 1)
        if self.row.kind == "forward":
            want = np.load(self.files.path("y64.npy"))[:self.row.batch]
            return relative(y[:len(want)].double().numpy(), want)
        if self.row.kind == "encoder" and not encoder_peer.NETS[self.row.net].files:
            return None
        if self.row.kind == "encoder":
            want = np.load(self.files.encoder(self.row.net, "y64.npy"))
            return relative(y[:len(want)].double().numpy(), want)
        if self.row.kind == "field":
            return relative(y.double().numpy(), np.load(self.files.field(self.row, "want.npy")))
        return None
