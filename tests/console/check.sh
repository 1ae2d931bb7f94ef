#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# check.sh WORK [DETENT [SUITE.mjs]] - builds the console and tests it in Chromium: against the
# program DETENT, with pictures of every screen in WORK/shots; without it what only a mock can bring
# about.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$1
mkdir -p "$work"
# Both tests may begin at the same time, and share what is built here.
exec 8>"$work/lock"
flock 8
"$root/src/program/api/web/build" "$work/dist"
"$root/scripts/npm" "$here" "$work/npm"
exec 8>&-
export DETENT_DIST="$work/dist" DETENT_WEB="$root/build/web" DETENT_MODULES="$work/npm"
export DETENT_SHOTS="$work/shots"
if [ $# -gt 1 ]; then
    export DETENT="$2" DETENT_PROJECT="$here/project"
    exec node "$here/${3:-daemon.mjs}"
fi
exec node "$here/all.mjs"
