# `make run` and `make test` are all a visitor needs; both may be repeated as often as one likes.
.DEFAULT_GOAL := help
.PHONY: help setup run dev test faults check bench claims soak lists screenshots lock clean
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PAGES := contextlab/static/contextlab/manifest.json
PAGE_SOURCES := $(shell find frontend -path frontend/node_modules -prune -o -type f -print 2>/dev/null)
# Tests at once, a file in one process: its server is started once. More than there are processors makes them slower.
JOBS ?= 2

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

setup: $(VENV)/.installed $(PAGES) ## environment in .venv, dependencies as locked, pages built

run: setup ## the dashboard with sessions to look at; prints the address to open last
	@$(BIN)/contextlab migrate --verbosity 0
	@$(BIN)/contextlab demo --if-empty
	@exec $(BIN)/contextlab serve

dev: setup ## like run; starts again when Python or templates change, pages follow their sources
	@trap 'kill 0' EXIT; \
	npm --prefix frontend run dev & \
	CONTEXTLAB_DEBUG=1 $(BIN)/watchfiles --verbosity warning --ignore-paths contextlab/static \
		"$(BIN)/contextlab serve" compaction contextlab sessions templates

test: setup ## every test, on SQLite, and the store's again on PostgreSQL if one answers
	npm --prefix frontend run test --if-present
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile
	$(BIN)/python tests/on_postgres.py -n $(JOBS) --dist loadfile

faults: setup ## an agent at work while each part is killed or lost, at length; needs Redis, PostgreSQL, Chromium
	CONTEXTLAB_FAULT_STEPS=300 CONTEXTLAB_FAULT_PACE=5 $(BIN)/python -m pytest -s tests/faults

check: setup ## what must be clean before a commit: lint, types, floors, templates, migrations, pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djangofmt --check templates
	$(BIN)/djangofmt check templates
	@# A tag cannot be broken: {% sentence %} takes what is too long for one.
	@! LC_ALL=C.UTF-8 grep -rnE '^.{121}' templates
	$(BIN)/python manage.py makemigrations --check --dry-run
	npm --prefix frontend run check --if-present

bench: setup ## the figures of docs/speed.md, measured here; takes about half an hour
	@$(BIN)/python -m benchmarks

claims: setup ## what our sources publish, and ours beside it; with LOGS=folder also of sessions, into docs/policies/claims.md
	@$(BIN)/python -m benchmarks.policies.claims $(if $(LOGS),$(LOGS) --out docs/policies/claims.md)

soak: setup ## ten minutes of thirty appends a second and an agent at work: latency, CPU, memory, log size
	@$(BIN)/python -m benchmarks.live.stream --minutes 10

lists: setup ## the lists in docs of strategies, log formats and cache rules, from their records
	@$(BIN)/python -m contextlab.lists

screenshots: setup ## the pages that the docs show, light and dark, from demo data into docs/screenshots; needs Chromium
	$(BIN)/python tools/screenshots.py

lock: setup ## rewrite requirements.lock and package-lock.json; needs uv
	uv pip compile pyproject.toml --group pyproject.toml:dev --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command "make lock" $(LOCK) \
		--output-file requirements.lock --quiet
	@# The markers of [tool.uv] hold for every line; only what differs from them says something.
	@sed -i.old -e "s/ ; (platform_python_implementation == 'CPython' and sys_platform == 'darwin') or (platform_python_implementation == 'CPython' and sys_platform == 'linux')//" \
		-e "s/ ; platform_python_implementation == 'CPython' and (sys_platform == 'darwin' or sys_platform == 'linux')//" requirements.lock
	@rm requirements.lock.old
	npm --prefix frontend install --package-lock-only

clean: ## what setup made; data in var/ stays
	rm -rf $(VENV) frontend/node_modules contextlab/static/contextlab

# The stamp is older than the lock when the lock changed. No uv: pip is on every machine.
$(VENV)/.installed: requirements.lock pyproject.toml
	@python=$$(sh tools/python.sh) && \
	if ! $(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "making $(VENV) with $$python"; $$python -m venv --clear $(VENV); fi
	@echo "installing what requirements.lock names (a minute or two the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

frontend/node_modules/.installed: frontend/package-lock.json
	@sh tools/node.sh
	@npm --prefix frontend ci --no-audit --no-fund --loglevel=error
	@touch $@

$(PAGES): frontend/node_modules/.installed $(PAGE_SOURCES)
	@sh tools/node.sh
	@npm --prefix frontend run build --silent
	@touch $@
