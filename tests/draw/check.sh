#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# check.sh <draw_samples> <work folder> - runs check.mjs over fresh samples. Mermaid is installed
# into the work folder, and again only when the lock file has changed.
set -eu

samples=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)

for command in node dot; do
    if ! command -v "$command" >/dev/null; then
        echo "draw.parsers needs $command, which is not installed: run scripts/setup" >&2
        exit 1
    fi
done
"$here/../../scripts/npm" "$here" "$work"
# node looks for packages from where the script lies.
cp "$here/check.mjs" "$work"

rm -rf "$work/samples"
mkdir "$work/samples"
"$samples" "$work/samples"
exec node "$work/check.mjs" "$work/samples"
