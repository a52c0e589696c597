# SPDX-License-Identifier: Apache-2.0
"""What was measured as markdown: one line per row, one per setting, and what was left out."""
import peer_rows
from peer_common import median, spread

MOST_ERROR = 0.15  # relative; int8 with calibration is at a few hundredths


def ms(x):
    return "%.0f" % x if x >= 1000 else "%.1f" % x if x >= 10 else "%.2f" % x


def timing(v):
    return "%s (%.1f %%, %d)" % (ms(median(v)), spread(v), len(v))


def error(result, name):
    e = result["errors"].get(name)
    return "" if e is None else "%.1e" % e


def wrong(result, name):
    """Too far from the result to count as a way to compute it."""
    e = result["errors"].get(name)
    return e is not None and not e <= MOST_ERROR


def best(result):
    """Name of the fastest peer's setting, or None."""
    peers = [n for n in result["samples_ms"] if n != "leeway" and not wrong(result, n)]
    return min(peers, key=lambda n: median(result["samples_ms"][n])) if peers else None


def ratio(result, name):
    if not {name, "leeway"} <= set(result["samples_ms"]):
        return None
    return median(result["samples_ms"][name]) / median(result["samples_ms"]["leeway"])


def judge(row, result):
    """Where the row stands against what was asked for."""
    if not row.must or "leeway" not in result["samples_ms"]:
        return ""
    if row.kind == "startup":
        t = median(result["samples_ms"]["leeway"])
        word = "stretch" if t <= row.stretch else "must" if t <= row.must else "short"
        return "%s (%g / %g ms)" % (word, row.must, row.stretch)
    r = ratio(result, best(result))
    if r is None:
        return ""
    word = "stretch" if r >= row.stretch else "must" if r >= row.must else "short"
    return "%s (%g / %g)" % (word, row.must, row.stretch)


def line(row, result, floor):
    name, leeway = best(result), result["samples_ms"].get("leeway")
    r = ratio(result, name)
    cells = [row.title, timing(leeway) if leeway else "not measured",
             "%s: %s" % (name, timing(result["samples_ms"][name])) if name else "not measured",
             "%.2f" % r if r else "", judge(row, result),
             ms(floor) if floor else "",
             "%.0f %%" % (100 * floor / median(leeway)) if floor and leeway else "",
             error(result, "leeway"), error(result, name) if name else ""]
    return "| " + " | ".join(cells) + " |"


HEAD = ("| case | leeway, ms (spread, samples) | best peer, ms | ratio | asked for: must / stretch "
        "| floor, ms | floor / leeway | error, leeway | error, peer |\n"
        "|---|---|---|---|---|---|---|---|---|")


def floor_of(row, peak):
    """Milliseconds of the row's FLOPs at the measured peak of its type."""
    if row.kind == "startup" or not peak:
        return None
    return 1e-6 * peer_rows.flops(row) / peak[peer_rows.type_of(row)]


def settings(rows, results):
    yield "| case | setting | ms (spread, samples) | error |"
    yield "|---|---|---|---|"
    for row in rows:
        result = results[row.name]
        for name, v in sorted(result["samples_ms"].items(), key=lambda kv: median(kv[1])):
            yield "| %s | %s | %s | %s |" % (row.title, name, timing(v),
                error(result, name) + (" (does not count)" if wrong(result, name) else ""))


def more(rows, results, peak):
    """Sentences that need two rows."""
    got_all = lambda row: results.get(row, {}).get("samples_ms", {})
    got = lambda row, name="leeway": got_all(row).get(name)
    if got("forward_int8_b8") and "forward_f32_b8" in results:
        name = best(results["forward_f32_b8"])
        if name:
            yield ("int8 at batch 8 is %.2f times as fast as the best f32 peer (%s); asked for: "
                   "3.0, hoped for 3.5." % (median(got("forward_f32_b8", name))
                                            / median(got("forward_int8_b8")), name))
    for name in got_all("sample_50"):
        if got("sample_1", name):
            r = median(got("sample_50", name)) / median(got("sample_1", name))
            yield ("%s: DDIM-50 takes %.1f times as long as one step, %+.1f %% off 50 evaluations."
                   % (name, r, 2 * (r - 50)))
    for row in rows:
        eager = ratio(results[row.name], "PyTorch eager") if row.kind == "field" else None
        if eager:
            yield ("%s: %.2f times as fast as eager PyTorch, %.2f times the floor."
                   % (row.title, eager, median(got(row.name))
                      / floor_of(row, peak)))
    for row in rows:
        memory = results[row.name]["memory_bytes"]
        if row.kind == "field" and row.shape[0] == 1 and memory.get("leeway"):
            b, n, nu, npos, c = row.shape
            yield ("%s: leeway holds %.1f MiB, inputs and outputs included (N x M alone would be "
                   "%.0f MiB)." % (row.title, memory["leeway"] / 2 ** 20,
                                   4.0 * n * (n + nu + npos) / 2 ** 20))


def markdown(info, rows, results):
    out = ["### Leeway beside its peers", "", info["text"], "", HEAD]
    out += [line(r, results[r.name], floor_of(r, info["peak_gflops"])) for r in rows]
    out += ["",
            "Every figure is a median; the spread is between the 10th and the 90th percentile. The "
            "ratio is the best peer's time over leeway's. The floor is the time that the row's "
            "multiplications and additions take at the measured peak (U-Net: %.2f GFLOP a picture, "
            "%.2f with the border taps that multiply zeros; a training step three times that); "
            "fewer multiplications (Winograd) can go below it. Errors are relative, L2, against "
            "PyTorch in double with the same weights; settings with more than %g do not count as "
            "peers." % (
                peer_rows.count_unet().real / 1e9, peer_rows.count_unet().nominal / 1e9,
                MOST_ERROR), ""]
    for sentence in more(rows, results, info["peak_gflops"]):
        out += [sentence, ""]
    out += ["#### Every setting", ""] + list(settings(rows, results)) + [""]
    left = {}
    for r in rows:
        for name, why in results[r.name]["skipped"].items():
            left.setdefault((name, why), []).append(r.name)
    if left:
        out += ["#### Not measured", ""]
        out += ["- %s (%s): %s" % (name, ", ".join(where), why)
                for (name, why), where in left.items()] + [""]
    return "\n".join(out)
