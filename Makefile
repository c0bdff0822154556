# The whole interface: demo, check, test, test-fast, soak, bench, docs. Everything installs what it needs first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Three workers on the two cores that the suite is planned for: a third of its time is waiting for processes.
WORKERS ?= 3
# Compiled files are kept whatever the shell says: compiling the tests takes each worker ten seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo check test test-fast soak bench constraints schemas docs clean

help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | column -t -s '	'

# Two steps: hash-checked packages, then this project without touching them.
$(VENV)/.installed: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || { \
		echo "hankwatch needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12" >&2; exit 2; }
	@echo "Installing into $(VENV) (once; about 400 MB, a few minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(VENV)/.installed  ## Run the shipped hank offline and show what its sentinels wrote
	@$(BIN)/hankwatch demo

check: $(VENV)/.installed  ## Lint, types, layers, fresh schemas and reference pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m hankwatch.schemas --check
	$(BIN)/python -m hankwatch.reference --check

test: $(VENV)/.installed  ## Every test but the long runs (under 10 minutes on 2 cores)
	$(PYTEST) -n $(WORKERS)

test-fast: $(VENV)/.installed  ## What takes under a minute
	$(PYTEST) -n $(WORKERS) -m "not slow and not soak"

soak: $(VENV)/.installed  ## The long fault and load runs, in full
	$(PYTEST) -m soak --timeout=3600

bench: $(VENV)/.installed  ## Ratios measured side by side in one run
	$(PYTEST) -o addopts="--strict-markers --import-mode=importlib -s" -p no:randomly -p no:xdist --timeout=600 tests/benchmarks

schemas: $(VENV)/.installed  ## Write schemas/ anew from the models
	$(BIN)/python -m hankwatch.schemas

docs: $(VENV)/.installed  ## Write docs/reference/ anew from the code
	$(BIN)/python -m hankwatch.reference

constraints: $(VENV)/.installed  ## Resolve constraints.txt anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header \
		--all-extras --python-version 3.11 --upgrade pyproject.toml requirements.in -o constraints.txt

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks .import_linter_cache build dist
