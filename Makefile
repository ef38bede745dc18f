# The environment is .venv; set VENV or PYTHON to use another.
VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do $$p -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
GYM = $(VENV)/bin/gym

.PHONY: eval setup dev system test quick slow lint vllm up down clean

eval: setup  ## The main job on the embedded model: 64 arithmetic tasks x 8 repeats
	$(GYM) eval run arithmetic --repeats 8 --temperature 1

setup: $(VENV)/.setup  ## gymflow and what it needs, into .venv

dev: $(VENV)/.dev  ## ... and what its tests need

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "gymflow needs Python 3.11, 3.12 or 3.13 with its venv module; set PYTHON=/path/to/python" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.setup: $(VENV)/bin/python pyproject.toml
	@echo "installing gymflow and what it needs into $(VENV) (minutes, the first time) …"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	@echo "installing gymflow, what it needs and what its tests need into $(VENV) (minutes, the first time) …"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,clouds]'
	@touch $@ $(VENV)/.setup

test: lint quick slow  ## Everything that CI runs

system:  ## What the tests of sandboxes need beyond Python; does nothing where it is there
	scripts/ci-setup

lint: dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

quick: dev system  ## About ten minutes on two cores
	$(VENV)/bin/pytest -q -n 2 --dist loadfile -m "not slow and not server and not docker and not harness"

slow: dev system  ## Real kills, a Prefect server, Docker, the command lines of foreign harnesses
	$(VENV)/bin/pytest -q -n 2 --dist loadfile -m "slow or server or docker or harness"

vllm: dev  ## A real vLLM on the CPU: 3.5 GB into a cache the first time; then many minutes on two cores
	GYMFLOW_VLLM=$$(scripts/vllm-cpu) $(VENV)/bin/pytest -q -m vllm

up: setup  ## A Prefect server with UI on loopback, and a worker
	$(GYM) up

down: setup
	$(GYM) down

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache dist
