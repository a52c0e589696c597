#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What Leeway computes on 64-bit ARM, checked on any Debian: built by a cross compiler with Debian's libraries for arm64, run by
# qemu. It says whether results are right, never how fast they come.
#
#   tools/arm_check.sh [BUILD]            all kernels at NEON and I8MM, then the tests but those that take long (two hours)
#   tools/arm_check.sh --sample [BUILD]   kernels alone, some of them (two minutes)
#
# BUILD (build-arm64, build-arm64-sample): the build and, in BUILD/root, the file system. Needs gcc-aarch64-linux-gnu, qemu-user
# and mmdebstrap; for the tests also that the kernel starts programs of ARM by qemu (qemu-user-static and binfmt-support).
# Exit 77: one of these is missing, or there is no network.
set -eu
cd -- "$(dirname -- "$0")/.."

sample=no
default="build-arm64"
[ "${1:-}" != --sample ] || {
    sample=yes
    default="build-arm64-sample"
    shift
}
build=${1:-$default}
mkdir -p "$build"
build=$(cd -- "$build" && pwd)
root=$build/root

for tool in aarch64-linux-gnu-gcc qemu-aarch64 mmdebstrap; do
    command -v "$tool" >/dev/null || {
        echo "skipped: there is no $tool (apt-get install gcc-aarch64-linux-gnu qemu-user mmdebstrap)"
        exit 77
    }
done

# The libraries that ./run installs, of the same release of Debian; in the sample those without which nothing is configured.
libraries=$(sed -n '/^packages=/,/"$/p' run | tr -d '"' | tr ' ' '\n' | sed 's/^packages=//' | grep -- '-dev$')
options=
if [ "$sample" = yes ]; then
    libraries=$(printf '%s\n' "$libraries" | grep -vE 'libav|libsw|libwebsockets|libwebp')
    options='-DLW_LIBAV=OFF -DLW_SERVE=OFF -DLW_WEBP=OFF'
fi
if [ ! -f "$root.complete" ]; then
    rm -rf "$root"
    # shellcheck disable=SC2046,SC2086
    mmdebstrap --quiet --variant=extract --architectures=arm64 --skip=check/qemu \
        --include="$(echo $libraries | tr ' ' ,)" "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$root" || {
        echo 'skipped: the libraries of arm64 could not be fetched'
        exit 77
    }
    : >"$root.complete"
fi

export PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_LIBDIR="$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig"
# shellcheck disable=SC2086
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLW_WERROR=ON -DLW_CUDA=OFF -DCMAKE_SYSROOT="$root" \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/tools/arm64.cmake" $options >"$build/configure.log" || {
    cat "$build/configure.log"
    exit 1
}

export QEMU_LD_PREFIX="$root" # where programs of ARM find their libraries
if [ "$sample" = yes ]; then
    families='simd random cast softmax pixels reduce stats resample kernels_gemm'
    # shellcheck disable=SC2046,SC2086
    cmake --build "$build" --target $(printf 'test_%s ' $families)
    for family in $families; do
        filter=
        [ "$family" != kernels_gemm ] || filter='--filter gemm.sizes,gemm.bytes_alike'
        for level in neon i8mm; do
            # shellcheck disable=SC2086
            qemu-aarch64 "$build/test_$family" --isa $level $filter
        done
    done
    exit
fi

cmake --build "$build"
qemu-aarch64 "$build/leeway-check" --filter .neon,.i8mm
[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || {
    echo "the kernels are right; the tests were left out: the kernel does not start programs of ARM (apt-get install" \
        "qemu-user-static binfmt-support)"
    exit 77
}
long='test_train_bits|test_eval_sets|test_golden_(step|unet|rehearsal)|cli_compare|cli_demo|cli_bench|cli_stream_soak'
ctest --test-dir "$build" --output-on-failure -j 2 --timeout 3600 \
    -E "^($long|api_|onnx_check|test_cuda|cli_cuda|cuda_)"
