# test/others/tpcc.sh
#	  TPC-C by go-tpc, and its consistency check (sourced).
#
# Its transactions are random, so the answers of two runs cannot be compared.  The check can:
# it has a query for each condition of consistency of the specification.  It is done after the
# load and after the run.
#
#	WAREHOUSES=2 TPCC_MINUTES=2 CLIENTS=8

tpcc_fetch()
{
	local program=$FETCHED/go-tpc-v1.0.12

	# the newest that the Go module proxy has, 1.0.7, knows no PostgreSQL; the modules that this one needs come from there
	VERSION=v1.0.12
	command -v go >/dev/null 2>&1 || { echo "go is needed"; return 1; }
	[ -x "$program" ] || { checkout gotpc "$VERSION" pingcap/go-tpc &&
		(cd "$WORK/gotpc" && GOPATH=$FETCHED/go GOFLAGS=-modcacherw go build -o "$program" ./cmd/go-tpc) || return 1; }
	cp "$program" "$WORK/go-tpc" && chmod 755 "$WORK/go-tpc"
}

# tpcc DATABASE COMMAND [OPTION]...
tpcc()
{
	limited "$WORK/go-tpc" tpcc "$2" -d postgres -H 127.0.0.1 -P "$PGPORT" -U "$PGUSER" -p none -D "$1" \
		--conn-params sslmode=disable --warehouses "${WAREHOUSES:-2}" "${@:3}"
}

# tpcc_step NAME COMMAND...: counts as passed if it ends well and tells of no error
tpcc_step()
{
	if "${@:2}" >"$OUT/$1.log" 2>&1 && ! grep -qiE 'error|failed|inconsisten|invalid' "$OUT/$1.log"; then
		echo "ok steps $1"
	else
		echo "failed steps $1"
		tail -5 "$OUT/$1.log" >&2
	fi >>"$OUT/outcomes"
}

tpcc_run()
{
	local TCP_PORT=$((40000 + 2 * (RANDOM % 10000)))

	# the two runs draw the same numbers, maybe
	[ "$1" = btree ] || TCP_PORT=$((TCP_PORT + 1))
	suite_cluster "$1" "shared_buffers = '256MB'"
	sql "CREATE DATABASE tpcc"
	tpcc_step prepare tpcc tpcc prepare --no-check --threads 2
	# or condition 10 reads the whole table for each customer
	PGDATABASE=tpcc sql "CREATE INDEX ON history (h_c_w_id, h_c_d_id, h_c_id)"
	PGDATABASE=tpcc sql "VACUUM ANALYZE"
	tpcc_step check-loaded tpcc tpcc check
	tpcc_step run tpcc tpcc run --time "${TPCC_MINUTES:-2}m" --threads "${CLIENTS:-8}"
	tpcc_step check-run tpcc tpcc check
	grep -E '^\[Summary\]|tpmC' "$OUT/run.log"
	art_only check_indexes tpcc
	suite_cluster_stop
}
