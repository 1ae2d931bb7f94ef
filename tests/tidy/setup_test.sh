#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the detent authors

# setup_test.sh - scripts/setup where nothing is installed: it installs what its group names, and
# without the right to do so it prints the command and fails. Commands that would change the system
# are played by scripts that write down how they were called.
set -eu
setup=$(cd "$(dirname "$0")/../.." && pwd)/scripts/setup
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

play() { # name, body
    printf '#!/bin/sh\n%s\n' "$2" >"$work/$1"
    chmod +x "$work/$1"
}
fail() {
    echo "$1:" >&2
    cat "$work/said" >&2
    exit 1
}
run() { # only what is played here and these few real commands can be found
    PATH="$work" "$work/sh" "$setup" "$@" >"$work/said" 2>&1
}

for name in sh cat mktemp rm tail env; do
    ln -s "$(command -v "$name")" "$work/$name"
done
play dpkg-query 'exit 1'
play apt-get "echo \"\$@\" >>'$work/calls'"

play id 'echo 1000'
play sudo 'exit 1'
! run build || fail "it must fail where it may not install"
grep -q 'sudo apt-get install .*libc6-dev' "$work/said" || fail "it names no command to run"
! grep -q clang "$work/said" || fail "the group build must not ask for clang"
[ ! -e "$work/calls" ] || fail "it must not install"

play id 'echo 0'
run || fail "it must install as root"
grep -q 'install .*clang-tidy.*libc6-dev' "$work/calls" || fail "it does not install it all"
! grep -q erlang "$work/calls" || fail "only the benchmark asks for its peers"
run bench || fail "it must install the peers as root"
grep -q erlang-base "$work/calls" || fail "it does not install the peers"

play apt-get 'echo no network; exit 100'
! run build || fail "it must fail when the installation does"
grep -q 'no network' "$work/said" || fail "it does not say why"
