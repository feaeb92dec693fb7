# test/others/sqlalchemy.sh
#	  SQLAlchemy's own tests, on psycopg (sourced).
#
# A group is a file.  Left out are the tests without a database ("not backend" marks none of
# them, so the directories do), and those of memory and of call counts.
#
#	SQLALCHEMY_TESTS="test/engine"	these files and directories only

sqlalchemy_fetch()
{
	VERSION=2.1.9
	# the tests take the library beside them
	venv sqlalchemy 'psycopg[binary]==3.2.13' pytest==8.4.2 typing_extensions greenlet &&
		sdist "SQLAlchemy==$VERSION" d700a8b2edfb26282a470333d6bc4a454c4acda4d201a3bea7b72fa76c217d28 &&
		chmod -R a+rX "$WORK/SQLAlchemy" "$VENV" && cp "$OTHERS/outcomes.py" "$WORK/SQLAlchemy/"
	SQLALCHEMY=$VENV
}

sqlalchemy_run()
{
	local seen

	suite_cluster "$1" "max_prepared_transactions = 10"
	sql "CREATE DATABASE test"
	PGDATABASE=test sql "CREATE SCHEMA test_schema; CREATE SCHEMA test_schema_2; CREATE EXTENSION citext; CREATE EXTENSION hstore"
	# a copy, since the tests write into their directory
	as_user cp -r "$WORK/SQLAlchemy" "$OUT/tree"
	cd "$OUT/tree" || return 1
	# its tables go away, so what is there is looked at meanwhile
	[ "$1" = btree ] || sqlalchemy_watch &
	OUTCOMES=$OUT/outcomes PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$OUT/tree \
		limited "$SQLALCHEMY/bin/python" -m pytest -p outcomes -p no:cacheprovider -q --tb=short --maxfail=100000 \
		--dburi "postgresql+psycopg://$PGUSER@/test?host=$PGHOST&port=$PGPORT" \
		${SQLALCHEMY_TESTS:-test/dialect/postgresql test/dialect/test_suite.py test/engine test/sql test/orm test/ext} \
		>"$OUT/log" 2>&1
	tail -3 "$OUT/log"
	touch "$OUT/done"
	cd "$SRC" || return 1
	wait
	if [ "$1" = art ]; then
		check_indexes test
		INDEXES=$(sort -n "$OUT/seen" | tail -1)
	fi
	rm -rf "$OUT/tree"
	suite_cluster_stop
}

# the number of art indexes that are there, every second
sqlalchemy_watch()
{
	until [ -f "$OUT/done" ]; do
		PGDATABASE=test sql "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
			WHERE amname = 'art' AND relkind = 'i'" >>"$OUT/seen"
		sleep 1
	done
}
