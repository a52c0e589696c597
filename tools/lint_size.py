#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines per folder, largest files, longest functions; figures in comments. Exits 1 when a bound of CONTRIBUTING.md is
broken, or a figure."""
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = (".c", ".h", ".inc", ".def", ".py", ".sh", ".cmake")
TREES = ("src", "include", "tests", "bench", "examples", "tools")
MOST_LINES, USUAL_LINES, USUAL_SHARE, MEDIAN_LINES, LONG_FUNCTION = 1000, 500, 0.90, 200, 60
ROOM_FILES = 25  # wanted, outside kernels/; printed only


def functions(path, lines):
    """(length, name) of each function: a line '{' in column 0 up to the next '}' in column 0."""
    start, name = None, ""
    for i, line in enumerate(lines):
        if line == "{":
            start = i
            head = lines[i - 1]
            j = i - 1
            while j > 0 and head.startswith((" ", "\t")):
                j -= 1
                head = lines[j]
            name = head.split("(")[0].split()[-1].lstrip("*") if "(" in head else "?"
        elif line == "}" and start is not None:
            yield i - start - 1, f"{path}:{start + 1} {name}"
            start = None


def reflowed(path, lines):
    """Figures of block comments (tables, formulas, maps) that a formatter has joined into prose. A figure's lines are
    indented and an empty line ends it; prose has single spaces."""
    inside, figure = False, False
    for i, line in enumerate(lines):
        text = line.strip()
        if not inside:
            inside, figure = text.startswith("/*") and "*/" not in text, False
            continue
        inside = "*/" not in text
        text = text.split("*/")[0]
        prose = re.match(r"\* \S", text)
        if prose and re.search(r"\S {2,}\S", text):
            yield f"{path}:{i + 1}: two spaces in a comment's prose: a table line that lost its indent?"
        elif prose and figure:
            yield f"{path}:{i + 1}: prose right behind a figure: a wrapped line, or an empty line is missing"
        figure = bool(re.match(r"\* {3,}\S", text))


def main():
    sizes, folders, longest, joined = {}, {}, [], []
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*")):
            if path.suffix not in CODE or not path.is_file():
                continue
            lines = path.read_text(errors="replace").split("\n")
            rel = path.relative_to(ROOT)
            sizes[rel] = len(lines) - 1
            depth = 3 if rel.parts[1:2] == ("backend",) else 2
            folder = "/".join(rel.parts[: min(depth, len(rel.parts) - 1)])
            folders[folder] = folders.get(folder, 0) + len(lines) - 1
            if path.suffix in (".c", ".inc", ".h"):
                longest += functions(rel, lines)
                joined += reflowed(rel, lines)
    for folder, n in folders.items():
        print(f"{n:7d}  {folder}")
    rooms = {}
    for path in (ROOT / "src").rglob("*.[ch]"):
        room = path.parent.relative_to(ROOT)
        if room.parts[1] != "kernels":
            rooms[room] = rooms.get(room, 0) + 1
    for room, n in sorted(rooms.items(), key=lambda x: -x[1]):
        if n > ROOM_FILES:
            print(f"{n} files in {room}, more than the {ROOM_FILES} that a newcomer takes in at a glance")
    total, median = sum(sizes.values()), statistics.median(sizes.values())
    share = sum(n <= USUAL_LINES for n in sizes.values()) / len(sizes)
    print(f"{total:7d}  total in {len(sizes)} files, median {median:g}, "
          f"{100 * share:.1f} % of files up to {USUAL_LINES} lines")
    print("largest files:")
    for path, n in sorted(sizes.items(), key=lambda x: -x[1])[:5]:
        print(f"{n:7d}  {path}")
    print("longest functions:")
    for n, where in sorted(longest, reverse=True)[:5]:
        print(f"{n:7d}  {where}")
    print(f"{sum(n > LONG_FUNCTION for n, _ in longest)} of {len(longest)} functions have more than "
          f"{LONG_FUNCTION} lines")
    wrong = joined + [f"{p} has {n} lines, at most {MOST_LINES}" for p, n in sizes.items() if n > MOST_LINES]
    if share < USUAL_SHARE:
        wrong.append(f"only {100 * share:.1f} % of files have up to {USUAL_LINES} lines")
    if median > MEDIAN_LINES:
        wrong.append(f"the median file has {median:g} lines, at most {MEDIAN_LINES}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
