# Two commands do everything: `make demo` and `make test`. The environment is made on the way.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test format bench clean

demo: .venv/ready
	$(BIN)/evergraph demo

test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/evergraph bench materialise

clean:
	rm -rf .venv

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Evergraph needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
