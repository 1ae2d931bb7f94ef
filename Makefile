# SPDX-License-Identifier: MIT
# Copyright the detent authors

# The front door: each target installs what it needs, builds a preset and runs something in it.
#
#   make            the program build/release/detent and the libraries beside it
#   make run        shows `detent up`: five services and a slot
#   make demo       orders on SQLite, kill -9, and books that balance; DEMO_ARGS=...
#   make test       all tests: asan, tsan, then release      make check    format, lint, clang
#   make bench      BENCH_ARGS=...                           make fuzz     FUZZ_SECONDS=10 each
#   make sim        SIM_SEEDS=...                            make nightly  everything, for longer
#   make site       the documentation as a site              make figures  its figures
#   make coverage   which lines the unit tests reach         make install  PREFIX= DESTDIR=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 10
SIM_SEEDS ?= 1000
NIGHTLY_FUZZ_SECONDS ?= 600
NIGHTLY_SIM_SEEDS ?= 100000
NIGHTLY_CRASH_STEPS ?= 600
NIGHTLY_KILL_STEPS ?= 80
NIGHTLY_NODES_TIMES ?= 10
NIGHTLY_JOURNAL_SEEDS ?= 50000
NIGHTLY_FLOW_KILLS ?= 2000
NIGHTLY_TOTALS_KILLS ?= 1000
NIGHTLY_EXPRESSION_TIMES ?= 500000
NIGHTLY_CONTRACT_EXAMPLES ?= 200

.NOTPARALLEL:
.PHONY: release run demo test peers bench figures site fuzz sim check nightly coverage install clean
.PHONY: setup setup-all

release: setup
	@scripts/build release product

setup:
	@scripts/setup build

setup-all:
	@scripts/setup

run: release
	@scripts/run-demo

demo: release
	@scripts/demo $(DEMO_ARGS)

test: setup-all
	@scripts/build asan tests_unit
	@ctest --preset asan
	@scripts/build tsan tests_threads
	@ctest --preset tsan
	@scripts/build release
	@ctest --preset release

peers: setup-all
	@scripts/setup bench || echo "going on without the peers that are not installed"
	@scripts/npm bench/peers build/peers || echo "going on without the peers of npm"
	@scripts/cargo bench/peers/taskvisor build/peers/taskvisor || echo "going on without taskvisor"
	@scripts/cargo bench/peers/obzenflow build/peers/obzenflow || echo "going on without ObzenFlow"
	@(cd bench/peers/river && go build -o ../../../build/peers/) || echo "going on without River"
	@(cd bench/peers/nats && go build -o ../../../build/peers/) || echo "no client of NATS"
	@scripts/build release

bench: peers
	NODE_PATH=build/peers/node_modules build/release/bench/detent-bench $(BENCH_ARGS)

figures: peers
	NODE_PATH=build/peers/node_modules bench/figures.py run build/release/bench/detent-bench
	bench/figures.py write .

site: setup-all
	@scripts/site

fuzz: setup-all
	@scripts/build fuzz fuzz_targets
	@scripts/fuzz $(FUZZ_SECONDS)

sim: setup-all
	@scripts/build release
	@SIM_SEEDS=$(SIM_SEEDS) ctest --preset release -L '^sim$$' --timeout 86400

check: setup-all
	@scripts/format --check
	@scripts/build clang
	@scripts/lint
	@tests/tidy/tidy.py

nightly: check test
	@$(MAKE) --no-print-directory sim SIM_SEEDS=$(NIGHTLY_SIM_SEEDS)
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(NIGHTLY_FUZZ_SECONDS)
	@CRASH_SEED=$$(date +%s) CRASH_STEPS=$(NIGHTLY_CRASH_STEPS) ctest --preset release \
		-L '^crash$$' -R states --timeout 86400
	@CRASH_SEED=$$(date +%s) CRASH_STEPS=$(NIGHTLY_KILL_STEPS) ctest --preset release \
		-L '^crash$$' -R 'lives|kill_(syscalls|errors)' --timeout 86400
	@EXPRESSION_SEED=$$(date +%s) EXPRESSION_TIMES=$(NIGHTLY_EXPRESSION_TIMES) \
		ctest --test-dir build/release --output-on-failure -R '^expression\.compare$$' --timeout 86400
	@JOURNAL_SEEDS=$(NIGHTLY_JOURNAL_SEEDS) JOURNAL_STATES=7 JOURNAL_FLIPS=1 ctest --preset release \
		-R '^journal\.(power|states|damage)$$' --timeout 86400
	@FLOW_SEED=$$(date +%s) FLOW_KILLS=$(NIGHTLY_FLOW_KILLS) ctest --preset release \
		-R '^flow\.kill$$' --timeout 86400
	@SEED=$$(date +%s) TOTALS_KILLS=$(NIGHTLY_TOTALS_KILLS) ctest --preset release \
		-R '^e2e\.totals$$' --timeout 86400
	@NODES_SEED=$$(date +%s) NODES_TIMES=$(NIGHTLY_NODES_TIMES) ctest --preset release \
		-L '^processes$$' --timeout 86400
	@ctest --test-dir build/release --output-on-failure -j10 -L '^sanitized$$'
	@scripts/setup-outside
	@CONTRACT_FUZZ_SEED=$$(date +%s) CONTRACT_FUZZ_EXAMPLES=$(NIGHTLY_CONTRACT_EXAMPLES) \
		tests/outside/contract_fuzz.py build/release/detent build/release/tests/nasty-child \
		|| test $$? = 77
	@tests/outside/bit_flips.py --seed $$(date +%s)
	@scripts/build asan
	@ctest --preset clang
	@ctest --test-dir build/asan --output-on-failure -j10

coverage: setup-all
	@scripts/build coverage tests_unit
	@scripts/coverage

install: release
	DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build
