#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leeway beside PyTorch, ONNX Runtime, OpenVINO, MNN and ncnn in one run: same shapes, same weights, taking turns.

    python tools/peers/run.py --leeway build/leeway --prepare                  # once
    python tools/peers/run.py --leeway build/leeway --rows all --rounds 5 --out table.md
    python tools/peers/run.py --leeway build/leeway --rows forward_f32 --quick
    python tools/peers/run.py --list

Writes markdown to --out and everything measured to the same name with .json. See README.md here.
"""
import argparse
import dataclasses
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

import peer_common as peer
import peer_isa
import peer_rows
import peer_table
from peer_leeway import Leeway

PEERS = {"torch": "PyTorch", "ort": "ONNX Runtime", "openvino": "OpenVINO", "mnn": "MNN", "ncnn": "ncnn"}
FAR_BEHIND = 1.5  # a setting this much slower than its library's best sits out later rounds


class Result:
    def __init__(self):
        self.data = {"samples_ms": {}, "errors": {}, "skipped": {}, "memory_bytes": {}}
        self.out = set()  # far behind

    def add(self, name, samples, memory=0):
        self.data["samples_ms"].setdefault(name, []).extend(samples)
        if memory:
            self.data["memory_bytes"][name] = memory

    def skip(self, name, why):
        self.data["skipped"][name] = why
        peer.note("  %s: %s" % (name, why))


# ---- the peers' and leeway's turns in one row ------------------------------------------------

def open_peers(row, workers, result):
    """(worker, key, name) of each setting; keys are the worker's own names."""
    turns = []
    for who, w in workers.items():
        try:
            if w.process.poll() is not None:  # an earlier row ended it
                w = workers[who] = w.again()
            answer = w.ask("open", row=dataclasses.asdict(row))
        except peer.PeerError as e:
            result.skip(PEERS[who], str(e))
            continue
        for key, why in answer["skipped"].items():
            result.skip("%s %s" % (PEERS[who], key), why)
        turns += [(w, key, "%s %s" % (PEERS[who], key)) for key in answer["variants"]]
    return turns


def check_errors(row, turns, lw, result):
    """The first call of each setting: it warms up and is compared, not timed."""
    for turn in list(turns):
        w, key, name = turn
        try:
            answer = w.ask("check", name=key)
            result.data["errors"][name] = answer["error_f64"]
        except peer.PeerError as e:
            result.skip(name, str(e))
            turns.remove(turn)
    try:
        result.data["errors"]["leeway"] = lw.error(row)
    except (peer.PeerError, OSError, ValueError) as e:
        result.skip("leeway's error", str(e))


def leeway_turn(row, lw, result):
    try:
        result.add("leeway", *lw.measure(row))
    except peer.PeerError as e:
        result.out.add("leeway")
        result.skip("leeway", str(e))


def peer_turn(row, turn, result):
    w, key, name = turn
    try:
        result.add(name, w.ask("measure", name=key, warm=row.warm, samples=row.samples)["ms"])
    except peer.PeerError as e:
        result.out.add(name)
        result.skip(name, str(e))


def drop_slow(turns, result):
    for w, _, name in turns:
        same = [n for v, _, n in turns if v is w and n in result.data["samples_ms"]]
        if name in same:
            fastest = min(peer.median(result.data["samples_ms"][n]) for n in same)
            if peer.median(result.data["samples_ms"][name]) > FAR_BEHIND * fastest:
                result.out.add(name)


def run_row(row, rounds, workers, lw, busy):
    result = Result()
    turns = open_peers(row, workers, result)
    check_errors(row, turns, lw, result)
    time.sleep(peer.PAUSE)
    for k in range(row.turns(rounds)):
        busy.append(peer.others_busy())
        order = ["leeway"] + turns
        for turn in order if k % 2 == 0 else reversed(order):
            if (turn if turn == "leeway" else turn[2]) in result.out:
                continue
            if turn == "leeway":
                leeway_turn(row, lw, result)
            else:
                peer_turn(row, turn, result)
            time.sleep(peer.PAUSE)
        if k == 0:
            drop_slow(turns, result)
    for w in workers.values():
        if w.process.poll() is None:
            w.ask("close")
    return result


# ---- process starts --------------------------------------------------------------------------

def run_startup(row, rounds, files, o, lw, busy):
    result = Result()
    script = os.path.join(peer.HERE, "startup_peer.py")
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "x.png")
        python = lambda *a: [sys.executable, script, *a, out, str(o.threads)]
        ways = {"leeway": lw.startup(out)}
        if "torch" in o.peers:
            ways["PyTorch diffusers"] = python("diffusers", files.model)
            compiled = files.compiled(row, o.threads)
            if os.path.exists(compiled):
                ways["PyTorch compiled"] = python("compiled", compiled)
            else:
                result.skip("PyTorch compiled", "not compiled: run --prepare first")
        if "ort" in o.peers:
            ways["ONNX Runtime f32"] = python("ort", files.onnx())
        for k in range(-1, row.turns(rounds)):  # -1: into the page cache, not counted
            busy.append(peer.others_busy())
            for name in list(ways):
                if os.path.exists(out):
                    os.remove(out)
                t = time.perf_counter()
                code = subprocess.run(ways[name], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=peer.clean_env(
                                          None if name == "leeway" else peer.PEER_ENV)).returncode
                spent = 1e3 * (time.perf_counter() - t)
                if code or not os.path.exists(out):
                    result.skip(name, "ended with code %d" % code)
                    del ways[name]
                elif k >= 0:
                    result.add(name, [spent])
    return result


# ---- all of it -------------------------------------------------------------------------------

def prepare(o, rows):
    options = {"work": o.work, "model": o.model, "rows": [r.name for r in rows],
               "compile": o.prepare, "peers": o.peers, "threads": o.threads, "dropout": o.dropout}
    argv = [sys.executable, os.path.join(peer.HERE, "peer_prepare.py"), json.dumps(options)]
    r = subprocess.run(argv, stdout=sys.stderr, env=peer.clean_env(peer.PEER_ENV))
    if r.returncode:
        sys.exit("preparing the files failed; see above")


def describe(o, lw, workers, busy):
    versions = {}
    for w in workers.values():
        versions.update(w.about)
    a = lw.about
    text = ("%s, %d of %s CPUs used, %s. leeway %s (%s, %s, %s); %s. Measured peak: %s GFLOP/s of "
            "f32, %s of bf16, %s of int8. Each row's participants took turns, %d rounds; before "
            "the rounds others used %.0f %% of the CPUs in the median, %.0f %% at most." % (
                a.get("cpu", peer.cpu_model()), o.threads, a.get("cpus", os.cpu_count()),
                datetime.date.today().isoformat(), a.get("version"), a.get("commit"),
                a.get("compiler"), a.get("isa"),
                ", ".join("%s %s" % kv for kv in versions.items() if kv[0] != "threads"),
                *("%.0f" % lw.peak[t] for t in ("f32", "bf16", "int8")), o.rounds,
                100 * peer.median(busy), 100 * max(busy)))
    if peer.median(busy) > 0.1:
        text += " **OTHER PROGRAMS WERE RUNNING: these figures are not evidence.**"
    return {"text": text, "versions": versions, "leeway": a, "peak_gflops": lw.peak,
            "others_busy": busy, "commands": lw.commands, "environment_of_peers":
            {} if o.plain_malloc else peer.PEER_ENV,
            "arguments": {k: v for k, v in vars(o).items()}}


def write(o, info, rows, results):
    text = peer_table.markdown(info, rows, results)
    print(text)
    if o.out:
        with open(o.out, "w") as f:
            f.write(text)
        with open(os.path.splitext(o.out)[0] + ".json", "w") as f:
            json.dump({"info": info, "rows": results}, f, indent=1)


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--leeway", metavar="COMMAND", default="build/leeway")
    p.add_argument("--leeway-args", default="", help="more options of leeway bench")
    p.add_argument("--rows", default="all", help="names or beginnings of names, by comma; all")
    p.add_argument("--peers", default=",".join(PEERS))
    p.add_argument("--rounds", type=int, default=5, help="turns of each; some rows take fewer")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--out", metavar="FILE.md", help="and FILE.json")
    p.add_argument("--model", help="folder with the U-Net's weights (default: made, formula)")
    p.add_argument("--int8-model", metavar="DIR",
                   help="the same weights after leeway quantize, for "
                        "the error of int8 (default: the model itself, if it has ranges)")
    p.add_argument("--work", help="folder of prepared files, 1.5 GB (default: build/peers, with "
                                  "--isa build/peers-ISA)")
    p.add_argument("--isa", choices=sorted(peer_isa.LIMITS),
                   help="nobody uses more than this level; who cannot be held to it sits out")
    p.add_argument("--prepare", action="store_true",
                   help="make all files, compilations included (minutes), and stop")
    p.add_argument("--quick", action="store_true", help="one round, one sample: does it run?")
    p.add_argument("--dropout", type=float, default=0.1, help="of training steps")
    p.add_argument("--plain-malloc", action="store_true",
                   help="peers without large pages and without keeping freed memory")
    p.add_argument("--list", action="store_true", help="the rows, and stop")
    o = p.parse_args()
    o.peers = [w for w in o.peers.split(",") if w]
    if not o.work:
        o.work = os.path.join(peer.ROOT, "build", "peers" + ("-" + o.isa if o.isa else ""))
    if set(o.peers) - set(PEERS):
        p.error("--peers: of %s" % ", ".join(PEERS))
    return o


def hold_to(o):
    """--isa: the limit for all processes to come, and its proof. What sits out, and why."""
    peer.limit.update(peer_isa.LIMITS[o.isa])
    o.said = peer_isa.check(o.isa, peer.clean_env(peer.PEER_ENV))
    peer.note("PyTorch, oneDNN say: " + ", ".join(o.said))
    out = [w for w in o.peers if w not in peer_isa.LIMITED]
    o.peers = [w for w in o.peers if w in peer_isa.LIMITED]
    return {PEERS[w]: "not comparable: cannot be held to %s" % o.isa for w in out}


def main():
    o = options()
    rows = peer_rows.choose(o.rows.split(","))
    if o.list:
        for r in rows:
            print("%-18s %s" % (r.name, r.title))
        return
    if o.quick:
        o.rounds = 1
        rows = [dataclasses.replace(r, samples=min(r.samples, 2), warm=0) for r in rows]
    sits_out = hold_to(o) if o.isa else {}
    prepare(o, rows)
    if o.prepare:
        return
    files, began = peer.Files(o.work, o.model), time.time()
    worker_options = {"work": o.work, "model": o.model, "threads": o.threads,
                      "dropout": o.dropout}
    workers = {w: peer.Worker(w, worker_options, o.plain_malloc) for w in o.peers}
    lw = Leeway(o.leeway, files, o.threads, o.int8_model, o.leeway_args)
    results, busy = {}, []
    lw.measure_peak()
    for row in rows:
        t = time.time()
        peer.note("%s" % row.name)
        result = (run_startup(row, o.rounds, files, o, lw, busy) if row.kind == "startup"
                  else run_row(row, o.rounds, workers, lw, busy))
        result.data["skipped"].update(sits_out)
        results[row.name] = dict(result.data, seconds=time.time() - t)
        peer.note("  %.0f s" % (time.time() - t))
    lw.measure_peak()
    for w in workers.values():
        w.close()
    info = dict(describe(o, lw, workers, busy), seconds=time.time() - began)
    write(o, info, rows, results)


if __name__ == "__main__":
    main()
