#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# binary_self_test.sh - binary.sh must pass a small library that is right, and find each fault.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
faults=0

# make_library <source> <link option...>: both libraries from one line of C.
make_library() {
    rm -f libdetent.* detent
    echo "$1" | gcc -x c -fPIC -fvisibility=hidden -c -o a.o -
    shift
    gcc -shared "$@" -o libdetent.so a.o
    ar rc libdetent.a a.o
}

expect() {
    wanted=$1
    result=pass
    sh "$here/binary.sh" "$work" ON >/dev/null || result=fault
    if [ "$result" != "$wanted" ]; then
        echo "$2: $result instead of $wanted"
        faults=$((faults + 1))
    fi
}

soname=-Wl,-soname,libdetent.so.0
shown='__attribute__((visibility("default")))'
make_library "$shown int det_a(void) { return 1; }" "$soname"
expect pass "a good library"
make_library "$shown int det_a(void) { return 1; } int other(void) { return 1; }" "$soname"
expect fault "a name without det_"
make_library "int det_a(void) { return 1; }" "$soname"
expect fault "a library without exports"
make_library "$shown int det_a(void) { return 1; }"
expect fault "a library without soname"
make_library "$shown int det_a(void) { return 1; }" "$soname"
echo 'int main(void) { return 0; }' | gcc -x c -no-pie -Wl,-z,lazy -o detent -
expect fault "a program without hardening"
exit "$faults"
