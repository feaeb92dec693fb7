# The tree's stress and its measurements; included by Makefile.
#
#   make bench          nanoseconds and bytes a key (N=keys SETS="dense ..")
#   make core-bench     everything against the goals (QUICK=1 N= ENGINES= CSV=)
#   make check-sched    threads whose schedules are drawn (SECONDS= SCENE= FROM=)
#   make check-helgrind latches that a lock checker sees
#   make footprint      cache lines of a section (SIZES="1000 .." SETS="random ..")
#   make check-prefetch prefetches are in the object code
#   make count          instructions an operation (N=keys)
#   make check-elide    every section as a transaction: scripted, undone
#   make check-tail     the stresses with a tail buffer
#   make check-tree     pessimistic latching only

# Measured as it ships: no pause points, no assertions.
OPT = build/opt
opt_CFLAGS = -std=gnu11 -O2 -g $(WARN) -I$(SRC) -I. -I$(PROVIDERS) -pthread $(CFLAGS_EXTRA)

.PHONY: bench
bench: $(OPT)/bench
	$(OPT)/bench $${N:-1000000} $$SETS
$(OPT):
	mkdir -p $@
$(OPT)/core_%.o: %.c $(HEADERS) tree.mk | $(OPT)
	$(CC) $(opt_CFLAGS) -c $< -o $@
$(OPT)/%.o: %.c $(HEADERS) tree.mk | $(OPT)
	$(CC) $(opt_CFLAGS) -c $< -o $@
$(OPT)/%: $(OPT)/%.o $(HELPERS:%=$(OPT)/%.o) $(CORE:%=$(OPT)/core_%.o)
	$(CC) -pthread -o $@ $^ $(plain_LIBS) -lm

# Every bench_*.c; those of the trees in the order of reading, then the others.
CORE_BENCHES = $(filter bench_%,$(EXTRA_PROGS))
CORE_BENCH_ORDER = bench_core bench_mixes bench_hash \
	$(filter-out bench_core bench_mixes bench_hash,$(CORE_BENCHES))

# cds_lfht wants a flavour of urcu
%/bench_hash: plain_LIBS += -lurcu-memb
%/bench_hash: asan_LIBS += -lurcu-memb
%/bench_hash: tsan_LIBS += -lurcu-cds -lurcu-memb
%/bench_hash: pess_LIBS += -lurcu-memb
%/bench_hash: mapped_LIBS += -lurcu-cds -lurcu-memb
# all of its flavours
$(foreach f,plain asan tsan pess mapped,\
	$(eval %/bench_epoch: $(f)_LIBS += -lurcu-bp -lurcu-mb -lurcu-memb -lurcu-qsbr))

.PHONY: core-bench
core-bench: $(CORE_BENCH_ORDER:%=$(OPT)/%)
	@for b in $(CORE_BENCH_ORDER); do \
		printf '\n==== %s ====\n' $$b; \
		case $$b in bench_lock) a="$(if $(filter 1,$(QUICK)),-m 15)" ;; *) a= ;; esac; \
		$(OPT)/$$b $$a || exit 1; done

# Every operation the pessimistic way from its first try.
pess_CFLAGS = -O2 -DAX_MAX_RESTARTS=0
pess_LIBS = -lurcu-cds
$(eval $(call flavour,pess))

# A coarse latch leaves nothing to restart or to reclaim that its structure's own
# engine does not show.
# Prefetches that the compiler dropped change no result, only the time: see
# AX_PREFETCHES in core/base/ax_internal.h.
PREFETCHING = rt_lookup:rt_lookup rt_lookup:rt_contains rt_lookup:rt_rowex_lookup \
	rt_olc:rt_insert rt_many:step_down rt_many:step_near rt_many:rt_look_ahead bt_tree:bt_descend bt_scan:bt_scan
.PHONY: check-prefetch
check-prefetch: build/plain/test_tree
	@fail=0; n=0; for p in $(PREFETCHING); do \
		if objdump -d --no-show-raw-insn build/plain/core_$${p%%:*}.o | \
			awk -v f="<$${p##*:}[.a-z0-9]*>:" '/>:$$/ { in_it = $$0 ~ f; seen += in_it } \
				in_it && /[ \t](prefetch|prfm|pld)/ { n++ } END { exit !(seen && n) }'; \
		then n=$$((n + 1)); else fail=1; echo "not ok - core prefetch: none in $$p"; fi; done; \
	[ $$fail -ne 0 ] || echo "ok - core prefetch ($$n tests)"; exit $$fail

.PHONY: check-tree
check-tree: check-prefetch
	$(MAKE) --no-print-directory check-pess TESTS="test_tree test_oom test_stress" \
		STRUCTURES="$(filter-out %-coarse,$(STRUCTURES))"

# Every section tried as a transaction: of a script, and undone by hand in the
# middle (../modules/art_elidetest).  With the processor's, where there are any.  There are many
# such runs: each takes half of SECONDS.
ELIDE_PHASES = 1 3 5
# What is undone at a lack of memory is the structure's, whatever its latch.  ALL_ENGINES=1: all the same.
UNDONE_LIKE_OTHERS = $(if $(ALL_ENGINES),,$(foreach s,$(filter-out art-olc art-rowex btree-optiql,$(ENGINES)),test_oom:$s:software:oom))
HAS_RTM = $(shell grep -sow -m 1 rtm /proc/cpuinfo | head -1)
.PHONY: check-elide
check-elide: build/plain/test_stress build/plain/test_oom
	@SECONDS_EACH=$${SECONDS:-5} WORKERS=$${WORKERS:-8} ./check.sh plain \
		$(foreach s,$(STRUCTURES),$(foreach e,$(or $(ELIDE),inject software $(HAS_RTM)),\
			$(filter-out $(UNDONE_LIKE_OTHERS),test_oom:$s:$e:oom) $(ELIDE_PHASES:%=test_stress:$s:$e:%)))

# The stresses of many with a tail buffer, which is shut and opened all the time.
.PHONY: check-tail
check-tail:
	AX_TAIL=on $(MAKE) --no-print-directory check-plain TESTS="test_stress test_stop"
	AX_TAIL=on $(MAKE) --no-print-directory check-tsan TESTS=test_stress STRUCTURES="art-olc btree-olc"
check-all: check-tree check-elide check-tail check-helgrind count

# Latch words as plain locks (core/base/ax_map.h): helgrind wants every two accesses to
# one place to be ordered by a latch.  Not ROWEX, whose readers take none.  The
# order of latches is not asked for: but the pessimistic way, everybody only tries.
mapped_CFLAGS = -O2 -DAX_MAP_RWLOCKS -DAX_NO_URCU
$(eval $(call flavour,mapped))

HELGRIND = valgrind --tool=helgrind --error-exitcode=9 --fair-sched=try \
	--track-lockorders=no -q
.PHONY: check-helgrind
check-helgrind: build/mapped/test_stress
	@fail=0; for s in $(filter-out %-rowex,$(STRUCTURES)); do for p in 1 3 5; do \
		o=build/mapped/helgrind.$$s.$$p.tap; \
		AX_STRUCTURE=$$s PHASE=$$p SECONDS=3 WORKERS=3 timeout $${TIMEOUT:-600} \
			$(HELGRIND) build/mapped/test_stress threads > $$o 2>&1; rc=$$?; \
		if [ $$rc -eq 0 ]; then echo "ok - core helgrind $$s $$p ($$(grep -c '^ok' $$o) tests)"; \
		else fail=1; ./report.sh "core helgrind $$s $$p" $$o $$rc; fi; done; done; exit $$fail

# Every operation of the core on an atomic is a yield point (schedule_map.h).  Together with the
# plain build, and by itself.
sched_CFLAGS = -O2 -DAX_SCHED -DAX_TSAN -DAX_ASAN -U_FORTIFY_SOURCE
$(CORE:%=build/sched/core_%.o) build/sched/ax_elide_%.o: sched_CFLAGS += -include schedule_map.h
check-sched: RUNS = $(call tests_of,sched)
check-sched: STRUCTURES += btree-compared
check-sched: HYDRA += hydra-optiql hydra-coarse
$(eval $(call flavour,sched))
.PHONY: sched-too
check-plain: sched-too
sched-too:
	@$(if $(call tests_of,sched),$(MAKE) --no-print-directory check-sched)

# Instructions an operation, against the same without counters and against the
# centralized latch.
BARE = build/bare
$(BARE):
	mkdir -p $@
$(BARE)/core_%.o: %.c $(HEADERS) tree.mk | $(BARE)
	$(CC) $(opt_CFLAGS) -DAX_NO_COUNTERS -c $< -o $@
$(BARE)/%.o: %.c $(HEADERS) tree.mk | $(BARE)
	$(CC) $(opt_CFLAGS) -DAX_NO_COUNTERS -c $< -o $@
$(BARE)/benchcount: $(BARE)/benchcount.o $(HELPERS:%=$(BARE)/%.o) $(CORE:%=$(BARE)/core_%.o)
	$(CC) -pthread -o $@ $^ $(plain_LIBS) -lm
.PHONY: count
count: $(OPT)/benchcount $(BARE)/benchcount
	@STRUCTURES="$(STRUCTURES)" ./count.sh $(CURDIR)/$(OPT)/benchcount $(CURDIR)/$(BARE)/benchcount

# Cache lines of every section, traced.  At a fixed address, and with transactions
# of its own: see benchlines.c.
LINES = build/lines
lines_CFLAGS = $(opt_CFLAGS) -fno-pie
$(LINES):
	mkdir -p $@
$(LINES)/core_%.o: %.c $(HEADERS) tree.mk | $(LINES)
	$(CC) $(lines_CFLAGS) -c $< -o $@
$(LINES)/%.o: %.c $(HEADERS) tree.mk | $(LINES)
	$(CC) $(lines_CFLAGS) -c $< -o $@
$(LINES)/benchlines: $(LINES)/benchlines.o $(HELPERS:%=$(LINES)/%.o) $(CORE:%=$(LINES)/core_%.o)
	$(CC) -no-pie -pthread -Wl,--wrap=ax_rtm_begin,--wrap=ax_rtm_end \
		-Wl,--wrap=ax_rtm_abort,--wrap=ax_section_refuse -o $@ $^ $(plain_LIBS) -lm
.PHONY: footprint
footprint: $(LINES)/benchlines
	@STRUCTURES="$(STRUCTURES)" ./footprint.sh $(CURDIR)/$(LINES)/benchlines
