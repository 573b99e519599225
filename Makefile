# Runs from a fresh clone with only Python >= 3.11 and make. `make` or `make help` shows the menu.
SHELL := /bin/sh
PYTHON ?= python3
UV := .uv/bin/uv
BIN := .venv/bin
# Packages without effects.
PURE := answers engine plans records report stats study text
# Builds for the tests of builds from source, made in advance because they occupy all processors for minutes. Two at once,
# since configure uses one processor; without optimization, which takes half of the time.
BUILT_FOR_TESTS := 17+cflags=-O0 17+blocksize=32+cflags=-O0
# Long tests run in `make test-all` only, which clears this.
SHORT := and not long
# Exit code of pytest if all tests of a kind are long.
NO_TESTS := 5

.PHONY: help demo check docs test test-all test-quick test-unit test-live test-parallel test-measures test-builds built-for-tests test-browser tools fuzz fuzz-plans dist format lint types imports bench-calibration bench-habits bench-noise bench-real-noise bench-bias bench-drivers bench-writes bench-operations bench-identical bench-upgrade-checks bench-statements bench-many-statements bench-looks bench-study bench-copies bench-builds bench-quotients bench-plans bench-faults bench-fleet bench-fleet-rates bench catalogs clean

help: ## show this menu
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-18s %s\n' "$$name" "$$text"; done

demo: .venv/.installed ## compare 16.12 and 17.8 on a correlated IN, from scratch to a verdict
	$(BIN)/pgversus demo

check: format lint types imports test-unit ## run all checks that need no server

test-quick: .venv/.installed-dev ## test pure code only, in about a minute
	$(BIN)/pytest -q -n 2 -m "not slow" $(addprefix tests/unit/,$(PURE))

test: check test-live test-builds test-browser ## run all checks, and the tests that do not take long, including real servers

test-all: ## run all checks and tests
	@$(MAKE) test SHORT=

test-unit: .venv/.installed-dev ## test pure code and simulated studies
	$(BIN)/pytest -q -n 2 -m "not needs_tools" tests/unit

test-live: test-parallel test-measures ## test real servers: parallel tests, then tests that measure

test-parallel: .venv/.installed-dev
	$(BIN)/pytest -q -n 4 --dist loadgroup -m "not measures and not needs_tools $(SHORT)" tests/live

test-measures: .venv/.installed-dev
	$(BIN)/pytest -q -m "measures and not needs_tools $(SHORT)" tests/live

test-builds: .venv/.installed-dev ## test builds from source, and trace system calls (needs make tools)
	@$(BIN)/python -m tools.requirements builds; case $$? in \
		0) $(BIN)/pytest -q -n 2 -m needs_tools tests/unit && \
			$(MAKE) -s built-for-tests && \
			$(BIN)/pytest -q -n 2 -m "needs_tools and not measures $(SHORT)" tests/live && \
			{ $(BIN)/pytest -q -m "needs_tools and measures $(SHORT)" tests/live || [ $$? -eq $(NO_TESTS) ]; } ;; \
		1) ;; \
		*) exit 2 ;; \
	esac

built-for-tests: .venv/.installed-dev
	printf '%s\n' $(BUILT_FOR_TESTS) | xargs -n 1 -P 2 $(BIN)/pgversus servers build

test-browser: .venv/.installed-dev ## test reports in Chromium (needs make tools)
	@$(BIN)/python -m tools.requirements browser; case $$? in \
		0) $(BIN)/pytest -q -n 2 tests/browser ;; \
		1) ;; \
		*) exit 2 ;; \
	esac

tools: .venv/.installed-dev ## install the programs that test-builds and test-browser need (Debian, Ubuntu; as root)
	@$(BIN)/python -m tools.requirements --install

SECONDS := 600
fuzz: .venv/.installed-dev ## damage external inputs at random: make fuzz SECONDS=600
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

fuzz-plans: .venv/.installed-dev ## check every sentence about 100,000 generated pairs of plans (6 min)
	$(BIN)/python -m tests.fuzz --target "plan claims" --inputs 100000

dist: .uv/.installed ## build a wheel and a source archive in dist/
	$(UV) build --quiet

format: .venv/.installed-dev ## check the format (fix with: .venv/bin/ruff format)
	$(BIN)/ruff format --check .

lint: .venv/.installed-dev ## run ruff with every rule
	$(BIN)/ruff check .

types: .venv/.installed-dev ## run mypy in strict mode
	$(BIN)/mypy

imports: .venv/.installed-dev ## check that imports point one way
	$(BIN)/lint-imports --no-cache

bench-calibration: .venv/.installed-dev ## simulate false alarms and time to verdict of the whole engine (25 min)
	$(BIN)/python -m benchmarks.calibration

bench-error-rates: .venv/.installed-dev ## simulate the error rates of percentiles, operations, cold caches and attributions (2 h)
	$(BIN)/python -m benchmarks.error_rates

bench-habits: .venv/.installed-dev ## simulate how often common methods call identical servers different (5 min)
	$(BIN)/python -m benchmarks.habits

bench-noise: .venv/.installed-dev ## measure the noise of this host by window length, from 0.01 s to 2 s (90 s)
	$(BIN)/python -m benchmarks.noise

bench-real-noise: .venv/.installed-dev ## compare short windows with windows of 1 s, on real servers (35 min, on an idle host)
	$(BIN)/python -m benchmarks.real_noise

bench-drivers: .venv/.installed-dev ## compare three ways to drive short windows, on real servers (25 min, on an idle host)
	$(BIN)/python -m benchmarks.drivers

bench-bias: .venv/.installed-dev ## check that windows of every length find planted differences, on real servers (40 min, on an idle host)
	$(BIN)/python -m benchmarks.bias

bench-writes: .venv/.installed-dev ## measure the minimum window of loads that write, on real servers (30 min, on an idle host)
	$(BIN)/python -m benchmarks.writes

bench-operations: .venv/.installed-dev ## compare orders of copies, starts and operations in a block, on real servers (12 min, on an idle host)
	$(BIN)/python -m benchmarks.operations

bench-identical: .venv/.installed-dev ## measure how often identical real servers are called different (90 min, on an idle host)
	$(BIN)/python -m benchmarks.identical

bench-real: .venv/.installed-dev ## compare pgversus with common methods on real servers and known differences (1 h; run it again to continue)
	$(BIN)/python -m benchmarks.real_methods

bench-upgrade-checks: .venv/.installed-dev ## simulate error rates and detection of checks of many statements (25 min)
	$(BIN)/python -m benchmarks.upgrade_checks

bench-statements: .venv/.installed-dev ## check 30 statements, and compare the findings with a minute of pgbench each, on real servers (4 h, in pieces with --minutes, on an idle host)
	$(BIN)/python -m benchmarks.real_statements

bench-many-statements: .venv/.installed-dev ## check a thousand statements in pieces of an hour that end by kill -9 (5 h; start it again for each)
	$(BIN)/python -m benchmarks.many_statements

bench-looks: .venv/.installed-dev ## compute the table of levels in stats/confidence.py, by Monte Carlo (2 min)
	$(BIN)/python -m benchmarks.calibrate_looks

bench-study: .venv/.installed-dev ## measure a study of 10,000 treatments: expand, dry run, reports over 100,000 trials
	$(BIN)/python -m benchmarks.big_study

bench-copies: .venv/.installed-dev ## measure loading data, copying them, and taking them from the cache (2 min)
	$(BIN)/python -m benchmarks.copies

bench-builds: .venv/.installed-dev ## build six block sizes from source: time, and the effect of ccache (20 min)
	$(BIN)/python -m benchmarks.builds

bench-quotients: .venv/.installed-dev ## simulate how often two equal results are reported as different
	$(BIN)/python -m benchmarks.quotients

bench-plans: .venv/.installed-dev ## compare two plans of 1,000 nodes (2 s)
	$(BIN)/python -m benchmarks.plans

bench-faults: .venv/.installed-dev ## inject kills, full disks, pauses and other faults into runs on live servers (1 to 2 h)
	$(BIN)/python -m tests.faults

bench-fleet: .venv/.installed-dev ## simulate a fleet: its time, and what it costs the driver (a minute)
	$(BIN)/python -m benchmarks.fleet

bench-fleet-rates: .venv/.installed-dev ## simulate the error rates of verdicts over hosts that differ (10 min)
	$(BIN)/python -m benchmarks.fleet_rates

bench: .venv/.installed-dev ## measure the speed of pgversus itself: start-up, log parsing, looks
	$(BIN)/python -m benchmarks.own_speed

docs: .venv/.installed-dev ## generate docs/study-file.* from the schema
	$(BIN)/python -c 'from pgversus.study.file.reference import page; print(page(), end="")' > docs/study-file.md
	$(BIN)/python -c 'from pgversus.study.file.reference import schema_document; print(schema_document(), end="")' \
		> docs/study-file.schema.json

catalogs: .venv/.installed-dev ## update locale/ from the sentences in the code; new ones are untranslated
	$(BIN)/python -m tools.catalogs

clean: ## remove the environments
	rm -rf .venv .uv

# Install uv with pip into a separate environment. An old pip does not use the system's certificate store by itself.
.uv/.installed:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "pgversus needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12" >&2; exit 3; }
	@$(PYTHON) -m venv --clear .uv || { \
		echo "$(PYTHON) cannot make a virtual environment: install its venv package (Debian: apt install python3-venv)" >&2; exit 3; }
	@echo "setting up (once)"
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9' 2>/dev/null || \
		.uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9' \
			--cert "$$(.uv/bin/python -c 'import ssl; print(ssl.get_default_verify_paths().cafile or "")')"
	@touch $@

.venv/.installed: .uv/.installed pyproject.toml uv.lock
	@$(UV) sync --quiet --locked --no-dev --inexact --python "$$(command -v $(PYTHON))"
	@touch $@

.venv/.installed-dev: .uv/.installed pyproject.toml uv.lock
	@$(UV) sync --quiet --locked --python "$$(command -v $(PYTHON))"
	@touch .venv/.installed $@
