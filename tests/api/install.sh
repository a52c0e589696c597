# SPDX-License-Identifier: Apache-2.0
# install.sh BUILD SOURCE DIR CC: installs, moves the tree, builds the example by pkg-config and by CMake, shared
# and static, runs them, and checks that the libraries give away leeway.h's names and no others.
set -eu
export LC_ALL=C # one order of names everywhere
build=$1
source=$2
dir=$3
cc=$4

rm -rf "$dir"
mkdir -p "$dir"
cmake --install "$build" --prefix "$dir/first" >"$dir/install.log"
mv "$dir/first" "$dir/moved" # nothing in it may know where it was
prefix=$dir/moved
"$prefix/bin/leeway" --version

fails() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

lib=$(dirname "$(find "$prefix" -name libleeway.so | head -n 1)")
sed -n 's/^LW_API.*[ *]\(lw_[a-z_]*\)(.*/\1/p' "$source/include/leeway.h" | sort >"$dir/declared"
[ "$(wc -l <"$dir/declared")" -ge 20 ] || fails 'leeway.h: functions not found'
nm -D --defined-only "$lib/libleeway.so" | awk '$2 == "T" || $2 == "D" || $2 == "B" || $2 == "R" {sub(/@.*/, "", $3); print $3}' |
    sort >"$dir/exported"
cmp "$dir/declared" "$dir/exported" || fails 'libleeway.so exports other names than leeway.h declares'
# The list of names and versions may grow at its end, with leeway.map; a name that goes away or gets another version needs
# another soname (README, From C).
nm -D --defined-only --with-symbol-versions "$lib/libleeway.so" | awk '$2 == "T" {sub(/@@/, " ", $3); print $3}' |
    sort -k 2,2 -k 1,1 >"$dir/symbols"
diff "$source/tests/api/symbols.txt" "$dir/symbols" || fails 'the symbols of libleeway.so are not tests/api/symbols.txt'
while read -r name; do
    grep -q "^- .*\`$name\`" "$source/CHANGELOG.md" || fails "CHANGELOG.md has no line for $name"
done <"$dir/declared"
nm -g --defined-only "$lib/libleeway.a" | awk 'NF == 3 {print $3}' | sort >"$dir/archived"
cmp "$dir/declared" "$dir/archived" || fails 'libleeway.a gives away other names than leeway.h declares'
# What a program that links the library loads with it (docs/adr/0022-a-small-library.md).
needed=$(readelf -d "$lib/libleeway.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*/\1/p' | sort | tr '\n' ' ')
case $needed in
'libc libjansson libm ' | ld-linux-*' libc libjansson libm ') ;;
*) fails "libleeway.so needs $needed: not libc libjansson libm alone" ;;
esac
if grep -rIl -e "$dir/first" -e "$build" "$lib/pkgconfig" "$lib/cmake" "$prefix/include"; then
    fails 'an installed file names the build or the first prefix'
fi

# The header for the oldest and newest programs that include it. C++ where there is a compiler for it.
printf '#include <leeway.h>\nint main(void)\n{\n    return lw_api_version() < 1;\n}\n' >"$dir/header.c"
cp "$dir/header.c" "$dir/header.cpp"
for standard in c89 c99 c17; do
    "$cc" -std=$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$prefix/include" "$dir/header.c" ||
        fails "leeway.h is not $standard"
done
if command -v c++ >/dev/null 2>&1; then
    for standard in c++98 c++11 c++20; do
        c++ -std=$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$prefix/include" "$dir/header.cpp" ||
            fails "leeway.h is not $standard"
    done
fi

"$build/make_model" plain "$dir/model"
check() {
    LD_LIBRARY_PATH=$lib "$1" "$dir/model" >"$dir/out" || fails "$1: status $?"
    grep -q 'step 40' "$dir/out" || fails "$1: no last step"
    grep -q '3 of 3 rows' "$dir/out" || fails "$1: the model did not run"
}

# pkg-config: flags are words to be split
export PKG_CONFIG_PATH="$lib/pkgconfig"
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror "$source/examples/drift_points.c" \
    $(pkg-config --cflags --libs leeway) -lm -o "$dir/by_pkg_config"
check "$dir/by_pkg_config"
mkdir "$dir/static"
cp "$lib/libleeway.a" "$dir/static"
# shellcheck disable=SC2046
"$cc" -std=c17 "$source/examples/drift_points.c" -L"$dir/static" $(pkg-config --static --cflags --libs leeway) \
    -o "$dir/by_pkg_config_static"
check "$dir/by_pkg_config_static"
if ldd "$dir/by_pkg_config_static" | grep -q libleeway; then
    fails 'the static example needs the shared library'
fi

# As the README says it: the installed example, with the library's folder in the program.
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror "$prefix/share/doc/leeway/examples/sample_preview.c" \
    $(pkg-config --cflags --libs leeway) -Wl,-rpath,"$(pkg-config --variable=libdir leeway)" -o "$dir/by_rpath"
"$dir/by_rpath" "$dir/model" 3 >"$dir/out" || fails "sample_preview by rpath: status $?"
grep -q 'evaluation 3 of 3' "$dir/out" || fails 'sample_preview by rpath: no last preview'

cmake -G Ninja -S "$source/examples" -B "$dir/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >"$dir/cmake.log"
cmake --build "$dir/cmake" >>"$dir/cmake.log"
check "$dir/cmake/drift_points"
LD_LIBRARY_PATH=$lib "$dir/cmake/sample_preview" "$dir/model" 3 >"$dir/out" || fails "sample_preview: status $?"
grep -q 'evaluation 3 of 3' "$dir/out" || fails 'sample_preview: no last preview'
check "$dir/cmake/drift_points_static"
printf 'ok: installed, moved, built by pkg-config and CMake\n'
