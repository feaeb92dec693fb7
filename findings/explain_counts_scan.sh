#!/bin/bash
#
# findings/explain_counts_scan.sh
#	  EXPLAIN without ANALYZE raises idx_scan of an index, also of one that its plan does not use.
#
# The guess, before it was run: pg_stat_user_indexes counts scans that statements run.  EXPLAIN
# runs nothing, so an index that no statement has used keeps idx_scan 0.
#
# What happens: the planner of PostgreSQL 15.20 looks up the largest value in a btree index when a
# condition lies beyond the histogram, and that look-up counts as a scan.  Two EXPLAINs make two.
# The plans read the table, and use no index.  A search for unused indexes by idx_scan = 0
# passes over an index that only planning reads.
# Seen on 2026-12-01 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch
start
sql "CREATE TABLE t (a int, b int) WITH (autovacuum_enabled = off)" "INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i" \
	"CREATE INDEX t_a ON t (a)" "ANALYZE t" "INSERT INTO t SELECT 5000 + i, i FROM generate_series(1, 1000) i"
count="SELECT pg_stat_force_next_flush(); SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 't_a'"
before=$(sql "$count" | tail -1)
explain="SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; EXPLAIN (COSTS OFF) SELECT b FROM t WHERE a > 4000"
plan=$(sql "$explain" | head -1)
sql "$explain" >/dev/null
after=$(sql "$count" | tail -1)
printf '%s\n' "plan: $plan" "idx_scan before two EXPLAINs: $before, after them: $after"
[ "$plan" = "Seq Scan on t" ] && [ "$before" = 0 ] && [ "$after" = 2 ]
verdict $?
