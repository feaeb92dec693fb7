# test/applications/tools.sh
#	  What tools do that make indexes of their own, under each value of
#	  artidx.replace_btree: repack, partman, pgcopydb, pglogical, migra (sourced by
#	  run.sh).  The table of doc/applications.md has what they show.
#
# The tools are Debian's and PyPI's.  squeeze and timescaledb are in neither for
# PostgreSQL 15, so they are named and not run.
#
# A table has one index of each kind: of a key, without USING, and with either.  After
# the tool each is to be of an access method that somebody has asked for, and what its
# access method makes of its file.

TOOLS=(repack partman pgcopydb pglogical migra squeeze timescaledb)

# tool_packages: what the servers need before they are copied, as root only
tool_packages()
{
	local name packages=()

	for name in "$@"; do
		case $name in
			repack | partman | pglogical) packages+=("postgresql-15-$name") ;;
			pgcopydb) packages+=(pgcopydb) ;;
		esac
	done
	[ ${#packages[@]} -gt 0 ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 || return
	dpkg -s "${packages[@]}" >/dev/null 2>&1 || { art_apt update; (art_apt install "${packages[@]}"); }
}

# pglogical_server on|off: a server as pglogical wants it.  Only its own part of the test has
# it: its supervisor (2.4.2) answers no barrier of processes, and DROP DATABASE waits for that.
pglogical_server()
{
	if [ "$1" = on ]; then
		echo "wal_level = logical"
		echo "max_worker_processes = 30"
		# of the newest minor releases
		"$BIN/postgres" --describe-config | grep -q '^output_plugin_libraries' &&
			echo "output_plugin_libraries = 'pgoutput, pglogical_output'"
		echo "shared_preload_libraries = 'artidx, pglogical'"
	else
		echo "shared_preload_libraries = 'artidx'"
	fi | as_user tee -a "$DATA/postgresql.conf" >/dev/null
	as_user "$BIN/pg_ctl" -D "$DATA" -l "$DATA.log" -m fast -w -t 120 restart >/dev/null
}

# has_extension NAME: its version, or nothing if the server does not have it
has_extension()
{
	sql "SELECT default_version FROM pg_available_extensions WHERE name = '$1'" | grep .
}

# tool_database NAME SETTING: a new one, in which every session has this setting
tool_database()
{
	database "$1" && sql "CREATE EXTENSION amcheck" && sql "ALTER DATABASE $1 SET artidx.replace_btree = '$2'"
}

tool_table()
{
	sql "CREATE TABLE t (id bigint PRIMARY KEY, a int UNIQUE, b text, c int);
		CREATE INDEX t_none ON t (b);
		CREATE INDEX t_btree ON t USING btree (c);
		CREATE INDEX t_art ON t USING art (c, b);
		INSERT INTO t SELECT i, i, 'b' || i, i % 100 FROM generate_series(1, 5000) i"
}

# kinds [PATTERN]: the indexes of the tables, and their access methods
kinds()
{
	sql "SELECT string_agg(c.relname || ' ' || amname, ', ' ORDER BY c.relname COLLATE \"C\")
		FROM pg_class c JOIN pg_am a ON a.oid = relam
		WHERE relkind IN ('i', 'I') AND relnamespace = 'public'::regnamespace AND c.relname ~ '${1:-.}'"
}

# sound: says so if each index is what the catalog says, with all rows of its table
sound()
{
	sql "DO \$\$
		DECLARE i record;
		BEGIN
			FOR i IN SELECT c.oid, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
				WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace
			LOOP
				IF i.amname = 'btree' THEN
					PERFORM bt_index_check(i.oid, true);
				ELSE
					PERFORM artidx.artidx_build(i.oid);
					PERFORM artidx.artidx_check(i.oid, true);
					ASSERT pg_relation_size(i.oid) = 0, 'an art index has pages';
				END IF;
			END LOOP;
		END \$\$;
		SELECT 'sound'" 2>&1
}

# shows TOOL SETTING KINDS [PATTERN]: these are the indexes, and they are sound
shows()
{
	has "$1, $2" "$(kinds "${4:-}")" "$3"
	has "$1, $2" "$(sound)" sound
}

# by_setting SETTING TEXT: with {none} and {key} for what the setting makes of an index
# without USING and of a key
by_setting()
{
	local none=art key=btree

	case $1 in
		off) none=btree ;;
		all) key=art ;;
	esac
	sed "s/{none}/$none/g; s/{key}/$key/g" <<<"$2"
}

# repack_writers ROUND NUMBER: sessions that insert, update and delete until there is a table "stop".
# They rest: pg_repack ends when it has applied nearly all that they did.
repack_writers()
{
	local w

	for ((w = 10 * $1; w < 10 * $1 + $2; w++)); do
		sql "DO \$\$
			BEGIN
				FOR k IN 1 .. 1000000 LOOP
					INSERT INTO t VALUES ($w * 10000000 + k, $w * 10000000 + k, 'w' || k, k % 100);
					UPDATE t SET c = c + 1, b = b || 'u' WHERE id = $w * 10000000 + k / 2;
					DELETE FROM t WHERE id = $w * 10000000 + k / 3;
					COMMIT;
					PERFORM pg_sleep(0.05);
					EXIT WHEN to_regclass('stop') IS NOT NULL;
				END LOOP;
			END \$\$" &
	done
}

app_repack()
{
	local version setting how pids round=0

	version=$(has_extension pg_repack) && [ -x "$BIN/pg_repack" ] ||
		{ skip repack "Debian's postgresql-15-repack is needed"; return; }
	echo "# pg_repack $version"
	for setting in off indexes all; do
		tool_database "repack_$setting" "$setting"
		sql "CREATE EXTENSION pg_repack" && tool_table
		sql "DELETE FROM t WHERE id % 2 = 0"
		as_user "$BIN/pg_repack" -d "$PGDATABASE" -t public.t >"$WORK/repack.log" 2>&1 || cat "$WORK/repack.log"
		shows repack "$setting" \
			"$(by_setting "$setting" "t_a_key {key}, t_art art, t_btree btree, t_none {none}, t_pkey {key}")"
		has "repack, $setting" "$(sql "SET enable_seqscan = off; SELECT count(*) FROM t WHERE c = 7")" 50
	done

	# The structures go with the files: they are there at once, as CREATE INDEX has built them.  The
	# commands are short, so that a worker could not have built them before they are looked at.
	tool_database repack_writers all
	sql "CREATE EXTENSION pg_repack" && tool_table
	sql "CREATE INDEX t_part ON t USING art (b DESC, lower(b)) WHERE c > 10"
	for how in "-t public.t" "-t public.t -x" "-t public.t -o c"; do
		pids=()
		sql "DROP TABLE IF EXISTS stop"
		repack_writers $((++round)) 3
		mapfile -t pids < <(jobs -p)
		sleep 1
		as_user "$BIN/pg_repack" -d "$PGDATABASE" $how >"$WORK/repack.log" 2>&1 || cat "$WORK/repack.log"
		has "repack $how under writers" "$(sql "SELECT string_agg(DISTINCT state || ' ' || last_build_source, ', ')
			FROM artidx.artidx_indexes WHERE relname = 't'")" "ready create"
		sql "CREATE TABLE stop ()"
		wait "${pids[@]}"
		has "repack $how under writers" "$(sound)" sound
		has "repack $how under writers" "$(sql "SELECT count(*) > 5000 FROM t")" t
	done
}

app_partman()
{
	local version setting

	version=$(has_extension pg_partman) || { skip partman "Debian's postgresql-15-partman is needed"; return; }
	echo "# pg_partman $version"
	for setting in off indexes all; do
		tool_database "partman_$setting" "$setting"
		sql "CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman;
			CREATE TABLE p (id bigint NOT NULL, b text, c int) PARTITION BY RANGE (id);
			CREATE INDEX p_none ON p (b);
			CREATE INDEX p_btree ON p USING btree (c);
			CREATE TABLE template (LIKE p, PRIMARY KEY (id));
			CREATE INDEX template_none ON template (b, c);
			CREATE INDEX template_btree ON template USING btree (c, b);
			CREATE INDEX template_art ON template USING art (c, id)" &&
			sql "SELECT partman.create_parent('public.p', 'id', 'native', '1000',
				p_template_table := 'public.template', p_premake := 2)" >/dev/null &&
			sql "INSERT INTO p SELECT i, 'b' || i, i FROM generate_series(1, 900) i"
		shows partman "$setting" "$(by_setting "$setting" \
			"p_p0_b_c_idx {none}, p_p0_b_idx {none}, p_p0_c_b_idx btree, p_p0_c_id_idx art, p_p0_c_idx btree, p_p0_pkey {key}")" '^p_p0'
	done
}

app_pgcopydb()
{
	local setting from

	command -v pgcopydb >/dev/null 2>&1 || { skip pgcopydb "Debian's pgcopydb is needed"; return; }
	echo "# $(pgcopydb --version 2>/dev/null | head -1)"
	tool_database copied off
	tool_table
	from="host=$PGHOST port=$PGPORT user=$PGUSER dbname=copied"
	for setting in off indexes all; do
		export PGDATABASE=postgres
		sql "CREATE DATABASE copy_$setting TEMPLATE template0"
		sql "ALTER DATABASE copy_$setting SET artidx.replace_btree = '$setting'"
		as_user pgcopydb clone --source "$from" --target "${from/%copied/copy_$setting}" \
			--dir "$WORK/tmp/copy_$setting" >"$WORK/pgcopydb.log" 2>&1 || tail -20 "$WORK/pgcopydb.log"
		PGDATABASE=copy_$setting
		shows pgcopydb "$setting" "t_a_key btree, t_art art, t_btree btree, t_none btree, t_pkey btree"
	done
}

app_pglogical()
{
	local version setting dsn="host=$PGHOST port=$PGPORT user=$PGUSER"

	version=$(has_extension pglogical) || { skip pglogical "Debian's postgresql-15-pglogical is needed"; return; }
	echo "# pglogical $version"
	pglogical_server on
	tool_database provider off
	tool_table
	sql "CREATE EXTENSION pglogical;
		SELECT pglogical.create_node('provider', '$dsn dbname=provider');
		SELECT pglogical.replication_set_add_all_tables('default', '{public}')" >/dev/null
	for setting in off indexes all; do
		export PGDATABASE=postgres
		sql "CREATE DATABASE subscriber_$setting"
		sql "ALTER DATABASE subscriber_$setting SET artidx.replace_btree = '$setting'"
		PGDATABASE=subscriber_$setting
		sql "CREATE EXTENSION pglogical;
			SELECT pglogical.create_node('subscriber_$setting', '$dsn dbname=subscriber_$setting');
			SELECT pglogical.create_subscription('sub_$setting', '$dsn dbname=provider', synchronize_structure := true)" >/dev/null
		sql "SELECT pglogical.wait_for_subscription_sync_complete('sub_$setting')" >/dev/null
		PGDATABASE=provider sql "UPDATE t SET b = 'changed' WHERE id = 17; DELETE FROM t WHERE id = 18; INSERT INTO t VALUES (18, 18, 'new', 1)"
		PGDATABASE=provider sql "SELECT pglogical.wait_slot_confirm_lsn(NULL, NULL)" >/dev/null
		shows pglogical "$setting" \
			"$(by_setting "$setting" "t_a_key {key}, t_art art, t_btree btree, t_none btree, t_pkey {key}")"
		has "pglogical, $setting" "$(sql "SELECT count(*) || ' ' || string_agg(b, ' ' ORDER BY id) FILTER (WHERE id IN (17, 18)) FROM t")" "5000 changed new"
	done
	export PGDATABASE=postgres
	pglogical_server off
}

app_migra()
{
	local setting url="postgresql://$PGUSER@127.0.0.1:$PGPORT" diff

	python migra migra 'sqlalchemy<2.1' psycopg2-binary 'setuptools<81' ||
		{ skip migra "python3 -m venv and pip are needed"; return; }
	tool_database migrated off
	tool_table
	for setting in off indexes all; do
		tool_database "migra_$setting" "$setting"
		"$VENV/bin/migra" --unsafe "$url/migra_$setting" "$url/migrated" >"$WORK/migra.sql"
		as_user "$BIN/psql" -X -q -v ON_ERROR_STOP=1 -f "$WORK/migra.sql"
		shows migra "$setting" "t_a_key btree, t_art art, t_btree btree, t_none btree, t_pkey btree"
		diff=$("$VENV/bin/migra" --unsafe "$url/migra_$setting" "$url/migrated" 2>&1)
		has "migra, $setting" "left to do: $diff" "left to do: "
	done
}

app_squeeze()
{
	skip squeeze "pg_squeeze is not among Debian's packages for PostgreSQL 15"
}

app_timescaledb()
{
	skip timescaledb "TimescaleDB is not among Debian's packages for PostgreSQL 15"
}
