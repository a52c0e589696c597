#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/leeway against the program and against arithmetic. LEEWAY, MODELS (made by make_model) and
PYTHONPATH come from the test's environment; 77: numpy is not there."""
import os
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
        """A GPU has the weights of what it computed with (api_python_cuda)."""
        m, d = leeway.load(UNET), leeway.Device()
        m.run(np.zeros((1, 3, 16, 16)), device=d)
        del d
        m.close()

    def test_encoder(self):
        m = leeway.load(os.path.join(MODELS, "encoder"))
        self.assertIsNone(m.method)
        x = np.zeros((2, 3, m.image_size, m.image_size))
        both = m.run(x, output="logits,pooled")
        self.assertEqual(both["logits"].shape, (2, m.classes))
        self.assertEqual(m.run(x, output="logits").tobytes(), both["logits"].tobytes())
        with self.assertRaises(leeway.Error):
            m.sample(1)


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
        with self.assertRaises(ValueError):
            leeway.field(np.zeros((2, 3)), np.zeros((2, 3)), variant="other")
        with self.assertRaises(leeway.Error):
            leeway.field(np.ones((2, 3)), np.ones((2, 3)), temperatures=[-1.0])


if __name__ == "__main__":
    unittest.main(verbosity=0)
