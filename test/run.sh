#!/bin/bash
#
# test/run.sh [part ...]
#	  Every test of artidx, in throwaway clusters; "make test" calls it.
#
# Parts: symbols, core, keys, regress, isolation, tap, stress; and, only when named,
# quick (the short core tests of "make check"), first (regress on the first minor
# release, FIRST_SERVER), models (spin), helgrind and count (valgrind).  core:, regress:,
# isolation: and tap:NAME,NAME... run these tests alone: programs of test/core (plain and
# under ASan, then TSan), files of sql, of test/isolation/specs, of test/t.
# What is independent runs side by side.  Each part prints its counts; then come the
# parts' times and the ten slowest tests; the last line is "N passed, N failed", and the exit
# status is not zero when anything failed, or when a part ran no test at all.
#
#	STRESS_SECONDS	length of the SQL stress of each structure (8)
#	CORE_SECONDS	length of each threaded stress of the core (3)
#	TAP_SCALE		per cent of the work that the core's tests do (25)
#	ALL_ENGINES=1	the core under ASan with every engine
#	CONNS			connections of test/t/connections.pl (500)
#	JOBS			what uses one processor: so many at a time (2), beside one that uses all
#	TAP_TIMEOUT		seconds that a file of test/t may take (900)
#	REGRESS_TIMEOUT	seconds that the part regress, isolation or keys may take (900)
#	WERROR=1		warnings are errors
#	TIMES			of a whole run: write what each file of test/t took to this file (test/t/seconds)
#	KEEP=1			keep the temporary directory
#	ELISION			artidx.elision of all servers, to run everything under it;
#	ELISION_PROVIDER	and art_elidetest.provider (test/modules/art_elidetest)
#	CI=true			smaller machine expected: nothing interactive
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PARTS=("$@")
[ ${#PARTS[@]} -gt 0 ] || PARTS=(symbols core keys regress isolation tap stress)
: "${TIMES:=}" "${STRESS_SECONDS:=8}" "${CORE_SECONDS:=3}" "${CONNS:=500}"
export TAP_SCALE=${TAP_SCALE:-25}
: "${JOBS:=2}" "${TAP_TIMEOUT:=900}" "${REGRESS_TIMEOUT:=900}" "${FIRST_SERVER:=}"
art_whole_numbers 1 JOBS TAP_TIMEOUT REGRESS_TIMEOUT STRESS_SECONDS CORE_SECONDS CONNS

for part in "${PARTS[@]}"; do
	case $part in
		symbols | core | keys | regress | isolation | tap | stress | quick | first | models | helgrind | count) ;;
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
			art_die "no such part: $part (symbols, core, keys, regress, isolation, tap, stress, quick, first, models, helgrind, count; core:NAME, regress:NAME, isolation:NAME, tap:NAME)"
			;;
	esac
done

TOTAL_PASSED=0
TOTAL_FAILED=0
SUMMARY=()

# tally NAME PASSED FAILED SECONDS
tally()
{
	local passed=$2 failed=$3

	if [ $((passed + failed)) -eq 0 ]; then
		echo "# $1: no test ran, which is a failure"
		failed=1
	fi
	TOTAL_PASSED=$((TOTAL_PASSED + passed))
	TOTAL_FAILED=$((TOTAL_FAILED + failed))
	SUMMARY+=("$(printf '%-17s %5d passed %5d failed %5d s' "$1" "$passed" "$failed" "$4")")
	printf '## %s: %d passed, %d failed\n' "$1" "$passed" "$failed"
}

# count FILE REGEX
count()
{
	grep -E -c -- "$2" "$1"
}

# ---- what runs: units, each with a log ---------------------------------------------------

# A unit is a part of the run that needs no other: PART NAME.  As the user of the servers.

# core_make TARGET [VARIABLE=...]: in test/core
core_make()
{
	as_user timeout -k 30 $((2 * TAP_TIMEOUT)) make -s -k -j2 --no-print-directory -C "$SRC/test/core" \
		WERROR="${WERROR:-0}" "${@:2}" "$1"
}

# run_core FLAVOUR: what shares the objects of one compiler's flags, one after the other.
# The plain build has the whole length, the others look for something else.
run_core()
{
	local less=$(((CORE_SECONDS + 2) / 3)) rc=0

	case $1 in
		plain)
			core_make check SECONDS="$CORE_SECONDS" || rc=1
			core_make check-tree SECONDS="$less" || rc=1
			core_make check-elide SECONDS="$less" || rc=1
			core_make check-tail SECONDS="$less" || rc=1
			;;
		fuzz) run_fuzz || rc=1 ;;
		*) core_make "check-$1" SECONDS="$less" || rc=1 ;;
	esac
	return $rc
}

# run_fuzz: the corpora of the fuzz targets and some mutations, by objects of the core's unit asan
run_fuzz()
{
	as_user timeout -k 30 $((2 * TAP_TIMEOUT)) make -s -k -j2 --no-print-directory -C "$SRC/test/fuzz" \
		PG_CONFIG="$PG_CONFIG" WERROR="${WERROR:-0}" replay
}

# run_pg_regress ARGUMENT...: 15 prints "test NAME ... ok", later ones print TAP
run_pg_regress()
{
	as_user timeout -k 30 "$REGRESS_TIMEOUT" make -s --no-print-directory PG_CONFIG="$PG_CONFIG" installcheck "$@"
}

# regress_names: the files of sql, one a line
regress_names()
{
	perl -0777 -ne 's/\\\n//g; print "$1 " while /^REGRESS \+?= (.*)$/mg' "$SRC/Makefile" | xargs -n1
}

# lacking FILE...: those, by their names, that want what this PostgreSQL was built without: ICU,
# libxml, an extension of contrib.  That is none with Debian's.
lacking()
{
	local header extensions

	header=$("$PG_CONFIG" --includedir-server)/pg_config.h
	extensions=$("$PG_CONFIG" --sharedir)/extension
	{
		grep -q '^#define USE_ICU ' "$header" || grep -lE 'x-icu|provider = icu' "$@"
		grep -q '^#define USE_LIBXML ' "$header" || grep -l XMLTABLE "$@"
		[ -f "$extensions/citext.control" ] || grep -l 'EXTENSION citext' "$@"
	} | sed -E 's/.*\/(.*)\.[a-z]*$/\1/' | sort -u
}

# but_lacking NAMES FILE...: the first without the others that lacking() tells; says so
but_lacking()
{
	local names=$1 out

	shift
	out=$(lacking "$@")
	[ -z "$out" ] || art_say "left out, since this PostgreSQL has no ICU, libxml or contrib:" $out
	grep -vxF "${out:-none}" <<<"$names" | xargs
}

# brute force over the key encodings: a module of its own, a server without artidx
run_keys()
{
	local dir=$SRC/test/modules/art_keytest

	as_user make -s -C "$dir" PG_CONFIG="$PG_CONFIG" WERROR="${WERROR:-0}" install &&
		run_pg_regress -C "$dir"
}

# The library as built here in the first minor release of this version.  Its ICU is of
# that time, so opcmp has other answers; opclass counts what core has mended since, and
# elision wants a module.  17.0's btree, to which arrays and together compare, loses and
# repeats rows where a cursor turns in a scan of an array.
run_first()
{
	local first=$WORK/first names without='opcmp|opclass|elision'

	case $("$FIRST_SERVER/bin/postgres" --version) in *' 17.0'*) without+='|arrays|together' ;; esac
	names=$(regress_names | grep -vxE "$without")
	cp -a "$FIRST_SERVER" "$first" && cp "$BIN/psql" "$first/bin/" &&
		cp "$SRC/artidx.so" "$first/lib/postgresql/" &&
		cp "$SRC"/artidx*.control "$SRC"/artidx*--*.sql "$first/share/postgresql/extension/" || return 1
	"$first/bin/postgres" --version
	as_user timeout -k 30 900 "$(dirname "$("$PG_CONFIG" --pgxs)")/../test/regress/pg_regress" \
		--inputdir="$SRC" --outputdir="$WORK/tmp" --bindir="$first/bin" --dlpath="$first/lib/postgresql" \
		--temp-instance="$WORK/tmp/first" --temp-config="$SRC/test/artidx.conf" --no-locale --encoding=UTF8 \
		--dbname=contrib_regression \
		$names
}

run_unit()
{
	case $1 in
		symbols)
			bash "$SRC/test/symbols.sh" list artidx.so "$PG_CONFIG" &&
				bash "$SRC/test/symbols.sh" selftest "$PG_CONFIG"
			;;
		core) run_core "$2" ;;
		core:*) core_make "check-$2" SECONDS="$CORE_SECONDS" TESTS="$(names_of "$1")" ;;
		# every program a tenth as long, one radix tree and one B+-tree
		quick)
			case $2 in
				fuzz) run_fuzz ;;
				*) TAP_SCALE=10 core_make "check-$2" SECONDS=1 STRUCTURES="art-olc btree-optiql" ;;
			esac
			;;
		keys) run_keys ;;
		regress) run_pg_regress TAP_TESTS= ISOLATION= REGRESS="$(but_lacking "$(regress_names)" "$SRC"/sql/*.sql)" ;;
		regress:*) run_pg_regress TAP_TESTS= ISOLATION= REGRESS="$(names_of "$1")" ;;
		isolation)
			specs=("$SRC"/test/isolation/specs/*.spec)
			run_pg_regress TAP_TESTS= REGRESS= \
				ISOLATION="$(but_lacking "$(printf '%s\n' "${specs[@]}" | sed -E 's/.*\/(.*)\.spec/\1/')" "${specs[@]}")"
			;;
		isolation:*) run_pg_regress TAP_TESTS= REGRESS= ISOLATION="$(names_of "$1")" ;;
		tap | tap:*) art_tap "$TAP_TIMEOUT" "$2" CONNS="$CONNS" STRESS_SECONDS="$STRESS_SECONDS" ;;
		stress)
			as_user env BIN="$BIN" WORK="$WORK" STRESS_SECONDS="$STRESS_SECONDS" CLIENTS="${CLIENTS:-32}" \
				bash "$SRC/test/stress/stress.sh"
			;;
		first) run_first ;;
		# checks of the core that want tools of their own
		models) as_user make -s -j2 --no-print-directory -C "$SRC/test/models" check ;;
		helgrind) core_make check-helgrind ;;
		count) core_make count ;;
	esac
}

# names_of PART:NAME,NAME...
names_of()
{
	local names=${1#*:}

	echo "${names//,/ }"
}

# too_new: files of test/t with a line "# Needs: VERSION" of a later version than this
too_new()
{
	local version

	version=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
	echo none
	grep -H '^# Needs: ' "$SRC"/test/t/*.pl | sed -E 's/.*\/(.*)\.pl:# Needs: ([0-9]+)$/\1 \2/' |
		awk -v v="$version" '$2 > v { print $1 }'
}

# longest_first: the files of test/t, by what each took in the run that wrote test/t/seconds
# (SECONDS NAME); one that is not in it may be long
longest_first()
{
	(cd "$SRC/test/t" && printf '%s\n' *.pl) | sed 's/\.pl$//' |
		awk 'FILENAME != "-" { took[$2] = $1; next } { print ($1 in took ? took[$1] : 999), $1 }' \
			"$SRC/test/t/seconds" - | sort -k1,1nr -k2 | cut -d' ' -f2
}

# write_seconds FILE: what longest_first reads
write_seconds()
{
	(cd "$WORK/logs" && for f in tap-*.log.time; do
		f=${f#tap-}
		echo "$(cat "tap-$f") ${f%.log.time}"
	done) | sort -k1,1nr -k2 >"$1"
}

# units PART: the names of its units
units()
{
	case $1 in
		core) echo "plain asan tsan fuzz" ;;
		core:*) echo "plain asan tsan" ;;
		quick) echo "plain asan fuzz" ;;
		tap:*) names_of "$1" ;;
		tap) longest_first | grep -vxF "$(too_new)" | xargs ;;
		*) echo "${1%%:*}" ;;
	esac
}

# uses_all PART: does it keep all processors busy by itself?
uses_all()
{
	case $1 in core* | quick | stress | models | helgrind | count) return 0 ;; esac
	return 1
}

# unit PART NAME: runs it; its log, exit status and seconds are files
unit()
{
	local log=$WORK/logs/${1%%:*}-$2.log began=$SECONDS

	run_unit "$1" "$2" >"$log" 2>&1 </dev/null
	echo $? >"$log.rc"
	echo $((SECONDS - began)) >"$log.time"
	printf '# at %5d s: %s %s, %d s\n' "$SECONDS" "${1%%:*}" "$2" $((SECONDS - began))
}

# lane N PART NAME PART NAME...: these units, N at a time
lane()
{
	local n=$1 running=0

	shift
	while [ $# -gt 0 ]; do
		if [ $running -ge "$n" ]; then
			wait -n
			running=$((running - 1))
		fi
		unit "$1" "$2" &
		running=$((running + 1))
		shift 2
	done
	wait
}

# end_all PID: that process and all that it has started
end_all()
{
	local child

	# shellcheck disable=SC2013
	for child in $(cat "/proc/$1"/task/*/children 2>/dev/null); do
		end_all "$child"
	done
	kill -TERM "$1" 2>/dev/null
}

# what still runs in the background when the script is ended early
stop_units()
{
	local rc=$? pid

	for pid in $(jobs -p); do
		end_all "$pid"
		sleep 2
	done
	return $rc
}

# ---- what came of it ---------------------------------------------------------------------

# results PART: counts and, of what failed, the reasons
results()
{
	local name log rc p n passed=0 failed=0 seconds=0

	echo "== ${1}"
	for name in $(units "$1" | xargs -n1 | sort); do
		log=$WORK/logs/${1%%:*}-$name.log
		rc=$(cat "$log.rc")
		case $1 in
			tap | tap:*) results_tap "$name" ;;
			keys | regress* | isolation* | first) results_pg_regress ;;
			*) results_lines ;;
		esac
		passed=$((passed + p))
		failed=$((failed + n))
		seconds=$((seconds + $(cat "$log.time")))
	done
	tally "${1%%:*}" "$passed" "$failed" "$seconds"
}

# These set p and n, the counts, by the log and rc of results().

# TAP lines; a failing exit status that no "not ok" line explains counts as one failure
results_lines()
{
	# one line a test, or one a program with the number of its tests
	p=$(awk '/^ok( |$)/ {
		n += match($0, /\([0-9]+ tests\)$/) ? substr($0, RSTART + 1) + 0 : 1
	} END { print n + 0 }' "$log")
	n=$(count "$log" '^not ok [0-9]')
	[ "$n" -gt 0 ] || n=$(count "$log" '^not ok( |$)')
	[ "$rc" -eq 0 ] || [ "$n" -gt 0 ] || { echo "# $name: exit status $rc"; n=1; }
	[ "$n" -eq 0 ] && return
	grep -vE '^ok ' "$log" | tail -400
}

results_pg_regress()
{
	p=$(count "$log" '^(test .* \.\.\. ok|ok +[0-9]+ )')
	n=$(count "$log" '^(test .* \.\.\. .*FAILED|not ok +[0-9]+ )')
	[ "$rc" -ne 0 ] || return
	[ "$n" -gt 0 ] || n=1
	[ "$rc" -ne 124 ] || echo "# $1: it took too long"
	tail -60 "$log"
	find "$SRC" "$WORK/tmp" -name regression.diffs -exec head -400 {} \; 2>/dev/null
	find "$SRC" -path '*tmp_*' -name postmaster.log \
		-exec grep -E 'PANIC|FATAL|TRAP|terminated by signal' {} \; | tail -20
}

# results_tap NAME: of prove
results_tap()
{
	local skipped f

	# what was skipped did not pass, and is printed
	skipped=$(count "$log" '^ok [0-9]+ # skip')
	p=$(($(count "$log" '^ok [0-9]') - skipped))
	n=$(count "$log" '^not ok [0-9]')
	if [ "$n" -eq 0 ] && { [ "$rc" -ne 0 ] || [ "$p" -eq 0 ]; }; then
		echo "# $1: exit status $rc"
		n=1
	fi
	printf '%-22s %4d passed %4d failed %4d s\n' "$1" "$p" "$n" "$(cat "$log.time")"
	grep -E '^# SEED=' "$log"
	sed -nE 's/^ok [0-9]+ (# skip.*)/\1/p' "$log"
	[ "$n" -gt 0 ] || return
	grep -E "^(not ok|#   (Failed|at |  +(got|expected)|['(])|Result|Files|  (Failed|Non-zero|Parse))" \
		"$log" | grep -v "^#   'std\|^# *'background_psql" | head -60
	echo "# the end of the servers' logs:"
	find "$WORK/tap/$1" -name '*.log' -path '*log*' 2>/dev/null |
		while IFS= read -r f; do
			echo "# --- ${f##*/}"
			grep -E 'PANIC|TRAP|terminated by signal|not ok|Bailout' "$f" |
				tail -5
		done
	tail -40 "$log"
}

# The tests that took longest: "SECONDS s NAME" of each program, file and script
slowest()
{
	local f

	cd "$WORK/logs" || return
	{
		sed -nE 's/^ok - (core .*) ([0-9]+) s \([0-9]+ tests\)$/\2 \1/p' core-*.log quick-*.log 2>/dev/null
		sed -nE 's/^(test |ok +[0-9]+ +[-+] )([a-z0-9_-]+) .* ([0-9]+)([0-9]{3}) ms$/\3 regress \2/p' \
			regress-*.log isolation-*.log keys-*.log 2>/dev/null
		for f in tap-*.log.time stress-*.log.time; do
			[ ! -f "$f" ] || echo "$(cat "$f") $(basename "$f" .log.time | tr - ' ')"
		done
	} | sort -rn | head -10 | awk '{ s = $1; $1 = ""; printf "%5d s %s\n", s, $0 }'
	cd "$SRC" || return
}

# What doc/evidence.md says of the run: the parts' counts, those of random statements, and the seeds of random tests.
evidence()
{
	local seeds rows=() line name

	for line in "${SUMMARY[@]}"; do
		rows+=("${line%% *}" "$(sed -E 's/^[^ ]+ +//; s/ +/ /g; s/ ([0-9]+ failed)/, \1/; s/ ([0-9]+ s)$/, \1/' <<<"$line")")
	done
	while IFS=: read -r name line; do
		rows+=("$name" "$line")
	done < <(cd "$WORK/logs" && grep -HoE '^# COUNTED: .*' tap-*.log 2>/dev/null |
		sed -E 's/^tap-(.*)\.log:# COUNTED: /tap \1:/')
	seeds=$(cd "$WORK/logs" && grep -oE '^# SEED=[0-9]+' tap-*.log stress-*.log 2>/dev/null |
		sed -E 's/^[a-z]+-(.*)\.log:# SEED=/\1 /' | sort -u | paste -sd, | sed 's/,/, /g')
	art_evidence "${EVIDENCE_NAME:-test}" "${EVIDENCE_RUN:-make test PARTS=\"${PARTS[*]}\"}" \
		"${EVIDENCE_SHOWS:-Tests of the parts named, in throwaway clusters.}" \
		"${rows[@]}" "seeds" "${seeds:-none}" "in all" "$TOTAL_PASSED passed, $TOTAL_FAILED failed"
}

started=$(date +%s)
art_setup test
trap 'stop_units; art_cleanup' EXIT
# elision.sql and the stress load it, and both at once are not to build it
art_elision_module
for s in $(art_elision_conf); do
	echo "$s" | as_user tee -a "$SRC/test/artidx.conf" >/dev/null
done
mkdir -p "$WORK/logs"
as_user mkdir -p "$WORK/tap/portlock"

wide=()
narrow=()
for part in "${PARTS[@]}"; do
	for name in $(units "$part"); do
		if uses_all "$part"; then wide+=("$part" "$name"); else narrow+=("$part" "$name"); fi
	done
done
lane 1 "${wide[@]}" &
lane "$JOBS" "${narrow[@]}" &
wait
for part in "${PARTS[@]}"; do
	results "$part"
done
[[ " ${PARTS[*]} " != *' tap '* ]] || too_new | sed -n '/^none$/d; s/^/# of a later PostgreSQL, and not run: /p'
[ -z "$TIMES" ] || write_seconds "$TIMES"

echo
printf '%s\n' "${SUMMARY[@]}"
echo "the slowest:"
slowest
echo "total time: $(($(date +%s) - started)) s"
echo "$TOTAL_PASSED passed, $TOTAL_FAILED failed"
evidence
[ "$TOTAL_FAILED" -eq 0 ]
