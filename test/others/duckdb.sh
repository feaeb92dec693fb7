# test/others/duckdb.sh
#	  DuckDB's tests of its indexes (of the same kind as ours), keys and upserts, in the form of
#	  sqllogictest (sourced).  logic.py runs them.
#
# No registry of packages has them, so they come by checkout.

duckdb_fetch()
{
	VERSION=v1.5.5
	checkout duckdb "$VERSION" duckdb/duckdb test/sql/index test/sql/constraints test/sql/upsert &&
		venv tools 'psycopg[binary]==3.2.13' && cp "$OTHERS/logic.py" "$WORK/logic.py" && chmod -R a+rX "$WORK/duckdb" "$VENV"
}

duckdb_run()
{
	local files check=()

	[ "$1" = btree ] || check=(--check "$TREE/test/conformance/check.sql")
	suite_cluster "$1"
	mapfile -t files < <(find "$WORK/duckdb/test/sql" -name '*.test' | sort)
	sql "CREATE DATABASE logic"
	PGDATABASE=logic limited "$VENV/bin/python" "$WORK/logic.py" --out "$OUT" --top "$WORK/duckdb/test/sql" "${check[@]}" \
		"${files[@]}"
	suite_cluster_stop
}
