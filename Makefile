# Every target sets up what it needs, from nothing. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=
CODE := src images testing tests bench chaos
SHARD ?= $(shell git rev-list --count HEAD 2>/dev/null || echo 0)/100

.PHONY: help check test e2e nightly chaos bench simulate mutants fuzz up down lock docs site-pictures changelog clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}; set PYTHON=") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	touch $(READY)

check: $(READY) ## format, lint, strict types, import contract, unit tests
	$(BIN)/ruff format --check --quiet $(CODE) || { echo "run: $(BIN)/ruff format $(CODE)"; exit 1; }
	$(BIN)/ruff check --quiet $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .import_linter_cache
	$(BIN)/pytest -q -n auto --dist worksteal tests/unit tests/simulation/test_kept_stories.py tests/net/test_worlds.py $(ARGS)

# Most tests wait for daemons, so three rows of them run side by side. The long ones take turns, a few with each commit.
# End-to-end tests stand in front: a shell lets what it starts in the background ignore Ctrl-C, and they try just that.
test: check docs ## check, then the real API server, the real daemons, and one end-to-end test per promise
	rm -rf build/rights; mkdir -p build
	row="$(BIN)/pytest --durations=15 --shard $(SHARD)"; failed=0; \
	$$row -p no:cacheprovider tests/slurm > build/daemons.log 2>&1 & daemons=$$!; \
	$$row -p no:cacheprovider tests/simulation tests/net/test_days.py tests/integration > build/servers.log 2>&1 & servers=$$!; \
	$$row tests/e2e || failed=$$?; \
	wait $$servers || failed=$$?; \
	wait $$daemons || failed=$$?; \
	cat build/servers.log build/daemons.log; \
	$(BIN)/pytest -q tests/rights || failed=$$?; \
	exit $$failed

e2e: $(READY) ## every end-to-end test, and whatever else takes long, with the coverage of both
	rm -rf build/coverage; mkdir -p build/coverage
	$(BIN)/coverage run -m pytest --durations=15 tests/e2e $(ARGS)
	$(BIN)/coverage run -m pytest --durations=15 tests/integration tests/net -m "full or minutes" $(ARGS)
	$(BIN)/coverage combine --quiet; $(BIN)/coverage report

nightly: $(READY) $(VENV)-bench/.ready ## whatever takes long, where the last night stopped: HOURS=2.5 ARGS='--only e2e'
	$(BIN)/python -m testing.nightly --hours $(or $(HOURS),2.5) $(ARGS)

simulate: $(READY) ## many stories of the operator in a simulated world: SEEDS=1000 FIRST=1 LENGTH= SCENE= LATE= STEPS= SETBACK=
	PYTHONPATH=tests $(BIN)/python -m simulation --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1) --length $(or $(LENGTH),0) --scene '$(SCENE)' --late $(or $(LATE),0) $(if $(STEPS),--steps) $(if $(SETBACK),--set-back)

mutants: $(READY) ## a hundred small changes of what keeps the promise, and who notices: MINUTES=, ARGS='--only gate --again'
	PYTHONPATH=tests:. $(BIN)/python -m simulation.mutation --minutes $(or $(MINUTES),0) $(ARGS)

$(VENV)-fuzz/.ready: $(READY) requirements/fuzz.txt
	$(PYTHON) -m venv --clear $(VENV)-fuzz
	$(VENV)-fuzz/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r requirements/fuzz.txt
	touch $@

fuzz: $(VENV)-fuzz/.ready ## what reads from outside, fed with what nobody wrote: MINUTES=20 for each, ARGS='--only hostlist'
	PYTHONPATH=src:. $(VENV)-fuzz/bin/python -m testing.fuzz --minutes $(or $(MINUTES),20) $(ARGS)

up: $(READY) ## a real Kubernetes and a real Slurm cluster on this machine
	$(BIN)/slurm-operator up $(ARGS)

down: $(READY) ## stop it and leave nothing behind
	$(BIN)/slurm-operator down $(ARGS)

RUNS ?= 20
SEED ?= 1
chaos: $(READY) ## faults on a real cluster while jobs run; RUNS=n SEED=s
	PYTHONPATH=tests/e2e $(BIN)/python -m chaos --runs $(RUNS) --seed $(SEED) $(ARGS)

# As in the images, the distribution's own Python, which is built to be fast: a Python built without that takes a
# third more.
BENCH_PYTHON ?= $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/python3 || echo $(PYTHON))
$(VENV)-bench/.ready: $(READY)
	$(BENCH_PYTHON) -m venv --clear --without-pip $(VENV)-bench
	$(BIN)/pip --python $(VENV)-bench/bin/python install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r requirements/dev.txt
	$(BIN)/pip --python $(VENV)-bench/bin/python install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	touch $@

bench: $(VENV)-bench/.ready ## benchmarks: ratios measured in one run
	$(VENV)-bench/bin/python -m bench $(ARGS)

$(VENV)-docs/.ready: requirements/docs.txt
	$(PYTHON) -m venv --clear $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r requirements/docs.txt
	touch $@

docs: $(VENV)-docs/.ready ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 DOCS_FOOTER="slurm-operator $$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/slurm_operator/__init__.py)" \
	  $(VENV)-docs/bin/mkdocs build --quiet
	! grep -rlE '<(script|link|img|iframe)[^>]*(src|href)="?(https?:)?//' site --include='*.html' || { echo "these pages fetch something from elsewhere"; exit 1; }

$(VENV)-browser/.ready: requirements/browser.txt
	$(PYTHON) -m venv --clear $(VENV)-browser
	$(VENV)-browser/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r requirements/browser.txt
	touch $@

site-pictures: docs $(READY) $(VENV)-browser/.ready ## each page of the site in Chromium, wide and narrow: nothing is cut off; pictures in build/site
	rm -rf build/site
	$(BIN)/python -m testing.chromium
	$(VENV)-browser/bin/python testing/site_in_browser.py site build/site

changelog: $(READY) ## the notes of the next release; RELEASE=1 writes them into CHANGELOG.md
	$(BIN)/towncrier build $(if $(RELEASE),--yes,--draft)

lock: $(READY) ## pin the dependencies of pyproject.toml again
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 pyproject.toml -o requirements/runtime.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 pyproject.toml --group dev -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 --group docs -o requirements/docs.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 --group browser -o requirements/browser.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 pyproject.toml --group fuzz -o requirements/fuzz.txt

clean: ## remove what the targets made in this directory
	rm -rf $(VENV) $(VENV)-bench $(VENV)-docs $(VENV)-browser $(VENV)-fuzz build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
