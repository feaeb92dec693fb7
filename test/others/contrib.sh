# test/others/contrib.sh
#	  PostgreSQL's contrib modules: their regression tests and isolation specs (sourced).
#
# USING btree is taken out of them, since the setting obeys it.  A group is one test,
# MODULE.TEST, and its result is psql's output.  A test is "ok" if the output is the one that
# came with it; the comparison does not look at that, since server and tests may be of
# different minor versions.
#
#	CONTRIB_MODULES="citext ltree"	these only

contrib_fetch()
{
	art_pg_source && debs postgresql-plperl-15 postgresql-plpython3-15 || return 1
	VERSION=$(basename "$(ls -d "${CONFORMANCE_CACHE:-$WORK/source}"/postgresql-15_*.orig.tar.* 2>/dev/null | head -1)" |
		sed 's/^[^_]*_//; s/\.orig.*//')${CONTRIB_MODULES:+ ($CONTRIB_MODULES)}
	art_pg_modules
	cp -r "$PGSRC/contrib" "$WORK/contrib" && art_leave_out_using "$WORK/contrib"
}

# contrib_tests MODULE VARIABLE: what its Makefile says
contrib_tests()
{
	make -s -C "$WORK/contrib/$1" USE_PGXS=1 PG_CONFIG="$PG_CONFIG" --eval="print-it: ; @echo \$($2)" print-it 2>/dev/null
}

# contrib_module NAME PROGRAM TESTS...
contrib_module()
{
	local dir=$OUT/modules/$1 name

	as_user cp -r "$WORK/contrib/$1" "$dir"
	# made of template1, where the extension is in a schema of its own
	sql "DROP DATABASE IF EXISTS contrib_regression" && sql "CREATE DATABASE contrib_regression"
	# its exit status is about expected/, which is not what is asked here
	[ "$1" != pg_stat_statements ] || sql "ALTER DATABASE contrib_regression SET compute_query_id = on"
	cd "$dir" || return
	limited_user "$PGXS_TEST/$2" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
		--bindir="$BIN" --inputdir="$dir" --outputdir="$dir/out" --dlpath="$WORK/modules" \
		--dbname=contrib_regression --use-existing "${@:3}" >"$OUT/$1.log" 2>&1
	cd "$SRC" || return
	sed -nE "s/^(test|    ) +([^ ]+) +\.\.\. ok .*/ok $1.\2 \2/p; s/^(test|    ) +([^ ]+) +\.\.\. FAILED.*/failed $1.\2 \2/p" \
		"$OUT/$1.log" >>"$OUT/outcomes"
	for name in "${@:3}"; do
		cp "$dir/out/results/$name.out" "$OUT/results/$1.$name.out" || tail -3 "$OUT/$1.log"
	done
	art_only check_indexes contrib_regression
	rm -rf "$dir"
}

contrib_run()
{
	local module tests

	as_user mkdir -p "$OUT/modules"
	LIBRARIES=pg_stat_statements suite_cluster "$1" "wal_level = logical" "max_replication_slots = 10" \
		"max_prepared_transactions = 10" "logical_decoding_work_mem = '64kB'" \
		"compute_query_id = off"
	for module in ${CONTRIB_MODULES:-$(cd "$WORK/contrib" && ls -d */ | tr -d /)}; do
		# sepgsql needs a system with SELinux
		[ "$module" != sepgsql ] || continue
		tests=$(contrib_tests "$module" REGRESS)
		[ -z "$tests" ] || contrib_module "$module" regress/pg_regress $tests
		tests=$(contrib_tests "$module" ISOLATION)
		[ -z "$tests" ] || contrib_module "$module" isolation/pg_isolation_regress $tests
	done
	suite_cluster_stop
}
