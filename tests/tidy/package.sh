#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# package.sh <build folder> - installs into a fresh folder and builds a program against that:
# through pkg-config with the shared and with the static library, through CMake, and as the program
# that is installed begins one. That one must run without LD_LIBRARY_PATH.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake --install "$build" --prefix "$prefix" >"$work/log" || {
    cat "$work/log"
    exit 1
}
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name detent.pc)")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
version=$(pkg-config --modversion detent)

try() {
    said=$("$@")
    if [ "$said" != "$version" ]; then
        echo "$1 says $said, detent.pc says $version"
        exit 1
    fi
}

cc -o "$work/shared" "$here/consumer/consumer.c" $(pkg-config --cflags --libs detent)
try env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$work/shared"
cc -o "$work/static" "$here/consumer/consumer.c" $(pkg-config --cflags detent) \
    "$LD_LIBRARY_PATH/libdetent.a" $(pkg-config --static --libs-only-other --libs-only-l detent |
    sed 's/-ldetent//')
try "$work/static"
cc -shared -fPIC -Wall -Werror -Wl,-z,defs -o "$work/sender.so" "$here/consumer/sender.c" \
    $(pkg-config --cflags detent)
{
    cmake -S "$here/consumer" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$work/cmake"
} >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
try "$work/cmake/with_shared"
try "$work/cmake/with_static"
(cd "$work" && PATH=$prefix/bin:$PATH && detent new job --c && cd job &&
    env -u LD_LIBRARY_PATH make run test) >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
echo "package: four programs say $version, and a new one runs"
