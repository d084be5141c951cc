# Recto. Every target makes what it needs first, so a fresh checkout needs nothing but `make run`.

PYTHON ?= python3
INSTALL := sh scripts/install.sh
PYTEST := .venv/bin/python -m pytest -q
STEP := sh scripts/step.sh
# Python keeps bytecode beside the sources, whatever the environment says: without it every process compiles anew.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX :=
# The layer and style rules, which `make check` tests.
HOUSE := tests/test_house.py tests/test_house_memo.py
# Packages without I/O.
PURE := tests/conversation tests/page tests/config tests/skills tests/agents tests/almanac
CLIENTS := tests/clients/node_modules/.made tests/clients/stock/node_modules/.made
NODE := sh scripts/node.sh
WEB := src/recto/web/index.html
# Folders too: they are newer than what was built where a file of theirs was removed.
WEB_SOURCES := $(shell find web/src web/public) web/index.html web/vite.config.ts web/tsconfig.json
COMPILE := .venv/bin/uv pip compile --quiet --system-certs --universal --generate-hashes --no-emit-index-url \
	--python-version 3.11 --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run web test unit check full fuzz bench wheel types documents pictures screenshots settings lock clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run: .venv/.run ## Start the server and show a first run
	@STEP_QUIET=1 npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=1000 $(MAKE) -s web 2>/dev/null || \
		echo "The web page could not be built; the server runs all the same. To see why: make web"
	@.venv/bin/recto serve --hello

web: $(WEB) ## Build the web page, where it changed

test: .venv/.dev tests/clients/stock/node_modules/.made $(WEB) ## Run the tests (the fast tier)
	@.venv/bin/python -m compileall -q src
	@echo "fast tier" && $(PYTEST) -m "not full" -n auto --dist loadfile $(HOUSE:%=--ignore=%)

unit: .venv/.dev ## Run the tests of the pure packages (while working)
	@$(PYTEST) -m "not full" -n auto --dist loadfile $(PURE)

full: .venv/.dev $(CLIENTS) $(WEB) ## Run the full tier: browsers, crashes, PostgreSQL, S3, SDKs, more examples
	@echo "full tier" && HYPOTHESIS_PROFILE=full TEST_CPU_SECONDS=60 $(PYTEST) -m "full or hypothesis" -n auto --dist loadgroup

check: .venv/.dev node_modules/.made web/node_modules/.made ## Lint, check formatting, types and the house rules
	@echo "ruff check" && .venv/bin/ruff check --quiet .
	@echo "ruff format --check" && .venv/bin/ruff format --quiet --check . || \
		{ echo "Formatting differs. Run: .venv/bin/ruff format ."; exit 1; }
	@echo "tsc" && $(NODE) npm --prefix web run --silent check
	@# Side by side: pyright takes one core for as long as the rules take another.
	@echo "pyright, house rules" && { $(NODE) node_modules/.bin/pyright & pyright=$$!; \
		TEST_CPU_SECONDS=60 $(PYTEST) $(HOUSE); rules=$$?; wait $$pyright && exit $$rules; }

fuzz: .venv/.dev ## Run the property tests with many random examples
	@echo "property tests, random" && HYPOTHESIS_PROFILE=fuzz $(PYTEST) -m hypothesis -n auto

bench: .venv/.dev ## Measure the page, the server, files and skills; at the end, the goals for speed
	@.venv/bin/python bench/table.py

wheel: .venv/.made $(WEB) ## Build the wheel and the source archive into dist, with the web page
	@$(STEP) "Building dist" .venv/bin/uv build --python .venv/bin/python --no-build-isolation --quiet --out-dir dist

types: .venv/.dev web/node_modules/.made ## Write the web page's types of the API again
	@.venv/bin/python scripts/web_types.py

documents: .venv/.dev ## Make the documents of the tests again (needs LibreOffice)
	@.venv/bin/python scripts/documents.py

pictures: .venv/.dev $(WEB) $(CLIENTS) ## Make the pictures of the documents again
	@.venv/bin/python scripts/pictures.py
	@.venv/bin/python scripts/screenshots.py

screenshots: .venv/.dev $(WEB) $(CLIENTS) ## Make pictures of every view of the web page, in build/screenshots
	@.venv/bin/python scripts/screenshots.py build/screenshots

settings: .venv/.dev ## Write the table of settings in docs/server.md again
	@.venv/bin/python scripts/settings_table.py

lock: .venv/.dev .venv/.node ## Write the lock files again; LOCK_FLAGS=--upgrade takes newer versions
	@$(STEP) "Locking what runs" $(COMPILE) $(LOCK_FLAGS) pyproject.toml -o requirements.lock
	@$(STEP) "Locking what the image has" $(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra all \
		-c requirements.lock -o requirements-image.lock
	@$(STEP) "Locking what builds" $(COMPILE) $(LOCK_FLAGS) --group build -o requirements-build.lock
	@$(STEP) "Locking what develops" $(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra all --group dev \
		-c requirements-image.lock -c requirements-build.lock -o requirements-dev.lock
	@$(STEP) "Locking Node.js" $(COMPILE) $(LOCK_FLAGS) --group web -o requirements-web.lock
	@$(STEP) "Locking the peer of the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/langchain.in -o bench/peers/langchain.lock
	@$(STEP) "Locking Pydantic AI for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/pydantic_ai.in -o bench/peers/pydantic_ai.lock
	@$(STEP) "Locking Agno for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/agno.in -o bench/peers/agno.lock
	@$(STEP) "Locking MarkItDown for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/markitdown.in -o bench/peers/markitdown.lock
	@$(STEP) "Locking an agent for the gateway's test" $(COMPILE) $(LOCK_FLAGS) bench/peers/mini_swe_agent.in -o bench/peers/mini_swe_agent.lock
	@$(STEP) "Locking pyright" $(NODE) npm install --package-lock-only --silent
	@$(STEP) "Locking the clients of the tests" $(NODE) npm --prefix tests/clients install --package-lock-only --silent
	@$(STEP) "Locking the stock clients of the tests" $(NODE) npm --prefix tests/clients/stock install --package-lock-only --silent
	@$(STEP) "Locking what builds the web page" $(NODE) npm --prefix web install --package-lock-only --silent

clean: ## Remove everything that make has made
	@rm -rf .venv node_modules tests/clients/node_modules tests/clients/stock/node_modules web/node_modules web/openapi.json src/recto/web dist build .pytest_cache .ruff_cache .hypothesis
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

.venv/.node: .venv/.made requirements-web.lock
	@$(NODE) --is-here || $(STEP) "Installing Node.js, from a wheel (60 MB)" $(INSTALL) requirements-web.lock
	@touch $@

node_modules/.made: package.json package-lock.json | .venv/.node
	@$(STEP) "Installing pyright" $(NODE) npm ci
	@touch $@

tests/clients/node_modules/.made: tests/clients/package.json tests/clients/package-lock.json tests/clients/unpack.mjs | .venv/.node
	@$(STEP) "Installing the clients of the tests" $(NODE) npm --prefix tests/clients ci
	@$(STEP) "Unpacking their browser" $(NODE) node tests/clients/unpack.mjs
	@touch $@

tests/clients/stock/node_modules/.made: tests/clients/stock/package.json tests/clients/stock/package-lock.json | .venv/.node
	@$(STEP) "Installing the stock clients of the tests" $(NODE) npm --prefix tests/clients/stock ci
	@touch $@

web/node_modules/.made: web/package.json web/package-lock.json | .venv/.node
	@$(STEP) "Installing what builds the web page" $(NODE) npm --prefix web ci
	@touch $@

$(WEB): web/node_modules/.made $(WEB_SOURCES)
	@$(STEP) "Building the web page" $(NODE) npm --prefix web run build
	@touch $@
