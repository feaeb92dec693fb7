#!/bin/bash
#
# test/stress/stress.sh
#	  Many clients insert, update, delete, look up, scan both ways and VACUUM,
#	  under unique and other indexes; readers compare the indexes with a
#	  sequential scan in the same snapshot as they go.  Then artidx_check must be
#	  clean and the counts those of the heap; the same after an immediate
#	  restart, under load while the indexes come back; and again with too little
#	  memory for all of them, where indexes are sealed and rebuilt under the load.
#	  Some of the loads have clients that elide latches as art_elidetest's inject
#	  and software say, beside others that do not.
#	  An index whose rows were replaced and partly deleted is after VACUUM near to one
#	  that is made anew.
#	  All that with indexes of each structure and synchronization in turn, and with
#	  tail buffers, which one of the tables is for.
#
# Prints TAP.  "make test PARTS=stress" runs it; it also runs alone.
#
#	STRESS_SECONDS=15	length of the first load, of each; the others are shorter
#	ARTIDX_ENGINES		those of test/engines, "art-olc btree-coarse" for instance
#	TAIL_BUFFER=on		of all indexes, or off or auto
#	CLIENTS=32			clients
#	SEED				of pgbench, printed, to run the same again
#
given_work=${WORK:-}
given_bin=${BIN:-}
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${TAIL_BUFFER:=on}" "${STRESS_SECONDS:=15}" "${CLIENTS:=32}" "${SEED:=$((RANDOM * 32768 + RANDOM))}"
[ "$STRESS_SECONDS" -gt 0 ] 2>/dev/null || STRESS_SECONDS=15

if [ -n "$given_work" ] && [ -n "$given_bin" ]; then
	WORK=$given_work
	BIN=$given_bin
	RUN_AS=$(id -un)
	mkdir -p "$WORK/tmp"
else
	art_setup stress
fi

n=0
bad=0

# ok CONDITION-STATUS NAME
ok()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		bad=1
	fi
}

# same GOT EXPECTED NAME
same()
{
	[ "$1" = "$2" ]
	ok $? "$3"
	[ "$1" = "$2" ] || echo "# got '$1', expected '$2'"
}

engines=$(art_engines)
echo "# seed $SEED, $CLIENTS clients, $STRESS_SECONDS s for each of $engines"
echo "# again with: SEED=$SEED TAIL_BUFFER=$TAIL_BUFFER bash test/stress/stress.sh"

art_elision_module
art_cluster stress \
	"shared_preload_libraries = 'artidx, $ELISION_MODULE'" \
	"artidx.memory = '512MB'" \
	"shared_buffers = '256MB'" \
	"max_connections = 100" \
	"autovacuum_naptime = '1s'" \
	"fsync = off" \
	"synchronous_commit = off" \
	"wal_writer_delay = 1s" \
	"max_wal_size = '8GB'" \
	"log_min_messages = warning" \
	"deadlock_timeout = '2s'" $(art_elision_conf)

sql "CREATE EXTENSION artidx; CREATE EXTENSION artidx_debug" >/dev/null || art_die "no artidx"
as_user "$BIN/psql" -X -q -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || art_die "set-up"
-- one with unique indexes, one without, one whose keys rise, one whose rows are replaced
CREATE TABLE su (id bigint, k int, t text COLLATE "C");
CREATE TABLE sn (id bigint, k int, t text COLLATE "C", u uuid);
CREATE TABLE st (id bigint, at timestamptz, w text COLLATE "C");
CREATE TABLE sf (id uuid, n int);
CREATE SEQUENCE st_s;

-- n rows of rising keys, some of which somebody else may insert at this moment
CREATE FUNCTION rise(n int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO st SELECT i, clock_timestamp(), 'w' || lpad((i / 2)::text, 12, '0')
	FROM (SELECT nextval('st_s') / 4 * 4 + (random() * 2)::int AS i FROM generate_series(1, n)) s
	ON CONFLICT (id) DO NOTHING
$$;

-- the same, waiting for who inserts it
CREATE FUNCTION try_rise() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO st SELECT nextval('st_s') / 4 * 4, clock_timestamp(), 'x';
EXCEPTION WHEN unique_violation THEN
	NULL;
END $$;

-- the row may be there, or come while we wait for its inserter
CREATE FUNCTION try_insert(i bigint, k int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO su VALUES (i, k, 'key ' || i % 50 || repeat('y', (i % 40)::int));
EXCEPTION WHEN unique_violation THEN
	NULL;
END $$;

-- what the memory may refuse, and a duplicate
CREATE FUNCTION unless_full(q text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE q;
EXCEPTION
	WHEN unique_violation THEN
		NULL;
	WHEN out_of_memory THEN
		IF SQLERRM !~ 's[ut]_' THEN
			RAISE;
		END IF;
END $$;

CREATE FUNCTION try_move(i bigint, j bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	UPDATE su SET id = j WHERE id = i;
EXCEPTION WHEN unique_violation THEN
	NULL;
END $$;

-- The same query through an index and without any, in one snapshot (the caller
-- is in REPEATABLE READ).
CREATE FUNCTION compare(q text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	a text;
	b text;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_indexonlyscan = on;
	SET LOCAL enable_bitmapscan = on;
	EXECUTE q INTO a;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE q INTO b;
	IF a IS DISTINCT FROM b THEN
		RAISE EXCEPTION 'the index lies: % gave %, the table %', q, a, b;
	END IF;
END $$;

-- what readers ask, chosen by number
CREATE FUNCTION ask(what int, i bigint, k int) RETURNS void LANGUAGE sql AS $$
	SELECT compare(CASE what
	WHEN 1 THEN format('SELECT count(*)::text FROM su WHERE id = %s', i)
	WHEN 2 THEN format('SELECT string_agg(id::text, '','') FROM (SELECT id FROM su WHERE id >= %s ORDER BY id LIMIT 300) s', i)
	WHEN 3 THEN format('SELECT string_agg(id::text, '','') FROM (SELECT id FROM su WHERE id <= %s ORDER BY id DESC LIMIT 300) s', i)
	WHEN 4 THEN format('SELECT count(*) || '' '' || sum(id) FROM su WHERE k BETWEEN %s AND %s + 20', k, k)
	WHEN 5 THEN format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM sn WHERE k = %s', k)
	WHEN 6 THEN 'SELECT count(*)::text FROM sn WHERE k IS NULL'
	WHEN 7 THEN format('SELECT string_agg(k || '':'' || id, '','') FROM (SELECT k, id FROM sn WHERE k <= %s ORDER BY k DESC NULLS LAST, id LIMIT 200) s', k)
	WHEN 8 THEN format('SELECT string_agg(t, '','') FROM (SELECT t FROM sn WHERE t > %L ORDER BY t LIMIT 100) s', 'key ' || i % 50)
	WHEN 9 THEN format('SELECT string_agg(u::text, '','') FROM (SELECT u FROM sn WHERE u < %L ORDER BY u DESC LIMIT 100) s', md5(i::text)::uuid)
	WHEN 10 THEN format('SELECT count(*) || '' '' || sum(id) FROM su WHERE t = %L', 'key ' || i % 50 || repeat('y', (i % 40)::int))
	WHEN 11 THEN format('SELECT count(*) || '' '' || count(DISTINCT id) FROM su WHERE id BETWEEN %s AND %s + 1000', i, i)
	WHEN 12 THEN format('SELECT string_agg(id::text, '','') FROM (SELECT id FROM st WHERE id > %s ORDER BY id LIMIT 300) s', tip - i % 400)
	WHEN 13 THEN format('SELECT string_agg(id::text, '','') FROM (SELECT id FROM st WHERE id <= %s ORDER BY id DESC LIMIT 300) s', tip - i % 30)
	WHEN 14 THEN 'SELECT string_agg(at::text, '','') FROM (SELECT at FROM st ORDER BY at DESC LIMIT 200) s'
	WHEN 15 THEN format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM st WHERE id IN (%s, %s, %s, %s)', tip, tip - 1, tip - 2, tip - i)
	ELSE format('SELECT string_agg(w, '','') FROM (SELECT w FROM st WHERE w > ''w'' || lpad(''%s'', 12, ''0'') ORDER BY w) s', tip / 2 - i % 200)
	END)
	FROM (SELECT last_value AS tip FROM st_s) s
$$;
SQL

# also ENGINE: the synchronization of some indexes; of hydra these have versions
also()
{
	if [ "$1" = hydra-olc ]; then echo mvrlu; else echo "${1#*-}"; fi
}

# set_up ENGINE: the tables with their first rows, all indexes of this engine
set_up()
{
	local structure=${1%-*} sync=${1#*-} small= also

	also=$(also "$1")
	[ "$structure" != btree ] || small=", page_size = 512"
	as_user "$BIN/psql" -X -q -v ON_ERROR_STOP=1 >/dev/null <<SQL || art_die "set-up of $1"
SET client_min_messages = warning;
DROP INDEX IF EXISTS su_id, su_t, su_k, sn_k, sn_t, sn_u, sn_kid, st_id, st_at, st_w, sf_id;
TRUNCATE su, sn, st, sf;
CREATE UNIQUE INDEX su_id ON su USING art (id) WITH (structure = $structure, sync = $sync, tail_buffer = $TAIL_BUFFER);
CREATE UNIQUE INDEX su_t ON su USING art (t, id) WITH (structure = $structure, sync = $also, tail_buffer = $TAIL_BUFFER);
CREATE INDEX su_k ON su USING art (k) WITH (structure = $structure, sync = $sync, tail_buffer = $TAIL_BUFFER);
CREATE INDEX sn_k ON sn USING art (k) WITH (structure = $structure, sync = $also, tail_buffer = $TAIL_BUFFER);
CREATE INDEX sn_t ON sn USING art (t) WITH (structure = $structure, sync = $sync, tail_buffer = $TAIL_BUFFER);
CREATE INDEX sn_u ON sn USING art (u) WITH (structure = $structure, sync = $sync, tail_buffer = $TAIL_BUFFER $small);
CREATE INDEX sn_kid ON sn USING art (k DESC NULLS LAST, id) WITH (structure = $structure, sync = $also, tail_buffer = $TAIL_BUFFER);
CREATE UNIQUE INDEX st_id ON st USING art (id) WITH (structure = $structure, sync = $sync, tail_buffer = $TAIL_BUFFER);
CREATE INDEX st_at ON st USING art (at) WITH (structure = $structure, sync = $also, tail_buffer = $TAIL_BUFFER);
CREATE INDEX st_w ON st USING art (w) WITH (structure = $structure, sync = $sync, tail_buffer = $TAIL_BUFFER);
CREATE INDEX sf_id ON sf USING art (id) WITH (structure = $structure, sync = $also, tail_buffer = $TAIL_BUFFER);
INSERT INTO sf SELECT gen_random_uuid(), i FROM generate_series(1, 60000) i;
INSERT INTO su SELECT i, i % 300, 'key ' || i % 50 || repeat('y', i % 40)
	FROM generate_series(1, 3000) i;
INSERT INTO sn SELECT i, nullif(i % 300, 0), 'key ' || i % 50 || repeat('x', i % 40),
	md5(i::text)::uuid FROM generate_series(1, 3000) i;
SELECT rise(3000);
ANALYZE su;
ANALYZE sn;
ANALYZE st;
SQL
}

mkdir -p "$WORK/tmp/scripts"
script()
{
	cat >"$WORK/tmp/scripts/$1.sql"
}
script insert <<'S'
\set i random(1, 6000)
\set k random(1, 300)
SELECT try_insert(:i, :k);
INSERT INTO sn VALUES (:i, nullif(:k, 300), 'key ' || :i % 50 || repeat('x', (:i % 40)::int), md5(:i::text)::uuid);
S
# A duplicate in an index that is not the arbiter is core's error, and the check
# of all indexes ends before the arbiter's conflict is resolved; so each client
# has a t of its own.
script upsert <<'S'
\set i random(1, 200)
\set k random(1, 300)
INSERT INTO su VALUES (:i, :k, 'up' || :part || '-' || :client_id) ON CONFLICT (id) DO UPDATE SET k = EXCLUDED.k;
INSERT INTO su VALUES (:i, :k, 'up' || :part || '-' || :client_id) ON CONFLICT DO NOTHING;
S
script update <<'S'
\set i random(1, 6000)
\set k random(1, 300)
UPDATE su SET k = :k WHERE id = :i;
UPDATE sn SET k = nullif(:k, 300), u = gen_random_uuid() WHERE ctid = (SELECT ctid FROM sn WHERE id >= :i AND k = :k ORDER BY id LIMIT 1);
S
script move <<'S'
\set i random(1, 6000)
\set j random(1, 6000)
SELECT try_move(:i, :j);
S
script delete <<'S'
\set i random(1, 6000)
\set k random(1, 300)
DELETE FROM su WHERE id = :i;
DELETE FROM sn WHERE ctid = ANY (ARRAY(SELECT ctid FROM sn WHERE k = :k ORDER BY id LIMIT 1));
S
script rollback <<'S'
\set i random(1, 6000)
\set k random(1, 300)
BEGIN;
SELECT try_insert(:i, :k);
INSERT INTO sn VALUES (:i, :k, 'gone', gen_random_uuid());
ROLLBACK;
S
# rows come at the end; go there, and at the beginning
script rise <<'S'
SELECT rise(5);
SELECT try_rise();
S
script ebb <<'S'
SELECT last_value AS i FROM st_s \gset
DELETE FROM st WHERE id = ANY (ARRAY(SELECT id FROM st WHERE id < :i - 8000 ORDER BY id LIMIT 300 FOR UPDATE SKIP LOCKED));
DELETE FROM st WHERE id = ANY (ARRAY(SELECT id FROM st WHERE id > :i - 60 ORDER BY id LIMIT 20 FOR UPDATE SKIP LOCKED));
BEGIN;
SELECT rise(20);
ROLLBACK;
S
# as many rows go as come
script replace <<'S'
\set part random(0, 49)
WITH d AS (DELETE FROM sf WHERE n % 50 = :part RETURNING n) INSERT INTO sf SELECT gen_random_uuid(), n FROM d;
S
script read <<'S'
\set what random(1, 16)
\set i random(1, 6000)
\set k random(1, 300)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT ask(:what, :i, :k);
COMMIT;
S
script cursor <<'S'
\set i random(1, 6000)
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM su WHERE id >= :i ORDER BY id;
FETCH 3 FROM c;
\sleep 20 ms
FETCH 100 FROM c;
FETCH BACKWARD 50 FROM c;
COMMIT;
S
script vacuum <<'S'
VACUUM (SKIP_LOCKED) su;
VACUUM (SKIP_LOCKED) sn;
VACUUM (SKIP_LOCKED) st;
VACUUM (SKIP_LOCKED) sf;
\sleep 200 ms
S
# With the memory full: only what changes an entry of a unique index may err, and
# only with 53200; the other table's statements, deletes, VACUUM and every query
# may not.
script full_insert <<'S'
\set i random(1, 6000)
\set k random(1, 300)
SELECT unless_full(format('INSERT INTO su VALUES (%s, %s, %L)', :i, :k, 'key ' || :i % 50));
INSERT INTO sn SELECT :i + i, nullif((:k + i) % 300, 0), 'key ' || i % 50 || repeat('x', i % 40), gen_random_uuid() FROM generate_series(1, 400) i;
S
script full_update <<'S'
\set i random(1, 6000)
\set j random(1, 6000)
\set k random(1, 300)
SELECT unless_full(format('UPDATE su SET k = %s WHERE id = %s', :k, :i));
SELECT unless_full(format('UPDATE su SET id = %s WHERE id = %s', :j, :i));
UPDATE sn SET k = nullif(:k, 300), u = gen_random_uuid() WHERE ctid = ANY (ARRAY(SELECT ctid FROM sn WHERE k = :k ORDER BY id LIMIT 20));
S
script full_rise <<'S'
SELECT unless_full('SELECT rise(20)');
S
# it goes up and down
script full_delete <<'S'
\set i random(1, 6000)
DELETE FROM su WHERE id = :i;
DELETE FROM sn WHERE ctid = ANY (ARRAY(SELECT ctid FROM sn WHERE id BETWEEN :i AND :i + 150 LIMIT 2000));
S
script full_empty <<'S'
\sleep 2 s
DELETE FROM sn WHERE ctid = ANY (ARRAY(SELECT ctid FROM sn LIMIT 60000));
VACUUM (SKIP_LOCKED) sn;
\sleep 2 s
S
chmod -R a+rX "$WORK/tmp/scripts"

WELL="insert@10 upsert@6 update@10 move@5 delete@10 rollback@3 rise@10 ebb@2 replace@1 read@14 cursor@3 vacuum@1"
FULL="full_insert@12 full_update@8 full_delete@4 full_rise@4 ebb@2 full_empty@1 read@14 cursor@3 vacuum@1"

# What becomes of sections under inject and software: of some nothing, most some
# attempts, and so many fall back that sites are switched off now and then.
OUTCOMES="conflict*3,commit*5,capacity,commit*9,zero,busy,commit*4,explicit,conflict+retry*7,commit*20,nested,other*2,zero*700,commit*300,loop"

# Of a dozen classes of objects the last small span stays, though nothing may be in it.
FREED_SLACK=$((12 * 16 * 1024))

# Who elides in the loads that follow: the clients are divided among these.
providers=rtm

# load SECONDS NAME CLIENTS SCRIPT@WEIGHT...
load()
{
	local log=$WORK/stress-load.log rc=0 s part=0 who n f=() pids=()

	for s in "${@:4}"; do
		f+=(-f "$WORK/tmp/scripts/${s%@*}.sql@${s#*@}")
	done
	n=$(echo "$providers" | wc -w)
	for who in $providers; do
		part=$((part + 1))
		[ "$who" = rtm ] && s= || s="-c art_elidetest.provider=$who -c art_elidetest.script=$OUTCOMES"
		as_user env PGOPTIONS="$s" "$BIN/pgbench" -n -c "$((($3 + n - 1) / n))" -j 2 -T "$1" \
			-D part=$part --random-seed="$((SEED + part))" "${f[@]}" >"$log.$part" 2>&1 &
		pids+=($!)
	done
	for s in "${pids[@]}"; do
		wait "$s" || rc=1
	done
	for ((s = 1; s <= part; s++)); do
		cat "$log.$s"
	done >"$log"
	! grep -qE 'ERROR|FATAL|PANIC|aborted' "$log" && [ $rc -eq 0 ]
	ok $? "$2: no statement erred or lied"
	grep -E 'ERROR|FATAL|PANIC|aborted' "$log" | sort | uniq -c | sort -rn |
		head -5 | sed 's/^/# /'
	grep -E 'transactions actually processed|^tps' "$log" | sed 's/^/# /'
}

# Nothing may be wrong, and entries are rows once VACUUM has passed.
verify()
{
	local idx tab rows out

	sql "ALTER SYSTEM SET autovacuum = off" >/dev/null
	sql "SELECT pg_reload_conf()" >/dev/null
	# the launcher goes when it has heard of that, and starts no worker then
	for _ in $(seq 600); do
		[ "$(sql "SELECT count(*) FROM pg_stat_activity
			WHERE backend_type LIKE 'autovacuum%'")" = 0 ] && break
		sleep 0.5
	done
	for tab in su sn st sf; do
		# with few dead rows it would leave their entries for the next time
		sql "VACUUM (INDEX_CLEANUP ON) $tab" >/dev/null
		rows=$(sql "SET enable_indexscan = off; SET enable_indexonlyscan = off;
			SET enable_bitmapscan = off; SELECT count(*) FROM $tab")
		for idx in $(sql "SELECT indexrelid::regclass FROM pg_index
			WHERE indrelid = '$tab'::regclass ORDER BY 1"); do
			# VACUUM passes over a page that is being written just then: once more
			for _ in $(seq 5); do
				out=$(sql "SELECT entries FROM artidx_check('$idx', true)" 2>&1)
				[ "$out" = "$rows" ] && break
				sql "VACUUM (INDEX_CLEANUP ON) $tab" >/dev/null
			done
			same "$out" "$rows" "$1: $idx is clean and has the table's rows"
		done
	done
	for what in $(seq 16); do
		out=$(sql "BEGIN ISOLATION LEVEL REPEATABLE READ;
			SELECT ask($what, i, (i % 300)::int)
				FROM generate_series(1, 6000, 500::bigint) i; COMMIT" 2>&1 |
			tr -d '\n')
		same "$out" "" "$1: question $what is answered alike with and without"
	done
	same "$(sql "SET enable_indexscan = off; SET enable_indexonlyscan = off;
		SET enable_bitmapscan = off; SELECT count(*) FROM
		(SELECT id FROM su GROUP BY id HAVING count(*) > 1) d")" 0 \
		"$1: no duplicate under the unique index"
	sql "ALTER SYSTEM RESET autovacuum" >/dev/null
	sql "SELECT pg_reload_conf()" >/dev/null
}

# server STOP-MODE MEMORY
again()
{
	as_user "$BIN/pg_ctl" -D "$DATA" -m "$1" -w -t 120 stop >/dev/null &&
		as_user "$BIN/pg_ctl" -D "$DATA" -w -t 120 -l "$DATA.log" \
			-o "-c artidx.memory=$2" start >/dev/null
	ok $? "$1 restart, artidx.memory = $2"
}

# stress ENGINE
stress()
{
	local left short sealed held fresh

	set_up "$1"
	sql "ALTER SYSTEM RESET artidx.elision" >/dev/null
	sql "SELECT pg_reload_conf()" >/dev/null
	providers=rtm
	same "$(sql "SELECT count(*) FROM artidx_indexes WHERE structure = '${1%-*}'
		AND sync IN ('${1#*-}', '$(also "$1")')")" 11 "$1: all indexes are"

	# shellcheck disable=SC2086
	load "$STRESS_SECONDS" "$1: load" "$CLIENTS" $WELL
	if [ "$TAIL_BUFFER" = on ]; then
		# one may just be shut, when more had gone beside it than into it
		same "$(sql "SELECT string_agg(indexrelname, ', ' ORDER BY indexrelname)
			FROM artidx_contention WHERE relname = 'st' AND tail_inserts > 100 AND tail_mode IN
			('off', CASE indexrelname WHEN 'st_id' THEN 'window' ELSE 'append' END)")" \
			"st_at, st_id, st_w" "$1: tail buffers were in use"
	fi
	verify "$1: after the load"

	# half of the clients' outcomes made up, the other half's really undone; nothing of hydra is elided
	if [ "${1%%-*}" != hydra ]; then
		sql "ALTER SYSTEM SET artidx.elision = on" >/dev/null
		sql "SELECT pg_reload_conf()" >/dev/null
		providers="inject software"
		# shellcheck disable=SC2086
		load "$((STRESS_SECONDS / 2 + 1))" "$1: load, elided" "$CLIENTS" $WELL
		verify "$1: after the elided load"
		same "$(sql "SELECT sum(commits) > 0, sum(conflict) > 0, sum(capacity) > 0, sum(explicit) > 0,
				sum(lock_busy) > 0, sum(nested) > 0, sum(zero) > 0, sum(other) > 0, sum(retry_hint) > 0,
				sum(fallbacks) > 0 FROM artidx_aborts")" \
			't|t|t|t|t|t|t|t|t|t' "$1: all of it happened"
		sql "SELECT sum(sections), sum(attempts), sum(commits), sum(fallbacks)
			FROM artidx_aborts" | sed 's/^/# sections, attempts, commits, fallbacks: /'
	fi

	# retired memory comes back
	for _ in $(seq 60); do
		left=$(sql "INSERT INTO sn SELECT 1, 1 FROM generate_series(1, 50);
			DELETE FROM sn WHERE id = 1; SELECT retired_bytes FROM artidx_memory")
		[ "${left:-1000000}" -lt 65536 ] && break
	done
	[ "${left:-1000000}" -lt 65536 ]
	ok $? "$1: retired bytes come back ($left left)"

	# and what was replaced, by VACUUM: near to an index that is made anew
	sql "DELETE FROM sf WHERE n % 3 = 0" >/dev/null
	sql "VACUUM (INDEX_CLEANUP ON) sf" >/dev/null
	held=$(sql "SELECT bytes FROM artidx_indexes WHERE indexrelname = 'sf_id'")
	sql "REINDEX INDEX sf_id" >/dev/null
	fresh=$(sql "SELECT bytes FROM artidx_indexes WHERE indexrelname = 'sf_id'")
	[ "${held:-0}" -gt 0 ] && [ "$held" -le "$((fresh + fresh / 2 + FREED_SLACK))" ]
	ok $? "$1: freed memory is free ($held bytes after VACUUM, $fresh after REINDEX)"
	sql "TRUNCATE sf" >/dev/null

	again immediate 512MB
	short=$((STRESS_SECONDS / 6 + 3))
	providers="rtm inject software"
	# shellcheck disable=SC2086
	load "$short" "$1: load while the indexes come back" "$CLIENTS" $WELL
	verify "$1: after the restart"

	# too little for all of sn's indexes, enough for su's
	again immediate 16MB
	sql "INSERT INTO sn SELECT i % 6000, nullif(i % 300, 0), 'key ' || i % 50 ||
		repeat('x', i % 40), gen_random_uuid() FROM generate_series(1, 330000) i" 2>/dev/null
	ok $? "$1: rows beyond the memory"
	# shellcheck disable=SC2086
	load "$((STRESS_SECONDS / 4 + 5))" "$1: load with the memory full" 12 $FULL
	sealed=$(sql "SELECT sum(seals) FROM artidx_indexes")
	[ "${sealed:-0}" -gt 0 ]
	ok $? "$1: indexes were sealed ($sealed times)"
	same "$(sql "DELETE FROM su WHERE id % 2 = 0; SELECT count(*) FROM su WHERE id % 2 = 0")" 0 \
		"$1: a unique index accepts deletes"
	again fast 512MB
	for _ in $(seq 240); do
		left=$(sql "SELECT count(*) FROM artidx_indexes WHERE state <> 'ready'")
		[ "${left:-1}" = 0 ] && break
		sleep 0.5
	done
	same "$left" 0 "$1: with memory enough all come back, and nobody asked"
	verify "$1: after the memory was full"
}

for engine in $engines; do
	stress "$engine"
done

if grep -E 'PANIC|TRAP:|terminated by signal' "$DATA.log"; then
	ok 1 "nothing bad in the server's log"
else
	ok 0 "nothing bad in the server's log"
fi
echo "1..$n"
art_cluster_stop fast
exit $bad
