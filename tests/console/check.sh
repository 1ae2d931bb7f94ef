#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# check.sh WORK [DETENT] - builds the console and tests it in Chromium: against the program DETENT, with
# pictures of every screen in WORK/shots, or what only a mock can show.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$1
mkdir -p "$work"
"$root/src/console/web/build" "$work/dist"
"$root/scripts/npm" "$here" "$work/npm"
export DETENT_DIST="$work/dist" DETENT_WEB="$root/build/web" DETENT_MODULES="$work/npm"
export DETENT_SHOTS="$work/shots"
if [ $# -gt 1 ]; then
    export DETENT="$2" DETENT_PROJECT="$here/project"
    exec node "$here/daemon.mjs"
fi
exec node "$here/all.mjs"
