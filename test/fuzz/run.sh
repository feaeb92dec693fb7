#!/bin/bash
#
# run.sh replay|fuzz NAME...
#	  Runs fuzz targets that are built: one line each.  Exit status 1 at a finding.
#
#	MUTATIONS		replay: how many of each corpus (3000; of the trees' a sixth)
#	SECONDS_EACH	fuzz: how long each (30)
#	KEEP			fuzz: a directory for the inputs that reach more than the corpus does
#	EVIDENCE=1		fuzz: the counts go to doc/evidence.md
#
cd "$(dirname "$0")" || exit 1
what=$1
shift
bad=0
said=()
[ "${EVIDENCE:-0}" != 1 ] || export EVIDENCE_BEGAN=${EVIDENCE_BEGAN:-$(date +%s)}
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:$ASAN_OPTIONS
export UBSAN_OPTIONS=print_stacktrace=1:$UBSAN_OPTIONS

# replay NAME
replay()
{
	local began=$SECONDS log=build/gcc/$1.log n=${MUTATIONS:-3000} rc

	case $1 in operations | compared) n=$((n / 6)) ;; esac
	timeout "${TIMEOUT:-900}" "build/gcc/$1" "corpus/$1" "$n" >"$log" 2>&1
	rc=$?
	if [ $rc -eq 0 ] && grep -q '^ok' "$log"; then
		sed -n "s/^ok - fuzz \(.*\) (\([0-9]*\) tests)/ok - fuzz \1 $((SECONDS - began)) s (\2 tests)/p" "$log"
		return 0
	fi
	echo "not ok - fuzz $1: exit status $rc"
	tail -c 6000 "$log" | tail -60
	return 1
}

# fuzz NAME
fuzz()
{
	local dir log=build/clang/$1.log rc found came_to

	dir=$(mktemp -d "${TMPDIR:-/tmp}/artidx-fuzz.XXXXXX") || return 1
	mkdir "$dir/seeds" "$dir/new"
	"build/gcc/$1" -x "corpus/$1" "$dir/seeds" >/dev/null || return 1
	mkdir -p build/findings
	"build/clang/$1" -max_total_time="${SECONDS_EACH:-30}" -max_len=2048 -len_control=0 -timeout=200 -rss_limit_mb=3000 \
		-print_final_stats=1 -artifact_prefix="$PWD/build/findings/$1-" ${FUZZ_OPTIONS:-} \
		"$dir/new" "$dir/seeds" >"$log" 2>&1
	rc=$?
	found=$(sed -n 's/.*Test unit written to //p' "$log")
	came_to="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions, $(
		sed -n 's/.*\(cov: [0-9]* ft: [0-9]*\).*/\1/p' "$log" | tail -1), $(grep -vc '^#' "corpus/$1") of the corpus"
	said+=("$1" "$came_to; $([ $rc -eq 0 ] && echo no finding || echo a finding)")
	printf '%s - fuzz %s: %s\n' "$([ $rc -eq 0 ] && echo ok || echo 'not ok')" "$1" "$came_to"
	if [ -n "${KEEP:-}" ]; then
		mkdir -p "$KEEP/$1"
		"build/clang/$1" -merge=1 "$KEEP/$1" "$dir/seeds" "$dir/new" >/dev/null 2>&1
	fi
	rm -rf "$dir"
	[ $rc -ne 0 ] || return 0
	echo "the input: ${found:-none was written}"
	[ -z "$found" ] || "build/gcc/$1" -c "$(dirname "$found")" | tail -1
	tail -60 "$log"
	return 1
}

for name in "$@"; do
	"$what" "$name" || bad=1
done
[ "$what" != fuzz ] || EVIDENCE_SERVER=none bash ../evidence.sh fuzz "make fuzz SECONDS=${SECONDS_EACH:-30} NAMES=\"$*\"" \
	"libFuzzer looked for inputs that reach new code, with the sanitizers of addresses and undefined behaviour, so long for each target." "${said[@]}"
exit $bad
