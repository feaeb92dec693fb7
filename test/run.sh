#!/bin/bash
#
# test/run.sh [part ...]
#	  Every test of artidx, in throwaway clusters; "make test" calls it.
#
# Parts: core, keys, regress, isolation, tap, stress; and, only when named, quick
# (the short core tests of "make check"), models (spin), helgrind and count
# (valgrind).  core:, regress:, isolation: and tap:NAME,NAME... run these tests
# alone: programs of test/core (plain and under ASan, then TSan), files of sql, of
# test/isolation/specs, of test/t.
# Each prints its counts; the last line is "N passed, N failed", and the exit
# status is not zero when anything failed, or when a part ran no test at all.
#
#	STRESS_SECONDS	length of the SQL stress of each structure (15)
#	CORE_SECONDS	length of each threaded stress of the core (15)
#	TAP_SCALE		per cent of the work that the core's tests do (100)
#	CONNS			connections of test/t/005_connections.pl (500)
#	TAP_JOBS		files of test/t at a time (2)
#	TAP_TIMEOUT		seconds that one of them may take (900)
#	WERROR=1		warnings are errors
#	KEEP=1			keep the temporary directory
#	ELISION			artidx.elision of all servers, to run everything under it;
#	ELISION_PROVIDER	and art_elidetest.provider (test/modules/art_elidetest)
#	CI=true			smaller machine expected: nothing interactive
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PARTS=("$@")
[ ${#PARTS[@]} -gt 0 ] || PARTS=(core keys regress isolation tap stress)
: "${STRESS_SECONDS:=15}" "${CORE_SECONDS:=15}" "${CONNS:=500}"
: "${TAP_JOBS:=2}" "${TAP_TIMEOUT:=900}"

for part in "${PARTS[@]}"; do
	case $part in
		core | keys | regress | isolation | tap | stress | quick | models | helgrind | count) ;;
		core:?* | regress:?* | isolation:?* | tap:?*)
			case $part in
				core:*) where=test/core/%.c ;;
				regress:*) where=sql/%.sql ;;
				isolation:*) where=test/isolation/specs/%.spec ;;
				tap:*) where=test/t/%.pl ;;
			esac
			names=${part#*:}
			for name in ${names//,/ }; do
				[ -f "$TREE/${where/\%/$name}" ] || art_die "no such test: ${part%%:*}:$name"
			done
			;;
		*)
			art_die "no such part: $part (core, keys, regress, isolation, tap, stress, quick, models, helgrind, count; core:NAME, regress:NAME, isolation:NAME, tap:NAME)"
			;;
	esac
done

TOTAL_PASSED=0
TOTAL_FAILED=0
SUMMARY=()

# tally NAME PASSED FAILED
tally()
{
	local passed=$2 failed=$3 now

	now=$(date +%s)
	if [ $((passed + failed)) -eq 0 ]; then
		echo "# $1: no test ran, which is a failure"
		failed=1
	fi
	TOTAL_PASSED=$((TOTAL_PASSED + passed))
	TOTAL_FAILED=$((TOTAL_FAILED + failed))
	SUMMARY+=("$(printf '%-17s %5d passed %5d failed %5d s' "$1" "$passed" "$failed" $((now - part_started)))")
	part_started=$now
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
	local t seconds=$CORE_SECONDS

	for t in check check-asan check-tsan check-tree check-elide check-tail; do
		echo "== core: $t"
		run_tap_log "core $t" "$WORK/logs/core-$t.log" \
			timeout -k 30 1200 make -s -k -j2 --no-print-directory -C "$SRC/test/core" \
			SECONDS="$seconds" \
			WERROR="${WERROR:-0}" "$t"
		# the plain build has the whole length, the others look for something else
		seconds=$(((CORE_SECONDS + 2) / 3))
	done
}

# part_core_tests FLAVOURS NAME,NAME...: these programs, for every structure
part_core_tests()
{
	local t

	for t in $1; do
		echo "== core: check-$t"
		run_tap_log "core $t" "$WORK/logs/core-$t.log" \
			timeout -k 30 1200 make -s -k -j2 --no-print-directory -C "$SRC/test/core" \
			SECONDS="$CORE_SECONDS" WERROR="${WERROR:-0}" "check-$t" TESTS="${2//,/ }"
	done
}

# part_quick: every program of the core a tenth as long, one radix tree and one
# B+-tree, plain and under ASan
part_quick()
{
	local t

	for t in plain asan; do
		echo "== quick: check-$t"
		run_tap_log "quick $t" "$WORK/logs/quick-$t.log" env TAP_SCALE=10 \
			timeout -k 30 600 make -s -k -j2 --no-print-directory -C "$SRC/test/core" \
			SECONDS=1 WERROR="${WERROR:-0}" "check-$t" STRUCTURES="art-olc btree-optiql"
	done
}

# part_tool NAME DIRECTORY TARGET: checks of the core that want tools of their own
part_tool()
{
	echo "== $1"
	run_tap_log "$1" "$WORK/logs/$1.log" \
		timeout -k 30 1800 make -s -j2 --no-print-directory -C "$SRC/test/$2" "$3"
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
		[ "$rc" -ne 124 ] || echo "# $name: it took too long"
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

# tap_file FILE: one file of test/t in a directory and a log of its own; its
# exit status goes to LOG.rc, its seconds to LOG.time
tap_file()
{
	local name log started rc

	name=$(basename "$1" .pl)
	log=$WORK/logs/tap-$name.log
	started=$(date +%s)
	as_user mkdir -p "$WORK/tap/$name"
	# 15 goes by TESTDIR, later ones by the other two
	as_user env TESTDIR="$WORK/tap/$name" PGPORT=65432 CONNS="$CONNS" \
		TESTDATADIR="$WORK/tap/$name/tmp_check" \
		TESTLOGDIR="$WORK/tap/$name/tmp_check/log" \
		STRESS_SECONDS="$STRESS_SECONDS" PG_TEST_PORT_DIR="$WORK/tap/portlock" \
		PG_REGRESS="$PGXS_SRC/test/regress/pg_regress" \
		timeout -k 30 "$TAP_TIMEOUT" prove -v --nocolor \
		-I "$PGXS_SRC/test/perl" -I "$SRC/test/perl" "$1" >"$log" 2>&1 </dev/null &
	echo $! >"$log.pid"
	wait $!
	rc=$?
	rm -f "$log.pid"
	echo $(($(date +%s) - started)) >"$log.time"
	echo $rc >"$log.rc"
}

# part_tap [NAME,NAME...]: TAP_JOBS of them at a time; every node has a
# directory and a socket of its own
part_tap()
{
	local f name log rc passed=0 failed=0 p n skipped files=() running=0

	if [ -n "${1:-}" ]; then
		for name in ${1//,/ }; do
			files+=("$SRC/test/t/$name.pl")
		done
	else
		files=("$SRC"/test/t/*.pl)
	fi
	echo "== tap"
	PGXS_SRC=$(dirname "$("$PG_CONFIG" --pgxs)")/..
	as_user mkdir -p "$WORK/tap/portlock"

	# from the end: those take longest
	for ((n = ${#files[@]} - 1; n >= 0; n--)); do
		if [ $running -ge "$TAP_JOBS" ]; then
			wait -n
			running=$((running - 1))
		fi
		tap_file "${files[n]}" &
		running=$((running + 1))
	done
	wait

	for f in "${files[@]}"; do
		name=$(basename "$f" .pl)
		log=$WORK/logs/tap-$name.log
		rc=$(cat "$log.rc")
		# what was skipped did not pass, and is printed
		skipped=$(count "$log" '^ok [0-9]+ # skip')
		p=$(($(count "$log" '^ok [0-9]') - skipped))
		n=$(count "$log" '^not ok [0-9]')
		if [ "$n" -eq 0 ] && { [ "$rc" -ne 0 ] || [ "$p" -eq 0 ]; }; then
			echo "# $name: exit status $rc"
			n=1
		fi
		passed=$((passed + p))
		failed=$((failed + n))
		printf '%-22s %4d passed %4d failed %4d s\n' "$name" "$p" "$n" \
			"$(cat "$log.time")"
		grep -E '^# SEED=' "$log"
		sed -nE 's/^ok [0-9]+ (# skip.*)/\1/p' "$log"
		[ "$n" -gt 0 ] || continue
		grep -E "^(not ok|#   (Failed|at |  +(got|expected)|['(])|Result|Files|  (Failed|Non-zero|Parse))" \
			"$log" | grep -v "^#   'std\|^# *'background_psql" | head -60
		echo "# the end of the servers' logs:"
		find "$WORK/tap/$name" -name '*.log' -path '*log*' 2>/dev/null |
			while IFS= read -r f; do
				echo "# --- ${f##*/}"
				grep -E 'PANIC|TRAP|terminated by signal|not ok|Bailout' "$f" |
					tail -5
			done
		tail -40 "$log"
	done
	tally tap "$passed" "$failed"
}

part_stress()
{
	echo "== stress"
	run_tap_log stress "$WORK/logs/stress.log" env BIN="$BIN" WORK="$WORK" \
		STRESS_SECONDS="$STRESS_SECONDS" CLIENTS="${CLIENTS:-32}" \
		bash "$SRC/test/stress/stress.sh"
}

# what still runs in the background when the script is ended early
stop_taps()
{
	local rc=$? f

	for f in "$WORK"/logs/tap-*.pid; do
		[ -f "$f" ] && kill -TERM "$(cat "$f")" 2>/dev/null && sleep 2
	done
	return $rc
}

started=$(date +%s)
part_started=$started
art_setup test
trap 'stop_taps; art_cleanup' EXIT
[ -z "${ELISION_PROVIDER:-}" ] || art_elision_module
for s in $(art_elision_conf); do
	echo "$s" | as_user tee -a "$SRC/test/artidx.conf" >/dev/null
done
mkdir -p "$WORK/logs"

for part in "${PARTS[@]}"; do
	case $part in
		core) part_core ;;
		core:*) part_core_tests "plain asan tsan" "${part#*:}" ;;
		quick) part_quick ;;
		regress) part_pg_regress regress TAP_TESTS= ISOLATION= ;;
		regress:*)
			names=${part#*:}
			part_pg_regress regress TAP_TESTS= ISOLATION= REGRESS="${names//,/ }"
			;;
		keys) part_keys ;;
		isolation) part_pg_regress isolation TAP_TESTS= REGRESS= ;;
		isolation:*)
			names=${part#*:}
			part_pg_regress isolation TAP_TESTS= REGRESS= ISOLATION="${names//,/ }"
			;;
		tap) part_tap ;;
		tap:*) part_tap "${part#tap:}" ;;
		stress) part_stress ;;
		models) part_tool models models check ;;
		helgrind) part_tool helgrind core check-helgrind ;;
		count) part_tool count core count ;;
	esac
done

echo
printf '%s\n' "${SUMMARY[@]}"
echo "total time: $(($(date +%s) - started)) s"
echo "$TOTAL_PASSED passed, $TOTAL_FAILED failed"
[ "$TOTAL_FAILED" -eq 0 ]
