# `make run` and `make test` are all a visitor needs; both may be repeated as often as one likes.
.DEFAULT_GOAL := help
.PHONY: help setup run dev test faults check bench claims soak lists screenshots docs lock audit clean
SHELL := /bin/sh
# Images of containers set it; then every process that a test starts compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PAGES := contextlab/static/contextlab/manifest.json
CLIENT := clients/typescript
CLIENT_SOURCES := $(shell find $(CLIENT)/src $(CLIENT)/tests -name '*.ts' -not -name api.ts 2>/dev/null) $(CLIENT)/package.json
PAGE_SOURCES := $(shell find frontend -path frontend/node_modules -prune -o -type f -print 2>/dev/null)
# Tests at once, a file in one process: its server is started once. For two processors: many wait for other processes.
JOBS ?= 3
# In the order of their folders: by their number, long files of few tests (browsers) would come last, one after another.
AT_ONCE := -n $(JOBS) --dist loadfile --no-loadscope-reorder

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

setup: $(VENV)/.installed $(PAGES) ## environment in .venv, dependencies as locked, pages built

run: setup ## the dashboard with sessions to look at; its last line is the URL to open
	@echo "Preparing the database (a new one takes some seconds)"
	@$(BIN)/contextlab migrate --verbosity 0
	@echo "Adding demo sessions if there are none (up to 1 minute)"
	@$(BIN)/contextlab demo --if-empty >/dev/null
	@exec $(BIN)/contextlab serve

dev: setup ## like run; starts again when Python or templates change, pages follow their sources
	@trap 'kill 0' EXIT; \
	npm --prefix frontend run dev & \
	CONTEXTLAB_DEBUG=1 $(BIN)/watchfiles --verbosity warning --ignore-paths contextlab/static \
		"$(BIN)/contextlab serve" compaction contextlab sessions templates

test: setup $(CLIENT)/build/.built ## every test, on SQLite, and the store's again on PostgreSQL if one answers
	npm --prefix frontend run test --if-present
	$(BIN)/python -m pytest $(AT_ONCE)
	$(BIN)/python tests/on_postgres.py $(AT_ONCE)

faults: setup ## every fault of the campaign as a table; needs Redis, PostgreSQL, Chromium; TABLE=file writes it
	CONTEXTLAB_FAULT_STEPS=300 CONTEXTLAB_FAULT_PACE=5 $(BIN)/python -m pytest -s \
		-p tests.faults.campaign.table $(if $(TABLE),--faults-table $(TABLE))

check: setup $(CLIENT)/build/.built ## what must be clean before a commit: lint, types, floors, templates, migrations, pages
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
	@# The TypeScript client follows the frontend's rules; what is ignored by git is generated.
	cd frontend && node_modules/.bin/prettier --config package.json --ignore-path ../.gitignore --check ../$(CLIENT)
	frontend/node_modules/.bin/eslint --config frontend/eslint.config.js --max-warnings 0 --ignore-pattern '**/api.ts' $(CLIENT)/src $(CLIENT)/tests

bench: setup ## the figures of docs/speed.md, measured here; takes about half an hour
	@$(BIN)/python -m benchmarks

claims: setup ## what our sources publish, and ours beside it; with LOGS=folder also of sessions, into benchmarks/policies/reports/claims.md
	@$(BIN)/python -m benchmarks.policies.claims $(if $(LOGS),$(LOGS) --out benchmarks/policies/reports/claims.md)

soak: setup ## ten minutes of thirty appends a second and an agent at work: latency, CPU, memory, log size
	@$(BIN)/python -m benchmarks.live.stream --minutes 10

lists: setup ## the lists in docs of strategies, log formats, cache rules, commands and operations, from themselves
	@$(BIN)/python -m contextlab.docs.lists

screenshots: setup ## the pages that the docs show, light and dark, from demo data into docs/screenshots; needs Chromium
	$(BIN)/python tools/screenshots.py

docs: setup ## the site of docs/, into var/site; a broken link ends it
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/docs.lock
	@$(BIN)/zensical build --config-file mkdocs.yml --strict --clean

lock: setup ## rewrite the lock files; needs uv
	uv pip compile pyproject.toml --group pyproject.toml:dev --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command "make lock" $(LOCK) \
		--output-file requirements.lock --quiet
	@# The markers of [tool.uv] hold for every line; only what differs from them says something.
	@sed -i.old -e "s/ ; (platform_python_implementation == 'CPython' and sys_platform == 'darwin') or (platform_python_implementation == 'CPython' and sys_platform == 'linux')//" \
		-e "s/ ; platform_python_implementation == 'CPython' and (sys_platform == 'darwin' or sys_platform == 'linux')//" requirements.lock
	@rm requirements.lock.old
	uv pip compile --group pyproject.toml:docs --constraint requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command "make lock" $(LOCK) \
		--output-file tools/docs.lock --quiet
	npm --prefix frontend install --package-lock-only
	npm --prefix $(CLIENT) install --package-lock-only
	@# For the wheel (PEP 770): what it needs, and what its pages are built from, tools included.
	uv pip compile pyproject.toml --constraint requirements.lock --universal --python-version 3.11 \
		--no-annotate --no-header --quiet | uvx --from cyclonedx-bom cyclonedx-py requirements - \
		--pyproject pyproject.toml --output-reproducible --output-file tools/sbom/python.cdx.json
	npm --prefix frontend sbom --package-lock-only --sbom-format cyclonedx >tools/sbom/pages.cdx.json

audit: setup ## known faults and licenses of every dependency; needs uv and a network
	uvx pip-audit --strict --disable-pip --require-hashes -r requirements.lock
	npm --prefix frontend audit --omit=dev
	npm --prefix $(CLIENT) audit --omit=dev
	uvx pip-licenses --python $(BIN)/python --fail-on \
		'GPL-2.0-only;GPL-2.0-or-later;GPL-3.0-only;GPL-3.0-or-later;AGPL-3.0-only;AGPL-3.0-or-later;GNU General Public License v2 (GPLv2);GNU General Public License v3 (GPLv3);GNU Affero General Public License v3' >/dev/null

clean: ## what setup made; data in var/ stays
	rm -rf $(VENV) frontend/node_modules contextlab/static/contextlab $(CLIENT)/node_modules $(CLIENT)/dist $(CLIENT)/build

# The stamp is older than the lock when the lock changed. No uv: pip is on every machine.
$(VENV)/.installed: requirements.lock pyproject.toml
	@python=$$(sh tools/python.sh) && \
	if ! $(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "Creating $(VENV) with $$python"; $$python -m venv --clear $(VENV); fi
	@echo "Installing Python packages (1 to 2 minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

frontend/node_modules/.installed: frontend/package-lock.json
	@sh tools/node.sh
	@echo "Installing frontend packages (up to 1 minute)"
	@npm --prefix frontend ci --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

$(PAGES): frontend/node_modules/.installed $(PAGE_SOURCES)
	@sh tools/node.sh
	@echo "Building the pages (up to 30 seconds)"
	@npm --prefix frontend run build --silent -- --logLevel error
	@touch $@

$(CLIENT)/node_modules/.installed: $(CLIENT)/package-lock.json
	@sh tools/node.sh
	@echo "Installing packages of the TypeScript client (up to 40 seconds)"
	@npm --prefix $(CLIENT) ci --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

# Its types are the API's.
$(CLIENT)/openapi.json: $(VENV)/.installed $(shell find sessions/api contextlab/docs/openapi.py -name '*.py' 2>/dev/null)
	@$(BIN)/python -m contextlab.docs.openapi > $@.new && mv $@.new $@

$(CLIENT)/build/.built: $(CLIENT)/node_modules/.installed $(CLIENT)/openapi.json $(CLIENT_SOURCES)
	@echo "Building the TypeScript client (up to 20 seconds)"
	@rm -rf $(CLIENT)/dist $(CLIENT)/build
	@npm --prefix $(CLIENT) run build --silent
	@touch $@
