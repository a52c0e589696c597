#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# uncertainty_check.sh PROGRAM DATA DIR: what are Monte-Carlo dropout and one pass of last-layer Laplace worth on
# published networks? DATA holds cifar10/ (cifar-10-batches-bin.tar.xz, cifar10h-counts.npy), encoders/ and images/ as
# LW_TEST_DATA does. ResNet-56 on 500 test pictures of CIFAR-10: errors, and the entropy of what people answered
# (CIFAR-10H); MobileNetV2 on 500 crops of ImageNet: errors, blurred pictures. Rates and sites were chosen before any
# result was seen: 1 % as the method's authors have it, at the outputs of blocks (of MobileNetV2 the last six, a third, so
# that two thirds of the network are computed once); 10 % beside it for ResNet-56.
# Writes everything into DIR and prints tables; started again it goes on where it was.
set -eu
program=$1
data=$2
dir=$3
mkdir -p "$dir"

cifar=$dir/cifar10
[ -d "$cifar" ] || {
    mkdir -p "$cifar.partial"
    tar -xJf "$data/cifar10/cifar-10-batches-bin.tar.xz" -C "$cifar.partial"
    mv "$cifar.partial" "$cifar"
}
crops=$data/images/imagenet1k_sample_224
# files are NNNN_synset.jpg; output 0 of MobileNetV2's 1,001 is the background
[ -f "$dir/classes.json" ] || {
    for f in "$crops"/*.jpg; do basename "$f"; done |
        awk '{ printf "%s\"%s\": %d", (NR > 1 ? ", " : "{"), $0, substr($0, 1, 4) + 1 } END { print "}" }' \
            >"$dir/classes.json.partial"
    mv "$dir/classes.json.partial" "$dir/classes.json"
}

# NAME, what else: one call, unless it has been made
call() {
    out=$dir/$1
    shift
    [ -f "$out/done" ] && return
    echo "leeway mc $* --output-dir $out"
    "$program" mc "$@" --num-images 500 --seed 1 --output-dir "$out" --resume
    date >"$out/done"
}

resnet="resnet56=$data/encoders/resnet_cifar10/resnet56.safetensors"
mobilenet="mobilenet_v2=$data/encoders/mobilenet_v2/mobilenet_v2_1.0_224.safetensors"
all='--sites blocks'
last='--sites blocks,last:6'
many='--passes 4,16,64 --trials 5'
few='--only validity --passes 16 --trials 1'
one="--one-pass laplace"
trained="--calibration cifar10:$cifar --calibration-images 5000"
# shellcheck disable=SC2086 # lists of words
{
    for rate in 0.01 0.1; do
        call "resnet56-$rate" "cifar10:$cifar" --split held-out --models "$resnet" --only exp0,errors $many $all \
            --dropout $rate --reference "$data/cifar10/cifar10h-counts.npy" $one $trained
        call "resnet56-$rate-worse" "cifar10:$cifar" --split held-out --models "$resnet" $few $all --dropout $rate \
            $one $trained
    done
    call mobilenet_v2-0.01-worse "folder:$crops" --models "$mobilenet" $few $last --dropout 0.01 $one \
        --calibration "folder:$crops"
    call mobilenet_v2-0.01 "folder:$crops" --models "$mobilenet" --only exp0,errors $many $last --dropout 0.01 \
        --class-map "$dir/classes.json" $one --calibration "folder:$crops"
    # thought of afterwards: calibration pictures that stand for all those the networks were trained on
    short='--only errors,validity --passes 2 --trials 1 --dropout 0.01'
    call resnet56-trained "cifar10:$cifar" --split held-out --models "$resnet" $short $all \
        --reference "$data/cifar10/cifar10h-counts.npy" $one $trained --training-images 50000
    call mobilenet_v2-trained "folder:$crops" --models "$mobilenet" $short $last --class-map "$dir/classes.json" \
        $one --calibration "folder:$crops" --training-images 1281167
}

python3 - "$dir" <<'END'
import json, os, sys


def load(*parts):
    path = os.path.join(sys.argv[1], *parts)
    return json.load(open(path)) if os.path.exists(path) else {}


def cell(value, interval):
    return "%5.3f [%5.3f, %5.3f]" % (value, *interval) if value is not None else "-"


for run in ("resnet56-0.01", "resnet56-0.1", "mobilenet_v2-0.01", "resnet56-trained", "mobilenet_v2-trained"):
    model = run.rsplit("-", 1)[0]
    exp0 = load(run, "exp0_nested_mc", model, "exp0_summary.json")
    errors = load(run, "errors", model, "errors_summary.json")
    laplace = load(run, "one_pass", model, "laplace_summary.json")
    worse = (load(run + "-worse", "validity", model, "validity_summary.json") or
             load(run, "validity", model, "validity_summary.json"))
    sites = exp0["sites"]
    print("\n%s: dropout %g at %s: %d sites, %d live (%s)" % (
        model, exp0["dropout"], sites["list"], sites["sites"], sites["live"], ", ".join(sites["live_modules"])))
    print("%d pictures, %d trials; accuracy %.3f [%.3f, %.3f], %d errors" % (
        exp0["num_images"], exp0["trials"], errors["accuracy"], *errors["accuracy_interval"], errors["errors"]))
    for t, result in exp0["results"].items() if exp0["trials"] > 1 else ():
        print("  %-5s reliability (rho, snr, icc): " % t + "; ".join(
            "%s %.3f %.3g %.3f %s" % (s, r["pairwise_spearman_median"], r["snr"], r["icc"], r["status"])
            for s, r in result["scores"].items() if s in ("trace_pre", "trace_post", "angular_var")))
    print("  one pass: calibrated in %.1f s (%d pictures), scored in %.1f s; prior precision %.4g, %.1f weights told" % (
        laplace["seconds"]["calibrate"], laplace["calibration"]["num_images"], laplace["seconds"]["score"],
        laplace["prior_precision"], laplace["effective_weights"]))
    print("  %-26s %-22s %-14s %-22s %s" % ("score", "AUROC of errors", "shuffled", "rho with people",
                                           "rises under blur 5, blur 15, down 4x, down 8x; rho with trace_pre by T"))
    people = errors.get("reference", {}).get("scores", {})
    for score, e in errors["scores"].items():
        rises = [worse["degradations"][d].get(score) for d in ("blur_r5", "blur_r15", "down_4x", "down_8x")]
        with_mc = laplace["spearman_with_mc"].get(score, {}).get("trace_pre", {})
        print("  %-26s %-22s %.3f          %-22s %s  %s" % (
            score, cell(e["auroc"], e["interval"]), e["shuffled"],
            cell(people[score]["spearman"], people[score]["interval"]) if score in people else "-",
            ", ".join(cell(r["rises"], r["interval"]) for r in rises if r),
            " ".join("%s %.3f" % (t, v) for t, v in with_mc.items())))
END
