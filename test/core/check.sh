#!/bin/bash
#
# check.sh FLAVOUR TEST:STRUCTURE...
#	  Run test programs of build/FLAVOUR, as many at a time as there are
#	  processors (at most four), and print one line for each; of one that fails
#	  also its exit status and the end of what it printed.  Exit status 1 then.
#
# Environment: RUN, what to run them under; TIMEOUT, seconds of each (600).
#
flavour=$1
shift

one()
{
	local t=${2%%:*} s=${2#*:}
	local o=build/$1/$t.$s.tap rc scale=${TAP_SCALE:-100} less= began=$SECONDS

	# a part of the work: under TSan the two longest repeat few steps often
	case $1:$t:$s in
		tsan:test_compact:* | tsan:test_bt_races:*) scale=$(((scale + 3) / 4)) ;;
		*:hydra-*) scale=$(((scale + 4) / 5)) less="SECONDS=1" ;;
	esac

	# shellcheck disable=SC2086
	AX_STRUCTURE=$s TAP_SCALE=$scale env $less \
		timeout "${TIMEOUT:-600}" ${RUN:-} "build/$1/$t" >"$o" 2>&1
	rc=$?
	if [ $rc -eq 0 ] && grep -q '^ok' "$o"; then
		echo "ok - core $1 $t $s $((SECONDS - began)) s ($(grep -c '^ok' "$o") tests)"
	else
		./report.sh "core $1 $t $s" "$o" $rc >"$o.report"
		cat "$o.report"
		return 1
	fi
}
export -f one

jobs=$(nproc 2>/dev/null || echo 1)
[ "$jobs" -le 4 ] || jobs=4
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'one "$@"' one "$flavour" {} || exit 1
