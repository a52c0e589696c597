# SPDX-License-Identifier: Apache-2.0
"""Leeway's side: a short-lived process per round, timed by itself (`leeway bench`, `leeway
sample`), and one run per row for its error (`leeway run`, `leeway field`)."""
import json
import os
import re
import shlex
import subprocess
import tempfile
import time

import live_peer
from encoder_peer import NETS
from peer_common import PeerError, clean_env, relative


def after_last(text, what):
    lines = [l for l in text.strip().split("\n") if l.strip()]
    return lines[-1].strip()[:200] if lines else what


class Leeway:
    def __init__(self, command, files, threads, int8_model=None, more=""):
        self.command, self.files, self.threads = shlex.split(command), files, threads
        self.model, self.more = files.model, shlex.split(more)
        self.int8_model = int8_model or files.model
        self.help = {}
        self.peak = {}
        self.commands = {}  # row -> what was typed
        self.trace = {}     # row -> mean score of an mc row
        self.about = self.json(["info", "--json"])

    # ---- running it

    def call(self, args, limit=600):
        argv = self.command + args + ["--threads", str(self.threads)]
        try:
            r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=clean_env(), timeout=limit)
        except subprocess.TimeoutExpired:
            raise PeerError("leeway %s: no end within %d s" % (args[0], limit))
        if r.returncode:
            raise PeerError("leeway %s: %s" % (" ".join(args[:2]),
                                               after_last(r.stderr, "code %d" % r.returncode)))
        return r.stdout

    def json(self, args):
        text = self.call(args)
        return json.loads(text[text.index("{"):])

    def knows(self, verb, option):
        """Whether a command has the option, by its help."""
        if verb not in self.help:
            self.help[verb] = subprocess.run(self.command + [verb, "--help"], text=True,
                                             stdout=subprocess.PIPE, env=clean_env()).stdout
        return re.search(r"%s\b" % re.escape(option), self.help[verb]) is not None

    def need(self, row, verb):
        """The options that ask `verb` for the row's precision."""
        if row.precision == "f32":
            return []
        if not self.knows(verb, "--precision"):
            raise PeerError("leeway %s has no --precision yet" % verb)
        if row.kind == "forward" and row.precision == "int8" and not os.path.exists(
                os.path.join(self.int8_model, "quantization.json")):
            raise PeerError("%s has no quantization.json: make one of the same weights with "
                            "`leeway quantize` and give it as --int8-model" % self.int8_model)
        return ["--precision", row.precision]

    def measure_peak(self):
        self.keep_peak(self.json(["info", "--peak", "--json"])["peak"])

    def keep_peak(self, p):
        """The best seen: GFLOP/s of all threads by operand type."""
        if "gflops" in p:
            rates = {t: r["all_threads"] for t, r in p["gflops"].items()}
            rates = {t: rates.get(t, rates["f32"]) for t in ("f32", "bf16", "int8")}
        else:  # before bf16 and int8 were measured: by the width of the operands
            rates = {t: p["f32_gflops"] * k for t, k in (("f32", 1), ("bf16", 2), ("int8", 4))}
        self.peak = {t: max(r, self.peak.get(t, 0)) for t, r in rates.items()}

    # ---- rows

    def measure(self, row):
        """Milliseconds of each sample, and bytes of memory (0: not said)."""
        return getattr(self, "measure_" + row.kind)(row)

    def bench(self, suite, case, row, more=()):
        """One case of `leeway bench`; the row's samples."""
        args = ["bench", suite, "--json", "--filter", case, *more, *self.more]
        if self.knows("bench", "--samples"):
            args += ["--samples", str(row.samples), "--warm-up", str(max(row.warm, 1))]
        else:
            args += ["--seconds", "0", "--min-samples", str(row.samples)]
        if self.knows("bench", "--reference"):
            args.append("--no-reference")
        self.commands[row.name] = "leeway " + " ".join(args)
        said = self.json(args)
        found = [r for r in said["results"] if r["name"] == case]
        if "peak" in said.get("machine", {}):
            self.keep_peak(said["machine"]["peak"])
        if not found:
            raise PeerError("leeway bench %s has no case %s" % (suite, case))
        if found[0].get("skipped") or not found[0].get("samples_ms"):
            raise PeerError("leeway bench: %s" % (found[0].get("skipped") or "no samples"))
        return found[0]["samples_ms"], found[0].get("memory_bytes", 0)

    def network(self, suite, verb, row):
        """forward_b8 is f32, forward_bf16_b8 bf16."""
        case = verb if row.precision == "f32" else "%s_%s" % (verb, row.precision)
        return self.bench(suite, "%s_b%d" % (case, row.batch), row, ["--batch-size", str(row.batch)])

    def measure_forward(self, row):
        return self.network("unet", "forward", row)

    def measure_train(self, row):
        return self.network("train", "train", row)

    def measure_field(self, row):
        b, n, nu, npos, c = row.shape
        case = ("field_slots%d_%dx%dx%dx%d" % (b, n, npos, nu, c) if nu
                else "field_%dx%dx%dx%d" % (b, n, npos, c))
        return self.bench("field", case, row)

    def measure_sample(self, row):
        """Between prepared networks, as the peers' settings are."""
        return self.bench("sampling", "one_step_b1" if row.steps == 1 else
                          "ddim%d_b1" % row.steps, row)

    def measure_encoder(self, row):
        """A median of its runs counts as one sample; profile times the network as a whole. Autoencoders: from the
        bytes of a frame to those of its picture, as a stream does."""
        if NETS[row.net].result == "picture":
            return self.measure_live(row)
        args = ["profile", self.encoder_model(row), "--json", "--batch-size",
                str(row.batch), "--precision", row.precision, "--runs", str(row.samples),
                "--no-compare-precisions"]
        self.commands[row.name] = "leeway " + " ".join(args)
        said = self.json(args)
        whole = said["precisions"][0]
        return [whole["ms"]], (whole["value_bytes"] + whole["prepared_bytes"]
                               + said["weight_bytes"])

    def encoder_model(self, row):
        """Its folder; of an int8 row with ranges, measured at first use."""
        model = self.files.encoder(row.net, "model")
        if row.precision != "int8":
            return model
        if not os.path.exists(model + "-int8"):
            self.call(["quantize", model, "--calibration", "folder:" + self.files.encoder(row.net, "calibration"),
                       "--num-images", "16", "--output-dir", model + "-int8"])
        return model + "-int8"

    def measure_live(self, row):
        """`leeway bench stream`: from the bytes of a frame to those of its picture."""
        side, precision = str(NETS[row.net].side), "" if row.precision == "f32" else "_" + row.precision
        more = ["--precision", row.precision]
        if not NETS[row.net].files:
            return self.bench("stream", "gpu-stress:192%s_1x" % precision, row, ["--model", "gpu-stress:192"] + more)
        coder = ("sd-vae:" if row.net == "sd_vae_256" else "taef2:") + self.files.encoder(row.net, "model")
        model = ["--model", coder]
        if row.net == "live_128":
            model = ["--model", self.files.encoder(row.net, "model", "unet"), "--latents", coder]
        return self.bench("stream", "live_pixels" + side + precision, row, model + ["--image-size", side] + more)

    def frame(self, row, x, out):
        """`leeway stream` of the picture x as a frame; what comes back, in floats."""
        import numpy as np
        side, folder = NETS[row.net].side, self.files.encoder(row.net, "model")
        x = np.load(x)[0].transpose(1, 2, 0)
        raw = out + ".rgb"
        np.rint((x + 1) * 127.5).astype(np.uint8).tofile(raw)
        self.call(["stream", "--input", raw, "--raw", "%dx%d:rgb24" % (side, side), "--every-frame", "--model",
                   os.path.join(folder, "unet"), "--latents", "taef2:" + folder, "--size", "%dx%d" % (side, side),
                   "--output", "folder:" + out + ".frames"] + self.need(row, "stream"))
        from PIL import Image
        y = np.asarray(Image.open(os.path.join(out + ".frames", "frame_000000.png")))
        return (y / 127.5 - 1).transpose(2, 0, 1)[None]

    def round_trip(self, row, x, out):
        """Both halves by `leeway run`."""
        latent, (encoder, decoder) = x + ".latent.npy", live_peer.FILES
        if row.net == "sd_vae_256":
            encoder = decoder = ""
        for source, given, made in ((encoder, x, latent), ("decoder:" + decoder, latent, out)):
            word, name = source.split(":") if ":" in source else ("", source)
            path = self.files.encoder(row.net, "model", *([name] if name else []))
            self.call(["run", word + ":" + path if word else path, "--input", given, "--output", made]
                      + self.need(row, "run"))

    def mc(self, row, folder, out):
        """`leeway mc` of one trial in a fresh folder; what it said."""
        args = ["mc", "folder:" + folder, "--models",
                "clip=" + self.files.encoder(row.net, "model"), "--sites",
                row.sites if row.sites == "hf" else "hf," + row.sites, "--passes", str(row.passes),
                "--trials", "1", "--num-images", "0", "--precision", row.precision, "--dropout",
                "0.01", "--output-dir", out, "--json"]
        self.commands[row.name] = "leeway " + " ".join(args)
        return self.json(args)["models"][0]

    def measure_mc(self, row):
        """Prefix, passes and scores; loading and compiling are not counted for anybody."""
        with tempfile.TemporaryDirectory() as d:
            said = self.mc(row, self.files.encoder(row.net, "pictures%d" % row.batch), d)
            self.trace[row.name] = said["results"][0]["mean_pre"] * row.passes / (row.passes - 1)
        spent = said["prefix_seconds"] + said["pass_seconds"] + said["score_seconds"]
        return [1e3 * spent], said["weight_bytes"] + said["kept_bytes"]

    def measure_mc_note(self, row):
        """The whole process: start, weights, decoding, files."""
        with tempfile.TemporaryDirectory() as d:
            os.environ["LW_CACHE"] = os.path.join(d, "cache")
            began = time.perf_counter()
            said = self.mc(row, self.files.encoder(row.net, "photos%d" % row.batch), d)
            spent = time.perf_counter() - began
            del os.environ["LW_CACHE"]
        return [1e3 * spent], said["weight_bytes"] + said["kept_bytes"]

    def startup(self, out):
        return self.command + ["sample", self.model, "--n", "1", "--batch-size", "1", "--sampler",
                               "ddim", "--steps", "1", "--output", out, "--threads",
                               str(self.threads)]

    # ---- errors

    def error(self, row):
        """Relative L2 error of the output against double; None where the row has none."""
        import numpy as np
        with tempfile.TemporaryDirectory() as d:
            out = os.path.join(d, "y.npy")
            if row.kind == "forward":
                x, t = os.path.join(d, "x.npy"), os.path.join(d, "t.npy")
                want = np.load(self.files.path("y64.npy"))[:row.batch]
                np.save(x, np.load(self.files.path("x.npy"))[:len(want)])
                np.save(t, np.load(self.files.path("times.npy"))[:len(want)])
                more = self.need(row, "run")
                model = self.int8_model if row.precision == "int8" else self.model
                self.call(["run", model, "--input", x, "--t", t, "--output", out] + more)
            elif row.kind == "encoder" and not NETS[row.net].files:
                return None
            elif row.kind == "encoder":
                want = np.load(self.files.encoder(row.net, "y64.npy"))
                x = os.path.join(d, "x.npy")
                np.save(x, np.load(self.files.encoder(row.net, "x.npy"))[:len(want)])
                if row.net == "live_128":
                    return relative(self.frame(row, x, out), want.clip(-1, 1))
                if NETS[row.net].result == "picture":
                    self.round_trip(row, x, out)
                    return relative(np.load(out), want)
                self.call(["run", self.encoder_model(row), "--input", x, "--layer",
                           "pooled", "--output", out] + self.need(row, "run"))
            elif row.kind == "mc":
                self.measure_mc(row)
                want = np.load(self.files.encoder(row.net, row.name + "_want.npy"))
                return abs(self.trace[row.name] / float(want) - 1)
            elif row.kind == "field":
                want = np.load(self.files.field(row, "want.npy"))
                args = ["field", "--gen", self.files.field(row, "x.npy"), "--pos",
                        self.files.field(row, "p.npy"), "--temperatures", "0.02,0.05,0.2",
                        "--output", out]
                if row.shape[2]:
                    args += ["--uncond", self.files.field(row, "u.npy"), "--uncond-weight", "1"]
                self.call(args)
            else:
                return None
            return relative(np.load(out), want)
