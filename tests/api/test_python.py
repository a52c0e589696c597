#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/leeway against the program and against arithmetic. LEEWAY, MODELS (made by make_model) and
PYTHONPATH come from the test's environment; 77: numpy is not there."""
import copy
import gc
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed for %s" % sys.executable)
    sys.exit(77)

import leeway

PROGRAM, MODELS = os.environ["LEEWAY"], os.environ["MODELS"]
UNET = os.path.join(MODELS, "unet")


def by_program(*words):
    """The array that a command writes."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "y.npy")
        subprocess.run([PROGRAM, *words, "--output", path, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        return np.load(path)


# Objects closed and let go in every order, each a process of its own, for what is wrong ends it by a signal. `gpu`:
# the device is one, an emulated one with room for the weights and for no network of 64 rows, if `memory` says so.
PREAMBLE = """
import gc, os, sys
import numpy as np, leeway

UNET = os.path.join(os.environ["MODELS"], "unet")
gpu = os.environ.get("LW_DEVICE") == "cuda"
m, d = leeway.load(UNET), leeway.Device()

def run(model=None, device=None, rows=1, **options):
    return (model or m).run(np.zeros((rows, 3, 16, 16)), batch=rows, device=device or d, **options)

def no_room(f):
    try:
        f()
    except leeway.Error as e:
        assert gpu and e.code == -5, e
    else:
        assert not gpu

def closed(text, f):
    try:
        f()
    except leeway.UsageError as e:
        assert text == str(e), e
    else:
        assert False, "not refused: " + text
"""
ORDERS = (
    ("device_let_go", "", "run(); del d; m.close()"),
    ("device_let_go_after_no_room", "memory", "no_room(lambda: run(rows=64)); del d; m.close()"),
    ("device_closed_after_no_room", "memory", "no_room(lambda: run(rows=64)); d.close(); m.close()"),
    ("two_devices_let_go_after_no_room", "memory", """
e = leeway.Device()
no_room(lambda: run(rows=64))
try:
    run(device=e, rows=64)
except leeway.Error:
    assert gpu
del d, e
m.close()"""),
    ("sampler_without_room", "memory", """
no_room(lambda: m.sampler(steps=1, batch=64, device=d))
del d
m.close()"""),
    ("model_before_sampler", "", """
s = m.sampler(steps=1, batch=1, device=d)
m.close()
closed("this Sampler was closed with its Model", lambda: s.pictures(2))
closed("this Model was closed", lambda: m.sampler(device=d))
s.close()
d.close()"""),
    ("device_before_sampler", "", """
s = m.sampler(steps=1, batch=1, device=d)
d.close()
closed("this Sampler was closed with its %s" % ("Model" if gpu else "Device"), lambda: s.pictures(2))
closed("this Device was closed", lambda: leeway.field([[0.0]], [[1.0]], device=d))
other = leeway.Device()
if gpu:
    closed("this Model was closed with its Device", lambda: run(device=other))
else:
    run(device=other)
s.close()
m.close()"""),
    ("device_in_with", "", """
with leeway.Device() as other:
    m.sampler(steps=1, batch=1, device=other)
m.close()"""),
    ("many_samplers", "", """
of = [m.sampler(steps=1, batch=1, device=d) for _ in range(3)]
of[1].close()
del of[2]
(d if gpu else m).close()
closed("this Sampler was closed with its Model", lambda: of[0].pictures(1))
closed("this Sampler was closed", lambda: of[1].pictures(1))"""),
    ("names_let_go", "", """
s = m.sampler(steps=1, batch=1, device=d)
del m, d
assert gc.collect() >= 0 and s.classes == 3
if not gpu:
    assert s.pictures(1, classes=["2"]).shape == (1, 3, 16, 16)"""),
    ("ring_of_garbage", "", """
for last in range(3):  # the collector takes them in any order
    made = [leeway.Device(), leeway.load(UNET)]
    made.append(made[1].sampler(steps=1, batch=1, device=made[0]))
    made = made[last:] + made[:last]
    made.append(made)
    del made
    gc.collect()"""),
    ("closed_in_a_callback", "", """
seen = []
def progress(done, total):
    inner = leeway.load(UNET)
    inner.close()
    m.close()
    closed("this Model was closed", run)
    d.close()
    seen.append(inner._handle)
assert run(progress=progress).shape == (1, 3, 16, 16)
assert seen and not any(h.pointer for h in seen + [m._handle, d._handle])
closed("this Device was closed", run)"""),
    ("sampler_closed_in_its_callback", "", """
s = m.sampler(steps=1, batch=1, device=d)
assert s.pictures(1, progress=lambda done, total: s.close()).shape == (1, 3, 16, 16)
assert not s._handle.pointer
closed("this Sampler was closed", lambda: s.pictures(1))"""),
    ("let_go_in_an_inner_callback", "", """
kept = []
def outer(done, total):
    run(progress=inner)
    assert kept[-1].pointer  # the outer call keeps it
def inner(done, total):
    kept.append(leeway.load(UNET)._handle)
run(progress=outer)
assert kept and not any(h.pointer for h in kept)"""),
    ("what_callbacks_open_is_freed", "cpu", """
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
for turn in range(120):
    run(progress=lambda done, total: leeway.load(UNET) and None)
    if turn == 19:
        begin = resident()
assert resident() - begin < 20e6, "%d bytes more" % (resident() - begin)"""),
    ("failing_callback", "", """
kept = []
def progress(done, total):
    kept.append(leeway.load(UNET)._handle)
    raise KeyError("enough")
try:
    run(progress=progress)
except KeyError:
    pass
assert kept and not any(h.pointer for h in kept)"""),
)


class Sampling(unittest.TestCase):
    def setUp(self):
        self.model = leeway.load(UNET)

    def test_bits_of_the_program(self):
        for options, words in (({"steps": 4}, ["--steps", "4"]),
                               ({"steps": 3, "sampler": "ancestral", "seed": 9},
                                ["--steps", "3", "--sampler", "ancestral", "--seed", "9"])):
            ours = self.model.sample(5, batch=2, **options)
            theirs = by_program("sample", UNET, "--n", "5", *words)
            self.assertEqual(ours.tobytes(), theirs.tobytes())

    def test_numbers_and_classes(self):
        with self.model.sampler(steps=2) as s:
            self.assertEqual((s.sampler, s.evaluations, s.shape, s.classes), ("ddim", 2, (3, 16, 16), 3))
            all_of = s.pictures(6)
            self.assertEqual(s.pictures(2, first=3).tobytes(), all_of[3:5].tobytes())
            self.assertEqual(s.pictures(3, classes=[0, 1, 2]).tobytes(), all_of[:3].tobytes())
            self.assertNotEqual(s.pictures(3, classes=1).tobytes(), all_of[:3].tobytes())
            self.assertEqual(s.pictures(0).shape, (0, 3, 16, 16))

    def test_progress_and_preview(self):
        done, steps = [], []
        last = {}

        def preview(first, step, of, pixels):
            steps.append((first, step, of))
            last[first] = pixels

        x = self.model.sample(5, steps=3, batch=2, progress=lambda d, t: done.append((d, t)),
                              preview=preview)
        self.assertEqual(done, [(2, 5), (4, 5), (5, 5)])
        self.assertEqual(steps[:4], [(0, 1, 3), (0, 2, 3), (0, 3, 3), (2, 1, 3)])
        self.assertEqual(last[4].tobytes(), x[4:].tobytes())

    def test_what_a_callback_raises(self):
        class Enough(Exception):
            pass

        seen = []

        def stop(first, step, of, pixels):
            seen.append(step)
            raise Enough

        with self.assertRaises(Enough):
            self.model.sample(5, steps=3, preview=stop)
        self.assertEqual(seen, [1])

    def test_what_a_handler_raises(self):
        """As Ctrl-C, in the middle of a call, whose callback is the first to go on in Python."""
        class Late(Exception):
            pass

        def ring(signum, frame):
            raise Late

        ignored = []
        handler, hook = signal.signal(signal.SIGALRM, ring), sys.unraisablehook
        sys.unraisablehook = ignored.append
        try:
            for options in ({}, {"progress": lambda done, total: None}, {"preview": lambda *all: None}):
                with self.model.sampler(steps=1000, batch=1) as s, self.assertRaises(Late):
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                    s.pictures(8, **options)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            sys.unraisablehook = hook
        self.assertEqual(ignored, [])

    def test_refusals(self):
        for options in ({"sampler": "euler"}, {"steps": 1001}, {"precision": "int4"}):
            with self.assertRaises(leeway.Error) as e:
                self.model.sample(1, **options)
            self.assertEqual(e.exception.code, -2)
        with self.assertRaises(leeway.Error) as e:
            leeway.load("/no/such/folder")
        self.assertEqual(e.exception.code, -4)
        self.assertIn("/no/such/folder", str(e.exception))
        with self.assertRaises(leeway.Error):
            self.model.sample(1, steps=1, classes=[3])
        with self.assertRaises(ValueError):
            self.model.sample(-1, steps=1)
        closed = leeway.load(UNET)
        closed.close()
        closed.close()
        with self.assertRaises(ValueError):
            closed.sample(1, steps=1)


class Running(unittest.TestCase):
    def test_facts(self):
        m = leeway.load(UNET)
        self.assertEqual((m.kind, m.network, m.channels, m.image_size, m.classes, m.method),
                         ("unet", "UNet2DModel", 3, 16, 3, "ddpm"))
        self.assertEqual(m.class_names, ["0", "1", "2"])
        self.assertIn("UNet2DModel", repr(m))

    def test_forward(self):
        m = leeway.load(UNET)
        x = np.random.default_rng(1).normal(size=(5, 3, 16, 16)).astype(np.float32)
        t, c = np.arange(5) * 100.0, [0, 1, 2, 0, 1]
        whole = m.run(x, t=t, classes=c)
        alone = np.concatenate([m.run(x[i:i + 1], t=t[i:i + 1], classes=c[i:i + 1], batch=1)
                                for i in range(5)])
        self.assertEqual(whole.tobytes(), alone.tobytes())
        with tempfile.TemporaryDirectory() as d:
            path = lambda n: os.path.join(d, n + ".npy")
            np.save(path("x"), x)
            np.save(path("t"), t.astype(np.float32))
            np.save(path("c"), np.array(c, np.int32))
            theirs = by_program("run", UNET, "--input", path("x"), "--t", path("t"), "--class",
                                path("c"))
        self.assertEqual(whole.tobytes(), theirs.tobytes())
        with self.assertRaises(ValueError):
            m.run(x, t=t[:4])
        with self.assertRaises(ValueError):
            m.run(x, latent=np.zeros((5, 2)))
        with self.assertRaises(ValueError):
            m.run(x[0])

    def test_device_stays_for_its_models(self):
        """A GPU has the weights of what it was asked to compute with (api_python_cuda), and nothing is used
        that is closed."""
        on_gpu = os.environ.get("LW_DEVICE") == "cuda"
        for name, what, code in ORDERS:
            if what == "cpu" and on_gpu:
                continue
            with self.subTest(name):
                env = dict(os.environ, **({"LW_EMULATED_BYTES": "2000000"} if what == "memory" else {}))
                p = subprocess.run([sys.executable, "-c", PREAMBLE + code], env=env, check=False,
                                   stderr=subprocess.PIPE, universal_newlines=True)
                self.assertEqual(p.returncode, 0, p.stderr)

    def test_encoder(self):
        m = leeway.load(os.path.join(MODELS, "encoder"))
        self.assertIsNone(m.method)
        x = np.zeros((2, 3, m.image_size, m.image_size))
        both = m.run(x, output="logits,pooled")
        self.assertEqual(both["logits"].shape, (2, m.classes))
        self.assertEqual(m.run(x, output="logits").tobytes(), both["logits"].tobytes())
        with self.assertRaises(leeway.Error):
            m.sample(1)


class Library(unittest.TestCase):
    def test_another_one(self):
        """Whatever is wrong with a library, the import says so as imports do."""
        for library, said in (("libm.so.6", "has no lw_api_version"), ("/no/such.so", "is not found")):
            p = subprocess.run([sys.executable, "-c", "import leeway"], env=dict(os.environ, LEEWAY_LIBRARY=library),
                               check=False, stderr=subprocess.PIPE, universal_newlines=True)
            self.assertRegex(p.stderr, "ImportError: .*%s" % said)

    def test_the_one_beside_it(self):
        """A damaged one is what is said, and the system is not asked where there is one that works."""
        with tempfile.TemporaryDirectory() as d:
            there = os.path.join(d, "leeway")
            shutil.copytree(os.path.dirname(leeway.__file__), there, ignore=shutil.ignore_patterns("*.so*"))
            beside = os.path.join(there, leeway._SONAME)
            env = dict(os.environ, PYTHONPATH=d)
            library = env.pop("LEEWAY_LIBRARY", None)
            with open(beside, "wb") as f:
                f.write(b"no library")
            code = "import ctypes.util; ctypes.util.find_library = lambda name: None; import leeway"
            p = subprocess.run([sys.executable, "-c", code], env=env, check=False, stderr=subprocess.PIPE,
                               universal_newlines=True)
            if p.returncode:  # else the system has one
                self.assertIn(beside, p.stderr)
            if library:
                os.remove(beside)
                os.symlink(library, beside)
                code = code.replace("lambda name: None", "None")
                self.assertEqual(subprocess.call([sys.executable, "-c", code], env=env), 0)


class Arguments(unittest.TestCase):
    """What ctypes and numpy would make another value of."""

    def setUp(self):
        self.model = leeway.load(UNET)

    def refused(self, message, function, *values, **options):
        with self.assertRaises(leeway.UsageError) as e:
            function(*values, **options)
        self.assertEqual(e.exception.code, -2)
        self.assertIn(message, str(e.exception))

    def test_numbers(self):
        m = self.model
        for name, value, most in (("steps", 2 ** 32 + 1, 2 ** 31 - 1), ("steps", -1, 2 ** 31 - 1),
                                  ("steps", 1.5, 2 ** 31 - 1), ("batch", 2 ** 32 + 1, 65536),
                                  ("batch", "2", 65536), ("seed", 2 ** 64, 2 ** 64 - 1),
                                  ("seed", -1, 2 ** 64 - 1)):
            self.refused("%s is %r: must be a whole number, 0 to %d" % (name, value, most), m.sampler,
                         **{name: value})
        self.refused("batch is -1: must be", m.run, np.zeros((1, 3, 16, 16)), batch=-1)
        for value in (2 ** 32 + 2, -1, 4097, 1.0):
            self.refused("threads is %r: must be a whole number, 0 to 4096" % value, leeway.Device,
                         threads=value)
        with m.sampler(steps=1, seed=np.uint64(2 ** 64 - 1)) as s:
            for value in (2 ** 64, 2 ** 63, -1, 0.5):
                self.refused("first is %r: must be a whole number, 0 to %d" % (value, 2 ** 63 - 1),
                             s.pictures, 1, first=value)
                self.refused("n is %r: must be" % value, s.pictures, value)
            self.assertEqual(s.pictures(np.int32(1), first=np.int64(2 ** 40)).shape, (1, 3, 16, 16))
        self.refused("height of x is 4294967312: must be", m.run, np.zeros((0, 3, 2 ** 32 + 16, 16)))

    def test_classes(self):
        x = np.zeros((1, 3, 16, 16), np.float32)
        with self.model.sampler(steps=1) as s:
            for value, said in ((2 ** 32, "4294967296"), (-2 ** 32, "-4294967296"), (3, "3"), (1.7, "1.7"),
                                (1.0, "1.0"), (None, "None"), ("cat", "'cat'"), ("²", "'²'")):
                message = "classes[1] is %s: must be a whole number, 0 to " % said
                self.refused(message + "2, or a class's name", s.pictures, 2, classes=[0, value])
                if value != 3:
                    self.refused(message, self.model.run, np.zeros((2, 3, 16, 16)), classes=[0, value])
            self.refused("classes[0] is 4294967296", s.pictures, 1, classes=np.array([2 ** 32]))
            self.refused("classes[0] is 1.7", self.model.run, x, classes=np.array([1.7]))
            for nothing in ([], np.zeros(0, np.int32), iter(())):
                self.refused("classes is empty", s.pictures, 1, classes=nothing)
            self.refused("classes has shape (1, 1)", s.pictures, 1, classes=[[0]])
            two = s.pictures(2, classes=[2, 2]).tobytes()
            for same in (2, "2", [2], ["2"], np.int64(2), np.array([2], np.uint8), (2, "2"), iter([2, 2])):
                self.assertEqual(s.pictures(2, classes=same).tobytes(), two)
        self.assertEqual(self.model.run(x, classes=["2"]).tobytes(), self.model.run(x, classes=[2]).tobytes())
        self.assertEqual(self.model.run(x[:0], classes=[]).shape, (0, 3, 16, 16))
        with self.assertRaises(leeway.Error) as e:
            self.model.run(x, classes=[3])
        self.assertEqual(e.exception.code, -3)

    def test_texts(self):
        x = np.zeros((1, 3, 16, 16))
        self.refused("path is '%s\\x00junk': must have no NUL" % UNET, leeway.load, UNET + "\0junk")
        self.refused("must have no NUL", leeway.load, os.fsencode(UNET) + b"\0")
        self.refused("sampler is 'ddim\\x00'", self.model.sampler, sampler="ddim\0")
        self.refused("precision is", self.model.sampler, precision="f32\0")
        self.refused("isa is", leeway.Device, isa="ref\0")
        self.refused("output is", self.model.run, x, output="y\0")
        self.assertEqual(list(self.model.run(x, output=b"*")), ["y"])

    def test_paths(self):
        with tempfile.TemporaryDirectory() as d:
            odd = os.path.join(os.fsencode(d), b"u-\xff-\xc3\xa4")
            os.symlink(UNET, odd)
            for path in (odd, os.fsdecode(odd), pathlib.Path(os.fsdecode(odd))):
                self.assertEqual(leeway.load(path).channels, 3)

    def test_refusals_are_of_both_kinds(self):
        self.assertTrue(issubclass(leeway.UsageError, ValueError) and issubclass(leeway.UsageError, leeway.Error))
        with self.assertRaises(leeway.UsageError):  # the library's own
            self.model.sampler(steps=1001)
        with self.assertRaises(leeway.UsageError):
            self.model.run(x=np.zeros(3))


    def test_copies(self):
        """Of an error there may be any number, in other processes, too; of what is closed once, one."""
        for error in (leeway.Error(-4, "no such file"), leeway.UsageError("n is -1")):
            for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
                self.assertIs(type(same), type(error))
                self.assertEqual((same.code, str(same)), (error.code, str(error)))
        with self.model.sampler(steps=1) as s:
            for thing in (self.model, s, leeway.Device(1)):
                for way in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, "cannot be copied or pickled: open it once more"):
                        way(thing)
            gc.collect()
            self.assertEqual(s.pictures(1).shape, (1, 3, 16, 16))  # nothing was closed


class DriftField(unittest.TestCase):
    def test_one_positive(self):
        """Towards the only positive there is, by the same share everywhere."""
        gen = np.array([[0.0, 0.0], [4.0, 0.0]])
        f = leeway.field(gen, [[2.0, 2.0]], temperatures=[1.0])
        self.assertEqual(f.field.shape, gen.shape)
        self.assertAlmostEqual(float((f.field ** 2).mean()), f.loss, places=5)
        self.assertAlmostEqual(f.loss, 1.0, places=4)
        self.assertIsNone(f.gradient)
        self.assertEqual(len(f.lambdas), 1)

    def test_as_the_program(self):
        rng = np.random.default_rng(2)
        gen, pos, away = (rng.normal(size=s).astype(np.float32) for s in ((2, 6, 5), (2, 9, 5), (2, 4, 5)))
        with tempfile.TemporaryDirectory() as d:
            path = lambda n: os.path.join(d, n + ".npy")
            for n, a in (("g", gen), ("p", pos), ("u", away), ("w", np.array([0.5, 1.5], np.float32))):
                np.save(path(n), a)
            theirs = by_program("field", "--gen", path("g"), "--pos", path("p"), "--uncond", path("u"),
                                "--uncond-weight", path("w"), "--temperatures", "0.05,0.2")
        f = leeway.field(gen, pos, [0.05, 0.2], uncond=away, uncond_weight=[0.5, 1.5], gradient=True)
        self.assertEqual(f.field.tobytes(), theirs.tobytes())
        goal = -2.0 * f.field / (f.sigma * f.field.size)  # of the mean of (x - goal)^2 / sigma^2
        self.assertLess(np.abs(f.gradient - goal).max(), 1e-5 * np.abs(goal).max() + 1e-9)

    def test_shapes(self):
        with self.assertRaises(ValueError):
            leeway.field(np.zeros((2, 3)), np.zeros((2, 4)))
        with self.assertRaises(ValueError):
            leeway.field(np.zeros(3), np.zeros(3))
        for none in ((0, 2, 3), (2, 2, 0, 3), (2, 0, 3), (2, 2, 0), (0, 0)):  # the library takes 0 groups for 1
            with self.assertRaisesRegex(leeway.UsageError, "none of these may be 0"):
                leeway.field(np.zeros(none), np.zeros(none))
        self.assertEqual(leeway.field(np.eye(3), np.eye(3), uncond=np.zeros((0, 3))).field.shape, (3, 3))
        with self.assertRaises(ValueError):
            leeway.field(np.zeros((2, 3)), np.zeros((2, 3)), variant="other")
        with self.assertRaises(leeway.Error):
            leeway.field(np.ones((2, 3)), np.ones((2, 3)), temperatures=[-1.0])
        with self.assertRaisesRegex(leeway.UsageError, "is complex"):
            leeway.field(np.ones((2, 3)) * 1j, np.ones((2, 3)))


if __name__ == "__main__":
    unittest.main(verbosity=0)
