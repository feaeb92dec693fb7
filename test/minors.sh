#!/bin/bash
# test/minors.sh
#	  One build of artidx, one data directory, two minor releases of the server:
#	  the oldest and the newest that the archive has.
#
# make minors		as any user that may write to a temporary directory
#
# The packages are unpacked, not installed.  A composite value has other bytes since
# 15.20 and 17.12.  So tables, saved files and replicas go from one minor release to
# the other and back, with composite values in every kind of index column.
set -u
. "$(dirname "$0")/lib.sh"

art_setup minors
MAJOR=$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
FAILED=0

# Each version of the package, oldest first.
versions()
{
	apt-cache madison "postgresql-$MAJOR" | awk -F'|' '{ gsub(/ /, "", $2); print $2 }' | sort -uV
}

# unpack NAME VERSION: that server below $WORK/NAME, with our build
unpack()
{
	local d=$WORK/$1 f

	mkdir -p "$d/deb"
	(cd "$d/deb" && apt-get -qq -o APT::Sandbox::User=root download "postgresql-$MAJOR=$2" "postgresql-client-$MAJOR=$2" "libpq5=$2") ||
		art_die "apt-get does not download version $2"
	for f in "$d"/deb/*.deb; do
		dpkg-deb -x "$f" "$d" || art_die "cannot unpack $f"
	done
	f=$d/usr/lib/postgresql/$MAJOR
	cp "$ROOT/usr/lib/postgresql/$MAJOR/lib/artidx.so" "$f/lib/" &&
		cp "$ROOT/usr/share/postgresql/$MAJOR/extension/artidx"* "$d/usr/share/postgresql/$MAJOR/extension/" ||
		art_die "cannot copy artidx to $f"
	cp -P "$d"/usr/lib/*/libpq.so.5* "$f/lib/"
	chmod -R a+rX "$d"
}

# use NAME: its programs from here on
use()
{
	BIN=$WORK/$1/usr/lib/postgresql/$MAJOR/bin
	export LD_LIBRARY_PATH=$WORK/$1/usr/lib/postgresql/$MAJOR/lib
}

# start NAME DATA PORT, stop DATA
start()
{
	use "$1"
	as_user "$BIN/pg_ctl" -D "$WORK/$2" -l "$WORK/$2.log" -o "-p $3" -w -t 120 start >/dev/null ||
		{ tail -30 "$WORK/$2.log" >&2; art_die "$2 does not start with $1"; }
}

stop()
{
	as_user "$BIN/pg_ctl" -D "$WORK/$1" -m fast -w -t 120 stop >/dev/null
}

# at PORT SQL: statement by statement
at()
{
	PGPORT=$1 as_user "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 <<<"$2" || art_die "at port $1: $2"
}

# until PORT QUERY WHAT: the query says "t" some time
until_true()
{
	local i

	for i in $(seq 600); do
		[ "$(at "$1" "$2" || echo t)" = t ] && return
		sleep 0.2
	done
	at "$1" "SELECT indexrelname, state, reason FROM artidx_indexes" >&2
	art_die "$3"
}

# is GOT WANTED WHAT
is()
{
	if [ "$1" = "$2" ]; then
		echo "ok - $3"
	else
		FAILED=$((FAILED + 1))
		echo "not ok - $3: got '$1', expected '$2'"
	fi
}

# right PORT WHAT: every index is in memory, and answers as the table does
right()
{
	until_true "$1" "SELECT count(*) = 7 FROM artidx_indexes WHERE state = 'ready'" "$2: not ready"
	is "$(at "$1" 'SELECT wrong()')" "" "$2"
}

mapfile -t LIST < <(versions)
[ "${#LIST[@]}" -ge 2 ] || art_die "the archive has one minor release of PostgreSQL $MAJOR only: ${LIST[*]}"
OLD=${LIST[0]} NEW=${LIST[-1]}
art_say "one build, $OLD and $NEW"
unpack old "$OLD"
unpack new "$NEW"
export PGHOST=$WORK/tmp PGUSER=artidx PGDATABASE=postgres
chmod 1777 "$WORK/tmp"

# cluster NAME DATA: made by that release
cluster()
{
	use "$1"
	as_user "$BIN/initdb" -D "$WORK/$2" -U artidx -A trust -N --no-locale -E UTF8 >"$WORK/$2.initdb.log" 2>&1 ||
		{ cat "$WORK/$2.initdb.log" >&2; art_die "initdb failed"; }
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$WORK/tmp'" \
		"shared_preload_libraries = 'artidx'" "artidx.memory = '64MB'" "autovacuum = off" |
		as_user tee -a "$WORK/$2/postgresql.conf" >/dev/null
}

schema()
{
	at "$1" "
		CREATE EXTENSION artidx;
		CREATE TYPE pair AS (a int, b text, c int);
		CREATE TYPE pairs AS RANGE (subtype = pair);
		CREATE TYPE outer_pair AS (p pair, n int);
		CREATE TABLE t (id int, k pair, o outer_pair, r pairs, l pair[]);
		CREATE FUNCTION add_rows(lo int, hi int) RETURNS void LANGUAGE sql AS \$\$
			INSERT INTO t SELECT i, k, ROW(k, i % 3)::outer_pair, pairs(k, NULL), ARRAY[k]
			FROM generate_series(lo, hi) i, LATERAL (SELECT jsonb_populate_record(NULL::pair,
				jsonb_build_object('a', i % 20, 'b', 'x' || i % 31, 'c', i)) AS k) k \$\$;
		SELECT add_rows(1, 2000);
		CREATE INDEX t_k ON t USING art (k);
		CREATE INDEX t_o ON t USING art (o DESC, id);
		CREATE INDEX t_r ON t USING art (r);
		CREATE INDEX t_l ON t USING art (l);
		CREATE INDEX t_e ON t USING art ((ROW(k, id % 10)::outer_pair));
		CREATE INDEX t_h ON t USING art ((hash_record(k)));
		CREATE UNIQUE INDEX t_id ON t USING art (id) INCLUDE (k, o, r);
		VACUUM ANALYZE t;
		CREATE FUNCTION answer(q text, by_index bool) RETURNS text LANGUAGE plpgsql AS \$\$
		DECLARE
			a text;
			line text;
			seen bool := false;
		BEGIN
			PERFORM set_config('enable_' || n, CASE WHEN by_index THEN (n <> 'seqscan')::text ELSE (n = 'seqscan')::text END, true)
				FROM unnest(ARRAY['seqscan', 'indexscan', 'indexonlyscan', 'bitmapscan']) n;
			FOR line IN EXECUTE 'EXPLAIN ' || q LOOP
				seen := seen OR line ~ 'Index.* t_';
			END LOOP;
			EXECUTE 'SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM (' || q || ') x' INTO a;
			RETURN concat(CASE WHEN seen <> by_index THEN 'index used: ' || seen || ' ' END, a);
		END \$\$;
		CREATE FUNCTION wrong() RETURNS text LANGUAGE plpgsql AS \$\$
		DECLARE
			q text;
			e text;
			bad text;
		BEGIN
			FOREACH e IN ARRAY ARRAY['k', 'o', 'r', 'l', 'ROW(k, id % 10)::outer_pair', 'hash_record(k)', 'id'] LOOP
				FOREACH q IN ARRAY ARRAY['=', '>=', '<'] LOOP
					q := format('SELECT id, k, o, r FROM t WHERE %1\$s %2\$s (SELECT %1\$s FROM t WHERE id = 77)', e, q);
					IF answer(q, true) IS DISTINCT FROM answer(q, false) THEN
						bad := concat_ws(E'\n', bad, q, answer(q, true), answer(q, false));
					END IF;
				END LOOP;
			END LOOP;
			PERFORM artidx_check(indexrelid, true) FROM artidx_indexes;
			RETURN bad;
		END \$\$" >/dev/null
}

# ---- one data directory, up and down ----
cluster old a
start old a 6001
schema 6001
is "$(at 6001 'SHOW server_version')" "$("$BIN/postgres" --version | sed 's/[^0-9]*//')" "the server is $OLD"
right 6001 "made by $OLD"
last=old n=2000
for next in new old new; do
	stop a
	[ -f "$WORK/a/pg_stat/artidx.saved" ]
	is $? 0 "$last saves a file"
	start $next a 6001
	right 6001 "after $last comes $next"
	# keys that are compared are in no file
	is "$(at 6001 "SELECT string_agg(indexrelname || ' ' || last_build_source, ', ' ORDER BY indexrelname) FROM artidx_indexes WHERE last_build_source = 'load'")" \
		"t_h load, t_id load" "$next takes what $last has saved"
	case $next in
		new) at 6001 "SELECT add_rows($((n += 1000)), $((n + 300))); UPDATE t SET id = -id WHERE id % 5 = 0; ALTER TYPE pair DROP ATTRIBUTE b" >/dev/null ;;
		old) at 6001 "SELECT add_rows($((n += 1000)), $((n + 300))); DELETE FROM t WHERE id < 0; ALTER TYPE pair ADD ATTRIBUTE b text" >/dev/null ;;
	esac
	right 6001 "altered by $next"
	at 6001 "SELECT add_rows($((n += 1000)), $((n + 300))); VACUUM t" >/dev/null
	right 6001 "more rows by $next"
	last=$next
done
stop a

# ---- a replica of the other release ----
for p in old new; do
	[ $p = old ] && s=new || s=old
	cluster $p p_$p
	start $p p_$p 6002
	schema 6002
	as_user "$BIN/pg_basebackup" -h "$PGHOST" -p 6002 -D "$WORK/s_$p" -R -c fast || art_die "no base backup"
	echo "max_standby_streaming_delay = -1" | as_user tee -a "$WORK/s_$p/postgresql.conf" >/dev/null
	start $s s_$p 6003
	for change in "SELECT 1" "SELECT add_rows(3001, 3300)" "ALTER TYPE pair DROP ATTRIBUTE b" "SELECT add_rows(4001, 4300)" \
		"ALTER TYPE pair ADD ATTRIBUTE b text" "SELECT add_rows(6001, 6300)" "DELETE FROM t WHERE id % 7 = 3; VACUUM t"; do
		at 6002 "$change" >/dev/null
		lsn=$(at 6002 "SELECT pg_current_wal_insert_lsn()")
		until_true 6003 "SELECT pg_last_wal_replay_lsn() >= '$lsn'" "the replica does not replay"
		right 6002 "primary $p: $change"
		right 6003 "replica $s: $change"
	done
	use $s
	as_user "$BIN/pg_ctl" -D "$WORK/s_$p" -w promote >/dev/null
	at 6003 "SELECT add_rows(8001, 8300); ALTER TYPE pair DROP ATTRIBUTE a" >/dev/null
	right 6003 "replica $s is promoted"
	stop s_$p
	use $p
	stop p_$p
done

is "$(grep -hE 'ERROR|PANIC|TRAP|terminated by signal' "$WORK"/*.log)" "" "no error in the servers' logs"
echo "minors: $FAILED failed"
[ "$FAILED" -eq 0 ]
