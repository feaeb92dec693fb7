# test/others/sqlsmith.sh
#	  Random statements of sqlsmith, whose answers with art and without must be the same (sourced).
#
# The database is the one that PostgreSQL's regression tests leave, with btree.  Its copies are
# copies of its files, and so have the same OIDs.  One of them gets its btree indexes made art.
# twins.py says which statements are compared, and how.
#
#	SQLSMITH_SEED=n		repeats a run

sqlsmith_fetch()
{
	debs sqlsmith && art_pg_source || return 1
	art_pg_modules
	VERSION=$(dpkg-query -W -f '${Version}' sqlsmith 2>/dev/null)
	: "${VERSION:=$(apt-cache policy sqlsmith | sed -n 's/ *Candidate: //p')}"
	venv tools 'psycopg[binary]==3.2.13'
}

# sqlsmith_database: PostgreSQL's regression database, in three copies
sqlsmith_database()
{
	local name

	cp -r "$PGSRC/src/test/regress" "$WORK/regress" && art_leave_out_using "$WORK/regress"
	as_user mkdir -p "$OUT/regress"
	cd "$OUT/regress" || return 1
	limited_user "$PGXS_TEST/regress/pg_regress" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
		--bindir="$BIN" --inputdir="$WORK/regress" --outputdir="$OUT/regress" --dlpath="$WORK/modules" \
		--max-concurrent-tests=20 --schedule="$WORK/regress/parallel_schedule" >"$OUT/regress.log" 2>&1
	cd "$SRC" || return 1
	PGDATABASE=regression sql "ANALYZE; CREATE ROLE smith LOGIN; GRANT pg_read_all_data, pg_write_all_data TO smith" || return 1
	for name in plain other art; do
		sql "CREATE DATABASE smith_$name TEMPLATE regression" || return 1
	done
	PGDATABASE=smith_art sql "CREATE SCHEMA art_here; GRANT USAGE ON SCHEMA art_here TO PUBLIC;
		CREATE EXTENSION artidx SCHEMA art_here" || return 1
	PGDATABASE=smith_art as_user "$BIN/psql" -X -q -f "$OTHERS/to_art.sql" >"$OUT/to_art.log" 2>&1
	check_indexes smith_art
}

sqlsmith_both()
{
	WHICH=art OUT=$WORK/out/sqlsmith/art
	DEADLINE=$((SECONDS + 60 * (LIMIT_MINUTES + MINUTES)))
	as_user mkdir -p "$OUT/results" "$WORK/out/sqlsmith/btree/results"
	art_cluster sqlsmith "shared_preload_libraries = 'artidx, $MADETEST'" "artidx.memory = '512MB'" "fsync = off" \
		"autovacuum = off" "max_prepared_transactions = 2" "log_line_prefix = '%m %b[%p] %q%a '" \
		"max_connections = 100" "log_min_messages = log" "synchronize_seqscans = off" "max_parallel_workers_per_gather = 0" "jit = off"
	sqlsmith_database || return 1
	LD_LIBRARY_PATH=$ROOT/usr/lib/$(gcc -print-multiarch) \
		limited "$VENV/bin/python" "$OTHERS/twins.py" --smith "$(PATH=$ROOT/usr/bin:$PATH command -v sqlsmith)" \
		--minutes "$MINUTES" --seed "${SQLSMITH_SEED:-$((RANDOM * 32768 + RANDOM))}" \
		--plain "$WORK/out/sqlsmith/btree" --art "$OUT" || wrong "twins.py ended badly"
	suite_cluster_stop
}
