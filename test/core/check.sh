#!/bin/bash
#
# check.sh FLAVOUR TEST:STRUCTURE...
#	  Run test programs of build/FLAVOUR, as many at a time as there are
#	  processors (at most four), and print one line for each; of one that fails
#	  also its exit status and the end of what it printed.  Exit status 1 then.
#	  As TEST:STRUCTURE:ELIDE:PHASE every section is a transaction (tree.mk).
#
# Environment: RUN, what to run them under; TIMEOUT, seconds of each (900).
#
flavour=$1
shift

one()
{
	local t s e p name=$1
	local o rc scale=${TAP_SCALE:-100} less=() began=$SECONDS

	IFS=: read -r t s e p <<<"$2"
	o=build/$1/$t.$s${e:+.$e.$p}.tap

	# a part of the work: under TSan the three longest repeat few steps often
	case $1:$t:$s in
		tsan:test_compact:* | tsan:test_bt_races:* | tsan:test_mvrlu:*) scale=$(((scale + 3) / 4)) ;;
		*:hydra-*) scale=$(((scale + 4) / 5)) less=(SECONDS=1) ;;
		# the plain build has looked at the same with every section optimistic, and so at all
		# that does not hang on the way in which latches are taken
		pess:test_tree:* | pess:test_oom:*) scale=$(((scale + 3) / 4)) ;;
	esac
	if [ -n "$e" ]; then
		name="elide $e"
		[ "$t" != test_oom ] || scale=$(((scale + 3) / 4))
		less=(AX_ELIDE="$e" PHASE="${p#oom}" SECONDS=$(((${SECONDS_EACH:-5} + 1) / 2)))
	fi

	# shellcheck disable=SC2086
	AX_STRUCTURE=$s TAP_SCALE=$scale env "${less[@]}" \
		timeout "${TIMEOUT:-900}" ${RUN:-} "build/$1/$t" >"$o" 2>&1
	rc=$?
	if [ $rc -eq 0 ] && grep -q '^ok' "$o"; then
		echo "ok - core $name $t $s${p:+ $p} $((SECONDS - began)) s ($(grep -c '^ok' "$o") tests)"
	else
		./report.sh "core $name $t $s${p:+ $p}" "$o" $rc >"$o.report"
		cat "$o.report"
		return 1
	fi
}
export -f one

jobs=$(nproc 2>/dev/null || echo 1)
[ "$jobs" -le 4 ] || jobs=4
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'one "$@"' one "$flavour" {} || exit 1
