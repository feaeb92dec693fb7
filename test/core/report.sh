#!/bin/bash
#
# report.sh NAME LOG STATUS
#	  What is known of a test program that failed: how it ended, the tests that
#	  it passed, its complaints, and the last lines that it printed.
#
log=$2
rc=$3

case $rc in
	0) how="ended well, though no test ran" ;;
	124) how="exit status 124: it took too long" ;;
	*)
		how="exit status $rc"
		[ "$rc" -le 128 ] || how+=", signal $(kill -l $((rc - 128)) 2>/dev/null)"
		;;
esac
echo "not ok - $1: $how, $(grep -c '^ok' "$log") tests passed; $log"
grep -v '^ok' "$log" | head -40
echo "# its last lines:"
tail -5 "$log" | sed 's/^/#   /'
