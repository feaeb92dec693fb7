# The tree's stress and its measurements; included by Makefile.
#
#   make bench          nanoseconds and bytes a key (N=keys SETS="dense ..")
#   make stress         threads and processes for SECONDS each, every flavour

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
	$(CC) -pthread -o $@ $^ $(plain_LIBS)
