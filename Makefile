# The everyday commands; CMake presets do the work. `make help` lists them.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PYTHON := /usr/bin/python3
VENV_PYTHON := build/venv/bin/python

# Clones in different folders share compiled objects.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: demo test bench asan format lint help

demo: ## build the program, migrate a text detector to the CPU and count the text regions of a page
	scripts/setup.sh build
	cmake --preset release
	cmake --build build --parallel $(JOBS) --target whimbrel
	scripts/demo.sh

test: ## build everything and run all tests; the last line is "N passed, N failed"
	scripts/setup.sh test
	cmake --preset release
	cmake --build build --parallel $(JOBS)
	$(VENV_PYTHON) scripts/fetch_models.py
	$(VENV_PYTHON) scripts/gen_node_tests.py
	scripts/run_tests.sh build

bench: ## compare with ONNX Runtime on this machine
	scripts/setup.sh bench
	cmake --preset release
	cmake --build build --parallel $(JOBS)
	$(VENV_PYTHON) scripts/fetch_models.py
	$(VENV_PYTHON) scripts/bench_vs_ort.py

asan: ## the tests with address and undefined behaviour sanitizers, in build-asan/
	scripts/setup.sh test
	cmake --preset asan
	cmake --build build-asan --parallel $(JOBS)
	$(VENV_PYTHON) scripts/fetch_models.py
	$(VENV_PYTHON) scripts/gen_node_tests.py
	scripts/run_tests.sh build-asan

format: ## clang-format 14 over the sources
	@formatter=$$(command -v clang-format-14 || command -v clang-format) || \
	  { echo "format: apt-get install clang-format-14" >&2; exit 3; }; \
	find whimbrel tests benchmarks -name '*.h' -o -name '*.cc' -o -name '*.inc' 2>/dev/null | sort | xargs -r "$$formatter" -i

lint: ## the folders are one straight tower; the shell scripts are sound where shellcheck is installed
	$(PYTHON) scripts/check_layers.py --self-test
	$(PYTHON) scripts/check_layers.py
	if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh .ci/run; fi

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
