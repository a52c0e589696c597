# SPDX-License-Identifier: Apache-2.0
"""What the comparison's processes share: clean environments, requests between the driver and its
workers, statistics, the prepared files, the machine."""
import json
import os
import select
import statistics
import subprocess
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Each of these has been seen to make a peer 2x to 10x slower, or to change what is measured.
HARMFUL_ENV = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_PROC_BIND", "OMP_PLACES",
               "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA",
               "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "OMP_NUM_THREADS",
               "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
               "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "LW_ISA", "LW_LOG")
# Peers keep freed blocks and get huge pages, both of which Leeway does by itself: without this a
# large part of a training step is page faults.
PEER_ENV = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184",
            "MALLOC_TOP_PAD_": "268435456", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
            "THP_MEM_ALLOC_ENABLE": "1", "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
WEIGHTS = "diffusion_pytorch_model.safetensors"
PAUSE = 0.3  # seconds between two participants: spinning threads have gone to sleep by then


limit = {}  # --isa: what every participant is told (peer_isa.py)


def clean_env(more=None):
    env = {k: v for k, v in os.environ.items() if k not in HARMFUL_ENV and k not in PEER_ENV}
    env.update(more or {})
    env.update(limit)
    return env


# ---- a participant in a process of its own ---------------------------------------------------

class PeerError(Exception):
    """What a participant could not do; its text goes into the table."""


class Worker:
    """A process that answers one JSON line per JSON line and sleeps in read() in between."""

    def __init__(self, who, options, plain=False):
        self.who = who
        self.again = lambda: Worker(who, options, plain)
        argv = [sys.executable, os.path.join(HERE, "peer_worker.py"), who, json.dumps(options)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=clean_env({} if plain else PEER_ENV))
        self.rest = b""
        self.about = self.ask("about")

    def ask(self, what, limit=600, **more):
        if self.process.poll() is not None:
            raise PeerError("%s: its process has ended with code %d"
                            % (self.who, self.process.returncode))
        self.process.stdin.write((json.dumps(dict(more, what=what)) + "\n").encode())
        self.process.stdin.flush()
        answer = json.loads(self.line(limit))
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def line(self, limit):
        end, fd = time.monotonic() + limit, self.process.stdout.fileno()
        while b"\n" not in self.rest:
            ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.process.kill()
                raise PeerError("%s: no answer within %d s" % (self.who, limit))
            block = os.read(fd, 1 << 16)
            if not block:
                raise PeerError("%s: its process ended (code %s)"
                                % (self.who, self.process.wait()))
            self.rest += block
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()


def answers():
    """The worker's way out. What libraries print goes to stderr from here on."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return out


def serve(out, handlers):
    """The worker's side: handlers[what](**request) -> dict."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request.pop("what")](**request)
        except Exception as e:  # whatever a library throws is an answer, not an end
            answer = {"error": "%s: %s" % (type(e).__name__, str(e).strip().split("\n")[0][:300])}
        out.write(json.dumps(answer) + "\n")
        out.flush()


def measure(run, warm, samples):
    """Milliseconds of each counted call."""
    out = []
    for i in range(warm + samples):
        t = time.perf_counter()
        run()
        if i >= warm:
            out.append((time.perf_counter() - t) * 1e3)
    return out


# ---- prepared files --------------------------------------------------------------------------

class Files:
    """Names of what the rows need; peer_prepare.py makes what is missing. Names change with what
    the files depend on, so that nothing stale is used."""

    def __init__(self, work, model=None):
        self.work = os.path.abspath(work)
        self.unet = os.path.join(self.work, "unet")
        self.model = self.path("model")
        if model:
            self.model = find_weights(model)
            weights = os.stat(os.path.join(self.model, WEIGHTS))
            key = "%s %d %d" % (self.model, weights.st_size, weights.st_mtime_ns)
            self.unet += "_%08x" % zlib.crc32(key.encode())

    def path(self, *parts):
        """Files of the U-Net with these weights."""
        return os.path.join(self.unet, *parts)

    def onnx(self, kind="f32"):
        return self.path("unet_%s.onnx" % kind)

    def mnn(self):
        return self.path("unet_f32.mnn")

    def ncnn(self, *parts):
        return self.path("ncnn", *parts)

    def openvino(self, narrow=False):
        """Quantised by NNCF; narrow: weights of 7 bits."""
        return self.path("openvino_int8_7" if narrow else "openvino_int8", "unet.xml")

    def compiled(self, row, threads):
        """Compiled by inductor ahead of time, for one shape, type and number of threads; of a
        training step, how it went: what was compiled is in inductor's cache."""
        name = "compiled_t%d.pt2" % threads
        if row.kind == "train":
            return self.path("train_%s_b%d_compiled_t%d.txt" % (row.precision, row.batch, threads))
        if row.kind == "field":
            return self.field(row, name)
        if row.kind == "mc":
            return self.encoder(row.net, "%s_compiled_t%d.txt" % (row.name, threads))
        if row.kind == "encoder":
            return self.encoder(row.net, "%s_b%d_%s" % (row.precision, row.batch, name))
        return self.path("%s_b%d_%s" % (row.precision, row.batch, name))

    def encoder(self, net, *parts):
        return os.path.join(self.work, "encoders", net, *parts)

    def inductor(self):
        return os.path.join(self.work, "inductor")

    def field(self, row, what):
        return os.path.join(self.work, "field_%s_%s" % ("x".join(map(str, row.shape)), what))


def find_weights(model):
    """The model folder of a run, a checkpoint, or a model folder: averaged weights if there are."""
    for inside in ("checkpoints/last/ema", "checkpoints/last", "ema", ""):
        folder = os.path.join(os.path.realpath(model), inside)
        if os.path.exists(os.path.join(folder, WEIGHTS)):
            return os.path.realpath(folder)
    raise SystemExit("--model %s: no %s in it" % (model, WEIGHTS))


# ---- numbers ---------------------------------------------------------------------------------

def median(v):
    return statistics.median(v)


def quantile(v, p):
    s = sorted(v)
    at = p * (len(s) - 1)
    i = int(at)
    j = min(i + 1, len(s) - 1)
    return s[i] + (at - i) * (s[j] - s[i])


def spread(v):
    """Per cent between the 10th and the 90th percentile, of the median."""
    return 100 * (quantile(v, 0.9) - quantile(v, 0.1)) / median(v)


def summary(v):
    return {"median_ms": median(v), "min_ms": min(v), "max_ms": max(v), "n": len(v),
            "p10_ms": quantile(v, 0.1), "p90_ms": quantile(v, 0.9)}


def relative(a, b):
    """|a - b| / |b| in double."""
    import numpy as np
    a, b = np.float64(a).ravel(), np.float64(b).ravel()
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def error(row, files, y):
    """Of a row's output against PyTorch in double, where it has such a reference; else None."""
    import numpy as np
    if row.kind == "encoder":
        want = np.load(files.encoder(row.net, "y64.npy"))
    elif row.kind == "forward":
        want = np.load(files.path("y64.npy"))[:row.batch]
    else:
        return None
    return relative(y[:len(want)], want[:len(y)])


def time_embedding(t, channels=128):
    """Cosines and sines of times, as the U-Net's first layer makes them: [B] -> [B, channels], f32."""
    import numpy as np
    angle = np.outer(t, 1e4 ** (-np.arange(channels // 2) / (channels // 2)))
    return np.concatenate([np.cos(angle), np.sin(angle)], 1, dtype=np.float32)


# ---- sampling, for arrays and tensors alike --------------------------------------------------

def alpha_bars(n=1000):
    """Products of 1 - beta, beta linear from 1e-4 to 0.02."""
    out, product = [], 1.0
    for i in range(n):
        product *= 1 - (1e-4 + (0.02 - 1e-4) * i / (n - 1))
        out.append(product)
    return out


def ddim(call, x, steps, bar):
    """The deterministic DDIM loop around call(x, t); bar is the product of 1 - beta."""
    times = [i * (len(bar) // steps) for i in range(steps)][::-1]
    for k, t in enumerate(times):
        eps = call(x, t)
        a, b = bar[t], bar[times[k + 1]] if k + 1 < steps else 1.0
        x0 = ((x - (1 - a) ** 0.5 * eps) / a ** 0.5).clip(-1, 1)
        x = b ** 0.5 * x0 + (1 - b) ** 0.5 * eps
    return x


# ---- the machine -----------------------------------------------------------------------------

def others_busy(seconds=0.5):
    """Share of all cores that is busy while this process sleeps. Above a few per cent, figures of
    as many threads as there are cores are worthless: a barrier waits for the slower one."""
    def ticks():
        with open("/proc/stat") as f:
            v = [int(x) for x in f.readline().split()[1:9]]
        return sum(v), v[3] + v[4]
    total, idle = ticks()
    time.sleep(seconds)
    total2, idle2 = ticks()
    return 1 - (idle2 - idle) / max(total2 - total, 1)


def cpu_model():
    with open("/proc/cpuinfo") as f:
        return next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), "?")


def note(text):
    print(text, file=sys.stderr, flush=True)
