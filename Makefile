# Underlay's entry points. `make demo` and `make test` are all a newcomer needs; both install what is
# missing (and say what and why) from the distribution's, cargo's and npm's registries only.

CARGO ?= cargo
# Programs that need root (mounts, loop devices, cgroups) go through sudo when we are not root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
HOST_TRIPLE := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
RUNNER_VARIABLE := CARGO_TARGET_$(shell echo $(HOST_TRIPLE) | tr 'a-z-' 'A-Z_')_RUNNER

.PHONY: demo test lint bench bench-peers build clean help

help: ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

demo: ## Build, then run the main job: PostgreSQL on an NVMe and on a SATA design, and a report.
	scripts/setup.sh demo
	$(CARGO) build --release --locked --bin underlay
	$(SUDO) target/release/underlay run quickstart

test: ## Every test, with real PostgreSQL, real mounts and headless Chromium.
	scripts/setup.sh test
	$(CARGO) fmt --all --check
	env $(if $(SUDO),$(RUNNER_VARIABLE)="sudo -E") $(CARGO) test --workspace --locked --no-fail-fast --lib --bins --tests
	$(CARGO) test --workspace --locked --doc

lint: ## Formatting and clippy, warnings are errors.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

bench: ## The project's promises as ratios, each measured in one run; writes target/bench/*.json.
	scripts/setup.sh bench
	$(CARGO) build --release --locked --workspace --examples --bins
	$(SUDO) scripts/bench.sh

bench-peers: ## Underlay beside sysbench, pgbench, fio, go-tpc, HammerDB and BenchBase, those that are found; writes target/bench/peers-*.json.
	scripts/setup.sh bench
	$(CARGO) build --release --locked -p underlay --bin underlay --example with_server --example peers --example io_cost
	$(if $(SUDO),sudo -E env "PATH=$$PATH") scripts/bench-peers.sh

build: ## The optimised program: target/release/underlay.
	$(CARGO) build --release --locked --bin underlay

clean: ## Remove what a killed run left on this host. (`cargo clean` removes the build.)
	$(SUDO) target/release/underlay clean
