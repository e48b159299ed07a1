# `make` lists the targets and the names of the suites, `make suites` what each suite shows and needs. Go is enough to
# build and to test. The suites are in tools/suite.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help suites suite test lint fmt check build build-dcgm image image-push sbom release release-dry-run \
  generate goldens docs dashboards chart clean force

# The product is built without cgo, and so are its tests: one build serves both. Only the race detector needs it.
export CGO_ENABLED := 0

VERSION  ?= $(shell git describe --tags --dirty 2>/dev/null || echo 0.0.0-dev)
REVISION := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
BRANCH   := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null || echo unknown)
# The commit's time, not the build's: the same commit gives the same bytes.
DATE := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d-%H:%M:%S 2>/dev/null || echo unknown)

STAMP   := github.com/prometheus/common/version
LDFLAGS  = -X $(STAMP).Version=$(VERSION) -X $(STAMP).Revision=$(REVISION) \
  -X $(STAMP).Branch=$(BRANCH) -X $(STAMP).BuildDate=$(DATE)

IMAGE      ?= replayd
# A tag has no "+", and a release's no "v".
TAG        := $(subst +,-,$(patsubst v%,%,$(VERSION)))
PLATFORMS  ?= linux/amd64,linux/arm64
BUILD_ARGS := --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) \
  --build-arg BRANCH=$(BRANCH) --build-arg DATE=$(DATE)

export DIST ?= $(CURDIR)/dist

# Tests with libraries that the product must not depend on.
MODULES := test/mixin test/rollouts
# Those with a thousand packages and more; the suite lint-large looks at them.
LARGE := test/argo test/flagger test/intervals test/kubernetes

TAGS := real,tokenizers,replay,daemon,prometheus,live,engines,peers,bench,faults,tutorial,canary,between,monitors
LINT := golangci-lint
TOOL := go tool -modfile=tools/go.mod
# The same tool, from the folder of a module.
THERE := go tool -modfile=../../tools/go.mod

CHART_FILES := $(wildcard alerts/*.yaml) $(wildcard dashboards/*.json) internal/synth/sample.jsonl

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "make suite NAME=…, one of these; make suites says what each shows:"
	@tools/suite names | paste -sd' ' | fold -s -w 78 | sed 's/^/  /'

suites: ## the suites: what each shows, and what it needs beyond Go
	@tools/suite

suite: ## runs the suite NAME, or several: NAME="bench-truth race"
	@tools/suite $(or $(NAME),"")

test: ## all tests that need nothing but Go
	go test ./...

lint: ## go vet, golangci-lint, no cgo; its first build takes minutes
	@cgo=$$(CGO_ENABLED=1 go list -f '{{range .CgoFiles}}{{$$.Dir}}/{{.}} {{end}}' ./...); \
	if [ -n "$${cgo//[[:space:]]/}" ]; then \
	  echo "cgo is used, and the binary would not be static:" $$cgo >&2; exit 1; \
	fi
	go vet -tags $(TAGS) ./...
	$(TOOL) $(LINT) run
	go vet -tags dcgm ./internal/gpu/... ./test/dcgm/
	$(TOOL) $(LINT) run --build-tags dcgm ./internal/gpu/... ./test/dcgm/
	for m in $(MODULES); do (cd $$m && go vet -tags real ./...) || exit 1; done
	for m in $(MODULES); do \
	  (cd $$m && $(THERE) $(LINT) run --build-tags real -c ../../.golangci.yml ./...) || exit 1; \
	done

fmt: ## formats every Go file
	$(TOOL) $(LINT) fmt
	for m in $(MODULES) $(LARGE); do (cd $$m && $(THERE) $(LINT) fmt -c ../../.golangci.yml) || exit 1; done

check: ## the gate: what must hold before a change lands
	.ci/run

build: ## bin/replayd, one static binary
	go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/replayd ./cmd/replayd

build-dcgm: ## bin/replayd-dcgm, which loads libdcgm.so.4: needs glibc
	go build -tags dcgm -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/replayd-dcgm ./cmd/replayd

image: ## the image for this platform: needs Docker with BuildKit
	docker build $(BUILD_ARGS) -t $(IMAGE) .

image-push: ## the same for two platforms, to IMAGE's registry
	docker buildx build --platform $(PLATFORMS) --sbom=true --provenance=mode=max $(BUILD_ARGS) \
	  -t $(IMAGE):latest -t $(IMAGE):$(TAG) --push .

sbom: build ## bin/replayd.cdx.json: modules and licenses, as CycloneDX
	go tool -modfile=tools/sbom/go.mod cyclonedx-gomod bin -json -std -licenses -version $(VERSION) \
	  -output bin/replayd.cdx.json bin/replayd

# Which branch is checked out is no property of the commit: two builds of it would differ.
release release-dry-run: BRANCH := HEAD
release: ## dist: every file of a release. SMALL=1: two platforms
	@VERSION=$(VERSION) REVISION=$(REVISION) LDFLAGS='$(LDFLAGS)' tools/release

release-dry-run: release ## the same, then installs and runs them: needs root
	@test/release

docs: ## bin/docs, the documents' site: needs Python 3.11, pip's index
	@python3 -m venv .cache/docs
	@.cache/docs/bin/pip install --quiet --disable-pip-version-check --require-hashes -r docs/site/requirements.txt
	@.cache/docs/bin/sphinx-build -q -n -W --keep-going -E -d .cache/doctrees -b html -c docs/site . bin/docs
	@echo "bin/docs/docs/site/index.html: $$(find bin/docs -name '*.html' | wc -l) pages"

generate: ## writes anew what is made from sources
	$(MAKE) --no-print-directory dashboards
	$(MAKE) --no-print-directory chart
	go test -count=1 ./cmd/replayd -run '^TestReferenceOfTheCommandLine$$' -update

goldens: ## rewrites golden files, and shows what changed
	@packages=$$(git grep -lF 'flag.Bool("update"' -- '*_test.go' | xargs grep -L '^//go:build' | xargs -n 1 dirname | sort -u | sed 's|^|./|'); \
	go test -count=1 $$packages -update
	@git diff --stat

dashboards: ## writes dashboards/*.json anew
	go generate ./dashboards/...

chart: ## copies rules, dashboards and the sample into the chart
	rm -rf deploy/helm/replayd/files/*
	install -m 0644 $(CHART_FILES) deploy/helm/replayd/files/
	install -m 0644 -D -t deploy/helm/replayd/files/native $(wildcard native/*)

clean: ## removes what the other targets made
	rm -rf bin dist .cache test/tokenizers/node_modules

# A suite's name alone says how to run it.
%: force
	@tools/suite hint $@

Makefile: ;
