#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Glass to glass in a real browser: tools/serve_check.py PROGRAM [--seconds 10] [--size 320x240@30] [--clients 0]
[--stalled 0] [--shots DIR].

Starts `PROGRAM stream --input test --serve`, opens the page in headless chromium, reads the frame's number from the
pixels of the painted canvas at every animation frame, and says how old each frame was when it was painted first:
p50, p95, p99 in ms, as JSON. Frames whose pixels say another number than the page was told end with 1. --stalled
adds clients that take nothing, --clients some that take all. Without chromium: "skipped", exit 0.
"""
import argparse
import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

# Reads the bars along the top of both canvases as lw_frame_test_read does (frames_test.c).
READER = r"""
(() => {
  const BARS = %d, BITS = %d, SUM = %d, reads = window.reads = [];
  const number = (canvas) => {
    const h = canvas.height, w = canvas.width, line = Math.floor(Math.floor(h / 8) / 2);
    const row = canvas.getContext("2d", { willReadFrequently: true }).getImageData(0, line, w, 1).data;
    let bits = 0n;
    for (let i = 0; i < BARS; i++) {
      const x = Math.floor((Math.floor(w * i / BARS) + Math.floor(w * (i + 1) / BARS)) / 2) * 4;
      bits = bits << 1n | (row[x] + row[x + 1] + row[x + 2] > 375 ? 1n : 0n);
    }
    return Number(bits >> BigInt(SUM) & ((1n << BigInt(BITS)) - 1n));
  };
  let before = -1;
  const look = () => {
    if (seen.number >= 0) {
      const n = number(views.output);
      if (n !== before) {
        reads.push(n);
      }
      before = n;
    }
    requestAnimationFrame(look);
  };
  look();
})()
"""


class Page:
    """One page of a browser, through its debugging WebSocket."""

    def __init__(self, url):
        host, path = re.match(r"ws://([^/]+)(/.*)", url).groups()
        name, port = host.split(":")
        self.s = socket.create_connection((name, int(port)), 120)
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
        while not (head := getattr(self, "head", b"")).endswith(b"\r\n\r\n"):
            self.head = head + self.s.recv(1)
        self.n = 0

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.s.recv(n - len(data))
            if not part:
                raise OSError("the browser closed")
            data += part
        return data

    def message(self):
        text = b""
        while True:
            a, b = self.read(2)
            n = b & 127
            n = struct.unpack(">H", self.read(2))[0] if n == 126 else struct.unpack(">Q", self.read(8))[0] if n == 127 else n
            text += self.read(n)
            if a & 128:
                return json.loads(text)

    def call(self, method, **params):
        self.n += 1
        data = json.dumps({"id": self.n, "method": method, "params": params}).encode()
        head = struct.pack(">BBQ", 0x81, 0x80 | 127, len(data)) + bytes(4)
        self.s.sendall(head + data)
        while (m := self.message()).get("id") != self.n:
            pass
        if "error" in m:
            raise OSError(m["error"]["message"])
        return m["result"]

    def run(self, text):
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise OSError(r["exceptionDetails"]["exception"].get("description", "error on the page"))
        return r["result"].get("value")


def browser(chromium, folder, extra=()):
    """A headless chromium and its first page."""
    p = subprocess.Popen([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--mute-audio", "--no-first-run",
                          "--remote-debugging-port=0", f"--user-data-dir={folder}", "--window-size=1200,1000",
                          "--disable-background-networking", *extra, "about:blank"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    port_file = os.path.join(folder, "DevToolsActivePort")
    for _ in range(600):
        if os.path.exists(port_file) and open(port_file).read().count("\n"):
            break
        time.sleep(.1)
    port = open(port_file).readline().strip()
    for _ in range(100):
        pages = [x for x in json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=20)) if x["type"] == "page"]
        if pages:
            return p, Page(pages[0]["webSocketDebuggerUrl"])
        time.sleep(.1)
    raise OSError("chromium opened no page")


def watch(port, stalled):
    s = socket.socket()
    if stalled:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", port))
    s.sendall(b"GET /stream.mjpg HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return s


def drain(sockets):
    for s in sockets:
        s.setblocking(False)
        try:
            while s.recv(1 << 20):
                pass
        except BlockingIOError:
            pass


def quantiles(values):
    v = sorted(x for x in values if x is not None)
    return {q: round(v[min(len(v) - 1, int(p * len(v)))], 2) for q, p in
            (("p50", .5), ("p95", .95), ("p99", .99), ("max", 1))} if v else None


def shots(page, folder):
    os.makedirs(folder, exist_ok=True)
    for scheme in "light", "dark":
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        time.sleep(1)
        png = page.call("Page.captureScreenshot", format="png")["data"]
        with open(os.path.join(folder, f"{scheme}.png"), "wb") as f:
            f.write(base64.b64decode(png))


def measure(a, page, port):
    others = [watch(port, False) for _ in range(a.clients)] + [watch(port, True) for _ in range(a.stalled)]
    page.call("Page.navigate", url=f"http://127.0.0.1:{port}/")
    for _ in range(200):
        if page.run("typeof stamps !== 'undefined' && stamps.length > 5 && offset !== null"):
            break
        time.sleep(.1)
    time.sleep(2)  # clocks are compared a few times
    if a.camera:
        page.run("settings.camera ? $('camera').click() : null")
        time.sleep(3)
    page.run("stamps = []; " + READER % (a.bars, a.bits, a.sum))
    began = time.monotonic()
    end = began + a.seconds
    while time.monotonic() < end:
        drain(others[:a.clients])
        time.sleep(.05)
    time.sleep(.2)  # stamps follow pixels
    reads, painted = page.run("[reads, stamps]")
    seconds = time.monotonic() - began
    if not a.camera:  # the stamps of frames that the pixels name; the first may be from before
        by_number = {s["number"]: s for s in painted}
        painted = [by_number[n] for n in reads[1:] if n in by_number]
    result = {"frames": len(painted), "fps": round(len(painted) / seconds, 2)}
    if not a.camera:
        result["wrong"] = len(reads[1:]) - len(painted)
    for key in "glass", "model", "transport":
        result[key + "_ms"] = quantiles([s.get(key) for s in painted])
    result["stats"] = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=20))
    if a.shots:
        shots(page, a.shots)
    for s in others:
        s.close()
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("program")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--size", default="320x240@30")
    p.add_argument("--clients", type=int, default=0)
    p.add_argument("--stalled", type=int, default=0)
    p.add_argument("--camera", action="store_true", help="--input browser, with chromium's own camera")
    p.add_argument("--shots", help="screenshots of the page, light and dark, into this folder")
    a = p.parse_args()
    a.bars, a.bits, a.sum = 32, 24, 4
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("skipped: no chromium")
        return 0
    source = "browser:" if a.camera else "test:"
    server = subprocess.Popen([a.program, "stream", "--input", source + a.size, "--serve", "127.0.0.1:0"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    browser_process = None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            line = ""
            while "page: http" not in line:
                line = server.stderr.readline()
                if not line:
                    sys.exit("the server did not start")
            port = int(re.search(r":(\d+)/", line).group(1))
            fake = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream") if a.camera else ()
            browser_process, page = browser(chromium, folder, fake)
            result = measure(a, page, port)
            print(json.dumps(result, indent=1))
            return 1 if result.get("wrong") or not result["frames"] else 0
        finally:
            for process in (browser_process, server):
                if process:
                    process.terminate()
                    try:
                        process.wait(10)
                    except subprocess.TimeoutExpired:
                        process.kill()


if __name__ == "__main__":
    sys.exit(main())
