#!/bin/bash
#
# test/coverage.sh [core] [glue]
#	  Which lines and branches of src do the tests run?  "make coverage" calls it.
#
# gcov counts, in builds without optimization and without functions that are always inline: gcov would count
# each copy of one apart (test/gcov.pl).  Only the code of this machine's PostgreSQL and processor is
# compiled, and so counted.  The core is counted under the tests of test/core, plain,
# with a tail buffer, pessimistically, and with sections as transactions.  The glue is counted under
# PARTS of test/run.sh.  A process that is killed, or that an immediate shutdown ends, leaves no counts.
# Prints lines and branches of each room, and the files below the goals.  Exit status 1 where a test
# failed, or the sum of the core or of the glue is below its goal.
#
#	PARTS		for the glue (regress isolation tap)
#	TAP_SCALE	per cent of the work of the core's tests (10)
#	TESTS		of the core's tests (all); with TESTS these run plain only
#	FLAVOURS	of the core's tests (plain tail elide pess)
#	ARTIDX_ENGINES	of the core's tests (art-olc art-rowex btree-optiql, and two of HydraList; test_tree
#				has all of test/engines)
#	RESULTS		uncovered.txt, FILE:LINE:TEXT of each line that did not run, goes there
#				(bench-results/coverage-<date>)
#	COPY		the directory to work in, which stays; counts in it grow with each run
#	EVIDENCE=1	the sums go to doc/evidence.md, of the core and of the glue in two sections
#
# test/coverage.list says of each file below the goal why the rest does not run.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CORE_LINES=97 CORE_BRANCHES=90 GLUE_LINES=93
: "${PARTS:=regress isolation tap}" "${TAP_SCALE:=10}" "${COPY:=}"
: "${RESULTS:=$TREE/bench-results/coverage-$(date +%Y%m%d-%H%M%S)}"
: "${FLAVOURS:=${TESTS:+plain}}"
: "${FLAVOURS:=plain tail elide pess}"
GOALS="The goals are $CORE_LINES % of lines and $CORE_BRANCHES % of branches of the core, and $GLUE_LINES % of lines of the glue."
FLAGS="-O0 -Dalways_inline=unused --coverage -fprofile-update=atomic -U_FORTIFY_SOURCE"
[ $# -gt 0 ] || set -- core glue
art_results_dir
art_need_packages
art_choose_user
BIN=/usr/bin
WORK=${COPY:-$(mktemp -d "${TMPDIR:-/tmp}/artidx-coverage.XXXXXX")}
[ -z "$COPY" ] || KEEP=1
mkdir -p "$WORK" && chmod 755 "$WORK" || exit 1
trap art_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
: >"$RESULTS/uncovered.txt"
bad=0

# report NAME TESTS SRC WHERE NAME=VALUE...: what gcov counted in the objects of WHERE
report()
{
	local name=$1 tests=$2 src=$3 where=$4 objects rows shows

	shift 4
	mapfile -t objects < <(cd "$where" && find . -name '*.gcda' | grep -v '^\./src/core/')
	(cd "$where" && as_user gcov --json-format --stdout -b "${objects[@]}" 2>/dev/null) |
		perl "$TREE/test/gcov.pl" "$src" "$RESULTS/uncovered.txt" list="$TREE/test/coverage.list" "$@" |
		tee "$RESULTS/$name.txt"
	[ "${PIPESTATUS[1]}" -eq 0 ] || bad=1
	# COPY has what earlier runs counted, too
	echo "$tests" >>"$WORK/$name.parts"
	shows="Which lines and branches of the $name run under $(sort -u "$WORK/$name.parts" | paste -sd';' | sed 's/;/; /g')"
	mapfile -t rows < <(grep -v 'no reason is given$' "$RESULTS/$name.txt" |
		sed -nE 's/^  ([^ ]+) +([0-9]+) lines +([0-9.]+ %) +([0-9]+) branches +([0-9.]+ %)  (.*)$/\1\n\3 of \2 lines, \5 of \4 branches: \6/p')
	art_evidence "coverage-$name" "bash test/coverage.sh $name" \
		"$shows. $GOALS Some files are below it: of these it is said why the rest does not run." \
		"in all" "$(tail -1 "$RESULTS/$name.txt")" "${rows[@]}" \
		"files below the goal, without a reason" "$(grep -c 'no reason is given$' "$RESULTS/$name.txt")"
}

# core_make ARGUMENT...: in test/core, with counters
core_make()
{
	as_user env TAP_SCALE="$TAP_SCALE" make -s -k -j2 --no-print-directory -C "$SRC/test/core" "$@" \
		HYDRA="hydra-olc hydra-mvrlu" plain_CFLAGS="$FLAGS -include coverage.h" pess_CFLAGS="$FLAGS -include coverage.h -DAX_MAX_RESTARTS=0" \
		plain_LIBS="-lurcu-cds --coverage" pess_LIBS="-lurcu-cds --coverage" || bad=1
}

core()
{
	local tests flavour some=${ARTIDX_ENGINES:-art-olc art-rowex btree-optiql}

	SRC=$WORK/core
	mkdir -p "$WORK/tmp"
	art_copy_tree
	# programs that measure
	rm "$SRC"/test/core/bench*.c
	[ "$(id -u)" -ne 0 ] || chown -R "$RUN_AS" "$WORK/tmp" "$SRC"
	tests=$(cd "$SRC/test/core" && printf '%s\n' test_*.c | sed 's/\.c$//' | grep -vxE 'test_schedules|test_tree' | xargs)
	for flavour in $FLAVOURS; do
		case $flavour in
			plain)
				core_make check-plain SECONDS=1 TESTS="${TESTS:-$tests}" STRUCTURES="$some"
				[ -n "${TESTS:-}" ] || core_make check-plain SECONDS=1 TESTS=test_tree
				;;
			tail) AX_TAIL=on core_make check-plain SECONDS=1 TESTS="test_stress test_stop" STRUCTURES="$some" ;;
			elide) core_make check-elide SECONDS=1 STRUCTURES="$some" ;;
			pess) core_make check-pess SECONDS=1 TESTS="test_tree test_oom test_stress" STRUCTURES="$some" ;;
			*) art_die "no such flavour: $flavour (plain, tail, elide, pess)" ;;
		esac
	done
	report core "${TESTS:-all tests of test/core} ($FLAVOURS)" "$SRC/src" "$SRC/test/core/build" only='^core/' lines=$CORE_LINES branches=$CORE_BRANCHES
}

glue()
{
	mkdir -p "$WORK/glue"
	# shellcheck disable=SC2086
	EVIDENCE=0 ART_COVERAGE=1 ART_WORK=$WORK/glue EXTRA_CFLAGS="$FLAGS" bash "$TREE/test/run.sh" $PARTS || bad=1
	report glue "$PARTS" "$WORK/glue/src/src" "$WORK/glue/src" only='^(?!core/)' lines=$GLUE_LINES
}

for part in "$@"; do
	case $part in
		core | glue) echo "=== $part"; "$part" ;;
		*) art_die "no such part: $part (core, glue)" ;;
	esac
done
echo "lines that did not run: $RESULTS/uncovered.txt"
exit $bad
