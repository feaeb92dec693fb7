#!/bin/bash
#
# findings/output_plugin_libraries.sh
#	  15.20 refuses wal2json, which 15.18 took; and the obvious way to allow it refuses more.
#
# The guess: a minor release makes logical slots of the output plugins that were there
# before.  A setting that lists libraries is written as in the server's hint: the library is
# added to the list that SHOW prints, ALTER SYSTEM SET ... = 'pgoutput, test_decoding, wal2json'.
#
# What happens: since 15.19 output_plugin_libraries says who may be named, and has core's two
# only; the superuser is refused, too.  The text above in one pair of quotes is the name of one
# library, without an error.  From then on test_decoding is refused as well.  It has to be
# 'test_decoding', 'wal2json', or no quotes at all.  In postgresql.conf one pair of quotes
# is right.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-wal2json=2.5-1+b1
start "wal_level = logical"
slot()
{
	local made

	made=$(sql "SELECT 'made' FROM pg_create_logical_replication_slot('s', '$1')" | head -1)
	[ "$made" != made ] || sql "SELECT pg_drop_replication_slot('s')" >/dev/null
	echo "$made"
}
allow()
{
	sql "ALTER SYSTEM SET output_plugin_libraries = $1" "SELECT pg_reload_conf()" >/dev/null
	for _ in {1..50}; do
		[ "$(sql 'SHOW output_plugin_libraries')" != "$2" ] || break
		sleep 0.1
	done
}
as_it_is=$(slot test_decoding) refused=$(slot wal2json)
allow "'pgoutput, test_decoding, wal2json'" '"pgoutput, test_decoding, wal2json"'
one_pair=$(slot test_decoding)
allow "pgoutput, test_decoding, wal2json" "pgoutput, test_decoding, wal2json"
no_quotes=$(slot wal2json)
printf '%s\n' "by default: test_decoding $as_it_is; wal2json $refused" \
	"after ALTER SYSTEM with one pair of quotes: test_decoding $one_pair" "without: wal2json $no_quotes"
[[ $as_it_is == made && $refused == *"may not be used as an output plugin"* &&
	$one_pair == *"may not be used as an output plugin"* && $no_quotes == made ]]
verdict $?
