# test/others/sqlalchemy.sh
#	  SQLAlchemy's own tests, on psycopg (sourced).
#
# A group is a file.  --backend-only leaves out the tests that are not of a database: those of
# the text of statements, of classes, of memory and of call counts.
#
#	SQLALCHEMY_TESTS="test/engine"	these files and directories only

sqlalchemy_fetch()
{
	VERSION=2.1.9
	# the tests take the library beside them
	venv sqlalchemy 'psycopg[binary]==3.2.13' pytest==8.4.2 typing_extensions greenlet &&
		sdist "SQLAlchemy==$VERSION" d700a8b2edfb26282a470333d6bc4a454c4acda4d201a3bea7b72fa76c217d28 &&
		chmod -R a+rX "$WORK/SQLAlchemy" "$VENV" && cp "$OTHERS/outcomes.py" "$WORK/SQLAlchemy/" || return 1
	SQLALCHEMY=$VENV
	VERSION+=${SQLALCHEMY_TESTS:+ ($SQLALCHEMY_TESTS)}
}

sqlalchemy_run()
{
	suite_cluster "$1" "max_prepared_transactions = 10"
	sql "CREATE DATABASE test"
	PGDATABASE=test sql "CREATE SCHEMA test_schema; CREATE SCHEMA test_schema_2; CREATE EXTENSION citext; CREATE EXTENSION hstore"
	# a copy, since the tests write into their directory
	as_user cp -r "$WORK/SQLAlchemy" "$OUT/tree"
	cd "$OUT/tree" || return 1
	OUTCOMES=$OUT/outcomes PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$OUT/tree \
		limited "$SQLALCHEMY/bin/python" -m pytest -p outcomes -p no:cacheprovider -q --tb=short --backend-only --maxfail=100000 \
		--dburi "postgresql+psycopg://$PGUSER@/test?host=$PGHOST&port=$PGPORT" \
		${SQLALCHEMY_TESTS:-test/dialect/postgresql test/dialect/test_suite.py test/engine test/sql test/orm test/ext} \
		>"$OUT/log" 2>&1
	tail -3 "$OUT/log"
	cd "$SRC" || return 1
	art_only check_indexes test
	rm -rf "$OUT/tree"
	suite_cluster_stop
}
