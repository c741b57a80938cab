# One virtual environment, and everything in it. `make demo` and `make test` need nothing set up before.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-all check bench clean

setup: $(STAMP)          ## Python environment and Java

$(STAMP): pyproject.toml .ci/setup
	sh .ci/setup $(VENV)
	touch $(STAMP)

demo: setup              ## Resolve bundled recordings of two real clusters and show what happened
	rm -rf build/demo
	$(BIN)/ndb-conflict resolve tests/recordings/demo/run.toml --out build/demo

check: setup             ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check              ## Everything that is fast enough for every commit
	$(BIN)/pytest -m "not slow"

test-all: check          ## Also the long checks
	$(BIN)/pytest

bench: setup             ## Measure decoding beside its peers; results go to build/bench
	test -d build/peers || $(BIN)/python -m venv build/peers
	build/peers/bin/pip install --quiet mysql-replication
	$(BIN)/python -m benchmarks.decode --size 64 --peer-python build/peers/bin/python --out build/bench/decode.json

clean:                   ## Remove what the other targets made
	rm -rf $(VENV) build
