# llmbus: what developers run. `make` lists the targets.
GO      ?= go
FUZZTIME ?= 5s

.DEFAULT_GOAL := help
.PHONY: help build test race check fmt fix vet lint arch dashboards fuzz bench bench-floor bench-compare bench-grow soak tidy page-test compose-test image clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the broker into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/broker ./cmd/broker

test: ## run every test, as the README does
	$(GO) test ./...

race: ## run every test under the race detector, in random order
	.ci/test -race -shuffle=on

check: fmt fix vet lint tidy arch race ## all that must be clean before a commit

fmt: ## fail on files that gofmt would change
	@test -z "$$(gofmt -l . | tee /dev/stderr)"

fix: ## fail on code that go fix would modernise
	@test -z "$$($(GO) fix -diff ./... | tee /dev/stderr)"

vet: ## run go vet
	$(GO) vet ./...

lint: ## run staticcheck
	$(GO) tool staticcheck ./...

arch: ## check imports and sizes
	$(GO) test ./internal/arch

dashboards: ## check every query of deploy/ against the metrics of a worker
	cd deploy/checks && $(GO) vet -mod=mod ./... && $(GO) test -mod=mod -count=1 ./... # mod: what the program requires has moved on

tidy: ## fail if go.mod or go.sum is not tidy
	$(GO) mod tidy -diff

# A target is tried twice, since go test may take the end of the time for a failure.
# An input that fails is kept, and fails the second try at once.
fuzz: ## run each fuzz target for FUZZTIME
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "fuzz $$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done

bench: ## run each benchmark once
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...

bench-floor: ## compare the broker with the least that a NATS worker can do
	$(GO) run ./bench $(BENCH)

bench-compare: ## compare the benchmarks of the hot path with those that are kept
	bench/compare

bench-grow: ## draw how the cost of a request grows with workers, features, breakers, targets and tenants
	$(GO) run ./bench grow -svg docs/performance $(BENCH)

.PHONY: examples
examples: ## run the examples of every language that is installed
	examples/run

soak: ## the long form of the load and crash tests
	$(GO) test -timeout 30m ./e2e -soak 10m

image: ## build the container image
	docker build -t llmbus/broker:dev .

page-test: ## drive the operator's page in a real browser
	internal/page/browsertest/run

compose-test: ## bring docker-compose.yml up and run the end-to-end suite against it
	deploy/compose/test.sh

clean: ## remove what was built
	rm -rf bin dist
