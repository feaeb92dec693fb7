# test/others/duckdb.sh
#	  DuckDB's tests of its indexes (of the same kind as ours), keys and upserts, in the form of
#	  sqllogictest (sourced).  logic.py runs them.
#
# No registry of packages has them, so they come from a checkout, DUCKDB_SRC, or by git from
# DuckDB's repository.

DUCKDB_DIRS="test/sql/index test/sql/constraints test/sql/upsert"

duckdb_fetch()
{
	local dir=$FETCHED/duckdb

	VERSION=v1.5.5
	if [ -n "${DUCKDB_SRC:-}" ]; then
		dir=$DUCKDB_SRC
		VERSION=$(git -C "$dir" describe --tags 2>/dev/null || echo "DUCKDB_SRC")
	elif [ ! -d "$dir/test/sql/index" ]; then
		timeout 600 git clone -q --depth 1 --branch "$VERSION" --filter=blob:none --sparse https://github.com/duckdb/duckdb "$dir" &&
			git -C "$dir" sparse-checkout set $DUCKDB_DIRS || return 1
	fi
	mkdir -p "$WORK/duckdb" && (cd "$dir" && tar -cf - $DUCKDB_DIRS) | tar -C "$WORK/duckdb" -xf - || return 1
	venv duckdb 'psycopg[binary]==3.2.13' && cp "$OTHERS/logic.py" "$WORK/logic.py" && chmod -R a+rX "$WORK/duckdb" "$VENV"
}

duckdb_run()
{
	local files

	suite_cluster "$1"
	# as many files as are of use: those that wait for a big machine are not
	mapfile -t files < <(find "$WORK/duckdb/test/sql" -name '*.test' | sort)
	sql "CREATE DATABASE logic"
	# its schemas go away with each file: what is there in between is looked at by the last one
	PGDATABASE=logic limited "$VENV/bin/python" "$WORK/logic.py" --out "$OUT" --top "$WORK/duckdb/test/sql" "${files[@]}"
	art_only check_indexes logic
	suite_cluster_stop
}
