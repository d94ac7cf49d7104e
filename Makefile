# SPDX-License-Identifier: Apache-2.0
# K3 toolkit. `make help` lists the targets.
#   CROSS=aarch64-linux-gnu builds for another machine, in build/aarch64-linux-gnu, with that prefix before gcc and ar
#   V=1 shows the commands   WERROR=1 makes warnings errors   SAN=address,undefined or SAN=thread
# CC AR CPPFLAGS CFLAGS LDFLAGS LDLIBS are taken from the command line or the environment.
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
DOCDIR     ?= $(DATADIR)/doc/k3
DESTDIR    ?=
ifdef CROSS
CC      := $(CROSS)-gcc
AR      := $(CROSS)-ar
BUILD   ?= build/$(CROSS)
BIN     ?= build/$(CROSS)/bin
endif
CC      ?= cc
AR      ?= ar
BUILD   ?= build
BIN     ?= bin
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

TOOLS   := $(notdir $(wildcard cmd/*))
PARTS   := base spec kernel cache store model text trace

CFLAGS  ?= -O3 -g
K3_CFLAGS := -std=gnu11 -ffp-contract=off -fno-math-errno -fPIC -fno-semantic-interposition -pthread \
	-Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wno-missing-field-initializers \
	$(addprefix -Ilib/,$(PARTS))
LDLIBS  += -lzstd -ljansson -lxxhash -lm
ifneq ($(MACHINE),x86_64)
K3_CFLAGS += -fsigned-char # as on x86, where that is the default
endif
ifdef WERROR
K3_CFLAGS += -Werror
endif
ifdef SAN
K3_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SAN)
endif
ifndef V
Q := @
SAY = @printf '  %-7s %s\n' $(1) $(2)
else
SAY = @:
endif

# One source per instruction set carries its name; everything else runs on any x86-64.
# GCC spends over a minute on the software FMA of the plain C kernels at -O3.
ISA_kernels_scalar      := -O2
ISA_kernels_avx2        := -mavx2 -mfma -mf16c -mbmi -mbmi2 -mpopcnt
ISA_kernels_avx512      := $(ISA_kernels_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
ISA_kernels_avx512vbmi2 := $(ISA_kernels_avx512) -mavx512vbmi -mavx512vbmi2
isa_flags = $(if $(filter x86_64,$(MACHINE)),$(ISA_$(basename $(1))))

# Threads of the programs have small stacks, and the library's may be the caller's.
frame_limit = $(if $(SAN),,$(if $(filter lib/% cmd/%,$(1)),-Wframe-larger-than=16384))

LIB_SRC  := $(foreach p,$(PARTS),$(wildcard lib/$(p)/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
LIB      := $(BUILD)/libk3core.a
PROGS    := $(addprefix $(BIN)/,$(TOOLS))

all: $(LIB) $(PROGS)

# The commit that is built, where this folder is a clone: --version and reports name it.
ifneq ($(origin COMMIT),command line)
COMMIT := $(if $(wildcard .git),$(shell git -c safe.directory='*' describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null))
endif
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
FORCE:
$(BUILD)/lib/base/version.o: $(BUILD)/commit
$(BUILD)/lib/base/version.o: K3_CFLAGS += -DK3_COMMIT='"$(COMMIT)"'

$(LIB): $(LIB_OBJ)
	$(call SAY,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c Makefile
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(K3_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(call isa_flags,$(notdir $<)) $(call frame_limit,$<) -MMD -MP -c $< -o $@

define program
$(BIN)/$(1): $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/$(1)/*.c cmd/$(1)/*/*.c)) $(LIB)
	$$(call SAY,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) -pthread $$(LDFLAGS) $$^ $$(LDLIBS) -o $$@
endef
$(foreach t,$(TOOLS),$(eval $(call program,$(t))))

# Unit tests: every tests/unit/*.c goes into one Criterion program.
UNIT_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/unit/*.c))
# The state machines of the weight source, which need no thread and no file, are tested as they are linked.
STREAM_OBJ := $(patsubst %,$(BUILD)/cmd/k3-decode/stream/%.o,ring experts tune plan advice)
$(BUILD)/unit: $(UNIT_OBJ) $(STREAM_OBJ) $(LIB)
	$(call SAY,LD,$@)
	$(Q)$(CC) -pthread $(LDFLAGS) $^ -lcriterion $(LDLIBS) -o $@

# Each .c of tests/tools, tests/kernel, tests/bench and tests/fuzz is a small program of its own; mkckpt has parts,
# and shim_*.so are preloaded to make system calls fail.
SHIMS   := $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/tools/shim_*.c))
MKCKPT  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/tools/mkckpt_*.c))
HELPERS := $(filter-out $(MKCKPT:.o=) $(SHIMS:.so=),$(patsubst %.c,$(BUILD)/%,$(wildcard tests/tools/*.c tests/kernel/*.c tests/bench/*.c tests/fuzz/*.c)))
$(BUILD)/tests/tools/mkckpt: $(MKCKPT)
$(HELPERS): $(BUILD)/%: $(BUILD)/%.o $(LIB)
	$(call SAY,LD,$@)
	$(Q)$(CC) -pthread $(LDFLAGS) $(filter %.o,$^) $(LIB) $(LDLIBS) -o $@
$(SHIMS): $(BUILD)/%.so: %.c
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize=%,$(K3_CFLAGS)) $(CPPFLAGS) -O2 -g -shared $< -o $@
helpers: $(HELPERS) $(SHIMS)

demo:
	@scripts/setup
	$(Q)$(MAKE) --no-print-directory all
	@scripts/demo $(BIN)

test: all helpers $(BUILD)/unit
	@tests/run-tests $(BUILD) $(BIN)

bench: all helpers
	@tests/bench/run $(BUILD) $(BIN)

bench-stream: all helpers
	@tests/bench/stream.sh $(BUILD) $(BIN)

asan:
	$(Q)$(MAKE) --no-print-directory BUILD=build/asan BIN=build/asan/bin SAN=address,undefined CFLAGS='-O1 -g' test

# The programs for aarch64 under qemu, against what is committed and what the programs here write.
arm: all helpers
	@tests/arm/run $(BUILD) $(BIN)

# Tests of minutes or gigabytes.
long: all helpers
	@tests/cli/run --bin $(BIN) --tools $(BUILD)/tests/tools --from tests/long --jobs 1

# ThreadSanitizer: the programs on small models, and the unit tests with threads under a stand-in for Criterion.
TSAN_UNIT := base_pool faults model_fixture model_reference state_file store_sums trunk_file trunk_pack
TSAN_OBJ  := $(TSAN_UNIT:%=$(BUILD)/tests/tsan/unit_%.o) $(BUILD)/tests/tsan/unit.o
$(BUILD)/tests/tsan/unit_%.o: tests/unit/%.c Makefile
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(K3_CFLAGS) $(CPPFLAGS) $(CFLAGS) -Itests/tsan -MMD -MP -c $< -o $@
$(BUILD)/tests/tsan/unit.o: K3_CFLAGS += -Itests/tsan
$(BUILD)/tests/tsan/unit: $(TSAN_OBJ) $(LIB)
	$(call SAY,LD,$@)
	$(Q)$(CC) -pthread $(LDFLAGS) $^ $(LDLIBS) -o $@
tsan-tests: all helpers $(BUILD)/tests/tsan/unit
	@tests/tsan/run $(BUILD) $(BIN)
tsan:
	$(Q)$(MAKE) --no-print-directory CC=clang BUILD=build/tsan BIN=build/tsan/bin SAN=thread CFLAGS='-O1 -g' tsan-tests

# libFuzzer on each tests/fuzz/*.c for FUZZ_SECONDS; new inputs are kept in build/fuzz/NAME.new
FUZZ_SECONDS ?= 60
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*.c))
$(FUZZERS): $(BUILD)/fuzz/%: tests/fuzz/%.c $(LIB_SRC)
	$(call SAY,FUZZ,$@)
	@mkdir -p $@.new
	$(Q)clang $(K3_CFLAGS) -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -DK3_LIBFUZZER \
		$< $(filter lib/base/% lib/spec/% lib/store/% lib/text/% lib/cache/% lib/trace/%,$(LIB_SRC)) $(LDLIBS) -o $@
fuzz: $(FUZZERS)
	$(Q)for f in $^; do K3_MODEL=tests/fixtures/tiny/model $$f -max_total_time=$(FUZZ_SECONDS) -verbosity=0 \
		-artifact_prefix=$$f- $$f.new \
		$$(ls -d tests/fuzz/seeds/$${f##*/fuzz-} 2>/dev/null) || exit 1; done

format:
	$(Q)clang-format -i $(shell git ls-files '*.c' '*.h')

VERSION := $(shell sed -n 's/.*define K3_VERSION "\(.*\)"/\1/p' lib/base/k3_base.h)
install: all
install uninstall:
	$(Q)DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" BINDIR="$(BINDIR)" LIBDIR="$(LIBDIR)" INCLUDEDIR="$(INCLUDEDIR)" DATADIR="$(DATADIR)" \
		MANDIR="$(MANDIR)" DOCDIR="$(DOCDIR)" VERSION="$(VERSION)" scripts/install-tree $@ "$(BIN)" "$(LIB)"

clean:
	rm -rf build bin

help:
	@echo 'all        the programs in bin/ and build/libk3core.a (default)'
	@echo 'demo       install what is missing, build, index the small model, print generated text'
	@echo 'test       unit, kernel and command-line tests; ends with the counts'
	@echo 'bench      kernels, tokenizer and simulator, with ratios to the limits of this machine'
	@echo 'bench-stream  a full-width model of 15 GB streamed at several budgets against its disk; takes 23 GB of TMPDIR'
	@echo 'fuzz       libFuzzer on every reader of files, FUZZ_SECONDS=60 each (needs clang)'
	@echo 'asan       the tests under AddressSanitizer and UBSan'
	@echo 'arm        cross-built for aarch64 and run under qemu: kernels, the small model, files of both machines'
	@echo 'long       tests of minutes and gigabytes; they want K3_REAL'
	@echo 'tsan       programs and threaded unit tests under ThreadSanitizer (needs clang and libomp)'
	@echo 'install    to DESTDIR/PREFIX (default /usr/local; BINDIR LIBDIR INCLUDEDIR DATADIR MANDIR DOCDIR); uninstall removes it'
	@echo 'format     clang-format over the tree'
	@echo 'clean      remove build/ and bin/'

.PHONY: all helpers demo test bench bench-stream fuzz asan arm long tsan tsan-tests format install uninstall clean help FORCE
.DELETE_ON_ERROR:
-include $(LIB_OBJ:.o=.d) $(UNIT_OBJ:.o=.d) $(TSAN_OBJ:.o=.d) $(HELPERS:=.d) $(MKCKPT:.o=.d) $(foreach t,$(TOOLS),$(patsubst %.c,$(BUILD)/%.d,$(wildcard cmd/$(t)/*.c cmd/$(t)/*/*.c)))
