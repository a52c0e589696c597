#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# drift_forecast_check.sh PROGRAM OPTIONS: `PROGRAM train drift OPTIONS` (without --output-dir and --steps) twice, first
# with --dry-run, then three steps: memory of its own and time of a step, said and taken. Ends with 1 when memory is off
# by more than 5 % or time by more than 20 %. Times mean something on a quiet machine only.
set -eu
leeway=$(realpath "$1")
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$leeway" train drift "$@" --steps 3 --dry-run --json --no-progress --output-dir "$dir/no" >"$dir/said.json" 2>"$dir/err.txt" ||
    { cat "$dir/err.txt" >&2; exit 2; }
"$leeway" train drift "$@" --steps 3 --log-every 1 --no-progress --output-dir "$dir/run" >"$dir/out.txt" 2>"$dir/err.txt" &
pid=$!
most=0
while [ -r "/proc/$pid/status" ]; do
    now=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status" 2>/dev/null || true)
    [ -z "$now" ] || [ "$now" -le "$most" ] || most=$now
    sleep 0.05
done
wait "$pid" || { cat "$dir/err.txt" >&2; exit 2; }
python3 - "$dir" "$most" <<'END'
import json, sys
directory, most = sys.argv[1], int(sys.argv[2]) * 1024
said = json.load(open(directory + "/said.json"))
rows = [json.loads(line) for line in open(directory + "/run/metrics.jsonl")]
memory = sum(said["bytes_" + k] for k in ("parameters", "activations", "packed", "features", "frozen"))
step = (rows[-1]["time_s"] - rows[0]["time_s"]) / (len(rows) - 1)
guess = said["predicted_seconds_per_step"]
print(f"memory {memory / 2**20:.1f} MiB said, {most / 2**20:.1f} MiB taken ({100 * (memory / most - 1):+.1f} %)")
print(f"a step {guess:.3f} s said, {step:.3f} s taken ({100 * (guess / step - 1):+.1f} %)")
sys.exit(abs(memory / most - 1) > 0.05 or abs(guess / step - 1) > 0.2)
END
