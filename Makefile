# Recto. Every target installs its own prerequisites; a fresh checkout needs only `make run`.

PYTHON ?= python3
INSTALL := sh scripts/install.sh
PYTEST := .venv/bin/python -m pytest -q
STEP := sh scripts/step.sh
# Keep bytecode beside the sources whatever the environment says; without it every process compiles again.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX :=
# The layer, style and language rules, which `make check` tests.
RULES := tests/test_layers.py tests/test_memo_rules.py tests/test_language.py
# Packages without I/O.
PURE := tests/conversation tests/page tests/config tests/skills tests/agents tests/almanac
CLIENTS := tests/clients/node_modules/.made tests/clients/stock/node_modules/.made
NODE := sh scripts/node.sh
WEB := src/recto/web/index.html
# Include folders: removing a file makes its folder newer than the build.
WEB_SOURCES := $(shell find web/src web/public) web/index.html web/vite.config.ts web/tsconfig.json
COMPILE := .venv/bin/uv pip compile --quiet --system-certs --universal --generate-hashes --no-emit-index-url \
	--python-version 3.11 --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run web test unit check full fuzz bench wheel types documents pictures screenshots code-map metrics settings lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run: .venv/.run ## Start the server and a first run
	@STEP_QUIET=1 npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=1000 $(MAKE) -s web 2>/dev/null || \
		echo "Could not build the web page; the server starts without it. Run make web to see why."
	@.venv/bin/recto serve --hello

web: $(WEB) ## Build the web page if it changed

test: .venv/.dev tests/clients/stock/node_modules/.made $(WEB) ## Run the tests (the fast tier)
	@.venv/bin/python -m compileall -q src
	@echo "fast tier" && $(PYTEST) -m "not full" -n auto --dist loadfile $(RULES:%=--ignore=%)

unit: .venv/.dev ## Run the tests of the pure packages
	@$(PYTEST) -m "not full" -n auto --dist loadfile $(PURE)

full: .venv/.dev $(CLIENTS) $(WEB) ## Run the full tier: browsers, crashes, PostgreSQL, S3, SDKs, more examples
	@echo "full tier" && HYPOTHESIS_PROFILE=full TEST_CPU_SECONDS=60 $(PYTEST) -m "full or hypothesis" -n auto --dist loadgroup

check: .venv/.dev node_modules/.made web/node_modules/.made ## Lint, check formatting, types and the rules of the code base
	@echo "ruff check" && .venv/bin/ruff check --quiet .
	@echo "ruff format --check" && .venv/bin/ruff format --quiet --check . || \
		{ echo "Formatting differs. Run: .venv/bin/ruff format ."; exit 1; }
	@echo "tsc" && $(NODE) npm --prefix web run --silent check
	@# In parallel: pyright uses one core while the rules use the other.
	@echo "pyright, rules" && { $(NODE) node_modules/.bin/pyright & pyright=$$!; \
		TEST_CPU_SECONDS=60 $(PYTEST) $(RULES); rules=$$?; wait $$pyright && exit $$rules; }

fuzz: .venv/.dev ## Run the property tests with many random examples
	@echo "property tests, random" && HYPOTHESIS_PROFILE=fuzz $(PYTEST) -m hypothesis -n auto

bench: .venv/.dev ## Run the benchmarks and compare them with the speed goals
	@.venv/bin/python bench/table.py

wheel: .venv/.made $(WEB) ## Build the wheel and source archive, with the web page, in dist
	@$(STEP) "Building dist" .venv/bin/uv build --python .venv/bin/python --no-build-isolation --quiet --out-dir dist

types: .venv/.dev web/node_modules/.made ## Regenerate the web page's API types
	@.venv/bin/python -m scripts.web_types

documents: .venv/.dev ## Regenerate the test documents (needs LibreOffice)
	@.venv/bin/python -m scripts.documents

pictures: .venv/.dev $(WEB) $(CLIENTS) ## Regenerate the pictures of the docs
	@.venv/bin/python -m scripts.pictures
	@.venv/bin/python -m scripts.screenshots

screenshots: .venv/.dev $(WEB) $(CLIENTS) ## Take screenshots of every view of the web page, in build/screenshots
	@.venv/bin/python -m scripts.screenshots build/screenshots

code-map: .venv/.dev ## Regenerate docs/code-map.md from the module docstrings
	@.venv/bin/python -m scripts.code_map

metrics: .venv/.dev ## Print the measures of the code's form and language
	@.venv/bin/python -m scripts.code_metrics

settings: .venv/.dev ## Regenerate the table of settings in docs/server.md
	@.venv/bin/python -m scripts.settings_table

lock: .venv/.dev .venv/.node ## Regenerate the lock files; LOCK_FLAGS=--upgrade updates versions
	@$(STEP) "Locking dependencies" $(COMPILE) $(LOCK_FLAGS) pyproject.toml -o requirements.lock
	@$(STEP) "Locking the image" $(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra all \
		-c requirements.lock -o requirements-image.lock
	@$(STEP) "Locking the build tools" $(COMPILE) $(LOCK_FLAGS) --group build -o requirements-build.lock
	@$(STEP) "Locking the development tools" $(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra all --group dev \
		-c requirements-image.lock -c requirements-build.lock -o requirements-dev.lock
	@$(STEP) "Locking Node.js" $(COMPILE) $(LOCK_FLAGS) --group web -o requirements-web.lock
	@$(STEP) "Locking LangChain for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/langchain.in -o bench/peers/langchain.lock
	@$(STEP) "Locking Pydantic AI for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/pydantic_ai.in -o bench/peers/pydantic_ai.lock
	@$(STEP) "Locking Agno for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/agno.in -o bench/peers/agno.lock
	@$(STEP) "Locking MarkItDown for the bench" $(COMPILE) $(LOCK_FLAGS) bench/peers/markitdown.in -o bench/peers/markitdown.lock
	@$(STEP) "Locking mini-swe-agent for the gateway test" $(COMPILE) $(LOCK_FLAGS) bench/peers/mini_swe_agent.in -o bench/peers/mini_swe_agent.lock
	@$(STEP) "Locking pyright" $(NODE) npm install --package-lock-only --silent
	@$(STEP) "Locking the test clients" $(NODE) npm --prefix tests/clients install --package-lock-only --silent
	@$(STEP) "Locking the stock test clients" $(NODE) npm --prefix tests/clients/stock install --package-lock-only --silent
	@$(STEP) "Locking the web build" $(NODE) npm --prefix web install --package-lock-only --silent

clean: ## Remove everything that make created
	@rm -rf .venv node_modules tests/clients/node_modules tests/clients/stock/node_modules web/node_modules web/openapi.json src/recto/web dist build .pytest_cache .ruff_cache .hypothesis
	@find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.venv/.made: requirements-build.lock
	@$(STEP) "Creating .venv" sh scripts/venv.sh $(PYTHON)
	@touch $@

.venv/.run: .venv/.made requirements.lock pyproject.toml
	@$(STEP) "Installing dependencies ($$(grep -c == requirements.lock) packages, 300 MB)" $(INSTALL) requirements.lock
	@$(STEP) "Installing Recto itself, editable" $(INSTALL) --editable
	@touch $@

# Compile now: a compiler warning in a third-party package would otherwise fail a test.
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
	@$(STEP) "Installing the test clients" $(NODE) npm --prefix tests/clients ci
	@$(STEP) "Unpacking the test browser" $(NODE) node tests/clients/unpack.mjs
	@touch $@

tests/clients/stock/node_modules/.made: tests/clients/stock/package.json tests/clients/stock/package-lock.json | .venv/.node
	@$(STEP) "Installing the stock test clients" $(NODE) npm --prefix tests/clients/stock ci
	@touch $@

web/node_modules/.made: web/package.json web/package-lock.json | .venv/.node
	@$(STEP) "Installing the web build" $(NODE) npm --prefix web ci
	@touch $@

$(WEB): web/node_modules/.made $(WEB_SOURCES)
	@$(STEP) "Building the web page" $(NODE) npm --prefix web run build
	@touch $@
