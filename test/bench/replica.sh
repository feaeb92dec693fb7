#!/bin/bash
#
# test/bench/replica.sh
#	  Art indexes on a standby, beside nbtree: what they cost there, and how far they
#	  are behind; "make replica" calls it.
#
# A primary and a standby on this machine.  Tables of the same rows with three indexes
# (a unique bigint key in random order, a hashed int, an int with ten rows a value): by
# art, by nbtree, and a table without one.
#
# WAL and processor time: one session inserts the same rows into each table, one a
# statement and all by one.  The processor time of a process is that of the kernel's
# schedstat.  aminsert's is the session's with the indexes, less that without.  The
# follower's, or that of replay for nbtree, is for the same rows.
# WAL is counted by pg_waldump, without what a timer writes.
#
# Look-ups: pgbench, on the primary and on the standby in turn; then the processor time of
# a session's.
#
# Load: clients that insert a row and give another one other keys.  The view
# artidx_standby is read every two milliseconds meanwhile.
#
# Sweep: every tenth row is deleted, and VACUUM.  The follower passes over each index
# once.  Clients look up on the standby meanwhile.
#
# Promotion: a session looks up all the time, and inserts as soon as it can.
#
# Prints a table with the goals (figures.pl, which has them).  Writes every value and the
# machine into replica.csv, every look at the lag into lag.csv, of which artidx-report draws
# a plot, and the table into table.txt, in RESULTS.  A value counts only when
# the indexes were in memory, and no scan read a table.
#
#	ROWS=10000000		of each table
#	LOAD_SECONDS=20		length of the load, and a quarter of it of each cell of look-ups
#						("make replica SECONDS=20")
#	CLIENTS=16			of the load
#	READERS=4			that look up
#	REPS=3				rounds of look-ups, of inserts, and of promotions
#	CONF="a=b c=d"		more settings of both servers
#	RESULTS=dir			default: bench-results/replica-<date> in the tree
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${ROWS:=10000000}" "${LOAD_SECONDS:=20}" "${CLIENTS:=16}" "${READERS:=4}" "${REPS:=3}" "${CONF:=}"
: "${RESULTS:=$TREE/bench-results/replica-$(date +%Y%m%d-%H%M%S)}"

art_whole_numbers 10000 ROWS
art_whole_numbers 4 LOAD_SECONDS
art_whole_numbers 1 CLIENTS READERS REPS
art_results_dir
CSV=$RESULTS/replica.csv
LAG=$RESULTS/lag.csv
FIGURES_PL=$TREE/test/bench/figures.pl
FEW=$((ROWS / 50))				# rows that one session inserts at a time
MEMORY=$((ROWS / 4000 + 256))MB

started=$(date +%s)
art_setup replica
# shellcheck disable=SC2086
art_cluster primary \
	"shared_preload_libraries = 'artidx'" \
	"artidx.memory = '$MEMORY'" \
	"shared_buffers = '$MEMORY'" \
	"max_connections = $((CLIENTS + READERS + 30))" \
	"wal_level = replica" \
	"fsync = off" \
	"full_page_writes = off" \
	"autovacuum = off" \
	"checkpoint_timeout = '1d'" \
	"max_wal_size = '200GB'" \
	"wal_keep_size = '100GB'" \
	"max_parallel_workers_per_gather = 0" \
	"jit = off" \
	$CONF
sql "CREATE EXTENSION artidx" >/dev/null || art_die "no artidx"
sql "CREATE EXTENSION pg_prewarm" >/dev/null || art_die "no pg_prewarm"

# ---- the standby ----

# on standby COMMAND...: the command, on that server
on()
{
	[ "$1" = primary ] || local -x PGPORT=65440
	shift
	"$@"
}

# standby start|stop|promote
standby()
{
	as_user "$BIN/pg_ctl" -D "$WORK/standby" -l "$WORK/standby.log" -w -t 600 "$1" ${2:+"$2"} >/dev/null ||
		{ tail -20 "$WORK/standby.log" >&2; art_die "the standby does not $1"; }
}

# make_standby WORKERS: a new one; artidx.build_workers
make_standby()
{
	if [ -d "$WORK/standby" ]; then
		standby stop -mfast
		rm -rf "$WORK/standby"
	fi
	as_user "$BIN/pg_basebackup" -D "$WORK/standby" -X stream -R -c fast >/dev/null 2>"$WORK/backup.err" ||
		{ cat "$WORK/backup.err" >&2; art_die "no standby"; }
	printf '%s\n' "port = 65440" "artidx.build_workers = $1" | as_user tee -a "$WORK/standby/postgresql.conf" >/dev/null
	standby start
}

# until_true WHERE QUERY: it has 1,800 s
until_true()
{
	local n=0

	until [ "$(on "$1" sql "$2" 2>/dev/null)" = t ]; do
		n=$((n + 1))
		[ $n -lt 36000 ] || art_die "never true on the $1: $2"
		sleep 0.05
	done
}

# The standby has replayed all, and the follower has it.
caught_up()
{
	until_true standby "SELECT pg_last_wal_replay_lsn() >= '$(sql "SELECT pg_current_wal_lsn()")'
		AND coalesce((SELECT bool_and(lag_bytes = 0) FROM artidx_standby), true)"
}

READY="SELECT count(*) = 3 FROM artidx_indexes WHERE state = 'ready'"

must_be_ready()
{
	[ "$(on "$1" sql "$READY")" = t ] || art_die "$2: the indexes on the $1 are not in memory"
}

standby_pid()
{
	on standby sql "SELECT pid FROM pg_stat_activity WHERE backend_type = '$1'"
}

# of_follower COLUMN: of the view
of_follower()
{
	local value

	value=$(on standby sql "SELECT $1 FROM artidx_standby WHERE database = 'postgres'")
	[ -n "$value" ] || art_die "there is no follower"
	echo "$value"
}

# cpu PID: its processor time, ns
cpu()
{
	awk '{ print $1 }' "/proc/$1/schedstat" || art_die "process $1 is gone"
}

# of DIFFERENCE N: a quotient
of()
{
	[ "$2" -gt 0 ] || art_die "nothing was counted"
	awk "BEGIN { printf(\"%.3f\", ($1) / $2) }"
}

# value MEASURE AM REP VALUE
value()
{
	# only of WAL there may be less than of something else
	[[ $4 =~ ^[0-9]+(\.[0-9]+)?$ || $1$4 =~ ^wal_[a-z_]+-[0-9]+$ ]] || art_die "$1 of $2 has no value, but \"$4\""
	echo "$1,$2,$3,$4" >>"$CSV"
	printf '#   %-20s %-6s %2s  %14s\n' "$@" >&2
}

# ---- tables ----

# Row i of the first ROWS has the key (i * 1000003 mod ROWS) * 1000; others are between.
make_table()
{
	sql "CREATE TABLE r_$1 (id bigint NOT NULL, a int, b int, v int DEFAULT 0)" >/dev/null
	[ "$1" != none ] || return
	sql "INSERT INTO r_$1 SELECT i * 1000003 % $ROWS * 1000, hashint8(i), i / 10 FROM generate_series(1, $ROWS::bigint) i" >/dev/null
	sql "CREATE UNIQUE INDEX r_$1_id ON r_$1 USING $1 (id)" >/dev/null
	sql "CREATE INDEX r_$1_a ON r_$1 USING $1 (a)" >/dev/null
	sql "CREATE INDEX r_$1_b ON r_$1 USING $1 (b)" >/dev/null
	sql "VACUUM ANALYZE r_$1" >/dev/null
}

# ---- WAL and processor time ----

# wal FROM TO: bytes of the records between, but of those that a timer writes
wal()
{
	as_user "$BIN/pg_waldump" -p "$DATA/pg_wal" -s "$1" -e "$2" --stats=record 2>"$WORK/waldump.err" |
		awk '$1 ~ /\// && $1 !~ /^(Standby\/RUNNING_XACTS|XLOG\/CHECKPOINT_ONLINE|XLOG\/CHECKPOINT_SHUTDOWN)$/ {
				gsub(/[()]/, ""); n += $NF == "" ? 0 : $(NF - 1) }
			END { printf("%d\n", n) }'
}

STAT="SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)"

# session WHERE STATEMENT STATEMENT: the processor time of the second, after the first; ns
session()
{
	local out

	out=$(on "$1" as_user env PGOPTIONS="-c enable_seqscan=off" "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 \
		-c "$2" -c "$STAT" -c "$3" -c "$STAT") || art_die "a session failed on the $1"
	echo $((${out##*$'\n'} - ${out%%$'\n'*}))
}

# insert AM KIND REP: FEW rows, whose keys no other call has.  Sets NS, of the session, and BYTES, of WAL.
insert()
{
	local row="(i::bigint * 1000003 % $ROWS) * 1000 + $3, hashint8(i + $3), i % ($ROWS / 10)" from
	local all="INSERT INTO r_$1 SELECT $row FROM generate_series(1, $FEW) i"
	local one="DO \$\$ BEGIN FOR i IN 1 .. $FEW LOOP INSERT INTO r_$1 VALUES ($row); END LOOP; END \$\$"

	from=$(sql "SELECT pg_current_wal_insert_lsn()")
	NS=$(session primary "INSERT INTO r_$1 SELECT -$3, 0, 0" "${!2}") || exit 1
	BYTES=$(wal "$from" "$(sql "SELECT pg_current_wal_flush_lsn()")")
	[ "$BYTES" -gt $((FEW * 50)) ] || art_die "$BYTES bytes of WAL for $FEW rows: $(cat "$WORK/waldump.err")"
}

# inserts REP: the same rows into each table, by either kind; the standby follows
inserts()
{
	local kind am n follower startup kept replayed added alone=0 replay_alone=0 bytes_alone=0
	local entries=$((3 * (FEW + 1)))

	for kind in one all; do
		n=$(($1 * 2 - ($([ $kind = one ] && echo 1 || echo 0))))
		for am in none btree art; do
			caught_up
			follower=$(of_follower follower_pid) && startup=$(standby_pid startup) || exit 1
			kept=$(cpu "$follower") && replayed=$(cpu "$startup") && added=$(of_follower entries_added) || exit 1
			insert $am $kind $n
			caught_up
			[ "$(of_follower follower_pid)" = "$follower" ] || art_die "the follower is another one"
			kept=$(($(cpu "$follower") - kept))
			replayed=$(($(cpu "$startup") - replayed))
			added=$(($(of_follower entries_added) - added))
			case $am in
				none)
					alone=$NS
					bytes_alone=$BYTES
					replay_alone=$replayed
					continue
					;;
				art)
					[ $added = $entries ] || art_die "the follower put in $added entries, not $entries"
					value "standby_$kind" art "$1" "$(of $kept $entries)"
					;;
				btree) value "standby_$kind" btree "$1" "$(of "$replayed - $replay_alone" $entries)" ;;
			esac
			value "primary_$kind" $am "$1" "$(of "$NS - $alone" $entries)"
			value "wal_$kind" $am "$1" $((BYTES - bytes_alone))
		done
	done
	must_be_ready standby "inserts"
}

# ---- look-ups ----

cat >"$WORK/lookup.sql" <<-END
	\\set i random(0, $((ROWS - 1)))
	SELECT v FROM r_AM WHERE id = :i * 1000::bigint;
END

# bench WHERE AM SECONDS CLIENTS SCRIPT ARGUMENT...: pgbench
bench()
{
	local out=$WORK/pgbench.$1.$2.$5

	# in prepared statements no variable is a part of a name
	sed "s/r_AM/r_$2/" "$WORK/$5.sql" >"$out.sql"
	on "$1" as_user env PGOPTIONS="-c enable_seqscan=off" "$BIN/pgbench" -n -M prepared -T "$3" -c "$4" -f "$out.sql" \
		"${@:6}" >"$out" 2>&1 || { tail -12 "$out" >&2; art_die "pgbench failed on the $1"; }
}

# tps WHERE AM SCRIPT
tps()
{
	sed -n 's/^tps = \([0-9.]*\) .*/\1/p' "$WORK/pgbench.$1.$2.$3"
}

# Tables and indexes into the buffers: a standby has only those pages that replay or somebody read.
warm()
{
	local where

	for where in primary standby; do
		on $where sql "SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relname ~ '^r_'" >/dev/null ||
			art_die "pg_prewarm failed on the $where"
	done
}

# lookups REP: on both, in turn
lookups()
{
	local am where gave_up ns
	local look="SELECT v INTO got FROM r_AM WHERE id = i::bigint * 7919 % $ROWS * 1000"

	for am in btree art; do
		for where in primary standby; do
			gave_up=$(of_follower given_up) || exit 1
			bench $where $am $((LOAD_SECONDS / 4)) "$READERS" lookup
			[ "$(of_follower given_up)" = "$gave_up" ] || art_die "a look-up read the table"
			must_be_ready $where "look-ups"
			value "lookup_$where" $am "$1" "$(tps $where $am lookup)"
			ns=$(session $where "DO \$\$ DECLARE got int; BEGIN FOR i IN 1 .. 1000 LOOP ${look/AM/$am}; END LOOP; END \$\$" \
				"DO \$\$ DECLARE got int; BEGIN FOR i IN 1 .. $FEW LOOP ${look/AM/$am}; END LOOP; END \$\$") || exit 1
			value "lookup_ns_$where" $am "$1" "$(of "$ns" "$FEW")"
		done
	done
}

# ---- the load ----

cat >"$WORK/load.sql" <<-END
	\\set i random(0, $((ROWS - 1)))
	\\set j random(1, 9000000000000000)
	\\set k :j / 4500000
	INSERT INTO r_AM VALUES ($ROWS::bigint * 1000 + :j, :k, :i);
	UPDATE r_AM SET a = :k, v = v + 1 WHERE id = :i * 1000::bigint;
END

# What the standby is behind, every two milliseconds: time, follower's ms and bytes, replay's bytes
watch()
{
	on standby as_user "$BIN/psql" -X -q -v ON_ERROR_STOP=1 -c "DO \$\$
		DECLARE
			r record;
			start timestamptz := clock_timestamp();
		BEGIN
			WHILE clock_timestamp() < start + interval '$1 s' LOOP
				SELECT extract(epoch FROM clock_timestamp() - start) AS t, lag_ms, lag_bytes,
					pg_wal_lsn_diff(pg_last_wal_receive_lsn(), replay_lsn) AS replay INTO STRICT r
					FROM artidx_standby WHERE database = 'postgres';
				RAISE NOTICE 'at,%,%,%,%', r.t, r.lag_ms, r.lag_bytes, r.replay;
				COMMIT;
				PERFORM pg_sleep(0.002);
			END LOOP;
		END \$\$" 2>&1 || echo "failed"
}

# load: each kind of index under the load, and what the standby is behind
load()
{
	local am before entries follower watching loading

	for am in btree art; do
		caught_up
		follower=$(of_follower follower_pid) && before=$(cpu "$follower") && entries=$(of_follower entries_added) || exit 1
		watch "$LOAD_SECONDS" >"$WORK/watch.$am" &
		watching=$!
		bench primary $am "$LOAD_SECONDS" "$CLIENTS" load &
		loading=$!
		wait $loading || exit 1
		wait $watching
		! grep -q failed "$WORK/watch.$am" || { tail -3 "$WORK/watch.$am" >&2; art_die "nobody watched the follower"; }
		caught_up
		[ "$(of_follower follower_pid)" = "$follower" ] || art_die "the follower is another one"
		must_be_ready standby "load"
		value load $am 1 "$(tps primary $am load)"
		sed -n "s/.*at,/$am,/p" "$WORK/watch.$am" >>"$LAG"
		[ $am = btree ] || value standby_load art 1 "$(of "$(cpu "$follower") - $before" $(($(of_follower entries_added) - entries)))"
	done
}

# loaded: look-ups while that load runs
loaded()
{
	local am where loading gave_up

	for am in btree art; do
		for where in primary standby; do
			caught_up
			gave_up=$(of_follower given_up) || exit 1
			bench primary $am $((LOAD_SECONDS / 4 + 2)) "$CLIENTS" load &
			loading=$!
			sleep 1
			bench $where $am $((LOAD_SECONDS / 4)) "$READERS" lookup
			value "loaded_$where" $am "$1" "$(tps $where $am lookup)"
			wait $loading || exit 1
			must_be_ready standby "look-ups under a load"
			[ $am$where != artstandby ] || value loaded_tables art "$1" $(($(of_follower given_up) - gave_up))
		done
	done
}

# ---- a sweep ----

sweep()
{
	local am rows looking follower kept

	for am in btree art; do
		caught_up
		# shellcheck disable=SC2046
		set -- $(of_follower "concat_ws(' ', sweeps, sweep_ms, entries_swept, given_up)")
		value sweep_entries $am 1 "$(sql "SELECT count(*) FROM r_$am")"
		rows=$(sql "WITH d AS (DELETE FROM r_$am WHERE id % 10000 = 0 RETURNING 1) SELECT count(*) FROM d")
		[ "$rows" -gt 0 ] || art_die "nothing was deleted"
		rm -f "$WORK"/tmp/sweep.*
		caught_up
		follower=$(of_follower follower_pid) && kept=$(cpu "$follower") || exit 1
		bench standby $am $((LOAD_SECONDS / 2)) "$READERS" lookup -l --log-prefix="$WORK/tmp/sweep" &
		looking=$!
		sleep 1
		sql "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) r_$am" >/dev/null
		wait $looking || exit 1
		caught_up
		value sweep_longest $am 1 "$(awk '$3 > m { m = $3 } END { printf("%.3f", m / 1000) }' "$WORK"/tmp/sweep.*)"
		[ $am = art ] || continue
		must_be_ready standby "sweep"
		# shellcheck disable=SC2046
		set -- "$@" $(of_follower "concat_ws(' ', sweeps, sweep_ms, entries_swept, given_up)")
		[ $# = 8 ] && [ $(($7 - $3)) -ge $((3 * rows)) ] || art_die "$(($7 - $3)) entries were swept, not $((3 * rows))"
		value sweep_cpu art 1 "$(of "($(cpu "$follower") - $kept) / 1000000" $(($5 - $1)))"
		value sweep art 1 "$(of "$6 - $2" $(($5 - $1)))"
		value sweep_tables art 1 $(($8 - $4))
	done
}

# ---- promotion ----

# A session that looks up until recovery has ended, and inserts then: "look-up insert", seconds of the epoch
first()
{
	on standby as_user env PGOPTIONS="-c enable_seqscan=off" "$BIN/psql" -X -q -v ON_ERROR_STOP=1 -c "DO \$\$
		DECLARE
			got int;
			at numeric;
			ended bool;
		BEGIN
			LOOP
				SELECT v, NOT pg_is_in_recovery() INTO STRICT got, ended FROM r_$1
					WHERE id = (SELECT (random() * ($ROWS - 1))::bigint / 10 * 10 + 1) * 1000;
				at := extract(epoch FROM clock_timestamp());
				COMMIT;
				EXIT WHEN ended;
				PERFORM pg_sleep(0.001);
			END LOOP;
			INSERT INTO r_$1 VALUES (-1000 - $2, 0, 0);
			COMMIT;
			RAISE NOTICE 'first % %', at, extract(epoch FROM clock_timestamp());
		END \$\$" 2>&1
}

promotion()
{
	local am begin builds

	caught_up
	must_be_ready standby "promotion"
	builds=$(on standby sql "SELECT sum(builds) FROM artidx_indexes")
	for am in btree art; do first $am "$1" >"$WORK/first.$am" & done
	sleep 2
	begin=$(date +%s.%N)
	standby promote
	wait
	must_be_ready standby "promoted"
	[ "$(on standby sql "SELECT sum(builds) FROM artidx_indexes")" = "$builds" ] || art_die "an index was built for the promotion"
	for am in btree art; do
		# shellcheck disable=SC2046
		set -- "$1" $(sed -n 's/.*first //p' "$WORK/first.$am")
		[ $# = 3 ] || { cat "$WORK/first.$am" >&2; art_die "no look-up after the promotion"; }
		value promote_lookup $am "$1" "$(of "($2 - $begin) * 1000" 1)"
		value promote_insert $am "$1" "$(of "($3 - $begin) * 1000" 1)"
	done
}

# ---- all of it ----

art_results "$CSV" "make replica ROWS=$ROWS SECONDS=$LOAD_SECONDS" \
	"$ROWS rows, $CLIENTS clients of the load, $READERS that look up, $REPS rounds" \
	"both servers on one machine; fsync and full_page_writes off, no checkpoints; tables in shared buffers; prepared statements over a unix socket${CONF:+; $CONF}"
echo "measure,am,rep,value" >>"$CSV"
echo "am,time,lag_ms,lag_bytes,replay_bytes" >"$LAG"

# what was measured is printed even when the run breaks off
report()
{
	local rc=$?

	perl "$FIGURES_PL" replica "$CSV" "$LAG" >"$RESULTS/table.txt" || rc=1
	cat "$RESULTS/table.txt"
	echo
	sed -n 's/^# //p' "$CSV"
	echo "load at the end: $(cut -d" " -f1-3 /proc/loadavg); total time: $(($(date +%s) - started)) s"
	echo "every value: $CSV and $LAG"
	art_draw "$RESULTS"
	(exit $rc)
	art_cleanup
}
trap report EXIT

art_say "$ROWS rows"
for am in none btree art; do make_table $am; done
# else the first who read the catalogs would prune them
sql "VACUUM" >/dev/null
make_standby 0

# What the primary writes while no standby keeps its indexes.
caught_up
n=$((2 * REPS + 1))
for kind in one all; do
	insert art $kind $n
	declare "off_$kind=$BYTES"
	n=$((n + 1))
done
on standby sql "ALTER SYSTEM SET artidx.build_workers = 2" >/dev/null
on standby sql "SELECT pg_reload_conf()" >/dev/null
until_true standby "$READY"
caught_up
for kind in one all; do
	insert art $kind $n
	off=off_$kind
	value "wal_followed_$kind" art 1 $((BYTES - ${!off}))
	n=$((n + 1))
done

for ((rep = 1; rep <= REPS; rep++)); do
	inserts $rep
	warm
	lookups $rep
done
load
for ((rep = 1; rep <= REPS; rep++)); do loaded $rep; done
sweep
for ((rep = 1; rep <= REPS; rep++)); do
	if [ $rep -gt 1 ]; then
		make_standby 2
		until_true standby "$READY"
		caught_up
	fi
	promotion $rep
done
exit 0
