# Two commands for a newcomer: `make run` shows Fusewire at work, `make test` proves it.
# DEMO=--verbose shows every word. Everything they need is put into .venv; nothing else on the machine is touched.

VENV := .venv
BIN  := $(VENV)/bin

.PHONY: run test test-fast test-root test-slow test-fleet test-agents test-browser lint types bench docs clean
.DEFAULT_GOAL := run

run: $(VENV)/ready
	@$(BIN)/fusewire demo $(DEMO)

# Last, so that the output ends with the number of tests. TESTS="--last-failed" goes to pytest, here and below.
test: lint types
	$(BIN)/python tests/outside_agent.py $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(TESTS)

# For every day, within a minute: the core, scenarios, readers, the detection corpus, both stores, the layers.
FAST := tests/test_layers.py tests/core tests/engine tests/config tests/util/test_text.py tests/testruns \
  tests/stores/test_store_conformance.py tests/guard/test_shell_reader.py tests/guard/test_guard_plain.py \
  tests/guard/test_guard_policy.py tests/agents/test_output.py tests/agents/test_transcripts.py \
  tests/breakers/loop/test_loop_detect.py tests/breakers/session/test_session_detectors.py \
  tests/breakers/session/test_detection.py tests/gate/test_hot_path.py

test-fast: $(VENV)/ready-dev
	$(BIN)/python tests/outside_agent.py $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(FAST) $(TESTS)

# What only root can set up: files of another user. Everything else is an ordinary user's.
test-root: $(VENV)/ready-dev
	$(BIN)/python tests/outside_agent.py $(BIN)/python -m pytest -m root $(TESTS)

# What takes minutes: thousands of real hooks, a kill at each writing system call.
test-slow: $(VENV)/ready-dev
	$(BIN)/python tests/outside_agent.py $(BIN)/python -m pytest -n auto --maxprocesses 4 -m slow $(TESTS)

# The store on PostgreSQL, against a server that the tests start and end (Debian's package will do).
test-fleet: $(VENV)/ready-dev
	$(BIN)/python tests/outside_agent.py $(BIN)/python -m pytest -m postgresql $(TESTS)

# The real agents, offline, against scripted models; npm installs them.
test-agents: $(VENV)/ready-dev
	$(BIN)/python tests/outside_agent.py $(BIN)/python e2e/run.py $(TESTS)

# The dashboard in a real Chromium (Debian's will do; CHROMIUM=... names another one).
test-browser: $(VENV)/ready-browser
	$(BIN)/python tests/outside_agent.py $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal tests/browser $(TESTS)

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready-dev
	$(BIN)/mypy

bench: $(VENV)/ready-bench
	$(BIN)/python bench/run.py

docs: $(VENV)/ready
	$(BIN)/python docs/generate.py

# The first Python on this machine that is new enough makes the environment.
$(VENV)/bin/python:
	@for p in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	  if command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    $$p -m venv $(VENV) && exit 0; rm -rf $(VENV); \
	  fi; \
	done; echo "make: Python 3.11 or newer with venv is needed, and none was found; name one with PYTHON=..." >&2; exit 1

$(VENV)/ready: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/ready-browser: $(VENV)/ready-dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	@touch $@

$(VENV)/ready-bench: $(VENV)/ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
