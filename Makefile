# Everything a fresh clone needs: `make demo` and `make test` set up what they use, `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help venv java servers lakehouse kernels setup lint test test-fast fuzz soak chaos test-wheel test-lowest test-servers test-lakehouse demo demo-lakehouse perf clean

VENV := .venv
PYTHON_IN_VENV := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

# The loopback address, since Spark would look up the machine's own name, which not every network knows.
WITH_SPARK = JAVA_HOME="$$(tests/setup/java.sh)" SPARK_LOCAL_IP=127.0.0.1

# Tests wait for servers more than they compute. A file stays in one process, with the servers that it set up; files
# begin in the order of their names, so that the many short unit tests come last and fill all processes to the end.
SIDE_BY_SIDE = --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 30

# What tests need beside the packages of `venv`.
PARTS = java servers lakehouse kernels

FUZZ_SECONDS ?= 300
FUZZ_SEED ?= $(shell date +%s)

# Where a real server cannot be had its tests fail; BINLOG_ENGINE_REQUIRE_SERVERS=0 has them skipped instead.
export BINLOG_ENGINE_REQUIRE_SERVERS ?= 1

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(INSTALLED) ## make .venv and install the engine into it, with all that Spark, tests and tools need

$(INSTALLED): pyproject.toml
	@$(PYTHON_IN_VENV) -m pip --version >/dev/null 2>&1 || PYTHON='$(PYTHON)' tests/setup/venv.sh $(VENV)
	$(PYTHON_IN_VENV) -m pip install --quiet --disable-pip-version-check --retries 5 --use-pep517 \
		--editable '.[spark,dev]'
	@touch $@

java: ## find Java 17 or later for Spark, or install one
	@tests/setup/java.sh >/dev/null

servers: venv java ## download the real servers for the tests, and build an S3 server with Go, into the user's cache folder
	@$(WITH_SPARK) $(PYTHON_IN_VENV) -m tests.servers

lakehouse: venv java ## download PySpark and packages for the tests of Delta and Iceberg, once, into the cache
	@$(WITH_SPARK) $(PYTHON_IN_VENV) -m tests.support.lakehouse

kernels: venv ## compile the kernels into their cache and modules to bytecode, and unpack PySpark's archives of modules
	@# An installation has the bytecode; where Python is told not to write it, a checkout would never have it.
	$(PYTHON_IN_VENV) -m compileall -q engine
	tests/setup/spark_modules.sh "$$($(PYTHON_IN_VENV) -c 'import pyspark; print(*pyspark.__path__)')/python/lib" \
		$(abspath $(PYTHON_IN_VENV))
	$(PYTHON_IN_VENV) -m engine.commands.compile_kernels

lint: venv ## ruff, mypy, and which package may import which
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

setup: venv ## venv, java, servers, lakehouse and kernels, side by side
	@$(MAKE) --no-print-directory --jobs=4 $(PARTS)

test: venv ## setup and lint, then all tests, real servers and Spark included
	@$(MAKE) --no-print-directory --jobs=5 $(PARTS) lint
	@# Servers, Spark and the engine share the machine's cores: what fails gets a second try, and the last lines say so.
	$(WITH_SPARK) PYTHON=$(PYTHON_IN_VENV) tests/setup/twice.sh $(SIDE_BY_SIDE) -- $(TESTS)

test-fast: venv kernels ## the unit tests: no servers, no Spark
	$(VENV)/bin/pytest $(SIDE_BY_SIDE) tests/unit

fuzz: venv ## the decoders' tests, then damaged binlogs for FUZZ_SECONDS (300); every access to memory checked
	BINLOG_ENGINE_CHECK_BOUNDS=1 $(VENV)/bin/pytest $(SIDE_BY_SIDE) tests/unit/decode tests/unit/binlog tests/unit/snapshot
	export BINLOG_ENGINE_CHECK_BOUNDS=1; \
	for how in hostile guided; do \
		$(PYTHON_IN_VENV) -m tests.fuzz.$$how --seconds $$(($(FUZZ_SECONDS) / 2)) --seed $(FUZZ_SEED); \
	done

soak: setup ## a failing network, and old data that is compacted and removed, under load, SECONDS_EACH (600) per server
	BINLOG_ENGINE_SOAK_SECONDS=$(or $(SECONDS_EACH),600) $(VENV)/bin/pytest -rP tests/integration/faults/test_network_faults.py \
		tests/integration/faults/test_old_data_of_a_run.py

chaos: setup ## FAULTS (180) random faults on each of four servers, checked at every commit; then planted faults, all noticed
	$(PYTHON_IN_VENV) -m tests.chaos --faults $(or $(FAULTS),180) $(if $(SEED),--seed $(SEED))
	$(PYTHON_IN_VENV) -m tests.chaos --planted

demo: venv java kernels ## sample binlogs through the whole engine into a Spark streaming query
	$(WITH_SPARK) $(VENV)/bin/binlog-engine demo

test-wheel: setup ## build a wheel, install it into a fresh environment, and run it (minutes)
	BINLOG_ENGINE_WHEEL=1 $(VENV)/bin/pytest tests/integration/processes/test_wheel.py

test-lowest: setup ## tests with the lowest versions that pyproject.toml allows, in an environment of their own (Python 3.11 or 3.12)
	@mkdir -p build
	$(PYTHON_IN_VENV) tests/setup/lowest.py >build/lowest.txt
	PIP_CONSTRAINT=$(abspath build/lowest.txt) $(MAKE) VENV=build/lowest venv kernels
	$(WITH_SPARK) build/lowest/bin/pytest $(SIDE_BY_SIDE) tests/unit tests/integration/processes tests/integration/spark

test-servers: setup ## on all kinds of servers the long tests, which `make test` has on three of them
	BINLOG_ENGINE_ALL_SERVERS=1 $(WITH_SPARK) $(VENV)/bin/pytest $(SIDE_BY_SIDE) -m fewer_servers tests

test-lakehouse: setup ## the tests of Delta and Iceberg, also those that take too long for `make test`
	BINLOG_ENGINE_LAKEHOUSE=1 $(WITH_SPARK) $(VENV)/bin/pytest tests/integration/lakehouse

demo-lakehouse: setup ## a real MySQL server kept as Delta tables, with an ALTER TABLE on the way
	@$(WITH_SPARK) $(PYTHON_IN_VENV) -m tests.support.demo_lakehouse 2>/dev/null

perf: setup ## measure the engine beside other programs: all cases, tables, plots and profile (20 minutes)
	$(WITH_SPARK) $(PYTHON_IN_VENV) -m perf

clean: ## remove what make and the tools made here (not the servers in the cache folder)
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis perf/work
	rm -rf spark-warehouse metastore_db derby.log
	find engine tests perf -name __pycache__ -type d -prune -exec rm -rf {} +
