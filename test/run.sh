#!/bin/bash
#
# test/run.sh [part ...]
#	  Every test of artidx, in throwaway clusters; "make test" calls it.
#
# Parts: core, keys, regress, isolation, tap (or tap:NAME for one file), stress.
# Each prints its counts; the last line is "N passed, N failed", and the exit
# status is not zero when anything failed, or when a part ran no test at all.
#
#	STRESS_SECONDS	length of the SQL stress (60)
#	CORE_SECONDS	length of each threaded stress of the core (15)
#	CONNS			connections of test/t/005_connections.pl (500)
#	WERROR=1		warnings are errors
#	KEEP=1			keep the temporary directory
#	CI=true			smaller machine expected: nothing interactive
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PARTS=("$@")
[ ${#PARTS[@]} -gt 0 ] || PARTS=(core keys regress isolation tap stress)
: "${STRESS_SECONDS:=60}" "${CORE_SECONDS:=15}" "${CONNS:=500}"

for part in "${PARTS[@]}"; do
	case $part in
		core | keys | regress | isolation | tap | tap:* | stress) ;;
		*)
			art_die "no such part: $part (core, keys, regress, isolation, tap, tap:NAME, stress)"
			;;
	esac
done

TOTAL_PASSED=0
TOTAL_FAILED=0
SUMMARY=()

# tally NAME PASSED FAILED
tally()
{
	local passed=$2 failed=$3

	if [ $((passed + failed)) -eq 0 ]; then
		echo "# $1: no test ran, which is a failure"
		failed=1
	fi
	TOTAL_PASSED=$((TOTAL_PASSED + passed))
	TOTAL_FAILED=$((TOTAL_FAILED + failed))
	SUMMARY+=("$(printf '%-14s %5d passed %5d failed' "$1" "$passed" "$failed")")
	printf '## %s: %d passed, %d failed\n' "$1" "$passed" "$failed"
}

# count FILE REGEX
count()
{
	grep -E -c -- "$2" "$1"
}

# run_tap_log NAME LOG COMMAND...: a command that prints TAP lines; a failing
# exit status that no "not ok" line explains counts as one failure
run_tap_log()
{
	local name=$1 log=$2 passed failed rc

	shift 2
	as_user "$@" 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	# one line a test, or one a program with the number of its tests
	passed=$(awk '/^ok( |$)/ {
		n += match($0, /\([0-9]+ tests\)$/) ? substr($0, RSTART + 1) + 0 : 1
	} END { print n + 0 }' "$log")
	failed=$(count "$log" '^not ok [0-9]')
	[ "$failed" -gt 0 ] || failed=$(count "$log" '^not ok( |$)')
	if [ "$rc" -ne 0 ] && [ "$failed" -eq 0 ]; then
		echo "# $name: exit status $rc"
		failed=1
	fi
	tally "$name" "$passed" "$failed"
}

part_core()
{
	local t

	for t in check check-asan check-tsan check-tree; do
		echo "== core: $t"
		run_tap_log "core $t" "$WORK/logs/core-$t.log" \
			timeout -k 30 900 make -s -k --no-print-directory -C "$SRC/test/core" \
			SECONDS="$CORE_SECONDS" STRESS_SECONDS="$CORE_SECONDS" \
			WERROR="${WERROR:-0}" "$t"
	done
}

# pg_regress prints "test NAME ... ok" (15) or TAP (16 and later)
part_pg_regress()
{
	local name=$1 log=$WORK/logs/$1.log rc passed failed

	shift
	echo "== $name"
	as_user timeout -k 30 900 make -s --no-print-directory \
		PG_CONFIG="$PG_CONFIG" installcheck "$@" 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	passed=$(count "$log" '^(test .* \.\.\. ok|ok +[0-9]+ )')
	failed=$(count "$log" '^(test .* \.\.\. .*FAILED|not ok +[0-9]+ )')
	if [ "$rc" -ne 0 ]; then
		[ "$failed" -gt 0 ] || failed=1
		find "$SRC" -name regression.diffs -exec head -400 {} \; 2>/dev/null
		find "$SRC" -path '*tmp_*' -name postmaster.log \
			-exec grep -E 'PANIC|FATAL|TRAP|terminated by signal' {} \; |
			tail -20
	fi
	tally "$name" "$passed" "$failed"
}

# brute force over the key encodings: a module of its own, a server without
# artidx
part_keys()
{
	local dir=$SRC/test/modules/art_keytest

	if ! as_user make -s -C "$dir" PG_CONFIG="$PG_CONFIG" WERROR="${WERROR:-0}" \
		install >"$WORK/logs/keytest-build.log" 2>&1; then
		tail -20 "$WORK/logs/keytest-build.log"
		tally keys 0 1
		return
	fi
	part_pg_regress keys -C "$dir"
}

part_tap()
{
	local log=$WORK/logs/tap.log rc passed failed files pgxs_src

	if [ -n "${1:-}" ]; then
		files=("$SRC/test/t/${1%.pl}.pl")
		[ -f "${files[0]}" ] || art_die "no such test: $1"
	else
		files=("$SRC"/test/t/*.pl)
	fi
	echo "== tap"
	pgxs_src=$(dirname "$("$PG_CONFIG" --pgxs)")/..
	as_user mkdir -p "$WORK/tap"
	as_user env TESTDIR="$WORK/tap" PGPORT=65432 CONNS="$CONNS" \
		STRESS_SECONDS="$STRESS_SECONDS" \
		PG_REGRESS="$pgxs_src/test/regress/pg_regress" \
		timeout -k 30 1500 prove -v --nocolor -I "$pgxs_src/test/perl" \
		-I "$SRC/test/perl" "${files[@]}" >"$log" 2>&1
	rc=$?
	grep -E "^(not ok|#   (Failed|at |  +(got|expected)|['(])|.*\\.pl \\.\\.|Result|Files|  (Failed|Non-zero|Parse))" \
		"$log" | grep -v "^#   'std\|^# *'background_psql"
	passed=$(count "$log" '^ok [0-9]')
	failed=$(count "$log" '^not ok [0-9]')
	if [ $rc -ne 0 ] && [ "$failed" -eq 0 ]; then
		failed=1
	fi
	if [ "$failed" -gt 0 ]; then
		echo "# the end of the servers' logs:"
		find "$WORK/tap" -name '*.log' -path '*log*' 2>/dev/null |
			while IFS= read -r f; do
				echo "# --- ${f##*/}"
				grep -E 'PANIC|TRAP|terminated by signal|not ok|Bailout' "$f" |
					tail -5
			done
		tail -40 "$log"
	fi
	tally tap "$passed" "$failed"
}

part_stress()
{
	echo "== stress"
	run_tap_log stress "$WORK/logs/stress.log" env BIN="$BIN" WORK="$WORK" \
		STRESS_SECONDS="$STRESS_SECONDS" CLIENTS="${CLIENTS:-32}" \
		bash "$SRC/test/stress/stress.sh"
}

started=$(date +%s)
art_setup test
mkdir -p "$WORK/logs"

for part in "${PARTS[@]}"; do
	case $part in
		core) part_core ;;
		regress) part_pg_regress regress TAP_TESTS= ISOLATION= ;;
		keys) part_keys ;;
		isolation) part_pg_regress isolation TAP_TESTS= REGRESS= ;;
		tap) part_tap ;;
		tap:*) part_tap "${part#tap:}" ;;
		stress) part_stress ;;
	esac
done

echo
printf '%s\n' "${SUMMARY[@]}"
echo "total time: $(($(date +%s) - started)) s"
echo "$TOTAL_PASSED passed, $TOTAL_FAILED failed"
[ "$TOTAL_FAILED" -eq 0 ]
