#!/bin/sh
# Checks the models here with spin: each as it is, which must hold, and with
# each cure taken out, which must fail.  Prints TAP; needs spin and a C compiler.
#	run.sh [model ...]			queue latch park epoch log mvrlu
set -u
cd "$(dirname "$0")" || exit 2
here=$(pwd)
command -v spin >/dev/null || { echo "Bail out! spin is not installed"; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
n=0
bad=0

# one holds|fails what model "spin options" "compiler options" "run options"
one()
{
	want=$1 what=$2 model=$3
	n=$((n + 1))
	rm -f pan pan.* ./*.trail
	if ! spin -a $4 "$here/$model.pml" >spin.out 2>&1 || ! ${CC:-gcc} -w -DMEMLIM=4000 -DCOLLAPSE $5 pan.c -o pan 2>cc.out; then
		echo "not ok $n - $model: $what: does not build"
		cat spin.out cc.out 2>/dev/null | sed 's/^/# /'
		bad=1
		return
	fi
	timeout 120 ./pan -m1000000 $6 >pan.out 2>&1
	if grep -q 'errors: 0$' pan.out && ! grep -Eq 'too small|out of memory|MEMLIM|interrupted' pan.out; then
		got=holds
	elif grep -Eq 'errors: [1-9]' pan.out && grep -Eq 'assertion violated|invalid end state|acceptance cycle' pan.out; then
		got=fails
	else
		got=neither
	fi
	states=$(sed -n 's/^ *\([0-9][0-9.e+]*\) states, stored.*/\1/p' pan.out)
	how=$(sed -n 's/^pan:1: \(invalid end state\|assertion violated\|acceptance cycle\).*/, \1/p' pan.out)
	if [ $got = "$want" ]; then
		echo "ok $n - $model: $what $got ($states states$how)"
	else
		echo "not ok $n - $model: $what: $got, should be: $want"
		sed 's/^/# /' pan.out | head -30
		bad=1
	fi
}

safety() { one holds "all of it${2:+ ($2)}" "$1" "${2:-}" "-O2 -DSAFETY -DNOCLAIM" "${3:-}"; }
without()
{
	m=$1; shift
	for c in "$@"; do
		one fails "with $c" "$m" "-D$c ${opt:-}" "-O0 -DSAFETY -DNOCLAIM" ""
	done
}

for m in ${*:-queue latch park epoch log mvrlu}; do
	opt=
	case $m in
	queue)
		safety queue "" -w24
		without queue NO_HANDED WAIT_FREE NO_SKIP PLAIN_LEAVE FREE_LEFT KEEP_TAIL NO_OBSOLETE HOLDER_KEEPS
		;;
	latch)
		safety latch
		without latch UPGRADE_LOCKED NO_CLOSE LATE_CLOSE NO_VERSION VALID_OPEN
		;;
	park)
		safety park
		without park NO_WAITERS_RECHECK WAITERS_ALWAYS PLAIN_UNLOCK CLEAR_LATE WAKE_ONE
		one holds "a sleeper wakes (LTL)" park "" "-O1 -DNFAIR=4" "-a -f"
		one fails "a sleeper wakes (LTL) with CLEAR_LATE" park -DCLEAR_LATE "-O1 -DNFAIR=4" "-a -f"
		;;
	epoch)
		safety epoch "" -w22
		safety epoch -DBARRIER -w24
		opt=-DREADERS=1
		without epoch NO_FENCE OWN_STAMP EARLY_STAMP STAMP_1 TWO_SCANS
		opt="-DREADERS=1 -DBARRIER"
		without epoch LATE_BARRIER OWN_STAMP EARLY_STAMP STAMP_1
		;;
	log)
		safety log "" -w24
		without log NO_LATCH NEWEST_FIRST TWO_APPLY RETIRE_EARLY NO_BACK
		;;
	mvrlu)
		safety mvrlu "" -w20
		safety mvrlu "-DREADERS=2 -DCOMMITS=1" -w20
		without mvrlu NO_HELP CLOCK_FIRST EARLY_RETIRE BLIND_STORE
		opt="-DREADERS=2 -DCOMMITS=1"
		without mvrlu EARLY_MARK
		;;
	*)
		echo "Bail out! no model $m"
		exit 2
		;;
	esac
done
echo "1..$n"
exit $bad
