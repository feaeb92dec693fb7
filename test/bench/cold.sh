#!/bin/bash
#
# test/bench/cold.sh
#	  Index scans of a table that is not in memory: "make cold" calls it.
#
# A table of four times shared_buffers, and rows in the order of a random column.  btree's
# index scan, btree's bitmap scan with a sort above, and art's index scan, by
# effective_io_concurrency.  Each run begins at another place.  Prints microseconds a row, the
# median of REPS, and their ratio to btree's index scan.
#
# The kernel's page cache is dropped before each run, which wants root.  Without root, and in
# a second table, the file is in the page cache.  Last, everything is in shared buffers.
#
#	MB=800		size of the table
#	REPS=3
#	LIMITS="10 100 1000 10000 100000"
#	RESULTS=dir	default: bench-results/cold-<date> in the tree
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${MB:=800}" "${REPS:=3}" "${LIMITS:=10 100 1000 10000 100000}"
: "${RESULTS:=$TREE/bench-results/cold-$(date +%Y%m%d-%H%M%S)}"
art_whole_numbers 8 MB
art_whole_numbers 1 REPS
art_results_dir
rows=$((MB * 2048))		# of some 500 bytes

# cluster BUFFERS: with the table, without indexes
cluster()
{
	art_cluster "cold-$1" \
		"shared_preload_libraries = 'artidx'" \
		"artidx.memory = '$((MB / 8 + 64))MB'" \
		"shared_buffers = '$1'" \
		"maintenance_work_mem = '256MB'" \
		"max_wal_size = '20GB'" \
		"fsync = off" \
		"autovacuum = off" \
		"max_parallel_workers_per_gather = 0" \
		"enable_seqscan = off" \
		"random_page_cost = 1.1" \
		"jit = off"
	sql "CREATE EXTENSION artidx" >/dev/null
	sql "CREATE TABLE cold AS SELECT i AS n, hashint8(i) AS h, repeat('x', 440) AS pad FROM generate_series(1, $rows) i" >/dev/null
	sql "VACUUM (FREEZE, ANALYZE) cold" >/dev/null
	sql "CHECKPOINT" >/dev/null
}

drop_page_cache()
{
	sync
	echo 1 >/proc/sys/vm/drop_caches
}

# query LIMIT BITMAP CONCURRENCY: microseconds a row
query()
{
	local from

	from=$((RANDOM * RANDOM * 3 - 1500000000))
	sql "SET enable_bitmapscan = $2; SET enable_indexscan = $([ "$2" = on ] && echo off || echo on);
		SET effective_io_concurrency = $3;
		EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON)
		SELECT count(n), max(length(pad)) FROM (SELECT n, pad FROM cold WHERE h BETWEEN $from AND $from::bigint + $1 * 4294967296 / $rows
			ORDER BY h LIMIT $1) s" | awk -v n="$1" -v want="$([ "$2" = on ] && echo Bitmap || echo Index)" '
		/Scan/ { if (!seen++ && $0 !~ want) exit 1 }
		/Execution Time/ { printf "%.2f\n", $3 * 1000 / n }'
}

# measure WHAT KIND INDEX BITMAP CONCURRENCY: a row of the table for each limit
measure()
{
	local limit rep

	for limit in $LIMITS; do
		for ((rep = 1; rep <= REPS; rep++)); do
			[ "$1" != disk ] || drop_page_cache
			[ "$1" != memory ] || sql "SELECT count(pad) FROM cold" >/dev/null
			printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$limit" "$(query "$limit" "$4" "$5")"
		done
	done >>"$RESULTS/cold.tsv"
}

# kinds WHAT
kinds()
{
	local c

	sql "CREATE INDEX cold_h ON cold (h)" >/dev/null
	measure "$1" btree btree off 0
	for c in 1 16 64; do measure "$1" "bitmap $c" btree on $c; done
	sql "DROP INDEX cold_h; CREATE INDEX cold_h ON cold USING art (h)" >/dev/null
	for c in 0 1 16 64; do measure "$1" "art $c" art off $c; done
	sql "DROP INDEX cold_h" >/dev/null
}

art_setup cold
: >"$RESULTS/cold.tsv"
cluster "$((MB / 4))MB"
if [ "$(id -u)" -eq 0 ]; then kinds disk; else echo "# not root: the page cache is not dropped"; fi
kinds cache
art_cluster_stop
cluster "$((MB + MB / 4))MB"
kinds memory
awk -F '\t' -v limits="$LIMITS" '
	{ at = $1 SUBSEP $2 SUBSEP $3; v[at, ++n[at]] = $4 + 0; if (!($1 in what)) { what[$1]; w[++nw] = $1 } if (!($2 in kind)) { kind[$2]; k[++nk] = $2 } }
	function median(at,  i, j, t, m) {
		m = n[at]
		for (i = 1; i <= m; i++) for (j = i + 1; j <= m; j++) if (v[at, j] < v[at, i]) { t = v[at, i]; v[at, i] = v[at, j]; v[at, j] = t }
		return v[at, int((m + 1) / 2)]
	}
	END {
		nl = split(limits, l, " ")
		for (a = 1; a <= nw; a++) {
			printf "\nrows in %s: microseconds a row, and ratio to btree\n%-12s", w[a], "LIMIT"
			for (i = 1; i <= nl; i++) printf "%18s", l[i]
			print ""
			for (b = 1; b <= nk; b++) {
				printf "%-12s", k[b]
				for (i = 1; i <= nl; i++) {
					base = median(w[a] SUBSEP "btree" SUBSEP l[i])
					m = median(w[a] SUBSEP k[b] SUBSEP l[i])
					printf("%11.2f %6.2f", m, (base > 0 ? m / base : 0))
				}
				print ""
			}
		}
	}' "$RESULTS/cold.tsv" | tee "$RESULTS/cold.txt"
