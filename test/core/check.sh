#!/bin/bash
#
# check.sh FLAVOUR TEST:STRUCTURE...
#	  Run test programs of build/FLAVOUR, as many at a time as there are
#	  processors (at most four), and print one line for each; exit status 1 when
#	  one fails.
#
# Environment: RUN, what to run them under; TIMEOUT, seconds of each (600).
#
flavour=$1
shift

one()
{
	local t=${2%%:*} s=${2#*:}
	local o=build/$1/$t.$s.tap

	# shellcheck disable=SC2086
	if AX_STRUCTURE=$s timeout "${TIMEOUT:-600}" ${RUN:-} "build/$1/$t" >"$o" 2>&1; then
		echo "ok - core $1 $t $s ($(grep -c '^ok' "$o") tests)"
	else
		{
			echo "not ok - core $1 $t $s: $o"
			grep -v '^ok' "$o" | head -40
		} >"$o.report"
		cat "$o.report"
		return 1
	fi
}
export -f one

jobs=$(nproc 2>/dev/null || echo 1)
[ "$jobs" -le 4 ] || jobs=4
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'one "$@"' one "$flavour" {} || exit 1
