#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# headers_self_test.sh - headers.sh must find the fault of each header in bad_headers/.
set -eu
cd "$(dirname "$0")"
faults=0
for folder in bad_headers/*; do
    if sh headers.sh "$folder" >/dev/null 2>&1; then
        echo "$folder passed, but must not"
        faults=$((faults + 1))
    fi
done
exit "$faults"
