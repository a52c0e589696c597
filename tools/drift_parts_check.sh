#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# drift_parts_check.sh PROGRAM ROUNDS G OPTIONS: seconds of a step of `PROGRAM train drift OPTIONS` (without --output-dir,
# --steps and --class-chunk) whole and in parts (--class-chunk G), in turns, ROUNDS times nine steps of each. In parts the
# pictures go through generator and encoder once more, so a step may take as long as a whole one and one forward of both
# (by --profile), and 5 %: ends with 1 beyond that. Times mean something on a quiet machine only.
set -eu
leeway=$(realpath "$1")
rounds=$2 chunk=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

train() { # NAME options..; --no-progress leaves stderr to errors
    name=$1
    shift
    "$leeway" train drift "$@" --no-progress >"$dir/$name.json" 2>"$dir/err.txt" || { cat "$dir/err.txt" >&2; exit 2; }
}

train profile "$@" --profile 5 --json --output-dir "$dir/profile"
for round in $(seq "$rounds"); do
    train out "$@" --steps 9 --log-every 1 --output-dir "$dir/whole-$round"
    train out "$@" --steps 9 --log-every 1 --class-chunk "$chunk" --output-dir "$dir/parts-$round"
done
python3 - "$dir" "$rounds" <<'END'
import json, statistics, sys
directory, rounds = sys.argv[1], int(sys.argv[2])


def seconds(name):
    """Median of the steps behind the first."""
    rows = [json.loads(line) for line in open(f"{directory}/{name}/metrics.jsonl")]
    return statistics.median(b["time_s"] - a["time_s"] for a, b in zip(rows[1:], rows[2:]))


phases = {p["name"]: p for p in json.load(open(directory + "/profile.json"))["parts"]}
forward = sum(phases[name]["forward_ms"] for name in ("generator", "encoder")) / 1e3
whole, parts = ([seconds(f"{how}-{r + 1}") for r in range(rounds)] for how in ("whole", "parts"))
w, p = statistics.median(whole), statistics.median(parts)
bound = 1.05 * (w + forward)
print(f"whole {w:.3f} s ({min(whole):.3f} to {max(whole):.3f}), in parts {p:.3f} s ({min(parts):.3f} to {max(parts):.3f}), "
      f"{p / w:.2f} times as long; a forward of generator and encoder {forward:.3f} s, so at most {bound:.3f} s")
sys.exit(p > bound)
END
