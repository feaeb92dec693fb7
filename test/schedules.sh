#!/bin/bash
#
# test/schedules.sh
#	  Threads of the core under schedules that are drawn at random, and every answer explained
#	  (test/core/test_schedules.c).
#
# Each engine has its share of the time, as many run at once as there are processors.  It
# prints what each did: how many schedules, of which seeds.  The last line is "N passed,
# N failed".  A failure names the seed that repeats it.
#
#	RUN_SECONDS	of all engines together, on one processor (300)
#	COUNT		schedules of all engines together, instead
#	ENGINES		which (all, and hydra-mvrlu, btree-compared)
#	FROM		the first seed (of the clock); SCENE: this kind of scenes alone
#	PLANTED=1	instead: do they notice?  Makes each mistake of test/mutants whose record says
#				by which engine they find it, in a copy of the core, and looks for a seed that
#				shows it, from FROM (1) on, for a minute at most.  NAMES: these alone.
#	JOBS		engines at once (as many as there are processors)
#	EVIDENCE=1	the counts and seeds go to doc/evidence.md
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${RUN_SECONDS:=300}" "${COUNT:=0}" "${PLANTED:=0}" "${NAMES:=}" "${SCENE:=}"
: "${ENGINES:=$(sed 's/#.*//' "$TREE/test/engines" | xargs) hydra-mvrlu btree-compared}"
art_whole_numbers 1 RUN_SECONDS
art_whole_numbers 0 COUNT
PATIENCE=${PATIENCE:-60}
: "${JOBS:=$(nproc)}"
said=()
passed=0
failed=0
WORK=$(mktemp -d "${TMPDIR:-/tmp}/artidx-schedules.XXXXXX") || art_die "no temporary directory"
trap 'rm -rf "$WORK"' EXIT

# sum_up NAME RC LOG
sum_up()
{
	local came_to

	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1))
		came_to="$(sed -nE 's/^ok [0-9]+ - ([0-9]+ schedules, seeds .*): .*/\1/p' "$3"), $(
			sed -nE 's/.*threads, ([0-9]+ schedules a second).*/\1/p' "$3")"
		said+=("$1" "$came_to")
		printf '%-16s %s\n' "$1" "$came_to"
	else
		failed=$((failed + 1))
		said+=("$1" "failed; $(sed -nE 's/.*(SEED=[0-9]+).*/\1/p' "$3" | head -1)")
		printf '%-16s FAILED\n' "$1"
		cat "$3"
	fi
}

engines()
{
	local number what=SECONDS of=$RUN_SECONDS each e

	number=$(wc -w <<<"$ENGINES")
	[ "$COUNT" -eq 0 ] || { what=COUNT of=$COUNT; }
	each=$(((of + number - 1) / number))
	make -s -C "$TREE/test/core" build/sched/test_schedules || art_die "it does not build"
	# shellcheck disable=SC2086
	printf '%s\n' $ENGINES | xargs -P "$JOBS" -I{} bash -c '
		AX_STRUCTURE={} '"$what=$each"' "$1/test/core/build/sched/test_schedules" >"$2/{}" 2>&1
		echo $? >"$2/{}.rc"' - "$TREE" "$WORK"
	for e in $ENGINES; do
		sum_up "$e" "$(cat "$WORK/$e.rc")" "$WORK/$e"
	done
	e=$(sed -nE 's/^ok [0-9]+ - ([0-9]+) schedules.*/\1/p' "$WORK"/* | awk '{ n += $1 } END { print n + 0 }')
	echo "$e schedules"
	art_evidence schedules "make schedules $what=$of" \
		"Threads of the core ran under schedules that were drawn at random, and every answer was explained. A seed repeats its schedule." \
		"schedules of all engines" "$e" "${said[@]}" "engines passed" "$passed" "engines failed" "$failed"
}

# plant NAME FILE ENGINE SCENE
plant()
{
	local rc began took line log=$WORK/log made=$WORK/test/core/build/sched/test_schedules
	local object=$WORK/test/core/build/sched/core_$(basename "$2" .c).o

	# of a header everything is built, twice
	[ ! -f "$object" ] || cp -p "$object" "$object.kept"
	perl "$TREE/test/mutants/mutate.pl" apply "$1" "$WORK" || art_die "$1 cannot be made"
	if ! make -s -C "$WORK/test/core" CFLAGS_EXTRA=-Wno-error build/sched/test_schedules >"$log" 2>&1; then
		cat "$log"
		rc=-1
	else
		began=$(date +%s%N)
		AX_STRUCTURE=$3 SCENE=$4 FROM=${FROM:-1} SECONDS=$PATIENCE timeout $((PATIENCE + 30)) "$made" >"$log" 2>&1
		rc=$?
		took=$((($(date +%s%N) - began) / 10000000))
	fi
	if [ $rc -eq 1 ] && grep -q 'SEED=' "$log"; then
		passed=$((passed + 1))
		line=$(printf 'found in %d.%02d s by seed %s: %s' $((took / 100)) $((took % 100)) \
			"$(sed -nE 's/.*SEED=([0-9]+).*/\1/p' "$log" | head -1)" "$(sed -n 's/^not ok - //p' "$log" | head -1)")
		said+=("\`$1\`, $3" "$line")
		printf '%-28s %-13s %s\n' "$1" "$3" "$line"
	else
		failed=$((failed + 1))
		said+=("\`$1\`, $3" "not found")
		printf '%-28s %-13s NOT FOUND (%s)\n' "$1" "$3" "$(sed -nE 's/^ok 2 - ([0-9]+ schedules).*/\1/p' "$log")"
	fi
	cp -p "$TREE/$2" "$WORK/$2"
	if [ -f "$object.kept" ]; then mv -f "$object.kept" "$object"; else touch "$WORK/$2"; fi
}

planted()
{
	local list name file engine scene

	# shellcheck disable=SC2086
	list=$(perl "$TREE/test/mutants/mutate.pl" schedules $NAMES) || exit 1
	mkdir -p "$WORK/src" "$WORK/test/modules"
	make -s -C "$TREE/test/core" build/sched/test_schedules || art_die "it does not build"
	cp -a "$TREE/src/core" "$WORK/src/"
	cp -a "$TREE/test/modules/art_elidetest" "$WORK/test/modules/"
	mkdir -p "$WORK/test/core/build"
	cp -a "$TREE/test/engines" "$WORK/test/"
	find "$TREE/test/core" -maxdepth 1 -type f -exec cp -p {} "$WORK/test/core/" \;
	cp -a "$TREE/test/core/build/sched" "$WORK/test/core/build/"
	while IFS=$'\t' read -r name file engine scene <&3; do
		plant "$name" "$file" "$engine" "$scene"
	done 3<<<"$list"
	[ -n "$NAMES" ] || art_evidence schedules-planted "make schedules PLANTED=1" \
		"Each of these mistakes of test/mutants was planted, and the first schedule was looked for that shows it, for a minute at most." \
		"mistakes found" "$passed" "not found" "$failed" "${said[@]}"
}

if [ "$PLANTED" = 1 ]; then planted; else engines; fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
