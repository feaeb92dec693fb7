# test/others/sqlite.sh
#	  SQLite's tests of indexes, keys, row values and orders, from Debian's source package
#	  (sourced).  They are Tcl.  tester.tcl says what of them is left here.  A group is a file, once
#	  with int for a column without a type, and once with text.
# orderby9 is left out: it asks for random numbers.
#
#	SQLITE_FILES="index unique"	these only

SQLITE_ALL="index index[0-9]* indexexpr[0-9] where where[0-9A-M] rowvalue rowvalue[0-9A] skipscan[0-9] unique unique2
	conflict conflict[23] upsert[1-5] insert insert[2-5] in[2-6] minmax minmax[2-4] orderby[1-8A] distinct distinct2
	descidx[1-3] intpkey between null nulls1 join join[2-9A-H] select[1-9A-G] autoindex[1-5] like like[23]"

sqlite_fetch()
{
	command -v tclsh >/dev/null 2>&1 || { echo "tclsh is needed"; return 1; }
	deb_source sqlite3 && cp "$OTHERS/tester.tcl" "$WORK/sqlite3/test/tester.tcl" && chmod -R a+rX "$WORK/sqlite3" || return 1
	VERSION+=${SQLITE_FILES:+ ($SQLITE_FILES)}
}

sqlite_run()
{
	local name untyped

	suite_cluster "$1"
	sql "CREATE DATABASE lite"
	cd "$WORK/sqlite3/test" || return 1
	for name in $(cd "$WORK/sqlite3/test" && ls $(printf '%s.test ' ${SQLITE_FILES:-$SQLITE_ALL}) 2>/dev/null); do
		for untyped in int text; do
			PGDATABASE=lite PSQL=$BIN/psql OUT=$OUT GROUP=${name%.test}.$untyped UNTYPED=$untyped \
				limited timeout 900 tclsh "$name" >>"$OUT/log" 2>&1 || echo "failed ${name%.test}.$untyped ended" >>"$OUT/outcomes"
			art_only check_indexes lite
		done
	done
	cd "$SRC" || return 1
	suite_cluster_stop
}
