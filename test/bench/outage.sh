#!/bin/bash
#
# test/bench/outage.sh
#	  How long look-ups are away after a crash, with art and with nbtree; "make
#	  outage" calls it.
#
# A table with four indexes: a uuid key, two random bigints, a text.  Clients look
# rows up by the key, others insert.  After a while one backend is killed with
# -9.  Each client is a pgbench of its own, which is begun again when its
# connection is lost.  Writes what was done in each tenth of a second into
# outage.csv and a table into table.txt, in RESULTS; artidx-report draws a plot of it.
#
# With art that is done with indexes that are kept, and with indexes that the crash gives
# up.  For the latter art_insidetest.crash_pause (test/modules) stands in for a process killed in the
# middle of a change, which has the same effect.  Before that, such a crash without
# clients shows how long the builds take alone.
#
#	ROWS=10000000		of the table
#	BEFORE=5 AFTER=40	seconds before the kill and after it
#	LOOKUPS=16			clients that look up
#	INSERTS=2			clients that insert
#	WORKERS=2			artidx.build_workers
#	WAITS="auto off"	of artidx.build_wait, one run each, with indexes given up
#	AMS="btree art"		access methods
#	CONF="a=b c=d"		more settings of the server
#	RESULTS=dir			default: bench-results/outage-<date> in the tree
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${ROWS:=10000000}" "${BEFORE:=5}" "${AFTER:=40}" "${LOOKUPS:=16}" "${INSERTS:=2}"
: "${WORKERS:=2}" "${WAITS:=auto off}" "${AMS:=btree art}" "${CONF:=}"
: "${RESULTS:=$TREE/bench-results/outage-$(date +%Y%m%d-%H%M%S)}"

art_whole_numbers 10000 ROWS
art_whole_numbers 0 BEFORE AFTER LOOKUPS INSERTS WORKERS
art_results_dir
CSV=$RESULTS/outage.csv
REPORT=$TREE/test/bench/outage.pl

art_setup outage
as_user make -s -C test/modules/art_insidetest PG_CONFIG="$PG_CONFIG" all >>"$WORK/build.log" 2>&1 ||
	{ tail -30 "$WORK/build.log" >&2; art_die "art_insidetest does not build"; }
# shellcheck disable=SC2086
art_cluster outage \
	"shared_preload_libraries = 'artidx, $SRC/test/modules/art_insidetest/art_insidetest'" \
	"artidx.memory = '$((ROWS / 2500 + 256))MB'" \
	"artidx.save_at_shutdown = off" \
	"artidx.build_workers = $WORKERS" \
	"shared_buffers = '$((ROWS / 2500 + 256))MB'" \
	"fsync = off" \
	"autovacuum = off" \
	"checkpoint_timeout = '1d'" \
	"max_wal_size = '200GB'" \
	"maintenance_work_mem = '256MB'" \
	"max_parallel_workers_per_gather = 0" \
	"jit = off" \
	$CONF
sql "CREATE EXTENSION artidx" >/dev/null || art_die "no artidx"

now()
{
	date +%s.%N
}

# The key of row i, which a client can tell.
sql "CREATE FUNCTION key_of(i bigint) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
		RETURN md5(i::text)::uuid" >/dev/null
cat >"$WORK/lookup.sql" <<-END
	\\set i random(1, $ROWS)
	SELECT b FROM o WHERE id = md5(:i::text)::uuid;
END
cat >"$WORK/insert.sql" <<-END
	INSERT INTO o VALUES (gen_random_uuid(), random() * 1e15, random() * 1e15, 'an inserted row ' || random());
END

make_table()
{
	sql "DROP TABLE IF EXISTS o" >/dev/null
	sql "CREATE TABLE o (id uuid NOT NULL, a bigint, b bigint, t text)" >/dev/null
	sql "INSERT INTO o SELECT key_of(i), random() * 1e15, random() * 1e15,
			'text of some bytes ' || i FROM generate_series(1, $ROWS) i" >/dev/null
	sql "CREATE UNIQUE INDEX o_id ON o USING $1 (id)" >/dev/null
	sql "CREATE INDEX o_a ON o USING $1 (a)" >/dev/null
	sql "CREATE INDEX o_b ON o USING $1 (b)" >/dev/null
	sql "CREATE INDEX o_t ON o USING $1 (t)" >/dev/null
	sql "VACUUM ANALYZE o" >/dev/null
	sql "CHECKPOINT" >/dev/null
}

# Kill the backend of one session of its own, as the kernel does.
kill_one()
{
	local pid out=$WORK/victim

	rm -f "$out"
	as_user "$BIN/psql" -X -q -A -t -c 'SELECT pg_backend_pid()' -c 'SELECT pg_sleep(600)' \
		>"$out" 2>/dev/null &
	until pid=$(head -1 "$out" 2>/dev/null) && [ -n "$pid" ]; do sleep 0.05; done
	killed=$(now)
	kill -9 "$pid"
}

until_answers()
{
	until sql 'SELECT 1' >/dev/null 2>&1; do sleep 0.02; done
}

# setting NAME VALUE
setting()
{
	sql "ALTER SYSTEM SET $1 = '$2'" >/dev/null
	sql "SELECT pg_reload_conf()" >/dev/null
	until [ "$(sql "SHOW $1")" = "$2" ]; do sleep 0.02; done
}

# came_through kept|given: is that what became of the indexes?
came_through()
{
	local last

	last=$(grep -E 'after the crash: [0-9]+ kept|do not survive the crash' "$DATA.log" | tail -1)
	case "$1 $last" in
		kept*" 4 kept, 0 given"* | given*"do not survive"*) ;;
		*) art_die "the indexes were not $1: $last" ;;
	esac
}

# Seconds from a kill until each index is READY, without clients: "key all".
alone()
{
	local key=

	# the first crash of a server keeps them, whatever the pause
	kill_one
	sleep 0.1
	until_answers
	sql "SELECT artidx_wait()" >/dev/null
	setting art_insidetest.crash_pause 1h
	kill_one
	sleep 0.1
	until_answers
	while :; do
		if [ -z "$key" ] && [ "$(sql "SELECT state FROM artidx_indexes WHERE indexrelname = 'o_id'")" = ready ]; then
			key=$(awk "BEGIN { printf(\"%.3f\", $(now) - $killed) }")
		fi
		[ "$(sql "SELECT count(*) FROM artidx_indexes WHERE state = 'ready'")" != 4 ] || break
		sleep 0.02
	done
	awk "BEGIN { printf(\"%.2f %.2f\n\", $key, $(now) - $killed) }"
}

# client NAME SCRIPT UNTIL: one client, begun again as often as it takes
client()
{
	local n=0 left

	while left=$(awk "BEGIN { print int($3 - $(now) + 0.999) }") && [ "$left" -gt 0 ]; do
		n=$((n + 1))
		as_user "$BIN/pgbench" -n -c 1 -M prepared -f "$2" -T "$left" -l \
			--log-prefix="$WORK/log/$1.$n" >/dev/null 2>"$WORK/client.err" || sleep 0.02
	done
}

# run NAME: the clients, the kill; appends to the CSV
run()
{
	local i end

	rm -rf "$WORK/log"
	as_user mkdir "$WORK/log"
	end=$(($(date +%s) + BEFORE + AFTER))
	for ((i = 1; i <= LOOKUPS; i++)); do client "lookup.$i" "$WORK/lookup.sql" "$end" & done
	for ((i = 1; i <= INSERTS; i++)); do client "insert.$i" "$WORK/insert.sql" "$end" & done
	sleep "$BEFORE"
	kill_one
	wait
	until_answers
	perl "$REPORT" collect "$1" "$killed" "$BEFORE" "$AFTER" "$WORK"/log/* >>"$CSV"
}

echo "run,time,lookups,inserts" >"$CSV"
: >"$RESULTS/alone.txt"
for am in $AMS; do
	art_say "$am: $ROWS rows"
	make_table "$am"
	if [ "$am" = btree ]; then
		run btree
		continue
	fi
	alone >"$RESULTS/alone.txt"
	came_through given
	setting art_insidetest.crash_pause 0
	run "art, kept"
	came_through kept
	setting art_insidetest.crash_pause 1h
	for wait in $WAITS; do
		setting artidx.build_wait "$wait"
		sql "SELECT artidx_wait()" >/dev/null
		sleep 1
		run "art, given up, wait $wait"
		came_through given
	done
done
art_results "$RESULTS/about.txt" "make outage ROWS=$ROWS" "$ROWS rows, $LOOKUPS look-ups, $INSERTS inserts" \
	"artidx.build_workers $WORKERS; fsync off; table in shared buffers; prepared statements over a unix socket"
perl "$REPORT" table "$CSV" "$RESULTS/alone.txt" | tee "$RESULTS/table.txt"
sed 's/^# //' "$RESULTS/about.txt"
echo "every tenth of a second: $CSV"
art_draw "$RESULTS"
