# Everything a build or a test needs is installed by these targets.
# `make quickstart` and `make test` work on a fresh Debian machine with git,
# a Rust toolchain and a C compiler.

LIBRARIES := libzmq5 libczmq4 libnanomsg5 libnng1
SERVERS   := mosquitto redis-server nats-server rabbitmq-server
# Installed by pubmark itself: a download.
BY_PUBMARK := nats nats-jetstream
# The same, where there is a Go that can build it: else tests of links play with a relay of their own.
BY_GO     := toxiproxy
# Agents of other languages: where one of them cannot be had, its tests say so.
AGENTS    := zeromq-cpp null-cpp zeromq-python null-python zeromq-node null-node
# All of them, with their floors.
ALL_AGENTS := $(AGENTS) zeromq-go zeromq-go-pure null-go zeromq-java zeromq-java-jzmq null-java zeromq-dotnet \
  null-dotnet zeromq-mono null-mono zeromq-python-system zeromq-node-system zerorpc-python \
  fastdds fastdds-multicast fastdds-shm cyclonedds
# The same, built by cargo; pubmark's own agent plays the rest.
BY_CARGO  := zeromq-rust zeromq-rust-pure null-rust
BUILT_IN  := zeromq czmq nanomsg nng
# The suite plays an agent over a transport for a minute, and sleeps through most of it.
AT_ONCE   ?= $(shell expr 4 '*' $$(nproc))
# Most of a test is waiting: for a broker, an agent, a window. Those that measure wait for each other.
TESTS_AT_ONCE ?= $(shell expr 2 + $$(nproc))
HEADERS   := libzmq3-dev
# Formatters of the agents' languages, pinned; they go into $(FORMATTERS).
RUFF      := ruff==0.17.6
PRETTIER  := prettier@3.10.1
# The linter of the pages, pinned; it goes into $(PROSE).
TEXTLINT  := textlint@15.8.0
# Network namespaces, and ssh: a run over several hosts is played on this one.
NETWORK   := iproute2 iptables openssh-server openssh-client
# Servers whose power is cut without root.
LEDGER    := fuse3 xfsprogs
# Servers in containers, and hosts that are containers; debootstrap makes the base of an image where none can be pulled.
CONTAINERS := podman runc debootstrap
# Pinned; they go into environments of their own, below $(CACHE)/test.
MATURIN   := maturin==1.9.6
READERS   := prometheus-client==0.26.0 opentelemetry-proto==1.45.2 hdrhistogram==0.10.8
RAY       := ray[default]==2.60.0 kubernetes-validate==1.37.0
# The report page is tested in a real browser. Debian's Node serves where there
# is none; a newer one is needed to build the page, not to test it.
BROWSER   := chromium
NODE      := $(if $(shell command -v npm),,nodejs npm)
# The agent that docs/add-a-language.md writes.
PYTHON    := $(if $(shell command -v python3),,python3-minimal)
PUBMARK   := target/release/pubmark
ZENOH     := agents/zenoh/target/release/pubmark-zenoh
CACHE     := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pubmark
SUDO      := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Where tests that leave themselves out write that down, and those that passed only when they ran alone.
LEFT_OUT  := target/tmp/left-out.txt
ALONE     := target/tmp/alone.txt
FUZZ_SECONDS ?= 30
# How far they are optimised: 1 builds in less time, and is for a few seconds of each.
FUZZ_LEVEL ?= 3
CHAOS_SECONDS ?= 600
ROUNDS ?= 4
HOST      := $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_FLAGS := --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module \
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares

.PHONY: help check long image wheel test-containers test-wheel test-formats test-ray quickstart demo-hosts build test left-out test-all lint clippy lint-formats lint-prose deps deps-test program-test tests-built systems-test packages-test deps-web deps-fuzz deps-dev deps-format deps-lint deps-prose web web-check web-built web-screenshots heavy bench kafka-parity fuzz fuzz-check sanitize deny size evidence evidence-pages pictures docs zenoh test-zenoh test-agents mutants chaos verdicts book clean

help:
	@echo "make quickstart   install what is missing, build, measure three libraries beside the kernel"
	@echo "make demo-hosts   a broker on one host and clients on two others, which are namespaces of this machine (root)"
	@echo "make build        the release build: $(PUBMARK)"
	@echo "make check        format, lints and unit tests, at every change (installs nothing)"
	@echo "make test         every test (installs what they need)"
	@echo "make test-all     the same, and Zenoh, brokers in Java, chaos, benches, fuzz targets and the licence check"
	@echo "make mutants      wrong agents, each with one mistake, and which case of agent-check refuses it"
	@echo "make heavy        whole runs of Zenoh, HiveMQ, Artemis and rumqttd (installs them)"
	@echo "make web          the report's page, built again: web/report.html (needs Node 20.19 or newer)"
	@echo "make web-check    the page in a real browser, and whether it is what its sources build"
	@echo "make web-screenshots REPORT=DIR OUT=DIR   pictures of a report, for people to look at"
	@echo "make lint         clippy and rustfmt, and the formatters and the prose linter that are here (make deps-lint deps-prose)"
	@echo "make lint-prose   words and sentences of the pages, by tools/prose; tools/prose/readability.py has their figures"
	@echo "make test-agents  the conformance suite on every agent in agents/ (installs their languages)"
	@echo "make image        pubmark in a container: localhost/pubmark (needs podman)"
	@echo "make wheel        what \`pip install\` takes: $(WHEELS)/pubmark-*.whl"
	@echo "make test-containers   servers and hosts in containers, and the image of pubmark (installs podman)"
	@echo "make test-wheel   the wheel, in a new environment"
	@echo "make test-formats   whether the parsers of Prometheus, OpenTelemetry and HdrHistogram read the output"
	@echo "make test-ray     a study over three nodes of Ray in namespaces, and the manifests (installs Ray; root)"
	@echo "make bench        the message path beside plain C loops; the rates that are offered; reports of many runs"
	@echo "make kafka-parity what a message costs Kafka clients: pubmark beside Kafka's own tools and kcat, in turns"
	@echo "make verdicts     runs that are disturbed by a known amount: what moves, and whether the verdict says so"
	@echo "make chaos        kills and stops for CHAOS_SECONDS ($(CHAOS_SECONDS)), on ourselves: no record may be wrong by them"
	@echo "make fuzz         each fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS))"
	@echo "make fuzz-check   whether the fuzz targets build"
	@echo "make sanitize     the code that calls C, under AddressSanitizer"
	@echo "make zenoh        the agent and router for Zenoh: built, and copied to $(CACHE)/bin"
	@echo "make test-zenoh   its lints and tests (a build of some 250 crates)"
	@echo "make evidence STUDY=brokerless BUDGET=20m   measure a study, keep its thinned records, write docs/evidence/"
	@echo "make pictures     the pictures in docs/images/ and the result in README.md, of a run of the quickstart"
	@echo "make evidence-pages   docs/evidence/ and the tables in READMEs again, from the kept records"
	@echo "make book         the pages in docs/ as a book: target/book/index.html (installs mdbook)"
	@echo "make size         the program that is handed out is no larger than $(MOST_BYTES) bytes"
	@echo "make deny         licences, sources, duplicates and known defects of the dependencies"

# Broker on one host, clients on two others, all of them network namespaces of this machine.
HOSTS_HERE := tools/hosts-here.sh
demo-hosts: deps build
	$(call install,mosquitto iproute2)
	@mkdir -p target
	$(SUDO) $(HOSTS_HERE) up 1gbit broker=server clients-1=publishers,subscribers clients-2=publishers,subscribers >target/hosts.toml
	$(SUDO) $(PUBMARK) run iot-edge --quick --only system=mosquitto --hosts target/hosts.toml; status=$$?; \
	  $(SUDO) $(HOSTS_HERE) down broker clients-1 clients-2; [ $$status -eq 0 ] || [ $$status -eq 3 ]

# Exit code 3 says that a cell has no answer (on a busy machine, say): the table
# shows which and why, and the quickstart has done its work all the same.
quickstart: deps build
	$(PUBMARK) run quickstart || [ $$? -eq 3 ]

build:
	cargo build --release --locked

# A first build takes less time without what only shortens those after it.
ifeq ($(wildcard target/debug/incremental),)
test: export CARGO_INCREMENTAL := 0
endif
test: deps-test lint-formats lint-prose
	@mkdir -p $(dir $(LEFT_OUT))
	@echo "agents/zenoh: its own tests build some 250 crates: \`make test-zenoh\`" >$(LEFT_OUT)
	@rm -f $(ALONE)
	RUST_TEST_THREADS=$(TESTS_AT_ONCE) python3 -B tools/suite.py $(ALONE) clippy fuzz-check docs
	$(MAKE) --no-print-directory web-built
	@$(MAKE) --no-print-directory left-out
	@[ ! -s $(ALONE) ] || { echo "failed beside other tests and passed alone, for a cause to be found:"; sed 's/^/  /' $(ALONE); }

# What was not tested, as the tests themselves have written it down.
left-out:
	@if [ -s $(LEFT_OUT) ]; then \
	  echo "$$(sort -u $(LEFT_OUT) | wc -l) tests left themselves out:"; sort -u $(LEFT_OUT) | sed 's/^/  /'; \
	else echo "no test left itself out"; fi

# What a contributor runs at every change: nothing is installed, no server is started.
check:
	cargo fmt --all --check
	@$(MAKE) --no-print-directory clippy
	cargo test --workspace --lib --bins --locked

test-all: test long chaos heavy test-agents mutants test-containers test-wheel test-formats test-ray test-zenoh bench fuzz sanitize deny size

# A study's claims on this machine. Let nothing else run meanwhile.
evidence: build
	@[ -n "$(STUDY)" ] && [ -n "$(BUDGET)" ] || { echo "say which study and how long: make evidence STUDY=brokerless BUDGET=20m"; exit 2; }
	python3 tools/evidence.py run $(STUDY) $(BUDGET) $(MORE)

# Pictures in README.md, and the result in it: of a run of the quickstart. Let nothing else run meanwhile.
PICTURES := target/pictures
pictures: build deps-web web/node_modules/.package-lock.json
	[ -d $(PICTURES)/run ] || $(PUBMARK) run quickstart --out $(PICTURES)/run || [ $$? -eq 3 ]
	mkdir -p docs/images
	python3 tools/terminal_picture.py docs/images/terminal $(PUBMARK) report $(PICTURES)/run
	node web/tests/screenshots.mjs $(PICTURES)/run $(PICTURES)
	for theme in light dark; do cp $(PICTURES)/desk-$$theme-00-first-screen.png docs/images/report-$$theme.png; done
	cp $(PICTURES)/phone-light-00-first-screen.png docs/images/report-phone.png
	python3 tools/evidence.py example $(PICTURES)/run

evidence-pages: build
	python3 tools/evidence.py pages

# By Containerfile.
image: build
	podman build --tag pubmark .

# The base of the image in tests: made of Debian's packages, for no image can be pulled everywhere.
TEST_BASE  := localhost/pubmark-test-debian:12
TEST_IMAGE := localhost/pubmark-test:1
# Within limits that need no right to raise any; packages from where this machine has them.
TEST_BUILD := --network host --volume /etc/apt:/etc/apt:ro --ulimit nofile=8192:8192 --ulimit nproc=4096:4096
test-containers: deps-test build
	$(call install,$(CONTAINERS))
	cargo build --locked -p pubmark
	podman image exists $(TEST_BASE) || { base=$$(mktemp -d) && $(SUDO) debootstrap --variant=minbase bookworm $$base >$$base.log && \
	  { $(SUDO) tar -C $$base -c . | podman import - $(TEST_BASE); }; made=$$?; $(SUDO) rm -rf $$base; \
	  [ $$made -eq 0 ] || { tail $$base.log; exit 1; }; rm -f $$base.log; }
	podman build -q $(TEST_BUILD) --build-arg BASE=$(TEST_BASE) --tag $(TEST_IMAGE) .
	PUBMARK_TEST_CONTAINERS=1 PUBMARK_TEST_IMAGE=$(TEST_IMAGE) cargo test --locked -p pubmark --test all -- containers:: engines::; \
	  tested=$$?; podman image rm --force $(TEST_IMAGE) localhost/pubmark-test-mosquitto:1 localhost/pubmark-test-shell:1 >/dev/null; exit $$tested

# An environment of Python: its name, and the packages in it.
define environment
	@[ "$$(cat $(CACHE)/test/$(1)/made 2>/dev/null)" = "$(2)" ] || { rm -rf $(CACHE)/test/$(1) && mkdir -p $(CACHE)/test && \
	  python3 -m venv $(CACHE)/test/$(1) && $(CACHE)/test/$(1)/bin/pip install -q $(2) && echo "$(2)" >$(CACHE)/test/$(1)/made; }
endef

# One program, for every Python of this kind of machine.
WHEELS := target/wheels
wheel:
	$(call install,python3-venv)
	$(call environment,wheel,$(MATURIN))
	rm -f $(WHEELS)/pubmark-*.whl
	$(CACHE)/test/wheel/bin/maturin build --profile dist --out $(WHEELS)

test-wheel: wheel
	sh tools/test-wheel.sh $(WHEELS)/pubmark-*.whl

# What other tools read, by their own parsers.
test-formats: deps-test
	$(call install,python3-venv)
	$(call environment,formats,$(READERS))
	cargo build --locked -p pubmark
	$(CACHE)/test/formats/bin/python -B tools/check_formats.py

# Without Ray's own dependence on what it was installed with: the package is tested as it stands here.
test-ray: deps-test
	$(call install,python3-venv)
	$(call environment,ray,$(RAY))
	cargo build --locked -p pubmark
	cd engines/ray && PUBMARK=$(CURDIR)/target/debug/pubmark $(if $(SUDO),$(SUDO) -E) sh tests/run.sh $(CACHE)/test/ray/bin/python

# What is sent to other machines has to be small.
MOST_BYTES := 15000000
DIST := target/dist/pubmark
size:
	cargo build --profile dist --locked -p pubmark
	@bytes=$$(stat -c %s $(DIST)); echo "$(DIST): $$bytes bytes"; \
	[ $$bytes -le $(MOST_BYTES) ] || { echo "it may have $(MOST_BYTES)"; exit 1; }

# Whole runs against what takes minutes to install.
heavy: deps-test zenoh
	cargo build --locked -p pubmark
	for system in hivemq artemis artemis-amqp qpid-amqp rumqttd kafka; do target/debug/pubmark systems $$system --install || exit 1; done
	PUBMARK_TEST_HEAVY=1 cargo test --locked -p pubmark --test all -- heavy:: kafka:: clusters:: late:: card::cards leftovers::no_member brokers::rumqttd

# The whole conformance suite on every agent that can be built here.
# Several at a time; one that does not do as it should beside others is looked at again, alone.
test-agents: deps-lint lint-formats
	$(call install,$(LIBRARIES) $(HEADERS) gcc)
	cargo build --locked -p pubmark
	for system in $(ALL_AGENTS); do target/debug/pubmark systems $$system --install >/dev/null || exit 1; done
	$(MAKE) --no-print-directory -C agents/zeromq-rust test
	rm -rf $(CHECKED)
	mkdir -p $(CHECKED)
	$(MAKE) --no-print-directory -j $(AT_ONCE) $(addprefix checked/,$(PLAYED))
	$(foreach played,$(PLAYED),$(call told,$(played)))
	PUBMARK_TEST_AGENTS=1 cargo test --locked -p pubmark --test all -- bindings::

# What is played: SYSTEM/TRANSPORT, or built-in/DRIVER/TRANSPORT.
CHECKED := target/agents
transports = $(shell sed -n 's/^transports = \[\(.*\)\]/\1/p' agents/*/$(1).toml | tr -d '",')
PLAYED = $(foreach system,$(ALL_AGENTS) $(BY_CARGO),$(addprefix $(system)/,$(call transports,$(system)))) \
  $(foreach driver,$(BUILT_IN),$(addprefix built-in/$(driver)/,inproc ipc tcp))
parts = $(subst /, ,$(1))
agent-check = target/debug/pubmark agent-check --transport $(lastword $(call parts,$(1))) $(if $(filter built-in/%,$(1)), \
  --driver $(word 2,$(call parts,$(1))) -- target/debug/pubmark agent,--system $(firstword $(call parts,$(1))))
said = $(CHECKED)/$(subst /,-,$(1))

checked/%:
	@$(call agent-check,$*) >$(call said,$*) 2>&1 || touch $(call said,$*).again

# Mistakes in the agent of pyzmq, one at a time, and which case refuses each.
MUTANTS_AT_ONCE ?= 4
mutants: deps-test
	cargo build --locked -p pubmark
	target/debug/pubmark systems zeromq-python --install >/dev/null
	python3 -B tools/mutants.py --jobs $(MUTANTS_AT_ONCE)

define told
	@[ ! -e $(call said,$(1)).again ] || $(call agent-check,$(1)) >$(call said,$(1)) 2>&1 || \
	  { echo "$(1):"; cat $(call said,$(1)); exit 1; }
	@echo "$(1): $$(tail -n 1 $(call said,$(1)))"

endef

# Over every protocol what `make test` plays over one, in longer windows.
long: deps-test
	PUBMARK_TEST_LONG=1 RUST_TEST_THREADS=$(TESTS_AT_ONCE) cargo test --locked -p pubmark --test all -- \
	  known_answers:: omission:: conformance:: faults::killed:: power:: clusters:: \
	  card:: promise:: messages:: payload_sizes:: libraries:: bindings::

# Longer than within `make test`. Every seed that is printed can be set again.
chaos: deps-test
	PUBMARK_CHAOS_SECONDS=$(CHAOS_SECONDS) cargo test --locked -p pubmark --test all chaos:: -- --nocapture

lint: lint-formats lint-prose clippy

clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings

# What its formatter would change: of each language, where its formatter is here.
# (C# has none without the whole SDK of .NET: clang-format 14 breaks its properties and casts, and 23 still
# takes multiplications for pointers.)
FORMATTERS := $(CACHE)/formatters
JAVA_FORMAT := $(FORMATTERS)/google-java-format-1.25.2-all-deps.jar
JAVAC_PARTS := $(foreach part,api code file parser tree util,--add-exports jdk.compiler/com.sun.tools.javac.$(part)=ALL-UNNAMED)
define formatted
	@if command -v $(2) >/dev/null; then $(3) || { echo "$(2) would change the agents in $(1)"; exit 1; }; \
	else echo "agents in $(1) are not looked at: \`make deps-lint\` installs $(notdir $(2))"; fi
endef
lint-formats:
	cargo fmt --all --check
	cargo fmt --check --manifest-path agents/zeromq-rust/Cargo.toml
	cargo fmt --check --manifest-path agents/zenoh/Cargo.toml
	$(call formatted,C++,clang-format-14,clang-format-14 --dry-run -Werror agents/*/*.h agents/*/*.cpp)
	$(call formatted,Go,gofmt,test -z "$$(gofmt -l agents/zeromq-go)")
	$(call formatted,Python,$(FORMATTERS)/bin/ruff,$(FORMATTERS)/bin/ruff format -q --no-cache --line-length 120 --check agents)
	$(call formatted,Node,$(FORMATTERS)/node_modules/.bin/prettier,$(FORMATTERS)/node_modules/.bin/prettier --log-level warn --print-width 120 --check "agents/*/*.mjs")
	$(call formatted,Java,$(JAVA_FORMAT),java $(JAVAC_PARTS) -jar $(JAVA_FORMAT) --aosp --dry-run --set-exit-if-changed agents/*/*.java)

# Words to avoid are errors, long sentences are warnings. Needs Node 20.18 or newer.
PROSE := $(CACHE)/test/prose
PAGES := README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md docs/*.md $(wildcard docs/*/*.md) studies/*/README.md agents/*/README.md
lint-prose:
	@! python3 -c 'import doctest' 2>/dev/null || python3 -B -m doctest tools/prose/readability.py tools/suite.py
	@if $(PROSE)/node_modules/.bin/textlint --version >/dev/null 2>&1; then \
	  ln -sfn $(CURDIR)/tools/prose $(PROSE)/node_modules/textlint-rule-preset-house && \
	  $(PROSE)/node_modules/.bin/textlint --config tools/prose/textlint.json $(PAGES); \
	else echo "the pages are not linted: \`make deps-prose\` installs textlint, which needs Node 20.18 or newer"; fi

# Quick where it is.
deps-prose:
	$(call install,$(NODE))
	@[ "$$(cat $(PROSE)/made 2>/dev/null)" = "$(TEXTLINT)" ] || { \
	  npm install --prefix $(PROSE) --silent --no-audit --no-fund $(TEXTLINT) && echo "$(TEXTLINT)" >$(PROSE)/made; } || \
	  echo "goes on without a linter for the pages"

# Quick where they are; where a registry cannot be reached, the agents of its language are not looked at.
deps-format:
	$(call install,clang-format-14 python3-venv $(NODE))
	@[ "$$(cat $(FORMATTERS)/made 2>/dev/null)" = "$(RUFF) $(PRETTIER)" ] || { python3 -m venv $(FORMATTERS) && \
	  $(FORMATTERS)/bin/pip install -q $(RUFF) && npm install --prefix $(FORMATTERS) --silent --no-audit --no-fund $(PRETTIER) && \
	  echo "$(RUFF) $(PRETTIER)" >$(FORMATTERS)/made; } || echo "goes on without formatters for Python and Node"

deps-lint: deps-format
	mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -DoutputDirectory=$(FORMATTERS) \
	  -Dartifact=com.google.googlejavaformat:google-java-format:1.25.2:jar:all-deps
	chmod +x $(JAVA_FORMAT)

# Installs the packages that are not there yet; quick when they are.
define install
	@missing=""; for package in $(1); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
	  command -v apt-get >/dev/null || { echo "please install:$$missing (no apt-get here)"; exit 1; }; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends $$missing; \
	fi
endef

deps:
	$(call install,$(LIBRARIES))

# The program is built meanwhile, since packages take as long to come; for `make test` its tests too.
test: MEANWHILE := tests-built
deps-test:
	@$(MAKE) --no-print-directory -j 3 packages-test systems-test $(MEANWHILE)

# Compilers use all processors, whatever make itself was told.
program-test:
	@env -u MAKEFLAGS cargo build --quiet --locked -p pubmark

tests-built: program-test
	@env -u MAKEFLAGS cargo test --quiet --locked --workspace --no-run

systems-test: packages-test program-test
	@for system in $(BY_PUBMARK); do target/debug/pubmark systems $$system --install >/dev/null || exit 1; done
	@printf '%s\n' $(AGENTS) $(BY_GO) | xargs -P $$(nproc) -I SYSTEM sh -c \
	  'target/debug/pubmark systems SYSTEM --install >/dev/null || echo "goes on without SYSTEM"'

packages-test: deps-format
	$(call install,$(LIBRARIES) $(SERVERS) $(NETWORK) $(LEDGER) $(BROWSER) $(NODE) $(PYTHON) g++)
	@$(MAKE) --no-print-directory deps-prose web/node_modules/.package-lock.json

deps-web:
	$(call install,$(LIBRARIES) mosquitto $(BROWSER) $(NODE))

deps-fuzz:
	$(call install,g++)

deps-dev:
	$(call install,$(LIBRARIES) $(HEADERS))

# The tools of the page, as the lock file has them.
web/node_modules/.package-lock.json: web/package-lock.json
	@command -v npm >/dev/null || { echo "the page's tools need Node and npm, Node 20.19 or newer to build it"; exit 1; }
	cd web && npm ci --no-audit --no-fund --loglevel error
	@touch $@

web: web/node_modules/.package-lock.json
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' || \
	  { echo "building the page needs Node 20.19 or newer, this is $$(node --version): install one and run this again"; exit 1; }
	cd web && npm run --silent build

web-check:
	cargo test --quiet --locked -p pubmark-report --test it page::
	cargo build --quiet --locked -p pubmark
	@$(MAKE) --no-print-directory web-built

# With the program that is built. A browser that fails on a busy machine plays again, alone.
web-built: deps-web web/node_modules/.package-lock.json
	node web/build/check.mjs
	@mkdir -p target/tmp && rm -f target/web-*.failed
	@cd web && printf '%s\n' pages browser | xargs -P $$(nproc) -I NAME sh -c ' \
	  node --test tests/NAME.test.mjs >../target/web-NAME.log 2>&1 || touch ../target/web-NAME.failed; cat ../target/web-NAME.log'
	@cd web && for name in pages browser; do [ ! -e ../target/web-$$name.failed ] || { echo "again, alone: $$name" && \
	  node --test tests/$$name.test.mjs && echo "web/tests/$$name.test.mjs" >>../$(ALONE); } || exit 1; done
	cd web && node --test tests/speed.test.mjs

web-screenshots: deps-web web/node_modules/.package-lock.json
	node web/tests/screenshots.mjs $(REPORT) $(OUT)

bench: deps-dev deps-test deps-web web/node_modules/.package-lock.json
	cargo bench --locked -p pubmark-load --bench recording
	for bench in offered_rate idle_connections many_runs zeromq_parity; do cargo bench --locked -p pubmark --bench $$bench || exit 1; done

# Kafka's own tools, for comparison: more than a broker needs.
KAFKA_TOOLS := $(CACHE)/test/kafka-tools
KAFKA_TOOLS_POM := <project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version> \
  <dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.2.0</version></dependency> \
  <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency></dependencies></project>
$(KAFKA_TOOLS)/lib:
	$(call install,maven default-jdk-headless)
	@mkdir -p $(KAFKA_TOOLS)
	@echo '$(KAFKA_TOOLS_POM)' >$(KAFKA_TOOLS)/pom.xml
	mvn -B -q -f $(KAFKA_TOOLS)/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=$@

# A quarter of an hour on a quiet machine; `MORE='--rounds 1'` for a shorter look.
kafka-parity: build $(KAFKA_TOOLS)/lib
	$(call install,kcat)
	$(PUBMARK) systems kafka --install >/dev/null
	PUBMARK=$(CURDIR)/$(PUBMARK) KAFKA_TOOLS=$(KAFKA_TOOLS)/lib python3 -B tools/kafka_parity.py $(MORE)

# Half an hour on a quiet machine; `ROUNDS=2` for a shorter look.
verdicts: deps deps-test
	cargo bench --locked -p pubmark --bench verdicts -- --rounds $(ROUNDS)

# What cargo-fuzz would do, by hand: the coverage that libFuzzer steers by, and
# a stable compiler that is told to allow it.
fuzz: deps-fuzz
	cd fuzz && RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --locked --target $(HOST) \
	  --config profile.release.opt-level=$(FUZZ_LEVEL)
	@ls fuzz/fuzz_targets | sed 's/\.rs$$//' | xargs -P $$(nproc) -I TARGET sh -c ' \
	  mkdir -p fuzz/target/corpus/TARGET && \
	  fuzz/target/$(HOST)/release/TARGET fuzz/target/corpus/TARGET fuzz/corpus/TARGET \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=20 -artifact_prefix=fuzz/target/ \
	    -print_final_stats=1 >fuzz/target/TARGET.log 2>&1 || { cat fuzz/target/TARGET.log; exit 255; }; \
	  echo "fuzz TARGET: $$(sed -n "s/^stat::number_of_executed_units: //p" fuzz/target/TARGET.log) inputs, no finding"'

# Whether the targets build. Each is played by `make fuzz`.
fuzz-check: deps-fuzz
	cd fuzz && cargo check --quiet --locked --target-dir ../target

# All code that is not safe Rust, under AddressSanitizer, with the libraries it
# is there for. What they leak themselves is named in the file of suppressions.
sanitize: deps-test
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
	  LSAN_OPTIONS=suppressions=$(CURDIR)/crates/load/tests/leaks-of-libraries.txt \
	  cargo test --locked --target $(HOST) --target-dir target/sanitize -p pubmark-load --test drivers

deny:
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check bans licenses sources
	@if timeout 120 cargo deny fetch db >/dev/null 2>&1; then cargo deny check advisories; \
	  else echo "advisories were not checked: their database cannot be fetched from here"; fi

zenoh:
	cargo build --release --locked --manifest-path agents/zenoh/Cargo.toml
	mkdir -p $(CACHE)/bin
	install -m 755 $(ZENOH) $(CACHE)/bin/

# In release mode, so that the library is built once.
test-zenoh: zenoh
	cargo fmt --check --manifest-path agents/zenoh/Cargo.toml
	cargo clippy --release --all-targets --locked --manifest-path agents/zenoh/Cargo.toml -- -D warnings
	cargo test --release --locked --manifest-path agents/zenoh/Cargo.toml
	cargo run --quiet --locked -p pubmark -- agent-check --system zenoh-library
	cargo run --quiet --locked -p pubmark -- agent-check --system zenoh-peer

# Its pages and commands are tested by `make test`, which needs no mdbook.
book:
	@command -v mdbook >/dev/null || cargo install --locked mdbook
	mdbook build docs

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

clean:
	cargo clean
