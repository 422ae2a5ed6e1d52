# SPDX-License-Identifier: Apache-2.0
# Each target works on a fresh clone with python3 >= 3.11 and brings what is missing into .venv/ and agents/bin/. Nothing needs root.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
GO := $(CURDIR)/$(BIN)/go
export GOTOOLCHAIN := local
export GOFLAGS := -mod=readonly -buildvcs=false
export CGO_ENABLED := 0
# Each of the many processes of a test would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

EFFORT := 10

AGENT := agents/bin/bwb-agent
AGENT_SOURCES := agents/go.mod agents/go.sum $(shell find agents/cmd agents/internal -name '*.go' -not -name '*_test.go' 2>/dev/null)
VERSION := $(shell packaging/version --build)

# Of what failed, tests marked `real_time` are played again, at most twice (.ci/pytest, .ci/gotest). What measures real time runs alone, one after
# the other. Whole brokers mostly wait: they run beside what computes. Playwright's loop shares its process with no other; each of its processes has
# a browser and a broker.
ALONE := tests/lab tests/agents/test_managed.py
CHAOS := tests/chaos tests/agents/test_partition.py tests/agents/test_small_files.py
WHOLE := tests/embedded tests/demo
BROWSER := tests/dashboard
# What computes beside tests that read the clock gets what they leave (SCHED_IDLE: a test that wakes up goes first).
IDLE := $(shell chrt --idle 0 true 2>/dev/null && echo chrt --idle 0)
APART := tests/abuse tests/contract $(ALONE) $(CHAOS) $(WHOLE) $(BROWSER)

.PHONY: help generate setup tools build scans dashboard up demo test check bench abuse screenshots experiment-endhost packages release-check quick fmt lint types imports contract web vet
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' Makefile

setup: ## bring what is missing: Python packages, Go, Node
	@flock Makefile .ci/setup

tools: ## what tests run beside our own: rsync, rclone, iperf3, ... in network namespaces, Chromium (installed as root, else named)
	@.ci/lab-tools
	@.ci/browser

build: setup $(AGENT) dashboard scans ## build the agent, the gateway, the dashboard and the machine code of the scans

scans: setup ## compile the scans of gamma(t), when their sources have changed
	@flock Makefile $(BIN)/python -m broker.machine_code

dashboard: setup ## build the dashboard, when its sources have changed
	@flock Makefile $(BIN)/python packaging/dashboard.py

$(AGENT): $(AGENT_SOURCES) | setup
	cd agents && flock ../Makefile $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/...
	@touch $@

up: build ## run the whole broker on this machine (ctrl-C stops it)
	@exec $(BIN)/bwb up

demo: build ## a broker, two hosts and transfers between them, to watch
	@exec $(BIN)/python -m broker.cli.demo

test: build tools ## everything that CI runs; EFFORT=100 draws all cases of the property tests instead of a tenth
	@BWB_TEST_EFFORT=$(EFFORT) .ci/stages \
	  'pytest: .ci/pytest -n 2 --dist worksteal $(APART:%=--ignore=%)' \
	  beside \
	  'chaos: .ci/pytest $(CHAOS)' \
	  'go: .ci/gotest untimed' \
	  then \
	  'browser: .ci/pytest -n 3 --dist worksteal $(BROWSER)' \
	  beside \
	  'whole: .ci/pytest -n 2 --dist worksteal $(WHOLE)' \
	  then \
	  'alone: .ci/pytest $(ALONE)' \
	  then \
	  'gotimed: .ci/gotest timed' \
	  beside \
	  'check: $(IDLE) $(MAKE) --no-print-directory --keep-going check'

bench: build tools ## figures, as one JSON object; progress on stderr. PARTS="planner memory" measures these alone
	@exec $(BIN)/python -m tests.bench $(PARTS)

abuse: setup ## every attack beside a normal client: its worst wait and the memory of the API; figures into FIGURES=abuse.json
	@$(BIN)/python -m pytest -q -s tests/abuse --abuse-figures $(or $(FIGURES),abuse.json)

screenshots: build tools ## pictures of every page of the dashboard, with data, into docs/dashboard
	@exec $(BIN)/python -m tests.dashboard.screenshots

experiment-endhost: build tools ## RR-6205, tables 2 and 3, measured here (as root, about an hour; goes on where it was stopped)
	@exec $(BIN)/python -m tests.experiments.endhost --docs docs/experiments

packages: setup ## bwb-agent as binaries, deb and rpm for amd64 and arm64, into dist/
	@GO=$(GO) packaging/build

release-check: ## may this commit be released as TAG=v1.2.3?
	@packaging/release-check $(TAG)

quick: lint imports ## the part of `make check` that takes seconds; pre-commit runs it

check: lint types imports contract web vet ## lint, types, import rules, generated-code drift

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

# Drift, validity and style of the contract, and what is made of it: the Python client's documents, and clients in three languages, which
# are compiled and drive a real broker.
contract: setup scans
	$(BIN)/bwb openapi --check
	$(BIN)/python packaging/contract.py validate
	$(BIN)/python packaging/contract.py lint
	$(BIN)/python packaging/contract.py documents --check
	.ci/pytest tests/contract

generate: setup ## write the contract, and what is made of it: documents of the Python client, types of the dashboard and of the agent
	$(BIN)/bwb openapi
	$(BIN)/python packaging/contract.py documents
	$(BIN)/python packaging/dashboard.py run types
	cd agents && $(GO) generate ./internal/brokerapi

web: setup
	flock Makefile $(BIN)/python packaging/dashboard.py run lint
	$(BIN)/python packaging/dashboard.py run check
	$(BIN)/python packaging/dashboard.py run test
	$(BIN)/python packaging/dashboard.py run types --check

vet: setup
	cd agents && $(GO) vet ./...
	cd agents && $(GO) tool staticcheck ./...
	cd agents && unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }

fmt: setup ## format and fix what a machine can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	flock Makefile $(BIN)/python packaging/dashboard.py run format
	cd agents && "$$($(GO) env GOROOT)/bin/gofmt" -w .
