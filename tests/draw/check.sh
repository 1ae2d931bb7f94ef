#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# check.sh <draw_samples> <work folder> - runs check.mjs over fresh samples. Mermaid is installed
# into the work folder, and again only when the lock file has changed.
set -eu

samples=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)

for command in node npm dot; do
    if ! command -v "$command" >/dev/null; then
        echo "draw.parsers needs $command, which is not installed: run scripts/setup" >&2
        exit 1
    fi
done
if grep -q '://' "$here/package-lock.json"; then
    echo "package-lock.json names a host: see .npmrc, and leave out what funds a package" >&2
    exit 1
fi

mkdir -p "$work"
# node looks for packages from where the script lies.
cp "$here/check.mjs" "$here/package.json" "$here/.npmrc" "$work"
if ! cmp -s "$here/package-lock.json" "$work/installed.json"; then
    rm -f "$work/installed.json"
    cp "$here/package-lock.json" "$work"
    if ! (cd "$work" && npm ci --ignore-scripts --no-progress >npm.log 2>&1); then
        tail -n 20 "$work/npm.log" >&2
        exit 1
    fi
    cp "$here/package-lock.json" "$work/installed.json"
fi

rm -rf "$work/samples"
mkdir "$work/samples"
"$samples" "$work/samples"
exec node "$work/check.mjs" "$work/samples"
