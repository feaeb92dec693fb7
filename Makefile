# artidx: main-memory index access method for PostgreSQL (PGXS)
#
#   make help                      this list
#   make && sudo make install      build and install for the pg_config in PATH
#   make check                     the quick tests, some three minutes
#   make test                      every test, in throwaway clusters, some twenty minutes
#   make test PARTS=regress:unique one test; also core:NAME, isolation:NAME, tap:NAME
#   make demo                      art beside btree, in a throwaway cluster
#   make bench                     the whole table, art beside nbtree and hash
#   make figures                   bench, contention, sysbench and demo; writes doc/figures.md
#   make core-bench                the core alone against its goals
#   make footprint                 cache lines of every transaction of elision
#   make outage                    how long look-ups are away after a crash, beside nbtree
#   make advise                    what artidx_advise() expects, beside what it comes to
#   make trial                     what others notice of artidx_trial()
#   make unused                    what a server pays that preloads artidx and has no art index
#   make cold                      index scans of a table that is not in memory
#   make plans                     TPC-H's, TPC-DS's and other queries with batched joins and without
#   make replica                   indexes on a standby: cost, lag, promotion, beside nbtree
#   make contention                every structure and sync beside nbtree, by pgbench
#   make sysbench                  sysbench's ten workloads with every index art, beside nbtree
#   make soak                      the stress tests, longer, and two hours (HOURS) of faults
#   make fresh                     README's commands in fresh Debian systems
#   make deb                       Debian packages, into build-deb (OUT=directory)
#   make rpm                       an RPM, into build-rpm (OUT=directory)
#   make dist                      the archive for PGXN, into build-dist (OUT=directory)
#   make packages                  those built, installed, upgraded and removed in fresh Debian systems
#   make docker                    each step of the Dockerfile in such a system, and its server
#   make applications              the examples of doc/applications.md, and its tools
#   make report-test               artidx-report with servers and a browser
#   make conformance               PostgreSQL's own tests, with art where they say btree
#   make others                    other people's test suites with every index art, and with btree
#   make check-rtm                 every test with real transactions, where there are any
#   make minors                    one build and one data directory on two minor releases
#   make upgrades                  pg_upgrade, dump and restore from one major version to another
#   make matrix                    the tests on other versions, and on servers that check themselves
#   make faults                    right answers while processes die, networks are cut, servers fail over
#   make coverage                  lines and branches of the source that the tests run (PARTS=)
#   make analyse                   gcc -fanalyzer and clang-tidy over the source
#   make mutants                   small mistakes, one after the other: does the test that each names notice?
#   make fuzz SECONDS=30           what reads bytes, and every engine, by libFuzzer (NAMES="saved ring")
#   make schedules                 threads of the core under schedules drawn at random (SECONDS=, COUNT=, PLANTED=1)
#
# PG_CONFIG=path chooses the PostgreSQL, WERROR=1 makes warnings errors.

EXTENSION = artidx artidx_debug
EXTVERSION = 0.2.0
MODULE_big = artidx
PGFILEDESC = "artidx - main-memory radix tree indexes"

# Every room of src: see src/README.md, Rooms.
SOURCES = $(sort $(wildcard src/*.[ch] src/*/*.[ch] src/*/*/*.[ch]))
OBJS = $(patsubst %.c,%.o,$(filter %.c,$(SOURCES)))
ARTIDX_HEADERS = $(filter %.h,$(SOURCES))

# The install script is the concatenation of src/sql in name order.  From every older
# version that has a directory src/sql/from-VERSION a script leads to this one: what is
# in the directory, and between its files all that can be made anew of the install
# script (src/sql/anew.awk).  sql/ has the inputs of the regression tests and nothing else.
SQL_PARTS = $(sort $(wildcard src/sql/*.sql))
ARTIDX_SQL = artidx--$(EXTVERSION).sql
ARTIDX_UPDATES = $(patsubst src/sql/from-%/,artidx--%--$(EXTVERSION).sql,$(sort $(dir $(wildcard src/sql/from-*/*.sql))))
ARTIDX_DEBUG_SQL = artidx_debug--$(EXTVERSION).sql
DATA_built = $(ARTIDX_SQL) $(ARTIDX_UPDATES) $(ARTIDX_DEBUG_SQL)

# Symbols are hidden; 15 has no marking of its own for those that are not.
PG_CPPFLAGS = -I$(srcdir)/src \
	'-DPGDLLEXPORT=__attribute__((visibility("default")))' '-DARTIDX_VERSION="$(EXTVERSION)"'
PG_CFLAGS = -fvisibility=hidden -Wextra -Wno-unused-parameter
# The headers of 15 have functions "()", which C23, the language of newer compilers, takes to have no arguments.
PG_CFLAGS += $(if $(filter 15,$(MAJORVERSION)),-std=gnu17)
ifeq ($(WERROR),1)
PG_CFLAGS += -Werror
endif
# GCC for x86 clears and copies some hundred bytes by "rep stos" and "rep movs", which take longer to
# begin than a call of memset() takes: a fifth of a scan's begin and end (make bench ONLY=stmt).
STRINGOPS = -mmemset-strategy=unrolled_loop:128:noalign,libcall:-1:noalign \
	-mmemcpy-strategy=unrolled_loop:128:noalign,libcall:-1:noalign
BUILD_CC := $(if $(findstring command,$(origin CC)),$(CC),$(shell $(or $(PG_CONFIG),pg_config) --cc 2>/dev/null))
ifeq ($(shell echo 'int i;' | $(BUILD_CC) $(STRINGOPS) -Werror -S -o /dev/null -x c - 2>/dev/null && echo yes),yes)
PG_CFLAGS += $(STRINGOPS)
endif
PG_CFLAGS += $(EXTRA_CFLAGS)

# liburcu: only the lock-free stack of urcu/lfstack.h and cpu_relax; libm: the estimate; librt: the
# timer of a trial, before glibc 2.34
SHLIB_LINK = -lurcu-cds -lm -lrt

REGRESS = basic scan unique ddl options errors explain keys opclass estimate btree \
	engines contention opcmp types include replace arrays together kinds markpos parallel \
	constraints opfamily planner costs churn pbuild equality elision tail planning
REGRESS += convert btlimit
REGRESS += relocate
REGRESS += quota
REGRESS += reindex_many
REGRESS += queue
REGRESS += batched
REGRESS += runsort
REGRESS += hydra
REGRESS += rows
REGRESS += aggregates
REGRESS += loose
REGRESS += members
REGRESS += composite
REGRESS += defaults
REGRESS += searches
REGRESS += skip
REGRESS += advise
REGRESS += trial
REGRESS_OPTS = --temp-instance=./tmp_regress \
	--temp-config=$(srcdir)/test/artidx.conf --no-locale --encoding=UTF8
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(sort \
	$(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=$(srcdir)/test/isolation \
	--temp-instance=./tmp_isolation \
	--temp-config=$(srcdir)/test/artidx.conf --no-locale --encoding=UTF8
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

EXTRA_CLEAN = tmp_regress tmp_isolation tmp_check tmp_check_iso output_iso \
	results regression.diffs regression.out

# Nothing of an access method is ever inlined into a compiled expression, so
# bitcode would be of no use, and would need the very clang of the server.
override with_llvm = no

PG_CONFIG ?= pg_config
# PGXS has a "check" that says it is not supported: without it, ours runs.
ifneq ($(MAKECMDGOALS),check)
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))
endif

# The first target when there is no PostgreSQL yet; "make test" and "make demo"
# work all the same, since they install what is missing.
ifeq ($(PGXS),)
.PHONY: all install clean installcheck
all install installcheck:
	@echo "artidx needs PostgreSQL's server headers and PGXS, and $(PG_CONFIG) does not lead to them." >&2
	@echo "On Debian: apt-get install postgresql-server-dev-15 libicu-dev liburcu-dev, or give PG_CONFIG=/path/to/pg_config." >&2
	@exit 1
clean:
	rm -rf $(OBJS) $(DATA_built) artidx.so $(EXTRA_CLEAN)

.PHONY: check
check:
	PG_CONFIG='$(PG_CONFIG)' STRESS_SECONDS=3 CLIENTS=16 \
		ARTIDX_ENGINES='$(or $(ARTIDX_ENGINES),art-olc)' \
		bash test/run.sh symbols quick regress isolation stress
else
include $(PGXS)

# PGXS follows no headers by itself when the server was configured without
# dependency tracking.
$(OBJS): $(ARTIDX_HEADERS) Makefile

# Not by DOCS, which would put README.md beside those of all other extensions.
DOCUMENTS = $(DESTDIR)$(docdir)/artidx
DOCS_TOP = README.md CHANGELOG.md LICENSE
DOCS_BOOK = $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/doc/*.md $(srcdir)/doc/*.yml $(srcdir)/doc/*.json))
DOCS_PLOTS = $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/doc/figures/*.svg $(srcdir)/doc/figures/*.png))
.PHONY: install-documents uninstall-documents not-root
install: install-documents
install-documents:
	$(MKDIR_P) '$(DOCUMENTS)/doc/figures'
	$(INSTALL_DATA) $(addprefix $(srcdir)/,$(DOCS_TOP)) '$(DOCUMENTS)/'
	$(INSTALL_DATA) $(addprefix $(srcdir)/,$(DOCS_BOOK)) '$(DOCUMENTS)/doc/'
	$(if $(DOCS_PLOTS),$(INSTALL_DATA) $(addprefix $(srcdir)/,$(DOCS_PLOTS)) '$(DOCUMENTS)/doc/figures/')
uninstall: uninstall-documents
uninstall-documents:
	rm -f $(patsubst %,'$(DOCUMENTS)/%',$(DOCS_TOP) $(DOCS_BOOK) $(DOCS_PLOTS))
	-rmdir '$(DOCUMENTS)/doc/figures' '$(DOCUMENTS)/doc' '$(DOCUMENTS)' 2>/dev/null

# elision.sql loads it
ELISION_TESTS = test/modules/art_elidetest
.PHONY: elision-tests
elision-tests: not-root
	@$(MAKE) -s --no-print-directory -C $(srcdir)/$(ELISION_TESTS) PG_CONFIG='$(PG_CONFIG)' all

installcheck: not-root elision-tests
not-root:
	@if [ "$$(id -u)" = 0 ]; then \
		echo "make installcheck starts servers, which refuse to run as root." >&2; \
		echo "Run it as another user, or \"make test\", which may be run as root." >&2; \
		exit 1; fi
endif

.PHONY: help
help:
	@sed -n '/^#   make/s/^#   //p; /^$$/q' $(firstword $(MAKEFILE_LIST))

script_head = printf '%s\n' '/* $@: generated from src/sql, do not edit */' '' \
	'-- complain if script is sourced in psql, rather than via $(1) EXTENSION' \
	'\echo Use "$(2)" to load this file. \quit' ''

$(ARTIDX_SQL): $(SQL_PARTS) Makefile
	{ $(call script_head,CREATE,CREATE EXTENSION artidx); \
	  for f in $(SQL_PARTS); do cat $$f; echo; done; } > $@.tmp
	mv $@.tmp $@

$(ARTIDX_DEBUG_SQL): src/sql/debug/views.sql Makefile
	{ $(call script_head,CREATE,CREATE EXTENSION artidx_debug); cat $<; } > $@.tmp
	mv $@.tmp $@

$(ARTIDX_UPDATES): artidx--%--$(EXTVERSION).sql: src/sql/anew.awk $(SQL_PARTS) $(wildcard src/sql/from-*/*.sql) Makefile
	{ $(call script_head,ALTER,ALTER EXTENSION artidx UPDATE); \
	  cat src/sql/from-$*/before.sql && echo && \
	  awk -f src/sql/anew.awk $(SQL_PARTS) && \
	  cat src/sql/from-$*/after.sql; } > $@.tmp
	mv $@.tmp $@

# Every part of the tests also runs alone: make test PARTS="regress tap"
PARTS = symbols core keys regress isolation tap stress

# The long versions of the tests that take their length from the environment.
SOAK = CLIENT_SECONDS=300 CRASH_ROUNDS=90 KILL_SECONDS=300 PROMOTE_SECONDS=60 \
	DATABASE_ROWS=50000 CANCEL_ROUNDS=1200 CLUSTER_ROUNDS=60 SERIALIZABLE_SECONDS=60 STRESS_FULL=300 DDL_ROUNDS=2000 \
	PRIVATE_SECONDS=300 BUILD_ROWS=10000000 SWITCH_SECONDS=300 SCANS_SECONDS=300 \
	TYPE_ROUNDS=10 TYPE_ROWS=10000 CUT_ROUNDS=48 TAP_SCALE=100 CORE_SECONDS=30 ALL_ENGINES=1 \
	DIFF_SECONDS=1800 RACES=10000000 TAIL_SECONDS=60 SURVIVE_CYCLES=1000 CRASH_CYCLES=1000 \
	REPLICA_ROUNDS=300 REPLICA_SECONDS=6 REPLICA_KILLS=1000 \
	AGG_QUERIES=20000 LOOSE_QUERIES=20000 SKIP_QUERIES=20000 ROWS_QUERIES=20000
SOAK_TAP = core tap:many_clients,connections,shared_builds,random_ddl,private_scan,memory_full,immediate_restarts,killed_backends,promotion,databases,cancelled,switched_options,compared_load,payload,scans_load,cluster,serializable,cut_remake,all_types,differential,tail_buffer,crash_cycles,crash_memory,replica_random,replica_kill,aggregates,loose,skips,row_comparison

.PHONY: test soak applications fresh deb dist packages docker sizes plans cold check-rtm matrix minors upgrades mutants coverage analyse faults demo bench figures core-bench footprint contention sysbench outage advise trial replica conformance format checks others rpm unused fuzz schedules report-test
test:
	PG_CONFIG='$(PG_CONFIG)' STRESS_SECONDS='$(SECONDS)' bash test/run.sh $(PARTS)

soak:
	EVIDENCE_NAME=soak EVIDENCE_RUN='make soak' \
		EVIDENCE_SHOWS='The long versions of the tests that take their length from the environment, and the stress for $(or $(SECONDS),300) seconds an engine.' \
		PG_CONFIG='$(PG_CONFIG)' STRESS_SECONDS='$(or $(SECONDS),300)' CONNS='$(or $(CONNS),10000)' \
		TAP_TIMEOUT=7200 $(SOAK) bash test/run.sh models helgrind count stress $(SOAK_TAP)
	$(MAKE) --no-print-directory faults PLANTS=1
	$(MAKE) --no-print-directory faults SECONDS=$$(($(or $(HOURS),2) * 3600))
	$(MAKE) --no-print-directory applications report-test fresh

applications:
	PG_CONFIG='$(PG_CONFIG)' bash test/applications/run.sh

# ARGUMENTS of pytest, SHOTS; see report/tests/run.sh
report-test:
	PG_CONFIG='$(PG_CONFIG)' bash report/tests/run.sh $(ARGUMENTS)

# PARTS (not those of make test), SCALE, ARTIDX_CACHE; as root
fresh:
	PARTS='$(if $(filter file,$(origin PARTS)),,$(PARTS))' bash test/fresh.sh

# OUT, VERSIONS, DEB_VERSION, LINTIAN; see packaging/deb.sh
deb:
	bash packaging/deb.sh

rpm:
	PG_CONFIG='$(PG_CONFIG)' bash packaging/rpm.sh

dist:
	bash packaging/dist.sh

# SUITES (bookworm), OUT, ARTIDX_CACHE; as root
packages:
	bash test/packages.sh $(SUITES)

docker:
	bash test/docker.sh

check-rtm:
	PG_CONFIG='$(PG_CONFIG)' STRESS_SECONDS='$(SECONDS)' bash test/rtm.sh

# MATRIX, PARTS (not those of make test), ARTIDX_CACHE; see test/README.md
matrix:
	PARTS='$(if $(filter file,$(origin PARTS)),,$(PARTS))' bash test/matrix.sh

# VERSIONS, PAIRS, MODES, PARTS (not those of make test), ROWS; as root; see test/upgrade.sh
upgrades:
	PARTS='$(if $(filter file,$(origin PARTS)),,$(PARTS))' bash test/upgrade.sh

# One build, one data directory, the archive's oldest and newest minor release.
minors:
	PG_CONFIG='$(PG_CONFIG)' bash test/minors.sh

# NAMES, TIMEOUT, TAP_SCALE, TRY, COPY, RESULTS, EVIDENCE; see test/mutants
mutants:
	PG_CONFIG='$(PG_CONFIG)' bash test/mutants.sh $(NAMES)

# PARTS of the glue (not those of make test), TAP_SCALE, COPY, RESULTS, EVIDENCE; see test/coverage.sh
coverage:
	PG_CONFIG='$(PG_CONFIG)' PARTS='$(if $(filter file,$(origin PARTS)),,$(PARTS))' bash test/coverage.sh

# FILES, JOBS, TOOLS, RESULTS, EVIDENCE; see test/analyse.sh
analyse:
	PG_CONFIG='$(PG_CONFIG)' bash test/analyse.sh $(FILES)

# SECONDS, SEED, WORKLOADS, NEMESES, MEMORY, PLANTS=1, MUTANT, RESULTS; best as root; see test/faults
faults:
	PG_CONFIG='$(PG_CONFIG)' FAULT_SECONDS='$(or $(SECONDS),60)' bash test/faults/run.sh

# SECONDS each, NAMES; wants clang; see test/fuzz
fuzz:
	$(MAKE) --no-print-directory -C test/fuzz PG_CONFIG='$(PG_CONFIG)' fuzz

# SECONDS or COUNT of all engines together, ENGINES, FROM, SCENE; PLANTED=1, NAMES; see test/schedules.sh
schedules:
	RUN_SECONDS='$(or $(SECONDS),300)' COUNT='$(or $(COUNT),0)' bash test/schedules.sh

demo:
	PG_CONFIG='$(PG_CONFIG)' bash test/demo/demo.sh

bench:
	PG_CONFIG='$(PG_CONFIG)' bash test/bench/bench.sh

# Some three hours on a machine that does nothing else.
figures:
	FIGURES=1 $(MAKE) --no-print-directory bench
	FIGURES=1 $(MAKE) --no-print-directory contention
	FIGURES=1 $(MAKE) --no-print-directory sysbench
	FIGURES=1 $(MAKE) --no-print-directory demo

# QUICK=1, N, ENGINES, CSV; see test/README.md
core-bench:
	$(MAKE) --no-print-directory -C test/core core-bench

# STRUCTURES, SETS, SIZES, CSV; see test/README.md
footprint:
	$(MAKE) --no-print-directory -C test/core footprint

# SECONDS a cell, SCALE, ENGINES, CLIENTS, WORKLOADS; see test/README.md
contention:
	PG_CONFIG='$(PG_CONFIG)' CELL_SECONDS='$(SECONDS)' bash test/bench/contention.sh

# TABLES, ROWS, THREADS, SECONDS a cell, REPS, WORKLOADS, RESULTS; see test/README.md
sysbench:
	PG_CONFIG='$(PG_CONFIG)' CELL_SECONDS='$(SECONDS)' bash test/bench/sysbench.sh

# ROWS, BEFORE, AFTER, LOOKUPS, INSERTS, WORKERS, WAITS, AMS, RESULTS; see test/README.md
outage:
	PG_CONFIG='$(PG_CONFIG)' bash test/bench/outage.sh

# ROWS, OPS, REPS, TRIAL, RESULTS; see test/README.md
advise:
	PG_CONFIG='$(PG_CONFIG)' bash test/bench/advise.sh

# SCALE, CLIENTS, RATE, SECONDS of each trial, REPS, RESULTS; see test/README.md
trial:
	PG_CONFIG='$(PG_CONFIG)' SECONDS_EACH='$(SECONDS)' bash test/bench/trial.sh

# SCALE, CLIENTS, SECONDS of a run, REPS, RESULTS; see test/README.md
unused:
	PG_CONFIG='$(PG_CONFIG)' SECONDS_EACH='$(SECONDS)' bash test/bench/unused.sh

# ROWS, SECONDS of the load, CLIENTS, READERS, REPS, RESULTS; see test/README.md
replica:
	PG_CONFIG='$(PG_CONFIG)' LOAD_SECONDS='$(SECONDS)' bash test/bench/replica.sh

# SUITES, SETTINGS, CONFORMANCE_SRC, CONFORMANCE_CACHE, RESULTS; see test/conformance
conformance:
	PG_CONFIG='$(PG_CONFIG)' bash test/conformance/run.sh

# SUITES, MINUTES, LIMIT_MINUTES, OTHERS_CACHE, RESULTS; see test/others
others:
	PG_CONFIG='$(PG_CONFIG)' bash test/others/run.sh

format:
	clang-format -i $(filter-out $(DATA_built),$(OBJS:.o=.c)) $(ARTIDX_HEADERS)

checks:
	bash test/checks.sh
	PG_CONFIG='$(PG_CONFIG)' bash test/run.sh symbols

cold:
	PG_CONFIG='$(PG_CONFIG)' bash test/bench/cold.sh

plans:
	PG_CONFIG='$(PG_CONFIG)' bash test/plans/run.sh

sizes:
	@perl test/sizes.pl rooms
	@perl test/sizes.pl repeats
