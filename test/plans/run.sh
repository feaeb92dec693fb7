#!/bin/bash
#
# test/plans/run.sh
#	  Other people's queries with batched joins and without: "make plans" calls it.
#
# TPC-H's 22 and TPC-DS's 99 queries, with the data that DuckDB's generators make, and
# queries of the Join Order Benchmark's shapes on made data (job.sql).  Every key is an art
# index.  Each query runs with artidx.batched_joins off and on, once as the planner likes
# it and once without hash and merge joins, which leaves it nested loops.  The answers must
# be the same.  Where the plan differs, it prints the processor time of the two.
#
#	SCALE=10		per cent of the benchmarks' scale factor 1
#	REPS=3			runs of each, of which the median counts
#	SETS="tpch tpcds job"
#	PAGE_COST=1.1	random_page_cost; 1.1 is what servers have whose data is in memory
#	LIMIT_S=15		a query that takes longer is named, and not compared
#	RESULTS=dir		default: bench-results/plans-<date> in the tree
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${SCALE:=10}" "${REPS:=3}" "${PAGE_COST:=1.1}" "${SETS:=tpch tpcds job}" "${LIMIT_S:=15}"
: "${RESULTS:=$TREE/bench-results/plans-$(date +%Y%m%d-%H%M%S)}"
art_whole_numbers 1 SCALE REPS LIMIT_S
art_results_dir

art_setup plans
# the last release whose package has the generators in it
python3 -m venv "$WORK/venv" && "$WORK/venv/bin/pip" -q install duckdb==0.9.2 "psycopg[binary]" ||
	art_die "python3 -m venv, pip and a package index are needed"
art_cluster plans \
	"shared_preload_libraries = 'artidx'" \
	"artidx.memory = '$((SCALE * 60 + 256))MB'" \
	"shared_buffers = '$((SCALE * 30 + 128))MB'" \
	"work_mem = '64MB'" \
	"fsync = off" \
	"autovacuum = off" \
	"random_page_cost = $PAGE_COST" \
	"max_wal_size = '20GB'" \
	"max_parallel_workers_per_gather = 0" \
	"jit = off"
sql "CREATE EXTENSION artidx" >/dev/null || art_die "no extension"
"$WORK/venv/bin/python" "$TREE/test/plans/plans.py" --scale "$SCALE" --reps "$REPS" --limit "$LIMIT_S" \
	--results "$RESULTS/plans.tsv" --job "$TREE/test/plans/job.sql" $SETS | tee "$RESULTS/plans.log"
rc=${PIPESTATUS[0]}
differences=$(sed -n 's/^\([0-9]*\) differences.*/\1/p' "$RESULTS/plans.log")
[ -z "$differences" ] || art_evidence plans "make plans" \
	"Queries of TPC-H, TPC-DS and of the Join Order Benchmark's shapes ran with batched joins and without, and the answers were compared." \
	"scale factor" "$(awk -v s="$SCALE" 'BEGIN { print s / 100 }')" \
	"sets" "$SETS" \
	"plans with batched joins" "$(tail -n +2 "$RESULTS/plans.tsv" | wc -l)" \
	"batched joins in them" "$(awk -F'\t' 'NR > 1 { n += $4 } END { print n + 0 }' "$RESULTS/plans.tsv")" \
	"rows compared" "$(awk -F'\t' 'NR > 1 { n += $7 } END { print n + 0 }' "$RESULTS/plans.tsv")" \
	"not compared, too slow or refused" "$(grep -c ': not compared: ' "$RESULTS/plans.log")" \
	"differences" "$differences"
exit "$rc"
