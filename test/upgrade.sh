#!/bin/bash
# test/upgrade.sh
#	  From one major version of PostgreSQL to another: pg_upgrade in each of its modes, dump
#	  and restore, pg_createsubscriber.  With every kind of art index, and with classes that art
#	  has of other extensions, which were created before artidx and after it.
#
# make upgrades		as root, in a Debian system that has all versions (test/roots.sh)
#
#	VERSIONS	15 17 18 19
#	PAIRS		from each to each later one: 15-17 15-18 15-19 17-18 17-19 18-19
#	MODES		of pg_upgrade: copy link clone copy-file-range swap
#	PARTS		upgrade dump subscriber
#	ROWS		of each table (5000)
#	BUILT		a directory that an earlier run kept (KEEP=1), within that system, whose
#				builds are used
#
# Every answer by an index is compared with a sequential scan's, and artidx_check looks at every
# index.  It prints how long the indexes were absent.  What this machine or that version cannot do is
# named, and is not counted.  The last line is "N passed, N failed".
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
: "${VERSIONS:=15 17 18 19}" "${MODES:=copy link clone copy-file-range swap}" "${PARTS:=upgrade dump subscriber}" "${ROWS:=5000}"

if [ "${1:-}" != inside ]; then
	. "$TREE/test/roots.sh"
	# shellcheck disable=SC2086
	art_root $VERSIONS || art_die "no system with PostgreSQL $VERSIONS: $ART_ROOT_WHY"
	art_in_root "$ART_ROOT" env VERSIONS="$VERSIONS" PAIRS="${PAIRS:-}" MODES="$MODES" PARTS="$PARTS" ROWS="$ROWS" \
		BUILT="${BUILT:-}" KEEP="${KEEP:-0}" bash /mnt/test/upgrade.sh inside
	exit
fi

if [ -z "${PAIRS:-}" ]; then
	PAIRS=
	for o in $VERSIONS; do
		for n in $VERSIONS; do
			[ "$o" -lt "$n" ] && PAIRS+=" $o-$n"
		done
	done
fi
PASSED=0
FAILED=0
NOT_RUN=()
declare -A BINDIR

# ---- servers ----

build_all()
{
	local v

	for v in $VERSIONS; do
		if [ -n "${BUILT:-}" ]; then
			PG_CONFIG=$ROOT/usr/lib/postgresql/$v/bin/pg_config
		else
			SRC=$WORK/src$v
			art_copy_tree
			art_copy_root "/usr/lib/postgresql/$v/bin/pg_config"
			chown -R "$RUN_AS" "$WORK"
			art_say "building with $("$PG_CONFIG" --version)"
			(cd "$SRC" && as_user make -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" WERROR=1 all install) >"$WORK/build$v.log" 2>&1 ||
				{ cat "$WORK/build$v.log" >&2; art_die "artidx does not build with $v"; }
		fi
		BINDIR[$v]=$(dirname "$PG_CONFIG")
		install_like_uint "$("$PG_CONFIG" --sharedir)/extension"
	done
}

# A type of another extension that has operators beside integer in btree's integer_ops, which
# artidx has, too; pguint is such a one.  pg_upgrade leaves those across types out of btree's
# family, so neither btree nor art answers by them afterwards: no question here has one.
install_like_uint()
{
	local pair l r s o i ops=('<' '<=' '=' '>=' '>') names=(lt le eq ge gt)

	printf "default_version = '1'\nrelocatable = true\n" >"$1/like_uint.control"
	{
		cat <<-END
			CREATE TYPE like_uint;
			CREATE FUNCTION like_uint_in(cstring) RETURNS like_uint STRICT IMMUTABLE LANGUAGE internal AS 'int4in';
			CREATE FUNCTION like_uint_out(like_uint) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int4out';
			CREATE TYPE like_uint (input = like_uint_in, output = like_uint_out, like = int4);
			CREATE CAST (like_uint AS int4) WITHOUT FUNCTION AS IMPLICIT;
		END
		for pair in "like_uint like_uint _" "like_uint int4 _4" "int4 like_uint 4_"; do
			read -r l r s <<<"$pair"
			for i in 0 1 2 3 4; do
				echo "CREATE FUNCTION like_uint_${names[i]}$s($l, $r) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4${names[i]}';"
				echo "CREATE OPERATOR ${ops[i]} (FUNCTION = like_uint_${names[i]}$s, LEFTARG = $l, RIGHTARG = $r);"
			done
			echo "CREATE FUNCTION like_uint_cmp$s($l, $r) RETURNS int STRICT IMMUTABLE LANGUAGE internal AS 'btint4cmp';"
		done
		o="OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >"
		echo "CREATE OPERATOR CLASS like_uint_ops DEFAULT FOR TYPE like_uint USING btree FAMILY integer_ops AS $o, FUNCTION 1 like_uint_cmp_(like_uint, like_uint);"
		for pair in "like_uint,int4 _4" "int4,like_uint 4_"; do
			read -r l s <<<"$pair"
			echo "ALTER OPERATOR FAMILY integer_ops USING btree ADD $(sed -E "s/(OPERATOR [0-9] [<=>]+)/\1 ($l)/g" <<<"$o"), FUNCTION 1 ($l) like_uint_cmp$s($l);"
		done
	} >"$1/like_uint--1.sql"
}

# cluster VERSION NAME [initdb option...]
cluster()
{
	local v=$1 d=$WORK/$2

	shift 2
	[ "$v" -lt 18 ] || set -- --no-data-checksums "$@"
	as_user "${BINDIR[$v]}/initdb" -D "$d" -U artidx -A trust -N --no-locale -E UTF8 "$@" >"$d.initdb.log" 2>&1 ||
		{ cat "$d.initdb.log" >&2; art_die "initdb failed"; }
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$WORK/tmp'" "shared_preload_libraries = 'artidx'" \
		"artidx.memory = '64MB'" "autovacuum = off" "wal_level = logical" "fsync = off" "shared_buffers = '32MB'" |
		as_user tee -a "$d/postgresql.conf" >/dev/null
}

# start VERSION NAME PORT, stop VERSION NAME
start()
{
	as_user "${BINDIR[$1]}/pg_ctl" -D "$WORK/$2" -l "$WORK/$2.log" -o "-p $3" -w -t 300 start >/dev/null ||
		{ tail -30 "$WORK/$2.log" >&2; art_die "$2 does not start"; }
	[ "$1" -ge 15 ] && PSQL=${BINDIR[$1]}/psql
}

stop()
{
	as_user "${BINDIR[$1]}/pg_ctl" -D "$WORK/$2" -m fast -w -t 300 stop >/dev/null
}

# at PORT DATABASE SQL
at()
{
	PGPORT=$1 PGDATABASE=$2 as_user "$PSQL" -X -q -A -t -v ON_ERROR_STOP=1 <<<"$3" || art_die "at port $1, $2: $3"
}

# is GOT WANTED WHAT
is()
{
	if [ "$1" = "$2" ]; then
		PASSED=$((PASSED + 1))
		echo "ok - $3"
	else
		FAILED=$((FAILED + 1))
		echo "not ok - $3: got '$1', expected '$2'"
		diff <(echo "$2") <(echo "$1") | head -20
	fi
}

# not_run WHAT
not_run()
{
	NOT_RUN+=("$1")
	echo "# not run: $1"
}

# ---- databases ----

DATABASES="first last replaced"

# schema PORT: the three of them
schema()
{
	local db e extensions="citext like_uint"

	for db in $DATABASES; do
		at "$1" postgres "CREATE DATABASE $db"
		[ $db = last ] || at "$1" $db "CREATE EXTENSION artidx"
		for e in $extensions; do at "$1" $db "CREATE EXTENSION $e"; done
		[ $db = first ] || at "$1" $db "CREATE EXTENSION IF NOT EXISTS artidx" 2>/dev/null
		at "$1" $db "
			CREATE TYPE pair AS (a int, b text);
			CREATE TABLE t (id int, k1 int, k2 int, k3 int, k4 int, k5 int, k6 int, k7 int, k8 int, s text, c citext, z like_uint, p pair);
			CREATE FUNCTION add_rows(lo int, hi int) RETURNS void LANGUAGE sql AS \$\$
				INSERT INTO t SELECT i, i % 900, i % 901, i % 902, i % 903, i, i % 904, -i, i, 'S' || i % 500, ('C' || i)::citext, (i % 905)::text::like_uint,
					ROW(i % 20, 'b' || i)::pair FROM generate_series(lo, hi) i \$\$;
			SELECT add_rows(1, $ROWS)" >/dev/null
	done
	for db in first last; do
		at "$1" $db "
			SET artidx.replace_btree = constraints;
			ALTER TABLE t ADD PRIMARY KEY (id);
			ALTER TABLE t ADD UNIQUE (k7) DEFERRABLE;
			ALTER TABLE t ADD CONSTRAINT t_k8 EXCLUDE USING art (k8 WITH =);
			CREATE INDEX t_k1 ON t USING art (k1);
			CREATE INDEX t_k2 ON t USING art (k2) WITH (sync = rowex);
			CREATE INDEX t_k3 ON t USING art (k3 DESC, id) WITH (structure = btree);
			CREATE INDEX t_k4 ON t USING art (k4) WITH (structure = hydra);
			CREATE UNIQUE INDEX t_k5 ON t USING art (k5) INCLUDE (s);
			CREATE INDEX t_k6 ON t USING art (k6) WHERE k6 % 2 = 0;
			CREATE INDEX t_lower ON t USING art (lower(s) COLLATE \"C\");
			ALTER INDEX t_lower ALTER COLUMN 1 SET STATISTICS 77;
			CREATE INDEX t_s ON t USING art (s COLLATE \"en-x-icu\", id);
			CREATE UNIQUE INDEX t_c ON t USING art (c);
			CREATE INDEX t_z ON t USING art (z, id);
			CREATE INDEX t_p ON t USING art (p);"
	done
	at "$1" postgres "ALTER DATABASE replaced SET artidx.replace_btree = 'all'"
	at "$1" replaced "
		ALTER TABLE t ADD PRIMARY KEY (id);
		CREATE INDEX t_k1 ON t (k1);
		CREATE INDEX t_k3 ON t (k3 DESC, id) INCLUDE (s);
		CREATE UNIQUE INDEX t_c ON t (c);
		CREATE INDEX t_z ON t (z, id);
		CREATE INDEX t_lower ON t (lower(s) COLLATE \"C\");
		CREATE INDEX t_k5 ON t USING btree (k5);"
	for db in $DATABASES; do
		at "$1" $db "
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
				bad text;
			BEGIN
				FOREACH q IN ARRAY ARRAY['id BETWEEN 100 AND 300', 'id = 77', 'k1 = 77', 'k1 > 800', 'k3 BETWEEN 10 AND 50', 'c = ''c77''', 'z = ''77''',
					'z > ''800''', 'lower(s) COLLATE \"C\" = ''s77''', 'lower(s) COLLATE \"C\" > ''s4'''] ||
					CASE WHEN current_database() <> 'replaced' THEN ARRAY['k2 = 77', 'k2 < 9', 'k4 = 77', 'k4 < 9', 'k5 = 77', 'k6 = 78 AND k6 % 2 = 0', 'k7 = -77',
					'k8 = 77', 's COLLATE \"en-x-icu\" = ''S77''', 'p = ROW(17, ''b77'')::pair', 'p > ROW(18, ''b1'')::pair'] ELSE '{}' END LOOP
					q := 'SELECT id, k1, k5, s, c, z, p FROM t WHERE ' || q;
					IF answer(q, true) IS DISTINCT FROM answer(q, false) THEN
						bad := concat_ws(E'\n', bad, q, answer(q, true), answer(q, false));
					END IF;
				END LOOP;
				PERFORM artidx_check(indexrelid, true) FROM artidx_indexes;
				RETURN bad;
			END \$\$;
			VACUUM ANALYZE t"
	done
}

# picture PORT DATABASE: the indexes, the keys, and the classes that art has of other extensions
picture()
{
	at "$1" "$2" "
		SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid::text, coalesce(contype::text, '') FROM pg_index LEFT JOIN pg_constraint ON conindid = indexrelid AND contype <> 'f'
			WHERE indrelid = 't'::regclass
		UNION ALL
		SELECT 'class', opcname::text, opfname::text, opcdefault::text, opcintype::regtype::text FROM pg_opclass c JOIN pg_opfamily f ON f.oid = opcfamily JOIN pg_am a ON a.oid = opcmethod
			WHERE amname = 'art' AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_opclass'::regclass AND objid = c.oid AND deptype = 'e')
		UNION ALL
		SELECT 'member', opfname::text, amopopr::regoperator::text, amopstrategy::text, '' FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = amopmethod
			WHERE amname = 'art' AND 'like_uint'::regtype IN (amoplefttype, amoprighttype)
		UNION ALL
		SELECT 'setting', unnest(setconfig), '', '', '' FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase WHERE datname = current_database()
		ORDER BY 1, 2, 3, 4, 5"
}

# forget_versions VERSION PORT: 15.20 and 17.12 keep a number with each column, and a pg_dump that does
# not know that writes it as an option of a table's column, which no server takes.  Where there is such a
# pg_dump, those of tables go.
forget_versions()
{
	local v db

	for v in $VERSIONS; do
		[ "$v" -gt "$1" ] && grep -q pg_attver "${BINDIR[$1]}/postgres" && ! grep -q pg_attver "${BINDIR[$v]}/pg_dump" || continue
		echo "# pg_dump of $v would write the pg_attver of $1 as an option: they are taken out"
		for db in $DATABASES; do
			at "$2" $db "SET allow_system_table_mods = on;
				UPDATE pg_attribute SET attoptions = (SELECT array_agg(o) FROM unnest(attoptions) o WHERE o !~ '^pg_attver=') WHERE attoptions::text ~ 'pg_attver='
					AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r')"
		done
		return
	done
}

# statistics PORT DATABASE: what ANALYZE has found of the expressions
statistics()
{
	at "$1" "$2" "SELECT tablename, attname, null_frac, n_distinct, cardinality(most_common_freqs), cardinality(histogram_bounds::text::text[])
		FROM pg_stats WHERE schemaname = 'public' ORDER BY 1, 2"
}

# works PORT WHAT: every index of every database is in memory, answers as the table does, goes on
# doing so with more rows, and refuses what it must
works()
{
	local db

	for db in $DATABASES; do
		is "$(at "$1" $db "SELECT artidx_wait('300s')")" t "$2, $db: all are in memory"
		is "$(at "$1" $db "SELECT wrong()")" "" "$2, $db: as the table says"
		at "$1" $db "SELECT add_rows(max(id) + 1, max(id) + 300) FROM t; UPDATE t SET k1 = k1 + 1, s = s || 'x' WHERE id % 7 = 0; DELETE FROM t WHERE id % 11 = 5; VACUUM t" >/dev/null
		is "$(at "$1" $db "SELECT wrong()")" "" "$2, $db: and after more rows and VACUUM"
		is "$(at "$1" $db "DO \$\$ BEGIN INSERT INTO t SELECT (t).* FROM (SELECT t FROM t LIMIT 1) t; EXCEPTION WHEN unique_violation THEN RAISE NOTICE 'refused'; END \$\$" 2>&1 |
			grep -c refused)" 1 "$2, $db: a row twice is refused"
	done
}

# ---- pg_upgrade ----

# may VERSION MODE: does that version's pg_upgrade know it, and this file system?
may()
{
	case $2 in
		copy | link) return 0 ;;
		clone)
			: >"$WORK/tmp/clone"
			cp --reflink=always "$WORK/tmp/clone" "$WORK/tmp/cloned" 2>/dev/null
			;;
		*) "${BINDIR[$1]}/pg_upgrade" --help | grep -q -- "--$2" ;;
	esac
}

# source_cluster VERSION: src_VERSION with art keys, and old_VERSION as pg_upgrade takes it, both
# stopped; what of them is to be kept goes into files
source_cluster()
{
	local v=$1 db

	[ ! -d "$WORK/old_$v" ] || return
	cluster "$v" "src_$v"
	start "$v" "src_$v" 6001
	schema 6001
	works 6001 "$v itself"
	for db in $DATABASES; do
		at 6001 $db "ANALYZE t"
		picture 6001 $db >"$WORK/picture_$v.$db"
		statistics 6001 $db >"$WORK/statistics_$v.$db"
	done
	forget_versions "$v" 6001
	stop "$v" "src_$v"
	cp -a "$WORK/src_$v" "$WORK/old_$v"
	start "$v" "old_$v" 6001
	for db in $DATABASES; do
		at 6001 $db "SELECT format('CALL artidx_from_btree(%L);', indexrelid::regclass) FROM artidx_indexes JOIN pg_constraint ON conindid = indexrelid
			WHERE contype <> 'x'" >"$WORK/again_$v.$db"
		sed 's/from_btree/to_btree/' "$WORK/again_$v.$db" | while read -r call; do at 6001 $db "$call"; done
	done
	forget_versions "$v" 6001
	stop "$v" "old_$v"
	[ -f "$WORK/old_$v/pg_stat/artidx.saved" ]
	is $? 0 "$v saves its indexes at the shutdown"
}

# upgrade OLD NEW MODE
upgrade()
{
	local o=$1 n=$2 mode=$3 what="$1 to $2 by $3" db call began absent log

	rm -rf "$WORK/from" "$WORK/to" "$WORK/to.log"
	cp -a "$WORK/old_$o" "$WORK/from"
	cluster "$n" to
	mkdir -p "$WORK/tmp/up"
	chown "$RUN_AS" "$WORK/tmp/up"
	(cd "$WORK/tmp/up" && as_user "${BINDIR[$n]}/pg_upgrade" --no-sync --"$mode" -U artidx -b "${BINDIR[$o]}" -B "${BINDIR[$n]}" \
		-d "$WORK/from" -D "$WORK/to" -s "$WORK/tmp" -p 6001 -P 6002) >"$WORK/upgrade.log" 2>&1
	is $? 0 "$what: pg_upgrade" || true
	[ -f "$WORK/to/global/pg_control" ] && grep -q "Upgrade Complete" "$WORK/upgrade.log" ||
		{ tail -20 "$WORK/upgrade.log"; find "$WORK/to" -name 'pg_upgrade_dump*.log' -exec tail -5 {} \;; return; }
	is "$(find "$WORK/to" -name 'artidx.*' | wc -l)" 0 "$what: no saved file goes over"
	# nor is one believed that somebody has carried
	as_user cp "$WORK/old_$o/pg_stat/artidx.saved" "$WORK/to/pg_stat/"
	began=$(date +%s%N)
	start "$n" to 6002
	for db in $DATABASES; do at 6002 $db "SELECT artidx_wait('300s')" >/dev/null; done
	absent=$((($(date +%s%N) - began) / 1000000))
	echo "# $what: the indexes were there $absent ms after the start began"
	log=$(grep -c 'file "pg_stat/artidx.saved" is not used' "$WORK/to.log")
	is "$log" 1 "$what: a saved file of the old server is not used, and the log says so"
	for db in $DATABASES; do
		is "$(at 6002 $db "SELECT count(*) FROM artidx_indexes WHERE state <> 'ready' OR last_build_source = 'load'")" 0 "$what, $db: each was built from its table"
		if [ "$n" -ge 18 ]; then
			is "$(statistics 6002 $db)" "$(cat "$WORK/statistics_$o.$db")" "$what, $db: the statistics go over"
		fi
	done
	if [ "$n" -ge 18 ]; then
		PGPORT=6002 as_user "${BINDIR[$n]}/vacuumdb" -U artidx --all --analyze-only --missing-stats-only >"$WORK/vacuumdb.log" 2>&1
		is $? 0 "$what: vacuumdb --missing-stats-only"
		for db in $DATABASES; do
			is "$(at 6002 $db "SELECT analyze_count FROM pg_stat_user_tables WHERE relname = 't'")" 0 "$what, $db: which misses none"
		done
	fi
	works 6002 "$what"
	for db in $DATABASES; do
		while read -r call; do at 6002 $db "$call"; done <"$WORK/again_$o.$db"
		is "$(picture 6002 $db)" "$(cat "$WORK/picture_$o.$db")" "$what, $db: the same keys, indexes and classes"
	done
	works 6002 "$what, keys of art"
	stop "$n" to
	start "$n" to 6002
	is "$(at 6002 first "SELECT bool_or(last_build_source = 'load') FROM artidx_indexes")" t "$what: and what it saves it loads"
	works 6002 "$what, the next start"
	stop "$n" to
	is "$(grep -hE 'PANIC|TRAP|terminated by signal' "$WORK/to.log")" "" "$what: nothing bad in the log"
}

# ---- dump and restore ----

# dump OLD NEW: by the newer one's programs, in several processes; twice, the second time a script.
# From 18 on with the statistics.
dump()
{
	local o=$1 n=$2 what="dump of $1 into $2" db options=()

	[ "$n" -lt 18 ] || options=(--statistics)
	rm -rf "$WORK/into" "$WORK/into.log" "$WORK/tmp/dump".*
	start "$o" "src_$o" 6001
	cluster "$n" into
	start "$n" into 6002
	for db in $DATABASES; do
		PGPORT=6001 as_user "${BINDIR[$n]}/pg_dump" -U artidx -C -Fd -j2 "${options[@]}" -f "$WORK/tmp/dump.$db" $db &&
			PGPORT=6002 PGOPTIONS='-c artidx.replace_btree=constraints' as_user "${BINDIR[$n]}/pg_restore" -U artidx -C -j2 --exit-on-error -d postgres "$WORK/tmp/dump.$db"
		is $? 0 "$what, $db: restored"
		is "$(picture 6002 $db)" "$(cat "$WORK/picture_$o.$db")" "$what, $db: the same keys, indexes and classes"
		if [ "$n" -ge 18 ]; then
			is "$(statistics 6002 $db)" "$(cat "$WORK/statistics_$o.$db")" "$what, $db: the statistics"
		fi
	done
	works 6002 "$what"
	for db in $DATABASES; do
		at 6002 postgres "DROP DATABASE $db"
		PGPORT=6001 as_user "${BINDIR[$n]}/pg_dump" -U artidx -C "${options[@]}" -f "$WORK/tmp/dump.sql" $db &&
			PGPORT=6002 PGDATABASE=postgres PGOPTIONS='-c artidx.replace_btree=constraints' as_user "$PSQL" -X -q -o /dev/null -v ON_ERROR_STOP=1 -f "$WORK/tmp/dump.sql"
		is $? 0 "$what, $db: a script restored"
		is "$(picture 6002 $db)" "$(cat "$WORK/picture_$o.$db")" "$what, $db: the same by a script"
	done
	works 6002 "$what by a script"
	stop "$n" into
	stop "$o" "src_$o"
	is "$(grep -hE 'PANIC|TRAP|terminated by signal' "$WORK/into.log")" "" "$what: nothing bad in the log"
}

# ---- pg_createsubscriber ----

# until_same WHAT: the subscriber has what the publisher has
until_same()
{
	local i want got sum="SELECT count(*), sum(id), sum(k1), md5(string_agg(s, ',' ORDER BY id)) FROM t"

	want=$(at 6001 first "$sum")
	for i in $(seq 600); do
		got=$(at 6002 first "SET enable_indexscan = off; SET enable_bitmapscan = off; $sum")
		[ "$got" = "$want" ] && break
		sleep 0.2
	done
	is "$got" "$want" "$1"
}

# subscriber VERSION: a replica becomes a subscriber
subscriber()
{
	local v=$1 what="$1, pg_createsubscriber"

	rm -rf "$WORK/pub" "$WORK/pub.log" "$WORK/sub" "$WORK/sub.log"
	cp -a "$WORK/src_$v" "$WORK/pub"
	start "$v" pub 6001
	as_user "${BINDIR[$v]}/pg_basebackup" -h "$PGHOST" -p 6001 -U artidx -D "$WORK/sub" -R -c fast -d 'dbname=first' || art_die "no base backup"
	start "$v" sub 6002
	is "$(at 6002 first "SELECT artidx_wait('300s')")" t "$what: a replica has its indexes"
	stop "$v" sub
	as_user "${BINDIR[$v]}/pg_createsubscriber" -D "$WORK/sub" -d first -P "host=$PGHOST port=6001 user=artidx dbname=first" -U artidx -s "$PGHOST" -p 6002 >"$WORK/sub.tool.log" 2>&1
	is $? 0 "$what: made" || tail -20 "$WORK/sub.tool.log"
	start "$v" sub 6002
	is "$(at 6002 first "SELECT artidx_wait('300s')")" t "$what: the subscriber has its indexes"
	at 6001 first "SELECT add_rows(1000001, 1000500)" >/dev/null
	until_same "$what: inserts come"
	at 6001 first "UPDATE t SET k1 = k1 + 5 WHERE id > 1000400; DELETE FROM t WHERE id BETWEEN 1000300 AND 1000350"
	if [ "$v" -eq 17 ]; then
		for i in $(seq 600); do
			grep -q "missing operator" "$WORK/sub.log" && break
			sleep 0.2
		done
		is "$(grep -c -m1 'missing operator' "$WORK/sub.log")" 1 "$what: an art key stops it on 17"
		at 6002 first "CALL artidx_to_btree('t_pkey')" 2>/dev/null
	fi
	until_same "$what: updates and deletes come"
	is "$(at 6002 first "SELECT artidx_wait('300s')")" t "$what: all are in memory"
	is "$(at 6002 first "SELECT wrong()")" "" "$what: as the table says"
	stop "$v" sub
	stop "$v" pub
	is "$(grep -hE 'PANIC|TRAP|terminated by signal' "$WORK/sub.log" "$WORK/pub.log")" "" "$what: nothing bad in the logs"
}

# ---- the run ----

art_choose_user
if [ -n "${BUILT:-}" ]; then
	ROOT=$BUILT/root
fi
WORK=$(mktemp -d "${TMPDIR:-/tmp}/artidx-upgrade.XXXXXX") || art_die "no temporary directory"
: "${ROOT:=$WORK/root}"
BIN=/usr/bin
trap art_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir -p "$WORK/tmp" "$ROOT"
chmod 755 "$WORK"
chmod 1777 "$WORK/tmp"
chown "$RUN_AS" "$WORK"
cd "$WORK" || exit 1
export PGHOST=$WORK/tmp PGUSER=artidx
build_all
BIN=${BINDIR[${VERSIONS##* }]}

for v in $VERSIONS; do
	[[ " $PAIRS " == *" $v-"* || $PARTS == *subscriber* ]] && source_cluster "$v"
done
for pair in $PAIRS; do
	o=${pair%-*} n=${pair#*-}
	if [[ $PARTS == *upgrade* ]]; then
		for mode in $MODES; do
			if may "$n" $mode; then
				upgrade "$o" "$n" $mode
			else
				not_run "pg_upgrade --$mode to $n: this version or this file system does not know it"
			fi
		done
	fi
	[[ $PARTS != *dump* ]] || dump "$o" "$n"
done
for v in $VERSIONS; do
	[[ $PARTS == *subscriber* ]] || continue
	if [ -x "${BINDIR[$v]}/pg_createsubscriber" ]; then
		subscriber "$v"
	else
		not_run "pg_createsubscriber of $v: there is none"
	fi
done

[ ${#NOT_RUN[@]} -eq 0 ] || printf '# not run: %s\n' "${NOT_RUN[@]}"
[ $((PASSED + FAILED)) -gt 0 ] || FAILED=1
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" -eq 0 ]
