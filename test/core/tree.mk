# The tree's stress and its measurements; included by Makefile.
#
#   make bench          nanoseconds and bytes a key (N=keys SETS="dense ..")
#   make check-tree     pessimistic latching only; the stress under urcu-qsbr

# Measured as it ships: no pause points, no assertions.
OPT = build/opt
opt_CFLAGS = -std=gnu11 -O2 -g $(WARN) -I$(SRC) -I. -pthread $(CFLAGS_EXTRA)

.PHONY: bench
bench: $(OPT)/bench
	$(OPT)/bench $${N:-1000000} $$SETS
$(OPT):
	mkdir -p $@
$(OPT)/core_%.o: $(SRC)/core/%.c $(HEADERS) tree.mk | $(OPT)
	$(CC) $(opt_CFLAGS) -c $< -o $@
$(OPT)/%.o: %.c $(HEADERS) tree.mk | $(OPT)
	$(CC) $(opt_CFLAGS) -c $< -o $@
$(OPT)/%: $(OPT)/%.o $(HELPERS:%=$(OPT)/%.o) $(CORE:%=$(OPT)/core_%.o)
	$(CC) -pthread -o $@ $^ $(plain_LIBS) -lm

# Every operation the pessimistic way from its first try.
pess_CFLAGS = -O2 -DAX_MAX_RESTARTS=0
pess_LIBS = -lurcu-cds
# The same threads under urcu-qsbr instead of our epochs: what fails under one
# and not under the other says where to look.
qsbr_CFLAGS = -O2 -DAX_RECLAIM_QSBR
qsbr_LIBS = -lurcu-cds -lurcu-qsbr
$(eval $(call flavour,pess))
$(eval $(call flavour,qsbr))

.PHONY: check-tree
check-tree:
	$(MAKE) --no-print-directory check-pess TESTS="test_tree test_oom test_stress"
	$(MAKE) --no-print-directory check-qsbr TESTS=test_stress
check-all: check-tree
