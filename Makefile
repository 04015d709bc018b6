# `make demo` and `make test` need Python 3.11 or newer with venv, and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo install test check test-slow bench bench-cascade format clean

demo: $(VENV)/installed
	$(BIN)/stories demo

install: $(VENV)/installed

# torch comes with the constraints: any other release costs gigabytes.
$(VENV)/installed: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[local,export,notebook,dev]'
	touch $@

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A worker for each core, each with a server of its own; PYTEST_ARGS="-n 0" for one after the other.
test: check
	$(BIN)/pytest -m "not slow" -n logical $(PYTEST_ARGS)

# The quality gate on all of og2021, ntrex and ecbplus: a quarter of an hour on two cores.
test-slow: $(VENV)/installed
	$(BIN)/pytest -m slow $(PYTEST_ARGS)

# Against sentence-transformers, the published SQL, NumPy and HDBSCAN; 1,000,000 articles take half an hour.
bench: $(VENV)/installed
	$(BIN)/python tests/benchmarks/bench.py $(BENCH_ARGS)

# One day's articles against 1,000,000 stored ones; BENCH_ARGS="--stored 9000000" for more.
bench-cascade: $(VENV)/installed
	$(BIN)/python tests/benchmarks/cascade.py $(BENCH_ARGS)

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
