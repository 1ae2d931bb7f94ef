#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# headers.sh <include folder> - each public header compiles alone, and twice, in C and in C++.
#
# The templates (fsm/, rec/, worker/, flow/) are not headers of their own: they expand a spec.
set -eu
folder=$1
faults=0
count=0

compile() {
    if ! printf '#include <%s>\n#include <%s>\nint used;\n' "$header" "$header" |
        "$@" -D_GNU_SOURCE -I "$folder" -Wall -Wextra -Werror -fsyntax-only -; then
        echo "$header does not compile alone with: $*"
        faults=$((faults + 1))
    fi
}

for header in $(cd "$folder" && find . -name '*.h' | sed 's,^\./,,' |
    grep -Ev '^detent/(fsm|rec|worker|flow)/' | LC_ALL=C sort); do
    compile gcc -x c -std=c17 -Wpedantic
    compile clang -x c -std=c17 -Wpedantic
    compile g++ -x c++ -std=c++17
    compile clang++ -x c++ -std=c++17
    count=$((count + 1))
done
echo "headers: $count tried, $faults faults"
[ "$faults" -eq 0 ] && [ "$count" -gt 0 ]
