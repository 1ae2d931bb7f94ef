#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# headers.sh <include folder> - each public header compiles alone, and twice, and all of them
# together, in C and in C++.
#
# The templates (fsm/, rec/, worker/, flow/) are not headers of their own: they expand a spec.
set -eu
folder=$1
faults=0
count=0

# compile <what it is> <headers> <compiler> <option>...
compile() {
    what=$1
    text=$(printf '#include <%s>\n' $2)
    shift 2
    if ! printf '%s\n%s\nint used;\n' "$text" "$text" |
        "$@" -D_GNU_SOURCE -I "$folder" -Wall -Wextra -Werror -fsyntax-only -; then
        echo "$what with: $*"
        faults=$((faults + 1))
    fi
}

# compile_all <what it is> <headers>
compile_all() {
    compile "$1" "$2" gcc -x c -std=c17 -Wpedantic
    compile "$1" "$2" clang -x c -std=c17 -Wpedantic
    compile "$1" "$2" g++ -x c++ -std=c++17
    compile "$1" "$2" clang++ -x c++ -std=c++17
}

headers=$(cd "$folder" && find . -name '*.h' | sed 's,^\./,,' |
    grep -Ev '^detent/(fsm|rec|worker|flow)/' | LC_ALL=C sort)
for header in $headers; do
    compile_all "$header does not compile alone" "$header"
    count=$((count + 1))
done
compile_all "the headers do not compile together" "$headers"
echo "headers: $count tried, $faults faults"
[ "$faults" -eq 0 ] && [ "$count" -gt 0 ]
