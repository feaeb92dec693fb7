#!/bin/bash
#
# test/demo/demo.sh
#	  USING art beside USING btree on the same real work, in a throwaway
#	  cluster; "make demo" calls it.
#
#	SCALE=1000000	rows a table
#	SECONDS_EACH	length of each of its eight pgbench runs (4; 1 below 200,000 rows)
#	CLIENTS			pgbench clients (default: processors)
#	FIGURES=1		the results become those of doc/figures.md
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${SCALE:=1000000}" "${CLIENTS:=$(nproc)}"
: "${AMS:=btree art}"
case $SCALE in
	'' | *[!0-9]*) art_die "SCALE must be a whole number of rows" ;;
esac
[ "$SCALE" -ge 1000 ] || art_die "SCALE must be at least 1000"
: "${SECONDS_EACH:=$((SCALE < 200000 ? 1 : 4))}"

cat <<END
The same work on a table with a btree index and on one with an art index: random
uuids, then a bigserial.  It shows in two minutes what art is for, inserts and
look-ups in indexes that the processor's caches do not hold, and what it costs
elsewhere.  Its figures are of single short runs; "make bench" measures.
END
[ "$SCALE" -ge 1000000 ] || cat <<END
With $SCALE rows the caches hold much of both indexes, so expect small differences
either way: this scale shows that it works, the default of 1000000 what it is good for.
END

started=$(date +%s)
art_setup demo
art_cluster demo \
	"shared_preload_libraries = 'artidx'" \
	"artidx.memory = '$((SCALE / 2500 + 256))MB'" \
	"shared_buffers = '$((SCALE / 2500 + 256))MB'" \
	"max_wal_size = '32GB'" \
	"checkpoint_timeout = '1h'" \
	"autovacuum = off" \
	"max_connections = 100" \
	"jit = off"
case " $AMS " in
	*" art "*) sql "CREATE EXTENSION artidx" >/dev/null || art_die "no artidx" ;;
esac

calc()
{
	awk "BEGIN { printf(\"%.${2:-1}f\", ($1)) }"
}

timed()
{
	local out

	out=$(as_user "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 \
		-c "SET max_parallel_workers_per_gather = 0" \
		-c '\timing on' -c "$1" 2>&1) ||
		{ echo "$out" >&2; art_die "a statement failed"; }
	echo "$out" | awk '/^Time: /{t = $2} END {print t}'
}

# tps SCRIPT: transactions a second
tps()
{
	local out

	as_user tee "$WORK/tmp/script.sql" <<<"$1" >/dev/null
	out=$(as_user "$BIN/pgbench" -n -M prepared -c "$CLIENTS" -j "$CLIENTS" \
		-T "$SECONDS_EACH" -D rows="$SCALE" -f "$WORK/tmp/script.sql" 2>&1) ||
		{ echo "$out" >&2; art_die "pgbench failed"; }
	echo "$out" | awk '/^tps = /{print $3}'
}

wal_since()
{
	sql "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$1')::bigint"
}

declare -A R

# expect TABLE SQL: the plan must use the table's index, or we would compare
# something else
expect_index()
{
	sql "EXPLAIN $2" | grep -q "Index.* Scan.*$1_i" ||
		art_die "the plan of this query does not use the index $1_i: $2"
}

measure()
{
	local kind=$1 am=$2 t=demo_$1_$2 key gen ms lsn type

	art_say "$kind, $am"
	if [ "$kind" = uuid ]; then
		type="uuid"
		gen="md5(i::text)::uuid"
		key="md5((:i)::text)::uuid"
	else
		type="bigserial"
		gen="nextval('${t}_id_seq')"
		key=":i"
	fi
	sql "CREATE TABLE $t (id $type, v int NOT NULL);
		CREATE INDEX ${t}_i ON $t USING $am (id)" >/dev/null ||
		art_die "CREATE INDEX USING $am"
	sql "CHECKPOINT" >/dev/null

	# inserts, and the WAL that they write
	lsn=$(sql "SELECT pg_current_wal_insert_lsn()")
	ms=$(timed "INSERT INTO $t SELECT $gen, i FROM generate_series(1, $SCALE) i")
	R[$kind,$am,insert]=$(calc "$SCALE / $ms * 1000" 0)
	R[$kind,$am,wal]=$(calc "$(wal_since "$lsn") / $SCALE" 1)

	# the index, after these inserts
	if [ "$am" = art ]; then
		R[$kind,$am,size]=$(calc "$(sql "SELECT artidx_index_size('${t}_i')") / $SCALE" 1)
	else
		R[$kind,$am,size]=$(calc "$(sql "SELECT pg_relation_size('${t}_i')") / $SCALE" 1)
	fi
	sql "VACUUM (ANALYZE) $t" >/dev/null

	# look-ups by pgbench: the whole way from the client and back
	expect_index "$t" "SELECT v FROM $t WHERE id = ${key//:i/1}"
	R[$kind,$am,lookup]=$(calc "$(tps "\\set i random(1, :rows)
SELECT v FROM $t WHERE id = $key;")" 0)

	# look-ups inside one statement: what the index itself makes of it
	[ "$(sql "SELECT to_regclass('probe_$kind') IS NOT NULL")" = t ] ||
		sql "CREATE TABLE probe_$kind AS SELECT id FROM $t
		ORDER BY hashint8(v) LIMIT $((SCALE / 5)); ANALYZE probe_$kind" >/dev/null
	ms=$(timed "SET enable_hashjoin = off; SET enable_mergejoin = off;
		SET enable_memoize = off; SET enable_bitmapscan = off;
		SET enable_seqscan = on; SELECT count(*) FROM probe_$kind p
		JOIN $t t ON t.id = p.id")
	R[$kind,$am,join]=$(calc "($SCALE / 5) / $ms * 1000" 0)

	# range scans
	expect_index "$t" "SELECT id FROM $t WHERE id >= ${key//:i/1} ORDER BY id LIMIT 1000"
	R[$kind,$am,range]=$(calc "$(tps "\\set i random(1, :rows - 1000)
SELECT count(*) FROM (SELECT id FROM $t WHERE id >= $key ORDER BY id LIMIT 1000) s;")" 0)

	# WAL right after a checkpoint: nbtree logs whole pages then
	sql "CHECKPOINT" >/dev/null
	lsn=$(sql "SELECT pg_current_wal_insert_lsn()")
	sql "INSERT INTO $t SELECT ${gen//i::text/(i + $SCALE)::text}, i
		FROM generate_series(1, 10000) i" >/dev/null
	R[$kind,$am,walcp]=$(calc "$(wal_since "$lsn") / 10000" 0)

	# building it anew
	sql "DROP INDEX ${t}_i" >/dev/null
	ms=$(timed "SET max_parallel_maintenance_workers = 0;
		SET maintenance_work_mem = '512MB';
		CREATE INDEX ${t}_i ON $t USING $am (id)")
	R[$kind,$am,build]=$(calc "$ms / 1000" 2)
	sql "DROP TABLE $t" >/dev/null
}

for kind in uuid serial; do
	for am in $AMS; do
		measure $kind "$am"
	done
done

TSV=$WORK/demo.tsv
art_results "$TSV" "make demo" "$SCALE rows a table, $CLIENTS pgbench clients" ""
{
	printf 'kind\tmeasure\tam\tvalue\n'
	for kind in "${!R[@]}"; do
		IFS=, read -r k am m <<<"$kind"
		printf '%s\t%s\t%s\t%s\n' "$k" "$m" "$am" "${R[$kind]}"
	done | sort
} >>"$TSV"
echo
echo "$SCALE rows a table"
perl "$TREE/test/bench/figures.pl" demo "$TSV"
echo
echo "How to read it: \"better\" says how many times more work art does a second, or how many times less WAL, memory or time it takes; WAL includes the table's own, pgbench rows the way to the client and back, and the index of art lies in shared memory only, so that it is built again from the table when first needed after a restart."
echo
echo "$(sed -n 's/^# \(server\|machine\): //p' "$TSV" | paste -sd'|' | sed 's/|/, /'), $CLIENTS pgbench clients; $(($(date +%s) - started)) s in all"
art_figures "$TSV" demo
