# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Help, versions, wrong usage and the exit codes of the front end.

expect 0 --help
out_has 'Usage: leeway COMMAND'
out_has 'info'
out_has '--threads N'
expect 2
err_has 'no command given'
expect 0 --version
out_has 'leeway '
"$program" --version | cmp -s - "$out" || fails '--version'
expect 0 -V
"$program" --version | cmp -s - "$out" || fails '-V is not --version'
expect 0 info --version
"$program" --version | cmp -s - "$out" || fails 'info --version is not --version'
expect 0 sample -V
"$program" --version | cmp -s - "$out" || fails 'sample -V is not --version'
expect 0 info -h
"$program" info --help | cmp -s - "$out" || fails '-h is not --help'
expect 0 -h
out_has 'Usage: leeway COMMAND'
expect 0 prove -h
out_has 'prove eval'
expect 2 info -x
err_has 'unknown option -x'
expect 2 info --bind cores --threads 4096
err_has 'use --threads'
expect 2 info --bind threads
err_has 'none'
expect 0 info --bind cores
expect 2 sample x
err_has 'missing option --output: see --help'
expect 0 help info
out_has 'Usage: leeway info'
expect 0 info --help
out_has 'Global options:'
expect 0 bench --help # ranges and notes are for people (the suites are one word of 146), processes' own options are not shown
out_has '  --no-reference                  do not compare'
out_has 'do not show progress'
if grep -q -e 'e+' -e '--child' -e '.\{148\}' "$out"; then
    fails "bench --help: 1e+06, --child or a long line"
fi

expect 2 inof
err_has "did you mean 'info'?"
expect 2 info --thraeds 2
err_has 'did you mean --threads?'
expect 2 info --threads 0
err_has '--threads 0: must be 1 to 4096'
expect 2 prove bench data --rows 0
err_has '--rows 0: must be 1 to 1048576 states'
expect 2 info --threads
err_has '--threads needs a value'
expect 2 info word
err_has "unexpected word 'word'"
expect 6 info --device cuda:1
expect 2 info --device tpu

expect 0 info --json --threads 3
out_has '"threads": 3'
expect 0 --threads 5 info --json
out_has '"threads": 5'

# A config file sets the same options, argv wins, wrong keys and values are named.
printf 'threads: 2\nseed: 7\n' >ok.yaml
expect 0 info --json --config ok.yaml
out_has '"threads": 2'
expect 0 info --json --config ok.yaml --threads 4
out_has '"threads": 4'
printf 'treads: 2\n' >wrong.yaml
expect 2 info --config wrong.yaml
err_has 'wrong.yaml: treads: unknown key: did you mean threads?'
printf 'threads: [1\n' >broken.yaml
expect 3 info --config broken.yaml
err_has 'broken.yaml'
expect 4 info --config none.yaml
err_has 'none.yaml'

# Kernels by environment; a full disk is an error, not silence.
LW_LOG=loud expect 2 info
err_has "LW_LOG: log level 'loud' is unknown"
LW_ISA=ref "$program" info >"$out" || fails 'LW_ISA=ref'
out_has 'isa       ref'
LW_ISA=mmx "$program" info >"$out" 2>"$err" && fails 'LW_ISA=mmx was accepted'
err_has 'LW_ISA=mmx is unknown'
"$program" info >/dev/full 2>"$err"
[ $? -eq 4 ] || fails 'a full stdout is exit code 4'

# Names of diffusers, timm and accelerate are answered with ours, here and in a config file.
for name in train_batch_size max_train_steps mixed_precision resolution max_grad_norm train_data_dir checkpointing_steps \
    resume_from_checkpoint checkpoints_total_limit use_ema logger epochs num_epochs gradient_accumulation_steps \
    lr_scheduler lr_warmup_steps adam_weight_decay adam_epsilon ddpm_num_steps dataset_name random_flip workers amp \
    clip-grad model-ema-decay log-interval checkpoint-hist img-size report_to push_to_hub num_processes \
    pretrained_model_name_or_path initial-checkpoint; do
    expect 2 train ddpm "--$name" 1
    err_has "unknown option --$name: "
    grep -q 'see --help\|did you mean\|elsewhere' "$err" && fails "--$name gets no answer"
done
expect 2 sample x --num_inference_steps 20
err_has 'unknown option --num_inference_steps: that is --steps here'
expect 2 sample x --num-images-per-prompt 4
err_has 'that is --num-images here'
expect 2 train ddpm --ddpm_num_inference_steps=20
err_has 'that is --ddim-steps here'
expect 2 info --train_batch_size 4
err_has 'elsewhere here that is --batch-size'
printf 'train_batch_size: 4\n' >theirs.yaml
expect 2 train ddpm --config theirs.yaml
err_has 'theirs.yaml: train_batch_size: unknown key: that is --batch-size here'
expect 2 train drfit
err_has "unknown command 'train drfit': did you mean 'train drift'?"
expect 2 trian drift
err_has "unknown command 'trian': did you mean 'train drift'?"
expect 2 train zzzzzz
err_has "'train' needs one of autoencoder, ddpm, drift, encoder, flow, toy behind it"

# Completion says what the tables say.
expect 2 completion tcsh
expect 0 completion zsh
out_has "'train drift '*) _arguments"
expect 0 completion fish
out_has "complete -c leeway -n '__leeway_in train ddpm' -l scheduler -x -a 'constant cosine'"
expect 0 completion bash
if command -v bash >/dev/null; then
    cp "$out" complete.bash
    cat >complete.sh <<'END'
. ./complete.bash
try() { # WORDS...: what is offered for the last of them
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _leeway
    echo "$*: ${COMPREPLY[*]}"
}
try leeway tr
try leeway train ''
try leeway data cache ''
try leeway train ddpm --sched
try leeway --quiet train ddpm --scheduler ''
try leeway completion f
END
    bash complete.sh >"$out" 2>"$err" || fails 'the completion of bash does not run'
    out_has 'leeway tr: train'
    out_has 'leeway train : autoencoder ddpm drift encoder flow toy'
    out_has 'leeway data cache : list clear'
    out_has 'leeway train ddpm --sched: --scheduler'
    out_has 'leeway --quiet train ddpm --scheduler : constant cosine'
    out_has 'leeway completion f: fish'
fi
