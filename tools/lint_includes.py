#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: doors, levels, threads, system headers. Exits 1 and names every breach."""
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"

# folder -> folders whose doors it may open: what CMakeLists.txt links it with
TABLE = {}
for row in re.findall(r"^ *lw_folder\(([^)]*)\)", (SRC.parent / "CMakeLists.txt").read_text(), flags=re.M):
    words = row.split()
    deps = words[words.index("DEPS") + 1:] if "DEPS" in words else []
    TABLE[words[0]] = deps[:deps.index("LIBS")] if "LIBS" in deps else deps

# header -> the only files that may include it
ONLY = {
    "pthread.h": ["base/thread/", "base/log.c"],
    "threads.h": [],
    "stdatomic.h": ["base/thread/pool.c", "base/memory.c", "backend/backend.c"],
    "immintrin.h": ["kernels/"],
}

# lists of rows that others read too: the ops, and the vocabulary of elementwise operations
SHARED_LISTS = {"ir/ops.def": ["backend"], "ir/ewops.def": ["kernels", "backend", "plan"]}

# word -> what to use instead, and the files where it is right
WORDS = {
    r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof)\s*\(": ("a bounded or checked call", []),
    r"\b(rand|srand|random|drand48)\s*\(": ("base/rng.h", []),
    r"\b(exit|_exit|quick_exit)\s*\(": ("an error code", []),
    r"(?<![a-z_])(printf|puts|putchar)\s*\(": ("lw_log, or lw_cli_print in cli/", ["cli/"]),
    r"\bstdout\b": ("cli/", ["cli/"]),
    r"\bstderr\b": ("lw_log", ["cli/", "base/log.c", "base/error.c"]),
    r"\blw_cpu_": ("what plan_device.h declares", ["backend/"]),
    r"\b(TODO|FIXME|XXX)\b": ("an issue", []),
}


PARTS = {}
USED = set()


def folder_of(path):
    parts = path.parts
    if parts[0] == "jobs":  # a room per job; those of `leeway prove` share a folder
        return "/".join(parts[:3] if parts[1] == "prove" else parts[:2])
    return parts[0]


def door_of(folder):
    room = folder.split("/")[-1]
    if not folder.startswith("jobs/"):
        return f"{folder}/{room}.h"
    return f"{folder}/prove_bench_job.h" if folder == "jobs/prove/bench" else f"{folder}/{room}_job.h"


def parts_of(door):
    """Headers that a door includes belong to it and may be opened by name."""
    if door not in PARTS:
        text = (SRC / door).read_text() if (SRC / door).exists() else ""
        PARTS[door] = re.findall(r'#include "([^"]+)"', text)
    return PARTS[door]


def allowed(path, files):
    return any(str(path) == f or (f.endswith("/") and str(path).startswith(f)) for f in files)


def strip_comments(text):
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_include(path, line, name, system, wrong):
    where = f"src/{path}:{line}"
    if system:
        if name in ONLY and not allowed(path, ONLY[name]):
            wrong.append(f"{where}: <{name}> belongs in {', '.join(ONLY[name]) or 'no file'}")
        return
    own = folder_of(path)
    if "/" not in name:
        if not (SRC.parent / "include" / name).exists() and name != "lw_commit.h":
            wrong.append(f'{where}: "{name}": includes are written from src/')
        return
    target = folder_of(pathlib.PurePosixPath(name))
    if target == own:
        return
    USED.add((own, target))
    if own in SHARED_LISTS.get(name, []):
        return
    door = door_of(target)
    if target not in TABLE[own]:
        wrong.append(f"{where}: {own} may not include {target}")
    elif name != door and name not in parts_of(door):
        wrong.append(f"{where}: enter {target} through {door}")


def check_tables(wrong):
    """No arrow that no file takes; docs/ARCHITECTURE.md says the same as the build."""
    for own, deps in TABLE.items():
        for dep in deps:
            if (own, dep) not in USED:
                wrong.append(f"CMakeLists.txt: {own} includes nothing of {dep}")
    said = dict(re.findall(r"^\| `([a-z_/]+)` \| .* \| ([^|]*) \|$",
                           (SRC.parent / "docs/ARCHITECTURE.md").read_text(), flags=re.M))
    for own, deps in TABLE.items():
        row = ", ".join(deps) or "libc and POSIX"
        if said.get(own) != row:
            wrong.append(f"docs/ARCHITECTURE.md: the row of `{own}` ends with: {row}")


def main():
    wrong, names = [], {}
    files = sorted(p for p in SRC.rglob("*") if p.suffix in (".c", ".h", ".inc", ".def"))
    for full in files:
        path = full.relative_to(SRC)
        text = full.read_text()
        if not text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n"):
            wrong.append(f"src/{path}:1: the SPDX line is missing")
        if path.name in names:
            wrong.append(f"src/{path}: the name is taken by src/{names[path.name]}")
        names[path.name] = path
        if folder_of(path) not in TABLE:
            wrong.append(f"src/{path}: folder {folder_of(path)} is not in CMakeLists.txt")
            continue
        for n, line in enumerate(text.splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if m:
                check_include(path, n, m.group(2), m.group(1) == "<", wrong)
        for n, line in enumerate(strip_comments(text).splitlines(), 1):
            for word, (instead, where) in WORDS.items():
                if re.search(word, line) and not allowed(path, where):
                    wrong.append(f"src/{path}:{n}: {line.strip()[:60]}: use {instead}")
    check_tables(wrong)
    print("\n".join(wrong) if wrong else f"includes: {len(files)} files follow the table")
    return 1 if wrong else 0


sys.exit(main())
