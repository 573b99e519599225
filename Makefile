# Everything from a fresh clone, with Python >= 3.11 and make alone. `make` or `make help` is the menu.
SHELL := /bin/sh
PYTHON ?= python3
UV := .uv/bin/uv
BIN := .venv/bin
# What tests of builds from source compare: made before them, since it takes all processors for minutes.
BUILT_FOR_TESTS := 17 17+blocksize=32 17+cassert

.PHONY: help demo check docs test test-quick test-unit test-live test-builds test-browser tools fuzz dist format lint types imports bench-calibration bench-habits bench-noise bench-real-noise bench-bias bench-drivers bench-writes bench-identical bench-looks bench-study bench-copies bench-builds bench-quotients bench-plans bench-faults bench catalogs clean

help: ## this menu
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-18s %s\n' "$$name" "$$text"; done

demo: .venv/.installed ## the correlated IN case on 16.12 and 17.8, from nothing to a verdict
	$(BIN)/pgversus demo

check: format lint types imports test-unit ## all that takes no server

test-quick: .venv/.installed-dev ## pure code alone, in about a minute
	$(BIN)/pytest -q -n 2 -m "not slow" tests/unit

test: check test-live test-builds test-browser ## everything, real servers included

test-unit: .venv/.installed-dev ## pure code and simulated studies
	$(BIN)/pytest -q -n 2 tests/unit

test-live: .venv/.installed-dev ## real servers: first what runs in parallel, then what measures
	$(BIN)/pytest -q -n 3 --dist loadgroup -m "not measures and not needs_tools" tests/live
	$(BIN)/pytest -q -m measures tests/live

test-builds: .venv/.installed-dev ## servers built from source, and system calls traced (needs make tools)
	@$(BIN)/python -m tools.requirements builds; case $$? in \
		0) $(BIN)/pgversus servers build $(BUILT_FOR_TESTS) && $(BIN)/pytest -q -n 2 -m needs_tools tests/live ;; \
		1) ;; \
		*) exit 2 ;; \
	esac

test-browser: .venv/.installed-dev ## reports in Chromium (needs make tools)
	@$(BIN)/python -m tools.requirements browser; case $$? in \
		0) $(BIN)/pytest -q -n 2 tests/browser ;; \
		1) ;; \
		*) exit 2 ;; \
	esac

tools: .venv/.installed-dev ## install the programs that test-builds and test-browser need (Debian, Ubuntu; as root)
	@$(BIN)/python -m tools.requirements --install

SECONDS := 600
fuzz: .venv/.installed-dev ## inputs from outside, damaged in every way: make fuzz SECONDS=600
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

dist: .uv/.installed ## a wheel and a source archive, in dist/
	$(UV) build --quiet

format: .venv/.installed-dev ## is the code formatted? (mend with: .venv/bin/ruff format)
	$(BIN)/ruff format --check .

lint: .venv/.installed-dev ## ruff, every rule
	$(BIN)/ruff check .

types: .venv/.installed-dev ## mypy, strict
	$(BIN)/mypy

imports: .venv/.installed-dev ## do imports point one way?
	$(BIN)/lint-imports --no-cache

bench-calibration: .venv/.installed-dev ## false alarms and time to verdict of the whole engine, simulated (25 min)
	$(BIN)/python -m benchmarks.calibration

bench-habits: .venv/.installed-dev ## how often usual ways of comparing call identical servers different, simulated (5 min)
	$(BIN)/python -m benchmarks.habits

bench-noise: .venv/.installed-dev ## the noise of this host by window length, from 0.01 s to 2 s (90 s)
	$(BIN)/python -m benchmarks.noise

bench-real-noise: .venv/.installed-dev ## short windows against windows of a second on real servers (35 min, nothing else may run)
	$(BIN)/python -m benchmarks.real_noise

bench-drivers: .venv/.installed-dev ## three ways to drive short windows, on real servers (25 min, nothing else may run)
	$(BIN)/python -m benchmarks.drivers

bench-bias: .venv/.installed-dev ## do windows of every length find what was planted? on real servers (15 min, nothing else may run)
	$(BIN)/python -m benchmarks.bias

bench-writes: .venv/.installed-dev ## how short windows of loads that write may be, on real servers (30 min, nothing else may run)
	$(BIN)/python -m benchmarks.writes

bench-identical: .venv/.installed-dev ## how often identical servers are called different, on real ones (90 min, nothing else may run)
	$(BIN)/python -m benchmarks.identical

bench-looks: .venv/.installed-dev ## the table of levels in stats/confidence.py, by Monte Carlo (2 min)
	$(BIN)/python -m benchmarks.calibrate_looks

bench-study: .venv/.installed-dev ## a study of 10,000 treatments: expand, dry run, reports over 100,000 trials
	$(BIN)/python -m benchmarks.big_study

bench-copies: .venv/.installed-dev ## what fresh data cost: loading, copying, taking them out of the cache (2 min)
	$(BIN)/python -m benchmarks.copies

bench-builds: .venv/.installed-dev ## six block sizes from source: time, and what ccache saves (20 min)
	$(BIN)/python -m benchmarks.builds

bench-quotients: .venv/.installed-dev ## how often two results that are alike are said to differ, simulated
	$(BIN)/python -m benchmarks.quotients

bench-plans: .venv/.installed-dev ## two plans of 1,000 nodes held against each other (2 s)
	$(BIN)/python -m benchmarks.plans

bench-faults: .venv/.installed-dev ## kills, full disks, pauses and more at random moments of runs on live servers (1 to 2 h)
	$(BIN)/python -m tests.faults

bench: .venv/.installed-dev ## our own speed: start-up, log parsing, one look
	$(BIN)/python -m benchmarks.own_speed

docs: .venv/.installed-dev ## docs/study-file.* from the schema
	$(BIN)/python -c 'from pgversus.study.file.reference import page; print(page(), end="")' > docs/study-file.md
	$(BIN)/python -c 'from pgversus.study.file.reference import schema_document; print(schema_document(), end="")' \
		> docs/study-file.schema.json

catalogs: .venv/.installed-dev ## locale/ from the sentences in the code: what is new comes in untranslated
	$(BIN)/python -m tools.catalogs

clean: ## forget the environments
	rm -rf .venv .uv

# uv, by pip, into an environment of its own. An old pip does not look into the system's certificate store by itself.
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
