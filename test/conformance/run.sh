#!/bin/bash
#
# test/conformance/run.sh
#	  PostgreSQL's own regression tests and isolation specs, once as they are
#	  and once with every index in memory; "make conformance" calls it.
#
# Each suite runs several times on the same installation, on a fresh cluster each
# time: without artidx, and for each of SETTINGS with it preloaded, the extension
# in the tests' database and artidx.replace_btree set so: then the tests' own CREATE
# INDEX makes art indexes, and with "all" their constraints and primary keys do,
# too.  USING btree is taken out of them for all runs, since the setting obeys it.
# The results are compared with those without artidx and not
# with those that came with the tests, so that the minor versions of server and
# tests may differ.  test/conformance/explained says of each test that differs
# why, and how exactly: any other difference is a failure.  So are a crash, an
# art index that artidx_check() finds fault with at the end, and a run in which
# hardly any index became one.
#
#	SUITES="regress isolation"
#	SETTINGS="indexes all"
#	CONFORMANCE_SRC=dir		an unpacked source tree of PostgreSQL 15; else Debian's
#							source package is fetched
#	CONFORMANCE_CACHE=dir	keeps what was fetched
#	RESULTS=dir				keeps results, differences and server logs
#	ACCEPT=1				write the differences of now into explained/; see there
#	KEEP=1					keep the temporary directory
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/fetch.sh"

: "${SUITES:=regress isolation}" "${SETTINGS:=indexes all}"
for suite in $SUITES; do
	case $suite in
		regress | isolation) ;;
		*) art_die "no such suite: $suite (regress, isolation)" ;;
	esac
done
for setting in $SETTINGS; do
	case $setting in
		indexes | all) ;;
		*) art_die "no such setting: $setting (indexes, all)" ;;
	esac
done
RESULTS=${RESULTS:+$(mkdir -p "$RESULTS" && cd "$RESULTS" && pwd)}
FAILED=0

# Copies of a suite's tests, whose indexes leave the access method to the setting.
leave_out_using()
{
	local dir=$WORK/tests/$1

	mkdir -p "$WORK/tests"
	cp -r "$PGSRC/src/test/$1" "$dir" || art_die "no src/test/$1 in $PGSRC"
	art_leave_out_using "$dir"
}

# What pg_regress gives the servers that it starts itself.
settings()
{
	echo "max_prepared_transactions = 2"
	echo "max_connections = 100"
	echo "log_line_prefix = '%m %b[%p] %q%a '"
	echo "log_lock_waits = on"
	echo "fsync = off"
	if [ "$1" != btree ]; then
		echo "shared_preload_libraries = 'artidx'"
		echo "artidx.memory = '512MB'"
		# not in PGOPTIONS: some tests connect as users who may not set it
		echo "artidx.replace_btree = '$1'"
	fi
}

# run_suite SUITE btree|indexes|all: its results are in WORK/out/SUITE-WHICH/results
run_suite()
{
	local suite=$1 which=$2 out=$WORK/out/$1-$2 started lines
	local args=() program

	mapfile -t lines < <(settings "$which")
	as_user mkdir -p "$out"
	art_cluster "$suite-$which" "${lines[@]}"
	if [ "$which" != btree ]; then
		args=(--load-extension=artidx)
	fi
	case $suite in
		regress)
			program=regress/pg_regress
			args+=("--dlpath=$WORK/modules" --max-concurrent-tests=20
				"--schedule=$WORK/tests/regress/parallel_schedule")
			;;
		isolation)
			program=isolation/pg_isolation_regress
			args+=("--schedule=$WORK/tests/isolation/isolation_schedule")
			;;
	esac
	started=$(date +%s)
	(
		cd "$out" || exit 1
		# its exit status is about expected/, which is not what is asked here
		as_user PGISOLATIONTIMEOUT="$STEP_SECONDS" timeout -k 30 "$TIME_LIMIT" \
			"$PGXS_TEST/$program" \
			--host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
			--bindir="$BIN" --inputdir="$WORK/tests/$suite" \
			--outputdir="$out" "${args[@]}"
	) >"$out/log" 2>&1
	art_say "$suite with $which: $(($(date +%s) - started)) s"
	[ -d "$out/results" ] || { tail -20 "$out/log" >&2; art_die "$suite did not run"; }
	if [ "$which" != btree ] && [ "$suite" = regress ]; then
		check_indexes
	fi
	art_cluster_stop
	cp "$DATA.log" "$out/server.log"
	if grep -E 'PANIC|TRAP|terminated by signal' "$DATA.log"; then
		echo "## $suite: a server process crashed"
		FAILED=1
	fi
}

# Every art index that the regression tests left behind, against its table.
check_indexes()
{
	local n bad

	export PGDATABASE=regression
	n=$(sql "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE amname = 'art' AND relkind = 'i'")
	as_user "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=0 \
		-f "$TREE/test/conformance/check.sql" >"$WORK/out/check" 2>&1
	bad=$(grep -c . "$WORK/out/check")
	echo "## $n art indexes left by the regression tests, faults: $bad"
	head -50 "$WORK/out/check"
	[ "${n:-0}" -ge "$LEAST_INDEXES" ] ||
		{ echo "## less than $LEAST_INDEXES: the tests were not run on art"; FAILED=1; }
	[ "$bad" -eq 0 ] || FAILED=1
	export PGDATABASE=postgres
}

# one suite on one server; and what a step of an isolation spec may wait, since
# a step that blocks where none should would wait for ever otherwise
TIME_LIMIT=1800
STEP_SECONDS=20
LEAST_INDEXES=60

art_setup conformance
case $("$PG_CONFIG" --version) in
	"PostgreSQL 15"*) ;;
	*) art_die "what is explained is explained for PostgreSQL 15: give PG_CONFIG" ;;
esac
PGXS_TEST=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
art_pg_source || exit 1
art_pg_modules
as_user mkdir -p "$WORK/out"
mkdir -p "${RESULTS:-$WORK}/diffs"

EVIDENCE_ROWS=()
ACCEPTING=()
[ "${ACCEPT:-0}" = 1 ] && ACCEPTING=(--accept)
for suite in $SUITES; do
	case $suite in
		regress) schedule=parallel_schedule ;;
		isolation) schedule=isolation_schedule ;;
	esac
	leave_out_using "$suite"
	run_suite "$suite" btree
	for setting in $SETTINGS; do
		explained=$TREE/test/conformance/explained/$setting
		# what all does to a test is often what indexes does
		[ "$setting" = indexes ] ||
			explained+=":$TREE/test/conformance/explained/indexes"
		run_suite "$suite" "$setting"
		perl "$TREE/test/conformance/compare.pl" "${ACCEPTING[@]}" "$suite" \
			"$PGSRC/src/test/$suite/$schedule" \
			"$WORK/out/$suite-btree/results" "$WORK/out/$suite-$setting/results" \
			"$explained" "${RESULTS:-$WORK}/diffs/$setting" >"$WORK/verdict" || FAILED=1
		sed "s/^## $suite: /## $suite, $setting: /" "$WORK/verdict"
		EVIDENCE_ROWS+=("$suite, replace_btree = $setting" "$(sed -n "s/^## $suite: //p" "$WORK/verdict" | paste -sd';' | sed 's/;/; /g')")
	done
	[ -z "$RESULTS" ] || cp -r "$WORK/out/$suite"-* "$RESULTS/"
done
art_evidence conformance "make conformance" \
	"PostgreSQL's own tests ran with art where they say btree, and every result was compared with that of btree." \
	"${EVIDENCE_ROWS[@]}" "unexplained differences, crashes or faults" "$([ $FAILED -eq 0 ] && echo none || echo some)"
exit $FAILED
