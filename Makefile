# Gatehouse. `make demo` and `make test` do all the set-up themselves; the other targets say what they need.

GO      ?= go
TAGS    := nomsgpack
BIN     := bin/sf
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/gatehouse-registry/gatehouse/cli.Version=$(VERSION)
FUZZTIME ?= 10s
export CGO_ENABLED ?= 0

.PHONY: build demo test race fuzz bench microbench accept conformance soak lint clean

build: ## the one static binary
	$(GO) build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $(BIN) ./cli/sf

demo: build ## the main job from publish to launch, every step checked
	$(GO) run -tags $(TAGS) ./cli/demo -sf $(BIN)

test: lint ## every test, the race detector where there is a C compiler, and the fuzz targets for a few seconds
	$(GO) test -p 4 -tags $(TAGS) ./...
	$(MAKE) race
	@sh scripts/fuzz.sh '$(GO)' '$(TAGS)' 5s 1s

race: ## the packages with concurrency, under the race detector; CI always has a C compiler
	@sh scripts/race.sh '$(GO)' '$(TAGS)'

fuzz: ## every native fuzz target, FUZZTIME each
	@sh scripts/fuzz.sh '$(GO)' '$(TAGS)' '$(FUZZTIME)'

bench: build ## beside distribution and a bare server, as ratios of one run; writes docs/performance.md; needs a Go proxy
	$(GO) run -tags $(TAGS) ./scripts/bench -sf $(BIN) -write docs/performance.md

microbench: ## the parts, as ratios against a floor of the same run
	$(GO) test -tags $(TAGS) -run '^$$' -bench . -benchtime 1s ./digest/... ./admission/... ./registry/...

accept: build ## the unmodified clients of both platforms and of OCI, launches under Slurm, Ray, podman and ssh; needs root, Debian's packages of these, python3 >= 3.11, git, skopeo, podman, a Python index, a Go proxy
	GO='$(GO)' sh scripts/accept.sh $(BIN)

conformance: build ## the official OCI conformance program, embedded and on PostgreSQL + S3
	GO='$(GO)' sh scripts/conformance.sh $(BIN)

soak: ## collections, kills and races for half an hour; SOAK_MINUTES, SOAK_KILLS, SOAK_ROUNDS and SOAK_LAUNCHES set the lengths
	GO='$(GO)' sh scripts/soak.sh '$(TAGS)'

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "gofmt would change these files"; exit 1; }
	$(GO) vet -tags $(TAGS) ./... ./testdata/interop/...
	$(GO) tool staticcheck -tags $(TAGS) ./... ./testdata/interop/...

clean:
	rm -rf bin
