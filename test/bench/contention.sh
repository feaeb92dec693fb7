#!/bin/bash
#
# test/bench/contention.sh
#	  nbtree and every structure and sync of art under clients that get into
#	  each other's way, by pgbench, in one run; "make contention" calls it.
#
# Prints tables of throughput and p99 as ratios to nbtree, the longest
# statements of many clients, and which engine wins by what rule; writes every
# cell and the machine into contention.tsv, of which artidx-report draws plots, and the
# tables into table.txt, in RESULTS.
#
#	CELL_SECONDS=2		length of one cell ("make contention SECONDS=2")
#	SCALE=500000		rows of the tables of the mixes
#	ENGINES="nbtree art-olc ..."	default: nbtree and those of test/engines
#	CLIENTS="1 2 8 16 64"
#	ROWS="1 100"		rows a statement
#	WORKLOADS="tail hot uniform skew100 skew80 skew50 skew20 skew0"
#						none: only what follows
#	STALL_SECONDS=10	of 64 clients inserting 100 rows each; 0: leave out
#	RISE_SECONDS=2		of a cell of 64 clients and rising indexes; 0: leave out
#	RISE_ROUNDS=5		how often each, of which the median counts
#	RISE_ENGINES="none empty nbtree art art-off btree btree-off"	-off: no tail buffer; empty: an access
#						method that keeps nothing (test/modules/art_empty)
#	SYNC_COMMIT=off		synchronous_commit, for all of them
#	RESULTS=dir			default: bench-results/contention-<date> in the tree
#	FIGURES=1			the results become those of doc/figures.md
#	QUICK=1				some five minutes: one second a cell, fewer of them
#
# The workloads:
#	tail	INSERT behind a bigserial: all at the right edge of the index
#	hot		UPDATE of an indexed column of rows side by side
#	uniform	half SELECT, half such UPDATE, of any rows
#	skewN	N % SELECT, the rest such UPDATE, self-similar: 80 % of the work on
#			20 % of the rows, and so on within these
# Rising indexes, of which everybody inserts at the right end: one, behind a
# bigserial, or four, behind that, two times and a number from a sequence with
# CACHE; beside nbtree and beside no index at all.
#
# A row is updated by one client only, its neighbours by others: clients meet in
# the index, and do not wait for each other's row locks.  No update is HOT.
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

if [ "${QUICK:-0}" = 1 ]; then
	: "${CELL_SECONDS:=1}" "${CLIENTS:=1 8 64}" "${STALL_SECONDS:=3}"
	: "${WORKLOADS:=tail hot skew50}" "${SCALE:=100000}"
	: "${RISE_SECONDS:=1}" "${RISE_ROUNDS:=3}"
fi
: "${CELL_SECONDS:=2}" "${SCALE:=500000}" "${CLIENTS:=1 2 8 16 64}"
: "${ROWS:=1 100}" "${STALL_SECONDS:=10}" "${SYNC_COMMIT:=off}"
: "${RISE_SECONDS:=2}" "${RISE_ROUNDS:=5}"
: "${RISE_ENGINES:=none empty nbtree art art-off btree btree-off}"
: "${WORKLOADS:=tail hot uniform skew100 skew80 skew50 skew20 skew0}"
: "${ENGINES:=nbtree $(sed 's/#.*//' "$TREE/test/engines" | tr '\n' ' ')}"
: "${RESULTS:=$TREE/bench-results/contention-$(date +%Y%m%d-%H%M%S)}"

MOST=64							# clients among whom the rows are shared out
[ "$WORKLOADS" != none ] || WORKLOADS=
art_whole_numbers 1 CELL_SECONDS
art_whole_numbers 20000 SCALE
art_whole_numbers 0 STALL_SECONDS RISE_SECONDS RISE_ROUNDS
for n in $CLIENTS; do
	[[ $n =~ ^[0-9]+$ ]] && [ "$n" -ge 1 ] && [ "$n" -le $MOST ] || art_die "CLIENTS: 1 to $MOST each"
done
for n in $ROWS; do
	[ "$n" = 1 ] || [ "$n" = 100 ] || art_die "ROWS: 1 and 100 there are"
done
for n in $WORKLOADS; do
	case $n in
		tail | hot | uniform | skew100 | skew[1-9]0 | skew[1-9] | skew0) ;;
		*) art_die "no workload $n: none, or of tail hot uniform skew0 to skew100" ;;
	esac
done
art_results_dir
TSV=$RESULTS/contention.tsv
REPORT=$TREE/test/bench/contention.pl

started=$(date +%s)
art_setup contention
as_user make -s -C test/modules/art_empty PG_CONFIG="$PG_CONFIG" install >>"$WORK/build.log" 2>&1 ||
	{ tail -30 "$WORK/build.log" >&2; art_die "art_empty does not build"; }
# A checkpoint before every block of cells keeps the WAL small; full page images
# would then charge nbtree, in short cells, for one with nearly every page it
# touches.  What the images cost is bench.sh's to show.
nengines=$(echo "$ENGINES" | wc -w)
# two indexes of some 60 bytes a row at most, an engine, and what comes in
art_cluster contention \
	"shared_preload_libraries = 'artidx'" \
	"artidx.memory = '$((nengines * SCALE / 8000 + 1024))MB'" \
	"shared_buffers = '$((nengines * SCALE / 4000 + 512))MB'" \
	"max_connections = 100" \
	"fsync = on" \
	"synchronous_commit = $SYNC_COMMIT" \
	"full_page_writes = off" \
	"wal_level = replica" \
	"wal_buffers = '64MB'" \
	"autovacuum = off" \
	"checkpoint_timeout = '1d'" \
	"max_wal_size = '200GB'" \
	"enable_seqscan = off" \
	"enable_bitmapscan = off" \
	"enable_hashjoin = off" \
	"enable_mergejoin = off" \
	"enable_memoize = off" \
	"jit = off"
sql "CREATE EXTENSION artidx; CREATE EXTENSION art_empty" >/dev/null || art_die "no artidx or art_empty"

art_results "$TSV" "make contention$([ "${QUICK:-0}" != 1 ] || echo " QUICK=1")" \
	"$CELL_SECONDS s a cell, $SCALE rows" \
	"logged tables, fsync on, synchronous_commit $SYNC_COMMIT, full_page_writes off; checkpoints and VACUUM between the cells only; prepared statements over a unix socket; percentiles are of whole statements as pgbench sees them"
printf '%s\t' part workload rows clients engine tps p50_us p99_us p999_us max_us over_100ms >>"$TSV"
echo transactions >>"$TSV"

# using ENGINE COLUMN: what follows ON table
using()
{
	case $1 in
		nbtree) echo "USING btree ($2)" ;;
		empty) echo "USING empty ($2)" ;;
		art | btree) echo "USING art ($2) WITH (structure = $1, tail_buffer = auto)" ;;
		*-off) echo "USING art ($2) WITH (structure = ${1%-off}, tail_buffer = off)" ;;
		*) echo "USING art ($2) WITH (structure = ${1%%-*}, sync = ${1#*-})" ;;
	esac
}

table()
{
	echo "$1_${2//-/_}"
}

wants()
{
	local w

	for w in $WORKLOADS; do
		case $w in
			$1) return 0 ;;
		esac
	done
	return 1
}

tail_wanted=no
mix_wanted=no
if wants tail || [ "$STALL_SECONDS" -gt 0 ]; then tail_wanted=yes; fi
wants '[!t]*' && mix_wanted=yes

for e in $ENGINES; do
	art_say "tables of $e"
	if [ $tail_wanted = yes ]; then
		t=$(table tail "$e")
		sql "CREATE TABLE $t (id bigserial, v int);
			CREATE INDEX ${t}_i ON $t $(using "$e" id)" >/dev/null ||
			art_die "no index of engine $e"
	fi
	if [ $mix_wanted = yes ]; then
		t=$(table mix "$e")
		sql "CREATE TABLE $t (id bigint, k bigint, v int);
			INSERT INTO $t SELECT i, i, 0 FROM generate_series(1, $SCALE::bigint) i;
			CREATE INDEX ${t}_i ON $t $(using "$e" id);
			CREATE INDEX ${t}_k ON $t $(using "$e" k)" >/dev/null ||
			art_die "no index of engine $e"
		sql "VACUUM (ANALYZE) $t" >/dev/null
		for n in "SELECT v FROM $t WHERE id = 7" \
			"SELECT sum(v) FROM $t WHERE id > 700 AND id <= 800" \
			"UPDATE $t SET k = 7 WHERE id = 7" \
			"UPDATE $t SET k = 7 + id WHERE id IN (SELECT 7 + 64 * g FROM generate_series(0, 99) g)"; do
			plan=$(sql "EXPLAIN $n")
			case $plan in
				*"Index Scan using ${t}_i on $t "*) ;;
				*) echo "$plan" >&2; art_die "not by the index: $n" ;;
			esac
		done
	fi
done

if [ "$RISE_SECONDS" -gt 0 ]; then
	for e in $RISE_ENGINES; do
		art_say "rising indexes of $e"
		for n in 1 4; do
			t=$(table rise$n "$e")
			sql "CREATE SEQUENCE ${t}_s CACHE 20;
				CREATE TABLE $t (id bigserial, created_at timestamptz DEFAULT now(),
					doc bigint DEFAULT nextval('${t}_s'),
					logged_at timestamptz DEFAULT clock_timestamp(), v int)" >/dev/null ||
				art_die "no table $t"
			for c in id created_at doc logged_at; do
				[ "$e" != none ] || continue
				[ $n = 4 ] || [ $c = id ] || continue
				sql "CREATE INDEX ${t}_$c ON $t $(using "$e" $c)" >/dev/null ||
					art_die "no index of engine $e"
			done
		done
	done
fi

# ---- pgbench's scripts -------------------------------------------------------
# script WORKLOAD ROWS TABLE
script()
{
	local at reads span=$(($2 * MOST))

	case $1 in
		tail | rise?)
			if [ "$2" = 1 ]; then
				echo "INSERT INTO $3 (v) VALUES (1);"
			else
				echo "INSERT INTO $3 (v) SELECT i FROM generate_series(1, $2) i;"
			fi
			return
			;;
		hot)
			# the rows of all clients side by side, in the middle; 16 for each
			# client when a statement takes one
			reads=0
			if [ "$2" = 1 ]; then
				at="$((SCALE / 2)) + $MOST * random(0, 15)"
			else
				at=$((SCALE / 2))
			fi
			;;
		uniform)
			reads=50
			at="$MOST * random(0, $(((SCALE - span) / MOST - 1)))"
			;;
		*)
			# log(0.2) / log(0.8)
			reads=${1#skew}
			echo "\\set u random(1, 1000000000)"
			at="$MOST * int($(((SCALE - span) / MOST - 1)) * pow(:u / 1000000000.0, 7.212567439))"
			;;
	esac
	echo "\\set at $at"
	echo "\\set r random(1, 100)"
	echo "\\if :r <= $reads"
	if [ "$2" = 1 ]; then
		# any row of the stretch, whosever it is
		echo "\\set i :at + random(1, $MOST)"
		echo "SELECT v FROM $3 WHERE id = :i;"
	else
		echo "SELECT sum(v) FROM $3 WHERE id > :at AND id <= :at + $2;"
	fi
	echo "\\else"
	# k moves within the neighbourhood, so that a hot stretch of rows is one of k
	echo "\\set k :at + random(1, $span)"
	if [ "$2" = 1 ]; then
		echo "\\set i :at + 1 + :client_id"
		echo "UPDATE $3 SET k = :k, v = v + 1 WHERE id = :i;"
	else
		echo "\\set i :at + 1 + :client_id"
		echo "UPDATE $3 SET k = :k + id - :at, v = v + 1 WHERE id IN (SELECT :i + $MOST * g FROM generate_series(0, $(($2 - 1))) g);"
	fi
	echo "\\endif"
}

# cell WORKLOAD ROWS CLIENTS ENGINE SECONDS PART: one line of the results
cell()
{
	local w=$1 rows=$2 clients=$3 e=$4 t jobs out line more

	case $w in
		tail | rise?) t=$(table "$w" "$e") ;;
		*) t=$(table mix "$e") ;;
	esac
	if [ "$t" != "$(table mix "$e")" ]; then
		sql "TRUNCATE $t RESTART IDENTITY;
			INSERT INTO $t (v) SELECT i FROM generate_series(1, 10000) i" >/dev/null ||
			art_die "TRUNCATE of $t"
	fi
	script "$w" "$rows" "$t" | as_user tee "$WORK/tmp/script.sql" >/dev/null
	jobs=$(nproc)
	[ "$jobs" -le "$clients" ] || jobs=$clients
	# pgbench's clock runs while it connects: a second more for many, and more
	# still where nothing came to an end
	for more in 0 2 5 fail; do
		[ $more = fail ] &&
			art_die "no transaction ended: $w, $rows rows, $clients clients, $e"
		rm -f "$WORK"/tmp/log.*
		out=$(as_user "$BIN/pgbench" -n -M prepared -c "$clients" -j "$jobs" \
			-T $(($5 + clients / 33 + more)) --log --log-prefix="$WORK/tmp/log" \
			-f "$WORK/tmp/script.sql" 2>&1) ||
			{ echo "$out" >&2; art_die "pgbench failed: $w, $rows rows, $clients clients, $e"; }
		case $out in
			*"number of failed transactions: 0 "*) ;;
			*) echo "$out" >&2; art_die "transactions failed: $w, $rows rows, $clients clients, $e" ;;
		esac
		line=$(cat "$WORK"/tmp/log.* | perl "$REPORT" cell) ||
			art_die "not pgbench's log: $w, $rows rows, $clients clients, $e"
		[ -z "$line" ] || break
	done
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$6" "$w" "$rows" "$clients" "$e" "$line" >>"$TSV"
	printf '#   %-8s %3s rows %3s clients  %-13s %10s /s  p99 %9s us\n' "$w" "$rows" "$clients" \
		"$e" "$(cut -f1 <<<"$line")" "$(cut -f3 <<<"$line")" >&2
	case $w in
		tail | rise? | skew100) ;;
		*) sql "VACUUM $t" >/dev/null ;;
	esac
}

# what was measured is printed even when the run breaks off
report()
{
	local rc=$?

	if grep -q '^cells\|^rises' "$TSV"; then
		{
			if grep -q '^cells' "$TSV"; then
				perl "$REPORT" table "$TSV"
				echo
			fi
			if grep -q '^rises' "$TSV"; then
				perl "$REPORT" rises "$TSV"
				sort "$RESULTS/modes.txt" | uniq -c |
					sed '1i buffer after a cell, and the share of the inserts it took (how many cells)'
				echo
			fi
			sed -n 's/^# //p' "$TSV"
			echo "total time: $(($(date +%s) - started)) s"
		} | tee "$RESULTS/table.txt"
		echo "cells: $TSV"
		art_draw "$RESULTS"
	fi
	[ $rc -ne 0 ] || art_figures "$TSV" contention || rc=1
	(exit $rc)
	art_cleanup
}

: >"$RESULTS/modes.txt"
trap report EXIT

# Engines innermost, and another one first every time: what the machine does
# meanwhile hits all of them alike.
set -- $ENGINES
for w in $WORKLOADS; do
	for rows in $ROWS; do
		sql "CHECKPOINT" >/dev/null
		for clients in $CLIENTS; do
			for e in "$@"; do
				cell "$w" "$rows" "$clients" "$e" "$CELL_SECONDS" cells
			done
			first=$1
			shift
			set -- "$@" "$first"
		done
	done
done
if [ "$STALL_SECONDS" -gt 0 ]; then
	for e in "$@"; do
		sql "CHECKPOINT" >/dev/null
		cell tail 100 64 "$e" "$STALL_SECONDS" stalls
	done
fi

# every round another engine first
set -- $RISE_ENGINES
for ((round = 0; RISE_SECONDS > 0 && round < RISE_ROUNDS; round++)); do
	for w in rise1 rise4; do
		for rows in $ROWS; do
			sql "CHECKPOINT" >/dev/null
			for e in "$@"; do
				sql "SELECT artidx_reset_stats()" >/dev/null
				cell $w "$rows" 64 "$e" "$RISE_SECONDS" rises
				# was there a buffer, and did it take the inserts?
				case $e in none | empty | nbtree | *-off) continue ;; esac
				sql "SELECT '$w, $rows rows, $e: ' || string_agg(format('%s %s %s %%', attname, tail_mode,
						round(100.0 * tail_inserts / n, -1)), ', ' ORDER BY indexrelid)
					FROM artidx_contention JOIN pg_attribute a ON attrelid = indexrelid,
						(SELECT count(*) FROM $(table $w "$e")) AS t (n)
					WHERE relname = '$(table $w "$e")'" >>"$RESULTS/modes.txt"
			done
		done
	done
	first=$1
	shift
	set -- "$@" "$first"
done

# nobody measured a wrong index
for e in $ENGINES $RISE_ENGINES; do
	for t in $(table tail "$e") $(table mix "$e") $(table rise1 "$e") $(table rise4 "$e"); do
		[ "$e" != none ] && [ "$e" != empty ] || continue
		[ "$(sql "SELECT to_regclass('$t') IS NOT NULL")" = t ] || continue
		if [ "$e" != nbtree ]; then
			sql "SELECT artidx_check(indexrelid, true) FROM pg_index WHERE indrelid = '$t'::regclass" >/dev/null ||
				art_die "an index of $t is not what it should be"
		fi
		a=$(sql "SELECT count(*), coalesce(sum(id), 0) FROM $t WHERE id > 0")
		b=$(sql "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
			SELECT count(*), coalesce(sum(id), 0) FROM $t WHERE id > 0")
		[ "$a" = "$b" ] || art_die "$t: $a by the index, $b without"
	done
done
exit 0
