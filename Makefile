# The commands of this repository. Each says what it does as it does it, and builds what it needs; none changes anything
# outside the repository but caches, and tools that scripts/prepare.sh names as it installs them.
#
#   STATE=FOLDER make up     another folder than .pilothouse, for a second control plane and host

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# rustup's and Go's own places, for shells that do not know them.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH):/usr/local/go/bin

STATE ?= .pilothouse

# Which host most benchmarks measure: the one that users get, or with `dev` the one for development.
PROFILE ?= release
export PROFILE

# Runs the benchmark $(1) of a host. It only asks and counts, and need not be optimised itself.
bench-host = host=$$(scripts/measured-host.sh) && PILOTHOUSE_BIN=$$host cargo bench --locked --profile dev --workspace --bench $(1)

# What `docker-build`, `docker-push`, `deploy` and `publish` are about: llm-operator, which has its plugins in its image, or pilothouse, the host
# alone, which gets plugins as objects of the cluster.
PRODUCT ?= llm-operator
BIN := $(or $(CARGO_TARGET_DIR),target)/debug

.PHONY: help
help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

.PHONY: demo
demo: ## Play the story of one plugin on a real API server, and leave nothing running
	@scripts/prepare.sh
	@echo 'demo: 1/3 building the host and the demo; the first time takes some minutes' >&2
	@cargo build --locked --workspace --bin pilothouse --bin demo
	@echo 'demo: 2/3 building the plugin app-service, the next version of it, and one that fails' >&2
	@plugins/build.sh plugins/app-service tests/guests/app-service-next tests/guests/app-service-fails >&2
	@echo 'demo: 3/3 playing; the first time it fetches or builds a control plane' >&2
	@$(BIN)/demo

.PHONY: test
test: ## Check format and lints, and run all tests
	@scripts/prepare.sh rustfmt clippy
	@scripts/test.sh

.PHONY: test-all
test-all: ## The same, with what takes minutes: all points at which the host can crash, thousands of objects, real frameworks
	@scripts/prepare.sh rustfmt clippy
	@PILOTHOUSE_TEST_ALL=1 scripts/test.sh

.PHONY: third-party
third-party: programs ## Build the programs of other projects that `make test` runs, which takes minutes the first time (needs Go)
	@$(BIN)/third-party registry lws kueue

.PHONY: keda
keda: programs plugins ## Run the tests with KEDA's own operator, which takes minutes to build the first time (needs Go)
	@$(BIN)/third-party keda
	@cargo test --locked --workspace --test black_box -- llm::keda::

.PHONY: frameworks
frameworks: programs plugins ## Run the tests of training jobs, those with real PyTorch, Open MPI, TensorFlow and JAX too, which are 2 GB to fetch the first time
	@scripts/torch.sh && scripts/openmpi.sh && scripts/frameworks.sh
	@PILOTHOUSE_TEST_ALL=1 cargo test --locked --workspace --test black_box -- training_job::

.PHONY: constrained-impersonation
constrained-impersonation: programs plugins ## Run the tests with the API server of a newer Kubernetes, which takes ten minutes to build the first time (needs Go)
	@PILOTHOUSE_TEST_ALL=1 cargo test --locked --workspace --test black_box -- constrained_impersonation::

.PHONY: up
up: ## Start a control plane and a host with plugins, and leave them running
	@scripts/prepare.sh
	@cargo build --locked --workspace --bin pilothouse --bin local
	@plugins/build.sh >&2
	@$(BIN)/local up --dir '$(STATE)'

.PHONY: down
down: ## Stop what `make up` started
	@if [ -d '$(STATE)' ]; then $(MAKE) local && $(BIN)/local down --dir '$(STATE)'; else echo 'nothing runs'; fi

.PHONY: status
status: local ## Say what of `make up` runs
	@$(BIN)/local status --dir '$(STATE)'

.PHONY: local
local:
	@scripts/prepare.sh
	@cargo build --locked --workspace --bin local

.PHONY: plugins
plugins: ## Build the plugins to target/plugins, those of the tests to target/guests, the examples to target/examples
	@scripts/prepare.sh
	@plugins/build.sh >&2
	@plugins/build.sh tests/guests/*/ examples/*/ >&2

.PHONY: programs
programs: ## Build the host, the demo and the control plane
	@scripts/prepare.sh
	@cargo build --locked --workspace --bins

.PHONY: release
release: ## Build the host for production, laid out by host/pilothouse.profdata, to target/production/release
	@scripts/prepare.sh
	@scripts/release.sh

.PHONY: profile
profile: plugins ## Make host/pilothouse.profdata anew, from a host at work on a real API server
	@scripts/profile.sh

.PHONY: profile-simulation
profile-simulation: ## Make tests/simulation/simulate.profdata anew, from simulated histories
	@scripts/profile-simulation.sh

.PHONY: bench
bench: plugins ## Run the benchmarks (release build)
	@cargo build --locked --release -p pilothouse
	@cargo bench --locked -p pilothouse-bench

.PHONY: bench-plugins
bench-plugins: plugins ## Measure plugins as objects: installation, update, restart, many of them (PROFILE=release)
	@$(call bench-host,plugins)

.PHONY: bench-operators
bench-operators: plugins ## Measure a hundred plugins in one process, each of which makes the objects of the next (PROFILE=release)
	@$(call bench-host,operators)

.PHONY: bench-plan
bench-plan: plugins ## Measure a plan over 500 objects, and fail where it takes more than 10 s (PROFILE=release)
	@$(call bench-host,plan)

.PHONY: bench-lookups
bench-lookups: plugins ## Measure a host whose plugin looks up all of 10,000 Pods (PROFILE=release)
	@$(call bench-host,lookups)

.PHONY: bench-neighbours
bench-neighbours: plugins ## Measure what bad plugins cost their neighbours, and with BENCH_CHECK=1 fail where it is too much (PROFILE=release)
	@$(call bench-host,neighbours)

.PHONY: bench-writes
bench-writes: ## Measure what one write costs an API server, by the way in which it is made
	@cargo bench --locked --profile dev --workspace --bench writes

.PHONY: pictures
pictures: ## Make the pictures of the README anew, from a run of the demo and from what `make bench-check KEEP=1` kept last
	@scripts/pictures.sh

.PHONY: bench-saturation
bench-saturation: ## Measure how many objects a second one host carries, over an API server in memory
	@cargo bench --locked --profile simulation -p pilothouse-bench --bench saturation

.PHONY: bench-lists
bench-lists: ## Measure what the first look at all objects of a kind costs an API server, as pages and as a stream
	@cargo bench --locked --profile dev --workspace --bench lists

.PHONY: bench-languages
bench-languages: ## Measure the same plugin in Rust, C, TypeScript, Go and Python, side by side (PROFILE=release)
	@scripts/prepare.sh
	@scripts/languages.sh
	@host=$$(scripts/measured-host.sh) && scripts/bench-languages.sh "$$host"

.PHONY: bench-dev
bench-dev: ## Measure `pilothouse dev` from a saved source to the changed child, in each language (PROFILE=release)
	@scripts/prepare.sh
	@scripts/languages.sh
	@$(call bench-host,dev)

.PHONY: compare
compare: plugins ## Measure the host beside an operator on controller-runtime (release build, needs Go)
	@scripts/compare.sh

.PHONY: bench-check
bench-check: plugins ## Measure under load and beside controller-runtime, and fail where a limit is broken (half an hour; KEEP=1)
	@scripts/bench-check.sh

.PHONY: models
models: plugins ## Measure what an edit of a model costs that many LLMDeployments serve (PROFILE=release)
	@$(call bench-host,models)

.PHONY: simulate
simulate: ## Run N simulated histories of the host from SEED on, or for HOURS, or replay the one of SEED (docs/simulation.md)
	@scripts/prepare.sh
	@N='$(N)' HOURS='$(HOURS)' SEED='$(SEED)' scripts/simulate.sh

.PHONY: mutations
mutations: ## Break the host in many ways, and say after how many simulated histories each is found
	@scripts/prepare.sh
	@N='$(N)' SEED='$(SEED)' scripts/mutations.sh

.PHONY: plugin-mutations
plugin-mutations: ## Bring back the defects that training jobs had, and say which tests notice each
	@scripts/prepare.sh
	@scripts/plugin-mutations.sh

.PHONY: audit
audit: ## Check third-party code: vulnerabilities, licences, sources (needs the network; installs cargo-deny)
	@scripts/prepare.sh
	@scripts/audit.sh

.PHONY: crds
crds: ## Make crds/ anew from the types
	@cargo run --locked --quiet -p pilothouse -- crd >crds/plugins.pilothouse.dev.yaml
	@cargo run --locked -p app-service --example crd
	@cargo run --locked -p training-job --example training-job-crd
	@cargo run --locked -p ai-llm-model --example ai-llm-model-crd
	@cargo run --locked -p llm-model --example llm-model-crd
	@cargo run --locked -p llm-deployment --example llm-deployment-crd
	@cargo run --locked -p model-deployment --example model-deployment-crd

.PHONY: reference
reference: ## Make docs/cli.md and docs/contract.md anew, from what the commands say of themselves and from the WIT
	@cargo build --locked --quiet --workspace --bin pilothouse
	@$(BIN)/pilothouse reference >docs/cli.md
	@$(BIN)/pilothouse reference --contract >docs/contract.md

.PHONY: docs
docs: ## Make the site of docs/ as HTML in target/book (needs the network the first time; installs mdbook)
	@scripts/prepare.sh
	@scripts/docs.sh

.PHONY: manifests
manifests: crds ## Make crds/, the CRDs in the charts and the plain manifests in deploy/ anew (the last ones need Go, for Helm)
	@cargo run --locked --quiet --bin manifests

.PHONY: install
install: ## Install the kinds of the repository in the cluster of kubectl
	@kubectl apply --server-side -f crds/

.PHONY: run
run: ## Run a host with the reference plugins here, on the cluster of kubectl (ARGS: more arguments of `pilothouse run`)
	@scripts/prepare.sh
	@cargo build --locked --workspace --bin pilothouse
	@plugins/build.sh >&2
	@$(BIN)/pilothouse run --plugins '$(or $(CARGO_TARGET_DIR),target)/plugins' $(ARGS)

.PHONY: docker-build
docker-build: ## Build the image IMG of PRODUCT (llm-operator, or pilothouse)
	@scripts/image.sh build '$(PRODUCT)' '$(IMG)'

.PHONY: docker-push
docker-push: ## Push the image IMG
	@scripts/image.sh push '$(PRODUCT)' '$(IMG)'

.PHONY: deploy
deploy: ## Deploy PRODUCT with the image IMG in the cluster of kubectl
	@scripts/image.sh deploy '$(PRODUCT)' '$(IMG)'

.PHONY: publish-check
publish-check: ## Check that each crate that is meant for others can be published, and builds from what would be published (ten minutes)
	@cargo publish --locked --workspace --dry-run

.PHONY: publish
publish: ## Build, push and sign the image IMG of PRODUCT with its bill of materials (needs docker buildx, syft, cosign)
	@scripts/image.sh publish '$(PRODUCT)' '$(IMG)'

.PHONY: fmt
fmt: ## Format all Rust code
	@scripts/prepare.sh rustfmt
	@cargo fmt --all

.PHONY: clean
clean: ## Stop what `make up` started here, and remove all that was built
	@$(MAKE) down STATE=.pilothouse
	@rm -rf .pilothouse
	@cargo clean
