# Recto. Every target makes what it needs first, so a fresh checkout needs nothing but `make run`.

PYTHON ?= python3
INSTALL := sh scripts/install.sh
PYTEST := .venv/bin/python -m pytest -q
STEP := sh scripts/step.sh
COMPILE := .venv/bin/uv pip compile --quiet --system-certs --universal --generate-hashes --no-emit-index-url \
	--python-version 3.11 --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test check fast full fuzz bench documents pictures settings lock clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run: .venv/.run ## Start the server and show a first run
	@.venv/bin/recto serve --hello

test: fast full ## Run the fast tier, then the full tier

check: .venv/.dev node_modules/.made ## Lint, check formatting, types and the house rules
	@echo "ruff check" && .venv/bin/ruff check --quiet .
	@echo "ruff format --check" && .venv/bin/ruff format --quiet --check . || \
		{ echo "Formatting differs. Run: .venv/bin/ruff format ."; exit 1; }
	@echo "pyright" && node_modules/.bin/pyright
	@echo "house rules" && $(PYTEST) tests/test_house.py tests/test_docs.py

fast: .venv/.dev tests/clients/node_modules/.made ## Run the fast tier only (while working)
	@echo "fast tier" && $(PYTEST) -m "not full" -n auto

full: .venv/.dev tests/clients/node_modules/.made ## Run the full tier only
	@echo "full tier" && sh scripts/full.sh $(PYTEST) -m full -n auto

fuzz: .venv/.dev ## Run the property tests with many random examples
	@echo "property tests, random" && HYPOTHESIS_PROFILE=fuzz $(PYTEST) -m hypothesis -n auto

bench: .venv/.dev ## Measure the page, the server, files and skills; at the end, the goals for speed
	@.venv/bin/python bench/table.py

documents: .venv/.dev ## Make the documents of the tests again (needs LibreOffice)
	@.venv/bin/python scripts/documents.py

pictures: .venv/.dev ## Make the pictures of the README again
	@.venv/bin/python scripts/pictures.py

settings: .venv/.dev ## Write the table of settings in docs/server.md again
	@.venv/bin/python scripts/settings_table.py

lock: .venv/.dev ## Write the lock files again; LOCK_FLAGS=--upgrade takes newer versions
	@$(STEP) "Locking what runs" $(COMPILE) $(LOCK_FLAGS) pyproject.toml -o requirements.lock
	@$(STEP) "Locking what the image has" $(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra all \
		-c requirements.lock -o requirements-image.lock
	@$(STEP) "Locking what builds" $(COMPILE) $(LOCK_FLAGS) --group build -o requirements-build.lock
	@$(STEP) "Locking what develops" $(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra all --group dev \
		-c requirements-image.lock -c requirements-build.lock -o requirements-dev.lock
	@$(STEP) "Locking the peer of the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/langchain.in -o bench/peers/langchain.lock
	@$(STEP) "Locking Pydantic AI for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/pydantic_ai.in -o bench/peers/pydantic_ai.lock
	@$(STEP) "Locking Agno for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/agno.in -o bench/peers/agno.lock
	@$(STEP) "Locking MarkItDown for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/markitdown.in -o bench/peers/markitdown.lock
	@command -v npm >/dev/null || { echo "package-lock.json needs npm: install Node.js 18 or newer."; exit 1; }
	@$(STEP) "Locking pyright" npm install --package-lock-only --silent
	@$(STEP) "Locking the clients of the tests" npm --prefix tests/clients install --package-lock-only --silent

clean: ## Remove everything that make has made
	@rm -rf .venv node_modules tests/clients/node_modules dist build .pytest_cache .ruff_cache .hypothesis
	@find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.venv/.made: requirements-build.lock
	@$(STEP) "Making .venv" sh scripts/venv.sh $(PYTHON)
	@touch $@

.venv/.run: .venv/.made requirements.lock pyproject.toml
	@$(STEP) "Installing what Recto needs ($$(grep -c == requirements.lock) packages, 300 MB)" $(INSTALL) requirements.lock
	@$(STEP) "Installing Recto itself, as it stands here" $(INSTALL) --editable
	@touch $@

# Compiled at once: what a compiler warns of in packages of others would fail the tests.
.venv/.dev: .venv/.run requirements-dev.lock
	@$(STEP) "Installing the development tools ($$(grep -c == requirements-dev.lock) packages)" env UV_COMPILE_BYTECODE=1 $(INSTALL) requirements-dev.lock
	@touch $@

node_modules/.made: package.json package-lock.json
	@command -v npm >/dev/null || { echo "make check needs pyright, and pyright needs node and npm: install Node.js 18 or newer."; exit 1; }
	@$(STEP) "Installing pyright" npm ci
	@touch $@

tests/clients/node_modules/.made: tests/clients/package.json tests/clients/package-lock.json tests/clients/unpack.mjs
	@command -v npm >/dev/null || { echo "The tests talk to the server with real clients, which need node and npm: install Node.js 20.11 or newer."; exit 1; }
	@$(STEP) "Installing the clients of the tests" npm --prefix tests/clients ci
	@$(STEP) "Unpacking their browser" node tests/clients/unpack.mjs
	@touch $@
