# SPDX-License-Identifier: Apache-2.0
# package.sh BUILD SOURCE DIR CC: the packages of Debian, made, looked into, unpacked together as into an empty system, and
# used from there: program, manual page, library by pkg-config. Exit code 77: no tools for it.
set -eu
build=$1
source=$2
dir=$3
cc=$4
for tool in cpack dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null 2>&1 || {
        printf 'skipped: there is no %s\n' $tool
        exit 77
    }
done
fails() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

rm -rf "$dir"
mkdir -p "$dir/root"
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$dir/debs" >"$dir/cpack.log" 2>&1 || {
    cat "$dir/cpack.log"
    fails cpack
}
[ "$(find "$dir/debs" -maxdepth 1 -name '*.deb' | wc -l)" -eq 3 ] || fails 'three packages are expected'
for deb in "$dir"/debs/*.deb; do
    dpkg-deb --info "$deb" >"$dir/info"
    dpkg-deb -c "$deb" >>"$dir/list"
    dpkg-deb -x "$deb" "$dir/root"
    case $(basename "$deb") in
    leeway_*) grep -q '^ Depends: .*libc6' "$dir/info" || fails 'leeway depends on nothing' ;;
    libleeway-dev_*)
        grep -q '^ Depends: libleeway[0-9]* (= ' "$dir/info" || fails 'dev is not tied to its library'
        # every library that a static program names is there, by its package
        sed -n 's/^Libs.private: //p' "$build/generated/leeway.pc" | tr ' ' '\n' | grep -v -x -e -lm -e -pthread | sed 's/^-l//' |
            while read -r name; do
                grep -q "^ Depends: .*\blib$name-dev" "$dir/info" || fails "dev does not depend on lib$name-dev"
            done
        ;;
    libleeway[0-9]*) grep -q '^ Depends: .*libc6' "$dir/info" || fails 'the library depends on nothing' ;;
    *) fails "what is $deb?" ;;
    esac
done
for file in bin/leeway share/man/man1/leeway.1 share/man/man1/leeway-train-ddpm.1 share/zsh/site-functions/_leeway \
    share/bash-completion/completions/leeway share/fish/vendor_completions.d/leeway.fish include/leeway.h; do
    [ -s "$dir/root/usr/$file" ] || fails "no /usr/$file in the packages"
done
if sort "$dir/list" | grep -v '/$' | awk '{print $6}' | uniq -d | grep .; then
    fails 'two packages have the same file'
fi
"$dir/root/usr/bin/leeway" check --filter gemm >"$dir/check.log" || fails 'the program of the package does not run'
lib=$(dirname "$(find "$dir/root/usr" -name libleeway.so | head -n 1)")
PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags are words to be split
"$cc" -std=c17 "$source/examples/drift_points.c" $(pkg-config --cflags --libs leeway) -lm -o "$dir/example"
"$build/make_model" plain "$dir/model"
LD_LIBRARY_PATH=$lib "$dir/example" "$dir/model" >"$dir/out" || fails 'the example does not run'
grep -q '3 of 3 rows' "$dir/out" || fails 'the example did not run the model'
printf 'ok: %s\n' "$(cd "$dir/debs" && ls ./*.deb | tr '\n' ' ')"
