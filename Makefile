# Underlay's entry points. `make demo` and `make test` are all a newcomer needs; both install what is
# missing (and say what and why) from the distribution's, Python's, cargo's and npm's registries only.

CARGO ?= cargo
# Programs that need root (mounts, loop devices, cgroups) go through sudo when we are not root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
HOST_TRIPLE := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
RUNNER_VARIABLE := CARGO_TARGET_$(shell echo $(HOST_TRIPLE) | tr 'a-z-' 'A-Z_')_RUNNER
AS_ROOT := env $(if $(SUDO),$(RUNNER_VARIABLE)="sudo -E")
# Where scripts/setup.sh puts programs that only the tests use.
TOOLS := $(CURDIR)/target/tools/bin
NEXTEST := $(AS_ROOT) PATH="$(TOOLS):$$PATH" $(CARGO) nextest run --locked

# Fixed when given: make soak SEED=7 MINUTES=60
SEED ?= $(shell date +%s)
MINUTES ?= 10

.PHONY: demo test lint soak bench bench-peers build clean help

help: ## Show this list.
	@sed -n 's/^\([a-zA-Z-]*\):.*## /  make \1\t/p' Makefile
	@echo '  make test-CRATE	The tests of one crate, e.g. make test-model.'

demo: ## Build, then run the main job: PostgreSQL on an NVMe and on a SATA design, and a report.
	scripts/setup.sh demo
	$(CARGO) build --profile demo --locked --bin underlay
	$(SUDO) target/demo/underlay run quickstart

test: ## The tests, with real servers, real mounts and headless Chromium; of those of whole studies a third, ALL=1 for all.
	scripts/setup.sh test
	$(CARGO) fmt --all --check
	$(NEXTEST) --workspace --lib --bins --tests --no-run
	$(AS_ROOT) PATH="$(TOOLS):$$PATH" CARGO="$(CARGO)" SUDO="$(SUDO)" scripts/run-tests.sh

test-%: ## The tests of one crate, e.g. make test-model.
	scripts/setup.sh test
	$(NEXTEST) -p $(if $(filter underlay,$*),underlay,underlay-$*) --lib --bins --tests

# The page's packages are installed by the build of the crate; its tests run in the crate's tests.
lint: ## Formatting, clippy (warnings are errors), types of the page, licences of the dependencies.
	scripts/setup.sh test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	npm --prefix crates/report/web run check
	PATH="$(TOOLS):$$PATH" $(CARGO) deny --locked check --hide-inclusion-graph bans licenses sources

soak: ## Fuzzing and simulations with fresh seeds, and every published study: make soak MINUTES=60, repeat with SEED=n.
	scripts/setup.sh test
	@echo "soak: seed $(SEED); repeat with: make soak SEED=$(SEED) MINUTES=$(MINUTES)"
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=4096 \
	UNDERLAY_FUZZ_SEED=$(SEED) UNDERLAY_FUZZ_SECONDS=$$(($(MINUTES) * 30)) \
	UNDERLAY_SIMULATION_START=$(SEED)000000000 UNDERLAY_SIMULATION_SECONDS=$$(($(MINUTES) * 30)) \
	$(NEXTEST) --profile soak --workspace --lib --tests

bench: ## The project's promises as ratios, each measured in one run; writes target/bench/*.json.
	scripts/setup.sh bench
	$(CARGO) build --release --locked --workspace --examples --bins
	$(SUDO) scripts/bench.sh

bench-peers: ## Underlay compared with sysbench, pgbench, fio, go-tpc, HammerDB and BenchBase, where installed; writes target/bench/peers-*.json.
	scripts/setup.sh bench
	$(CARGO) build --release --locked -p underlay --bin underlay --example with_server --example peers --example io_cost
	$(if $(SUDO),sudo -E env "PATH=$$PATH") scripts/bench-peers.sh

build: ## The optimised program: target/release/underlay.
	$(CARGO) build --release --locked --bin underlay

clean: ## Remove what a killed run left on this host. (`cargo clean` removes the build.)
	$(SUDO) $(firstword $(wildcard target/release/underlay target/demo/underlay)) clean
