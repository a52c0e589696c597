#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gen_docs.sh PROGRAM > docs/cli.md: the help texts, written from the option tables.
set -eu
# shellcheck disable=SC2016 # backquotes are Markdown here
printf '# Command line\n\nWritten by `tools/gen_docs.sh build/leeway > docs/cli.md`; do not edit.\n\n'
"$1" help --markdown
