# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway check: one small family, its JSON, and wrong use.

expect 0 check --filter softmax.softmax
out_has 'max error'
out_has 'softmax.softmax.ref'
out_has 'test(s) run'
expect 0 check --filter softmax.softmax.ref --isa ref --seed 3 --json
out_has '"softmax": true'
expect 2 check --filter no_such_kernel
err_has "no case has 'no_such_kernel' in its name"
expect 2 check --filter softmax.softmax.ref,no_such_kernel --isa ref # the others are no reason not to say it
err_has "no case has 'no_such_kernel' in its name"
expect 2 check --isa mmx
expect 2 check --filtre x
err_has 'did you mean --filter?'
