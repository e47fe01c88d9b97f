# Two commands do everything: `make demo` and `make test`. The environment is made on the way. `make test-gpu` is for a GPU.
PYTHON ?= python3
BIN := .venv/bin
ON_GPU := cases laws deletions counting rule_changes rule_rows declarative declarative_rules overlap submit submit_races edges \
	equality equality_laws equality_store explain explain_examples store stream stream_laws windows window_program \
	sparql sparql_laws owl owl_laws
# What holds in memory holds on a GPU.

.PHONY: demo test test-gpu format bench clean

demo: .venv/ready
	$(BIN)/evergraph demo

test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

test-gpu: .venv/ready
	if command -v nvidia-smi > /dev/null; then $(BIN)/pip install --quiet --disable-pip-version-check -e '.[gpu]'; fi
	$(BIN)/pytest -q -rs -m gpu tests/test_gpu*.py tests/test_kernel.py
	$(BIN)/pytest -q -rs -m "not spark" --engine gpu $(ON_GPU:%=tests/test_%.py)

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
