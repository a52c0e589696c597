# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# leeway help --man: a page for every command, all its options, rendered without a complaint.

expect 2 help --man
err_has 'say the folder for the pages'
expect 2 help --man a b
: >file
expect 4 help --man file/pages
expect 0 help --man new/pages
[ ! -s "$out" ] || fails 'pages on stdout'

expect 0 help
sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' "$out" >commands
[ "$(wc -l <commands)" -ge 30 ] || fails 'commands not found in help'
ls new/pages >pages
[ "$(wc -l <pages)" -eq "$(($(wc -l <commands) + 1))" ] || fails 'one page for each command, and one for all'
while read -r command; do
    page=new/pages/leeway-$(printf '%s' "$command" | tr ' ' -).1
    [ -s "$page" ] || fails "no $page"
    expect 0 $command --help
    sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' "$out" | while read -r option; do
        grep -qF "$(printf '\\fB%s\\fR' "$(printf '%s' "$option" | sed 's/-/\\-/g')")" "$page" || {
            printf 'FAILED: %s lacks %s\n' "$page" "$option"
            exit 1
        }
    done || exit 1
    grep -qF "$(printf '\\fB%s\\fR' "$(basename "$page" .1 | sed 's/-/\\-/g')")(1)" new/pages/leeway.1 ||
        fails "leeway.1 does not name $page"
done <commands

if ! command -v groff >/dev/null 2>&1; then
    printf 'not rendered: there is no groff\n'
else
    for page in new/pages/*.1; do
        groff -ww -b -man -Tutf8 -P-c "$page" >text 2>complaints || fails "groff: $page"
        [ ! -s complaints ] || fails "groff: $(head -n 3 complaints)"
    done
    groff -man -Tascii -P-cbou new/pages/leeway-train-ddpm.1 >text 2>/dev/null
    grep -q '^ *leeway-train-ddpm - ' text || fails 'no name in the page of train ddpm'
    grep -q '^ *--batch-size N' text || fails 'no --batch-size N in the page of train ddpm'
fi
