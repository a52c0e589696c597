#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gen_docs.sh PROGRAM           writes docs/cli.md (from PROGRAM's option tables) and docs/ops.md (from src/ir)
# gen_docs.sh --check PROGRAM   writes nothing; fails and shows the difference when one of them is stale
set -eu
check=no
if [ "${1-}" = --check ]; then
    check=yes
    shift
fi
if [ $# -ne 1 ]; then
    echo "usage: tools/gen_docs.sh [--check] PROGRAM" >&2
    exit 2
fi
case $1 in
/*) program=$1 ;;
*) program=$PWD/$1 ;;
esac
cd -- "$(dirname -- "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

head_of() { # TITLE
    # shellcheck disable=SC2016 # backquotes are Markdown here
    printf '# %s\n\nWritten by `tools/gen_docs.sh build/leeway`; do not edit.\n\n' "$1"
}

# FILE of the record or lowering, searched by its first line.
file_with() { # PATTERN FILES...
    pattern=$1
    shift
    grep -lE -- "$pattern" "$@" | head -n 1
}

# The word behind ".FIELD =" in the record of op NAME in FILE; flags keep their bars.
record_field() { # NAME FILE FIELD
    awk -v start="^const lw_op_def lw_op_$1 = " -v field="$3" '
        $0 ~ start { on = 1 }
        on { text = text " " $0 }
        on && /^};/ { exit }
        END {
            if (match(text, "\\." field " = [^,}]*")) {
                value = substr(text, RSTART, RLENGTH)
                sub(/^[^=]*= */, "", value)
                sub(/ *$/, "", value)
                print value
            }
        }' "$2"
}

ops_rows() {
    sed -n 's/^OP(\([A-Z0-9_]*\), \([a-z0-9_]*\), "\(.*\)")$/\2	\3/p' src/ir/ops.def |
        while IFS='	' read -r name doc; do
            file=$(file_with "^const lw_op_def lw_op_$name = " src/ir/ops/*.c)
            lowering=$(file_with "cpu_lower_$name\\(cpu_lower \\*" src/backend/cpu/*.c)
            flags=$(record_field "$name" "$file" flags | sed 's/LW_OPF_//g; s/ | /, /g' | tr '[:upper:]' '[:lower:]')
            case $(record_field "$name" "$file" grad) in
            lw_grad_none | '') grad=none ;;
            *) grad=yes ;;
            esac
            # Leaves and aliases lower to an error: nothing is run for them.
            case $flags in
            *leaf* | *alias*) lowering= ;;
            esac
            doc=$(printf '%s' "$doc" | sed 's/|/\\|/g')
            # shellcheck disable=SC2016
            printf '| `%s` | %s | %s | %s | `%s` | %s |\n' "$name" "$doc" "$grad" "$flags" \
                "${file#src/ir/}" "${lowering:+\`${lowering#src/}\`}"
        done
}

# EW(name, arity, ref, body, slope) rows over one or more lines -> name, arity, ref.
ewops_rows() {
    sed -e 's:/\*.*\*/::' -e '/^\/\*/,/\*\/$/d' src/ir/ewops.def | awk '
        { row = row (row == "" ? "" : " ") $0 }
        /\)$/ && row ~ /^EW\(/ {
            part = 1; depth = 0
            split("", text)
            for (i = 4; i < length(row); i++) {
                c = substr(row, i, 1)
                depth += (c == "(") - (c == ")")
                if (c == "," && depth == 0) { part++; i++; continue }
                text[part] = text[part] c
            }
            gsub(/  +/, " ", text[3])
            gsub(/\|/, "\\|", text[3])
            printf "| `%s` | %s | `%s` |\n", text[1], text[2], text[3]
            row = ""
        }
        row !~ /^EW\(/ { row = "" }'
}

ops_text() {
    head_of 'Ops'
    # shellcheck disable=SC2016
    cat <<'END'
What a graph can say. Rows come from `src/ir/ops.def`, one record per op in `src/ir/ops/`. *Gradient*: `yes` when
the record has a rule that appends the op's vector-Jacobian product to the graph; `none` stops gradients (the
`*_grad` ops are themselves such rules' products). *Flags*: `leaf` nothing to run; `alias` output 0 is input 0's
memory; `inplace` output 0 may take over input 0's memory; `random` depends on the step, never folded or prepared;
`any_out` output 0 too is left out when nobody reads it.

| op | what it computes | gradient | flags | record in `src/ir/` | CPU lowering in `src/` |
|---|---|---|---|---|---|
END
    ops_rows
    # shellcheck disable=SC2016
    cat <<'END'

## Scalar operations of `ew`

The vocabulary of the elementwise op's tile programs, from `src/ir/ewops.def`. Operands are `a`, `b`, `c`; `imm` is the
constant of the instruction. The expression is the reference, computed in double. NaN: `max`, `min` and `relu` hand it
on, `step(NaN)` is 0 and `select(NaN, b, c)` is `c`. `ew_near(a)` is `a`, kept between -1e4 and 1e4. A row also has the slope, from
which gradients are made.

| operation | operands | reference |
|---|---|---|
END
    ewops_rows
}

cli_text() {
    head_of 'Command line'
    "$program" help --markdown
}

cli_text >"$tmp/cli.md"
ops_text >"$tmp/ops.md"
status=0
for name in cli ops; do
    if [ $check = no ]; then
        cp "$tmp/$name.md" "docs/$name.md"
    elif ! diff -u "docs/$name.md" "$tmp/$name.md"; then
        echo "docs/$name.md is stale: run tools/gen_docs.sh build/leeway" >&2
        status=1
    fi
done
exit $status
