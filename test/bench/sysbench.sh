#!/bin/bash
#
# test/bench/sysbench.sh
#	  sysbench's ten workloads with every index art, beside btree; "make sysbench"
#	  calls it.
#
# sysbench makes its tables once.  Each cell restores their dump into a new
# database, once with artidx.replace_btree = all and once without, in turn: btree,
# art, art, btree.  A cell counts when the indexes are of the right kind, when all
# scans were scans of these, and when artidx_check finds nothing afterwards.  Else
# its workload has no figure, the whole has no mean, and the script fails.
#
# Prints the ratio of each workload, WAL a transaction, the geometric mean and the
# worst (figures.pl, which has the goals).  Writes every cell and the machine into
# sysbench.tsv, of which artidx-report draws a plot, and the table into table.txt, in RESULTS.
#
#	TABLES=4 ROWS=500000	tables, and rows of each
#	THREADS=8			of sysbench
#	CELL_SECONDS=10		length of one cell ("make sysbench SECONDS=10")
#	REPS=3				rounds of four cells a workload, of which the medians count
#	WORKLOADS="oltp_insert ..."	default: all ten
#	SYNC_COMMIT=off		synchronous_commit, for both
#	CONF="a=b c=d"		more settings of the server
#	RESULTS=dir			default: bench-results/sysbench-<date> in the tree
#	FIGURES=1			the results become those of doc/figures.md
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

ALL="oltp_point_select oltp_read_only oltp_read_write oltp_write_only oltp_insert
	oltp_delete oltp_update_index oltp_update_non_index select_random_points
	select_random_ranges"
: "${TABLES:=4}" "${ROWS:=500000}" "${THREADS:=8}" "${CELL_SECONDS:=10}" "${REPS:=3}"
: "${SYNC_COMMIT:=off}" "${CONF:=}" "${WORKLOADS:=$ALL}"
: "${RESULTS:=$TREE/bench-results/sysbench-$(date +%Y%m%d-%H%M%S)}"

art_whole_numbers 10000 ROWS
art_whole_numbers 1 TABLES THREADS CELL_SECONDS REPS
for w in $WORKLOADS; do
	[[ " $(echo $ALL) " = *" $w "* ]] || art_die "no workload $w, but $(echo $ALL)"
done
art_results_dir
TSV=$RESULTS/sysbench.tsv
FIGURES_PL=$TREE/test/bench/figures.pl

started=$(date +%s)
NEEDS=sysbench
art_setup sysbench
# Images of pages would charge btree, in short cells, for a checkpoint each.  What
# they cost is bench.sh's to show.
# shellcheck disable=SC2086
art_cluster sysbench \
	"shared_preload_libraries = 'artidx'" \
	"artidx.memory = '$((TABLES * ROWS / 4000 + 512))MB'" \
	"shared_buffers = '$((TABLES * ROWS / 2000 + 512))MB'" \
	"max_connections = $((THREADS + 20))" \
	"synchronous_commit = $SYNC_COMMIT" \
	"full_page_writes = off" \
	"wal_level = replica" \
	"wal_buffers = '64MB'" \
	"autovacuum = off" \
	"checkpoint_timeout = '1d'" \
	"max_wal_size = '200GB'" \
	"jit = off" \
	$CONF

art_results "$TSV" "make sysbench" \
	"$TABLES tables of $ROWS rows, $THREADS threads, $CELL_SECONDS s a cell, medians of $((2 * REPS))" \
	"$(sysbench --version); synchronous_commit $SYNC_COMMIT, full_page_writes off, autovacuum off, tables cached${CONF:+, $CONF}; new tables in every cell"
printf 'workload\tam\trep\ttps\tp99_ms\twal_bytes\terrors\trefused\n' >>"$TSV"

# in_sysbench WORKLOAD DATABASE ARGUMENT...
in_sysbench()
{
	as_user sysbench "$1" --db-driver=pgsql --pgsql-host="$PGHOST" --pgsql-port="$PGPORT" \
		--pgsql-user="$PGUSER" --pgsql-db="$2" --tables="$TABLES" --table-size="$ROWS" \
		--threads="$THREADS" "${@:3}" >"$WORK/sysbench.out" 2>&1 ||
		{ tail -20 "$WORK/sysbench.out" >&2; art_die "sysbench $1 failed"; }
}

# new_database AM: the tables as sysbench made them, in a database of their own
new_database()
{
	local t

	PGDATABASE=postgres sql "DROP DATABASE IF EXISTS sb" >/dev/null 2>&1
	PGDATABASE=postgres sql "CREATE DATABASE sb" >/dev/null || art_die "no database"
	if [ "$1" = art ]; then
		sql "CREATE EXTENSION artidx" >/dev/null || art_die "no artidx"
		sql "ALTER DATABASE sb SET artidx.replace_btree = 'all'" >/dev/null
	fi
	as_user "$BIN/psql" -X -q -v ON_ERROR_STOP=1 -f "$WORK/tmp/made.sql" >/dev/null ||
		art_die "the tables were not restored"
	sql "VACUUM (ANALYZE)" >/dev/null
	# btree's build leaves no page in memory
	for ((t = 1; t <= TABLES; t++)); do
		sql "SET enable_seqscan = off; SELECT count(id) FROM (SELECT id FROM sbtest$t ORDER BY id) s;
			SELECT count(k) FROM (SELECT k FROM sbtest$t ORDER BY k) s" >/dev/null
	done
	sql "SELECT pg_stat_reset()" >/dev/null
}

# refused WORKLOAD AM: why the cell that has just run does not count; nothing where it does
refused()
{
	local n

	# the threads' backends count their scans when they end
	until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE datname = 'sb'
		AND backend_type = 'client backend'")" = 1 ]; do sleep 0.1; done
	n=$(sql "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = relam
		WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace AND amname = '$2'")
	[ "$n" = $((2 * TABLES)) ] || { echo "$n of $((2 * TABLES)) indexes are $2"; return; }
	n=$(sql "SELECT sum(seq_scan) FROM pg_stat_user_tables")
	[ "$n" = 0 ] || { echo "$n scans without an index"; return; }
	n=$(sql "SELECT sum(idx_scan) FROM pg_stat_user_tables")
	[ "$n" != 0 ] || [ "$1" = oltp_insert ] || { echo "no scan of an index"; return; }
	[ "$2" = art ] || return
	n=$(sql "SELECT count(*) FROM artidx_indexes WHERE state = 'ready'")
	[ "$n" = $((2 * TABLES)) ] || { echo "$n of $((2 * TABLES)) indexes are ready"; return; }
	n=$(sql "SELECT artidx_check(indexrelid, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
		WHERE relnamespace = 'public'::regnamespace" 2>&1 >/dev/null) ||
		echo "artidx_check: $(head -1 <<<"$n")"
}

# cell WORKLOAD AM REP: one line of the results
cell()
{
	local lsn wal tps p99 errors n why

	new_database "$2"
	lsn=$(sql "SELECT pg_current_wal_insert_lsn()")
	in_sysbench "$1" sb --time="$CELL_SECONDS" --percentile=99 --rand-seed="$3" run
	wal=$(sql "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$lsn')")
	read -r n tps p99 errors < <(awk '$1 == "transactions:" { n = $2; tps = substr($3, 2) }
		$1 == "99th" { p99 = $3 } $1 == "ignored" { errors = $3 }
		END { print n, tps, p99, errors }' "$WORK/sysbench.out")
	[ "${n:-0}" -gt 0 ] || { cat "$WORK/sysbench.out" >&2; art_die "no transaction of $1 with $2"; }
	why=$(refused "$1" "$2")
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$tps" "$p99" \
		"$(awk "BEGIN { printf(\"%.1f\", $wal / $n) }")" "$errors" "$why" >>"$TSV"
	printf '#   %-22s %-6s %2s  %10s /s  p99 %8s ms  %s\n' "$1" "$2" "$3" "$tps" "$p99" "${why:+refused: $why}" >&2
}

# what was measured is printed even when the run breaks off
report()
{
	local rc=$?

	perl "$FIGURES_PL" sysbench "$TSV" >"$RESULTS/table.txt" || rc=1
	cat "$RESULTS/table.txt"
	echo
	sed -n 's/^# //p' "$TSV"
	echo "total time: $(($(date +%s) - started)) s; every cell: $TSV"
	art_draw "$RESULTS"
	[ $rc -ne 0 ] || art_figures "$TSV" sysbench || rc=1
	(exit $rc)
	art_cleanup
}

art_say "$TABLES tables of $ROWS rows"
sql "CREATE DATABASE made" >/dev/null
in_sysbench oltp_read_write made --rand-seed=1 prepare
# a dump says USING btree, which artidx.replace_btree obeys
as_user "$BIN/pg_dump" made | sed -E '/^CREATE INDEX /s/ USING btree / /' | as_user tee "$WORK/tmp/made.sql" >/dev/null ||
	art_die "no dump"
sql "DROP DATABASE made" >/dev/null
export PGDATABASE=sb

trap report EXIT
for w in $WORKLOADS; do
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in btree art art btree; do
			cell "$w" "$am" "$rep"
		done
	done
done
exit 0
