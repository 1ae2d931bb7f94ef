#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# binary.sh <build folder> <hardened: ON or OFF> - what the built files give away and how they load.
#
#   1. Every global symbol of the archive starts with det_, as do the exports of the shared library.
#   2. The shared library has its soname.
#   3. Hardened, the program is position independent, binds at start and has no executable stack.
set -eu
cd "$1"
hardened=$2
faults=0

fault() {
    echo "$*"
    faults=$((faults + 1))
}

# The names a sanitizer or the compiler adds start with two underscores.
foreign() {
    nm -g --defined-only "$@" 2>/dev/null | awk 'NF == 3 && $3 !~ /^(det_|__)/ { print $3 }'
}

names=$(foreign libdetent.a)
[ -z "$names" ] || fault "libdetent.a defines names without det_:" $names
names=$(foreign -D libdetent.so)
[ -z "$names" ] || fault "libdetent.so exports names without det_:" $names
exports=$(nm -D --defined-only libdetent.so | grep -c ' det_' || true)
[ "$exports" -gt 0 ] || fault "libdetent.so exports nothing"
readelf -dW libdetent.so | grep -q 'SONAME.*libdetent\.so\.[0-9]' || fault "no soname"

if [ "$hardened" = ON ] && [ -e detent ]; then
    facts=$(readelf -dlW detent)
    for fact in 'FLAGS_1.*NOW' 'FLAGS_1.*PIE' 'GNU_RELRO' 'GNU_STACK.* RW '; do
        echo "$facts" | grep -q "$fact" || fault "the program lacks $fact"
    done
    nm -D detent | grep -q '__stack_chk_fail' || fault "the program has no stack protector"
fi
echo "binary: $exports exports, $faults faults"
[ "$faults" -eq 0 ]
