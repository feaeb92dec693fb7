#!/bin/bash
#
# findings/decimal_keys_cabinets.sh
#	  Keys in decimal order: 1, 01 and 1.0 are three records in Tokyo and Kyoto Cabinet, and one in Tkrzw.
#
# The guess, before it was run: one record in each of these B+-trees of one author.  What the
# comparator calls equal is one key, as in every tree that is given a comparator.
#
# What happens: the decimal comparators of Tokyo Cabinet 1.4.48 and Kyoto Cabinet 1.2.79 order equal
# numbers by their bytes, so each stays a record, and a look-up of 1 does not find 01.  That of Tkrzw 1.0.25
# calls them equal: the last value replaces the others, under the bytes of the first key.  Moved from one
# to the next, records are lost.
# Seen on 2026-12-01 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

WITH=
fetch tokyocabinet-bin=1.4.48-15 kyotocabinet-utils=1.2.79-2+b1 tkrzw-utils=1.0.25-1
export PATH=$root/usr/bin:$PATH
tcbmgr create -cd tokyo.tcb
kctreemgr create -rcd kyoto.kct
tkrzw_dbm_util create --comparator dec tkrzw.tkt
for key in 9 1 01 1.0 10; do
	tcbmgr put -cd tokyo.tcb $key "value of $key"
	kctreemgr set kyoto.kct $key "value of $key"
	tkrzw_dbm_util set tkrzw.tkt $key "value of $key"
done
tokyo=$(tcbmgr list -cd tokyo.tcb | xargs)
kyoto=$(kctreemgr list kyoto.kct | xargs)
tkrzw=$(tkrzw_dbm_util list tkrzw.tkt | tr '\t\n' '=;')
printf '%s\n' "Tokyo: $tokyo" "Kyoto: $kyoto" "Tkrzw: $tkrzw"
[ "$tokyo" = "01 1 1.0 9 10" ] && [ "$kyoto" = "01 1 1.0 9 10" ] &&
	[ "$tkrzw" = "1=value of 1.0;9=value of 9;10=value of 10;" ]
verdict $?
