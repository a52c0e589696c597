# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# What version 0.1 wrote (tests/fixtures/0.1) opens, resumes and computes the same.

LW_CACHE=$PWD/cache
export LW_CACHE LW_ISA
cp -r "$(dirname "$case_file")"/../fixtures/0.1/* .
level=no
for LW_ISA in avx2 neon; do # bits are those of the instruction set it was written with, and of NEON on ARM
    ! "$program" info >info.txt 2>&1 || {
        level=yes
        break
    }
done
[ "$level" = yes ] || unset LW_ISA

# same FILE HASH: the first 16 digits of its SHA-256.
same() {
    [ "$level" = yes ] || return 0
    is=$(sha256sum "$1" | cut -c1-16)
    [ "$is" = "$2" ] || fails "$last: $1 has the hash $is, version 0.1 made $2"
}

expect 0 inspect ddpm
expect 0 sample ddpm --n 2 --sampler ancestral --steps 1000 --output a.npy
same a.npy 99755ce5e6cd44fa
expect 0 sample int8 --precision int8 --n 2 --sampler ancestral --steps 1000 --output i.npy
# 0a5e7b10890a9582 as 0.1 did it: with AVX2 3x3 convolutions of int8 plans were f32, and so were values between convolutions (CHANGELOG.md);
# 0d2fd233a0f7e2b2 while what bytes are made of and a norm or a sum reads was f32
same i.npy e961e943700df96d
expect 0 train ddpm --config ddpm/config.yaml --resume --steps 6
same ddpm/checkpoints/step_0000006/diffusion_pytorch_model.safetensors ee28d80f6c571f0d
expect 0 train encoder --config encoder/config.yaml --resume --steps 6 --reschedule
# a82df5af03ce172a as 0.1 went on: with AVX2 3x3 convolutions of 12 to 23 channels were direct (CHANGELOG.md)
same encoder/checkpoints/step_0000006/model.safetensors 7d52569d3be9b3f4
expect 0 prove eval kb --policy policy --n-corruptions all --json
out_has '"MRR": 0.625'
expect 0 prove train kb --config policy/config.yaml --resume --steps 3 --reschedule
# 3b6c080f85923c4c as 0.1 went on: it drew a query's corruptions with the number that drew the query (CHANGELOG.md)
same policy/checkpoints/step_0000003/model.safetensors 148a9946d518eeb8
