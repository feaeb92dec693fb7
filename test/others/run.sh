#!/bin/bash
#
# test/others/run.sh
#	  Other people's test suites, once with every index btree and once with every index art:
#	  "make others" calls it.
#
# A suite is a file NAME.sh beside this one.  It has the functions NAME_fetch and NAME_run,
# or NAME_both (see there and README.md).  A run leaves two things: "outcomes", a line "ok",
# "failed" or "skipped" with a group and a name for each test, and results/GROUP.out, which
# are those lines if the suite does not write its own.  test/conformance/compare.pl compares
# the results, and explained/SUITE/GROUP says of each difference why, and how exactly.  Any
# other difference is a failure.  So are a suite that cannot be fetched or takes too long, a
# server that crashes, an art index that artidx_check() finds fault with, and a run whose
# statements made hardly any.  The two runs go on side by side.
#
#	SUITES="contrib django"	which; default all
#	OTHERS_CACHE=dir		keeps what was fetched
#	CONFORMANCE_SRC=dir, CONFORMANCE_CACHE=dir	PostgreSQL's source, as make conformance
#	DUCKDB_SRC=dir, PGTAP_SRC=dir, PARTMAN_SRC=dir, GOTPC_SRC=dir	git repositories, instead of cloning them
#	MINUTES=60				how long sqlsmith goes on
#	LIMIT_MINUTES=60		what the two runs of a suite may take
#	RESULTS=dir				default: bench-results/others-<date> in the tree
#	ACCEPT=1				write the differences of now into explained/, as in make conformance
#	KEEP=1					keep the temporary directory
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
. "$TREE/test/conformance/fetch.sh"

ALL="contrib sqlsmith django sqlalchemy tpcc duckdb sqlite pgtap partman"
: "${SUITES:=$ALL}" "${MINUTES:=60}" "${LIMIT_MINUTES:=60}"
: "${RESULTS:=$TREE/bench-results/others-$(date +%Y%m%d-%H%M%S)}"
OTHERS=$TREE/test/others
art_whole_numbers 1 MINUTES LIMIT_MINUTES
for suite in $SUITES; do
	[[ " $ALL " == *" $suite "* ]] || art_die "no such suite: $suite ($ALL)"
	. "$OTHERS/$suite.sh"
done
art_results_dir
ROWS=()
FAILED=0
# with fewer art indexes a suite tests nothing
LEAST_MADE=10

# wrong TEXT: the suite has failed, for this reason
wrong()
{
	echo "## $suite: $*" | tee -a "$WORK/out/$suite/wrong"
}

# total FILE: the sum of the numbers in a file of the suite
total()
{
	cat "$WORK/out/$suite/$1" 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

# in_time STATUS: and return it
in_time()
{
	[ "$1" -ne 124 ] && [ "$1" -ne 137 ] || wrong "its time of $LIMIT_MINUTES minutes was over"
	return "$1"
}

# limited COMMAND...: no longer than a run may take; limited_user: as the servers' user
limited()
{
	timeout -k 30 "$((DEADLINE > SECONDS ? DEADLINE - SECONDS : 1))" "$@"
	in_time $?
}

limited_user()
{
	as_user timeout -k 30 "$((DEADLINE > SECONDS ? DEADLINE - SECONDS : 1))" "$@"
	in_time $?
}

# debs PACKAGE...: Debian's packages into the private installation, and those that they need
# and this machine has not.  Nothing is installed.
debs()
{
	local dir=$WORK/debs deb

	mkdir -p "$dir"
	(cd "$dir" && apt-get -qq install --print-uris --no-install-recommends "$@" |
		sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p" | xargs -r apt-get -qq download) >"$WORK/debs.log" 2>&1 ||
		{ cat "$WORK/debs.log"; return 1; }
	for deb in "$dir"/*.deb; do
		[ ! -f "$deb" ] || dpkg-deb -x "$deb" "$ROOT" || return 1
	done
	rm -rf "$dir"
}

# deb_source PACKAGE: the upstream part of Debian's source package, unpacked in WORK/PACKAGE;
# sets VERSION
deb_source()
{
	local dir=$FETCHED/$1 archive

	mkdir -p "$dir" "$WORK/$1"
	ls "$dir"/*.orig.tar.* >/dev/null 2>&1 || art_fetch_source "$dir" "$1" || return 1
	archive=$(ls "$dir/$1"_*.orig.tar.* | grep -v '\.asc$' | sort -V | tail -1)
	VERSION=$(basename "$archive" | sed 's/^[^_]*_//; s/\.orig\.tar.*//')
	tar -C "$WORK/$1" --strip-components=1 -xf "$archive"
}

# checkout NAME TAG REPOSITORY [DIR...]: a public git repository, or these directories of it, in WORK/NAME.
# It is cloned, unless NAME_SRC says where it is (a work tree or a bare one).
checkout()
{
	local given=${1^^}_SRC dir sub

	dir=${!given:-$FETCHED/$1.git}
	[ -d "$dir" ] || timeout 900 git clone -q --bare --depth 1 --branch "$2" "https://github.com/$3" "$dir" || return 1
	mkdir -p "$WORK/$1"
	# one by one: a repository may lack the large files of others
	(
		set -o pipefail
		[ $# -gt 3 ] || git -c safe.directory='*' -C "$dir" archive "$2" | tar -C "$WORK/$1" -xf - || exit 1
		for sub in "${@:4}"; do
			git -c safe.directory='*' -C "$dir" archive --prefix="$sub/" "$2:$sub" | tar -C "$WORK/$1" -xf - || exit 1
		done
	) || return 1
	chmod -R a+rX "$WORK/$1"
}

# tap_files DATABASE DIR PATTERN...: psql runs each of them; a group is a file of pgTAP's tests.
# With art the indexes are checked before the test rolls them back.
tap_files()
{
	local file group checks=

	cd "$2" || return 1
	[ "$WHICH" = btree ] || checks="RESET ROLE; SET LOCAL search_path = art_here, public;
		\\o | cat >>$WORK/out/$suite/checked
		SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = 'art' AND relkind = 'i';
		\\o
		\\i $TREE/test/conformance/check.sql"
	# shellcheck disable=SC2048
	for file in ${*:3}; do
		group=$(basename "$file" .sql)
		CHECKS=$checks awk 'toupper($1) == "ROLLBACK;" { print ENVIRON["CHECKS"] } { print }' "$file" >"$OUT/test.sql"
		PGDATABASE=$1 limited "$BIN/psql" -X -q -A -t <"$OUT/test.sql" >"$OUT/results/$group.out" 2>&1
		sed -nE "s/^ok ([0-9]+).*/ok $group \1/p; s/^not ok ([0-9]+).*/failed $group \1/p; s/.*(ERROR|FATAL): .*/failed $group error/p" \
			"$OUT/results/$group.out" >>"$OUT/outcomes"
	done
	cd "$SRC" || return 1
}

# venv NAME [PIP'S ARGUMENTS]...: an environment of Python in VENV.  Its programs run as the user
# of this script, who can read the Python that it is made of.
venv()
{
	VENV=$WORK/venv-$1
	[ -d "$VENV" ] || python3 -m venv --without-pip "$VENV" || return 1
	python3 -m pip -q --disable-pip-version-check --python "$VENV/bin/python" install "${@:2}"
}

# sdist NAME==VERSION SHA256: PyPI's source archive, unpacked in WORK/NAME
sdist()
{
	local name=${1%==*} archive

	mkdir -p "$FETCHED/$name" "$WORK/$name"
	archive=$(ls "$FETCHED/$name"/*-"${1#*==}".tar.gz 2>/dev/null)
	if [ -z "$archive" ]; then
		python3 -m pip -q --disable-pip-version-check download --no-deps --no-binary "$name" -d "$FETCHED/$name" "$1" ||
			return 1
		archive=$(ls "$FETCHED/$name"/*-"${1#*==}".tar.gz)
	fi
	sha256sum -c --quiet <<<"$2  $archive" || return 1
	tar -C "$WORK/$name" --strip-components=1 -xf "$archive"
}

# suite_cluster WHICH [SETTING=VALUE...]: a server, and the extension in every database that is
# made from template1; LIBRARIES are preloaded beside it.  TCP_PORT is one on the loopback interface.
suite_cluster()
{
	local which=$1 libraries=${LIBRARIES:-} socket=$WORK/tmp/$1 port=${TCP_PORT:-65439}

	shift
	if [ "$which" = art ]; then
		libraries="artidx, $MADETEST${libraries:+, $libraries}"
		set -- "$@" "artidx.memory = '1GB'" "artidx.replace_btree = 'all'"
	fi
	as_user mkdir -p "$socket"
	# the server's own clients (dblink) go by its environment
	export PGHOST=$socket PGPORT=$port PGUSER=artidx
	art_cluster "$suite-$which" "fsync = off" "log_line_prefix = '%m %b[%p] %q%a '" \
		"shared_preload_libraries = '$libraries'" "unix_socket_directories = '$socket'" "port = $port" \
		"listen_addresses = '${TCP_PORT:+127.0.0.1}'" "$@"
	export PGHOST=$socket PGPORT=$port
	# in a schema that is not the user's own by its name
	[ "$which" = btree ] || PGDATABASE=template1 sql "CREATE SCHEMA art_here; GRANT USAGE ON SCHEMA art_here TO PUBLIC;
		CREATE EXTENSION artidx SCHEMA art_here"
}

# suite_cluster_stop WHICH: and look whether a process of it crashed
suite_cluster_stop()
{
	art_cluster_stop
	cp "$DATA.log" "$OUT/server.log"
	grep -c 'art_madetest: an art index' "$DATA.log" >>"$WORK/out/$suite/made"
	! grep -E 'PANIC|TRAP|terminated by signal' "$DATA.log" || wrong "a server process crashed"
	rm -rf "$DATA"
}

# check_indexes DATABASE: each art index there against its table
check_indexes()
{
	local n faults

	n=$(PGDATABASE=$1 sql "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE amname = 'art' AND relkind = 'i'") || { wrong "no database $1"; return; }
	faults=$(PGDATABASE=$1 PGOPTIONS="-c search_path=art_here,public" as_user "$BIN/psql" -X -q -A -t \
		-f "$TREE/test/conformance/check.sql" 2>&1)
	echo "$n" >>"$WORK/out/$suite/checked"
	[ -z "$faults" ] || wrong "artidx_check in $1: $faults"
}

# art_only COMMAND...: in the run with art
art_only()
{
	[ "$WHICH" = btree ] || "$@"
}

# run_once btree|art: one of the two runs
run_once()
{
	local started=$SECONDS

	WHICH=$1
	OUT=$WORK/out/$suite/$WHICH
	DEADLINE=$((SECONDS + 60 * LIMIT_MINUTES))
	as_user mkdir -p "$OUT/results"
	"${suite}_run" "$WHICH" || wrong "the run with $WHICH ended badly"
	art_say "$suite with $WHICH: $((SECONDS - started)) s"
}

# split_outcomes DIR: results/GROUP.out from the outcomes
split_outcomes()
{
	ls "$1/results/"*.out >/dev/null 2>&1 && return
	LC_ALL=C sort "$1/outcomes" | awk -v dir="$1/results" '{
		file = dir "/" $2 ".out"; $2 = ""; print >>file; close(file) }'
}

# verdict: compare the two runs of a suite; its row of the table into ROWS
verdict()
{
	local dir=$WORK/out/$suite accepting=() which line counts=() same all

	[ "${ACCEPT:-0}" != 1 ] || accepting=(--accept)
	for which in btree art; do
		[ -s "$dir/$which/outcomes" ] || { wrong "no outcomes with $which"; touch "$dir/$which/outcomes"; }
		split_outcomes "$dir/$which"
		counts+=("$(grep -c '^ok ' "$dir/$which/outcomes") of $(grep -vc '^skipped ' "$dir/$which/outcomes")")
	done
	{
		printf 'test:'
		cd "$dir" && ls btree/results art/results | sed -n 's/\.out$//p' | sort -u | sed 's/^/ /' | tr -d '\n'
		echo
	} >"$dir/schedule"
	perl "$TREE/test/conformance/compare.pl" "${accepting[@]}" "$suite" "$dir/schedule" \
		"$dir/btree/results" "$dir/art/results" "$OTHERS/explained" "$RESULTS/diffs" >"$dir/verdict" 2>&1 ||
		wrong "differences that nobody explains"
	cat "$dir/verdict"
	line=$(tail -1 "$dir/verdict")
	read -r same all < <(sed -nE 's/^## .*: ([0-9]+) of ([0-9]+) identical.*/\1 \2/p' <<<"$line")
	ROWS+=("$suite|$VERSION|${counts[0]}|${counts[1]}|$((${all:-0} - ${same:-0})) of ${all:-0}|$(
		sed -nE 's/.*, ([0-9]+) explained.*/\1/p' <<<"$line")|$(total made)|$(total checked)")
	mkdir -p "$RESULTS/$suite"
	cp -r "$dir/." "$RESULTS/$suite/"
}

# one_suite: fetch, run, judge
one_suite()
{
	local began=$SECONDS end

	VERSION='' FETCHED=${OTHERS_CACHE:-$WORK/fetched}
	mkdir -p "$RESULTS/diffs" "$FETCHED"
	as_user mkdir -p "$WORK/out/$suite"
	if ! "${suite}_fetch"; then
		wrong "it could not be fetched"
		ROWS+=("$suite|||||not fetched||")
	else
		if declare -F "${suite}_both" >/dev/null; then
			"${suite}_both" || wrong "it ended badly"
		else
			run_once btree &
			run_once art &
			wait
		fi
		[ "$(total made)" -ge "$LEAST_MADE" ] || wrong "it made hardly any art index: $(total made)"
		verdict
	fi
	end=passed
	[ ! -s "$WORK/out/$suite/wrong" ] || { end=FAILED; FAILED=$((FAILED + 1)); }
	ROWS[-1]+="|$(((SECONDS - began + 59) / 60))|$end"
}

art_setup others
trap 'kill $(jobs -p) 2>/dev/null; exit 143' INT TERM HUP
as_user make -s -C test/modules/art_madetest PG_CONFIG="$PG_CONFIG" all >>"$WORK/build.log" 2>&1 ||
	{ tail -30 "$WORK/build.log" >&2; art_die "art_madetest does not build"; }
MADETEST=$SRC/test/modules/art_madetest/art_madetest
case $("$PG_CONFIG" --version) in
	"PostgreSQL 15"*) ;;
	*) art_die "what is explained is explained for PostgreSQL 15: give PG_CONFIG" ;;
esac
PGXS_TEST=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
for suite in $SUITES; do
	one_suite
done
{
	echo "| suite | version | passed on btree | passed on art | groups that differ | explained | art indexes made | checked | minutes | |"
	echo "|---|---|---|---|---|---|---|---|---|---|"
	printf '%s\n' "${ROWS[@]}" | sed 's/|/ | /g; s/^/| /; s/$/ |/'
} | tee "$RESULTS/table.md"
# the suites that did not run now keep what they came to
figures=()
if [ "${EVIDENCE:-0}" = 1 ] && [ -f "$TREE/doc/evidence/others.tsv" ]; then
	while IFS=$'\t' read -r name value; do
		[[ $name == \#* || $name == label || " $SUITES " == *" ${name%% *} "* ]] || figures+=("$name" "$value")
	done <"$TREE/doc/evidence/others.tsv"
fi
for row in "${ROWS[@]}"; do
	IFS='|' read -r name version btree art differ explained made checked minutes end <<<"$row"
	figures+=("$name${version:+ $version}" "$end: passed on btree $btree, on art $art; groups that differ $differ, explained $explained; art indexes made $made, checked at the end $checked; $minutes minutes, $(date -u +%F), commit ${EVIDENCE_COMMIT:-unknown}")
done
art_evidence others "make others" \
	"Test suites of other projects ran with every index btree and with every index art. Each difference is explained or a failure." \
	"${figures[@]}"
echo "$((${#ROWS[@]} - FAILED)) passed, $FAILED failed"
exit $((FAILED > 0))
