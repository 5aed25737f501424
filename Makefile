# Parley. `make help` says what there is.

SHELL        := /bin/bash
.SHELLFLAGS  := -eu -o pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
# Documentation is embedded, but does not change how calls run.
VERSION := $(shell git describe --tags --always 2>/dev/null || echo dev)$(shell git rev-parse -q HEAD >/dev/null 2>&1 && { git diff --quiet HEAD -- . ':!docs' || echo -dirty; })
TOOL    := go tool -modfile=.ci/tools.mod

.PHONY: help build run test quick race calm lint vuln fmt tidy check system analysis soak chaos bench bench-full sdk fuzz deps deps-run clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[1m%-10s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/parley: static, pure Go
	@echo 'Building bin/parley (the first build takes a few minutes) …'
	@go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/parley .

run: deps-run build ## place one real call here on this machine and show it, then keep serving
	@bin/parley demo

# Packages that talk in real time, with processes of their own: beside others they
# hear how those hold the machine up.
TIMED := ./bench/turns ./bench/target

test: deps ## run every test (some 10 min on two cores)
	@go test -timeout 10m $$(go list ./... | tail -n +2 | grep -vxF "$$(go list $(TIMED))")
	@go test -timeout 10m -p 1 $(TIMED)
	@go test -timeout 15m .

quick: ## check a change in about a minute: build, vet, lint and the nearest tests
	@.ci/quick

race: deps calm ## run every test, with the race detector; those that talk in real time last, alone
	@$(MAKE) --no-print-directory race-packages
	@CGO_ENABLED=1 go test -vet=off -race -timeout 20m -parallel 4 .

# The system tests of the root run whole servers, whose parts race-packages tests with the race detector. They run
# without it before a change lands, and with it in the soak.
race-packages: deps calm
	@CGO_ENABLED=1 go test -vet=off -race -timeout 10m -p 3 $$(go list ./... | tail -n +2 | grep -vxF "$$(.ci/calm; go list $(TIMED))")
	@CGO_ENABLED=1 go test -vet=off -race -timeout 10m -p 1 $(TIMED)

calm: deps
	@go test -vet=off -timeout 10m -p 3 $$(.ci/calm)

lint: ## run the linters of .golangci.yml
	@$(TOOL) golangci-lint run ./...

sdk: ## check the Go SDK, a module of its own (go test ./api/conformance runs all SDKs)
	@cd api/sdk/go && GOWORK=off go vet ./... && GOWORK=off go test ./...
	@root=$$PWD && cd api/sdk/go && go tool -modfile=$$root/.ci/tools.mod golangci-lint run -c $$root/.golangci.yml ./...

vuln: ## look for known vulnerabilities in what the program calls
	@.ci/vuln

fmt: ## format the code
	@$(TOOL) golangci-lint fmt ./...

tidy: ## tidy go.mod
	@go mod tidy

# What is built, linted and tested without the race detector is compiled once. The system tests wait half of their time for
# calls; the analysis runs meanwhile, at idle priority.
check: export GOFLAGS := -trimpath
check: deps build sdk ## what must hold before a change lands: format, tidy, lint, race, system tests (≤ 15 min)
	@echo '── format'; $(TOOL) golangci-lint fmt --diff ./...
	@echo '── tidy';   go mod tidy -diff
	@$(MAKE) --no-print-directory -j2 --output-sync=recurse system analysis
	@echo '── race';   $(MAKE) --no-print-directory race-packages

system: deps
	@echo '── system'; go test -vet=off -timeout 15m -parallel 4 .

analysis:
	@echo '── lint';   chrt --idle 0 $(MAKE) --no-print-directory lint
	@echo '── vuln';   chrt --idle 0 $(MAKE) --no-print-directory vuln

soak: deps build ## the long harnesses: kill -9 over hundreds of calls, 100 calls for 10 min, a million calls listed and in pages, 10,000 turns, 100 requests and 40 servers killed, campaigns at their pace, the vendors' SDKs, generated clients (needs npm and the Go proxy)
	@PARLEYTEST_SOAK=1 go test -count=1 -timeout 60m -v -run 'TestSoak|TestTakeCost' . ./sip ./api ./api/dashboard ./control/retention ./control/store ./campaigns/dialer/pgqueue ./pipeline/fakeprovider
	@PARLEYTEST_SOAK=1 go test -count=1 -timeout 10m -run 'TestTenThousandTurns' ./pipeline/pipetest
	@CGO_ENABLED=1 go test -vet=off -race -count=1 -timeout 30m -parallel 4 .
	@CGO_ENABLED=1 go test -vet=off -race -count=1 -timeout 30m -p 2 ./api ./api/conformance ./webrtc/jsclient ./control/db ./control/store ./control/failover ./campaigns/service ./campaigns/dialer/pgqueue
	@PARLEYTEST_WEB_CALLS=100 go test -count=1 -timeout 10m -v -run 'TestSoakWeb' .
	@PARLEYTEST_KILLS=50 PARLEYTEST_SOAK=1 go test -count=1 -timeout 15m -v -run 'TestKillDuringRequest|TestSDKs|TestTypeScript' ./api/conformance ./webrtc/jsclient

chaos: deps build ## three nodes and random faults for TIME (10m; an hour before a release), repeatable by SEED, as root
	@PARLEYTEST_CHAOS=$(or $(TIME),10m) PARLEYTEST_CHAOS_SEED=$(SEED) go test -count=1 -timeout 3h -v -run 'TestChaos$$' .

bench: deps build ## run all benchmarks briefly (≤ 10 min) and write the report
	@bin/parley bench all --small --dir bin/bench/small

bench-full: deps build ## run all benchmarks (≤ 60 min, resumable) into docs/benchmarks.md
	@bin/parley bench all --dir bin/bench/full --into docs/benchmarks.md

fuzz: ## fuzz everything that reads from outside, 60 s each
	@.ci/fuzz 60s

deps: ## install what the tests need and is missing (Debian)
	@.ci/deps test

deps-run: ## install what `make run` needs and is missing: PostgreSQL (Debian)
	@.ci/deps run

clean: ## remove what was built and the demo's data
	@rm -rf bin .parley .parley-demo
