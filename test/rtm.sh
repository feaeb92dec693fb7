#!/bin/bash
#
# test/rtm.sh
#	  "make check-rtm": every test with the processor's own transactions, tried
#	  always (artidx.elision = on); where it has none that work, it says so.
#
# Then, on any x86-64 machine with qemu-user, transactions that are begun and
# always abort.  Environment: that of test/run.sh; PARTS, what runs under real
# transactions ("core regress isolation tap stress").
#
set -u
cd "$(dirname "$0")/.." || exit 1

: "${PARTS:=core regress isolation tap stress}"
make -s --no-print-directory -C test/core build/plain/test_rtm || exit 1
prog=test/core/build/plain/test_rtm
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0

# tap NAME COMMAND...
tap()
{
	if "${@:2}" >"$log" 2>&1; then
		echo "ok - $1 ($(grep -c '^ok' "$log") tests)"
	else
		echo "not ok - $1"
		grep -v '^ok' "$log" | head -40
		bad=1
	fi
}

tap "real transactions, or none" "$prog"
grep '^# RTM' "$log"
if grep -q '^# no RTM here' "$log"; then
	echo "# no RTM here"
else
	# shellcheck disable=SC2086
	AX_ELIDE=rtm ELISION=on bash test/run.sh $PARTS || bad=1
fi

if [ "$(uname -m)" != x86_64 ]; then
	echo "# aborts under qemu: not tried, this is no x86-64"
elif ! command -v qemu-x86_64 >/dev/null 2>&1; then
	echo "# aborts under qemu: not tried, no qemu-x86_64 (Debian: apt-get install qemu-user)"
else
	tap "transactions that always abort, under qemu" env TAP_SCALE="${TAP_SCALE:-30}" \
		qemu-x86_64 "$prog" force
fi
exit $bad
